"""Streams against the real server: chunks of both versions, twice, overlapping, out of order, with
holes and with other bytes; damaged bodies; limits; blocks; kills. What was sent is compared with
what is exported, byte by byte."""

import http.client
import json
import random
import struct
import subprocess
import threading

import pytest

import chunks
from chunks import stream_bytes, v1, v1_post, v2
from server import build_folder, eventually, granary, long_run, run, running

HOOK = build_folder() / "tests" / "fault" / "fault_hook.so"
FIRST = "host1/demo/log//a@0000000000000001"


def post(server, *parts, **headers):
    return server.request("POST", "/chukwa", b"".join(parts), headers)


def lines_of(answer):
    return answer.text.splitlines()


def streams(server, **params):
    answer = server.get("/api/streams", **params)
    assert answer.status == 200, answer
    return answer.json["streams"]


def held(server, stream=FIRST, **params):
    return {one["stream"]: one["held"] for one in streams(server, **params)}[stream]


def export(server, stream=FIRST, **params):
    """What is held, as (offset, bytes) of each run."""
    runs, at = [], params.pop("from_", 0)
    while True:
        answer = server.get("/api/streams/export", stream=stream, **{"from": at}, **params)
        assert answer.status == 200, answer
        if not answer.body:
            return runs
        begin = int(answer.headers["x-granary-offset"])
        if runs and runs[-1][0] + len(runs[-1][1]) == begin:
            runs[-1] = (runs[-1][0], runs[-1][1] + answer.body)
        else:
            runs.append((begin, answer.body))
        at = begin + len(answer.body)


def metric(server, name):
    text = server.get("/metrics").text
    return int(next(line for line in text.splitlines() if line.startswith(name)).split()[-1])


def test_the_example_of_the_document(server):
    """The first hundred bytes of a file are sequence id 100, the second hundred 200."""
    data = stream_bytes(1, 0, 200)
    answer = post(server, v2(100, data[:100]), v2(200, data[100:]))
    assert answer.status == 200
    assert lines_of(answer) == [
        "ok: 100 bytes ending at offset 99", "held: 0 to 200 of 0000000000000001",
        "ok: 100 bytes ending at offset 199", "held: 0 to 200 of 0000000000000001"]
    assert export(server) == [(0, data)]


def test_chukwas_own_chunk(server):
    """The worked chunk of Chukwa, byte for byte: 5 of its 6 bytes are sent, from offset 1 on."""
    body = bytes.fromhex(
        "00000001" "0000000100000000000000060005686f737431000f20636c75737465723d2264656d6f2200082f"
        "666f6f2f6261720007426172446174610000000000020000000100000004610a62630a")
    assert body == v1_post(v1(6, b"a\nbc\n", datatype="BarData", name="/foo/bar"))
    answer = post(server, body)
    assert answer.status == 200
    assert lines_of(answer)[0] == "ok: 5 bytes ending at offset 5"
    stream, = streams(server)
    assert (stream["source"], stream["cluster"], stream["datatype"], stream["name"]) == (
        "host1", "demo", "BarData", "/foo/bar")
    assert stream["held"] == [[1, 6]]
    assert export(server, stream["stream"]) == [(1, b"a\nbc\n")]
    assert post(server, body).status == 200
    assert streams(server)[0]["held"] == [[1, 6]]
    assert metric(server, 'granary_chunks_total{result="repeated"}') == 1


def test_the_second_half_of_a_file(server):
    data = stream_bytes(2, 0, 1000)
    assert post(server, v2(1000, data[500:])).status == 200
    assert held(server) == [[500, 1000]]
    assert export(server) == [(500, data[500:])]
    assert export(server, from_=700) == [(700, data[700:])]
    assert export(server, from_=1000) == []


def test_twice_is_once_and_overlaps_count_once(server):
    data = stream_bytes(3, 0, 1000)
    for begin, end in ((0, 200), (0, 200), (150, 200), (100, 300), (0, 400), (350, 500), (0, 500)):
        answer = post(server, v2(end, data[begin:end]))
        assert answer.status == 200, answer
        assert lines_of(answer)[0] == f"ok: {end - begin} bytes ending at offset {end - 1}"
    assert held(server) == [[0, 500]]
    assert export(server) == [(0, data[:500])]
    assert metric(server, 'granary_chunks_total{result="repeated"}') == 3


def test_holes_are_shown_and_filled(server):
    data = stream_bytes(4, 0, 1000)
    for begin, end in ((0, 100), (200, 300), (900, 1000)):
        post(server, v2(end, data[begin:end]))
    assert held(server) == [[0, 100], [200, 300], [900, 1000]]
    assert export(server) == [(0, data[:100]), (200, data[200:300]), (900, data[900:])]
    answer = post(server, v2(200, data[100:200]))
    assert lines_of(answer)[1] == "held: 0 to 300 of 0000000000000001"
    assert export(server) == [(0, data[:300]), (900, data[900:])]


