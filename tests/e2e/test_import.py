"""granary import: what was exported, by Granary or by others, comes back; killed anywhere it goes
on."""

import contextlib
import gzip
import http.server
import json
import os
import random
import re
import socket
import subprocess
import threading

import pytest

from server import PATIENCE_S, eventually, granary, long_run, run
from test_export import Samples, all_pages, random_samples


def imports(server, *arguments, **options):
    return run("import", "--server", server.url, *arguments, **options)


def test_export_import_export(make_server, tmp_path):
    """The same bytes, by lines and by CSV, of values of all types and names with all characters."""
    first, second, third = make_server("one"), make_server("two"), make_server("three")
    for server in (first, second, third):
        server.start()
    samples = random_samples(100000, seed=11)
    samples.send(first)
    assert run("export", "--server", first.url, "--to", tmp_path / "all").returncode == 0
    assert (tmp_path / "all").read_text() == samples.lines()
    done = imports(second, tmp_path / "all")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert all_pages(second) == samples.lines()
    assert sorted(p.name for p in tmp_path.glob("all*")) == ["all"]
    csv = tmp_path / "all.csv.gz"
    csv.write_bytes(gzip.compress(all_pages(second, format="csv").encode()))
    done = imports(third, csv, "--tenant", "t-1")
    assert done.returncode == 0, done.stderr
    assert all_pages(third, tenant="t-1") == samples.lines()
    assert all_pages(third) == "# granary precision=ms\n"


def test_packed_in_many_ways(make_server, tmp_path):
    samples = random_samples(3000, seed=12)
    lines = samples.lines().encode()
    half = lines.index(b"\n", len(lines) // 2) + 1
    zstd = subprocess.run(["zstd", "-q", "-c"], input=lines, capture_output=True).stdout
    window = subprocess.run(["zstd", "-q", "-c", "--long=27"], input=lines,
                            capture_output=True).stdout
    packed = {"window": window, "zstd": zstd,
              "members": gzip.compress(lines[:half]) + gzip.compress(lines[half:]),
              "no_end": lines[:-1], "dos": lines.replace(b"\n", b"\r\n"),
              "empty_lines": lines.replace(b"\n", b"\n\n# note\n")}
    for name, data in packed.items():
        with_server = make_server(name)
        with_server.start()
        (tmp_path / name / "in").write_bytes(data)
        done = imports(with_server, tmp_path / name / "in")
        assert done.returncode == 0, (name, done.stderr)
        assert all_pages(with_server) == samples.lines(), name
        with_server.stop()


def test_from_standard_input(server):
    samples = random_samples(2000, seed=13)
    done = imports(server, "-", input=samples.lines())
    assert done.returncode == 0 and "standard input: " in done.stderr
    assert all_pages(server) == samples.lines()


def of_export(server):
    return [line for line in all_pages(server).splitlines() if not line.startswith("#")]


def test_influx_inspect(server, tmp_path):
    """As InfluxDB 1.x writes it: DDL, contexts, ns."""
    (tmp_path / "in").write_text("""# INFLUXDB EXPORT: 1677-09-21T00:12:43Z - 2262-04-11T23:47:16Z
# DDL
CREATE DATABASE telegraf WITH NAME autogen
# DML
# CONTEXT-DATABASE:telegraf
# CONTEXT-RETENTION-POLICY:autogen
# writing tsm data
cpu,cpu=cpu0,host=a\\ b usage_idle=98.5 1600000000000000000
cpu,cpu=cpu0,host=a\\ b usage_idle=97.25 1600000010000000000
mem,host=a free=12i 1600000000123456789
up,host=a value=true 1600000000000000000
# writing wal data
""")
    done = imports(server, tmp_path / "in")
    assert done.returncode == 0, done.stderr
    assert of_export(server) == [
        "cpu_usage_idle,cpu=cpu0,host=a\\ b value=98.5 1600000000000",
        "cpu_usage_idle,cpu=cpu0,host=a\\ b value=97.25 1600000010000",
        "mem_free,host=a value=12i 1600000000123", "up,host=a value=1.0 1600000000000"]


def test_victoria_metrics_lines(server, tmp_path):
    (tmp_path / "in").write_text(
        '{"metric":{"__name__":"cpu","host":"a\\"b","é":"x,y=z"},"values":[1,2.5,-0.0,null],'
        '"timestamps":[1600000000000,1600000010000,1600000020000,1600000030000]}\n'
        '{"values":[9007199254740993],"other":[1,{"a":2}],"timestamps":[5],'
        '"metric":{"__name__":"big"}}\n')
    done = imports(server, tmp_path / "in")
    assert done.returncode == 0 and "1 values that are NaN are left out" in done.stderr
    assert of_export(server) == [
        "big value=9007199254740992.0 5",
        'cpu,host=a"b,é=x\\,y\\=z value=1.0 1600000000000',
        'cpu,host=a"b,é=x\\,y\\=z value=2.5 1600000010000',
        'cpu,host=a"b,é=x\\,y\\=z value=-0.0 1600000020000']


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if not line.startswith("#")]


