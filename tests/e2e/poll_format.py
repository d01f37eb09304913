"""Polls as they travel (doc/format-poll.md), read from the document's text and nothing else."""

import itertools
import struct


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        piece = self.data[self.at:self.at + count]
        assert len(piece) == count
        self.at += count
        return piece

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        number = 0
        for shift in itertools.count(0, 7):
            byte = self.byte()
            number |= (byte & 0x7f) << shift
            if byte < 0x80:
                return number

    def zigzag(self):
        number = self.varint()
        return number >> 1 if number % 2 == 0 else -(number + 1 >> 1)

    def text(self):
        return self.take(self.varint()).decode()


def read_value(reader, kind):
    if kind == 0:
        return None
    if kind == 1:
        return struct.unpack("<d", reader.take(8))[0]
    if kind == 2:
        return reader.zigzag()
    return reader.varint() if kind == 3 else reader.text()


def read_message(data):
    """device, oidset, [(oid, path, time in ms, value)]"""
    reader = Reader(data)
    assert reader.take(2) == b"GP"
    reader.take(1 + 1 + 4)
    names = Reader(reader.take(struct.unpack("<I", reader.take(4))[0]))
    rows, columns = names.varint(), names.varint()
    device, oidset = names.text(), names.text()
    oids = [names.text() for _ in range(columns)]
    paths = [tuple(names.text() for _ in range(names.varint())) for _ in range(rows)]
    time_ms = struct.unpack("<q", reader.take(8))[0]
    reader.varint()
    reader.varint()
    times = [time_ms + reader.zigzag() for _ in range(rows)]
    values = []
    for oid in oids:
        common = reader.byte()
        for path, row_ms in zip(paths, times):
            kind = reader.byte() if common == 255 else common
            values.append((oid, path, row_ms, read_value(reader, kind)))
    assert reader.at == len(data)
    return device, oidset, [value for value in values if value[3] is not None]


def read_frames(body):
    """The messages of POST /api/polls."""
    reader = Reader(body)
    while reader.at < len(body):
        yield read_message(reader.take(struct.unpack("<I", reader.take(4))[0]))
