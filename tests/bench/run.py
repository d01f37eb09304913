"""Measures Granary beside its peers (Debian's VictoriaMetrics and net-snmp, PyPI's bugsink), in one
run, on one machine, with the same data.

What is compared is CPU seconds of the servers (user and system, of all threads, from the
process table): wall time says little where loader and server share two cores. Memory is anonymous
resident memory, disk is pages in use with the length of the files beside it. Rounds alternate
between the two servers and the median counts.

    ./bench            the whole table, written to doc/benchmarks.md
    ./bench --quick    a small size, nothing written
    ./bench --parts steady,queries
    ./bench --parts polling,fleet --servers granary --update
    ./bench --parts faults --update

Plain Python without packages, but that bugsink has an environment of its own; the loader, the
querier and the generator of samples are C (tests/bench).
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from backups import Backups
from fault_store import FaultStore
from faults import Faults
from page import keep_rounds, tables, write_page
from polling import Polling
from rollups import Rollups
from servers import FIELDS, INTERVAL_S, ROOT, START_S, Granary, Server, Victoria
from streams import Streams
from wires import Wires

PARTS = ["steady", "series", "queries", "carry", "tls", "backup", "restart", "churn", "polling",
         "fleet", "rollups", "faults", "reports", "streams"]
QUERY_HOURS = 12
SCAN_WINDOWS = [(3600, "scan"), (300, "scan by 5 min")]
# Odd, so that the median is one of them. A pass of the scan takes the faster server a few hundred
# milliseconds, of which the process table counts hundredths of a second.
QUERY_ROUNDS = 9
SCAN_PASSES = 3
RESTART_SAMPLES = 10_000_000


class Bench:
    def __init__(self, options):
        self.options = options
        self.work = options.work or tempfile.mkdtemp(prefix="granary-bench-")
        os.makedirs(self.work, exist_ok=True)
        self.peers = [p for p in (Victoria, Granary) if p.name in options.servers]
        self.found = {peer.name: {} for peer in self.peers}
        self.kept = {}  # of `found`, what an earlier run measured: its date and commit

    def tool(self, name, *arguments, **keywords):
        command = [os.path.join(self.options.build, "tests", "bench", name), *map(str, arguments)]
        return subprocess.run(command, check=True, **keywords)

    def found_by(self, name, *arguments, **keywords):
        return json.loads(self.tool(name, *arguments, stdout=subprocess.PIPE, **keywords).stdout)

    def generate(self, hosts, points, start_s=START_S):
        path = os.path.join(self.work, f"{hosts}x{points}-{start_s}.lp")
        if not os.path.exists(path):
            with open(path + ".new", "wb") as file:
                self.tool("tsbs_gen", "--hosts", hosts, "--points", points, "--seed", 123,
                          "--start", start_s, stdout=file)
            os.rename(path + ".new", path)
        return path

    def load(self, server, path):
        """Sends the file; gives the loader's findings with CPU at its end and when all is quiet."""
        before = server.cpu_s()
        answer = self.tool("loader", "--port", server.port, "--connections", 2, path,
                           stdout=subprocess.PIPE)
        found = json.loads(answer.stdout)
        found["cpu_at_answer_s"] = server.cpu_s() - before
        found["anon_bytes"] = server.anon_bytes()
        server.wait_quiet()
        found["cpu_s"] = server.cpu_s() - before
        return found

    def ask(self, server, paths, count, connections=1, group=1):
        """`count` queries, each of `group` of the paths, which are asked in turn; what the querier
        found."""
        answer = self.tool("querier", "--port", server.port, "--count", count, "--connections",
                           connections, "--group", group, stdout=subprocess.PIPE,
                           input="\n".join(paths).encode())
        return json.loads(answer.stdout)

    def note(self, peer, key, value):
        self.found.setdefault(peer.name, {}).setdefault(key, []).append(value)
        print(f"  {peer.name:17} {key:34} {value:,.4g}", flush=True)

    # ---- ingest --------------------------------------------------------------------------------

    def steady(self, path, last):
        for peer in self.peers:
            server = peer(self.work)
            before = server.cpu_s()
            found = self.load(server, path)
            self.note(peer, "samples per CPU-s", found["samples"] / found["cpu_s"])
            self.note(peer, "at last answer", found["samples"] / found["cpu_at_answer_s"])
            self.note(peer, "samples per wall s", found["samples"] / found["seconds"])
            self.note(peer, "RssAnon after ingest", found["anon_bytes"])
            if last:
                self.settled(peer, server, found["samples"], before)
            server.stop()

    def settled(self, peer, server, samples, cpu_before):
        server.settle()
        if server.samples() != samples:
            sys.exit(f"bench: {peer.name} holds {server.samples()} of {samples} samples")
        self.note(peer, "with settling", samples / (server.cpu_s() - cpu_before))
        used, length = server.disk()
        self.note(peer, "bytes per sample", used / samples)
        self.note(peer, "bytes per sample, file", length / samples)

    def new_series(self, hosts):
        """Ten points of each of very many series that are new, then ten more of the same."""
        series, more_s = hosts * len(FIELDS), 10 * INTERVAL_S
        first, second = self.generate(hosts, 10), self.generate(hosts, 10, START_S + more_s)
        for peer in self.peers:
            server = peer(self.work)
            anon = server.anon_bytes()
            found = self.load(server, first)
            steady = self.median(peer.name, "samples per CPU-s")
            samples_s = found["samples"] / steady if steady else 0
            self.note(peer, "CPU-s of the new series", found["cpu_s"])
            self.note(peer, "new series per CPU-s", series / max(found["cpu_s"] - samples_s, 0.01))
            self.note(peer, "memory per series", (found["anon_bytes"] - anon) / series)
            self.note(peer, "memory per series, quiet", (server.anon_bytes() - anon) / series)
            self.note(peer, "samples per CPU-s, 1 M new", found["samples"] / found["cpu_s"])
            found = self.load(server, second)
            self.note(peer, "samples per CPU-s, 1 M active", found["samples"] / found["cpu_s"])
            server.stop()

    # ---- queries -------------------------------------------------------------------------------

    def queries(self, path, hosts):
        """Of the same data, once it has settled. Both servers are up, and each question goes to one
        and at once to the other: what the machine does meanwhile, it does to both."""
        hours = self.options.query_hours
        servers = []
        for peer in self.peers:
            server = peer(self.work)
            self.load(server, path)
            server.settle()
            self.check(server, server.one_series(0, FIELDS[0], START_S, START_S + 3600), 360)
            servers.append(server)
        self.single(servers, hosts, hours)
        self.grouped(servers, hosts, hours, START_S + hours * 3600)
        self.scan(servers, hosts, START_S + hours * 3600)
        for server in servers:
            server.stop()

    @staticmethod
    def check(server, path, expected):
        """That the answer is the one that was asked for, before its speed means anything."""
        status, body = server.get(path)
        points = server.query_points(body) if status == 200 else -1
        if points != expected:
            sys.exit(f"bench: {server.name} gave {points} points, not {expected}, status {status}: "
                     f"{path} {body[:300]}")

    def single(self, servers, hosts, hours):
        pick = random.Random(7)
        asked = []
        for _ in range(1000):
            begin_s = START_S + 3600 * pick.randrange(hours)
            asked.append((pick.randrange(hosts), pick.choice(FIELDS), begin_s, begin_s + 3600))
        for _ in range(QUERY_ROUNDS):
            for server in servers:
                paths = [server.one_series(*question) for question in asked]
                self.note(server, "query p50 ms", self.ask(server, paths, 2000)["p50_ms"])
                before = server.cpu_s()
                found = self.ask(server, paths, 5000, 8)
                self.note(server, "queries per s at 8", found["qps"])
                per_cpu_s = 5000 / (server.cpu_s() - before)
                self.note(server, "queries per CPU-s at 8", per_cpu_s)
                if isinstance(server, Granary):
                    self.token(server, per_cpu_s)

    def token(self, server, queries_per_cpu_s):
        check_ns = self.found_by("auth_bench")["token_ns"]
        self.note(server, "check of a token, ns", check_ns)
        self.note(server, "check of a token, % of a query", check_ns / 1e7 * queries_per_cpu_s)

    def grouped(self, servers, hosts, hours, end_s):
        for server in servers:
            self.check(server, server.max_by_hour(FIELDS[:1], START_S, end_s)[0], hosts * hours)
            self.check(server, server.last_points(FIELDS[0], end_s), hosts)
        for _ in range(QUERY_ROUNDS):
            for server in servers:
                one = server.max_by_hour(FIELDS[:1], START_S, end_s)
                ten = server.max_by_hour(FIELDS, START_S, end_s)
                last = [server.last_points(FIELDS[0], end_s)]
                self.note(server, "max by 1 h, ms", self.ask(server, one, 10)["p50_ms"])
                self.note(server, "max by 1 h, ten fields, ms",
                          self.ask(server, ten, 3, group=len(ten))["p50_ms"])
                self.note(server, "last points, ms", self.ask(server, last, 20)["p50_ms"])

    def scan(self, servers, hosts, end_s):
        """Maxima over all hosts, one field after the other: every sample is decoded, and the
        answer is short."""
        samples = hosts * (end_s - START_S) // INTERVAL_S
        for window_s, name in SCAN_WINDOWS:
            for server in servers:
                path = server.scan(FIELDS[0], START_S, end_s, window_s)
                self.check(server, path, (end_s - START_S) // window_s)
                if isinstance(server, Granary) and not self.options.quick:
                    self.check_decoded(server, path, samples)
            for _ in range(QUERY_ROUNDS):
                for server in servers:
                    paths = [server.scan(f, START_S, end_s, window_s) for f in FIELDS]
                    before = server.cpu_s()
                    found = self.ask(server, paths, SCAN_PASSES * len(paths))
                    asked = samples * len(paths) * SCAN_PASSES
                    self.note(server, name + ", samples per CPU-s",
                              asked / (server.cpu_s() - before))
                    self.note(server, name + ", samples per s", asked / found["seconds"])

    @staticmethod
    def check_decoded(server, path, samples):
        """That the heads of the blocks did not answer it."""
        _, body = server.get(path + "&explain=1")
        decoded = json.loads(body)["explain"]["samplesDecoded"]
        if decoded < 0.99 * samples:
            sys.exit(f"bench: {decoded} of {samples} samples were decoded: no full scan")

    # ---- in and out ----------------------------------------------------------------------------

    def carry(self, path):
        """All samples out, by each server's own export, and in from a file, beside the loader."""
        for peer in self.peers:
            server = peer(self.work)
            found = self.load(server, path)
            for _ in range(3):
                before = server.cpu_s()
                server.export_all()
                self.note(peer, "export, samples per CPU-s",
                          found["samples"] / (server.cpu_s() - before))
            server.stop()
            if peer is Granary:
                self.import_beside(path, found["samples"] / found["seconds"])

    def import_beside(self, path, loaded_per_s):
        server = Granary(self.work)
        begun = time.monotonic()
        subprocess.run([Granary.binary, "import", "--server", f"http://127.0.0.1:{server.port}",
                        path], check=True, stderr=subprocess.DEVNULL)
        seconds = time.monotonic() - begun
        server.wait_quiet()
        self.note(Granary, "import, % of the loader's rate",
                  100 * server.samples() / seconds / loaded_per_s)
        server.stop()

    def backup(self, path):
        def load(server):
            found = self.load(server, path)
            return found["samples"] / found["seconds"]
        backups = Backups(self.work, lambda key, value: self.note(Granary, key, value))
        megabytes = 100 if self.options.quick else 1000
        backups.copies(megabytes)
        backups.beside_load(megabytes, load)

    # ---- Granary alone -------------------------------------------------------------------------

    def restart(self):
        """kill -9 with all samples in the journal: many series with few points each, since long
        heads are sealed as they come."""
        samples = RESTART_SAMPLES if not self.options.quick else RESTART_SAMPLES // 20
        path = self.generate(samples // 500, 50)
        for _ in range(self.options.rounds):
            server = Granary(self.work, ["--store.journal_max=4G", "--store.head_max=4G"])
            self.load(server, path)
            server.kill()
            self.note(Granary, "restart, s", server.restart())
            if server.metric("granary_store_replayed_samples_total") != samples:
                sys.exit(f"bench: not all of {samples} samples were in the journal")
            server.stop()

    def churn(self):
        gigabytes, rounds = (30, 9) if not self.options.quick else (1, 1)
        data = tempfile.mkdtemp(prefix="churn-", dir=self.work)
        answer = self.tool("churn", "--gigabytes", gigabytes, "--rounds", rounds, "--data", data,
                           stdout=subprocess.PIPE)
        found = json.loads(answer.stdout.splitlines()[-1])
        shutil.rmtree(data)
        for ratio in found["ratios"]:
            self.note(Granary, "commit rate after churn, %", 100 * ratio)
        self.note(Granary, "file after churn", found["file_bytes"])
        self.note(Granary, "file before churn", found["file_bytes_day_5"])

    def run(self):
        o = self.options
        if "steady" in o.parts:
            path = self.generate(o.hosts, o.points)
            for round_ in range(o.rounds):
                print(f"{o.hosts} hosts x {o.points} points, round {round_ + 1} of {o.rounds}")
                self.steady(path, round_ == o.rounds - 1)
        if "series" in o.parts:
            print(f"{o.churn_hosts * len(FIELDS):,} new series")
            self.new_series(o.churn_hosts)
        if "queries" in o.parts:
            print(f"queries of {o.hosts} hosts x {o.query_hours} h")
            points = o.query_hours * 3600 // INTERVAL_S
            self.queries(self.generate(o.hosts, points), o.hosts)
        if "carry" in o.parts:
            print("export and import")
            for _ in range(o.rounds):
                self.carry(self.generate(o.hosts, o.points))
        if "tls" in o.parts and Granary in self.peers:
            print("TLS")
            Wires(self).run(self.generate(o.hosts, o.points), o.hosts)
        if "backup" in o.parts and Granary in self.peers:
            print("backups")
            for _ in range(o.rounds):
                self.backup(self.generate(o.hosts, o.points))
        if "restart" in o.parts and Granary in self.peers:
            print("restart with a full journal")
            self.restart()
        if "churn" in o.parts and Granary in self.peers:
            print("churn")
            self.churn()
        if {"polling", "fleet"} & set(o.parts) and Granary in self.peers:
            Polling(self).run(o.parts)
        if "rollups" in o.parts and Granary in self.peers:
            Rollups(self).run()
        if "faults" in o.parts and Granary in self.peers:
            Faults(self).run()
        if "reports" in o.parts and Granary in self.peers:
            FaultStore(self).run()
        if "streams" in o.parts and Granary in self.peers:
            Streams(self).run()

    def close(self):
        for server in list(Server.running):
            server.stop()
        if not self.options.keep:
            for name in os.listdir(self.work):
                if name.endswith(".lp"):
                    os.remove(os.path.join(self.work, name))
            if not self.options.work:
                shutil.rmtree(self.work, ignore_errors=True)

    def median(self, name, key):
        values = self.found.get(name, {}).get(key)
        return statistics.median(values) if values else None

    def ratio(self, key, peer):
        """Granary's values by its peer's: of each round, and of these the median."""
        ours, theirs = (self.found.get(name, {}).get(key, ()) for name in (Granary.name, peer))
        if not ours or len(ours) != len(theirs):
            return None
        return statistics.median(a / b for a, b in zip(ours, theirs))


def parse():
    parser = argparse.ArgumentParser(
        prog="./bench", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small size; writes nothing")
    parser.add_argument("--parts", default=",".join(PARTS), help="of " + ", ".join(PARTS)
                        + "; the page is written only with all of them")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="build directory")
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--points", type=int)
    parser.add_argument("--churn-hosts", type=int)
    parser.add_argument("--query-hours", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--servers", default="victoria-metrics,bugsink,granary")
    parser.add_argument("--work", help="directory for data; a temporary one by default")
    parser.add_argument("--keep", action="store_true", help="keep the generated files")
    parser.add_argument("--update", action="store_true", help="write the page, with what it has of "
                        "the parts that are not measured now")
    parser.add_argument("--output", help="page to write; doc/benchmarks.md by default")
    options = parser.parse_args()
    size = (200, 720, 5000, 2, 1) if options.quick else (1000, 2160, 100000, QUERY_HOURS, 3)
    for key, value in zip(("hosts", "points", "churn_hosts", "query_hours", "rounds"), size):
        if getattr(options, key) is None:
            setattr(options, key, value)
    options.parts = options.parts.split(",")
    if set(options.parts) - set(PARTS):
        parser.error(f"--parts: {', '.join(sorted(set(options.parts) - set(PARTS)))}: not one of "
                     f"{', '.join(PARTS)}")
    if not options.output and (options.update or
                               not options.quick and set(options.parts) == set(PARTS)):
        options.output = os.path.join(ROOT, "doc", "benchmarks.md")
    return options


def main():
    options = parse()
    Granary.binary = os.path.join(options.build, "granary")
    if "victoria-metrics" in options.servers and not shutil.which("victoria-metrics"):
        sys.exit("bench: victoria-metrics is missing; apt-get install victoria-metrics")
    bench = Bench(options)
    try:
        bench.run()
    finally:
        bench.close()
    print()
    print(tables(bench))
    if options.update:
        keep_rounds(bench, options.output)
    if options.output:
        write_page(bench, options.output)


if __name__ == "__main__":
    main()
