"""The JSON reader beside Python's: what is taken and refused, and what the values are.

The documents are made here: by hand where something has gone wrong in some reader or other, and by
seeded chance. Where the two readers differ on purpose (src/wire/json.h), the expectation says so.
"""

import json
import math
import os
import random
import subprocess

import pytest

from server import long_run

DEPTH_MAX = 64
NUMBER_MAX_BYTES = 1024

# Python would take each of these words in full; the standard has none.
CONSTANTS = ("NaN", "Infinity", "-Infinity")


def tool():
    build = os.environ.get("GRANARY_BUILD") or os.path.dirname(os.environ.get("GRANARY", ""))
    path = os.path.join(build, "tests", "tools", "json_check")
    assert os.path.exists(path), f"{path} is not built"
    return path


class Refused(Exception):
    pass


def refuse_constant(name):
    raise Refused(name)


def depth(value):
    """Of nested arrays and objects, without recursion."""
    deepest, level = 0, [value]
    while level:
        below = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        if any(isinstance(item, (dict, list)) for item in level):
            deepest += 1
        level = below
    return deepest


def strings(value):
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield from item.keys()
            left += item.values()
        elif isinstance(item, list):
            left += item


def pythons_view(document):
    """(taken, value) by Python's json, narrowed by the four documented differences."""
    try:
        text = document.decode("utf-8")
        value = json.loads(text, parse_constant=refuse_constant)
    except (Refused, ValueError, RecursionError):  # errors of UTF-8 and JSON are ValueErrors
        return False, None
    if depth(value) > DEPTH_MAX:
        return False, None
    if any(0xD800 <= ord(c) <= 0xDFFF for s in strings(value) for c in s):
        return False, None
    return True, value


def equal(ours, pythons):
    """Exact, but for what only Python can hold: integers beyond 64 bits are the nearest double
    here, and an infinity (1e999) is written as null."""
    if isinstance(pythons, dict):
        return isinstance(ours, dict) and ours.keys() == pythons.keys() and \
            all(equal(ours[k], pythons[k]) for k in pythons)
    if isinstance(pythons, list):
        return isinstance(ours, list) and len(ours) == len(pythons) and \
            all(map(equal, ours, pythons))
    if isinstance(pythons, bool) or pythons is None or isinstance(pythons, str):
        return type(ours) is type(pythons) and ours == pythons
    if isinstance(pythons, int):
        if -2**63 <= pythons < 2**64:
            return not isinstance(ours, bool) and ours == pythons
        try:
            return ours == float(pythons)
        except OverflowError:
            return ours is None
    if math.isinf(pythons):
        return ours is None
    return isinstance(ours, float) and ours == pythons and \
        math.copysign(1, ours) == math.copysign(1, pythons)


def check_all(documents, tmp_path):
    """Sets both readers on every document; one process for all."""
    path = tmp_path / "documents"
    with open(path, "wb") as file:
        for document in documents:
            file.write(b"%d\n%s\n" % (len(document), document))
    done = subprocess.run([tool(), "-n", str(path)], stdout=subprocess.PIPE, timeout=120)
    assert done.returncode == 0
    answers = done.stdout.split(b"\n")[:-1]
    assert len(answers) == len(documents)
    taken = 0
    for document, answer in zip(documents, answers):
        word, _, rest = answer.partition(b" ")
        expected, value = pythons_view(document)
        assert (word == b"ok") == expected, f"{document[:200]!r}: {answer[:200]!r}"
        if expected:
            taken += 1
            assert equal(json.loads(rest), value), f"{document[:200]!r}: {answer[:200]!r}"
        else:
            assert rest.startswith(b"line "), answer
    return taken


# ---- by hand -------------------------------------------------------------------------------------

SCALARS = [
    b"null", b"true", b"false", b"0", b"-0", b"1", b"-1", b"0.0", b"-0.0", b"1.5", b"1e5", b"1E5",
    b"1e+5", b"1e-5", b"1.25E-2", b"0e0", b"0e+1", b"0.1e1", b"123456789", b"2147483648",
    b"4294967296", b"9007199254740991", b"9007199254740992", b"9007199254740993",
    b"-9007199254740993", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775808",
    b"-9223372036854775809", b"18446744073709551614", b"18446744073709551615",
    b"18446744073709551616", b"18446744073709551617", b"99999999999999999999999999", b"1e308",
    b"1.7976931348623157e308", b"1.7976931348623158e308", b"1.7976931348623159e308", b"1e309",
    b"-1e309", b"1e999999999999", b"1e-999999999999", b"5e-324", b"4.9e-324", b"2.5e-324",
    b"2.4703282292062327e-324", b"2.4703282292062328e-324", b"2.2250738585072011e-308",
    b"2.2250738585072012e-308", b"1e23", b"8.988465674311582e307", b"0.3", b"0.1",
    b"3.14159265358979",
    b"100000000000000000000000", b"1.00000000000000011102230246251565404236316680908203125",
    b"1.00000000000000011102230246251565404236316680908203124",
    b"1.00000000000000011102230246251565404236316680908203126",
    b"9007199254740992.9999999999999999999999", b"0." + b"0" * 300 + b"1", b"1" + b"0" * 300,
    b"0." + b"1" * 900, b"1" * 900 + b".5", b"1" * NUMBER_MAX_BYTES,
]

