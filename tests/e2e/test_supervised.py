"""What a supervisor hears of each process that stays: systemd's part is played by the test, by the
protocol of sd_notify(3)."""

import concurrent.futures
import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time

import pytest

import mounts
from server import PATIENCE_S, eventually, free_port, granary
from supervisor import Supervisor

FREEZE, THAW = 0xC0045877, 0xC0045878  # <linux/fs.h>
WATCHDOG_S = 1


@pytest.fixture
def supervised(tmp_path, monkeypatch):
    """Makes supervisors, whose environment the processes of the test have from then on."""
    with contextlib.ExitStack() as ends:
        def make(**options):
            supervisor = Supervisor(**options)
            ends.callback(supervisor.close)
            for name, value in supervisor.environment.items():
                monkeypatch.setenv(name, value)
            return supervisor
        yield make


@contextlib.contextmanager
def frozen(place):
    """The file system takes no write until the end; who writes waits."""
    folder = os.open(place.folder, os.O_RDONLY)
    try:
        fcntl.ioctl(folder, FREEZE, 0)
        try:
            yield
        finally:
            fcntl.ioctl(folder, THAW, 0)
    finally:
        os.close(folder)


@pytest.mark.parametrize("is_path", [True, False], ids=["path", "abstract"])
def test_a_supervisor_hears_when_the_server_is_ready_and_when_it_stops(supervised, make_server,
                                                                       tmp_path, is_path):
    supervisor = supervised(folder=tmp_path if is_path else None)
    server = make_server()
    server.spawn()
    heard = supervisor.wait("READY", "1")
    socket.create_connection(("127.0.0.1", server.port)).close()
    assert server.get("/-/ready").status == 200
    assert not [lines for lines in heard[:-1] if "STOPPING" in lines]
    server.process.send_signal(signal.SIGTERM)
    # stop_timeout, what comes on top of it, and the closing of the store (10 + 30 + 30 s).
    assert supervisor.wait("STOPPING")[-1] == {"STOPPING": "1", "EXTEND_TIMEOUT_USEC": "70000000"}
    supervisor.wait("STATUS", "stopping: catalog")
    assert server.process.wait(PATIENCE_S) == 0
    assert not [lines for lines in supervisor.told if "WATCHDOG" in lines]  # nobody asked
    assert supervisor.pids == {server.process.pid}


def test_a_reload_begins_and_ends(supervised, make_server):
    supervisor = supervised()
    server = make_server(config="log:\n  level: info\n")
    server.spawn()
    supervisor.wait("READY")
    before_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    server.process.send_signal(signal.SIGHUP)
    begun, done = supervisor.wait("READY")
    after_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert begun["RELOADING"] == "1"
    assert before_us <= int(begun["MONOTONIC_USEC"]) <= after_us
    assert done == {"READY": "1", "STATUS": "ready"}
    server.config.write_text("no_such: 1\n")
    server.process.send_signal(signal.SIGHUP)
    done = supervisor.wait("READY")[-1]
    assert done["STATUS"].startswith("ready; the last reload changed nothing")


def test_a_start_that_replays_asks_for_time(supervised, make_server):
    supervisor = supervised()
    server = make_server()
    server.spawn()
    heard = supervisor.wait("READY")
    assert not [lines for lines in heard if "EXTEND_TIMEOUT_USEC" in lines]  # nothing is there
    assert server.write("m,a=b value=1 1600000000000000000").status == 204
    server.kill()
    server.spawn()
    heard = supervisor.wait("READY")
    assert heard[0]["EXTEND_TIMEOUT_USEC"] == "60000000"
    assert heard[0]["STATUS"].startswith("replays the pages of the store's journal: 0 of ")
    assert list(server.values("m").values()) == [1.0]


def test_the_watchdog_of_another_process_is_not_fed(supervised, make_server, monkeypatch):
    """WATCHDOG_PID names who is meant; a process that it started has the environment, too."""
    supervisor = supervised(watchdog_s=0.05)
    monkeypatch.setenv("WATCHDOG_PID", "1")
    server = make_server()
    server.start()
    server.stop()
    heard = supervisor.drain()
    assert [lines for lines in heard if "READY" in lines]
    assert not [lines for lines in heard if "WATCHDOG" in lines]


