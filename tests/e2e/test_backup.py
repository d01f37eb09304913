"""granary backup and restore: the answers of one moment, elsewhere. What is wanted is made here:
values are functions of their sender and place, and a sender knows what was answered."""

import copy
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from chunks import crc32c, v1, v1_post
from mounts import image, memory
from redis import Redis
from rollups import LONG_AGO, SHORT, lines, state, until
from server import PATIENCE_S, eventually, granary, run, running

CHUNK = 64 << 20
END_BYTES = 22


def backup(server, file, *options, timeout=PATIENCE_S, **environment):
    return subprocess.run([granary(), "backup", str(file), "--server", server.url, *options],
                          capture_output=True, timeout=timeout,
                          env={**os.environ, **environment})


def start_backup(server, file="-", stdout=subprocess.PIPE):
    return subprocess.Popen([granary(), "backup", str(file), "--server", server.url],
                            stdout=stdout, stderr=subprocess.PIPE)


def restore(file, folder, **environment):
    return run("restore", file, folder, env={**os.environ, **environment})


def refused(done, *words):
    """With one sentence, which has these words."""
    assert done.returncode == 1, done
    sentence = done.stderr if isinstance(done.stderr, str) else done.stderr.decode()
    assert all(word in sentence for word in words), sentence
    assert sentence.splitlines()[-1].startswith("granary "), sentence
    return True


def restored_server(make_server, file, name="restored", **options):
    server = make_server(name, **options)
    done = restore(file, server.data)
    assert done.returncode == 0, done
    return server


def exported(server):
    answer = server.get("/api/export")
    assert answer.status == 200 and not answer.headers["X-Granary-Next"]
    return answer.text


def fill(server, megabytes, name="/big", seed=1):
    """So much that cannot be packed."""
    noise = random.Random(seed)
    for number in range(megabytes):
        chunk = v1((number + 1) << 20, noise.randbytes(1 << 20), name=name, ends=[1 << 20])
        answer = server.request("POST", "/chukwa", v1_post(chunk))
        assert answer.status == 200, answer


def until_sealed(server):
    """All but the last of what `fill` brought is in blocks, which nobody reads unasked."""
    def tail():
        tables = {table["table"]: table for table in server.get("/api/stats").json["tables"]}
        return tables["chunk_tail"]["samples"]
    eventually(lambda: tail() < 16, tail)


class Sender:
    """Sends batches one after the other. Batch n: value n at second n of each of its series, and n
    again at second 0 of the series `last`, which is so written over by each batch."""

    SERIES = 50

    def __init__(self, server, name):
        self.server, self.name = copy.copy(server), name
        self.server.connection = None
        self.answered, self.asked = 0, 0
        self.stopping, self.failure = False, None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def text(self, n):
        return "".join(f"load,s={self.name},h={h} value={n} {LONG_AGO + n}000000000\n"
                       for h in range(self.SERIES)) + \
            f"load,s={self.name},h=last value={n} {LONG_AGO}000000000\n"

    def run(self):
        try:
            while not self.stopping:
                self.asked += 1
                answer = self.server.write(self.text(self.asked))
                assert answer.status == 204, answer
                self.answered = self.asked
        except (OSError, AssertionError) as error:
            self.failure = error

    def stop(self):
        self.stopping = True
        self.thread.join()
        self.server.close()

    def check(self, server, least, most):
        """What is there are the batches 1 .. n, whole and in order, of which n is within these
        bounds."""
        found = server.query("load", f"s={self.name}", start=0)
        rows = {one["tags"]["h"]: list(one["values"].items()) for one in found}
        count = len(rows["0"])
        assert least <= count <= most, (least, count, most)
        wanted = [(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(LONG_AGO + n)), n)
                  for n in range(1, count + 1)]
        last = rows.pop("last")
        assert [value for _, value in last] == [count]
        assert len(rows) == self.SERIES
        for row in rows.values():
            assert row == wanted


@pytest.fixture
def small(server, tmp_path):
    """A server with some samples, and a backup of it."""
    assert server.write(lines("m", range(100), series=20)).status == 204
    file = tmp_path / "small"
    done = backup(server, file)
    assert done.returncode == 0, done
    return server, file