STRINGS = [
    rb'""', rb'"a"', rb'" "', rb'"\""', rb'"\\"', rb'"\/"', rb'"/"', rb'"\b\f\n\r\t"', rb'"\u0041"',
    rb'"\u00e9"', rb'"\u00E9"', rb'"\u20ac"', rb'"\uFFFF"', rb'"\ufffe"', rb'"\u0000"',
    rb'"\ud83d\ude00"', rb'"\uD834\uDD1E"', rb'"\udbff\udfff"', rb'"\ud800\udc00"', rb'"\\u0041"',
    rb'"\\\u0041"', rb'"\\\\"', rb'"\\\""', b'"\x7f"', b'"\xc2\x80"', b'"\xc3\xa9"',
    b'"\xe2\x82\xac"', b'"\xef\xbf\xbf"', b'"\xef\xbb\xbf"', b'"\xf0\x90\x80\x80"',
    b'"\xf4\x8f\xbf\xbf"', b'"\xe2\x80\xa8\xe2\x80\xa9"', b'"' + b"x" * 5000 + b'"',
    b'"' + rb"\n" * 5000 + b'"', rb'"\u2028"', rb'"'b"'"rb'"', rb'"[{]}:,"', rb'"null"',
    rb'"\u005C"',
    rb'"\u0022"',
]

STRUCTURES = [
    b"[]", b"{}", b"[ ]", b"{ }", b"[[]]", b"[{}]", b'{"a":[]}', b'{"a":{}}', b"[[],[]]",
    b"[1,2,3]", b"[1 , 2\t,\n3\r]", b'{"a":1}', b'{"a":1,"b":2}', b'{ "a" : 1 , "b" : 2 }',
    b'{"a":1,"a":2}', b'{"a":1,"b":3,"a":{"a":2,"a":3}}', b'{"":1}', b'{"":1,"":2}',
    rb'{"a":1,"\u0061":2}', b'{"a\\n":1}', b" 1 ", b"\n\r\t 1\t\r\n ", b'[1,"a",null,true,{}]',
    b"[" * DEPTH_MAX + b"]" * DEPTH_MAX, b'{"a":' * DEPTH_MAX + b"0" + b"}" * DEPTH_MAX,
    b'[{"a":' * (DEPTH_MAX // 2) + b"0" + b"}]" * (DEPTH_MAX // 2),
    b"[" * 2 + b"]," + b"[" + b"]" * 2, b"[" + b"0," * 10000 + b"0]",
    b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(2000)) + b"}",
    b'[{"metric":"cpu_idle","timestamp":1600000000,"value":12.5,"tags":{"tenant":"t-1"}}]',
]

