"""Raw sockets against tests/tools/http_echo.c: limits, codings, deadlines and streams.

Deadlines are made short by the server's arguments; nothing here sleeps to see whether something
happens, it waits for the event itself, with a time limit that only a failure meets."""

import gzip
import json
import random
import select
import socket
import time
import zlib

import pytest

from raw_http import (BODY_MAX, DECODED_MAX, ERR_CANCELLED, ERR_INVALID, ERR_LIMIT, ERR_TIMEOUT,
                      PATIENCE_S, SMUGGLED, Server, both_wires, brotli, chunked, error_of,
                      one_client, pattern, post, raw_deflate, request, shared_server)


# ---- Limits -------------------------------------------------------------------------------------


def test_a_long_head(server):
    for head in (b"GET /" + b"a" * 20000, b"GET /hello HTTP/1.1\r\n" + b"A: b\r\n" * 5000,
                 b"GET /hello HTTP/1.1\r\nHost: h\r\nA: " + b"b" * 20000 + b"\r\n\r\n"):
        with server.client() as client:
            client.send(head)
            assert client.answer().status == 431
            client.socket.shutdown(socket.SHUT_WR)
            client.assert_closed()


def test_the_longest_head_is_ours_to_choose():
    """Of 1 MB, far beyond what http-parser takes by itself."""
    with Server(head_max_bytes=1 << 20) as server, server.client() as client:
        path = "/show/" + "%41" * 100000 + "?" + "a" * 500000
        shown = json.loads(client.get(path, "B: " + "b" * 100000).body)
        assert shown["path"] == "/show/" + "A" * 100000
        assert shown["params"] == [["a" * 500000, ""]]
        assert client.get("/show/", "B: " + "b" * (1 << 20)).status == 431


def test_many_headers(server):
    with server.client() as client:
        assert client.get("/hello", *["A: b"] * 99).status == 200
        assert client.get("/hello", *["A: b"] * 100).status == 431


def test_many_parameters(server):
    with server.client() as client:
        shown = json.loads(client.get("/show/?" + "&".join(["a"] * 256)).body)
        assert len(shown["params"]) == 256
        assert client.get("/show/?" + "&".join(["a"] * 257)).status == 400
    with server.client() as client:
        assert client.get("/show/?" + "&" * 1000).status == 400


def test_many_segments(server):
    with server.client() as client:
        assert client.get("/show" + "/a" * 15).status == 200
        assert client.get("/show" + "/a" * 16).status == 400


def test_a_body_at_the_limit_and_one_past_it(server, client):
    assert client.post("/gather", b"x" * BODY_MAX).body == b"x" * BODY_MAX
    assert client.post("/gather", b"x" * (BODY_MAX + 1)).status == 413
    with server.client() as other:
        other.send(post(b"Transfer-Encoding: chunked", body=chunked(b"x" * BODY_MAX)))
        assert other.answer().status == 200
        other.send(post(b"Transfer-Encoding: chunked", body=chunked(b"x" * BODY_MAX, b"y")))
        assert other.answer().status == 413


def test_a_body_where_none_is_taken(client):
    client.send(request("GET", "/hello", "Content-Length: 5") + SMUGGLED[:5])
    assert client.answer().status == 413
    assert client.get("/hello").status == 200


def test_413_reaches_a_client_that_only_sends(server):
    """20 MB of a body of which 4 are allowed, sent to the end before anything is read."""
    with server.client() as client:
        client.send(request("POST", "/gather", f"Content-Length: {20 << 20}"))
        for _ in range(20):
            client.send(b"x" * (1 << 20))
        answer = client.answer()
        assert answer.status == 413
        assert "4194304" in error_of(answer)
        assert answer.headers["connection"] == "close"
        client.assert_closed()


