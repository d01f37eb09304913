"""Asking: the document's worked example, tags, times, computed windows, limits, metadata, CSV."""

import csv
import io
import json
import select
import socket
import struct
import time

import pytest

# The rows of data_raw that the document prints, and points of the series it does not select.
TAGS = {
    "h-1": {"host": "h-1", "os": "linux", "deployment": "prod"},
    "h-2": {"host": "h-2", "os": "windows", "deployment": "prod"},
    "h-3": {"host": "h-3", "os": "linux", "deployment": "dev"},
    "h-4": {"host": "h-4", "os": "linux", "deployment": "prod"},
}
POINTS = [
    ("h-4", "2020-08-24T16:34:05Z", 477),
    ("h-1", "2020-08-24T15:51:15Z", 186),
    ("h-1", "2020-08-24T16:23:54Z", 828),
    ("h-1", "2020-08-24T16:23:58Z", 842),
    ("h-1", "2020-08-24T16:26:52Z", 832),
    ("h-1", "2020-08-24T16:34:05Z", 436),
    ("h-2", "2020-08-24T16:34:05Z", 99),
    ("h-3", "2020-08-24T16:34:05Z", 98),
]
START, END = "2020-08-24T15:00:00Z", "2020-08-24T17:00:00Z"


@pytest.fixture
def document(server):
    """The example of the document, tenant t-1."""
    answer = server.put([{"metric": "cpu_idle", "timestamp": ts, "value": value,
                          "tags": {**TAGS[host], "tenant": "t-1"}} for host, ts, value in POINTS])
    assert answer.status == 204, answer
    return server


def by_host(found):
    return {series["tags"]["host"]: series for series in found}


def ask(server, *tags, **params):
    params = {"start": START, "end": END, **params}
    return server.query("cpu_idle", *tags, tenant="t-1", **params)


def test_worked_example_gives_exactly_the_two_series_sets(document):
    answer = document.get("/api/query", tenant="t-1", metricName="cpu_idle",
                          tag=["os=linux", "deployment=prod"], start=START, end=END)
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    expected = [
        {"tenant": "t-1", "metricName": "cpu_idle",
         "tags": {"host": "h-1", "os": "linux", "deployment": "prod"},
         "values": {"2020-08-24T15:51:15Z": 186.0, "2020-08-24T16:23:54Z": 828.0,
                    "2020-08-24T16:23:58Z": 842.0, "2020-08-24T16:26:52Z": 832.0,
                    "2020-08-24T16:34:05Z": 436.0}},
        {"tenant": "t-1", "metricName": "cpu_idle",
         "tags": {"host": "h-4", "os": "linux", "deployment": "prod"},
         "values": {"2020-08-24T16:34:05Z": 477.0}},
    ]
    assert sorted(answer.json, key=lambda series: series["tags"]["host"]) == expected
    # As printed in the document: with a fraction, times in order.
    assert '"2020-08-24T16:34:05Z":477.0' in answer.text.replace(" ", "")
    h1 = by_host(answer.json)["h-1"]
    assert list(h1["values"]) == sorted(h1["values"])


@pytest.mark.parametrize("tags, hosts", [
    (["os=linux"], {"h-1", "h-3", "h-4"}),
    (["deployment=prod"], {"h-1", "h-2", "h-4"}),
    (["host=h-*"], {"h-1", "h-2", "h-3", "h-4"}),
    (["host=*-3"], {"h-3"}),
    (["host=h-*", "os=w*"], {"h-2"}),
    ([], {"h-1", "h-2", "h-3", "h-4"}),
    (["os=linux", "host=h-2"], set()),
    (["os=Linux"], set()),
    (["host=h"], set()),
    (["nosuch=*"], set()),
])
def test_tags_select(document, tags, hosts):
    assert set(by_host(ask(document, *tags))) == hosts


def test_other_tenants_see_nothing(document):
    assert document.query("cpu_idle", "os=linux", tenant="t-2", start=START, end=END) == []
    assert document.query("cpu_idle", "os=linux", start=START, end=END) == []