def test_long_lines_of_json(server, tmp_path):
    """300,000 samples in a line are several bodies; of a fault the line is told."""
    count = 300000
    series = {"metric": {"__name__": "m", "a": "b" * 30},
              "values": [i + 0.5 for i in range(count)], "timestamps": list(range(count))}
    series["values"][123456] = "Infinity"
    (tmp_path / "in").write_text('{"metric":{"__name__":"n"},"values":[1,2],"timestamps":[1,2]}\n'
                                 + json.dumps(series) + "\n"
                                 '{"metric":{"__name__":"o"},"values":[1,2],"timestamps":[1]}\n')
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1
    lines = of_export(server)
    assert lines[:-3] == [f"m,a={'b' * 30} value={i + 0.5} {i}" for i in range(count)
                          if i != 123456]
    assert lines[-3:] == ["n value=1.0 1", "n value=2.0 2", "o value=1.0 1"]
    rejected = (tmp_path / "in.rejected").read_text()
    assert re.findall(r"^# .*/in, line (\d+): ", rejected, re.M) == ["2", "3"] or \
        re.findall(r"^# .*/in, line (\d+): ", rejected, re.M) == ["3", "2"]
    wanted = {"metric": series["metric"], "values": ["+Inf"], "timestamps": [123456]}
    assert wanted in json_lines(rejected)
    assert '{"metric":{"__name__":"o"},"values":[1,2],"timestamps":[1]}\n' in rejected
    assert "values and timestamps are not equally many" in rejected
    assert f"/in: 3 lines, {count + 3} samples; 1 lines were refused; 1 samples were" in done.stderr


def test_promtool_lines(server, tmp_path):
    (tmp_path / "in").write_text(
        '{__name__="up", instance="localhost:9090", job="a\\"b\\\\c}"} 1 1600000000000\n'
        '{__name__="up", instance="localhost:9090", job="a\\"b\\\\c}"} NaN 1600000005000\n'
        '{__name__="up", instance="localhost:9090", job="a\\"b\\\\c}"} 1e+06 1600000010000\n'
        '{__name__="x", le="+Inf", u="\\u00e9"} 0.1 1600000010000\n')
    done = imports(server, tmp_path / "in")
    assert done.returncode == 0, done.stderr
    assert of_export(server) == [
        'up,instance=localhost:9090,job=a"b\\c} value=1.0 1600000000000',
        'up,instance=localhost:9090,job=a"b\\c} value=1000000.0 1600000010000',
        "x,le=+Inf,u=é value=0.1 1600000010000"]


# ---- What is refused


def test_what_the_server_refuses(server, tmp_path):
    """Lines with their numbers and reasons; the rest is stored. The file can be mended."""
    bad = {3: "m value=oops 3", 77: "m value=1 99999999999999", 40000: "m,=x value=1 5",
           99999: "no fields"}
    with open(tmp_path / "in", "w") as out:
        out.write("# granary precision=ms\n")
        for number in range(2, 100001):
            out.write(f"{bad.get(number, f'm value={number}i {number}')}\n")
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1
    assert "100000 lines; 4 lines were refused, see " in done.stderr
    rejected = (tmp_path / "in.rejected").read_text().splitlines()
    assert rejected[0] == "# granary precision=ms"
    assert [line for line in rejected if not line.startswith("#")] == list(bad.values())
    numbers = [int(n) for n in re.findall(r"^# .*/in, line (\d+), column \d+: ",
                                          "\n".join(rejected), re.M)]
    assert numbers == list(bad)
    assert of_export(server) == [f"m value={n}i {n}" for n in range(2, 100001) if n not in bad]
    (tmp_path / "in.rejected").write_text(
        "\n".join(rejected).replace("oops", "3i").replace("99999999999999", "77"))
    done = imports(server, tmp_path / "in.rejected")
    assert "2 lines were refused" in done.stderr
    assert server.metric("granary_ingest_refused_total") >= 6


def test_what_others_have_put_there_is_not_written_to(server, tmp_path):
    """A link, or a file of another user, in the place of the refused lines or of the state."""
    victim, rejected = tmp_path / "victim", tmp_path / "in.rejected"
    state = tmp_path / "in.state"
    victim.write_text("mine")
    (tmp_path / "in").write_text("# granary precision=ms\nm value=1i 1\nm value=oops 2\n")
    rejected.symlink_to(victim)
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1
    assert f"{rejected} is a link, which is not followed" in done.stderr
    rejected.unlink()
    if os.geteuid() == 0:
        rejected.write_text("theirs")
        os.chown(rejected, 65534, 65534)
        done = imports(server, tmp_path / "in")
        assert done.returncode == 1 and f"{rejected} belongs to another user" in done.stderr
        assert rejected.read_text() == "theirs"
        rejected.unlink()
    state.unlink(missing_ok=True)
    state.symlink_to(victim)
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1 and f"{state} is a link, which is not followed" in done.stderr
    assert victim.read_text() == "mine" and not rejected.exists()
    state.unlink()
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1 and "1 lines were refused" in done.stderr
    assert rejected.read_text().endswith("\nm value=oops 2\n")


