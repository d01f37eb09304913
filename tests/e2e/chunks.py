"""Chunks of streams, written without Granary's code: version 1 as Chukwa's agents send it, version
2 as doc/format-chunks.md says, with zstd frames of raw blocks."""

import struct


def _crc32c_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


_TABLE = _crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number):
    return varint(2 * number if number >= 0 else -2 * number - 1)


def text(value):
    raw = value if isinstance(value, bytes) else value.encode()
    return varint(len(raw)) + raw


def zstd_frame(data):
    """RFC 8878: one segment, its content size in four bytes, raw blocks."""
    out = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data))
    for at in range(0, len(data), 1 << 17):
        block = data[at:at + (1 << 17)]
        last = at + len(block) == len(data)
        out += struct.pack("<I", len(block) << 3 | last)[:3] + block
    return out


def zstd_lie(size):
    """A frame that says it has so many bytes, and has a block that cannot be decoded."""
    noise = b"\xff" * 16
    return (b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", size) +
            struct.pack("<I", len(noise) << 3 | 2 << 1 | 1)[:3] + noise)


def v1(sequence_id, data, *, source="host1", cluster="demo", datatype="log", name="/a", tags="",
       ends=None, debug=""):
    """One chunk. `ends` are offsets behind each record; lines where they are left out."""
    if ends is None:
        ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
    tags = (f' cluster="{cluster}"' if cluster else "") + tags
    out = struct.pack(">iq", 1, sequence_id)
    for value in (source, tags, name, datatype, debug):
        raw = value.encode()
        out += struct.pack(">H", len(raw)) + raw
    out += struct.pack(">i", len(ends)) + b"".join(struct.pack(">i", end - 1) for end in ends)
    return out + data[:ends[-1] if ends else 0]


def v1_post(*chunks):
    return struct.pack(">i", len(chunks)) + b"".join(chunks)


def v2(sequence_id, data, *, source="host1", cluster="demo", datatype="log", name="/a", tags="",
       tenant="", incarnation=1, clock_ms=0, zone="", debug="", lines=True, ends=None, flags=None,
       packed=None):
    ends_bytes = b""
    if ends is not None:
        lines, before = False, 0
        for end in ends:
            ends_bytes += varint(end - before)
            before = end
    body = bytes([flags if flags is not None else lines]) + struct.pack("<Q", incarnation)
    body += varint(sequence_id) + varint(len(data)) + varint(len(ends_bytes)) + zigzag(clock_ms)
    for value in (tenant, source, cluster, datatype, name, zone, tags, debug):
        body += text(value)
    body += zstd_frame(data + ends_bytes) if packed is None else packed
    length = struct.pack("<I", len(body))
    return b"Gch2" + length + struct.pack("<I", crc32c(length + body)) + body


# ---- Streams whose bytes are a function of a seed and the offset

LINE_BYTES = 64


def line_of(seed, number):
    """Line `number` of a stream: its own place, and digits that no other line has."""
    digits = (number * 0x9E3779B97F4A7C15 + seed * 0xD1B54A32D192ED03) & (1 << 64) - 1
    head = f"{seed:08x} {number:012d} {digits:016x} "
    return (head + "x" * (LINE_BYTES - 1 - len(head)) + "\n").encode()


def stream_bytes(seed, begin, end):
    first, last = begin // LINE_BYTES, -(-end // LINE_BYTES)
    lines = b"".join(line_of(seed, number) for number in range(first, last))
    return lines[begin - first * LINE_BYTES:end - first * LINE_BYTES]
