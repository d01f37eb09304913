"""Lines of streams as they come, as server-sent events: read by a parser of their specification
(HTML, 9.2) and by the command line. Each line is told once and in its order, or its bytes are
counted as missed. The oracle of what fits is Python's `re` over what was sent."""

import json
import random
import re
import signal
import socket
import subprocess
import threading

import pytest

from chunks import LINE_BYTES, stream_bytes, v1, v1_post, v2
from server import PATIENCE_S, build_folder, eventually, granary, run
from test_fault_live import Viewer
from test_search import WORDS, fits, random_term, search
from test_streams import FIRST, export, post

HOOK = build_folder() / "tests" / "fault" / "fault_hook.so"
RING_CHUNKS = 1000  # doc/streams.md, **As they come**
RING_BYTES = 8 << 20


class Tail(Viewer):
    """Follows the lines of a server. What comes from when it is made on is told."""

    def __init__(self, server, query="", **options):
        super().__init__(server, query, path="/api/streams/tail", **options)
        self.missed = 0

    def take(self, count):
        """So many lines; what is missed is counted."""
        lines = []
        while len(lines) < count:
            event = self.next()
            if event.kind == "missed":
                self.missed += event.data["bytes"]
            else:
                assert event.kind == "line"
                lines.append(event.data)
        return lines

    def take_bytes(self, count):
        """Lines and what was missed, until both have so many bytes."""
        lines, told = [], 0
        while told + self.missed < count:
            event = self.next()
            if event.kind == "missed":
                self.missed += event.data["bytes"]
            else:
                lines.append(event.data)
                told += event.data["bytes"]
        assert told + self.missed == count
        return lines


def address(name="/a", incarnation=1, source="host1", datatype="log"):
    return f"{source}/demo/{datatype}/{name}@{incarnation:016x}"


def expected_line(seed, number):
    data = stream_bytes(seed, number * LINE_BYTES, (number + 1) * LINE_BYTES)
    return (number * LINE_BYTES, data[:-1].decode())


LONG_BYTES = 1000


def long_lines(first, last):
    """Lines that fill buffers and are few."""
    return b"".join(b"%09d %s\n" % (n, b"x" * (LONG_BYTES - 11)) for n in range(first, last))


def told(lines):
    return [(line["offset"], line["text"]) for line in lines]


