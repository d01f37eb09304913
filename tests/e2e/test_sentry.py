"""The doors of Sentry's clients: projects and keys, what is refused, quotas, pages of other sites,
all shapes of bodies. What real clients send is in test_sentry_clients.py."""

import base64
import collections
import contextlib
import gzip
import json
import random
import re
import socket
import time
import zlib

import brotli
import pytest

from server import PATIENCE_S, eventually, run
from test_clock import HOOK, ClockServer

KEY = "0123456789abcdef" * 2
ID = "fc6d8c0c43fc4630ad850ee518f1b9d0"
DASHED = "fc6d8c0c-43fc-4630-ad85-0ee518f1b9d0"
EVENT = {"transaction": "/login", "exception": [{"type": "KeyError", "value": "x"}]}


def projects_of(server):
    answer = server.get("/oops/projects")
    assert answer.status == 200, answer
    return answer.json["projects"]


@pytest.fixture
def key(server):
    return projects_of(server)[0]["keys"][0]


def envelope(*items, **headers):
    lines = [json.dumps(headers)]
    for name, payload in items:
        lines += [json.dumps({"type": name}), json.dumps(payload)]
    return "\n".join(lines).encode()


def send(server, body, key=None, path="/api/1/envelope/", headers=()):
    """By default an envelope to project 1, with the key in the head."""
    headers = dict(headers)
    if key is not None:
        headers["X-Sentry-Auth"] = f"Sentry sentry_version=7, sentry_key={key}"
    return server.request("POST", path, body, headers)


def expect_refused(answer, status, sentence):
    assert answer.status == status, answer
    assert re.search(sentence, answer.json["detail"]), answer.json
    assert answer.json["causes"] == []


# ---- Projects -----------------------------------------------------------------------------------


def test_projects(server):
    (first,) = projects_of(server)
    key = first["keys"][0]
    host = server.url.removeprefix("http://").rstrip("/")
    assert first == {"number": 1, "tenant": "default", "keys": [key],
                     "dsn": [f"http://{key}@{host}/1"]}
    answer = server.request("POST", "/oops/projects?name=shop")
    assert answer.status == 201
    assert (answer.json["number"], answer.json["tenant"]) == (2, "shop")
    assert projects_of(server) == [first, answer.json]
    answer = server.request("POST", "/oops/projects?name=shop")
    assert answer.status == 409
    assert answer.json["error"]["message"] == "the tenant shop has project 2"
    assert server.request("POST", "/oops/projects").status == 400
    answer = server.request("POST", "/oops/projects?name=a/b")
    assert answer.status == 400
    assert answer.json["error"]["message"] == 'name "a/b" is not 1 to 64 of A-Za-z0-9_.-'
    server.restart()
    assert [p["tenant"] for p in projects_of(server)] == ["default", "shop"]


def test_keys_come_and_go(server, key):
    body = envelope(("event", EVENT))
    answer = server.request("POST", "/oops/projects/1/keys")
    assert answer.status == 201
    old, new = answer.json["keys"]
    assert old == key
    assert [send(server, body, k).status for k in (old, new)] == [200, 200]
    answer = server.request("DELETE", f"/oops/projects/1/keys/{old}")
    assert (answer.status, answer.json["keys"]) == (200, [new])
    assert [send(server, body, k).status for k in (old, new)] == [403, 200]
    assert server.request("DELETE", f"/oops/projects/1/keys/{old}").status == 404
    assert server.request("POST", "/oops/projects/9/keys").status == 404
    assert server.request("DELETE", f"/oops/projects/9/keys/{old}").status == 404
    server.restart()
    assert projects_of(server)[0]["keys"] == [new]


