"""tests/tools/http_echo.c, a server of nothing but HTTP, and raw sockets to it. Fixtures: `server`,
shared by the cases of a file, and `client`, a connection to it."""

import contextlib
import ctypes
import gzip
import json
import os
import pathlib
import re
import select
import signal
import socket
import ssl
import subprocess
import threading
import zlib

import pytest

from server import PATIENCE_S, ROOT, eventually
from tls_files import make_pair

BODY_MAX = 4 << 20  # of the routes of http_echo
DECODED_MAX = 16 << 20
H = b"Host: h\r\n"
SMUGGLED = b"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"
ERR_INVALID, ERR_TIMEOUT, ERR_CANCELLED, ERR_LIMIT = -1008, -1011, -1012, -1007


def build_dir():
    if "GRANARY_BUILD" in os.environ:
        return pathlib.Path(os.environ["GRANARY_BUILD"])
    if "GRANARY" in os.environ:
        return pathlib.Path(os.environ["GRANARY"]).parent
    return ROOT / "build"


class TlsSocket:
    """What the tests use of a socket, with TLS in between. Half a connection ends as it does
    without (close_notify); a connection that is cut reads as one that ends."""

    def __init__(self, sock):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.sock, self.incoming, self.outgoing = sock, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)
        self.lock = threading.Lock()  # one thread may send while another one reads
        self.held = b""  # read already
        self.setsockopt, self.settimeout, self.close = sock.setsockopt, sock.settimeout, sock.close
        self.step(self.tls.do_handshake)

    def step(self, act):
        """What `act` gives, b"" at the end of the connection."""
        while True:
            with self.lock:
                with contextlib.suppress(ssl.SSLWantReadError):
                    try:
                        return act()
                    except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                        return b""
                    finally:
                        self.sock.sendall(self.outgoing.read())
            piece = self.sock.recv(1 << 16)
            with self.lock:
                self.incoming.write(piece)
                if not piece:
                    self.incoming.write_eof()

    def fileno(self):
        return self.sock.fileno()

    def sendall(self, data):
        for start in range(0, len(data), 1 << 18):
            piece = data[start:start + (1 << 18)]
            self.step(lambda piece=piece: self.tls.write(piece))

    def recv(self, length):
        piece, self.held = self.held[:length], self.held[length:]
        return piece or self.step(lambda: self.tls.read(length))

    def readable(self, seconds):
        """What comes for TLS itself, as tickets, is nothing to be read."""
        while not self.held:
            with contextlib.suppress(ssl.SSLWantReadError):
                self.held = self.tls.read(1 << 16)
                return True
            if not select.select([self.sock], [], [], seconds)[0]:
                return False
            piece = self.sock.recv(1 << 16)
            if not piece:
                return True
            self.incoming.write(piece)
        return True

    def shutdown(self, _):
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.sock.sendall(self.outgoing.read())


class Server:
    """http_echo with these limits; ends with it, and checks that it ended well."""

    pair = None  # files of a certificate and its key: TLS is spoken

    def __init__(self, **limits):
        program = build_dir() / "tests" / "tools" / "http_echo"
        arguments = [f"{name}={value}" for name, value in limits.items()]
        if Server.pair:
            arguments += [f"certificate={Server.pair[0]}", f"key={Server.pair[1]}"]
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
        def found():
            counts = self.counts()
            return counts if condition(counts) else None
        return eventually(found, self.counts)

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
        if Server.pair:
            self.socket = TlsSocket(self.socket)
        self.seen = bytearray()  # loses its front without being copied

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.socket.close()

    def readable(self, seconds=0):
        if Server.pair:
            return self.socket.readable(seconds)
        return bool(select.select([self.socket], [], [], seconds)[0])

    def send(self, *pieces):
        for piece in pieces:
            self.socket.sendall(piece)

    def more(self):
        piece = self.socket.recv(1 << 16)
        self.seen += piece
        return piece

    def take_line(self):
        while (end := self.seen.find(b"\r\n")) < 0:
            if not self.more():
                raise EOFError(self.seen)
        line = bytes(self.seen[:end])
        del self.seen[:end + 2]
        return line

    def take(self, length):
        while len(self.seen) < length:
            if not self.more():
                raise EOFError(self.seen[-100:])
        data = bytes(self.seen[:length])
        del self.seen[:length]
        return data

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
        data, self.seen = bytes(self.seen), bytearray()
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


def post(*lines, body=b"", version=b"1.1"):
    head = b"POST /gather HTTP/" + version + b"\r\n" + H
    return head + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def brotli(data, window_bits=22, quality=5):
    """As Google's encoder has it, whose library stands beside that of the decoder."""
    encoder = ctypes.CDLL("libbrotlienc.so.1")
    room = ctypes.c_size_t(len(data) + len(data) // 2 + 1024)
    packed = ctypes.create_string_buffer(room.value)
    assert encoder.BrotliEncoderCompress(quality, window_bits, 0, ctypes.c_size_t(len(data)), data,
                                         ctypes.byref(room), packed) == 1
    return packed.raw[:room.value]


def raw_deflate(data, level=6):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def error_of(answer):
    error = json.loads(answer.body)["error"]
    assert error["code"] == answer.status
    return error["message"]


def pattern(length):
    once = bytes(ord("a") + i % 23 for i in range(23))
    return (once * (length // 23 + 1))[:length]


@pytest.fixture(scope="module", autouse=True, params=["plain", "tls"], name="wire")
def both_wires(request, tmp_path_factory):
    """Everything happens a second time with TLS under it."""
    if request.param == "tls":
        Server.pair = make_pair(tmp_path_factory.mktemp("pair"), "echo")
    yield request.param
    Server.pair = None


@pytest.fixture(scope="module", name="server")
def shared_server(wire):
    with Server() as server:
        yield server


@pytest.fixture(name="client")
def one_client(server):
    with server.client() as client:
        yield client
