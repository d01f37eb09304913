"""POST /write: Influx line protocol, version 1 and what tools around it expect."""

import pytest

from server import gzipped, running

T = "1600000000000000000"


def test_metric_names_and_field_types(server):
    lines = (f"cpu,host=h-1 usage=1.5,value=2,count=3i,total=4u,ok=t,bad=false {T}\n"
             f"mem,host=h-1 value=5 {T}\n")
    assert server.write(lines).status == 204
    names = server.get("/api/metadata/metricNames", tenant="default").json
    assert sorted(names) == ["cpu", "cpu_bad", "cpu_count", "cpu_ok", "cpu_total", "cpu_usage",
                             "mem"]
    assert {name: list(server.values(name).values())[0] for name in names} == {
        "cpu": 2.0, "cpu_usage": 1.5, "cpu_count": 3, "cpu_total": 4, "cpu_ok": 1, "cpu_bad": 0,
        "mem": 5.0}


@pytest.mark.parametrize("precision, number, expected", [
    (None, "1600000000123456789", "2020-09-13T12:26:40.123Z"),
    ("ns", "1600000000123456789", "2020-09-13T12:26:40.123Z"),
    ("n", "1600000000123456789", "2020-09-13T12:26:40.123Z"),
    ("us", "1600000000123456", "2020-09-13T12:26:40.123Z"),
    ("u", "1600000000123456", "2020-09-13T12:26:40.123Z"),
    ("ms", "1600000000123", "2020-09-13T12:26:40.123Z"),
    ("s", "1600000000", "2020-09-13T12:26:40Z"),
    ("m", "26666667", "2020-09-13T12:27:00Z"),
    ("h", "444444", "2020-09-13T12:00:00Z"),
])
def test_precision(server, precision, number, expected):
    params = {"precision": precision} if precision else {}
    assert server.write(f"m,a=b value=1 {number}\n", **params).status == 204
    assert list(server.values("m")) == [expected]


def test_unknown_precision(server):
    answer = server.write(f"m,a=b value=1 {T}\n", precision="fortnight")
    assert answer.status == 400
    assert 'precision \\"fortnight\\" is none of ns, us, ms, s, m and h' in answer.text
    assert f"precision \\\"{64 * 'x'}...\\\" is" in server.write("m v=1", precision=65 * "x").text


def test_without_a_time_it_is_now(server):
    assert server.write("m,a=b value=7").status == 204
    assert list(server.values("m", start="1m-ago").values()) == [7.0]
    assert server.values("m", end="1m-ago") == {}


def test_database_and_bucket_are_ignored(server):
    line = f"m,a=b value=1 {T}\n"
    assert server.write(line, db="telegraf", rp="autogen", u="x", p="y").status == 204
    assert server.write(line, org="o", bucket="b", precision="ns").status == 204
    assert server.get("/api/metadata/tenants").json == ["default"]


def test_tenant_by_header_and_tag(server):
    assert server.write(f"m,a=b value=1 {T}\n", {"X-Tenant": "head"}).status == 204
    assert server.write(f"m,a=b,tenant=tagged value=2 {T}\n").status == 204
    assert list(server.values("m", tenant="head").values()) == [1.0]
    assert list(server.values("m", tenant="tagged").values()) == [2.0]
    assert server.query("m", tenant="tagged", start=0)[0]["tags"] == {"a": "b"}


def test_ping_and_health(server):
    assert server.get("/ping").status == 204
    assert server.request("HEAD", "/ping").status == 204
    health = server.get("/health")
    assert health.status == 200 and health.json["status"] == "pass"


def test_escapes_comments_blanks_and_line_ends(server):
    lines = ("# a comment\n\n"
             f"my\\ metric\\,x,ta\\ g=va\\,l\\=ue value=1 {T}\r\n"
             f"   m,a=b value=2 {T}\n"
             f"m2 value=3 {T}")
    assert server.write(lines).status == 204
    found = server.query("my metric,x", start=0)
    assert found[0]["tags"] == {"ta g": "va,l=ue"}
    assert list(server.values("m").values()) == [2.0]
    assert server.query("m2", start=0)[0]["tags"] == {}


def test_strings_are_refused_with_a_count_and_the_rest_is_kept(make_server):
    with running(make_server(options=["--line.text_fields=refuse"])) as server:
        line = f'm,a=b text="hello, \\"world\\" = 1",value=1,other="x" {T}\n'
        answer = server.write(line)
        assert answer.status == 400, answer
        assert "2" in answer.text, "both string fields are counted"
        assert list(server.values("m").values()) == [1.0]
        names = server.get("/api/metadata/metricNames", tenant="default").json
        assert names == ["m"]


