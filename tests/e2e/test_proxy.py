"""Behind a real nginx: whose word on the client counts, and links under a path."""

import base64
import json
import pathlib
import re
import shutil
import subprocess

import pytest

from server import PATIENCE_S, eventually, free_port, run, running

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")
URL = "https://granary.example/granary"

pytestmark = pytest.mark.skipif(not NGINX, reason="nginx is not installed")

SAYS = """
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto https;
    proxy_set_header X-Forwarded-Host $host;
"""


class Proxy:
    """nginx with these lines in its server."""

    def __init__(self, folder, lines):
        folder.mkdir()
        self.port = free_port()
        temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in
                            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "conf").write_text(f"""
            worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error; user root;
            events {{ worker_connections 64; }}
            http {{
                access_log off; {temporary}
                server {{ listen 127.0.0.1:{self.port}; {lines} }}
            }}""")
        self.process = subprocess.Popen([NGINX, "-c", folder / "conf", "-e", folder / "error"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: self.ask("/none")[0] not in ("000", "502"), "nginx answers")

    def ask(self, path, *headers, method="GET"):
        """Status and body."""
        said = [part for header in headers for part in ("-H", header)]
        done = subprocess.run(["curl", "-s", "-X", method, "-w", "\n%{http_code}", *said,
                               f"http://127.0.0.1:{self.port}{path}"],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        body, _, status = done.stdout.rpartition("\n")
        return status, body


@pytest.fixture
def proxy(tmp_path):
    proxies = []

    def make(lines):
        proxies.append(Proxy(tmp_path / f"nginx{len(proxies)}", lines))
        return proxies[-1]

    yield make
    for one in proxies:
        one.process.terminate()
        one.process.wait(PATIENCE_S)


def refused_of(server):
    """Of whom the log says that they were refused, in order."""
    return re.findall(r"of ([^ ]+):\d+ is refused", server.log_text())


def serve(make_server, name, *options):
    server = make_server(name)
    server.options = list(options)
    server.start()
    server.close_to_others()
    return server


def test_only_trusted_proxies_are_believed(make_server, proxy):
    stranger = serve(make_server, "a")
    trusting = serve(make_server, "b", "--http.trusted_proxies", "192.0.2.0/24,127.0.0.1")
    for server, seen in ((stranger, "127.0.0.1"), (trusting, "198.51.100.7")):
        front = proxy(f"location / {{ proxy_pass http://127.0.0.1:{server.port}; {SAYS} }}")
        # The first is what the client has made up; the second is a proxy of ours before nginx.
        status, _ = front.ask("/api/stats", "X-Forwarded-For: 203.0.113.9, 198.51.100.7",
                              "Host: localhost")
        # nginx adds its own client, 127.0.0.1, which is trusted.
        assert status == "401"
        eventually(lambda: refused_of(server))
        assert refused_of(server) == [seen]
        server.stop()


def test_a_proxy_on_this_machine_opens_nothing(make_server, proxy):
    """Before the first credential who comes from this machine may do everything: a client behind a
    trusted proxy does not."""
    server = make_server()
    server.options = ["--http.trusted_proxies", "127.0.0.1"]
    with running(server):
        front = proxy(f"location / {{ proxy_pass http://127.0.0.1:{server.port}; {SAYS} }}")
        assert server.get("/api/stats").status == 200
        assert front.ask("/api/stats", "X-Forwarded-For: 198.51.100.7",
                         "Host: localhost")[0] == "401"


@pytest.mark.parametrize("leaves", ["/granary/", "/"], ids=["on", "off"])
def test_links_under_a_path(make_server, proxy, leaves):
    """Whether nginx leaves its path on (proxy_pass without a URI) or takes it off."""
    server = serve(make_server, "main", "--http.trusted_proxies", "127.0.0.1",
                   "--http.external_url", URL)
    to = f"http://127.0.0.1:{server.port}" + ("" if leaves == "/granary/" else "/")
    front = proxy(f"location /granary/ {{ proxy_pass {to}; {SAYS} }}")
    shown = f"Authorization: Bearer {server.token}"
    host = "Host: granary.example"
    for n in range(3):
        server.request("POST", "/api/devices", f'{{"name":"r{n}","address":"127.0.0.1:1",'
                       '"credentials":"public","oidsets":["FastPollHC"]}',
                       {"Content-Type": "application/json"})
    status, body = front.ask("/granary/v2/device/?limit=1", shown, host)
    assert status == "200", body
    links = re.findall(r'"(https?://[^"]*)"', body)
    assert links and all(link.startswith(f"{URL}/v2/device/") for link in links), body
    # Our own page, as the browser sees it, is no foreign one.
    assert front.ask("/granary/api/stats", shown, host, "Origin: https://granary.example")[0] == \
        "200"
    assert front.ask("/granary/api/stats", shown, host, "Origin: https://evil.example")[0] == "403"
    assert front.ask("/granary/-/ready", host) == ("200", "ready\n")
    server.stop()


def test_a_proxy_over_a_socket(make_server, proxy):
    server = make_server()
    path = server.folder / "s"
    server.options = ["--listen", f"127.0.0.1:{server.port},unix:{path}",
                      "--http.trusted_proxies", "unix"]
    server.start()
    server.close_to_others()
    front = proxy(f"location / {{ proxy_pass http://unix:{path}:/; {SAYS} }}")
    assert front.ask("/api/stats", "Host: localhost", "X-Forwarded-For: 198.51.100.8")[0] == "401"
    # nginx' own client, of this machine, is who asks: the rest anybody may have written.
    eventually(lambda: refused_of(server))
    assert refused_of(server) == ["127.0.0.1"]
    server.stop()


@pytest.mark.parametrize("option, sentence", [
    ("--http.trusted_proxies=192.0.2.0/24,proxy.example", "'proxy.example' is neither"),
    ("--http.external_url=granary.example", "is no URL such as https://granary.example/path"),
    ("--http.external_url=http://h/api", "its path /api is one of the server's own"),
    ("--http.external_url=http://h/v2", "its path /v2 is one of the server's own")])
def test_what_is_no_proxy_and_no_url(tmp_path, option, sentence):
    said = run("serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "d", option)
    assert said.returncode == 2
    assert option.partition("=")[0] in said.stderr and sentence in said.stderr
    assert not pathlib.Path(tmp_path / "d").exists()


def test_the_proxy_says_who_it_is(make_server, proxy, tmp_path):
    """Single sign-on: nginx asks for a password, and names the user."""
    server = serve(make_server, "main", "--http.trusted_proxies", "127.0.0.1",
                   "--auth.proxy_user_header", "X-Remote-User", "--http.names", "granary.example")
    password = tmp_path / "password"
    password.write_text("correct horse")
    password.chmod(0o600)
    made = run("user", "create", "ann", "--roles", "read", "--tenants", "b", "--password-file",
               password, "--data", server.data)
    assert made.returncode == 0, made
    hashed = subprocess.run(["openssl", "passwd", "-6", "of nginx"], check=True,
                            capture_output=True, text=True).stdout
    (tmp_path / "users").write_text(f"ann:{hashed}bob:{hashed}")
    front = proxy(f"""
        auth_basic granary; auth_basic_user_file {tmp_path}/users;
        location / {{ proxy_pass http://127.0.0.1:{server.port};
            proxy_set_header X-Remote-User $remote_user; {SAYS} }}""")

    def ask(user, *more):
        shown = base64.b64encode(f"{user}:of nginx".encode()).decode()
        status, body = front.ask("/api/session", "Host: granary.example",
                                 f"Authorization: Basic {shown}", *more)
        return status, json.loads(body) if status == "200" else {}

    status, who = ask("ann")
    assert (status, who["name"], who["how"]) == ("200", "ann", "proxy"), who
    # nginx takes the place of what a client says.
    assert ask("ann", "X-Remote-User: root")[1]["name"] == "ann"
    assert ask("bob")[0] == "401"
    eventually(lambda: "its proxy says bob, who is no user" in server.log_text())


@pytest.mark.parametrize("options, sentence", [
    (["--auth.proxy_user_header", "X-User"], "http.trusted_proxies names no proxy"),
    (["--auth.proxy_user_header", "X User", "--http.trusted_proxies", "127.0.0.1"],
     "cannot be the header that names a user"),
    (["--auth.proxy_user_header", "cookie", "--http.trusted_proxies", "127.0.0.1"],
     "cannot be the header that names a user"),
])
def test_a_header_that_names_no_user(options, sentence):
    refused = run("config", "--check", *options)
    assert refused.returncode == 2 and sentence in refused.stderr, refused
