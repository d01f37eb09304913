"""Reads extents by doc/format-store.md alone, and compares with what was put in.

The decoder below was written from the document, not from the C code: where the two disagree, one of
document and code is wrong. It checks what the document says a writer does, summaries included.
"""

import functools
import heapq
import math
import os
import struct
import subprocess
from pathlib import Path

MASK = (1 << 64) - 1
F64, I64, U64 = 1, 2, 3

# Which parts of the format were met, so that none goes unread.
seen = set()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def signed(n):
    return n - (1 << 64) if n >> 63 else n


def double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def bits_of(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        assert self.at + n <= len(self.data)
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, n):
        return int.from_bytes(self.take(n), "little")

    def varint(self, most=10):
        value = 0
        for i in range(most):
            byte = self.number(1)
            value |= (byte & 0x7F) << 7 * i
            if not byte & 0x80:
                return value
        raise AssertionError("long varint")

    def zigzag(self, most=10):
        n = self.varint(most)
        return n >> 1 if n % 2 == 0 else -(n + 1) // 2

    def end(self):
        assert self.at == len(self.data)


def unzigzag(n):
    return n >> 1 if n % 2 == 0 else -((n + 1) >> 1)


@functools.cache
def tables():
    """The weights, out of the document itself."""
    page = Path(__file__).parents[2] / "doc" / "format-store.md"
    lines = page.read_text().split("how often each symbol is expected")[1].splitlines()[2:34]
    rows = [[int(word) for word in line.split()] for line in lines]
    assert [row[0] for row in rows] == list(range(32))
    assert all(len(row) == 17 for row in rows[:24]) and all(len(row) == 5 for row in rows[24:])
    assert all(sum(row[1:]) == 4096 for row in rows)
    return [row[1:] for row in rows]


def symbols_of(table, word):
    return [word & 15, word >> 4] if table < 24 else [word >> 2 * j & 3 for j in range(4)]


@functools.cache
def code_of(table):
    """From (length, number) to the symbols of the word."""
    weights = tables()[table]
    least = 1 << 6 if table < 24 else 1 << 30
    heap = [(math.prod(weights[x] for x in symbols_of(table, w)) + least, w) for w in range(256)]
    heapq.heapify(heap)
    parent = {}
    for joined in range(256, 511):
        (a, i), (b, j) = heapq.heappop(heap), heapq.heappop(heap)
        parent[i] = parent[j] = joined
        heapq.heappush(heap, (a + b, joined))
    lengths = []
    for node in range(256):
        depth = 0
        while node in parent:
            node, depth = parent[node], depth + 1
        lengths.append(depth)
    number, length, code = -1, 0, {}
    for word in sorted(range(256), key=lambda w: (lengths[w], w)):
        number = (number + 1) << lengths[word] - length
        length = lengths[word]
        code[length, number] = symbols_of(table, word)
    assert number + 1 == 1 << length
    return code


def read_words(data, table, count):
    code, bits = code_of(table), int.from_bytes(data, "little")
    at, symbols = 0, []
    while len(symbols) < count:
        length = number = 0
        while (length, number) not in code or length == 0:
            assert at < 8 * len(data)
            number = number << 1 | bits >> at & 1
            length, at = length + 1, at + 1
        symbols += code[length, number]
    assert not any(symbols[count:])
    assert 8 * len(data) - at < 8 and bits >> at == 0
    return symbols[:count]


