"""Roll-ups on the real server, with slots of four seconds."""

import json
import time

import pytest

from rollups import (LONG_AGO, SHORT, lines, rollup, state, stored, until,
                     until_nothing_waits)
from server import PATIENCE_S, eventually, run, running


@pytest.fixture
def short(make_server):
    with running(make_server(options=SHORT)) as server:
        yield server


# ---- What is rolled up


def test_lines_are_rolled_up(short):
    """Seconds 0 to 7 are two slots; pairs of seconds have sums 1, 5, 9, 13."""
    assert short.write(lines("m", range(8))).status == 204
    said = until_nothing_waits(short)
    assert said["behindMs"] == 0 and said["oldestSlot"] is None and not said["cut"]
    assert said["lastPass"]["error"] is None
    # A mark may be taken up by a pass before the one that was last: rows are counted over all.
    assert short.metric("granary_rollup_rows_total") == 8 + 4
    assert short.metric("granary_rollup_series_total") == 2
    assert list(stored(short, "m", "sum", "2s").values()) == [1, 5, 9, 13]
    assert list(stored(short, "m", "max", "1s").values()) == [0, 1, 2, 3, 4, 5, 6, 7]
    tables = short.get("/api/stats").json
    assert "data_downsampled" in json.dumps(tables)
    of_m = short.get("/api/metadata/metric", tenant="default", metricName="m").json
    assert of_m["aggregators"] == ["avg", "count", "max", "min", "raw", "sum"]


def test_a_late_point_is_taken_in(short):
    assert short.write(lines("m", [0, 1])).status == 204
    until_nothing_waits(short)
    assert list(stored(short, "m", "sum", "2s").values()) == [1]
    assert short.write(f"m,h=0 value=10 {LONG_AGO}500000000").status == 204
    until_nothing_waits(short)
    assert list(stored(short, "m", "sum", "2s").values()) == [11]


def sums(server, metric, tenant="default"):
    """By windows of 2 s, and what served them."""
    answer = server.get("/api/query", tenant=tenant, metricName=metric, start=LONG_AGO,
                        end=LONG_AGO + 8, fn="sum", window="2s")
    assert answer.status == 200, answer
    found = answer.json
    return list(found[0]["values"].values()) if found else [], answer.headers["X-Granary-Grain"]


def test_what_was_put_is_in_answers_before_a_pass_knows_of_it(make_server):
    """The first pass found nothing, and another one comes in an hour only."""
    server = make_server(options=[*SHORT, "--rollup.every=1h"])
    server.start()
    until(server, lambda said: said["lastPass"], "pass")
    assert server.write(lines("m", range(8)) + lines(r"a\,b\=c", range(8))).status == 204
    assert sums(server, "m") == sums(server, "a,b=c") == ([1, 5, 9, 13], "raw")
    server.stop()


def test_a_late_point_is_in_answers_at_once_and_slows_down_no_other_metric(make_server):
    """What was rolled up has a late point; the quiet time is so long then that it stays behind."""
    server = make_server(options=[*SHORT])
    server.start()
    of_others = lines("n", range(8)) + lines("m,tenant=other", range(8))
    assert server.write(lines("m", range(8)) + of_others).status == 204
    until_nothing_waits(server)
    server.stop()
    server.options.append("--rollup.quiet=1h")
    server.start()
    until(server, lambda said: said["lastPass"], "pass")
    assert sums(server, "m") == ([1, 5, 9, 13], "2s")
    assert server.write(f"m,h=0 value=10 {LONG_AGO + 4}500000000\n").status == 204

    def check():
        assert sums(server, "m") == ([1, 5, 19, 13], "2s until 2020-09-13T12:26:44Z, raw")
        assert sums(server, "n") == sums(server, "m", "other") == ([1, 5, 9, 13], "2s")

    check()
    until(server, lambda said: said["lastPass"]["waiting"] == 1, "pass that saw it")
    check()
    server.kill()
    server.start()
    until(server, lambda said: said["lastPass"], "pass")
    check()
    server.stop()


def test_host_metrics_are_rolled_up(make_server):
    server = make_server(options=[*SHORT, "--host.interval=1s"], host_metrics=True)
    server.start()
    until(server, lambda said: said["lastPass"] and said["lastPass"]["rolledUp"] > 0, "roll-up")
    found = server.query("SystemMetrics.LoadAverage.1", tenant="host", start="1h-ago",
                         aggregator="avg", granularity="2s")
    assert found and found[0]["values"]
    server.stop()


