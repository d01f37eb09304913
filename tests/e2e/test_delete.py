"""Deleting samples and their roll-ups on the real server, with slots of four seconds."""

import concurrent.futures
import json

import pytest

from rollups import LONG_AGO, SHORT, lines, until_nothing_waits
from server import PATIENCE_S, eventually, run, running


@pytest.fixture
def short(make_server):
    with running(make_server(options=SHORT)) as server:
        yield server


def delete(server, metric="m", **params):
    answer = server.request("POST", "/api/delete", metricName=metric, **params)
    assert answer.status == 200, answer
    return answer.json


def span(first, end):
    return {"start": LONG_AGO + first, "end": LONG_AGO + end}


def counts(said):
    return (said["series"], said["samples"], [g["rows"] for g in said["rollups"]], said["slots"],
            said["forgotten"])


def stored(server, metric="m", *tags, **params):
    """Of each series its values, from LONG_AGO on."""
    found = server.query(metric, *tags, start=LONG_AGO, end=LONG_AGO + 4000, **params)
    return {one["tags"].get("h"): list(one["values"].values()) for one in found}


def sums_of_pairs(server, metric="m"):
    return stored(server, metric, aggregator="sum", granularity="2s")


# ---- What goes


def test_what_is_counted_is_what_goes(short):
    """Of seconds 0 to 19 those from 3 to 8 go: of pairs 4 and 6 as a whole, of 2 and 8 a half."""
    assert short.write(lines("m", range(20), series=3)).status == 204
    until_nothing_waits(short)
    wanted = (2, 12, [12, 4], 6, 0)
    params = {"tag": "h=0|1", **span(3, 9)}
    assert counts(delete(short, dryRun="true", **params)) == wanted
    assert stored(short)["0"] == list(range(20))
    assert counts(delete(short, **params)) == wanted
    assert counts(delete(short, **params)) == (2, 0, [0, 0], 0, 0)
    left = [s for s in range(20) if not 3 <= s < 9]
    assert stored(short) == {"0": left, "1": left, "2": list(range(20))}
    until_nothing_waits(short)
    pairs = [1, 2, 9] + [2 * s + 1 for s in range(10, 20, 2)]
    assert sums_of_pairs(short) == {"0": pairs, "1": pairs,
                                    "2": [2 * s + 1 for s in range(0, 20, 2)]}
    assert stored(short, aggregator="max", granularity="1s")["0"] == left
    assert stored(short, fn="sum", window="2s")["0"] == pairs
    assert short.metric("granary_delete_samples_total", table="raw") == 12
    assert short.metric("granary_delete_samples_total", table="downsampled") == 16
    assert "2 series, 12 samples, 0 late ones, 16 rows of roll-ups deleted" in short.log_text()
    assert short.get("/api/verify").json["problems"] == 0


def names(server, path, **params):
    answer = server.get(path, **params)
    assert answer.status == 200, answer
    return answer.json


def test_series_that_go_as_a_whole_come_back_when_they_are_written(short):
    assert short.write(lines("m", range(8), series=2) + lines("n", range(4))).status == 204
    until_nothing_waits(short)
    assert counts(delete(short, all="true", dryRun="true")) == (2, 16, [16, 8], 0, 2)
    assert counts(delete(short, all="true")) == (2, 16, [16, 8], 0, 2)
    assert names(short, "/api/metadata/metricNames") == ["n"]
    assert names(short, "/api/suggest", type="metrics") == ["n"]
    assert names(short, "/api/metadata/series", metricName="m") == []
    assert names(short, "/api/search/lookup", m="m")["totalResults"] == 0
    assert stored(short) == {}
    assert short.write(lines("m", [9])).status == 204
    assert names(short, "/api/metadata/metricNames") == ["m", "n"]
    assert stored(short) == {"0": [9]}
    until_nothing_waits(short)
    assert sums_of_pairs(short) == {"0": [9]}
    short.restart()
    assert stored(short) == {"0": [9]}
    assert sums_of_pairs(short) == {"0": [9]}


