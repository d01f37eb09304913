"""What clients of OpenTSDB ask, Grafana's data source above all, in its own requests."""

import json

import pytest

from server import run
from test_alias import network  # noqa: F401  (a fixture)
from test_polls import T0 as POLLED_T0

T0 = 1598284800   # 2020-08-24T16:00:00Z (date -u -d @1598284800)
# Octets of interfaces, each minute; eth1 began again at zero before the third.
SERIES = {
    ("h-1", "eth0"): [0, 600, 1200, 1800],
    ("h-1", "eth1"): [5000, 5120, 60, 180],
    ("h-2", "eth0"): [100, 100, 400, 400],
}


@pytest.fixture
def octets(server):
    points = [{"metric": "if.octets", "timestamp": T0 + 60 * minute, "value": value,
               "tags": {"host": host, "interface": interface}}
              for (host, interface), values in SERIES.items()
              for minute, value in enumerate(values)]
    points.append({"metric": "if.errors", "timestamp": T0, "value": 1, "tags": {"host": "h-1"}})
    assert server.put(points).status == 204
    return server


def post(server, body, **params):
    return server.request("POST", "/api/query", json.dumps(body),
                          {"Content-Type": "application/json"}, **params)


def test_the_requests_of_grafana(octets):
    """As its data source sends them: saving it, the query editor, variables, a panel."""
    assert octets.get("/api/suggest", type="metrics", q="cpu", max=1000).json == []
    assert octets.get("/api/suggest", type="metrics", q="if.", max=1000).json == [
        "if.errors", "if.octets"]
    assert octets.get("/api/suggest", type="tagk", q="", max=1000).json == ["host", "interface"]
    assert octets.get("/api/suggest", type="tagv", q="eth", max=1000).json == ["eth0", "eth1"]
    aggregators = octets.get("/api/aggregators").json
    assert {"sum", "avg", "min", "max", "count", "none"} <= set(aggregators)
    filters = octets.get("/api/config/filters").json
    assert set(filters) == {"literal_or", "not_literal_or", "regexp", "wildcard"}
    assert all(set(about) == {"examples", "description"} for about in filters.values())
    # Keys of a metric's tags, and the values of one of them where another is known.
    found = octets.get("/api/search/lookup", m="if.octets", limit=1000).json
    assert {key for result in found["results"] for key in result["tags"]} == {"host", "interface"}
    found = octets.get("/api/search/lookup", m="if.octets{interface=*,host=h-1}",
                       limit=1000).json
    assert [result["tags"]["interface"] for result in found["results"]] == ["eth0", "eth1"]
    assert found["totalResults"] == 2
    # A panel of two queries, by milliseconds, one with rate and filters, one with tags.
    queries = [
        {"metric": "if.octets", "aggregator": "sum", "rate": True,
         "rateOptions": {"counter": True, "dropResets": True}, "downsample": "1m-avg",
         "filters": [{"filter": "eth*", "tagk": "interface", "type": "wildcard",
                      "groupBy": False},
                     {"filter": "h-1|h-2", "tagk": "host", "type": "literal_or",
                      "groupBy": True}]},
        {"metric": "if.octets", "aggregator": "avg", "downsample": "2m-max-null",
         "tags": {"host": "h-2"}, "explicitTags": False},
    ]
    answer = post(octets, {"start": T0 * 1000, "end": (T0 + 239) * 1000, "queries": queries,
                           "msResolution": True, "globalAnnotations": True, "showQuery": True})
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"].startswith("application/json")

    def ms(minute):
        return str((T0 + 60 * minute) * 1000)

    assert answer.json == [
        # eth0 600 in 60 s; eth1 120 in 60 s, what began again left out, then 120.
        {"metric": "if.octets", "tags": {"host": "h-1"}, "aggregateTags": ["interface"],
         "aggregatedTags": ["interface"], "query": {"index": 0, **queries[0]},
         "dps": {ms(1): 12.0, ms(2): 10.0, ms(3): 12.0}},
        {"metric": "if.octets", "tags": {"host": "h-2", "interface": "eth0"},
         "aggregateTags": [], "aggregatedTags": [], "query": {"index": 0, **queries[0]},
         "dps": {ms(1): 0.0, ms(2): 5.0, ms(3): 0.0}},
        {"metric": "if.octets", "tags": {"host": "h-2", "interface": "eth0"},
         "aggregateTags": [], "aggregatedTags": [], "query": {"index": 1, **queries[1]},
         "dps": {ms(0): 100.0, ms(2): 400.0}},
    ]
    # Its server asks for alerts: zeros for what is not set, an empty fill policy.
    answer = post(octets, {"start": T0 * 1000, "end": (T0 + 239) * 1000, "queries": [
        {"metric": "if.octets", "aggregator": "sum", "downsample": "1m-avg-", "rate": True,
         "rateOptions": {"counter": True, "counterMax": 0, "resetValue": 0},
         "tags": {"interface": "eth1"}}]})
    assert [group["dps"] for group in answer.json] == [
        {str(T0 + 60): 2.0, str(T0 + 120): 1.0, str(T0 + 180): 2.0}]
    # Its newer versions ask for arrays.
    answer = post(octets, {"start": T0, "end": T0 + 239, "queries": queries[1:]}, arrays="true")
    assert answer.json[0]["dps"] == [[T0, 100.0], [T0 + 120, 400.0]]


