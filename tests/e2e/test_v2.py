"""The network engineer's API with the real server: counters that a poller left in its store."""

import csv
import datetime
import json
import math
import pathlib
import random
import re
import socket
import subprocess
import time
import zoneinfo

import pytest

from server import eventually, run, tool

SECRETS = "lab: {version: 2c, community: public}\n"
DAY = 86400
BEGIN = 1700006400  # 2023-11-15T00:00:00Z, a full day

DATA = pathlib.Path(__file__).parent.parent / "data"
ALU = json.loads((DATA / "rtr_alu_ifhcin_long.json").read_text())


def fill(data, counters, rates=False):
    """counters: {(device, oidset, oid, row): [(ts_s, value)]}"""
    lines = [f"{' '.join(name)} 30000 {round(ts * 1000)} {value}"
             for name, samples in counters.items() for ts, value in samples]
    subprocess.run([tool("counters"), data] + ["--rates"] * rates, input="\n".join(lines),
                   text=True, check=True, timeout=120)


@pytest.fixture
def make_v2(make_server, tmp_path):
    secrets = tmp_path / "secrets.yml"
    secrets.write_text(SECRETS)
    secrets.chmod(0o600)

    def make(counters, devices, rates=False, **options):
        server = make_server(config=f"snmp:\n  secrets_file: {secrets}\n", **options)
        if counters:
            server.data.mkdir()
            fill(server.data, counters, rates)
        server.start()
        for name, *oidsets in devices:
            answer = run("device", "add", "--server", server.url, name, "127.0.0.1", *oidsets,
                         "--credentials", "lab")
            assert answer.returncode == 0, answer.stderr
        return server

    return make


def get(server, path, status=200, **params):
    answer = server.get(path, **params)
    assert answer.status == status, answer
    return answer.json


def post(server, path, body, status=201):
    answer = server.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    assert answer.status == status, answer
    return answer.json


def steady(rate, begin=BEGIN, seconds=DAY, step=30, first=0):
    return [(begin + t, first + rate * t) for t in range(0, seconds + 1, step)]


