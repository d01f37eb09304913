"""Lines of streams become metrics, by the real server: the log of a real nginx, followed by a real
agent; chunks by hand; kills. Counts and sums are those of awk, or of Python over the same lines."""

import collections
import datetime
import json
import random
import shutil
import signal
import subprocess
import time

import pytest

from chunks import v2
from followed import Follower
from server import eventually, free_port, long_run, run
from test_streams import post

APP = ("datatypes: {app: {pattern: '<_> <method> <bytes>', events: {tags: [method], "
       "values: [bytes]}}}\n")
START_S = 1767225600  # 2026-01-01 00:00:00 UTC
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"


@pytest.fixture
def server_of(make_server):
    """Starts a server with a configuration, without host metrics."""

    def make(config):
        server = make_server(config=config)
        server.start()
        return server

    return make


def ms_of(text):
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def bins(server, metric, *tags, tenant="default"):
    """What is there of a metric, by tags and time."""
    answer = server.get("/api/query", tenant=tenant, metricName=metric, tag=list(tags), start=0)
    assert answer.status in (200, 404), answer.text
    return {(tuple(sorted(series["tags"].items())), ms_of(text)): value
            for series in (answer.json if answer.status == 200 else [])
            for text, value in series["values"].items()}


def total(server, metric, *tags):
    return sum(bins(server, metric, *tags).values())


def demuxed(server, **names):
    answer = server.get("/api/streams/demux", **names)
    assert answer.status == 200, answer.text
    return answer.json["streams"]


def lines_read(server, **names):
    return sum(stream["lines"] for stream in demuxed(server, **names))


def send(server, at, data, continues=False, **names):
    chunk = v2(at + len(data), data, lines=True, datatype=names.pop("datatype", "app"), **names)
    answer = post(server, chunk)
    assert answer.status == 200, answer.text
    return at + len(data)


def command(*arguments):
    """Another program's status and output."""
    return subprocess.run([str(one) for one in arguments], capture_output=True, text=True,
                          timeout=60)