# ---- What is in it


def test_what_was_answered_under_load_is_in_it(make_server, tmp_path):
    """Three times, while senders write and upkeep seals."""
    server = make_server(options=["--store.journal_max=1M", "--store.map_size=1G"])
    with running(server):
        fill(server, 40)
        senders = [Sender(server, f"s{i}") for i in range(4)]
        taken = []
        try:
            for i in range(3):
                before = [sender.answered for sender in senders]
                eventually(lambda before=before: all(
                    sender.answered > n + 10 for sender, n in zip(senders, before)),
                    lambda: [sender.failure for sender in senders])
                least = [sender.answered for sender in senders]
                done = backup(server, tmp_path / f"b{i}")
                taken.append((least, [sender.asked for sender in senders]))
                assert done.returncode == 0, done
        finally:
            for sender in senders:
                sender.stop()
        assert not any(sender.failure for sender in senders)
    for i, (least, most) in enumerate(taken):
        verified = run("verify", tmp_path / f"b{i}", "-o", "table")
        assert verified.returncode == 0 and " 0 problems: nothing is wrong" in verified.stdout
        with running(restored_server(make_server, tmp_path / f"b{i}", f"r{i}")) as other:
            for sender, low, high in zip(senders, least, most):
                sender.check(other, low, high)


def test_a_restored_store_answers_as_the_first_did(make_server, small, tmp_path):
    server, file = small
    before = exported(server)
    assert oct(file.stat().st_mode & 0o777) == "0o600"
    assert not (tmp_path / "small.part").exists()
    assert server.write("m,h=0 value=-1 1600000000000000000\nlater value=1\n").status == 204
    with running(restored_server(make_server, file)) as other:
        assert exported(other) == before
        assert other.write("m,h=0 value=-1 1600000000000000000\n").status == 204
        again = other.folder / "again"
        assert backup(other, again).returncode == 0
        after = exported(other)
    with running(restored_server(make_server, again, "third")) as third:
        assert exported(third) == after != before


def test_through_pipes(make_server, server, tmp_path):
    assert server.write(lines("m", range(100), series=20)).status == 204
    other = make_server("other")
    taking = start_backup(server)
    restoring = subprocess.run([granary(), "restore", "-", str(other.data)], stdin=taking.stdout,
                               capture_output=True, timeout=PATIENCE_S)
    taking.stdout.close()
    assert taking.wait(PATIENCE_S) == 0 and restoring.returncode == 0, restoring
    with running(other):
        assert exported(other) == exported(server)


def test_the_format_is_as_documented(small):
    """doc/format-backup.md, read without Granary's code."""
    _, file = small
    data = file.read_bytes()
    word, length, crc = data[-END_BYTES:].split()
    assert word == b"end" and data[-1:] == b"\n"
    manifest = data[-END_BYTES - int(length, 16):-END_BYTES]
    assert crc32c(manifest) == int(crc, 16)
    rows = manifest.decode().splitlines()
    facts = dict(row.split(" ", 1) for row in rows[:6])
    store = data[:-END_BYTES - len(manifest)]
    assert (facts["granary"], facts["format"], facts["chunk"]) == ("backup", "1", "67108864")
    assert int(facts["bytes"]) == len(store) and len(store) % 4096 == 0
    assert abs(int(facts["time"]) / 1000 - time.time()) < 600
    assert rows[6:] == [f"{crc32c(store):08x}"]
    # The mark of LMDB's meta pages.
    assert [store[at + 16:at + 20] for at in (0, 4096)] == [b"\xde\xc0\xef\xbe"] * 2


# ---- Who may, and one at a time


def test_who_may_have_it(server):
    server.close_to_others()
    for roles, status in ("read,write", 403), ("admin", 403):
        made = server.request("POST", "/api/credentials", name=f"a{len(roles)}", roles=roles,
                              tenants="default").json["token"]
        answer = server.get("/api/backup", {"Authorization": f"Bearer {made}"})
        assert answer.status == status, answer
    assert server.get("/api/backup").body.endswith(b"\n")
    head = server.request("HEAD", "/api/backup")
    assert head.status == 200 and not head.body
    assert server.metric("granary_backups_total", outcome="whole") == 1
    assert server.get("/api/backup?to=/etc/passwd").status == 400


