"""Journals of systemd, written by systemd-journal-remote, which needs no systemd that runs. What
the server holds is compared with what was written and with what journalctl shows."""

import contextlib
import itertools
import os
import re
import shutil
import struct
import subprocess

import pytest

from followed import await_held
from server import eventually
from test_agent_inlets import await_until_line, follow, held, told  # noqa: F401 (a fixture)

REMOTE = shutil.which("systemd-journal-remote", path="/lib/systemd:/usr/lib/systemd")
pytestmark = pytest.mark.skipif(not REMOTE or not shutil.which("journalctl"),
                                reason="systemd-journal-remote or journalctl is not there")

BEGIN_US = 1700000000123456  # 2023-11-14T22:13:20.123456Z
BOOT = "0123456789abcdef0123456789abcdef"


def entry(us, **fields):
    """In the form of systemd's Journal Export Format."""
    said = b"__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=%s\n" % (
        us, us - BEGIN_US + 1000000, BOOT.encode())
    for key, value in fields.items():
        value = value.encode() if isinstance(value, str) else value
        if any(byte < 0x20 for byte in value):
            said += key.encode() + b"\n" + struct.pack("<Q", len(value)) + value + b"\n"
        else:
            said += key.encode() + b"=" + value + b"\n"
    return said + b"\n"


