"""Searching lines of logs by the fields of their datatypes, against the real server. The oracle
reads the lines that were sent by regular expressions and `json` of Python."""

import json
import random
import re
import signal
import urllib.parse

import pytest

from chunks import v2
from server import eventually, long_run, run, running
from test_fault_live import Viewer
from test_search import all_is_in_blocks, some_is_in_blocks, term_pattern
from test_streams import post, streams

CONFIG = """datatypes:
  access: access
  app: {format: json, events: {}}
  kv: {format: logfmt, events: {}}
  took: {pattern: 'at <time> <who> took <ms>ms', events: {}}
"""
WORDS = ["get", "Items", "größe", "a b", "x\ny", "/a/b", 'say "hi"', "10.0.0.1", "x_1", "ok"]
NUMBERS = ["0", "5", "-5", "500", "500.0", "499.5", "12%", "1e3", "0.50", "18446744073709551615"]


# ---- Lines, and their fields -----------------------------------------------------------------


def access_line(rng, number):
    request = rng.choice(["GET /items/{} HTTP/1.1", "post /Items?a=5 HTTP/1.0", "-", "GET /a b c"])
    status, size = rng.choice(["200", "404", "500", "503"]), rng.choice(["0", "512", "-", "5000"])
    line = (f"10.0.0.{rng.randrange(9)} - {rng.choice(['-', 'bob', 'Ann'])} "
            f"[01/Jan/2026:00:{number // 60 % 60:02d}:{number % 60:02d} +0000] "
            f'"{request.format(rng.randrange(600))}" {status} {size}')
    long = ' "http://x/?status=500" "a \\"b\\" ' + "long " * 150 + '"'
    return line + rng.choice(["", ' "-" "curl/8"', long])


def access_fields(line):
    found = re.fullmatch(r'(?P<ip>\S+) (?P<ident>\S+) (?P<user>\S+) \[(?P<time>[^]]*)\] '
                         r'"(?P<request>(?:[^"\\]|\\.)*)" (?P<status>\S+) (?P<bytes>\S+)'
                         r'(?: "(?P<referer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)")?', line)
    fields = {name: text for name, text in found.groupdict().items() if text is not None}
    if fields["request"].count(" ") >= 2:
        fields["method"], fields["path"], fields["protocol"] = fields.pop("request").split(" ", 2)
    return fields


ACCESS_NAMES = {"ip", "ident", "user", "time", "request", "method", "path", "protocol", "status",
                "bytes", "referer", "agent"}


def app_line(rng, number):
    value = {"n": number, "who": rng.choice(WORDS), "deep": {"status": [5, rng.randrange(3)]}}
    if rng.randrange(2):
        value["user"] = rng.choice(WORDS)
    if rng.randrange(3) == 0:
        value["gone"] = rng.choice([None, True, False])
    line = json.dumps(value, ensure_ascii=rng.randrange(2) == 0)
    if rng.randrange(2):
        line = line.replace("/", "\\/")
    return line[:-1] + f', "status": {rng.choice([n for n in NUMBERS if "%" not in n])}}}'


def flatten(value, name=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from flatten(inner, f"{name}.{place}")
    elif value is not None:
        yield name, {True: "true", False: "false"}[value] if isinstance(value, bool) else value


def app_fields(line):
    return dict(flatten(json.loads(line, parse_int=str, parse_float=str)))


def kv_line(rng, number):
    def text(value):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    pairs = [f"n={number}", f"status={rng.choice(NUMBERS)}", f"who={text(rng.choice(WORDS))}"]
    if rng.randrange(2):
        pairs.append(f"user={rng.choice(['bob', 'Ann', 'x_1', ''])}")
    rng.shuffle(pairs)
    return " ".join(pairs + ["alone"] * rng.randrange(2))


def kv_fields(line):
    fields = {}
    for name, text in re.findall(r'([^\s=]+)(?:=("(?:[^"\\]|\\.)*"|\S*))?', line):
        if text.startswith('"'):
            text = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), text[1:-1])
        fields[name] = text
    return fields


def took_line(rng, number):
    return f"at {number} {rng.choice(['bob', 'ann'])} took {rng.choice(['5', '15', '500'])}ms"


