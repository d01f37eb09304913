"""Reports as they come, as server-sent events: read by a parser of their specification (HTML, 9.2),
by the command line, and by a real Chromium. Each report is told once, or counted as missed."""

import collections
import json
import random
import signal
import socket
import subprocess
import threading

from browser import Browser
from server import PATIENCE_S, eventually, granary
from test_oops import command, pages, post

Event = collections.namedtuple("Event", "kind id data")
# From before a viewer came (doc/faults.md, **As they come**).
REPLAYED = 1000


class Viewer:
    """Reads the stream line by line, as the specification says."""

    def __init__(self, server, query="", last=None, buffer=None, path="/oops/live"):
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(("127.0.0.1", server.port))
        head = [f"GET {path}?{query} HTTP/1.1", "Host: localhost", "Accept-Encoding: gzip"]
        head += [f"Last-Event-ID: {last}"] if last else []
        self.socket.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while (line := self.file.readline().strip()):
            name, value = line.split(b":", 1)
            self.headers[name.strip().lower().decode()] = value.strip().decode()
        self.rest, self.last = b"", None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def line(self):
        """None: the stream has ended."""
        while b"\n" not in self.rest:
            size = self.file.readline()
            if not size or int(size, 16) == 0:
                return None
            self.rest += self.file.read(int(size, 16))
            self.file.readline()
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def next(self):
        """The next event; None: the stream has ended."""
        kind, event_id, data = "message", None, []
        while (line := self.line()) is not None:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                kind = value
            elif name == "id":
                event_id = value
            elif name == "data":
                data.append(value)
            elif not line and data:
                self.last = event_id or self.last
                return Event(kind, event_id, json.loads("\n".join(data)))
        return None

    def until_ready(self):
        """What comes before it is told that it has begun."""
        events = []
        while (event := self.next()).kind != "ready":
            events.append(event)
        return events

    def take(self, count):
        """So many reports, and how many were missed before them."""
        events, missed = [], 0
        while len(events) + missed < count:
            event = self.next()
            if event.kind == "missed":
                missed += event.data["reports"]
            else:
                assert event.kind == "report"
                events.append(event)
        return events, missed


def ids(events):
    return [event.data["id"] for event in events]


def send(server, names, headers=None, **more):
    reports = [{"id": name, "context": "/login", "exception": "KeyError"} | more for name in names]
    answer = server.request("POST", "/oops", json.dumps(reports),
                            {"Content-Type": "application/json"} | (headers or {}))
    assert answer.status == 200 and answer.json["taken"] == len(reports)


def test_each_report_is_told_once_as_lists_show_it(server):
    with Viewer(server) as viewer, Viewer(server, "exception=ValueError") as other, \
            Viewer(server, "tenant=shop") as shop:
        assert viewer.status == 200 and viewer.headers["content-type"] == "text/event-stream"
        assert "content-encoding" not in viewer.headers
        assert [v.until_ready() for v in (viewer, other, shop)] == [[], [], []]
        for i in range(60):
            exception = "ValueError" if i % 3 == 0 else "KeyError"
            send(server, [f"OOPS-{i}"], exception=exception, level="error", duration=i)
        send(server, ["OOPS-shop"], {"X-Tenant": "shop"})
        events, missed = viewer.take(60)
        assert missed == 0 and ids(events) == [f"OOPS-{i}" for i in range(60)]
        assert [event.data for event in reversed(events)] == list(pages(server))
        assert ids(other.take(20)[0]) == [f"OOPS-{i}" for i in range(0, 60, 3)]
        assert ids(shop.take(1)[0]) == ["OOPS-shop"]
        assert server.metric("granary_fault_viewers") == 3
        # A repeated report is none that has come.
        post(server, {"id": "OOPS-59", "context": "/login", "exception": "KeyError",
                      "level": "error", "duration": 59})
        send(server, ["OOPS-last"])
        assert ids(viewer.take(1)[0]) == ["OOPS-last"]
    eventually(lambda: server.metric("granary_fault_viewers") == 0)


