"""The doors besides HTTP against the real server: line protocol over TCP and UDP, and OpenTSDB's
telnet commands. What comes in is read back; what cannot be is refused by itself and counted; no
client holds up another one; a stop keeps what was received."""

import contextlib
import datetime
import fcntl
import os
import random
import re
import signal
import socket
import struct
import termios
import threading
import time

import pytest

from server import PATIENCE_S, eventually, free_port

NOW_S = int(time.time()) - 7200


def stamp(seconds, ms=0):
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    text = when.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{ms:03}Z" if ms else text + "Z"


class Doors:
    """A server with all doors open, each at a port that it chose."""

    def __init__(self, make_server, *options, name="main"):
        self.server = make_server(name, options=[
            "--line_tcp.listen=127.0.0.1:0", "--line_udp.listen=127.0.0.1:0",
            "--opentsdb.listen=127.0.0.1:0", *options])
        self.begin()

    def begin(self):
        self.server.log_path.unlink(missing_ok=True)
        self.server.start()
        log = self.server.log_text()
        self.tcp, self.puts, self.udp = (int(re.search(rf"{what} at 127\.0\.0\.1:(\d+)", log)[1])
                                         for what in ("over TCP", "OpenTSDB's put", "over UDP"))

    def connect(self, port, timeout=PATIENCE_S):
        return socket.create_connection(("127.0.0.1", port), timeout=timeout)

    def send(self, port, data, answers=True):
        """All of it on one connection, which is then closed from our side; what came back."""
        with self.connect(port) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while answers and (piece := sock.recv(65536)):
                    answer += piece
        return answer.decode(errors="replace")

    def datagram(self, *datagrams):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            for data in datagrams:
                sock.sendto(data, ("127.0.0.1", self.udp))

    def refused(self, reason):
        return self.server.metric("granary_ingest_refused_total", reason=reason)


@pytest.fixture
def doors(make_server):
    doors = Doors(make_server)
    yield doors
    if doors.server.running():
        doors.server.stop()


# ---- what is said at the start -----------------------------------------------------------------


def test_off_unless_asked_for(server):
    assert " over TCP" not in server.log_text() and "OpenTSDB" not in server.log_text()


@pytest.mark.parametrize("option, sentence", [
    ("--line_tcp.listen=0.0.0.0:0", "--line_tcp.listen: 0.0.0.0:0 is reached from other machines"),
    ("--line_udp.listen=[::]:0", "lines show no credential: line_udp.tenant has to say"),
    ("--opentsdb.listen=192.0.2.1:4242", "opentsdb.tenant has to say whose they are"),
    ("--line_udp.listen=nonsense", "is not ADDRESS:PORT"),
    ("--line_tcp.precision=d", "is not one of: ns us ms s m h"),
    ("--tcp.line_max=65K", "tcp.line_max"),
])
def test_wrong_options_end_the_start(make_server, option, sentence):
    server = make_server(options=[option])
    server.spawn()
    assert server.process.wait(60) != 0
    assert sentence in server.log_text()


@pytest.mark.parametrize("door", ["line_tcp", "line_udp", "opentsdb"])
def test_a_tenant_that_is_none_ends_the_start(make_server, door):
    server = make_server(options=[f"--{door}.listen=127.0.0.1:0", f"--{door}.tenant=a b"])
    server.spawn()
    assert server.process.wait(60) != 0
    assert f'--{door}.tenant: "a b" is not 1 to 64 of' in server.log_text()


def test_an_address_that_is_taken_ends_the_start(make_server):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        server = make_server(options=[f"--opentsdb.listen={address}"])
        server.spawn()
        assert server.process.wait(60) != 0
    assert f"--opentsdb.listen: cannot listen on {address}" in server.log_text()


# ---- line protocol over TCP --------------------------------------------------------------------


def test_lines_over_tcp(doors):
    server = doors.server
    with doors.connect(doors.tcp) as sock:
        sock.sendall(f"m,a=b f=1i,g=2.5 {NOW_S}000000000\n".encode())
        # Nothing is closed: a line is stored when it is complete.
        eventually(lambda: server.values("m_f") == {stamp(NOW_S): 1})
        assert server.values("m_g", "a=b") == {stamp(NOW_S): 2.5}
        sock.sendall(f"m,a=b f=2i {NOW_S + 1}0000".encode())
        sock.sendall(b"00000\r\n# a comment\n\n")
        eventually(lambda: len(server.values("m_f")) == 2)
    assert server.values("m_f") == {stamp(NOW_S): 1, stamp(NOW_S + 1): 2}