def test_all_metrics_of_a_tenant(short):
    assert short.write(lines("m", range(4)) + lines("n", range(4)), tenant="default").status == 204
    assert short.write(lines("m", range(4)), {"X-Tenant": "other"}).status == 204
    answer = short.request("POST", "/api/delete", allMetrics="true", all="true")
    assert (answer.json["series"], answer.json["samples"]) == (2, 8)
    assert names(short, "/api/metadata/metricNames") == []
    assert names(short, "/api/metadata/metricNames", tenant="other") == ["m"]


def test_rows_whose_raw_data_has_expired_are_kept_where_they_are_cut(make_server):
    """The raw data is made to expire by keeping it for less."""
    server = make_server(options=SHORT)
    server.start()
    assert server.write(lines("m", range(8))).status == 204
    until_nothing_waits(server)
    server.stop()
    server.options += ["--retention.raw=1d"]
    server.start()
    said = delete(server, **span(1, 6))
    assert [(g["granularity"], g["rows"], g["kept"]) for g in said["rollups"]] == [
        ("1s", 5, 0), ("2s", 2, 1)]
    assert said["slots"] == 0
    assert sums_of_pairs(server) == {"0": [1, 13]}
    server.stop()


# ---- While other things happen


def test_what_is_killed_half_way_goes_on(make_server, monkeypatch):
    """600 series in 5 slots; killed in the third write."""
    server = make_server(options=SHORT)
    monkeypatch.setenv("GRANARY_FAULTS", "rollup_delete=kill@3")
    server.start()
    monkeypatch.delenv("GRANARY_FAULTS")
    assert server.write(lines("m", range(20), series=600)).status == 204
    until_nothing_waits(server)
    with pytest.raises(OSError):
        delete(server, **span(2, 17))
    server.kill()
    server.start()
    eventually(lambda: server.metric("granary_delete_runs_total", result="done"), server.log_tail)
    assert server.metric("granary_delete_resumed_total") == 1
    assert "continues: the last run was ended" in server.log_text()
    left = [0, 1, 17, 18, 19]
    assert stored(server) == {f"{h}": left for h in range(600)}
    until_nothing_waits(server)
    assert sums_of_pairs(server) == {f"{h}": [1, 17, 37] for h in range(600)}
    server.restart()
    assert server.metric("granary_delete_resumed_total") == 0
    assert stored(server) == {f"{h}": left for h in range(600)}
    server.stop()


def test_deleted_samples_do_not_come_back_by_a_kill(short):
    """What the journal holds of samples and of deletions is replayed in their order."""
    assert short.write(lines("m", range(20), series=50)).status == 204
    until_nothing_waits(short)
    delete(short, **span(0, 10))
    delete(short, "m", all="true", tag="h=1")
    short.kill()
    short.start()
    wanted = {f"{h}": list(range(10, 20)) for h in range(50) if h != 1}
    assert stored(short) == wanted
    until_nothing_waits(short)
    assert sums_of_pairs(short) == {h: [21, 25, 29, 33, 37] for h in wanted}


def test_deletions_while_samples_come_and_are_rolled_up(short):
    """One writes second after second, the other deletes every third slot behind it. What is left
    is known: the rest, as samples and as sums of pairs."""
    def write(server):
        for second in range(0, 240, 4):
            assert server.write(lines("m", range(second, second + 4), series=20)).status == 204

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        writer = type(short)(short.folder, options=short.options)
        writer.port = short.port
        writing = pool.submit(write, writer)
        for second in range(0, 240, 12):
            eventually(lambda: (stored(short, fn="last").get("19") or [0])[0] >= second + 3)
            delete(short, **span(second, second + 4))
        writing.result(PATIENCE_S)
        writer.close()
    # What was still on its way when its slot was deleted may be there.
    for second in range(0, 240, 12):
        delete(short, **span(second, second + 4))
    left = [s for s in range(240) if s % 12 >= 4]
    assert stored(short) == {f"{h}": left for h in range(20)}
    until_nothing_waits(short)
    pairs = [2 * s + 1 for s in left if s % 2 == 0]
    assert sums_of_pairs(short) == {f"{h}": pairs for h in range(20)}


# ---- What is refused


