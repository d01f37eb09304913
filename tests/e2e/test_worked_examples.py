"""The reference's worked examples end to end: a message in a queue, of either driver, becomes raw
data, bins and hours as the network engineer reads them.

Expected values are those that the reference works out (its section 2.3 and the cases of section 5).
Where it gives small times these are seconds after T0, on which bins, an hour and no day begin.
Each example is a device of its own; its counter is that of the interface PORT."""

import json
import pathlib
from datetime import datetime
from typing import NamedTuple

import pytest

from memcached import EsmondQueue, Memcached
from server import Server, eventually, run
from test_polls import message, send, wait_persisted

T0 = 1400000400  # 2014-05-13T17:00:00Z
DAY = 86400
PORT = "xe-0/2/0"
PORT_IN_PATHS = "xe-0@2F2@2F0"

DATA = pathlib.Path(__file__).parent.parent / "data"
ALU = json.loads((DATA / "rtr_alu_ifhcin_long.json").read_text())

CONFIG = """
persist:
  derive_every: 1s
oidsets:
  Minute: {{frequency: 60s, correlator: IfName, aggregates: [1h, 1d],
           oids: [sysUpTime, ifInOctets]}}
persist_queue:
  counters:   {{persister: counters, workers: 2, {driver}, oidsets: ["*"]}}
  interfaces: {{persister: interfaces, oidsets: ["*"]}}
  saps:       {{persister: saps, oidsets: ["*"]}}
  lsps:       {{persister: lsps, oidsets: ["*"]}}
  outlets:    {{persister: outlets, oidsets: ["*"]}}
"""


class Example(NamedTuple):
    """polls: (seconds, value) or (seconds, value, sysUpTime). bins: growth by their begin; where
    nothing was measured they read as null, and so do those before, between and after that are not
    given."""
    polls: list
    bins: dict
    unplaced: int = 0
    first: int = 0  # added to all times
    oidset: str = "FastPollHC"
    oid: str = "ifHCInOctets"
    base: int = 30

    def times(self):
        return [self.first + poll[0] for poll in self.polls]

    def growth(self):
        return sum(self.bins.values()) + self.unplaced

    def row(self, device, frequency):
        return f"snmp/{device}/{self.oidset}/{self.oid}/{PORT_IN_PATHS}/{frequency}000"


# Real data; the uptime is not known, so the interval in which it fell is lost.
FALLING = Example(
    [(1384371885, 3983656138), (1384371914, 3984242432), (1384371945, 3985220546),
     (1384371974, 3892978381), (1384372005, 3893271099), (1384372034, 3893650623)],
    {1384371870: 303256, 1384371900: 787871, 1384371930: 473281, 1384371960: 151080,
     1384371990: 337944, 1384372020: 183218})

EXAMPLES = {
    "on_the_edges": Example([(0, 0), (30, 100)], {0: 100, 30: 0}, first=T0),
    "over_one_edge": Example([(31, 100), (62, 213)], {30: 106, 60: 7}, first=T0),
    "to_an_edge": Example([(90, 100), (121, 200)], {90: 97, 120: 3}, first=T0),
    # 92 s are beyond three intervals: of the five bins of the split the newest is left.
    "a_little_too_long": Example([(89, 100), (181, 200)], {180: 1}, 99, first=T0),
    "within_a_bin": Example([(1386369693, 141368641534364), (1386369719, 141368891281597)],
                            {1386369690: 249747233}),
    "uneven": Example([(14, 100), (44, 400)], {0: 160, 30: 140}, first=T0),
    "over_two_edges": Example([(14, 0), (89, 1000)], {0: 213, 30: 400, 60: 387}, first=T0),
    "a_gap": Example([(1343953700, 0), (1343953820, 1000)], {1343953800: 166}, 834),
    "a_gap_of_a_month": Example([(1343953760, 7), (1343953820 + 30 * DAY, 864007)],
                                {1343953800 + 30 * DAY: 6}, 863994),
    "a_falling_counter": FALLING,
    "a_falling_counter_of_32_bits": FALLING._replace(oidset="FastPoll", oid="ifInOctets"),
    "over_32_bits": Example([(0, 4294963596, 100000), (30, 37, 103000)], {0: 3737, 30: 0}, first=T0,
                            oidset="FastPoll", oid="ifInOctets"),
    "over_64_bits": Example([(0, 18446744073709547916, 100000), (30, 37, 103000)],
                            {0: 3737, 30: 0}, first=T0),
    # 59 s and 1 s of 60: 60.97 and 1.03 of 62.
    "a_device_that_began_again": Example([(61, 100, 9000000), (121, 62, 4000)], {60: 61, 120: 1},
                                        first=T0, oidset="Minute", oid="ifInOctets", base=60),
}


