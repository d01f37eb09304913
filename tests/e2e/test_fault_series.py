"""How many fault reports came in each minute, as the metrics faults and fault_groups: whatever is
killed, and however late a report comes. The server's clocks are set while it serves."""

import collections
import random
import time

import pytest

from server import eventually
from test_clock import HOOK, ClockServer
from test_fault_gc import go_on
from test_fault_groups import send
from test_oops import command, pages

DAY_S = 86400
# query.timeout and rollup.clock_difference: then nothing more is expected of a minute.
LATE_S = 60 + 10


@pytest.fixture
def server(tmp_path):
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "fault:\n  series_max: 12\n")
    server.start()
    server.pass_awake(DAY_S + DAY_S // 2 - int(time.time()) % DAY_S)  # far from midnight
    yield server
    server.kill()


def samples(server, metric):
    """{(tags, minute): value} of all series, also of what lies after the server's now."""
    return {(tuple(sorted(series["tags"].items())), minute): value
            for series in server.query(metric, start=0, end=int(time.time()) + 7 * DAY_S)
            for minute, value in series["values"].items()}


def names_of(report):
    return tuple((key, report[key]) for key in ("context", "exception", "release")
                 if report.get(key))


def expected(server):
    """Of faults and of fault_groups, by the list of all reports."""
    names, groups = collections.Counter(), collections.Counter()
    for report in pages(server, limit=1000):
        minute = time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime(report["date"] / 1000))
        names[names_of(report), minute] += 1
        groups[(("group", report["group"]),), minute] += 1
    return names, groups


def are_written(server):
    return (samples(server, "faults"), samples(server, "fault_groups")) == expected(server)


def made(chance, first, count):
    for n in range(first, first + count):
        yield {"id": f"OOPS-{n:05}", "fingerprint": [f"{chance.randrange(5)}"],
               "context": chance.choice(["/a", "/b", ""]), "exception": chance.choice("XY"),
               "release": chance.choice(["1.0", ""])}


def test_minutes_are_counted(server):
    """Through kills; a minute is given once it is over for long enough, and not before."""
    chance = random.Random(7)
    for minute in range(4):
        send(server, list(made(chance, 100 * minute, 50)))
        server.pass_awake(60)
        if minute == 2:
            server.kill()
            server.start()
    assert sum(expected(server)[0].values()) == 200
    server.pass_awake(LATE_S + 60)
    eventually(lambda: are_written(server))
    rows = command(server, "list", "-o", "csv").stdout  # the reports are as they were
    assert rows.count("OOPS-") >= 100


def test_a_minute_that_is_not_over_is_not_there(server):
    """Two reports of minutes that follow each other: when the first is there, the second is not."""
    server.pass_awake(65 - int(time.time() + server.wall_s) % 60)  # five seconds into a minute
    send(server, [{"id": "a", "exception": "X"}])
    server.pass_awake(60)
    send(server, [{"id": "b", "exception": "Y"}])
    server.pass_awake(LATE_S)
    eventually(lambda: samples(server, "faults"))
    assert {tags for tags, _ in samples(server, "faults")} == {(("exception", "X"),)}
    server.pass_awake(60)
    eventually(lambda: are_written(server))


def test_a_late_report_is_counted(server):
    """The clock is set back by ten minutes, so reports come for minutes that were given."""
    for n in range(15):
        send(server, [{"id": f"a{n}", "exception": "X", "fingerprint": ["f"]}])
        server.pass_awake(60)
    server.pass_awake(LATE_S)
    eventually(lambda: are_written(server))
    server.set_wall(server.wall_s - 600)
    send(server, [{"id": "late", "exception": "X", "fingerprint": ["f"]},
                  {"id": "later", "exception": "Y", "fingerprint": ["g"]}])
    server.pass_awake(LATE_S + 60)  # that minute is over for the second time
    eventually(lambda: are_written(server))
    assert max(samples(server, "faults").values()) == 2  # a report of before, and `late`
    server.kill()
    server.start()
    assert are_written(server)


@pytest.mark.parametrize("restart", [False, True])
def test_names_beyond_the_maximum_are_one_rest(server, restart):
    """12 series of each metric, as fault.series_max says, and one more for the rest."""
    send(server, [{"id": f"a{n}", "exception": f"X{n}", "fingerprint": [f"{n}"]}
                  for n in range(10)])
    server.pass_awake(LATE_S + 120)
    eventually(lambda: are_written(server))
    if restart:
        server.stop()
        server.start()
    send(server, [{"id": f"b{n}", "exception": f"X{n}", "fingerprint": [f"{n}"]}
                  for n in range(30)])
    server.pass_awake(LATE_S + 120)
    for metric in "faults", "fault_groups":
        eventually(lambda metric=metric: sum(samples(server, metric).values()) == 40)
        by_series = collections.Counter()
        for (tags, _), value in samples(server, metric).items():
            by_series[tags] += value
        rest = by_series.pop((("rest", "true"),))
        # The ten of the first minute count on, with two others; eighteen have no series.
        assert rest == 18
        assert sorted(by_series.values()) == [1, 1] + [2] * 10


def test_a_text_that_is_no_tag(server):
    """A context with a line break cannot be a tag."""
    send(server, [{"id": "a", "context": "one\ntwo", "exception": "X"}])
    server.pass_awake(LATE_S + 120)
    eventually(lambda: sum(samples(server, "faults").values()) == 1)
    assert {tags for tags, _ in samples(server, "faults")} == {(("rest", "true"),)}


def test_what_the_catalog_refuses_is_of_the_rest(tmp_path):
    """A value of a tag has up to 20 bytes here, and an exception 30."""
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "catalog:\n  value_max: 20\n")
    server.start()
    try:
        server.pass_awake(DAY_S + DAY_S // 2 - int(time.time()) % DAY_S)
        send(server, [{"id": f"a{n}", "exception": "X" * 30, "fingerprint": ["f"]}
                      for n in range(3)])
        send(server, [{"id": "b", "exception": "Y", "fingerprint": ["g"]}])
        server.pass_awake(LATE_S + 120)
        eventually(lambda: len(samples(server, "faults")) == 2)
        assert {tags: value for (tags, _), value in samples(server, "faults").items()} == {
            (("rest", "true"),): 3, (("exception", "Y"),): 1}
        assert "counted in the series rest=true" in server.log_text()
    finally:
        server.kill()
