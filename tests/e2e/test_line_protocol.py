"""Line protocol against the real server: what comes in through /write comes out of /api/query,
whatever the body's coding and cuts, and what is wrong is named."""

import gzip
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import urllib.parse

import pytest

from server import PATIENCE_S, ROOT, eventually

START_S = 1_700_000_000


def program():
    if "GRANARY" in os.environ:
        return os.environ["GRANARY"]
    return pathlib.Path(os.environ.get("GRANARY_BUILD", ROOT / "build")) / "granary"


class Server:
    def __init__(self, data, *options):
        self.data, self.options = data, options
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [program(), "serve", "--listen", "127.0.0.1:0", "--data", self.data,
             "--host.enabled", "false", *self.options],
            stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", line).group(1))

    def end(self, signum=signal.SIGTERM):
        self.process.send_signal(signum)
        self.process.stdout.close()
        return self.process.wait(PATIENCE_S)

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, headers or {},
                               encode_chunked=not isinstance(body, (bytes, type(None))))
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def write(self, body, query="precision=s", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        status, answer, _ = self.request("POST", "/write?" + query, body, headers)
        return status, json.loads(answer) if answer else None

    def values(self, metric, tenant="default", **tags):
        """Values by time of the one series that matches."""
        query = [("tenant", tenant), ("metricName", metric), ("start", "0"),
                 ("end", str(START_S + 100_000))]
        query += [("tag", f"{key}={value}") for key, value in tags.items()]
        status, answer, _ = self.request("GET", "/api/query?" + urllib.parse.urlencode(query))
        assert status == 200, answer
        series = json.loads(answer)
        assert len(series) <= 1, series
        return list(series[0]["values"].values()) if series else []

    def gauge(self, name):
        _, text, _ = self.request("GET", "/metrics")
        return float(re.search(rf"^{name} (\S+)$", text.decode(), re.M).group(1))


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path / "data")
    yield server
    assert server.end() == 0


def test_every_type_comes_back(server):
    lines = f"""m,host=a f=1.5,i=-9007199254740993i,u=18446744073709551615u,t=true,n=F {START_S}
load,host=a value=0.25 {START_S}
load value=1 {START_S}
"""
    assert server.write(lines.encode()) == (204, None)
    assert server.values("m_f", host="a") == [1.5]
    assert server.values("m_i", host="a") == [-9007199254740993]
    assert server.values("m_u", host="a") == [18446744073709551615]
    assert server.values("m_t", host="a") == [1.0]
    assert server.values("m_n", host="a") == [0.0]
    assert server.values("load", host="a") == [0.25]


def test_bad_lines_are_named_and_good_ones_kept(server):
    status, answer = server.write(
        f"m v=1 {START_S}\nm v= {START_S}\n# comment\nm,t=x\nm v=2,s=\"no\" {START_S + 1}\n"
        f"m v=3 -5\nm v=NaN {START_S}\nm v=4 {START_S + 2}".encode())
    assert status == 400
    assert answer["dropped"] == 4
    assert answer["stored"] == 3  # of lines 1, 5 and 8; a text is left out, and is none
    assert answer["error"].startswith("partial write: line 2, column 5: this is not a value; ")
    assert answer["error"].endswith("; and 1 more; dropped=4")
    assert [(e["line"], e["column"], e["reason"]) for e in answer["errors"]] == [
        (2, 5, "syntax"), (4, 6, "syntax"), (6, 7, "too_old"), (7, 5, "not_finite")]
    assert server.values("m_v") == [1.0, 2.0, 4.0]


def test_what_a_field_does_to_its_line(server):
    """The last of two values counts; an integer that is too large costs nothing but itself."""
    assert server.write(f"m v=1,w=5,v=2 {START_S}\nm w=+6i {START_S + 1}".encode()) == (204, None)
    status, answer = server.write(f"m v=3,w=9223372036854775808i {START_S + 2}\n"
                                  f"m,b=1,a=1,b=2 v=4 {START_S}".encode())
    assert status == 400
    assert [(e["line"], e["column"], e["reason"]) for e in answer["errors"]] == [
        (1, 9, "out_of_range"), (2, 11, "name")]
    assert server.values("m_v") == [2, 3] and server.values("m_w") == [5, 6]


def test_tenants(server):
    line = f"m,tenant=t-1,k=v f=1i {START_S}".encode()
    assert server.write(line)[0] == 204
    assert server.write(line, X_Tenant="t-2")[0] == 204
    assert server.write(line, X_Tenant="no/tenant")[0] == 400
    assert server.write(f"m,tenant=no/tenant f=1 {START_S}".encode())[0] == 400
    assert server.values("m_f", tenant="t-1", k="v") == [1]
    assert server.values("m_f", tenant="t-2", k="v") == [1]
    status, answer, _ = server.request("GET", "/api/metadata/tenants")
    assert json.loads(answer) == ["t-1", "t-2"]


@pytest.mark.parametrize("unit, time_text", [
    ("", f"{START_S}123456789"), ("ns", f"{START_S}123999999"), ("us", f"{START_S}123999"),
    ("u", f"{START_S}123000"), ("ms", f"{START_S}123")])
def test_precision(server, unit, time_text):
    assert server.write(f"m f=1i {time_text}".encode(), f"precision={unit}")[0] == 204
    query = f"/api/query?tenant=default&metricName=m_f&start={START_S}123&end={START_S}124"
    status, answer, _ = server.request("GET", query)
    assert list(json.loads(answer)[0]["values"].values()) == [1]


def test_unknown_precision(server):
    status, answer = server.write(b"m f=1i 1", "precision=y")
    assert status == 400 and "precision" in answer["error"]


