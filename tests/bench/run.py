"""Measures Granary beside Debian's VictoriaMetrics, in one run, on one machine, with the same data.

What is compared is CPU seconds of the two servers (user and system, of all threads, from the
process table): wall time says little where loader and server share two cores. Memory is anonymous
resident memory, disk is pages in use with the length of the files beside it. Rounds alternate
between the two servers and the median counts.

    ./bench            the whole table, written to doc/benchmarks.md
    ./bench --quick    a small size, nothing written

Plain Python without packages; the loader, the querier and the generator are C (tests/bench).
"""

import argparse
import datetime
import http.client
import json
import os
import platform
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
START_S = 1451606400  # 2016-01-01T00:00:00Z
INTERVAL_S = 10
FIELDS = ["usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq",
          "usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice"]


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def disk_usage(path):
    """Bytes of blocks and bytes of length of all files below `path`."""
    blocks = length = 0
    for folder, _, names in os.walk(path):
        for name in names:
            info = os.stat(os.path.join(folder, name))
            blocks += info.st_blocks * 512
            length += info.st_size
    return blocks, length


class Server:
    """A server process with a data directory of its own."""

    name = ""

    def __init__(self, work):
        self.data = tempfile.mkdtemp(prefix=self.name + "-", dir=work)
        self.port = free_port()
        self.log = open(os.path.join(work, self.name + ".log"), "a")
        self.process = subprocess.Popen(self.command(), stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        self.wait_ready()

    def command(self):
        raise NotImplementedError

    def wait_ready(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                sys.exit(f"bench: {self.name} ended at start, see {self.log.name}")
            try:
                if self.get(self.ready_path)[0] in (200, 204):
                    return
            except OSError:
                pass
            time.sleep(0.05)
        sys.exit(f"bench: {self.name} is not ready after 60 s")

    def get(self, path, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def anon_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            for line in file:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
        return 0

    def wait_quiet(self, at_most_s=60):
        """Until the server has used less than 3 % of a core for two seconds: what it put off while
        it was loaded belongs to the load."""
        deadline = time.monotonic() + at_most_s
        quiet = 0
        while quiet < 2 and time.monotonic() < deadline:
            before = self.cpu_s()
            time.sleep(1)
            quiet = quiet + 1 if self.cpu_s() - before < 0.03 else 0

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.data, ignore_errors=True)


class Victoria(Server):
    name = "victoria-metrics"
    ready_path = "/health"

    def command(self):
        return ["victoria-metrics", "-retentionPeriod=100y", f"-storageDataPath={self.data}",
                f"-httpListenAddr=127.0.0.1:{self.port}"]

    @staticmethod
    def version():
        answer = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "victoria-metrics"],
                                capture_output=True, text=True)
        return answer.stdout.strip() or "unknown"

    def settle(self):
        """A forced merge leaves out what is being merged, so again until nothing changes."""
        self.get("/internal/force_flush")
        before = None
        while before != self.disk():
            before = self.disk()
            self.get("/internal/force_merge")
            self.wait_quiet()

    def samples(self):
        _, body = self.get("/metrics")
        return sum(int(line.split()[1]) for line in body.decode().splitlines()
                   if line.startswith('vm_rows{type="storage/'))

    def disk(self):
        sums = [disk_usage(os.path.join(self.data, part)) for part in ("data", "indexdb")]
        return sum(s[0] for s in sums), sum(s[1] for s in sums)

    @staticmethod
    def query_path(host, field, start_s):
        query = urllib.parse.urlencode({
            "query": f'cpu_{field}{{hostname="host_{host}"}}', "start": start_s,
            "end": start_s + 3600 - INTERVAL_S, "step": INTERVAL_S, "nocache": 1})
        return "/api/v1/query_range?" + query

    @staticmethod
    def query_points(body):
        return sum(len(series["values"]) for series in json.loads(body)["data"]["result"])


class Granary(Server):
    name = "granary"
    ready_path = "/-/ready"
    binary = ""

    def command(self):
        return [self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.data,
                "--host.enabled=false"]

    @classmethod
    def version(cls):
        answer = subprocess.run([cls.binary, "version"], capture_output=True, text=True)
        return answer.stdout.strip()

    def stats(self):
        status, body = self.get("/api/stats")
        if status != 200:
            sys.exit(f"bench: /api/stats answered {status}: {body[:200]}")
        return json.loads(body)

    def settle(self):
        """By itself, after the configured quiet time."""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            self.wait_quiet()
            if sum(table["headSamples"] for table in self.stats()["tables"]) == 0:
                return
        print("bench: granary has not settled after 300 s", file=sys.stderr)

    def samples(self):
        return sum(table["samples"] for table in self.stats()["tables"]
                   if table["table"] == "data_raw")

    def disk(self):
        store = self.stats()
        return store["usedBytes"], store["fileBytes"]

    @staticmethod
    def query_path(host, field, start_s):
        query = urllib.parse.urlencode({
            "tenant": "default", "metricName": f"cpu_{field}", "tag": f"hostname=host_{host}",
            "start": start_s, "end": start_s + 3600})
        return "/api/query?" + query

    @staticmethod
    def query_points(body):
        return sum(len(series["values"]) for series in json.loads(body))


