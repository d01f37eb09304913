"""The life of the server beyond starting and stopping: failed commits, signals, what it makes of
the table of options."""

import contextlib
import os
import re
import signal
import socket
import subprocess

import pytest

from server import PATIENCE_S, eventually, free_port, granary, run
from test_doors import standing_still


def wait_for_log(server, words):
    eventually(lambda: words in server.log_text(),
               lambda: f"{words!r} in the log:\n{server.log_tail()}")


def test_a_failed_commit_is_answered_and_ends_the_process_with_74(make_server, monkeypatch):
    """The disk breaks at the fifth commit: its writer is told, nothing after it is accepted, and
    what was answered with success before is there after a restart."""
    monkeypatch.setenv("GRANARY_FAULTS", "store.sync=error@5")
    server = make_server(options=["--rollup.granularities="])  # which has commits of its own
    server.start()
    kept = {}
    for n in range(10):
        answer = server.write(f"m,a=b value={n} {1600000000 + n}", precision="s")
        if answer.status != 204:
            break
        kept[n] = float(n)
    assert answer.status == 503
    assert server.process.wait(PATIENCE_S) == 74
    assert "a commit failed" in server.log_text()
    monkeypatch.delenv("GRANARY_FAULTS")
    server.close()
    server.start()
    assert len(kept) >= 1
    values = list(server.values("m").values())
    assert values[:len(kept)] == list(kept.values())
    assert values[len(kept):] in ([], [float(len(kept))])  # its outcome was unknown


def test_refused_commits_do_not_end_it(make_server, monkeypatch):
    """A transaction that was undone is an error of its batches alone."""
    monkeypatch.setenv("GRANARY_FAULTS", "store.batch=error@2")
    server = make_server(options=["--rollup.granularities="])
    server.start()
    found = [server.write(f"m,a=b value={n} {1600000000 + n}", precision="s").status
             for n in range(6)]
    assert set(found) <= {204, 500, 503} and found.count(204) >= 4, found
    stored = list(server.values("m").values())
    assert stored == [float(n) for n, status in enumerate(found) if status == 204]


