"""Of a gzipped body that is damaged, cut off or too long nothing is stored, however long it is:
what is wrong with it shows at its end, when most of it could have been stored."""

import gzip
import json
import random
import struct
import zlib

import pytest

from raw_http import brotli, raw_deflate

LINES = 120_000
START_S = 1_700_000_000
GZIP = {"Content-Encoding": "gzip"}
WRITES = ["/write?precision=s", "/api/v2/write?precision=s"]


def lines(count=LINES):
    rng = random.Random(2)
    return "\n".join(f"whole value={rng.randrange(1000, 2000)}i {START_S + i}"
                     for i in range(count)).encode()


def points(count=LINES):
    rng = random.Random(2)
    return json.dumps([{"metric": "whole", "timestamp": START_S + i, "tags": {"h": "a"},
                        "value": rng.randrange(1000, 2000)} for i in range(count)]).encode()


def gzipped(good, at):
    """Compressed but for the byte at `at`, which stands as it is, in a stored block of its own; and
    where. Nothing behind is copied from before it."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    packed = bytes.fromhex("1f8b08000000000000ff")
    packed += packer.compress(good[:at]) + packer.flush(zlib.Z_FULL_FLUSH)
    packed += b"\0" + struct.pack("<HH", 1, 1 ^ 0xffff)
    where = len(packed)
    packed += good[at:at + 1] + packer.compress(good[at + 1:]) + packer.flush()
    return packed + struct.pack("<II", zlib.crc32(good), len(good)), where


def flipped(packed, where):
    """The lowest bit of a digit: another digit."""
    return packed[:where] + bytes([packed[where] ^ 1]) + packed[where + 1:]


@pytest.fixture(scope="module", name="bodies")
def all_bodies():
    by_path = {}
    for make, marker, paths in ((lines, b"value=", WRITES), (points, b'"value": ', ["/api/put"])):
        good = make()
        at = good.index(marker, 3000) + len(marker) + 1  # the second digit of a number
        packed, where = gzipped(good, at)
        assert gzip.decompress(packed) == good
        damaged = flipped(packed, where)
        wrong = good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]
        assert zlib.decompressobj(-15).decompress(damaged[10:]) == wrong
        with pytest.raises(gzip.BadGzipFile):
            gzip.decompress(damaged)
        for path in paths:
            by_path[path] = {"good": packed, "flipped": damaged,
                             "cut": packed[:len(packed) * 3 // 4], "without its check": packed[:-8],
                             "something behind": packed + b"x"}
    return by_path


def values(server):
    answer = server.request("GET", f"/api/query?metricName=whole&start={START_S - 10}"
                            f"&end={START_S + 2 * LINES}")
    assert answer.status == 200, answer
    return [value for series in answer.json for value in series["values"].values()]


def refused(server, reason):
    return server.metric("granary_http_bodies_refused_total", reason=reason)


def memory(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))


@pytest.mark.parametrize("path", WRITES + ["/api/put"])
def test_of_a_damaged_body_nothing_is_stored(server, bodies, path):
    kinds = [name for name in bodies[path] if name != "good"]
    before = refused(server, "gzip"), server.metric("granary_ingest_samples_total")
    for name in kinds:
        answer = server.request("POST", path, bodies[path][name], GZIP)
        assert answer.status == 400, (name, answer)
        assert b"gzip" in answer.body and b"; nothing of it was stored" in answer.body
    assert values(server) == []
    assert refused(server, "gzip") == before[0] + len(kinds)
    assert server.metric("granary_ingest_samples_total") == before[1]
    # The same body undamaged is stored whole, and value by value.
    assert server.request("POST", path, bodies[path]["good"], GZIP).status == 204
    rng = random.Random(2)
    assert values(server) == [rng.randrange(1000, 2000) for _ in range(LINES)]
    assert server.metric("granary_http_memory_bytes") == 0


@pytest.mark.parametrize("coding", ["zlib", "raw deflate", "brotli"])
@pytest.mark.parametrize("path", [WRITES[0], "/api/put"])
def test_of_a_body_of_another_coding_that_is_not_whole_nothing_is_stored(server, path, coding):
    good = points() if path == "/api/put" else lines()
    name, packed = {"zlib": ("deflate", zlib.compress(good, 1)),
                    "raw deflate": ("deflate", raw_deflate(good, 1)),
                    "brotli": ("br", brotli(good))}[coding]
    before = refused(server, name), server.metric("granary_ingest_samples_total")
    bad = [packed[:len(packed) * 3 // 4], packed[:-1], packed + b"x"]
    if coding == "zlib":
        bad.append(packed[:-1] + bytes([packed[-1] ^ 1]))
    for body in bad:
        answer = server.request("POST", path, body, {"Content-Encoding": name})
        assert answer.status == 400, answer
        assert b"; nothing of it was stored" in answer.body
    assert values(server) == []
    assert refused(server, name) == before[0] + len(bad)
    assert server.metric("granary_ingest_samples_total") == before[1]
    assert server.request("POST", path, packed, {"Content-Encoding": name}).status == 204
    rng = random.Random(2)
    assert values(server) == [rng.randrange(1000, 2000) for _ in range(LINES)]
    assert server.metric("granary_http_memory_bytes") == 0


@pytest.mark.parametrize("path", WRITES + ["/api/put"])
def test_of_a_body_that_is_too_long_decoded_nothing_is_stored(make_server, bodies, path):
    """A bomb of valid points: the first of them are within the bound."""
    server = make_server(options=["--ingest.decoded_max=2M"])
    server.start()
    before = memory(server)
    line = b"whole value=1i %d\n" % START_S
    bomb = gzip.compress(line * 2_000_000 if path != "/api/put" else points())
    assert len(bomb) < 2 << 20
    answer = server.request("POST", path, bomb, GZIP)
    assert answer.status == 413, answer
    assert b"2097152 bytes (ingest.decoded_max); nothing of it was stored" in answer.body
    assert values(server) == []
    assert refused(server, "decoded_too_large") == 1
    assert memory(server) - before < 64 << 20


def test_a_gzipped_body_is_bounded_by_the_memory_for_bodies(make_server, bodies):
    server = make_server(options=["--http.memory_max=1M"])
    server.start()
    body = bodies[WRITES[0]]["good"]
    assert len(body) > 256 << 10
    for chunked in (False, True):
        answer = server.request("POST", WRITES[0], iter([body]) if chunked else body, GZIP)
        assert answer.status == 413, answer
        assert (b"the compressed body is larger than 262144 bytes (a quarter of http.memory_max); "
                b"nothing of it was stored") in answer.body
    assert refused(server, "too_large") == 2
    assert values(server) == []
    # As it is it needs no memory: it is read as it comes.
    assert server.request("POST", WRITES[0], gzip.decompress(body)).status == 204
    assert len(values(server)) == LINES


def test_a_body_over_the_limit_as_sent_names_it(make_server):
    server = make_server(options=["--ingest.body_max=64K"])
    server.start()
    body = b"x" * (65 << 10)
    for headers in ({}, GZIP):
        answer = server.request("POST", WRITES[0], body, headers)
        assert answer.status == 413
        assert b"65536 bytes (ingest.body_max); nothing of it was stored" in answer.body
    # A plain one of unknown length is read as it comes.
    answer = server.request("POST", WRITES[0], iter([b"other value=1i 1\n", lines()]))
    assert answer.status == 413
    assert b"(ingest.body_max); what came before may be stored" in answer.body
    assert refused(server, "too_large") == 3