def stuck(server):
    """A client that has asked for a backup and reads nothing of it."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", server.port))
    sock.sendall(b"GET /api/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert sock.recv(1)
    return sock


def failed(server):
    return server.metric("granary_backups_total", outcome="failed")


def test_there_is_one_at_a_time(server, tmp_path):
    fill(server, 30)
    with stuck(server):
        refused(backup(server, tmp_path / "b"), "another backup is at work")
        assert not (tmp_path / "b.part").exists()
    eventually(lambda: failed(server) == 1, server.log_text)
    assert backup(server, tmp_path / "b").returncode == 0


def test_a_client_that_does_not_read_is_left(make_server, tmp_path):
    with running(make_server(options=["--http.write_timeout=1s"])) as server:
        fill(server, 30)
        with stuck(server):
            eventually(lambda: failed(server) == 1, server.log_text)
        assert "not whole: the client has gone, or did not read" in server.log_text()
        assert backup(server, tmp_path / "b").returncode == 0
        assert server.metric("granary_backups_total", outcome="whole") == 1


def test_it_ends_when_it_costs_more_than_it_may(make_server, tmp_path):
    """What is written and deleted again and again frees pages, which are held. The client reads
    nothing until that is too much: then it is told why."""
    with running(make_server(options=["--backup.growth_max=4M"])) as server:
        fill(server, 30)
        with start_backup(server) as taking:
            assert taking.stdout.read(1)
            for _ in range(2000):
                assert server.write(lines("m", range(100), series=20)).status == 204
                assert server.request("POST", "/api/delete", metricName="m",
                                      all="true").status == 200
                if failed(server):
                    break
            taking.stdout.read()
            said = taking.stderr.read().decode()
            assert taking.wait(PATIENCE_S) == 1
        assert "the server ended the backup before its end: pages of" in said, said
        assert "more than backup.growth_max" in said
        assert "it is ended at 4 MB (backup.growth_max)" in said
        assert failed(server) == 1 and server.metric("granary_backup_held_bytes") == 0
        eventually(lambda: backup(server, tmp_path / "b").returncode == 0)


def test_a_stop_does_not_wait_for_it(make_server):
    server = make_server()
    server.start()
    fill(server, 30)
    with start_backup(server) as taking:
        assert taking.stdout.read(1)
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun < PATIENCE_S / 2
        taking.stdout.read()
        assert taking.wait(PATIENCE_S) == 1
        assert b"granary backup: " in taking.stderr.read()


# ---- Names that are taken


def test_nothing_that_is_there_is_written_over(small, tmp_path):
    server, file = small
    before = file.read_bytes()
    refused(backup(server, file), f"{file} is there already; --replace")
    assert file.read_bytes() == before
    assert server.write("more value=1\n").status == 204
    assert backup(server, file, "--replace").returncode == 0
    assert file.read_bytes() != before
    (tmp_path / "there").mkdir()
    refused(restore(file, tmp_path / "there"), "there is there already")
    assert restore(file, tmp_path / "new" / "one").returncode == 0
    refused(restore(file, tmp_path / "new" / "one" / "data.mdb" / "below"),
            "Not a directory")
    refused(backup(server, tmp_path / "no" / "where"), "No such file")
    refused(restore(tmp_path / "no", tmp_path / "x"), "No such file")
    refused(run("verify", tmp_path / "no"), "No such file")
    assert run("verify", file, "--data", tmp_path / "new" / "one").returncode == 2
    assert run("restore", file).returncode == run("backup").returncode == 2


# ---- Damage


def test_what_lies_in_the_place_of_the_part(small, tmp_path):
    """Where others may write, they put a link there, or a file of theirs; one of ours that they may
    read is no longer so."""
    server, small_file = small
    victim, file, part = (tmp_path / name for name in ("victim", "b", "b.part"))
    victim.write_text("mine")
    for put, why in [(lambda: part.symlink_to(victim), "is a link, which is not followed"),
                     (lambda: part.symlink_to("nowhere"), "is a link, which is not followed"),
                     (lambda: part.hardlink_to(victim), "has a second name (a hard link)"),
                     (lambda: os.mkfifo(part), str(part)),
                     (part.mkdir, str(part))]:
        put()
        refused(backup(server, file), f"granary backup: {part}", why)
        assert not file.is_symlink() and not file.exists() and os.path.lexists(part)
        part.rmdir() if part.is_dir() else part.unlink()
    assert victim.read_text() == "mine" and not (tmp_path / "nowhere").exists()
    if os.geteuid() == 0:
        part.write_text("theirs")
        os.chown(part, 65534, 65534)
        refused(backup(server, file), f"granary backup: {part} belongs to another user")
        assert part.read_text() == "theirs" and not file.exists()
        part.unlink()
    part.write_text("left")
    part.chmod(0o644)
    assert backup(server, file).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o600 and not part.exists()
    file.unlink()
    file.symlink_to(victim)
    refused(backup(server, file), "is there already")
    assert backup(server, file, "--replace").returncode == 0
    assert not file.is_symlink() and victim.read_text() == "mine"


def test_verify_of_standard_input(small, tmp_path):
    """Whether it is whole can be seen as it passes; the store in it can be looked at in a file
    only. The sentences say so."""
    _, file = small
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[5000] ^= 1

    def verify(data):
        return subprocess.run([granary(), "verify", "-"], input=data, capture_output=True,
                              timeout=PATIENCE_S, env={**os.environ, "TMPDIR": "/nowhere"})
    done = verify(whole)
    sentences = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout, len(sentences)) == (0, b"", 2), done
    assert sentences[0].startswith("standard input: a whole backup of ")
    assert sentences[1].startswith("granary verify: standard input: its manifest, length and "
                                   "checksums are right; the store in it was not looked at")
    refused(verify(whole[:-1]), "standard input: ", "cut short")
    refused(verify(bytes(damaged)), "standard input: ", "the bytes 0 to ")
    refused(verify(b""), "standard input: ")


def assert_is_no_backup(file, *words):
    """Neither verify nor restore takes it, and nothing is left of the attempt."""
    folder = file.parent / "of-damage"
    refused(run("verify", file), str(file), *words)
    refused(restore(file, folder), str(file), *words)
    piped = subprocess.run([granary(), "restore", "-", str(folder)], stdin=file.open("rb"),
                           capture_output=True, timeout=PATIENCE_S)
    refused(piped, *words)
    assert not folder.exists() and not (file.parent / "of-damage.restoring").exists()


def with_manifest(store, text):
    return store + text + b"end %08x %08x\n" % (len(text), crc32c(text))


def test_cut_short_and_lengthened(small, tmp_path):
    _, file = small
    whole = file.read_bytes()
    cut = tmp_path / "cut"
    chance = random.Random(5)
    for length in [0, 1, 21, 22, 4096, len(whole) - 1, len(whole) - 22, len(whole) - 60,
                   *(chance.randrange(len(whole)) for _ in range(20))]:
        cut.write_bytes(whole[:length])
        assert_is_no_backup(cut, "cut short")
    for more in (b"\n", b"x" * 4096, whole[:100]):
        cut.write_bytes(whole + more)
        assert_is_no_backup(cut, "something was appended")
    cut.write_bytes(whole + whole)
    assert_is_no_backup(cut, "bytes of the store, and its manifest says")
    cut.write_bytes(os.urandom(100000))
    assert_is_no_backup(cut, "no backup")


def test_newer_and_broken_manifests(small, tmp_path):
    _, file = small
    whole, other = file.read_bytes(), tmp_path / "other"
    length = int(whole[-END_BYTES:].split()[1], 16)
    store, text = whole[:-END_BYTES - length], whole[-END_BYTES - length:-END_BYTES]
    other.write_bytes(with_manifest(store, text))
    assert other.read_bytes() == whole
    other.write_bytes(with_manifest(store, text.replace(b"format 1", b"format 2")))
    assert_is_no_backup(other, "format 2; this program reads up to 1: use the newer program")
    other.write_bytes(with_manifest(store, text.replace(b"program", b"failed no room\nprogram")))
    assert_is_no_backup(other, "manifest cannot be read")
    other.write_bytes(with_manifest(store, text.replace(b"bytes", b"failed no room\nbytes")))
    assert_is_no_backup(other, "ended the backup before its end: no room")
    other.write_bytes(with_manifest(store[:-4096], text))
    assert_is_no_backup(other, "bytes of the store, and its manifest says")
    # Its sums are right, and it is no store.
    for fake, word in ((b"", "is damaged"), (os.urandom(40960), "is damaged"),
                       (store[:8192], "is damaged")):
        facts = b"granary backup\nformat 1\nprogram x\ntime 1\nbytes %d\nchunk %d\n" % (
            len(fake), CHUNK)
        sums = b"%08x\n" % crc32c(fake) if fake else b""
        other.write_bytes(with_manifest(fake, facts + sums))
        refused(restore(other, tmp_path / "of-fake"), word)
        assert not (tmp_path / "of-fake").exists()
        assert not (tmp_path / "of-fake.restoring").exists()
        assert run("verify", other).returncode == 1


def test_damage_in_each_64_mib_is_found(server, tmp_path):
    fill(server, 150)
    file = tmp_path / "large"
    done = backup(server, file)
    assert done.returncode == 0, done
    length = file.stat().st_size
    parts = -(-length // CHUNK)
    assert parts >= 3
    for part in range(parts):
        at = part * CHUNK + random.Random(part).randrange(min(CHUNK, length - 1000 - part * CHUNK))
        with file.open("r+b") as opened:
            opened.seek(at)
            byte = opened.read(1)
            opened.seek(at)
            opened.write(bytes([byte[0] ^ 16]))
            opened.flush()
            begin, end = part * CHUNK, (part + 1) * CHUNK - 1
            wanted = f"the bytes {begin} to {end if part + 1 < parts else ''}"
            refused(restore(file, tmp_path / "r"), wanted)
            refused(run("verify", file), wanted)
            opened.seek(at)
            opened.write(byte)
    assert not list(tmp_path.glob("r*"))
    assert run("verify", file).returncode == 0


def test_a_cut_pipe(small, tmp_path):
    server, file = small
    fill(server, 30)
    with start_backup(server) as taking:
        taking.stdout.read(100000)
        taking.stdout.close()
        assert taking.wait(PATIENCE_S) != 0
    eventually(lambda: failed(server) == 1, server.log_text)
    assert backup(server, tmp_path / "b").returncode == 0
    sending = subprocess.Popen(["head", "-c", "100000", str(file)], stdout=subprocess.PIPE)
    done = subprocess.run([granary(), "restore", "-", str(tmp_path / "r")], stdin=sending.stdout,
                          capture_output=True, timeout=PATIENCE_S)
    sending.wait()
    refused(done, "standard input: there is no manifest")
    assert not list(tmp_path.glob("r*"))


def test_a_full_disk(small, tmp_path):
    server, file = small
    fill(server, 8)
    with memory(tmp_path / "tiny", "4m") as place:
        refused(backup(server, place.folder / "b"), "No space left")
        assert not list(place.folder.iterdir())
        assert backup(server, tmp_path / "b").returncode == 0
        refused(restore(tmp_path / "b", place.folder / "r"), "No space left")
        assert not list(place.folder.iterdir())
        # With room for the store and for nothing else it is whole, or it is not there.
    assert restore(tmp_path / "b", tmp_path / "r").returncode == 0


# ---- A disk that cannot be read


def extents(path):
    """Where its bytes lie on their disk: (first byte of the file, first of the disk, length)."""
    done = subprocess.run(["filefrag", "-v", "-e", str(path)], capture_output=True, text=True,
                          check=True)
    block = int(re.search(r"blocks of (\d+) bytes", done.stdout)[1])
    rows = re.findall(r"^ *\d+: *(\d+)\.\. *\d+: *(\d+)\.\. *\d+: *(\d+):", done.stdout, re.M)
    return [tuple(block * int(number) for number in row) for row in rows]


def copy_with_one_part_last(path, begin, end):
    """The same file again, of which this part lies behind all others on the disk; where that is. A
    file system puts parts where it likes, so it is tried again."""
    for number in range(10):
        copy_in_parts(path, begin, end, path.with_name(f"filler{number}"))
        found = extents(path)
        lost = next((at for first, at, _ in found if first == begin), 0)
        if all(at + length <= lost for first, at, length in found if first != begin):
            return lost
    return pytest.fail(f"no copy of {path} ends with that part: {found}")


def copy_in_parts(path, begin, end, between):
    data, other = path.read_bytes(), path.with_suffix(".other")
    with other.open("wb") as file:
        for at, piece in (0, data[:begin]), (end, data[end:]), (begin, data[begin:end]):
            file.seek(at)
            file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            if at == end:
                with between.open("wb") as filler:
                    filler.write(bytes(1 << 20))
                    os.fsync(filler.fileno())
    other.rename(path)


def test_what_the_disk_cannot_read_ends_the_backup_and_not_the_server(make_server, tmp_path):
    """The end of the disk is cut off while it is mounted, and with it the middle of the data
    file."""
    begin, end = 20 << 20, 21 << 20
    with image(tmp_path / "disk", "ext4", 300) as disk:
        server = make_server(config="store: {min_free: 10M}\n")
        server.data = disk.folder / "data"
        server.start()
        fill(server, 48)
        until_sealed(server)
        assert server.write(lines("m", range(100), series=20)).status == 204
        wanted = exported(server)
        server.stop()
        file = server.data / "data.mdb"
        lost = copy_with_one_part_last(file, begin, end)
        os.sync()
        disk.unmount()
        disk.mount()
        os.truncate(tmp_path / "disk" / "ext4.img", lost)
        server.start()
        for _ in range(2):
            done = backup(server, tmp_path / "b")
            refused(done, f"the server ended the backup before its end: {file} cannot be read")
            # The server may have written anew some pages that were free.
            at = re.search(rb"at byte (\d+): Input/output error", done.stderr)
            assert begin <= int(at[1]) < end
            assert not list(tmp_path.glob("b*"))
        assert exported(server) == wanted
        server.kill()


# ---- Killed


def test_the_server_is_killed(make_server, tmp_path):
    server = make_server()
    server.start()
    assert server.write(lines("m", range(100), series=20)).status == 204
    fill(server, 30)
    before = exported(server)
    with start_backup(server) as taking, start_backup(make_server("none")) as nobody:
        assert taking.stdout.read(1)
        server.kill()
        taking.stdout.read()
        assert taking.wait(PATIENCE_S) == 1
        assert b"granary backup: " in taking.stderr.read()
        assert nobody.wait(PATIENCE_S) == 1
        assert b"Is the server running?" in nobody.stderr.read()
    server.start()
    assert exported(server) == before
    assert backup(server, tmp_path / "b").returncode == 0
    server.stop()


@pytest.mark.parametrize("point", ["backup.write=kill@1", "backup.write=kill@9",
                                   "backup.synced=kill@1"])
def test_the_command_that_takes_it_is_killed(small, tmp_path, point):
    server, _ = small
    fill(server, 8)
    done = backup(server, tmp_path / "b", GRANARY_FAULTS=point)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "b").exists() and (tmp_path / "b.part").exists()
    if "synced" not in point:
        assert run("verify", tmp_path / "b.part").returncode == 1

    def taken():
        done = backup(server, tmp_path / "b")
        assert done.returncode == 0 or b"another backup is at work" in done.stderr, done
        return done.returncode == 0
    eventually(taken)
    assert not (tmp_path / "b.part").exists()
    assert run("verify", tmp_path / "b").returncode == 0


@pytest.mark.parametrize("point", ["restore.write=kill@1", "restore.write=kill@2",
                                   "restore.synced=kill@1", "store.commit=kill@1",
                                   "restore.named=kill@1"])
def test_the_command_that_restores_it_is_killed(make_server, small, tmp_path, point):
    server, file = small
    fill(server, 30)
    assert backup(server, file, "--replace").returncode == 0
    wanted = exported(server)
    folder = tmp_path / "r"
    done = restore(file, folder, GRANARY_FAULTS=point)
    assert done.returncode == -signal.SIGKILL, done
    assert not folder.exists()
    part = tmp_path / "r.restoring"
    refused(restore(file, folder), f"{part} is there already: another one is making it, or was "
            "ended before its end; then remove it")
    subprocess.run(["rm", "-r", str(part)], check=True)
    other = make_server("other")
    assert restore(file, other.data).returncode == 0
    # And so is the first start on it.
    os.environ["GRANARY_FAULTS"] = "store.committed=kill@1"
    try:
        other.spawn()
        assert other.process.wait(PATIENCE_S) == -signal.SIGKILL
    finally:
        del os.environ["GRANARY_FAULTS"]
    with running(other):
        assert exported(other) == wanted


# ---- Another store


@pytest.fixture
def redis(tmp_path):
    folder = tmp_path / "redis"
    folder.mkdir()
    server = Redis(folder)
    yield server
    server.kill()


def until_whole(server):
    return until(server, lambda said: not said["pending"] and not said["cut"]
                 and not said["tracking"]["incomplete"] and not said["tracking"]["degraded"],
                 "end of what waits")


def test_a_redis_that_has_gone_on(make_server, redis, tmp_path):
    """When the backup is taken, all of it waits to be rolled up; the first server rolls it up
    afterwards, so that Redis has no marks of it any more. The restored store leaves that Redis
    alone, and makes all roll-ups by itself where it gets an empty one."""
    tracking = f"--rollup.tracking={redis.url}"
    waiting = ["--rollup.slot=4s", "--rollup.granularities=1s,2s", "--rollup.quiet=1h", tracking]
    server = make_server(options=waiting)
    with running(server):
        assert server.write(lines("m", range(20), series=30)).status == 204
        assert backup(server, tmp_path / "b").returncode == 0
        assert state(server)["pending"]
    server.options = [*SHORT, tracking]
    with running(server):
        until_whole(server)
        keys = redis.keys()
        other = restored_server(make_server, tmp_path / "b", options=[*SHORT, tracking])
        other.start()
        eventually(lambda: "the marks of another data directory" in other.log_text(),
                   other.log_text)
        assert other.get("/-/ready").text.startswith("degraded")
        assert redis.keys() == keys
        assert server.get("/-/ready").text == "ready\n"
    other.stop()
    redis.say("FLUSHDB")
    with running(other):
        until_whole(other)
        found = other.query("m", start=LONG_AGO, end=LONG_AGO + 20, aggregator="sum",
                            granularity="2s")
        assert len(found) == 30
        assert all(list(one["values"].values()) == [4 * s + 1 for s in range(10)] for one in found)
        assert "have been made again" in other.log_text()


def test_claims_of_processes_are_void(make_server, tmp_path):
    """The first process still lives and has claimed all partitions for long; the restored store is
    another process', which rolls up at once."""
    server = make_server(options=[*SHORT, "--rollup.lease=1d", "--rollup.name=first"])
    with running(server):
        assert server.write(lines("m", range(8))).status == 204
        until(server, lambda said: not said["pending"], "roll-ups")
        assert backup(server, tmp_path / "b").returncode == 0
        other = restored_server(make_server, tmp_path / "b",
                                options=[*SHORT, "--rollup.lease=1d", "--rollup.name=second"])
        with running(other):
            assert other.write("m,h=0 value=10 1600000000500000000\n").status == 204
            until(other, lambda said: not said["pending"], "roll-ups")
            assert other.metric("granary_rollup_series_total") > 0


def test_a_directory_without_a_name(small, tmp_path):
    """The whole store was written to ./.restoring first."""
    done = run("restore", small[1], "", cwd=tmp_path)
    refused(done, "the name of the directory is empty")
    assert not (tmp_path / ".restoring").exists()


def test_a_note_does_not_steer_the_terminal(tmp_path):
    """The server may be anybody's."""
    with socket.create_server(("127.0.0.1", 0)) as hostile:
        url = f"http://127.0.0.1:{hostile.getsockname()[1]}"
        process = subprocess.Popen([granary(), "backup", str(tmp_path / "b"), "--server", url],
                                   stderr=subprocess.PIPE)
        connection, _ = hostile.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Granary-Note: red \x1b[31m\r\n"
                           b"Content-Length: 1\r\n\r\nx")
        said = process.communicate(timeout=PATIENCE_S)[1]
        connection.close()
    assert process.returncode == 1 and b"red " in said and b"\x1b" not in said
