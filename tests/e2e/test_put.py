"""POST /api/put as document C and OpenTSDB have it: one point or an array, each bad one named."""

import json
import socket
import time

import pytest

from server import PATIENCE_S, gzipped

TAGS = {"host": "h-1"}


def point(value=1, timestamp=1600000000, metric="m", tags=None, **extra):
    return {"metric": metric, "timestamp": timestamp, "value": value,
            "tags": TAGS if tags is None else tags, **extra}


def test_one_point_and_an_array(server):
    answer = server.put(point(12.5))
    assert (answer.status, answer.body) == (204, b"")
    assert server.put([point(1, 1600000001), point(2, 1600000002)]).status == 204
    assert server.values("m") == {"2020-09-13T12:26:40Z": 12.5, "2020-09-13T12:26:41Z": 1.0,
                                  "2020-09-13T12:26:42Z": 2.0}


@pytest.mark.parametrize("timestamp, expected", [
    (1600000000, "2020-09-13T12:26:40Z"),
    (1600000000123, "2020-09-13T12:26:40.123Z"),   # 13 digits: ms
    (999999999999, None),                          # 12 digits: seconds, in the year 33658
    (1000000000000, "2001-09-09T01:46:40Z"),       # the first number of 13 digits
    (1600000000.5, "2020-09-13T12:26:40.500Z"),
    ("2020-09-13T12:26:40Z", "2020-09-13T12:26:40Z"),
    ("2020-09-13T12:26:40.25Z", "2020-09-13T12:26:40.250Z"),
    ("2020-09-13T14:26:40+02:00", "2020-09-13T12:26:40Z"),
    (0, "1970-01-01T00:00:00Z"),
    (-1, None),
    ("yesterday", None),
    (None, None),
    (True, None),
])
def test_timestamps(server, timestamp, expected):
    answer = server.put(point(timestamp=timestamp))
    if expected is None:
        assert answer.status == 400, answer
        assert server.values("m", start="1970-01-01T00:00:00Z") == {}
    else:
        assert answer.status == 204, answer
        assert list(server.values("m")) == [expected]


def test_a_quoted_number_is_a_number(server):
    assert server.put(point("42.5")).status == 204
    assert list(server.values("m").values()) == [42.5]


def test_tenant_by_header_tag_or_default(server):
    assert server.put(point(1), {"X-Tenant": "head"}).status == 204
    assert server.put(point(2, tags={**TAGS, "tenant": "tagged"})).status == 204
    assert server.put(point(3)).status == 204
    # Beside the header the tag is an ordinary one.
    assert server.put(point(4, metric="n", tags={**TAGS, "tenant": "t"}),
                      {"X-Tenant": "head"}).status == 204
    found = {tenant: server.query("m", tenant=tenant, start=0)
             for tenant in ("head", "tagged", "default")}
    assert {tenant: list(series[0]["values"].values()) for tenant, series in found.items()} == {
        "head": [1.0], "tagged": [2.0], "default": [3.0]}
    assert found["tagged"][0]["tags"] == TAGS
    assert server.query("n", tenant="head", start=0)[0]["tags"] == {**TAGS, "tenant": "t"}


@pytest.mark.parametrize("tenant", ["a b", "x" * 65, "ü", "a/b", "a,b"])
def test_a_tenant_name_that_is_none(server, tenant):
    assert server.put(point(), {"X-Tenant": tenant.encode().decode("latin-1")}).status == 400
    assert server.put(point(tags={**TAGS, "tenant": tenant})).status == 400
    assert server.get("/api/metadata/tenants").json == []


def test_the_later_of_two_values_wins(server):
    assert server.put([point(1), point(2)]).status == 204
    assert list(server.values("m").values()) == [2.0]
    assert server.put(point(3)).status == 204
    assert list(server.values("m").values()) == [3.0]


def test_twice_is_once(server):
    batch = [point(i, 1600000000 + i) for i in range(100)]
    for _ in range(3):
        assert server.put(batch).status == 204
    assert list(server.values("m").values()) == [float(i) for i in range(100)]


def test_order_of_tags_does_not_matter(server):
    server.put('{"metric":"m","timestamp":1600000000,"value":1,"tags":{"a":"1","b":"2"}}')
    server.put('{"metric":"m","timestamp":1600000001,"value":2,"tags":{"b":"2","a":"1"}}')
    assert list(server.values("m").values()) == [1.0, 2.0]


