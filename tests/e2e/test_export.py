"""granary export: what comes out is what went in. The lines that are wanted are made here, of the
same samples, by Python."""

import csv
import io
import json
import os
import random
import re
import subprocess
import time

from server import eventually, granary, run

TYPES = ["f64", "i64", "u64"]
# Everything that means something to one of the formats, and some that does not.
NAME_BYTES = "ab_.-/ ,=\"'\\{}[]:;#%é€𝄞"


def escape(name, meaning):
    return "".join("\\" + c if c in meaning else c for c in name)


def line_key(metric, tags):
    """As InfluxDB's documents have it; a = in a measurement is escaped behind a backslash only."""
    measurement = escape(metric, " ,").replace("\\=", "\\\\=")
    return measurement + "".join(f",{escape(k, ' ,=')}={escape(v, ' ,=')}"
                                 for k, v in sorted(tags.items(), key=lambda t: t[0].encode()))


def line_value(kind, value):
    return {"f64": repr, "i64": "{}i".format, "u64": "{}u".format}[kind](value)


def tags_text(tags):
    return ",".join(f"{escape(k, ',=' + chr(92))}={escape(v, ',=' + chr(92))}"
                    for k, v in sorted(tags.items(), key=lambda t: t[0].encode()))


class Samples:
    """Of series (metric, tags as text): {time: (type, value)}."""

    def __init__(self):
        self.series, self.tags = {}, {}

    def add(self, metric, tags, ts_ms, kind, value):
        key = (metric.encode(), tags_text(tags).encode())
        self.series.setdefault(key, {})[ts_ms] = (kind, value)
        self.tags[key] = (metric, tags)

    def rows(self):
        for key in sorted(self.series):
            for ts_ms, (kind, value) in sorted(self.series[key].items()):
                yield *self.tags[key], ts_ms, kind, value

    def lines(self):
        return "# granary precision=ms\n" + "".join(
            f"{line_key(metric, tags)} value={line_value(kind, value)} {ts_ms}\n"
            for metric, tags, ts_ms, kind, value in self.rows())

    def send(self, server, tenant="default"):
        lines = self.lines().splitlines(True)
        random.Random(1).shuffle(lines)
        for at in range(0, len(lines), 20000):
            answer = server.write("".join(lines[at:at + 20000]), {"X-Tenant": tenant},
                                  precision="ms")
            assert answer.status == 204, answer


def random_name(rng, last_too=True):
    name = "".join(rng.choice(NAME_BYTES) for _ in range(rng.randint(1, 12)))
    return name if not name.endswith("\\") and not name.startswith("#") else random_name(rng)


def random_value(rng):
    kind = rng.choice(TYPES)
    if kind == "i64":
        return kind, rng.choice([0, -1, 7, -2**63, 2**63 - 1, 2**53 + 1,
                                 rng.randint(-2**63, 2**63 - 1)])
    if kind == "u64":
        return kind, rng.choice([0, 2**64 - 1, 2**63, rng.randint(0, 2**64 - 1)])
    return kind, rng.choice([0.0, -0.0, 0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 1e22, 123456.0,
                             rng.gauss(0, 1), rng.random() * 10.0**rng.randint(-300, 300)])


