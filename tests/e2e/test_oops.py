"""Fault reports against the real server: the three formats as python-oops and its kin write them,
repeats and conflicts, arrays, masks, days, lists; crashes, full disks and clients that leave. What
a day says is compared with a count in Python over what was sent."""

import bz2
import collections
import csv
import datetime
import gzip
import io
import json
import os
import random
import socket
import struct
import sys
import threading
import time
import uuid

import bson
import oops
import pytest
from oops_datedir_repo import serializer_bson, serializer_rfc822

import mounts
from server import build_folder, eventually, long_run, run
from test_clock import HOOK as CLOCK_HOOK, ClockServer

FAULT_HOOK = build_folder() / "tests" / "fault" / "fault_hook.so"
ADDRESS = "/login"
SECRETS = ["hunter2-pw", "tok-4711-abc", "c00kie-5e55ion", "s3cr3t-in-query", "s3cr3t-in-sql"]


def post(server, body, path="/oops", **headers):
    body = body if isinstance(body, (bytes, str)) else json.dumps(body)
    return server.request("POST", path, body, headers)


def put(server, name, report, **headers):
    return server.request("PUT", f"/oops/{name}", json.dumps(report), headers)


def report_of(server, name):
    answer = server.get(f"/oops/{name}")
    assert answer.status == 200, answer
    return answer.json


def day_of(server, day="today", **params):
    answer = server.get(f"/oops/days/{day}", **params)
    assert answer.status == 200, answer
    return answer.json


def pages(server, path="/oops", limit=100, key="reports", **params):
    """All that a list has, page by page."""
    found, token = [], {}
    while True:
        answer = server.get(path, limit=limit, **params, **token)
        assert answer.status == 200, answer
        assert len(answer.json[key]) <= limit
        found += answer.json[key]
        if "token" not in answer.json:
            return found
        assert len(answer.json[key]) == limit
        assert answer.headers.get("X-Granary-Token", answer.json["token"]) == answer.json["token"]
        token = {"token": answer.json["token"]}