def test_many_lines_in_order_over_tcp(doors):
    """Of two values of one sample the later one is kept, also when many reads lie between."""
    lines = b"".join(f"m,i={i % 50} f={i}i {NOW_S + i // 50 % 100}000000000\n".encode()
                     for i in range(60000))
    assert doors.send(doors.tcp, lines) == ""
    for i in (0, 7, 49):
        assert doors.server.values("m_f", f"i={i}") == {
            stamp(NOW_S + t): 55000 + 50 * t + i for t in range(100)}
    assert doors.server.metric("granary_tcp_memory_bytes") == 0
    eventually(lambda: doors.server.metric("granary_tcp_connections") == 0)


def test_any_cut_between_reads(doors):
    """A text with newlines, escapes and an empty line, byte by byte and in random pieces."""
    text = (f'one,t=a\\ b f=1i,s="x\ny\n\nz\\"",g=2i {NOW_S}000000000\n'
            f"two f=3i {NOW_S}000000000\n").encode()
    chance = random.Random(5)
    for attempt in range(20):
        with doors.connect(doors.tcp) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            data = text.replace(b"one", b"one%d" % attempt).replace(b"two", b"two%d" % attempt)
            while data:
                size = 1 if attempt == 0 else chance.randint(1, 20)
                sock.sendall(data[:size])
                data = data[size:]
            eventually(lambda: doors.server.values(f"two{attempt}_f") == {stamp(NOW_S): 3})
        assert doors.server.values(f"one{attempt}_f") == {stamp(NOW_S): 1}
        assert doors.server.values(f"one{attempt}_g") == {stamp(NOW_S): 2}
    assert doors.server.metric("granary_ingest_text_fields_left_out_total") == 20
    assert doors.refused("syntax") == 0


def test_a_text_of_lines_does_not_wait_for_more(doors):
    with doors.connect(doors.tcp) as sock:
        half = b'm f=1i,s="' + b"x" * 100 + b"\n"
        sock.sendall(half)
        eventually(lambda: doors.server.metric("granary_tcp_received_bytes_total") == len(half))
        sock.sendall(b'"\n')
        eventually(lambda: doors.server.query("m_f", start=0))


def test_a_half_line_is_no_value(doors):
    doors.send(doors.tcp, f"m f=1i {NOW_S}000000000\nm f=12".encode())
    eventually(lambda: doors.refused("syntax") == 1)
    assert doors.server.values("m_f") == {stamp(NOW_S): 1}
    doors.send(doors.tcp, f'm f=3i,s="open\nm g=4i {NOW_S}000000000\n'.encode())
    # The open text is bad up to its own end of line, whatever stands behind it.
    eventually(lambda: doors.refused("syntax") == 2)
    assert doors.server.values("m_g") == {stamp(NOW_S): 4}


def test_a_reset_after_lines_keeps_them(doors):
    with doors.connect(doors.tcp) as sock:
        sock.sendall(f"m f=1i {NOW_S}000000000\nm f=9".encode())
        eventually(lambda: doors.server.values("m_f") == {stamp(NOW_S): 1})
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    eventually(lambda: doors.server.metric("granary_tcp_connections") == 0)
    assert doors.server.values("m_f") == {stamp(NOW_S): 1}


def test_bad_lines_do_not_spoil_their_neighbours(doors):
    bad = [b"m", b"m f=", b"m f=1i 12x", b",a=b f=1", b"m,a= f=1", b"m f=1 1 1", b"\0", b"m f=\x00",
           b"m f=nan", b"\xff\xfe f=1", b"m f=1i 99999999999999999999", b"=", b"\\", b'"']
    data = b"".join(line + f"\nok{i} f={i}i {NOW_S}000000000\n".encode()
                    for i, line in enumerate(bad))
    doors.send(doors.tcp, data)
    for i in range(len(bad)):
        eventually(lambda: doors.server.values(f"ok{i}_f") == {stamp(NOW_S): i})


