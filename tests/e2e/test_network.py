"""From a wire to the bins: traffic that the test makes over a veth pair, counted by the kernel,
told by Debian's snmpd, polled, queued, persisted and read back over /v2."""

import pathlib
import time

import pytest

from server import eventually, run
from snmp_agent import Snmpd, have_snmpd
from test_poller import proc_net_dev, send_frames, veth  # noqa: F401 (a fixture)

CONFIG = """
persist:
  derive_every: 2s
oidsets:
  Fast:
    frequency: 1s
    correlator: IfName
    aggregates: [1h, 1d]
    oids: [sysUpTime, ifHCInOctets, ifHCOutOctets]
"""
DEVICE = "this"

pytestmark = pytest.mark.skipif(not have_snmpd(), reason="snmpd is not installed")


@pytest.fixture
def agent(tmp_path):
    daemon = Snmpd(tmp_path / "snmpd").start()
    yield daemon
    daemon.stop()


@pytest.fixture
def polled(make_server, agent):
    server = make_server(config=CONFIG)
    server.start()
    answer = run("device", "add", DEVICE, agent.address, "Fast", "IfRefPoll", "--credentials",
                 "public", "--server", server.url)
    assert answer.returncode == 0, answer.stderr
    yield server
    server.stop()


def samples(server, metric, interface):
    """Values as they were polled, in the order of time."""
    found = server.query(metric, f"device={DEVICE}", f"interface={interface}", tenant="snmp",
                         start="1h-ago", end="now")
    return [int(v) for _, v in sorted(found[0]["values"].items())] if found else []


def quiet(server, metric, interface, field):
    """The newest polled value, once it is what the kernel says."""
    def equal():
        there = proc_net_dev()[interface][field]
        polled = samples(server, metric, interface)
        return (there, len(polled)) if polled and polled[-1] == there else None
    return eventually(equal, lambda: (proc_net_dev()[interface],
                                      samples(server, metric, interface)[-3:]))


def test_bins_hold_the_traffic_to_the_byte(polled, veth):  # noqa: F811
    sender, receiver = veth
    before, _ = quiet(polled, "ifHCInOctets", receiver, 0)
    begun = int(time.time())
    for _ in range(4):
        polls = len(samples(polled, "ifHCInOctets", receiver))
        send_frames(sender, 500, 1000)
        eventually(lambda: len(samples(polled, "ifHCInOctets", receiver)) > polls, "a poll")
    after, _ = quiet(polled, "ifHCInOctets", receiver, 0)
    assert 2_000_000 <= after - before <= 2_040_000
    first = samples(polled, "ifHCInOctets", receiver)[0]

    def points():
        answer = polled.get(f"/v2/device/{DEVICE}/interface/{receiver}/in", oidset="Fast",
                            begin=begun - 600, end=int(time.time()) + 2, agg=1, cf="delta")
        return answer.json["data"] if answer.status == 200 else []

    def bins():
        return sum(point["val"] or 0 for point in points())

    # Every octet that the kernel counted from the first poll to the last lies in a bin.
    eventually(lambda: bins() == after - first, lambda: (bins(), after - first))
    # And where it was sent.
    there = sum(p["val"] or 0 for p in points() if begun - 2 <= p["ts"] <= time.time())
    assert abs(there - (after - before)) <= 0.01 * (after - before)


def test_what_is_written_is_what_is_computed(polled, veth):  # noqa: F811
    """Once the rates are made the answer is the same; hours and days follow from the bins."""
    sender, receiver = veth
    quiet(polled, "ifHCInOctets", receiver, 0)
    send_frames(sender, 500, 1000)
    after, count = quiet(polled, "ifHCInOctets", receiver, 0)
    made = polled.metric("granary_persist_rates_made_total")
    eventually(lambda: polled.metric("granary_persist_rates_made_total") > made + 1, lambda: made)
    raw = samples(polled, "ifHCInOctets", receiver)
    for agg in (1, 3600, 86400):
        answer = polled.get(f"/v2/device/{DEVICE}/interface/{receiver}/in", oidset="Fast",
                            begin=int(time.time()) - 2 * 86400, end=int(time.time()) + 2, agg=agg,
                            cf="delta")
        total = sum(point["val"] or 0 for point in answer.json["data"])
        assert raw[-1] >= after and count <= len(raw)
        assert total == after - raw[0], (agg, total, raw[0], after)


def test_interfaces_are_listed(polled, veth):  # noqa: F811
    def listed():
        answer = run("interface", "list", DEVICE, "--server", polled.url, "-o", "csv")
        return {line.split(",")[1] for line in answer.stdout.splitlines()[1:]}
    eventually(lambda: set(veth) | {"lo"} <= listed(), listed)
    answer = polled.get(f"/v2/device/{DEVICE}/interface/", limit=0)
    assert {i["ifName"] for i in answer.json["children"]} >= set(veth) | {"lo"}


def test_a_device_that_is_gone_is_said(polled, agent):
    agent.stop()

    def state():
        return run("device", "list", "--server", polled.url, "-o", "csv").stdout.splitlines()[1]
    eventually(lambda: ",failing," in state(), state)
    agent.start()
    eventually(lambda: ",ok," in state(), state)


def test_the_agent_of_this_machine(make_server, agent):
    """As ./run asks for it, at another port."""
    server = make_server(options=[f"--snmp.local_agent={agent.address}"])
    server.start()
    name = pathlib.Path("/proc/sys/kernel/hostname").read_text().strip()
    eventually(lambda: [d["name"] for d in server.get("/api/devices").json] == [name],
          lambda: server.get("/api/devices"))
    server.restart()
    assert [d["name"] for d in server.get("/api/devices").json] == [name]
    server.stop()


def test_no_agent_is_no_harm(make_server):
    server = make_server(options=["--snmp.local_agent=127.0.0.1:9"])
    server.start()
    eventually(lambda: "no SNMP agent answers at 127.0.0.1:9" in server.log_text(), server.log_tail)
    assert server.get("/api/devices").json == []
    server.stop()
