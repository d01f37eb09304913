"""The readers and the writer of fault reports beside python-oops' own.

`bson` and `oops_datedir_repo` are PyPI's, as a reporter has them. What they make of the same bytes
is what ours has to make, but where src/wire/bson.h and src/wire/oops_rfc822.h say that it is
something else; the reports and texts here keep away from that.
"""

import base64
import bz2
import datetime
import io
import json
import os
import random
import subprocess
import uuid

import bson
import pytest
from oops_datedir_repo import serializer_bson, serializer_rfc822

from server import long_run

UTC = datetime.timezone.utc


def tool():
    build = os.environ.get("GRANARY_BUILD") or os.path.dirname(os.environ.get("GRANARY", ""))
    path = os.path.join(build, "tests", "tools", "oops_check")
    assert os.path.exists(path), f"{path} is not built"
    return path


def ours(documents, tmp_path, *options):
    """(dialect, tree) or (None, reason) of each; one process for all."""
    path = tmp_path / "documents"
    with open(path, "wb") as file:
        for document in documents:
            file.write(b"%d\n%s\n" % (len(document), document))
    done = subprocess.run([tool(), *options, str(path)], stdout=subprocess.PIPE, timeout=120)
    assert done.returncode == 0
    lines = done.stdout.decode().split("\n")[:-1]
    assert len(lines) == len(documents)
    answers = []
    for line in lines:
        word, _, rest = line.partition(" ")
        dialect, _, tree = rest.partition(" ")
        answers.append((dialect, json.loads(tree)) if word == "ok" else (None, rest))
    return answers