def summary(reports, list_max=100):
    """What a day is to say of reports, as lists give them."""
    volume = collections.Counter(f"{r.get('context', '')}:{r.get('exception', '')}"
                                 for r in reports)
    hours = [0] * 24
    for r in reports:
        hours[r["date"] // 3600000 % 24] += 1

    def top(member):
        found = sorted((-r[member], r["id"]) for r in reports if member in r)
        return [[-value, name] for value, name in found[:list_max]]
    return {"total": len(reports), "hours": hours, "duration": top("duration"),
            "statement count": top("statements"), "volume": dict(volume)}


def check_day(server, reports, day="today", list_max=100):
    said, expected = day_of(server, day), summary(reports, list_max)
    assert {key: said[key] for key in expected} == expected
    counts = list(said["volume"].values())
    assert counts == sorted(counts, reverse=True) and said["rest"] == 0


def hours_left():
    """Whether the UTC day ends within this test: then there are two."""
    return 86400 - time.time() % 86400 > 600


def some_report(chance, number):
    report = {"id": f"OOPS-{number:08x}", "context": f"/page{chance.randrange(4)}",
              "exception": chance.choice(["KeyError", "ValueError"]),
              "duration": chance.choice([5, 17.25, chance.randrange(10**6) / 1000])}
    if chance.random() < 0.7:
        report["timeline"] = [{"start": i, "length": 1, "database": "main",
                               "statement": f"SELECT {i}"} for i in range(chance.randrange(1, 9))]
    return report


# ---- What python-oops sends ----------------------------------------------------------------------


def made_by_python_oops():
    """A report of a real Config, as oops_wsgi would fill it in."""
    config = oops.Config()
    config.template.update(reporter="web", branch_nick="main", revno="42", topic=ADDRESS)
    try:
        {}["customer"]
    except KeyError:
        report = config.create({"exc_info": sys.exc_info(), "url": "http://shop.example/login"})
    report["time"] = report["time"].replace(microsecond=500000)  # bson rounds, rfc822 does not
    report["tb_text"] = "Traceback (most recent call last):\n" + report["tb_text"]
    report.update(id="OOPS-" + uuid.uuid4().hex, username="anna, 7", duration=1.25,
                  req_vars={"REQUEST_METHOD": "POST", "HTTP_COOKIE": "session=" + SECRETS[2]},
                  timeline=[[0, 12, "SQL-main", "SELECT 1"], [13, 20, "SQL-main", "SELECT 2"],
                            [21, 22, "memcache-get", "key"]])
    return report


def rfc822(report):
    return b"".join(serializer_rfc822.to_chunks(report))


FORMATS = {"bson": serializer_bson.dumps, "rfc822": rfc822}
PACKINGS = {"plain": (lambda data: data, {}), "bz2": (bz2.compress, {}),
            "gzip": (gzip.compress, {"Content-Encoding": "gzip"})}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("form", FORMATS)
def test_a_report_of_python_oops(server, form, packing):
    sent = made_by_python_oops()
    pack, headers = PACKINGS[packing]
    before_ms = time.time_ns() // 10**6
    answer = post(server, pack(FORMATS[form](sent)), **headers)
    assert answer.status == 201, answer
    assert answer.json["id"] == sent["id"] == answer.headers["X-Oops-Id"]
    assert before_ms <= answer.json["date"] <= time.time_ns() // 10**6
    assert answer.json["result"] == "taken"
    kept = report_of(server, sent["id"])
    assert kept["date"] == answer.json["date"]
    assert (kept["context"], kept["exception"]) == (ADDRESS, "KeyError")
    assert (kept["value"], kept["URL"]) == ("'customer'", "http://shop.example/login")
    assert (kept["branch"], kept["revision"], kept["reporter"]) == ("main", "42", "web")
    assert (kept["username"], kept["duration"]) == ("anna, 7", 1250)
    assert kept["REQUEST.REQUEST_METHOD"] == "POST"
    assert SECRETS[2] not in json.dumps(kept)
    assert sent["tb_text"].strip() in kept["tb_text"]
    assert kept["reported.date"].startswith(sent["time"].strftime("%Y-%m-%dT%H:%M:%S"))
    assert [step[3] for step in kept["timeline"]] == ["SELECT 1", "SELECT 2", "key"]
    listed, = pages(server)
    assert (listed["duration"], listed["statements"]) == (1250, 2)
    if form == "bson":
        assert kept["host"] == listed["host"] == sent["hostname"]


def test_a_publisher_of_python_oops(server):
    """As a program does it: a publisher that is called with each report and says its id."""
    config = oops.Config()

    def publish(report):
        answer = post(server, bson.dumps(report))
        assert answer.status == 201, answer
        return [answer.headers["X-Oops-Id"]]

    config.publisher = publish
    report = config.create({})
    report["type"] = "SoftRequestTimeout"
    name, = config.publish(report)
    assert name.startswith("OOPS-")
    assert report_of(server, name)["exception"] == "SoftRequestTimeout"


# ---- Once, twice, otherwise ----------------------------------------------------------------------


def test_a_report_that_is_sent_twice_is_one(server):
    report = {"id": "OOPS-1", "context": "/a", "duration": 7, "n": {"b": 1, "a": [2, 3]}}
    first = post(server, report)
    assert first.status == 201
    turned = dict(reversed(report.items())) | {"n": {"a": [2, 3], "b": 1}}
    for again in (report, turned):
        answer = post(server, again)
        assert (answer.status, answer.json) == (200, first.json | {"result": "repeated"})
    assert day_of(server)["total"] == 1
    assert len(pages(server)) == 1
    assert server.metric("granary_fault_reports_total", result="repeated") == 2


def test_an_id_of_its_own_is_made_of_the_content(server):
    first, again = post(server, {"context": "/a"}), post(server, {"context": "/a"})
    assert (first.status, again.status) == (201, 200)
    assert first.json["id"] == again.json["id"] and first.json["id"].startswith("OOPS-")
    assert post(server, {"context": "/b"}).json["id"] != first.json["id"]


def test_another_report_with_this_id_is_a_conflict(server):
    first = post(server, {"id": "OOPS-1", "context": "/a"})
    answer = post(server, {"id": "OOPS-1", "context": "/b"})
    assert answer.status == 409
    assert answer.json == {"error": {"code": 409, "message": (
        "there is another report with the id OOPS-1; it stays, and this one was not taken")},
        "id": "OOPS-1", "date": first.json["date"]}
    assert report_of(server, "OOPS-1")["context"] == "/a"
    assert day_of(server)["volume"] == {"/a:": 1}
    assert server.metric("granary_fault_reports_total", result="conflict") == 1


def test_one_id_from_many_at_once(make_server):
    server = make_server()
    server.start()
    chance, answers = random.Random(1), []

    def send(content):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            body = json.dumps({"id": "OOPS-1", "context": content}).encode()
            sock.sendall(b"POST /oops HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                         b"%d\r\n\r\n" % len(body) + body)
            answers.append((int(sock.recv(65536)[9:12]), content))
    threads = [threading.Thread(target=send, args=(chance.choice("ab"),)) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = report_of(server, "OOPS-1")["context"]
    counts = collections.Counter(answers)
    assert counts.pop((201, kept)) == 1
    assert {(status, content == kept) for status, content in counts} <= {(200, True), (409, False)}
    assert day_of(server)["total"] == 1
    server.stop()


def test_tenants_have_ids_of_their_own(server):
    assert put(server, "OOPS-1", {"context": "/a"}, **{"X-Tenant": "t1"}).status == 201
    assert server.request("PUT", "/oops/OOPS-1?tenant=t2", '{"context":"/b"}').status == 201
    assert server.get("/oops/OOPS-1").status == 404
    assert server.get("/oops/OOPS-1", tenant="t2").json["context"] == "/b"
    assert server.get("/oops/OOPS-1", {"X-Tenant": "t1"}).json["context"] == "/a"
    assert day_of(server, tenant="t1")["total"] == 1
    assert post(server, {"id": "x"}, "/oops?tenant=a%20b").status == 400


# ---- Arrays --------------------------------------------------------------------------------------


def test_an_array_item_by_item(server):
    first = post(server, {"id": "OOPS-0", "context": "/a"}).json["date"]
    answer = post(server, [{"id": "OOPS-1", "context": "/a"}, {"id": "OOPS-0", "context": "/b"}, 5,
                           {"id": "OOPS-1", "context": "/a"}, {"id": "OOPS-2", "duration": "x"},
                           {"id": "OOPS-0", "context": "/a"}, {"id": "OOPS-1", "context": "/c"}])
    assert answer.status == 400
    results = answer.json["results"]
    assert [r["result"] for r in results] == ["taken", "conflict", "failed", "repeated", "taken",
                                              "repeated", "conflict"]
    assert [answer.json[key] for key in ("taken", "repeated", "failed")] == [2, 2, 3]
    assert answer.json["error"]["message"].startswith("3 of 7 reports were not taken; report 1: ")
    assert results[1]["date"] == results[5]["date"] == first
    assert results[0]["date"] == results[3]["date"] == results[6]["date"] >= first
    assert results[2] == {"result": "failed", "error": "a report is an object, and this is none"}
    assert results[4]["refused"][0].startswith("duration: ")
    assert sorted(r["id"] for r in pages(server)) == ["OOPS-0", "OOPS-1", "OOPS-2"]
    assert day_of(server)["total"] == 3


def test_an_array_of_which_all_are_there(server):
    reports = [{"id": f"OOPS-{n}", "context": "/a"} for n in range(1000)]
    for taken, repeated in ((1000, 0), (0, 1000)):
        answer = post(server, gzip.compress(json.dumps(reports).encode()),
                      **{"Content-Encoding": "gzip"})
        assert answer.status == 200 and "error" not in answer.json, answer
        assert (answer.json["taken"], answer.json["repeated"]) == (taken, repeated)
        assert [r["id"] for r in answer.json["results"]] == [r["id"] for r in reports]
    assert post(server, [r | {"context": "/b"} for r in reports]).status == 409
    assert post(server, "[]").json == {"results": [], "taken": 0, "repeated": 0, "failed": 0}
    check_day(server, pages(server, limit=1000))


def test_too_many_reports_at_once(server):
    answer = post(server, [{"id": f"OOPS-{n}"} for n in range(1001)])
    assert answer.status == 413 and "1001 reports" in answer.text, answer
    assert day_of(server)["total"] == 0


def test_put_takes_one(server):
    answer = put(server, "OOPS-1", {"id": "OOPS-2", "context": "/a"})
    assert (answer.status, answer.json["id"]) == (201, "OOPS-1")
    kept = report_of(server, "OOPS-1")
    assert (kept["context"], kept["reported.id"]) == ("/a", "OOPS-2")
    assert server.get("/oops/OOPS-2").status == 404
    assert put(server, "OOPS-3", []).status == 400


# ---- Ids -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "a%0Ab", "a%20b", "%7F", "%FF", "..", "%E2%80%AE",
                                  "x" * 201])
def test_what_cannot_be_an_id(server, name):
    if name != "..":  # which clients and servers take for the folder above
        answer = put(server, name, {"context": "/a"})
        assert answer.status == 400 and "cannot be the id of a report" in answer.text, answer
        assert server.get(f"/oops/{name}").status == 404
    plain = json.dumps("a/b" if "/" in name else "a\nb")
    answer = post(server, f'{{"id":{plain},"context":"/a"}}')
    assert answer.status == 201 and answer.json["refused"][0].startswith("id: "), answer
    assert report_of(server, answer.json["id"])["reported.id"] == json.loads(plain)


def test_a_report_is_found_as_people_write_its_id(server):
    post(server, {"id": "OOPS-7f3c", "context": "/a"})
    post(server, {"id": "weeks", "context": "/b"})
    for name in ("OOPS-7f3c", "7f3c", "7F3C", "oops-7F3C", "OOPS-7F3C/"):
        assert report_of(server, name)["id"] == "OOPS-7f3c"
    assert report_of(server, "OOPS-weeks")["context"] == "/b"
    for name in ("days", "groups", "live", "projects"):  # addresses that are no reports
        assert put(server, name, {"context": "/c"}).status == 400
        taken = post(server, {"id": name, "context": f"/{name}"})
        assert taken.status == 201 and taken.json["id"] != name, taken
        assert report_of(server, taken.json["id"])["reported.id"] == name
    answer = server.get("/oops/OOPS-9")
    assert (answer.status, answer.json["error"]["message"]) == (404, "there is no report OOPS-9")


# ---- What is kept, and what is masked ------------------------------------------------------------


def test_all_attributes_come_back(server):
    sent = {"id": "OOPS-1", "context": "/ä", "exception": "E", "URL": "http://h/?q=1",
            "bug.launchpad": "12345", "HTTP.method": "GET", "big": 2**70,
            "extra": [1, 2.5, None, True, {"a": []}], "date": 1298505600000, "text": "😀\n",
            "date_iso": "mine", "user": {"name": "anna"}, "userid": 7}
    assert post(server, json.dumps(sent)).status == 201
    kept = report_of(server, "OOPS-1")
    for name in ("context", "exception", "URL", "bug.launchpad", "HTTP.method", "extra", "text",
                 "user"):
        assert kept[name] == sent[name], name
    assert '"big":1180591620717411303424' in server.get("/oops/OOPS-1").text
    assert kept["reported.date"] == sent["date"] and kept["reported.date_iso"] == "mine"
    iso = datetime.datetime.fromtimestamp(kept["date"] / 1000, datetime.timezone.utc)
    assert kept["date_iso"][:19] == iso.strftime("%Y-%m-%dT%H:%M:%S")


def test_secrets_are_nowhere(make_server):
    server = make_server()
    server.start()
    sent = {"id": "OOPS-1", "context": "/a", "password": SECRETS[0],
            "headers": {"Authorization": f"Bearer {SECRETS[1]}"}, "HTTP.cookie": SECRETS[2],
            "URL": f"http://h/login?user=anna&api_key={SECRETS[3]}", "shoe": SECRETS[4],
            "timeline": [{"start": 0, "length": 3, "database": "main",
                          "statement": f"UPDATE u SET passwd = '{SECRETS[4]}' WHERE id = 7"}]}
    sent.pop("shoe")
    assert post(server, sent).status == 201
    assert post(server, sent).status == 200
    answers = [server.get(path).text for path in ("/oops/OOPS-1", "/oops", "/oops/days/today",
                                                  "/oops/days/today/oops", "/metrics")]
    assert "user=anna" in answers[0] and "WHERE id = 7" in answers[0]
    eventually(lambda: server.metric("granary_fault_checkpoints_total") > 0)
    server.stop()
    files = [path.read_bytes() for path in server.data.rglob("*") if path.is_file()]
    assert b"OOPS-1" in b"".join(files)
    for secret in SECRETS:
        assert not any(secret in answer for answer in answers), secret
        assert not any(secret.encode() in content for content in files), secret
        assert secret not in server.log_text()


def test_words_of_masks(make_server):
    server = make_server(options=["--fault.mask=shoesize,=nick"])
    server.start()
    post(server, {"id": "OOPS-1", "ShoeSize": "44", "nick": "an", "nickel": "Ni", "token": "t"})
    kept = report_of(server, "OOPS-1")
    assert [kept[name] for name in ("ShoeSize", "nick", "nickel", "token")] == [
        "<hidden>", "<hidden>", "Ni", "<hidden>"]
    server.stop()


@pytest.mark.parametrize("option, sentence", [
    ("--fault.mask=ok,Pass-Word", '--fault.mask: "Pass-Word" is not of a-z and 0-9'),
    ("--fault.list=1001", "--fault.list: 1001 is above the maximum of 1000"),
    ("--fault.names_max=0", "--fault.names_max: 0 is below the minimum of 1"),
    ("--fault.report_max=9M", "--fault.report_max: 9M is above the maximum of 8M"),
])
def test_wrong_options_end_the_start(make_server, option, sentence):
    server = make_server(options=[option])
    server.spawn()
    assert server.process.wait(60) != 0
    assert sentence in server.log_text()


# ---- Bad input -----------------------------------------------------------------------------------


def bad_bodies():
    report = {"id": "OOPS-1", "context": "/a"}
    yield "empty", b"", 400, "Empty OOPS report"
    yield "text", b"hello", 400, "neither JSON nor BSON nor rfc822"
    yield "JSON without a comma", b'{"id":"OOPS-1" "a":1}', 400, "line 1, column"
    yield "JSON cut at once", b' {"id', 400, "the report is cut before its first attribute"
    yield "a number", b"5", 400, "neither JSON nor BSON nor rfc822"
    yield "BSON cut at once", bson.dumps(report)[:9], 400, "BSON, byte 0"
    yield "cut bz2", bz2.compress(os.urandom(500))[:-100], 400, "bzip2"
    yield "a bomb", bz2.compress(b'{"a":"' + bytes(64) * 10**6 + b'"}'), 413, "bzip2"
    yield "large", json.dumps(report | {"a": "x" * (1 << 20)}).encode(), 413, "1048576 bytes"


@pytest.mark.parametrize("name, body, status, sentence", [
    pytest.param(*case, id=case[0]) for case in bad_bodies()])
def test_bad_bodies(server, name, body, status, sentence):
    answer = post(server, body)
    assert answer.status == status and sentence in answer.text, answer
    assert day_of(server)["total"] == 0
    assert server.metric("granary_fault_reports_total", result="failed") == 1


def test_what_is_cut_or_too_deep_is_kept_as_far_as_it_is_understood(server):
    """And the parts that are not are named, in the answer and on the report. The whole one can
    still come."""
    sent = {"id": "c1", "context": "/a", "m": "a long text", "n": [1, 2]}
    other = sent | {"id": "c2", "m": {"a": 1, "b": 2}}
    cut = "m: the report is cut within it, and what follows is not there"
    id_refused = ("id: it is that of the whole report, so the report has another; "
                  "it is kept as reported.id")
    for id_, body in (("c1", json.dumps(sent).encode()[:-17]), ("c2", bson.dumps(other)[:-28])):
        for status in (201, 200):
            answer = post(server, body)
            assert answer.status == status and answer.json["refused"] == [id_refused, cut], answer
        kept = report_of(server, answer.json["id"])
        assert kept["context"] == "/a" and kept["reported.id"] == id_ and "n" not in kept
        assert kept["m"] in ("a long te", {"a": 1}) and kept["refused"] == [id_refused, cut]
    for whole in (json.dumps(sent).encode(), bson.dumps(other)):
        assert post(server, whole).status == 201
    answer = server.request("PUT", "/oops/c3", b'{"context":"/a","m":"x')
    assert answer.status == 201 and answer.json["id"] != "c3"
    assert answer.json["refused"] == [
        'id: "c3" is that of the whole report, so the report has another', cut]
    deep = {"id": "d1", "b": 1, "a": 1}
    for _ in range(70):
        deep["a"] = {"a": deep["a"]}
    for body in (json.dumps(deep).encode(), bson.dumps(deep | {"id": "d2"})):
        answer = post(server, body)
        assert answer.status == 201, answer
        assert answer.json["refused"] == ["a: null stands for what nests deeper than 64"]
        kept = report_of(server, answer.json["id"])
        assert kept["b"] == 1
        for _ in range(63):
            kept = kept["a"]
        assert kept["a"] is None
    answer = post(server, b'{"id":"u1","m":"caf\xe9"}')
    assert answer.json["refused"] == ["m: U+FFFD stands for what is not UTF-8"]
    assert report_of(server, "u1")["m"] == "caf\ufffd"
    # Of an array what is whole is whole, and what is cut away is one more result.
    for body, last in ((b'[{"id":"e1"},{"id":"e2","m":"x', "e2"), (b'[{"id":"f1"},', None)):
        answer = post(server, body)
        first, second = answer.json["results"]
        assert first["id"] == body[8:10].decode() and "refused" not in first, answer
        if last:
            assert report_of(server, second["id"])["reported.id"] == last
            assert second["refused"] == [id_refused, cut]
        else:
            assert "the body is cut here" in second["error"]
    assert day_of(server)["total"] == 11


def test_what_cannot_be_stored_as_one_value(make_server):
    """A report may be larger than the store takes at once, as long as it can be compressed."""
    server = make_server(options=["--fault.report_max=8M"])
    server.start()
    chance = random.Random(5)
    assert post(server, {"id": "OOPS-1", "a": "x" * (7 << 20)}).status == 201
    noise = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=3 << 20))
    answer = post(server, [{"id": "OOPS-2", "context": "/a"}, {"id": "OOPS-3", "a": noise}])
    assert answer.status == 400 and answer.json["taken"] == 1, answer
    assert "compressed it has more than" in answer.json["results"][1]["error"]
    assert len(report_of(server, "OOPS-1")["a"]) == 7 << 20
    server.stop()


