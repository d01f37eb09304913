"""What a server takes over while it runs: all of a good configuration, nothing of a bad one. And
what its log tells of questions and of changes."""

import concurrent.futures
import datetime
import json
import os
import re
import signal
import socket
import threading
import time

import pytest

from server import PATIENCE_S, eventually, run, running
from snmp_agent import have_snmpd
from test_poller import OIDSETS


def wait_for_log(server, words, count=1):
    eventually(lambda: server.log_text().count(words) >= count,
               lambda: f"{words!r} in the log:\n{server.log_tail()}")


def reload(server, text, answer="reload: done\n"):
    count = server.log_text().count(answer)
    server.config.write_text(text)
    server.process.send_signal(signal.SIGHUP)
    wait_for_log(server, answer, count + 1)


def fill(server, series, samples=1):
    lines = [f"m,a={n} v={n} {1600000000 + second}" for n in range(series)
             for second in range(samples)]
    assert server.write("\n".join(lines), precision="s").status == 204


def ask(server):
    return server.get("/api/query", metricName="m_v", start="2020-01-01", end="2021-01-01")


def test_limits_of_questions(make_server):
    with running(make_server(config="query: {series_max: 2}\n")) as server:
        fill(server, 3)
        refused = ask(server)
        assert refused.status == 422 and "query.series_max" in refused.text, refused
        reload(server, "query: {series_max: 3}\n")
        assert ask(server).status == 200
        reload(server, "query: {series_max: 3, range_max: 1h}\n")
        assert ask(server).status == 422
        reload(server, "query: {points_max: 2}\n")
        assert ask(server).headers.get("X-Granary-Cut"), "the third point is one too many"


def test_a_deadline_holds_for_connections_that_are_there(make_server):
    with running(make_server(config="http: {idle_timeout: 1h}\n")) as server:
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as idle:
            reload(server, "http: {idle_timeout: 100ms}\n")
            assert idle.recv(1) == b""


def test_fewer_connections(make_server):
    with running(make_server(config="http: {connections_max: 100}\n")) as server:
        there = [socket.create_connection(("127.0.0.1", server.port), PATIENCE_S)
                 for _ in range(3)]
        for connection in there:
            connection.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
        reload(server, "http: {connections_max: 1}\n")
        # The next one takes the place of the one that has been idle for longest.
        assert server.get("/-/healthy").status == 200
        assert not there[0].recv(4096).endswith(b"}")  # the rest of its answer, and the end
        for connection in there:
            connection.close()


@pytest.mark.parametrize("bad, sentence", [
    ("adaptors: {a: {tail: relative, datatype: t}}\n", "relative"),
    ("datatypes: {a: {no_such: 1}}\n", "no_such"),
    ("http: {names: ['a b']}\n", "is neither a name nor an address"),
    ("retention: {rules: [nonsense]}\n", "nonsense"),
    ("rollup: {granularities: ['7m:1d', '5m:1d']}\n", "rollup.granularities"),
    ("snmp: {secrets_file: /nowhere}\n", "/nowhere"),
    ("hicc: {tenant: 'a/b'}\n", "cannot be the name of a tenant"),
], ids=["adaptors", "datatypes", "names", "rules", "granularities", "secrets", "hicc"])
def test_of_a_bad_configuration_nothing(make_server, tmp_path, bad, sentence):
    """The first option is good; `granary config` refuses the file for the same reason."""
    with running(make_server(config="query: {series_max: 2}\n")) as server:
        fill(server, 3)
        reload(server, f"query: {{series_max: 3}}\n{bad}", "reload: nothing is changed: ")
        assert sentence in server.log_text()
        assert ask(server).status == 422
        checked = run("config", "--check", "--config", server.config)
        assert checked.returncode == 2 and sentence in checked.stderr, checked
    server.config.write_text("query: {series_max: 3}\n")
    checked = run("config", "--check", "--config", server.config)
    assert (checked.returncode, checked.stdout) == (0, "the configuration is good\n"), checked


