"""Search in the texts of fault reports: what the real server finds is compared with a scan in
Python over all that was sent."""

import json
import random
import re

from server import eventually, long_run, run
from test_fault_groups import send
from test_oops import command, pages, post

WORDS = ["timeout", "lock", "Deadlock", "connection", "KeyError", "HTTPError", "userId", "MD5Sum",
         "4711", "0x7f3c", "Änderung", "привет", "東京", "shop", "cart", "refused", "a", "the", "of",
         "is"]
GLUE = [" ", " ", " ", "_", ".", "/", "-", ": ", ", ", "\n", " — "]
PARTS = re.compile(r"(?<=[^\WA-ZÄÖÜ_])(?=[A-ZÄÖÜ])|(?<=[A-ZÄÖÜ])(?=[A-ZÄÖÜ][^\WA-ZÄÖÜ_\d])")
KEYS = ["context", "exception", "release", "host", "browser", "queue", "branch", "HTTP.method"]


RUN = 4096  # reports of a writer that are sealed together (doc/format-faults.md)


def words_of(text):
    return re.findall(r"[^\W_]+", text)


def texts_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield json.dumps(value)


def has_words(report, words):
    """One after the other in one text; one alone also as a part of a word."""
    words = [word.lower() for word in words]
    for text in texts_of(report):
        found = words_of(text)
        small = [word.lower() for word in found]
        if any(small[i:i + len(words)] == words for i in range(len(small))):
            return True
        if len(words) == 1 and any(words[0] in map(str.lower, PARTS.split(w)) for w in found):
            return True
    return False


def has_value(report, key, value):
    tags = report.get("tags", {})
    tags = dict(tags) if isinstance(tags, list) else tags
    return report.get(key) == value or tags.get(key) == value


def holds(report, term):
    negated, kind, what = term
    found = has_words(report, what) if kind == "words" else has_value(report, *what)
    return found != negated


def written(chance, term):
    """As a person types it."""
    negated, kind, what = term
    if kind == "value":
        text = f'{what[0]}:"{what[1]}"' if " " in what[1] or chance.random() < .3 else \
            f"{what[0]}:{what[1]}"
    elif len(what) == 1:
        text = chance.choice([str.lower, str.upper, str])(what[0])
    elif chance.random() < .5:
        text = '"' + " ".join(what) + '"'
    else:
        text = "-".join(what)
    return "-" * negated + text


def some_text(chance):
    words = range(chance.randrange(1, 9))
    return "".join(chance.choice(WORDS) + chance.choice(GLUE) for _ in words)


def some_report(chance, number):
    report = {"id": f"OOPS-{number:05}", "value": some_text(chance),
              "nested": {"deep": [some_text(chance), {"deeper": chance.randrange(50)}]}}
    for name in ("context", "exception", "release", "host", "branch", "HTTP.method"):
        if chance.random() < .7:
            report[name] = f"{name} {chance.randrange(4)}" if chance.random() < .5 else \
                f"{name}{chance.randrange(4)}"
    tags = {"browser": chance.choice(["Firefox", "Chrome 1"]), "queue": str(chance.randrange(9))}
    if chance.random() < .7:
        report["tags"] = tags if chance.random() < .5 else [list(pair) for pair in tags.items()]
    return report


def some_term(chance, reports):
    report = chance.choice(reports)
    negated = chance.random() < .2
    if chance.random() < .25:
        key = chance.choice(KEYS)
        tags = dict(report.get("tags", {}))
        return negated, "value", (key, report.get(key, tags.get(key, "none")))
    words = []
    while not words:
        words = words_of(chance.choice(list(texts_of(report))))
    first = chance.randrange(len(words))
    words = words[first:first + chance.choice([1, 1, 1, 2, 3])]
    if len(words) == 1 and chance.random() < .3:
        words = [chance.choice([part for part in PARTS.split(words[0])])]
    return negated, "words", words