def random_samples(count, seed=1):
    rng, samples = random.Random(seed), Samples()
    names = [(random_name(rng), {random_name(rng): random_name(rng)
                                 for _ in range(rng.randint(0, 5))})
             for _ in range(max(3, count // 1000))]
    while count:
        metric, tags = rng.choice(names)
        start = rng.choice([0, 1, 1600000000000, 2**33, 2**40 + 5])
        for i in range(min(count, rng.randint(1, 500))):
            samples.add(metric, tags, start + i * rng.choice([1, 10000]), *random_value(rng))
            count -= 1
    return samples


def all_pages(server, **params):
    text, token = "", {}
    while True:
        answer = server.get("/api/export", **params, **token)
        assert answer.status == 200, answer
        text += answer.text
        if not answer.headers["X-Granary-Next"]:
            return text
        token = {"token": answer.headers["X-Granary-Next"].encode("latin-1").decode()}


def test_lines_are_what_was_written(server):
    samples = random_samples(100000)
    samples.send(server)
    assert all_pages(server) == samples.lines()
    assert all_pages(server, limit=9999) == samples.lines()
    count = sum(map(len, samples.series.values()))
    assert server.metric("granary_export_samples_total") == 2 * count


def test_csv_and_json_are_what_was_written(server):
    samples = random_samples(20000, seed=2)
    samples.send(server)
    rows = list(csv.reader(io.StringIO(all_pages(server, format="csv", limit=777))))
    assert rows[0] == ["metric", "tags", "time_ms", "type", "value"]
    wanted = [[metric, tags_text(tags), str(ts_ms), kind, repr(value)]
              for metric, tags, ts_ms, kind, value in samples.rows()]
    assert rows[1:] == wanted
    found = []
    for line in all_pages(server, format="json", limit=777).splitlines():
        series = json.loads(line)
        metric = series["metric"].pop("__name__")
        found += [[metric, tags_text(series["metric"]), str(ts_ms), repr(value)]
                  for ts_ms, value in zip(series["timestamps"], series["values"], strict=True)]
    assert found == [[metric, tags, ts_ms, value] for metric, tags, ts_ms, _, value in wanted]


def test_commands(server, tmp_path):
    samples = random_samples(3000, seed=3)
    samples.send(server, "t-1")
    ask = ["export", "--server", server.url, "--tenant", "t-1"]
    to = tmp_path / "out"
    done = run(*ask)
    assert (done.returncode, done.stdout, done.stderr) == (0, samples.lines(), "")
    done = run(*ask, "--to", to, "--page", 100)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert to.read_text() == samples.lines()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["main", "out"]
    done = run(*ask, "--to", to)
    assert done.returncode == 1 and "out is there already" in done.stderr
    done = run(*ask, "--to", tmp_path / "none", "--page", 0)
    assert done.returncode == 1 and 'limit "0" is not a number' in done.stderr
    done = run(*ask, "--to", tmp_path / "none")
    assert done.returncode == 1 and "none.state is of an export that asked for" in done.stderr
    (tmp_path / "none.state").write_text("something else\n")
    done = run(*ask, "--to", tmp_path / "none")
    assert done.returncode == 1 and "is no state that export has written" in done.stderr
    good = "granary export 1\n10 0\nhttp://h\n/api/export?x\n1 m,a=b;\n"
    bad = [good[:at] for at in range(len(good))] + [good.replace("10 0", numbers) for numbers in
                                                    ("10", "10 0 0", "x 0", "10  0", "9" * 30)]
    for text in bad:
        (tmp_path / "none.state").write_text(text)
        done = run(*ask, "--to", tmp_path / "none")
        assert done.returncode == 1 and "none.state is no state that export has" in done.stderr
        assert (tmp_path / "none.state").read_text() == text
    assert run(*ask, "--to", "/dev/full/x").returncode == 1
    with open("/dev/full", "w") as full:
        done = subprocess.run([granary(), *ask], stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == 1


def test_names_that_lines_cannot_say(server):
    server.put([{"metric": "m", "timestamp": 1, "value": 1.5, "tags": {"path": "C:\\"}},
                {"metric": "#m", "timestamp": 1, "value": 2.5, "tags": {"a": "b"}},
                {"metric": "n", "timestamp": 1, "value": 3.5, "tags": {"a": "b"}}])
    done = run("export", "--server", server.url)
    assert (done.returncode, done.stdout) == (1, "# granary precision=ms\nn,a=b value=3.5 1000\n")
    assert "2 series were left out" in done.stderr
    done = run("export", "--server", server.url, "--format", "csv")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == ["#m,a=b,1000,f64,2.5", "m,path=C:\\\\,1000,f64,1.5",
                                            "n,a=b,1000,f64,3.5"]


def test_what_others_have_put_there_is_not_written_to(server, tmp_path):
    """Links and files of another user, in the place of the file, of its state, and of the state's
    temporary."""
    samples = random_samples(100, seed=8)
    samples.send(server)
    victim, to = tmp_path / "victim", tmp_path / "out"
    state, temporary = tmp_path / "out.state", tmp_path / "out.state.tmp"
    victim.write_text("mine")
    ask = ["export", "--server", server.url, "--to", to]
    to.symlink_to(tmp_path / "nowhere")
    done = run(*ask)
    assert done.returncode == 1 and f"{to} is there already" in done.stderr
    assert not (tmp_path / "nowhere").exists() and not state.exists()
    to.unlink()
    # An export that was begun, in whose place somebody else has put something.
    assert run("export", "--server", "http://127.0.0.1:1", "--to", to).returncode == 1
    whole = state.read_text().replace("http://127.0.0.1:1\n", f"{server.url}\n")
    state.write_text(whole)
    to.unlink()
    to.symlink_to(victim)
    done = run(*ask)
    assert done.returncode == 1 and f"{to} is a link, which is not followed" in done.stderr
    to.unlink()
    state.rename(tmp_path / "elsewhere")
    state.symlink_to(tmp_path / "elsewhere")
    done = run(*ask)
    assert done.returncode == 1 and f"{state} is a link, which is not followed" in done.stderr
    assert not to.exists()
    state.unlink()
    if os.geteuid() == 0:
        state.write_text(whole)
        os.chown(state, 65534, 65534)
        done = run(*ask)
        assert done.returncode == 1 and f"{state} belongs to another user" in done.stderr
        state.unlink()
    temporary.symlink_to(victim)
    assert run(*ask).returncode == 0
    assert to.read_text() == samples.lines() and victim.read_text() == "mine"
    assert not temporary.is_symlink()


def test_killed_anywhere(make_server, tmp_path):
    """The command and the server are killed again and again; in the end the file is whole."""
    server = make_server()
    server.start()
    samples = random_samples(20000, seed=4)
    samples.send(server)
    rng, to, kills = random.Random(5), tmp_path / "out", 0
    command = [granary(), "export", "--server", server.url, "--to", str(to), "--page", "50"]
    while True:
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        had = to.stat().st_size if to.exists() else 0
        # Some pages come, then one of the two ends.
        more = had + rng.randint(1, 400000)
        eventually(lambda: process.poll() is not None or
                   (to.exists() and to.stat().st_size >= more), "the export gets on")
        if process.poll() == 0:
            break
        if rng.random() < 0.5:
            process.kill()
            process.wait()
        else:
            server.kill()
            assert process.wait() == 1
            server.start()
        kills += 1
    assert kills >= 3
    assert to.read_text() == samples.lines()


def test_while_others_write_and_delete(server):
    """All that was there at the beginning and stays is in it, once."""
    samples = random_samples(20000, seed=6)
    samples.send(server)
    server.write("".join(f"zz,n={i} value=1i {i}\n" for i in range(3000)), precision="ms")
    text, token, pages = "", {}, 0
    while token is not None:
        answer = server.get("/api/export", limit=500, **token)
        text += answer.text
        following = answer.headers["X-Granary-Next"]
        token = {"token": following.encode("latin-1").decode()} if following else None
        pages += 1
        assert server.write(f"a{pages},new=1 value={pages}i 5\nzzz value=1i {pages}\n",
                            precision="ms").status == 204
        if pages == 5:
            assert run("delete", "zz", "n=7", "--start", "0", "--end", "10", "--yes", "--server",
                       server.url).returncode == 0
    title, *lines = text.splitlines(True)
    assert len(lines) == len(set(lines))
    mine = [line for line in lines if not re.match("a[0-9]+,new=1 |zz", line)]
    assert title + "".join(mine) == samples.lines()
    assert sum(line.startswith("zz,") for line in lines) in (2999, 3000)


def test_queries_go_first(server):
    """An export rests while reads of queries run, and ends all the same."""
    samples = random_samples(50000, seed=7)
    samples.send(server)
    begun = time.monotonic()
    process = subprocess.Popen([granary(), "export", "--server", server.url, "--page", "1000"],
                               stdout=subprocess.PIPE, text=True)
    asked = 0
    while process.poll() is None and time.monotonic() < begun + 1:
        assert server.get("/api/query", metricName="x", start="0").status == 200
        asked += 1
        if asked > 50:
            break
    assert process.communicate()[0] == samples.lines()
    assert process.returncode == 0


def test_what_retention_hides(make_server):
    """A retention that was made shorter hides what the disk still has, in exports as in queries."""
    server = make_server()
    server.start()
    now_ms = int(time.time() * 1000)
    day_ms = 86400000
    for metric in ("cpu", "mem"):
        for days in (1, 3, 5):
            assert server.write(f"{metric} value={days}i {now_ms - days * day_ms}\n",
                                precision="ms").status == 204
    server.stop()
    server.options = ["--retention.raw=4d", "--retention.rules=*/mem/raw:2d"]
    server.start()
    assert [line.split()[:2] for line in all_pages(server).splitlines()[1:]] == [
        ["cpu", "value=3i"], ["cpu", "value=1i"], ["mem", "value=1i"]]


def test_an_export_does_not_go_on_from_another_server(make_server, tmp_path):
    """The file had pages of both."""
    first, second = make_server("one"), make_server("two")
    first.start()
    second.start()
    random_samples(20000, seed=8).send(first)
    to = tmp_path / "out"
    process = subprocess.Popen([granary(), "export", "--server", first.url, "--to", str(to),
                                "--page", "50"], stderr=subprocess.DEVNULL)
    eventually(lambda: to.exists() and to.stat().st_size, "the export gets on")
    process.kill()
    process.wait()
    had, state = to.read_bytes(), tmp_path / "out.state"
    done = run("export", "--server", second.url, "--to", to, "--page", "50")
    assert (done.returncode, done.stderr) == (
        1, f"granary export: {state} is of an export with the server {first.url}, not "
           f"{second.url}; --server names that one, and without {state} the export begins at the "
           "start\n")
    assert (to.read_bytes(), state.exists()) == (had, True)
    assert run("export", "--server", first.url, "--to", to, "--page", "50").returncode == 0
    assert to.read_text() == all_pages(first)


def test_a_socket_has_one_name(server, tmp_path):
    """The command may be given again from another folder."""
    assert run("export", "--server", f"unix:{server.folder}/none.sock", "--to",
               tmp_path / "out").returncode == 1
    state = tmp_path / "out.state"
    path = server.folder / "data" / "granary.sock"
    state.write_text(state.read_text().replace(f"{server.folder}/none.sock", str(path)))
    (tmp_path / "below").mkdir()
    done = run("export", "--server", f"unix:{os.path.relpath(path, tmp_path / 'below')}", "--to",
               tmp_path / "out", cwd=tmp_path / "below")
    assert done.returncode == 0, done.stderr
