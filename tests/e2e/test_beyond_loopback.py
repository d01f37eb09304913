"""A server that other machines reach: who is let in, and who is not listened to at all. The other
machine is a network namespace."""

import re

import pytest

from network import OUTSIDER, OURS, THEIRS, elsewhere  # noqa: F401 (a fixture)
from server import eventually, run, running
from tls_files import make_pair

ADMIN = ["--roles", "admin", "--tenants", "*"]
# Sends argv[4] from the address argv[1] to argv[2] by tcp or udp.
SEND = """
import socket, sys
kind = socket.SOCK_STREAM if sys.argv[3] == "tcp" else socket.SOCK_DGRAM
sock = socket.socket(socket.AF_INET, kind)
sock.bind((sys.argv[1], 0))
host, port = sys.argv[2].rsplit(":", 1)
sock.connect((host, int(port)))
try:
    sock.sendall(sys.argv[4].encode())
    if sys.argv[3] == "tcp":
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)
except OSError:
    pass
"""


@pytest.fixture
def token(tmp_path):
    """The file of an admin's token of the data directory of the server `main`."""
    made = run("token", "create", "me", *ADMIN, "--data", tmp_path / "main" / "data")
    assert made.returncode == 0, made.stderr
    path = tmp_path / "token"
    path.write_text(made.stdout)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:8470", "[::]:8470"])
def test_what_others_could_read_has_to_be_wanted(tmp_path, address):
    answer = run("serve", "--listen", f"127.0.0.1:0,{address}", "--data", tmp_path / "d")
    assert answer.returncode == 2
    assert f"--listen: {address} is reached from other machines" in answer.stderr
    assert f"tls:{address}" in answer.stderr and f"plain:{address}" in answer.stderr
    assert not (tmp_path / "d").exists()


def test_nobody_from_elsewhere_without_a_credential(tmp_path):
    pair = make_pair(tmp_path, "pair")
    for address in ("plain:0.0.0.0:0", "tls:0.0.0.0:0", "tls:[::]:0"):
        answer = run("serve", "--listen", address, "--data", tmp_path / "d",
                     "--tls.certificate_file", pair[0], "--tls.key_file", pair[1])
        assert answer.returncode == 1
        assert "there is no credential" in answer.stderr
        assert f"--data {tmp_path}/d" in answer.stderr
        assert not (tmp_path / "d").exists()
        # That is not the configuration's fault, of which alone a check speaks.
        checked = run("config", "--check", "--listen", address, "--tls.certificate_file", pair[0],
                      "--tls.key_file", pair[1])
        assert (checked.returncode, checked.stdout) == (0, "the configuration is good\n")
    told = " ".join(run("help", "config").stdout.split())
    assert "would start" not in told and "The store, its credentials," in told
    assert "are not looked at" in told
    answer = run("poll", "--server", "http://127.0.0.1:1", "--data", tmp_path / "spool", "--listen",
                 "plain:0.0.0.0:0")
    assert answer.returncode == 1 and "asks nobody for a credential" in answer.stderr


@pytest.mark.parametrize("kind", ["tls", "plain"])
def test_with_a_token_from_another_machine(tmp_path, elsewhere, token,  # noqa: F811
                                           make_server, kind):
    pair = make_pair(tmp_path, "pair")
    server = make_server()
    server.options = ["--listen", f"127.0.0.1:{server.port},{kind}:{OURS}:8473",
                      "--tls.certificate_file", pair[0], "--tls.key_file", pair[1]]
    server.token = token.read_text().strip()
    url = f"{'https' if kind == 'tls' else 'http'}://{OURS}:8473"
    here = ["--server", url, "--ca", pair[0]]
    with running(server):
        assert f"{url}/" in server.log_text()
        put = elsewhere.run("put", "m", "7", "a=b", *here, "--token-file", token)
        assert put.returncode == 0, put.stderr
        assert list(server.values("m", start="1h-ago").values()) == [7.0]
        refused = elsewhere.run("put", "m", "8", "a=b", *here)
        assert refused.returncode == 1 and "valid credential is needed" in refused.stderr
        # It is the address of the peer that is logged.
        eventually(lambda: re.search(rf"of {THEIRS}:\d+ is refused", server.log_text()))
        healthy = elsewhere.execute("curl", "-s", "--cacert", pair[0], f"{url}/-/ready")
        assert healthy.stdout.strip() == "ready"


DOORS = {"line_tcp": ("tcp", "m,a=b v=7\n"),
         "line_udp": ("udp", "m,tenant=other,a=b v=7\n"),
         "opentsdb": ("tcp", "put m_v 1700000000 7 a=b\n")}


@pytest.mark.parametrize("door", DOORS)
def test_lines_from_elsewhere_need_networks_and_a_tenant(tmp_path, door):
    options = ["serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "d", f"--{door}.listen",
               "0.0.0.0:0"]
    answer = run(*options)
    assert answer.returncode == 2
    assert f"--{door}.listen: 0.0.0.0:0 is reached from other machines" in answer.stderr
    assert f"{door}.tenant has to say whose they are" in answer.stderr
    answer = run(*options, f"--{door}.tenant", "t")
    assert answer.returncode == 2 and f"{door}.networks has to say who may send" in answer.stderr
    answer = run(*options, f"--{door}.networks", "192.0.2.0/24")
    assert answer.returncode == 2 and f"{door}.tenant has to say" in answer.stderr
    answer = run(*options, f"--{door}.tenant", "t", f"--{door}.networks",
                 "192.0.2.0/24,192.0.2.1/8")
    assert answer.returncode == 2 and f"--{door}.networks: '192.0.2.1/8'" in answer.stderr


@pytest.mark.parametrize("door", DOORS)
def test_lines_are_taken_of_these_networks_only(elsewhere, make_server, door):  # noqa: F811
    kind, line = DOORS[door]
    server = make_server(options=[f"--{door}.listen", f"{OURS}:8474", f"--{door}.tenant", "fixed",
                                  f"--{door}.networks", "198.51.100.0/25"])
    with running(server):
        counter = f"granary_{kind}_outsiders_total"
        sent = elsewhere.execute("python3", "-c", SEND, OUTSIDER, f"{OURS}:8474", kind, line)
        assert sent.returncode == 0, sent.stderr
        eventually(lambda: server.metric(counter) == 1)
        assert f"of {OUTSIDER}:" in server.log_text()
        assert f"is not in {door}.networks" in server.log_text()
        sent = elsewhere.execute("python3", "-c", SEND, THEIRS, f"{OURS}:8474", kind, line)
        assert sent.returncode == 0, sent.stderr
        found = eventually(lambda: server.values("m_v", tenant="fixed"))
        assert list(found.values()) == [7.0]
        assert server.metric(counter) == 1
        # Whose a line says it is does not count.
        assert "other" not in server.get("/api/metadata/tenants").text