def test_other_bytes_are_no_duplicate(server):
    data = stream_bytes(5, 0, 400)
    other = bytearray(data)
    other[250] ^= 1
    assert post(server, v2(300, data[:300])).status == 200
    answer = post(server, v2(350, bytes(other[200:350])), v2(400, data[350:], name="/b"))
    assert answer.status == 409
    assert lines_of(answer) == [
        "other: 150 bytes ending at offset 349: the stream has another byte at offset 250; a "
        "stream that begins anew is another incarnation",
        "ok: 50 bytes ending at offset 399", "held: 350 to 400 of 0000000000000001"]
    assert post(server, v2(300, bytes(other[:300]), incarnation=2)).status == 200
    assert export(server) == [(0, data[:300])]
    assert export(server, FIRST[:-1] + "2") == [(0, bytes(other[:300]))]


def test_a_sender_that_knows_no_incarnations_begins_anew(server):
    """Chukwa's agent begins at 0 again when its file was rotated: nothing of that is lost."""
    old, new = stream_bytes(6, 0, 1000), stream_bytes(7, 0, 1000)
    assert post(server, v1_post(v1(960, old[:960]))).status == 200
    assert post(server, v1_post(v1(640, new[:640]), v1(960, new[640:960]))).status == 200
    # In one post, on behind what is there, and anew again.
    third = stream_bytes(8, 0, 640)
    answer = post(server, v1_post(v1(1024, stream_bytes(7, 960, 1024)), v1(64, third[:64]),
                                  v1(640, third[64:])))
    assert answer.status == 200
    found = {one["stream"]: one for one in streams(server)}
    assert len(found) == 3
    bodies = sorted(export(server, stream)[0] for stream in found)
    assert bodies == sorted([(0, old[:960]), (0, stream_bytes(7, 0, 1024)), (0, third)])
    assert metric(server, 'granary_chunks_total{result="other_bytes"}') == 2
    # What has come already is known again, also after a restart: of the last that was begun.
    server.stop()
    server.start()
    assert post(server, v1_post(v1(640, third))).status == 200
    assert len(streams(server)) == 3


def test_below_what_has_gone_a_sender_that_knows_no_incarnations_begins_anew(server):
    """What was deleted cannot be compared: what comes from below is another file, and not lost."""
    def delete(incarnation):
        answer = server.request("DELETE", "/api/streams", stream=f"host1/demo/log//a@{incarnation}")
        assert answer.status == 200

    def send(data, begin, end):
        answer = post(server, v1_post(v1(end, data[begin:end], ends=[end - begin])))
        assert answer.status == 200
        return lines_of(answer)[1]

    def whole():
        return sorted((export(server, one["stream"]) for one in streams(server)), key=str)

    old, new, last = (stream_bytes(seed, 0, 6000) for seed in (32, 33, 34))
    first = send(old, 0, 3000).split()[-1]
    delete(first)
    # The next file is shorter at first than what has gone, and then longer.
    second = send(new, 0, 1000).split()[-1]
    assert second != first
    assert send(new, 1000, 4000) == f"held: 0 to 4000 of {second}"
    assert send(new, 0, 500) == f"held: 0 to 4000 of {second}"
    assert whole() == [[(0, new[:4000])], []]
    assert metric(server, 'granary_chunks_total{result="other_bytes"}') == 1
    # It goes on behind what has gone, in the same incarnation.
    delete(second)
    assert send(new, 4000, 4500) == f"held: 4000 to 4500 of {second}"
    assert whole() == [[(4000, new[4000:4500])], []]
    # Another file reaches from below what has gone to behind what is held.
    third = send(last, 3999, 5000).split()[-1]
    assert third != second
    assert send(last, 3999, 4001) == f"held: 3999 to 5000 of {third}"
    assert whole() == [[(3999, last[3999:5000])], [(4000, new[4000:4500])], []]
    assert metric(server, 'granary_chunks_total{result="other_bytes"}') == 2
    # Of the incarnation before what is held is known, and nothing else.
    assert send(new, 4100, 4200) == f"held: 4000 to 4500 of {second}"
    fourth = send(new, 3900, 4100).split()[-1]
    assert fourth not in (first, second, third)


def test_records_that_are_no_lines(server):
    """Also binary, and records of a chunk that is longer than a chunk of ours may be."""
    chance = random.Random(9)
    data = chance.randbytes(3_000_000)
    ends = sorted(chance.sample(range(1, len(data)), 3000)) + [len(data)]
    assert post(server, v1_post(v1(len(data), data, ends=ends))).status == 200
    stream, = streams(server)
    assert stream["held"] == [[0, len(data)]]
    assert export(server, stream["stream"]) == [(0, data)]