def send(server, data, *, at=0, pieces=1, **names):
    """Some bytes as so many chunks, a request each; gives the offset behind them."""
    size = -(-len(data) // pieces)
    for begin in range(0, len(data), size):
        part = data[begin:begin + size]
        answer = post(server, v2(at + begin + len(part), part, **names))
        assert answer.status == 200, answer
    return at + len(data)


def test_each_line_is_told_once_in_order_as_a_search_has_it(server):
    with Tail(server) as tail:
        assert tail.status == 200 and tail.headers["content-type"] == "text/event-stream"
        assert "content-encoding" not in tail.headers
        at = {name: 0 for name in "abc"}
        for _ in range(20):
            for seed, name in enumerate(at):
                data = stream_bytes(seed, at[name], at[name] + 10 * LINE_BYTES)
                at[name] = send(server, data, at=at[name], name=name)
        lines = tail.take(600)
        for seed, name in enumerate(at):
            mine = [line for line in lines if line["stream"] == address(name)]
            assert told(mine) == [expected_line(seed, number) for number in range(200)]
        # What is told of a line is what a search says of it.
        key = {(line["stream"], line["offset"]): line for line in search(server, limit=1000)}
        assert all(key[line["stream"], line["offset"]] == line for line in lines)
        # What is sent again is not told again.
        send(server, stream_bytes(0, 0, 2000), name="a")
        send(server, b"next\n", at=at["a"], name="a")
        assert told(tail.take(1)) == [(at["a"], "next")] and tail.missed == 0
    eventually(lambda: server.metric("granary_stream_readers") == 0)


def test_what_came_before_the_reader_is_not_told(server):
    at = send(server, b"before\n")
    with Tail(server) as tail:
        at = send(server, b"behind\n", at=at)
        assert told(tail.take(1)) == [(7, "behind")]
        with Tail(server) as later:
            send(server, b"last\n", at=at)
            assert told(later.take(1)) == told(tail.take(1)) == [(14, "last")]


def test_chunks_cut_anywhere_and_overlap(server):
    """A line is told when its end has come, whatever chunks its bytes lie in."""
    rng = random.Random(7)
    data = b"".join(b"%d %s\n" % (number, b"x" * rng.choice([0, 1, 30, 500, 3000]))
                    for number in range(400)) + b"\n\r\n" + "größe\r\n".encode()
    expected, at = [], 0
    for line in data.split(b"\n")[:-1]:
        expected.append((at, line.removesuffix(b"\r").decode()))
        at += len(line) + 1
    with Tail(server) as tail:
        at = 0
        while at < len(data):
            end = min(len(data), at + rng.randrange(1, 4000))
            begin = max(0, at - rng.choice([0, 0, 1, 700]))
            assert post(server, v2(end, data[begin:end])).status == 200
            at = end
        assert told(tail.take(len(expected))) == expected
        assert tail.missed == 0


def test_records_that_are_no_lines(server):
    """What a sender says of where records end counts, and not newlines."""
    with Tail(server) as tail:
        post(server, v2(12, b"a\nb\nc\nd\ne\nf\n", ends=[4, 8]))  # the last record is open
        post(server, v2(16, b"g\nh\n", ends=[2, 4]))
        assert told(tail.take(4)) == [(0, "a\nb"), (4, "c\nd"), (8, "e\nf\ng"), (14, "h")]
        post(server, v1_post(v1(6, b"a\nbc\n", name="/chukwa")))
        assert told(tail.take(2)) == [(1, "a"), (3, "bc")]


def test_long_lines(server):
    """A text is cut after 64 KiB, and what is longer than a reader keeps is several lines."""
    long = b"y" * 500_000 + b"\n"
    with Tail(server) as tail:
        at = send(server, long)
        line, = tail.take(1)
        assert line["text"] == "y" * 65536 and line["cut"] and line["bytes"] == len(long)
        send(server, long, at=at, pieces=10)
        lines = tail.take_bytes(len(long) * 1)
        assert tail.missed == 0 and len(lines) > 1
        assert [line["offset"] for line in lines] == \
            [at + sum(line["bytes"] for line in lines[:i]) for i in range(len(lines))]


def test_bytes_that_fill_a_hole_are_missed(server):
    data = stream_bytes(4, 0, 100 * LINE_BYTES)

    def part(first, last):
        return v2(last * LINE_BYTES, data[first * LINE_BYTES:last * LINE_BYTES])

    with Tail(server) as tail:
        for first, last in ((0, 10), (20, 30), (10, 20), (5, 25), (90, 95), (28, 92), (95, 100)):
            assert post(server, part(first, last)).status == 200
        numbers = [*range(10), *range(20, 30), *range(90, 100)]
        assert told(tail.take(30)) == [expected_line(4, number) for number in numbers]
        assert tail.missed == 70 * LINE_BYTES
        # A line that is open before a hole ends there.
        post(server, v2(6404, b"open"))
        post(server, v2(6420, b"next\n"))
        assert told(tail.take(2)) == [(6400, "open"), (6415, "next")]
    assert server.metric("granary_stream_missed_bytes_total") == 70 * LINE_BYTES


def test_times_are_carried_from_line_to_line(server):
    with Tail(server) as tail:
        at = send(server, b"no time\n2026-03-04T05:06:07.089Z failed\n  at one\n")
        send(server, b"  at two\n2026-03-04T05:06:08Z done\n", at=at)
        send(server, b"after a hole\n", at=1000)
        received, *rest, hole = tail.take(6)
        times = [line["time"] for line in rest]
        assert times == [1772600767089] * 3 + [1772600768000]
        assert received["time"] > 1772600768000 and hole["time"] >= received["time"]
        # The sender says its zone.
        post(server, v2(20, b"2026-03-04 05:06:07\n", name="/b", zone="Europe/Berlin"))
        assert tail.take(1)[0]["time"] == 1772600767000 - 3600_000


def test_filters_against_re(server):
    rng = random.Random(11)
    texts = [" ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 10)))
             + f" 10.0.{rng.randrange(4)}.{rng.randrange(9)}:80 id{number}"
             for number in range(300)]
    texts.append("error the end id4")
    questions = [[random_term(rng, texts) for _ in range(rng.choice([1, 1, 2, 3]))]
                 for _ in range(25)]
    patterns = ["err(or)?", r"^[A-Za-z]+ ", r"id\d*7$", "a.b", "größe", "[a-c]-?y"]
    tails = [Tail(server, "q=" + quote(" ".join(terms))) for terms in questions]
    contents = [Tail(server, "datatype=log&content=" + quote(pattern)) for pattern in patterns]
    both = Tail(server, "q=error&content=" + quote("id[0-4]"))
    try:
        send(server, "".join(text + "\n" for text in texts).encode(), pieces=17)
        for terms, tail in zip(questions, tails):
            expected = [text for text in texts if fits(terms, text)]
            assert [line["text"] for line in tail.take(len(expected))] == expected, terms
        for pattern, tail in zip(patterns, contents):
            expected = [text for text in texts if re.search(pattern, text)]
            assert expected
            assert [line["text"] for line in tail.take(len(expected))] == expected, pattern
        expected = [text for text in texts
                    if fits(["error"], text) and re.search("id[0-4]", text)]
        assert [line["text"] for line in both.take(len(expected))] == expected
    finally:
        for tail in [*tails, *contents, both]:
            tail.close()


def quote(text):
    return "".join(f"%{byte:02x}" for byte in text.encode())


def test_only_the_streams_that_are_asked_for(server):
    streams = [{"name": "/a"}, {"name": "/b"}, {"name": "/a", "source": "host2"},
               {"name": "/a", "datatype": "app"}, {"name": "/a", "cluster": "other"},
               {"name": "/a", "incarnation": 2}]
    questions = {"": range(6), "name=/a": [0, 2, 3, 4, 5], "source=host2": [2],
                 "datatype=app": [3], "cluster=other": [4], "name=/b&source=host1": [1],
                 "stream=" + quote(FIRST): [0], "stream=" + quote(address(incarnation=2)): [5],
                 "name=/c": []}
    tails = {query: Tail(server, query) for query in questions}
    try:
        for number, names in enumerate(streams):
            send(server, b"%d\n" % number, **names)
        post(server, *(v2(10 + 4, b"end\n", **names) for names in streams + [{"name": "/c"}]))
        for query, numbers in questions.items():
            expected = [str(number) for number in numbers]
            got = [line["text"] for line in tails[query].take(len(expected) + 1)]
            assert got == expected + ["end"], query
    finally:
        for tail in tails.values():
            tail.close()


def test_two_tenants(server):
    with Tail(server) as tail, Tail(server, "tenant=shop") as shop:
        for number in range(50):
            send(server, b"mine %d\n" % number, at=100 * number)
            send(server, b"shop %d\n" % number, at=100 * number, tenant="shop")
        assert [line["text"] for line in tail.take(50)] == [f"mine {n}" for n in range(50)]
        assert [line["text"] for line in shop.take(50)] == [f"shop {n}" for n in range(50)]


def test_what_was_told_is_there_after_a_kill(server):
    at = 0
    for number in range(6):
        data = stream_bytes(1, at, at + 5 * LINE_BYTES)
        with Tail(server) as tail:
            sending = threading.Thread(target=post_in_vain, args=(server, v2(at + len(data), data)))
            sending.start()
            tail.take(1)
            server.kill()
            sending.join()
        server.start()
        at += len(data)
        assert export(server) == [(0, stream_bytes(1, 0, at))]


def post_in_vain(server, body):
    """The server may be killed before it answers."""
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        head = f"POST /chukwa HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        sock.sendall(head.encode() + body)
        try:
            sock.recv(1000)
        except ConnectionError:
            pass


@pytest.mark.not_sanitized("preloads a library")
@pytest.mark.skipif(not HOOK.exists(), reason="without a disk that can fail")
def test_what_cannot_be_written_is_not_told(make_server, monkeypatch, tmp_path):
    with monkeypatch.context() as environment:
        environment.setenv("FAULT_HOOK", "lmdb:fdatasync:40:0:EIO")
        environment.setenv("FAULT_HOOK_LOG", str(tmp_path / "hook"))
        environment.setenv("LD_PRELOAD", str(HOOK))
        server = make_server()
        server.start()
    acknowledged = 0
    with Tail(server) as tail:
        while True:
            try:
                answer = post(server, v2(5 * acknowledged + 5, b"%4d\n" % acknowledged))
            except OSError:
                break
            if answer.status != 200:
                break
            acknowledged += 1
        assert acknowledged
        events = [tail.next() for _ in range(acknowledged + 1)]
        assert [event.data["text"] for event in events[:-1]] == \
            [f"{number:4d}" for number in range(acknowledged)]
        assert events[-1] is None
    assert server.process.wait(PATIENCE_S) == 74


def test_a_slow_reader_is_told_what_it_missed(server):
    """What was sent is what came and what was missed, to the byte. Nobody else is held up."""
    chunk, chunks = 60 * LONG_BYTES, 700
    total = chunk * chunks
    assert total > 4 * RING_BYTES
    with Tail(server, "name=/a", buffer=4096) as idle, Tail(server, "name=/a") as reads, \
            Tail(server, "name=/other") as other:
        got = []
        reading = threading.Thread(target=lambda: got.append(reads.take_bytes(total)))
        reading.start()
        for first in range(0, chunks, 100):
            bodies = [v2((n + 1) * chunk, long_lines(60 * n, 60 * n + 60))
                      for n in range(first, first + 100)]
            assert post(server, *bodies).status == 200
        send(server, b"held up\n", name="/other")
        assert told(other.take(1)) == [(0, "held up")]
        lines = idle.take_bytes(total)
        assert idle.missed > 0
        assert len(lines) * LONG_BYTES >= RING_BYTES  # what was in its ring came
        reading.join(PATIENCE_S)
        assert not reading.is_alive()
        for tail, found in ((idle, lines), (reads, got[0])):
            numbers = [line["offset"] // LONG_BYTES for line in found]
            assert numbers == sorted(set(numbers))
            assert told(found) == [(n * LONG_BYTES, long_lines(n, n + 1)[:-1].decode())
                                   for n in numbers]
        assert server.metric("granary_stream_missed_bytes_total") == idle.missed + reads.missed
        # It goes on with what is new.
        missed = idle.missed
        send(server, b"new\n", at=total)
        assert told(idle.take(1)) == [(total, "new")] and idle.missed == missed


def test_a_ring_has_so_many_chunks(server):
    small, count = b"small\n", 2 * RING_CHUNKS
    with Tail(server, buffer=4096) as idle:
        at = send(server, b"z" * 100 + b"\n", at=0)
        fill = b"".join(b"%06d %s\n" % (n, b"w" * 1000) for n in range(900))
        while server.metric("granary_stream_missed_bytes_total") == 0:  # until it is stalled
            at = send(server, fill, at=at)
        before = at
        for first in range(0, count, 500):
            bodies = [v2(at + (n + 1) * len(small), small) for n in range(500)]
            assert post(server, *bodies).status == 200
            at += 500 * len(small)
        lines = idle.take_bytes(at)
        last = [line["offset"] for line in lines if line["offset"] >= before]
        assert last == list(range(at - RING_CHUNKS * len(small), at, len(small)))


def test_readers_come_and_go_while_lines_come(server):
    chance, at = random.Random(5), 0
    with Tail(server) as stays:
        for _ in range(120):
            tail = Tail(server, chance.choice(["", "tenant=shop", "q=x", "q=missing"]))
            if chance.random() < 0.5:
                tail.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            at = send(server, stream_bytes(3, at, at + 40 * LINE_BYTES), at=at, pieces=4)
            tail.close()
        lines = stays.take(120 * 40)
        assert told(lines) == [expected_line(3, number) for number in range(len(lines))]
        assert stays.missed == 0
        eventually(lambda: server.metric("granary_stream_readers") == 1)


def test_the_stream_ends_when_the_server_stops(server):
    """Also of readers that never read, while chunks come."""
    idle = [Tail(server, buffer=4096) for _ in range(10)]
    with Tail(server, "name=/none") as tail:
        for part in range(4):
            send(server, long_lines(6400 * part, 6400 * part + 6400), at=6400 * LONG_BYTES * part,
                 pieces=10)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert tail.next() is None
        stopping.join(PATIENCE_S)
        assert not stopping.is_alive()
    for one in idle:
        one.close()
    assert "gave up" not in server.log_text()


def test_a_reader_that_never_reads_is_ended(make_server):
    server = make_server(options=["--http.write_timeout=1s"])
    server.start()
    with Tail(server, buffer=4096) as idle, Tail(server, "name=/none") as quiet:
        send(server, long_lines(0, 12_800), pieces=20)
        eventually(lambda: server.metric("granary_stream_readers") == 1)
        lines = []
        try:
            while (event := idle.next()) is not None:
                lines.append(event)
        except (ConnectionError, ValueError):
            pass
        assert len(lines) < 12_800
        send(server, b"quiet\n", name="/none")
        assert told(quiet.take(1)) == [(0, "quiet")]
    server.stop()


def test_as_many_readers_as_may_be(make_server):
    server = make_server(options=["--http.connections_max=8"])
    server.start()
    tails = [Tail(server) for _ in range(4)]
    with Tail(server) as refused:
        assert refused.status == 503
    tails.pop().close()
    eventually(lambda: server.metric("granary_stream_readers") == 3)
    with Tail(server) as tail:
        send(server, b"one\n")
        assert told(tail.take(1)) == [(0, "one")]
    for tail in tails:
        tail.close()
    server.stop()


def test_what_is_wrong_is_said(server):
    for params, words in (({"q": '"a'}, "a quotation mark that is not closed"),
                          ({"q": "~("}, "("), ({"content": "("}, "("),
                          ({"stream": "x"}, "`x` is no address of a stream"),
                          ({"stream": FIRST, "name": "/a"}, "an address has all names"),
                          ({"q": " ".join("abcdefghijklmnopqrst"), "content": "x"},
                           "a search has up to 20 terms"),
                          ({"colour": "red"}, "colour")):
        answer = server.get("/api/streams/tail", **params)
        assert answer.status == 400 and words in answer.json["error"]["message"], answer
    answer = server.get("/api/streams/tail", content="x" * 257)
    assert answer.status == 422 and "longer than 256 bytes" in answer.json["error"]["message"]
    answer = server.request("HEAD", "/api/streams/tail")
    assert answer.status == 200 and answer.headers["content-type"] == "text/event-stream"
    assert server.metric("granary_stream_readers") == 0


def test_a_quiet_stream_says_that_the_server_is_there(server):
    with Tail(server) as tail:
        assert [tail.line() for _ in range(3)] == ["retry: 2000", "", ":"]


class Command:
    """`granary stream tail`, until its server knows it."""

    def __init__(self, server, *words, output="json"):
        self.server = server
        self.process = subprocess.Popen(
            [granary(), "stream", "tail", *words, "-o", output, "--server", server.url],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        eventually(lambda: server.metric("granary_stream_readers") == 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def lines(self, count):
        return [self.process.stdout.readline().rstrip("\n") for _ in range(count)]


def test_the_command_line_shows_them_as_they_come(server):
    with Command(server, "lock wait", "--datatype", "log", "--name", "/a") as tail:
        at = send(server, b"a lock wait\nlock or wait\nlock wait 2\n")
        send(server, b"lock wait\n", name="/b")
        assert told(map(json.loads, tail.lines(2))) == [(0, "a lock wait"), (25, "lock wait 2")]
        server.restart()
        eventually(lambda: server.metric("granary_stream_readers") == 1)
        send(server, b"lock wait 3\n", at=at)
        assert told(map(json.loads, tail.lines(1))) == [(at, "lock wait 3")]
        tail.process.send_signal(signal.SIGINT)
        tail.process.wait(PATIENCE_S)
        said = tail.process.stderr.read()
        assert "it is opened again; lines that come meanwhile are left out" in said
    refused = run("stream", "tail", "~(", "--server", server.url)
    assert refused.returncode == 1 and "(" in refused.stderr and not refused.stdout


def test_lines_are_printed_as_a_search_prints_them(server):
    lines = b'2026-03-04T05:06:07.089Z "quoted", and\ttabs\n2026-03-04T05:06:08Z next\n'
    with Command(server, output="table") as table, Command(server, output="csv") as csv:
        eventually(lambda: server.metric("granary_stream_readers") == 2)
        send(server, lines)
        for tail, output, count in ((table, "table", 2), (csv, "csv", 3)):
            searched = run("stream", "search", "--order", "oldest", "-o", output, "--server",
                           server.url)
            assert tail.lines(count) == searched.stdout.splitlines()


def test_the_command_line_says_what_was_missed(server):
    with Command(server) as tail:
        while server.metric("granary_stream_missed_bytes_total") == 0:  # its pipe is full
            at = export_end(server)
            send(server, long_lines(0, 900), at=at)
        end, seen = export_end(server), []
        while not seen or seen[-1]["offset"] + seen[-1]["bytes"] < end:
            seen.append(json.loads(tail.lines(1)[0]))
        told_bytes = sum(line["bytes"] for line in seen)
        tail.process.send_signal(signal.SIGINT)
        tail.process.wait(PATIENCE_S)
        said = tail.process.stderr.read()
        counts = re.findall(r"(\d+) bytes of streams are left out", said)
        assert counts and sum(map(int, counts)) == end - told_bytes


def export_end(server):
    streams = server.get("/api/streams").json["streams"]
    return streams[0]["held"][-1][1] if streams else 0