def test_413_in_the_middle_of_chunks(server):
    before = server.counts()
    with server.client() as client:
        client.send(request("POST", "/gather", "Transfer-Encoding: chunked"))
        for _ in range(20):
            client.send(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
        assert client.answer().status == 413
        client.assert_closed()
    after = server.counts()
    assert after["aborted"] == before["aborted"] + 1
    assert after["last_abort"] == ERR_LIMIT


def test_a_refused_body_without_end_is_cut():
    with Server(drain_max_bytes=1 << 20) as server, server.client() as client:
        client.send(request("POST", "/gather", f"Content-Length: {1 << 40}"))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for _ in range(10000):
                client.send(b"x" * (1 << 20))


def test_a_refused_body_that_does_not_come_is_cut():
    with Server(body_timeout_ms=200) as server, server.client() as client:
        client.send(request("POST", "/gather", f"Content-Length: {1 << 40}"))
        assert client.answer().status == 413
        client.assert_closed()
        assert client.socket.recv(1) == b""


def test_an_early_answer_and_a_short_body(server):
    """The rest of the body is passed over and not taken for a request."""
    before = server.counts()
    with server.client() as client:
        client.send(request("POST", "/early", f"Content-Length: {len(SMUGGLED) * 100}"))
        assert client.answer().status == 409
        client.send(SMUGGLED * 100)
        assert client.post("/gather", b"next").body == b"next"
    assert server.counts()["begun"] == before["begun"] + 1


def test_an_early_answer_and_a_long_body(server):
    for headers in (f"Content-Length: {1 << 24}", "Transfer-Encoding: chunked"):
        with server.client() as client:
            client.send(request("POST", "/early", headers) + b"x" * 1000)
            answer = client.answer()
            assert (answer.status, error_of(answer)) == (409, "not now")
            assert answer.headers["connection"] == "close"
            client.send(SMUGGLED * 1000)
            client.socket.shutdown(socket.SHUT_WR)
            client.assert_closed()


def test_the_memory_for_bodies_is_bounded():
    most = 3 << 20
    with Server(memory_max_bytes=most) as server:
        with server.client() as client:
            assert client.post("/gather", b"x" * most).status == 200
            assert client.post("/gather", b"x" * (most + 1)).status == 503
        with server.client() as first:
            first.send(request("POST", "/gather", f"Content-Length: {2 << 20}"),
                       b"x" * ((2 << 20) - 1))
            server.wait_for(lambda counts: counts["memory_bytes"] >= (2 << 20) - 1)
            with server.client() as second:
                assert second.post("/gather", b"y" * (2 << 20)).status == 503
            first.send(b"x")
            assert first.answer().status == 200
        with server.client() as third:  # it has been given back
            assert third.post("/gather", b"z" * most).status == 200


def busy(client):
    """Its request has begun, and does not end."""
    client.send(request("POST", "/gather", "Content-Length: 10"), b"x")
    return client


def test_connections_are_bounded():
    """Where all are at work one more has a spare place, from which nothing is asked but how the
    server is; /counts stands for that."""
    with Server(connections_max=5) as server:
        clients = [busy(server.client()) for _ in range(5)]
        server.wait_for(lambda counts: counts["begun"] == 5)
        with server.client() as sixth:
            answer = sixth.get("/hello")
            assert answer.status == 503 and "http.connections_max" in error_of(answer)
            assert answer.headers["connection"] == "close" and answer.headers["retry-after"] == "1"
        clients[0].send(b"x" * 9)
        assert clients[0].answer().status == 200
        with server.client() as again:  # the place of the one that is idle now
            assert again.get("/hello").status == 200
        clients[0].assert_closed()
        for client in clients[1:]:
            client.send(b"x" * 9)
            assert client.answer().status == 200
            client.socket.close()


@pytest.mark.parametrize("limit", ["connections_max", "per_address_max"])
def test_silent_connections_shut_nobody_out(limit):
    """The one that was silent longest goes; one that is used, and one at work, stay."""
    with Server(**{limit: 5}) as server:
        used, working = server.client(), busy(server.client())
        silent = []
        for begin in (b"", b"G", b"GET /hello HTTP/1.1\r\nHost: h\r\n"):
            for _ in range(20):
                assert used.get("/hello").status == 200
                silent.append(server.client())
                silent[-1].send(begin)
        with server.client() as late:
            assert late.get("/hello").status == 200
        for client in silent[:-5]:
            client.assert_closed()
        working.send(b"x" * 9)
        assert working.answer().status == 200
        for client in silent + [used, working]:
            client.socket.close()


def test_silent_connections_on_spare_places_go_soon():
    with Server(connections_max=1) as server, server.client() as client:
        busy(client)
        server.wait_for(lambda counts: counts["begun"] == 1)
        silent = [server.client() for _ in range(40)]
        with server.client() as other:
            assert other.get("/counts").status == 200
        for one in silent:  # the oldest at once, the rest within a second
            assert one.rest()[:13] in (b"", b"HTTP/1.1 503 ")
            one.socket.close()
        client.send(b"x" * 9)
        assert client.answer().status == 200


# ---- Codings ------------------------------------------------------------------------------------

PACKERS = {  # name: its coding, and how it is made
    "gzip": ("gzip", gzip.compress), "zlib": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate), "brotli": ("br", brotli),
    "brotli in a large window": ("br", lambda data: brotli(data, 24)),
    "brotli in a small window": ("br", lambda data: brotli(data, 10)),
    "brotli at its best": ("br", lambda data: brotli(data, 22, 11)),
    "brotli at its fastest": ("br", lambda data: brotli(data, 22, 0)),
}


