"""Far more than the server can take: it says so in time, stays within its memory, goes on answering
small questions, keeps whatever it has accepted, and is well again when it is over.

About 15 s; a minute with GRANARY_LONG. The load is tests/tools/overload: as many connections as
matter, each with the next request as soon as it has an answer, half of them gzipped, some of them
with new series."""

import json
import subprocess
import threading
import time

from server import long_run, tool
from test_doors import Doors, eventually, stamp

MB = 1 << 20
# Small on purpose, so that the bounds are reached: what they add up to is what may be used.
BOUNDS = {"store.head_max": 64, "store.queue_max": 8, "ingest.in_flight_max": 8,
          "http.memory_max": 8, "catalog.index_max": 16, "ingest.cache_max": 32}
# A request that goes on nevertheless is stopped at twice ingest.in_flight_max; http.memory_max
# holds for gathered bodies and once more for what was read of bodies that wait.
TWICE = {"ingest.in_flight_max", "http.memory_max"}
# The rest: the program, what the catalog and the store need to open sixteen rounds of series at
# once, buffers of the connections, and what the allocator has not given back.
FIXED_MB = 160
SECONDS = 60 if long_run() else 10
CONNECTIONS, ROWS = 192, 1000


def anonymous_bytes(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def load(server, report, seconds=SECONDS, connections=CONNECTIONS):
    return subprocess.Popen(
        [tool("overload"), "--port", str(server.port), "--connections", str(connections),
         "--seconds", str(seconds), "--rows", str(ROWS), "--timeout", "120", "--report", report],
        stdout=subprocess.PIPE, text=True)


def accepted_in(report):
    """{connection: the requests that were answered with 204}"""
    lines = (line.split() for line in report.read_text().splitlines())
    return {int(line[0]): [int(k) for k in line[1:]] for line in lines}


def check_accepted(server, base_s, accepted):
    """Of some rows every value that was accepted is there."""
    for row in (0, 1, 7, 10, 499, ROWS - 1):
        found = server.query("load_v", f"r={row}", start=base_s - 1, end=base_s + 10**5)
        series = {int(one["tags"]["c"]): one["values"] for one in found}
        for connection, requests in accepted.items():
            values = series.get(connection, {})
            for k in requests:
                if k % 8 or row % 10:
                    assert values.get(stamp(base_s + k)) == k, (connection, row, k)
    for k in (0, 8):
        found = server.query("fresh_v", f"n={k}.10", start=base_s - 1, end=base_s + 10**5)
        series = {int(one["tags"]["c"]): one["values"] for one in found}
        for connection, requests in accepted.items():
            if k in requests:
                assert series[connection] == {stamp(base_s + k): k}


class Watcher(threading.Thread):
    """Asks small things all the while, and looks at the memory."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.over = server, threading.Event()
        self.rounds, self.memory_max, self.wrong = 0, 0, []

    def run(self):
        while not self.over.is_set():
            self.memory_max = max(self.memory_max, anonymous_bytes(self.server))
            for path in ("/-/ready", "/metrics", "/api/query?tenant=default&metricName=small&"
                         "start=1h-ago"):
                answer = self.server.get(path)
                if answer.status != 200:
                    self.wrong.append((path, answer))
            self.rounds += 1
            self.over.wait(0.1)

    def end(self):
        self.over.set()
        self.join()
        assert not self.wrong
        assert self.rounds > 0


def test_overload(make_server, tmp_path):
    options = [f"--{name}={mb}M" for name, mb in BOUNDS.items()]
    server = make_server(options=options + ["--ingest.wait_max=300ms", "--store.journal_max=16M"])
    server.start()
    assert server.write("small value=1i").status == 204
    watcher = Watcher(server)
    watcher.start()
    process = load(server, tmp_path / "accepted")
    output, _ = process.communicate()
    watcher.end()
    told = json.loads(output)
    assert process.returncode == 0
    print(f"anonymous memory at most {watcher.memory_max // MB} MB; {told}")
    # Told to come again, by an answer that says when; nothing else was wrong with any request.
    assert told["ok"] > 0 and told["busy"] > 0, told
    assert told["without_retry_after"] == 0, told
    assert told["bad"] == told["failed"] == told["full"] == told["silent"] == 0, told
    assert told["not_connected"] == 0, told
    # The others found the store's queue full, or the bytes of all requests at twice their bound.
    assert 0 < server.metric("granary_ingest_overload_total") <= told["busy"]

    bound = MB * (FIXED_MB + sum(mb * (1 + (name in TWICE)) for name, mb in BOUNDS.items()))
    assert watcher.memory_max < bound, (watcher.memory_max, bound)

    # Well again: what was under way has ended, and a write is taken.
    eventually(lambda: server.metric("granary_ingest_paused_requests") == 0)
    eventually(lambda: server.metric("granary_ingest_in_flight_bytes") == 0)
    eventually(lambda: server.write("small value=2i").status == 204)

    accepted = accepted_in(tmp_path / "accepted")
    assert sum(map(len, accepted.values())) == told["ok"]
    check_accepted(server, told["base_s"], accepted)
    server.kill()
    server.start()
    check_accepted(server, told["base_s"], accepted)
    server.stop()


def test_a_full_house_says_when_to_come_again(make_server):
    # The third is the one that the server was asked on whether it is ready.
    server = make_server(options=["--http.connections_max=3"])
    server.start()
    first, second = Doors.connect(None, server.port), Doors.connect(None, server.port)
    for sock in (first, second):
        sock.sendall(b"GET /-/ready HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 200 ")
    with Doors.connect(None, server.port) as late:
        answer = late.recv(4096)
        assert answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in answer
    first.close()
    second.close()
    assert server.get("/-/ready").status == 200
    server.stop()


def test_streams_wait_while_http_is_turned_away(make_server):
    """TCP has no answer to say it with: lines that were sent are stored, however long it takes."""
    doors = Doors(make_server, "--ingest.in_flight_max=1M", "--store.queue_max=1M",
                  "--ingest.wait_max=100ms")
    lines = 40000
    now_s = int(time.time()) - 7200

    def send(number):
        doors.send(doors.tcp, b"".join(
            f"m,c={number},r={i % 100} f={i}i {now_s + i // 100}000000000\n".encode()
            for i in range(lines)))
    senders = [threading.Thread(target=send, args=(number,)) for number in range(6)]
    for sender in senders:
        sender.start()
    process = load(doors.server, "/dev/null", seconds=3, connections=32)
    process.communicate()
    for sender in senders:
        sender.join()
    eventually(lambda: doors.server.metric("granary_stream_connections") == 0, 120)
    for number in range(6):
        found = doors.server.query("m_f", f"c={number}", start=now_s - 1)
        assert len(found) == 100
        for series in found:
            row = int(series["tags"]["r"])
            assert series["values"] == {stamp(now_s + i): 100 * i + row
                                        for i in range(lines // 100)}
    assert doors.server.metric("granary_stream_lost_bytes_total") == 0
    doors.server.stop()
