"""What clients of OpenTSDB ask, Grafana's data source above all, in its own requests."""

import json
import socket
import struct

import pytest

from server import longest_turn_ms, run, turn_max_ms
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


def test_the_same_by_the_address(octets):
    """GET /api/query?m=... as /api/query is documented: aggregator, rate, interval, metric, tags
    that are grouped by, and behind them those that are not."""
    def get(*m, **params):
        answer = octets.get("/api/query", m=list(m), start=T0, end=T0 + 239, **params)
        assert answer.status == 200, answer
        return answer.json

    def same(m, **query):
        asked = {"aggregator": "sum", "metric": "if.octets", **query}
        answer = post(octets, {"start": T0, "end": T0 + 239, "queries": [asked]})
        assert answer.status == 200, answer
        assert get(m) == answer.json != []

    first = {str(T0 + 60 * minute): value
             for minute, value in enumerate([5100, 5820, 1660, 2380])}
    assert [group["dps"] for group in get("sum:if.octets")] == [first]
    same("sum:2m-max:if.octets{host=*}", downsample="2m-max", tags={"host": "*"})
    same("sum:if.octets{host=h-1|h-2,interface=eth0}",
         tags={"host": "h-1|h-2", "interface": "eth0"})
    same("sum:if.octets{}{host=regexp(^h-[1,9]$)}", filters=[
        {"type": "regexp", "tagk": "host", "filter": "^h-[1,9]$", "groupBy": False}])
    same("sum:if.octets{interface=*}{host=h-1}", tags={"interface": "*"}, filters=[
        {"type": "literal_or", "tagk": "host", "filter": "h-1", "groupBy": False}])
    same("sum:rate:if.octets{host=h-1}", rate=True, tags={"host": "h-1"})
    same("sum:1m-avg-null:rate{counter,6000,50}:if.octets", downsample="1m-avg-null", rate=True,
         rateOptions={"counter": True, "counterMax": 6000, "resetValue": 50})
    same("sum:rate{dropcounter}:if.octets", rate=True,
         rateOptions={"counter": True, "dropResets": True})
    same("sum:explicit_tags:if.octets{host=*,interface=*}", explicitTags=True,
         tags={"host": "*", "interface": "*"})
    two = get("max:if.octets", "none:if.errors", ms="true", arrays="", show_query="true")
    assert [group["dps"][0] for group in two] == [[T0 * 1000, 5000], [T0 * 1000, 1]]
    assert [group["query"]["index"] for group in two] == [0, 1]
    assert octets.get("/api/query", m="sum:if.octets", start="1h-ago").json == []
    dates = octets.get("/api/query", m="sum:if.octets", start="2020/08/24-16:00:00",
                       end=f"{T0}.000")
    assert dates.json[0]["dps"] == {str(T0): 5100}


@pytest.mark.parametrize("address, sentence", [
    ("m=sum:if.octets", "start is missing"),
    ("start=0&m=if.octets", 'm: "if.octets" is not of the form aggregator:metric{tag=value}'),
    ("start=0&m=sum:1x-avg:m", 'queries[0]: downsample "1x-avg"'),
    ("start=0&m=sum:fast:m", 'm: "fast" is none of an interval (1m-avg), rate'),
    ("start=0&m=median:m", 'queries[0]: aggregator "median"'),
    ("start=0&m=sum:m{host=a", 'm: "{host=a" does not end with }'),
    ("start=0&m=sum:m{host}", 'm: "host" is not of the form tag=value'),
    ("start=0&m=sum:m{a=b}{c=d}{e=f}", "has a third pair of braces"),
    ("start=0&m=sum:rate{counter,-1}:m", 'm: counterMax "-1" is not a whole number'),
    ("start=0&m=sum:rate{counter,1,2,3}:m", "has more than three options"),
    ("start=0&m=sum:rate{count}:m", "begins with neither counter nor dropcounter"),
    ("start=0&tsuids=sum:000001", "tsuids is not supported: series have no such ids"),
    ("start=0&tsuid=sum:000001", "tsuid is not supported: series have no such ids"),
    ("start=0&m=sum:m&delete=true", "delete is not supported"),
    ("start=0&m=sum:m&fn=avg", 'unknown parameter "fn"'),
    ("start=0&start=1&m=sum:m", "start is given twice"),
])
def test_bad_addresses_are_refused_with_a_sentence(server, address, sentence):
    answer = server.request("GET", "/api/query?" + address)
    assert answer.status == 400, answer
    assert sentence in answer.json["error"]["message"]