def many_lines(hosts, points):
    return "".join(f"cpu,host=h-{host},dc=x a={host}i,b={point}i,c=0.5 {START_S + point}\n"
                   for point in range(points) for host in range(hosts))


@pytest.mark.parametrize("seed", range(4))
def test_chunks_of_any_size(server, seed):
    """Cut by the sender wherever it likes, gzipped or not."""
    body = many_lines(40, 60).encode()
    headers = {}
    if seed % 2:
        body = gzip.compress(body)
        headers["Content-Encoding"] = "gzip"
    draw = random.Random(seed)

    def chunks():
        at = 0
        while at < len(body):
            size = draw.choice([1, 2, 63, 64, 65, 1000, 5000, 70000])
            yield body[at:at + size]
            at += size

    assert server.write(chunks(), **{"Transfer_Encoding": "chunked"}, **headers) == (204, None)
    for host in (0, 17, 39):
        assert server.values("cpu_a", host=f"h-{host}") == [host] * 60
        assert server.values("cpu_b", host=f"h-{host}") == list(range(60))


def test_many_writers_at_once(server):
    """New series from all of them, partly the same ones."""
    failures = []

    def writer(number):
        for point in range(20):
            lines = "".join(f"m,host=h-{host} f{number}={point}i,same=1i {START_S + point}\n"
                            for host in range(50))
            status, answer = server.write(lines.encode())
            if status != 204:
                failures.append(answer)

    threads = [threading.Thread(target=writer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for number in range(8):
        assert server.values(f"m_f{number}", host="h-49") == list(range(20))
    assert server.values("m_same", host="h-0") == [1] * 20


def test_what_was_answered_survives_a_kill(tmp_path):
    server = Server(tmp_path / "data")
    body = many_lines(100, 50).encode()
    assert server.write(body)[0] == 204
    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    server.start()
    assert server.values("cpu_b", host="h-99") == list(range(50))
    # The same again changes nothing.
    assert server.write(body)[0] == 204
    assert server.values("cpu_b", host="h-99") == list(range(50))
    assert server.end() == 0


def test_bodies_over_the_limit(tmp_path):
    server = Server(tmp_path / "data", "--ingest.body_max", "64K", "--ingest.decoded_max", "256K")
    line = f"m f=1i {START_S}\n".encode()
    assert server.write(line * 6000)[0] == 413
    bomb = gzip.compress(b"\n" * (1 << 20))
    assert len(bomb) < 64 << 10
    assert server.write(bomb, Content_Encoding="gzip")[0] == 413
    assert server.write(line)[0] == 204
    assert server.end() == 0


def test_a_line_without_end(server):
    status, answer = server.write(b"m,t=" + b"x" * (1 << 20) + f"\nm f=1i {START_S}".encode())
    assert status == 400
    assert answer["errors"] == [{"line": 1, "column": 1, "reason": "too_long",
                                 "message": "the line is longer than 65536 bytes"}]
    assert server.values("m_f") == [1]


def test_clients_that_go_away_leave_nothing_behind(server):
    body = many_lines(200, 20).encode()
    for cut in (0, 1, 1000, 100_000):
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as client:
            client.sendall(b"POST /write?precision=s HTTP/1.1\r\nHost: localhost\r\n"
                           b"Content-Length: 10000000\r\n\r\n" + body[:cut])
    eventually(lambda: not server.gauge("granary_ingest_in_flight_bytes")
               and server.gauge("granary_http_connections") <= 1)
    assert server.write(f"m f=1i {START_S}".encode())[0] == 204


def test_limits_of_the_catalog_are_told(tmp_path):
    server = Server(tmp_path / "data", "--catalog.series_per_tenant", "10")
    lines = "".join(f"m,id={number} f=1i {START_S}\n" for number in range(30))
    status, answer = server.write(lines.encode())
    assert status == 400 and answer["dropped"] == 20
    assert {error["reason"] for error in answer["errors"]} == {"limit"}
    assert "10 series" in answer["errors"][0]["message"]
    assert server.values("m_f", id="0") == [1]
    assert server.end() == 0


def test_hand_shakes(server):
    status, body, headers = server.request("GET", "/ping")
    assert (status, body) == (204, b"") and headers["X-Influxdb-Version"].startswith("1.8")
    status, body, _ = server.request("GET", "/health")
    assert status == 200 and json.loads(body)["status"] == "pass"
    status, body, _ = server.request("POST", "/query?q=CREATE%20DATABASE%20%22telegraf%22", b"")
    assert status == 200 and json.loads(body) == {"results": [{"statement_id": 0}]}
    assert server.request("POST", "/query?q=DROP%20DATABASE%20x", b"")[0] == 400
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, body, _ = server.request("POST", "/query", b"q=CREATE+DATABASE+%22telegraf%22", form)
    assert status == 200 and json.loads(body) == {"results": [{"statement_id": 0}]}
    with_charset = {"Content-Type": "Application/X-WWW-Form-URLencoded ; charset=utf-8"}
    assert server.request("POST", "/query", b"db=&q=create%20database%20x", with_charset)[0] == 200
    for body, headers in ((b"q=DROP+DATABASE+x", form), (b"q=CREATE%2", form), (b"&&=&q", form),
                          (b"q=CREATE+DATABASE+x", {}), (b"p=CREATE+DATABASE+x", form)):
        assert server.request("POST", "/query", body, headers)[0] == 400
    status, _, _ = server.request("POST", "/api/v2/write?org=o&bucket=b&precision=s",
                                  f"m f=1i {START_S}".encode())
    assert status == 204