def test_unknown_metric_is_an_empty_list(document):
    assert document.query("cpu_busy", tenant="t-1", start=START, end=END) == []


def test_start_is_inclusive_and_end_exclusive(document):
    values = ask(document, "host=h-1", start="2020-08-24T16:23:54Z",
                 end="2020-08-24T16:26:52Z")[0]["values"]
    assert values == {"2020-08-24T16:23:54Z": 828.0, "2020-08-24T16:23:58Z": 842.0}
    # One second less at the start, one more at the end.
    values = ask(document, "host=h-1", start="2020-08-24T16:23:55Z",
                 end="2020-08-24T16:26:53Z")[0]["values"]
    assert values == {"2020-08-24T16:23:58Z": 842.0, "2020-08-24T16:26:52Z": 832.0}


def test_series_without_points_in_the_range_are_left_out(document):
    assert set(by_host(ask(document, "deployment=prod", end="2020-08-24T16:00:00Z"))) == {"h-1"}


@pytest.mark.parametrize("start, end", [
    ("2020-08-24T16:34:05Z", "2020-08-24T16:34:06Z"),
    ("2020-08-24T18:34:05+02:00", "2020-08-24T18:34:06+02:00"),
    ("1598286845", "1598286846"),          # date -u -d 2020-08-24T16:34:05Z +%s
    ("1598286845000", "1598286845001"),
])
def test_forms_of_a_time(document, start, end):
    assert ask(document, "host=h-4", start=start, end=end)[0]["values"] == {
        "2020-08-24T16:34:05Z": 477.0}


def test_relative_times(server):
    now = int(time.time())
    for ago in (30, 7200, 200000):
        assert server.put({"metric": "m", "timestamp": now - ago, "value": ago,
                           "tags": {"a": "b"}}).status == 204
    assert list(server.values("m", start="1h-ago").values()) == [30.0]
    assert list(server.values("m", start="3h-ago").values()) == [7200.0, 30.0]
    assert list(server.values("m", start="1w-ago").values()) == [200000.0, 7200.0, 30.0]
    assert list(server.values("m", start="1w-ago", end="1d-ago").values()) == [200000.0]
    # The end is now where none is given.
    answer = server.get("/api/query", tenant="default", metricName="m", start="60s-ago")
    assert list(answer.json[0]["values"].values()) == [30.0]


@pytest.mark.parametrize("params", [
    {},                                               # no metric
    {"metricName": "cpu_idle", "start": "yesterday"},
    {"metricName": "cpu_idle", "start": "1x-ago"},
    {"metricName": "cpu_idle", "start": "2020-13-01T00:00:00Z"},
    {"metricName": "cpu_idle", "start": END, "end": START},
    {"metricName": "cpu_idle", "start": START, "end": END, "tag": "os"},
    {"metricName": "cpu_idle", "start": START, "end": END, "format": "xml"},
    {"metricName": "cpu_idle", "start": START, "end": END, "fn": "mode", "window": "1h"},
    {"metricName": "cpu_idle", "start": START, "end": END, "fn": "max", "window": "0s"},
    {"metricName": "cpu_idle", "start": START, "end": END, "fn": "max", "window": "1h",
     "aggregator": "max", "granularity": "1h"},
])
def test_a_bad_question_gets_400_and_a_sentence(document, params):
    answer = document.get("/api/query", tenant="t-1", **params)
    assert answer.status == 400, answer
    assert len(answer.json["error"]["message"]) > 10


# h-1 by hours from 15:00: 186 | 828, 842, 832, 436.
@pytest.mark.parametrize("fn, first, second", [
    ("max", 186, 842), ("min", 186, 436), ("sum", 186, 2938), ("count", 1, 4),
    ("avg", 186, 734.5), ("first", 186, 828), ("last", 186, 436),
])
def test_functions_over_windows(document, fn, first, second):
    values = ask(document, "host=h-1", fn=fn, window="1h")[0]["values"]
    assert values == {"2020-08-24T15:00:00Z": first, "2020-08-24T16:00:00Z": second}