def test_the_newest_value_of_each_series(octets):
    def newest(answer):
        assert answer.status == 200, answer
        assert set(answer.json[0]) == {"metric", "timestamp", "value", "tags"}
        return [(one["metric"], one["tags"].get("host"), one["tags"].get("interface"),
                 one["timestamp"], one["value"]) for one in answer.json]

    last = (T0 + 180) * 1000
    all_of_them = [("if.octets", host, interface, last, f"{values[-1]}.0")
                   for (host, interface), values in SERIES.items()]
    errors = ("if.errors", "h-1", None, T0 * 1000, "1.0")
    assert newest(octets.get("/api/query/last", timeseries="if.octets",
                             resolve="true")) == all_of_them
    assert newest(octets.get("/api/query/last", timeseries=[
        "if.errors", "if.octets{host=h-1}"])) == [errors] + all_of_them[:2]
    answer = octets.request("POST", "/api/query/last", json.dumps({"queries": [
        {"metric": "if.octets", "tags": {"interface": "eth1"}}, {"metric": "if.errors"}],
        "resolveNames": True, "backScan": 0}))
    assert newest(answer) == [all_of_them[1], errors]
    # All of it is years old: looked for in the last day there is nothing.
    assert octets.get("/api/query/last", timeseries="if.octets", back_scan=24).json == []
    assert octets.get("/api/query/last", timeseries="nil").json == []
    for address, sentence in [
            ("", "0 queries of 1 to 32"), ("?tsuids=000001", "tsuids is not supported"),
            ("?timeseries=a{b=c", "does not end with }"), ("?timeseries=a&back_scan=x", '"x"'),
            ("?timeseries=a{b=c}{d=e}", "has a second pair of braces"), ("?m=a", '"m"')]:
        answer = octets.request("GET", "/api/query/last" + address)
        assert answer.status == 400 and sentence in answer.json["error"]["message"], answer
    for body, sentence in [
            ('{"queries":[{"tsuids":["01"]}]}', "tsuids is not supported"), ("[]", "no object"),
            ('{"queries":[{"metric":"a"}],"backScan":-1}', "backScan"),
            ('{"queries":[{}]}', '"metric" is missing'), ('{"back":1}', '"back"')]:
        answer = octets.request("POST", "/api/query/last", body)
        assert answer.status == 400 and sentence in answer.json["error"]["message"], answer


def test_a_slash_at_the_end_of_a_path_is_nothing(octets):
    """Of every path of the page that lists them, that takes no name behind it."""
    paths = ["/api/aggregators", "/api/config/filters", "/api/version", "/api/suggest?type=tagk",
             "/api/search/lookup?m=if.octets", f"/api/query?m=sum:if.octets&start={T0}",
             "/api/query/last?timeseries=if.octets", "/api/metadata/metricNames", "/api/devices",
             "/api/oidsets", "/api/pollers", "/api/agents", "/-/healthy", "/ping"]
    for path in paths:
        name, _, query = path.partition("?")
        plain, slashed = octets.request("GET", path), octets.request("GET", name + "/?" + query)
        assert plain.status in (200, 204), plain
        assert slashed.status == plain.status, slashed
        if "lookup" not in path:  # it says how long it took
            assert slashed.body == plain.body
    assert octets.request("GET", "/api/aggregators//").status == 404
    assert octets.request("GET", "/api/nothing/").status == 404
    assert octets.request("POST", "/api/put/", "[]").status == 204


def test_who_asks_for_too_many_gets_what_there_may_be(octets):
    for most in (10**9, 10**18):
        assert octets.get("/api/suggest", type="tagv", max=most).json == [
            "eth0", "eth1", "h-1", "h-2"]
        found = octets.get("/api/search/lookup", m="if.octets", limit=most, useMeta="true").json
        assert found["limit"] == 10000 and found["totalResults"] == 3
    asked = {"type": "metrics", "q": "if.", "max": 10**9}
    answer = octets.request("POST", "/api/suggest", json.dumps(asked))
    assert answer.json == ["if.errors", "if.octets"]
    for body, sentence in [("[]", "no object"), ('{"type":"tags"}', '"tags"'),
                           ('{"type":"tagk","max":0}', "max"), ('{"q":[]}', "q is neither"),
                           ('{"kind":"tagk"}', 'unknown member "kind"')]:
        answer = octets.request("POST", "/api/suggest", body)
        assert answer.status == 400 and sentence in answer.json["error"]["message"], answer


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


@pytest.fixture
def long_names(server):
    """1,000 series, with a tag whose value is 200 times the same letter, and a number."""
    lines = "".join(f"m,name={'a' * 200}{i},few=f{i // 200} v=1 {T0}000000000\n"
                    for i in range(1000))
    assert server.write(lines).status == 204
    return server


def expressions(count, expression, key="name", **more):
    return {"start": T0 - 60, "end": T0 + 60, "queries": count * [
        {"metric": "m_v", "aggregator": "count", **more,
         "filters": [{"type": "regexp", "tagk": key, "filter": expression, "groupBy": False}]}]}