def test_more_faults_than_the_server_names(server, tmp_path):
    """It names 100; the body is sent in parts until all are named."""
    with open(tmp_path / "in.csv", "w") as out:
        out.write("metric,tags,time_ms,type,value\n")
        for number in range(2, 5002):
            out.write(f"m,k=v,{number},f64,{'+Inf' if number % 3 == 0 else number / 2}\n")
        out.write("m,k=v,5,f64,x\nm,k=,5,f64,1\n")
    done = imports(server, tmp_path / "in.csv")
    assert done.returncode == 1
    rejected = (tmp_path / "in.csv.rejected").read_text()
    numbers = [int(n) for n in re.findall(r"^# .*/in\.csv, line (\d+): ", rejected, re.M)]
    assert sorted(numbers) == [n for n in range(2, 5002) if n % 3 == 0] + [5002, 5003]
    lines = [line for line in rejected.splitlines() if not line.startswith("#")]
    assert sorted(lines) == sorted([f"m,k=v,{n},f64,+Inf" for n in range(3, 5002, 3)] +
                                   ["m,k=v,5,f64,x", "m,k=,5,f64,1"])
    assert "in.csv: 5003 lines, 5000 samples; 2 lines were refused; 1667 samples were refused" \
        in done.stderr
    assert of_export(server) == [f"m,k=v value={n / 2} {n}" for n in range(2, 5002) if n % 3]


@pytest.mark.parametrize("data, sentence", [
    (b"", "in has no samples"),
    (b"\n\n# only this\n", "in has no samples"),
    (b"<html>\n", 'in, line 1: "<html>" is in no format that import reads'),
    (b"SQLite format 3\0\1\2", "in, line 1: "),
    (b"time,host,value\n1,a,2\n", "in, line 1: "),
    (gzip.compress(b"m value=1 1\n" * 9999)[:-20], "in cannot be unpacked: "),
    (gzip.compress(b"m value=1 1\n" * 9999)[:100] + b"x" * 50, "in cannot be unpacked: "),
    (b"\x28\xb5\x2f\xfdnonsense", "in cannot be unpacked: "),
    (b"x" * (70 << 20), "in, line 1: "),
], ids=["empty", "comments", "html", "sqlite", "other_csv", "cut_gzip", "damaged_gzip", "no_zstd",
        "long"])
def test_files_of_others(server, tmp_path, data, sentence):
    """A sentence that names the file and the line, and nothing is stored."""
    (tmp_path / "in").write_bytes(data)
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1 and sentence in done.stderr, done.stderr
    assert of_export(server) == []
    assert not (tmp_path / "in.rejected").exists()


def test_a_format_that_it_is_not(server, tmp_path):
    (tmp_path / "in").write_text("hello\nworld\n")
    for name in ("lines", "json", "prometheus", "csv"):
        done = imports(server, tmp_path / "in", "--format", name)
        assert done.returncode == 1
        assert "in: nothing up to line 2 could be stored as " in done.stderr, done.stderr
    assert of_export(server) == []
    done = imports(server, tmp_path / "none")
    assert done.returncode == 1 and "none: no such file" in done.stderr.lower()
    done = imports(server, tmp_path)
    assert done.returncode == 1 and "is a directory" in done.stderr


def vm_line(metric, values, times, **labels):
    return json.dumps({"metric": {"__name__": metric, **labels}, "values": values,
                       "timestamps": times})


def numbers_of(rejected):
    return [int(number) for number in re.findall(r"^# .*/in, line (\d+)", rejected, re.M)]


def test_names_that_end_a_line(server, tmp_path):
    """A newline within a label made the rest of it a line, and a series, of its own."""
    evil = "a\nevil value=1 1000"
    odd = [vm_line("disk", [1, 2], [1000, 2000], note=evil), vm_line(evil, [1], [1000]),
           vm_line("disk", [1], [1000], **{evil: "x"}), vm_line("disk", [1], [1000], note="a\tb"),
           vm_line("disk", [1], [1000], note="\x7f"), vm_line("disk", [1], [1000], note="a\0b")]
    (tmp_path / "in").write_text("".join(vm_line("m", [i], [i]) + "\n" + line + "\n"
                                         for i, line in enumerate(odd)))
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1
    assert "/in: 12 lines, 6 samples; 6 lines were refused, see " in done.stderr
    assert of_export(server) == [f"m value={i}.0 {i}" for i in range(6)]
    rejected = (tmp_path / "in.rejected").read_text()
    reason = "a name or the value of a tag holds a control character"
    assert rejected == "# granary format=json\n" + "".join(
        f"# {tmp_path}/in, line {2 * i + 2}: {reason}\n{line}\n" for i, line in enumerate(odd))


def test_promtool_names_that_end_a_line(server, tmp_path):
    odd = [r'{__name__="up", note="a\nevil value=1 1000"} 1 1000',
           r'{__name__="up", note="a\u000aevil value=1 1000"} 1 1000',
           r'{__name__="up", note="a\x0devil"} 1 1000', r'{__name__="up\n", a="b"} 1 1000']
    (tmp_path / "in").write_text('{__name__="up", a="b"} 1 1000\n' + "\n".join(odd))
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1
    assert "/in: 5 lines, 1 samples; 4 lines were refused, see " in done.stderr
    assert of_export(server) == ["up,a=b value=1.0 1000"]
    rejected = (tmp_path / "in.rejected").read_text()
    assert numbers_of(rejected) == [2, 3, 4, 5]
    assert [line for line in rejected.splitlines() if line[0] != "#"] == odd