def test_a_viewer_goes_on_where_it_was_also_after_a_kill(server):
    with Viewer(server) as viewer:
        viewer.until_ready()
        send(server, [f"a{i}" for i in range(5)])
        last = viewer.take(5)[0][2].id
    send(server, ["b"])
    with Viewer(server, last=last) as viewer:
        assert ids(viewer.until_ready()) == ["a3", "a4", "b"]
        send(server, ["c"])
        last = viewer.take(1)[0][0].id
        server.kill()
        assert viewer.next() is None
    server.start()
    server.wait_ready()
    send(server, ["d", "e"])
    with Viewer(server, f"token={last}") as viewer:
        assert ids(viewer.until_ready()) == ["d", "e"]
    # Of more than may come first the newest do, and it is said that there were others.
    send(server, [f"f{i}" for i in range(5)])
    send(server, [f"f{i}" for i in range(5, REPLAYED + 5)])
    with Viewer(server, last=last) as viewer:
        events = viewer.until_ready()
        assert events[0] == Event("missed", None, {})
        assert ids(events[1:]) == [f"f{i}" for i in range(5, REPLAYED + 5)]
    # Large ones are sent as fast as they are read, and none is left out.
    for first in range(0, REPLAYED, 100):
        send(server, [f"g{i}" for i in range(first, first + 100)], value="x" * 150,
             context="/" + "c" * 500, host="h" * 200, user="u" * 200, release="r" * 200)
    with Viewer(server, last=events[-1].id, buffer=4096) as viewer:
        assert ids(viewer.until_ready()) == [f"g{i}" for i in range(REPLAYED)]
        send(server, ["h"])
        assert ids(viewer.take(1)[0]) == ["h"]


def test_a_viewer_that_does_not_read_holds_nobody_up(server):
    batches, size = 60, 200
    with Viewer(server, buffer=4096) as idle, Viewer(server) as viewer:
        idle.until_ready()
        viewer.until_ready()
        told = []
        reading = threading.Thread(target=lambda: told.append(viewer.take(batches * size)))
        reading.start()
        for batch in range(batches):
            send(server, [f"{batch}-{i}" for i in range(size)], value="x" * 150,
                 context="/" + "c" * 500, host="h" * 200, user="u" * 200, release="r" * 200)
        reading.join(PATIENCE_S)
        assert not reading.is_alive()
        sent = [f"{batch}-{i}" for batch in range(batches) for i in range(size)]
        events, missed = told[0]
        assert len(events) + missed == len(sent)
        wanted = iter(sent)
        assert all(name in wanted for name in ids(events))  # in their order, none twice
        # It was told what found room on its way, and then how much that was not.
        events, left_out = idle.take(batches * size)
        assert 0 < len(events) < len(sent) and len(events) + left_out == len(sent)
        wanted = iter(sent)
        assert all(name in wanted for name in ids(events))
        # Two viewers; what was kept for nobody both were left out of.
        assert server.metric("granary_fault_news_held_back_total") \
            + 2 * server.metric("granary_fault_news_missed_total") == missed + left_out
        send(server, ["after"])
        assert ids(idle.take(1)[0]) == ["after"]


def test_a_viewer_that_saw_nothing_goes_on_too(server):
    with Viewer(server) as viewer:
        viewer.until_ready()
    send(server, ["first"])
    with Viewer(server, last=viewer.last) as viewer:
        assert ids(viewer.until_ready()) == ["first"]
    later = "0100000000000000" + 2 * "-0000000000000000"  # no report is of that time
    with Viewer(server, last=later) as viewer:
        assert viewer.until_ready() == [] and viewer.last == later
    with Viewer(server) as viewer:
        assert viewer.until_ready() == []
    send(server, ["second"])
    with Viewer(server, last=viewer.last) as viewer:
        assert ids(viewer.until_ready()) == ["second"]


def test_what_is_not_asked_for_takes_no_room(server):
    with Viewer(server, "level=error") as viewer:
        viewer.until_ready()
    send(server, ["error"], level="error")
    for first in (0, 1000):
        send(server, [f"info{i}" for i in range(first, first + 1000)], level="info")
    with Viewer(server, "level=error", last=viewer.last) as viewer:
        assert ids(viewer.until_ready()) == ["error"]
    with Viewer(server, "level=error", last=viewer.last) as viewer:
        assert viewer.until_ready() == []