def test_nothing_is_lost_by_a_kill(short):
    """500 series in 5 slots; killed as soon as some of them have their rows."""
    assert short.write(lines("m", range(20), series=500)).status == 204
    until(short, lambda _: short.metric("granary_rollup_rows_total") > 0, "row")
    short.kill()
    short.start()
    until_nothing_waits(short)
    found = short.query("m", start=LONG_AGO, end=LONG_AGO + 60, aggregator="sum", granularity="2s")
    assert len(found) == 500
    wanted = [2 * s + 1 for s in range(0, 20, 2)]
    assert all(list(one["values"].values()) == wanted for one in found)


# ---- What the operator sees


def test_what_waits_is_shown(make_server):
    """The quiet time is long here, so all waits; three slots, of 2, 1 and 1 series."""
    server = make_server(options=[*SHORT[:2], "--rollup.quiet=1h", "--retention.raw=0"])
    server.start()
    assert server.write(lines("m", [0], series=2) + lines("m", [4, 9])).status == 204
    said = state(server)
    assert [(s["slot"], s["series"], s["ready"], s["counted"]) for s in said["pending"]] == [
        (LONG_AGO * 1000, 2, 0, True), (LONG_AGO * 1000 + 4000, 1, 0, True),
        (LONG_AGO * 1000 + 8000, 1, 0, True)]
    assert said["oldestSlot"] == LONG_AGO * 1000
    # Of a time long ago, but nothing is ready yet: nothing is late.
    assert said["behindMs"] == 0
    assert server.metric("granary_rollup_behind_seconds") == 0
    rows = dict(line.split(",", 1) for line in rollup(server, "status").stdout.splitlines())
    assert rows["behind"] == "0s; the oldest slot that waits is 2020-09-13T12:26:40Z"
    ready = said["pending"][1]["readyAt"] / 1000
    assert ready == pytest.approx(time.time() + 3600, abs=60)
    done = rollup(server, "pending")
    assert (done.returncode, done.stderr) == (0, "")
    rows = [row.split(",") for row in done.stdout.splitlines()]
    assert rows[0] == ["slot", "behind", "partitions", "series", "ready", "ready at"]
    assert [(row[0], row[1], row[3], row[4]) for row in rows[1:]] == [
        ("2020-09-13T12:26:40Z", "0s", "2", "0"), ("2020-09-13T12:26:44Z", "0s", "1", "0"),
        ("2020-09-13T12:26:48Z", "0s", "1", "0")]
    done = rollup(server, "pending", "--limit", "1")
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ("granary rollup pending: there are later slots; --limit gives up to "
                           "1000\n")
    assert state(server, limit=1)["cut"]
    assert json.loads(rollup(server, "pending", "-o", "json").stdout)["cut"] is False
    server.stop()


def test_who_rolls_nothing_up_has_a_name_too(make_server):
    server = make_server(options=["--rollup.granularities=", "--rollup.name=h1"])
    server.start()
    rows = dict(line.split(",", 1) for line in rollup(server, "status").stdout.splitlines())
    assert rows["granularities"] == "none: nothing is rolled up"
    assert rows["partitions"] == (
        '"1, numbered from 0; h1 may roll up: none; rolls up now: none"')
    server.stop()


def test_how_it_is_configured_is_shown(make_server):
    server = make_server(options=[
        "--rollup.granularities=5m:14d,1h:365d,12h", "--rollup.slot=12h", "--rollup.own=0,5-8",
        "--rollup.partitions=16", "--rollup.name=h1", "--rollup.counter_suffixes=_total,reads"])
    server.start()
    said = until(server, lambda said: said["lastPass"], "pass")
    day = 86400000
    assert said["granularities"] == [
        {"width": "5m", "widthMs": 300000, "retentionMs": 14 * day},
        {"width": "1h", "widthMs": 3600000, "retentionMs": 365 * day},
        {"width": "12h", "widthMs": 12 * 3600000, "retentionMs": 0}]
    assert (said["slotMs"], said["quietMs"]) == (12 * 3600000, 300000)
    assert (said["partitions"], said["own"], said["held"]) == (16, "0,5-8", "0,5-8")
    assert (said["name"], said["counterSuffixes"]) == ("h1", ["_total", "reads"])
    assert said["error"] is None and said["lastPass"]["rolledUp"] == 0
    rows = dict(line.split(",", 1) for line in rollup(server, "status").stdout.splitlines())
    assert rows["granularities"] == '"5m for 14d, 1h for 365d, 12h for ever"'
    assert rows["slots"] == '"12h, rolled up after 5m without a sample"'
    assert rows["partitions"] == (
        '"16, numbered from 0; h1 may roll up: 0,5-8; rolls up now: 0,5-8"')
    assert rows["behind"] == "nothing waits" and rows["error"] == "-"
    server.stop()