FAR = 99999999999999


@pytest.mark.parametrize("name, good, bad, mended", [
    ("json", vm_line("m", [1, 2], [1, 2]),
     [vm_line("m", [3, 4, 5], [3, FAR, 5], a="b" * 300, c='\\"'), vm_line("m", [6, "x"], [6, 7]),
      '{"metric":' + "x" * 300],
     [vm_line("m", [4], [4], a="b" * 300, c='\\"'), vm_line("m", [6, 7], [6, 7]),
      vm_line("n", [9], [9])]),
    ("prometheus", '{__name__="m"} 1 1',
     [f'{{__name__="m", a="{"b" * 300}"}} 2.5 {FAR}', '{__name__="m"} x 3' + "0" * 300],
     [f'{{__name__="m", a="{"b" * 300}"}} 2.5 4', '{__name__="m"} 3 3']),
    ("csv", "m,,1,f64,1.0", [f'm,"a={"b" * 300}",{FAR},f64,2.5', "m,,2,f64," + "x" * 300],
     [f'm,"a={"b" * 300}",4,f64,2.5', "m,,2,f64,3.5"]),
    ("lines", "m value=1 1", [f"m,a={'b' * 300} value=1 {FAR}", "m value=" + "x" * 300,
                              'm value=3,note="one\ntwo",more="\n\n" 3'],
     [f"m,a={'b' * 300} value=1 4", "m value=7 7", "m value=3 3"]),
])
def test_what_is_refused_can_be_mended(make_server, tmp_path, name, good, bad, mended):
    """FILE.rejected has whole lines in the format of FILE, is read as that, and holds as much when
    nothing was mended. Of JSON a sample that the server refuses has a line of its own."""
    server = make_server(options=["--line.text_fields=refuse"])
    server.start()
    title = {"csv": "metric,tags,time_ms,type,value\n", "lines": "# granary precision=ms\n"}
    (tmp_path / "in").write_text(title.get(name, "") + "".join(f"{good}\n{line}\n" for line in bad))
    assert imports(server, tmp_path / "in").returncode == 1
    told = (tmp_path / "in.rejected").read_text()
    first = 2 if name in title else 1
    at = {first + 1 + 2 * i: line for i, line in enumerate(bad)}
    kind = {"lines": "precision=ms"}.get(name, f"format={name}")
    assert told.startswith(f"# granary {kind}\n")
    assert set(at) <= set(numbers_of(told))
    for line in bad:
        if name == "json" and line == bad[0]:
            line = vm_line("m", [4.0], [FAR], a="b" * 300, c='\\"')
            assert json.loads(line) in [json.loads(t) for t in told.splitlines()
                                        if t.startswith('{') and str(FAR) in t]
        else:
            assert f"\n{line}\n" in told
    assert imports(server, tmp_path / "in.rejected").returncode == 1
    again = (tmp_path / "in.rejected.rejected").read_text()
    kept = [[line for line in text.splitlines() if not line.startswith("# /")]
            for text in (told, again)]
    assert sorted(kept[0]) == sorted(kept[1])
    text = title.get(name, "") + "\n".join(mended) + "\n"
    (tmp_path / "in.rejected").write_text(f"# granary {kind}\n" + text)
    (tmp_path / "in.rejected.rejected").unlink()
    done = imports(server, tmp_path / "in.rejected")
    assert done.returncode == 0, done.stderr
    assert sum(line.startswith("m") or line.startswith("n") for line in of_export(server)) == \
        {"json": 8, "prometheus": 3, "csv": 3, "lines": 4}[name]


def test_something_of_each_line(server, tmp_path):
    """Of each line one field is refused and one is stored: that is not nothing."""
    (tmp_path / "in").write_text("".join(f"m value={i},rest=NaN {i}\n" for i in range(1, 300)))
    done = imports(server, tmp_path / "in", "--precision", "ms")
    assert done.returncode == 1 and "nothing" not in done.stderr
    assert "/in: 299 lines; 299 lines were refused, see " in done.stderr
    assert of_export(server) == [f"m value={i}.0 {i}" for i in range(1, 300)]


def test_a_text_of_several_lines_is_not_cut(make_server, tmp_path):
    """Where the server names only some faults the body is sent in parts, of whole lines: a part of
    a text is no line."""
    server = make_server(options=["--line.text_fields=refuse"])
    server.start()
    lines = [f'm value={i},note="x\nevil value=1 1000\n" {i}' for i in range(1, 1000)]
    (tmp_path / "in").write_text("\n".join(lines) + "\n")
    done = imports(server, tmp_path / "in", "--precision", "ms")
    assert done.returncode == 1
    assert "/in: 2997 lines; 999 lines were refused, see " in done.stderr
    assert of_export(server) == [f"m value={i}.0 {i}" for i in range(1, 1000)]
    rejected = (tmp_path / "in.rejected").read_text()
    assert numbers_of(rejected) == list(range(1, 2998, 3))
    assert re.sub("# .*\n", "", rejected) == "\n".join(lines) + "\n"


