"""doc/proxy.md: its configurations, as they stand there, in a real nginx and a real Apache."""

import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess

import pytest

from server import PATIENCE_S, ROOT, Answer, eventually, free_port
from tls_files import make_pair

PAGE = (ROOT / "doc/proxy.md").read_text()
NAME, PATH = "granary.example.org", "/granary"
URL = f"https://{NAME}{PATH}"
APACHE_MODULES = ["mpm_event", "authz_core", "socache_shmcb", "ssl", "headers", "proxy",
                  "proxy_http"]
JSON = {"Content-Type": "application/json"}


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S).group(1)


def adapt(text, server, port, pair):
    """Only the places change: ports, and where the certificate is."""
    for old, new in [("127.0.0.1:8470", f"127.0.0.1:{server.port}"),
                     ("/etc/ssl/certs/granary.pem", pair[0]),
                     ("/etc/ssl/private/granary.key", pair[1])]:
        assert old in text
        text = text.replace(old, str(new))
    return re.sub(r"\b443\b", str(port), text)


class Front:
    """A proxy, and a client of it who has 127.0.0.2."""

    def __init__(self, command, port, certificate, token):
        self.port, self.certificate = port, certificate
        self.shown = {"Authorization": f"Bearer {token}"}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        eventually(self.is_up, "the proxy answers")

    def is_up(self):
        assert self.process.poll() is None, "the proxy has ended"
        with contextlib.suppress(OSError):
            self.connect().close()
            return True
        return False

    def connect(self):
        context = ssl.create_default_context(cafile=self.certificate)
        plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S, ("127.0.0.2", 0))
        return context.wrap_socket(plain, server_hostname=NAME)

    def send(self, method, path, body=None, headers=None, **options):
        connection = http.client.HTTPConnection(NAME, timeout=PATIENCE_S)
        connection.sock = self.connect()
        connection.request(method, PATH + path, body,
                           self.shown if headers is None else headers, **options)
        return connection, connection.getresponse()

    def ask(self, method, path, body=None, headers=None, **options):
        connection, answer = self.send(method, path, body, headers, **options)
        with contextlib.closing(connection):
            return Answer(answer.status, answer.headers, answer.read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)


def nginx(folder, text):
    temporary = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "conf").write_text(
        f"daemon off; user root; pid {folder}/pid; error_log {folder}/error;\n"
        f"events {{}}\nhttp {{ access_log off; {temporary}\n{text}}}\n")
    return ["nginx", "-c", folder / "conf", "-e", folder / "error"]


def apache(folder, text):
    loads = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"
                    for name in APACHE_MODULES)
    port = re.search(r"\*:(\d+)", text).group(1)
    (folder / "conf").write_text(
        f"{loads}Listen 127.0.0.1:{port}\nUser www-data\nGroup www-data\nServerName localhost\n"
        f"DefaultRuntimeDir {folder}\nPidFile {folder}/pid\nErrorLog {folder}/error\n{text}")
    return ["apache2", "-X", "-f", folder / "conf"]


PROXIES = {"nginx": nginx, "apache": apache}
PROGRAMS = {"nginx": "nginx", "apache": "apache2"}


@pytest.fixture
def more_config():
    """Of the server, besides what the page has; a test may have another one."""
    return ""


@pytest.fixture(params=PROXIES)
def behind(request, make_server, tmp_path, monkeypatch, more_config):
    """The server with the page's configuration, and its proxy."""
    monkeypatch.setenv("PATH", f"/usr/sbin:{os.environ['PATH']}")
    if not shutil.which(PROGRAMS[request.param]):
        pytest.skip(f"{PROGRAMS[request.param]} is not installed")
    server = make_server(config=block("yaml") + more_config)
    server.start()
    server.close_to_others()
    folder = tmp_path / "front"
    folder.mkdir()
    pair = make_pair(folder, NAME, names=f"DNS:{NAME}")
    port = free_port()
    command = PROXIES[request.param](folder, adapt(block(request.param), server, port, pair))
    server.front = Front(command, port, pair[0], server.token)
    yield server
    server.stop()  # first: a proxy waits for what it follows
    server.front.stop()


def test_answers_are_those_of_the_server(behind):
    """Names with %2F and with an escaped escape arrive as they were sent, errors as they are."""
    behind.write("m,a=b value=1 1600000000000000000")
    for path in ["/-/ready", "/api/query?metricName=m&start=0", "/api/agents/a%2Fb",
                 "/api/agents/a%252Fb", "/api/agents/%E2%82%AC", "/api/nothing",
                 "/v2/device/no%2Fdevice/", "/api/query?metricName=m&start=a%2Fb%20c%2B"]:
        straight, found = behind.get(path), behind.front.ask("GET", path)
        assert (found.status, found.body) == (straight.status, straight.body), path
    assert behind.front.ask("GET", "/api/query?metricName=m&start=0").json[0]["values"]


def test_links_and_pages_are_of_the_proxy(behind):
    for name in ["r1", "r2"]:
        made = behind.front.ask("POST", "/api/devices", json.dumps(
            {"name": name, "address": "127.0.0.1:1", "credentials": "public",
             "oidsets": ["FastPollHC"]}), {**behind.front.shown, **JSON})
        assert made.status < 300, made
    links = re.findall(r'"(https?://[^"]*)"', behind.front.ask("GET", "/v2/device/").text)
    assert links and all(link.startswith(f"{URL}/v2/device/") for link in links), links
    for origin, status in [(f"https://{NAME}", 200), ("https://evil.example", 403)]:
        answer = behind.front.ask("GET", "/api/stats",
                                  headers={**behind.front.shown, "Origin": origin})
        assert answer.status == status, (origin, answer)