def test_a_damaged_chunk_is_passed_over(server):
    data = stream_bytes(10, 0, 300)
    parts = [v2(100 * (n + 1), data[100 * n:100 * n + 100]) for n in range(3)]
    parts[1] = parts[1][:40] + bytes([parts[1][40] ^ 255]) + parts[1][41:]
    answer = post(server, *parts)
    assert answer.status == 400
    assert [line.split(":")[0] for line in lines_of(answer)] == [
        "ok", "held", "damaged", "ok", "held"]
    assert lines_of(answer)[2] == f"damaged: {len(parts[1])} bytes: its checksum is wrong"
    assert held(server) == [[0, 100], [200, 300]]
    assert metric(server, "granary_chunks_damaged_total") == 1
    # Noise in front, between and behind.
    answer = post(server, b"noise", parts[0], b"Gch2", parts[2], b"\0\0")
    assert [line.split(":")[0] for line in lines_of(answer)] == [
        "damaged", "ok", "held", "damaged", "ok", "held", "damaged"]


@pytest.mark.parametrize("body, sentence", [
    (b"", "the body has 0 bytes"),
    (b"\0\0\0", "the body has 3 bytes"),
    (struct.pack(">i", 1), "chunk 0 of 1 cannot be read"),
    (v1_post(b"\0\0\0\2" + v1(6, b"abcde\n")[4:]), "it is of version 2, not 1"),
    (v1_post(*[v1(0, b"")] * 10001), "there are more than 10000 chunks"),
    (b"".join(v2(n + 1, b"x") for n in range(10001)), "there are more than 10000 chunks"),
], ids=["empty", "short", "cut", "version", "many", "many frames"])
def test_what_is_no_body_of_chunks(server, body, sentence):
    answer = post(server, body)
    assert answer.status in (400, 413)
    assert sentence in answer.json["error"]["message"]
    assert streams(server) == []


def test_what_is_wrong_with_one_chunk_is_said_of_it(server):
    good = v2(4, b"abc\n")
    answer = post(
        server, v2(4, b"abc\n", source=""), v2(4, b"abc\n", datatype="chart_meta"),
        v2(4, b"abc\n", name="n" * 1025), v2(4, b"abc\n", tenant="a b"),
        v2(4, b"abc\n", cluster=b"\xff"), good)
    assert answer.status == 400
    said = lines_of(answer)
    assert said[0] == "refused: 4 bytes ending at offset 3: the source is empty"
    assert "chukwa_metadata has boards" in said[1]
    assert "has 1025 bytes, more than 1024" in said[2]
    assert '"a b" cannot be the name of a tenant' in said[3]
    assert "the cluster is not UTF-8" in said[4]
    assert said[5:] == ["ok: 4 bytes ending at offset 3", "held: 0 to 4 of 0000000000000001"]
    assert len(streams(server)) == 1


def test_what_is_wrong_with_one_chunk_of_version_1_is_said_of_it(server):
    """Where it ends is known: what follows is taken."""
    answer = post(server, v1_post(
        v1(4, b"abcde\n"), v1(6, b"abcde\n", tags=' incarnation="x"'),
        v1(6, b"abcde\n", tags=' incarnation="ffffffffffffffff"'), v1(6, b"abcde\n", source="")))
    assert answer.status == 400
    assert lines_of(answer) == [
        "refused: 6 bytes ending at offset 3: its sequence id 4 is below its length 6",
        "refused: 6 bytes ending at offset 5: its tag incarnation is no hexadecimal number of 64 "
        "bits",
        "ok: 6 bytes ending at offset 5", "held: 0 to 6 of ffffffffffffffff",
        "refused: 6 bytes ending at offset 5: the source is empty"]
    assert metric(server, 'granary_chunks_total{result="refused"}') == 3


def test_what_was_not_answered_is_sent_again(server):
    """Also where a stream began anew within it: nothing is stored twice, or in the wrong place."""
    old, new = stream_bytes(20, 0, 1000), stream_bytes(21, 0, 1000)
    assert post(server, v1_post(v1(960, old[:960]))).status == 200
    body = v1_post(v1(1000, old[960:], ends=[40]), v1(500, new[:500], ends=[500]))
    for _ in range(3):
        assert post(server, body).status == 200
    server.kill()
    server.start()
    assert post(server, body).status == 200
    assert post(server, v1_post(v1(1000, new[500:], ends=[500]))).status == 200
    assert sorted(export(server, one["stream"]) for one in streams(server)) == sorted(
        [[(0, old)], [(0, new)]])