def test_an_id_that_cannot_be_one_is_content(server):
    """Reports that differ in nothing else are several; each has its own."""
    ids = set()
    for sent in ("a/b", "c/d", None, 5.5, [1]):
        report = {"m": 1} if sent is None else {"id": sent, "m": 1}
        for status in (201, 200):
            answer = post(server, report)
            assert answer.status == status, answer
        ids.add(answer.json["id"])
        kept = report_of(server, answer.json["id"])
        assert kept.get("reported.id") == (None if sent in (None, 5.5) else sent)
    assert len(ids) == 5
    assert post(server, {"id": None, "m": 1}).status == 200


DURATION_REFUSED = "duration: no time from 0 to 366 days, so it is not known; it is kept as it is"
TIMELINE_REFUSED = "timeline: it is no list, and is kept as it is"


def test_what_is_refused_is_on_the_report(server):
    """Named in the answer and on the report; found by a search; and no part of what makes it the
    same report as another one."""
    sent = {"id": "ref1", "duration": "abc", "timeline": "x", "refused": "mine"}
    for status in (201, 200):
        answer = post(server, sent)
        assert answer.status == status, answer
        assert answer.json["refused"] == [DURATION_REFUSED, TIMELINE_REFUSED]
    kept = report_of(server, "ref1")
    assert kept["refused"] == [DURATION_REFUSED, TIMELINE_REFUSED]
    assert (kept["duration"], kept["timeline"], kept["reported.refused"]) == ("abc", "x", "mine")
    as_others = bson.dumps({"id": "ref2", "duration": -7.5})
    assert post(server, as_others).json["refused"] == [DURATION_REFUSED]
    assert report_of(server, "ref2")["refused"] == [DURATION_REFUSED]
    as_text = b"Oops-Id: ref5\nException-Type: E\nDuration: -5\n\n"
    assert post(server, as_text).json["refused"] == [DURATION_REFUSED]
    assert report_of(server, "ref5")["refused"] == [DURATION_REFUSED]
    assert post(server, {"id": "ref3", "duration": 5}).status == 201
    assert "refused" not in report_of(server, "ref3")
    many = '{"id":"ref4"' + ',"a":1' * 31 + "}"
    answer = post(server, many)
    assert (len(answer.json["refused"]), answer.json["omitted"]) == (20, 10)
    assert report_of(server, "ref4")["refused"] == answer.json["refused"] + ["10 more"]
    assert [r["id"] for r in pages(server, q='"no time from"')] == ["ref5", "ref2", "ref1"]
    assert command(server, "show", "ref2", "-o", "csv").stdout.count(DURATION_REFUSED) == 1


