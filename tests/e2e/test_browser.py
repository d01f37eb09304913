"""Pages in a real Chromium. What a page of another site has its visitor's browser send to the
server, to any route and any door, in every way that pages have, reads nothing, changes nothing and
costs nothing: no handler sees it. A page of our own may do everything."""

import contextlib
import re
import socket
import threading
import time

import pytest

import raw_http
from browser import Browser
from server import ROOT
from test_doors import Doors

NOW_S = int(time.time()) - 3600
POINT = '{"metric":"foreign","timestamp":%d,"value":1,"tags":{"a":"b"}}' % NOW_S
LINE = f"foreign value=1 {NOW_S}000000000\n"
PUT = f"put foreign {NOW_S} 1 a=b\n"
DEVICE = '{"name":"foreign","address":"192.0.2.9","credentials":"public"}'
REQUESTS = {  # what would do something, where an empty one would not
    "POST /api/put": ("/api/put", POINT), "POST /write": ("/write", LINE),
    "POST /api/v2/write": ("/api/v2/write", LINE), "POST /api/devices": ("/api/devices", DEVICE),
    "POST /api/devices/": ("/api/devices/rtr", '{"name":"other"}'),
    "DELETE /api/devices/": ("/api/devices/rtr?withData=true", None),
    "POST /api/delete": ("/api/delete?metricName=ours&tenant=default&start=0&end=now", ""),
    "PUT /v2/device/": ("/v2/device/rtr/", '{"active":false}'),
    "POST /api/query": ("/api/query",
                        '{"start":0,"queries":[{"metric":"ours","aggregator":"sum"}]}'),
}

# Everything a page can do about one route; ends when all of it has ended. Gives what could be read.
ATTACK = """
const read = [], waits = [], url = base + path;
const note = (how, what) => read.push([how, method, path, what]);
const reading = (how, promise) => waits.push(promise.then(
    async r => { if (r.type !== 'opaque') note(how, [r.status, await r.text()]); }, () => null));
const loading = (tag, set) => waits.push(new Promise(over => {
    const element = document.createElement(tag);
    element.onload = () => { if (tag !== 'iframe') note(tag, 'loaded'); over(); };
    element.onerror = over;
    setTimeout(over, 2000);  // what is answered by 204, as nothing is to be, loads nothing
    set(element);
    document.body.append(element);
}));
if (method === 'GET') {
    for (const mode of ['cors', 'no-cors'])
        reading(mode, fetch(url, {mode, credentials: 'include'}));
    loading('img', e => { e.src = url; });
    loading('script', e => { e.src = url; });
    loading('link', e => { e.rel = 'stylesheet'; e.href = url; });
    loading('iframe', e => { e.src = url; });
    reading('HEAD', fetch(url, {method: 'HEAD'}));
} else {
    for (const type of ['text/plain', 'application/json', 'application/x-www-form-urlencoded'])
        reading('cors ' + type, fetch(url, {method, body, headers: {'Content-Type': type}}));
}
if (method === 'POST') {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded'])
        reading('no-cors ' + type,
                fetch(url, {method, body, mode: 'no-cors', headers: {'Content-Type': type}}));
    navigator.sendBeacon(url, new Blob([body ?? ''], {type: 'text/plain'}));
    loading('iframe', e => {
        e.name = 'frame' + Math.random();
        const form = document.createElement('form'), field = document.createElement('textarea');
        Object.assign(form, {method: 'POST', action: url, enctype: 'text/plain', target: e.name});
        field.name = '\\n' + (body ?? '') + '\\n';
        form.append(field);
        document.body.append(form);
        setTimeout(() => form.submit());
    });
}
await Promise.all(waits);
document.body.replaceChildren();
return read;
"""
# WebSockets at once, since Chromium lets each wait for those before it that have failed.
ATTACK_ALL = f"""
const one = async (method, path, body) => {{ {ATTACK} }};
const all = [];
const sockets = [...new Set(requests.map(([_, path]) => path))].map(path => new Promise(over => {{
    const ws = new WebSocket((base + path).replace('http', 'ws'));
    ws.onopen = () => {{ all.push(['WebSocket', 'GET', path, 'open']); ws.close(); }};
    ws.onclose = over;
}}));
for (const [method, path, body] of requests)
    all.push(...await one(method, path, body));
await Promise.all(sockets);
return all;
"""