def test_what_is_followed_comes_at_once(behind):
    connection, answer = behind.front.send("GET", "/api/streams/tail")
    with contextlib.closing(connection):
        assert answer.status == 200
        for number in range(3):
            line = f"line number {number}"
            pushed = behind.front.ask("POST", "/loki/api/v1/push", json.dumps({"streams": [{
                "stream": {"host": "h", "job": "j", "filename": "/a"},
                "values": [[str(1600000000 * 10**9 + number), line]]}]}),
                {**behind.front.shown, **JSON})
            assert pushed.status == 204, pushed
            seen = b""
            while line.encode() not in seen:
                piece = answer.read1(65536)
                assert piece, "the answer has ended"
                seen += piece


def test_uploads_and_compressed_answers(behind):
    """By length and in chunks, beyond what a proxy keeps in memory; a limit is the server's own."""
    count = 200000
    lines = "".join(f"up,i={n % 50} value={n} {1600000000 + n}\n" for n in range(count)).encode()
    assert len(lines) > 5 << 20
    pieces = iter([lines[:1 << 20], lines[1 << 20:]])
    for body, headers in [(lines, {}), (gzip.compress(lines), {"Content-Encoding": "gzip"}),
                          (pieces, {"Transfer-Encoding": "chunked"})]:
        written = behind.front.ask("POST", "/write?precision=s", body,
                                   {**behind.front.shown, **headers},
                                   encode_chunked="Transfer-Encoding" in headers)
        assert written.status == 204, written
    path = "/api/query?metricName=up&start=0&fn=count&window=40000d"
    found = behind.front.ask("GET", path, headers={**behind.front.shown, "Accept-Encoding": "gzip"})
    assert found.headers["Content-Encoding"] == "gzip"
    series = json.loads(gzip.decompress(found.body))
    assert sum(sum(one["values"].values()) for one in series) == count
    too_long = behind.front.ask("POST", "/write", b"x" * (33 << 20))
    assert too_long.status == 413 and "ingest.body_max" in too_long.text


def test_the_client_is_whoever_asks_the_proxy(behind):
    """What a client writes into the header itself counts for nothing."""
    for name, said in [("one", {}), ("two", {"X-Forwarded-For": "203.0.113.9"})]:
        made = behind.front.ask("POST", f"/api/credentials?name={name}&roles=read&tenants=*",
                                headers={**behind.front.shown, **said})
        assert made.status == 201, made
    seen = re.findall(r"root at ([\d.]+):\d+: POST /api/credentials", behind.log_text())
    assert seen == ["127.0.0.2", "127.0.0.2"]


@pytest.mark.parametrize("more_config", ["auth: {anonymous: read}\n"])
def test_the_name_is_that_of_the_request(behind):
    """A name that was bound anew (evil.example, whose address is ours) is none, whatever the page
    behind it has its browser say besides."""
    for said in [{}, {"X-Forwarded-Host": "localhost"}, {"X-Forwarded-Host": NAME},
                 {"X-Forwarded-Host": f"{NAME}, localhost"}]:
        evil = behind.front.ask("GET", "/api/stats", headers={"Host": "evil.example", **said})
        assert evil.status == 421, (said, evil)
        good = behind.front.ask("GET", "/api/stats", headers={"Host": NAME, **said})
        assert good.status == 200, (said, good)
    # Nor does it take from people the name by which they know the server.
    assert behind.front.ask("GET", "/api/stats", headers={
        "Host": NAME, "X-Forwarded-Host": "evil.example"}).status == 200


def test_the_protocol_is_that_of_the_request(behind):
    """A cookie is marked Secure, and its name bound to TLS, though the client says otherwise."""
    for said in [{}, {"X-Forwarded-Proto": "http"}, {"X-Forwarded-Proto": "https, http"}]:
        made = behind.front.ask("POST", "/api/session", json.dumps({"token": behind.token}),
                                {**JSON, **said, "Sec-Fetch-Site": "same-origin"})
        cookie = made.headers["Set-Cookie"]
        assert made.status < 300 and cookie.startswith("__Host-"), (said, made)
        assert "Secure" in cookie.split("; ")


@pytest.mark.parametrize("behind", ["nginx"], indirect=True)  # of which alone the page says so
def test_an_upload_arrives_as_it_comes(behind):
    """The server refuses it by its head: a proxy that waited for the end would have to wait."""
    with behind.front.connect() as sock:
        sock.sendall(f"POST {PATH}/write HTTP/1.1\r\nHost: {NAME}\r\n"
                     f"Content-Length: {1 << 20}\r\n\r\n".encode() + b"x" * (64 << 10))
        assert sock.recv(12) == b"HTTP/1.1 401"


def test_an_answer_that_is_cut_off_is_no_whole_one(behind):
    """The server dies in the middle of it."""
    connection, answer = behind.front.send("GET", "/api/streams/tail")
    with contextlib.closing(connection):
        assert answer.status == 200
        behind.kill()
        with pytest.raises(http.client.IncompleteRead):
            answer.read()
    behind.start()


def test_a_proxy_on_this_machine_opens_nothing(behind):
    for headers in [{}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Forwarded-For": ""},
                    {"Authorization": "Bearer gr_none_none"}]:
        for method, path in [("GET", "/api/stats"), ("GET", "/metrics"), ("POST", "/write")]:
            assert behind.front.ask(method, path, headers=headers).status == 401, (headers, path)
