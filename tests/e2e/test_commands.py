"""The client commands against a server and against a directory."""

import csv
import io
import json
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading

import pytest

from server import eventually, granary, run


@pytest.fixture
def filled(server):
    lines = "".join(f"cpu,host=h-{h},os={'linux' if h < 3 else 'bsd'} idle={h * 10 + t},load={t}i "
                    f"{1600000000 + t}000000000\n" for h in range(1, 5) for t in range(3))
    assert server.write(lines).status == 204
    return server


def ask(server, *arguments, status=0):
    answer = run(arguments[0], "--server", server.url, *arguments[1:])
    assert answer.returncode == status, (arguments, answer.stdout, answer.stderr)
    return answer


def test_query_as_json_csv_and_table(filled):
    common = ("query", "cpu_idle", "host=h-1", "--start", "1600000000", "--end", "1600000002")
    found = json.loads(ask(filled, *common, "-o", "json").stdout)
    assert found == [{"tenant": "default", "metricName": "cpu_idle",
                      "tags": {"host": "h-1", "os": "linux"},
                      "values": {"2020-09-13T12:26:40Z": 10.0, "2020-09-13T12:26:41Z": 11.0}}]
    rows = list(csv.reader(io.StringIO(ask(filled, *common, "-o", "csv").stdout)))
    assert [row[-1] for row in rows[1:]] == ["10.0", "11.0"]
    # Not a terminal: CSV by default.
    assert ask(filled, *common).stdout == ask(filled, *common, "-o", "csv").stdout
    answer = ask(filled, *common, "-o", "table")
    table = answer.stdout
    assert answer.stderr == "answered by: raw\n"
    for output in ["csv", "json"]:
        assert ask(filled, *common, "-o", output).stderr == ""
    assert "2020-09-13T12:26:41Z" in table and "11.0" in table and "h-1" in table


