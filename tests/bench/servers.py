"""The servers that are compared, and how each is asked the same thing."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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
    running = set()  # ended with the benchmark, whatever ends that

    def __init__(self, work, options=(), begin_with=None):
        """With a copy of the folder `begin_with` as its data, else with none."""
        self.options = list(options)
        self.data = tempfile.mkdtemp(prefix=self.name + "-", dir=work)
        if begin_with:
            shutil.copytree(begin_with, self.data, dirs_exist_ok=True)
        self.port = free_port()
        self.log = open(os.path.join(work, self.name + ".log"), "a")
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command(), stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)
        self.running.add(self)
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

    def get(self, path, method="GET", body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def processes(self):
        """Their ids; most servers are one process."""
        return [self.process.pid]

    def cpu_s(self):
        ticks = 0
        for pid in self.processes():
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS_PER_SECOND

    def anon_bytes(self):
        kilobytes = 0
        for pid in self.processes():
            with open(f"/proc/{pid}/status") as file:
                kilobytes += sum(int(line.split()[1]) for line in file
                                 if line.startswith("RssAnon:"))
        return kilobytes * 1024

    def wait_quiet(self, at_most_s=60):
        """Until the server has used less than 3 % of a core for two seconds: what it put off while
        it was loaded belongs to the load."""
        deadline = time.monotonic() + at_most_s
        quiet = 0
        while quiet < 2 and time.monotonic() < deadline:
            before = self.cpu_s()
            time.sleep(1)
            quiet = quiet + 1 if self.cpu_s() - before < 0.03 else 0

    def end(self):
        """Its data stays."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.running.discard(self)
        self.log.close()

    def remove(self):
        shutil.rmtree(self.data, ignore_errors=True)

    def stop(self):
        self.end()
        self.remove()


class Victoria(Server):
    name = "victoria-metrics"
    ready_path = "/health"

    def command(self):
        return ["victoria-metrics", "-retentionPeriod=100y", "-http.connTimeout=1h",
                f"-storageDataPath={self.data}",
                f"-httpListenAddr=127.0.0.1:{self.port}"]

    @staticmethod
    def version():
        answer = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "victoria-metrics"],
                                capture_output=True, text=True)
        return answer.stdout.strip() or "unknown"

    def export_all(self):
        self.get("/internal/force_flush")
        subprocess.run(["curl", "-sSf", f"http://127.0.0.1:{self.port}/api/v1/export", "-d",
                        'match[]={__name__!=""}'], check=True, stdout=subprocess.DEVNULL)

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
    def range_path(query, start_s, end_s, step_s):
        """All samples of start <= time < end, in steps that end there."""
        return "/api/v1/query_range?" + urllib.parse.urlencode({
            "query": query, "start": start_s, "end": end_s, "step": step_s, "nocache": 1})

    @classmethod
    def one_series(cls, host, field, start_s, end_s):
        return cls.range_path(f'cpu_{field}{{hostname="host_{host}"}}', start_s,
                              end_s - INTERVAL_S, INTERVAL_S)

    @classmethod
    def max_by_hour(cls, fields, start_s, end_s):
        names = "|".join(fields)
        return [cls.range_path(
            f'max(max_over_time({{__name__=~"cpu_({names})"}}[1h])) by (__name__, hostname)',
            start_s + 3600, end_s, 3600)]

    @staticmethod
    def last_points(field, end_s):
        return "/api/v1/query?" + urllib.parse.urlencode({
            "query": f"cpu_{field}", "time": end_s - INTERVAL_S, "nocache": 1})

    @classmethod
    def scan(cls, field, start_s, end_s, window_s):
        return cls.range_path(f"max(max_over_time(cpu_{field}[{window_s}s]))", start_s + window_s,
                              end_s, window_s)

    @staticmethod
    def query_points(body):
        result = json.loads(body)["data"]["result"]
        return sum(len(series["values"]) if "values" in series else 1 for series in result)


class Granary(Server):
    name = "granary"
    ready_path = "/-/ready"
    binary = ""

    def command(self):
        return [self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.data,
                "--host.enabled=false", *self.options]

    @classmethod
    def version(cls):
        answer = subprocess.run([cls.binary, "version"], capture_output=True, text=True)
        return answer.stdout.strip()

    def export_all(self):
        """In VictoriaMetrics' format."""
        subprocess.run([self.binary, "export", "--server", f"http://127.0.0.1:{self.port}",
                        "--format", "json"], check=True, stdout=subprocess.DEVNULL)

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
            stats = self.stats()
            waiting = sum(table["headSamples"] for table in stats["tables"])
            if waiting + stats["unsettledGroups"] == 0:
                return
        print("bench: granary has not settled after 300 s", file=sys.stderr)

    def samples(self):
        return sum(table["samples"] for table in self.stats()["tables"]
                   if table["table"] == "data_raw")

    def disk(self):
        store = self.stats()
        return store["usedBytes"], store["fileBytes"]

    @staticmethod
    def path(field, start_s, end_s, **more):
        return "/api/query?" + urllib.parse.urlencode({
            "tenant": "default", "metricName": f"cpu_{field}", "start": start_s, "end": end_s,
            **more})

    @classmethod
    def one_series(cls, host, field, start_s, end_s):
        return cls.path(field, start_s, end_s, tag=f"hostname=host_{host}")

    @classmethod
    def max_by_hour(cls, fields, start_s, end_s):
        return [cls.path(field, start_s, end_s, fn="max", window="1h") for field in fields]

    @classmethod
    def last_points(cls, field, end_s):
        return cls.path(field, end_s - 3600, end_s, fn="last")

    @classmethod
    def scan(cls, field, start_s, end_s, window_s):
        return cls.path(field, start_s, end_s, fn="max", window=f"{window_s}s", agg="max")

    def metrics(self):
        """Of its own counters, by name and labels."""
        _, body = self.get("/metrics")
        pairs = (line.rsplit(" ", 1) for line in body.decode().splitlines() if line[:1] != "#")
        return {name: float(value) for name, value in pairs}

    def metric(self, name):
        return self.metrics()[name]

    def post(self, path, body, content_type):
        """Until it is taken: a queue that is full says so."""
        while True:
            status, answer = self.get(path, "POST", body, {"Content-Type": content_type})
            if status != 503:
                break
            time.sleep(0.2)
        if status >= 300:
            sys.exit(f"bench: {path} answered {status}: {answer[:300]}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        """Seconds until it is ready again, with the data that is there."""
        begun = time.monotonic()
        self.start()
        return time.monotonic() - begun

    @staticmethod
    def query_points(body):
        return sum(len(series["values"]) for series in json.loads(body))
