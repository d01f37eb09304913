"""`granary agent` beside the real server: what is written to a log arrives whole, in order and
once, whatever becomes of the file, of the agent and of the server meanwhile. What the server holds
is compared with what was written, byte by byte."""

import contextlib
import http.server
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from followed import (Follower, Log, Writer, await_held, await_log, export, held_bytes,
                      incarnations, lines)
from mounts import Mount, need_mounts, why_not
from server import eventually, free_port, run

@pytest.fixture
def follow(server, tmp_path):
    """Starts agents; all that still run at the end are killed."""
    followers = []

    def make(adaptors, name="follower", collectors=None, start=True, **options):
        follower = Follower(tmp_path / name, collectors or server.url, adaptors, **options)
        followers.append(follower)
        return follower.start() if start else follower

    yield make
    for follower in followers:
        follower.kill()


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "logs" / "app.log")


def chunks(server, result):
    return server.metric("granary_chunks_total", result=result)


# ---- A file


def test_what_is_there_and_what_is_appended(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    for _ in range(5):
        log.append(20)
        await_log(server, log, follower)
    follower.stop()


def test_a_line_without_an_end_is_sent_after_its_rest(server, follow, log):
    follower = follow({"app": log.path})
    log.append(3)
    log.append_bytes(b"begins and ")
    await_log(server, log, follower)
    log.append_bytes(b"ends\n")
    log.append(3)
    await_log(server, log, follower)
    follower.stop()


def test_a_large_file(server, follow, log):
    log.append(200000)
    await_log(server, log, follow({"app": log.path}))


# ---- Rotation


def test_renamed_while_it_is_followed(server, follow, log):
    follower = follow({"app": log.path})
    log.append()
    await_log(server, log, follower)
    for turn in range(5):
        log.append()
        log.rename(f".{5 - turn}")
        log.append()
        await_log(server, log, follower)
    follower.stop()


def test_renamed_and_not_made_anew_for_a_while(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    log.append()
    log.rename(".1")
    await_log(server, log, follower)
    log.append()
    await_log(server, log, follower)


@pytest.mark.parametrize("pack", [[], ["gzip"], ["zstd", "-q", "--rm"]],
                         ids=["plain", "gzip", "zstd"])
@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_renamed_twice_while_the_agent_is_down(server, follow, log, pack, stop):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    if stop == "stop":
        follower.stop()
    else:
        follower.await_saved(log)
        follower.kill()
    log.append()
    log.rename(".2")
    log.append()
    log.rename(".1")
    log.append()
    for ending in (".2", ".1") if pack else ():
        subprocess.run([*pack, log.beside(ending)], check=True)
    follower.start()
    await_log(server, log, follower)
    log.append()
    await_log(server, log, follower)
    follower.stop()


def test_copied_and_emptied_while_it_is_followed(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    for turn in range(5):
        await_log(server, log, follower)
        log.append()
        log.copy_and_empty(f".{5 - turn}")
        log.append()
    await_log(server, log, follower)
    follower.stop()


@pytest.mark.parametrize("pack", [[], ["gzip"], ["zstd", "-q", "--rm"]],
                         ids=["plain", "gzip", "zstd"])
def test_copied_and_emptied_while_the_agent_is_down(server, follow, log, pack):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    follower.stop()
    for ending in (".2", ".1"):
        log.append()
        log.copy_and_empty(ending)
        if pack:
            subprocess.run([*pack, log.beside(ending)], check=True)
    log.append()
    follower.start()
    await_log(server, log, follower)
    follower.stop()


def test_emptied(server, follow, log):
    follower = follow({"app": log.path})
    for _ in range(5):
        log.append()
        await_log(server, log, follower)
        os.truncate(log.path, 0)
    log.append(10)
    await_log(server, log, follower)


def test_removed_and_made_anew_with_the_same_lines(server, follow, log):
    follower = follow({"app": log.path})
    for _ in range(3):
        log.append_bytes(lines(0, 50))
        log.append()
        await_log(server, log, follower)
        log.path.unlink()
    log.append_bytes(lines(0, 50))
    await_log(server, log, follower)


def test_removed_before_all_of_it_was_read(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    follower.signal(signal.SIGSTOP)
    log.append()
    log.path.unlink()
    log.append()
    follower.signal(signal.SIGCONT)
    await_log(server, log, follower)
    follower.stop()


# ---- logrotate


LOGROTATE = shutil.which("logrotate", path=os.environ.get("PATH", "") + ":/usr/sbin")
DATED = "dateext\n    dateformat -%Y%m%d%H%M%S"


def rotate(log, folder, options):
    config = folder / "logrotate.conf"
    config.write_text("\n    ".join([f"{log.path} {{", "rotate 30", "missingok", *options])
                      + "\n}\n")
    config.chmod(0o644)

    def rotates():
        done = subprocess.run([LOGROTATE, "-f", "-s", folder / "state", config],
                              capture_output=True, text=True, timeout=60)
        # A second rotation within a second finds its name taken.
        assert done.returncode == 0 or "already exists" in done.stderr, done.stderr
        return done.returncode == 0

    eventually(rotates)


@pytest.mark.skipif(not LOGROTATE, reason="logrotate is not there")
@pytest.mark.parametrize("options", [
    [], ["compress"], ["compress", "delaycompress"], ["copytruncate"],
    ["copytruncate", "compress"], ["copytruncate", "compress", "delaycompress"], [DATED],
    [DATED, "compress"], [DATED, "copytruncate"], [DATED, "copytruncate", "compress",
                                                   "delaycompress"]],
    ids=lambda options: "-".join(option.split()[0] for option in options) or "plain")
def test_logrotate(server, follow, tmp_path, options):
    with Writer(tmp_path / "logs" / "app.log") as log:
        follower = follow({"app": log.path})
        # What was rotated before the agent first looked is none of the stream.
        eventually(lambda: held_bytes(server, log.path) > 0, "it is followed")
        for turn in range(12):
            log.await_lines(random.Random(turn).choice([1, 20, 100]))
            # Between the copy and the emptying a line is lost, whoever follows the file; so is one
            # that comes to a renamed file while that is packed, which `delaycompress` is there for.
            loses = "copytruncate" in options or ("compress" in options and
                                                  "delaycompress" not in options)
            with log.still if loses else contextlib.nullcontext():
                rotate(log, tmp_path, options)
            if turn == 7:
                follower.stop()
            if turn == 10:
                follower.start()
        log.await_lines(50)
    await_log(server, log, follower)
    follower.stop()


# ---- A storm


class Network:
    """Between an agent and a server: connections that can all be cut at once, wherever a request
    or its answer is."""

    def __init__(self, server):
        self.server, self.lock, self.open, self.cuts = server, threading.Lock(), set(), 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=50)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.accept)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        self.cut()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.server.port))
                except OSError:
                    near.close()
                    continue
                with self.lock:
                    self.open |= {near, far}
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self.pass_on, args=pair, daemon=True).start()

    def pass_on(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1000):
                sink.sendall(data)
        self.close([source, sink])

    def close(self, sockets):
        with self.lock:
            for one in self.open.intersection(sockets):
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
                self.open.remove(one)

    def cut(self):
        self.cuts += len(self.open) > 0
        self.close(set(self.open))