@pytest.mark.not_sanitized("its clock is the test's")
def test_a_writer_that_stands_is_not_fed(supervised, make_server, tmp_path):
    """The file system is frozen under the store: the writer waits in its write, and nothing else
    does."""
    with mounts.image(tmp_path / "disk", "ext4", 64) as place:
        supervisor = supervised(watchdog_s=WATCHDOG_S)
        server = make_server(options=["--store.min_free=0"])
        server.data = place.folder / "data"
        server.start()
        supervisor.wait("WATCHDOG", "1")
        supervisor.wait("WATCHDOG", "1")
        with concurrent.futures.ThreadPoolExecutor() as pool, frozen(place):
            answer = pool.submit(server.raw, b"POST /write HTTP/1.1\r\nHost: localhost\r\n"
                                 b"Connection: close\r\nContent-Length: 5\r\n\r\nm f=1")
            supervisor.wait("STATUS", "the writer of the store does not move")
            # Four looks in a watchdog's time: it would have been fed in each.
            unfed = server.metric("granary_watchdog_unfed_total")
            eventually(lambda: server.metric("granary_watchdog_unfed_total") >= unfed + 6)
            assert not supervisor.drain()
            assert server.get("/-/healthy").status == 200
            assert not answer.done()
        assert answer.result().startswith(b"HTTP/1.1 204")
        heard = supervisor.wait("WATCHDOG", "1")
        assert {"STATUS": "ready"} in heard
        assert "the writer of the store has not moved for more than 1 s" in server.log_text()
        server.stop()


def test_persisters_that_stand_are_not_fed(supervised, make_server, monkeypatch):
    """One that hangs is replaced first; those that come after it hang, too."""
    monkeypatch.setenv("GRANARY_FAULTS", "persist_hang=error*")
    supervisor = supervised(watchdog_s=WATCHDOG_S)
    server = make_server(options=["--persist.hang_timeout=2s"])
    server.start()
    heard = supervisor.wait("STATUS", "a persister does not move")
    assert {"WATCHDOG": "1"} in heard
    assert server.metric("granary_persist_workers_replaced_total") > 0
    unfed = server.metric("granary_watchdog_unfed_total")
    eventually(lambda: server.metric("granary_watchdog_unfed_total") >= unfed + 4)
    assert not supervisor.drain()


def test_a_process_that_was_stopped_is_fed_when_it_goes_on(supervised, make_server):
    """It stood for longer than its watchdog's time, and nothing in it hangs."""
    supervisor = supervised(watchdog_s=WATCHDOG_S)
    server = make_server()
    server.start()
    supervisor.wait("WATCHDOG")
    server.process.send_signal(signal.SIGSTOP)
    with contextlib.suppress(AssertionError):
        while True:  # the last ones that it had sent
            supervisor.wait("WATCHDOG", seconds=1.5 * WATCHDOG_S)
    server.process.send_signal(signal.SIGCONT)
    assert supervisor.wait("WATCHDOG")[0] == {"WATCHDOG": "1"}
    assert "has not moved" not in server.log_text()


@pytest.mark.parametrize("command", ["agent", "poll"])
def test_agents_and_pollers_tell_it_too(supervised, tmp_path, command):
    supervisor = supervised(watchdog_s=WATCHDOG_S)
    server = f"http://127.0.0.1:{free_port()}"  # where nobody is yet
    config = tmp_path / "granary.yml"
    config.write_text(f"adaptors: {{a: {{tail: {tmp_path}/x, datatype: t}}}}\n")
    words = ["agent", "run", "--config", config] if command == "agent" else \
        ["poll", "--name", "p", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen([granary(), *map(str, words), "--server", server,
                                "--data", str(tmp_path / "data")])
    try:
        supervisor.wait("READY", "1")
        supervisor.wait("WATCHDOG", "1")
        process.send_signal(signal.SIGTERM)
        supervisor.wait("STOPPING", "1")
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