def test_command(server):
    def command(*words):
        return run("fault", "project", *words, "--server", server.url)
    done = command("add", "shop")
    assert done.returncode == 0
    dsn = done.stdout.strip()
    assert projects_of(server)[1]["dsn"] == [dsn]
    second = command("key", "add", "2").stdout.strip()
    rows = command("list", "-o", "csv").stdout.splitlines()
    assert rows[0] == "number,tenant,key,dsn"
    assert [row.split(",")[3] for row in rows[2:]] == [dsn, second]
    done = command("key", "remove", "2", re.match("http://(.*)@", dsn)[1])
    assert (done.returncode, done.stdout) == (0, "")
    assert projects_of(server)[1]["dsn"] == [second]
    done = command("add", "shop")
    assert (done.returncode, "the tenant shop has project 2" in done.stderr) == (1, True)
    for words in (["key"], ["add"], ["key", "add", "x"], ["remove", "2"], ["list", "more"]):
        assert command(*words).returncode == 2, words


def test_events_go_to_the_tenant_of_their_project(server):
    dsn = run("fault", "project", "add", "shop", "--server", server.url).stdout.strip()
    key = re.match("http://(.*)@", dsn)[1]
    assert send(server, envelope(("event", EVENT), event_id=ID), key,
                "/api/2/envelope/", {"X-Tenant": "default"}).json == {"id": ID}
    assert server.get(f"/oops/{ID}").status == 404
    assert server.get(f"/oops/{ID}", tenant="shop").json["context"] == "/login"


# ---- Who sends ----------------------------------------------------------------------------------


def test_ways_to_show_a_key(server, key):
    body = envelope(("event", EVENT))
    dsn = projects_of(server)[0]["dsn"][0]
    auth = f"Sentry sentry_client=x/1, sentry_key={key}, sentry_version=7"
    assert send(server, body, headers={"x-sentry-auth": auth}).status == 200
    assert send(server, body, headers={"Authorization": auth}).status == 200
    assert send(server, body,
                path=f"/api/1/envelope?sentry_version=7&sentry_key={key}&more=1").status == 200
    assert send(server, envelope(("event", EVENT), dsn=dsn)).status == 200
    assert send(server, json.dumps(EVENT), path=f"/api/1/store?sentry_key={key}").status == 200


def test_who_is_refused(server, key):
    body = envelope(("event", EVENT))
    expect_refused(send(server, body), 403, "no key of the project")
    expect_refused(send(server, body, KEY), 403, "no key of the project")
    expect_refused(send(server, body, key[:-1]), 403, "no key of the project")
    for number in ("2", "0", "99999999999999999"):
        expect_refused(send(server, body, key, f"/api/{number}/envelope/"), 403,
                       "no key of the project")
    for dsn in (f"http://{KEY}@host/1", f"http://{key}@host/2", "x", 5):
        expect_refused(send(server, envelope(("event", EVENT), dsn=dsn)), 403, "no key of")
    assert send(server, body, key, "/api/x/envelope/").status == 404
    assert send(server, body, key, "/api//envelope/").status == 404
    assert server.metric("granary_sentry_refused_total", reason="key") == 10
    assert server.get("/oops").json["reports"] == []


def test_a_stranger_cannot_tell_which_projects_are_there(server):
    """Neither by the answer nor by when it comes: before the body, or behind it."""
    def answer(number, door, shown, body):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as sock:
            sock.sendall((f"POST /api/{number}/{door} HTTP/1.1\r\nHost: localhost\r\n{shown}"
                          f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n"
                          "Connection: close\r\n\r\n").encode())
            first = sock.recv(100000)
            sock.sendall(body)
            rest = b"".join(iter(lambda: sock.recv(100000), b""))
        return re.sub(rb"(?m)^Date: .*$", b"", first + rest)
    key_of_none = f"X-Sentry-Auth: Sentry sentry_key={KEY}\r\n"
    for door in ("envelope/", "store/"):
        for shown in ("", key_of_none):
            for body in (envelope(("event", EVENT)), b"", b"no event"):
                said = answer(1, door, shown, body)
                assert b" 403 " in said
                assert answer(9, door, shown, body) == said
                assert answer(0, door, shown, body) == said