def test_hangup_reads_the_configuration_again(make_server):
    server = make_server(config="log:\n  level: info\nquery:\n  timeout: 60s\n")
    server.start()
    server.config.write_text("log:\n  level: error\nquery:\n  timeout: 50s\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for_log(server, "these take effect at the next start only: query.timeout")
    server.config.write_text("log:\n  level: debug\nno_such: 1\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for_log(server, "no_such is not an option")
    server.config.write_text("log:\n  level: info\nquery:\n  timeout: 60s\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for_log(server, "reload: done\n")
    assert server.get("/-/ready").status == 200


@pytest.mark.parametrize("command", ["serve", "agent run"])
def test_a_hangup_while_the_configuration_is_read_is_a_reload(command, tmp_path):
    """The file is a pipe, which is read for as long as the test likes."""
    pipe, text = tmp_path / "granary.yml", f"adaptors: {{a: {{tail: {tmp_path}/x, datatype: t}}}}\n"
    os.mkfifo(pipe)

    def opened():
        with contextlib.suppress(OSError):  # nobody reads it
            return os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "w")

    words = [granary(), *command.split(), "--data", tmp_path / "data", "--config", pipe,
             *(["--listen", "127.0.0.1:0"] if command == "serve" else
               ["--agent.collectors", f"http://127.0.0.1:{free_port()}"])]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as process:
        try:
            with eventually(opened, "the configuration is read") as written:
                process.send_signal(signal.SIGHUP)
                written.write(text)
            eventually(lambda: process.stdout.readline().startswith("granary "), "it is ready")
            with eventually(opened, "the configuration is read again") as written:
                written.write(text)
            eventually(lambda: "reload: " in process.stdout.readline())
        finally:
            process.kill()


def test_hangup_names_files_that_it_does_not_take_over(make_server, tmp_path):
    sets = tmp_path / "sets.yml"
    sets.write_text("oidsets: {}\n")
    server = make_server(config=f"snmp:\n  oidset_files: [{sets}]\n")
    server.start()
    server.process.send_signal(signal.SIGHUP)
    wait_for_log(server, "reload: done\n")
    sets.write_text("oids: {}\noidsets: {}\n")
    server.process.send_signal(signal.SIGHUP)
    wait_for_log(server, "next start only: the files of snmp.oidset_files\n")
    wait_for_log(server, "reload: done, but for these\n")


@contextlib.contextmanager
def half_a_write(server):
    """A request that the server has begun with, and that waits for `f=1i`."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as sock:
        sock.sendall(b"POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
                     b"Expect: 100-continue\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"m,a=b ")
        yield sock


WAITS_LONG = ["--stop_timeout=10m", "--http.body_timeout=1h"]


def test_two_signals_at_once_are_one_wish(make_server):
    """A terminal and whoever watches it may both send one; requests under way are answered."""
    server = make_server(options=WAITS_LONG)
    server.start()
    with half_a_write(server) as sock:
        with standing_still(server.process):
            server.process.send_signal(signal.SIGTERM)
            server.process.send_signal(signal.SIGINT)
        wait_for_log(server, ": stopping")
        sock.sendall(b"f=1i")
        assert sock.recv(4096).startswith(b"HTTP/1.1 204 ")
    assert server.process.wait(PATIENCE_S) == 0
    assert " again: the process ends now" not in server.log_text()


def test_a_second_signal_does_not_wait(make_server):
    """It is one when the second of the first is over."""
    server = make_server(options=WAITS_LONG)
    server.start()

    def ended_by_another():
        server.process.send_signal(signal.SIGTERM)
        return server.process.poll() is not None
    with half_a_write(server):
        server.process.send_signal(signal.SIGTERM)
        wait_for_log(server, "signal 15: stopping")
        eventually(ended_by_another)
    assert server.process.returncode == 1
    assert "signal 15 again: the process ends now" in server.log_text()


def test_a_request_that_never_ends_does_not_hold_a_stop_up(make_server):
    """It is waited for as long as the option says: who may wait for longer, and was told to stop
    before, still does when the other has ended."""
    patient = make_server("patient", options=WAITS_LONG)
    hasty = make_server("hasty", options=["--stop_timeout=300ms", "--http.body_timeout=1h"])
    patient.start()
    hasty.start()
    with half_a_write(patient) as sock, half_a_write(hasty):
        patient.process.send_signal(signal.SIGTERM)
        wait_for_log(patient, "signal 15: stopping")
        hasty.stop()
        assert patient.running()
        sock.sendall(b"f=1i")
        assert sock.recv(4096).startswith(b"HTTP/1.1 204 ")
    assert patient.process.wait(PATIENCE_S) == 0


def test_ready_is_told_on_standard_output(tmp_path):
    process = subprocess.Popen([granary(), "serve", "--listen", "127.0.0.1:0", "--data",
                                str(tmp_path / "d"), "--host.enabled=no"],
                               stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert "ready at http://127.0.0.1:" in line and str(tmp_path / "d") in line
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
    assert process.stdout.read() == ""


def test_config_prints_what_serve_would_have_and_can_be_read_back(tmp_path):
    (tmp_path / "a.yml").write_text("store: {map_size: 10G}\nhost:\n  ignore_disks: [sda, 'x y']\n")
    first = run("config", "--config", tmp_path / "a.yml", "--data", "/srv/my data")
    assert first.returncode == 0
    assert f"map_size: 10G  # {tmp_path}/a.yml:1" in first.stdout
    assert 'data: "/srv/my data"  # command line' in first.stdout
    (tmp_path / "b.yml").write_text(first.stdout)
    second = run("config", "--config", tmp_path / "b.yml")
    assert second.returncode == 0, second.stderr

    def values(text):
        return [line.split("  #")[0] for line in text.splitlines()]

    assert values(first.stdout) == values(second.stdout)
    wrong = run("config", "--store.map_size", "1X")
    assert wrong.returncode == 2 and "--store.map_size" in wrong.stderr


@pytest.mark.parametrize("section, title", [("1", "GRANARY 1"), ("5", "GRANARY.YML 5")])
def test_manual_pages_are_some(tmp_path, section, title):
    """man has nothing to say against them."""
    text = run("manual", section).stdout
    assert text.startswith(f".TH {title}")
    assert run("manual").stdout == run("manual", "1").stdout
    page = tmp_path / f"page.{section}"
    page.write_text(text)
    checked = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page],
                             env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True)
    assert checked.returncode == 0 and checked.stderr == b""
    assert run("manual", "2").returncode == 2


def test_the_manual_has_what_each_help_has():
    """Every command, its usage, and each of its options and words."""
    manual = run("manual").stdout.replace("\\-", "-")
    of_file = run("manual", "5").stdout.replace("\\-", "-")
    commands = re.findall(r"^  (\w+)  ", run("help").stdout, re.M)
    assert {"serve", "query", "device", "snmp", "manual"} <= set(commands)
    for command in commands:
        help_text = run("help", command).stdout
        section = manual.split(f".SS {command}\n")[1].split(".SS ")[0]
        usages = re.findall(r"^(?:usage:|      ) (granary .*)$", help_text, re.M)
        options = re.findall(r"^  (--?\w[^ ]*)", help_text, re.M)
        assert usages and all(f"\\fB{usage}\\fR" in section for usage in usages), command
        if command == "serve":  # its options are the configuration's
            options.remove("--config")
            assert len(options) > 100
            assert all(f"\n\\fB{option[2:]}\\fR (" in of_file for option in options)
        else:
            assert all(option in section for option in options), command


@pytest.mark.parametrize("arguments, words", [
    (["serve", "--listen", "127.0.0.1:99999"], "99999"),
    (["serve", "--ingest.decoded_max", "8G"], "above the maximum of 4G"),
    (["serve", "--host.interval", "10"], "not a duration"),
])
def test_wrong_values_are_wrong_use(arguments, words):
    answer = run(*arguments)
    assert answer.returncode == 2 and words in answer.stderr


@pytest.mark.parametrize("descriptors", [8, 12, 16, 20, 24, 32, 45, 46, 48, 64, 80,
                                         96, 128])
def test_few_descriptors_ended_in_an_assertion(make_server, descriptors):
    """A sentence and status 1, or a server with fewer connections, which answers however many
    silent ones there are."""
    server = make_server()
    allowed = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"]
    plain = server.command()
    server.command = lambda: allowed + plain
    server.spawn()
    eventually(lambda: not server.running() or "is ready at" in server.log_text())
    if not server.running():
        assert server.process.returncode == 1
        assert descriptors < 96
        said = server.log_text()
        assert "Too many open files" in said or f"may have {descriptors} descriptors" in said
        assert "assert" not in said
        needed = re.search(r"needs (\d+) at least", said)
        assert not needed or int(needed[1]) > descriptors
        return
    assert descriptors > 64  # at 80 it depends on what is open at that moment
    served = re.search(r"at most (\d+) connections are served at once", server.log_text())
    assert 8 <= int(served[1]) < descriptors
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    assert server.get("/-/healthy").status == 200
    assert server.get("/api/devices").status == 200
    assert server.metric("granary_loop_accept_rests_total") == 0
    for sock in silent:
        sock.close()
    server.stop()