def test_what_can_be_understood_is_kept(server):
    answer = post(server, b'{"id":"OOPS-1","duration":NaN,"half":"\\ud83d","timeline":5}')
    assert answer.status == 201, answer
    assert {part.split(":")[0] for part in answer.json["refused"]} == {"duration", "timeline"}
    kept = report_of(server, "OOPS-1")
    assert (kept["duration"], kept["half"], kept["timeline"]) == ("NaN", "\ufffd", 5)
    listed, = pages(server)
    assert "duration" not in listed and "statements" not in listed


@pytest.mark.parametrize("path, status, sentence", [
    ("/oops?contxt=a", 400, 'unknown parameter \\"contxt\\"'),
    ("/oops?limit=0", 400, "limit"), ("/oops?limit=1001", 400, "limit"),
    ("/oops?token=zz", 400, 'token \\"zz\\" is none that an answer has given'),
    ("/oops?since=now&until=1h-ago", 400, "since lies after until"),
    ("/oops?context=%ff", 400, "context is not UTF-8"), ("/oops?q=x:%ff", 400, "q is not UTF-8"),
    ("/oops/groups?host=%ff", 400, "host is not UTF-8"),
    ("/oops?since=soon", 400, "since"), ("/oops?format=xml", 400, "format"),
    ("/oops/days/2026-02-30", 400, "is no day"), ("/oops/days/20260230", 400, "is no day"),
    ("/oops/days/tomorrow", 400, "is no day"), ("/oops/days/", 404, "there is nothing"),
    ("/oops/days/today/ops", 404, "there is nothing at /oops/days/today/ops"),
    ("/oops/days/today/oops/x", 404, "there is nothing"),
    ("/oops/days/today?from=9:00", 400, 'from \\"9:00\\" is no time of day'),
    ("/oops/days/today?from=12:60", 400, "is no time of day"),
    ("/oops/days/today?to=24:01", 400, "is no time of day"),
    ("/oops/days/today?from=12:00&to=12:00", 400, "from is not before to"),
    ("/oops/days/today?token=0", 400, "token is of /oops/days/DAY/oops"),
    ("/oops/OOPS-1?format=csv", 400, "unknown parameter"),
])
def test_wrong_questions(server, path, status, sentence):
    answer = server.get(path)
    assert answer.status == status and sentence in answer.text, answer