def test_long_lines_over_tcp(make_server):
    doors = Doors(make_server, "--tcp.line_max=1K")
    good = f"m f=1i {NOW_S}000000000"
    exact = good + " " * (1023 - len(good)) + "\n"
    doors.send(doors.tcp, exact.encode())
    eventually(lambda: doors.server.values("m_f") == {stamp(NOW_S): 1})
    # One byte more, complete or not, in one piece or for ever.
    doors.send(doors.tcp, (" " + exact).encode())
    eventually(lambda: doors.refused("too_long") == 1)
    with doors.connect(doors.tcp) as sock:
        for _ in range(300):
            sock.sendall(b"x" * 10000)
        sock.sendall(b"\nm g=2i\n")
        eventually(lambda: doors.server.query("m_g", start=0))
    assert doors.refused("too_long") == 2
    assert doors.server.metric("granary_tcp_memory_bytes") == 0
    doors.server.stop()


def test_endless_line_takes_no_memory(doors):
    with doors.connect(doors.tcp) as sock:
        piece = b"m," + b"y" * 999998
        for _ in range(64):
            sock.sendall(piece)
            assert doors.server.metric("granary_tcp_memory_bytes") < 400000
        sock.sendall(f"\nm f=1i {NOW_S}000000000\n".encode())
        eventually(lambda: doors.server.values("m_f") == {stamp(NOW_S): 1})
    assert doors.refused("too_long") == 1


def test_an_endless_text_takes_no_memory(doors):
    with doors.connect(doors.tcp) as sock:
        sock.sendall(b'm f=1i,s="')
        for _ in range(40):
            sock.sendall(b"text of many lines\n" * 1000)
            assert doors.server.metric("granary_tcp_memory_bytes") < 400000
        sock.sendall(f"\nm g=1i {NOW_S}000000000\n".encode())
        eventually(lambda: doors.server.values("m_g") == {stamp(NOW_S): 1})
    assert doors.server.query("m_f", start=0) == []


def test_times_and_tenants_of_a_door(make_server):
    doors = Doors(make_server, "--line_tcp.precision=s", "--line_tcp.tenant=t-1",
                  "--line_udp.precision=ms", "--opentsdb.tenant=t-2")
    doors.send(doors.tcp, f"m,tenant=x f=1i {NOW_S}\n".encode())
    eventually(lambda: doors.server.values("m_f", "tenant=x", tenant="t-1") == {stamp(NOW_S): 1})
    doors.datagram(f"m,tenant=t-3 f=2i {NOW_S}007\n".encode())
    eventually(lambda: doors.server.values("m_f", tenant="t-3") == {stamp(NOW_S, 7): 2})
    doors.send(doors.puts, f"put m {NOW_S} 3 tenant=x\n".encode())
    eventually(lambda: doors.server.values("m", "tenant=x", tenant="t-2") == {stamp(NOW_S): 3})
    doors.server.stop()


def test_too_many_connections_are_closed(make_server):
    doors = Doors(make_server, "--tcp.connections_max=3")
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(doors.connect(doors.tcp)) for _ in range(3)]
        eventually(lambda: doors.server.metric("granary_tcp_connections") == 3)
        with doors.connect(doors.tcp) as late:
            assert late.recv(1) == b""
        with doors.connect(doors.tcp) as late:
            assert late.recv(1) == b""
        assert doors.server.metric("granary_tcp_connections_refused_total") == 2
        assert doors.server.log_text().count("closing a new connection of line_tcp: "
                                             "tcp.connections_max (3)") == 1
        # The bound is each door's own.
        assert doors.send(doors.puts, b"version\n").startswith("granary ")
        held[0].sendall(f"m f=1i {NOW_S}000000000\n".encode())
        eventually(lambda: doors.server.values("m_f") == {stamp(NOW_S): 1})
    eventually(lambda: doors.server.metric("granary_tcp_connections") == 0)
    doors.send(doors.tcp, f"m f=2i {NOW_S}000000000\n".encode())
    eventually(lambda: doors.server.values("m_f") == {stamp(NOW_S): 2})
    doors.server.stop()


def test_a_silent_connection_is_closed(make_server):
    doors = Doors(make_server, "--tcp.idle_timeout=300ms")
    with doors.connect(doors.tcp) as silent, doors.connect(doors.puts) as half:
        half.sendall(b"put m 1")
        assert silent.recv(1) == b""
        assert b"put: illegal argument: line 1, column 1: the line does not end" in half.recv(4096)
        assert half.recv(1) == b""
    assert doors.server.metric("granary_tcp_timeouts_total") == 2
    assert doors.refused("syntax") == 1
    doors.server.stop()