def test_a_window_without_samples_is_not_zero(document):
    """Zero is not nothing: windows of 10 minutes from 15:00, three of twelve hold something."""
    values = ask(document, "host=h-1", fn="sum", window="10m")[0]["values"]
    present = {ts: value for ts, value in values.items() if value is not None}
    assert present == {"2020-08-24T15:50:00Z": 186.0, "2020-08-24T16:20:00Z": 2502.0,
                       "2020-08-24T16:30:00Z": 436.0}


def test_csv(document):
    answer = document.get("/api/query", tenant="t-1", metricName="cpu_idle", tag="host=h-1",
                          start="2020-08-24T16:00:00Z", end="2020-08-24T16:25:00Z", format="csv")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/csv")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert len(rows) == 3, rows
    for row, (ts, value) in zip(rows[1:], [("2020-08-24T16:23:54Z", 828.0),
                                           ("2020-08-24T16:23:58Z", 842.0)]):
        assert ts in row
        assert value == float(row[-1])


def test_csv_titles_are_told_apart(make_server):
    server = make_server(options=["--ingest.tenant_tag="])
    server.start()
    tags = {"tenant": "a", "time": "b", "metric": "c", "value": "d", "tag.value": "e", "x": "f"}
    assert server.put({"metric": "m", "timestamp": 1600000000, "value": 1,
                       "tags": tags}).status == 204
    answer = server.get("/api/query", tenant="default", metricName="m", start=0, format="csv")
    (titles, row) = csv.reader(io.StringIO(answer.text))
    assert titles == ["time", "tenant", "metric", "tag.metric", "tag.tag.value", "tag.tenant",
                      "tag.time", "tag.value", "x", "value"]
    assert row[1:] == ["default", "m", "c", "e", "a", "b", "d", "f", "1.0"]


def test_csv_quotes_what_needs_it(server):
    tag = 'a "quoted", odd=value'
    assert server.put({"metric": "m", "timestamp": 1600000000, "value": 1,
                       "tags": {"t": tag}}).status == 204
    answer = server.get("/api/query", tenant="default", metricName="m", start=0, format="csv")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert len(rows) == 2 and any(tag in field or tag.replace(",", "\\,").replace("=", "\\=")
                                  in field for field in rows[1]), rows


def test_head_has_the_head_of_get(document):
    path = "/api/query?tenant=t-1&metricName=cpu_idle&start=0"
    assert document.get(path).status == 200
    answer = document.request("HEAD", path)
    assert answer.status == 200 and answer.body == b""


def test_too_many_series_and_points_are_422_or_flagged(make_server):
    server = make_server(options=["--query.series_max=3", "--query.points_max=5"])
    server.start()
    lines = "".join(f"m,host=h-{h} value={t} {1600000000 + t}000000000\n"
                    for h in range(4) for t in range(2))
    assert server.write(lines).status == 204
    # Four series where three are allowed.
    answer = server.get("/api/query", tenant="default", metricName="m", start=0)
    assert answer.status == 422 or "truncated" in answer.text or "cut" in answer.text, answer
    if answer.status == 422:
        assert "3" in answer.json["error"]["message"]
    # Three series of two points where five points are allowed.
    answer = server.get("/api/query", tenant="default", metricName="m", start=0,
                        tag="host=h-0|h-1|h-2")
    assert answer.status == 422 or answer.headers.get("X-Granary-Truncated") or \
        "truncated" in answer.text or "cut" in answer.text, answer
    # At the limits all is well.
    answer = server.get("/api/query", tenant="default", metricName="m", start=0,
                        tag="host=h-0|h-1")
    assert answer.status == 200 and sum(len(s["values"]) for s in answer.json) == 4