@pytest.mark.parametrize("path, sentence", [
    ("/api/rollups?limit=0", "limit \"0\" is not a number from 1 to 1000"),
    ("/api/rollups?slots=1", "unknown parameter \"slots\""),
])
def test_a_wrong_question(server, path, sentence):
    answer = server.get(path)
    assert answer.status == 400 and answer.json["error"]["message"] == sentence, answer


# ---- Marks made again


def rebuilt(server, *options):
    done = rollup(server, "rebuild", *options)
    assert (done.returncode, done.stderr) == (0, ""), done
    titles, row = done.stdout.splitlines()
    return dict(zip(titles.split(","), row.split(",")))


def test_marks_are_made_again_after_they_were_lost(make_server):
    """What is written while nothing is rolled up has no marks: as if all had been lost."""
    server = make_server(options=["--rollup.granularities="])
    server.start()
    assert server.write(lines("m", range(12), series=3) + lines("n", [0])).status == 204
    server.stop()
    server.options = SHORT
    server.start()
    until(server, lambda said: said["lastPass"], "pass")
    assert not state(server)["pending"]
    counted = rebuilt(server, "--dry-run")
    assert [counted[k] for k in ("series", "marked", "slots", "marks", "failed")] == [
        "4", "4", "3", "10", "0"]
    assert not state(server)["pending"]
    assert rebuilt(server, "--metric", "n", "--tenant", "default")["marks"] == "1"
    made = rebuilt(server, "--metric", "m", "--from", str(LONG_AGO + 5), "--to",
                   str(LONG_AGO + 8))
    assert (made["from"], made["to"], made["marks"]) == (
        "2020-09-13T12:26:44Z", "2020-09-13T12:26:48Z", "3")
    until_nothing_waits(server)
    found = server.query("m", start=LONG_AGO, end=LONG_AGO + 60, aggregator="sum", granularity="2s")
    assert [list(one["values"].values()) for one in found] == [[9, 13]] * 3
    assert rebuilt(server)["marks"] == "10"
    until_nothing_waits(server)
    found = server.query("m", start=LONG_AGO, end=LONG_AGO + 60, aggregator="sum", granularity="2s")
    assert [list(one["values"].values()) for one in found] == [[1, 5, 9, 13, 17, 21]] * 3
    server.stop()


def asked(server):
    """The answer by windows of 2 s, and what served it."""
    answer = server.get("/api/query", metricName="m", start=LONG_AGO, end=LONG_AGO + 12, fn="sum",
                        window="2s")
    assert answer.status == 200, answer
    return (list(answer.json[0]["values"].values()),
            [part.split(" ")[0] for part in answer.headers["X-Granary-Grain"].split(", ")])


def until_served_by(server, granularity):
    """Whatever serves it, the answer is the same."""
    def served():
        values, by = asked(server)
        assert values == [1, 5, 9, 13, 17, 21]
        return by == [granularity]
    eventually(served, lambda: (granularity, asked(server)))


def test_after_a_rebuild_of_all_queries_take_roll_ups(make_server):
    """Raw data is of a time before there were granularities. A rebuild of a part is not enough; one
    of everything counts, once for all."""
    server = make_server(options=["--rollup.granularities="])
    server.start()
    assert server.write(lines("m", range(12))).status == 204
    server.stop()
    server.options = SHORT
    server.start()
    assert rebuilt(server, "--metric", "m")["marks"] == "3"
    assert rebuilt(server, "--from", str(LONG_AGO))["marks"] == "3"
    assert rebuilt(server, "--dry-run")["marks"] == "3"
    until_nothing_waits(server)
    passes = server.metric("granary_rollup_passes_total")
    until(server, lambda _: server.metric("granary_rollup_passes_total") > passes + 1, "pass")
    assert asked(server) == ([1, 5, 9, 13, 17, 21], ["raw"])
    assert rebuilt(server)["marks"] == "3"
    until_served_by(server, "2s")
    server.kill()
    server.start()
    until_served_by(server, "2s")
    server.stop()