def took_fields(line):
    return re.fullmatch(r"at (?P<time>\S+) (?P<who>\S+) took (?P<ms>.*)ms", line).groupdict()


def plain_line(rng, number):
    return f"n{number} user={rng.choice(['bob', 'ann'])} status={rng.choice(NUMBERS)} x"


DATATYPES = {"access": (access_line, access_fields, ACCESS_NAMES),
             "app": (app_line, app_fields, None),
             "kv": (kv_line, kv_fields, None),
             "took": (took_line, took_fields, {"time", "who", "ms"}),
             "plain": (plain_line, None, set())}


# ---- What terms mean -------------------------------------------------------------------------

FIELD = re.compile(r"(?P<name>[A-Za-z_@][\w.@-]*)(?P<relation>!=|<=|>=|=|<|>)(?P<rest>.+)", re.S)


def number_of(text):
    found = re.fullmatch(r"(-?\d+([.,]\d+)?(e\d+)?)%?", text)
    if not found:
        return None
    number = found[1].replace(",", ".")
    return int(number) if re.fullmatch(r"-?\d+", number) else float(number)


def compare(relation, a, b):
    return {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[relation]


def text_of(rest):
    """The text that a field is compared with, and which of its sides are open."""
    left = rest.startswith("*")
    rest = rest[left:]
    right = rest.endswith("*")
    rest = rest[:-1] if right else rest
    if rest.startswith('"'):
        rest = rest[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return rest, left, right


def field_fits(relation, rest, text, line, apart):
    if rest.startswith("~"):
        return bool(re.search(rest[1:].strip('"'), text)) == (relation == "=")
    wanted, left, right = text_of(rest)
    number, own = number_of(wanted), number_of(text)
    if number is not None and own is not None and not left and not right:
        # What a whole number is equal to is written as it is.
        digits = wanted.lstrip("-")
        if relation == "=" and apart and digits.isdigit() and not re.search(
                rf"(?<!\w){digits}(?!\w)", line):
            return False
        return compare(relation, own, number)
    if relation not in ("=", "!="):
        return False
    pattern = ".*" * left + re.escape(wanted) + ".*" * right
    return bool(re.fullmatch(pattern, text, re.I | re.S)) == (relation == "=")


def is_plain(found):
    """Whether the term is a text where no rule knows its field."""
    return found["relation"] == "=" and not found["rest"].startswith("~")


def term_fits(term, datatype, line, fields):
    names = DATATYPES[datatype][2]
    found = FIELD.fullmatch(term)
    if not found:
        return bool(term_pattern(term).search(line))
    if names is None or found["name"] in names:
        text = fields.get(found["name"])
        return text is not None and field_fits(found["relation"], found["rest"], text, line,
                                               found["name"] != "ms")
    return is_plain(found) and bool(re.search(
        r"(?<!\w)" + re.escape(term.rstrip("*")) +
        (r"(?!\w)" if re.search(r"\w\Z", term) else ""), line, re.I))


def fits(terms, datatype, line, fields):
    return all(term_fits(term.removeprefix("-"), datatype, line, fields) != term.startswith("-")
               for term in terms)


def streams_without_rule(terms):
    def unknown(term, names):
        found = FIELD.fullmatch(term.removeprefix("-"))
        return found and names is not None and found["name"] not in names and not is_plain(found)
    return sum(any(unknown(term, names) for term in terms) for _, _, names in DATATYPES.values())


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def random_term(rng):
    name = rng.choice(["status", "status", "bytes", "n", "deep.status.1", "who", "user", "method",
                       "path", "ms", "gone", "agent", "missing"])
    kind = rng.randrange(5)
    if kind == 0:
        term = rng.choice(["500", "bob", "*tem*", "alone", "ann", "~5\\d\\d", "status", "get*"])
    elif kind < 3:
        number = rng.choice(NUMBERS + ["404", "200", "512", "15", "1", "2"])
        term = name + rng.choice(["=", "=", "!=", "<", "<=", ">", ">="]) + number
    else:
        text = rng.choice([word for word in WORDS if "\n" not in word] +
                          ["GET", "/items/5*", "*b*", "*1", "bob", "true", "*", "~^/items/5",
                           "~[ao]", "curl/8", "*/*"])
        if re.search(r'[\s"]', text):
            text = quoted(text)
        term = name + rng.choice(["=", "=", "!="]) + text
    return "-" * (rng.randrange(5) == 0) + term


def random_terms(rng):
    return [random_term(rng) for _ in range(rng.choice([1, 1, 2, 2, 3]))]


# ---- The server ------------------------------------------------------------------------------


def send_lines(server, rng, count, of_access=None):
    """Of each datatype so many lines; what is sent: (datatype, offset, line, fields)."""
    sent = []
    for datatype, (line_of, fields_of, _) in DATATYPES.items():
        data, begin = b"", 0
        for number in range(of_access if of_access and datatype == "access" else count):
            line = line_of(rng, number)
            sent.append((datatype, len(data), line, fields_of(line) if fields_of else {}))
            data += line.encode() + b"\n"
        while begin < len(data):
            end = data.rindex(b"\n", begin, begin + 100_000) + 1
            chunk = v2(end, data[begin:end], name="/log", datatype=datatype, lines=True)
            assert post(server, chunk).status == 200
            begin = end
    return sent


def check_questions(server, rng, sent, count):
    matched = 0
    for _ in range(count):
        terms = random_terms(rng)
        expected = {(datatype, offset) for datatype, offset, line, fields in sent
                    if fits(terms, datatype, line, fields)}
        found, params = set(), {"q": " ".join(terms), "limit": 10000}
        while True:
            answer = server.get("/api/streams/search", **params)
            assert answer.status == 200, (terms, answer.text)
            assert answer.json.get("without_rule", 0) == streams_without_rule(terms), terms
            found |= {(one["stream"].split("/")[2], one["offset"])
                      for one in answer.json["lines"]}
            if "token" not in answer.json:
                break
            params["token"] = answer.json["token"]
        assert found == expected, (terms, sorted(found ^ expected)[:3])
        matched += 0 < len(expected) < len(sent)
    assert matched > count / 5


def test_search_by_fields_finds_what_python_finds(make_server):
    """The same questions when some is in blocks, and when all is."""
    rng = random.Random(21)
    questions = 1000 if long_run() else 20
    with running(make_server(config=CONFIG, options=("--stream.seal_after", "7d"))) as server:
        sent = send_lines(server, rng, 600, of_access=5000)
        eventually(lambda: some_is_in_blocks(server))
        assert not all_is_in_blocks(server)
        check_questions(server, random.Random(3), sent, questions)
    with running(make_server(config=CONFIG, options=("--stream.seal_after", "1s"))) as server:
        eventually(lambda: all_is_in_blocks(server))
        check_questions(server, random.Random(3), sent, questions)


@pytest.fixture
def fields_server(make_server):
    with running(make_server(config=CONFIG)) as server:
        yield server


def test_counts_by_fields(fields_server):
    rng = random.Random(5)
    sent = send_lines(fields_server, rng, 500)
    for q in ("status>=500", "status=404 -user=bob", "method=post bytes>100", "-status<500"):
        answer = fields_server.get("/api/streams/counts", q=q, by="datatype", step="100d",
                                   since="2025-12-01", until="2027-12-01").json
        found = {one["datatype"]: sum(one["counts"]) for one in answer["series"]}
        expected = {datatype: sum(fits(q.split(), datatype, line, fields)
                                  for own, _, line, fields in sent if own == datatype)
                    for datatype in DATATYPES}
        assert found == {key: value for key, value in expected.items() if value}, q
        assert answer.get("without_rule", 0) == streams_without_rule(q.split())


def test_rare_fields_are_found_by_the_filters_of_blocks(make_server):
    """Blocks that have no line with the number are not read."""
    with running(make_server(config=CONFIG, options=("--stream.seal_after", "1s"))) as server:
        rng = random.Random(2)
        line = '10.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET / HTTP/1.1" {} 5 "-" "{}"\n'
        data = b"".join(line.format(418 if at == 9000 else 200, rng.randbytes(80).hex()).encode()
                        for at in range(18000))
        begin = 0
        while begin < len(data):
            end = data.rindex(b"\n", begin, begin + 500_000) + 1
            assert post(server, v2(end, data[begin:end], datatype="access",
                                   lines=True)).status == 200
            begin = end
        eventually(lambda: all_is_in_blocks(server) and streams(server))
        answer = server.get("/api/streams/search", q="status=418").json
        assert [one["offset"] for one in answer["lines"]] == [
            data.rindex(b"\n", 0, data.index(b'" 418 ')) + 1]
        looked = answer["looked_at"]
        assert looked["excluded_blocks"] >= 4, looked
        answer = server.get("/api/streams/search", q="status>=418").json
        assert len(answer["lines"]) == 1 and answer["looked_at"]["excluded_blocks"] == 0


def test_rules_that_change(make_server):
    """A search goes by the rules that are there when it begins."""
    server = make_server(config="datatypes: {kv: none}\n")
    with running(server):
        assert post(server, v2(14, b"took=7 x=took\n", datatype="kv")).status == 200
        answer = server.get("/api/streams/search", q="took>5").json
        assert answer["lines"] == [] and answer["without_rule"] == 1
        assert answer["unknown_field"] == {"field": "took", "datatype": "kv"}
        server.config.write_text(server.config.read_text().replace(
            "{kv: none}", "{kv: {format: logfmt, events: {}}}"))
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: len(server.get("/api/streams/search", q="took>5").json["lines"]) == 1)
        assert "without_rule" not in server.get("/api/streams/search", q="took>5").json


def test_commands_with_blanks(make_server):
    """A shell takes quotation marks away: path="a b" comes as path=a b."""
    config = "datatypes: {kv: {format: logfmt, events: {}}}\n"
    with running(make_server(config=config)) as server:
        data = b'who="lock wait" n=1\nwho="wait lock" n=2\n'
        assert post(server, v2(len(data), data, datatype="kv", lines=True)).status == 200
        for word, found in (("who=lock wait", "1"), ("-who=lock wait", "2"),
                            ("who=~^wait l", "2"), ("who=*t lock", "2"), ("lock wait", "1")):
            done = run("stream", "search", "-o", "json", "--server", server.url, "--", word)
            assert [one["text"][-1] for one in json.loads(done.stdout)["lines"]] == [found], word


def test_tail_by_fields(fields_server):
    """Of each stream without a rule for the field it is told once."""
    query = urllib.parse.urlencode({"q": "status>=500 -user=bob"})
    viewer = Viewer(fields_server, query, path="/api/streams/tail")
    sent = send_lines(fields_server, random.Random(8), 50)
    assert post(fields_server, v2(11, b"status=500\n", name="/log", incarnation=2,
                                  datatype="kv")).status == 200
    expected = [line for datatype, _, line, fields in sent
                if fits(["status>=500", "-user=bob"], datatype, line, fields)] + ["status=500"]
    told, without = [], 0
    while len(told) < len(expected):
        event = viewer.next()
        assert event.kind in ("line", "without_rule")
        if event.kind == "line":
            told.append(event.data["text"])
        else:
            without += event.data["streams"]
    assert sorted(told) == sorted(expected) and without == 2
    viewer.close()


def test_the_command_says_what_has_no_rule(fields_server):
    send_lines(fields_server, random.Random(9), 20)
    url = ("--server", fields_server.url, "-o", "json")
    out = run("stream", "search", "status>=503", *url)
    assert {json.loads(one["text"])["status"] if one["text"].startswith("{") else 503
            for one in json.loads(out.stdout)["lines"]} >= {503}
    assert out.stderr.count("no rule knows the field `status` of 2 streams, the first of the "
                            "datatype `plain`: ") == 1
    assert "no rule" not in run("stream", "search", "user=bob", *url).stderr
    out = run("stream", "search", "status>=high", *url)
    assert out.returncode == 1 and "which is no number to compare the field status" in out.stderr


def test_a_long_line_does_not_hold_a_search_up(make_server):
    """The time of a search is looked at within a line, too."""
    server = make_server(options=("--query.timeout", "1s"))
    with running(server):
        line = b"b" + b"a" * 900_000 + b"\n"
        assert post(server, v2(len(line), line)).status == 200
        terms = " ".join(f"~(a?){{200}}(a?){{{200 + at}}}[bc]$" for at in range(10))
        answer = server.get("/api/streams/search", q=terms)
        assert answer.status == 422 and "query.timeout" in answer.text
