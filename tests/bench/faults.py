"""What fault reports cost: the same envelopes of Sentry's client to Granary and to bugsink, in
turns. Both hold one report of each group before the rounds begin, so that groups are known."""

import json
import os
import random
import re
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time

from bugsink import Bugsink
from fault_events import GROUPS, Events
from servers import Granary, Server

CONNECTIONS = 8
LIVE_RATE = 1000  # reports a second


class FaultServer(Granary):
    """Granary as one who sends and reads fault reports sees it."""

    asking = {}  # headers
    project = 1
    day_told = b"hours"

    def start(self):
        super().start()
        projects = json.loads(self.get("/oops/projects")[1])["projects"]
        self.key = next(p["keys"][0] for p in projects if p["number"] == self.project)

    @staticmethod
    def day_path():
        return "/oops/days/today"

    @staticmethod
    def report_path(id_):
        return f"/oops/{id_}"

    def reports(self):
        """Of yesterday too: midnight may pass while they are sent."""
        return sum(json.loads(self.get(f"/oops/days/{day}")[1])["total"]
                   for day in ("yesterday", "today"))

    def report_bytes(self):
        return self.stats()["usedBytes"]

    def wait_sealed(self):
        """Until all that it has sealed lies nowhere else, which is five minutes later, and the
        room for it has been given back."""
        deadline, used = time.monotonic() + 900, 0
        while self.metric("fault_runs_sealed") != self.metric("fault_runs_cleared") or \
                used != self.report_bytes():
            if time.monotonic() > deadline:
                sys.exit("bench: arrivals of sealed runs stay")
            used = self.report_bytes()
            time.sleep(10)

    def metric(self, name):
        return int(re.search(rf"^granary_{name}_total (\d+)$", self.get("/metrics")[1].decode(),
                             re.MULTILINE)[1])


# Reports that a round sends. bugsink is sent the first ones of those that Granary is sent: it takes
# as long for some hundred as Granary for some thousands, and CPU time is counted in hundredths of a
# second. Granary seals each 4,096.
COUNTS = {"5 KB": {FaultServer: 8192, Bugsink: 150}, "50 KB": {FaultServer: 4096, Bugsink: 60}}
# Of so many the bytes are measured, so that those of the groups count for little.
STORED = {"5 KB": {FaultServer: 16 * 4096, Bugsink: 150},
          "50 KB": {FaultServer: 2 * 4096, Bugsink: 60}}
READS = {FaultServer: 1000, Bugsink: 60}
SEARCHES = 10
# Those that a round sends before, and which do not count: bugsink loads its parts as they are used.
WARMING = 20
QUICK = 10  # times as few


class Connection:
    """Kept until the other side closes it. Nothing of http.client, which would take longer than
    the faster server."""

    def __init__(self, port):
        self.address = ("127.0.0.1", port)
        self.socket = None

    def exchange(self, request):
        """Status and body of the answer."""
        if not self.socket:
            self.socket = socket.create_connection(self.address, timeout=120)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(request)
        head, rest = self.until_blank_line()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        while len(rest) < length:
            rest += self.received()
        if b"connection: close" in head:
            self.close()
        return int(head.split(None, 2)[1]), rest

    def until_blank_line(self):
        found = b""
        while b"\r\n\r\n" not in found:
            found += self.received()
        head, rest = found.split(b"\r\n\r\n", 1)
        return head.lower() + b"\r\n", rest

    def received(self):
        found = self.socket.recv(1 << 20)
        if not found:
            raise ConnectionError("it closed a connection within an answer")
        return found

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None


def request(method, path, headers, body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}",
             *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def sending(server, body):
    """As Sentry's Python client does it."""
    return request("POST", f"/api/{server.project}/envelope/", {
        "User-Agent": "sentry.python.django/2.75.0", "Content-Encoding": "gzip",
        "Content-Type": "application/x-sentry-envelope",
        "X-Sentry-Auth": f"Sentry sentry_key={server.key}, sentry_version=7, "
                         "sentry_client=sentry.python.django/2.75.0"}, body)


def exchange_all(server, requests):
    """All of them, by a few connections; `requests` may be made as they are sent."""
    left, lock, refused = iter(requests), threading.Lock(), []

    def work():
        connection = Connection(server.port)
        while not refused:
            with lock:
                one = next(left, None)
            if one is None:
                break
            try:
                status, answer = connection.exchange(one)
            except OSError as error:
                status, answer = 0, str(error)
            if not 200 <= status < 300:
                refused.append(f"status {status}, {answer[:300]}")
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if refused:
        sys.exit(f"bench: {server.name} did not take a report: {refused[0]}")


