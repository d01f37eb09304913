"""What must not hurt: bodies too long, bombs, times outside the window, ambiguous HTTP, slow and
idle clients, limits on series. Each refusal is counted."""

import contextlib
import json
import select
import socket
import threading
import time
import urllib.parse
import zlib

import pytest

from server import PATIENCE_S, eventually, free_port, gzipped, long_run, run

POINT = {"metric": "m", "timestamp": 1600000000, "value": 1, "tags": {"a": "b"}}


def still_well(server):
    assert server.put(POINT).status == 204
    assert list(server.values("m").values()) == [1.0]


def test_of_a_question_that_is_too_long_nothing_is_said_of_storing(make_server):
    server = make_server()
    server.start()
    answer = server.request("POST", "/api/query", b" " * ((1 << 20) + 1))
    assert answer.status == 413
    assert answer.json["error"]["message"] == "the body is larger than 1048576 bytes"


@pytest.mark.parametrize("path", ["/api/put", "/write"])
def test_a_body_over_the_limit_gets_413(make_server, path):
    server = make_server(options=["--ingest.body_max=100K"])
    server.start()
    answer = server.request("POST", path, b"x" * 102401)
    assert answer.status == 413, answer
    assert server.running()
    # The client is still sending megabytes when the refusal is clear: it gets to read it.
    answer = server.request("POST", path, b"y" * (20 << 20))
    assert answer.status == 413
    # Chunked: nobody said beforehand how long it is.
    server.close()
    chunk = b"10000\r\n" + b"z" * 65536 + b"\r\n"
    answer = server.raw(b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                        b"Connection: close\r\n\r\n" % path.encode() + chunk * 40 + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")
    still_well(server)


def test_a_body_at_the_limit_is_taken(make_server):
    server = make_server(options=["--ingest.body_max=100K"])
    server.start()
    body = json.dumps([POINT])
    assert server.put(body + " " * (102400 - len(body))).status == 204


@pytest.mark.parametrize("path", ["/api/put", "/write"])
def test_a_gzip_bomb_is_stopped_at_the_limit(make_server, path):
    server = make_server(options=["--ingest.decoded_max=1M"])
    server.start()
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(200)) + packer.flush()
    assert len(bomb) < 1 << 20  # 200 MB of blanks in 200 KB
    before = server.process.pid, memory(server)
    answer = server.request("POST", path, bomb, {"Content-Encoding": "gzip"})
    assert answer.status == 413, answer
    assert memory(server) - before[1] < 64 << 20
    still_well(server)