@pytest.mark.skipif(not have_snmpd(), reason="snmpd is not installed")
def test_credentials_of_devices(make_server, tmp_path, agent):
    """A community that was wrong, and one more, without a start; OIDSets wait for one."""
    secrets = tmp_path / "secrets.yml"
    secrets.write_text("lab: {version: 2c, community: wrong}\n")
    secrets.chmod(0o600)
    text = f"snmp: {{secrets_file: {secrets}}}\n{OIDSETS}"
    with running(make_server(config=text)) as server:
        def device(*words):
            return run("device", *words, "--server", server.url)

        def shown(name):
            return server.get(f"/api/devices/{name}").json

        assert device("add", "r", agent.address, "Fast", "--credentials", "lab").returncode == 0
        eventually(lambda: shown("r")["state"] == "failing", "the agent does not know `wrong`")
        assert device("add", "s", agent.address, "Fast", "--credentials", "core").returncode == 1
        secrets.write_text("lab: {version: 2c, community: public}\n"
                           "core: {version: 2c, community: public}\n")
        reload(server, text)
        assert device("add", "s", agent.address, "Fast", "--credentials", "core").returncode == 0
        eventually(lambda: shown("r")["state"] == shown("s")["state"] == "ok", "both answer")
        secrets.write_text("lab: {version: 2c, community: wrong}\n")
        reload(server, text.replace("Fast:", "Slow:"), "reload: done, but for these\n")
        assert "at the next start only: oidsets\n" in server.log_text()
        eventually(lambda: shown("r")["state"] == "failing", "its community is wrong again")
        assert "core" in shown("s")["reason"]


def test_a_pipe_that_nobody_writes(make_server):
    """In the place of the configuration: it is refused, and the server goes on."""
    with running(make_server(config="query: {series_max: 3}\n")) as server:
        server.config.unlink()
        os.mkfifo(server.config)
        server.process.send_signal(signal.SIGHUP)
        wait_for_log(server, "reload: nothing is changed: ")
        assert "deadline passed" in server.log_text()
        assert server.get("/-/ready").status == 200


HOUR_S = 3600


def put(server, metric, age_s, value=1):
    """One sample of that age, in a series that is the same each time."""
    return server.write(f"{metric},h=a value={value} {int(time.time()) - age_s}", precision="s")


def rules(*items, more=""):
    return f"retention: {{rules: {list(items)}}}\n{more}"


def test_rules_of_retention(make_server):
    """Their series are in ingest's cache before. What is to be kept for longer than before is so
    for samples that come from now on, also after another start."""
    with running(make_server(config=rules())) as server:
        assert put(server, "debug", 3 * HOUR_S).status == put(server, "cpu", 0).status == 204
        reload(server, rules("default/debug*/raw:2h"))
        assert server.get("/api/retention").json["rules"] == ["default/debug*/raw:2h"]
        refused = put(server, "debug", 3 * HOUR_S, 2)
        assert refused.status == 400 and "older than the retention of 7200 s" in refused.text
        assert put(server, "debug", 60).status == put(server, "cpu", 3 * HOUR_S).status == 204
        assert list(server.values("debug", start="1d-ago").values()) == [1.0]
        reload(server, rules("default/debug*/raw:9h"))
        refused = put(server, "debug", 4 * HOUR_S)
        raised = re.search(r"older than the retention of 7200 s that held before; samples from "
                           r"(\S+) on are kept for 32400 s", refused.text)
        assert refused.status == 400 and raised, refused
        # A day ahead is what ingest takes, and ten minutes are for the change.
        from_s = datetime.datetime.fromisoformat(raised[1].replace("Z", "+00:00")).timestamp()
        assert 0 <= time.time() + 24 * HOUR_S + 600 - from_s < PATIENCE_S
        reload(server, rules("default/debug*/15m:9d",
                             more="rollup: {granularities: ['5m:14d', '15m:1y']}\n"),
               "reload: done, but for these\n")
        assert "at the next start only: rollup.granularities retention.raw retention.rules\n" \
               in server.log_text()
        assert server.get("/api/retention").json["rules"] == ["default/debug*/raw:9h"]
        server.config.write_text(rules("default/debug*/raw:9h"))
        server.restart()
        assert raised[0] in put(server, "debug", 4 * HOUR_S).text