def test_metadata(document):
    meta = "/api/metadata/"
    document.put({"metric": "disk_free", "timestamp": 1600000000, "value": 1,
                  "tags": {"tenant": "t-9", "disk": "sda"}})
    assert sorted(document.get(meta + "tenants").json) == ["t-1", "t-9"]
    assert document.get(meta + "metricNames", tenant="t-1").json == ["cpu_idle"]
    assert document.get(meta + "metricNames", tenant="t-9").json == ["disk_free"]
    assert document.get(meta + "metricNames", tenant="none").json == []
    keys = document.get(meta + "tagKeys", tenant="t-1", metricName="cpu_idle").json
    assert sorted(keys) == ["deployment", "host", "os"]
    values = document.get(meta + "tagValues", tenant="t-1", metricName="cpu_idle", tagKey="os").json
    assert sorted(values) == ["linux", "windows"]
    assert document.get(meta + "tagValues", tenant="t-1", metricName="cpu_idle",
                        tagKey="nosuch").json == []
    assert document.get(meta + "tagKeys", tenant="t-1").status == 400


def test_everything_is_there_after_a_restart(document):
    before = ask(document)
    document.restart()
    assert by_host(ask(document)) == by_host(before)
    assert sorted(document.get("/api/metadata/tenants").json) == ["t-1"]


def test_values_come_back_as_they_were_sent(server):
    """Each line's value and how it must be printed: shortest form that reads back the same."""
    cases = ["9007199254740993i", "-9223372036854775808i", "9223372036854775807i",
             "18446744073709551615u", "0u", "-0.0", "0.1", "1e300", "5e-324", "-123456.789",
             "4503599627370496.5"]
    lines = "".join(f"v value={text} {1600000000 + i}000000000\n" if text[-1] not in "iu" else
                    f"v,type={text[-1]} value={text} {1600000000 + i}000000000\n"
                    for i, text in enumerate(cases))
    assert server.write(lines).status == 204
    got = {}
    answer = server.get("/api/query", tenant="default", metricName="v", start=0)
    for series in answer.json:
        got.update(series["values"])
    assert len(got) == len(cases)
    for i, text in enumerate(cases):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1600000000 + i))
        expected = int(text[:-1]) if text[-1] in "iu" else float(text)
        assert got[stamp] == expected and type(got[stamp]) is type(expected), text
    assert "-0.0" in answer.text


def test_query_answers_are_gzipped_for_who_takes_it(document):
    import gzip
    plain = document.get("/api/query", tenant="t-1", metricName="cpu_idle", start=0)
    packed = document.get("/api/query", {"Accept-Encoding": "gzip"}, tenant="t-1",
                          metricName="cpu_idle", start=0)
    body = packed.body
    if packed.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    assert body == plain.body


def test_several_series_in_one(document):
    """The example's values at 16:34:05: 436 (h-1), 99 (h-2, windows), 98 (h-3, dev), 477 (h-4)."""
    at = {"start": "2020-08-24T16:30:00Z"}
    found = ask(document, agg="sum", by="os", **at)
    assert [(series["tags"], series["values"]) for series in found] == [
        ({"os": "linux"}, {"2020-08-24T16:34:05Z": 1011.0}),
        ({"os": "windows"}, {"2020-08-24T16:34:05Z": 99.0})]
    found = ask(document, agg="max", **at)
    assert [(series["tags"], series["values"]) for series in found] == [
        ({}, {"2020-08-24T16:34:05Z": 477.0})]
    # From 16:00 on h-1 has 828, 842, 832 and 436, h-4 477: every sample weighs the same.
    found = ask(document, "deployment=prod", "os=linux", fn="avg", window="1h", agg="avg",
                start="2020-08-24T16:00:00Z")
    assert [series["values"] for series in found] == [{"2020-08-24T16:00:00Z": 683.0}]