@pytest.mark.parametrize("name", PACKERS)
def test_a_compressed_body(client, name):
    coding, pack = PACKERS[name]
    letters = bytes(random.Random(1).randrange(97, 123) for _ in range(300000))
    for text in (b"", b"h", letters, letters[:1000] * 1000, random.Random(2).randbytes(1 << 20)):
        packed = pack(text)
        for target, body in (("/gather", text), ("/length", b"%d\n" % len(text))):
            assert client.post(target, packed, f"Content-Encoding: {coding}").body == body
            client.send(request("POST", target, f"Content-Encoding: {coding.upper()}",
                                "Transfer-Encoding: chunked"))
            client.send(chunked(*[packed[i:i + 1000] for i in range(0, len(packed), 1000)]))
            assert client.answer().body == body


def test_a_gzipped_body(client):
    text = bytes(random.Random(1).randrange(97, 123) for _ in range(100000))
    packed = gzip.compress(text)
    assert client.post("/gather", packed, "Content-Encoding: gzip").body == text
    assert client.post("/gather", packed, "Content-Encoding: X-GZIP").body == text
    assert client.post("/gather", text, "Content-Encoding: identity").body == text
    two = gzip.compress(text[:1000]) + gzip.compress(text[1000:])
    assert client.post("/gather", two, "Content-Encoding: gzip").body == text
    assert client.post("/gather", gzip.compress(b""), "Content-Encoding: gzip").body == b""
    client.send(request("POST", "/gather", "Content-Encoding: gzip", "Transfer-Encoding: chunked"))
    client.send(chunked(*[packed[i:i + 100] for i in range(0, len(packed), 100)]))
    assert client.answer().body == text


def test_other_codings(client):
    for headers in (["gzip, gzip"], ["gzip, br"], ["br, deflate"], ["br, zstd"], ["compress"],
                    ["x-br"], ["base64"], ["gzip", "br"], ["br", "br"], ["identity", "compress"]):
        answer = client.post("/gather", b"hello", *[f"Content-Encoding: {c}" for c in headers])
        assert answer.status == 415
        assert answer.headers["accept-encoding"] == "gzip, deflate, br, zstd"
        assert "gzip, deflate, br, zstd" in error_of(answer)
    assert client.post("/gather", b"hello").status == 200