# ---- Days and lists ------------------------------------------------------------------------------


@pytest.fixture
def filled(make_server):
    """A server and what it was sent, as lists are to show it."""
    if not hours_left():
        pytest.skip("midnight is near")
    server, chance = make_server(options=["--fault.list=10"]), random.Random(11)
    server.start()
    sent = [some_report(chance, number) for number in range(500)]
    for at in range(0, len(sent), 50):
        assert post(server, sent[at:at + 50]).status == 200
    yield server, sent
    server.stop()


def test_a_day_is_what_its_reports_add_up_to(filled):
    server, sent = filled
    listed = pages(server, limit=37)
    assert [r["id"] for r in listed] == [r["id"] for r in reversed(sent)]
    assert [r["date"] for r in listed] == sorted((r["date"] for r in listed), reverse=True)
    for r, s in zip(listed, reversed(sent)):
        assert (r["context"], r["exception"], r["duration"]) == (
            s["context"], s["exception"], s["duration"])
        assert r.get("statements", 0) == len(s.get("timeline", []))
    check_day(server, listed, list_max=10)
    assert day_of(server) == day_of(server, time.strftime("%Y-%m-%d", time.gmtime()))
    assert day_of(server)["day"] == time.strftime("%Y%m%d", time.gmtime())
    empty = day_of(server, "yesterday")
    assert (empty["total"], empty["volume"], empty["duration"]) == (0, {}, [])
    server.restart()
    check_day(server, listed, list_max=10)
    server.kill()
    server.start()
    check_day(server, listed, list_max=10)
    before = day_of(server)
    anew = server.request("POST", "/oops/days/today/recount")
    assert anew.status == 200 and anew.json == before