# ---- OpenTSDB ----------------------------------------------------------------------------------


def test_put(doors):
    answer = doors.send(doors.puts, (
        f"put sys.cpu.user {NOW_S} 42 host=web01 cpu=0\r\n"
        f"put sys.cpu.user  {NOW_S + 1}250\t-1.5e3   host=web01 cpu=0 \n"
        f"\n \r\nput big {NOW_S}.5 9007199254740993\n"
        f"put edge {NOW_S} +.5 a==b=\n").encode())
    assert answer == ""
    assert doors.server.values("sys.cpu.user", "host=web01", "cpu=0") == {
        stamp(NOW_S): 42, stamp(NOW_S + 1, 250): -1500}
    assert doors.server.values("big") == {stamp(NOW_S, 500): 2**53 + 1}
    found, = doors.server.query("edge", start=0)
    assert found["tags"] == {"a": "=b="} and found["values"] == {stamp(NOW_S): 0.5}


def test_put_says_what_is_wrong(doors):
    cases = [
        ("put", "line {}, column 4: not enough arguments", "syntax"),
        ("put m", "line {}, column 6: not enough arguments", "syntax"),
        (f"put m {NOW_S}", "not enough arguments", "syntax"),
        (f"put m {NOW_S} x a=b", "line {}, column 18: the value is not a number: x", "not_number"),
        (f"put m {NOW_S} 0x10 a=b", "the value is not a number", "not_number"),
        (f"put m {NOW_S} nan a=b", "the value is not a finite number", "not_finite"),
        (f"put m {NOW_S} -Infinity a=b", "the value is not a finite number", "not_finite"),
        (f"put m {NOW_S} 1e999 a=b", "the value is not a finite number", "not_finite"),
        ("put m now 1 a=b", "line {}, column 7:", "time"),
        ("put m -5 1 a=b", "before 1970", "too_old"),
        (f"put m {NOW_S}00 1 a=b", "ahead of now", "too_new"),
        (f"put m {NOW_S} 1 a", "a tag is not key=value: a", "syntax"),
        (f"put m {NOW_S} 1 a=", "a tag is not key=value: a=", "syntax"),
        (f"put m {NOW_S} 1 =b", "a tag is not key=value: =b", "syntax"),
        (f"put m {NOW_S} 1 a=b a=c", 'column 24: tag "a" stands twice', "name"),
        (f"put m {NOW_S} 1 b=c a=\x07", 'column 24: value of tag "a" holds a control', "name"),
        (f"put m\x07 {NOW_S} 1 a=b", "column 5: metric", "name"),
        (f"put {'m' * 257} {NOW_S} 1 a=b", "column 5: metric", "name"),
        (f"put m {NOW_S} 1 a=b tenant=a/b", 'column 24: tenant "a/b" is not', "name"),
        (f"put m {NOW_S} 1 tenant=t a=b tenant=u", 'column 33: tag "tenant" stands twice', "name"),
        (f"put m {NOW_S} 1 " + " ".join(f"k{i}=v" for i in range(66)), "more than 64 tags",
         "limit"),
    ]
    lines = [text for text, _, _ in cases]
    answers = doors.send(doors.puts, ("\n".join(lines) + f"\nput ok {NOW_S} 1\n").encode())
    answers = answers.splitlines()
    assert len(answers) == len(cases)
    for number, (answer, (text, sentence, _)) in enumerate(zip(answers, cases), 1):
        assert answer.startswith(f"put: illegal argument: line {number}, column "), (text, answer)
        assert sentence.format(number) in answer, (text, answer)
        assert answer.isprintable()
    for reason in {reason for _, _, reason in cases}:
        assert doors.refused(reason) == sum(wanted == reason for _, _, wanted in cases), reason
    assert doors.server.values("ok") == {stamp(NOW_S): 1}
    assert doors.server.query("m", start=0) == []


def test_hundred_refusals_are_told_and_the_rest_counted(doors):
    answers = doors.send(doors.puts, b"put\n" * 250).splitlines()
    assert len(answers) == 101
    assert answers[99].startswith("put: illegal argument: line 100, ")
    assert answers[100] == "put: illegal argument: and 150 more"
    assert doors.refused("syntax") == 250


