"""Far more than the server can take: it says so in time, stays within its memory, goes on answering
small questions, keeps whatever it has accepted, and is well again when it is over.

About 15 s; with GRANARY_LONG also a minute of four times what the machine takes, which is measured
first. The load is tests/tools/overload: as many connections as matter, each with the next request
as soon as it has an answer or at a rate, half of them gzipped, some of them with new series."""

import json
import os
import subprocess
import threading
import time

import pytest

from server import build_folder, eventually, long_run, tool
from test_doors import Doors, stamp

pytestmark = pytest.mark.not_sanitized("measures memory and speed, and preloads a library")

MB = 1 << 20
HOOK = str(build_folder() / "tests" / "fault" / "fault_hook.so")
# Small on purpose, so that the bounds are reached: what they add up to is what may be used.
BOUNDS = {"store.head_max": 64, "store.queue_max": 8, "ingest.in_flight_max": 8,
          "http.memory_max": 8, "catalog.index_max": 16, "ingest.cache_max": 32}
# A request that goes on nevertheless is stopped at twice ingest.in_flight_max; http.memory_max
# holds for gathered bodies and once more for what was read of bodies that wait.
TWICE = {"ingest.in_flight_max", "http.memory_max"}
# The rest: the program, what the catalog and the store need to open sixteen rounds of series at
# once, buffers of the connections, and what the allocator has not given back.
FIXED_MB = 160
SECONDS = 10
CONNECTIONS, ROWS = 192, 1000

# Four times what the machine takes: the load generator shares the machine with the server, and must
# be able to outrun it. So the machine has a slow disk, and few bytes may wait for it.
TIMES = 4
ASKED_TIMES = 6  # of the generator, which may fall short of it
SLOW = {**BOUNDS, "ingest.in_flight_max": 4, "store.queue_max": 4}
FLOOD = {"seconds": 60, "connections": 400, "rows": 2000, "series": 250, "fresh": 0, "gzip": 0}
CALM = {**FLOOD, "seconds": 8, "connections": 16}