def test_the_recorded_interface(make_v2):
    """117 deltas that sum to 8656; ten minutes with both ends are 21 points of 30 s."""
    polls = [(int(poll["timestamp"]), poll["data"][0][1]) for poll in ALU]
    for rates in (False, True):
        server = make_v2({("rtr_alu", "FastPollHC", "ifHCInOctets", "1/1/1"): polls},
                         [("rtr_alu", "ALUFastPollHC")], rates, name=f"rates_{rates}")
        path = "/v2/device/rtr_alu/interface/1@2F1@2F1/in"
        first, last = polls[0][0], polls[-1][0]
        begin = first // 30 * 30
        assert len(get(server, path, begin=begin, end=begin + 600)["data"]) == 21
        data = get(server, path, begin=begin, end=last, cf="delta")["data"]
        assert sum(point["val"] or 0 for point in data) == 8656
        raw = get(server, path, begin=first, end=last, cf="raw")["data"]
        assert [(p["ts"], p["val"]) for p in raw] == polls
        hours = get(server, path, begin=begin // 3600 * 3600, end=last, agg=3600, cf="raw")["data"]
        assert sum(point["val"] or 0 for point in hours) == 8656
        server.stop()


def test_rates_over_new_year(make_v2):
    new_year = 1704067200
    polls = steady(7, new_year - 3600, 7200)
    server = make_v2({("rtr_a", "FastPollHC", "ifHCInOctets", "xe-0/2/0"): polls},
                     [("rtr_a", "FastPollHC")])
    data = get(server, "/v2/device/rtr_a/interface/xe-0_2_0/in", begin=new_year - 3600,
               end=new_year + 3570)["data"]
    assert [p["ts"] for p in data] == list(range(new_year - 3600, new_year + 3600, 30))
    assert {p["val"] for p in data} == {7.0}


def test_a_restart_is_not_judged_by_a_speed_of_later(make_v2):
    """The agent begins again with 2e9, which a line of 10 Gbit/s carries in 30 s, and none of 10
    Mbit/s. Nothing of it is stored yet."""
    values = [10**10, 13 * 10**9, 2 * 10**9, 2 * 10**9 + 300, 2 * 10**9 + 600]
    uptimes = [100000, 103000, 2000, 5000, 8000]
    speeds = [10000, 10000, 10000, 10, 10]
    columns = {("ifHCInOctets", "xe-0"): values, ("ifHighSpeed", "xe-0"): speeds,
               ("sysUpTime", "-"): uptimes}
    for polls in (3, 5):
        server = make_v2({("rtr_a", "IfXTable", *column):
                          [(BEGIN + 30 * i, each) for i, each in enumerate(of[:polls])]
                          for column, of in columns.items()},
                         [("rtr_a", "IfXTable")], name=f"polls_{polls}")
        data = get(server, "/v2/device/rtr_a/interface/xe-0/in", begin=BEGIN, end=BEGIN + 59,
                   cf="delta")["data"]
        assert [p["val"] for p in data] == [3 * 10**9, 2 * 10**9]
        server.stop()


def test_a_year_is_streamed(make_v2):
    """1,051,201 points, of which one day is there."""
    server = make_v2({("rtr_a", "FastPollHC", "ifHCInOctets", "xe-0"): steady(3)},
                     [("rtr_a", "FastPollHC")], rates=True)
    end = BEGIN + 365 * DAY
    data = get(server, "/v2/device/rtr_a/interface/xe-0/in", begin=BEGIN, end=end)["data"]
    assert len(data) == 365 * 2880 + 1
    assert [p["val"] for p in data[:2880]] == [3.0] * 2880
    assert {p["val"] for p in data[2881:]} == {None}
    assert [p["ts"] for p in data[::28800]] == list(range(BEGIN, end + 1, 28800 * 30))
    refused = get(server, "/v2/device/rtr_a/interface/xe-0/in", 400, begin=0, end=BEGIN)
    assert "query.points_max" in refused["query error"]


def test_a_client_that_leaves_costs_nothing(make_v2):
    server = make_v2({("rtr_a", "FastPollHC", "ifHCInOctets", "xe-0"): steady(3)},
                     [("rtr_a", "FastPollHC")])
    path = f"/v2/device/rtr_a/interface/xe-0/in?begin={BEGIN}&end={BEGIN + 365 * DAY}"
    for taken in (0, 1, 100000):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            while taken > 0:
                taken -= len(sock.recv(min(taken, 65536)))
    assert get(server, "/v2/oidset/")
    server.stop()


def rank(values, percent):
    """Nearest rank, by the words of doc/api-v2.md."""
    ascending = sorted(values)
    return ascending[math.ceil(percent * len(ascending) / 100) - 1]


def test_percentiles_of_random_days(make_v2):
    """Polls on the edges of bins, so that each five minutes are ten deltas, whole."""
    rng = random.Random(1)
    counters, deltas = {}, {}
    for oid in ("ifHCInOctets", "ifHCOutOctets"):
        deltas[oid] = [rng.randrange(10 ** rng.randrange(1, 10)) for _ in range(2 * 2880)]
        total, polls = rng.randrange(10 ** 12), [(BEGIN, 0)]
        for i, delta in enumerate(deltas[oid]):
            polls.append((BEGIN + (i + 1) * 30, polls[-1][1] + delta))
        counters["rtr_a", "FastPollHC", oid, "xe-0"] = [(ts, total + v) for ts, v in polls]
    server = make_v2(counters, [("rtr_a", "FastPollHC")], rates=True)
    answer = get(server, "/v2/report/percentile", device="rtr_a", interface="xe-0", span="day",
                 begin=BEGIN, end=BEGIN + 2 * DAY - 1)
    for day, found in enumerate(answer["children"][0]["spans"]):
        bits = {oid: [sum(series[i:i + 10]) * 8 / 300
                      for i in range(day * 2880, (day + 1) * 2880, 10)]
                for oid, series in deltas.items()}
        both = list(zip(bits["ifHCInOctets"], bits["ifHCOutOctets"]))
        assert found["bins"] == found["bins_both"] == 288
        assert found["in"] == pytest.approx(rank(bits["ifHCInOctets"], 95), rel=1e-12)
        assert found["out"] == pytest.approx(rank(bits["ifHCOutOctets"], 95), rel=1e-12)
        assert found["larger"] == max(found["in"], found["out"])
        assert found["larger_of_bins"] == pytest.approx(rank(map(max, both), 95), rel=1e-12)
        assert found["sum"] == pytest.approx(rank(map(sum, both), 95), rel=1e-12)


def test_volumes_are_the_counter_s_growth(make_v2):
    """At odd times, with gaps: what the days have together is what the counter grew by."""
    rng = random.Random(2)
    polls = [(BEGIN + 1, 5)]
    while polls[-1][0] < BEGIN + 5 * DAY:
        step = 3600 * 7 if rng.random() < 0.0005 else rng.uniform(20, 45)
        polls.append((round(polls[-1][0] + step, 3), polls[-1][1] + rng.randrange(10 ** 8)))
    for rates in (False, True):
        server = make_v2({("rtr_a", "FastPollHC", "ifHCInOctets", "xe-0"): polls},
                         [("rtr_a", "FastPollHC")], rates, name=f"rates_{rates}")
        for zone in ("UTC", "Asia/Kathmandu", "America/New_York"):
            answer = get(server, "/v2/report/volume", device="rtr_a", interface="xe-0", zone=zone,
                         begin=BEGIN - DAY, end=BEGIN + 6 * DAY)
            spans = [span["in"] for span in answer["children"][0]["spans"]]
            assert sum(s["total"] for s in spans) == polls[-1][1] - polls[0][1]
            assert all(s["total"] == s["bins"] + s["unplaced"] for s in spans)
            assert sum(s["unplaced"] for s in spans) > 0
        server.stop()


def test_days_and_months_are_those_of_the_zone(make_v2):
    """By Python's own reading of the same zones."""
    server = make_v2({("rtr_a", "FastPollHC", "ifHCInOctets", "x"): steady(1, seconds=60)},
                     [("rtr_a", "FastPollHC")])
    for name in ("Europe/Berlin", "America/New_York", "America/Santiago", "Asia/Beirut",
                 "Australia/Lord_Howe", "Pacific/Auckland", "Africa/Casablanca", "Asia/Tehran"):
        zone = zoneinfo.ZoneInfo(name)
        for span, step in (("day", 1), ("month", 32)):
            answer = get(server, "/v2/report/volume", device="rtr_a", interface="x", zone=name,
                         span=span, begin=1672531200, end=1735689600)
            spans = answer["children"][0]["spans"]
            assert len(spans) > 700 or span == "month"
            for found, after in zip(spans, spans[1:]):
                assert found["end"] == after["begin"]
                date = datetime.date.fromisoformat((found[span] + "-01")[:10])
                begun = datetime.datetime.fromtimestamp(found["begin"], zone)
                before = datetime.datetime.fromtimestamp(found["begin"] - 1, zone)
                assert begun.date() == date and before.date() < date, (name, found)
                last = datetime.datetime.fromtimestamp(found["end"] - 1, zone).date()
                assert last < date + datetime.timedelta(days=step)


def test_many_at_once(make_v2):
    names = [f"xe-{i}" for i in range(50)]
    counters = {("rtr_a", "FastPollHC", "ifHCInOctets", name): steady(i, seconds=600)
                for i, name in enumerate(names)}
    server = make_v2(counters, [("rtr_a", "FastPollHC")])
    asked = [{"device": "rtr_a", "iface": name} for name in names + ["nothing"]]
    answer = post(server, "/v2/bulk/interface/",
                  {"interfaces": asked, "endpoint": ["in"], "begin": BEGIN, "end": BEGIN + 570})
    assert len(answer["data"]) == 51 and answer["device_names"] == ["rtr_a"]
    for i, item in enumerate(answer["data"][:50]):
        assert item["path"] == {"dev": "rtr_a", "iface": names[i], "endpoint": "in"}
        assert [p["val"] for p in item["data"]] == [float(i)] * 20
    assert "error" in answer["data"][50] and "data" not in answer["data"][50]
    keys = [["snmp", "rtr_a", "FastPollHC", "ifHCInOctets", name, 30000] for name in names]
    answer = post(server, "/v2/bulk/timeseries/",
                  {"type": "BaseRate", "paths": keys, "begin": BEGIN * 1000,
                   "end": (BEGIN + 570) * 1000})
    assert [item["path"] for item in answer["data"]] == keys
    assert all(len(item["data"]) == 20 for item in answer["data"])
    found = get(server, "/v2/inventory/", row_key__contains="xe-49:3600000")
    assert found == ["snmp:rtr_a:FastPollHC:ifHCInOctets:xe-49:3600000:2023"]


def test_devices_are_changed_and_stay_so(make_v2):
    server = make_v2({}, [("rtr_a", "FastPollHC"), ("rtr_b", "Errors")])
    assert [d["name"] for d in get(server, "/v2/device/")] == ["rtr_a", "rtr_b"]
    device = get(server, "/v2/device/rtr_a/")
    device["oidsets"] = ["Errors", "FastPollHC"]
    device["active"] = False
    headers = {"Content-Type": "application/json"}
    answer = server.request("PUT", "/v2/device/rtr_a/", json.dumps(device), headers)
    assert answer.status == 200 and answer.json == device
    server.restart()
    assert get(server, "/v2/device/rtr_a/") == device
    assert [d["name"] for d in get(server, "/v2/device/")] == ["rtr_b"]
    answer = server.request("PUT", "/v2/device/rtr_a/", '{"oidsets":["Nothing"]}', headers)
    assert answer.status == 400 and "Nothing" in answer.json["error"]
    assert server.request("DELETE", "/v2/device/rtr_a/").status == 405


def test_a_renamed_device_has_one_history(make_v2):
    """Reports of the new name begin where the device did; the growth over the renaming is whole."""
    def volume(name):
        answer = get(server, "/v2/report/volume", device=name, interface="xe-0", begin=BEGIN,
                     end=BEGIN + DAY - 1)
        return [child["spans"][0]["in"]["total"] for child in answer["children"]]

    def percentile(name):
        answer = get(server, "/v2/report/percentile", device=name, interface="xe-0", begin=BEGIN,
                     end=BEGIN + DAY - 1, span="day")
        return [child["spans"][0]["in"] for child in answer["children"]]

    def rename(old, new):
        answer = run("device", "rename", "--server", server.url, old, new)
        assert answer.returncode == 0, answer

    row = "/v2/timeseries/%s/snmp/%s/FastPollHC/ifHCInOctets/xe-0/30000"
    # 300,000 octets every 30 s: 80,000 bit/s.
    half = steady(10000, seconds=DAY // 2)
    server = make_v2({("old", "FastPollHC", "ifHCInOctets", "xe-0"): half},
                     [("old", "FastPollHC")], True)
    before = volume("old"), percentile("old")
    rename("old", "new")
    assert (volume("new"), percentile("new")) == before and before[0] == [half[-1][1]]
    assert get(server, "/v2/device/new/")["name"] == "new"
    rest = steady(10000, seconds=DAY // 2, begin=half[-1][0] + 30, first=half[-1][1] + 300000)
    post(server, row % ("RawData", "new"), [{"ts": ts * 1000, "val": val} for ts, val in rest])
    eventually(lambda: volume("new") == [10000 * DAY], lambda: volume("new"))
    assert percentile("new") == [80000]
    data = get(server, row % ("BaseRate", "new"), begin=BEGIN * 1000,
               end=(BEGIN + DAY - 60) * 1000)["data"]
    assert {point["val"] for point in data} == {10000} and len(data) == DAY // 30 - 1
    data = get(server, "/v2/device/new/interface/xe-0/in", begin=BEGIN, end=BEGIN + DAY - 60)
    assert {point["val"] for point in data["data"]} == {10000}
    # The row keeps its key, by which it is found as long as no device has that name.
    found = get(server, "/v2/inventory/", row_key__contains=":xe-0:30000:")
    assert found == ["snmp:old:FastPollHC:ifHCInOctets:xe-0:30000:2023"]
    assert len(get(server, row % ("RawData", "old"), begin=BEGIN * 1000,
                   end=(BEGIN + DAY) * 1000)["data"]) == DAY // 30 + 1
    answer = run("recompute", "--server", server.url, "--device", "new", "--from", str(BEGIN),
                 "--to", str(BEGIN + DAY))
    assert answer.returncode == 0, answer

    # Who is called so now has nothing of it.
    answer = run("device", "add", "--server", server.url, "old", "127.0.0.1", "FastPollHC",
                 "--credentials", "lab")
    assert answer.returncode == 0, answer
    assert volume("old") == [] and volume("new") == [10000 * DAY]
    post(server, row % ("RawData", "old"), [{"ts": BEGIN * 1000, "val": 10 ** 12},
                                            {"ts": (BEGIN + 30) * 1000, "val": 10 ** 12 + 5}])
    eventually(lambda: volume("old") == [5], lambda: volume("old"))
    assert volume("new") == [10000 * DAY]
    server.restart()
    assert volume("old") == [5] and volume("new") == [10000 * DAY]


def rows_of(answer):
    """A table by its columns, which stand apart by two blanks, or CSV."""
    lines = answer.stdout.splitlines()
    if "," in lines[0]:
        return list(csv.DictReader(lines))
    titles = re.split("  +", lines[0].strip())
    return [dict(zip(titles, re.split("  +", line.strip()))) for line in lines[1:]]


def test_interfaces_on_the_command_line(make_v2):
    """1,250,000 octets a second are 10 Mbit/s; 864,000,000 octets a day are 10,000 a second."""
    name = "rtr_a", "FastPollHC"
    server = make_v2({(*name, "ifHCInOctets", "xe-0/0/0"): steady(10000),
                      (*name, "ifHCOutOctets", "xe-0/0/0"): steady(1250000),
                      (*name, "ifHCInOctets", "xe-0/0/1"): steady(124, seconds=600)},
                     [name])

    def ask(verb, *words, status=0, **options):
        given = [word for key, value in options.items() for word in (f"--{key}", value)]
        answer = run("interface", verb, "--server", server.url, *words, *given)
        assert answer.returncode == status, answer
        return answer

    day = {"begin": "2023-11-15", "end": "2023-11-15T23:59:59Z"}
    minute = {"begin": "2023-11-15T00:00:00Z", "end": BEGIN + 60}
    found = rows_of(ask("rates", "rtr_a", "xe-0/0/0", **minute))
    assert found == [{"time": f"2023-11-15T00:{at}Z", "in bit/s": "80000.0",
                      "out bit/s": "10000000.0"} for at in ("00:00", "00:30", "01:00")]
    found = rows_of(ask("rates", "rtr_a", "xe-0/0/0", output="table", **minute))
    assert found[2] == {"time": "2023-11-15T00:01:00Z", "in bit/s": "80.0k", "out bit/s": "10.0M"}
    found = rows_of(ask("rates", "rtr_a", "xe-0/0/0", endpoint="in", cf="delta", agg="1h", **day))
    assert [row["in octets"] for row in found] == ["36000000"] * 24
    assert list(found[23]) == ["time", "in octets"]
    assert found[23]["time"] == "2023-11-15T23:00:00Z"
    # The counter as it was read grows by 300,000 octets in 30 s.
    found = rows_of(ask("rates", "rtr_a", "xe-0/0/0", endpoint="in", cf="raw", **minute))
    assert [float(row["in octets"]) for row in found] == [0, 300000, 600000]
    found = rows_of(ask("rates", "rtr_a", "xe-0/0/1", endpoint="in", output="csv",
                        begin=BEGIN + 570, end=BEGIN + 660))
    assert [row["in bit/s"] for row in found] == ["992.0", "0.0", "", ""]
    found = ask("rates", "rtr_a", "xe-0/0/0", "-o", "json", **minute).stdout
    assert json.loads(found)["data"][0]["data"][0] == {"ts": BEGIN, "val": 10000.0}

    found = rows_of(ask("top", **day))
    assert [(row["device"], row["interface"], float(row["in bit/s"])) for row in found] == [
        ("rtr_a", "xe-0/0/0", 80000), ("rtr_a", "xe-0/0/1", 992)]
    found = rows_of(ask("top", "rtr_a", by="max", agg="1h", limit=1, endpoint="out", **day))
    assert [(row["interface"], float(row["out bit/s"])) for row in found] == [("xe-0/0/0", 10**7)]
    assert found[0]["time"].startswith("2023-11-15T00:")
    found = rows_of(ask("top", by="volume", **day))
    assert [row["in octets"] for row in found] == [str(10000 * DAY), str(124 * 600)]

    found = rows_of(ask("percentile", "rtr_a", "xe-0/0/0", span="day", **day))
    assert found == [{"device": "rtr_a", "interface": "xe-0/0/0", "span": "2023-11-15",
                      "in bit/s": "80000.0", "out bit/s": "10000000.0",
                      "larger bit/s": "10000000.0", "bins": "288", "bins in": "288",
                      "bins out": "288", "complete": "true"}]
    found = rows_of(ask("percentile", "rtr_a", month="2023-11", output="table"))
    assert [(row["span"], row["in bit/s"]) for row in found] == [("2023-11", "80.0k"),
                                                               ("2023-11", "992")]
    found = rows_of(ask("volume", "rtr_a", "xe-0/0/0", **day))
    assert found == [{"device": "rtr_a", "interface": "xe-0/0/0", "span": "2023-11-15",
                      "in octets": "864000000", "out octets": "108000000000",
                      "in covered s": "86400", "out covered s": "86400", "complete": "true"}]
    found = rows_of(ask("volume", "rtr_a", "xe-0/0/0", output="table", **day))
    assert found[0]["in octets"] == "864M" and found[0]["out octets"] == "108G"

    for status, words, sentence in (
            (1, ("rates", "rtr_a", "xe-9"), "xe-9"), (1, ("rates", "nobody", "xe-0"), "nobody"),
            (1, ("rates", "rtr_a", "xe-0/0/0", "--endpoint", "in,nothing"), "nothing: no OIDSet"),
            (1, ("rates", "rtr_a", "xe-0/0/0", "--agg", "7s"), "agg 7 is not stored"),
            (1, ("rates", "rtr_a", "xe-0/0/0", "--begin", "yesterday"), "is not a time"),
            (1, ("top", "--by", "name"), "none of average, max, volume"),
            (1, ("top", "--cf", "max"), "unknown parameter"),
            (1, ("volume", "rtr_a", "--percentile", "95"), "unknown parameter"),
            (1, ("percentile", "rtr_a", "--zone", "Mars/Olympus"), "time zone"),
            (2, ("rates", "rtr_a"), "INTERFACE is missing"),
            (2, ("percentile",), "DEVICE is missing"),
            (2, ("volume", "rtr_a", "--cf", "max"), "there is no option --cf")):
        assert sentence in ask(*words, status=status).stderr


def test_paths_that_lead_nowhere(make_v2):
    server = make_v2({}, [("rtr_a", "FastPollHC")])
    for path in ("/v2/", "/v2/devicex/", "/v2/device/rtr_a/x/", "/v2/interface/x/",
                 "/v2/timeseries/", "/v2/timeseries/RawData/snmp/a/b/c/", "/v2/pdu/a/b/",
                 "/v2/report/", "/v2/device/%2e%2e/%2e%2e/", "/v2/inventory/1/"):
        assert server.get(path).status == 404, path
    for path in ("/v2/device/@/", "/v2/device/@2F@2F/", "/v2/device/" + "@41" * 3000 + "/",
                 "/v2/pdu/rtr_a/", "/v2/device/x/interface/", "/v2/device/x/interface/y/"):
        assert server.get(path).status == 404, path
    for path in ("/v2/device/rtr_a/interface/x/" + "y" * 5000, "/v2/device/x/interface/y/in",
                 "/v2/device/rtr_a/interface/y/in", "/v2/pdu/rtr_a/outlet/AA/load"):
        assert server.get(path).status == 400, path
    for zone in ("../../../etc/passwd", "/etc/passwd", "Europe/../../passwd", "..", "posixrules/",
                 "x" * 1000, "Europe%2FBerlin", "right/UTC", "tzdata.zi", "leapseconds"):
        answer = server.get("/v2/report/volume", zone=zone)
        assert answer.status == 400 and "time zone" in answer.json["error"], zone
    for pattern in ("(" * 200, "(a{250}){250}", "(?P<x>a)", "[z-a]", "a" * 300, "\\1"):
        assert server.get("/v2/interface/", ifAlias__regex=pattern).status == 400, pattern
    for body in ("", "[]", "{", '{"interfaces":5}', '{"interfaces":[[]],"endpoint":[]}',
                 '{"interfaces":[],"endpoint":"in","begin":"x"}'):
        answer = server.request("POST", "/v2/bulk/interface/", body,
                                {"Content-Type": "application/json"})
        assert answer.status == 400, body
    assert server.request("POST", "/v2/bulk/interface/", "{}").status == 400


def test_samples_are_taken_through_the_queue(make_v2):
    """Posted samples are raw data, and rates; what is posted again is not double."""
    server = make_v2({}, [("rtr_a", "FastPollHC")])
    row = "/v2/timeseries/RawData/snmp/rtr_a/FastPollHC/ifHCInOctets/xe-0@2F2@2F0/30000"
    samples = [{"ts": (BEGIN + i * 30) * 1000, "val": 2 ** 53 + 300 * i} for i in range(5)]
    for _ in range(2):
        assert post(server, row, samples) == ""
    wanted = [{"ts": s["ts"], "val": s["val"]} for s in samples]

    def there():
        return server.get(row, begin=BEGIN * 1000, end=(BEGIN + 300) * 1000).json.get("data")
    eventually(lambda: there() == wanted, there)
    assert all(isinstance(point["val"], int) for point in there())
    data = get(server, "/v2/device/rtr_a/interface/xe-0@2F2@2F0/in", begin=BEGIN,
               end=BEGIN + 119)["data"]
    assert [p["val"] for p in data] == [10.0] * 4
    for path, body in ((row.replace("RawData", "BaseRate"), samples),
                       (row.replace("30000", "60000"), samples),
                       (row.replace("FastPollHC", "Nothing"), samples),
                       (row, {"ts": 1, "val": 2}), (row, [{"ts": 1}]),
                       (row, [{"ts": 1, "val": "2"}]), (row, [{"ts": 1e300, "val": 2}]),
                       (row.replace("xe-0", "x" * 2000), samples)):
        answer = server.request("POST", path, json.dumps(body),
                                {"Content-Type": "application/json"})
        assert answer.status == 400, (path, answer)
    ahead = [{"ts": BEGIN * 1000, "val": 2}, {"ts": (int(time.time()) + 700) * 1000, "val": 3}]
    answer = server.request("POST", row, json.dumps(ahead), {"Content-Type": "application/json"})
    assert answer.status == 400 and "sample 2: the time" in answer.text, answer
    assert post(server, row, []) == ""
    server.stop()