def memory(server):
    with open(f"/proc/{server.process.pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))


def test_times_outside_the_window_are_refused_and_counted(server):
    now = int(time.time())
    before = refused(server)
    answer = server.put([dict(POINT, timestamp=now + 2 * 86400), dict(POINT, timestamp=-1),
                         dict(POINT, timestamp=now + 86400 - 60)], details="")
    assert answer.status == 400
    assert (answer.json["success"], answer.json["failed"]) == (1, 2)
    answer = server.write(f"m,a=b value=1 {now + 2 * 86400}000000000\nm,a=b value=1 -1\n")
    assert answer.status == 400
    assert refused(server) == before + 4
    assert len(server.values("m", end=now + 3 * 86400)) == 1


def refused(server):
    return server.metric("granary_ingest_refused_total")


@pytest.mark.parametrize("body", [
    '{"metric":"m","timestamp":1600000000,"value":"NaN","tags":{"a":"b"}}',
    '{"metric":"m","timestamp":1600000000,"value":1e999,"tags":{"a":"b"}}',
    '{"metric":"m","timestamp":1600000000,"value":1,"tags":{"a":""}}',
    '{"metric":"' + "m" * 300 + '","timestamp":1600000000,"value":1,"tags":{"a":"b"}}',
])
def test_what_is_refused_is_counted_with_its_reason(server, body):
    before = refused(server)
    assert server.put(body).status == 400
    assert refused(server) == before + 1
    assert 'granary_ingest_refused_total{reason="' in server.get("/metrics").text


REQUEST = b"POST /api/put HTTP/1.1\r\nHost: localhost\r\n"
BODY = json.dumps(POINT).encode()


@pytest.mark.parametrize("head", [
    b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n" % len(BODY),
    b"Transfer-Encoding: chunked\r\nContent-Length: %d\r\n" % len(BODY),
    b"Content-Length: %d\r\nContent-Length: %d\r\n" % (len(BODY), len(BODY) + 1),
    b"Content-Length: %d\r\nContent-Length: %d\r\n" % (len(BODY), len(BODY)),
    b"Content-Length : %d\r\n" % len(BODY),
    b"Content-Length: %d\n" % len(BODY),
    b"X-Folded: a\r\n b\r\nContent-Length: %d\r\n" % len(BODY),
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding: xchunked\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: +%d\r\n" % len(BODY),
    b"Content-Length: 0x10\r\n",
    b"Content-Length: 99999999999999999999999\r\n",
    b"Host: y\r\nContent-Length: %d\r\n" % len(BODY),
    b"X-Nul: a\0b\r\nContent-Length: %d\r\n" % len(BODY),
])
def test_ambiguous_requests_get_400_and_the_connection_is_closed(server, head):
    # A second request hides behind the first; it must not be answered.
    answer = server.raw(REQUEST + head + b"\r\n" + BODY
                        + b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ", b"HTTP/1.1 501 ")), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1
    assert server.get("/api/metadata/tenants").json == []


@pytest.mark.parametrize("request_line", [
    b"GET / HTTP/1.1\n", b"GET  / HTTP/1.1\r\n", b"GET / HTTP/9.9\r\n", b"G\0T / HTTP/1.1\r\n",
    b"GET /\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n\r\n",
])
def test_requests_that_are_none(server, request_line):
    """The last one has no Host."""
    rest = b"Host: localhost\r\n\r\n"
    answer = server.raw(request_line + rest if not request_line.endswith(b"\r\n\r\n")
                        else request_line)
    assert answer == b"" or answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 505 ")), answer[:200]
    still_well(server)


def test_head_bytes_are_bounded(server):
    answer = server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (1 << 20)
                        + b"\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 ")), answer[:100]
    answer = server.raw(b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 414 ", b"HTTP/1.1 431 ", b"HTTP/1.1 400 ")), answer[:100]
    still_well(server)


def is_cut(sock):
    """Whether the server has closed it; what it answered before is passed over."""
    with contextlib.suppress(ConnectionResetError):
        while select.select([sock], [], [], 0)[0]:
            if not sock.recv(65536):
                return True
        return False
    return True


@pytest.mark.parametrize("data", [
    b"", b"GET / HT", REQUEST + b"Content-Length: 1000\r\n\r\n{",
    REQUEST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n[",
    b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n",
])
def test_slow_and_idle_clients_are_cut_by_deadlines(make_server, data):
    """The deadlines are those of the options: the same client of a server with long ones, which
    came before, still has its place when the other is cut."""
    socks = []
    with contextlib.ExitStack() as ends:
        for name, deadline in (("patient", "1h"), ("hasty", "200ms")):
            server = make_server(name, options=[f"--http.{kind}_timeout={deadline}"
                                                for kind in ("header", "body", "idle")])
            server.start()
            server.close()
            socks.append(ends.enter_context(
                socket.create_connection(("127.0.0.1", server.port), PATIENCE_S)))
            socks[-1].sendall(data)
        eventually(lambda: is_cut(socks[1]), "the end of a connection")
        assert not is_cut(socks[0])
    still_well(server)


def test_a_client_that_dribbles_is_cut(make_server):
    """A byte now and then is no progress: it is cut before it has sent its head."""
    server = make_server(options=["--http.header_timeout=300ms"])
    server.start()
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as sock:
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for byte in (b"GET / HTTP/1.1\r\nX: " + b"a" * 1000):
                sock.sendall(bytes([byte]))
                if select.select([sock], [], [], 0.02)[0] and not sock.recv(65536):
                    raise ConnectionResetError


def test_connections_are_bounded(make_server):
    server = make_server(options=["--http.connections_max=10"])
    server.start()
    held = [server.connection.sock]  # the first one is there already
    while len(held) < 10:
        held.append(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S))
    for sock in held:  # answered, so accepted
        sock.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 200 ")
    # One more has the place of the one that was idle longest.
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as late:
        late.sendall(b"GET /api/devices HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert late.recv(4096).startswith(b"HTTP/1.1 200 ")
    assert [sock.recv(1) for sock in held if select.select([sock], [], [], 0)[0]] == [b""]
    server.close()
    still_well(server)
    assert server.metric("granary_http_connections") <= 10
    for sock in held[1:]:
        sock.close()


def test_ten_thousand_silent_connections_shut_nobody_out(make_server):
    """As many as descriptors and time allow: each takes the place of one before it."""
    server = make_server(options=["--http.connections_max=50"])
    server.start()
    server.close()
    silent = []
    for n in range(10000 if long_run() else 600):
        silent.append(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S))
        if len(silent) > 100:
            silent.pop(0).close()
        if n % 100 == 99:
            assert server.put({"metric": "m", "timestamp": 1600000000 + n, "value": n,
                               "tags": {"a": "b"}}).status == 204
            server.close()
    assert server.metric("granary_http_connections_evicted_total") > 0
    for sock in silent:
        sock.close()


def test_unknown_paths_and_methods(server):
    assert server.get("/no/such/path").status == 404
    answer = server.request("DELETE", "/api/put")
    assert answer.status == 405 and "POST" in answer.headers["Allow"]
    assert server.get("/api/put").status == 405
    assert server.get("/%2e%2e/%2e%2e/etc/passwd").status == 404
    assert server.get("/%zz").status in (400, 404)
    assert server.get("/api/query?%00=%ff").status in (400, 404)


def test_series_limits_answer_with_a_sentence(make_server):
    server = make_server(options=["--catalog.series_per_tenant=3"])
    server.start()
    points = [dict(POINT, tags={"host": f"h-{i}"}) for i in range(5)]
    answer = server.put(points, details="")
    assert answer.status == 400
    assert answer.json["success"] == 3 and answer.json["failed"] == 2
    assert "3" in answer.json["errors"][0]["error"] if "error" in answer.json["errors"][0] else True
    # What exists goes on; another tenant has its own three.
    assert server.put(points[:3]).status == 204
    assert server.put(points[:3], {"X-Tenant": "other"}).status == 204
    assert len(server.query("m", start=0)) == 3


def test_new_series_per_minute(make_server):
    server = make_server(options=["--catalog.new_series_per_minute=4"])
    server.start()
    answer = server.put([dict(POINT, tags={"host": f"h-{i}"}) for i in range(10)], details="")
    assert answer.status == 400
    assert 4 <= answer.json["success"] <= 5
    assert "minute" in json.dumps(answer.json["errors"])


def test_tags_per_series(make_server):
    server = make_server(options=["--catalog.tags_max=2"])
    server.start()
    assert server.put(dict(POINT, tags={"a": "1", "b": "2"})).status == 204
    answer = server.put(dict(POINT, tags={"a": "1", "b": "2", "c": "3"}), details="")
    assert answer.status == 400 and "2" in json.dumps(answer.json["errors"])


def test_pipelined_requests_are_answered_in_order(server):
    still_well(server)
    request = (b"GET /api/metadata/tenants HTTP/1.1\r\nHost: localhost\r\n\r\n"
               b"GET /no/such HTTP/1.1\r\nHost: localhost\r\n\r\n"
               b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = server.raw(request)
    at = [answer.find(b"HTTP/1.1 " + code) for code in (b"200", b"404", b"204")]
    assert -1 < at[0] < at[1] < at[2]


def test_gzip_of_garbage_and_trailing_bytes(server):
    good = gzipped(json.dumps(POINT))
    for bad in (b"\x1f\x8b", good[:10], good[:-1], b"\x1f\x8b" + b"\xff" * 100):
        assert server.put(bad, {"Content-Encoding": "gzip"}).status == 400
    still_well(server)


def test_a_body_longer_than_the_memory_for_bodies_gets_413(make_server):
    """Its first piece is short, its length is known: what it may decode to counts, too."""
    server = make_server(options=["--http.memory_max=1M"])
    server.start()
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as sock:
        sock.sendall(b"POST /api/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000\r\n\r\n"
                     + b"[" * 11)
        assert sock.recv(65536).startswith(b"HTTP/1.1 413 ")
    still_well(server)


def test_very_many_new_series_in_one_body(make_server):
    """More than one round of registering holds: the body waits for its turn, it is not refused."""
    server = make_server(options=["--catalog.new_series_per_minute=0"])
    server.start()
    body = "".join(f"bw,h=host-{i},dc={i % 7} v=1 1600000000000000000\n" for i in range(300000))
    assert server.request("POST", "/write", body.encode()).status == 204
    still_well(server)


def test_an_empty_configuration_file_is_one(make_server):
    server = make_server(config="# nothing")
    server.config.write_text("")
    server.start()
    still_well(server)


def test_a_half_sent_request_does_not_hold_up_a_stop(make_server):
    """Nothing was asked yet: the stop does not wait its 10 minutes for the rest of it."""
    server = make_server(options=["--stop_timeout=10m"])
    server.start()
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as sock:
        sock.sendall(b"GET / HT")
        still_well(server)
        server.stop()
        assert sock.recv(100) == b""


# Controls of C1, overrides and isolates of direction, ends of lines: of two and three bytes each.
COMMANDS = "\u009b2J\u202egnp\u2066\u2028\u061c"


def given_no_commands(shown):
    text = shown if isinstance(shown, str) else shown.decode()
    return not set(text) & {*map(chr, range(32)), "\x7f", *COMMANDS} - {*"\r\n\t2Jgnp"}


def test_names_give_no_commands_wherever_they_are_shown(make_server):
    """A name keeps all its characters, and nobody who is shown it obeys one of them."""
    door = free_port()
    server = make_server(options=[f"--opentsdb.listen=127.0.0.1:{door}"])
    server.start()
    name = f"m{COMMANDS}"
    assert server.write(f'{name},host={COMMANDS} f=1,{name}="text" 1600000000000000000'
                        ).status == 204
    metric = {"tenant": "default", "metricName": f"{name}_f"}
    shown = {
        "query": server.get("/api/query", start=0, **metric),
        "series": server.get("/api/metadata/series", **metric),
        "names": server.get("/api/metadata/metricNames", tenant="default"),
        "no metric": server.get("/api/metadata/metric", tenant="default", metricName=name),
        "no device": server.get("/api/devices/" + urllib.parse.quote(COMMANDS)),
        "no parameter": server.get("/api/query", **{name: 1}),
        "no rows": server.get("/v2/device/" + urllib.parse.quote(COMMANDS) + "/"),
        "refused": server.put({"metric": f"{name}\x9b\t", "timestamp": 1, "value": 1, "tags": {}},
                              details=""),
        "opentsdb": server.request("POST", "/api/query", json.dumps(
            {"start": 1600000000, "queries": [{"metric": f"{name}_f", "aggregator": "none"}]})),
    }
    for where, answer in shown.items():
        assert given_no_commands(answer.body), (where, answer)
    assert shown["query"].json[0]["metricName"] == f"{name}_f"
    assert shown["query"].json[0]["tags"] == {"host": COMMANDS}
    assert f"{name}_f" in shown["names"].json
    message = shown["no metric"].json["error"]["message"]
    assert message == f'metric "{name}" of tenant "default" does not exist'

    page = server.get("/").text
    assert given_no_commands(page)
    assert r"m\u009b2J\u202egnp\u2066\u2028\u061c_f</a>" in page

    with socket.create_connection(("127.0.0.1", door)) as connection:
        connection.sendall(f"{name}\nput {name} x 1\nexit\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert given_no_commands(answer) and answer.count(rb"m\u009b2J\u202e") >= 1

    for command in (["metric", "show", name], ["rollup", name], [name], ["help", name],
                    ["series", f"--{name}"], ["series", "x", name], ["config", f"--{name}", "1"],
                    ["serve", f"--{name}", "1"], ["poll", f"--{name}", "1"],
                    ["query", "x", "--start", name], ["serve", "--config", f"/nosuch/{name}"]):
        if command[0] in ("metric", "query"):
            command += ["--server", server.url]
        answer = run(*command)
        assert answer.returncode in (1, 2) and r"\u009b2J\u202e" in answer.stderr, answer
        assert given_no_commands(answer.stdout + answer.stderr), answer
    server.stop()
    log = server.log_text()
    assert r"\u009b2J\u202egnp" in log and given_no_commands(log)


FLOODS = [b"POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n"
          + b"x\n" * 4000000,
          b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000]


@pytest.mark.parametrize("flood", FLOODS, ids=["bad lines", "pipelined"])
def test_many_who_send_much_do_not_stop_the_loop(server, flood):
    """Eight at once; others are answered meanwhile, and the longest turn stays as short as after
    every test (it took 1.2 and 2.2 s)."""
    def send():
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as sock:
            answers = threading.Thread(target=lambda: [1 for _ in iter(lambda: sock.recv(1 << 18),
                                                                       b"")])
            answers.start()
            sock.sendall(flood)
            sock.shutdown(socket.SHUT_WR)
            answers.join()

    clients = [threading.Thread(target=send) for _ in range(8)]
    for client in clients:
        client.start()
    asked = 0
    while any(client.is_alive() for client in clients):
        assert server.get("/-/healthy").status == 200
        asked += 1
    assert asked > 1