def test_pages_of_other_sites_may_send(server, key):
    page = {"Origin": "https://shop.example", "Sec-Fetch-Site": "cross-site"}
    asked = {**page, "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "content-type"}
    for door in ("envelope/", "store/"):
        answer = server.request("OPTIONS", f"/api/1/{door}", b"", asked)
        assert answer.status == 204
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Access-Control-Allow-Methods"] == "POST"
    answer = send(server, envelope(("event", EVENT)), path=f"/api/1/envelope/?sentry_key={key}",
                  headers={**page, "Content-Type": "text/plain;charset=UTF-8"})
    assert answer.status == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    answer = send(server, b"", headers=page)
    assert answer.status == 403
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert server.request("POST", "/oops", json.dumps(EVENT), page).status == 403


# ---- Quotas -------------------------------------------------------------------------------------


def await_room(span_s):
    """Spans are those of the clock: a test ends in the one in which it began."""
    eventually(lambda: time.time() % span_s < span_s - 30, "another span begins")


def test_quota_of_requests(make_server):
    await_room(3600)
    server = make_server(options=["--fault.quota.hour=2"])
    server.start()
    key = projects_of(server)[0]["keys"][0]
    body = envelope(("event", EVENT))
    for _ in range(3):
        expect_refused(send(server, body), 403, "no key")
    assert [send(server, body, key).status for _ in range(3)] == [200, 200, 429]
    # Who shows no key of the project uses up nothing of what it may send.
    expect_refused(send(server, body, KEY), 403, "no key")
    answer = send(server, body, key)
    expect_refused(answer, 429, r"^the tenant of project 1 has sent as many requests in this hour "
                                r"as it may \(fault\.quota\.hour\): send again in \d+ s$")
    wait_s = int(answer.headers["Retry-After"])
    assert 0 < wait_s <= 3600
    assert answer.headers["X-Sentry-Rate-Limits"] == f"{wait_s}::organization"
    assert server.metric("granary_sentry_refused_total", reason="quota") == 2
    # Each tenant has its own.
    other = run("fault", "project", "add", "shop", "--server", server.url).stdout
    other = re.match("http://(.*)@", other)[1]
    assert send(server, body, other, "/api/2/envelope/").status == 200
    # What was taken before a restart counts, of each.
    server.restart()
    assert send(server, body, key).status == 429
    assert [send(server, body, other, "/api/2/envelope/").status for _ in range(2)] == [200, 429]


def test_a_quota_that_is_damaged_is_that_of_its_tenant_only(make_server):
    """A bit of the cell of one tenant is flipped: its quota begins anew, that of the other one is
    what it was."""
    server = make_server(options=["--fault.quota.hour=2"])
    server.start()
    keys = [projects_of(server)[0]["keys"][0]]
    added = run("fault", "project", "add", "shop", "--server", server.url).stdout
    keys.append(re.match("http://(.*)@", added)[1])
    body = envelope(("event", EVENT))

    def statuses():
        return [send(server, body, key, f"/api/{number}/envelope/").status
                for number, key in enumerate(keys, 1)]
    assert [statuses(), statuses(), statuses()] == [[200, 200], [200, 200], [429, 429]]
    server.stop()
    file = server.data / "data.mdb"
    content = bytearray(file.read_bytes())
    # Cells of fault_quotas: 41, the hash of the row of a tenant, the process; checksum, and flags
    # of a stamp and an expiry. Each may be there in older pages, too.
    cells = [(match.start(), match[1], match[2]) for match in
             re.finditer(rb"(?=\x29(.{16})([0-9a-f]{16}).{4}\x1c)", content, re.DOTALL)]
    ((process, _),) = collections.Counter(column for _, _, column in cells).most_common(1)
    rows = {row for _, row, column in cells if column == process}
    assert len(rows) == 2
    damaged = min(rows)
    for at, row, column in cells:
        if row == damaged and column == process:
            content[at + 45] ^= 4
    file.write_bytes(content)
    server.start()
    assert sorted(statuses()) == [200, 429]
    assert server.metric("granary_sentry_quotas_unread_total") >= 1


def test_quota_of_bytes_is_heeded_before_the_body_is_read(make_server):
    await_room(86400)
    server = make_server(options=["--fault.quota.day_bytes=1000"])
    server.start()
    key = projects_of(server)[0]["keys"][0]
    head = (f"POST /api/1/envelope/?sentry_key={key} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Content-Length: 1000000\r\n\r\n")
    # A body that never comes uses up nothing.
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as sock:
        sock.sendall(head.encode())
    eventually(lambda: server.metric("granary_http_requests_aborted_total") == 1, "it is given up")
    assert send(server, envelope(("event", {"message": "m" * 1000})), key).status == 200
    for _ in range(2):
        answer = server.raw(head.encode(), until_closed=False)
        assert answer.startswith(b"HTTP/1.1 429 "), answer
        server.restart()


def test_bodies_side_by_side_do_not_pass_the_quota_of_bytes(make_server):
    """All heads come before the first body is whole."""
    await_room(86400)
    server = make_server(options=["--fault.quota.day_bytes=2500"])
    server.start()
    key = projects_of(server)[0]["keys"][0]
    body = json.dumps({"message": "m" * 980}).encode()
    head = (f"POST /api/1/store/?sentry_key={key} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    with contextlib.ExitStack() as stack:
        open_ = [stack.enter_context(socket.create_connection(
            ("127.0.0.1", server.port), PATIENCE_S)) for _ in range(10)]
        for sock in open_:
            sock.sendall(head + body[:-1])
        eventually(lambda: server.metric("granary_http_received_bytes_total") >
                   10 * len(body), "the heads are there")
        answers = []
        for sock in open_:
            sock.sendall(body[-1:])
            answers.append(sock.makefile("rb").readline().split()[1])
    assert answers == [b"200"] * 3 + [b"429"] * 7


def test_a_quota_ends_with_the_hour_of_the_clock(tmp_path):
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "fault:\n  quota:\n    hour: 1\n")
    server.set_wall(int((801 - time.time()) % 3600))  # it is 13 min 20 s past: 2,800 s are left
    begun = time.monotonic()
    server.start()
    try:
        key = projects_of(server)[0]["keys"][0]
        body = envelope(("event", EVENT))
        assert send(server, body, key).status == 200
        answer = send(server, body, key)
        assert answer.status == 429
        wait_s = int(answer.headers["Retry-After"])
        assert 2800 - (time.monotonic() - begun) - 2 < wait_s <= 2800
        server.set_wall(server.wall_s + 1700)
        assert send(server, body, key).status == 429
        server.set_wall(server.wall_s + wait_s - 1700)
        assert [send(server, body, key).status for _ in range(2)] == [200, 429]
        # Who set the clock back by a year waits for the end of an hour all the same.
        server.set_wall(server.wall_s - 366 * 86400)
        assert [send(server, body, key).status for _ in range(2)] == [200, 429]
    finally:
        server.kill()


# ---- Bodies -------------------------------------------------------------------------------------


def test_codings_and_chunks(server, key):
    body = envelope(("event", EVENT))
    packed = zlib.compressobj(wbits=-15)
    for coding, coded in (("gzip", gzip.compress(body)), ("deflate", zlib.compress(body)),
                          ("deflate", packed.compress(body) + packed.flush()),
                          ("br", brotli.compress(body))):
        assert send(server, coded, key, headers={"Content-Encoding": coding}).status == 200, coding
    answer = server.request("POST", f"/api/1/envelope/?sentry_key={key}",
                            b"7\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n"
                            % (body[:7], len(body) - 7, body[7:]),
                            {"Transfer-Encoding": "chunked"})
    assert answer.status == 200
    assert len({r["id"] for r in server.get("/oops").json["reports"]}) == 1


def test_bodies_of_old_clients(server, key):
    def store(body, **headers):
        return send(server, body, key, "/api/1/store/", headers)
    event = {**EVENT, "extra": {"more": "x" * 200}}
    text = json.dumps(event).encode()
    packed = zlib.compress(text)
    bodies = (text, packed, base64.b64encode(text), base64.b64encode(packed),
              base64.encodebytes(packed))
    assert b"\n" in bodies[-1][:-1]
    (made,) = {store(body, **{"Content-Type": "application/octet-stream"}).json["id"]
               for body in bodies}
    answer = server.request("POST", "/api/1/store/", zlib.compress(bodies[3]),
                            {"Content-Encoding": "deflate",
                             "X-Sentry-Auth": f"Sentry sentry_key={key}"})
    assert answer.json == {"id": made}
    report = server.get(f"/oops/{made}").json
    assert (report["exception"], report["extra"]) == ("KeyError", event["extra"])
    assert len(server.get("/oops").json["reports"]) == 1
    expect_refused(store(packed[:-1]), 400, "^zlib: it is cut off before its end$")
    expect_refused(store(packed + b"x"), 400, "^zlib: something follows behind its end$")
    expect_refused(store(b"eyJ-"), 400, "^base64: byte 3 does not belong there$")
    expect_refused(store(base64.b64encode(zlib.compress(b"{"))), 400, "^the report is cut before")
    bomb = zlib.compress(b" " * (33 << 20))
    expect_refused(store(bomb), 413, "^zlib: unpacked it has more bytes than are taken$")


def test_ids(server, key):
    for given in (ID, DASHED, ID.upper()):
        answer = send(server, envelope(("event", {**EVENT, "event_id": given})), key)
        assert answer.json == {"id": ID}, answer
    # The envelope's wins over the event's, and neither is content.
    body = envelope(("event", {**EVENT, "event_id": "0" * 32}), event_id=DASHED)
    assert send(server, body, key).json == {"id": ID}
    assert len(server.get("/oops").json["reports"]) == 1
    body = envelope(("event", {**EVENT, "more": 1}), event_id=ID)
    expect_refused(send(server, body, key), 409, "^there is another report with the id ")
    made = send(server, envelope(("event", EVENT)), key).json["id"]
    assert re.fullmatch("[0-9a-f]{32}", made)
    assert server.get(f"/oops/{made}").json["id"] == f"OOPS-{made}"
    again = send(server, json.dumps(EVENT), key, "/api/1/store/").json["id"]
    assert again == made


def test_what_is_refused_of_an_event_is_on_the_report(server, key):
    """The answer of this door has no room for it."""
    event = {"event_id": "a" * 32, "release": ["1"], "refused": ["by the client"]}
    answer = send(server, envelope(("event", event), event_id="a" * 32), key)
    assert (answer.status, answer.json) == (200, {"id": "a" * 32})
    kept = server.get("/oops/" + "a" * 32).json
    assert kept["refused"] == ["release: it is no text, and is kept as it is"]
    assert (kept["release"], kept["reported.refused"]) == (["1"], ["by the client"])


def test_items_are_counted(server, key):
    names = ["session", "sessions", "client_report", "attachment", "future", "x" * 300]
    answer = send(server, envelope(*[(name, {}) for name in names], event_id=ID), key)
    assert (answer.status, answer.json) == (200, {"id": ID})
    assert send(server, b"{}", key).json == {}
    for name in names[:4]:
        assert server.metric("granary_sentry_items_total", type=name) == 1
    assert server.metric("granary_sentry_items_total", type="other") == 2
    assert server.get("/oops").json["reports"] == []


def with_files(*contents, event_id=ID, event=EVENT):
    """An envelope with an event in the middle of its files."""
    lines = [json.dumps({"event_id": event_id}).encode()]
    for number, content in enumerate(contents):
        head = {"type": "attachment", "length": len(content), "filename": f"{number}.html",
                "content_type": "text/html"}
        lines += [json.dumps(head).encode(), content]
        if number == 0 and event:
            lines += [b'{"type":"event"}', json.dumps(event).encode()]
    return b"\n".join(lines)


def test_files_of_an_event(server, key):
    contents = [b"<script>alert(1)</script>", b"", bytes(random.Random(3).randbytes(1000000)),
                b"x" * 1000001, b"\n\r\n"]
    assert send(server, with_files(*contents), key).status == 200
    report = server.get(f"/oops/{ID}").json
    assert [(f["bytes"], f["kept"]) for f in report["attachments"]] == [
        (len(content), len(content) <= 1000000) for content in contents]
    assert server.get("/oops").json["reports"][0]["attachments"] == 5
    assert server.metric("granary_fault_attachments_refused_total") == 1
    for restarted in (False, True):
        if restarted:
            server.kill()
            server.start()
        for number in (0, 1, 2, 4):
            answer = server.get(f"/oops/{ID}/attachments/{number}")
            assert (answer.status, answer.body) == (200, contents[number])
            # No browser takes it for a page.
            assert answer.headers["Content-Type"] == "application/octet-stream"
            assert answer.headers["Content-Disposition"] == "attachment"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for number in ("3", "5", "99999999999999999999", "-1", "x", ""):
        assert server.get(f"/oops/{ID}/attachments/{number}").status == 404, number
    # What is sent again has the files that came first; so has what conflicts with it.
    assert send(server, with_files(b"others"), key).status == 200
    other = {"message": "another"}
    assert send(server, with_files(b"others", event=other), key).status == 409
    assert server.get(f"/oops/{ID}/attachments/0").body == contents[0]
    assert "attachments" not in server.get("/oops", q="another").json


def test_files_without_an_event_or_too_many(server, key):
    assert send(server, with_files(b"a", b"b", event=None), key).status == 200
    assert server.metric("granary_fault_attachments_refused_total") == 2
    assert server.get("/oops").json["reports"] == []
    assert send(server, with_files(*[b"%d" % n for n in range(103)]), key).status == 200
    report = server.get(f"/oops/{ID}").json
    assert len(report["attachments"]) == 100
    assert server.get(f"/oops/{ID}/attachments/99").body == b"99"
    assert server.metric("granary_fault_attachments_refused_total") == 5
    # Nine of one MB are more than 8 MiB.
    large = [bytes(900000 + n) for n in range(10)]
    assert send(server, with_files(*large, event_id="f" * 32), key).status == 200
    files = server.get(f"/oops/{'f' * 32}").json["attachments"]
    assert [f["kept"] for f in files] == [True] * 9 + [False]
    # An attribute of this name is another thing.
    event = {"message": "x", "attachments": [1], "event_id": "e" * 32}
    assert send(server, envelope(("event", event)), key).status == 200
    assert server.get(f"/oops/{'e' * 32}").json["reported.attachments"] == [1]


def test_files_may_be_left_out(make_server):
    server = make_server(options=["--fault.attachment_max=0"])
    server.start()
    key = projects_of(server)[0]["keys"][0]
    assert send(server, with_files(b"a"), key).status == 200
    assert "attachments" not in server.get(f"/oops/{ID}").json
    server.stop()


def test_sessions_and_discarded_events_are_metrics(server, key):
    minute_s = int(time.time()) // 60 * 60 - 600
    minute, started = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(minute_s + s))
                       for s in (0, 59))
    whose = {"release": "shop@1.4.2", "environment": "staging"}
    session = {"sid": DASHED, "started": started, "status": "ok", "init": True, "attrs": whose}
    crashed = {"sid": DASHED, "started": started, "status": "crashed", "attrs": whose}
    many = {"aggregates": [{"started": started, "exited": 5, "errored": 2}], "attrs": whose}
    lost = {"timestamp": minute_s, "discarded_events": [
        {"reason": "queue_overflow", "category": "error", "quantity": 7}]}

    def counts(metric, tag, others):
        """By the tag, how many there were in that minute; there are none in any other."""
        found = {}
        for series in server.query(metric, start=minute_s - 3600, fn="sum", window="1m"):
            assert list(series["values"]) == [minute], series
            value = series["tags"].pop(tag)
            assert series["tags"] == others
            found[value] = series["values"][minute]
        return found

    def sessions():
        return counts("faults_sessions", "status", whose)

    def discarded():
        return counts("faults_discarded", "reason", {"category": "error"})
    body = envelope(("session", session), ("event", EVENT), ("session", crashed),
                    ("sessions", many), ("client_report", lost), ("session", "no object"))
    assert send(server, body, key).status == 200
    eventually(lambda: sessions() == {"ok": 8, "crashed": 1, "exited": 5, "errored": 2})
    eventually(lambda: discarded() == {"queue_overflow": 7})
    # A server that ends writes what is left, and one that begins adds to it.
    assert send(server, body, key).status == 200
    server.restart()
    assert discarded() == {"queue_overflow": 14}
    assert send(server, envelope(("session", session)), key).status == 200
    eventually(lambda: sessions() == {"ok": 17, "crashed": 2, "exited": 10, "errored": 4})
    assert len(server.get("/oops").json["reports"]) == 1