class Nginx:
    """A real one, on loopback; its access log is `log`."""

    def __init__(self, folder):
        self.folder, self.port, self.log = folder, free_port(), folder / "access.log"
        (folder / "www").mkdir(parents=True)
        (folder / "www" / "index.html").write_text("hello\n" * 100)
        folder.chmod(0o755)
        (folder / "nginx.conf").write_text(f"""
            worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;
            user root;
            events {{ worker_connections 64; }}
            http {{
                access_log {self.log} combined;
                client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2;
                fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4;
                scgi_temp_path {folder}/t5;
                server {{
                    listen 127.0.0.1:{self.port};
                    root {folder}/www;
                    location /moved {{ return 301 /index.html; }}
                    location /broken {{ return 500; }}
                }}
            }}""")
        self.process = subprocess.Popen([NGINX, "-c", folder / "nginx.conf", "-e",
                                         folder / "error.log"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        eventually(lambda: command("curl", "-sf", self.url("/")).returncode == 0, "nginx answers")

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def bench(self, requests, path, *options):
        done = command("ab", "-q", "-n", str(requests), "-c", "4", *options, self.url(path))
        assert done.returncode == 0, done.stderr

    def stop(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def nginx(tmp_path):
    started = Nginx(tmp_path / "nginx")
    yield started
    started.stop()


def awk(program, path):
    done = command("awk", program, str(path))
    assert done.returncode == 0, done.stderr
    return {tuple(line.split()[:-1]): int(line.split()[-1]) for line in done.stdout.splitlines()}


def test_the_log_of_nginx(server_of, nginx, tmp_path):
    """What nginx logs is counted by method and status as awk and goaccess count it, without a
    configuration."""
    server = server_of("")
    follower = Follower(tmp_path / "agent", server.url,
                        {"access": {"tail": nginx.log, "datatype": "access"}}).start()
    try:
        nginx.bench(300, "/")
        nginx.bench(100, "/missing")
        nginx.bench(50, "/moved")
        nginx.bench(25, "/broken", "-i")
        command("curl", "-s", "-X", "DELETE", nginx.url("/"))
        server.kill()
        nginx.bench(200, "/")
        server.start()
        nginx.bench(30, "/broken")
        count = len(nginx.log.read_bytes().splitlines())
        eventually(lambda: lines_read(server, datatype="access") == count, "all lines are read")
        counted = awk('{gsub(/"/, "", $6); n[$6 " " $9]++} END {for (k in n) print k, n[k]}',
                      nginx.log)
        sums = awk('{gsub(/"/, "", $6); n[$6 " " $9] += $10} END {for (k in n) print k, n[k]}',
                   nginx.log)

        def is_right():
            return all(
                total(server, metric, f"method={method}", f"status={status}") == want
                for metric, wanted in (("access.count", counted), ("access.bytes.sum", sums))
                for (method, status), want in wanted.items())

        eventually(is_right, "counts and sums are those of awk")
        assert total(server, "access.count") == count
        assert demuxed(server, datatype="access")[0]["unread"] == 0
        report = command("goaccess", nginx.log, "--log-format=COMBINED", "-o", "json",
                         "--no-progress")
        general = json.loads(report.stdout)["general"]
        assert general["valid_requests"] == count
        assert general["bandwidth"] == total(server, "access.bytes.sum")
    finally:
        follower.kill()


class Events:
    """Lines by lot, and what their bins have."""

    def __init__(self, seed):
        self.rng, self.at, self.ms = random.Random(seed), 0, START_S * 1000
        self.counts, self.sums = collections.Counter(), collections.Counter()

    def lines(self, count, late=0):
        out = []
        for _ in range(count):
            self.ms += self.rng.randrange(0, 300)
            ms = self.ms - (self.rng.randrange(60000) if self.rng.random() < late else 0)
            method, size = self.rng.choice(["GET", "PUT"]), self.rng.randrange(5000)
            self.counts[method, ms // 10000 * 10000] += 1
            self.sums[method, ms // 10000 * 10000] += size
            out.append(f"{ms // 1000}.{ms % 1000:03d} {method} {size}\n")
        return "".join(out).encode()

    def send(self, server, count, late=0, **names):
        self.at = send(server, self.at, self.lines(count, late), **names)

    def are_those_of(self, server):
        for metric, wanted in (("app.count", self.counts), ("app.bytes.sum", self.sums)):
            found = {(dict(tags)["method"], ms): value
                     for (tags, ms), value in bins(server, metric).items()}
            if found != wanted:
                return False
        return True


def test_killed_again_and_again(server_of):
    """Wherever the server is killed, each event is counted once, also if its line is late."""
    server, events = server_of(APP), Events(1)
    for turn in range(12 if long_run() else 5):
        events.send(server, 400, late=0.1)
        eventually(lambda: lines_read(server) > 400 * turn - 400, "some lines are read")
        server.kill()
        server.start()
        events.send(server, 100)
    eventually(lambda: events.are_those_of(server), "the bins have what the lines say")
    eventually(lambda: lines_read(server) == sum(events.counts.values()), "each line is read once")
    state, = demuxed(server)
    assert state["unread"] == state["late"] == state["rest"] == 0


def test_read_again_from_the_beginning(server_of):
    """A stream that is read again has the same samples; one that is unknown is refused."""
    server, events = server_of(APP), Events(2)
    events.send(server, 2000, late=0.05)
    eventually(lambda: events.are_those_of(server) and lines_read(server) == 2000,
               "the bins have what the lines say")
    stream = server.get("/api/streams").json["streams"][0]["stream"]
    answer = run("stream", "demux", "--again", stream, "--server", server.url)
    assert answer.returncode == 0, answer.stderr
    eventually(lambda: server.metric("granary_demux_lines_total", result="read") == 4000,
               "all is read once more")
    eventually(lambda: events.are_those_of(server), "the bins have what the lines say")
    refused = server.request("POST", "/api/streams/demux", stream="a/b/app/c@0000000000000001")
    assert refused.status == 404 and "no such stream" in refused.text


def test_a_line_that_no_rule_reads_is_counted_and_shown(server_of):
    server = server_of(APP)
    send(server, 0, b"1767225600 GET 5\nnothing_of_the_kind\n1767225601 GET 6\n")
    eventually(lambda: lines_read(server) == 3, "the lines are read")
    state, = demuxed(server)
    assert (state["lines"], state["unread"], state["example"]) == (3, 1, "nothing_of_the_kind")
    eventually(lambda: total(server, "app.count", "method=GET") == 2, "the others are counted")
    table = run("stream", "demux", "-o", "csv", "--server", server.url)
    assert "nothing_of_the_kind" in table.stdout
    assert server.metric("granary_demux_lines_total", result="unread") == 1


def test_a_rule_that_explodes_into_labels(server_of):
    """The first labels have series, the others one together; another datatype is not disturbed."""
    server = server_of("datatypes: {app: {pattern: '<_> <user> <bytes>', series_max: 50, events: "
                       "{tags: [user], values: [bytes]}}, calm: {as: access}}\n")
    send(server, 0, b"".join(b"%d user%d 1\n" % (START_S, i) for i in range(5000)))
    send(server, 0, b'1.2.3.4 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 7\n',
         datatype="calm", name="/var/log/calm")
    eventually(lambda: total(server, "calm.count") == 1, "the calm one is counted")
    eventually(lambda: lines_read(server, datatype="app") == 5000, "all events are counted")
    found = bins(server, "app.count")
    assert len(found) == 51 and sum(found.values()) == 5000
    rest = [value for (tags, _), value in found.items() if dict(tags).get("rest") == "true"]
    assert rest == [4950]
    assert demuxed(server, datatype="app")[0]["rest"] == 4950


def test_another_rule_by_sighup(server_of):
    """A datatype that gets a rule while the server runs is read from its beginning."""
    server = server_of("datatypes: {}\n")
    at = send(server, 0, b"1767225600 GET 5\n")
    assert demuxed(server) == []
    server.configure(APP)
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: total(server, "app.count", "method=GET") == 1, "the line is counted")
    server.configure("datatypes: {app: {format: nonsense}}\n")
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: "nonsense" in server.log_text(), "the mistake is said")
    send(server, at, b"1767225602 GET 5\n")
    eventually(lambda: total(server, "app.count", "method=GET") == 2, "the rule stays as it is")


def test_samples_of_df_by_name_and_source(server_of):
    """Columns of a real command become metrics, in bytes, in the group of their datatype."""
    server = server_of("datatypes: {df: df}\n")
    output = command("df", "-P", "-k", "/").stdout
    _, blocks, used, _, percent, mount = output.splitlines()[1].split()
    ms = int(time.time()) * 1000
    head = time.strftime("%Y-%m-%dT%H:%M:%SZ df\n", time.gmtime(ms / 1000))
    send(server, 0, (head + output).encode(), datatype="df", source="h1")
    for metric, want in (("df.1024-blocks", int(blocks) * 1024), ("df.Used", int(used) * 1024),
                         ("df.Capacity", int(percent[:-1]))):
        found = eventually(lambda: bins(server, metric), f"{metric} is there")
        (tags, at), = found
        assert (dict(tags)["host"], dict(tags)["mount"], at) == ("h1", mount, ms)
        assert found[tags, at] == want
    rows = eventually(lambda: server.get("/hicc/v1/metrics/schema/df", tenant="default").json,
                      "the group is listed")
    assert any(row.startswith("df.Used") for row in rows)