def test_commands(doors):
    answers = doors.send(doors.puts, (
        f"version\nput m {NOW_S} 1\nhelp\r\nPUT m 1 2\nput m x 1\ndiediedie\nstats\n"
        f"exit\nput m {NOW_S} 2\n").encode()).splitlines()
    assert re.fullmatch(r"granary \d+\.\d+\.\d+, speaking OpenTSDB's put", answers[0])
    assert answers[1] == "available commands: put stats version help exit"
    assert answers[2] == "unknown command: PUT.  Try `help'."
    # In the order of the questions, also when an answer had to wait for the store.
    assert answers[3].startswith("put: illegal argument: line 5, column 7: ")
    assert answers[4] == "unknown command: diediedie.  Try `help'."
    stats = [line.split() for line in answers[5:]]
    assert all(re.fullmatch("granary_[a-z_0-9]+", line[0]) and abs(int(line[1]) - NOW_S) < 10**5
               and re.fullmatch(r"-?\d+(\.\d{6})?", line[2]) and len(line) in (3, 4)
               for line in stats)
    assert ["granary_ingest_refused_total", stats[0][1], "1", "reason=time"] in stats
    # The two commands that there are not.
    assert ["granary_ingest_refused_total", stats[0][1], "2", "reason=syntax"] in stats
    assert doors.server.values("m") == {stamp(NOW_S): 1}


def test_a_flood_of_commands_does_not_hold_up_others(doors):
    """An answer of some KB for six bytes: they are given a few at a time."""
    flood = doors.connect(doors.puts)
    flood.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            flood.send(b"stats\n" * 10000)
    for i in range(20):
        assert doors.send(doors.puts, f"put m {NOW_S + i} 1\n".encode()) == ""
    assert len(doors.server.values("m")) == 20
    assert doors.server.metric("granary_tcp_memory_bytes") < 400000
    flood.close()


def test_a_client_that_reads_no_answers_is_served(doors):
    """collectd's write_tsdb never reads: its points are stored, and the answers are lost."""
    dropped, sent = 0, 0
    with doors.connect(doors.puts) as sock:
        while not dropped:
            assert sent < 5000, "the kernel keeps all answers"
            sock.sendall(b"put m bad 1 a=b\n" * 100 + f"put m {NOW_S + sent} {sent}\n".encode())
            sent += 1
            eventually(lambda: doors.refused("time") == 100 * sent)
            dropped = doors.server.metric("granary_tcp_answers_dropped_total")
        sock.sendall(f"put m {NOW_S + sent} {sent}\n".encode())
        eventually(lambda: len(doors.server.values("m")) == sent + 1)


LONG_TARGET = b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.mark.parametrize("door", ["tcp", "puts"])
@pytest.mark.parametrize("begin", [
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n",
    b"POST /x HTTP/1.1\n", b"GET /?a=1,b=2 HTTP/1.0\r\n\r\n", b"OPTIONS * HTTP/1.1\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n", LONG_TARGET,
    b"\x16\x03\x01\x02\x0a", b"\x00\x01\n"],
    ids=["form", "bare LF", "query", "options", "HTTP/2", "connect", "long", "TLS", "binary"])
def test_the_body_of_a_browsers_request_was_stored(doors, door, begin):
    """Nothing of a connection that begins with HTTP is, nor of TLS, with whatever lines behind."""
    lines = b"foreign value=1 %d\n" % (NOW_S * 10**9)
    puts = b"put foreign %d 1 a=b\n" % NOW_S
    before = doors.server.metric("granary_tcp_strangers_total")
    for cut in (1, 5, len(begin)):
        with doors.connect(getattr(doors, door)) as sock, contextlib.suppress(OSError):
            sock.sendall(begin[:cut])
            sock.sendall(begin[cut:] + (lines if door == "tcp" else puts))
            while sock.recv(65536):
                pass
    assert doors.server.metric("granary_tcp_strangers_total") == before + 3
    assert doors.server.metric("granary_tcp_lost_bytes_total") == 0
    eventually(lambda: doors.server.metric("granary_tcp_connections") == 0)
    assert doors.server.get("/api/metadata/tenants").json == []
    assert "it begins with HTTP or another protocol" in doors.server.log_text()