def test_slow_transactions(make_server):
    server = make_server(options=["--fault.slow=2s"])
    server.start()
    key = projects_of(server)[0]["keys"][0]

    def transaction(number, seconds):
        return envelope(("transaction", {
            "type": "transaction", "transaction": f"/{number}", "start_timestamp": 1700000000,
            "timestamp": 1700000000 + seconds,
            "spans": [{"op": "db.sql.query", "description": "SELECT 1",
                       "start_timestamp": 1700000000, "timestamp": 1700000001}]}))
    for number, seconds in enumerate((1.5, 2, 2.5)):
        assert send(server, transaction(number, seconds), key).status == 200
    (report,) = server.get("/oops").json["reports"]
    assert (report["context"], report["exception"]) == ("/2", "SoftRequestTimeout")
    assert (report["duration"], report["statements"]) == (2500, 1)
    assert server.metric("granary_sentry_items_total", type="transaction") == 3
    assert server.metric("granary_sentry_slow_total") == 1


def test_what_is_wrong_with_a_body(server, key):
    expect_refused(send(server, b"", key), 400, "^the envelope is empty")
    expect_refused(send(server, b"[]", key), 400, "^headers of the envelope: ")
    expect_refused(send(server, b'{}\n{"type":"event"}\n{"a" 1', key), 400, "^the event: line 1")
    expect_refused(send(server, b'{}\n{"type":"event","length":9}\n{}', key), 400,
                   "^item 0 of the envelope: its payload has 2 bytes")
    expect_refused(send(server, b"5", key, "/api/1/store/"), 400, "^the event: it is no object")
    expect_refused(send(server, envelope(("event", {"a": "x" * 2000000})), key), 413,
                   "^the report has more than")
    # An event in front of what is damaged is taken.
    body = envelope(("event", EVENT)) + b'\n{"type":"attachment","length":9}\n{}'
    assert send(server, body, key).status == 200
    assert server.metric("granary_sentry_cut_total") == 2
    # Of one that is cut is kept what is there.
    for number, body in enumerate((b'{}\n{"type":"event"}\n{"event_id":"%s","message":"cut he',
                                   b'{}\n{"type":"event","length":99}\n{"event_id":"%s",'
                                   b'"message":"cut he"')):
        whole = f"{number:032x}"
        cut = send(server, body % whole.encode(), key).json["id"]
        report = server.get(f"/oops/{cut}").json
        assert report["message"] == "cut he" and "is cut" in report["refused"][0]
        assert report["event_id"] == whole != cut
        assert send(server, envelope(("event", {"event_id": whole})), key).json == {"id": whole}
    assert server.metric("granary_sentry_cut_total") == 3
    # Half a character and a number that is none do not cost the event.
    text = b'{}\n{"type":"event"}\n{"message":"a\\ud83d","extra":{"n":NaN},"event_id":"%s"}'
    assert send(server, text % ID.encode(), key).status == 200
    report = server.get(f"/oops/{ID}").json
    assert (report["value"], report["extra"]) == ("a\ufffd", {"n": "NaN"})


def test_run_prints_the_dsn(make_server):
    server = make_server(options=["--welcome=true"])
    server.start()
    (dsn,) = projects_of(server)[0]["dsn"]
    eventually(lambda: f"Sentry's clients send faults to the DSN {dsn}\n" in server.log_text())