def test_a_long_first_line_is_not_all(server, tmp_path):
    """A line of 40 MB that cannot be stored, and one that is too long, stop no import."""
    count = 4000000
    with open(tmp_path / "in", "w") as out:
        out.write('{"metric":{"__name__":"m","a":"x\\ny"},"values":[' + "1," * count + '1],'
                  '"timestamps":[' + "2," * count + "2]}\n")
        out.write('{"metric":{"__name__":"' + "x" * (70 << 20) + "\n")
        out.write(vm_line("m", [1], [1]) + "\n")
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1
    assert "/in: 3 lines, 1 samples; 2 lines were refused, see " in done.stderr
    assert of_export(server) == ["m value=1.0 1"]
    with open(tmp_path / "in") as first, open(tmp_path / "in.rejected") as rejected:
        lines = rejected.readlines()
        assert lines[2] == first.readline()
    assert numbers_of("".join(lines)) == [1, 2]


def test_a_name_of_a_file_is_no_line(server, tmp_path):
    odd = tmp_path / "in\nevil value=1 1000"
    odd.write_text("m value=1 1000\nm value=x 1\n")
    assert imports(server, odd).returncode == 1
    rejected = tmp_path / (odd.name + ".rejected")
    assert [line for line in rejected.read_text().splitlines() if line[0] != "#"] == ["m value=x 1"]


def test_one_good_line(server, tmp_path):
    (tmp_path / "in").write_text('{__name__="up"} 1 1600000000000\nnonsense\nnonsense\n')
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1
    assert "in: 3 lines, 1 samples; 2 lines were refused, see " in done.stderr
    assert "nothing" not in done.stderr
    assert of_export(server) == ["up value=1.0 1600000000000"]


def test_a_line_without_end(server, tmp_path):
    """One of 100 MB between good ones is refused by its number, in bounded memory."""
    for name, good, far in (("lines", "m value=1 %d\n", 'm value="'),
                            ("json", '{"metric":{"__name__":"m"},"values":[1],"timestamps":[%d]}\n',
                             '{"metric":{"__name__":"')):
        with open(tmp_path / name, "w") as out:
            out.write(good % 1000000)
            out.write(far)
            for _ in range(100):
                out.write("x" * (1 << 20))
            out.write("\n" + good % 2000000)
        done = run("import", "--server", server.url, tmp_path / name, "--tenant", name)
        assert done.returncode == 1, done.stderr
        rejected = (tmp_path / f"{name}.rejected").read_text()
        assert "line 2: the line is longer than any that is imported" in rejected
        assert len(rejected) < 1000
        assert len(server.values("m", tenant=name)) == 2


def test_retention_is_said_first(make_server, tmp_path):
    server = make_server(options=["--retention.raw=30d"])
    server.start()
    (tmp_path / "in").write_text("m value=1i 1600000000000000000\n")
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1
    said = done.stderr.splitlines()
    assert re.search("samples before 20.* are refused, or kept only in roll-ups: retention.raw",
                     said[0])
    assert "is older than the retention" in (tmp_path / "in.rejected").read_text()


# ---- Ends


def test_killed_anywhere(make_server, tmp_path):
    """The command and the server are killed again and again; in the end all is stored."""
    server = make_server()
    server.start()
    samples, rng, kills = Samples(), random.Random(14), 0
    for i in range(3000000 if long_run() else 300000):
        samples.add("a.metric", {"host": f"h-{i // 5000:04d}"}, 1600000000000 + i % 5000, "i64", i)
    packed = tmp_path / "in.gz"
    packed.write_bytes(gzip.compress(samples.lines().encode(), 1))
    state = tmp_path / "in.gz.state"
    while kills < 40:
        process = subprocess.Popen([granary(), "import", "--server", server.url, str(packed)],
                                   stderr=subprocess.PIPE, text=True)
        for victim in rng.choice([["command"], ["server"], ["server", "command"]]):
            more = server.metric("granary_store_samples_total") + rng.randint(1, 150000)
            eventually(lambda: process.poll() is not None or
                       server.metric("granary_store_samples_total") >= more, "it gets on")
            if process.poll() is not None:
                break
            kills += 1
            if victim == "server":
                server.kill()
                server.start()
            else:
                process.kill()
        said = process.communicate()[1]
        if process.returncode == 0:
            break
        # Where the server is killed while it is asked for retention, nothing has begun.
        assert process.returncode == -9 or said.startswith(f"granary import: {server.url}"), said
    else:
        assert imports(server, packed).returncode == 0
    assert kills >= 3
    assert all_pages(server) == samples.lines()
    assert not state.exists()


class Taker(http.server.BaseHTTPRequestHandler):
    """A server that takes some bodies, and then says nothing any more."""
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(200, b'{"name":"t","roles":["write"],"tenants":["acme","b"]}')

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if len(self.server.taken) < self.server.takes:
            self.server.taken.append(body)
            self.answer(204)
        else:
            self.server.silent.set()
            self.server.ends.wait()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def taker(takes, port=0):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Taker)
    server.taken, server.takes = [], takes
    server.silent, server.ends = threading.Event(), threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.ends.set()
    server.shutdown()
    server.server_close()


