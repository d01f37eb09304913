"""The control of `granary agent`: lines on its socket and port as Chukwa's agent takes them, and
`/rest/v2/adaptor`. What the agent says is followed is compared with what the server holds."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import stat

import pytest

from followed import Follower, Log, await_held, await_log, held_bytes
from server import PATIENCE_S, eventually, free_port

TAIL = "filetailer.CharFileTailingAdaptorUTF8"
PACKAGE = "org.apache.hadoop.chukwa.datacollection.adaptor."


def connect(place):
    """A path or a port."""
    kind = socket.AF_INET if isinstance(place, int) else socket.AF_UNIX
    connection = socket.socket(kind)
    connection.settimeout(PATIENCE_S)
    connection.connect(("127.0.0.1", place) if isinstance(place, int) else str(place))
    return connection


def read_all(connection):
    pieces = []
    while piece := connection.recv(65536):
        pieces.append(piece)
    return b"".join(pieces).decode()


def say(place, *lines):
    """Replies to lines, after which nothing more is sent."""
    with connect(place) as connection:
        connection.sendall("".join(line + "\n" for line in lines).encode())
        connection.shutdown(socket.SHUT_WR)
        return read_all(connection)


class Controlled(Follower):
    def __init__(self, folder, collectors, adaptors=None):
        self.port, self.rest_port = free_port(), free_port()
        super().__init__(folder, collectors, adaptors or {},
                         options=["--agent.control_port", str(self.port), "--agent.rest_port",
                                  str(self.rest_port)])
        self.socket = self.data / "agent" / "control"
        self.file = self.data / "agent" / "control.adaptors"

    def start(self):
        super().start()
        eventually(self.answers, self.log_tail)
        return self

    def answers(self):
        try:
            return say(self.socket, "").startswith("host1: Chukwa Agent running, version ")
        except OSError:
            assert self.running(), self.log_tail()
            return False

    def say(self, *lines):
        return say(self.socket, *lines)

    def add(self, path, name="one", offset=0):
        said = self.say(f"add {name} = {TAIL} app {path} {offset}")
        assert said == f"OK add completed; new ID is adaptor_{name}\n"

    def listed(self):
        """Offsets by ids."""
        lines = self.say("list").splitlines()
        assert lines.pop() == ""
        return {line.split(")")[0]: int(line.split()[-1]) for line in lines}

    def rest(self, verb, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.rest_port, timeout=PATIENCE_S)
        connection.request(verb, path, body=body and json.dumps(body), headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text


@pytest.fixture
def control(server, tmp_path):
    """Starts agents; all that still run at the end are killed."""
    agents = []

    def make(adaptors=None, collectors=None):
        agents.append(Controlled(tmp_path / "agent", collectors or server.url, adaptors))
        return agents[-1].start()

    yield make
    for agent in agents:
        agent.kill()


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "logs" / "app.log")


# ---- Lines


def test_the_socket_is_its_owners(control):
    agent = control()
    assert stat.S_IMODE(agent.socket.stat().st_mode) == 0o600
    assert stat.S_ISSOCK(agent.socket.stat().st_mode)
    agent.stop()
    assert not agent.socket.exists()


def test_what_is_added_is_followed(server, control, log):
    log.append()
    agent = control()
    assert say(agent.port, "list") == "\n"
    said = say(agent.port, f"add {TAIL} app {log.path} 0")
    adaptor = said.split()[-1]
    assert said == f"OK add completed; new ID is {adaptor}\n" and adaptor.startswith("adaptor_")
    await_log(server, log, agent)
    log.append()
    await_log(server, log, agent)
    assert say(agent.port, "LIST") == (f"{adaptor})  {PACKAGE}{TAIL} app {log.path} "
                                       f"{len(log.written)}\n\n")


def test_after_a_kill_what_was_added_is_there_and_what_was_stopped_is_not(server, control, log,
                                                                          tmp_path):
    other = Log(tmp_path / "logs" / "other.log")
    agent = control()
    agent.add(other.path, "other")
    agent.add(log.path)
    agent.kill()
    log.append()
    agent.start()
    assert set(agent.listed()) == {"adaptor_one", "adaptor_other"}
    await_log(server, log, agent)
    assert agent.say("stop adaptor_one") == "OK adaptor adaptor_one stopped\n"
    agent.kill()
    log.append_bytes(b"nobody follows this\n")
    other.append()
    agent.start()
    assert set(agent.listed()) == {"adaptor_other"}
    await_log(server, other, agent)
    assert held_bytes(server, log.path) == len(log.written) - len(b"nobody follows this\n")
    # Where it stood is remembered, so that nothing comes twice.
    agent.add(log.path)
    await_log(server, log, agent)


@pytest.mark.parametrize("kill", [False, True], ids=["run on", "kill"])
def test_shutdown_delivers_what_was_there_and_no_more(server, control, log, kill):
    agent = control()
    agent.add(log.path)
    log.append()
    await_log(server, log, agent)
    server.kill()
    log.append_bytes(b"a line\nand half of another")
    eventually(lambda: "nothing is delivered at present" in agent.log_text(), agent.log_tail)
    there = len(log.written)
    assert agent.say("shutdown adaptor_one") == (
        f"OK adaptor adaptor_one stopping gracefully at {there}\n")
    wanted = log.written
    log.append_bytes(b" one\nand more\n")
    assert set(agent.listed()) == {"adaptor_one"}
    if kill:
        agent.kill()
        agent.start()
    server.start()
    await_held(server, log.path, wanted, agent)
    eventually(lambda: not agent.listed(), agent.log_tail)
    assert [line[0] for line in agent.file.read_text().splitlines()] == ["#"]
    assert held_bytes(server, log.path) == there
    agent.stop()


def test_what_is_configured_comes_back_with_a_reload(server, control, log):
    agent = control({"app": log.path})
    assert agent.say("stop app") == (
        "adaptor names should start with adaptor_; assuming you meant adaptor_app\n"
        "OK adaptor adaptor_app stopped\n")
    assert agent.listed() == {}
    agent.signal(signal.SIGHUP)
    eventually(lambda: set(agent.listed()) == {"adaptor_app"}, agent.log_tail)
    log.append()
    await_log(server, log, agent)
    assert agent.say("stopall") == "stopped 1 adaptors\n"
    agent.kill()
    agent.start()
    assert set(agent.listed()) == {"adaptor_app"}


def test_stopagent(control):
    agent = control()
    assert agent.say("stopagent", "list") == "stopping agent process.\n"
    assert agent.process.wait(PATIENCE_S) == 0, agent.log_tail()
    assert not agent.socket.exists()


def test_a_collector_that_does_not_answer_holds_up_no_command(control, log):
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        agent = control(collectors=f"http://127.0.0.1:{frozen.getsockname()[1]}")
        agent.add(log.path)
        log.append()
        frozen.settimeout(PATIENCE_S)
        post, _ = frozen.accept()
        with post:
            assert post.recv(100)
            with connect(agent.port) as idle:
                idle.sendall(b"lis")
                assert set(agent.listed()) == {"adaptor_one"}
                agent.add("/nothing", "two")
                assert agent.say("stop adaptor_one") == "OK adaptor adaptor_one stopped\n"
                assert agent.rest("GET", "/rest/v2/adaptor")[0] == 200
                idle.sendall(b"t\n")
                assert b"adaptor_two" in idle.recv(65536)
            agent.kill()


def test_lines_in_pieces_and_half_a_line(control, log):
    agent = control()
    with connect(agent.port) as connection:
        for byte in f"\r\nadd one = {TAIL} app {log.path} 0\r\nstop adaptor_one".encode():
            connection.send(bytes([byte]))
        connection.shutdown(socket.SHUT_WR)
        said = read_all(connection).splitlines()
    assert said[1:] == ["OK add completed; new ID is adaptor_one"]
    assert set(agent.listed()) == {"adaptor_one"}


def test_clients_that_leave_or_do_not_read(control):
    agent = control()
    lines = b"help\n" * 10000000
    with connect(agent.port) as deaf:
        deaf.setblocking(False)
        while lines:
            try:
                lines = lines[deaf.send(lines):]
            except BlockingIOError:
                break
        assert lines, "the agent stops to read while its replies are not taken"
        assert agent.listed() == {}
        with connect(agent.socket) as gone:
            gone.sendall(b"list\n" * 1000)
        assert agent.listed() == {}


def test_too_long_a_line_and_too_many_connections(control):
    agent = control()
    with connect(agent.port) as connection:
        connection.sendall(b"a" * 8193)
        assert read_all(connection) == "FAIL: a line has more than 8192 bytes\n"
    assert agent.say("b" * 8192).startswith("unknown command bbb")
    many = [connect(agent.port) for _ in range(32)]
    for connection in many:
        connection.sendall(b"list\n")
        assert connection.recv(100) == b"\n"
    with connect(agent.port) as connection:
        assert read_all(connection) == ""
    with connect(agent.socket) as connection:  # nobody takes those of the agent's user
        connection.sendall(b"list\n")
        assert connection.recv(100) == b"\n"
    for connection in many:
        connection.close()
    eventually(agent.answers)


REQUEST = ("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n"
           "add one = {0} app /x 0\n\nlist\n")


@pytest.mark.parametrize("begin", [REQUEST, "GET /" + "a" * 9000 + " HTTP/1.1\r\n\r\nadd one = {0} "
                                   "app /x 0\n", "\x16\x03\x01\nadd one = {0} app /x 0\n"],
                         ids=["request", "long target", "TLS"])
def test_what_a_page_of_a_browser_sends_is_not_done(control, begin):
    agent = control()
    with connect(agent.port) as connection:
        connection.sendall(begin.format(TAIL).encode())
        try:
            assert read_all(connection) == ""
        except ConnectionResetError:
            pass  # what it sent was not even read
    assert agent.listed() == {}
    assert "it begins with HTTP or another protocol" in agent.log_text()


# ---- HTTP


def test_rest(server, control, log):
    log.append()
    agent = control()
    assert agent.rest("GET", "/rest/v2/adaptor") == (200, '{"adaptorInfo":[],"adaptorCount":0}')
    status, text = agent.rest("POST", "/rest/v2/adaptor", {
        "dataType": "app", "adaptorClass": PACKAGE + TAIL, "adaptorParams": str(log.path),
        "offset": 0})
    assert status == 200, text
    adaptor = json.loads(text)["id"]
    await_log(server, log, agent)
    wanted = {"id": adaptor, "dataType": "app", "adaptorClass": PACKAGE + TAIL,
              "adaptorParams": str(log.path), "offset": len(log.written),
              "adaptorRates": [{"rate": -1, "intervalInSeconds": s} for s in (60, 300, 600)]}
    status, text = agent.rest("GET", f"/rest/v2/adaptor/{adaptor}", Accept="application/json")
    assert (status, json.loads(text)) == (200, wanted)
    status, text = agent.rest("GET", "/rest/v2/adaptor")
    assert (status, json.loads(text)) == (200, {"adaptorInfo": [wanted], "adaptorCount": 1})
    assert agent.rest("DELETE", f"/rest/v2/adaptor/{adaptor}") == (200, "")
    assert agent.listed() == {}


def test_counters_of_an_agent_by_itself(server, control, log):
    log.append()
    agent = control()
    agent.add(log.path)
    await_log(server, log, agent)

    def metrics(text):
        return dict(line.rpartition(" ")[::2] for line in text.splitlines() if line[0] != "#")

    status, text = agent.rest("GET", "/metrics", Accept="text/plain;version=0.0.4")
    told = metrics(text)
    assert status == 200
    assert told["granary_agent_lost_bytes_total"] == "0"
    assert told["granary_agent_delivered_bytes_total"] == str(len(log.written))
    assert float(told["process_start_time_seconds"]) > 1.5e9
    assert told.keys() == metrics(server.get("/metrics").text).keys()
    assert agent.rest("GET", "/metrics", Host="example.com")[0] == 421


def test_rest_refuses(control):
    agent = control()
    fits = {"dataType": "app", "adaptorClass": TAIL, "adaptorParams": "/x", "offset": 0}
    bad = [{**fits, "adaptorClass": "NoSuchAdaptor"}, {**fits, "adaptorParams": "x"},
           {**fits, "adaptorParams": "/x\0"}, {**fits, "adaptorClass": ""},
           {**fits, "offset": -1}, {**fits, "offset": "0"}, {**fits, "more": 1},
           # Each of these would be another command than it says.
           {**fits, "dataType": "app /y"}, {**fits, "dataType": " app"}, {**fits, "dataType": ""},
           {**fits, "dataType": "app\t/y"}, {**fits, "dataType": "=" + TAIL},
           {**fits, "adaptorClass": TAIL + " app"},
           {**fits, "adaptorParams": "/x 0\nadd y = " + TAIL + " app /y"},
           {"dataType": "app"}, {"adaptorClass": TAIL}, [1]]
    for body in bad:
        status, text = agent.rest("POST", "/rest/v2/adaptor", body)
        assert status == 400 and text, body
    assert agent.rest("GET", "/rest/v2/adaptor/adaptor_x") == (
        404, "Invalid adaptorId: adaptor_x")
    assert agent.rest("DELETE", "/rest/v2/adaptor/adaptor_x") == (
        400, "Invalid adaptorId: adaptor_x")
    for accept in ("application/xml", "text/plain"):
        assert agent.rest("GET", "/rest/v2/adaptor", Accept=accept)[0] == 406
        assert agent.rest("POST", "/rest/v2/adaptor", fits, Accept=accept)[0] == 406
    # Pages of other sites: by their origin, and by a name of their own for this machine.
    for headers in ({"Origin": "http://example.com"}, {"Sec-Fetch-Site": "cross-site"}):
        assert agent.rest("POST", "/rest/v2/adaptor", fits, **headers)[0] == 403
        assert agent.rest("GET", "/rest/v2/adaptor", **headers)[0] == 403
    assert agent.rest("POST", "/rest/v2/adaptor", fits, Host="example.com")[0] == 421
    assert agent.listed() == {}


def test_replies_that_nobody_takes(control, tmp_path):
    """Some clients ask for lists of thousands of adaptors again and again, and read nothing: what
    waits for all of them together is bounded, and others are told."""
    files = {f"a{n:04d}": {"tail": tmp_path / ("x" * 200) / ("y" * 200) / ("z" * 200) / str(n)}
             for n in range(1400)}
    agent = control(files)
    length = len(agent.say("list"))
    assert length > 1400 * 700
    def peak():
        return int(re.search(r"VmHWM:\s+(\d+) kB",
                             (pathlib.Path(f"/proc/{agent.process.pid}/status")
                              .read_text()))[1]) << 10
    before = peak()
    with contextlib.ExitStack() as stack:
        for _ in range(28):
            deaf = stack.enter_context(socket.socket())
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", agent.port))
            deaf.sendall(b"list\n" * 10)
        eventually(lambda: agent.say("") == "FAIL: replies to others have not been taken yet\n",
                   lambda: agent.say(""))
        assert 28 * length > 26 << 20
        assert peak() - before < 22 << 20  # 16 MiB, one reply more, and its copy
        assert "replies to others have not been taken yet" in agent.log_text()
    eventually(agent.answers, agent.log_tail)
    status, text = agent.rest("GET", "/rest/v2/adaptor")
    assert status == 200 and json.loads(text)["adaptorCount"] == 1400
    listed = json.loads(text)["adaptorInfo"]
    assert [one["id"] for one in listed] == [f"adaptor_a{n:04d}" for n in range(1400)]


# ---- Within the server


def test_within_the_server(make_server, log):
    port = free_port()
    server = make_server(options=["--agent.control_port", str(port), "--agent.source", "host1"])
    server.start()
    path = server.data / "agent" / "control"
    assert say(path, f"add one = {TAIL} app {log.path} 0") == (
        "OK add completed; new ID is adaptor_one\n")
    log.append()
    await_log(server, log)
    assert say(port, "stopagent") == "FAIL: the agent is part of granary serve; stop that\n"
    server.kill()
    log.append()
    server.start()
    await_log(server, log)
    assert server.metric("granary_agent_control_commands_total") == 0
    say(port, "list", "", "help")
    assert server.metric("granary_agent_control_commands_total") == 3
    with connect(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert read_all(connection) == ""
    assert server.metric("granary_agent_control_closed_total", reason="stranger") == 1
    assert os.stat(path).st_mode & 0o777 == 0o600