# Every second character that can be seen, and none that means something: 40 ranges.
WIDE = "[" + "".join(chr(c) for c in range(0x21, 0x7f, 2) if chr(c) not in "[]\\^-") + "]"


def test_classes_of_expressions_do_not_stop_the_loop(long_names):
    """14 KB that cost 40 s: the work of filters is another thread's, and bounded by request."""
    expression = f"({WIDE}?{WIDE}?)*({WIDE}?{WIDE}?)*~"
    answer = post(long_names, expressions(32, expression))
    assert answer.status in (200, 422), answer
    assert longest_turn_ms(long_names) < turn_max_ms()


def test_the_work_of_filters_is_bounded_by_request(long_names):
    """At each of 200 characters 250 times a character may be the next: 50,000 steps and more of
    each of 200 values, so 10 million steps and more of a query, of which a request has 50
    million."""
    only = {"type": "literal_or", "tagk": "few", "filter": "f1", "groupBy": False}
    body = expressions(1, "(a?){250}~")
    body["queries"][0]["filters"].append(only)
    answer = post(long_names, body)
    assert answer.status == 200 and answer.json == [], answer
    body["queries"] *= 32
    answer = post(long_names, body)
    assert answer.status == 422, answer
    assert answer.json["error"]["message"].startswith("queries["), answer
    assert "the filters take too long" in answer.json["error"]["message"]


def last(server, count, expression, **more):
    queries = count * [{"metric": "m_v", "tags": {"name": f"regexp({expression})", **more}}]
    return server.request("POST", "/api/query/last", json.dumps({"queries": queries}))


def test_the_newest_points_by_expressions_do_not_stop_the_loop(long_names):
    """As those of /api/query: 10 million steps a query, and 50 million of a request."""
    assert last(long_names, 32, f"({WIDE}?{WIDE}?)*({WIDE}?{WIDE}?)*~").status in (200, 422)
    answer = last(long_names, 1, "(a?){250}~", few="f1")
    assert answer.status == 200 and answer.json == [], answer
    answer = last(long_names, 32, "(a?){250}~", few="f1")
    assert answer.status == 422 and "the filters take too long" in answer.text, answer
    assert longest_turn_ms(long_names) < turn_max_ms()


def test_many_patterns_do_not_stop_the_loop(server):
    """Each of 20,000 values is compared with 255 patterns, three times, before one matches."""
    for begin in range(0, 20000, 5000):
        lines = "".join(f"m,name={'a' * 200}{i},few=f{i // 200} v=1 {T0}000000000\n"
                        for i in range(begin, begin + 5000))
        assert server.write(lines).status == 204
    patterns = "|".join(["*a~%d*" % i for i in range(255)] + ["*aa*"])
    answer = server.get("/api/query", metricName="m_v", start=T0, tag=3 * [f"name={patterns}"])
    assert answer.status == 422 and "20000 series match" in answer.text, answer
    answer = server.get("/api/query", metricName="m_v", start=T0,
                        tag=[f"name={patterns}", "name=*a7777|*a19999"])
    assert len(answer.json) == 2
    assert longest_turn_ms(server) < turn_max_ms()


def test_of_many_tag_values_the_first_are_given(server):
    """In the order of bytes, as many as wanted: of 20,000 that are looked at in parts."""
    for begin in range(0, 20000, 5000):
        lines = "".join(f"m,name=h{i} v=1 {T0}000000000\n" for i in range(begin, begin + 5000))
        assert server.write(lines).status == 204
    names = sorted(f"h{i}" for i in range(20000))
    for limit in 1, 3, 5000, 19999, 20000, 20001:
        answer = server.get("/api/metadata/tagValues", metricName="m_v", tagKey="name",
                            limit=limit)
        assert answer.json == names[:limit]
        assert (answer.headers["X-Granary-Cut"] == "limit") == (limit < 20000)
    answer = server.get("/api/metadata/tagValues", metricName="m_v", tagKey="name", limit=2,
                        prefix="h19")
    assert answer.json == ["h19", "h190"]


def test_clients_that_leave_while_filters_are_at_work(long_names):
    """What the other thread looks at stays until it has looked."""
    body = json.dumps(expressions(3, f"({WIDE}?a?)*~")).encode()
    request = (b"POST /api/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body)) + body
    for _ in range(15):
        with socket.create_connection(("127.0.0.1", long_names.port)) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(request)
            # It is answered by the same loop, so the request has been read by then.
            assert long_names.get("/-/healthy").status == 200
    answer = post(long_names, expressions(1, "^a+7$", "name"))
    assert list(answer.json[0]["dps"].values()) == [1]