def state_of(path):
    """The numbers of FILE.state, by their names."""
    numbers = path.with_name(path.name + ".state").read_text().splitlines()[1].split()
    names = ["offset", "line", "rejected", "sent", "refused_lines", "refused_samples", "nans",
             "texts", "hash"]
    return dict(zip(names, map(int, numbers), strict=True))


@pytest.mark.parametrize("name", ["lines", "csv", "json"])
def test_state_has_what_was_answered(tmp_path, name):
    """Killed while the third body is under way and the fourth is made: the import goes on with the
    third. A line of JSON of which a part was answered is sent again."""
    lines = [f"m,a={'b' * 60} value={i}.5 {i}\n" for i in range(300000)]
    title = "# granary precision=ms\n"
    text = {"lines": title + "".join(lines),
            "csv": "metric,tags,time_ms,type,value\n" +
                   "".join(f"m,a={'b' * 60},{i},f64,{i}.5\n" for i in range(300000)),
            "json": "".join(json.dumps({"metric": {"__name__": "m", "a": "b" * 60},
                                        "values": [i + 0.5 for i in range(at, at + 60000)],
                                        "timestamps": list(range(at, at + 60000))}) + "\n"
                            for at in range(0, 300000, 60000))}[name]
    (tmp_path / "in").write_text(text)
    with taker(2) as server:
        process = subprocess.Popen([granary(), "import", "--server", server.url,
                                    str(tmp_path / "in")], stderr=subprocess.DEVNULL)
        assert server.silent.wait(PATIENCE_S)
        eventually(lambda: (tmp_path / "in.state").exists() and
                   state_of(tmp_path / "in")["sent"] ==
                   sum(body.count(b"\n") for body in server.taken), "the state is saved")
        process.kill()
        process.wait()
        first = b"".join(server.taken).decode().removeprefix(title)
        line = state_of(tmp_path / "in")["line"]
    with taker(1000, server.server_port) as server:
        assert imports(server, tmp_path / "in").returncode == 0
        second = b"".join(server.taken).decode()
    if name == "json":
        done = (line - 1) * 60000
        assert first == "".join(lines)[:len(first)] and line > 1
        assert first.startswith("".join(lines[:done]))
        assert second == "".join(lines[done:])
    else:
        assert first + second == "".join(lines)
    assert not (tmp_path / "in.state").exists()


def test_a_server_that_comes_back(make_server, tmp_path):
    """An import waits for it, and needs no second command."""
    server = make_server()
    server.start()
    samples = Samples()
    for i in range(300000):
        samples.add("m", {}, i, "i64", i)
    (tmp_path / "in").write_text(samples.lines())
    process = subprocess.Popen([granary(), "import", "--server", server.url, str(tmp_path / "in")],
                               stderr=subprocess.PIPE, text=True)
    eventually(lambda: server.metric("granary_store_samples_total") > 0, "something is stored")
    server.kill()
    server.start()
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert all_pages(server) == samples.lines()


def test_state_of_another_file(server, tmp_path):
    (tmp_path / "in").write_text("m value=1i 1\n")
    for asked in ("14 default lines ns", "13 acme lines ns", "13 default json ms"):
        (tmp_path / "in.state").write_text("granary import 1\n0 1 0 0 0 0 0 0 0\n" +
                                           f"{server.url}\n{asked}\n")
        done = imports(server, tmp_path / "in")
        assert done.returncode == 1 and "in.state is of another file, tenant, format" in done.stderr
        assert "; without it the import begins at the start\n" in done.stderr
    assert of_export(server) == []


def killed_import(url, path):
    """Of which some is stored, and more is not."""
    process = subprocess.Popen([granary(), "import", "--server", url, str(path)],
                               stderr=subprocess.DEVNULL)
    state = path.with_name(path.name + ".state")
    eventually(state.exists, "the state is saved")
    process.kill()
    process.wait()
    return state


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_with_the_same_beginning(tmp_path, packed):
    """And the same length: an import of it began in the middle, and said that all is stored."""
    write = (lambda text: gzip.compress(text.encode(), 0)) if packed else str.encode
    lines = [f"m,a={'b' * 60} value={100000 + i} {i}\n" for i in range(300000)]
    with taker(1) as server:
        (tmp_path / "in").write_bytes(write("".join(lines)))
        state = killed_import(server.url, tmp_path / "in")
        kept = state.read_bytes()
        at = state_of(tmp_path / "in")["line"] - 2
        lines[at] = lines[at].replace("b" * 60, "c" * 60)
        (tmp_path / "in").write_bytes(write("".join(lines)))
        done = imports(server, tmp_path / "in")
        assert done.returncode == 1 and (
            f"/in begins with other bytes than the file that was imported; {state} says so, and "
            "without it the import begins at the start\n") in done.stderr
        assert state.read_bytes() == kept and len(server.taken) == 1


