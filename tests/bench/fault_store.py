"""What a store of very many fault reports costs: searches of a million; memory and the start of ten
million with 100,000 groups."""

import json
import random
import statistics
import sys
import time

from fault_events import GROUPS, Events
from faults import FaultServer, exchange_all, request

SEARCHED, KEPT = 1_000_000, 10_000_000
KEPT_GROUPS = 100_000
SEARCHES = 25
AT_ONCE = 500  # small reports of one request
# An event is rendered once for each group. Then these texts in it are replaced, each by one that is
# as long.
ID, RARE, ONE, OTHER = b"0" * 31 + b"x", b"rare00000000", b"ones00", b"twos00"
PARTS_OF = 100  # one of so many reports has a word


class FaultStore:
    def __init__(self, bench):
        self.bench = bench
        self.less = 200 if bench.options.quick else 1

    def note(self, key, value):
        self.bench.note(FaultServer, key, value)

    # ---- A million, which are searched ---------------------------------------------------------

    def events(self, server, count, pick):
        """Requests of events of 5 KB, each with a word of its own and two that 1 % have."""
        events, rendered = Events(7, "5 KB"), []
        for group in range(len(GROUPS)):
            event = events.event(group)
            event["event_id"] = ID.decode()
            event["extra"] = {"words": b" ".join([RARE, ONE, OTHER]).decode()}
            payload = json.dumps(event, separators=(",", ":")).encode()
            head = json.dumps({"event_id": ID.decode()}).encode()
            item = json.dumps({"type": "event", "length": len(payload)}).encode()
            rendered.append(b"\n".join([head, item, payload, b""]))
        headers = {"Content-Type": "application/x-sentry-envelope",
                   "X-Sentry-Auth": f"Sentry sentry_key={server.key}, sentry_version=7"}
        for number in range(count):
            body = rendered[pick.randrange(len(GROUPS))]
            for text, by in ((ID, b"%032x" % number), (RARE, b"rare%08d" % number),
                             (ONE, b"ones%02d" % pick.randrange(PARTS_OF)),
                             (OTHER, b"twos%02d" % pick.randrange(PARTS_OF))):
                body = body.replace(text, by)
            yield request("POST", f"/api/{server.project}/envelope/", headers, body)

    def searches(self, server, key, queries, expected):
        took = []
        for query in queries:
            begun = time.perf_counter()
            found = json.loads(server.get(f"/oops?limit=1000&q={query}")[1])
            took.append(1000 * (time.perf_counter() - begun))
            if not expected(len(found["reports"])) or "token" in found or "reached" in found:
                sys.exit(f"bench: a search for {query} found {len(found['reports'])} reports")
        self.note(key, statistics.median(took))

    def searched(self):
        count, pick = SEARCHED // self.less, random.Random(3)
        server = FaultServer(self.bench.work)
        begun = time.monotonic()
        exchange_all(server, self.events(server, count, pick))
        print(f"  {count:,} events of 5 KB in {time.monotonic() - begun:.0f} s")
        server.wait_quiet()
        if not self.less > 1:
            server.wait_sealed()
        self.searches(server, "search, a word of one report, p50 ms",
                      [f"rare{pick.randrange(count):08}" for _ in range(SEARCHES)],
                      lambda found: found == 1)
        # About one of 10,000 has both.
        most = count / PARTS_OF**2 * 2 + 20
        self.searches(server, "search, two words of 1 %, p50 ms",
                      [f"ones{pick.randrange(PARTS_OF):02}+twos{pick.randrange(PARTS_OF):02}"
                       for _ in range(SEARCHES)],
                      lambda found: found <= most)
        self.groups(server)
        server.stop()

    def groups(self, server):
        listed = json.loads(server.get("/oops/groups?limit=100")[1])["groups"]
        took = []
        for group in listed:
            begun = time.perf_counter()
            status, _ = server.get(f"/oops/groups/{group['group']}")
            took.append(1000 * (time.perf_counter() - begun))
            if status != 200:
                sys.exit(f"bench: group {group['group']} was answered with {status}")
        self.note("a group, p50 ms", statistics.median(took))

    # ---- Ten million, which are there ----------------------------------------------------------

    @staticmethod
    def small(count, group_count, pick):
        for first in range(0, count, AT_ONCE):
            reports = []
            for number in range(first, min(first + AT_ONCE, count)):
                group = number if number < group_count else pick.randrange(group_count)
                reports.append({"id": f"OOPS-{number:09}", "exception": f"E{group % 50}",
                                "context": f"/{group % 200}", "fingerprint": [f"fault {group}"],
                                "username": f"user{pick.randrange(5000)}",
                                "duration": pick.randrange(1000), "release": "1.0"})
            yield request("POST", "/oops", {"Content-Type": "application/json"},
                          json.dumps(reports).encode())

    def kept(self):
        count, group_count = KEPT // self.less, KEPT_GROUPS // self.less
        server = FaultServer(self.bench.work)
        begun = time.monotonic()
        exchange_all(server, self.small(count, group_count, random.Random(4)))
        print(f"  {count:,} small reports in {time.monotonic() - begun:.0f} s")
        server.wait_quiet(300)
        if server.reports() != count:
            sys.exit(f"bench: {server.reports()} of {count} reports are there")
        self.note("RssAnon with 10 M reports", server.anon_bytes())
        for _ in range(3):
            server.kill()
            self.note("ready with 10 M reports, s", server.restart())
            begun = time.monotonic()
            if server.reports() != count:
                sys.exit(f"bench: {server.reports()} of {count} reports are there after a kill")
            self.note("ready and counted with 10 M reports, s",
                      time.monotonic() - begun + self.bench.found[FaultServer.name]
                      ["ready with 10 M reports, s"][-1])
        server.wait_quiet(300)
        self.note("RssAnon with 10 M reports, begun again", server.anon_bytes())
        server.stop()

    def run(self):
        self.bench.found.setdefault(FaultServer.name, {})
        self.kept()
        self.searched()