def test_the_largest_doubles(server):
    """Their sum is infinite, which JSON cannot say; their average is one of them."""
    server.put([{"metric": "large", "timestamp": 1600000000 + i, "value": value,
                 "tags": {"h": host}}
                for host, values in (("a", (1.5e308, 1.5e308)), ("b", (5e307, 0.5e308)))
                for i, value in enumerate(values)])
    stamp = "2020-09-13T12:00:00Z"

    def ask_large(**params):
        return [series["values"] for series in server.query("large", start=0, **params)]
    assert ask_large(fn="avg", window="1h") == [{stamp: 1.5e308}, {stamp: 5e307}]
    assert ask_large(fn="sum", window="1h") == [{stamp: None}, {stamp: 1e308}]
    assert ask_large(fn="avg", window="1h", agg="avg") == [{stamp: 1e308}]
    assert ask_large(fn="sum", window="1h", agg="sum") == [{stamp: None}]
    assert list(ask_large(agg="avg")[0].values()) == [1e308, 1e308]
    assert list(ask_large(agg="sum")[0].values()) == [None, None]
    answer = server.get("/api/query", metricName="large", tag="h=a", start=0, fn="sum",
                        window="1h", format="csv")
    assert answer.text.splitlines()[1].split(",")[-1] == "+Inf"


def test_newest_value_of_each_series(document):
    found = by_host(ask(document, "deployment=prod", fn="last"))
    assert {host: series["values"] for host, series in found.items()} == {
        "h-1": {"2020-08-24T16:34:05Z": 436.0}, "h-2": {"2020-08-24T16:34:05Z": 99.0},
        "h-4": {"2020-08-24T16:34:05Z": 477.0}}
    found = by_host(ask(document, "host=h-1", fn="last", end="2020-08-24T16:26:52Z"))
    assert found["h-1"]["values"] == {"2020-08-24T16:23:58Z": 842.0}


def test_explain_says_what_was_read(document):
    answer = document.get("/api/query", tenant="t-1", metricName="cpu_idle", tag="host=h-1",
                          start=START, end=END, explain=1)
    assert [len(series["values"]) for series in answer.json["result"]] == [5]
    explain = answer.json["explain"]
    assert (explain["series"], explain["rows"], explain["points"]) == (1, 1, 5)
    assert explain["reads"] == 1
    assert all(explain[key] >= 0 for key in ("catalogMs", "storeMs", "readersMs", "encodingMs"))