class Elsewhere:
    """The site of somebody else, with an empty page; `rebind` makes its address that of the server:
    every byte goes there from then on."""

    def __init__(self, address, port=0):
        self.address, self.server_port, self.mail = address, None, []
        self.listener = socket.create_server((address, port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def rebind(self, port):
        self.server_port = port

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(sock,), daemon=True).start()

    def answer(self, sock):
        """Once something comes: a browser opens connections before it has a use for them."""
        with sock, contextlib.suppress(OSError):
            sock.settimeout(60)
            head = sock.recv(4096)
            if self.server_port:
                self.forward(sock, head)
            elif head:
                self.page(sock, head)

    @staticmethod
    def page(sock, head):
        text = b"<!DOCTYPE html><title>elsewhere</title><body></body>"
        while b"\r\n\r\n" not in head and (piece := sock.recv(4096)):
            head += piece
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
                     b"Content-Length: %d\r\n\r\n%s" % (len(text), text))

    def forward(self, sock, head):
        with socket.create_connection(("127.0.0.1", self.server_port)) as other:
            other.sendall(head)
            back = threading.Thread(target=self.pump, args=(other, sock), daemon=True)
            back.start()
            self.pump(sock, other)
            back.join()

    @staticmethod
    def pump(source, sink):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        self.listener.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"),
                      {"evil.example": "127.0.0.1", "rebound.example": "127.0.0.2"})
    yield browser
    browser.close()


@pytest.fixture
def elsewhere():
    sites = []

    def make(address="127.0.0.1", port=0):
        sites.append(Elsewhere(address, port))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


@pytest.fixture
def doors(make_server):
    """With a metric and a device that are to stay as they are."""
    doors = Doors(make_server)
    assert doors.server.put({"metric": "ours", "timestamp": NOW_S, "value": 7,
                             "tags": {"a": "b"}}).status == 204
    added = doors.server.request("POST", "/api/devices", '{"name":"rtr","address":"192.0.2.1",'
                                 '"credentials":"public","active":false}')
    assert added.status == 201, added
    yield doors
    doors.server.stop()


def all_requests(server):
    """Of every row of the table of routes, as the page shows it: method, a path, a body."""
    rows = re.findall(r"<tr><td><code>(\w+) ([^<&]+)(&hellip;)?</code></td><td>(.*?)</td></tr>",
                      server.get("/").text)
    listed = (ROOT / "src/api/routes.c").read_text()
    # The rows of a macro end with a backslash, or its last one's do; each use of it has them all.
    macro, table = listed.split("const struct http_route api_routes[]", 1)
    of_macro = len(re.findall(r"^\t\{VERB_", macro, re.MULTILINE))
    uses = len(re.findall(r"^\tBOARD_ROUTES\(", table, re.MULTILINE))
    written = len(re.findall(r"^\t\{VERB_", table, re.MULTILINE))
    assert len(rows) == written + uses * of_macro > 50
    requests = []
    for method, path, below, rest in rows:
        example = re.search(r'<a href="([^"]+)"', rest)
        path_of, body = REQUESTS.get(f"{method} {path}", (
            example[1].replace("&amp;", "&") if example else path + ("rtr" if below else ""), None))
        path_of = path_of.replace("#", "1")
        requests.append([method, path_of, body if method != "POST" else body or "x"])
    return requests


# Pages of any site may send there, by a key; test_sentry.py has what they are answered.
FOR_ALL_PAGES = ["/api/1/envelope", "/api/1/store"]


def state(server):
    """What is stored; each look is four requests, all answered with 200."""
    return (server.get("/api/metadata/tenants").json,
            server.get("/api/metadata/metricNames", tenant="default").json,
            list(server.values("ours").values()), server.get("/api/devices").json)


