"""From and to other systems, by the commands of doc/migrate.md: real servers of Debian's packages
are started here, given samples, and asked for them by their own tools."""

import contextlib
import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from server import PATIENCE_S, eventually, free_port, granary
from test_export import all_pages

START_MS = 1600000000000
STEP_MS = 15000


def made_samples(count=2000):
    """(metric, labels) to [(time, value)], with the labels that Prometheus allows."""
    series = {}
    for i in range(5):
        labels = {"job": f"job {i}", "path": 'C:\\dir "x", y=z\\t{é}', "le": "+Inf"}
        series[("up_total", tuple(sorted(labels.items())))] = [
            (START_MS + n * STEP_MS, float(n * i) if i < 3 else n / 3 * 10.0 ** (i * 20 - 60))
            for n in range(count)]
    series[("alone", ())] = [(START_MS, -0.0), (START_MS + STEP_MS, 5e-324)]
    return series


def of_granary(server):
    """The same of what is stored."""
    found = {}
    for line in all_pages(server, format="json").splitlines():
        series = json.loads(line)
        name = series["metric"].pop("__name__")
        key = (name, tuple(sorted(series["metric"].items())))
        found.setdefault(key, []).extend(zip(series["timestamps"], series["values"], strict=True))
    return found


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")


@contextlib.contextmanager
def started(command, ready_url, log):
    with open(log, "w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)

    def ready():
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(ready_url, timeout=PATIENCE_S).status in (200, 204)
    try:
        eventually(ready, f"{command[0]} is ready")
        yield process
    finally:
        process.kill()
        process.wait()


def ask(url, body=None, **params):
    if params:
        url += "?" + urllib.parse.urlencode(params, doseq=True)
    with urllib.request.urlopen(url, body, timeout=PATIENCE_S) as answer:
        return answer.read()


def shell(script, **options):
    done = subprocess.run(["bash", "-c", "set -o pipefail; " + script], capture_output=True,
                          text=True, timeout=PATIENCE_S, **options)
    assert done.returncode == 0, done.stderr
    return done


# ---- Prometheus


def test_prometheus(server, tmp_path):
    """Its blocks are made by promtool of OpenMetrics, its server says what they hold, and promtool
    dumps them."""
    needs("prometheus", "promtool")
    samples = made_samples()
    with open(tmp_path / "in", "w") as out:
        for metric in ("alone", "up_total"):
            out.write(f"# TYPE {metric.removesuffix('_total')} "
                      f"{'counter' if metric.endswith('_total') else 'gauge'}\n")
            for (name, labels), points in sorted(samples.items()):
                text = ",".join(f"{key}={quoted(value)}" for key, value in labels)
                if name == metric:
                    out.writelines(f"{name}{{{text}}} {value!r} {ts_ms / 1000}\n"
                                   for ts_ms, value in points)
        out.write("# EOF\n")
    data = tmp_path / "prometheus"
    shell(f"promtool tsdb create-blocks-from openmetrics {tmp_path / 'in'} {data}")
    (tmp_path / "prometheus.yml").write_text("scrape_configs: []\n")
    port = free_port()
    with started(["prometheus", f"--config.file={tmp_path / 'prometheus.yml'}",
                  f"--storage.tsdb.path={data}", "--storage.tsdb.retention.time=100y",
                  f"--web.listen-address=127.0.0.1:{port}"],
                 f"http://127.0.0.1:{port}/-/ready", tmp_path / "log"):
        theirs = {}
        for metric in ("alone", "up_total"):
            answer = json.loads(ask(f"http://127.0.0.1:{port}/api/v1/query",
                                    query=f"{metric}[100d]", time=START_MS / 1000 + 86400 * 50))
            for series in answer["data"]["result"]:
                name = series["metric"].pop("__name__")
                theirs[(name, tuple(sorted(series["metric"].items())))] = [
                    (round(ts * 1000), float(value)) for ts, value in series["values"]]
    shell(f"promtool tsdb dump {data} | {granary()} import --server {server.url} -")
    assert theirs == samples
    assert of_granary(server) == theirs


# ---- VictoriaMetrics


@contextlib.contextmanager
def victoria(tmp_path, name="victoria"):
    needs("victoria-metrics")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with started(["victoria-metrics", "-retentionPeriod=100y",
                  f"-storageDataPath={tmp_path / name}", f"-httpListenAddr=127.0.0.1:{port}"],
                 f"{url}/health", tmp_path / f"{name}.log"):
        yield url


def of_victoria(url):
    ask(f"{url}/internal/force_flush")
    found = {}
    for line in ask(f"{url}/api/v1/export", **{"match[]": '{__name__!=""}'}).splitlines():
        series = json.loads(line, parse_int=float)
        name = series["metric"].pop("__name__")
        key = (name, tuple(sorted(series["metric"].items())))
        found.setdefault(key, []).extend(zip(series["timestamps"], series["values"], strict=True))
    return {key: sorted(points) for key, points in found.items()}


def rounded(found):
    """It rounds again what it has rounded."""
    return {key: [(ts_ms, f"{value:.9g}") for ts_ms, value in points]
            for key, points in found.items()}


def test_victoria_metrics(server, tmp_path):
    """Out of VictoriaMetrics into Granary, and out of Granary into another VictoriaMetrics. It
    rounds values, so what it says itself is the measure."""
    samples = made_samples()
    lines = "".join(json.dumps({"metric": {"__name__": name, **dict(labels)},
                                "values": [value for _, value in points],
                                "timestamps": [ts_ms for ts_ms, _ in points]}) + "\n"
                    for (name, labels), points in samples.items())
    with victoria(tmp_path) as url:
        ask(f"{url}/api/v1/import", lines.encode())
        eventually(lambda: len(of_victoria(url)) == len(samples), "all series are there")
        theirs = of_victoria(url)
        shell(f"curl -sSf {url}/api/v1/export -d 'match[]={{__name__!=\"\"}}' | "
              f"{granary()} import --server {server.url} -")
    assert {key: [ts_ms for ts_ms, _ in points] for key, points in theirs.items()} == \
        {key: [ts_ms for ts_ms, _ in points] for key, points in samples.items()}
    assert of_granary(server) == theirs
    with victoria(tmp_path, "other") as url:
        shell(f"{granary()} export --server {server.url} --format json | "
              f"curl -sSf {url}/api/v1/import -T -")
        eventually(lambda: rounded(of_victoria(url)) == rounded(theirs), "all samples are there")


# ---- InfluxDB


def test_influxdb(server, tmp_path):
    """Out of InfluxDB. Debian's package has no influx_inspect, so its lines are written here, of
    what the server itself says."""
    needs("influxd")
    port, rpc_port = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    base = tmp_path / "influx"
    (tmp_path / "influx.conf").write_text(f"""
bind-address = "127.0.0.1:{rpc_port}"
reporting-disabled = true
[meta]
  dir = "{base}/meta"
[data]
  dir = "{base}/data"
  wal-dir = "{base}/wal"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
""")
    rows = [(f"h {i % 3},=", i * 0.1, i, START_MS + i) for i in range(3000)]
    with started(["influxd", "-config", str(tmp_path / "influx.conf")], f"{url}/ping",
                 tmp_path / "influx.log"):
        ask(f"{url}/query", b"", q="CREATE DATABASE db")
        lines = "".join("cpu,host={} load={!r},n={}i {}\n".format(
            host.replace(" ", "\\ ").replace(",", "\\,").replace("=", "\\="), load, n,
            ts_ms * 1000000) for host, load, n, ts_ms in rows)
        ask(f"{url}/write", lines.encode(), db="db")
        answer = json.loads(ask(f"{url}/query", q="SELECT * FROM cpu", db="db", epoch="ns"))
    series = answer["results"][0]["series"][0]
    columns = series["columns"]
    theirs = [dict(zip(columns, row, strict=True)) for row in series["values"]]
    with open(tmp_path / "dump", "w") as out:
        out.write("# INFLUXDB EXPORT: x - y\n# DDL\nCREATE DATABASE db WITH NAME autogen\n# DML\n"
                  "# CONTEXT-DATABASE:db\n# CONTEXT-RETENTION-POLICY:autogen\n")
        for row in theirs:
            host = row["host"].replace(" ", "\\ ").replace(",", "\\,").replace("=", "\\=")
            out.write(f"cpu,host={host} load={row['load']!r} {row['time']}\n"
                      f"cpu,host={host} n={row['n']}i {row['time']}\n")
    shell(f"gzip {tmp_path / 'dump'} && "
          f"{granary()} import --server {server.url} {tmp_path / 'dump.gz'}")
    wanted = {}
    for host, load, n, ts_ms in rows:
        wanted.setdefault(("cpu_load", (("host", host),)), []).append((ts_ms, load))
        wanted.setdefault(("cpu_n", (("host", host),)), []).append((ts_ms, n))
    assert of_granary(server) == wanted
