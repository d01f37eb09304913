"""A granary server under test, and how to talk to it."""

import contextlib
import functools
import gzip
import http.client
import json
import os
import pathlib
import random
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 120  # for what a test waits for; only a failure takes as long
TURN_MAX_MS = 200
SANITIZED_FACTOR = 20


def build_folder():
    if "GRANARY" in os.environ:
        return pathlib.Path(os.environ["GRANARY"]).parent
    return pathlib.Path(os.environ.get("GRANARY_BUILD", ROOT / "build"))


def granary():
    return str(pathlib.Path(os.environ.get("GRANARY", build_folder() / "granary")))


def tool(name):
    return str(build_folder() / "tests" / "tools" / name)


def long_run():
    return os.environ.get("GRANARY_LONG", "") not in ("", "0")


# ---- Servers that a sanitizer watches (tools/build asan, tsan)


# What a sanitizer finds in any process goes to a file of its own, which fails the test
# (conftest.py).
FINDINGS = tempfile.TemporaryDirectory(prefix="granary-findings-")
SUPPRESSED = ROOT / "tests" / "e2e" / "data" / "tsan.supp"
for name, value in {
        "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:strict_string_checks=1:"
                        "detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "TSAN_OPTIONS": f"exitcode=66:second_deadlock_stack=1:suppressions={SUPPRESSED}"}.items():
    os.environ[name] = f"{value}:log_path={FINDINGS.name}/finding"


def sanitizer():
    """asan or tsan: what all servers of this run are built with (./test e2e --sanitized); or ""."""
    return os.environ.get("GRANARY_SANITIZED", "")


def sanitized_build(flavour):
    """The program under this sanitizer; ./test builds it."""
    path = ROOT / f"build-{flavour}" / "granary"
    if not path.exists():
        pytest.skip(f"{path} is not built (tools/build {flavour} granary)")
    return str(path)


def findings():
    """What sanitizers have found since the last call."""
    texts = []
    for path in sorted(pathlib.Path(FINDINGS.name).iterdir()):
        texts.append(path.read_text(errors="replace"))
        path.unlink()
    return texts


def run(*arguments, timeout=PATIENCE_S, **options):
    """A client command: its exit status, standard output and standard error."""
    return subprocess.run([granary(), *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, **options)


@functools.lru_cache
def turn_max_ms():
    """How long a turn of a loop may be, in CPU time; sanitizers make everything slower."""
    program = pathlib.Path(granary()).read_bytes()
    sanitized = any(name in program for name in (b"__asan_init", b"__tsan_init"))
    return TURN_MAX_MS * (SANITIZED_FACTOR if sanitized else 1)


def check_turns(log):
    """No request may stop a loop: a server logs its longest turns from TURN_MAX_MS on, at once, so
    that they are known of killed ones, too."""
    turns = re.findall(r"one turn of the (\w+) loop took (\d+) ms", log)
    long = [f"{ms} ms ({loop})" for loop, ms in turns if int(ms) >= turn_max_ms()]
    assert not long, f"turns of loops took {', '.join(long)} of CPU time"


def eventually(look, what="what the test waits for", seconds=PATIENCE_S):
    """Looks until there is something true, and gives it. A failure shows `what`, or what that
    function says then."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.005)
    return found


def free_port():
    """None that the kernel gives to connections, so that it stays free while its server is down."""
    while True:
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", random.randrange(10000, 32768)))
            return sock.getsockname()[1]


@contextlib.contextmanager
def running(server):
    """Starts a server, which is stopped by TERM at the end, and cleanly."""
    server.start()
    yield server
    if server.running():
        server.stop()


def was_closed(connection):
    """Whether the server has closed a kept connection, which it does after 60 s without a
    request: between two requests there is nothing else to read."""
    if connection.sock is None:
        return False
    readable = select.poll()
    readable.register(connection.sock, select.POLLIN)
    return bool(readable.poll(0))


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:400]!r}>"


class Server:
    """Its folder holds `data`, `granary.yml` where there is a configuration, and `log`."""

    def __init__(self, folder, config="", options=(), host_metrics=False):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data = self.folder / "data"
        self.log_path = self.folder / "log"
        self.options = list(options)
        self.host_metrics = host_metrics
        self.port = free_port()
        self.token = None  # shown with each request; close_to_others()
        self.process = None
        self.connection = None
        self.configure(config)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def configure(self, text):
        self.config = self.folder / "granary.yml" if text else None
        if text:
            self.config.write_text(text)

    def command(self):
        command = [granary(), "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.data]
        if self.config:
            command += ["--config", self.config]
        if not self.host_metrics:
            command.append("--host.enabled=false")
        return list(map(str, command + self.options))

    # ---- life

    def spawn(self):
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

    def start(self):
        """Starts it and waits until it is ready; gives the seconds that took."""
        begun = time.monotonic()
        self.spawn()
        self.wait_ready()
        return time.monotonic() - begun

    def wait_ready(self, seconds=PATIENCE_S):
        def ready():
            assert self.running(), (f"the server ended with {self.process.returncode}:\n"
                                    + self.log_tail())
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.get("/-/ready").status == 200
        eventually(ready, lambda: "the server is ready:\n" + self.log_tail(), seconds)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """By TERM; everything but a clean exit is a failure."""
        self.close()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE_S)
        assert status == 0, f"stopped with {status}:\n{self.log_tail()}"
        check_turns(self.log_text())

    def kill(self):
        self.close()
        if self.running():
            self.process.kill()
        if self.process is not None:
            self.process.wait()
        check_turns(self.log_text())

    def restart(self):
        self.stop()
        return self.start()

    def log_text(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self, lines=60):
        return "\n".join(self.log_text().splitlines()[-lines:])

    # ---- HTTP

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def new_connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def request(self, method, path, body=None, headers=None, **params):
        """One request on the kept connection; params with a list value are repeated."""
        if params:
            path += "?" + urllib.parse.urlencode(params, doseq=True)
        if isinstance(body, str):
            body = body.encode()
        headers = {**self.shown(), **(headers or {})}
        if self.connection is not None and was_closed(self.connection):
            self.close()
        if self.connection is None:
            self.connection = self.new_connection()
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            kind = answer.headers.get_content_type()
            assert method == "HEAD" or kind != "text/event-stream", f"{path} has no end"
            return Answer(answer.status, answer.headers, answer.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def shown(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def close_to_others(self):
        """Makes the first credential, whose token is shown from now on."""
        answer = self.request("POST", "/api/credentials", name="root", roles="admin", tenants="*")
        assert answer.status == 201, answer
        self.token = answer.json["token"]

    def get(self, path, headers=None, **params):
        return self.request("GET", path, headers=headers, **params)

    def put(self, points, headers=None, **params):
        """POST /api/put of Python values, or of text as it is."""
        body = points if isinstance(points, (str, bytes)) else json.dumps(points)
        return self.request("POST", "/api/put", body,
                            {"Content-Type": "application/json", **(headers or {})}, **params)

    def write(self, lines, headers=None, **params):
        return self.request("POST", "/write", lines, headers, **params)

    def query(self, metric, *tags, tenant="default", **params):
        """The list that /api/query answers with."""
        answer = self.get("/api/query", tenant=tenant, metricName=metric, tag=list(tags), **params)
        assert answer.status == 200, answer
        return answer.json

    def values(self, metric, *tags, tenant="default", start=0, **params):
        """The values of the only series that matches, {} if there is none."""
        found = self.query(metric, *tags, tenant=tenant, start=start, **params)
        assert len(found) <= 1, found
        return found[0]["values"] if found else {}

    def raw(self, data, timeout=PATIENCE_S, until_closed=True):
        """Bytes as they are on a connection of their own; what comes back until it is closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as sock:
            sock.sendall(data)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := sock.recv(65536):
                    answer += piece
                    if not until_closed and b"\r\n\r\n" in answer:
                        break
            return answer

    def metric(self, name, **labels):
        """The sum of the own counters of that name with these labels, from /metrics."""
        total, seen = 0.0, False
        for line in self.get("/metrics").text.splitlines():
            if line.startswith("#"):
                continue
            series, _, value = line.rpartition(" ")
            found, _, rest = series.partition("{")
            if found == name and all(f'{key}="{text}"' in rest for key, text in labels.items()):
                total, seen = total + float(value), True
        assert seen, f"/metrics has no {name} {labels}"
        return total


def longest_turn_ms(server):
    """Of its main loop, by CPU time."""
    return 1000 * server.metric("granary_loop_longest_turn_seconds", loop="main")


def gzipped(data):
    return gzip.compress(data.encode() if isinstance(data, str) else data)
