"""The socket in the data directory: commands find it by themselves, and who may open the data's
files may do everything there, without a token. Other sockets, of `listen`, give nobody anything."""

import json
import os
import pathlib
import socket
import stat
import subprocess
import sys
import tempfile

import pytest

from server import PATIENCE_S, Server, run, running

ADMIN = ["--roles", "admin", "--tenants", "*"]
NOBODY = 65534

# Asks on the socket argv[1] for argv[2], and prints the status.
ASK = """
import socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sock.sendall(f"GET {sys.argv[2]} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
print(sock.makefile().readline().split()[1])
"""


@pytest.fixture
def folder():
    """A short path, as those of sockets have to be, into which everybody may look."""
    with tempfile.TemporaryDirectory(prefix="granary-") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)


@pytest.fixture
def own(folder):
    """A server whose data are in ./var of `folder`, with a credential."""
    with running(Server(folder, options=["--data", folder / "var"])) as server:
        server.data = folder / "var"
        server.close_to_others()
        yield server


def path_of(server):
    return server.data / "granary.sock"


def ask(path, target="/api/verify", user=None):
    """The status that this user gets."""
    done = subprocess.run([sys.executable, "-c", ASK, path, target], capture_output=True, text=True,
                          timeout=PATIENCE_S, user=user, group=user, extra_groups=[])
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def without_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("GRANARY_")}


def here(server, *arguments, **environment):
    """A command in the folder in which ./var is."""
    return run(*arguments, cwd=server.folder, env={**without_environment(), **environment})


def test_commands_find_it_and_need_no_token(own):
    assert own.request("GET", "/api/credentials", headers={"Authorization": ""}).status == 401
    made = here(own, "token", "create", "again", *ADMIN)
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    assert own.get("/api/stats", {"Authorization": f"Bearer {token}"}).status == 200
    assert ("admin of this machine at the socket: POST /api/credentials?name=again"
            in own.log_text())
    assert here(own, "put", "m", "7", "a=b").returncode == 0
    assert json.loads(here(own, "query", "m", "-o", "json").stdout)
    # By --data, the server that has it open is asked, wherever one is.
    listed = run("token", "list", "--data", own.data, cwd="/", env=without_environment())
    assert listed.stdout.splitlines()[1].startswith("again,admin,*,")


def test_what_is_said_goes_before_what_is_found(own, tmp_path):
    dead = "http://127.0.0.1:1"
    for said in (here(own, "token", "list", "--server", dead),
                 here(own, "token", "list", GRANARY_SERVER=dead)):
        assert said.returncode == 1 and dead in said.stderr
    assert here(own, "token", "list", "--server", f"unix:{path_of(own)}",
                GRANARY_SERVER=dead).returncode == 0
    # A token counts on the socket, too: who shows one is its holder.
    web = here(own, "token", "create", "web", "--roles", "read", "--tenants", "a")
    (tmp_path / "token").write_text(web.stdout)
    (tmp_path / "token").chmod(0o600)
    refused = here(own, "token", "list", "--token-file", tmp_path / "token")
    assert refused.returncode == 1 and "does not have the role admin" in refused.stderr
    # Where no server is, the address of old is asked.
    own.stop()
    gone = here(own, "token", "list")
    assert gone.returncode == 1
    assert "http://127.0.0.1:8470" in gone.stderr or "credential" in gone.stderr


def test_it_is_its_owners(own, folder):
    path = path_of(own)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ask(path) == 200
    denied = subprocess.run([sys.executable, "-c", ASK, path, "/api/verify"], capture_output=True,
                            text=True, timeout=PATIENCE_S, user=NOBODY, group=NOBODY,
                            extra_groups=[])
    assert "PermissionError" in denied.stderr
    # Whoever is let in by the file's mode alone is still nobody.
    own.data.chmod(0o755)
    path.chmod(0o666)
    assert ask(path, user=NOBODY) == 401
    assert ask(path, "/-/healthy", user=NOBODY) == 200
    assert ask(path) == 200


def test_a_server_of_another_user_takes_its_own_commands(folder):
    """Root's and its own user's, and nobody else's."""
    home = folder / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    server = Server(folder, options=["--data", home])
    server.data = home
    with open(server.log_path, "a") as log:
        server.process = subprocess.Popen(server.command(), stdin=subprocess.DEVNULL, stdout=log,
                                          stderr=log, user=NOBODY, group=NOBODY,
                                          extra_groups=[])
    server.wait_ready()
    server.close_to_others()
    try:
        assert ask(path_of(server), user=NOBODY) == 200
        assert ask(path_of(server)) == 200
        home.chmod(0o755)
        path_of(server).chmod(0o666)
        assert ask(path_of(server), user=NOBODY - 1) == 401
    finally:
        server.stop()


def test_another_socket_gives_nobody_anything(folder):
    other = folder / "http.sock"
    server = Server(folder)
    server.options = ["--listen", f"127.0.0.1:{server.port},unix:{other}"]
    with running(server):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(other))
        assert stat.S_IMODE(other.stat().st_mode) == 0o660
        assert run("token", "create", "root", *ADMIN, "--server", f"unix:{other}").returncode == 0
        refused = run("token", "list", "--server", f"unix:{other}")
        assert refused.returncode == 1 and "valid credential" in refused.stderr
        assert ask(other) == 401
    assert not other.exists() and not path_of(server).exists()


def test_what_a_killed_server_has_left_is_taken_over(own):
    own.kill()
    assert path_of(own).is_socket()
    own.start()
    assert here(own, "token", "list").returncode == 0


def test_the_server_serves_without_it(folder):
    """Where its path would be too long, or something else is there."""
    deep = folder / ("d" * 100)
    with running(Server(folder, options=["--data", deep])) as server:
        assert f"at most 107 bytes, and {deep}/granary.sock has " in server.log_text()
        assert server.get("/-/ready").status == 200
    data = folder / "data"
    data.mkdir()
    (data / "granary.sock").write_text("mine")
    with running(Server(folder)) as server:
        assert "what is there is no socket" in server.log_text()
    assert (data / "granary.sock").read_text() == "mine"


def test_a_browser_would_have_to_say_who_it_is(own):
    """The name in Host does not count, since none is needed to come here; that of a page does."""
    path = str(path_of(own))
    for host, status in ((b"any.name", b"200"),
                         (b"localhost\r\nOrigin: http://evil.example", b"403")):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
            sock.sendall(b"GET /api/stats HTTP/1.1\r\nHost: " + host +
                         b"\r\nConnection: close\r\n\r\n")
            assert sock.makefile("rb").readline().split()[1] == status


def test_a_path_that_no_socket_can_have(own):
    long = "unix:/" + "x" * 107
    said = run("token", "list", "--server", long)
    assert said.returncode == 1 and "at most 107 bytes" in said.stderr
    none = run("token", "list", "--server", "unix:/nowhere")
    assert none.returncode == 1
    assert "unix:/nowhere: No such file or directory" in none.stderr
