"""InfluxDB's own clients, unchanged: what Python's `influxdb` and `influxdb-client` write is read
back exactly, and so is a session of Telegraf.

The session in data/telegraf_*.http is what Telegraf 1.36.4 (outputs influxdb and influxdb_v2;
inputs cpu, mem and mock) sent to this server, byte by byte, connection by connection. What it must
have stored is worked out here from the recorded bodies, by a reader of line protocol of its own."""

import datetime
import gzip
import json
import pathlib
import re
import socket
import time
import warnings

import influxdb
import influxdb_client
import pytest
from influxdb_client.client.write_api import SYNCHRONOUS

from server import PATIENCE_S

DATA = pathlib.Path(__file__).parent / "data"
NOW_S = int(time.time()) - 7200
TIMES = {"s": 1, "ms": 10**3, "u": 10**6, "us": 10**6, "n": 10**9, "ns": 10**9}


def stamp(seconds, ms=0):
    """The time as /api/query writes it."""
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    text = when.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{ms:03}Z" if ms else text + "Z"


# ---- what clients ask first --------------------------------------------------------------------


def test_ping_says_204_or_a_version(server):
    plain = server.get("/ping")
    assert (plain.status, plain.body) == (204, b"")
    assert plain.headers["X-Influxdb-Version"].startswith("1.8.")
    assert plain.headers["X-Influxdb-Build"] == "Granary"
    assert server.request("HEAD", "/ping").status == 204
    for verbose in ("true", "1", "yes"):
        answer = server.get("/ping", verbose=verbose)
        assert answer.status == 200
        assert answer.json == {"version": plain.headers["X-Influxdb-Version"]}
    for silent in ("", "0", "false"):
        assert server.get("/ping", verbose=silent).status == 204


def test_health_and_ready_pass(server):
    for path in ("/health", "/api/v2/health"):
        answer = server.get(path)
        assert answer.status == 200 and answer.json["status"] == "pass"
        assert answer.json["name"] == "granary"
    for path in ("/ready", "/api/v2/ready"):
        answer = server.get(path)
        assert answer.status == 200 and answer.json["status"] == "ready"
        started = datetime.datetime.strptime(answer.json["started"][:19], "%Y-%m-%dT%H:%M:%S")
        assert abs(started.replace(tzinfo=datetime.timezone.utc).timestamp() - time.time()) < 600
        assert re.fullmatch(r"\d+\.\d{3}s", answer.json["up"])


def test_any_bucket_and_organisation_is_there(server):
    bucket, = server.get("/api/v2/buckets", name="met\"rics").json["buckets"]
    assert bucket["name"] == "met\"rics" and re.fullmatch("[0-9a-f]{16}", bucket["id"])
    again, = server.get("/api/v2/buckets", name="met\"rics").json["buckets"]
    other, = server.get("/api/v2/buckets", name="b").json["buckets"]
    assert again["id"] == bucket["id"] != other["id"]
    assert server.get("/api/v2/buckets").json["buckets"][0]["name"] == "default"
    assert server.get("/api/v2/orgs", org="o").json["orgs"][0]["name"] == "o"
    long = server.get("/api/v2/orgs", org="o" * 1025)
    assert long.status == 400 and long.json["code"] == "invalid"
    assert server.get("/api/v2/orgs", org="o" * 1024).status == 200


@pytest.mark.parametrize("q, status", [
    ("CREATE DATABASE x", 200), ("create database \"x y\" WITH REPLICATION 1", 200),
    ("  CREATE\n DATABASE x;", 200), ("SHOW DATABASES", 200), ("show databases;", 200),
    ("CREATE DATABASE", 400), ("CREATE DATABASES x", 400), ("CREATEDATABASE x", 400),
    ("SHOW DATABASES x", 400), ("SHOW SERIES", 400), ("DROP DATABASE x", 400), ("", 400),
    ("SELECT * FROM m", 400), ("\u00e9", 400), (";", 400), ("CREATE", 400), ("SHOW", 400),
])
def test_query_answers_two_statements(server, q, status):
    for answer in (server.get("/query", q=q), server.request("POST", "/query", b"", q=q)):
        assert answer.status == status, answer
        if status == 400:
            assert list(answer.json) == ["error"] and "/api/query" in answer.json["error"]
        elif "show" in q.lower():
            assert answer.json == {"results": [{"statement_id": 0, "series": [
                {"name": "databases", "columns": ["name"], "values": [["default"]]}]}]}
        else:
            assert answer.json == {"results": [{"statement_id": 0}]}


