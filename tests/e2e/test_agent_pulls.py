"""What an agent asks for again and again: answers of servers, who runs, its machine's metrics."""

import contextlib
import datetime
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import threading

import pytest

from followed import Follower, export, incarnations
from server import eventually
from test_agent_inlets import await_lines, follow, held, told

assert follow  # a fixture


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        said = self.server.answer(self.path)
        if said is None:
            self.server.over.wait()
            return
        status, body = said
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Length", len(body))
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def pages():
    """A server; `answer` gives status and body of a path, or None: there is no answer."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.over = threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def pull(url, **said):
    return {"http": url, "datatype": "x", "every": "1s", **said}


# ---- Answers of servers


def test_an_answer_is_a_record(server, follow, pages):
    """Also one of several lines; each is there once, in order, over a kill of the agent."""
    asked = []

    def answer(path):
        asked.append(path)
        return 200, f"answer {len(asked)}\n\nend\r\n".encode()

    pages.answer = answer
    follower = follow({"page": pull(pages.url + "/a?b=%20c")})
    await_lines(server, follower, "http:page", 3 * 2)
    follower.signal(signal.SIGKILL)
    follower.process.wait()
    first = len(asked)
    follower.start()
    eventually(lambda: len(asked) >= first + 2, follower.log_tail)
    await_lines(server, follower, "http:page", 3 * (first + 1))
    follower.stop()
    assert set(asked) == {"/a?b=%20c"}
    got = held(server, "http:page").decode()
    numbers = [int(line.split()[1][:-1]) for line in got.split("\n")
               if line.startswith("answer ")]
    assert got == "".join(f"answer {number}\4\n\4\nend\n" for number in numbers)
    # One that was asked for when the agent was killed may be in no record.
    assert numbers == sorted(set(numbers)) and len(numbers) >= first
    assert len(incarnations(server, "http:page")) == 1


def test_answers_that_cannot_be_taken(server, follow, pages):
    answers = {"/gone": (404, b"x"), "/moved": (302, b"x"), "/long": (200, (1 << 20) * b"x" + b"y"),
               "/just": (200, (1 << 20) * b"x"), "/silent": None, "/empty": (200, b"\r\n")}
    pages.answer = answers.get
    names = [path[1:] for path in answers]
    follower = follow({**{name: pull(f"{pages.url}/{name}", timeout="300ms") for name in names},
                       "absent": pull("http://127.0.0.1:1")})
    for name, said in {"gone": "/gone: the answer has the status 404",
                       "moved": "/moved: the answer has the status 302",
                       "long": "/long: the answer has more than 1024 KiB",
                       "silent": "timed out", "absent": "Failed to connect"}.items():
        eventually(lambda: said in told(server, name).get("error", ""),
                   lambda: (told(server, name), follower.log_tail()))
    await_lines(server, follower, "http:just", 1)
    assert told(server, "just")["error"] == "" and told(server, "just")["lastLine"] > 0
    assert told(server, "empty")["error"] == ""
    # It is well again.
    answers["/gone"] = (200, b"here")
    assert await_lines(server, follower, "http:gone", 1).startswith("here\n")
    eventually(lambda: told(server, "gone")["error"] == "", lambda: told(server, "gone"))
    follower.stop()
    assert set(held(server, "http:just")) == {ord("x"), ord("\n")}
    for name in ("moved", "long", "silent", "empty"):
        assert not held(server, "http:" + name)


def test_the_agent_ends_while_it_asks(server, follow, pages):
    reached = threading.Event()

    def answer(path):
        reached.set()

    pages.answer = answer
    follower = follow({"silent": pull(pages.url, timeout="1h")})
    assert reached.wait(60)
    follower.stop()
    assert "silent: http" not in follower.log_text()


# ---- Heartbeats


def test_heartbeats(server, follow, pages):
    status = [200]
    pages.answer = lambda path: (status[0], b"{}")
    components = ["agent", server.url + "/-/healthy", pages.url + "/x"]
    follower = follow({"beat": {"heartbeat": components, "datatype": "beat", "every": "1s"}})
    await_lines(server, follower, "heartbeat:beat", 1)
    status[0] = 503

    def beats():
        return [json.loads(line) for line in held(server, "heartbeat:beat").splitlines()]
    eventually(lambda: beats()[-1]["components"][2]["status"] == "stopped", follower.log_tail)
    first, last = beats()[0], beats()[-1]
    assert list(first) == ["time", "components"]
    datetime.datetime.fromisoformat(first["time"].replace("Z", "+00:00"))
    assert [one["component"] for one in first["components"]] == components
    assert [one["status"] for one in first["components"]] == 3 * ["running"]
    assert first["components"][0]["version"] and first["components"][0]["spool"] >= 0
    assert first["components"][1] == {"component": components[1], "status": "running"}
    assert [one["status"] for one in last["components"]] == ["running", "running", "stopped"]
    assert last["components"][2]["error"] == f"{pages.url}/x: the answer has the status 503"
    assert told(server, "beat")["error"] == ""
    follower.stop()


# ---- This machine


def lines_of(server, tenant="host"):
    found = server.get("/api/streams", tenant=tenant, limit=1000).json["streams"]
    stream, = [one for one in found if one["name"] == "system:" + tenant]
    assert stream["datatype"] == "HostMetrics" and stream["source"] == "host1"
    answer = server.get("/api/streams/export", tenant=tenant, stream=stream["stream"],
                        **{"from": 0})
    return [json.loads(line) for line in answer.body.splitlines()]


def assert_metrics(server, lines):
    """The rule that is shipped makes of them what a server has of its own machine."""
    for metric, *tag in (("Uptime",), ("cpu.idle", "core", "0"), ("memory.Free",),
                         ("process.ResidentBytes", "process", "granary-agent")):
        wanted = {line["time"]: line[metric] for line in lines
                  if metric in line and (line.get(tag[0]) == tag[1] if tag else
                                         not {"core", "process"} & set(line))}

        def found():
            series = server.query("SystemMetrics." + metric, *(["=".join(tag)] if tag else []),
                                  tenant="host", start="1h-ago")
            return [one["values"] for one in series
                    if one["tags"] == {"host": "host1", "cluster": "unknown_cluster",
                                       **dict([tag] if tag else [])}]
        eventually(lambda: found() == [wanted], lambda: (metric, found(), wanted))


def test_metrics_of_the_machine(server, follow):
    """They are those of /proc, in the tenant that the adaptor names, and once over a restart that
    finds no checkpoint."""
    follower = follow({"machine": {"system": "host", "datatype": "HostMetrics", "every": "1s"}},
                      options=["--agent.tenant", "other"])

    def streams():
        return [one for one in server.get("/api/streams", tenant="host").json["streams"]
                if one["name"] == "system:host"]
    eventually(streams, follower.log_tail)
    eventually(lambda: sum("Uptime" in line for line in lines_of(server)) >= 2, follower.log_tail)
    lines = lines_of(server)
    whole = [line for line in lines if "Uptime" in line]
    uptime = float(pathlib.Path("/proc/uptime").read_text().split()[0])
    assert 0 <= uptime - whole[-1]["Uptime"] < 600
    memory = pathlib.Path("/proc/meminfo").read_text()
    total = int(re.search(r"^MemTotal: +(\d+) kB", memory, re.M)[1]) * 1024
    assert whole[-1]["memory.Total"] == total
    assert whole[-1]["memory.Used"] + whole[-1]["memory.Free"] == total
    cores = set(re.findall(r"^cpu(\d+)", pathlib.Path("/proc/stat").read_text(), re.M))
    assert {line["core"] for line in lines if "core" in line} == cores
    for line in lines:
        parts = [line[f"cpu.{part}"] for part in ("user", "sys", "idle", "nice", "wait", "irq",
                                                  "softIrq", "stolen") if "cpu.user" in line]
        assert not parts or abs(sum(parts) - 100) < 0.01, line
    interfaces = {line["interface"] for line in lines if "interface" in line}
    assert interfaces == {name for _, name in socket.if_nameindex()} - {"lo"}
    assert {line["process"] for line in lines if "process" in line} == {"granary-agent"}
    disk = os.statvfs("/")
    roots = [line for line in lines if line.get("mount") == "/"]
    assert not roots or roots[-1]["disk.Total"] == disk.f_blocks * disk.f_frsize
    assert not server.get("/api/streams", tenant="other").json["streams"]
    follower.stop()
    assert_metrics(server, lines_of(server))
    for which in (0, 1):
        (follower.data / "agent" / f"checkpoint.{which}").unlink(missing_ok=True)
    count = len(lines_of(server))
    follower.start()
    eventually(lambda: len(lines_of(server)) > count + 2, follower.log_tail)
    follower.stop()
    assert len(streams()) == 1, "it went on where the collector stood"
    times = [line["time"] for line in lines_of(server)]
    assert times == sorted(times)