def test_lines_that_only_look_like_http_are_kept(doors):
    doors.send(doors.tcp, b"GET /x=1,y=2 %d\nPOST value=3 %d\n" % ((NOW_S * 10**9,) * 2))
    doors.send(doors.tcp, b'LOG text="a HTTP/1.1\nmore",n=4 %d\n' % (NOW_S * 10**9))
    doors.send(doors.puts, b"put GET %d 5 a=b\n" % NOW_S)
    server = doors.server
    assert [list(server.values(name).values()) for name in ("GET_/x", "POST", "LOG_n", "GET")] \
        == [[1], [3], [4], [5]]
    assert server.metric("granary_tcp_strangers_total") == 0


def test_a_datagram_that_is_no_text_is_refused_whole(doors):
    """As those of WebRTC and QUIC, which carry some bytes of a page's choice."""
    line = b"foreign value=1 %d\n" % (NOW_S * 10**9)
    doors.datagram(b"\xc0\x00\x00\x00\x01\n" + line, line + b"\x00",
                   line.replace(b"foreign", b"ours"))
    eventually(lambda: list(doors.server.values("ours").values()) == [1])
    assert doors.server.get("/api/metadata/metricNames", tenant="default").json == ["ours"]
    assert doors.server.metric("granary_ingest_refused_total", reason="syntax") == 2


@pytest.mark.parametrize("door", ["tcp", "puts"])
def test_rubbish(doors, door):
    chance = random.Random(9)
    for _ in range(30):
        data = bytes(chance.choice(b"put m=1 ,\"\\\n\r\0\t\xff\xc3\xa9i") for _ in
                     range(chance.randint(1, 5000)))
        with contextlib.suppress(ConnectionError):
            doors.send(getattr(doors, door), data)
    doors.send(doors.puts, f"put alive {NOW_S} 1\n".encode())
    assert doors.server.values("alive") == {stamp(NOW_S): 1}


# ---- datagrams ---------------------------------------------------------------------------------


def test_datagrams(doors):
    server = doors.server
    doors.datagram(f"m,a=b f=1i {NOW_S}000000000".encode(),
                   f"m,a=b f=2i {NOW_S + 1}000000000\nm,a=c f=3i {NOW_S}000000000\n".encode())
    eventually(lambda: server.metric("granary_udp_datagrams_total") == 2)
    eventually(lambda: server.values("m_f", "a=c") == {stamp(NOW_S): 3})
    eventually(lambda: server.values("m_f", "a=b") == {stamp(NOW_S): 1, stamp(NOW_S + 1): 2})


def test_datagrams_stand_alone(doors):
    """What one leaves open does not reach into the next."""
    doors.datagram(b'm f=1i,s="open', b'm g=2i,t="', b"", b"\n", b"m", b"\0" * 2000,
                   f"good f=1i {NOW_S}000000000".encode(), b"x" * 60000,
                   b"cut f=12", f"good f=2i {NOW_S + 1}000000000".encode())
    eventually(lambda: len(doors.server.values("good_f")) == 2)
    assert doors.server.query("m_f", start=0) == [] == doors.server.query("m_g", start=0)
    eventually(lambda: doors.refused("syntax") >= 5)


def test_a_long_datagram_is_refused_whole(make_server):
    doors = Doors(make_server, "--line_udp.datagram_max=1K")
    line = f"m f=1i {NOW_S}000000000\n".encode()
    doors.datagram(line + b"#" * (1024 - len(line)), line.replace(b"f", b"g") + b"#" * 1024)
    eventually(lambda: doors.server.values("m_f") == {stamp(NOW_S): 1})
    eventually(lambda: doors.refused("too_long") == 1)
    assert doors.server.query("m_g", start=0) == []
    doors.server.stop()


def test_lost_datagrams_are_counted(make_server):
    """While the server stands still the kernel drops what does not fit; none is unaccounted."""
    doors = Doors(make_server, "--line_udp.buffer=64K")
    count, seconds = 5000, 50
    os.kill(doors.server.process.pid, signal.SIGSTOP)
    doors.datagram(*(f"m,i={i} f={i}i {NOW_S + i % seconds}000000000\n".encode() + b"#" * 500
                     for i in range(count)))
    os.kill(doors.server.process.pid, signal.SIGCONT)

    def accounted():
        read = doors.server.metric("granary_udp_datagrams_total")
        lost = doors.server.metric("granary_udp_lost_datagrams_total", reason="kernel")
        return read, lost if read + lost == count else None
    eventually(lambda: accounted()[1])
    read, lost = accounted()
    assert 0 < read < count and lost > 0
    eventually(lambda: len(doors.server.query("m_f", start=0)) == read)
    assert doors.server.metric("granary_udp_lost_datagrams_total", reason="store") == 0
    doors.server.stop()