def test_rules_change_under_load(make_server):
    """Whatever holds at the moment, no answered sample is lost, in the class of two days or of 35;
    and there are as many as the rules may change."""
    with running(make_server(config=rules())) as server:
        stop, sent, begin_s = threading.Event(), [0, 0, 0], int(time.time()) - 60

        def send(which):
            connection = server.new_connection()
            while not stop.is_set():
                n = sent[which] + 1
                lines = "".join(f"{metric},h={which},n={n % 50} value={n} {begin_s + n}\n"
                                for metric in ("debug", "cpu", f"new{n % 30}"))
                connection.request("POST", "/write?db=default&precision=s", lines)
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (204, b"")
                sent[which] = n
            connection.close()
        with concurrent.futures.ThreadPoolExecutor(len(sent)) as threads:
            senders = [threads.submit(send, which) for which in range(len(sent))]
            try:
                for turn in range(30):
                    before = list(sent)
                    eventually(lambda: all(n > was for n, was in zip(sent, before)) or
                               any(sender.done() for sender in senders), str(sent))
                    reload(server, rules(f"*/debug/raw:{2 + turn % 7}h", f"*/new*/raw:{turn + 2}h",
                                         f"*/cpu/raw:{60 - turn}h"))
            finally:
                stop.set()
            for sender in senders:
                sender.result()
        for metric in ("debug", "cpu"):
            shown = server.get("/api/query", metricName=metric, start=begin_s, end=begin_s + 7200)
            there = sorted((int(series["tags"]["h"]), value)
                           for series in shown.json for value in series["values"].values())
            assert there == [(which, n) for which in range(len(sent))
                             for n in range(1, sent[which] + 1)], metric


def test_a_slow_query_is_told_with_who_asked_what(make_server):
    with running(make_server(config="log: {slow_query: 1ms}\n")) as server:
        fill(server, 2, 50000)  # 100,000 points take longer than a millisecond
        assert ask(server).status == 200
        wait_for_log(server, "slow query: GET /api/query?metricName=m_v&start=2020-01-01"
                             "&end=2021-01-01 of this machine at 127.0.0.1:")
        line, = re.findall(r" warn  slow query: .*", server.log_text())
        seconds, outcome = re.search(r"took (\d+\.\d{3}) s, and (.*)", line).groups()
        assert 0.001 <= float(seconds) < PATIENCE_S and outcome == "was answered"
        reload(server, "log: {slow_query: 0}\n")
        assert ask(server).status == 200
        reload(server, "log: {slow_query: 0}\n")  # behind what that question would have logged
        assert server.log_text().count("slow query") == 1


def test_each_change_of_an_admin_has_a_line(make_server):
    with running(make_server()) as server:
        fill(server, 1)
        lines = lambda: re.findall(r"info  (this machine at 127\.0\.0\.1:\d+: .*)",  # noqa: E731
                                   server.log_text())
        assert server.request("POST", "/api/delete", b"", metricName="m_v", start="2020-01-01",
                              end="2021-01-01", dryRun="true").status == 200
        device = json.dumps([{"name": "r", "address": "127.0.0.1:9", "credentials": "public",
                              "oidsets": ["IfXTable"], "active": False}])
        assert server.request("POST", "/api/devices", device.encode()).status == 201
        assert server.request("DELETE", "/api/devices/none").status == 404
        assert server.get("/api/retention").status == 200
        eventually(lambda: len(lines()) >= 3)
        deleted, added, missing = [line.split(": ", 1)[1] for line in lines()]
        assert deleted.startswith("POST /api/delete?metricName=m_v&start=2020-01-01")
        assert deleted.endswith(": 200")
        assert added == f"POST /api/devices {device}: 201"
        assert missing == "DELETE /api/devices/none: 404"


def test_the_log_as_json(make_server):
    """Each line is an object; a name of a client's cannot make another one of it."""
    with running(make_server(options=["--log.format=json"])) as server:
        server.request("DELETE", '/api/devices/%22,%22level%22:%22error%22%0a')
        eventually(lambda: "DELETE" in server.log_text())
        lines = [json.loads(line) for line in server.log_text().splitlines()
                 if not line.startswith("granary ")]
        assert all(set(line) == {"time", "level", "message"} for line in lines), lines
        assert {line["level"] for line in lines} <= {"info", "warn"}
        line, = [line for line in lines if "DELETE" in line["message"]]
        assert line["message"].endswith(': DELETE /api/devices/%22,%22level%22:%22error%22%0a: 404')
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