def send(server, bodies):
    exchange_all(server, [sending(server, body) for body in bodies])


def send_paced(server, envelopes, rate, begun):
    """So many a second, whatever the answers take; begun[id]: when each was due."""
    lock, start, left = threading.Lock(), time.monotonic() + 0.1, iter(enumerate(envelopes))

    def work():
        connection = Connection(server.port)
        while True:
            with lock:
                i, (id_, _, body) = next(left, (None, (None, None, None)))
            if id_ is None:
                break
            begun[id_] = start + i / rate
            time.sleep(max(0, begun[id_] - time.monotonic()))
            status, answer = connection.exchange(sending(server, body))
            if status != 200:
                sys.exit(f"bench: {server.name} did not take a report: {answer[:300]}")
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def watch(server, count, ready, shown):
    """Reads the stream of reports as they come; shown[id]: when each was there."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(request("GET", "/oops/live", {}))
        for line in connection.makefile("rb"):
            if line.startswith(b"event: ready"):
                ready.set()
            elif line.startswith(b"event: missed"):
                sys.exit("bench: a viewer was not told of all reports")
            elif line.startswith(b'data: {"id":"'):
                shown[line.split(b'"', 4)[3].decode()] = time.monotonic()
                if len(shown) == count:
                    return


class Faults:
    def __init__(self, bench):
        self.bench = bench
        self.peers = [p for p in (Bugsink, FaultServer) if p.name in bench.options.servers]
        less = QUICK if bench.options.quick else 1
        self.counts = {size: {p: count[p] // less for p in self.peers}
                       for size, count in COUNTS.items()}
        self.group_count = len(GROUPS) // less
        self.begun = {}  # a peer's folder with one report of each group
        for peer in self.peers:
            bench.found.setdefault(peer.name, {})

    def generate(self):
        self.pick = pick = random.Random(11)
        self.events = events = {size: Events(7 + i, size) for i, size in enumerate(self.counts)}
        self.firsts = [events["5 KB"].envelope(group) for group in range(self.group_count)]
        pick.shuffle(self.firsts)
        self.warming = [events["5 KB"].envelope(pick.randrange(self.group_count))
                        for _ in range(WARMING)]
        self.sent = {size: [events[size].envelope(pick.randrange(self.group_count))
                            for _ in range(max(count.values()))]
                     for size, count in self.counts.items()}
        for size, envelopes in self.sent.items():
            print(f"  an event of {size}: {statistics.mean(e[1] for e in envelopes):,.0f} bytes, "
                  f"sent as {statistics.mean(len(e[2]) for e in envelopes):,.0f}")

    def load(self, server, envelopes):
        """Seconds until all are in, CPU seconds until it is quiet again."""
        expected = server.reports() + len(envelopes)
        cpu_s, begun = server.cpu_s(), time.monotonic()
        send(server, [body for _, _, body in envelopes])
        while server.reports() < expected:
            if time.monotonic() > begun + 300:
                sys.exit(f"bench: {server.name} has {server.reports()} of {expected} reports")
            time.sleep(0.2)
        seconds = time.monotonic() - begun
        server.wait_quiet()
        return seconds, server.cpu_s() - cpu_s

    def known_groups(self, peer):
        """Fills the folder with which each of its rounds begins."""
        server = peer(self.bench.work)
        server.wait_quiet()
        _, cpu_s = self.load(server, self.firsts)
        self.bench.note(peer, "first reports of groups per CPU-s", len(self.firsts) / cpu_s)
        if peer is Bugsink and server.groups() != self.group_count:
            sys.exit(f"bench: bugsink found {server.groups()} groups, not {self.group_count}")
        server.end()
        self.begun[peer] = tempfile.mkdtemp(prefix=peer.name + "-begun-", dir=self.bench.work)
        shutil.copytree(server.data, self.begun[peer], dirs_exist_ok=True)
        server.remove()

    def round(self, peer):
        note = self.bench.note
        server = peer(self.bench.work, begin_with=self.begun[peer])
        self.load(server, self.warming)
        for size, count in self.counts.items():
            envelopes = self.sent[size][:count[peer]]
            seconds, cpu_s = self.load(server, envelopes)
            note(peer, f"reports of {size} per CPU-s", len(envelopes) / cpu_s)
            if size == "5 KB":
                note(peer, "reports of 5 KB per s", len(envelopes) / seconds)
                note(peer, "RssAnon after reports", server.anon_bytes())
                self.read(peer, server)
                if peer is FaultServer:
                    self.search(server, envelopes)
                    self.live(server)
        server.stop()

    def stored(self, peer):
        """In a directory of its own for each size, from the empty one on. Once in a run, since it
        takes minutes."""
        begun = []
        for size, count in STORED.items():
            server = peer(self.bench.work)
            server.wait_quiet()
            begun.append((server, size, count[peer], server.report_bytes()))
            self.load(server, [self.events[size].envelope(self.pick.randrange(self.group_count))
                               for _ in range(count[peer])])
        for server, size, count, before in begun:
            if peer is FaultServer:
                server.wait_sealed()
            self.bench.note(peer, f"bytes a report of {size}",
                            (server.report_bytes() - before) / count)
            server.end()
            server.remove()

    def live(self, server):
        """At half of the rate that is to be taken at least."""
        envelopes = [self.events["5 KB"].envelope(self.pick.randrange(self.group_count))
                     for _ in range(LIVE_RATE * (2 if self.bench.options.quick else 10))]
        ready, begun, shown = threading.Event(), {}, {}
        viewer = threading.Thread(target=watch, args=(server, len(envelopes), ready, shown))
        viewer.start()
        ready.wait()
        send_paced(server, envelopes, LIVE_RATE, begun)
        viewer.join()
        took = sorted(1000 * (shown[id_] - begun[id_]) for id_ in begun)
        self.bench.note(FaultServer, "sent to shown live, p50 ms", statistics.median(took))
        self.bench.note(FaultServer, "sent to shown live, p99 ms", took[len(took) * 99 // 100])

    def search(self, server, envelopes):
        """For a word of the first report that was sent: all others are looked at before it. bugsink
        has no search in texts."""
        cpu_s = server.cpu_s()
        for _ in range(SEARCHES):
            found = json.loads(server.get(f"/oops?q={envelopes[0][0]}")[1])
            if len(found["reports"]) != 1 or "token" in found:
                sys.exit(f"bench: a search for one report found {found}")
        self.bench.note(FaultServer, "reports searched per CPU-s",
                        SEARCHES * server.reports() / (server.cpu_s() - cpu_s))

    def read(self, peer, server):
        """One connection, which bugsink closes after each answer."""
        ids = [id_ for id_, _, _ in self.sent["5 KB"][:min(self.counts["5 KB"].values())]]
        random.Random(13).shuffle(ids)
        asked = [ids[i % len(ids)] for i in range(READS[peer])]
        self.bench.note(peer, "a report by its id, p50 ms", self.p50_ms(
            server, [(server.report_path(id_), id_.encode()) for id_ in asked]))
        self.bench.note(peer, "a day, p50 ms", self.p50_ms(
            server, [(server.day_path(), server.day_told)] * READS[peer]))

    @staticmethod
    def p50_ms(server, questions):
        """Of paths, and what their answers must have in them."""
        connection, took = Connection(server.port), []
        for path, told in questions:
            asked = request("GET", path, server.asking)
            begun = time.perf_counter()
            status, body = connection.exchange(asked)
            took.append(time.perf_counter() - begun)
            if status != 200 or told not in body.replace(b"-", b""):  # of ids, as some write them
                sys.exit(f"bench: {server.name} answered {path} with {status}: {body[:300]}")
        connection.close()
        return 1000 * statistics.median(took)

    def run(self):
        if Bugsink in self.peers:
            Bugsink.install()
        self.generate()
        try:
            print(f"{self.group_count:,} groups, each of them new")
            for peer in self.peers:
                self.known_groups(peer)
            for peer in self.peers if not self.bench.options.quick else []:
                print(f"bytes of reports, {peer.name}")
                self.stored(peer)
            for round_ in range(self.bench.options.rounds):
                print(f"fault reports, round {round_ + 1} of {self.bench.options.rounds}")
                for peer in self.peers:
                    self.round(peer)
        finally:
            for folder in self.begun.values():
                shutil.rmtree(folder, ignore_errors=True)
            for server in list(Server.running):
                server.stop()