def anonymous_bytes(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def load(server, report, **options):
    options = {"connections": CONNECTIONS, "seconds": SECONDS, "rows": ROWS, "timeout": 120,
               **options}
    return subprocess.Popen(
        [tool("overload"), "--port", str(server.port), "--report", report,
         *(word for name, value in options.items() for word in (f"--{name}", str(value)))],
        stdout=subprocess.PIPE, text=True)


def finish(process):
    output, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(output)


def attempts_in(report):
    """{connection: (how many requests it sent, those of them that were answered with 204)}"""
    lines = ([int(word) for word in line.split()] for line in report.read_text().splitlines())
    return {line[0]: (line[1], line[2:]) for line in lines}


def accepted_in(report):
    return {connection: accepted for connection, (_, accepted) in attempts_in(report).items()}


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
        found = server.query("fresh_v", f"n={k:010}.10", start=base_s - 1, end=base_s + 10**5)
        series = {int(one["tags"]["c"]): one["values"] for one in found}
        for connection, requests in accepted.items():
            if k in requests:
                assert series[connection] == {stamp(base_s + k): k}


class Watcher:
    """Asks small things all the while, and beside that looks at the memory."""

    def __init__(self, server):
        self.server, self.over = server, threading.Event()
        self.rounds, self.memory, self.longest_s, self.wrong = 0, [], 0, []
        self.threads = [threading.Thread(target=run, daemon=True)
                        for run in (self.ask, self.look)]

    def start(self):
        self.before = anonymous_bytes(self.server)
        for thread in self.threads:
            thread.start()

    def look(self):
        while not self.over.is_set():
            self.memory.append(anonymous_bytes(self.server))
            self.over.wait(0.05)

    def ask(self):
        while not self.over.is_set():
            for path in ("/-/ready", "/metrics", "/api/query?tenant=default&metricName=small&"
                         "start=1h-ago"):
                begun = time.monotonic()
                answer = self.server.get(path)
                self.longest_s = max(self.longest_s, time.monotonic() - begun)
                if answer.status != 200:
                    self.wrong.append((path, answer))
            self.rounds += 1
            self.over.wait(0.1)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert not self.wrong
        assert self.rounds > 0


def assert_only_turned_away(told):
    """Told to come again, by an answer that says when; nothing else was wrong with any request."""
    assert told["ok"] > 0 and told["busy"] > 0, told
    assert told["without_retry_after"] == 0, told
    assert told["bad"] == told["failed"] == told["full"] == told["silent"] == 0, told
    assert told["not_connected"] == 0, told
    assert told["ok"] + told["busy"] == told["attempts"], told


def memory_bound(bounds):
    return MB * (FIXED_MB + sum(mb * (1 + (name in TWICE)) for name, mb in bounds.items()))


def assert_well_again(server):
    """What was under way has ended, and a write is taken; gives the seconds until that."""
    begun = time.monotonic()
    eventually(lambda: server.write("small value=2i").status == 204)
    took = time.monotonic() - begun
    eventually(lambda: server.metric("granary_ingest_paused_requests") == 0)
    eventually(lambda: server.metric("granary_ingest_in_flight_bytes") == 0)
    return took


def test_overload(make_server, tmp_path):
    options = [f"--{name}={mb}M" for name, mb in BOUNDS.items()]
    server = make_server(options=options + ["--ingest.wait_max=300ms", "--store.journal_max=16M"])
    server.start()
    assert server.write("small value=1i").status == 204
    watcher = Watcher(server)
    watcher.start()
    told = finish(load(server, tmp_path / "accepted"))
    watcher.end()
    print(f"anonymous memory at most {max(watcher.memory) // MB} MB; {told}")
    assert_only_turned_away(told)
    # The others found the store's queue full, or the bytes of all requests at twice their bound.
    assert 0 < server.metric("granary_ingest_overload_total") <= told["busy"]
    assert max(watcher.memory) < memory_bound(BOUNDS), max(watcher.memory)
    assert_well_again(server)

    accepted = accepted_in(tmp_path / "accepted")
    assert sum(map(len, accepted.values())) == told["ok"]
    check_accepted(server, told["base_s"], accepted)
    server.kill()
    server.start()
    check_accepted(server, told["base_s"], accepted)
    server.stop()


def samples(server):
    """How many there are of all series of the load."""
    found = server.query("load_v", start=0, fn="count", window="365d", agg="sum")
    return sum(found[0]["values"].values())


def check_flood(server, base_s, attempts):
    """Of some rows: each value of what was accepted is there, and of what was refused nothing but
    what was sent. Gives how many refused requests left something behind, of how many."""
    times = FLOOD["rows"] // FLOOD["series"]
    left, refused = set(), 0
    for row in (0, 1, 101, FLOOD["series"] - 1):
        found = server.query("load_v", f"r={row}", start=base_s, end=base_s + 10**6)
        series = {int(one["tags"]["c"]): one["values"] for one in found}
        refused = 0
        for connection, (count, accepted) in attempts.items():
            values, accepted = series.get(connection, {}), set(accepted)
            there = 0
            for k in range(count):
                sent = {stamp(base_s + k * times + t) for t in range(times)}
                found = {when: values[when] for when in sent if when in values}
                assert all(value == k for value in found.values()), (connection, row, k)
                assert k not in accepted or len(found) == times, (connection, row, k)
                if found and k not in accepted:
                    left.add((connection, k))
                refused += k not in accepted
                there += len(found)
            assert there == len(values), (connection, row)
    return len(left), refused


def thirds(memory):
    """The most of each third of the time, in MB."""
    size = len(memory) // 3 + 1
    return ", ".join(str(max(memory[at:at + size]) // MB) for at in range(0, len(memory), size))


@pytest.mark.skipif(not os.path.exists(HOOK), reason="without a disk that can be made slow")
def four_times_what_the_machine_takes(make_server, tmp_path, monkeypatch):
    options = [f"--{name}={mb}M" for name, mb in SLOW.items()]
    options += ["--ingest.wait_max=1s", "--store.journal_max=64M", "--query.series_max=200000"]

    def start(name):
        server = make_server(name, options=options)
        with monkeypatch.context() as environment:
            environment.setenv("FAULT_HOOK", "lmdb:fdatasync:1:0:slow")
            environment.setenv("FAULT_HOOK_LOG", str(tmp_path / "hook"))
            environment.setenv("LD_PRELOAD", HOOK)
            server.start()
        return server
    calm = start("calm")
    told = finish(load(calm, "/dev/null", **CALM))
    assert told["ok"] == told["attempts"], told
    taken = told["ok"] / CALM["seconds"]
    calm.stop()

    server = start("flood")
    assert server.write("small value=1i").status == 204
    watcher = Watcher(server)
    watcher.start()
    told = finish(load(server, tmp_path / "accepted", **FLOOD, rate=ASKED_TIMES * taken))
    watcher.end()
    recovery = assert_well_again(server)
    offered = told["attempts"] / FLOOD["seconds"]
    print(f"taken {taken:.0f} requests/s of {FLOOD['rows']} rows, offered {offered:.0f}/s "
          f"({offered / taken:.1f} times), {told['busy'] / told['attempts']:.1%} turned away; "
          f"memory {watcher.before // MB} MB before, {thirds(watcher.memory)} MB at most "
          f"(bound {memory_bound(SLOW) // MB} MB); small questions took at most "
          f"{watcher.longest_s:.2f} s; accepted again after {recovery:.3f} s; {told}")
    assert offered >= TIMES * taken
    assert_only_turned_away(told)
    assert max(watcher.memory) < memory_bound(SLOW), max(watcher.memory)
    attempts = attempts_in(tmp_path / "accepted")
    assert sum(len(accepted) for _, accepted in attempts.values()) == told["ok"]
    assert told["rows"] <= samples(server) <= told["attempts"] * FLOOD["rows"]
    server.kill()
    server.start()
    left, refused = check_flood(server, told["base_s"], attempts)
    print(f"of {refused} requests that were turned away {left} had left samples behind")
    server.stop()


if long_run():  # it takes more than a minute
    test_four_times_what_the_machine_takes = four_times_what_the_machine_takes



def test_a_full_house_says_when_to_come_again(make_server):
    server = make_server(options=["--http.connections_max=3"])
    server.start()
    server.close()
    held = []
    for _ in range(3):
        held.append(sock := Doors.connect(None, server.port))
        sock.sendall(b"POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                     b"Expect: 100-continue\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 100 ")
    ask = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Doors.connect(None, server.port) as late:
        late.sendall(ask % b"/api/devices")
        answer = late.recv(4096)
        assert answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in answer
        assert b"too many connections (http.connections_max)" in answer
    # What tells how the server is, is answered all the same.
    for path in (b"/-/healthy", b"/-/ready", b"/metrics"):
        with Doors.connect(None, server.port) as late:
            late.sendall(ask % path)
            assert late.recv(4096).startswith(b"HTTP/1.1 200 ")
    # Four had no place of their own, one line says so.
    said = "there is no place for a connection: there are as many connections as " \
           "http.connections_max (3)"
    assert server.log_text().count(said) == 1
    for sock in held:
        sock.close()
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
    eventually(lambda: doors.server.metric("granary_tcp_connections") == 0, seconds=120)
    for number in range(6):
        found = doors.server.query("m_f", f"c={number}", start=now_s - 1)
        assert len(found) == 100
        for series in found:
            row = int(series["tags"]["r"])
            assert series["values"] == {stamp(now_s + i): 100 * i + row
                                        for i in range(lines // 100)}
    assert doors.server.metric("granary_tcp_lost_bytes_total") == 0
    doors.server.stop()