# ---- stopping ----------------------------------------------------------------------------------


READ_BYTES = 256 << 10  # of one read of a stream: LOOP_READ_BYTES
TCP_INFO_SND_WND = 228  # where Linux' struct tcp_info has tcpi_snd_wnd


def offered(sock):
    """How many bytes the kernel takes for the other side before that reads any."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return struct.unpack_from("=I", info, TCP_INFO_SND_WND)[0]


def widen(sock, size):
    """Sends blanks until the kernel would keep so much for the server: it keeps more for who reads
    fast, and how soon depends on what else the machine does. Returns how much was sent."""
    blanks = (b" " * 1000 + b"\n") * 1000
    sent = 0

    def widened():
        nonlocal sent
        if offered(sock) >= size:
            return True
        sock.sendall(blanks)
        sent += len(blanks)
        return False
    eventually(widened, seconds=60)
    return sent


@contextlib.contextmanager
def standing_still(process):
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def receive(sock, data):
    """To a server that stands still: waits until the kernel has it all on that side."""
    sock.sendall(data)

    def unacknowledged():
        return struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0" * 4))[0]
    eventually(lambda: unacknowledged() == 0)


@pytest.mark.not_sanitized("the kernel keeps much only for who reads fast")
def test_a_stop_stores_what_was_received(doors):
    """TERM comes while the bytes wait in the kernel's buffers: they are read, and stored; several
    reads of each stream, and more datagrams than may be on their way to the disk at once."""
    server = doors.server
    count, datagrams = 30000, 200
    lines = [f"m,d={{}},i={i % 100} f={i}i {NOW_S - 3600 + i // 100}000000000\n"
             for i in range(count)]
    over_tcp = "".join(line.format("tcp") for line in lines).encode()
    over_put = b"".join(b"put p,%030d %d %d\n" % (0, NOW_S - 3600 * 9 + i, i)
                        for i in range(count))
    assert len(over_tcp) > 4 * READ_BYTES and len(over_put) > 4 * READ_BYTES
    tcp, puts = doors.connect(doors.tcp), doors.connect(doors.puts)
    warm = widen(tcp, len(over_tcp)) + widen(puts, len(over_put))
    eventually(lambda: server.metric("granary_tcp_received_bytes_total") >= warm)
    server.close()
    each = 10
    with standing_still(server.process):
        receive(tcp, over_tcp)
        receive(puts, over_put)
        doors.datagram(*("".join(lines[at:at + each]).format(*["udp"] * each).encode()
                         for at in range(0, datagrams * each, each)))
        os.kill(server.process.pid, signal.SIGTERM)
    assert server.process.wait(60) == 0
    assert tcp.recv(1) == b"" and puts.recv(1) == b""
    doors.begin()
    for door, kept in (("tcp", count), ("udp", datagrams * each)):
        found = server.query("m_f", f"d={door}", start=0)
        assert len(found) == 100
        assert all(len(series["values"]) == kept // 100 for series in found)
    assert len(server.values("p,%030d" % 0)) == count
    tcp.close()
    puts.close()


def test_a_stop_does_not_wait_for_a_sender_without_end(make_server):
    doors = Doors(make_server, "--stop_timeout=500ms")
    over = threading.Event()

    def send():
        with contextlib.suppress(OSError), doors.connect(doors.tcp) as sock:
            i = 0
            while not over.is_set():
                sock.sendall(b"".join(f"m f={i + j}i\n".encode() for j in range(1000)))
                i += 1000
    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    eventually(lambda: doors.server.metric("granary_tcp_received_bytes_total") > 10**6)
    doors.server.stop()  # who still sends does so for ever
    over.set()
    for thread in threads:
        thread.join()


def test_ports_are_bound_again_after_a_restart(make_server):
    ports = free_port(), free_port(), free_port()
    server = make_server(options=[f"--line_tcp.listen=127.0.0.1:{ports[0]}",
                                  f"--line_udp.listen=127.0.0.1:{ports[1]}",
                                  f"--opentsdb.listen=127.0.0.1:{ports[2]}"])
    server.start()
    with socket.create_connection(("127.0.0.1", ports[0])) as sock:
        sock.sendall(b"m f=1i\n")
        eventually(lambda: server.query("m_f", start=0))
        server.restart()
    server.stop()