# ---- the shapes of errors ----------------------------------------------------------------------


def test_errors_have_the_shape_of_their_version(make_server):
    server = make_server(options=["--ingest.body_max=1K", "--ingest.decoded_max=1M"])
    server.start()
    good_and_bad = f"m,a=b f=1i {NOW_S}\nm f=\nm,a=b g=2i {NOW_S}\n"
    v1 = server.write(good_and_bad, precision="s")
    v2 = server.request("POST", "/api/v2/write", good_and_bad, precision="s")
    assert v1.status == v2.status == 400
    assert v1.json["error"].startswith("partial write: line 2, column ")
    assert v2.json["message"] == v1.json["error"] and v2.json["code"] == "invalid"
    assert "error" not in v2.json and v1.json["errors"] == v2.json["errors"]
    assert v1.json["dropped"] == v2.json["dropped"] == 1
    assert server.values("m_f") == {stamp(NOW_S): 1} and server.values("m_g") == {stamp(NOW_S): 2}

    cases = [("x" * 1025, {}, {}, 413, "request too large"),
             ("m f=1", {"Content-Encoding": "compress"}, {}, 415, "unsupported media type"),
             ("not gzip", {"Content-Encoding": "gzip"}, {}, 400, "invalid"),
             ("m f=1", {}, {"precision": "fortnight"}, 400, "invalid"),
             ("m f=1", {"X-Tenant": "a b"}, {}, 400, "invalid")]
    for body, headers, params, status, code in cases:
        v1 = server.request("POST", "/write", body, headers, **params)
        v2 = server.request("POST", "/api/v2/write", body, headers, **params)
        assert v1.status == v2.status == status, (v1, v2)
        assert list(v1.json) == ["error"] and list(v2.json) == ["code", "message"]
        assert v2.json == {"code": code, "message": v1.json["error"]}
    server.stop()


# ---- precision and coding ----------------------------------------------------------------------


@pytest.mark.parametrize("precision, unit_ns", [
    ("n", 1), ("ns", 1), ("", 1), ("u", 10**3), ("us", 10**3), ("\u00b5", 10**3),
    ("\u00b5s", 10**3), ("\u03bc", 10**3), ("\u03bcs", 10**3), ("ms", 10**6), ("s", 10**9),
    ("m", 60 * 10**9), ("h", 3600 * 10**9)])
def test_precision_in_all_spellings(server, precision, unit_ns):
    hour = NOW_S // 3600
    count = hour * 3600 * 10**9 // unit_ns
    for path in ("/write", "/api/v2/write"):
        metric = "p" + path.replace("/", "_")
        answer = server.request("POST", path, f"{metric} value=1i {count}", precision=precision)
        assert answer.status == 204, answer
        assert server.values(metric) == {stamp(hour * 3600): 1}


@pytest.mark.parametrize("precision", ["N", "NS", "S", "sec", "min", "d", "\u00b5\u00b5", "ns ",
                                       "\u00c2", "%", "0"])
def test_precisions_that_are_none(server, precision):
    for path in ("/write", "/api/v2/write"):
        answer = server.request("POST", path, f"m f=1i {NOW_S}", precision=precision)
        assert answer.status == 400 and "precision" in answer.text
    assert server.query("m_f", start=0) == []


@pytest.mark.parametrize("coding, packed", [
    ("gzip", True), ("x-gzip", True), ("GZip", True), ("X-GZIP", True), ("identity", False),
    ("Identity", False), ("", False), (" gzip ", True)])
def test_gzip_in_all_spellings(server, coding, packed):
    line = f"m f=7i {NOW_S}".encode()
    answer = server.request("POST", "/write", gzip.compress(line) if packed else line,
                            {"Content-Encoding": coding}, precision="s")
    assert answer.status == 204, answer
    assert server.values("m_f") == {stamp(NOW_S): 7}


@pytest.mark.parametrize("coding", ["gzip, gzip", "gzip,identity", "compress", "gz", "base64"])
def test_other_codings_are_refused(server, coding):
    answer = server.request("POST", "/write", gzip.compress(b"m f=7i"),
                            {"Content-Encoding": coding})
    assert answer.status == 415 and answer.headers["Accept-Encoding"] == "gzip, deflate, br, zstd"