REFUSED = [
    b"", b" ", b"\n", b"nul", b"nulll", b"NULL", b"Null", b"tru", b"True", b"fals", b"falsee",
    b"undefined", b"None", b"n", b"t", b"f", b"NaN", b"nan", b"Infinity", b"-Infinity", b"[NaN]",
    b'{"a":-Infinity}', b"inf", b"+1", b"01", b"-01", b"00", b"00.5", b"-", b"--1", b"1-", b"1.",
    b"1.e1", b".1", b"-.1", b".", b"1e", b"1e+", b"1e-", b"1E", b"1e1.5", b"1e1e1", b"1.2.3",
    b"0x10", b"0b1", b"0o7", b"1_000", b"1,000", b"1 000", b"1a", b"1n", b"1f", b"1L",
    b"\xef\xbc\x91", b"\xd9\xa1", b"e5", b"1/2", b"1+1", b"-0x1", b"0-", b"(1)",
    b'"', b'"a', b'a"', b"'a'", b'"a\\"', b'"\\', b'"\\"', rb'"\a"', rb'"\x41"', rb'"\0"', rb'"\v"',
    rb'"\'"', rb'"\ "', rb'"\u"', rb'"\u0"', rb'"\u00"', rb'"\u004"', rb'"\u004g"', rb'"\U0041"',
    rb'"\u 041"', rb'"\u-041"', rb'"\u+041"', rb'"\u0x41"', rb'"\u{41}"', rb'"\ud800"',
    rb'"\udfff"',
    rb'"\ud800\ud800"', rb'"\udc00\ud800"', rb'"\ud800a"', rb'"\ud800\n"', rb'"\ud800\u0041"',
    rb'{"\ud800":1}', rb'"\ud83d\u"', rb'"\ud83d\ude0"', b'"\\\n"', b'"\\\xc3\xa9"', b'"a" "b"',
    b'"a"b', b'"a""b"', b'"a"+"b"', b"`a`", b'"""a"""',
    *[b'"%c"' % c for c in range(0x20)],
    *[b'"abcdefgh%cijklmnop"' % c for c in (0, 1, 9, 10, 13, 31)],
    b'"\x80"', b'"\xbf"', b'"\xc0\x80"', b'"\xc0\xaf"', b'"\xc1\xbf"', b'"\xc3"', b'"\xc3a"',
    b'"\xe0\x80\x80"', b'"\xe0\x9f\xbf"', b'"\xe2\x82"', b'"\xe2\x82a"', b'"\xed\xa0\x80"',
    b'"\xed\xbf\xbf"', b'"\xf0\x80\x80\x80"', b'"\xf0\x8f\xbf\xbf"', b'"\xf0\x9f\x98"',
    b'"\xf4\x90\x80\x80"', b'"\xf5\x80\x80\x80"', b'"\xf8\x88\x80\x80\x80"',
    b'"\xfc\x84\x80\x80\x80\x80"', b'"\xfe"', b'"\xff"', b'"\xe9"', b'{"\xff":1}', b"\xff",
    b"\xc3\xa9",
    b"[", b"]", b"{", b"}", b"[[", b"[]]", b"[[]", b"{}}", b"{{}}", b"[}", b"{]", b"[1}",
    b'{"a":1]',
    b"[1", b"[1,", b"[1,]", b"[,", b"[,]", b"[,1]", b"[1,,2]", b"[1 2]", b"[1;2]", b"[1:2]",
    b'["a" "b"]',
    b'["a":1]', b"[1]1", b"[1],", b",[1]", b"[1][2]", b"[1]\n[2]", b"1 2", b"1,2", b"null null",
    b'{"a"}', b'{"a":}', b'{"a":1,}', b'{,"a":1}', b'{"a":1,,"b":2}', b'{"a":1 "b":2}',
    b'{"a":1;"b":2}', b'{"a" 1}', b'{"a"=1}', b'{"a"::1}', b'{:1}', b'{a:1}', b"{'a':1}", b"{1:1}",
    b"{null:1}", b'{["a"]:1}', b'{"a":1', b'{"a":', b'{"a"', b'{"a', b'{"', b'{"a":1}}',
    b'{"a":1},',
    b'{"a":1,"b"}', b'{"a","b"}', b'{true:1}', b'{"a":b}', b'{"a":1:2}', b'"a":1', b"a:1",
    b"// c\n1", b"1 // c", b"/* c */ 1", b"# c\n1", b"[1 /* c */]", b"<!-- -->1", b"\xef\xbb\xbf1",
    b"\xef\xbb\xbf[]", b"\xc2\xa01", b"\xe2\x80\x831", b"\x0b1", b"\x0c1", b"1\x00", b"\x001",
    b"[1]\x00",
    b"\x00", b"1\x0c", b"\xfe\xff\x00[\x00]", b"[\x00]\x00", b"\x1e[1]", b"[1]\x1a", b"*", b"\\",
    b"$", b";",
    b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1),
    b'{"a":' * (DEPTH_MAX + 1) + b"0" + b"}" * (DEPTH_MAX + 1),
    b"[" * 10000, b'{"a":' * 10000, b"[" * 10000 + b"]" * 9999, b'[{"":' * 5000,
]


@pytest.mark.parametrize("documents, taken", [
    (SCALARS, True), (STRINGS, True), (STRUCTURES, True), (REFUSED, False)],
    ids=["scalars", "strings", "structures", "refused"])