class Watch:
    """From its making on nobody but strangers asks, until it is asked itself."""

    def __init__(self, server):
        self.server = server
        self.state = state(server)
        self.before = self.counts()

    def counts(self):
        lines = [line.rpartition(" ") for line in self.server.get("/metrics").text.splitlines()
                 if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    def refused(self, reason):
        """How many were refused, which is all that was asked; and nothing has come of it."""
        after = self.counts()
        moved = {name: after[name] - count for name, count in self.before.items()}
        refused = moved[f'granary_http_foreign_refused_total{{reason="{reason}"}}']
        # The answer with the first counts is in the second ones.
        expected = {"1xx": 0, "2xx": 1, "3xx": 0, "4xx": refused, "5xx": 0}
        assert expected == {kind: moved[f'granary_http_responses_total{{class="{kind}"}}']
                            for kind in expected}
        assert state(self.server) == self.state
        return refused


@pytest.mark.parametrize("page, ours", [("evil.example", "127.0.0.1"), ("localhost", "localhost")],
                         ids=["another site", "another port"])
def test_a_page_of_another_site(browser, doors, elsewhere, page, ours):
    server = doors.server
    requests = [one for one in all_requests(server) if one[1] not in FOR_ALL_PAGES]
    browser.open(f"http://{page}:{elsewhere().port}/")
    watch = Watch(server)
    read = browser.run(ATTACK_ALL, base=f"http://{ours}:{server.port}", requests=requests)
    assert read == []
    # Some of the ways end in the browser, such as what it asks for by OPTIONS first.
    assert watch.refused("page") >= 4 * len(requests)


def test_a_name_that_becomes_ours(browser, doors, elsewhere):
    """The page is then of one origin with the server, so that nothing but its name tells."""
    server = doors.server
    requests = all_requests(server)
    site = elsewhere("127.0.0.2", server.port)
    browser.open(f"http://rebound.example:{server.port}/")
    site.rebind(server.port)
    watch = Watch(server)
    read = browser.run(ATTACK_ALL, base=f"http://rebound.example:{server.port}", requests=requests)
    assert len(read) >= 3 * len(requests)
    for how, method, path, (status, text) in read:
        assert status == 421, (how, method, path)
        assert how == "HEAD" or "http.names" in text
    assert watch.refused("host") >= 4 * len(requests)


def test_a_page_and_the_doors_of_lines(browser, doors, elsewhere):
    """By TCP what a browser sends begins with HTTP. By UDP it is WebRTC's, which is no text."""
    server = doors.server
    browser.open(f"http://evil.example:{elsewhere().port}/")
    watch = Watch(server)
    for port, lines in ((doors.tcp, LINE), (doors.puts, PUT)):
        read = browser.run(ATTACK_ALL, base=f"http://127.0.0.1:{port}", requests=[
            ["POST", "/", "\n" + lines], ["POST", "/" + "a" * 70000, "\n" + lines],
            ["GET", "/", None], ["PUT", "/", "\n" + lines]])
        assert read == []
    browser.run("""
        const peer = new RTCPeerConnection();
        peer.createDataChannel('x');
        const offer = await peer.createOffer();
        await peer.setLocalDescription(offer);
        await peer.setRemoteDescription({type: 'answer', sdp: offer.sdp
            .replace(/a=setup:actpass/, 'a=setup:active').replace(/a=candidate.*\\r\\n/g, '')});
        await peer.addIceCandidate({sdpMid: '0', candidate:
            `candidate:1 1 udp 2130706431 127.0.0.1 ${port} typ host`});
        """, port=doors.udp)
    # Each way was met at each door; the browser tries some of them once more.
    assert server.metric("granary_tcp_strangers_total") >= 2 * 12
    assert server.metric("granary_tcp_lost_bytes_total") == 0
    assert watch.state == state(server)


def test_a_page_of_our_own(browser, doors, elsewhere):
    """By each of our names, and through a tunnel, where the port is another one."""
    server = doors.server
    tunnel = elsewhere()
    tunnel.rebind(server.port)
    for n, base in enumerate((server.url, f"http://localhost:{server.port}",
                              f"http://localhost:{tunnel.port}")):
        browser.open(base + "/")
        point = {"metric": "mine", "timestamp": NOW_S + n, "value": n, "tags": {"a": "b"}}
        assert browser.run("""
            const put = await fetch('/api/put', {method: 'POST', body: JSON.stringify(point),
                                                 headers: {'Content-Type': 'application/json'}});
            const got = await fetch('/api/query?metricName=mine&start=0');
            return [document.title, getComputedStyle(document.body).margin !== '8px', put.status,
                    Object.values((await got.json())[0].values)];
            """, point=point) == ["Granary", True, 204, list(range(n + 1))]
    assert list(server.values("mine").values()) == [0, 1, 2]


def test_a_link_on_another_site(browser, doors, elsewhere):
    """It may lead to the page, which a visitor then sees, and to nothing else."""
    server = doors.server
    site = f"http://evil.example:{elsewhere().port}/"
    for path, title in (("/", "Granary"), ("/api/query?metricName=ours", "")):
        browser.open(site)
        browser.events.clear()
        browser.run("setTimeout(() => { location = url; });", url=server.url + path)
        browser.wait_loaded()
        assert browser.run("return [location.href, document.title];") == [server.url + path, title]
    assert "page of another site" in browser.run("return document.body.innerText;")


# ---- Routes of any origin: tests/tools/http_echo.c has /open and /open/events -------------------

FETCH = """
const all = [];
for (const [path, init] of requests) {
    try {
        const r = await fetch(base + path, init);
        all.push([r.status, await r.text(), r.headers.get('Retry-After')]);
    } catch (error) {
        all.push(null);
    }
}
return all;
"""
EVENTS = """
const source = new EventSource(base + path), seen = [];
return await new Promise(over => {
    source.onmessage = e => {
        seen.push(e.data);
        if (seen.length === 3) { source.close(); over(seen); }
    };
    source.onerror = () => { source.close(); over(seen.concat(['error'])); };
});
"""


def sent(method, body="hello", **headers):
    return {"method": method, "body": body, "headers": {k.replace("_", "-"): v
                                                        for k, v in headers.items()}}


def test_a_page_of_another_site_and_a_route_of_any_origin(browser, elsewhere):
    """It may send what Sentry's scripts send, and read the answer, also what is refused there."""
    large = "x" * (raw_http.BODY_MAX + 1)
    with raw_http.Server() as server:
        browser.open(f"http://evil.example:{elsewhere().port}/")
        got = browser.run(FETCH, base=f"http://127.0.0.1:{server.port}", requests=[
            ["/open", sent("POST")],
            ["/open", sent("POST", "{}", Content_Type="application/json", X_Sentry_Auth="Sentry",
                           sentry_trace="a-b", baggage="c=d", Authorization="x")],
            ["/open", sent("POST", "hello", Content_Encoding="compress")],
            ["/open", sent("POST", "hello", Content_Encoding="br")],
            ["/open", sent("POST", large)],
            # A header, a verb and a visitor's credentials that nothing allows.
            ["/open", sent("POST", X_Other="1")], ["/open", sent("PUT")],
            ["/open", {"method": "OPTIONS"}], ["/open", {"method": "GET"}],
            ["/open", {**sent("POST"), "credentials": "include"}]])
        assert [one and one[0] for one in got] == [200, 200, 415, 400, 413] + 5 * [None]
        assert [one[1] for one in got[:2]] == ["hello", "{}"]
        # Of the last the answer is hidden; it has come, as a simple request of any page may.
        counts = server.counts()
        assert (counts["begun"], counts["aborted"]) == (4, 1)
        assert browser.run(EVENTS, base=f"http://127.0.0.1:{server.port}",
                           path="/open/events?every=20") == ["number 0", "number 1", "number 2"]


def test_a_page_of_another_site_and_the_routes_beside_it(browser, elsewhere):
    with raw_http.Server() as server:
        browser.open(f"http://evil.example:{elsewhere().port}/")
        base = f"http://127.0.0.1:{server.port}"
        requests = [[path, init] for path in ("/gather", "/open/events", "/open/x", "/length")
                    for init in (sent("POST"), sent("POST", X_Sentry_Auth="Sentry"),
                                 sent("PUT"), sent("POST", Content_Type="application/json"))]
        requests += [["/hello", {}], ["/show/", {}], ["/nothing", {"method": "DELETE"}],
                     ["/events", {}], ["/later", {}]]
        assert browser.run(FETCH, base=base, requests=requests) == len(requests) * [None]
        assert browser.run(EVENTS, base=base, path="/events") == ["error"]
        assert server.counts()["begun"] == 0


def test_a_name_that_becomes_ours_and_a_route_of_any_origin(browser, elsewhere):
    """It is asked for by the name of somebody else: that is refused here, too."""
    with raw_http.Server() as server:
        site = elsewhere("127.0.0.2", server.port)
        browser.open(f"http://rebound.example:{server.port}/")
        site.rebind(server.port)
        got = browser.run(FETCH, base=f"http://rebound.example:{server.port}", requests=[
            ["/open", sent("POST")], ["/open", sent("POST", X_Sentry_Auth="Sentry")]])
        assert [one[0] for one in got] == [421, 421]
        assert server.counts()["begun"] == 0