def test_an_import_does_not_go_on_at_another_server(server, tmp_path):
    lines = [f"m,a={'b' * 60} value={i}i {i}\n" for i in range(300000)]
    (tmp_path / "in").write_text("# granary precision=ms\n" + "".join(lines))
    with taker(1) as first:
        state = killed_import(first.url, tmp_path / "in")
    done = imports(server, tmp_path / "in")
    assert (done.returncode, done.stderr) == (
        1, f"granary import: {state} is of an import with the server {first.url}, not "
           f"{server.url}; --server names that one, and without {state} the import begins at the "
           "start\n")
    assert of_export(server) == []
    with taker(1, first.server_port) as first:
        first.takes = 1000
        done = run("import", "--server", first.url + "/", tmp_path / "in", "--tenant", "b")
        assert done.returncode == 1 and "is of another file, tenant, " in done.stderr
        assert run("import", "--server", first.url + "/", tmp_path / "in").returncode == 0


def test_states_that_cannot_be(server, tmp_path):
    """Each is refused with its name, and is left as it is: cut anywhere, or with other numbers."""
    (tmp_path / "in").write_text("# granary precision=ms\n" +
                                 "".join(f"m,a={'b' * 60} value={i}i {i}\n" for i in range(300000)))
    state = tmp_path / "in.state"
    with taker(1) as silent:
        process = subprocess.Popen([granary(), "import", "--server", silent.url,
                                    str(tmp_path / "in")], stderr=subprocess.DEVNULL)
        eventually(state.exists, "the state is saved")
        process.kill()
        process.wait()
    good = state.read_bytes()
    numbers = good.splitlines()[1]
    assert good.startswith(b"granary import 1\n") and len(numbers.split(b" ")) == 9
    good = good.replace(silent.url.encode(), server.url.encode()).replace(b" acme ", b" default ")
    others = [b"5 0 0 0 0 0 0 0 0", numbers + b" 1", numbers.rsplit(b" ", 1)[0],
              numbers.replace(b" ", b"  ", 1),
              b"-" + numbers, b"x" + numbers, b"9" * 30 + numbers, numbers + b" ", b" " * 40]
    bad = [good[:at] for at in range(len(good))] + [good + b"x", b"\0" * 99, b"\n" * 99] + \
        [good.replace(numbers, other) for other in others]
    for text in bad:
        state.write_bytes(text)
        done = imports(server, tmp_path / "in")
        assert (done.returncode, done.stderr) == (
            1, f"granary import: {state} is no state that import has written; without it the "
               "import begins at the start\n"), text
        assert state.read_bytes() == text
    state.write_bytes(good.replace(numbers, b"99999999 9 0 9 0 0 0 0 0"))
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1 and f"in is shorter than what was imported of it; {state} says so" \
        in done.stderr
    (tmp_path / "in.rejected").write_text("12345")
    bad = good.replace(numbers, numbers.replace(b" 0 ", b" 6 ", 1))
    state.write_bytes(bad)
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1
    assert f"in.rejected has 5 bytes, fewer than the 6 that {state} says" in done.stderr
    assert (state.read_bytes(), (tmp_path / "in.rejected").read_text()) == (bad, "12345")
    assert of_export(server) == []
    state.write_bytes(good)
    assert imports(server, tmp_path / "in").returncode == 0
    assert of_export(server)[-1] == f"m,a={'b' * 60} value=299999i 299999"


def test_a_server_that_takes_less_at_once(make_server, tmp_path):
    server = make_server(options=["--ingest.body_max=100K"])
    server.start()
    samples = Samples()
    for i in range(20000):
        samples.add("m", {}, i, "i64", i)
    (tmp_path / "in").write_text(samples.lines() + "oops\n")
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1 and "1 lines were refused" in done.stderr
    assert "in, line 20002, column 5: " in (tmp_path / "in.rejected").read_text()
    assert all_pages(server) == samples.lines()


def test_later_lines_win(server, tmp_path):
    """Requests are in the order of the file."""
    with open(tmp_path / "in", "w") as out:
        out.write("# granary precision=ms\n")
        for i in range(400000):
            out.write(f"m,a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbb value={i}i {i % 1000}\n")
    assert imports(server, tmp_path / "in").returncode == 0
    assert of_export(server) == [f"m,a=bbbbbbbbbbbbbbbbbbbbbbbbbbbbb value={399000 + i}i {i}"
                                 for i in range(1000)]


def test_nobody_listens(tmp_path):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        (tmp_path / "in").write_text("m value=1i 1\n")
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        done = run("import", "--server", url, tmp_path / "in")
    assert done.returncode == 1 and "Is the server running?" in done.stderr


# ---- Names, precision, windows, texts


def test_csv_with_names_that_lines_cannot_say(make_server, tmp_path):
    """A metric that begins with # was taken for a comment: nothing was stored, with status 0."""
    first, second = make_server("one"), make_server("two")
    first.start()
    second.start()
    odd = ["#hash", "# granary", "end\\"]
    first.put([{"metric": name, "timestamp": 1600000000, "value": 1.5, "tags": {"a": "b"}}
               for name in [*odd, "good"]])
    text = all_pages(first, format="csv")
    assert len(text.splitlines()) == 5
    (tmp_path / "in").write_text(text + "# a note, with, commas\n#\n")
    done = imports(second, tmp_path / "in")
    assert done.returncode == 1
    assert "/in: 7 lines, 1 samples; 3 lines were refused, see " in done.stderr
    rejected = (tmp_path / "in.rejected").read_text()
    assert numbers_of(rejected) == [2, 3, 4]
    for name in odd:
        assert f"\n{name},a=b,1600000000000,f64,1.5\n" in rejected
    assert [line for line in all_pages(second, format="csv").splitlines()[1:]] == \
        ["good,a=b,1600000000000,f64,1.5"]
    (tmp_path / "in").write_text(rejected)
    done = imports(second, tmp_path / "in")
    assert done.returncode == 1 and "3 lines were refused" in done.stderr