BAD = [
    {"metric": "m", "timestamp": 1600000000, "value": "abc", "tags": TAGS},
    {"metric": "", "timestamp": 1600000000, "value": 1, "tags": TAGS},
    {"timestamp": 1600000000, "value": 1, "tags": TAGS},
    {"metric": "m", "value": 1, "tags": TAGS},
    {"metric": "m", "timestamp": 1600000000, "tags": TAGS},
    {"metric": "m", "timestamp": 1600000000, "value": None, "tags": TAGS},
    {"metric": "m", "timestamp": 1600000000, "value": {"a": 1}, "tags": TAGS},
    {"metric": "m", "timestamp": 1600000000, "value": [1], "tags": TAGS},
    {"metric": "m", "timestamp": 1600000000, "value": 1, "tags": {"host": ""}},
    {"metric": "m", "timestamp": 1600000000, "value": 1, "tags": {"": "h"}},
    {"metric": "m", "timestamp": 1600000000, "value": 1, "tags": "host=h-1"},
    {"metric": "m", "timestamp": 1600000000, "value": 1, "tags": {"host": {"a": "b"}}},
    {"metric": "x" * 257, "timestamp": 1600000000, "value": 1, "tags": TAGS},
    {"metric": "m", "timestamp": 1600000000, "value": 1, "tags": {"k" * 257: "v"}},
    {"metric": "m", "timestamp": 1600000000, "value": 1, "tags": {"k": "v" * 1025}},
    {"metric": "m", "timestamp": 1600000000, "value": 1, "tags": {f"k{i}": "v" for i in range(65)}},
    {"metric": "a\u0007b", "timestamp": 1600000000, "value": 1, "tags": TAGS},
    {"metric": "m", "timestamp": int(time.time()) + 90000, "value": 1, "tags": TAGS},
    "m 1600000000 1 host=h-1",
    17,
    None,
    [],
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_one_bad_point_never_costs_the_batch(server, bad):
    answer = server.put([point(1, 1600000100), bad, point(3, 1600000102)], details="")
    assert answer.status == 400, answer
    found = answer.json
    assert found["success"] == 2 and found["failed"] == 1
    assert len(found["errors"]) == 1
    assert "1" in json.dumps(found["errors"][0]), "the index of the bad point"
    assert list(server.values("m", start=1600000050).values()) == [1.0, 3.0]


def test_summary_and_details(server):
    good, bad = point(), point(value="abc", timestamp=1600000001)
    answer = server.put([good], summary="")
    assert answer.status == 200 and answer.json == {"success": 1, "failed": 0}
    answer = server.put([good], details="")
    assert answer.status == 200 and answer.json == {"success": 1, "failed": 0, "errors": []}
    answer = server.request("POST", "/api/put?summary", json.dumps([good, bad]))
    assert answer.status == 400
    assert (answer.json["success"], answer.json["failed"]) == (1, 1)
    # Without either the answer still says what was wrong, and where.
    answer = server.put([good, bad])
    assert answer.status == 400 and "abc" in answer.text or "value" in answer.text


def test_details_name_each_bad_point_with_index_and_reason(server):
    points = [point(i, 1600000000 + i) for i in range(10)]
    points[3]["value"] = "three"
    points[7]["tags"] = {"host": ""}
    answer = server.put(points, details="")
    assert answer.status == 400
    assert answer.json["success"] == 8 and answer.json["failed"] == 2
    three, seven = answer.json["errors"]
    assert "3" in json.dumps(three) and "7" in json.dumps(seven)
    assert "three" in json.dumps(three) or "number" in json.dumps(three)
    assert "host" in json.dumps(seven)


@pytest.mark.parametrize("body", [
    b"", b"{", b"[", b"nothing", b'{"metric":"m"', b"[{}", b'[{"metric":"m"},]', b"\xff\xfe",
    b'{"metric":"m","timestamp":1600000000,"value":1,"tags":{"a":"\xff"}}',
    b'{"metric":"m","timestamp":1600000000,"value":NaN,"tags":{"a":"b"}}',
    b'{"metric":"m","timestamp":1600000000,"value":Infinity,"tags":{"a":"b"}}',
    b'{"metric":"m","timestamp":1600000000,"value":01,"tags":{"a":"b"}}',
    b"[" * 100000, b'"text"', b"1",
])
def test_malformed_json(server, body):
    answer = server.put(body)
    assert answer.status == 400, answer
    assert server.get("/api/metadata/tenants").json == []
    assert server.put(point()).status == 204


def test_what_came_before_a_syntax_error_is_kept(server):
    good = json.dumps(point())
    answer = server.put(f'[{good}, {json.dumps(point(2, 1600000001))}, {{"metric": }}]', details="")
    assert answer.status == 400
    assert "line 1" in answer.text and "column" in answer.text, answer
    assert list(server.values("m").values()) == [1.0, 2.0]


def test_gzip(server):
    body = gzipped(json.dumps([point(i, 1600000000 + i) for i in range(1000)]))
    assert server.put(body, {"Content-Encoding": "gzip"}).status == 204
    assert len(server.values("m")) == 1000
    broken = body[:-20] + b"\0" * 20
    assert server.put(broken, {"Content-Encoding": "gzip"}).status == 400
    assert server.put(b"not gzip", {"Content-Encoding": "gzip"}).status == 400
    assert server.put(body, {"Content-Encoding": "compress"}).status == 415


def test_chunked_and_expect(server):
    body = json.dumps(point()).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7])
                      for i in range(0, len(body), 7))
    answer = server.raw(b"POST /api/put HTTP/1.1\r\nHost: localhost\r\n"
                        b"Transfer-Encoding: chunked\r\n"
                        b"Connection: close\r\n\r\n" + chunks + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 204 ")
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as sock:
        sock.sendall(b"POST /api/put HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body))
        assert sock.recv(4096).startswith(b"HTTP/1.1 100 ")
        sock.sendall(body)
        assert sock.recv(4096).startswith(b"HTTP/1.1 204 ")


def test_numbers_that_no_double_holds_stay_exact(server):
    server.put('{"metric":"m","timestamp":1,"value":9007199254740993,"tags":{"a":"b"}}')
    server.put('{"metric":"m","timestamp":2,"value":18446744073709551615,"tags":{"a":"b"}}')
    server.put('{"metric":"m","timestamp":3,"value":9007199254740992,"tags":{"a":"b"}}')
    values = list(server.values("m").values())
    assert values == [9007199254740993, 18446744073709551615, 9007199254740992.0]
    assert [type(v) for v in values] == [int, int, float]


def test_names_with_separators_come_back_as_they_were(server):
    tags = {"a,b": "c=d", "e\\": "\\,", "ü": "日本 "}
    assert server.put(point(metric="m,x=y", tags=tags)).status == 204
    found = server.query("m,x=y", start=0)
    assert [series["tags"] for series in found] == [tags]
    assert server.get("/api/metadata/metricNames", tenant="default").json == ["m,x=y"]
