"""What the server says of its memory, against what can be worked out from what was sent, and
against what the kernel says; and that it ends to grow while everything comes and goes."""

import itertools
import json
import random
import socket
import statistics
import struct
import time

from server import eventually, long_run, running

import pytest

pytestmark = pytest.mark.not_sanitized("measures memory")

FEW, MANY, POINTS = 4000, 24000, 5
START_NS = 1767225600 * 10**9
PARTS = ["heads", "keyCache", "tagIndexes", "registry", "journalList", "groupLists",
         "samplesInFlight", "counters", "requests", "kept"]
# malloc rounds to 16 bytes and keeps 8 of its own; a head is two allocations.
MALLOC_BYTES = 2 * (8 + 15)
# Pages that threads and LMDB touch for the first time during the second load: no part of ours, and
# no function of what was sent.
FIRST_TOUCHED_BYTES = 1 << 20


def memory(server):
    return server.get("/api/stats").json["memory"]


def load(server, first, end):
    for part in range(first, end, 1000):
        lines = [f"m,host=h{host} a=1i,b=2i,c=3i,d=4i {START_NS + point * 10**10}"
                 for host in range(part, part + 1000) for point in range(POINTS)]
        assert server.write("\n".join(lines)).status == 204
    return memory(server)


def unaccounted(said):
    return said["anonymous"] - said["parts"]


def test_memory_is_counted_by_part(server):
    before = memory(server)
    few = load(server, 0, FEW)
    many = load(server, FEW, MANY)
    rows, hosts = (MANY - FEW) * POINTS, MANY - FEW

    # A row in memory is at least its time and its values, of a byte each; at most what four doubles
    # with a type each would take, twice over since room for it grows by doubling. A head beside it
    # is 120 bytes, and two allocations.
    heads = many["heads"] - few["heads"]
    assert rows * (8 + 4) < heads < rows * 2 * (8 + 4 * 9) + hosts * 250
    # 32 bytes a key, in segments that are at least a third full.
    assert 32 * MANY <= many["keyCache"] <= 3 * 32 * MANY + before["keyCache"]
    assert many["samplesInFlight"] == 0

    assert many["parts"] == sum(many[part] for part in PARTS)
    # A program's stacks, buffers and LMDB's pages are no parts, and what they take is not known
    # here; but it does not grow with the number of series. So beside twenty thousand more of them
    # all that grows is in some part, but for what malloc adds; and in no more than one, since then
    # the parts would grow by more than the kernel gave. (What the key cache has reserved, the
    # kernel has not given yet.)
    grown = unaccounted(many) - unaccounted(few)
    assert -many["keyCache"] < grown < hosts * MALLOC_BYTES + FIRST_TOUCHED_BYTES
    assert heads > hosts * MALLOC_BYTES + FIRST_TOUCHED_BYTES  # else this would show nothing
    assert many["perSeries"] == many["anonymous"] / (4 * MANY)


def test_metrics_and_stats_say_the_same(server):
    said = load(server, 0, 1000)
    assert server.metric("granary_store_head_bytes") == said["heads"] > 0
    assert server.metric("granary_ingest_cache_bytes") == said["keyCache"] > 0
    # These change while the writer works.
    assert server.metric("granary_store_registry_memory_bytes") > 0
    assert server.metric("granary_store_journal_list_bytes") > 0


def test_memory_of_sealed_heads_goes_back_to_the_system(make_server):
    server = make_server(options=["--store.journal_max_age=20s"])
    with running(server):
        full = load(server, 0, 3 * MANY)
        assert full["heads"] > 16 << 20
        # All are sealed; their directory stays.
        eventually(lambda: memory(server)["heads"] < 4 << 20, lambda: memory(server))
        # They lay all over the heaps, between what stays.
        most = full["anonymous"] - full["heads"] * 3 // 4
        eventually(lambda: memory(server)["anonymous"] < most, lambda: memory(server))


# ---- Churn