def test_strings_are_left_out_counted_and_named_once(server):
    """What Telegraf's input "system" sends at every flush."""
    for second in range(3):
        line = f'system,host=a load1=0.5,uptime=70i,uptime_format=" 0:01" {int(T[:10]) + second}'
        assert server.write(line, precision="s").status == 204
    assert server.metric("granary_ingest_text_fields_left_out_total") == 3
    assert list(server.values("system_load1").values()) == [0.5] * 3
    assert sorted(server.get("/api/metadata/metricNames", tenant="default").json) == [
        "system_load1", "system_uptime"]
    told = [line for line in server.log_text().splitlines() if "uptime_format" in line]
    assert len(told) == 1 and "system" in told[0] and "line.text_fields" in told[0], told


BAD = [
    "m", "m,a=b", "m value", "m value=", "m value=1i2", "m value=abc", "m,a value=1",
    "m,a= value=1",
    "m,=b value=1", ",a=b value=1", "m,a=b value=1,", "m,a=b =1", "m,a=b value=1 12x",
    "m,a=b value=1 1600000000000000000 7", "m,a=b value=NaN", "m,a=b value=inf",
    "m,a=b value=1e999",
    "m,a=b value=9223372036854775808i", "m,a=b value=18446744073709551616u", "m,a=b value=-1u",
    "m,a=b value=--1", "m,a=b value=0x10", "m,a=b,a=c value=1", "m,a=b value=1 -1",
    "m,a=b value=1 4102444800000000000", 'm,a=b value="open', "x" * 257 + " value=1",
    "m," + "k" * 257 + "=v value=1", "m,k=" + "v" * 1025 + " value=1",
    "m," + ",".join(f"k{i}=v" for i in range(65)) + " value=1", "m,a=b\0c value=1",
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_malformed_line_never_costs_the_batch(server, bad):
    lines = f"good,n=1 value=1 {T}\n{bad}\ngood,n=3 value=3 {T}\n"
    answer = server.write(lines)
    assert answer.status == 400, answer
    assert "line 2" in answer.text or '"line":2' in answer.text.replace(" ", ""), answer
    assert len(server.query("good", start=0)) == 2
    assert server.query("m", start="1970-01-01T00:00:00Z", end="now") == []


def test_not_utf8(server):
    answer = server.write(b"good value=1 %s\nm,a=\xff\xfe value=1 %s\n" % (T.encode(), T.encode()))
    assert answer.status == 400
    assert len(server.query("good", start=0)) == 1
    assert server.query("m", start=0) == []


def test_every_bad_line_is_named(server):
    lines = "".join(f"m,a=b value={'x' if i in (3, 5, 9) else i} {1600000000 + i}000000000\n"
                    for i in range(1, 11))
    answer = server.write(lines)
    assert answer.status == 400
    text = answer.text.replace('"line":', "line ").replace("line  ", "line ")
    for line in (3, 5, 9):
        assert f"line {line}" in text
    assert len(server.values("m")) == 7


def test_gzip_and_chunked(server):
    lines = "".join(f"m,a=b value={i} {1600000000 + i}000000000\n" for i in range(5000))
    assert server.write(gzipped(lines), {"Content-Encoding": "gzip"}).status == 204
    assert list(server.values("m").values()) == [float(i) for i in range(5000)]
    # Lines cut anywhere by the chunks.
    body = lines.replace("m,a=b", "n,a=b").encode()
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 997]), body[i:i + 997])
                      for i in range(0, len(body), 997))
    answer = server.raw(b"POST /write HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                        b"Connection: close\r\n\r\n" + pieces + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 204 ")
    assert len(server.values("n")) == 5000


def test_an_empty_body_is_nothing(server):
    assert server.write("").status in (204, 400)
    assert server.write("\n\n# nothing\n").status == 204
    assert server.get("/api/metadata/tenants").json == []


def test_out_of_order_and_late_lines(server):
    """Descending, then the gaps, then the same again."""
    stamps = [1600000000 + 10 * i for i in range(200)]
    for part in (reversed(stamps[::2]), stamps[1::2], stamps):
        lines = "".join(f"m,a=b value={t % 1000} {t}000000000\n" for t in part)
        assert server.write(lines).status == 204
    values = server.values("m")
    assert list(values.values()) == [float(t % 1000) for t in stamps]
    assert list(values) == sorted(values)


def test_a_thousand_series_in_a_body(server):
    lines = "".join(f"m,host=h-{i},dc=d-{i % 10} value={i},load={i}i {T}\n" for i in range(1000))
    assert server.write(lines).status == 204
    found = server.query("m", "dc=d-3", start=0)
    assert sorted(list(s["values"].values())[0] for s in found) == [float(i) for i in
                                                                    range(3, 1000, 10)]
    assert len(server.query("m_load", start=0)) == 1000