# ---- Python's clients --------------------------------------------------------------------------


def test_python_influxdb(server):
    client = influxdb.InfluxDBClient("127.0.0.1", server.port, "user", "password", gzip=True,
                                     retries=1)
    assert client.ping().startswith("1.8.")
    assert client.get_list_database() == [{"name": "default"}]
    client.create_database("metrics")
    client.switch_database("metrics")
    point = {"measurement": "cpu load", "tags": {"host": "a=b, c", "n": "\u00fc"},
             "time": "2024-02-29T23:59:59.250Z",
             "fields": {"int": 2**53 + 1, "float": 0.1, "yes": True, "value": -1.5}}
    assert client.write_points([point])
    expected = {"cpu load_int": 2**53 + 1, "cpu load_float": 0.1, "cpu load_yes": 1,
                "cpu load": -1.5}
    for metric, value in expected.items():
        found, = server.query(metric, start="2024-01-01", end="2024-12-31")
        assert found["tags"] == {"host": "a=b, c", "n": "\u00fc"}
        assert found["values"] == {"2024-02-29T23:59:59.250Z": value}
    for precision in ("s", "ms", "u", "n"):
        when = NOW_S * TIMES[precision]
        assert client.write_points([{"measurement": precision, "time": when,
                                     "fields": {"value": 4}}], time_precision=precision)
        assert server.values(precision) == {stamp(NOW_S): 4}
    assert client.write(f"plain f=3i {NOW_S}", {"db": "metrics", "precision": "s"}, 204, "line")
    assert server.values("plain_f") == {stamp(NOW_S): 3}
    with pytest.raises(influxdb.exceptions.InfluxDBClientError, match="partial write: line 1") as e:
        client.write("plain f=", {"db": "metrics"}, 204, "line")
    assert e.value.code == 400
    with pytest.raises(influxdb.exceptions.InfluxDBClientError, match="DATABASES"):
        client.drop_database("metrics")
    client.close()


def test_python_influxdb_batches(server):
    client = influxdb.InfluxDBClient("127.0.0.1", server.port, database="x")
    points = [{"measurement": "m", "tags": {"i": str(i % 7)}, "time": NOW_S + i,
               "fields": {"f": i * 0.1}} for i in range(5000)]
    assert client.write_points(points, time_precision="s", batch_size=500)
    for tag in range(7):
        assert server.values("m_f", f"i={tag}") == {
            stamp(NOW_S + i): i * 0.1 for i in range(tag, 5000, 7)}
    client.close()


@pytest.mark.parametrize("packed", [False, True])
def test_python_influxdb_client(server, packed):
    with influxdb_client.InfluxDBClient(server.url, token="t", org="o",
                                        enable_gzip=packed) as client:
        assert client.ping() and client.version().startswith("1.8.") and client.build() == "Granary"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert client.health().status == "pass"
        assert client.ready().status == "ready"
        assert client.buckets_api().find_bucket_by_name("b").name == "b"
        assert client.organizations_api().find_organizations(org="o")[0].name == "o"
        write = client.write_api(write_options=SYNCHRONOUS)
        point = (influxdb_client.Point("m 1").tag("host", "a, b=c").field("int", -(2**63))
                 .field("float", 1e-300).field("yes", False)
                 .time(NOW_S * 1000 + 5, influxdb_client.WritePrecision.MS))
        write.write("b", record=point, write_precision=influxdb_client.WritePrecision.MS)
        for field, value in (("int", -(2**63)), ("float", 1e-300), ("yes", 0)):
            assert server.values(f"m 1_{field}") == {stamp(NOW_S, 5): value}
        for precision in ("s", "ms", "us", "ns"):
            write.write("b", record=f"{precision} value=9i {NOW_S * TIMES[precision]}",
                        write_precision=precision)
            assert server.values(precision) == {stamp(NOW_S): 9}
        with pytest.raises(influxdb_client.rest.ApiException) as e:
            write.write("b", record="m 1 f=")
        assert e.value.status == 400 and json.loads(e.value.body)["code"] == "invalid"
        assert e.value.message.startswith("partial write: line 1")