# Caches that are soon full and heads that are soon sealed: what is bounded has reached its bound
# after a few rounds.
SMALL = ["--log.level=warn", "--store.journal_max=1M", "--store.journal_max_age=1s",
         "--ingest.cache_max=1M", "--catalog.index_max=1M", "--queue.messages_max=1000",
         "--persist.derive_every=1s", "--persist.counters_max=1000"]
SERIES, METRICS, DEVICES, POLLS, LIVES = 250, 5, 2, 3, 3
WARM_ROUNDS, ROUNDS = (600, 4000) if long_run() else (40, 100)
# What a request may leave: no more than the smallest allocation takes. A round has as many requests
# as it takes for that to be more than what samples of memory differ by.
CHEAP = 1200
# In seconds the heaps of threads grow by some pages still.
LEFT_MAX_BYTES = 16 if long_run() else 32
# Four bytes for its next number, two for its columns, four in a list that grows by doubling, and a
# range of 16 for the handles that were forgotten, in leaves that are half full at least; the first
# two for 4,096 shapes at once. A series that was remembered would take 8 of its own.
SHAPE_BYTES, SHAPES_AT_ONCE_BYTES = 4 + 2 + 8 + 2 * 16, 4096 * (4 + 2) + 8192
# Of some 70 bytes for each group that waits to be settled, in a table that grows by doubling. How
# many wait depends on how fast rounds go: of 600 rounds they have taken 1 MB, and would take 8 MB
# of all of the long form.
LISTED_AT_ONCE_BYTES = (2 << 20) if long_run() else (512 << 10)
ASKED = [
    "/", "/style.css", "/metrics", "/-/ready", "/nosuch", "/api/stats", "/api/version",
    "/api/metadata/tenants", "/api/metadata/metricNames", "/api/metadata/tagKeys?metricName=m",
    "/api/metadata/tagValues?metricName=m&tagKey=h", "/api/metadata/series?metricName=m",
    "/api/suggest?type=metrics&q=m", "/api/search/lookup?m=m", "/api/query/last?timeseries=m",
    "/api/query?metricName=m&start=1h-ago", "/api/query?metricName=m&start=1h-ago&format=csv",
    "/api/query?metricName=m&start=1h-ago&fn=avg&window=1m&agg=sum&by=g",
    "/api/query?start=1h-ago&m=sum:1m-avg:m_w", "/api/query?metricName=m",
    "/api/devices", "/api/devices/nosuch", "/api/oidsets", "/api/interfaces", "/api/rollups",
    "/api/retention", "/api/queues", "/api/pollers", "/api/agents", "/health",
    "/query?q=SHOW%20DATABASES", "/v2/device/", "/v2/interface/", "/v2/oidset/",
    "/v2/inventory/", "/v2/outlet/",
    "/v2/report/top?endpoint=in&by=max&n=10",
]
AS_JSON = {"Content-Type": "application/json"}