def test_what_cannot_be_printed_is_a_failure(filled):
    for arguments in (["series", "cpu_idle"], ["query", "cpu_idle", "--start", "1600000000"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            ended = subprocess.run([granary(), *arguments, "--server", filled.url], stdout=full,
                                   stderr=subprocess.PIPE, text=True, check=False)
        assert ended.returncode == 1
        assert "could not be written: No space left on device" in ended.stderr


def test_a_server_without_outputs_writes_nothing_into_its_data(make_server):
    """The first file that it opens would have the number of its standard output."""
    server = make_server()
    arguments = server.command()
    server.process = subprocess.Popen(["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", *arguments])
    server.wait_ready()
    assert server.write("m value=1 1600000000000000000").status == 204
    numbers = {fd: (pathlib.Path(f"/proc/{server.process.pid}/fd/{fd}")).resolve()
               for fd in (0, 1, 2)}
    assert set(map(str, numbers.values())) == {"/dev/null"}
    server.stop()


def test_query_with_functions_and_tags(filled):
    found = json.loads(ask(filled, "query", "cpu_idle", "os=linux", "--start", "0", "--fn", "max",
                           "--window", "1h", "-o", "json").stdout)
    assert {s["tags"]["host"]: list(s["values"].values()) for s in found} == {
        "h-1": [12.0], "h-2": [22.0]}


def test_query_by_points_and_by_stored_rollups(filled):
    """Both samples and those behind them lie in one of two windows at most."""
    common = ("query", "cpu_idle", "host=h-1", "--start", "1600000000", "--end", "1600000010")
    found = json.loads(ask(filled, *common, "--fn", "increase", "--points", "2", "--fill", "zero",
                           "-o", "json").stdout)
    assert len(found[0]["values"]) == 2
    answer = ask(filled, *common, "--aggregator", "max", "--granularity", "7m", status=1)
    assert 'granularity "7m" is none of those that are stored: 5m, 1h' in answer.stderr


def test_a_command_of_a_command_that_there_is_not():
    done = run("rollup", "bogus")
    assert (done.returncode, done.stderr) == (2, (
        "granary rollup: there is no command \"bogus\": it is one of status, pending, rebuild; "
        "`granary help rollup` shows how it is used\n"))
    done = run("rollup")
    assert (done.returncode, done.stderr) == (2, (
        "granary rollup: a command is missing: one of status, pending, rebuild; "
        "`granary help rollup` shows how it is used\n"))


def test_query_of_several_series_in_one(filled):
    common = ("query", "cpu_idle", "--start", "0", "--agg", "count", "--by", "os,host")
    found = json.loads(ask(filled, *common, "-o", "json").stdout)
    assert found and all(set(series["tags"]) <= {"os", "host"} for series in found)
    answer = ask(filled, *common, "-o", "table", "--explain")
    assert answer.returncode == 0 and answer.stderr.startswith("read: series ")
    assert answer.stderr.endswith("\nanswered by: raw\n") and "grains" not in answer.stderr
    answer = ask(filled, *common, "-o", "csv", "--explain")
    assert answer.stdout.splitlines()[-1].startswith("# explain: {")
    ask(filled, "query", "cpu_idle", "--explain=1", status=2)
    ask(filled, "query", "cpu_idle", "--by", "os", status=1)


def test_series(filled):
    answer = ask(filled, "series", "cpu_idle", "-o", "json")
    found = json.loads(answer.stdout)
    assert len(found) == 4
    rows = list(csv.reader(io.StringIO(ask(filled, "series", "cpu_idle", "host=h-3",
                                           "-o", "csv").stdout)))
    assert len(rows) == 2 and any("h-3" in field for field in rows[1])


def test_metric(filled):
    """What is said is shown by both commands; what is not given stays."""
    def metric(verb, *arguments, status=0):
        answer = run("metric", verb, "--server", filled.url, *arguments)
        assert answer.returncode == status, (arguments, answer.stdout, answer.stderr)
        return answer

    metric("set", "cpu_idle", "--unit", "%", "--description", "time, \"idle\"")
    metric("set", "cpu_idle", "--kind=gauge")
    assert metric("show", "cpu_idle", "-o", "csv").stdout == (
        "metricName,kind,unit,aggregators,description\n"
        'cpu_idle,gauge,%,raw,"time, ""idle"""\n')
    row, = csv.DictReader(io.StringIO(ask(filled, "series", "cpu_idle", "host=h-3").stdout))
    assert (row["kind"], row["unit"], row["aggregators"]) == ("gauge", "%", "raw")
    metric("set", "cpu_idle", "--unit", "")
    assert json.loads(metric("show", "cpu_idle", "-o", "json").stdout)["unit"] == ""
    answer = metric("set", "cpu_idle", "--kind", "gouge", status=1)
    assert answer.stderr == (
        'granary metric set: kind "gouge" is none: it is gauge, counter or rate\n')
    answer = metric("show", "nosuch", status=1)
    assert answer.stderr == (
        'granary metric show: metric "nosuch" of tenant "default" does not exist\n')
    metric("set", "cpu_idle", status=2)
    metric("set", "--unit", "%", status=2)


def test_series_without_a_metric_lists_metrics(filled):
    assert {"cpu_idle", "cpu_load"} <= set(ask(filled, "series", "-o", "csv").stdout.split())


def test_put(server):
    ask(server, "put", "room.temperature", "21.5", "room=kitchen", "--time", "1600000000")
    assert server.query("room.temperature", start=0) == [
        {"tenant": "default", "metricName": "room.temperature", "tags": {"room": "kitchen"},
         "values": {"2020-09-13T12:26:40Z": 21.5}}]
    ask(server, "put", "room.temperature", "22", "room=kitchen", "--tenant", "t-1")
    assert list(server.values("room.temperature", tenant="t-1", start="1m-ago").values()) == [22.0]


@pytest.mark.parametrize("arguments, words", [
    (("put", "m", "abc", "a=b"), "abc"),
    (("put", "m", "1", "a="), "a"),
    (("query", "cpu_idle", "--start", "whenever"), "whenever"),
    (("query", "cpu_idle", "--fn", "mode", "--window", "1h"), "mode"),
])
def test_what_the_server_refuses_is_a_sentence_and_status_1(filled, arguments, words):
    answer = ask(filled, *arguments, status=1)
    assert words in answer.stderr and answer.stderr.startswith("granary ")
    assert answer.stdout == "" and "{" not in answer.stderr


@pytest.mark.parametrize("server, sentence", [
    ("foo://127.0.0.1:1", "a server is http://HOST:PORT, https://HOST:PORT or unix:PATH"),
    ("https://", "the URL of the server names no host"),
    ("http:///x", "the URL of the server names no host"),
    ("http://127.0.0.1:{port}?x=1", "the URL of a server has no `?` and no `#`"),
    ("http://127.0.0.1:{port}#x", "the URL of a server has no `?` and no `#`"),
    ("unix:", "unix: names no path of a socket")])
def test_what_is_no_server_is_asked_for_nothing(server, sentence):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = server.format(port=listener.getsockname()[1])
        said = run("stats", "--server", server)
        assert said.returncode == 1
        assert said.stderr == f"granary stats: {server}: {sentence}\n"
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_server_that_ends_before_it_answers(tmp_path):
    def answer_nothing(listener):
        peer, _ = listener.accept()
        peer.recv(100000)
        peer.close()
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as path:
        path.bind(str(tmp_path / "s"))
        path.listen()
        for listener, server in ((tcp, "http://127.0.0.1:%d" % tcp.getsockname()[1]),
                                 (path, f"unix:{tmp_path}/s")):
            thread = threading.Thread(target=answer_nothing, args=[listener])
            thread.start()
            said = run("stats", "--server", server)
            thread.join()
            assert said.returncode == 1
            assert "ended before an answer came: the server was stopped" in said.stderr
            assert ("https://" in said.stderr) == (listener is tcp)


def test_help_says_of_which_command_a_text_is():
    text = run("help", "token").stdout
    for verb, begin in (("create", "Prints the token, "), ("change", "Its token stays the same"),
                        ("revoke", "Whoever shows its token")):
        assert f"\n\n{verb}: {begin}" in text
    assert "\n\nPrints the token, " in run("help", "token", "create").stdout


@pytest.mark.parametrize("arguments", [
    ("query",), ("put",), ("put", "m"), ("query", "m", "--nosuch"), ("query", "m", "-o", "xml"),
    ("query", "m", "--start"), ("stats", "surplus"), ("verify", "one", "two"),
    ("query", "m", "notag"),
])
def test_usage_errors_have_status_2(filled, arguments):
    answer = ask(filled, *arguments, status=2)
    assert "granary help " + arguments[0] in answer.stderr


def test_no_server_there():
    answer = run("query", "m", "--server", "http://127.0.0.1:1")
    assert answer.returncode == 1 and "127.0.0.1:1" in answer.stderr


def test_stats_of_a_server_and_of_its_directory(filled):
    def samples(*where):
        answer = run("stats", *where, "-o", "json")
        assert answer.returncode == 0, answer.stderr
        found = json.loads(answer.stdout)
        table = next(t for t in found["tables"] if t["table"] == "data_raw")
        return table["samples"], found["series"]

    assert samples("--server", filled.url) == (24, 8)
    table = ask(filled, "stats", "-o", "table").stdout
    assert "data_raw" in table and "24" in table
    filled.stop()
    assert samples("--data", filled.data) == (24, 8)
    filled.start()


def test_verify_of_a_server_and_of_its_directory(filled):
    assert "0 problems" in ask(filled, "verify", "-o", "table").stdout
    filled.stop()
    answer = run("verify", "--data", filled.data, "-o", "json")
    assert answer.returncode == 0
    found = json.loads(answer.stdout)
    assert found["problems"] == 0 and found["checked"] > 0
    answer = run("verify", "--data", filled.data, "-o", "csv")
    assert answer.stdout == "problem\n"
    assert answer.stderr.endswith(" stored values checked, 0 problems: nothing is wrong\n")
    filled.start()


def test_verify_finds_a_damaged_block(filled):
    """One byte of stored values, flipped in the file while no server has it."""
    filled.write("".join(f"m,a=b value={i % 7 * 1.25} {1500000000 + i}000000000\n"
                         for i in range(20000)))
    filled.stop()
    path = filled.data / "data.mdb"
    assert path.exists(), list(filled.data.iterdir())
    whole = path.read_bytes()
    found = False
    # Somewhere in the middle; not every byte of the file is in use.
    for at in range(len(whole) // 8, len(whole), max(1, len(whole) // 97)):
        damaged = bytearray(whole)
        for offset in range(at, min(at + 64, len(whole))):
            damaged[offset] ^= 0x40
        path.write_bytes(damaged)
        answer = run("verify", "--data", filled.data)
        if answer.returncode == 1:
            assert answer.stderr.strip() or answer.stdout.strip()
            found = True
            break
    path.write_bytes(whole)
    assert found, "64 damaged bytes at 97 places and nothing noticed"
    assert run("verify", "--data", filled.data).returncode == 0


def with_a_damaged_extent(path):
    """Flips a bit in the middle of one page after the other until `verify` names an extent."""
    whole = path.read_bytes()
    named = re.compile(r"^extents: [0-9a-f]{80}: .*$", re.MULTILINE)
    for page in range(len(whole) // 4096):
        damaged = bytearray(whole)
        damaged[page * 4096 + 3000] ^= 0x40
        path.write_bytes(damaged)
        answer = run("verify", "--data", path.parent, "-o", "csv")
        found = named.findall(answer.stdout)
        if len(found) == 1:
            return page, found[0]
    raise AssertionError("no page holds an extent")


def test_damage_met_by_a_query_is_named(make_server):
    """The answer names a series and its time, the log what `verify` names, and not without end."""
    server = make_server()
    server.start()
    for series in range(3):  # Noise: a page does not hold all of it.
        lines = "".join(f"dm,s={series} value={i * 7919 * (series + 1) % 100003} {1700000000 + i}\n"
                        for i in range(3000))
        assert server.write(lines, precision="s").status == 204
    server.stop()
    assert run("compact", "--all", "--data", server.data).returncode == 0
    page, sentence = with_a_damaged_extent(server.data / "data.mdb")
    server.start()
    asked = {"metricName": "dm", "start": 1699999999, "end": 1800000000}
    for _ in range(30):
        answer = server.get("/api/query", **asked)
        assert answer.status == 500
        # 1700000000 is 2023-11-14T22:13:20Z; a segment of raw samples is a day.
        said = re.fullmatch(r"a block of dm\{s=([012])\} at 2023-11-14T00:00:00Z is damaged; "
                            rf"granary verify --data {server.data} lists what is",
                            answer.json["error"]["message"])
        assert said, answer
    lines = [line for line in server.log_text().splitlines() if " damaged: " in line]
    assert 1 <= len(lines) <= 10
    for line in lines:
        assert line.endswith(f"damaged: table data_raw, segment of 2023-11-14T00:00:00Z, met on "
                             f"reading dm{{s={said.group(1)}}}: {sentence}, page {page}")


def test_a_damaged_journal_is_named_by_verify_and_by_the_start(make_server):
    """One bit of the only sample, which lies in the journal as its eight bytes."""
    server = make_server()
    server.start()
    assert server.write("m,a=b value=1.2345678901234567 1600000000000000000").status == 204
    server.kill()
    path = server.data / "data.mdb"
    whole = bytearray(path.read_bytes())
    stored = struct.pack("<d", 1.2345678901234567)
    places = [at for at in range(len(whole)) if whole.startswith(stored, at)]
    assert len(places) == 1
    whole[places[0]] ^= 1
    path.write_bytes(whole)
    named = re.compile(r"journal: ([0-9a-f]{16}): the checksum or the header is wrong")
    answer = run("verify", "--data", server.data, "-o", "csv")
    assert answer.returncode == 1
    page = named.search(answer.stdout).group(1)
    assert "1 problem\n" in answer.stderr
    assert run("stats", "--data", server.data).returncode == 0
    start = run("serve", "--listen", "127.0.0.1:0", "--data", server.data)
    assert start.returncode == 1
    assert start.stderr == (f"granary serve: the journal in {server.data} cannot be replayed: "
                            f"page {page} is damaged: the checksum or the header is wrong; "
                            "`granary verify` lists what is damaged, `granary repair` copies what "
                            "is whole\n")
    assert path.read_bytes() == whole


def test_a_directory_without_a_store(tmp_path):
    for command in ("stats", "verify"):
        answer = run(command, "--data", tmp_path / "nothing")
        assert answer.returncode == 1 and "nothing" in answer.stderr
    assert not (tmp_path / "nothing").exists()


def test_a_file_or_an_empty_directory_is_no_store(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for command in ("stats", "verify"):
        answer = run(command, "--data", tmp_path / "file")
        assert answer.returncode == 1
        assert answer.stderr == f"granary {command}: {tmp_path}/file is not a directory\n"
        answer = run(command, "--data", tmp_path / "empty")
        assert answer.returncode == 1
        assert answer.stderr == f"granary {command}: no store in {tmp_path}/empty\n"
    assert not list((tmp_path / "empty").iterdir())


@pytest.mark.parametrize("with_credential", [False, True])
def test_the_commands_to_try_work_from_anywhere(with_credential):
    """A program in a folder whose name a shell would take apart, typed in a relative way."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="it's a folder"))  # short, as sockets need it
    data = "it's data"
    shutil.copy(granary(), folder / "granary")
    process = subprocess.Popen(["./granary", "serve", "--listen", "127.0.0.1:0", "--data",
                                data, "--welcome", "true", "--host.interval", "1s"],
                               cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Ctrl-C" in line:
                break
        commands = [line.strip() for line in lines if line.startswith("  ")]
        assert len(commands) == 3
        if with_credential:
            made = run("token", "create", "me", "--roles", "admin", "--tenants", "*", "--data",
                       folder / data)
            assert made.returncode == 0, made.stderr

        def answer_to(command):
            """None until this machine's metrics have been collected once."""
            answer = subprocess.run(["sh", "-c", command], cwd="/", capture_output=True, text=True)
            return None if "unknown-metric" in answer.stderr else answer
        for command in commands:
            answer = eventually(lambda: answer_to(command), command)
            assert answer.returncode == 0, (command, answer.stderr)
            assert "valid credential" not in answer.stdout
    finally:
        process.send_signal(signal.SIGTERM)
        process.stdout.close()
        assert process.wait(60) == 0
        shutil.rmtree(folder)


def test_a_metric_that_does_not_exist_is_told_from_one_without_data(server):
    assert server.put({"metric": "m", "timestamp": 1600000000, "value": 1,
                       "tags": {"host": "a"}}).status == 204
    for output in ("table", "csv", "json"):
        there = run("query", "--server", server.url, "m", "-o", output)
        assert there.returncode == 0 and "unknown" not in there.stderr, there
        none = run("query", "--server", server.url, "nosuch", "-o", output)
        assert none.returncode == 1, none
        assert "unknown-metric: the tenant has no series of this metric" in none.stderr
