"""The README's path from an empty folder to a restored copy: a server, a token, a sample from
another machine over TLS, a backup, a restore, the same answers. How long each step took is told."""

import subprocess
import time

import pytest

from network import OURS, elsewhere  # noqa: F401 (a fixture)
from server import eventually, free_port, granary, run
from tls_files import make_pair


class Steps:
    def __init__(self):
        self.begun, self.lines = time.monotonic(), []

    def done(self, name):
        now = time.monotonic()
        self.lines.append(f"{name}: {now - self.begun:.2f} s")
        self.begun = now


def serve(folder, *options):
    """As ./run does, which has built the program; until it says that it is ready."""
    process = subprocess.Popen([granary(), "serve", *map(str, options)], cwd=folder, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    eventually(lambda: " is ready at " in process.stdout.readline())
    return process


@pytest.fixture
def processes():
    running = []
    yield running
    for process in running:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def ok(answer):
    assert answer.returncode == 0, answer
    return answer.stdout


def test_from_an_empty_folder_to_a_restored_copy(tmp_path, elsewhere, processes):  # noqa: F811
    steps = Steps()
    certificate, key = make_pair(tmp_path, "tls")
    listen = f"127.0.0.1:{free_port()},tls:{OURS}:8471"
    tls = ["--tls.certificate_file", certificate, "--tls.key_file", key]
    here = {"cwd": tmp_path}

    # Nobody from elsewhere is let in before there is a credential, so it is made first.
    made = ok(run("token", "create", "me", "--roles", "admin", "--tenants", "*", "--data", "./var",
                  **here))
    assert made.startswith("gr_")
    processes.append(serve(tmp_path, "--listen", listen, *tls, "--data", "./var"))
    steps.done("serve")

    # By the socket in ./var, without a token.
    token = tmp_path / "web1.token"
    token.write_text(ok(run("token", "create", "web1", "--roles", "write", "--tenants", "acme",
                            **here)))
    token.chmod(0o600)
    steps.done("token create")

    put = elsewhere.run("put", "room.temperature", "21.5", "room=kitchen", "--server",
                        f"https://{OURS}:8471", "--ca", certificate, "--token-file", token)
    ok(put)
    steps.done("put over TLS from another network namespace")

    ok(run("backup", "./monday", **here))
    steps.done("backup")
    ok(run("restore", "./monday", "./var-restored", **here))
    steps.done("restore")

    question = ["query", "room.temperature", "--tenant", "acme", "--start", "1h-ago", "-o", "csv"]
    asked = ok(run(*question, **here))
    assert asked.splitlines()[1].endswith("21.5")
    port = free_port()
    processes.append(serve(tmp_path, "--listen", f"127.0.0.1:{port}", "--data", "./var-restored"))
    socket = f"unix:{tmp_path}/var-restored/granary.sock"
    assert ok(run(*question, "--server", socket, **here)) == asked
    names = [line.split(",")[0] for line in
             ok(run("token", "list", "-o", "csv", "--server", socket, **here)).splitlines()[1:]]
    assert sorted(names) == ["me", "web1"]
    steps.done("the same answers")
    print("\n".join(steps.lines))