def test_a_search_finds_what_a_scan_finds(server):
    """The first 300 of them end a run, which is sealed; the others are no run."""
    chance = random.Random(5)
    reports = [some_report(chance, number) for number in range(600)]
    send(server, [{"id": f"OOPS-before-{number}"} for number in range(RUN - 300)])
    send(server, reports)
    eventually(lambda: server.metric("granary_fault_reports_sealed_total") == RUN)
    since = server.get("/oops/OOPS-00000").json["date"]
    some = 0
    for _ in range(10000 if long_run() else 400):
        terms = [some_term(chance, reports) for _ in range(chance.choice([1, 1, 2, 3]))]
        question = " ".join(written(chance, term) for term in terms)
        wanted = [r["id"] for r in reports if all(holds(r, term) for term in terms)]
        found = [r["id"] for r in pages(server, q=question, limit=1000, since=since)
                 if "before" not in r["id"]]  # of the same millisecond
        assert found == wanted[::-1], question
        some += 0 < len(wanted) < len(reports) // 2
    assert some > 100
    found = [r["id"] for r in pages(server, q="timeout", limit=7, host="host1")]
    assert found == [r["id"] for r in reports[::-1]
                     if r.get("host") == "host1" and has_words(r, ["timeout"])]
    for report in chance.sample(reports, 50):
        shown = server.get(f"/oops/{report['id']}").json
        assert {name: shown[name] for name in report} == report


def test_what_people_type(server):
    send(server, [{"id": "OOPS-7F3C", "value": "Lock wait timeout exceeded", "host": "db1",
                   "url": "http://shop.example/cart?id=12"}])
    report = server.get("/oops/OOPS-7F3C").json
    for question in ["lock", "7f3c", "oops-7f3c", '"wait timeout" host:db1', "-refused", "",
                     "http://shop.example", f"group:{report['group']}", 'release:""',
                     "id:OOPS-7F3C"]:
        assert [r["id"] for r in pages(server, q=question)] == ["OOPS-7F3C"], question
    for question in ["id:7F3C", "loc", "value", "-lock", "host:db", '"timeout wait"', "host:db2"]:
        assert pages(server, q=question) == [], question
    for question, sentence in [('"lock', "not closed"), ("a ?", 'no letter or digit in "?"'),
                               (" ".join("abcdefghijklmnopqrstuvwxyz"), "up to 20 terms")]:
        answer = server.get("/oops", q=question)
        assert answer.status == 400, answer
        assert sentence in answer.json["error"]["message"], answer
    listed = command(server, "list", "--search", '"wait timeout" -refused', "-o", "csv").stdout
    assert "OOPS-7F3C" in listed and len(listed.splitlines()) == 2


def test_a_list_that_takes_too_long(make_server):
    """However few it finds: a question that goes through everything ends by query.timeout, with
    what it has found and how far it came, if it came anywhere. So it comes to the end."""
    server = make_server()
    server.start()
    oldest = {"id": "OOPS-oldest", "context": "/rare", "value": "a word"}
    assert post(server, json.dumps([oldest])).status == 200
    for number in range(100):
        if number in (40, 80):  # each process has a writer of its own: all go on together
            server.stop()
            server.start()
        body = json.dumps([{"id": f"OOPS-{number}-{i}", "context": "/a"} for i in range(1000)])
        assert post(server, body).status == 200
    assert server.get("/oops", context="/none").json == {"reports": []}
    server.stop()
    server.options = ["--query.timeout=10ms"]
    server.start()
    answer = server.get("/oops/days/today?from=00:00")
    assert answer.status == 422 and "10 ms" in answer.text, answer
    for question in ({"context": "/rare"}, {"q": "-context:/a"}):
        found, token, answers, reached = [], {}, 0, None
        while token is not None:
            answer = server.get("/oops", **question, **token)
            answers += 1
            if answer.status == 422:  # nothing was looked at: the machine was busy
                assert "10 ms" in answer.text, answer
                continue
            found += answer.json["reports"]
            token = {"token": answer.json["token"]} if "token" in answer.json else None
            if token:
                assert answer.headers["X-Granary-Cut"] == "time"
                assert reached is None or answer.json["reached"] <= reached
                reached = answer.json["reached"]
        assert answers > 1
        assert [report["id"] for report in found] == ["OOPS-oldest"]
    eventually(lambda: "its time (query.timeout)" in run(
        "fault", "list", "--server", server.url, "--search", "-context:/a").stderr)
    # A question that goes through little ends in time, though maybe not at once on a busy machine.
    eventually(lambda: server.get("/oops?limit=1").json.get("reports"))
    server.stop()