def test_python_influxdb_client_batching(server):
    options = influxdb_client.WriteOptions(batch_size=700, flush_interval=200)
    failed = []
    with influxdb_client.InfluxDBClient(server.url, token="t", org="o") as client:
        with client.write_api(write_options=options,
                              error_callback=lambda *error: failed.append(error)) as write:
            for i in range(3000):
                write.write("b", record=f"m,i={i % 3} f={i}u {NOW_S + i}", write_precision="s")
    assert failed == []
    for tag in range(3):
        assert server.values("m_f", f"i={tag}") == {
            stamp(NOW_S + i): i for i in range(tag, 3000, 3)}


# ---- Telegraf ----------------------------------------------------------------------------------


def requests_of(data):
    """(head, raw bytes, decoded body) of each request of a connection."""
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        lower = head.lower()
        body = b""
        if b"transfer-encoding: chunked" in lower:
            while True:
                size, _, rest = rest.partition(b"\r\n")
                body, rest = body + rest[:int(size, 16)], rest[int(size, 16) + 2:]
                if int(size, 16) == 0:
                    break
        elif match := re.search(rb"content-length: (\d+)", lower):
            body, rest = rest[:int(match[1])], rest[int(match[1]):]
        raw, data = data[:len(data) - len(rest)], rest
        yield head, raw, gzip.decompress(body) if b"content-encoding: gzip" in lower else body


def split_at(text, separator):
    """At separators that are neither escaped nor quoted."""
    return re.findall(rf'(?:\\.|"(?:\\.|[^"\\])*"|[^{separator}\\])+', text)


def plain(text):
    return re.sub(r"\\([ ,=])", r"\1", text)


def number_of(text):
    if text[-1] in "iu":
        return int(text[:-1])
    if text in ("true", "false"):
        return int(text == "true")
    return float(text)


def points_of(body):
    """{(metric, tags): {time: value}} of the fields that are numbers."""
    found = {}
    for line in body.decode().splitlines():
        key, fields, when = re.fullmatch(r"((?:\\.|[^ \\])+) (.*) (\d+)", line).groups()
        measurement, *tags = split_at(key, ",")
        tags = tuple(sorted(tuple(plain(part) for part in split_at(tag, "=")) for tag in tags))
        for field in split_at(fields, ","):
            name, value = re.fullmatch(r"((?:\\.|[^=\\])+)=(.*)", field, re.S).groups()
            if value[0] == '"':
                continue
            seconds, ns = divmod(int(when), 10**9)
            metric = plain(measurement) + ("" if name == "value" else "_" + plain(name))
            found.setdefault((metric, tags), {})[stamp(seconds, ns // 10**6)] = number_of(value)
    return found


def answer_of(file):
    """The status and body of one answer."""
    status = int(file.readline().split()[1])
    length = 0
    while (line := file.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, file.read(length)


@pytest.mark.parametrize("name", ["telegraf_influxdb", "telegraf_influxdb_v2"])
def test_recorded_telegraf(make_server, name):
    # The session keeps its times, whatever the clock of this machine says.
    server = make_server(options=["--ingest.future_max=3650d"])
    server.start()
    data = (DATA / f"{name}.http").read_bytes()
    expected, texts, writes = {}, 0, 0
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as sock:
        file = sock.makefile("rb")
        for head, raw, body in requests_of(data):
            sock.sendall(raw)
            status, answer = answer_of(file)
            if head.startswith(b"POST /query"):
                assert status == 200 and json.loads(answer) == {"results": [{"statement_id": 0}]}
                continue
            writes += 1
            lines_with_text = body.count(b'constant_text="')
            # A text cannot be stored: it is left out, and the rest of the line is kept.
            assert status == 204
            texts += lines_with_text
            for key, values in points_of(body).items():
                expected.setdefault(key, {}).update(values)
    assert writes >= 4 and texts >= 8 and len(expected) > 40
    mock = ("mock_constant_int", (("host", "recorder"), ("odd=key", "a\\b"),
                                  ("site", "north hall, 2nd floor")))
    assert set(expected[mock].values()) == {2**53 + 1}
    for (metric, tags), values in expected.items():
        found, = server.query(metric, start="2026-01-01", end="2027-01-01")
        assert found["tags"] == dict(tags)
        assert found["values"] == values
    assert server.metric("granary_ingest_text_fields_left_out_total") == texts
    server.stop()