class Bench:
    def __init__(self, options):
        self.options = options
        self.work = options.work or tempfile.mkdtemp(prefix="granary-bench-")
        os.makedirs(self.work, exist_ok=True)
        self.peers = [p for p in (Victoria, Granary) if p.name in options.servers]
        self.found = {peer.name: {} for peer in self.peers}

    def tool(self, name, *arguments, **keywords):
        command = [os.path.join(self.options.build, "tests", "bench", name), *map(str, arguments)]
        return subprocess.run(command, check=True, **keywords)

    def generate(self, name, hosts, points):
        path = os.path.join(self.work, f"{name}-{hosts}x{points}.lp")
        if not os.path.exists(path):
            with open(path + ".new", "wb") as file:
                self.tool("tsbs_gen", "--hosts", hosts, "--points", points, "--seed", 123,
                          stdout=file)
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

    def note(self, peer, key, value):
        self.found[peer.name].setdefault(key, []).append(value)
        print(f"  {peer.name:17} {key:28} {value:,.4g}", flush=True)

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
                self.queries(peer, server)
            server.stop()

    def settled(self, peer, server, samples, cpu_before):
        server.settle()
        if server.samples() != samples:
            sys.exit(f"bench: {peer.name} holds {server.samples()} of {samples} samples")
        self.note(peer, "with settling", samples / (server.cpu_s() - cpu_before))
        used, length = server.disk()
        self.note(peer, "bytes per sample", used / samples)
        self.note(peer, "bytes per sample, file", length / samples)

    def queries(self, peer, server):
        pick = random.Random(7)
        hours = max(1, self.options.points * INTERVAL_S // 3600)
        paths = [peer.query_path(pick.randrange(self.options.hosts), pick.choice(FIELDS),
                                 START_S + 3600 * pick.randrange(hours)) for _ in range(1000)]
        status, body = server.get(paths[0])
        points = peer.query_points(body) if status == 200 else -1
        if points != min(360, self.options.points):
            sys.exit(f"bench: {peer.name} gave {points} points, status {status}: {body[:300]}")
        for _ in range(3):
            answer = self.tool("querier", "--port", server.port, "--count", 3000,
                               stdout=subprocess.PIPE, input="\n".join(paths).encode())
            self.note(peer, "query p50 ms", json.loads(answer.stdout)["p50_ms"])

    def new_series(self, path, series):
        for peer in self.peers:
            server = peer(self.work)
            anon = server.anon_bytes()
            found = self.load(server, path)
            steady = found["samples"] / statistics.median(
                self.found[peer.name]["samples per CPU-s"])
            self.note(peer, "CPU-s of the new series", found["cpu_s"])
            self.note(peer, "new series per CPU-s", series / max(found["cpu_s"] - steady, 0.01))
            self.note(peer, "memory per series", (found["anon_bytes"] - anon) / series)
            self.note(peer, "memory per series, quiet", (server.anon_bytes() - anon) / series)
            server.stop()

    def run(self):
        o = self.options
        steady = self.generate("steady", o.hosts, o.points)
        churn = self.generate("churn", o.churn_hosts, 10)
        for round_ in range(o.rounds):
            print(f"{o.hosts} hosts x {o.points} points, round {round_ + 1} of {o.rounds}")
            self.steady(steady, round_ == o.rounds - 1)
        for round_ in range(o.churn_rounds):
            print(f"{o.churn_hosts} hosts x 10 points, round {round_ + 1} of {o.churn_rounds}")
            self.new_series(churn, o.churn_hosts * len(FIELDS))

    def close(self):
        if not self.options.keep:
            for name in os.listdir(self.work):
                if name.endswith(".lp"):
                    os.remove(os.path.join(self.work, name))
            if not self.options.work:
                shutil.rmtree(self.work, ignore_errors=True)

    def median(self, name, key):
        values = self.found.get(name, {}).get(key)
        return statistics.median(values) if values else None


def shown(value, unit):
    if value is None:
        return "-"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.{2 if size == 1e6 else 1}f} {letter}{unit}"
    return f"{value:.3g} {unit}".strip()