def test_a_counter_that_began_again_is_counted_from_zero(octets):
    query = {"metric": "if.octets", "aggregator": "none", "rate": True,
             "rateOptions": {"counter": True}, "tags": {"interface": "eth1"}}
    answer = post(octets, {"start": T0, "end": T0 + 239, "queries": [query]})
    # 120 in 60 s; 60 since zero; 120.
    assert list(answer.json[0]["dps"].values()) == [2.0, 1.0, 2.0]


def test_gaps_by_fill_policy(octets):
    assert octets.put({"metric": "if.octets", "timestamp": T0 + 360, "value": 700,
                       "tags": {"host": "h-2", "interface": "eth0"}}).status == 204

    def dps(downsample):
        answer = post(octets, {"start": T0 + 180, "end": T0 + 479, "queries": [
            {"metric": "if.octets", "aggregator": "sum", "downsample": downsample,
             "tags": {"host": "h-2"}}]})
        return {int(at) - T0: value for at, value in answer.json[0]["dps"].items()}

    for none in ("1m-last", "1m-last-none"):
        assert dps(none) == {180: 400.0, 360: 700.0}
    for null in ("1m-last-null", "1m-last-nan"):
        assert dps(null) == {180: 400.0, 240: None, 300: None, 360: 700.0, 420: None}
    assert dps("1m-last-zero") == {180: 400.0, 240: 0, 300: 0, 360: 700.0, 420: 0}


def test_filters_hold_together_and_tenants_are_apart(octets):
    def found(filters, headers=None):
        body = {"start": T0, "end": T0 + 239, "queries": [
            {"metric": "if.octets", "aggregator": "none", "filters": [
                {"type": kind, "tagk": key, "filter": text, "groupBy": False}
                for kind, key, text in filters]}]}
        answer = octets.request("POST", "/api/query", json.dumps(body), headers or {})
        assert answer.status == 200, answer
        return {(group["tags"]["host"], group["tags"]["interface"]) for group in answer.json}

    assert found([]) == set(SERIES)
    assert found([("literal_or", "host", "h-1|h-2"), ("literal_or", "interface", "eth0")]) == {
        ("h-1", "eth0"), ("h-2", "eth0")}
    assert found([("wildcard", "host", "*2"), ("regexp", "interface", "0$")]) == {
        ("h-2", "eth0")}
    assert found([("not_literal_or", "host", "h-2"), ("regexp", "interface", "eth[1-9]")]) == {
        ("h-1", "eth1")}
    assert found([("literal_or", "host", "h-2"), ("not_literal_or", "host", "h-2")]) == set()
    assert found([], {"X-Tenant": "other"}) == set()