def test_as_many_viewers_as_may_be(make_server):
    server = make_server(options=["--http.connections_max=8"])
    server.start()
    viewers = [Viewer(server) for _ in range(4)]
    for viewer in viewers:
        viewer.until_ready()
    for _ in range(3):
        with Viewer(server) as refused:
            assert refused.status == 503
    viewers.pop().close()
    eventually(lambda: server.metric("granary_fault_viewers") == 3)
    with Viewer(server) as viewer:
        assert viewer.status == 200 and viewer.until_ready() == []
    for viewer in viewers:
        viewer.close()
    server.stop()


def test_viewers_come_and_go_while_reports_come(server):
    chance, names = random.Random(5), (f"n{i}" for i in range(10**6))
    with Viewer(server) as stays:
        stays.until_ready()
        count = 0
        for _ in range(150):
            viewer = Viewer(server, chance.choice(["", "tenant=shop", "level=error"]))
            if chance.random() < 0.5:
                viewer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            send(server, [next(names) for _ in range(3)])
            count += 3
            viewer.close()
        events, missed = stays.take(count)
        assert missed == 0 and ids(events) == [f"n{i}" for i in range(count)]


def test_the_stream_ends_when_the_server_stops(server):
    with Viewer(server) as viewer:
        viewer.until_ready()
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        assert viewer.next() is None
        stopping.join(PATIENCE_S)
        assert not stopping.is_alive()
    assert "gave up" not in server.log_text()


def test_what_is_wrong_is_said(server):
    answer = server.get("/oops/live", token="x")
    assert answer.status == 400 and 'token "x"' in answer.json["error"]["message"]
    answer = server.get("/oops/live", headers={"Last-Event-ID": "1"})
    assert answer.status == 400 and 'token "1"' in answer.json["error"]["message"]
    answer = server.get("/oops/live", colour="red")
    assert answer.status == 400 and "colour" in answer.json["error"]["message"]
    answer = server.request("HEAD", "/oops/live")
    assert answer.status == 200 and answer.headers["content-type"] == "text/event-stream"


def test_the_command_line_shows_them_as_they_come(server):
    tail = subprocess.Popen([granary(), "fault", "tail", "-o", "json", "--exception", "KeyError",
                             "--server", server.url], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: server.metric("granary_fault_viewers") == 1)
        send(server, ["one"])
        assert json.loads(tail.stdout.readline())["id"] == "one"
        send(server, ["other"], exception="ValueError")
        server.restart()
        send(server, ["two", "three"])
        assert [json.loads(tail.stdout.readline())["id"] for _ in range(2)] == ["two", "three"]
        tail.send_signal(signal.SIGINT)
        tail.wait(PATIENCE_S)
        assert "it is opened again" in tail.stderr.read()
    finally:
        tail.kill()
        tail.communicate()
    assert 'token "x"' in command(server, "tail", "--token", "x", status=1).stderr


def test_rows_have_their_titles_once(server):
    tail = subprocess.Popen([granary(), "fault", "tail", "-o", "csv", "--server", server.url],
                            stdout=subprocess.PIPE, text=True)
    try:
        eventually(lambda: server.metric("granary_fault_viewers") == 1)
        send(server, ["one"], host="a,b")
        send(server, ["two"])
        lines = [tail.stdout.readline().rstrip("\n") for _ in range(3)]
        assert lines[0] == "date,id,context,title,duration,statements,release,host"
        assert lines[1].split(",", 1)[1] == 'one,/login,KeyError,,,,"a,b"'
        assert lines[2].split(",", 1)[1] == "two,/login,KeyError,,,,"
    finally:
        tail.kill()
        tail.communicate()


def test_a_page_in_chromium_goes_on_by_itself(server, tmp_path):
    browser = Browser(tmp_path, {})
    try:
        browser.open(server.url)
        browser.run("""
            window.told = [];
            window.source = new EventSource("/oops/live");
            window.source.addEventListener("report", e => told.push(JSON.parse(e.data).id));
            await new Promise(ready => window.source.addEventListener("ready", ready));
        """)
        send(server, ["one", "two"])
        eventually(lambda: browser.run("return told.join()") == "one,two")
        server.restart()
        send(server, ["three"])
        eventually(lambda: browser.run("return told.join()") == "one,two,three")
    finally:
        browser.close()