def test_incarnations_that_begin_at_once_stay_in_their_order(server):
    """A sender begins anew many times within one post. What it sends then goes to the last."""
    kinds = [bytes([97 + n % 26, 97 + n // 26]) * 5 for n in range(70)]
    post(server, v1_post(*(v1(10, kind, ends=[10], name=f"/{n}") for n in range(5)
                           for kind in kinds)))
    server.kill()
    server.start()
    post(server, v1_post(*(v1(20, b"0123456789", ends=[10], name=f"/{n}") for n in range(5))))
    for n in range(5):
        found = [export(server, one["stream"]) for one in streams(server, name=f"/{n}")]
        assert sorted(found) == sorted(
            [[(0, kind)] for kind in kinds[:-1]] + [[(0, kinds[-1] + b"0123456789")]])


def test_many_short_chunks_before_a_long_one(server):
    """They end before it does, and it alone has the first bytes."""
    data = random.Random(1).randbytes(71_000)
    post(server, *(v2(70_001 + n, data[1:70_001 + n]) for n in range(65)),
         v2(70_200, data[:70_200]))
    assert export(server) == [(0, data[:70_200])]


def test_numbers_that_lie(server):
    near = 2**63 - 1
    answer = post(server, v2(near, b"abc\n", name="/far"), v2(3, b"abc\n"), v2(0, b""),
                  v2(2**63, b"abc\n"), v2(8, b"abc\ndef\n"))
    assert [line.split(":")[0] for line in lines_of(answer)] == [
        "ok", "held", "damaged", "damaged", "damaged", "ok", "held"]
    assert export(server, "host1/demo/log//far@0000000000000001", from_=near - 4) == [
        (near - 4, b"abc\n")]
    # It unpacks to more than it says: the frame of zstd says so itself.
    frame = bytearray(v2(8, b"abc\ndef\n", name="/long"))
    at = frame.index(b"\x28\xb5\x2f\xfd\xa0") + 5
    frame[at] = 4
    body = bytes(frame[12:])
    length = struct.pack("<I", len(body))
    frame = b"Gch2" + length + struct.pack("<I", chunks.crc32c(length + body)) + body
    answer = post(server, frame)
    assert "another length than it says" in answer.text


def test_tenants_have_streams_of_their_own(server):
    post(server, v2(4, b"abc\n"), v2(4, b"xyz\n", tenant="t2"), **{"X-Tenant": "t1"})
    assert export(server, tenant="t1") == [(0, b"abc\n")]
    assert export(server, tenant="t2") == [(0, b"xyz\n")]
    assert streams(server) == []
    answer = server.get("/api/streams/export", stream=FIRST)
    assert answer.status == 404 and "there is no stream" in answer.text


def test_lists_are_in_order_and_go_on(server):
    names = [(source, datatype, f"/{number}") for source in ("a", "b/c") for datatype in ("x", "y")
             for number in range(6)]
    post(server, *(v2(4, b"abc\n", source=s, datatype=d, name=n) for s, d, n in names))
    found, token = [], {}
    while True:
        answer = server.get("/api/streams", limit=5, **token).json
        found += [(one["source"], one["datatype"], one["name"]) for one in answer["streams"]]
        if "token" not in answer:
            break
        token = {"token": answer["token"]}
    assert sorted(found) == sorted(names) and len(found) == len(names)
    assert len(streams(server, source="b/c", datatype="y")) == 6
    assert [one["name"] for one in streams(server, source="a", datatype="x", name="/3")] == ["/3"]
    # Names that are longer than a column, and alike in front.
    long = ["/" + "d" * 400 + str(number) for number in range(3)]
    post(server, *(v2(4, b"abc\n", source="long", name=name) for name in long))
    assert sorted(one["name"] for one in streams(server, source="long")) == long
    # A name that is what becomes of a longer one there.
    hidden = "/" + "e" * 400
    address = f"long/demo/log/{hidden}"
    for length in range(280, 330):
        answer = post(server, v2(4, b"abc\n", source="long", name=hidden[:length]))
        assert answer.status == 200, length
    assert len(streams(server, source="long", limit=1000)) == 53 and len(address) > 400
    assert server.get("/api/streams", token="x").status == 400


@pytest.mark.parametrize("option, word, sentence", [
    (("--stream.streams_max", "3"), "refused", "stream.streams_max: the tenant has 3 streams"),
    (("--stream.new_per_minute", "3"), "later", "stream.new_per_minute: "),
])
def test_too_many_streams(make_server, option, word, sentence):
    with running(make_server(options=option)) as server:
        answer = post(server, *(v2(4, b"abc\n", name=f"/{n}") for n in range(5)))
        assert answer.status == (400 if word == "refused" else 503)
        assert len(streams(server)) == 3
        said = lines_of(answer)
        assert sum(line.startswith(word) and sentence in line for line in said) == 2
        # Chunks of one new stream are one.
        assert post(server, *(v2(4 * n + 4, b"abc\n") for n in range(200)),
                    **{"X-Tenant": "many"}).status == 200
        # A stream that is there goes on, and those of others do.
        assert post(server, v2(8, b"def\n", name="/0")).status == 200
        assert post(server, v2(4, b"abc\n"), **{"X-Tenant": "other"}).status == 200


def test_too_many_holes(make_server):
    with running(make_server(options=("--stream.holes_max", "2"))) as server:
        data = stream_bytes(11, 0, 1000)
        statuses = [post(server, v2(end, data[end - 50:end])).status
                    for end in (100, 200, 300, 400, 350)]
        assert statuses == [200, 200, 200, 400, 200]
        assert held(server) == [[50, 100], [150, 200], [250, 350]]
        answer = post(server, *(v2(end, data[end - 50:end], name="/b") for end in
                                range(100, 1000, 100)))
        assert answer.status == 400 and len(held(server, FIRST.replace("/a", "/b"))) == 3


def test_many_senders_at_once(server):
    """Each sends pieces of the same streams in an order of its own, some twice."""
    size, sent = 200_000, []
    whole = {name: stream_bytes(seed, 0, size) for seed, name in enumerate("abcd")}

    def send(seed):
        chance = random.Random(seed)
        pieces = []
        for name, data in whole.items():
            cuts = sorted(chance.sample(range(1, size), 20))
            pieces += [(name, begin, end) for begin, end in zip([0] + cuts, cuts + [size])]
        chance.shuffle(pieces)
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        for at in range(0, len(pieces), 7):
            connection.request("POST", "/chukwa", b"".join(
                v2(end, whole[name][begin:end], name=name)
                for name, begin, end in pieces[at:at + 7]))
            answer = connection.getresponse()
            sent.append((answer.status, answer.read()))
        connection.close()

    threads = [threading.Thread(target=send, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sent) == 6 * 12 and {status for status, _ in sent} == {200}
    for name, data in whole.items():
        assert export(server, f"host1/demo/log/{name}@0000000000000001") == [(0, data)]


def sealed(server, stream=FIRST):
    return {one["stream"]: one["sealed"] for one in streams(server)}[stream]


def test_what_fills_a_block_is_sealed(server):
    size = 3_000_000
    data = stream_bytes(12, 0, size)
    for begin in range(0, size, 100_000):
        assert post(server, v2(begin + 100_000, data[begin:begin + 100_000])).status == 200
    found = eventually(lambda: sealed(server) if sealed(server)[-1:] and
                       sealed(server)[0][1] > size - (960 << 10) else None)
    assert found[0][0] == 0 and found[0][1] <= size
    assert found[0][1] % chunks.LINE_BYTES == 0  # cut between lines
    assert export(server) == [(0, data)]
    assert export(server, from_=1_234_567) == [(1_234_567, data[1_234_567:])]
    # Of what is in blocks, too, twice is once, and other bytes are seen.
    other = bytearray(data[500_000:600_000])
    other[99_999] ^= 1
    assert post(server, v2(600_000, data[500_000:600_000])).status == 200
    answer = post(server, v2(600_000, bytes(other)))
    assert answer.status == 409 and "another byte at offset 599999" in answer.text
    server.stop()
    server.start()
    assert export(server) == [(0, data)]
    answer = post(server, v2(600_000, bytes(other)))
    assert answer.status == 409 and "another byte at offset 599999" in answer.text


def test_what_waits_for_long_is_sealed(make_server):
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        data = stream_bytes(13, 0, 2880)
        for begin, end in ((0, 960), (1920, 2880)):
            post(server, v2(end, data[begin:end]))
        eventually(lambda: sealed(server) == [[0, 960], [1920, 2880]])
        eventually(lambda: metric(server, "granary_chunks_tail_bytes") == 0)
        assert "waiting" not in streams(server)[0]
        # What comes late fills its hole.
        post(server, v2(1920, data[960:1920]))
        eventually(lambda: sealed(server) == [[0, 2880]])
        assert export(server) == [(0, data)]


def test_a_record_waits_for_its_end(make_server):
    """At the end of what is there, and behind a hole: it goes into one block when it is whole. All
    lines have 64 bytes."""
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        data = stream_bytes(13, 0, 3072)
        post(server, v2(1000, data[:1000]), v2(3072, data[2000:], flags=1 | 2))
        eventually(lambda: sealed(server) == [[0, 960], [2048, 3072]])
        assert held(server) == [[0, 1000], [2000, 3072]]
        post(server, v2(2000, data[1000:2000], flags=1 | 2 | 4))
        eventually(lambda: sealed(server) == [[0, 3072]])
        eventually(lambda: metric(server, "granary_chunks_tail_bytes") == 0)
        assert export(server) == [(0, data)]


def test_many_chunks_with_the_longest_names_are_sealed(make_server):
    """Names that are escaped are three times as long: the removal of chunks is as many writes as it
    takes."""
    names = {"source": "/" * 255, "cluster": "%" * 64, "datatype": "/" * 64, "name": "n" * 1024}
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        for at in range(0, 4000, 1000):
            answer = post(server, *(v2(2 * n + 2, b"x\n", **names) for n in range(at, at + 1000)))
            assert answer.status == 200
        stream, = streams(server)
        eventually(lambda: streams(server)[0]["sealed"] == [[0, 8000]])
        eventually(lambda: "waiting" not in streams(server)[0])
        assert export(server, stream["stream"]) == [(0, b"x\n" * 4000)]


def test_a_chunk_that_does_not_unpack_leaves_a_hole(make_server):
    """It is acknowledged without being unpacked; what comes again takes its place."""
    data = stream_bytes(14, 0, 384)
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        lie = v2(256, data[128:256], packed=chunks.zstd_lie(128))
        assert post(server, v2(128, data[:128]), lie, v2(384, data[256:])).status == 200
        eventually(lambda: sealed(server) == [[0, 128], [256, 384]])
        assert held(server) == [[0, 128], [256, 384]]
        assert metric(server, "granary_chunks_unreadable_total") == 1
        assert "the last one had the bytes 128 to 256" in server.log_text()
        assert post(server, v2(256, data[128:256])).status == 200
        eventually(lambda: sealed(server) == [[0, 384]])
        assert export(server) == [(0, data)]
        # Also where it comes again at once.
        lie = v2(512, bytes(128), packed=chunks.zstd_lie(128))
        more = stream_bytes(14, 384, 512)
        assert post(server, lie).status == 200
        assert post(server, v2(512, more)).status == 200
        eventually(lambda: sealed(server) == [[0, 512]])
        assert export(server) == [(0, data + more)]


KEEPING = ("--stream.seal_after", "1s", "--stream.retain_every", "1s")


def test_what_is_old_goes(make_server):
    """By the time of receipt; what comes again then is known, and not stored."""
    data = stream_bytes(15, 0, 4000)
    rules = ("--stream.keep_rules", "*/log:8s")
    with running(make_server(options=KEEPING + rules)) as server:
        assert post(server, v2(1000, data[:1000]),
                    v2(1000, data[:1000], datatype="kept")).status == 200
        assert held(server) == [[0, 1000]]
        eventually(lambda: held(server) == [])
        assert export(server) == []
        assert streams(server, datatype="log")[0]["kept_from"] == 1000
        # All of it again, a part of it, and what is partly new.
        answer = post(server, v2(1000, data[:1000]), v2(900, data[500:900]),
                      v2(1500, data[500:1500]), v2(3000, data[2000:3000]))
        assert answer.status == 200
        assert held(server) == [[1000, 1500], [2000, 3000]]
        assert export(server) == [(1000, data[1000:1500]), (2000, data[2000:3000])]
        eventually(lambda: held(server) == [])
        assert streams(server, datatype="log")[0]["kept_from"] == 3000
        server.stop()
        server.start()
        assert post(server, v2(2000, data[1000:2000])).status == 200
        assert held(server) == []
        eventually(lambda: stored_cells(server, "chunk_sink") == 1)
        kept = "host1/demo/kept//a@0000000000000001"
        assert export(server, kept) == [(0, data[:1000])]


def test_what_comes_anew_after_what_is_old_has_gone_is_stored(make_server):
    """A sender that knows no incarnations begins anew: its file is shorter than what has gone."""
    old, new = stream_bytes(35, 0, 1500), stream_bytes(36, 0, 3000)
    with running(make_server(options=KEEPING + ("--stream.keep", "4s"))) as server:
        assert post(server, v1_post(v1(1500, old, ends=[1500]))).status == 200
        eventually(lambda: streams(server)[0]["held"] == [])
        answer = post(server, v1_post(*(v1(end, new[end - 750:end], ends=[750])
                                        for end in range(750, 3001, 750))))
        assert [line.split(" of ")[0] for line in lines_of(answer)[1::2]] == 4 * ["held: 0 to 3000"]
        stream, = (one["stream"] for one in streams(server) if one["held"])
        assert export(server, stream) == [(0, new)]


def test_a_stream_is_deleted(make_server):
    data = stream_bytes(16, 0, 3_000_000)
    with running(make_server(options=KEEPING)) as server:
        for begin in range(0, 2_000_000, 500_000):
            post(server, v2(begin + 500_000, data[begin:begin + 500_000]))
        post(server, v2(100, b"x" * 99 + b"\n", name="/b"))
        eventually(lambda: sealed(server))
        answer = server.request("DELETE", "/api/streams", stream=FIRST, dryRun="true")
        assert answer.json == {"stream": FIRST, "bytes": 2_000_000, "dry_run": True}
        assert held(server) == [[0, 2_000_000]]
        answer = server.request("DELETE", "/api/streams", stream=FIRST)
        assert answer.json == {"stream": FIRST, "bytes": 2_000_000, "dry_run": False}
        assert held(server) == [] and export(server) == []
        # It goes on, and what is sent again stays away.
        assert post(server, v2(3_000_000, data[2_100_000:])).status == 200
        assert post(server, v2(500_000, data[:500_000])).status == 200
        assert held(server) == [[2_100_000, 3_000_000]]
        eventually(lambda: "waiting" not in streams(server, name="/b")[0])
        eventually(lambda: sealed(server) == [[2_100_000, 3_000_000]])
        assert export(server) == [(2_100_000, data[2_100_000:])]
        assert export(server, FIRST.replace("/a@", "/b@")) == [(0, b"x" * 99 + b"\n")]
        eventually(lambda: stored_cells(server, "chunk_sink") == 2)
        assert stored_cells(server, "chunk_heads") == 3 * 2
        assert stored_cells(server, "chunk_tail") == 0
        answer = server.request("DELETE", "/api/streams", stream=FIRST.replace("/a@", "/none@"))
        assert answer.status == 404


def stored_cells(server, table):
    stats = server.get("/api/stats").json
    return next(one["samples"] for one in stats["tables"] if one["table"] == table)


@pytest.mark.parametrize("rule, sentence", [
    ("log:3d", "it is not TENANT/DATATYPE:DURATION"), ("t/log", "it is not TENANT/DATATYPE"),
    ("t/:3d", "it is not TENANT/DATATYPE"), ("a b/log:3d", 'the tenant "a b" is not'),
    ("t/log:x", '"x"'), ("*/*:3d,t/log:4d", "it is never reached"),
])
def test_rules_that_are_none(rule, sentence, tmp_path):
    answer = run("serve", "--data", tmp_path / "data", "--stream.keep_rules", rule)
    assert answer.returncode == 2
    assert "stream.keep_rules" in answer.stderr and sentence in answer.stderr


def test_the_commands(server):
    data = stream_bytes(17, 0, 9_000_000)
    for begin in range(0, len(data), 900_000):
        post(server, v2(begin + 900_000, data[begin:begin + 900_000]))
    post(server, v2(300, data[200:300]), v2(100, data[:100]), **{"X-Tenant": "t"})
    url = ("--server", server.url)
    answer = run("stream", "list", *url, "-o", "csv")
    assert answer.stdout.splitlines()[0] == "stream,held,waiting,made"
    assert answer.stdout.splitlines()[1].startswith(f"{FIRST},0-9000000,")
    answer = subprocess.run([granary(), "stream", "export", FIRST, *url], capture_output=True)
    assert (answer.returncode, answer.stdout) == (0, data)
    answer = run("stream", "export", FIRST, "--tenant", "t", *url)
    assert (answer.returncode, answer.stdout) == (0, (data[:100] + data[200:300]).decode())
    assert "the bytes from offset 100 to 200 are not there" in answer.stderr
    answer = run("stream", "export", FIRST, "--from", "250", "--to", "270", *url)
    assert answer.stdout == data[250:270].decode()
    answer = run("stream", "delete", FIRST, "--tenant", "t", "--dry-run", *url, "-o", "csv")
    assert answer.stdout.splitlines() == ["stream,bytes,dry_run", f"{FIRST},200,true"]
    answer = run("stream", "delete", FIRST, "--tenant", "t", *url, "-o", "json")
    assert json.loads(answer.stdout)["bytes"] == 200
    assert streams(server, tenant="t")[0]["held"] == []
    answer = run("stream", "export", "nonsense", *url)
    assert answer.returncode == 1 and "no address of a stream" in answer.stderr


@pytest.mark.not_sanitized("preloads a library")
@pytest.mark.skipif(not HOOK.exists(), reason="without a disk that can be made slow")
def test_posts_wait_in_line(make_server, monkeypatch, tmp_path):
    """On a slow disk: some wait for their turn, those that wait for too long are told so, and all
    are taken when they are sent again."""
    size, senders = 200_000, 12
    whole = {str(n): stream_bytes(n, 0, size) for n in range(senders)}
    statuses = []

    def send(server, name):
        body = v2(size, whole[name], name=name)
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            connection.request("POST", "/chukwa", body)
            answer = connection.getresponse()
            statuses.append(answer.status)
            text = answer.read()
            connection.close()
            if answer.status == 200:
                return
            assert answer.status == 503 and b"send these again later" in text, text
            assert answer.headers["Retry-After"]

    with monkeypatch.context() as environment:
        environment.setenv("FAULT_HOOK", "lmdb:fdatasync:1:0:slow")
        environment.setenv("FAULT_HOOK_LOG", str(tmp_path / "hook"))
        environment.setenv("LD_PRELOAD", str(HOOK))
        server = make_server(options=("--ingest.in_flight_max", "1M", "--ingest.wait_max", "50ms"))
        server.start()
    threads = [threading.Thread(target=send, args=(server, name)) for name in whole]
    for thread in threads:
        thread.start()
    for _ in range(10):  # some leave while they wait
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        connection.request("POST", "/chukwa", v2(size, whole["0"], name="/gone"))
        connection.close()
    for thread in threads:
        thread.join()
    assert statuses.count(200) == senders and 503 in statuses
    assert sum(metric(server, f'granary_ingest_overload_total{{reason="{reason}"}}')
               for reason in ("waited", "at_once")) > 0
    for name, data in whole.items():
        assert export(server, f"host1/demo/log/{name}@0000000000000001") == [(0, data)]
    eventually(lambda: metric(server, "granary_ingest_in_flight_bytes") == 0)
    server.stop()


def send_until_told(server, name, size, sent, stop):
    """As an agent does: sends what comes next until it is acknowledged, and goes on from there."""
    data, at = stream_bytes(ord(name), 0, size), 0
    chance = random.Random(name)
    while at < size and not stop.is_set():
        end = min(size, at + chance.randrange(1, 60_000))
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            connection.request("POST", "/chukwa", v2(end, data[at:end], name=name))
            answer = connection.getresponse()
            lines = answer.read().decode().splitlines()
            if answer.status == 200:
                _, begin, _, whole, _, incarnation = lines[1].split()
                assert (begin, incarnation) == ("0", "0000000000000001"), lines
                at = sent[name] = int(whole)
        except (OSError, http.client.HTTPException):
            stop.wait(0.01)  # it was killed, and is started again
        finally:
            connection.close()


def test_kills_under_load(make_server):
    """Whenever it is killed: what was acknowledged is there, once, and nothing else is."""
    kills = 100 if long_run() else 8
    size = 40_000_000
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        sent, stop = dict.fromkeys("abcd", 0), threading.Event()
        senders = [threading.Thread(target=send_until_told, args=(server, name, size, sent, stop))
                   for name in sent]
        for sender in senders:
            sender.start()
        chance = random.Random(5)
        for _ in range(kills):
            before = dict(sent)
            target = chance.randrange(200_000, 2_000_000)
            eventually(lambda: sum(sent.values()) - sum(before.values()) > target
                       or not any(sender.is_alive() for sender in senders))
            server.kill()
            server.start()
        stop.set()
        for sender in senders:
            sender.join()
        assert sum(sent.values()) > kills * 200_000
        for name, held_bytes in sent.items():
            stream = f"host1/demo/log/{name}@0000000000000001"
            (begin, body), = export(server, stream)
            assert begin == 0 and len(body) >= held_bytes
            assert body == stream_bytes(ord(name), 0, len(body))
        assert metric(server, "granary_chunks_damaged_total") == 0


def test_verify_names_what_is_wrong_with_a_stream(make_server):
    """Of the server and of its directory; a chunk that lies waits for its block."""
    data = stream_bytes(17, 0, 256)
    with running(make_server(options=("--stream.seal_after", "1h"))) as server:
        assert post(server, v2(128, data[:128])).status == 200
        command = ("verify", "--server", server.url, "-o", "json")
        assert run(*command).returncode == 0
        assert post(server, v2(256, data[128:], packed=chunks.zstd_lie(128))).status == 200
        for found in (run(*command), run(*command, "--words")):
            assert found.returncode == 1
            said = json.loads(found.stdout)
            assert said["problems"] == 1 and said["orphans"] == 0
            assert said["sentences"][0].startswith(
                f"chunk_tail: tenant default stream {FIRST}, sequence_id 256 length 128 checksum ")
            assert said["sentences"][0].endswith(
                ": the chunk does not unpack to the bytes and ends of records that it says")
        server.stop()
        of_directory = run("verify", "--data", server.data, "-o", "json")
        assert of_directory.returncode == 1
        assert json.loads(of_directory.stdout)["sentences"] == said["sentences"]
