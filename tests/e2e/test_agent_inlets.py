"""What an agent takes in besides files, such as what commands print. What the server holds is
compared with what was sent."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from followed import Follower, await_held, export, held_bytes, incarnations
from server import eventually, free_port

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z"


@pytest.fixture
def follow(server, tmp_path):
    """Starts agents; all that still run at the end are killed."""
    followers = []

    def make(adaptors, name="follower", collectors=None, **options):
        follower = Follower(tmp_path / name, collectors or server.url, adaptors, **options)
        followers.append(follower)
        return follower.start()

    yield make
    for follower in followers:
        follower.kill()


def held(server, name):
    """What the server has of the streams of a name."""
    return b"".join(export(server, one["stream"]) for one in incarnations(server, name))


def await_lines(server, follower, name, count):
    def enough():
        assert follower.running(), follower.log_tail()
        return held(server, name).count(b"\n") >= count
    eventually(enough, lambda: f"{held(server, name)[-500:]}\n{follower.log_tail()}")
    return held(server, name).decode()


def told(server, name, agent="host1"):
    """What `granary agent list` says of an adaptor."""
    answer = server.get("/api/agents/" + agent)
    if answer.status != 200:
        return {}
    return next((one for one in answer.json["adaptors"] if one["name"] == name), {})


# ---- Commands


def test_a_command_is_run_again_and_again(server, follow):
    follower = follow({"numbers": {"exec": 'echo "a b"; printf "c"; echo said >&2',
                                   "datatype": "numbers", "every": "1s"}})
    text = await_lines(server, follower, "exec:numbers", 6)
    head = re.escape(' exec status=0 echo "a b"; printf "c"; echo said >&2\n')
    assert re.fullmatch(f"({TIME}{head}a b\nc\n)+", text), text
    follower.await_said("adaptor numbers: its command says: said")
    eventually(lambda: told(server, "numbers").get("state") == "following",
               lambda: told(server, "numbers"))
    assert told(server, "numbers")["kind"] == "exec"
    follower.stop()


def test_all_that_a_command_prints_may_be_one_record(server, follow):
    follower = follow({"one": {"exec": "echo a; echo; echo b", "datatype": "x",
                               "records": "escaped", "every": "7d"}})
    text = await_lines(server, follower, "exec:one", 4)
    assert re.fullmatch(f"{TIME} exec status=0 echo a; echo; echo b\4\na\4\n\4\nb\n", text), text
    follower.stop()


def test_commands_that_fail(server, follow):
    follower = follow({
        "status": {"exec": "echo x; exit 3", "datatype": "x", "every": "7d"},
        "signal": {"exec": "kill -9 $$", "datatype": "x", "every": "7d"},
        "hangs": {"exec": "echo y; sleep 1000 & sleep 1000", "datatype": "x", "every": "7d",
                  "timeout": "300ms"},
        "absent": {"exec": "/nowhere/nothing", "datatype": "x", "every": "7d"},
        "much": {"exec": "head -c 600000 /dev/zero | tr \"\\0\" x", "datatype": "x", "every": "7d"},
    })
    assert " exec status=3 " in await_lines(server, follower, "exec:status", 2)
    assert " exec signal=9 " in await_lines(server, follower, "exec:signal", 1)
    assert re.fullmatch(f"{TIME} exec timeout echo y; sleep 1000 & sleep 1000\ny\n",
                        await_lines(server, follower, "exec:hangs", 2))
    assert " exec status=127 " in await_lines(server, follower, "exec:absent", 1)
    text = await_lines(server, follower, "exec:much", 2)
    # 512 KiB are 524288.
    assert f" cut={600000 - 524288} " in text and text.endswith("\n" + 524288 * "x" + "\n")
    for name, said in (("status", "its command ended with status 3"),
                       ("signal", "its command was ended by signal 9"),
                       ("hangs", "its command was killed, since it took longer than `timeout`")):
        eventually(lambda: told(server, name).get("error") == said, lambda: told(server, name))
    follower.stop()


def test_a_command_ends_with_the_agent(server, follow, tmp_path):
    pid = tmp_path / "pid"
    follower = follow({"long": {"exec": f"echo $$ > {pid}; sleep 1000", "datatype": "x",
                                "timeout": "1h"}})
    eventually(lambda: pid.exists() and pid.read_text().endswith("\n"), "it runs")
    follower.stop()
    eventually(lambda: not os.path.exists(f"/proc/{pid.read_text().strip()}"), "it is gone")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_a_command_leaves_behind_ends_with_its_run(server, follow, tmp_path):
    """It has not the output of the command, so the run does not wait for it."""
    pid = tmp_path / "pid"
    follower = follow({"leaves": {
        "exec": f"sleep 1000 >/dev/null 2>&1 & echo $! > {pid}; echo done; exit 7",
        "datatype": "x", "every": "7d"}})
    text = await_lines(server, follower, "exec:leaves", 2)
    assert " exec status=7 " in text and text.endswith("\ndone\n")
    eventually(lambda: not is_running(pid.read_text().strip()), "it is gone")
    follower.stop()


def test_what_was_printed_is_delivered_when_the_collector_is_there(server, follow, tmp_path):
    """The runs of an agent that was killed are in its spool, and are delivered when their adaptor
    is not there any more."""
    follower = follow({"run": {"exec": "echo x", "datatype": "x", "every": "1s"}},
                      collectors="http://127.0.0.1:1")
    spool = follower.data / "agent" / "spool" / "x:exec%3Arun"
    eventually(lambda: spool.exists() and spool.read_bytes().count(b"\n") >= 4, follower.log_tail)
    follower.signal(signal.SIGKILL)
    follower.process.wait()
    wanted = spool.read_bytes()
    follower.collectors = [server.url]
    follower.configure({"other": tmp_path / "none"})
    follower.start()
    await_held(server, "exec:run", wanted, follower)
    follower.stop()


def test_a_configuration_that_changes(server, follow):
    follower = follow({"a": {"exec": "echo a", "datatype": "x", "every": "1s"}})
    await_lines(server, follower, "exec:a", 2)
    follower.configure({"b": {"exec": "echo b", "datatype": "x", "every": "1s"}})
    follower.signal(signal.SIGHUP)
    await_lines(server, follower, "exec:b", 2)
    eventually(lambda: not told(server, "a") and told(server, "b"), lambda: told(server, "a"))
    before = held(server, "exec:a")
    await_lines(server, follower, "exec:b", 6)
    assert held(server, "exec:a") == before
    follower.stop()


# ---- Datagrams


def folder_bytes(folder):
    """Files may be renamed and removed meanwhile."""
    total = 0
    for one in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            total += one.stat().st_size
    return total


def datagrams(port, payloads, source="127.0.0.1"):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((source, 0))
        for payload in payloads:
            sender.sendto(payload, ("127.0.0.1", port))


def await_bound(follower, port, kind=socket.SOCK_STREAM):
    """Until a port is taken: nothing is sent before."""
    def taken():
        assert follower.running(), follower.log_tail()
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                if kind == socket.SOCK_STREAM:
                    probe.connect(("127.0.0.1", port))
                else:
                    probe.bind(("127.0.0.1", port))
            except OSError:
                return kind != socket.SOCK_STREAM
        return kind == socket.SOCK_STREAM
    eventually(taken, follower.log_tail)


def test_datagrams(server, follow):
    port = free_port()
    follower = follow({"net": {"udp": port, "datatype": "raw"}})
    await_bound(follower, port, socket.SOCK_DGRAM)
    sent = [b"one", b"", b"two\nlines", b"ended\n", b"\xff\x00\x04", b"x" * 60000, b"last"]
    datagrams(port, sent)
    # Ctrl-D in front of a newline that ends no record, and a newline more behind one at the end.
    await_held(server, f"udp:{port}", b"one\n\ntwo\4\nlines\nended\n\xff\0\4\n\n" + b"x" * 60000 +
               b"\nlast\n", follower)
    follower.stop()


def lost(said):
    found = re.match(r"(\d+) datagrams are lost since the spool took none, and (\d+) ",
                     said.get("error", ""))
    return int(found[1]) + int(found[2]) if found else 0


def test_datagrams_are_stored_or_counted(server, follow):
    """The spool takes 8 MiB while the collector is away; more is sent."""
    port = free_port()
    server.kill()
    follower = follow({"net": {"udp": port, "datatype": "raw"}},
                      options=["--agent.spool_max", "8M"])
    await_bound(follower, port, socket.SOCK_DGRAM)
    spool, sent = follower.data / "agent" / "spool", 0
    def size():
        return folder_bytes(spool)
    def send(count):
        nonlocal sent
        datagrams(port, [f"{number:06d} {'x' * 992}".encode()
                         for number in range(sent, sent + count)])
        sent += count
    def full():  # datagrams that come together are kept together, or not at all
        send(100)
        return size() > 8 * 2**20 - 5000
    eventually(full, follower.log_tail)
    send(1000)
    eventually(lambda: "datagrams are lost" in follower.log_text(), follower.log_tail)
    assert size() <= 8 * 2**20
    server.start()
    eventually(lambda: size() < 2**20, "what is delivered is removed")
    datagrams(port, [b"last"])
    text = await_until_line(server, follower, f"udp:{port}", "last")
    numbers = [int(line[:6]) for line in text.splitlines()[:-1]]
    assert numbers == sorted(set(numbers))
    assert all(line[6:] == " " + "x" * 992 for line in text.splitlines()[:-1])
    eventually(lambda: lost(told(server, "net")) == sent - len(numbers),
               lambda: (told(server, "net"), len(numbers)))
    assert len(incarnations(server, f"udp:{port}")) == 1
    follower.stop()


def await_until_line(server, follower, name, last):
    def there():
        assert follower.running(), follower.log_tail()
        return held(server, name).endswith(f"{last}\n".encode())
    eventually(there, lambda: f"{held(server, name)[-200:]}\n{follower.log_tail()}")
    return held(server, name).decode()


# ---- Connections


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def send_all(port, data):
    with connect(port) as connection:
        connection.sendall(data)


def test_lines_of_connections(server, follow):
    port = free_port()
    follower = follow({"net": {"tcp": port, "datatype": "raw"}})
    await_bound(follower, port)
    with connect(port) as one, connect(port) as other:
        one.sendall(b"begun ")
        other.sendall(b"of another\r\n\n")
        await_held(server, f"tcp:{port}", b"of another\n\n", follower)
        one.sendall(b"and ended\n" + b"y" * 70000 + b"\nwithout its end")
    await_held(server, f"tcp:{port}",
               b"of another\n\nbegun and ended\n" + b"y" * 65536 + b"\nwithout its end\n", follower)
    follower.stop()


def test_a_connection_waits_while_the_spool_is_full(server, follow):
    """24 MB are sent by two connections; the spool takes 8 MiB, and no collector is there."""
    port = free_port()
    server.kill()
    follower = follow({"net": {"tcp": port, "datatype": "raw"}},
                      options=["--agent.spool_max", "8M"])
    await_bound(follower, port)
    spool = follower.data / "agent" / "spool"
    sent = [b"".join(f"{which} {number:06d} {'z' * 990}\n".encode() for number in range(12000))
            for which in "ab"]
    senders = [threading.Thread(target=lambda data=data: send_all(port, data)) for data in sent]
    for sender in senders:
        sender.start()
    def size():
        return folder_bytes(spool)
    eventually(lambda: "cannot be kept at present" in follower.log_text(), follower.log_tail)
    assert size() <= 8 * 2**20 and all(sender.is_alive() for sender in senders)
    assert size() > 8 * 2**20 - 2**20 - 65536
    server.start()
    for sender in senders:
        sender.join(120)
        assert not sender.is_alive(), follower.log_tail()
    eventually(lambda: held_bytes(server, f"tcp:{port}") >= 24000000, follower.log_tail)
    got = held(server, f"tcp:{port}")
    for which, data in zip("ab", sent):
        assert b"".join(line + b"\n" for line in got.splitlines()
                        if line.startswith(which.encode())) == data
    assert len(got) == 24000000
    assert len(incarnations(server, f"tcp:{port}")) == 1
    follower.stop()


def kernel_bytes():
    """As much as one connection may have under way."""
    total = 0
    for which in "rw":
        with open(f"/proc/sys/net/ipv4/tcp_{which}mem") as setting:
            total += int(setting.read().split()[2])
    return total


def test_an_agent_that_is_killed(server, follow):
    """Whoever sends lines by TCP is told nothing. What it has sent and the agent has not read is
    lost with a kill; what the agent has read is delivered once, and in order."""
    port = free_port()
    follower = follow({"net": {"tcp": port, "datatype": "raw"}})
    await_bound(follower, port)
    number, kills = 0, []
    for _ in range(5):
        with connect(port) as connection:
            until, most = time.monotonic() + 1, number + 60000
            while time.monotonic() < until and number < most:
                connection.sendall(b"".join(b"%08d %s\n" % (n, b"k" * 90)
                                            for n in range(number, number + 20)))
                number += 20
            follower.kill()
        kills.append(number)
        follower.start()
        await_bound(follower, port)
    send_all(port, b"99999999 last\n")
    text = await_until_line(server, follower, f"tcp:{port}", "99999999 last")
    # A line that was being written is cut.
    numbers = [int(line[:8]) for line in text.splitlines() if len(line) == 99][:]
    assert numbers == sorted(set(numbers)), "in order and once"
    missing = sorted(set(range(number)) - set(numbers))
    for at in missing:  # they were under way, in the kernel's buffers
        assert any(0 < kill - at < kernel_bytes() // 99 for kill in kills), (at, kills)
    assert len(text.splitlines()) - len(numbers) <= 1 + len(kills)
    follower.stop()


def test_what_has_come_by_a_stop_is_taken(server, follow):
    """The agent hangs while lines come by a connection that it has, and by one that it has not
    accepted yet; then it is stopped. All that was sent is there after the next start, also a line
    without its end."""
    port = free_port()
    follower = follow({"net": {"tcp": port, "datatype": "raw"}})
    await_bound(follower, port)
    with connect(port) as one:
        one.sendall(b"one begins\n")
        await_held(server, f"tcp:{port}", b"one begins\n", follower)
        follower.signal(signal.SIGSTOP)
        sent = b"".join(b"one %06d %s\n" % (n, b"s" * 90) for n in range(20000))
        one.setblocking(False)
        one_sent = one.send(sent)
        assert one_sent > 65536
        with connect(port) as two:
            two.sendall(b"two\nwithout its end")
            follower.signal(signal.SIGTERM)
            follower.signal(signal.SIGCONT)
            assert follower.process.wait(60) == 0, follower.log_text()
    assert "bytes of its connections are lost" not in follower.log_text()
    follower.start()
    wanted = sorted([b"one begins", b"two", b"without its end", *sent[:one_sent].splitlines()])
    def there():
        assert follower.running(), follower.log_tail()
        return sorted(held(server, f"tcp:{port}").splitlines()) == wanted
    eventually(there, lambda: (len(held(server, f"tcp:{port}").splitlines()), len(wanted)))
    follower.stop()


def test_a_sender_that_does_not_end_holds_up_no_stop(server, follow):
    port = free_port()
    follower = follow({"net": {"tcp": port, "datatype": "raw"}})
    await_bound(follower, port)
    over = threading.Event()
    def send():
        with contextlib.suppress(OSError), connect(port) as connection:
            while not over.is_set():
                connection.sendall(b"again and again\n" * 100)
    sender = threading.Thread(target=send)
    sender.start()
    eventually(lambda: held_bytes(server, f"tcp:{port}") > 100000, follower.log_tail)
    follower.stop()  # which waits for it
    over.set()
    sender.join()


# ---- syslog


def test_syslog(server, follow):
    port = free_port()
    follower = follow({"log": {"syslog": port, "datatype": "syslog",
                               "datatypes": {"local1": "HADOOP", "kern": "kernel"}}})
    await_bound(follower, port)
    datagrams(port, [b"<142>Syslog formatted message.", b"<0>of the kernel", b"<13>of a user",
                     b"without one"])
    datagrams(port, [b"<13>of another"], source="127.0.0.9")
    with connect(port) as connection:
        connection.sendall(b"<142>a line\n13 <142>with\nine<13>last\n")
    def stream(datatype, name):
        return b"".join(export(server, one["stream"]) for one in incarnations(server, name)
                        if one["datatype"] == datatype)
    wanted = {("HADOOP", "127.0.0.1"): [b"<142>Syslog formatted message.", b"<142>a line",
                                        b"<142>with\4", b"ine"],
              ("kernel", "127.0.0.1"): [b"<0>of the kernel"],
              ("syslog", "127.0.0.1"): [b"<13>of a user", b"without one", b"<13>last"],
              ("syslog", "127.0.0.9"): [b"<13>of another"]}
    def all_there():
        return all(sorted(stream(*names).splitlines()) == sorted(records)
                   for names, records in wanted.items())
    eventually(all_there, lambda: {names: stream(*names) for names in wanted})
    follower.stop()


LOGGER = shutil.which("logger")


@pytest.mark.skipif(not LOGGER, reason="logger is not there")
@pytest.mark.parametrize("options", [["--udp"], ["--tcp"], ["--tcp", "--octet-count"],
                                     ["--udp", "--rfc3164"], ["--tcp", "--rfc3164"],
                                     ["--tcp", "--rfc5424", "--octet-count"]],
                         ids=" ".join)
def test_logger(server, follow, options):
    port = free_port()
    follower = follow({"log": {"syslog": port, "datatype": "syslog"}})
    await_bound(follower, port)
    lines = [f"line {number} of many" for number in range(50)]
    subprocess.run([LOGGER, "--server", "127.0.0.1", "--port", str(port), *options, "-p",
                    "local1.info", "-t", "tag"], input="\n".join(lines) + "\n", text=True,
                   check=True)
    text = await_lines(server, follower, "127.0.0.1", 50)
    records = text.splitlines()
    assert len(records) == 50
    assert [record[record.index("line"):] for record in records] == lines
    assert all(record.startswith("<142>") for record in records)
    follower.stop()


def test_a_port_that_is_taken(server, follow):
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        follower = follow({"net": {"tcp": port, "datatype": "raw"}})
        eventually(lambda: told(server, "net").get("state") == "stopped" and
                   f"127.0.0.1:{port}" in told(server, "net")["error"],
                   lambda: (told(server, "net"), follower.log_tail()))
    await_bound(follower, port)
    send_all(port, b"taken at last\n")
    await_held(server, f"tcp:{port}", b"taken at last\n", follower)
    follower.stop()


RSYSLOGD = shutil.which("rsyslogd", path=os.environ.get("PATH", "") + ":/usr/sbin")


@pytest.mark.skipif(not RSYSLOGD, reason="rsyslogd is not there")
@pytest.mark.parametrize("action", ['protocol="tcp"', 'protocol="tcp" TCP_Framing="octet-counted"',
                                    'protocol="udp"'], ids=["lines", "lengths", "udp"])
def test_rsyslog(server, follow, tmp_path, action):
    """5,000 lines of a file; the collector is away at first."""
    port = free_port()
    server.kill()
    follower = follow({"log": {"syslog": port, "datatype": "syslog"}})
    await_bound(follower, port)
    log, config = tmp_path / "in.log", tmp_path / "rsyslog.conf"
    log.write_text("".join(f"line {number:05d} of the file\n" for number in range(5000)))
    config.write_text(f"""
        global(workDirectory="{tmp_path}")
        module(load="imfile")
        input(type="imfile" File="{log}" Tag="t:" facility="local3" severity="warning")
        action(type="omfwd" Target="127.0.0.1" Port="{port}" {action})
    """)
    with subprocess.Popen([RSYSLOGD, "-n", "-f", config, "-i", tmp_path / "pid"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as peer:
        spool = follower.data / "agent" / "spool" / "syslog:127%2E0%2E0%2E1"
        eventually(lambda: spool.exists() and spool.stat().st_size > 1000, follower.log_tail)
        server.start()
        def done():
            return (held(server, "127.0.0.1").count(b"\n") + lost(told(server, "log")) >= 5000)
        eventually(done, follower.log_tail)
        peer.terminate()
    text = held(server, "127.0.0.1").decode()
    numbers = [int(one) for one in re.findall(r"^<156>.* line (\d{5}) of the file$", text, re.M)]
    assert len(numbers) + lost(told(server, "log")) == 5000
    assert numbers == sorted(set(numbers))
    follower.stop()


def test_a_connection_of_a_browser(server, follow):
    """A page of another site may have a browser send any body to a port of this machine."""
    port = free_port()
    follower = follow({"net": {"tcp": port, "datatype": "raw"}})
    await_bound(follower, port)
    with connect(port) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nforged\n")
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    send_all(port, b"of somebody else\n")
    await_held(server, f"tcp:{port}", b"of somebody else\n", follower)
    follower.stop()


def test_connections_stay_when_the_configuration_is_read_again(server, follow):
    port, other = free_port(), free_port()
    follower = follow({"net": {"tcp": port, "datatype": "raw"}})
    await_bound(follower, port)
    with connect(port) as connection:
        connection.sendall(b"before\n")
        await_held(server, f"tcp:{port}", b"before\n", follower)
        follower.configure({"net": {"tcp": port, "datatype": "raw"},
                            "more": {"tcp": other, "datatype": "raw"}})
        follower.signal(signal.SIGHUP)
        await_bound(follower, other)
        connection.sendall(b"behind\n")
        await_held(server, f"tcp:{port}", b"before\nbehind\n", follower)
    follower.configure({"more": {"tcp": other, "datatype": "raw"}})
    follower.signal(signal.SIGHUP)
    def refused():
        with contextlib.suppress(ConnectionRefusedError):
            connect(port).close()
            return False
        return True
    eventually(refused, follower.log_tail)
    follower.stop()