def read_coded(r, form, count):
    table, details = (form - 132) % 32, r.number(1) if form >= 164 else 0
    seen.add("coded pairs" if table < 24 else "coded quads")
    k, centred, excepted = details & 63, details >> 6 & 1, details >> 7
    assert k <= 60
    seen.update(w for w, yes in [("low bits", k), ("centred", centred), ("coded exceptions",
                excepted), ("bare", form < 164)] if yes)
    centre = r.varint() if centred else 0
    low = r.number((count * k + 7) // 8) if details else 0
    assert low >> count * k == 0
    large, index = {}, -1
    if excepted:
        for _ in range(r.varint()):
            index += r.varint() + 1
            large[index] = r.varint() + (16 if table < 24 else 4)
        assert large and index < count
    symbols = read_words(r.take(len(r.data) - r.at), table, count)
    assert not any(symbols[i] for i in large)
    z = [large.get(i, x) << k | low >> i * k & (1 << k) - 1 for i, x in enumerate(symbols)]
    assert all(x <= MASK for x in z)
    return [(centre + unzigzag(x)) & MASK for x in z] if centred else z


def read_stream(r, present):
    """present: for each row whether it has a value."""
    form = r.number(1)
    if form >= 132:
        assert form <= 195
        return read_coded(r, form, sum(present))
    seen.add("form %d" % next(f for f in (64, 129, 130, 131) if form <= f))
    minis = [sum(present[i : i + 128]) for i in range(0, len(present), 128)]
    assert form <= 131
    if form >= 130:
        widths = list(r.take(len(minis)))
    else:
        widths = [form if form <= 64 else form - 65] * len(minis)
    values, width_of = [], []
    for count, width in zip(minis, widths):
        assert width <= 64
        packed = r.number((count * width + 7) // 8)
        assert packed >> count * width == 0
        for j in range(count):
            values.append(packed >> j * width & (1 << width) - 1)
            width_of.append(width)
    if 65 <= form <= 129 or form == 131:
        count, index = r.varint(), -1
        assert count >= 1
        for _ in range(count):
            index += r.varint() + 1
            high = r.varint()
            assert high >= 1
            values[index] += high << width_of[index]
            assert values[index] <= MASK
    return values


def patterns(codec, r, anchor, parameter, shift):
    unit = 1 << shift
    out = []
    if codec == 1:
        return [(anchor + x * unit) & MASK for x in r]
    if codec == 6:
        return r
    if codec == 3:
        previous = anchor - parameter * unit
    elif codec == 4:
        previous, step = anchor - parameter, parameter
    else:
        previous = anchor
    for x in r:
        if codec == 2:
            previous += unzigzag(x) * unit
        elif codec == 3:
            previous += (parameter + x) * unit
        elif codec == 4:
            step += unzigzag(x) * unit
            previous += step
        else:
            previous ^= x * unit
        previous &= MASK
        out.append(previous)
    assert out[0] == anchor & MASK
    return out


def read_column(data, rows):
    """For each row (type, bits) or None."""
    if not data:
        seen.add("absent")
        return [None] * rows
    r = Reader(data)
    head = r.number(1)
    codec, shifted, kind = head & 7, head >> 3 & 1, head >> 4 & 3
    gaps, decimal = head >> 6 & 1, head >> 7
    types = [kind] * rows
    if gaps:
        bits = r.number((rows + 7) // 8)
        assert bits >> rows == 0 and kind
        types = [kind if bits >> i & 1 else 0 for i in range(rows)]
    if kind == 0:
        bits = r.number((rows + 3) // 4)
        assert bits >> 2 * rows == 0
        types = [bits >> 2 * i & 3 for i in range(rows)]
    present = [t != 0 for t in types]
    exponent, specials = 0, {}
    if decimal:
        byte = r.number(1)
        exponent = byte & 0x1F
        assert kind == F64 and byte & 0x60 == 0
        if byte & 0x80:
            index = -1
            for _ in range(r.varint()):
                index += r.varint() + 1
                specials[index] = r.number(8)
            assert specials
    seen.update({f"codec {codec}"} | {w for w, yes in [("gaps", gaps), ("mixed", kind == 0),
                 ("decimal", decimal), ("specials", specials), ("shifted", shifted)] if yes})
    shift = r.number(1) if shifted else 0
    plain = kind == 0 or (kind == F64 and not decimal)
    if plain:
        anchor = r.number(8)
    else:
        anchor = r.varint() if kind == U64 else r.zigzag()
    summary = None
    if rows > 64 and codec != 0:
        if plain or specials:
            kinds = r.number(1) if kind == 0 else 0x55
            low, high, last, total = (r.number(8) for _ in range(4))
            first = r.number(8) if codec == 1 or decimal else anchor & MASK
            summary = ("wide", kinds, low, high, last, total, first)
        else:
            first = anchor + (r.zigzag() if codec == 1 else 0)
            low, high = first - r.varint(), first + r.varint()
            last = first + r.zigzag()
            summary = ("integers", first, low, high, last, r.zigzag(12))
    parameter = r.zigzag() if codec in (3, 4) else 0
    if codec == 0:
        values = [anchor & MASK] * sum(present)
    elif codec == 6:
        values = [r.number(8) for _ in range(sum(present))]
        assert anchor & MASK == values[0]
    else:
        values = patterns(codec, read_stream(r, present), anchor, parameter, shift)
    r.end()
    if decimal:
        integers = [signed(v) for v in values]
        values = [bits_of(m / 10**exponent) for m in integers]
    for index, bits in specials.items():
        values[index] = bits
    it = iter(values)
    column = [(t, next(it)) if t else None for t in types]
    check_summary(summary, column, kind, integers if decimal else None, exponent)
    return column


def integer_of(kind, bits):
    return signed(bits) if kind == I64 else bits


def number_of(kind, bits):
    return double(bits) if kind == F64 else integer_of(kind, bits)


def check_summary(summary, column, kind, integers, exponent):
    if summary is None:
        return
    values = [v for v in column if v]
    if summary[0] == "integers":
        if integers is None:
            integers = [integer_of(kind, bits) for _, bits in values]
        _, first, low, high, last, deviation = summary
        wrap = (lambda n: n & MASK) if kind == U64 else (lambda n: signed(n & MASK))
        assert wrap(first) == integers[0] and wrap(last) == integers[-1]
        assert wrap(low) == min(integers) and wrap(high) == max(integers)
        assert deviation == sum(integers) - integers[0] * len(integers)
        return
    _, kinds, low, high, last, total, first = summary
    assert (kinds >> 4 & 3, first) == values[0]
    assert (kinds >> 6, last) == values[-1]
    numbers = [number_of(*v) for v in values]
    ordered = [n for n in numbers if not (isinstance(n, float) and math.isnan(n))]
    if not ordered:
        assert kinds & 15 == 0 or math.isnan(double(low)) and math.isnan(double(high))
    else:
        assert number_of(kinds & 3, low) == min(ordered)
        assert number_of(kinds >> 2 & 3, high) == max(ordered)
    doubles = 0.0
    for n in numbers:
        if isinstance(n, float):
            doubles += n
    expected = float(sum(n for n in numbers if not isinstance(n, float))) + doubles
    assert bits_of(expected) == total or math.isnan(expected) and math.isnan(double(total))


def read_times(entry, data):
    first, span, rows = entry["first"], entry["span"], entry["rows"]
    if entry["regular"]:
        assert not data
        step = span // (rows - 1) if rows > 1 else 0
        assert step * (rows - 1) == span
        return [first + i * step for i in range(rows)]
    r = Reader(data)
    kind, unit = r.number(1), r.varint()
    seen.add(f"times {kind}")
    slope = r.varint() if kind == 1 else 0
    base = r.zigzag()
    residuals = read_stream(r, [True] * rows)
    r.end()
    q, out = -base, []
    for i, x in enumerate(residuals):
        q = i * slope + base + x if kind else q + base + x
        out.append(signed((first + q * unit) & MASK))
    assert out[0] == first and out[-1] == first + span
    assert all(a < b for a, b in zip(out, out[1:]))
    return out


def read_extent(key, data):
    assert len(data) <= 4080 and data[0] in (1, 2)
    seen.add(f"version {data[0]}")
    assert int.from_bytes(data[1:5], "little") == crc32c(key + data[:1] + data[5:])
    blocks, index_bytes = struct.unpack_from("<HH", data, 5)
    index, bodies = Reader(data[9 : 9 + index_bytes]), Reader(data[9 + index_bytes :])
    entry = {"ordinal": 2**32 - 1, "first_column": 0, "columns": 0, "rows": 0}
    entry |= {"first": 0, "span": 0, "sequence": 0, "regular": False}
    times, out = b"", []
    for _ in range(blocks):
        flags = index.number(1)
        seen.update(f"flag {bit}" for bit in range(5) if flags >> bit & 1)
        assert flags < 32
        entry["ordinal"] += 1 if flags & 1 else index.zigzag()
        entry["ordinal"] &= 2**32 - 1
        if not flags & 2:
            entry["first_column"], entry["columns"] = index.varint(), index.varint()
        if not flags & 4:
            entry["rows"] = index.varint()
            entry["first"] = signed((entry["first"] + index.zigzag()) & MASK)
            entry["span"] = index.varint() if entry["rows"] > 1 else 0
            entry["regular"] = bool(flags & 16)
        if not flags & 8:
            entry["sequence"] = (entry["sequence"] + index.zigzag()) & MASK
        if not flags & 4:
            times = bodies.take(0 if entry["regular"] else index.varint())
        body = Reader(bodies.take(index.varint()))
        lengths = [body.varint() for _ in range(entry["columns"])]
        columns = [read_column(body.take(n), entry["rows"]) for n in lengths]
        body.end()
        head = (entry["ordinal"], entry["first_column"], entry["sequence"])
        out.append((head, read_times(entry, times), columns))
    index.end()
    bodies.end()
    return out


def parse_dump(lines):
    """Pairs of what was put into an extent, and (key, bytes)."""
    blocks = []
    for line in lines:
        words = line.split()
        if words[0] == "block":
            head = tuple(int(w) for w in words[1:4])
            blocks.append((head, [int(t) for t in words[4].split(",")], []))
        elif words[0] == "column":
            column = [v.split(":") for v in words[1].split(",")]
            blocks[-1][2].append(
                [None if v == ["-"] else (int(v[0]), int(v[1], 16)) for v in column]
            )
        else:
            yield blocks, bytes.fromhex(words[1]), bytes.fromhex(words[2])
            blocks = []


def tool():
    build = os.environ.get("GRANARY_BUILD") or os.path.dirname(os.environ.get("GRANARY", ""))
    path = os.path.join(build, "tests", "tools", "block_dump")
    assert os.path.exists(path), f"{path} is not built"
    return path


def test_crc_is_that_of_rfc_3720():
    assert crc32c(b"123456789") == 0xE3069283


def test_extents_read_by_the_document():
    out = subprocess.run([tool(), "500"], capture_output=True, text=True, check=True).stdout
    extents = 0
    for blocks, key, data in parse_dump(out.splitlines()):
        assert read_extent(key, data) == blocks
        extents += 1
    assert extents == 500
    assert seen >= {f"codec {c}" for c in range(7)} | {f"flag {bit}" for bit in range(5)}
    assert seen >= {"form 64", "form 129", "form 130", "form 131", "times 0", "times 1"}
    assert seen >= {"version 1", "version 2", "bare", "low bits", "centred"}
    assert seen >= {"coded pairs", "coded quads", "coded exceptions"}
    assert seen >= {"absent", "gaps", "mixed", "decimal", "specials", "shifted"}
