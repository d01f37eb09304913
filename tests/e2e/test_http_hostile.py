"""Raw sockets against tests/tools/http_echo.c: what clients may send by mistake or on purpose.

Deadlines are made short by the server's arguments; nothing here sleeps to see whether something
happens, it waits for the event itself, with a time limit that only a failure meets."""

import gzip
import json
import os
import pathlib
import random
import re
import select
import signal
import socket
import struct
import subprocess
import time
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 20  # only a failure takes as long
BODY_MAX = 4 << 20  # of the routes of http_echo
DECODED_MAX = 16 << 20
ERR_INVALID, ERR_TIMEOUT, ERR_CANCELLED, ERR_LIMIT = -1008, -1011, -1012, -1007


def build_dir():
    if "GRANARY_BUILD" in os.environ:
        return pathlib.Path(os.environ["GRANARY_BUILD"])
    if "GRANARY" in os.environ:
        return pathlib.Path(os.environ["GRANARY"]).parent
    return ROOT / "build"


class Server:
    """http_echo with these limits; ends with it, and checks that it ended well."""

    def __init__(self, **limits):
        program = build_dir() / "tests" / "tools" / "http_echo"
        arguments = [f"{name}={value}" for name, value in limits.items()]
        self.process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        assert self.process.wait(PATIENCE_S) == 0

    def client(self):
        return Client(self.port)

    def counts(self):
        with self.client() as client:
            return json.loads(client.get("/counts").body)

    def wait_for(self, condition):
        """Until condition(counts) holds."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            counts = self.counts()
            if condition(counts):
                return counts
        raise AssertionError(f"never came: {counts}")

    def anonymous_kb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(re.search(r"RssAnon:\s+(\d+) kB", file.read()).group(1))


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.seen = b""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.socket.close()

    def send(self, *pieces):
        for piece in pieces:
            self.socket.sendall(piece)

    def more(self):
        piece = self.socket.recv(1 << 16)
        self.seen += piece
        return piece

    def take_line(self):
        while b"\r\n" not in self.seen:
            if not self.more():
                raise EOFError(self.seen)
        line, self.seen = self.seen.split(b"\r\n", 1)
        return line

    def take(self, length):
        pieces, have = [self.seen], len(self.seen)
        while have < length:
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise EOFError(b"".join(pieces)[-100:])
            pieces.append(piece)
            have += len(piece)
        data = b"".join(pieces)
        self.seen = data[length:]
        return data[:length]

    def take_chunks(self):
        body = []
        while True:
            size = int(self.take_line(), 16)
            body.append(self.take(size))
            assert self.take_line() == b""
            if size == 0:
                return b"".join(body)

    def head(self):
        status = int(self.take_line().split(b" ")[1])
        headers = {}
        while True:
            line = self.take_line()
            if not line:
                return status, headers
            name, value = line.split(b": ", 1)
            assert name.lower() not in headers
            headers[name.lower().decode()] = value.decode()

    def answer(self, head_only=False):
        status, headers = self.head()
        if head_only or status in (100, 204, 304):
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = self.take_chunks()
        elif "content-length" in headers:
            body = self.take(int(headers["content-length"]))
        else:
            body = self.rest()
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return Answer(status, headers, body)

    def rest(self):
        """All until the server closes."""
        while self.more():
            pass
        data, self.seen = self.seen, b""
        return data

    def assert_closed(self):
        assert self.rest() == b""

    def get(self, target, *headers):
        self.send(request("GET", target, *headers))
        return self.answer()

    def post(self, target, body, *headers):
        self.send(request("POST", target, f"Content-Length: {len(body)}", *headers) + body)
        return self.answer()


def request(method, target, *headers):
    lines = [f"{method} {target} HTTP/1.1", "Host: h", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def error_of(answer):
    error = json.loads(answer.body)["error"]
    assert error["code"] == answer.status
    return error["message"]


def pattern(length):
    once = bytes(ord("a") + i % 23 for i in range(23))
    return (once * (length // 23 + 1))[:length]


@pytest.fixture(scope="module", name="server")
def shared_server():
    with Server() as server:
        yield server


@pytest.fixture(name="client")
def one_client(server):
    with server.client() as client:
        yield client


# ---- What can be understood in two ways ---------------------------------------------------------

SMUGGLED = b"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"
H = b"Host: h\r\n"


def post(*lines, body=b"", version=b"1.1"):
    head = b"POST /gather HTTP/" + version + b"\r\n" + H
    return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


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
    assert client.get("/hello/").status == 404
    assert client.get("/hell").status == 404
    assert client.get("/HELLO").status == 404
    assert client.get("/hello").status == 200


def test_what_is_not_allowed(client):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        client.send(request(method, "/hello"))
        answer = client.answer()
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    answer = client.get("/gather")
    assert (answer.status, answer.headers["allow"]) == (405, "POST, PUT")


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
            end = time.monotonic() + PATIENCE_S
            status = 200
            while status == 200 and time.monotonic() < end:  # until what first sent is there
                with server.client() as second:
                    status = second.post("/gather", b"y" * (2 << 20)).status
            assert status == 503
            first.send(b"x")
            assert first.answer().status == 200
        with server.client() as third:  # it has been given back
            assert third.post("/gather", b"z" * most).status == 200


def test_connections_are_bounded():
    with Server(connections_max=5) as server:
        clients = [server.client() for _ in range(5)]
        for client in clients:
            assert client.get("/hello").status == 200
        with server.client() as sixth:
            answer = sixth.answer()
            assert answer.status == 503
            assert answer.headers["connection"] == "close"
        clients[0].send(request("GET", "/hello", "Connection: close"))
        clients[0].answer()
        clients[0].assert_closed()
        clients[0].socket.close()
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with server.client() as again:
                again.send(request("GET", "/hello"))
                if again.answer().status == 200:
                    break
        else:
            raise AssertionError("the place was not given back")
        for client in clients[1:]:
            assert client.get("/hello").status == 200
            client.socket.close()


# ---- gzip ---------------------------------------------------------------------------------------


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
    for coding in ("br", "deflate", "gzip, gzip", "zstd", "compress"):
        answer = client.post("/gather", b"hello", f"Content-Encoding: {coding}")
        assert answer.status == 415
        assert answer.headers["accept-encoding"] == "gzip"
    assert client.post("/gather", b"hello").status == 200


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


def bomb(decoded_bytes):
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    zeros = b"\0" * (1 << 20)
    pieces = [packer.compress(zeros) for _ in range(decoded_bytes >> 20)]
    return b"".join(pieces) + packer.flush()


@pytest.fixture(scope="module", name="bombed")
def one_bomb():
    return bomb(256 << 20)


@pytest.mark.parametrize("target", ["/gather", "/length"])
def test_a_bomb_stops_at_the_limit(bombed, target):
    with Server() as server:
        with server.client() as client:
            answer = client.post(target, bombed, "Content-Encoding: gzip")
            assert answer.status == 413
        assert server.counts()["last_abort"] == ERR_LIMIT
        assert server.anonymous_kb() < 64 << 10


def test_decoded_limit_and_one_past_it(client):
    exact = gzip.compress(b"x" * DECODED_MAX)
    assert client.post("/length", exact, "Content-Encoding: gzip").body == b"%d\n" % DECODED_MAX
    beyond = gzip.compress(b"x" * (DECODED_MAX + 1))
    assert client.post("/length", beyond, "Content-Encoding: gzip").status == 413


def test_a_bomb_does_not_hold_up_others(server, bombed):
    """A body that takes long to inflate is done in turns: others are answered meanwhile."""
    with server.client() as one, server.client() as other:
        one.send(request("POST", "/flood", "Content-Encoding: gzip",
                         f"Content-Length: {len(bombed)}") + bombed)
        for _ in range(20):
            assert other.get("/hello").status == 200
        assert not select.select([one.socket], [], [], 0)[0]
        assert one.answer().body == b"%d\n" % (256 << 20)


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


def test_a_head_that_drips_is_cut():
    with Server(header_timeout_ms=300) as server, server.client() as client:
        head = b"GET /hello HTTP/1.1\r\nHost: h\r\n" + b"A: b\r\n" * 1000
        started = time.monotonic()
        for i in range(len(head)):
            if select.select([client.socket], [], [], 0.02)[0]:
                break
            client.send(head[i:i + 1])
        assert 0.25 < time.monotonic() - started < PATIENCE_S
        assert client.answer().status == 408
        client.assert_closed()


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
                while not select.select([client.socket], [], [], 0.02)[0]:
                    client.send(b"x")
                assert client.answer().status == 408
                client.assert_closed()
        counts = server.counts()
        assert (counts["aborted"], counts["last_abort"]) == (2, ERR_TIMEOUT)


def test_a_slow_body_that_goes_on_is_not_cut():
    with Server(body_timeout_ms=400, progress_min_bytes=100) as server:
        with server.client() as client:
            client.send(request("POST", "/gather", "Content-Length: 5000"))
            started = time.monotonic()
            for _ in range(50):
                client.send(b"x" * 100)
                assert not select.select([client.socket], [], [], 0.02)[0] or _ == 49
            assert time.monotonic() - started > 0.8
            assert client.answer().body == b"x" * 5000


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
    with Server(write_timeout_ms=300) as server, server.client() as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.send(request("GET", f"/stream?bytes={8 << 20}"))
        started, have = time.monotonic(), b""
        while time.monotonic() < started + 1:
            have += client.socket.recv(1 << 16)
            select.select([], [], [], 0.02)
        client.seen = have
        assert client.answer().body == pattern(8 << 20)


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


def test_a_mirror():
    """Both directions at once, with a reader that lags: nothing is lost, nothing piles up."""
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
        client.seen = b"".join(got)
        assert client.answer().body == body
        assert peak < 16 << 10
        assert server.counts()["drained"] > 0


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