def as_json(value):
    """What bson.h says becomes of a value of Python's."""
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, datetime.datetime):
        value = value.astimezone(UTC)
        ms = f".{value.microsecond // 1000:03}" if value.microsecond >= 1000 else ""
        return f"{value:%Y-%m-%dT%H:%M:%S}{ms}Z"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, float) and value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def same(a, b):
    """Also in type: 1 is not 1.0, and not true."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


# ---- BSON ----------------------------------------------------------------------------------------

def random_text(chance, alphabet="ab =\\%\n\t\x00\x7f\u00e9\u20ac\ud7ff\uffff\U0001f600"):
    return "".join(chance.choice(alphabet) for _ in range(chance.randrange(12)))


def random_scalar(chance):
    return chance.choice([
        lambda: None,
        lambda: chance.random() < .5,
        lambda: chance.getrandbits(chance.randrange(1, 64)) * chance.choice((1, -1)),
        lambda: chance.getrandbits(64) | 1 << 63,
        lambda: chance.choice((0.0, -0.0, 42.0, 1e300, float("nan"), float("inf"), -float("inf"))),
        lambda: chance.uniform(-1, 1) * 10.0**chance.randrange(-320, 308),
        lambda: random_text(chance),
        lambda: b"\xff" + chance.randbytes(chance.randrange(20)),
        lambda: uuid.UUID(bytes=chance.randbytes(16)),
        lambda: datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(
            milliseconds=chance.randrange(-2**40, 2**42)),
    ])()


def random_value(chance, room):
    form = chance.randrange(8 if room else 6)
    if form < 6:
        return random_scalar(chance)
    if form == 6:
        return random_document(chance, room - 1)
    return [random_value(chance, room - 1) for _ in range(chance.randrange(5))]


def random_document(chance, room):
    return {random_text(chance).replace("\x00", ""): random_value(chance, room)
            for _ in range(chance.randrange(6))}


def test_bson_by_chance(tmp_path):
    chance = random.Random(11)
    packed = [bson.dumps(random_document(chance, chance.randrange(5)))
              for _ in range(20000 if long_run() else 2000)]
    for document, (dialect, tree) in zip(packed, ours(packed, tmp_path)):
        assert dialect == "BSON", tree
        assert same(tree, as_json(bson.loads(document))), document


def test_a_cut_bson_is_read_as_far_as_it_goes(tmp_path):
    """Members that are whole are as they were, and the last one may be a part of what it was."""
    chance = random.Random(12)
    whole = bson.dumps({"x": 1, "a": random_document(chance, 3), "b": [1, "two", 3.0],
                        "c": b"\xff"})
    expected, counts = as_json(bson.loads(whole)), set()
    for dialect, tree in ours([whole[:n] for n in range(4, len(whole))], tmp_path):
        if dialect is None:
            assert tree.startswith("BSON, byte 0: ") and not counts
            continue
        names = list(tree)
        assert names == list(expected)[:len(names)]
        assert all(same(tree[name], expected[name]) for name in names[:-1])
        counts.add(len(names))
    assert counts == {1, 2, 3, 4}


# ---- rfc822 --------------------------------------------------------------------------------------

def original(text):
    """What the original makes of a text, as oops_rfc822.h says that it becomes JSON."""
    return as_json(serializer_rfc822.read(io.BytesIO(text)))


def check_texts(texts, tmp_path):
    for text, (dialect, tree) in zip(texts, ours(texts, tmp_path)):
        assert dialect == "rfc822", (text, tree)
        expected = original(text)
        assert tree.keys() == expected.keys()
        for key, value in expected.items():
            assert same(tree[key], value), (key, text)


def random_report(chance):
    """One that a reporter of today might write; no nulls, since those are not written here."""
    report = {"id": "OOPS-" + chance.randbytes(16).hex()}
    for key in ("type", "value", "topic", "branch_nick", "revno", "username", "url",
                "informational", "reporter"):
        if chance.random() < .7:
            report[key] = random_text(chance)
    if chance.random() < .7:
        report["time"] = datetime.datetime(2005, 4, 1, tzinfo=UTC) + datetime.timedelta(
            milliseconds=chance.choice((0, 1, 1000, chance.randrange(2**40))))
    if chance.random() < .7:
        report["duration"] = chance.choice((0.0, 42.0, 0.25, 1e-7, chance.uniform(0, 100)))
    if chance.random() < .7:
        report["req_vars"] = {random_text(chance): random_text(chance)
                              for _ in range(chance.randrange(5))}
    if chance.random() < .7:
        report["timeline"] = [[chance.randrange(10**chance.randrange(1, 8)),
                               chance.randrange(10**6), chance.choice(("SQL-main", "a_b", "9")),
                               random_text(chance)] for _ in range(chance.randrange(4))]
    if chance.random() < .7:
        report["tb_text"] = "Traceback (most recent call last):\n" + random_text(chance)
    return report


def test_what_the_original_wrote_is_read_as_it_reads_it(tmp_path):
    chance = random.Random(822)
    check_texts([b"".join(serializer_rfc822.to_chunks(random_report(chance)))
                 for _ in range(20000 if long_run() else 2000)], tmp_path)


def test_what_is_written_is_what_the_original_writes(tmp_path):
    chance = random.Random(823)
    reports = [random_report(chance) for _ in range(20000 if long_run() else 2000)]
    packed = [json.dumps(as_json(report)).encode() for report in reports]
    for report, (_, text) in zip(reports, ours(packed, tmp_path, "-w")):
        assert text.encode() == b"".join(serializer_rfc822.to_chunks(report)), report


# What lines are made of, by the grammar and beside it. No times: a bad one ends the original.
PIECES = [
    "Oops-Id", "oops-ID", "Exception-Type", "Exception-Value", "Page-Id", "Topic", "Branch",
    "Revision", "User", "URL", "Duration", "Informational", "Oops-Reporter", "X-Other", "From ",
    ":", ": ", "  ", " ", "\t", "\n", "\n", "\n", "\n\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1f",
    "=", "=", "k", "%41", "%c3%a9", "%ff", "%e2%82", "%4", "%", "+", "1-2", "00001-00005", "-", "@",
    "@store-a_9", "@é", "SELECT 1", " x", "5", "42.0", " 1e3", "-1", "nan?", "Traceback",
    "traceback", " TRACEBACK (most recent call last)", "== EXTRA DATA ==", "\x00", "\\",
]


def random_soup(chance):
    head = chance.choice(("Oops-Id: 1\n", "Oops-Id:", "From x\n", "Oops-Id: 1\n\n", "a:b\n\n"))
    text = head + "".join(chance.choice(PIECES) for _ in range(chance.randrange(25)))
    return text.encode("ascii", "ignore")


def known_difference(text):
    """A line `From ` that ends the headers is of the body there; %XX that is no UTF-8 has one
    U+FFFD for what might have become a character there, and one for each byte here; EXTRA DATA is a
    variable there."""
    return any(word in text.removeprefix(b"From ") for word in (b"%e2%82", b"From ", b"== EXTRA"))


def test_texts_by_chance(tmp_path):
    chance = random.Random(824)
    texts = [random_soup(chance) for _ in range(60000 if long_run() else 10000)]
    check_texts([text for text in texts if not known_difference(text)], tmp_path)


# ---- Forms ---------------------------------------------------------------------------------------

REPORT = {
    "id": "OOPS-A0001",
    "type": "NotFound",
    "value": "error message",
    "time": datetime.datetime(2005, 4, 1, tzinfo=UTC),
    "topic": "IFoo:+foo-template",
    "tb_text": "traceback\ntext\n",
    "username": "Sample User",
    "url": "http://localhost:9000/foo",
    "duration": 42.0,
    "req_vars": {
        "HTTP_REFERER": "http://localhost:9000/",
        "HTTP_USER_AGENT": "Mozilla/5.0",
        "name=foo": "hello\nworld",
    },
    "timeline": [[1, 5, "store_a", "SELECT 1"], [5, 10, "store_b", "SELECT 2"]],
    "branch_nick": "mybranch",
    "revno": "45",
}


@pytest.mark.parametrize("pack", [bytes, bz2.compress], ids=["plain", "packed"])
def test_one_report_reads_the_same_in_each_form(pack, tmp_path):
    forms = [serializer_bson.dumps(REPORT), b"".join(serializer_rfc822.to_chunks(REPORT)),
             json.dumps(as_json(REPORT)).encode()]
    answers = ours([pack(form) for form in forms], tmp_path)
    assert [dialect for dialect, _ in answers] == ["BSON", "rfc822", "JSON"]
    assert [tree for _, tree in answers] == [as_json(REPORT)] * 3


def test_an_empty_report_is_none(tmp_path):
    assert ours([b"", bz2.compress(b""), b"\n"], tmp_path) == [(None, "Empty OOPS report")] * 3