@pytest.mark.parametrize("options, sentence", [
    (["--from", "now", "--to", "1h-ago"], "from is not before to"),
    (["--tenant", "a b"], "tenant \"a b\" is not 1 to 64 of A-Za-z0-9_.-"),
    (["--from", "yesterday"], "from: "),
    (["--from", "20d-ago", "--to", "10d-ago"], "no slot in that time has all of its raw data"),
])
def test_what_cannot_be_marked_again(make_server, options, sentence):
    server = make_server(options=["--retention.raw=7d"])
    server.start()
    done = rollup(server, "rebuild", *options)
    assert done.returncode == 1 and done.stdout == ""
    assert sentence in done.stderr and done.stderr.startswith("granary rollup rebuild: "), done
    server.stop()


# ---- What is a counter


def grown(server, metric, fn):
    return list(server.values(metric, start=LONG_AGO, end=LONG_AGO + 60, fn=fn,
                              window="4s").values())


def test_a_gauge_that_is_a_counter_now(make_server):
    """0, 1, 2 ... 11 a second: slots of 4 s grow by 3, then by 4 each. Rolled up as a gauge's and
    the other way round, they are what raw data says, before they are made again and after."""
    server = make_server(options=SHORT)
    server.start()
    assert server.write("".join(lines(metric, range(12))
                                for metric in ("bytes", "x_total", "m"))).status == 204
    until_nothing_waits(server)
    assert "counter_suffixes" not in server.log_text()
    server.stop()
    server.options = [*SHORT, "--rollup.counter_suffixes=bytes"]
    server.start()
    assert "rollup.counter_suffixes has changed for *_total, *bytes: " in server.log_text()
    for _ in range(2):
        assert grown(server, "bytes", "increase") == [3, 4, 4]
        assert grown(server, "x_total", "max") == [3, 7, 11]
        assert grown(server, "x_total", "count") == [4, 4, 4]
        assert rebuilt(server)["marks"] == "9"
        until_nothing_waits(server)
    assert list(stored(server, "bytes", "increase", "2s").values()) == [1] * 6
    until(server, lambda _: sums(server, "bytes")[1] == sums(server, "m")[1], "use of roll-ups")
    assert sums(server, "bytes")[0] == [1, 5, 9, 13]
    server.stop()


def test_a_counters_growth_by_buckets_of_a_gauge(make_server):
    """When raw data is gone: from the first to the last of each bucket, and the steps between."""
    server = make_server(options=SHORT)
    server.start()
    assert server.write(lines("bytes", range(12))).status == 204
    until_nothing_waits(server)
    server.stop()
    server.options = [*SHORT, "--retention.raw=6s", "--rollup.counter_suffixes=bytes"]
    server.start()
    assert grown(server, "bytes", "increase") == [3, 4, 4]
    assert grown(server, "bytes", "max") == []
    server.stop()


# ---- Late points

KEPT = [*SHORT, "--retention.raw=6s", "--rollup.late=keep"]


def late(*seconds_and_values):
    return "".join(f"m,h=0 value={value} {LONG_AGO * 1000 + round(second * 1000)}000000\n"
                   for second, value in seconds_and_values)


@pytest.fixture
def kept(make_server):
    """0, 1, 2, 3 of seconds 0 to 3 are rolled up; then their raw data is too old to be kept, and
    late points are."""
    with running(make_server(options=SHORT)) as server:
        assert server.write(lines("m", range(4))).status == 204
        until_nothing_waits(server)
    server.options = KEPT
    with running(server):
        yield server


def sums_and_counts(server):
    return [list(stored(server, "m", name, "2s").values()) for name in ("sum", "count")]