class Churn:
    """Rounds in each of which as much comes as goes: what came in one leaves LIVES rounds later."""

    def __init__(self, server):
        self.server, self.random, self.requests = server, random.Random(6), 0

    def ask(self, method, path, *arguments, **params):
        self.requests += 1
        return self.server.request(method, path, *arguments, **params)

    def change(self, *arguments, **params):
        answer = self.ask(*arguments, **params)
        assert answer.status in (200, 201, 204), (arguments, params, answer)

    def plain(self, path):
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\n\r\n".encode()

    def leave(self, path):
        """Asks and closes by RST: at once, or with the answer begun."""
        self.requests += 1
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as sock:
            sock.sendall(self.plain(path))
            if self.random.random() < 0.5:
                sock.recv(64)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def ask_many(self):
        """On one connection, one after the other without a wait."""
        self.requests += CHEAP
        requests = self.plain("/api/metadata/tenants") * CHEAP
        answers = b""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=60) as sock:
            sock.sendall(requests)
            while answers.count(b"HTTP/1.1 200 ") < CHEAP:
                piece = sock.recv(1 << 16)
                assert piece, answers[-400:]
                answers += piece

    def come(self, n, now):
        lines = [f"m,h=h{i},g=g{n} value={n}i,w={i}i {now}000000000" for i in range(SERIES)]
        lines += [f"n{n}_{i},h=a value={n}i {now}000000000" for i in range(METRICS)]
        self.change("POST", "/write", "\n".join(lines))
        for i in range(DEVICES):
            device = {"name": f"d{n}_{i}", "address": "127.0.0.1:9", "credentials": "lab",
                      "oidsets": ["FastPollHC"], "active": False}
            self.change("POST", "/api/devices", json.dumps(device), AS_JSON)
        polls = [{"oidset_name": "FastPollHC", "device_name": f"d{n}_{i}", "metadata": {},
                  "oid_name": "ifHCInOctets", "timestamp": now - 300 + poll * 30,
                  "data": [[["ifHCInOctets", f"xe-{row}"], poll] for row in range(10)]}
                 for i in range(DEVICES) for poll in range(POLLS)]
        self.change("POST", "/api/polls", json.dumps(polls), AS_JSON)

    def go(self, n):
        for metric in ["m", "m_w"]:
            self.change("POST", "/api/delete", metricName=metric, tag=f"g=g{n}", all="true")
        for i in range(METRICS):
            self.change("POST", "/api/delete", metricName=f"n{n}_{i}", all="true")
        for i in range(DEVICES):
            self.change("DELETE", f"/api/devices/d{n}_{i}", withData="true")

    def round(self, n):
        self.come(n, int(time.time()))
        for path in ASKED:
            self.ask("GET", path)
            self.leave(path)
        self.ask_many()
        if n >= LIVES:
            self.go(n - LIVES)


def slope(points):
    """Theil and Sen: the median of the slopes of all pairs, which a few odd points do not move."""
    return statistics.median((y2 - y1) / (x2 - x1)
                             for (x1, y1), (x2, y2) in itertools.combinations(points, 2))


def anonymous(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("RssAnon:"))


def in_use(server):
    """Without what malloc has back and keeps, which goes up and down by megabytes."""
    return anonymous(server) - memory(server)["kept"]


def show(server, when, requests):
    parts = ", ".join(f"{name} {size / 1e6:.2f}" for name, size in memory(server).items()
                      if name != "perSeries")
    print(f"{when}: {requests} requests, {anonymous(server) / 1e6:.2f} MB: {parts}")
    return memory(server)


def test_memory_does_not_grow_while_everything_comes_and_goes(make_server, tmp_path):
    secrets = tmp_path / "secrets.yml"
    secrets.write_text("lab: {version: 2c, community: public}\n")
    secrets.chmod(0o600)
    server = make_server(options=SMALL, config=f"snmp:\n  secrets_file: {secrets}\n")
    with running(server):
        churn, points, part = Churn(server), [], ROUNDS // 100
        show(server, "at the start", 0)
        for n in range(WARM_ROUNDS):
            churn.round(n)
        warm = show(server, "warm", churn.requests)
        for n in range(WARM_ROUNDS, WARM_ROUNDS + ROUNDS):
            churn.round(n)
            if n % part == 0:
                points.append((churn.requests, in_use(server)))
        end = show(server, "at the end", churn.requests)
        # Each new metric is a shape, which is known until the next start; series are not.
        grown = end["registry"] - warm["registry"]
        assert grown <= ROUNDS * METRICS * SHAPE_BYTES + SHAPES_AT_ONCE_BYTES
        assert end["groupLists"] <= LISTED_AT_ONCE_BYTES
        assert server.metric("granary_store_series") <= 2 * LIVES * (2 * SERIES + METRICS + 20)
        left = slope(points)
        print(f"{left:.1f} bytes a request; samples in MB: "
              + " ".join(f"{size / 1e6:.2f}" for _, size in points))
        assert left < LEFT_MAX_BYTES