def test_documents_by_hand(documents, taken, tmp_path):
    """Also as an element, as a member's value, and between blanks."""
    wrapped = [wrap % d for d in documents if d.count(b"[") + d.count(b"{") < DEPTH_MAX
               for wrap in (b"[%s]", b'{"k":%s}', b" \n%s\t\r")]
    if not taken:
        # Some become something else: `1,2` is good in an array. Python judges.
        check_all(wrapped, tmp_path)
        wrapped = []
    count = check_all(documents + wrapped, tmp_path)
    assert count == (len(documents) + len(wrapped) if taken else 0)


def test_numbers_have_a_longest(tmp_path):
    """Python takes longer ones; the bound is ours."""
    path = tmp_path / "long"
    for text, status in ((b"1" * NUMBER_MAX_BYTES, 0), (b"1" * (NUMBER_MAX_BYTES + 1), 1),
                         (b"0." + b"1" * NUMBER_MAX_BYTES, 1),
                         (b"1e" + b"1" * NUMBER_MAX_BYTES, 1)):
        path.write_bytes(text)
        done = subprocess.run([tool(), str(path)], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                              timeout=60)
        assert done.returncode == status
        if status:
            assert done.stderr == b"line 1, column 1: number is too long\n"


# ---- by chance -----------------------------------------------------------------------------------

def random_number(chance):
    form = chance.randrange(6)
    if form == 0:
        return chance.randrange(-10**6, 10**6)
    if form == 1:
        return chance.getrandbits(chance.randrange(1, 70)) * chance.choice((1, -1))
    if form == 2:
        return chance.uniform(-1, 1) * 10.0**chance.randrange(-320, 308)
    if form == 3:
        return round(chance.uniform(-1000, 1000), chance.randrange(6))
    if form == 4:
        return chance.choice((0, -0.0, 2**53, 2**53 + 1, 2**63, 2**64 - 1, -2**63, 1e22, 1e23))
    return chance.uniform(0, 1)


def random_text(chance):
    alphabet = "ab \"\\/\b\f\n\r\t\x00\x1f\x7f\u00e9\u20ac\ud7ff\ue000\uffff\U0001f600\U0010ffff"
    return "".join(chance.choice(alphabet) for _ in range(chance.randrange(12)))


def random_value(chance, room):
    form = chance.randrange(8 if room > 0 else 5)
    if form < 2:
        return random_number(chance)
    if form < 4:
        return random_text(chance)
    if form == 4:
        return chance.choice((None, True, False))
    if form < 7:
        return {random_text(chance): random_value(chance, room - 1)
                for _ in range(chance.randrange(5))}
    return [random_value(chance, room - 1) for _ in range(chance.randrange(6))]


def random_document(chance):
    return json.dumps(random_value(chance, chance.randrange(6)),
                      ensure_ascii=chance.random() < .5,
                      indent=chance.choice((None, None, 0, 2)),
                      separators=chance.choice((None, (",", ":"), (" ,\n", "\t: ")))).encode()


def test_documents_by_chance(tmp_path):
    chance = random.Random(8259)
    documents = [random_document(chance) for _ in range(3000)]
    assert check_all(documents, tmp_path) == len(documents)


def damage(chance, document):
    """One to three bytes changed, taken out, doubled or put in, most of them such as matter."""
    bytes_ = bytearray(document)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(bytes_) + 1)
        byte = chance.choice(b'{}[]:,"\\0123456789eE+-.truefalsn \n\x00\x1f\x80\xc3\xa9\xed\xff/u')
        form = chance.randrange(4)
        if form == 0:
            bytes_[at:at] = bytes((byte,))
        elif form == 1:
            bytes_[at:at + 1] = bytes((byte,))
        elif form == 2:
            del bytes_[at:at + chance.randrange(1, 4)]
        else:
            bytes_[at:at] = bytes_[at:at + chance.randrange(1, 8)]
    return bytes(bytes_)


def test_documents_damaged_by_chance(tmp_path):
    chance = random.Random(3629)
    times = 40000 if long_run() else 6000
    documents = []
    while len(documents) < times:
        document = damage(chance, random_document(chance))
        if len(document) < NUMBER_MAX_BYTES:
            documents.append(document)
    taken = check_all(documents, tmp_path)
    assert 0 < taken < times


def test_documents_cut_anywhere(tmp_path):
    whole = json.dumps([{"metric": "cpu_idle", "timestamp": 1600000000.5, "value": -1.5e-7,
                         "tags": {"os": "l\u00ednux", "h\\": "\U0001f600"}}, [True, None, False]],
                       ensure_ascii=False).encode()
    assert check_all([whole[:n] for n in range(len(whole))], tmp_path) == 0
    assert check_all([whole], tmp_path) == 1