@contextlib.contextmanager
def small_disk(folder):
    """A tmpfs for an agent's directory, and how it is filled; without mounts nothing is filled."""
    if why_not():
        yield lambda: None, lambda: None
        return
    mount, filler = Mount(folder, "tmpfs", "none", "size=2m"), folder / "filler"
    def fill():
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
    mount.mount()
    try:
        yield fill, lambda: filler.unlink(missing_ok=True)
    finally:
        subprocess.run(["umount", "-l", mount.folder], check=False)


def test_a_storm(server, follow, tmp_path):
    """A hundred renames a second for 6 s, five kills of the agent and two of the server; the
    network is cut ten times a second, and the agent's disk is full three times."""
    number = itertools.count(1)
    with Network(server) as network, Writer(tmp_path / "logs" / "app.log", rest_s=0.0002) as log, \
            small_disk(tmp_path / "follower" / "data" / "agent") as (fill, free):
        follower = follow({"app": log.path}, collectors=network.url)
        eventually(lambda: held_bytes(server, log.path) > 0, "it is followed")
        def restart():
            follower.kill()
            follower.start()
        def restart_server():
            server.kill()
            server.spawn()
        events = sorted([(at, restart) for at in (0.5, 1.2, 2.0, 2.9, 4.2)] +
                        [(at, restart_server) for at in (1.5, 3.3)] +
                        [(at / 10, network.cut) for at in range(60)] +
                        [(at, what) for begin in (0.7, 2.2, 4.4)
                         for at, what in ((begin, fill), (begin + 0.6, free))],
                        key=lambda event: event[0])
        begun = time.monotonic()
        while (now := time.monotonic() - begun) < 6 or events:
            log.over.wait(0.01)
            with contextlib.suppress(FileNotFoundError):
                log.rename(f".{10**12 + next(number)}")
            while events and events[0][0] < now:
                events.pop(0)[1]()
        log.over.set()
        log.thread.join()
        server.wait_ready()
        await_log(server, log, follower, seconds=100)
        follower.stop()
    assert len(list(log.path.parent.iterdir())) > 100
    assert network.cuts > 2
    assert why_not() or "No space left on device" in follower.log_text()