# What is shown: title, key, unit, whether more is better, to resolve, aim.
ROWS = [
    ("ingest by line protocol, samples per CPU-second", "samples per CPU-s", "", True,
     "3 x VictoriaMetrics", "11 x (8 M/CPU-s)"),
    ("the same, at the last answer", "at last answer", "", True, "", ""),
    ("the same, with all work until settled", "with settling", "", True, "", ""),
    ("ingest, samples per second of wall time", "samples per wall s", "", True, "", ""),
    ("new series per CPU-second", "new series per CPU-s", "", True, "10 x", "30 x (200 k/CPU-s)"),
    ("memory per active series, 11 labels", "memory per series", "B", False, "<= 1 KB", "400 B"),
    ("the same, once it is quiet", "memory per series, quiet", "B", False, "", ""),
    ("memory after the steady ingest", "RssAnon after ingest", "B", False, "", ""),
    ("bytes per sample on disk, settled, pages in use", "bytes per sample", "B", False,
     "measured; <= 0.6", "0.29"),
    ("bytes per sample, length of the files", "bytes per sample, file", "B", False, "", ""),
    ("one series, 1 h, per query at one connection, p50", "query p50 ms", "ms", False, "measured",
     "0.10 ms"),
]


def table(bench):
    lines = ["| | Granary | VictoriaMetrics | ratio | to resolve | aim |",
             "|---|---|---|---|---|---|"]
    for title, key, unit, more, resolve, aim in ROWS:
        ours, theirs = bench.median("granary", key), bench.median("victoria-metrics", key)
        ratio = "-"
        if ours and theirs:
            ratio = f"{ours / theirs if more else theirs / ours:.1f} x"
        lines.append(f"| {title} | {shown(ours, unit)} | {shown(theirs, unit)} | {ratio} | "
                     f"{resolve} | {aim} |")
    return "\n".join(lines)


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")),
                     platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, Linux {platform.release()}"


def commit():
    answer = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"],
                            capture_output=True, text=True)
    return answer.stdout.strip() or "not from a repository"


def details(bench):
    lines = []
    for name, found in bench.found.items():
        for key, values in found.items():
            lines.append(f"| {name} | {key} | {', '.join(f'{v:,.4g}' for v in values)} |")
    return "\n".join(["| server | what | by round |", "|---|---|---|", *lines])


NOTES = "## Notes"


def write_page(bench, path):
    """Replaces what was measured and keeps what people wrote below the line `## Notes`."""
    o = bench.options
    notes = "\n"
    if os.path.exists(path):
        with open(path) as file:
            text = file.read()
        if NOTES in text:
            notes = text.split(NOTES, 1)[1]
    with open(path, "w") as file:
        file.write(f"""# Benchmarks

Written by `./bench`. Both servers ran in the same run on the same machine, in turns, with their
defaults, and were sent the same bytes by two connections of 10,000 rows a request. CPU seconds are
user and system time of the server process, from the first request until it is quiet again; of
several rounds the median. Granary answers after its commit is on disk, VictoriaMetrics before.

- {datetime.date.today().isoformat()}, {machine()}
- {Granary.version()} (commit {commit()}), victoria-metrics {Victoria.version()} (Debian)
- steady: {o.hosts:,} hosts x {o.points:,} points x 10 fields = {o.hosts * o.points * 10:,} samples
- new series: {o.churn_hosts:,} hosts x 10 points = {o.churn_hosts * 10:,} series; the cost of their
  samples at the steady rate is subtracted

{table(bench)}

A ratio above 1 is in Granary's favour.

## Rounds

{details(bench)}

{NOTES}{notes}""")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small size; writes nothing")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="build directory")
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--points", type=int)
    parser.add_argument("--churn-hosts", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--churn-rounds", type=int, default=1)
    parser.add_argument("--servers", default="victoria-metrics,granary")
    parser.add_argument("--work", help="directory for data; a temporary one by default")
    parser.add_argument("--keep", action="store_true", help="keep the generated files")
    parser.add_argument("--output", help="page to write; doc/benchmarks.md by default")
    options = parser.parse_args()
    size = (200, 720, 5000, 1) if options.quick else (1000, 2160, 100000, 3)
    for key, value in zip(("hosts", "points", "churn_hosts", "rounds"), size):
        if getattr(options, key) is None:
            setattr(options, key, value)
    if not options.output and not options.quick:
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
    print(table(bench))
    if options.output:
        write_page(bench, options.output)


if __name__ == "__main__":
    main()
