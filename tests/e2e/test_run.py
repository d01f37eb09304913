"""Starting and stopping: ./run, host metrics, one process a directory, configuration errors, the
format's version, own metrics, the pages for people."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

from server import PATIENCE_S, ROOT, Server, build_folder, eventually, free_port, run
from test_fault_live import Viewer
from test_stream_tail import Command

pytestmark = pytest.mark.not_sanitized("./run starts the released program")


# ---- ./run and host metrics


@contextlib.contextmanager
def started_script(tmp_path, *options):
    if not os.access(ROOT / "build" / "granary", os.X_OK):
        pytest.skip("build/granary is not there: ./run would build it first")
    server = Server(tmp_path / "run")
    log = open(server.log_path, "w")
    server.process = subprocess.Popen(
        [str(ROOT / "run"), "--listen", f"127.0.0.1:{server.port}", "--data", str(server.data),
         *options],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=tmp_path)
    try:
        server.wait_ready()
        yield server
    finally:
        server.kill()
        log.close()


@pytest.fixture
def run_script(tmp_path):
    """./run with a data directory of its own; its server, to talk to, and what it printed."""
    with started_script(tmp_path) as server:
        yield server


def test_run_prints_where_it_is_and_three_commands_that_work(run_script):
    server = run_script
    text = eventually(lambda: server.log_text() if server.log_text().count("granary") > 2 and
                      f":{server.port}" in server.log_text() else None, "the welcome")
    assert str(server.data) in text
    found = [line.strip().lstrip("$ ") for line in text.splitlines()
             if re.match(r"^\s+(\$ )?(\S*granary|curl)\s", line)]
    assert len(found) == 3, text
    eventually(lambda: server.get("/api/metadata/metricNames", tenant="host").json,
               "host metrics")
    for command in found:
        answer = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT,
                                timeout=PATIENCE_S)
        assert answer.returncode == 0, (command, answer.stderr)
        assert answer.stdout.strip(), command


def test_host_metrics_appear_and_move(run_script):
    server = run_script

    def moving():
        """Names with at least two samples of which two differ."""
        names = server.get("/api/metadata/metricNames", tenant="host").json
        found = {}
        for name in names:
            for series in server.query(name, tenant="host", start="5m-ago"):
                if len(set(series["values"].values())) > 1:
                    found[name] = series
        return found

    eventually(lambda: len(moving()) >= 3, "values that move")
    names = server.get("/api/metadata/metricNames", tenant="host").json
    assert all(name.startswith("SystemMetrics.") for name in names)
    for part in ("LoadAverage.1", "memory.", "cpu."):
        assert any(name.startswith("SystemMetrics." + part) for name in names), names
    # This very machine: the newest load is at times what /proc says, which changes every 5 s.
    def newest():
        values = server.values("SystemMetrics.LoadAverage.1", tenant="host", start="5m-ago")
        return list(values.values())[-1]

    def load():
        with open("/proc/loadavg") as file:
            return float(file.read().split()[0])
    eventually(lambda: newest() == load(), lambda: (newest(), load()))
    total = [name for name in names if name.lower() == "systemmetrics.memory.total"]
    if total:
        found = list(server.values(total[0], tenant="host", start="5m-ago").values())[-1]
        with open("/proc/meminfo") as file:
            kib = int(file.readline().split()[1])
        assert found in (kib, kib * 1024)


def searched(server, *words):
    answer = run("stream", "search", *words, "--server", server.url, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)["lines"]


def test_logs_of_this_machine_are_followed(run_script, tmp_path):
    """What any program writes below /var/log, and the server itself; but for what links there lead
    to, which who made the link may not be allowed to read."""
    server, word = run_script, f"granarytest{os.getpid()}"
    path = pathlib.Path(f"/var/log/{word}.log")
    if not os.access(path.parent, os.W_OK):
        pytest.skip(f"{path.parent} is not ours to write to")
    link, secret = path.with_name(f"{word}-link.log"), tmp_path / "secret"
    secret.write_text(f"2026-11-29T10:00:00Z {word} is secret\n")
    try:
        link.symlink_to(secret)
        with Command(server, word) as tail:
            with open(path, "a") as log:
                log.write(f"2026-11-29T10:00:00Z host9 prog[1]: {word} was here\n")
            line, = map(json.loads, tail.lines(1))
        assert line["text"].endswith(f"prog[1]: {word} was here")
        eventually(lambda: searched(server, word))
        found, = searched(server, word, "--datatype", "system")
        assert found["text"] == line["text"] and str(path) in found["stream"]
        states = {one["path"]: (one["state"], one["offset"]) for one in eventually(
            lambda: [one for agent in server.get("/api/agents").json["agents"] for one in
                     server.get(f"/api/agents/{agent['name']}").json["adaptors"]
                     if one["path"] in (str(path), str(link))])}
        assert states.get(str(link), ("", 0))[1] == 0
        assert len(searched(server, word)) == 1
    finally:
        path.unlink(missing_ok=True)
        link.unlink(missing_ok=True)
    own, = eventually(lambda: searched(server, "is ready at", "--datatype", "granary"))
    assert own["text"].endswith(f"is ready at {server.url}/")
    assert (server.data / "granary.log").read_text().splitlines()[0] == own["text"]


def test_logs_of_this_machine_are_not_followed_where_that_is_said(tmp_path):
    with started_script(tmp_path, "--agent.local_logs=false", "--log.file", "other.log") as server:
        eventually(lambda: "is ready at" in (server.data / "other.log").read_text())
        assert server.get("/api/agents").json == {"agents": []}
        assert not (server.data / "granary.log").exists()
        assert not (server.data / "agent").exists()


def test_the_host_dashboard_shows_this_machine(run_script):
    """The data that its charts are drawn from, as a page asks for it, beside /proc."""
    server, host = run_script, socket.gethostname()
    charts = server.get("/hicc/v1/dashboard/export/host").json["charts"]
    urls = {series["url"].replace("$host", host) for chart in charts for series in chart["series"]}
    assert len(urls) == 13

    def newest(url):
        data = server.get(url).json["data"]
        return data[-1][1] if data else None

    for url in urls:
        eventually(lambda: newest(url) is not None, lambda: server.get(url))

    def same(name, path, pattern, scale=1):
        said = float(re.search(pattern, pathlib.Path(path).read_text(), re.M)[1]) * scale
        return newest(f"/hicc/v1/metrics/series/SystemMetrics.{name}/{host}") == said

    eventually(lambda: same("LoadAverage.1", "/proc/loadavg", r"^(\S+)"))
    assert same("swap.Total", "/proc/meminfo", r"^SwapTotal:\s+(\d+)", 1024)


@pytest.mark.parametrize("built", [False, True])
def test_help_of_run_built_everything_first(tmp_path, built):
    """A copy of it that has nothing to set up or build with."""
    shutil.copy(ROOT / "run", tmp_path / "run")
    if built:
        (tmp_path / "build").mkdir()
        os.symlink(ROOT / "build" / "granary", tmp_path / "build" / "granary")
    for words in (["--help"], ["-h"], ["--listen", "127.0.0.1:0", "--help"]):
        answer = subprocess.run([str(tmp_path / "run"), *words], capture_output=True, text=True,
                                timeout=PATIENCE_S)
        assert answer.returncode == 0 and not answer.stderr, answer
        assert answer.stdout.startswith("usage: ./run ")
        assert ("--store.map_size" in answer.stdout) == built
    assert not (tmp_path / "var").exists()


def test_install_puts_the_program_and_its_pages_where_they_belong(tmp_path):
    answer = subprocess.run(["meson", "install", "-C", build_folder(), "--no-rebuild", "--destdir",
                             tmp_path], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    place = tmp_path / "usr/local"
    binary, shared = place / "bin/granary", place / "share"
    pages = {"1": shared / "man/man1/granary.1", "5": shared / "man/man5/granary.yml.5"}
    completions = {"granary.bash": shared / "bash-completion/completions/granary",
                   "_granary": shared / "zsh/site-functions/_granary",
                   "granary.fish": shared / "fish/vendor_completions.d/granary.fish"}
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {
        binary, *pages.values(), *completions.values()}
    for section, page in pages.items():
        manual = subprocess.run([binary, "manual", section], capture_output=True, check=True,
                                timeout=PATIENCE_S).stdout
        assert manual.startswith(b".TH GRANARY") and page.read_bytes() == manual
    for name, path in completions.items():
        assert path.read_bytes() == (ROOT / "completions" / name).read_bytes()


def test_run_stops_cleanly_and_finds_its_data_again(run_script):
    server = run_script
    server.put({"metric": "m", "timestamp": 1600000000, "value": 5, "tags": {"a": "b"}})
    server.stop()
    again = Server(server.folder, host_metrics=True)
    again.start()
    try:
        assert list(again.values("m").values()) == [5.0]
    finally:
        again.kill()


def test_ctrl_c_stops_cleanly(server):
    server.close()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(PATIENCE_S) == 0


def test_term_finishes_what_is_at_hand(server):
    """A request whose body is still coming is answered, and what it said is kept."""
    body = b'{"metric":"m","timestamp":1600000000,"value":5,"tags":{"a":"b"}}'
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as sock:
        sock.sendall(b"POST /api/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                     % (len(body), body[:10]))
        server.get("/-/healthy")  # the loop has seen the bytes above
        server.process.send_signal(signal.SIGTERM)
        sock.sendall(body[10:])
        answer = sock.recv(4096)
    assert server.process.wait(PATIENCE_S) == 0
    if answer:
        assert answer.startswith((b"HTTP/1.1 204 ", b"HTTP/1.1 503 "))
    server.start()
    assert (list(server.values("m").values()) == [5.0]) == answer.startswith(b"HTTP/1.1 204 ")


# ---- one process a directory


def test_a_second_process_is_refused_and_told_who_has_it(server):
    second = run("serve", "--listen", f"127.0.0.1:{free_port()}", "--data", server.data)
    assert second.returncode == 1
    assert str(server.process.pid) in second.stderr, second.stderr
    assert str(server.data) in second.stderr
    assert server.get("/-/healthy").status == 200


def test_the_tools_do_not_open_what_a_server_has(server):
    for command in ("stats", "verify"):
        answer = run(command, "--data", server.data)
        assert answer.returncode == 1
        assert str(server.process.pid) in answer.stderr


def test_a_killed_server_leaves_no_lock(server):
    server.kill()
    server.start()
    assert server.get("/-/ready").status == 200


def test_the_port_is_taken(server):
    other = run("serve", "--listen", f"127.0.0.1:{server.port}", "--data", server.folder / "other",
                timeout=PATIENCE_S)
    assert other.returncode == 1 and str(server.port) in other.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.0.2.1:8470", "[::]:8470", "example.org:80"])
def test_only_loopback_addresses_can_be_bound(tmp_path, address):
    answer = run("serve", "--listen", address, "--data", tmp_path / "d")
    assert answer.returncode != 0
    assert address.rsplit(":", 1)[0].strip("[]") in answer.stderr


# ---- configuration


@pytest.mark.parametrize("text, line, words", [
    ("listen: 127.0.0.1:0\nno_such_key: 1\n", 2, "no_such_key"),
    ("store:\n  map_size: 1G\n  map_sise: 2G\n", 3, "map_sise"),
    ("\n\nstore:\n  read_threads: 1000\n", 4, "read_threads"),
    ("store:\n  read_threads: many\n", 2, "read_threads"),
    ("store:\n  map_size: 12Q\n", 2, "map_size"),
    ("store: 1\n", 1, "store"),
    ("log:\n  level: loud\n", 2, "level"),
    ("http:\n  idle_timeout: -1s\n", 2, "idle_timeout"),
    ("listen: 127.0.0.1:0\nlisten: 127.0.0.1:1\n", 2, "listen"),
    ("listen: [unclosed\n", None, "granary.yml"),
    ("- a\n- b\n", None, "granary.yml"),
    ("\tlisten: x\n", 1, "granary.yml"),
])
def test_a_wrong_configuration_names_file_line_and_reason(tmp_path, text, line, words):
    path = tmp_path / "granary.yml"
    path.write_text(text)
    answer = run("serve", "--config", path, "--data", tmp_path / "data")
    assert answer.returncode != 0
    assert "granary.yml" in answer.stderr and words in answer.stderr, answer.stderr
    if line:
        assert f":{line}" in answer.stderr or f"line {line}" in answer.stderr, answer.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("options", [
    ["--no-such-option", "1"], ["--store.map_size"], ["--store.map_size=1"], ["surplus"],
    ["--config", "/no/such/file.yml"],
])
def test_wrong_options(tmp_path, options):
    answer = run("serve", "--data", tmp_path / "d", *options)
    assert answer.returncode != 0 and answer.stderr.strip()
    assert not (tmp_path / "d").exists()


def test_the_configuration_file_is_obeyed_and_the_command_line_wins(make_server):
    server = make_server(config="catalog:\n  tags_max: 1\nretention:\n  raw: 7d\n",
                         options=["--catalog.tags_max=2"])
    server.start()
    now = int(time.time())
    point = {"metric": "m", "timestamp": now, "value": 1, "tags": {"a": "1", "b": "2"}}
    assert server.put(point).status == 204
    assert server.put({**point, "timestamp": now - 8 * 86400}).status == 400


# ---- the format


def test_a_newer_format_is_refused(server):
    """doc/format-store.md: the table meta holds, under `format`, the version as u32; LMDB puts a
    value right behind its key."""
    server.stop()
    path = server.data / "data.mdb"
    whole, mark = path.read_bytes(), b"format" + struct.pack("<I", 4)
    assert mark in whole
    path.write_bytes(whole.replace(mark, b"format" + struct.pack("<I", 77)))
    for command in (["serve", "--listen", "127.0.0.1:0"], ["stats"], ["verify"]):
        answer = run(*command, "--data", server.data)
        assert answer.returncode == 1
        assert "77" in answer.stderr and str(server.data) in answer.stderr, answer.stderr
    path.write_bytes(whole)
    server.start()


def test_a_data_directory_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    answer = run("serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "file")
    assert answer.returncode == 1 and str(tmp_path / "file") in answer.stderr


# ---- what it says of itself


def test_metrics_are_clean_under_promtool(server):
    if not shutil.which("promtool"):
        pytest.skip("promtool is missing (package prometheus)")
    server.put({"metric": "m", "timestamp": 1600000000, "value": 5, "tags": {"a": "b"}})
    server.put("not json")
    server.query("m", start=0)
    text = server.get("/metrics").text
    answer = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                            text=True, timeout=PATIENCE_S)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout + answer.stderr == ""
    assert server.metric("granary_store_samples_total") == 1


def test_health_and_readiness(server):
    assert server.get("/-/healthy").status == 200
    assert server.get("/-/ready").status == 200


def test_the_page_links_to_every_route_and_the_links_work(server):
    page = server.get("/")
    assert page.status == 200 and page.headers["Content-Type"].startswith("text/html")
    links = set(re.findall(r'href="(/[^"]*)"', page.text))
    assert {"/metrics"} <= {link.split("?")[0] for link in links}
    streams = {link for link in links if link.partition("?")[0].endswith("/live")}
    assert {link.partition("?")[0] for link in streams} == {"/oops/live", "/oops/messages/live"}
    for link in streams:
        path, _, query = link.partition("?")
        with Viewer(server, query, path=path) as viewer:
            assert viewer.status == 200
    for link in links - streams:
        answer = server.get(link.replace("&amp;", "&"))
        # Examples may name what is not here: it is understood, and not there.
        assert answer.status in (200, 204) or answer.status in (400, 404) and (
            "rror" in answer.text and "nothing at this path" not in answer.text), (link, answer)
    for path in ("/api/put", "/write", "/api/query", "/api/metadata/tenants"):
        assert path in page.text


def test_version_and_help():
    answer = run("version")
    assert answer.returncode == 0 and re.search(r"\d+\.\d+\.\d+", answer.stdout)
    general = run("help")
    assert general.returncode == 0
    for command in ("serve", "query", "series", "put", "stats", "verify", "version"):
        assert command in general.stdout
        answer = run("help", command)
        assert answer.returncode == 0 and f"granary {command}" in answer.stdout
        assert run(command, "--help").stdout == answer.stdout
    assert "--store.map_size" in run("help", "serve").stdout
    # Of one verb only what is of it.
    verb = run("help", "fault", "delete").stdout
    assert verb.startswith("usage: granary fault delete --user NAME [options]\n\n")
    assert "--user NAME" in verb and "granary fault gc" not in verb and "--bytes" not in verb
    assert run("fault", "delete", "--help").stdout == verb
    assert run("fault", "--help").stdout == run("help", "fault").stdout
    assert 'no command "nosuch"' in run("help", "fault", "nosuch").stderr
    # Behind other options, too: it was taken for one that lacks its value.
    for words in (["serve", "--log.level", "warn", "--help"], ["serve", "--welcome=true", "-h"]):
        assert run(*words).stdout == run("help", "serve").stdout, words
    assert run("nosuch").returncode == 2
    assert run().returncode == 2