def test_devices_have_their_present_names(network):  # noqa: F811
    """Devices a and b of two interfaces each; a becomes z, but stays a in the store."""
    rename = run("device", "rename", "--server", network.url, "a", "z")
    assert rename.returncode == 0, rename

    def names(q):
        return network.get("/api/suggest", type="tagv", q=q, tenant="snmp").json

    assert names("z") == ["z"]
    assert "a" not in names("") and {"b", "z"} <= set(names(""))

    def devices(m):
        found = network.get("/api/search/lookup", m=m, tenant="snmp").json
        assert found["totalResults"] == len(found["results"])
        return [(result["tags"]["device"], result["tags"]["interface"])
                for result in found["results"]]

    of_z = [("z", "xe-0/0/0"), ("z", "xe-0/0/1")]
    assert devices("ifHCInOctets{device=z}") == of_z
    assert devices("ifHCInOctets{*=z}") == of_z
    assert devices("ifHCInOctets{device=a}") == devices("ifHCInOctets{*=a}") == []

    def groups(kind, text):
        answer = post(network, {"start": POLLED_T0, "end": POLLED_T0 + 100, "queries": [
            {"metric": "ifHCInOctets", "aggregator": "sum", "filters": [
                {"type": kind, "tagk": "device", "filter": text, "groupBy": True}]}]},
            tenant="snmp")
        assert answer.status == 200, answer
        # Two interfaces of 30 and 60 octets each.
        return {group["tags"]["device"]: list(group["dps"].values()) for group in answer.json}

    assert groups("literal_or", "z") == {"z": [60, 120]}
    assert groups("literal_or", "a") == {}
    assert groups("regexp", "^[az]$") == {"z": [60, 120]}
    assert groups("regexp", "^a$") == {}
    assert groups("wildcard", "*")["z"] == [60, 120]
    assert set(groups("not_literal_or", "z|nobody knows it")) == {"b"}
    assert "z" in groups("not_literal_or", "a")


def test_a_long_answer_comes_as_a_stream(server):
    """100 series of 1,000 points, each once as it is and once in one sum, which is 100 times it."""
    lines = "\n".join(f"long,series=s{series:03} v={minute}i {T0 + 60 * minute}"
                      for series in range(100) for minute in range(1000))
    assert server.write(lines, precision="s").status == 204
    answer = post(server, {"start": T0, "end": T0 + 60000, "queries": [
        {"metric": "long_v", "aggregator": "none"},
        {"metric": "long_v", "aggregator": "sum"},
        {"metric": "long_v", "aggregator": "sum", "rate": True},
    ]})
    assert answer.status == 200
    assert answer.headers["Transfer-Encoding"] == "chunked"
    groups = answer.json
    assert len(groups) == 102
    expected = {str(T0 + 60 * minute): minute for minute in range(1000)}
    for number, group in enumerate(groups[:100]):
        assert group["tags"] == {"series": f"s{number:03}"}
        assert group["dps"] == expected
    assert groups[100]["dps"] == {at: 100 * value for at, value in expected.items()}
    # Each grows by one in a minute; the sum of 100 equal doubles is rounded once.
    assert len(groups[101]["dps"]) == 999
    assert set(groups[101]["dps"].values()) == {100 * (1 / 60)}


@pytest.mark.parametrize("body, sentence", [
    ("", "line 1, column 1"),
    ("[]", "the body is no object"),
    ('{"queries":[]}', "start is missing"),
    ('{"start":"yesterday","queries":[]}', "start"),
    ('{"start":0,"queries":[{"metric":"m","aggregator":"median"}]}',
     'queries[0]: aggregator "median"'),
    ('{"start":0,"queries":[{"metric":"m","aggregator":"sum","filters":[{"type":"regexp",'
     '"tagk":"a","filter":"["}]}]}', 'queries[0]: filters[0]: filter "["'),
    ('{"start":0,"queries":[{"metric":"m","aggregator":"sum","filters":[' + ",".join(
        ['{"type":"regexp","tagk":"a","filter":"b"}'] * 65) + "]}]}", "more than 64 filters"),
    ('{"start":0,"queries":[{"metric":"m","aggregator":"sum","filters":[{"type":"literal_or",'
     '"tagk":"a","filter":"' + "|".join(["b"] * 257) + '"}]}]}', "more than 256 values"),
    ('{"start":0,"queries":[' + ",".join(['{"metric":"m","aggregator":"sum"}'] * 33) + "]}",
     "queries has 33 of 1 to 32 queries"),
    ('{"start":0,"queries":' + "[" * 100 + "]" * 100 + "}", "deep"),
])
def test_bad_bodies_are_refused_with_a_sentence(server, body, sentence):
    answer = server.request("POST", "/api/query", body)
    assert answer.status == 400, answer
    assert answer.json["error"]["code"] == 400
    assert sentence in answer.json["error"]["message"]
    # The largest that is taken is 2 MB decoded.
    assert server.request("POST", "/api/query", " " * (1 << 20) + " ").status == 413