class Local:
    """Polls come over the API; the queue lies in the store."""
    config = "driver: local"

    def send(self, server, messages):
        assert send(server, messages).status == 204

    def wait(self, server):
        wait_persisted(server)

    def stop(self):
        pass


class InMemcached:
    """Polls come as an existing esmond poller leaves them in memcached."""

    def __init__(self):
        self.memcached = Memcached()
        self.queue = EsmondQueue(self.memcached, "counters")
        self.config = f"driver: memcached, server: '{self.memcached.address}'"

    def send(self, _, messages):
        for each in messages:
            self.queue.put(each)

    def wait(self, _):
        self.queue.wait_pending()

    def stop(self):
        self.memcached.kill()


def messages_of(device, example):
    for ts, poll in zip(example.times(), example.polls):
        # What comes behind the point is dropped, as esmond did.
        for ticks in poll[2:]:
            yield message(example.oidset, "sysUpTime", ts + 0.25, [[["sysUpTime"], ticks]], device)
        yield message(example.oidset, example.oid, ts + 0.75, [[[example.oid, PORT], poll[1]]],
                      device)


def import_devices(server, devices):
    """Nobody answers at their address."""
    path = server.folder / "devices.csv"
    path.write_text("name,address,credentials,oidsets\n" + "".join(
        f"{device},127.0.0.1:9,public,{oidset}\n" for device, oidset in devices.items()))
    answer = run("device", "import", "--server", server.url, path)
    assert answer.returncode == 0, answer.stderr


@pytest.fixture(scope="module", params=[Local, InMemcached], ids=["local", "memcached"])
def filled(request, tmp_path_factory):
    """A server whose queue has been given all examples."""
    driver = request.param()
    server = Server(tmp_path_factory.mktemp("worked"), CONFIG.format(driver=driver.config))
    try:
        server.start()
        import_devices(server, {"rtr_alu": "ALUFastPollHC",
                                **{name: example.oidset for name, example in EXAMPLES.items()}})
        for name, example in EXAMPLES.items():
            driver.send(server, list(messages_of(name, example)))
        driver.send(server, ALU)
        driver.wait(server)
        yield server
        server.stop()
    finally:
        server.kill()
        driver.stop()


def data(server, path, **params):
    answer = server.get(path, **params)
    assert answer.status == 200, answer
    return answer.json["data"]