def test_late_points_are_kept_beside(kept):
    """10 for second 0.5 and -5 for 5.5: of the pairs of seconds 0 and 1 the sum is 11, of three;
    of 4 and 5 there is nothing else."""
    assert sums_and_counts(kept) == [[1, 5], [2, 2]]
    rows = dict(line.split(",", 1) for line in rollup(kept, "status").stdout.splitlines())
    assert rows["late"] == "kept for ever"
    assert kept.write(late((0.5, 10), (5.5, -5))).status == 204
    assert kept.metric("granary_ingest_late_total") == 2
    until_nothing_waits(kept)
    assert sums_and_counts(kept) == [[11, 5, -5], [3, 2, 1]]
    assert list(stored(kept, "m", "max", "2s").values()) == [10, 3, -5]
    assert list(stored(kept, "m", "min", "1s").values()) == [0, 1, 2, 3, -5]
    # By windows of 4 s, and as points: what is old is buckets of a second.
    by_window = kept.values("m", start=LONG_AGO, end=LONG_AGO + 60, fn="avg", window="4s")
    assert list(by_window.values()) == [3.2, -5]
    assert list(kept.values("m", start=LONG_AGO, end=LONG_AGO + 60).values()) == [5, 1, 2, 3, -5]
    # What comes once more changes nothing.
    assert kept.write(late((0.5, 10), (5.5, -5))).status == 204
    until_nothing_waits(kept)
    assert sums_and_counts(kept) == [[11, 5, -5], [3, 2, 1]]


def test_late_points_survive_what_is_done_to_the_rest(kept):
    """A rebuild of all, once raw data is to be kept for longer, takes that of before for gone; and
    those who refuse late points from now on show those that there are."""
    assert kept.write(late((0.5, 10))).status == 204
    kept.kill()
    kept.start()
    until_nothing_waits(kept)
    assert sums_and_counts(kept) == [[11, 5], [3, 2]]
    # The only slot has no raw data that counts, but a late sample.
    assert rebuilt(kept)["marks"] == "1"
    until_nothing_waits(kept)
    assert sums_and_counts(kept) == [[11, 5], [3, 2]]
    kept.stop()
    kept.options = SHORT
    kept.start()
    # What the slot's raw data was kept for is over, and is over still.
    assert rebuilt(kept)["marks"] == "1"
    until_nothing_waits(kept)
    assert sums_and_counts(kept) == [[11, 5], [3, 2]]
    kept.stop()
    kept.options = [*SHORT, "--retention.raw=6s"]
    kept.start()
    rows = dict(line.split(",", 1) for line in rollup(kept, "status").stdout.splitlines())
    assert rows["late"] == "refused"
    answer = kept.write(late((1.5, 10)))
    assert answer.status == 400 and "is older than the retention of 6 s" in answer.text
    assert sums_and_counts(kept) == [[11, 5], [3, 2]]


def test_late_points_are_shown_by_their_class(kept):
    """Two of them, kept for ever as the longest granularity is."""
    assert kept.write(late((0.5, 10), (5.5, -5))).status == 204
    done = run("retention", "show", "--server", kept.url)
    rows = [row.split(",") for row in done.stdout.splitlines() if ",late," in row]
    assert [row[:8] for row in rows] == [["default", "m", "late", "ever", "-", "ever", "1", "2"]]


def test_late_points_of_many_are_kept_over_a_kill(kept):
    """300 series, killed as soon as some of them have rows of what came late."""
    text = "".join(f"m,h={h} value=7 {LONG_AGO}500000000\n" for h in range(300))
    assert kept.write(text).status == 204
    until(kept, lambda _: kept.metric("granary_rollup_rows_total") > 0, "row")
    kept.kill()
    kept.start()
    until_nothing_waits(kept)
    found = kept.query("m", start=LONG_AGO, end=LONG_AGO + 60, aggregator="sum", granularity="2s")
    assert sorted(list(one["values"].values())[0] for one in found) == [7] * 299 + [8]


def test_too_late_for_every_granularity(make_server):
    server = make_server(options=[*SHORT[:1], "--rollup.granularities=1s:1h", *KEPT[2:]])
    server.start()
    answer = server.write(lines("m", [0]))
    assert answer.status == 400
    assert "is too old to be kept: what is late goes after 3600 s" in answer.text
    server.stop()


# ---- Who has which partitions


def test_a_file_says_which_host_has_what(make_server):
    server = make_server(options=["--rollup.own_by_host", "owners.json", "--rollup.name", "h2",
                                  "--rollup.partitions", "64"])
    owners = server.folder / "owners.json"
    owners.write_text('{"h1": "0-31", "h2": "32-60"}')
    server.options[1] = owners
    server.start()
    until(server, lambda said: (said["own"], said["held"]) == ("32-60", "32-60"), "lease")
    assert "no host has the partitions 61-63" in server.log_text()
    server.stop()
    server.options[3] = "h3"
    server.start()
    assert state(server)["own"] == state(server)["held"] == ""
    server.stop()
    # A list says more than the file.
    server.options += ["--rollup.own", "1-2"]
    server.start()
    until(server, lambda said: said["held"] == "1-2", "lease")
    server.stop()