# ---- What is sent again


def test_after_a_clean_stop_nothing_is_sent_again(server, follow, log):
    follower = follow({"app": log.path})
    for _ in range(4):
        log.append(500)
        await_log(server, log, follower)
        follower.stop()
        log.append(10)
        follower.start()
        await_log(server, log, follower)
    assert chunks(server, "repeated") == 0
    follower.stop()


def test_after_a_kill_little_is_sent_again(server, follow, log):
    log.append(5000)
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    follower.await_saved(log)
    taken = chunks(server, "taken")
    for _ in range(5):
        log.append(10)
        await_log(server, log, follower)
    since = chunks(server, "taken") - taken
    follower.kill()
    follower.start()
    log.append(10)
    await_log(server, log, follower)
    assert chunks(server, "repeated") <= since
    follower.stop()


# ---- The checkpoint


def forget(follower):
    for path in (follower.data / "agent").glob("checkpoint.*"):
        path.unlink()


def test_without_its_checkpoint_it_asks_the_collector(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    follower.stop()
    forget(follower)
    log.append()
    follower.start()
    await_log(server, log, follower)
    follower.stop()
    # In the rotated one, and behind it.
    forget(follower)
    log.append()
    log.rename(".1")
    log.append()
    follower.start()
    await_log(server, log, follower)
    assert chunks(server, "repeated") == 0


def test_without_its_checkpoint_and_its_file_it_begins_anew(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    before = log.written
    first, = await_log(server, log, follower)
    follower.stop()
    forget(follower)
    log.path.unlink()
    log.append()
    follower.start()
    both = await_log(server, log, follower, streams=2)
    assert both[0]["stream"] == first["stream"]
    assert export(server, first["stream"]) == before


def test_a_checkpoint_that_cannot_be_written(server, follow, log, tmp_path):
    """The disk is full: what is delivered goes on, and is saved when there is room again."""
    need_mounts()
    follower = follow({"app": log.path}, start=False)
    log.append()
    mount = Mount(follower.data / "agent", "tmpfs", "none", "size=64k")
    mount.mount()
    try:
        follower.start()
        await_log(server, log, follower)
        follower.await_saved(log)
        with open(follower.data / "agent" / "filler", "wb", buffering=0) as filler:
            with contextlib.suppress(OSError):
                while filler.write(bytes(1024)):
                    pass
        for _ in range(5):
            log.append(2000)
            await_log(server, log, follower)
        (follower.data / "agent" / "filler").unlink()
        follower.await_saved(log)
        follower.stop()
        log.append()
        follower.start()
        await_log(server, log, follower)
        assert chunks(server, "repeated") == 0
        follower.stop()
    finally:
        follower.kill()
        subprocess.run(["umount", "-l", mount.folder], check=False)


# ---- Troubles


def told(server, follower_name="host1"):
    answer = run("agent", "list", follower_name, "--server", server.url, "-o", "json")
    if answer.returncode:
        return {}
    return {one["path"]: one for one in json.loads(answer.stdout)["adaptors"]}


def test_what_cannot_be_read_yet(server, follow, log, tmp_path):
    log.append()
    log.path.chmod(0)
    wrap = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    other = Log(tmp_path / "logs" / "other.log")
    other.path.mkdir()
    none, file = tmp_path / "none", tmp_path / "file"
    file.touch()
    follower = follow({"app": log.path, "other": other.path, "none": {"directory": none},
                       "file": {"directory": file}}, wrap=wrap)
    for path in (log.path, other.path, none, file):
        eventually(lambda: told(server).get(str(path), {"error": ""})["error"],
                   lambda: told(server))
    assert "not found" in told(server)[str(none)]["error"]
    assert told(server)[str(file)]["error"] == "it is no directory"
    assert {one["state"] for one in told(server).values()} == {"stopped"}
    assert "Permission denied" in told(server)[str(log.path)]["error"]
    assert "no regular file" in told(server)[str(other.path)]["error"]
    log.path.chmod(0o644)
    other.path.rmdir()
    other.append()
    none.mkdir()
    file.unlink()
    file.mkdir()
    await_log(server, log, follower)
    await_log(server, other, follower)
    eventually(lambda: {(one["state"], one["error"]) for one in told(server).values()}
               == {("following", "")}, lambda: told(server))
    follower.stop()


def test_two_agents_in_one_directory(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    second = subprocess.run(follower.command(), capture_output=True, text=True, timeout=60)
    assert second.returncode == 1
    assert "another agent follows files here" in second.stderr, second.stderr
    log.append()
    await_log(server, log, follower)
    follower.stop()


def test_a_configuration_is_read_again(server, follow, tmp_path):
    logs = [Log(tmp_path / "logs" / name) for name in ("a.log", "b.log", "c.log")]
    for log in logs:
        log.append()
    follower = follow({"a": logs[0].path, "b": logs[1].path})
    await_log(server, logs[0], follower)
    await_log(server, logs[1], follower)
    follower.configure({"b": logs[1].path, "c": logs[2].path})
    follower.signal(signal.SIGHUP)
    await_log(server, logs[2], follower)
    eventually(lambda: set(told(server)) == {str(log.path) for log in logs[1:]},
               lambda: told(server))
    held = len(logs[0].written)
    for log in logs:
        log.append()
    follower.config.write_text("adaptors:\n  a:\n    tial: /a\n")
    follower.signal(signal.SIGHUP)
    follower.await_said("reload: nothing is changed")
    for log in logs[1:]:
        log.append()
        await_log(server, log, follower)
    assert held_bytes(server, logs[0].path) == held
    follower.configure({str(at): log.path for at, log in enumerate(logs)})
    follower.signal(signal.SIGHUP)
    for log in logs:
        await_log(server, log, follower)
    follower.stop()


# ---- Directories


def test_a_directory(server, follow, tmp_path):
    folder = tmp_path / "logs"
    logs = [Log(folder / f"part{at % 3}" / f"{at}-app.log") for at in range(120)]
    for log in logs[:80]:
        log.append(10)
    follower = follow({"all": {"directory": folder, "files": "*.log"}})
    for log in logs[:80]:
        await_log(server, log, follower)
    for at, log in enumerate(logs):
        log.append(5)
        if at % 10 == 0:
            log.rename(".1")
            log.append(5)
        elif at % 10 == 1:
            log.copy_and_empty(".1")
            log.append(5)
    (folder / "part1" / "no.txt").write_text("none\n")
    for at, log in enumerate(logs):
        if at < 80 or at % 10 > 1:
            await_log(server, log, follower)
    names = {one["name"] for one in server.get("/api/streams", limit=1000).json["streams"]}
    assert names == {str(log.path) for log in logs}
    follower.stop()


def test_what_comes_to_a_directory_later_is_sent_whole(server, follow, tmp_path):
    """`from: end` leaves out what is there when the agent first looks, and nothing else: not a file
    that comes while it runs, nor one that comes while it is down."""
    folder = tmp_path / "logs"
    adaptor = {"all": {"directory": folder, "files": "*.log", "from": "end"},
               "none": {"directory": tmp_path / "empty", "files": "*.log", "from": "end"}}
    first, second, third, fourth = (Log(folder / f"{name}.log") for name in
                                    ("first", "second", "third", "fourth"))
    fifth = Log(tmp_path / "empty" / "fifth.log")
    first.append(50)
    follower = follow(adaptor)
    follower.await_saved(first)
    second.append(50)
    await_log(server, second, follower)
    follower.stop()
    for number in (2, 1):
        third.append(50)
        third.rename(f".{number}")
    third.append(50)
    fifth.append(50)
    follower.start()
    await_log(server, third, follower)
    await_log(server, fifth, follower)
    before = len(first.written)
    first.append(7)
    await_held(server, first.path, first.written[before:], follower)
    follower.stop()
    # Another adaptor has not seen the directory before.
    fourth.append(50)
    follower.configure({"all": {"directory": folder, "files": "f*.log", "from": "end"}})
    follower.start()
    follower.await_saved(fourth)
    before = len(fourth.written)
    fourth.append(7)
    await_held(server, fourth.path, fourth.written[before:], follower)
    follower.stop()


def test_a_path_with_wildcards(server, follow, tmp_path):
    folder = tmp_path / "logs"
    logs = [Log(folder / name / "current.log") for name in ("a", "b", "late")]
    follower = follow({"all": folder / "*" / "c?rr[e]nt.log"})
    for log in logs:
        log.append()
        await_log(server, log, follower)
        log.rename("-20260101")
        log.append()
        await_log(server, log, follower)
    follower.stop()


# ---- Collectors


def test_a_collector_that_is_dead(server, follow, log):
    log.append()
    follower = follow({"app": log.path},
                      collectors=[f"http://127.0.0.1:{free_port()}", server.url])
    await_log(server, log, follower)
    follower.stop()


def holds_open(follower, path):
    folder = f"/proc/{follower.process.pid}/fd"
    there = path.stat()
    with contextlib.suppress(FileNotFoundError):  # one was closed meanwhile
        return any(os.path.samestat(there, os.stat(f"{folder}/{name}"))
                   for name in os.listdir(folder))
    return False


def test_rotated_and_removed_while_no_collector_answers(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    server.kill()
    log.append()
    eventually(lambda: "nothing is delivered" in follower.log_path.read_text(), "it is said")
    for turn in range(3):
        log.rename(f".{3 - turn}")
        log.append()
        eventually(lambda: holds_open(follower, log.path), "the new file is open")
    for number in (1, 2, 3):
        log.beside(f".{number}").unlink()
    server.start()
    await_log(server, log, follower)
    follower.stop()


class Page(http.server.BaseHTTPRequestHandler):
    """Any web server that is not the collector."""
    seen = 0

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Page.seen += self.command == "POST" and self.path == "/chukwa"
        body = b"<html><body>ok: it works</body></html>\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def test_a_collector_that_is_none(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    server.stop()
    log.append()
    Page.seen = 0
    http.server.ThreadingHTTPServer.allow_reuse_address = True
    page = http.server.ThreadingHTTPServer(("127.0.0.1", server.port), Page)
    thread = threading.Thread(target=page.serve_forever)
    thread.start()
    eventually(lambda: Page.seen > 1, "the agent posts again")
    follower.await_said("status 200, and the answer (39 bytes) does not say of each chunk what has")
    page.shutdown()
    page.server_close()
    thread.join()
    server.start()
    log.append()
    await_log(server, log, follower)
    follower.stop()


def test_a_stream_that_is_refused_is_told_once(make_server, follow, log, tmp_path):
    server = make_server("small", options=["--stream.streams_max", "1", "--stream.own", "false"])
    server.start()
    other = Log(tmp_path / "logs" / "other.log")
    log.append()
    follower = follow({"app": log.path}, collectors=server.url)
    await_log(server, log, follower)
    other.append()
    follower.configure({"app": log.path, "other": other.path})
    follower.signal(signal.SIGHUP)
    follower.await_said("it is not sent any more")
    log.append()
    await_log(server, log, follower)
    assert follower.log_text().count("it is not sent any more") == 1
    assert " error " in [line for line in follower.log_text().splitlines()
                         if "it is not sent any more" in line][0]


def test_another_agent_of_this_name(server, follow, log):
    log.append()
    follower = follow({"app": log.path})
    await_log(server, log, follower)
    eventually(lambda: server.get("/api/agents").json["agents"], "the agent reports")
    report = {"boot": "0" * 15 + "1", "all": True, "version": "0.x", "collector": server.url,
              "problem": "", "adaptors": [], "gone": []}
    [name] = [agent["name"] for agent in server.get("/api/agents").json["agents"]]
    assert server.request("POST", f"/api/agents/{name}/report", json.dumps(report)).status == 204
    follower.await_said(f'status 409: another agent reports under the name "{name}", too')
    eventually(lambda: server.get(f"/api/agents/{name}").json["adaptors"], "the agent is back")
    assert server.get(f"/api/agents/{name}").json["shared"] is True


# ---- Chukwa's agent


def test_chukwas_files(server, follow, log, tmp_path):
    """Of a file whose first 40 lines Chukwa's agent has sent, and of another one."""
    conf, other = tmp_path / "chukwa", Log(tmp_path / "logs" / "other.log")
    conf.mkdir()
    log.append()
    other.append()
    sent = lines(0, 40)
    (conf / "initial_adaptors").write_text(
        f"add filetailer.FileTailingAdaptor app 0 {log.path} {len(sent)}\n"
        f"add org.apache.hadoop.chukwa.datacollection.adaptor.filetailer."
        f"CharFileTailingAdaptorUTF8 app {other.path} 0\n"
        "add SocketAdaptor app 9095 0\n")
    follower = follow({}, options=["--agent.chukwa", str(conf)])
    await_held(server, log.path, log.written[len(sent):], follower)
    assert incarnations(server, log.path)[0]["held"] == [[len(sent), len(log.written)]]
    await_log(server, other, follower)
    follower.await_said("2 adaptors followed, 1 line passed over")
    log.rename(".1")
    log.append()
    await_held(server, log.path, log.written[len(sent):], follower)
    follower.stop()