def damaged_bodies():
    """Of each coding, what is not whole and what is another coding."""
    text = b"hello" * 1000
    packed = {name: pack(text) for name, (_, pack) in PACKERS.items()}
    for name, (coding, _) in PACKERS.items():
        good = packed[name]
        for what, bad in (("half", good[:len(good) // 2]), ("but its last byte", good[:-1]),
                          ("its first byte", good[:1]), ("something behind", good + b"x"),
                          ("a zero behind", good + b"\0"), ("text", text)):
            yield f"{name}: {what}", coding, bad
        for other in ("gzip", "zlib", "raw deflate", "brotli"):
            if PACKERS[other][0] != coding:
                yield f"{name}: {other} is sent", coding, packed[other]
        if coding != "gzip":
            yield f"{name}: twice", coding, good + good
    yield "zlib: wrong checksum", "deflate", packed["zlib"][:-1] + b"\0"


@pytest.mark.parametrize("target", ["/gather", "/length"])
@pytest.mark.parametrize("name,coding,body", list(damaged_bodies()),
                         ids=lambda value: value if isinstance(value, str) else "")
def test_damaged_bodies(server, target, name, coding, body):
    assert name
    before = server.counts()
    with server.client() as client:
        answer = client.post(target, body, f"Content-Encoding: {coding}")
        assert answer.status == 400
        assert {"br": "brotli"}.get(coding, coding) in error_of(answer)
    after = server.counts()
    assert (after["aborted"], after["last_abort"]) == (before["aborted"] + 1, ERR_INVALID)
    assert after["memory_bytes"] == 0


def damaged_gzip():
    good = gzip.compress(b"hello" * 1000)
    yield "cut in the data", good[:-12]
    yield "cut in the check", good[:-1]
    yield "cut in the header", good[:5]
    yield "wrong check", good[:-8] + bytes([good[-8] ^ 1]) + good[-7:]
    yield "wrong length", good[:-1] + b"\x01"
    yield "something behind", good + b"x"
    yield "zeros behind", good + b"\0" * 100
    yield "half a second member", good + good[:9]
    yield "not gzip", b"hello"
    yield "zlib", zlib.compress(b"hello")
    yield "one byte", b"\x1f"


@pytest.mark.parametrize("name,body", list(damaged_gzip()),
                         ids=lambda value: value if isinstance(value, str) else "")
def test_damaged_gzip(server, name, body):
    assert name
    before = server.counts()
    with server.client() as client:
        answer = client.post("/gather", body, "Content-Encoding: gzip")
        assert answer.status == 400
        assert "gzip" in error_of(answer)
    after = server.counts()
    assert (after["aborted"], after["last_abort"]) == (before["aborted"] + 1, ERR_INVALID)


def bomb(decoded_bytes, wbits=31):
    packer = zlib.compressobj(1, zlib.DEFLATED, wbits)
    zeros = b"\0" * (1 << 20)
    pieces = [packer.compress(zeros) for _ in range(decoded_bytes >> 20)]
    return b"".join(pieces) + packer.flush()


@pytest.fixture(scope="module", name="bombed")
def all_bombs():
    """Of 256 MB each; brotli's has some 200 bytes."""
    bombs = {"gzip": bomb(256 << 20), "deflate": bomb(256 << 20, 15),
             "br": brotli(b"\0" * (256 << 20), 24, 9)}
    assert len(bombs["br"]) < 1000
    return bombs


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
@pytest.mark.parametrize("target", ["/gather", "/length"])
def test_a_bomb_stops_at_the_limit(bombed, target, coding):
    with Server() as server:
        with server.client() as client:
            answer = client.post(target, bombed[coding], f"Content-Encoding: {coding}")
            assert answer.status == 413
        assert server.counts()["last_abort"] == ERR_LIMIT
        assert server.anonymous_kb() < 64 << 10


def test_decoded_limit_and_one_past_it(client):
    exact = gzip.compress(b"x" * DECODED_MAX)
    assert client.post("/length", exact, "Content-Encoding: gzip").body == b"%d\n" % DECODED_MAX
    beyond = gzip.compress(b"x" * (DECODED_MAX + 1))
    assert client.post("/length", beyond, "Content-Encoding: gzip").status == 413


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_a_bomb_does_not_hold_up_others(server, bombed, coding):
    """A body that takes long to decode is done in turns: others are answered meanwhile."""
    with server.client() as one, server.client() as other:
        one.send(request("POST", "/flood", f"Content-Encoding: {coding}",
                         f"Content-Length: {len(bombed[coding])}") + bombed[coding])
        for _ in range(20):
            assert other.get("/hello").status == 200
        assert not one.readable()
        assert one.answer().body == b"%d\n" % (256 << 20)


def test_the_memory_of_brotli_is_bounded(bombed):
    """Its window belongs to the memory for bodies, from when a body of some bytes asks for it."""
    with Server(memory_max_bytes=40 << 20) as server:
        waiting, begun = [], brotli(b"\0" * (16 << 20), 24, 11)[:-1]
        for _ in range(2):
            waiting.append(server.client())
            waiting[-1].send(request("POST", "/gather", "Content-Encoding: br",
                                     "Transfer-Encoding: chunked"),
                             b"%x\r\n" % len(begun), begun, b"\r\n")
        server.wait_for(lambda counts: counts["memory_bytes"] >= 31 << 20)
        with server.client() as third:
            answer = third.post("/flood", bombed["br"], "Content-Encoding: br")
            assert answer.status == 503 and "http.memory_max" in error_of(answer)
        for client in waiting:
            client.socket.close()
        server.wait_for(lambda counts: counts["memory_bytes"] == 0)
        with server.client() as fourth:
            answer = fourth.post("/flood", bombed["br"], "Content-Encoding: br")
            assert answer.body == b"%d\n" % (256 << 20)


def test_gzipped_answers(client):
    for header, gzipped in (("gzip", True), ("GZIP", True), ("br, gzip;q=0.5", True),
                            ("gzip;q=0", False), ("gzip; q=0.000", False), ("br", False),
                            ("identity", False), ("", False), ("notgzip", False),
                            ("gzip;q=0.001", True), ("*;q=0,gzip", True)):
        answer = client.get("/whole?bytes=50000", f"Accept-Encoding: {header}")
        assert answer.body == pattern(50000)
        assert ("content-encoding" in answer.headers) == gzipped
        if gzipped:
            assert int(answer.headers["content-length"]) < 5000
            assert answer.headers["vary"] == "Accept-Encoding"
        answer = client.get("/stream?bytes=3000000&piece=777", f"Accept-Encoding: {header}")
        assert answer.body == pattern(3000000)
        assert ("content-encoding" in answer.headers) == gzipped
    small = client.get("/hello", "Accept-Encoding: gzip")
    assert "content-encoding" not in small.headers


# ---- Expect -------------------------------------------------------------------------------------


def test_continue(client):
    client.send(request("POST", "/gather", "Content-Length: 5", "Expect: 100-Continue"))
    assert client.answer().status == 100
    client.send(b"hello")
    assert client.answer().body == b"hello"
    # The client did not wait.
    client.send(request("POST", "/gather", "Content-Length: 5", "Expect: 100-continue") + b"hello")
    assert client.answer().body == b"hello"
    # There is no body to wait for.
    client.send(request("POST", "/gather", "Expect: 100-continue", "Content-Length: 0"))
    assert client.answer().status == 200


def test_no_continue_for_what_is_refused(server):
    for target, length, status in (("/gather", BODY_MAX + 1, 413), ("/nowhere", 5, 404),
                                   ("/early", 5, 409)):
        with server.client() as client:
            client.send(request("POST", target, f"Content-Length: {length}",
                                "Expect: 100-continue"))
            answer = client.answer()
            assert answer.status == status
            # Nobody can know whether the body comes now: so it is the end.
            assert answer.headers["connection"] == "close"
            client.socket.shutdown(socket.SHUT_WR)
            client.assert_closed()


def test_other_expectations(client):
    client.send(request("POST", "/gather", "Content-Length: 5", "Expect: the-unexpected"))
    assert client.answer().status == 417


# ---- Deadlines ----------------------------------------------------------------------------------


def drip(client, data):
    """A byte now and then; the answer comes before the last."""
    for i in range(len(data)):
        if client.readable(0.02):
            return
        client.send(data[i:i + 1])
    pytest.fail("it may drip for ever")


def test_a_head_that_drips_is_cut():
    with Server(header_timeout_ms=300) as server, server.client() as client:
        drip(client, b"GET /hello HTTP/1.1\r\nHost: h\r\n" + b"A: b\r\n" * 1000)
        assert client.answer().status == 408
        client.assert_closed()


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_client_that_drips_after_408_kept_its_place(part):
    """It is rid of within a second, though it sends more than enough to be no slow one. The second
    is the server's; the test only waits for the end."""
    limits = {"header_timeout_ms": 100, "body_timeout_ms": 100000 if part == "head" else 100}
    with Server(progress_min_bytes=50 if part == "head" else 1000, **limits) as server:
        with server.client() as client:
            client.send(b"GET /hello HT" if part == "head" else
                        request("POST", "/gather", "Content-Length: 100000") + b"x")
            assert client.answer().status == 408
            with pytest.raises((ConnectionResetError, BrokenPipeError)):
                for _ in range(500):
                    client.send(b"x" * 100)
                    select.select([], [], [], 0.02)


def test_idle_connections_are_cut():
    with Server(idle_timeout_ms=200) as server:
        with server.client() as client:
            client.assert_closed()
        with server.client() as client:
            assert client.get("/hello").status == 200
            client.assert_closed()
        with server.client() as client:  # answering takes longer, and is not idleness
            assert client.get("/later?ms=500").status == 200


def test_a_body_that_drips_is_cut():
    with Server(body_timeout_ms=300) as server:
        for headers in ("Content-Length: 100000", "Transfer-Encoding: chunked"):
            with server.client() as client:
                client.send(request("POST", "/gather", headers))
                if "chunked" in headers:
                    client.send(b"10000\r\n")
                drip(client, b"x" * 5000)
                assert client.answer().status == 408
                client.assert_closed()
        counts = server.counts()
        assert (counts["aborted"], counts["last_abort"]) == (2, ERR_TIMEOUT)


def test_a_slow_body_that_goes_on_is_not_cut():
    """It takes more than twice the deadline, and never rests for a good part of it."""
    with Server(body_timeout_ms=1500, progress_min_bytes=100) as server:
        with server.client() as client:
            client.send(request("POST", "/gather", "Transfer-Encoding: chunked"))
            started, sent = time.monotonic(), 0
            while time.monotonic() < started + 3.5:
                client.send(b"64\r\n" + b"x" * 100 + b"\r\n")
                sent += 100
                assert not client.readable(0.02)
            client.send(b"0\r\n\r\n")
            assert client.answer().body == b"x" * sent


def test_a_paused_body_is_not_cut():
    """The handler is slow, not the client."""
    with Server(body_timeout_ms=100) as server, server.client() as client:
        answer = client.post("/length?pause=300", b"x" * 600000)
        assert answer.body == b"600000\n"


def test_a_client_that_reads_nothing_is_cut():
    with Server(write_timeout_ms=300) as server:
        with server.client() as client:
            client.send(request("GET", f"/stream?bytes={1 << 40}"))
            counts = server.wait_for(lambda c: c["aborted"] == 1)
            assert counts["last_abort"] == ERR_CANCELLED
            assert server.anonymous_kb() < 32 << 10
        # At once, not as a stream.
        with server.client() as client:
            client.send(request("GET", f"/whole?bytes={32 << 20}"))
            server.wait_for(lambda c: c["write_timeouts"] == 2)
            assert len(client.rest()) < 32 << 20


def test_a_client_that_reads_slowly_is_not_cut():
    """It takes more than twice the deadline, and never rests for a good part of it."""
    with Server(write_timeout_ms=1500) as server, server.client() as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.send(request("GET", f"/stream?bytes={24 << 20}"))
        started, have = time.monotonic(), bytearray()
        while time.monotonic() < started + 3.5:
            have += client.socket.recv(1 << 16)
            select.select([], [], [], 0.02)
        client.seen += have
        assert client.answer().body == pattern(24 << 20)


def test_a_client_that_pipelines_and_reads_nothing_is_bounded_and_cut():
    with Server(write_timeout_ms=500) as server, server.client() as client:
        one = request("GET", "/whole?bytes=100000")
        client.socket.settimeout(1)
        with pytest.raises((TimeoutError, ConnectionResetError, BrokenPipeError)):
            for _ in range(100000):
                client.send(one * 100)
        assert server.anonymous_kb() < 32 << 10


# ---- Streams ------------------------------------------------------------------------------------


def test_a_stream_of_any_length(client):
    for length in (0, 1, 16384, 16385, 1000000, 30000000):
        answer = client.get(f"/stream?bytes={length}")
        assert answer.headers["transfer-encoding"] == "chunked"
        assert answer.body == pattern(length)


def test_a_stream_waits_for_its_reader():
    with Server() as server, server.client() as client:
        client.send(request("GET", f"/stream?bytes={100 << 20}"))
        server.wait_for(lambda counts: counts["begun"] == 1)
        assert server.anonymous_kb() < 16 << 10
        assert client.answer().body == pattern(100 << 20)
        assert server.counts()["drained"] > 0


def test_a_broken_stream_looks_broken(client):
    client.send(request("GET", "/stream?bytes=1000000&break=500000"))
    with pytest.raises((EOFError, ConnectionResetError)):
        client.answer()


def test_a_mirror(wire):
    """Both directions at once, with a reader that lags: nothing is lost, nothing piles up. With TLS
    it is tests/e2e/test_tls.py that sends and reads megabytes."""
    if wire == "tls":
        return  # half a connection is not used by itself there
    body = random.Random(2).randbytes(32 << 20)
    with Server() as server, server.client() as client:
        client.send(request("POST", "/mirror", f"Content-Length: {len(body)}"))
        client.socket.setblocking(False)
        sent, got, peak = 0, [], 0
        view = memoryview(body)
        while sent < len(body):
            readable, writable, _ = select.select([client.socket], [client.socket], [], PATIENCE_S)
            if writable:
                sent += client.socket.send(view[sent:sent + (1 << 20)])
            elif readable:
                got.append(client.socket.recv(1 << 18))
                peak = max(peak, server.anonymous_kb())
        client.socket.settimeout(PATIENCE_S)
        client.seen += b"".join(got)
        assert client.answer().body == body
        assert peak < 16 << 10
        assert server.counts()["drained"] > 0


# ---- Events -------------------------------------------------------------------------------------


def next_event(client):
    """One chunk is one event."""
    size = int(client.take_line(), 16)
    event = client.take(size)
    assert client.take_line() == b""
    return event


def watch(server, target="/events", *headers):
    """Its client, and the headers of the answer."""
    client = server.client()
    client.send(request("GET", target, *headers))
    status, headers = client.head()
    assert status == 200
    return client, headers


def test_each_event_leaves_at_once(server):
    client, headers = watch(server, "/events?every=20", "Accept-Encoding: gzip")
    with client:
        assert headers["content-type"] == "text/event-stream"
        assert headers["cache-control"] == "no-store"
        assert "content-encoding" not in headers
        for number in range(10):
            assert next_event(client) == b"id: %d\ndata: number %d\n\n" % (number, number)


def test_silent_events_are_not_cut():
    """Every deadline passes many times meanwhile, which another connection shows by its own."""
    limits = {name: 100 for name in ("header_timeout_ms", "idle_timeout_ms", "body_timeout_ms",
                                     "write_timeout_ms")}
    with Server(**limits) as server:
        client, _ = watch(server)
        with client:
            assert next_event(client).startswith(b"id: 0\n")
            for _ in range(5):
                with server.client() as idle:
                    idle.assert_closed()
            assert not select.select([client.socket], [], [], 0)[0]
            assert server.counts()["events"] == 1
            client.socket.shutdown(socket.SHUT_WR)  # its end ends them
            client.assert_closed()
        server.wait_for(lambda counts: counts["events"] == 0)


def test_events_are_bounded():
    with Server(endless_max=3) as server:
        watching = [watch(server)[0] for _ in range(3)]
        with server.client() as fourth:
            answer = fourth.get("/events")
            assert answer.status == 503 and "streams without end" in error_of(answer)
            assert answer.headers["retry-after"] == "1"
            assert fourth.get("/hello").status == 200
            watching[0].socket.close()
            server.wait_for(lambda counts: counts["events"] == 2)
            fourth.send(request("GET", "/events"))
            assert fourth.head()[0] == 200
        for client in watching[1:]:
            client.socket.close()


def test_viewers_leave_places_for_others():
    """At most half of them."""
    with Server(connections_max=10) as server:
        watching = [watch(server)[0] for _ in range(5)]
        with server.client() as other:
            assert other.get("/events").status == 503
            assert other.get("/hello").status == 200
        for client in watching:
            client.socket.close()


def test_a_stop_ends_events_at_once():
    """Others have their grace, which is far longer than anybody waits here."""
    with Server(grace_ms=10 * PATIENCE_S * 1000) as server:
        clients = [watch(server, "/events?every=20")[0], watch(server)[0]]
        with server.client() as busy:
            busy.send(request("GET", "/later?ms=300&say=done"))
            server.wait_for(lambda counts: counts["begun"] == 3)
            server.process.terminate()
            for client in clients:
                while client.take_line() != b"0":
                    pass
                assert client.take_line() == b""
                client.assert_closed()
            assert busy.answer().body == b"done"
        assert server.process.wait(PATIENCE_S) == 0
