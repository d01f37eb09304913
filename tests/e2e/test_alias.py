"""Counters found by what an interface's ifAlias says."""

import json

import pytest

from server import run
from test_polls import T0, message, octets, send, wait_persisted

ALIASES = {  # device: interface: ifAlias
    "a": {"xe-0/0/0": "uplink one", "xe-0/0/1": "customer|7"},
    "b": {"xe-0/0/0": "customer 8", "xe-0/0/1": "uplink two"},
}


def ifref(device, timestamp, aliases):
    return {**message("IfRefPoll", "", timestamp, None, device),
            "data": {"ifName": [[f"ifName.{i}", name] for i, name in enumerate(aliases)],
                     "ifAlias": [[f"ifAlias.{i}", text]
                                 for i, text in enumerate(aliases.values())]}}


@pytest.fixture
def network(server):
    for device in ALIASES:
        assert server.request("POST", "/api/devices", json.dumps(
            {"name": device, "address": "192.0.2.1", "credentials": "public",
             "active": False})).status == 201
    polls = [ifref(device, T0, aliases) for device, aliases in ALIASES.items()]
    polls += [ifref("b", T0 + 1000, {**ALIASES["b"], "xe-0/0/1": "spare"})]
    polls += [octets(T0 + s, s, interface, device) for device, aliases in ALIASES.items()
              for interface in aliases for s in (30, 60, 2000)]
    polls += [octets(T0 + 30, 1, "xe-0/0/0", "nobody knows it")]
    assert send(server, polls).status == 204
    wait_persisted(server)
    return server


def found(server, *tags, start=0, end=100):
    answer = server.query("ifHCInOctets", *tags, tenant="snmp", start=T0 + start, end=T0 + end)
    return [(series["tags"]["device"], series["tags"]["interface"]) for series in answer]


@pytest.mark.parametrize("tags, series", [
    (["alias=uplink*"], [("a", "xe-0/0/0"), ("b", "xe-0/0/1")]),
    (["alias=uplink one"], [("a", "xe-0/0/0")]),
    (["alias=*"], [("a", "xe-0/0/0"), ("a", "xe-0/0/1"), ("b", "xe-0/0/0"), ("b", "xe-0/0/1")]),
    (["alias=uplink*", "device=b"], [("b", "xe-0/0/1")]),
    (["alias=uplink*", "interface=xe-0/0/0"], [("a", "xe-0/0/0")]),
    (["alias=uplink*", "alias=*two"], [("b", "xe-0/0/1")]),
    (["alias=customer\\|7|spare"], [("a", "xe-0/0/1")]),  # it was not called spare yet
    (["alias=uplink"], []),
    (["alias=uplink*", "device=c"], []),
])
def test_interfaces_are_found_by_alias(network, tags, series):
    assert found(network, *tags) == series


def test_aliases_are_those_of_the_time(network):
    """b's interface has another one from 1,000 s on; a query finds what lived in its time."""
    assert found(network, "alias=uplink two", start=0, end=3000) == [("b", "xe-0/0/1")]
    assert found(network, "alias=spare", start=0, end=3000) == [("b", "xe-0/0/1")]
    assert found(network, "alias=uplink two", start=1500, end=3000) == []
    assert found(network, "alias=spare", start=1500, end=3000) == [("b", "xe-0/0/1")]


def test_groups_and_the_command(network):
    answer = network.query("ifHCInOctets", "alias=uplink*", tenant="snmp", start=T0, end=T0 + 100,
                           agg="sum")
    assert [list(series["values"].values()) for series in answer] == [[60, 120]]
    done = run("query", "--server", network.url, "--tenant", "snmp", "--start", T0, "--end",
               T0 + 100, "ifHCInOctets", "alias=uplink one")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 3


def test_other_tenants_have_a_tag_of_that_name(network):
    network.put([{"metric": "m", "timestamp": T0, "value": 1, "tags": {"alias": "x"}}])
    assert len(network.query("m", "alias=x", start=T0, end=T0 + 1)) == 1
    assert network.query("m", "alias=y", start=T0, end=T0 + 1) == []


def test_a_renamed_device_keeps_its_aliases(network):
    """Its rows and series are stored under the old name, which another device takes later."""
    rename = run("device", "rename", "--server", network.url, "a", "z")
    assert rename.returncode == 0, rename
    assert found(network, "alias=uplink*") == [("z", "xe-0/0/0"), ("b", "xe-0/0/1")]
    assert found(network, "alias=uplink*", "device=z") == [("z", "xe-0/0/0")]
    assert found(network, "alias=uplink*", "device=a") == []
    rows = network.get("/v2/interface/", device="z", ifAlias__startswith="uplink").json["children"]
    assert [(row["device"], row["ifName"]) for row in rows] == [("z", "xe-0/0/0")]
    bulk = network.request("POST", "/v2/bulk/timeseries/", json.dumps(
        {"type": "RawData", "begin": T0 * 1000, "end": (T0 + 3000) * 1000,
         "paths": [["snmp", "z", "FastPollHC", "ifHCInOctets", "xe-0/0/0", 30000]]}),
        {"Content-Type": "application/json"})
    assert bulk.status == 201, bulk
    assert [point["val"] for point in bulk.json["data"][0]["data"]] == [30, 60, 2000], bulk
    assert network.request("POST", "/api/devices", json.dumps(
        {"name": "a", "address": "192.0.2.1", "credentials": "public",
         "active": False})).status == 201
    polls = [ifref("a", T0, {"xe-9": "uplink nine"}), octets(T0 + 30, 1, "xe-9", "a")]
    assert send(network, polls).status == 204
    wait_persisted(network)
    assert sorted(found(network, "alias=uplink*", "device=a|z")) == [("a", "xe-9"),
                                                                    ("z", "xe-0/0/0")]
    assert found(network, "alias=uplink*", "device=a") == [("a", "xe-9")]