@pytest.mark.parametrize("said", ["m s", "ms&u=x", "ms ", "week", "M", "x" * 300])
def test_a_precision_that_is_none(tmp_path, said):
    (tmp_path / "in").write_text(f"# note\n# granary precision={said}\nm value=1 1\n")
    with taker(9) as server:
        done = imports(server, tmp_path / "in", timeout=20)
        assert done.returncode == 1 and server.taken == []
        assert done.stderr.startswith(f"granary import: {tmp_path}/in, line 2: \"{said[:40]}")
        assert done.stderr.endswith("\" is no precision; ns, us, ms, s, m and h are\n")
        assert imports(server, tmp_path / "in", "--precision", "ms").returncode == 0


def test_a_precision_of_another_name(server, tmp_path):
    (tmp_path / "in").write_text("# granary precision=\u00b5s\nm value=1i 5000\n")
    assert imports(server, tmp_path / "in").returncode == 0
    assert of_export(server) == ["m value=1i 5"]


def test_windows_of_zstd(server, tmp_path):
    """zstd(1) unpacks up to 128 MB unasked. A frame's head says its window (RFC 8878, 3.1.1.1.2):
    2 to the power of 10 plus the high 5 bits of the byte behind the descriptor."""
    head = b"\x28\xb5\x2f\xfd\x00"
    block = lambda text: (len(text) << 3 | 1).to_bytes(3, "little") + text  # noqa: E731
    text = b"m value=1i 1000000\n"
    (tmp_path / "in").write_bytes(head + bytes([17 << 3]) + block(text))
    done = imports(server, tmp_path / "in")
    assert done.returncode == 0, done.stderr
    assert of_export(server) == ["m value=1i 1"]
    (tmp_path / "in").write_bytes(head + bytes([18 << 3]) + block(text))
    done = imports(server, tmp_path / "in")
    assert done.returncode == 1 and (
        "/in cannot be unpacked: the window of the zstd data is larger than 128 MB\n"
        in done.stderr)


def test_texts_that_are_left_out_are_counted(server, tmp_path):
    """Also where the body is sent in parts, since it has more faults than the server names."""
    lines = [f'm value={i},note="x",more="y" {i}\n' for i in range(1000)]
    (tmp_path / "in").write_text("".join(lines))
    done = imports(server, tmp_path / "in", "--precision", "ms")
    assert (done.returncode, done.stderr) == (
        0, f"{tmp_path}/in: 1000 lines; 2000 fields that are texts are left out\n")
    (tmp_path / "in").write_text(lines[0] + "bad line of text\n" * 500 + "".join(lines[1:]))
    done = imports(server, tmp_path / "in", "--precision", "ms")
    assert done.returncode == 1
    assert "; 2000 fields that are texts are left out; 500 lines were refused" in done.stderr
    assert len(of_export(server)) == 1000


# ---- Who sends


def test_the_tenant_of_the_token(server, tmp_path):
    """Without --tenant it is the first of the token, and no tag of the file chooses another; a
    sender is told nothing of roles."""
    made = run("token", "create", "root", "--roles", "admin", "--tenants", "*", "--server",
               server.url)
    for name in ("root", "web"):
        (tmp_path / name).touch(0o600)
    (tmp_path / "root").write_text(made.stdout)
    made = run("token", "create", "web", "--roles", "write", "--tenants", "acme,b", "--server",
               server.url, "--token-file", tmp_path / "root")
    (tmp_path / "web").write_text(made.stdout)
    (tmp_path / "in").write_text("m,tenant=b value=1i 1000000\nn value=1i 1000000\n")
    done = imports(server, tmp_path / "in", "--token-file", tmp_path / "web")
    assert (done.returncode, done.stderr) == (0, f"{tmp_path}/in: 2 lines\n")
    done = run("export", "--server", server.url, "--token-file", tmp_path / "root", "--tenant",
               "acme")
    assert done.stdout.splitlines()[1:] == ["m,tenant=b value=1i 1", "n value=1i 1"]
    done = imports(server, tmp_path / "in", "--token-file", tmp_path / "web", "--tenant", "c")
    assert done.returncode == 1 and "does not have tenant c" in done.stderr


def test_a_server_that_is_no_granary(tmp_path):
    class Other(Taker):
        def do_GET(self):
            self.answer(200, b"{}" if self.server.json else b"<html>")
    (tmp_path / "in").write_text("m value=1 1\n")
    with taker(9) as server:
        server.RequestHandlerClass = Other
        for server.json in (False, True):
            done = imports(server, tmp_path / "in")
            assert done.returncode == 1 and server.url in done.stderr
            assert server.taken == []
        assert f"what answers at {server.url} is no Granary\n" in done.stderr
