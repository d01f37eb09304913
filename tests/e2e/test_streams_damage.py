"""Blocks of a stream that are damaged in the data file: all bytes of the others are given, and
whoever asks is told which ones are not. The bytes of the stream are noise, which lies in the file
as it is."""

import json
import random
import re
import subprocess

import pytest

from chunks import v2
from server import eventually, granary, run, running

STREAM = "host1/demo/log//a@0000000000000001"
BLOCK_MAX = 960 << 10
SIZE = 4_500_000  # at least five blocks
LINE = 1000


def noise():
    """Lines of bytes that no packing makes shorter."""
    some = random.Random(1)
    bytes_of = bytes(byte for byte in range(256) if byte != 10)
    return b"".join(bytes(some.choices(bytes_of, k=LINE - 1)) + b"\n"
                    for _ in range(SIZE // LINE))


DATA = noise()


def held(server):
    answer = server.get("/api/streams")
    assert answer.status == 200, answer
    return answer.json["streams"][0]


def fill(server):
    for begin in range(0, SIZE, 900_000):
        part = DATA[begin:begin + 900_000]
        assert server.request("POST", "/chukwa", v2(begin + len(part), part)).status == 200
    eventually(lambda: held(server)["sealed"] == [[0, SIZE]] and "waiting" not in held(server))


def flip(server, offsets):
    """One bit of each of these bytes, wherever it lies in the file."""
    path = server.data / "data.mdb"
    content = bytearray(path.read_bytes())
    for offset in offsets:
        wanted, at, found = DATA[offset - 8:offset + 8], 0, 0
        while (at := content.find(wanted, at)) >= 0:
            content[at + 8] ^= 1
            found += 1
        assert found
    path.write_bytes(content)


def export(server):
    """What is printed, and the ranges that are told."""
    done = subprocess.run([granary(), "stream", "export", STREAM, "--server", server.url],
                          capture_output=True)
    told = re.findall(r"the bytes from offset (\d+) to (\d+) are (left out|not there)",
                      done.stderr.decode())
    return done.returncode, done.stdout, [(int(a), int(b)) for a, b, _ in told]


def without(ranges):
    out, at = [], 0
    for begin, end in ranges:
        out.append(DATA[at:begin])
        at = end
    return b"".join(out + [DATA[at:]])


@pytest.mark.parametrize("offsets", [(2_500_000,), (500, SIZE - 500), (1_500_000, 3_500_000)])
def test_what_is_whole_is_exported_searched_and_repaired(make_server, tmp_path, offsets):
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        fill(server)
        server.stop()
        flip(server, offsets)
        verified = run("verify", "--data", server.data, "-o", "json")
        assert verified.returncode == 1
        sentences = json.loads(verified.stdout)["sentences"]
        missing = [tuple(map(int, found.groups())) for line in sentences
                   if (found := re.search(r": the bytes (\d+) to (\d+) are in no block$", line))]
        # Each is the block of one of the bytes.
        assert len(missing) == len(offsets)
        for (begin, end), offset in zip(missing, offsets):
            assert begin <= offset < end and end - begin <= BLOCK_MAX
            assert sum(f"sequence_id {end} length {end - begin} " in line and
                       "the block cannot be read" in line for line in sentences) == 1

        server.start()
        assert export(server) == (1, without(missing), missing)
        server.stop()

        repaired = tmp_path / "repaired"
        done = run("repair", "--data", server.data, "--to", repaired, "-o", "json")
        assert done.returncode == 1
        told = [line for line in json.loads(done.stdout)["lost"] if line["of"] == STREAM]
        assert [line["why"] for line in told] == [
            f"the bytes {begin} to {end} are a hole now" for begin, end in missing]
        verified = run("verify", "--data", repaired)
        assert verified.returncode == 0, verified.stdout
        again = run("repair", "--data", repaired, "--to", tmp_path / "again")
        assert again.returncode == 0 and "nothing is lost" in again.stderr
        server.data = repaired
        server.start()
        inner = [one for one in missing if one[0] > 0 and one[1] < SIZE]
        assert export(server) == (0, without(missing), inner)
        edges = [0, *(offset for one in missing for offset in one), SIZE]
        whole = [list(one) for one in zip(edges[::2], edges[1::2]) if one[0] < one[1]]
        assert held(server)["held"] == held(server)["sealed"] == whole
        # The hole is filled by what is sent again.
        for begin, end in missing:
            for at in range(begin, end, 900_000):
                part = DATA[at:min(at + 900_000, end)]
                assert server.request("POST", "/chukwa", v2(at + len(part), part)).status == 200
        eventually(lambda: held(server)["sealed"] == [[0, SIZE]])
        assert export(server) == (0, DATA, [])


def test_a_damaged_chunk_keeps_no_block_from_anybody(make_server):
    with running(make_server()) as server:
        for begin in range(0, SIZE, 900_000):
            part = DATA[begin:begin + 900_000]
            assert server.request("POST", "/chukwa", v2(begin + len(part), part)).status == 200
        eventually(lambda: held(server)["sealed"] and
                   held(server)["sealed"][0][1] > SIZE - BLOCK_MAX)
        end = held(server)["sealed"][0][1]
        server.stop()
        flip(server, (SIZE - 500,))
        server.start()
        done = subprocess.run([granary(), "stream", "export", STREAM, "--server", server.url],
                              capture_output=True)
        assert (done.returncode, done.stdout) == (1, DATA[:end])
        assert f"stream `{STREAM}`: " in done.stderr.decode()