def check_bins(server, name, example):
    times, base = example.times(), example.base
    begin, end = times[0] // base * base - base, times[-1] // base * base + base
    expected = {example.first + at: value for at, value in example.bins.items()}
    for cf, unit in (("delta", 1), ("average", base)):
        found = data(server, "/v2/timeseries/BaseRate/" + example.row(name, base),
                     begin=begin * 1000, end=end * 1000, cf=cf)
        assert [point["ts"] for point in found] == list(range(begin * 1000, end * 1000 + 1,
                                                              base * 1000))
        there = {point["ts"] // 1000: point["val"] for point in found if point["val"] is not None}
        assert there == {at: pytest.approx(value / unit, rel=1e-15)
                         for at, value in expected.items()}


def check_periods(server, name, example):
    """Hours and days have what the bins have."""
    times = example.times()
    for period in (3600, DAY):
        found = data(server, "/v2/timeseries/Aggs/" + example.row(name, period),
                     begin=times[0] // period * period * 1000, end=times[-1] * 1000, cf="delta")
        assert sum(point["val"] or 0 for point in found) == sum(example.bins.values())


def check_volume(server, name, example):
    """Bins and unplaced growth are the counter's growth."""
    times = example.times()
    answer = server.get("/v2/report/volume", device=name, interface=PORT, begin=times[0],
                        end=times[-1])
    spans = [span["in"] for span in answer.json["children"][0]["spans"]]
    totals = {key: sum(span[key] for span in spans) for key in ("bins", "unplaced", "total")}
    assert totals == {"bins": sum(example.bins.values()), "unplaced": example.unplaced,
                      "total": example.growth()}


def check_samples(server, name, example):
    """The same by the query of every tenant: each sample to the unit, at its whole second."""
    samples = dict(zip(example.times(), (poll[1] for poll in example.polls)))
    found = server.values(example.oid, f"device={name}", tenant="snmp", start=min(samples),
                          end=max(samples) + 1)
    assert {int(datetime.fromisoformat(ts.replace("Z", "+00:00")).timestamp()): value
            for ts, value in found.items()} == samples


def check(server, name):
    example = EXAMPLES[name]
    check_samples(server, name, example)
    check_bins(server, name, example)
    check_periods(server, name, example)
    if example.oid == "ifHCInOctets":  # the others have no endpoint
        check_volume(server, name, example)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(filled, name):
    check(filled, name)


def test_the_newest_bin_of_a_gap(filled):
    """20 s of it were covered: 166 / 20 a second, and 166 / 30 by the document's average."""
    for cf, value in (("exact", 166 / 20), ("average", 166 / 30)):
        found = data(filled, f"/v2/device/a_gap/interface/{PORT_IN_PATHS}/in", begin=1343953800,
                     end=1343953800, cf=cf)
        assert found == [{"ts": 1343953800, "val": pytest.approx(value, rel=1e-15)}]


def test_the_hour_of_the_falling_counter(filled):
    """2236650 of 4 deltas; the interval in which it fell is none of them."""
    path = f"/v2/device/a_falling_counter/interface/{PORT_IN_PATHS}/in"
    for cf, value in (("raw", 2236650), ("average", 2236650 / (4 * 30)), ("exact", 2236650 / 120)):
        found = data(filled, path, begin=1384369200, end=1384369200, agg=3600, cf=cf)
        assert found == [{"ts": 1384369200, "val": pytest.approx(value, rel=1e-15)}]


def check_router(server):
    """117 deltas that sum to 8656; the largest is 736, in the 31 s before 1343957211."""
    path = "/v2/device/rtr_alu/interface/1@2F1@2F1/in"
    first, last = int(ALU[0]["timestamp"]), int(ALU[-1]["timestamp"])
    bins = data(server, path, begin=first // 30 * 30, end=last, cf="delta")
    assert sum(point["val"] for point in bins if point["val"]) == 8656
    ten_minutes = first // 30 * 30 + 600
    assert len(data(server, path, begin=ten_minutes, end=ten_minutes + 600)) == 21
    hours = {cf: data(server, path, begin=first // 3600 * 3600, end=last, agg=3600, cf=cf)
             for cf in ("raw", "average", "min", "max")}
    assert sum(hour["val"] for hour in hours["raw"]) == 8656
    deltas = [raw["val"] / average["val"] / 30
              for raw, average in zip(hours["raw"], hours["average"]) if average["val"]]
    assert sum(deltas) == pytest.approx(117, rel=1e-12)
    assert min(hour["val"] for hour in hours["min"]) == 0
    largest = max(hours["max"], key=lambda hour: hour["val"])
    assert largest == {"ts": 1343955600, "val": pytest.approx(736 / 31, rel=1e-15),
                       "m_ts": 1343957211}
    found = {fn: server.query("ifHCInOctets", "device=rtr_alu", tenant="snmp", fn=fn, window="1d",
                              start=first, end=last + 1)[0]["values"].values()
             for fn in ("first", "last", "count")}
    assert [list(values) for values in found.values()] == [
        [ALU[0]["data"][0][1]], [ALU[0]["data"][0][1] + 8656], [118]]


def test_two_hours_of_a_router(filled):
    check_router(filled)


def wait_for_metric(server, name, value):
    eventually(lambda: server.metric(name) >= value, lambda: (name, server.metric(name)))


def test_all_of_them_again_from_what_was_written(filled):
    """When rates have been made of each device, and the server was started again."""
    wait_for_metric(filled, "granary_persist_rates_made_total", len(EXAMPLES) + 1)
    filled.restart()
    for name in EXAMPLES:
        check(filled, name)
    check_router(filled)
