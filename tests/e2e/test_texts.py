"""Values of log lines that are no numbers, and tags of chunks, in the rows of metrics and sources:
against the real server, killed and read again. The oracle is what was sent."""

import datetime
import json
import urllib.parse

import pytest

from chunks import v2
from server import eventually, running
from test_streams import post

CONFIG = """datatypes:
  app: {format: json, texts_max: 3, samples: {tags: [queue, area], values: [n], texts: [state]}}
"""
START = datetime.datetime(2026, 11, 20, 10, 20, tzinfo=datetime.timezone.utc)
TENANT = {"X-Tenant": "default"}
TAGS = 'env="prod" rack="7"'


@pytest.fixture
def texts_server(make_server):
    with running(make_server(config=CONFIG)) as server:
        yield server


def ms_of(seconds):
    return int(START.timestamp() * 1000) + seconds * 1000


def line(seconds, **members):
    at = START + datetime.timedelta(seconds=seconds)
    return json.dumps({"time": at.strftime("%Y-%m-%dT%H:%M:%SZ"), **members}) + "\n"


def send(server, at, lines, **names):
    data = "".join(lines).encode()
    answer = post(server, v2(at + len(data), data, datatype="app", lines=True, **names))
    assert answer.status == 200, answer
    return at + len(data)


def series(server, metric, source="host1", start=START):
    path = "/hicc/v1/metrics/series/" + "/".join(urllib.parse.quote(part, safe="")
                                                 for part in (metric, source))
    answer = server.get(path, TENANT, start=start.strftime("%Y%m%d%H%M%S"),
                        end=(start + datetime.timedelta(hours=1)).strftime("%Y%m%d%H%M%S"))
    assert answer.status == 200, answer
    return answer.json


def read_to(server, lines):
    eventually(lambda: sum(one["lines"] for one in
                           server.get("/api/streams/demux").json["streams"]) >= lines)


def test_texts_stand_between_numbers(texts_server):
    """Once, also where the process is killed and the stream is read again."""
    server = texts_server
    lines = [line(0, n=1, state="up", queue="q.1"), line(10, n=2, state=5, queue="q.1"),
             line(20, n=3, state="down", queue="q.1"), line(30, state="größe \"x\"", queue="q.1"),
             line(40, state="-", n=4, queue="q.1"), line(50, n=5, state="other", queue="q/2")]
    end = send(server, 0, lines)
    expected = [[ms_of(0), "up"], [ms_of(10), 5], [ms_of(20), "down"], [ms_of(30), 'größe "x"']]
    eventually(lambda: len(series(server, "app.state.q.1")["data"]) == 4)
    read_to(server, 6)
    refused = "granary_demux_texts_refused_total"
    assert server.metric(refused) == 1
    for _ in range(2):
        assert series(server, "app.state.q.1")["data"] == expected
        assert series(server, "app.state.q/2")["data"] == []  # of the minute it is the fourth
        assert [value for _, value in series(server, "app.n.q.1")["data"]] == [1, 2, 3, 4]
        eventually(lambda: {"app.state.q.1", "app.n.q.1", "app.n.q/2"} <=
                   set(server.get("/hicc/v1/metrics/schema/app", TENANT).json))
        server.kill()
        server.start()
        address = f"host1/demo/app//a@{1:016x}"
        answer = server.request("POST", "/api/streams/demux?" +
                                urllib.parse.urlencode({"stream": address}))
        assert answer.status == 200, answer
        read_to(server, 6)
        eventually(lambda: server.metric(refused) >= 1)
    before = server.metric(refused)
    # The next minute has room again.
    send(server, end, [line(60 + at, state=f"s{at}", queue="q.1") for at in range(4)])
    eventually(lambda: [text for _, text in series(server, "app.state.q.1")["data"][4:]] ==
               ["s0", "s1", "s2"])
    eventually(lambda: server.metric(refused) > before)


def test_of_two_texts_at_a_time_the_later_stays(texts_server):
    """However often the stream is read, and though minutes take turns: each has room for three."""
    server = texts_server
    lines = [line(0, state="zzz", queue="a"), line(0, state="aaa", queue="a")]
    for minute in (60, 120, 60, 120, 60, 120, 60, 120):
        lines.append(line(minute + len(lines), state="x", queue="b"))
    send(server, 0, lines)
    refused = "granary_demux_texts_refused_total"
    for _ in range(2):
        read_to(server, len(lines))
        eventually(lambda: server.metric(refused) == 2)
        assert series(server, "app.state.a")["data"] == [[ms_of(0), "aaa"]]
        assert len(series(server, "app.state.b")["data"]) == 6
        server.kill()
        server.start()
        assert server.request("POST", "/api/streams/demux?" + urllib.parse.urlencode(
            {"stream": f"host1/demo/app//a@{1:016x}"})).status == 200


def test_texts_that_are_too_long(texts_server):
    server = texts_server
    send(server, 0, [line(0, state="x" * 4096, queue="a"), line(1, state="x" * 4097, queue="a"),
                     line(2, state="two tags", queue="a", area="z")])
    eventually(lambda: server.metric("granary_demux_texts_refused_total") == 1)
    assert series(server, "app.state.a")["data"] == [[ms_of(0), "x" * 4096]]
    # Tags by their keys.
    assert series(server, "app.state.z.a")["data"] == [[ms_of(2), "two tags"]]
    assert "1 texts of datatype app are not stored" in server.log_text()


def test_tags_of_chunks_are_notes(texts_server):
    """Each hour of lines has those that its chunks have, at the name of the datatype."""
    server = texts_server
    at = send(server, 0, [line(0, n=1, queue="q")], tags=TAGS)
    at = send(server, at, [line(10, n=2, queue="q")], tags=TAGS)
    at = send(server, at, [line(20, n=3, queue="q")], tags='env="test"')
    at = send(server, at, [line(30, n=3, queue="q")])
    at = send(server, at, [line(3600, n=4, queue="q"), line(7200, n=5, queue="q")], tags=TAGS)
    send(server, 0, [line(0, n=1, queue="q")], source="host2", incarnation=2, tags='env="dev"')
    hour = START.replace(minute=0)
    hour_ms = int(hour.timestamp() * 1000)

    def notes(start, source="host1"):
        return [(one["time"], one["metric"], one["text"])
                for one in series(server, "app.n.q", source, start).get("notes", [])]

    later = hour + datetime.timedelta(hours=1)
    for _ in range(2):
        eventually(lambda: len(notes(hour)) == 2 and len(notes(later)) == 1 and
                   len(notes(hour, "host2")) == 1)
        assert sorted(notes(hour)) == [(hour_ms, "app", TAGS), (hour_ms, "app", 'env="test"')]
        assert notes(later) == [(hour_ms + 3_600_000, "app", TAGS)]
        assert notes(later + datetime.timedelta(hours=1)) == [(hour_ms + 7_200_000, "app", TAGS)]
        assert notes(hour, "host2") == [(hour_ms, "app", 'env="dev"')]
        server.kill()
        server.start()
        assert server.request("POST", "/api/streams/demux?" + urllib.parse.urlencode(
            {"stream": f"host1/demo/app//a@{1:016x}"})).status == 200
        read_to(server, 7)
