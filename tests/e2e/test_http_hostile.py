"""Raw sockets against tests/tools/http_echo.c: what clients may send by mistake or on purpose.
Limits and deadlines are in test_http_limits.py."""

import gzip
import json
import random
import signal
import socket
import struct

import pytest

from raw_http import (ERR_CANCELLED, ERR_INVALID, H, PATIENCE_S, SMUGGLED, Server, chunked,
                      both_wires, error_of, one_client, pattern, post, request, shared_server)


# ---- What can be understood in two ways ---------------------------------------------------------

AMBIGUOUS = {
    "length beside coding": post(b"Content-Length: 5", b"Transfer-Encoding: chunked",
                                 body=b"0\r\n\r\n"),
    "coding beside length": post(b"Transfer-Encoding: chunked", b"Content-Length: 5",
                                 body=b"0\r\n\r\n"),
    "two lengths": post(b"Content-Length: 5", b"Content-Length: 6", body=b"hello"),
    "the same length twice": post(b"Content-Length: 5", b"Content-Length: 5", body=b"hello"),
    "lengths in a list": post(b"Content-Length: 5, 5", body=b"hello"),
    "length in other case twice": post(b"Content-Length: 5", b"content-LENGTH: 0", body=b"hello"),
    "length with a sign": post(b"Content-Length: +5", body=b"hello"),
    "negative length": post(b"Content-Length: -5", body=b"hello"),
    "length in hex": post(b"Content-Length: 0x5", body=b"hello"),
    "length with a blank": post(b"Content-Length: 1 0", body=b"hello"),
    "length with an underscore": post(b"Content-Length: 1_0", body=b"hello"),
    "empty length": post(b"Content-Length:", body=b"hello"),
    "length of 2^64 + 5": post(b"Content-Length: 18446744073709551621", body=b"hello"),
    "length of many digits": post(b"Content-Length: 0000000000000000000005", body=b"hello"),
    "coding gzip, chunked": post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "coding chunked, gzip": post(b"Transfer-Encoding: chunked, gzip", body=b"0\r\n\r\n"),
    "coding chunked, chunked": post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "coding twice": post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked",
                         body=b"0\r\n\r\n"),
    "coding identity": post(b"Transfer-Encoding: identity", body=b"hello"),
    "coding identity and chunked": post(b"Transfer-Encoding: identity",
                                        b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "coding xchunked": post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
    "coding chunkedx": post(b"Transfer-Encoding: chunkedx", body=b"0\r\n\r\n"),
    "coding with a vertical tab": post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"),
    "coding in quotes": post(b"Transfer-Encoding: \"chunked\"", body=b"0\r\n\r\n"),
    "coding with a parameter": post(b"Transfer-Encoding: chunked;q=1", body=b"0\r\n\r\n"),
    "empty coding": post(b"Transfer-Encoding:", body=b"hello"),
    "coding in HTTP/1.0": post(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n", version=b"1.0"),
    "blank before the colon": post(b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
    "tab before the colon": post(b"Content-Length\t: 5", body=b"hello"),
    "blank before the name": post(b" Content-Length: 5", body=b"hello"),
    "folded coding": post(b"Transfer-Encoding:", b" chunked", body=b"0\r\n\r\n"),
    "folded header": post(b"A: b", b"\tc", b"Content-Length: 0"),
    "first line folded": b"GET /hello HTTP/1.1\r\n Host: h\r\n\r\n",
    "no colon": post(b"Content-Length 5", body=b"hello"),
    "empty name": post(b": 5", b"Content-Length: 0"),
    "name with brackets": post(b"A(b): 5", b"Content-Length: 0"),
    "name with 8 bits": post(b"A\xe4: 5", b"Content-Length: 0"),
    "NUL in a name": post(b"A\0: 5", b"Content-Length: 0"),
    "NUL in a value": post(b"A: b\0c", b"Content-Length: 0"),
    "bare CR in a value": post(b"A: b\rContent-Length: 5", b"Content-Length: 0"),
    "DEL in a value": post(b"A: \x7f", b"Content-Length: 0"),
    "form feed in a value": post(b"A: \x0c", b"Content-Length: 0"),
    "bare LF after the request line": b"GET /hello HTTP/1.1\n" + H + b"\r\n",
    "bare LF after a header": b"GET /hello HTTP/1.1\r\nHost: h\n\r\n",
    "bare LF as the end": b"GET /hello HTTP/1.1\r\n" + H + b"\n",
    "bare LF everywhere": b"GET /hello HTTP/1.1\nHost: h\n\n",
    "LF CR": b"GET /hello HTTP/1.1\n\rHost: h\n\r\n\r",
    "bare LF first": b"\nGET /hello HTTP/1.1\r\n" + H + b"\r\n",
    "bare CR first": b"\rGET /hello HTTP/1.1\r\n" + H + b"\r\n",
    "two empty lines first": b"\r\n\r\nGET /hello HTTP/1.1\r\n" + H + b"\r\n",
    "no Host": b"GET /hello HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "Hosts in a list": b"GET /hello HTTP/1.1\r\nHost: a, b\r\n\r\n",
    "Host with a path": b"GET /hello HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "Host with a user": b"GET /hello HTTP/1.1\r\nHost: a@b\r\n\r\n",
    "two blanks before the target": b"GET  /hello HTTP/1.1\r\n" + H + b"\r\n",
    "two blanks before the version": b"GET /hello  HTTP/1.1\r\n" + H + b"\r\n",
    "blank after the version": b"GET /hello HTTP/1.1 \r\n" + H + b"\r\n",
    "tab in the request line": b"GET\t/hello HTTP/1.1\r\n" + H + b"\r\n",
    "blank before the method": b" GET /hello HTTP/1.1\r\n" + H + b"\r\n",
    "no version": b"GET /hello\r\n" + H + b"\r\n",
    "version in lower case": b"GET /hello http/1.1\r\n" + H + b"\r\n",
    "version 1.10": b"GET /hello HTTP/1.10\r\n" + H + b"\r\n",
    "version 01.1": b"GET /hello HTTP/01.1\r\n" + H + b"\r\n",
    "method in lower case": b"get /hello HTTP/1.1\r\n" + H + b"\r\n",
    "method with 8 bits": b"G\xcbT /hello HTTP/1.1\r\n" + H + b"\r\n",
    "target with NUL": b"GET /hel\0lo HTTP/1.1\r\n" + H + b"\r\n",
    "target with 8 bits": b"GET /h\xe4llo HTTP/1.1\r\n" + H + b"\r\n",
    "target with a fragment": b"GET /hello#a HTTP/1.1\r\n" + H + b"\r\n",
    "target without slash": b"GET hello HTTP/1.1\r\n" + H + b"\r\n",
    "target of another scheme": b"GET ftp://h/hello HTTP/1.1\r\n" + H + b"\r\n",
    "target an asterisk": b"GET * HTTP/1.1\r\n" + H + b"\r\n",
    "OPTIONS of an asterisk": b"OPTIONS * HTTP/1.1\r\n" + H + b"\r\n",
    "CONNECT": b"CONNECT h:80 HTTP/1.1\r\n" + H + b"\r\n",
    "encoded NUL in the path": b"GET /hello%00 HTTP/1.1\r\n" + H + b"\r\n",
    "half an escape": b"GET /hello%4 HTTP/1.1\r\n" + H + b"\r\n",
    "no hex in an escape": b"GET /hello?a=%zz HTTP/1.1\r\n" + H + b"\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP/2 from the start": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}
OTHER_STATUS = {"HTTP/2 from the start": (400, 505)}


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_what_is_ambiguous_is_refused_and_cut(client, name):
    client.send(AMBIGUOUS[name] + SMUGGLED)
    answer = client.answer()
    assert answer.status in OTHER_STATUS.get(name, (400,))
    assert error_of(answer)
    assert answer.headers["connection"] == "close"
    # One answer and no more: the bytes behind it were not taken for a request.
    client.socket.shutdown(socket.SHUT_WR)
    client.assert_closed()


BAD_CHUNKS = {
    "size without digits": b"\r\nhello\r\n0\r\n\r\n",
    "size not hex": b"g\r\nhello\r\n0\r\n\r\n",
    "size with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "size with a sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "size negative": b"-5\r\nhello\r\n0\r\n\r\n",
    "size with a blank behind": b"5 \r\nhello\r\n0\r\n\r\n",
    "size with a blank before": b" 5\r\nhello\r\n0\r\n\r\n",
    "two sizes": b"5 6\r\nhello\r\n0\r\n\r\n",
    "size of 2^64": b"10000000000000000\r\nhello\r\n0\r\n\r\n",
    "size of 2^64 + 5": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "size ends in LF": b"5\nhello\r\n0\r\n\r\n",
    "size ends in CR": b"5\rhello\r\n0\r\n\r\n",
    "size ends in CR and another byte": b"5\rXhello\r\n0\r\n\r\n",
    "data not followed by CR LF": b"5\r\nhelloXX0\r\n\r\n",
    "data followed by LF": b"5\r\nhello\n0\r\n\r\n",
    "data longer than its size": b"4\r\nhello\r\n0\r\n\r\n",
    "LF in an extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "NUL in an extension": b"5;a\0b\r\nhello\r\n0\r\n\r\n",
    "long extension": b"5;" + b"a" * 300 + b"\r\nhello\r\n0\r\n\r\n",
    "end in LF": b"5\r\nhello\r\n0\n\n",
    "end in CR LF LF": b"5\r\nhello\r\n0\r\n\n",
    "folded trailer": b"0\r\n a: b\r\n\r\n",
    "trailer with NUL": b"0\r\na: \0\r\n\r\n",
    "trailer ends in LF": b"0\r\na: b\n\r\n",
    "long trailers": b"0\r\n" + b"a: b\r\n" * 2000 + b"\r\n",
}


@pytest.mark.parametrize("name", BAD_CHUNKS)
def test_chunks_are_read_strictly(server, client, name):
    before = server.counts()
    client.send(post(b"Transfer-Encoding: chunked", body=BAD_CHUNKS[name]) + SMUGGLED)
    answer = client.answer()
    assert answer.status == 400
    assert error_of(answer)
    client.socket.shutdown(socket.SHUT_WR)
    client.assert_closed()
    after = server.counts()
    assert after["aborted"] == before["aborted"] + 1
    assert after["last_abort"] == ERR_INVALID


GOOD = {
    "plain": (post(b"Content-Length: 5", body=b"hello"), b"hello"),
    "blanks around the value": (post(b"Content-Length: \t 5  ", body=b"hello"), b"hello"),
    "no blank": (post(b"Content-Length:5", body=b"hello"), b"hello"),
    "name in other case": (post(b"cOnTeNt-lEnGtH: 5", body=b"hello"), b"hello"),
    "leading zero": (post(b"Content-Length: 05", body=b"hello"), b"hello"),
    "8 bits in a value": (post(b"A: \xe4\xff", b"Content-Length: 5", body=b"hello"), b"hello"),
    "empty value": (post(b"A:", b"Content-Length: 5", body=b"hello"), b"hello"),
    "an empty line before": (b"\r\n" + post(b"Content-Length: 5", body=b"hello"), b"hello"),
    "whole address as the target": (b"POST http://h/gather HTTP/1.1\r\n" + H +
                                    b"Content-Length: 5\r\n\r\nhello", b"hello"),
    "chunks": (post(b"Transfer-Encoding: chunked", body=chunked(b"he", b"l", b"lo")), b"hello"),
    "Chunked": (post(b"Transfer-Encoding: Chunked", body=chunked(b"hello")), b"hello"),
    "chunk sizes in both cases": (post(b"Transfer-Encoding: chunked", body=b"A\r\n" + b"x" * 10 +
                                       b"\r\na\r\n" + b"y" * 10 + b"\r\n0\r\n\r\n"),
                                  b"x" * 10 + b"y" * 10),
    "zeros before the size": (post(b"Transfer-Encoding: chunked",
                                   body=b"0005\r\nhello\r\n000\r\n\r\n"), b"hello"),
    "chunk extension": (post(b"Transfer-Encoding: chunked",
                             body=b"5;a=\"b c\"\r\nhello\r\n0;d\r\n\r\n"), b"hello"),
    "trailers": (post(b"Transfer-Encoding: chunked",
                      body=b"5\r\nhello\r\n0\r\nContent-Length: 7\r\nB: c\r\n\r\n"), b"hello"),
    "no body": (post(b"Content-Length: 0"), b""),
    "no length": (post(), b""),
    "empty chunks": (post(b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), b""),
    "upgrade is passed over": (post(b"Connection: upgrade", b"Upgrade: h2c", b"Content-Length: 5",
                                    body=b"hello"), b"hello"),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_odd_but_good_is_taken(client, name):
    sent, body = GOOD[name]
    client.send(sent + SMUGGLED)
    answer = client.answer()
    assert (answer.status, answer.body) == (200, body)
    assert client.answer().body == b"hello\n"


@pytest.mark.parametrize("name", GOOD)
def test_byte_by_byte(client, name):
    sent, body = GOOD[name]
    for i in range(len(sent)):
        client.send(sent[i:i + 1])
    answer = client.answer()
    assert (answer.status, answer.body) == (200, body)


def test_every_split_of_a_request(server):
    body = gzip.compress(b"hello" * 100)
    sent = post(b"Transfer-Encoding: chunked", b"Content-Encoding: gzip",
                body=chunked(body[:7], body[7:8], body[8:])) + SMUGGLED
    for i in range(1, len(sent)):
        with server.client() as client:
            client.send(sent[:i])
            client.send(sent[i:])
            assert client.answer().body == b"hello" * 100
            assert client.answer().body == b"hello\n"


# ---- Versions and connections -------------------------------------------------------------------


def test_http_1_0_closes(client):
    client.send(b"GET /hello HTTP/1.0\r\n\r\n")
    answer = client.answer()
    assert answer.body == b"hello\n"
    assert answer.headers["connection"] == "close"
    client.assert_closed()


def test_http_1_0_keep_alive(client):
    for _ in range(3):
        client.send(b"GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        answer = client.answer()
        assert answer.body == b"hello\n"
        assert answer.headers["connection"] == "keep-alive"


def test_http_1_0_gets_a_stream_to_the_end(client):
    client.send(b"GET /stream?bytes=100000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    answer = client.answer()
    assert "transfer-encoding" not in answer.headers
    assert answer.body == pattern(100000)


def test_connection_close(client):
    answer = client.get("/hello", "Connection: close")
    assert answer.headers["connection"] == "close"
    client.assert_closed()


def test_other_versions(server):
    for version in ("2.0", "1.2", "0.9", "3.0"):
        with server.client() as client:
            client.send(f"GET /hello HTTP/{version}\r\nHost: h\r\n\r\n".encode())
            assert client.answer().status == 505
            client.socket.shutdown(socket.SHUT_WR)
            client.assert_closed()


def test_a_thousand_requests_on_one_connection(client):
    for i in range(1000):
        assert client.post("/gather", b"%d" % i).body == b"%d" % i


def test_answers_to_pipelined_requests_keep_their_order(client):
    rng = random.Random(5)
    sent, expected = [], []
    for i in range(200):
        kind = rng.randrange(4)
        if kind == 0:
            sent.append(request("GET", f"/later?ms={rng.randrange(4)}&say={i}"))
            expected.append(b"%d" % i)
        elif kind == 1:
            sent.append(post(b"Transfer-Encoding: chunked", body=chunked(b"%d" % i, b"x")))
            expected.append(b"%dx" % i)
        elif kind == 2:
            sent.append(request("GET", f"/stream?bytes={i * 100}"))
            expected.append(pattern(i * 100))
        else:
            sent.append(request("GET", "/hello"))
            expected.append(b"hello\n")
    client.send(b"".join(sent))
    for body in expected:
        assert client.answer().body == body


def test_a_client_that_has_finished_sending_is_answered(client):
    client.send(request("GET", "/later?ms=50&say=still+there"))
    client.socket.shutdown(socket.SHUT_WR)
    assert client.answer().body == b"still there"
    client.assert_closed()


def test_half_a_request_and_the_end(server):
    for part in (b"G", b"GET /hello HTTP/1.1\r\nHost", b"\r\n"):
        with server.client() as client:
            client.send(part)
            client.socket.shutdown(socket.SHUT_WR)
            client.assert_closed()


# ---- Requests -----------------------------------------------------------------------------------


def test_decoding_happens_once(client):
    shown = json.loads(client.get(
        "/show/a%2Fb/%2525//%C3%A9?x=1&y=%20+%2B&x=%26%3D&z&=v&&%78=3&t=%25%32%35").body)
    assert shown["path"] == "/show/a/b/%25//\u00e9"
    assert shown["segments"] == ["show", "a/b", "%25", "", "\u00e9"]
    assert shown["params"] == [["x", "1"], ["y", "  +"], ["x", "&="], ["z", ""], ["", "v"],
                               ["x", "3"], ["t", "%25"]]


def test_header_values_are_trimmed_and_kept_in_order(client):
    shown = json.loads(client.get("/show/", "A:  b c\t", "a: 2", "B:").body)
    assert shown["headers"] == [["Host", "h"], ["A", "b c"], ["a", "2"], ["B", ""]]


def test_what_is_not_there(client):
    answer = client.get("/nowhere/%22%0a%ff")
    assert answer.status == 404
    assert error_of(answer) == 'there is nothing at /nowhere/"\n\ufffd'
    assert client.get("/hello/").status == 200  # a slash at the end is nothing
    assert client.get("/hello//").status == 404
    assert client.get("/hell").status == 404
    assert client.get("/HELLO").status == 404
    assert client.get("/hello").status == 200


def test_what_is_not_allowed(client):
    for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE"):
        client.send(request(method, "/hello"))
        answer = client.answer()
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    answer = client.get("/gather")
    assert (answer.status, answer.headers["allow"]) == (405, "POST, PUT, OPTIONS")


def test_options_says_what_is_allowed(client):
    for target, allowed in (("/hello", "GET, HEAD, OPTIONS"), ("/gather", "POST, PUT, OPTIONS"),
                            ("/open", "POST, OPTIONS")):
        for headers in ([], ["Content-Length: 5"], ["Access-Control-Request-Method: PUT"]):
            client.send(request("OPTIONS", target, *headers))
            client.send(b"hello" if "Content-Length: 5" in headers else b"")
            answer = client.answer()
            assert (answer.status, answer.headers["allow"]) == (204, allowed)
            assert not any(name.startswith("access-control-") for name in answer.headers)
    client.send(request("OPTIONS", "/nowhere"))
    assert client.answer().status == 404


def test_head_is_get_without_the_body(client):
    for target in ("/hello", "/whole?bytes=50000", "/later?ms=1", "/nowhere"):
        for coding in ("identity", "gzip"):
            client.send(request("HEAD", target, f"Accept-Encoding: {coding}"))
            head = client.answer(head_only=True)
            client.send(request("GET", target, f"Accept-Encoding: {coding}"))
            status, headers = client.head()
            client.take(int(headers["content-length"]))
            head.headers.pop("date"), headers.pop("date")
            assert (head.status, head.headers) == (status, headers)
    client.send(request("HEAD", "/stream?bytes=100000"))
    assert client.answer(head_only=True).headers["transfer-encoding"] == "chunked"
    assert client.get("/hello").body == b"hello\n"


def test_no_content_has_no_length(client):
    client.send(request("DELETE", "/nothing"))
    answer = client.answer()
    assert answer.status == 204
    assert answer.headers["x-nothing"] == "indeed"
    assert "content-length" not in answer.headers
    assert "transfer-encoding" not in answer.headers
    assert client.get("/hello").status == 200


def test_errors_of_a_head_request_have_no_body(client):
    client.send(request("HEAD", "/hello?a=%zz"))
    assert client.answer(head_only=True).status == 400
    client.socket.shutdown(socket.SHUT_WR)
    client.assert_closed()


# ---- Clients that go away -----------------------------------------------------------------------


def reset(client):
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


@pytest.mark.parametrize("sent", [
    request("POST", "/gather", "Content-Length: 1000") + b"x",
    request("POST", "/length", "Transfer-Encoding: chunked") + b"5\r\nhe",
    request("GET", "/later?never=1"),
    request("POST", "/mirror", "Content-Length: 1000") + b"x",
])
def test_a_client_that_resets(sent):
    with Server() as server:
        client = server.client()
        client.send(sent)
        server.wait_for(lambda counts: counts["begun"] == 1)
        reset(client)
        counts = server.wait_for(lambda counts: counts["aborted"] == 1)
        assert counts["last_abort"] == ERR_CANCELLED


def test_a_client_that_ends_in_its_body():
    with Server() as server, server.client() as client:
        client.send(request("POST", "/gather", "Content-Length: 1000") + b"x")
        client.socket.shutdown(socket.SHUT_WR)
        client.assert_closed()
        assert server.counts()["last_abort"] == ERR_CANCELLED


def test_a_stop_lets_requests_finish():
    with Server() as server:
        with server.client() as busy, server.client() as idle, server.client() as stuck:
            assert idle.get("/hello").status == 200
            busy.send(request("GET", "/later?ms=200&say=done"))
            stuck.send(request("GET", "/later?never=1"))
            server.wait_for(lambda counts: counts["begun"] == 2)
            server.process.send_signal(signal.SIGTERM)
            idle.assert_closed()
            with pytest.raises(ConnectionRefusedError):
                server.client()
            answer = busy.answer()
            assert (answer.body, answer.headers["connection"]) == (b"done", "close")
            busy.assert_closed()
            stuck.assert_closed()  # when the time for it is over
            assert server.process.wait(PATIENCE_S) == 0


def test_random_bytes_do_no_harm(server):
    rng = random.Random(7)
    starts = [b"", b"GET ", b"POST /gather HTTP/1.1\r\nHost: h\r\n",
              b"POST /length HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
              b"POST /length HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\n"
              b"Content-Length: 1000\r\n\r\n\x1f\x8b\x08"]
    for _ in range(300):
        with server.client() as client:
            client.send(rng.choice(starts) + rng.randbytes(rng.randrange(1, 2000)))
            client.socket.shutdown(socket.SHUT_WR)
            try:
                client.rest()
            except ConnectionResetError:
                pass
    with server.client() as client:
        assert client.get("/hello").status == 200