class Journal:
    """A directory with journals; `written` are the lines that their entries become. Each entry is
    a millisecond behind the one before."""

    def __init__(self, folder):
        self.folder, self.written, self.next, self.process = folder, b"", 0, None
        self.rotated = itertools.count(1)

    def open(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen([REMOTE, "-o", self.folder / "system.journal", "-"],
                                        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return self

    def append(self, count):
        for number in range(self.next, self.next + count):
            us = BEGIN_US + 1000 * number
            message = f"line {number:06d} {'x' * (number * 7 % 100)}"
            self.process.stdin.write(entry(us, MESSAGE=message, _HOSTNAME="host9",
                                           SYSLOG_IDENTIFIER="prog", _PID="77", PRIORITY="3",
                                           SYSLOG_FACILITY="3"))
            # By hand: 3 * 8 + 3 is 27; the first entry is of 22:13:20.123456.
            ms = 20123 + number
            assert ms < 60000
            self.written += (f"<27>2023-11-14T22:13:{ms // 1000:02d}.{ms % 1000:03d}456Z host9 "
                             f"prog[77]: {message}\n").encode()
        self.process.stdin.flush()
        self.next += count

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0

    def rotate(self):
        self.close()
        (self.folder / "system.journal").rename(
            self.folder / f"system@{next(self.rotated):032x}.journal")
        self.open()

    def shown(self):
        """By journalctl, with the priority in front."""
        text = subprocess.run(["journalctl", "-D", self.folder, "-o", "short-iso-precise", "--utc"],
                              capture_output=True, check=True, timeout=60).stdout
        return re.sub(rb"(?m)^(\S+)\+0000 ", rb"<27>\1Z ", text)


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "journal").open()
    yield made
    made.process.kill()
    made.process.wait()


def adaptors(journal, **options):
    return {"j": {"journal": str(journal.folder), "datatype": "journal", **options}}


NAME = "journal:j"


def test_entries_are_those_of_journalctl(server, follow, journal):
    journal.append(500)
    follower = follow(adaptors(journal))
    await_held(server, NAME, journal.written, follower)
    journal.close()
    assert journal.shown() == journal.written
    follower.stop()


def test_each_part_of_an_entry(server, follow, journal):
    at = BEGIN_US
    host = {"_HOSTNAME": "h"}
    for number, (fields, line) in enumerate((
            # The priority is 8 times the facility and the severity; of `user` if none is known.
            ({"MESSAGE": "a", "PRIORITY": "6", **host}, b"<14>%s h unknown: a"),
            ({"MESSAGE": "a", "PRIORITY": "0", "SYSLOG_FACILITY": "0", **host},
             b"<0>%s h unknown: a"),
            ({"MESSAGE": "a", "PRIORITY": "7", "SYSLOG_FACILITY": "23", **host},
             b"<191>%s h unknown: a"),
            ({"MESSAGE": "a", "PRIORITY": "8", **host}, b"%s h unknown: a"),
            ({"MESSAGE": "a", "PRIORITY": "x", **host}, b"%s h unknown: a"),
            ({"MESSAGE": "a", "PRIORITY": "5", "SYSLOG_FACILITY": "24", **host},
             b"<13>%s h unknown: a"),
            ({"MESSAGE": "a", "_COMM": "comm", **host}, b"%s h comm: a"),
            ({"MESSAGE": "a", "_COMM": "comm", "SYSLOG_IDENTIFIER": "id", "SYSLOG_PID": "5",
              **host}, b"%s h id[5]: a"),
            ({"MESSAGE": "a", "_PID": "7", "SYSLOG_PID": "5", **host}, b"%s h unknown[7]: a"),
            ({"MESSAGE": "a", "_PID": "7x", **host}, b"%s h unknown: a"),
            ({"MESSAGE": "a"}, b"%s - unknown: a"),
            (host, b"%s h unknown: "),
            # Whoever writes to the journal chooses these: they forge no line and no head.
            ({"MESSAGE": "a", "SYSLOG_IDENTIFIER": b"x\n<0>y z\x7f", **host},
             b"%s h x_<0>y_z_: a"),
            ({"MESSAGE": b"two\nlines\4\nand \0\xff\4", **host},
             b"%s h unknown: two\4\nlines\4\4\nand \0\xff\4\n"),
            ({"MESSAGE": "y" * 600000, **host}, b"%s h unknown: " + b"y" * 524288),
            ({"MESSAGE": "a", "_SOURCE_REALTIME_TIMESTAMP": str(BEGIN_US - 123456), **host},
             b"2023-11-14T22:13:20.000000Z h unknown: a"))):
        journal.process.stdin.write(entry(at + number, **fields))
        time = b"2023-11-14T22:13:20.%06dZ" % (123456 + number)
        journal.written += (line % time if b"%s" in line else line) + b"\n"
    journal.process.stdin.flush()
    await_held(server, NAME, journal.written, follow(adaptors(journal)))


def test_kills_and_rotations(server, follow, journal):
    """Entries come all the time, the agent is killed ten times, the journal rotates while it runs
    and while it does not."""
    follower = follow(adaptors(journal))
    for turn in range(10):
        journal.append(300)
        if turn % 3 == 0:
            eventually(lambda: held(server, NAME).count(b"\n") >= journal.next - 200,
                       follower.log_tail)
        follower.kill()
        journal.append(50)
        if turn % 2:
            journal.rotate()
        journal.append(50)
        follower.start()
        journal.append(50)
        if turn % 4 == 1:
            journal.rotate()
    journal.append(10)
    await_held(server, NAME, journal.written, follower)
    journal.close()
    assert journal.shown() == journal.written
    follower.stop()


def test_the_spool_is_full(server, follow, journal):
    """11 MB while no collector is there, of which the spool takes 8 MiB."""
    server.kill()
    follower = follow(adaptors(journal), options=["--agent.spool_max", "8M"])
    for number in range(220):
        message = f"{number:06d} {'z' * 50000}"
        journal.process.stdin.write(entry(BEGIN_US + number, MESSAGE=message))
        journal.written += (f"2023-11-14T22:13:20.{123456 + number:06d}Z - unknown: "
                            f"{message}\n").encode()
    journal.process.stdin.flush()
    follower.await_said("cannot be kept at present")
    follower.kill()
    follower.start()
    follower.await_said("cannot be kept at present")
    server.start()
    await_held(server, NAME, journal.written, follower)
    follower.stop()


def test_from_its_end(server, follow, journal):
    journal.append(100)
    journal.close()
    journal.written = b""
    follower = follow(adaptors(journal, **{"from": "end"}))
    note = follower.data / "agent" / "spool" / "journal:journal%3Aj.note"
    eventually(note.exists, follower.log_tail)
    follower.kill()
    journal.open()
    journal.append(10)  # while it is down: not of the past
    follower.start()
    await_held(server, NAME, journal.written, follower)
    follower.stop()


def test_all_of_a_journal_that_comes_later_is_behind_its_end(server, follow, tmp_path):
    journal = Journal(tmp_path / "later")
    follower = follow(adaptors(journal, **{"from": "end"}))
    note = follower.data / "agent" / "spool" / "journal:journal%3Aj.note"
    eventually(note.exists, follower.log_tail)
    journal.open()
    journal.append(10)
    journal.close()
    await_held(server, NAME, journal.written, follower)
    follower.stop()


def test_a_damaged_entry(server, follow, journal):
    """Its place says so; all others are delivered, and the log says which number is missing."""
    journal.append(3)
    journal.close()
    path = journal.folder / "system.journal"
    # Objects begin with type 3 (an entry), flags and six reserved bytes, their length, and the
    # number of the entry: https://systemd.io/JOURNAL_FILE_FORMAT/
    whole = path.read_bytes()
    at = [match.start() for match in re.finditer(rb"\x03\0{7}(?=..\0{6}\x02\0{7})", whole, re.S)]
    assert len(at) == 1
    path.write_bytes(whole[:at[0]] + b"\1" + whole[at[0] + 1:])
    journal.written = b"".join(journal.written.splitlines(True)[i] for i in (0, 2))
    follower = follow(adaptors(journal))
    await_held(server, NAME, journal.written, follower)
    follower.await_said("1 entries of the journal are missing behind number 1")
    assert follower.log_text().count("are missing behind") == 1
    follower.stop()


def test_files_that_are_no_journals(server, follow, journal):
    (journal.folder / "broken.journal").write_bytes(os.urandom(5000))
    (journal.folder / "empty.journal").write_bytes(b"")
    journal.append(100)
    follower = follow(adaptors(journal))
    await_held(server, NAME, journal.written, follower)
    follower.stop()


def test_a_journal_that_comes_and_goes(server, follow, journal):
    """It is not there at first; its directory is removed and made again."""
    journal.close()
    shutil.rmtree(journal.folder)
    follower = follow(adaptors(journal))
    eventually(lambda: "No such file" in told(server, "j").get("error", ""),
               lambda: told(server, "j"))
    journal.open()
    journal.append(100)
    await_held(server, NAME, journal.written, follower)
    eventually(lambda: told(server, "j").get("error") == "", lambda: told(server, "j"))
    for _ in range(2):
        journal.close()
        shutil.rmtree(journal.folder)
        journal.open()
        journal.append(100)
        await_held(server, NAME, journal.written, follower)
    follower.stop()


def test_the_entry_of_the_cursor_is_gone(server, follow, journal):
    """Reading goes on with the oldest entry behind it; nothing of before comes again."""
    journal.append(100)
    follower = follow(adaptors(journal))
    await_held(server, NAME, journal.written, follower)
    follower.stop()
    journal.close()
    shutil.rmtree(journal.folder)
    before, journal.next = journal.written, 50
    journal.open()
    journal.append(100)  # half of them as before
    journal.written = before + b"".join(journal.written[len(before):].splitlines(True)[50:])
    follower.start()
    await_held(server, NAME, journal.written, follower)
    follower.stop()


def test_the_journal_comes_back_after_the_agent(server, follow, journal):
    """At the start there is nothing; then the journal is there as it was, and goes on."""
    journal.append(100)
    follower = follow(adaptors(journal))
    await_held(server, NAME, journal.written, follower)
    follower.stop()
    path = journal.folder / "system.journal"
    path.rename(journal.folder.parent / "away")
    follower.start()
    def watches():
        """The agent's own, and the library's once it has looked for the entry of the cursor."""
        fds, found = f"/proc/{follower.process.pid}/fd", 0
        for fd in os.listdir(fds):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found += os.readlink(f"{fds}/{fd}") == "anon_inode:inotify"
        return found
    eventually(lambda: watches() == 2, follower.log_tail)
    (journal.folder.parent / "away").rename(path)
    journal.append(100)
    await_held(server, NAME, journal.written, follower)
    follower.stop()


def test_one_file(server, follow, journal):
    """It is read, and when another one is at its path, that one."""
    journal.append(100)
    follower = follow({"j": {"journal": str(journal.folder / "system.journal"),
                             "datatype": "journal"}})
    await_held(server, NAME, journal.written, follower)
    journal.append(100)
    journal.rotate()
    journal.append(100)
    await_until_line(server, follower, NAME, journal.written.decode().splitlines()[-1])
    assert held(server, NAME) == journal.written
    follower.stop()