def test_clients_that_do_not_read_keep_no_place(make_server):
    """As many as there are places ask for far more than the sockets hold, and read nothing. Nobody
    is cut and no query times out within this test: only their places let the small query run."""
    server = make_server(options=["--query.concurrent_max=2", "--query.timeout=5m",
                                  "--http.write_timeout=10m"])
    server.start()
    start, count = 1600000000, 400000
    for begin in range(0, count, 20000):
        lines = "".join(f"big v={i} {start + i}\n" for i in range(begin, begin + 20000))
        assert server.write(lines + f"small v=1 {start}\n", precision="s").status == 204
    deaf = []
    for _ in range(2):
        sock = socket.create_connection(("127.0.0.1", server.port))
        sock.sendall(f"GET /api/query?metricName=big_v&start={start}&end={start + count} "
                     "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert sock.recv(4, socket.MSG_PEEK)  # it is being answered
        deaf.append(sock)
    answer = server.get("/api/query", metricName="small_v", start=start, end=start + 1)
    assert answer.status == 200 and list(answer.json[0]["values"].values()) == [1]
    for sock in deaf:
        sock.settimeout(60)
        body = b"".join(iter(lambda sock=sock: sock.recv(1 << 20), b""))
        assert body.count(b"Z\":") == count
        sock.close()


def test_too_much_is_refused_with_the_estimate(make_server):
    server = make_server(options=["--query.samples_max=99"])
    server.start()
    start = 1600000000
    assert server.put([{"metric": "m", "timestamp": start + 10 * i, "value": i,
                        "tags": {"host": f"h-{host}"}}
                       for i in range(10) for host in range(10)]).status == 204
    answer = server.get("/api/query", metricName="m", start=start, end=start + 100)
    assert answer.status == 422
    assert ("the query would look at about 100 samples (10 series of about 10 each); at most 99 "
            "(query.samples_max)" in answer.text)
    answer = server.get("/api/query", metricName="m", tag="host=h-1,h-2", start=start,
                        end=start + 100)
    assert answer.status == 200 and len(answer.json) == 2


def test_what_people_say_of_a_metric(make_server):
    """It is durable when it is answered, changes only what is given, and a metric must be there."""
    server = make_server()
    server.start()
    path = "/api/metadata/metric"
    of_cpu = {"tenant": "default", "metricName": "cpu_idle"}
    assert server.write("cpu idle=1 1600000000000000000").status == 204

    def say(body, **params):
        body = body if isinstance(body, str) else json.dumps(body)
        return server.request("PUT", path, body, **{**of_cpu, **params})

    answer = say({"unit": "%", "kind": "gauge", "description": "time without \u202e work"})
    assert answer.status == 200
    said = {**of_cpu, "kind": "gauge", "unit": "%", "description": "time without \u202e work",
            "aggregators": ["raw"], "table": "data_raw", "baseFrequencyMs": 0}
    assert answer.json == said
    server.kill()
    server.start()
    assert server.get(path, **of_cpu).json == said
    series, = server.get("/api/metadata/series", **of_cpu).json
    assert {key: series[key] for key in said} == said

    assert say({"unit": None, "kind": ""}).status == 200
    assert server.get(path, **of_cpu).json == {**said, "unit": "", "kind": "unknown"}
    assert say({"description": "d" * 1024, "unit": "u" * 64}).status == 200
    for body, sentence in [
            ({"kind": "gouge"}, 'kind "gouge" is none: it is gauge, counter or rate'),
            ({"kind": "unknown"}, 'kind "unknown" is none: it is gauge, counter or rate'),
            ({"unit": "u" * 65}, "unit has 65 bytes; it may have 64"),
            ({"description": "d" * 1025}, "description has 1025 bytes; it may have 1024"),
            ({"description": "a\nb"}, "description has control characters: it is one line"),
            ({"unit": 1}, "unit is a text, or null"),
            ({"unti": "%"}, '"unti" cannot be set; kind, unit and description can'),
            ({}, "the body is to be an object with kind, unit or description"),
            ([], "the body is to be an object with kind, unit or description"),
            ("", None), ("{", None)]:
        answer = say(body)
        assert answer.status == 400, (body, answer)
        assert sentence is None or answer.json["error"]["message"] == sentence
    # What is refused changes nothing, in whole.
    assert say({"description": "x", "kind": "gouge"}).status == 400
    assert server.get(path, **of_cpu).json["description"] == "d" * 1024

    absent = {"tenant": "default", "metricName": "cpu_idl"}
    for answer in (say({"unit": "%"}, **absent), server.get(path, **absent)):
        assert answer.status == 404
        assert answer.json["error"]["message"] == (
            'metric "cpu_idl" of tenant "default" does not exist')
    assert server.get("/api/metadata/series", **absent).json == []
    server.stop()


def test_a_client_that_leaves_while_it_says_something(make_server):
    """Each says another unit and is gone; the last that was answered is not undone by any of them,
    and the server ends as it should."""
    server = make_server()
    server.start()
    assert server.write("cpu idle=1 1600000000000000000").status == 204
    path = "/api/metadata/metric?tenant=default&metricName=cpu_idle"
    for i in range(60):
        body = json.dumps({"unit": f"left-{i}"}).encode()
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
                               f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            # Some leave at once, some while it is described, written, or described again.
            select.select([connection], [], [], i % 6 / 2000)
    assert server.get("/-/healthy").status == 200  # what was sent before has been read now
    assert server.request("PUT", path, '{"unit":"last"}').json["unit"] == "last"
    assert server.get(path).json["unit"] == "last"
    server.stop()