def test_a_part_of_a_day(filled):
    server, _ = filled
    whole = day_of(server)
    assert day_of(server, **{"from": "00:00", "to": "24:00"}) == whole
    minute = time.gmtime(pages(server, limit=1000)[0]["date"] // 1000)
    this = f"{minute.tm_hour:02}:{minute.tm_min:02}"
    parts = [day_of(server, **{"from": this})["total"]]
    if this != "00:00":
        parts.append(day_of(server, to=this)["total"])
    assert sum(parts) == 500 and parts[0] > 0


def test_day_oops(filled):
    server, sent = filled
    found = pages(server, "/oops/days/today/oops", limit=64, key="oops")
    assert [name for _, name in found] == [r["id"] for r in reversed(sent)]
    dates = {r["id"]: r["date"] for r in pages(server, limit=1000)}
    for text, name in found:
        one = uuid.UUID(text)
        assert one.version == 1 and one.variant == uuid.RFC_4122
        assert (one.time - 0x01b21dd213814000) // 10000 == dates[name]
    assert len({text for text, _ in found}) == 500


def test_lists_by_what_reports_say(filled):
    server, sent = filled
    post(server, {"id": "OOPS-x", "context": "/x, \"y\"", "exception": "E\n1", "level": "fatal",
                  "release": "1.2", "environment": "test", "host": "web1", "userid": "u7"})
    for name, value in (("level", "fatal"), ("release", "1.2"), ("environment", "test"),
                        ("host", "web1"), ("user", "u7"), ("context", "/x, \"y\"")):
        found, = pages(server, **{name: value})
        assert found["id"] == "OOPS-x" and found[name] == value
    wanted = [r["id"] for r in reversed(sent)
              if (r["context"], r["exception"]) == ("/page1", "KeyError")]
    assert [r["id"] for r in pages(server, context="/page1", exception="KeyError",
                                   limit=7)] == wanted
    assert pages(server, context="/page1", exception="None") == []
    dates = sorted(r["date"] for r in pages(server, limit=1000))
    middle = dates[len(dates) // 2]
    assert len(pages(server, until=middle, limit=1000)) == sum(d < middle for d in dates)
    assert len(pages(server, since=middle, limit=1000)) == sum(d >= middle for d in dates)
    rows = list(csv.DictReader(io.StringIO(server.get("/oops", format="csv", limit=2).text)))
    assert len(rows) == 2 and rows[0]["context"] == '/x, "y"' and rows[0]["exception"] == "E\n1"
    assert (rows[0]["id"], rows[0]["duration"]) == ("OOPS-x", "")


def test_names_beyond_the_most(make_server):
    """The first names in order of receipt are counted by themselves, the others together."""
    server = make_server(options=["--fault.names_max=3"])
    server.start()
    for number in range(10):
        assert post(server, {"context": f"/{number % 5}", "n": number}).status == 201
    said = day_of(server)
    assert (said["total"], said["rest"]) == (10, 4)
    assert said["volume"] == {"/0:": 2, "/1:": 2, "/2:": 2}
    server.stop()


def test_names_in_volumes(server):
    """`:` and `\\` are escaped; what is longer than a column is cut and closed by a hash."""
    long = ["/" + "y" * 450 + "a", "/" + "y" * 450 + "b"]
    for context in ["/a:b", *long]:
        assert post(server, {"context": context, "exception": "E\\1"}).status == 201
    volumes = day_of(server)["volume"]
    assert volumes.pop(r"/a\:b:E\\1") == 1
    assert len(volumes) == 2
    for name, count in volumes.items():
        cut, _, digits = name.rpartition("~")
        assert count == 1 and cut.startswith("/yyy") and len(digits) == 32
        assert len(name.encode()) <= 400 - len("volume.")
    assert day_of(server, limit=1)["volume"].keys() <= day_of(server)["volume"].keys()
    assert server.get("/oops/days/today", limit=1).headers["X-Granary-Cut"] == "limit"


# ---- Days that end -------------------------------------------------------------------------------


@pytest.fixture
def clock_server(tmp_path):
    if not CLOCK_HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "fault:\n  list: 3\n")
    server.start()
    yield server
    server.kill()


def test_a_day_that_ends_is_closed(clock_server):
    server, chance = clock_server, random.Random(3)
    noon = int(time.time()) // 86400 * 86400 + 86400 + 43200  # of tomorrow: far from both midnights
    server.set_wall(noon - int(time.time()))
    day = time.strftime("%Y%m%d", time.gmtime(noon))
    sent = [some_report(chance, number) for number in range(60)]
    assert post(server, sent).status == 200
    listed = pages(server, limit=1000)
    check_day(server, listed, day, 3)
    assert not day_of(server, day)["closed"]
    server.set_wall(server.wall_s + 43200 + 30)  # past midnight, but writes may be under way
    assert post(server, {"id": "OOPS-next", "context": "/next"}).status == 201
    assert not day_of(server, day)["closed"]
    server.set_wall(server.wall_s + 120)
    eventually(lambda: day_of(server, day)["closed"])
    expected = summary(listed, 3)
    top = sorted(((-count, name) for name, count in expected["volume"].items()))[:3]
    expected["volume"] = {name: -count for count, name in top}
    said = day_of(server, day)
    assert {key: said[key] for key in expected} == expected
    assert list(said["volume"].items()) == [(name, -count) for count, name in top]
    today = day_of(server)
    assert (today["total"], today["closed"]) == (1, False)
    server.restart()
    assert day_of(server, day) == said
    anew = server.request("POST", f"/oops/days/{day}/recount")
    assert anew.status == 200 and anew.json == said


def test_a_report_in_a_day_that_is_closed(clock_server):
    """A clock that is set back: the day is counted anew."""
    server = clock_server
    noon = int(time.time()) // 86400 * 86400 + 86400 + 43200
    server.set_wall(noon - int(time.time()))
    day = time.strftime("%Y%m%d", time.gmtime(noon))
    reports = [{"id": f"OOPS-{n}", "context": f"/{n % 3}"} for n in range(9)]
    assert post(server, reports).status == 200
    server.set_wall(server.wall_s + 43200 + 300)
    eventually(lambda: day_of(server, day)["closed"])
    server.set_wall(noon + 60 - int(time.time()))
    assert post(server, {"id": "OOPS-late", "context": "/2", "duration": 9}).status == 201
    said = day_of(server, day)
    assert (said["total"], said["closed"], said["duration"]) == (10, True, [[9, "OOPS-late"]])
    assert said["volume"] == {"/2:": 4, "/0:": 3, "/1:": 3}
    eventually(lambda: server.metric("granary_fault_recounts_total") > 0)
    assert day_of(server, day) == said


# ---- What goes wrong -----------------------------------------------------------------------------


def test_clients_that_leave(make_server):
    """At any moment: of each report all is there, or nothing."""
    server, chance = make_server(), random.Random(17)
    server.start()
    sent = {}
    for number in range(2000 if long_run() else 300):
        reports = [some_report(chance, number * 100 + i) for i in range(chance.choice([1, 1, 30]))]
        body = json.dumps(reports if len(reports) > 1 else reports[0]).encode()
        data = (b"POST /oops HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                % len(body)) + body
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(data[:chance.choice([len(data), len(data), chance.randrange(len(data))])])
            time.sleep(chance.expovariate(1 / 0.002))
            if chance.random() < 0.7:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sent |= {r["id"]: r for r in reports}

    def settled():  # what was on its way when its client left is there
        listed = pages(server, limit=1000)
        return listed if day_of(server)["total"] == len(listed) else None
    listed = eventually(settled) if hours_left() else pages(server, limit=1000)
    assert len({r["id"] for r in listed}) == len(listed) > 0
    for r in listed:
        kept = report_of(server, r["id"])
        assert kept["context"] == sent[r["id"]]["context"]
    if hours_left():
        check_day(server, listed)
    # What is sent again is there already, or is new.
    answer = post(server, list(sent.values())[:1000])
    assert answer.status == 200, answer
    server.stop()


class Senders:
    """Threads that send reports, one or some at a time, until the server goes; what it answered."""

    def __init__(self, server, seed, count=4):
        self.server, self.answered, self.lock = server, {}, threading.Lock()
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.go, args=(seed * 100 + i,))
                        for i in range(count)]
        for thread in self.threads:
            thread.start()

    def go(self, seed):
        chance, number = random.Random(seed), 0
        with socket.create_connection(("127.0.0.1", self.server.port)) as sock:
            file = sock.makefile("rb")
            while not self.stop.is_set():
                reports = [some_report(chance, seed * 10**6 + number + i)
                           for i in range(chance.choice([1, 1, 10]))]
                number += len(reports)
                body = json.dumps(reports).encode()
                try:
                    sock.sendall(b"POST /oops HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                                 b"%d\r\n\r\n" % len(body) + body)
                    status, length = file.readline(), 0
                    while (line := file.readline().strip()):
                        if line.lower().startswith(b"content-length:"):
                            length = int(line.split(b":")[1])
                    answer = json.loads(file.read(length))
                except (OSError, ValueError):
                    return
                if status.split()[1] == b"200":
                    with self.lock:
                        self.answered |= {r["id"]: (r, said) for r, said in
                                          zip(reports, answer["results"])}

    def join(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        return self.answered


def test_kill_in_a_stream_of_reports(make_server):
    if not hours_left():
        pytest.skip("midnight is near")
    server, answered = make_server(), {}
    seed = int(os.environ.get("GRANARY_SEED", random.SystemRandom().getrandbits(16)))
    print(f"GRANARY_SEED={seed}")
    chance = random.Random(seed)
    server.start()
    for number in range(30 if long_run() else 5):
        senders = Senders(server, seed * 100 + number)
        time.sleep(chance.uniform(0.05, 1.5))  # the moment of the crash
        server.kill()
        answered |= senders.join()
        server.start()
        listed = {r["id"]: r for r in pages(server, limit=1000)}
        for name, (report, said) in answered.items():
            assert listed[name]["date"] == said["date"], name
            assert listed[name]["context"] == report["context"]
        check_day(server, list(listed.values()))
    everything = pages(server, limit=1000)
    assert len(everything) == len({r["id"] for r in everything}) >= len(answered) > 0
    for name in chance.sample(sorted(answered), min(50, len(answered))):
        assert report_of(server, name)["context"] == answered[name][0]["context"]
    # What was sent and not answered may be there; sent again it is one.
    again = post(server, [report for report, _ in list(answered.values())[:1000]])
    assert again.status == 200 and again.json["taken"] == 0
    before = day_of(server)
    assert server.request("POST", "/oops/days/today/recount").json == before
    server.stop()
    assert run("verify", "--data", server.data).returncode == 0


def test_a_full_disk(make_server, tmp_path):
    """507, and reads go on; when there is room again reports are taken."""
    with mounts.memory(tmp_path / "small", "16m") as place:
        server = make_server(options=["--store.journal_max=1M", "--store.min_free=1M"])
        server.data = place.folder / "data"
        filler = place.folder / "filler"
        filler.write_bytes(bytes(10 << 20))
        server.start()
        kept, chance = [], random.Random(9)
        for number in range(5000):
            noise = "".join(chance.choices("0123456789abcdef", k=20000))
            answer = post(server, {"id": f"OOPS-{number}", "context": "/a", "noise": noise})
            if answer.status == 507:
                break
            assert answer.status == 201, answer
            kept.append(answer.json["id"])
        assert answer.status == 507 and "not stored" in answer.text, answer
        twice = post(server, [{"id": "OOPS-x", "context": "/a"}] * 2)
        assert twice.status == 507 and twice.json["failed"] == 2, twice
        assert kept and server.running()
        assert report_of(server, kept[0])["context"] == "/a"
        assert {r["id"] for r in pages(server, limit=1000)} == set(kept)
        assert day_of(server)["total"] == len(kept)
        filler.unlink()
        eventually(lambda: post(server, {"id": "OOPS-last", "context": "/b"}).status in (200, 201))
        kept.append("OOPS-last")
        assert {r["id"] for r in pages(server, limit=1000)} == set(kept)
        server.restart()
        assert day_of(server)["total"] == len(kept)
        server.stop()


@pytest.mark.skipif(not FAULT_HOOK.exists(), reason="without a disk that can be made slow")
@pytest.mark.not_sanitized("preloads a library")
def test_a_deadline_leaves_the_report_on_its_way(make_server, tmp_path, monkeypatch):
    server = make_server(options=["--query.timeout=50ms"])
    with monkeypatch.context() as environment:
        environment.setenv("FAULT_HOOK", "lmdb:fdatasync:1:0:slow")
        environment.setenv("FAULT_HOOK_LOG", str(tmp_path / "hook"))
        environment.setenv("LD_PRELOAD", str(FAULT_HOOK))
        server.start()
    answers = []

    def late():
        answers.append(post(server, {"id": f"OOPS-{len(answers)}", "context": "/a"}))
        return answers[-1].status == 503
    eventually(late)
    assert "it is not known yet whether this is stored; sending it again is harmless" in (
        answers[-1].text)
    assert answers[-1].headers["Retry-After"]
    name = f"OOPS-{len(answers) - 1}"
    eventually(lambda: server.get(f"/oops/{name}").status == 200)
    server.stop()


# ---- Commands ------------------------------------------------------------------------------------


def command(server, *arguments, status=0):
    answer = run("fault", arguments[0], "--server", server.url, *arguments[1:])
    assert answer.returncode == status, (arguments, answer.stdout, answer.stderr)
    return answer


def test_show_has_the_digits_that_were_sent(server):
    server.request("POST", "/oops", b'{"id":"d","m":[0,12,1.50,{"a":2}]}')
    assert 'm,"[0,12,1.50,{""a"":2}]"' in command(server, "show", "d", "-o", "csv").stdout


def test_commands(server, tmp_path):
    report = made_by_python_oops()
    files = {"one.bson": serializer_bson.dumps(report), "one.bz2": bz2.compress(bson.dumps(report)),
             "two.txt": rfc822(made_by_python_oops()),
             "some.json": b'[{"id":"OOPS-1","context":"/a"},{"id":"OOPS-1","context":"/b"},7]',
             "bad": b"hello"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name for name in files]
    answer = command(server, "put", *paths, tmp_path / "gone", "-o", "csv", status=1)
    rows = list(csv.DictReader(io.StringIO(answer.stdout)))
    assert [os.path.basename(row["file"]) for row in rows] == [
        "one.bson", "one.bz2", "two.txt", "some.json", "some.json", "some.json", "bad"]
    assert [row["result"] for row in rows] == ["taken", "repeated", "taken", "taken", "conflict",
                                               "failed", "failed"]
    assert "gone: not found" in answer.stderr
    assert rows[0]["id"] == report["id"] and rows[0]["date"] == rows[1]["date"] != ""
    assert "another report" in rows[4]["error"]
    command(server, "put", tmp_path / "one.bson")
    shown = command(server, "show", report["id"].lower(), "-o", "table").stdout
    assert "exception" in shown and "KeyError" in shown and SECRETS[2] not in shown
    assert json.loads(command(server, "show", report["id"], "-o", "json").stdout)["username"]
    assert "there is no report nosuch" in command(server, "show", "nosuch", status=1).stderr
    listed = command(server, "list", "--context", ADDRESS, "--limit", "1", "-o", "csv")
    assert len(listed.stdout.splitlines()) == 2 and "there are more: --token " in listed.stderr
    token = listed.stderr.split("--token ")[1].split()[0]
    rest = command(server, "list", "--context", ADDRESS, "--token", token, "-o", "csv")
    assert len(rest.stdout.splitlines()) == 2 and rest.stderr == ""
    for verb in ("day", "recount"):
        rows = list(csv.reader(io.StringIO(command(server, verb, "-o", "csv").stdout)))
        assert rows[1] == ["total", "3", ""]
        assert ["volume", "2", f"{ADDRESS}:KeyError"] in rows
    assert "is no day" in command(server, "day", "never", status=1).stderr
    command(server, "list", "--since", status=2)