# ---- Bad input


@pytest.mark.parametrize("config, sentence", [
    ("  granularities: 5m:14d,7m", "granary.yml:2: rollup.granularities: a slot of 1h is no "
     "multiple of the granularity 7m"),
    ("  granularities: 20m,30m", "granary.yml:2: rollup.granularities: the granularity 30m is no "
     "multiple of the one before it, 20m"),
    ("  granularities: [1h, 5m]", "granary.yml:2: rollup.granularities: the granularity 5m stands "
     "behind 1h: the finer ones go first"),
    ("  granularities: 0s", "granary.yml:2: rollup.granularities: \"0s\": a width is whole "
     "seconds, one at least"),
    ("  granularities: -5m", "granary.yml:2: rollup.granularities: \"-5m\": "),
    ("  granularities: 1mo", "granary.yml:2: rollup.granularities: \"1mo\": months and years have "
     "no one length"),
    ("  slot: 1d\n  granularities: 5m:12h", "granary.yml:3: rollup.granularities: the granularity "
     "5m is kept for less than a slot of 1d"),
    ("  slot: 0s", "granary.yml:2: rollup.slot: "),
    ("  slot: 90m", "granary.yml:2: rollup.slot: a slot of 1h30m is no multiple of the granularity "
     "1h"),
    ("  slot: 1500ms\n  granularities: 1s", "granary.yml:2: rollup.slot: a slot is whole seconds "
     "wide, one at least"),
    ("  granularities: 5m:36501d", "granary.yml:2: rollup.granularities: \"36501d\" is above the "
     "maximum of 36500d"),
    ("  slot: -1h", "granary.yml:2: rollup.slot: "),
    ("  own: 0,5-8,7\n  partitions: 64", "granary.yml:2: rollup.own: 7 stands twice"),
    ("  own: 0-64\n  partitions: 64", "granary.yml:2: rollup.own: 64 is no partition: there are "
     "64, from 0"),
    ("  own: all", "granary.yml:2: rollup.own: \"all\" is no list of partitions such as 0,5-8,12"),
    ("  own_by_host: /nonexistent", "granary.yml:2: rollup.own_by_host: /nonexistent: "),
    ("  quiet: 1s", "granary.yml:2: rollup.quiet: a quiet time of 1s is too short"),
    ("  slot: 1d\nretention:\n  raw: 1d", "granary.yml:4: retention.raw: raw samples have to be "
     "kept for 1450m at least"),
    ("  late: keep\n  granularities: 5m:14d\nretention:\n  raw: 14d", "granary.yml:2: rollup.late: "
     "late samples would be kept for 14d, as long as the longest granularity, and raw "
     "samples are kept for 14d"),
    ("  late: maybe", "granary.yml:2: rollup.late: "),
    # It is named what somebody has set, where it is.
    ("  partitions: 1\ningest:\n  wait_max: 10m", "granary.yml:4: ingest.wait_max: a quiet time of "
     "5m is too short: a write may take 50m and clocks may differ by 10s, so 3763s is the least"),
    ("  lease: 39s", "granary.yml:2: rollup.lease: a lease of 39s is too short where clocks may "
     "differ by 10s: four times that is the least"),
    ("  clock_difference: 31s", "granary.yml:2: rollup.clock_difference: a lease of 2m is too "
     "short where clocks may differ by 31s"),
    ("  granularities:\n    - 5m:14d\n    - 7m:1y", "granary.yml:4: rollup.granularities: a slot "
     "of 1h is no multiple of the granularity 7m"),
    ("  foo: 1s", "granary.yml:2: rollup.foo is not an option\n"),
])
def test_refused_at_the_start(make_server, config, sentence):
    server = make_server(config=f"rollup:\n{config}\n")
    server.spawn()
    assert server.process.wait(PATIENCE_S) == 2
    assert sentence in server.log_text(), server.log_text()
    assert not server.data.exists()


def test_hosts_that_overlap_are_refused(make_server):
    server = make_server()
    owners = server.folder / "owners.json"
    owners.write_text('{"h1": "0-31",\n "h2": "31-63"}')
    server.options = ["--rollup.own_by_host", owners, "--rollup.partitions", "64"]
    server.spawn()
    assert server.process.wait(PATIENCE_S) == 2
    assert f"{owners}:2: h2: 31 belongs to h1 already, {owners}:1" in server.log_text()