@pytest.mark.parametrize("params, sentence", [
    ({}, "metricName is missing; allMetrics=true means every metric"),
    ({"metricName": "m"}, "start is missing; all=true means all there is"),
    ({"metricName": "m", "start": "1"}, "end is missing; all=true means all there is"),
    ({"metricName": "m", "start": "2", "end": "1"},
     'start "2" does not lie before end "1"'),
    ({"metricName": "m", "start": "2", "end": "2"},
     'start "2" does not lie before end "2"'),
    ({"metricName": "m", "start": "x", "end": "2"}, "start: "),
    ({"metricName": "m", "all": "true", "end": "2"}, "all is given beside end"),
    ({"metricName": "m", "all": "yes"}, 'all is true or false, not "yes"'),
    ({"metricName": "m", "all": "true", "dryRun": "1"}, 'dryRun is true or false, not "1"'),
    ({"metricName": "m", "all": "true", "tag": "h"}, 'tag: "h" is not of the form key=value'),
    ({"metricName": "m", "all": "true", "allMetrics": "true"},
     "metricName and allMetrics are both given"),
    ({"metricName": "m", "all": "true", "tags": "h=1"}, "tags"),
    ({"metricName": "m", "all": "true", "tenant": "a b"}, 'tenant "a b" is not'),
    ({"metricName": "m", "all": "true", "tenant": "snmp"}, "granary device remove"),
])
def test_what_cannot_be_meant_is_refused(server, params, sentence):
    assert server.write(lines("m", [0])).status == 204
    answer = server.request("POST", "/api/delete", **params)
    assert answer.status == 400
    assert sentence in answer.json["error"]["message"]
    assert stored(server) == {"0": [0]}


def test_only_post_deletes(server):
    assert server.get("/api/delete", metricName="m", all="true").status == 405


# ---- The command


def granary_delete(server, *arguments, **options):
    return run("delete", "--server", server.url, *arguments, **options)


def test_the_command_counts_first(short):
    assert short.write(lines("m", range(8))).status == 204
    until_nothing_waits(short)
    arguments = ["m", "h=0", "--start", LONG_AGO, "--end", LONG_AGO + 4]
    table = ("what,count,kept\nseries,1,\nraw samples,4,\nlate samples,0,\nroll-ups of 1s,4,0\n"
             "roll-ups of 2s,2,0\nslots made again,1,\nseries gone,0,\n")
    done = granary_delete(short, *arguments, "--dry-run")
    assert (done.returncode, done.stdout, done.stderr) == (0, table, "")
    done = granary_delete(short, *arguments, stdin=None, input="")
    assert (done.returncode, done.stdout) == (1, table)
    assert done.stderr == "granary delete: nothing is deleted yet; --yes deletes it\n"
    assert stored(short) == {"0": list(range(8))}
    done = granary_delete(short, *arguments, "--yes", env={"USER": "ada"})
    assert (done.returncode, done.stdout, done.stderr) == (0, table, "")
    assert stored(short) == {"0": [4, 5, 6, 7]}
    assert "deletion by ada of tenant default, metric m, tag h=0, 2020-09-13T12:26:40Z to " \
        "2020-09-13T12:26:44Z: begins" in short.log_text()
    done = granary_delete(short, "--all-metrics", "--all", "--yes", "-o", "json")
    assert json.loads(done.stdout)["forgotten"] == 1
    done = granary_delete(short, "m", "--all", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "granary delete: no series matches\n")


@pytest.mark.parametrize("arguments, sentence", [
    ([], "a metric is missing; --all-metrics means every one"),
    (["m"], "--start is missing; --all means all there is"),
    (["m", "--start", "1"], "--end is missing; --all means all there is"),
    (["m", "--all", "--end", "1"], "--all is given beside --end"),
    (["m", "h", "--all"], '"h" is not TAG=VALUE'),
    (["--all-metrics", "m", "--all"], '"m" is not TAG=VALUE'),
])
def test_wrong_use_of_the_command(arguments, sentence):
    done = run("delete", *arguments)
    assert done.returncode == 2
    assert done.stderr == (f"granary delete: {sentence}; `granary help delete` shows how it is "
                           "used\n")
