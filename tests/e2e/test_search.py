"""Searching lines of logs, against the real server. The oracle is Python's `re` over the bytes that
were sent, and over those that are exported."""

import csv
import datetime
import json
import random
import re
import time

import pytest

from chunks import v2
from server import eventually, long_run, run, running, sanitizer
from test_clock import HOOK as CLOCK_HOOK, ClockServer
from test_streams import FIRST, export, post, streams

YEAR = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
WORDS = ["error", "Error", "warning", "timeout", "lock", "wait", "user", "session", "opened",
         "closed", "for", "from", "by", "uid", "GET", "POST", "/index.html", "/api/v2/items",
         "status", "connection", "refused", "disk", "/dev/sda1", "snapshot", "retry", "foo_bar",
         "größe", "[warn]", "a.b.c", "x-y", "key=value", '"quoted"']


def line_of(rng, number):
    """A line that has a time, and the time in ms."""
    ms = int(YEAR.timestamp() * 1000) + number * 250 + rng.randrange(0, 200)
    stamp = datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc)
    words = [rng.choice(WORDS) for _ in range(rng.randrange(1, 12))]
    address = f"10.{rng.randrange(3)}.{rng.randrange(4)}.{rng.randrange(30)}"
    words.insert(rng.randrange(len(words) + 1), f"{address}:{rng.randrange(99)}")
    text = f"{stamp:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z " + " ".join(words) + f" id{number}"
    return ms, text


def send(server, lines, name="/var/log/app", incarnation=1, chunk_bytes=20000, datatype="app"):
    """The lines as chunks, one behind the other. Each is a whole number of lines."""
    data, at, waiting = b"", 0, []
    for line in lines + [None]:
        if line is None or len(data) > chunk_bytes:
            if data:
                at += len(data)
                waiting.append(v2(at, data, name=name, incarnation=incarnation,
                                  datatype=datatype, lines=True))
            data = b""
        if line is not None:
            data += line.encode() + b"\n"
    for begin in range(0, len(waiting), 100):
        answer = post(server, *waiting[begin:begin + 100])
        assert answer.status == 200, answer.text[:300]


def search(server, **params):
    """All lines, page by page."""
    found = []
    while True:
        answer = server.get("/api/streams/search", **params)
        assert answer.status == 200, answer.text
        found += answer.json["lines"]
        if "token" not in answer.json:
            return found
        params["token"] = answer.json["token"]


def term_pattern(term):
    """What a term without its minus means, as a pattern of Python."""
    if term.startswith("~"):
        return re.compile(term[1:])
    left, right = term.startswith("*"), term.endswith("*")
    text = term[left:len(term) - right]
    if text.startswith('"'):
        text = text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    pattern = re.escape(text)
    if not left:
        pattern = r"(?<!\w)" + pattern if re.match(r"\w", text) else pattern
    if not right:
        pattern += r"(?!\w)" if re.search(r"\w\Z", text) else ""
    return re.compile(pattern, re.IGNORECASE)


def fits(terms, text):
    return all(bool(term_pattern(term.lstrip("-") if term.startswith("-") else term).search(text))
               != term.startswith("-") for term in terms)


def random_term(rng, texts):
    """A term made of a line that is there, or of words that may be."""
    text = rng.choice(texts)
    kind = rng.randrange(7)
    if kind == 0:
        term = rng.choice(WORDS + ["missing", "id1", "10.1.2.3", "10.1", "2.3", "lock wait"])
    elif kind == 1:
        begin = rng.randrange(len(text))
        term = "*" + text[begin:begin + rng.randrange(1, 12)].strip().strip("*") + "*"
    elif kind == 2:
        words = text.split()
        begin = rng.randrange(len(words))
        term = " ".join(words[begin:begin + rng.randrange(1, 4)])
    elif kind == 3:
        term = "~" + rng.choice([r"id\d*7(\D|$)", r"10\.[01]\.\d+\.2", "err(or)?", "^2026-.*id1",
                                 "GET|POST", "[a-c]\\.b", r"user.*session", r"lo+ck\b", "Error"])
    elif kind == 4:
        term = rng.choice(["err*", "*out", "*isk", "10.0.1*", "*:7", "*rror*"])
    else:
        term = rng.choice(text.split())
    if term in ("**", "*", ""):
        term = "error"
    star_left, star_right = term.startswith("*"), term.endswith("*") and len(term) > 1
    inner = term.strip("*") if not term.startswith("~") else term
    if not inner:
        return "error"
    if re.search(r'[\s"]', inner) or inner[0] in '-~"*' and not term.startswith("~"):
        inner = '"' + inner.replace("\\", "\\\\").replace('"', '\\"') + '"'
        term = "*" * star_left + inner + "*" * star_right
    return ("-" if rng.randrange(5) == 0 else "") + term


def check_questions(server, rng, sent, count):
    texts = [text for _, _, _, text in sent]
    for _ in range(count):
        terms = [random_term(rng, texts) for _ in range(rng.choice([1, 1, 1, 2, 2, 3]))]
        oldest = rng.randrange(2)
        expected = [one for one in sent if fits(terms, one[3])]
        params = {}
        if rng.randrange(3) == 0:
            params["since"] = sent[rng.randrange(len(sent))][0]
            expected = [one for one in expected if one[0] >= params["since"]]
        if rng.randrange(3) == 0:
            params["until"] = max(sent[rng.randrange(len(sent))][0], params.get("since", 0))
            expected = [one for one in expected if one[0] < params["until"]]
        expected.sort(reverse=not oldest)
        found = search(server, q=" ".join(terms), order="oldest" if oldest else "newest",
                       limit=rng.choice([7, 100, 1000, 10000]) if len(expected) < 500 else 10000,
                       **{key: f"{value / 1000:.3f}" for key, value in params.items()})
        assert [(one["time"], one["stream"], one["offset"], one["text"]) for one in found] == \
            expected, (terms, params)


def sent_lines(rng, counts):
    """Of each stream so many lines: what is sent, and (ms, address, offset, text) of each."""
    all_lines, sent = [], []
    for at, count in enumerate(counts):
        name, offset, lines = f"/var/log/app{at}", 0, []
        for number in range(count):
            ms, text = line_of(rng, number)
            sent.append((ms, f"host1/demo/app/{name}@{at + 1:016x}", offset, text))
            offset += len(text.encode()) + 1
            lines.append(text)
        all_lines.append((name, at + 1, lines))
    return all_lines, sent


def all_is_in_blocks(server):
    return all(one["sealed"] == one["held"] for one in streams(server))


def some_is_in_blocks(server):
    return any(one["sealed"] for one in streams(server))


def test_search_finds_what_grep_finds(make_server):
    """The same questions when some is in blocks, and when all is."""
    rng = random.Random(18)
    questions = 500 if long_run() else 30
    streams_sent, sent = sent_lines(rng, [14000, 3000, 1])
    with running(make_server(options=("--stream.seal_after", "7d"))) as server:
        for name, incarnation, lines in streams_sent:
            send(server, lines, name=name, incarnation=incarnation)
        # The first has a block of 960 KiB or more, and bytes that are in none.
        eventually(lambda: some_is_in_blocks(server))
        assert not all_is_in_blocks(server)
        check_questions(server, rng, sent, questions)
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        eventually(lambda: all_is_in_blocks(server))
        check_questions(server, rng, sent, questions)
        for name, incarnation, lines in streams_sent:
            assert export(server, f"host1/demo/app/{name}@{incarnation:016x}") == \
                [(0, "".join(line + "\n" for line in lines).encode())]


# ---- Times of lines --------------------------------------------------------------------------


def times(server, **params):
    return [one["time"] for one in search(server, order="oldest", **params)]


def ms(text):
    return int(datetime.datetime.fromisoformat(text).timestamp() * 1000)


def test_lines_without_a_time_have_that_of_the_line_before(make_server):
    """Before they are in blocks and after it, over the borders of chunks and blocks. What says no
    time at all came when its chunk was received."""
    head = "2026-11-29 14:49:30,123 ERROR it failed"
    trace = [head, "Traceback:", "  at a", "2026-11-29 14:49:31,000 INFO", ""]
    expected = [ms("2026-11-29T14:49:30.123+01:00")] * 3 + [ms("2026-11-29T14:49:31+01:00")] * 2
    plain = ["one", "two"]
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        data = "".join(line + "\n" for line in trace).encode()
        cut = data.index(b"  at a")
        for begin, end in ((0, cut), (cut, len(data))):
            assert post(server, v2(end, data[begin:end], zone="Europe/Berlin")).status == 200
        received = []
        for at in range(2):
            before = int(time.time() * 1000)
            assert post(server, v2(4 * at + 4, plain[at].encode() + b"\n", name="/p")).status == 200
            received.append((before, int(time.time() * 1000)))
        assert times(server, name="/a") == expected
        came = times(server, name="/p")
        assert all(first <= at <= last for at, (first, last) in zip(came, received))
        eventually(lambda: all_is_in_blocks(server))
        assert times(server, name="/a") == expected and times(server, name="/p") == came
        # It goes on from the block before.
        more = b"  at b\n"
        end = len(data) + len(more)
        assert post(server, v2(end, more, zone="Europe/Berlin")).status == 200
        assert times(server, name="/a") == expected + expected[-1:]
        eventually(lambda: all_is_in_blocks(server))
        assert times(server, name="/a") == expected + expected[-1:]


@pytest.mark.skipif(not CLOCK_HOOK.exists(), reason="without a clock that can be set")
def test_the_year_of_a_line_is_that_of_its_own_receipt(tmp_path):
    """A machine without a clock of its own may begin in another year. What was received then and
    now lies in one block."""
    server = ClockServer(tmp_path, "stream:\n  seal_after: 1h\n")
    server.set_wall(-400 * 86400)
    with running(server):
        now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        day = now.replace(day=min(now.day, 28)) - datetime.timedelta(days=30)
        line = f"{day:%b} {day.day:2d} {day:%H:%M:%S} host x\n".encode()
        assert post(server, v2(len(line), line)).status == 200
        server.set_wall(0)
        assert post(server, v2(2 * len(line), line)).status == 200
        expected = [int(day.replace(year=day.year - 1).timestamp() * 1000),
                    int(day.timestamp() * 1000)]
        assert times(server) == expected
        server.pass_awake(7200)
        eventually(lambda: all_is_in_blocks(server))
        assert times(server) == expected
        assert len(streams(server)[0]["sealed"]) == 1
        assert times(server, since=day.strftime("%Y-%m-%d")) == expected[1:]


def test_records_that_are_no_lines(make_server):
    """A record of several lines is one; its text is searched as a whole."""
    data = b"first\nsecond\nthirdfourth"
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        assert post(server, v2(len(data), data, ends=[13, 18, 24])).status == 200
        for _ in range(2):
            assert [one["text"] for one in search(server, order="oldest")] == \
                ["first\nsecond", "third", "fourth"]
            assert [one["offset"] for one in search(server, q="second")] == [0]
            assert [one["offset"] for one in search(server, q="third")] == [13]
            assert search(server, q="thirdfourth") == []
            eventually(lambda: all_is_in_blocks(server))


def test_ranges_that_lie_far_apart(make_server):
    """Between them are more parts of the table of blocks than can be read one by one."""
    far = 1 << 62
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        assert post(server, v2(5, b"near\n"), v2(far + 4, b"far\n")).status == 200
        eventually(lambda: all_is_in_blocks(server))
        assert {(one["text"], one["offset"]) for one in search(server)} == \
            {("near", 0), ("far", far)}
        assert [one["offset"] for one in search(server, q="far")] == [far]
        answer = server.get("/api/streams/lines", stream=FIRST, offset=far, before=3)
        assert [one["text"] for one in answer.json["lines"]] == ["near", "far"]


@pytest.mark.parametrize("listed, says", [(False, True), (True, True), (True, False)])
def test_a_record_that_lies_in_several_chunks_is_one(make_server, listed, says):
    """As soon as they are there, and in a block: also where chunks came in the other order, and
    where they list the ends of records and do not say by a flag that the last one goes on."""
    data = b"2026-01-01T00:00:00Z first\n2026-01-01T00:00:01Z lock wait\nlast\n"
    cuts = [0, 10, 35, 49, 52, 59, len(data)]
    pieces = []
    for begin, end in zip(cuts, cuts[1:]):
        ends = [at + 1 - begin for at in range(begin, end) if data[at] == 10]
        goes_on = says and data[end - 1] != 10
        pieces.append(v2(end, data[begin:end], ends=ends if listed else None,
                         flags=(not listed) | 4 * goes_on))
    with running(make_server(options=("--stream.seal_after", "1s"))) as server:
        for piece in reversed(pieces):
            assert post(server, piece).status == 200
        for _ in range(2):
            assert [(one["offset"], one["text"]) for one in search(server, order="oldest")] == \
                [(0, "2026-01-01T00:00:00Z first"), (27, "2026-01-01T00:00:01Z lock wait"),
                 (58, "last")]
            assert [one["offset"] for one in search(server, q='"lock wait"')] == [27]
            assert times(server) == [ms("2026-01-01T00:00:00+00:00"),
                                     *[ms("2026-01-01T00:00:01+00:00")] * 2]
            eventually(lambda: all_is_in_blocks(server))


def test_chunks_that_cannot_be_read_are_left_out(make_server):
    """A page of one stream is noise: the lines of the others are found."""
    server = make_server(options=("--stream.seal_after", "7d"))
    data = b"2026-01-01T00:00:00Z id77 " + random.Random(1).randbytes(20_000).hex().encode() + b"\n"
    with running(server):
        for name in ("/a", "/b", "/c"):
            assert post(server, v2(len(data), data, name=name)).status == 200
    file = server.data / "data.mdb"
    stored = bytearray(file.read_bytes())
    for page in range(0, len(stored), 4096):
        if b"Gch2" in (head := stored[page:page + 4096]) and b"/b" in head:
            stored[page:page + 4096] = random.Random(2).randbytes(4096)
    file.write_bytes(stored)
    with running(server):
        answer = server.get("/api/streams/search", q="id77", order="oldest").json
        assert [one["stream"].split("@")[0][-2:] for one in answer["lines"]] == ["/a", "/c"]
        assert answer["damaged"] == 1
        answer = server.get("/api/streams/counts", since="2026-01-01", until="2026-01-02").json
        assert sum(answer["series"][0]["counts"]) == 2 and answer["damaged"] == 1


# ---- Other questions -------------------------------------------------------------------------


def test_lines_around_a_line(make_server):
    rng = random.Random(7)
    streams_sent, sent = sent_lines(rng, [14000])
    name, incarnation, lines = streams_sent[0]
    address = sent[0][1]
    with running(make_server(options=("--stream.seal_after", "7d"))) as server:
        send(server, lines, name=name, incarnation=incarnation)
        eventually(lambda: some_is_in_blocks(server))
        border = streams(server)[0]["sealed"][0][1]
        at_border = next(i for i, one in enumerate(sent) if one[2] == border)
        for at in [0, 1, 5, at_border - 1, at_border, at_border + 3, len(sent) - 1,
                   *(rng.randrange(len(sent)) for _ in range(10))]:
            before, behind = rng.randrange(12), rng.randrange(12)
            offset = sent[at][2] + rng.randrange(len(sent[at][3].encode()) + 1)
            answer = server.get("/api/streams/lines", stream=address, offset=offset,
                                before=before, behind=behind)
            assert answer.status == 200 and answer.json["held"], answer.text
            assert [(one["time"], one["stream"], one["offset"], one["text"])
                    for one in answer.json["lines"]] == sent[max(at - before, 0):at + behind + 1]
        answer = server.get("/api/streams/lines", stream=address, offset=1 << 40, before=2)
        assert [one["offset"] for one in answer.json["lines"]] == [one[2] for one in sent[-2:]]
        assert answer.json["held"] is False
        said = run("stream", "lines", address, 1 << 40, "--server", server.url)
        assert said.returncode == 0 and said.stderr == (
            "granary stream lines: the byte at offset 1099511627776 is not there: the lines are "
            "the ones next to it\n")
        gone = server.get("/api/streams/lines", stream=address.replace("@0", "@1"), offset=0)
        assert gone.status == 404 and "there is no such stream" in gone.text


def test_counts(server):
    rng = random.Random(5)
    levels = ["error", "info", "warning", "unknown"]
    sent = []
    for source in ("a", "b"):
        for datatype in ("x", "y"):
            lines = []
            for number in range(500):
                second, level = rng.randrange(7200), rng.choice(levels)
                stamp = YEAR + datetime.timedelta(seconds=second)
                word = "" if level == "unknown" else level.upper()
                lines.append(f"{stamp:%Y-%m-%dT%H:%M:%SZ} {word} n{number % 7}\n")
                sent.append((source, datatype, level, second, number % 7))
            data = "".join(lines).encode()
            assert post(server, v2(len(data), data, source=source, datatype=datatype)).status == 200

    def counts(by, seven=None, **params):
        answer = server.get("/api/streams/counts", step="10m", by=",".join(by),
                            since="2026-01-01T00:03:00Z", until="2026-01-01T01:59:00Z", **params)
        assert answer.status == 200, answer.text
        assert answer.json["since"] == ms("2026-01-01T00:00:00+00:00")
        assert (answer.json["step"], answer.json["steps"]) == (600_000, 12)
        found = {}
        for series in answer.json["series"]:
            found[tuple(series[name] for name in by)] = series["counts"]
        expected = {}
        for source, datatype, level, second, number in sent:
            if seven is None or number == seven:
                names = {"source": source, "datatype": datatype, "severity": level}
                key = tuple(names[name] for name in by)
                expected.setdefault(key, [0] * 12)[second // 600] += 1
        assert found == expected
    counts([])
    counts(["source"])
    counts(["datatype", "severity"])
    counts(["source", "datatype", "severity"], seven=3, q="n3")


@pytest.mark.parametrize("route, params, status, sentence", [
    ("search", {"q": '"a'}, 400, "the search has a quotation mark that is not closed"),
    ("search", {"q": "~("}, 400, 'the expression "(" is not understood'),
    ("search", {"q": "a " * 1100}, 400, "a search has up to 2048 bytes"),
    ("search", {"limit": 10001}, 400, "limit"),
    ("search", {"order": "up"}, 400, "order"),
    ("search", {"token": "x"}, 400, 'token: "x" is none of a search'),
    ("search", {"token": "1/2/"}, 400, 'token: "1/2/" is none of a search'),
    ("search", {"since": "2026-01-02", "until": "2026-01-01"}, 400, "since lies after until"),
    ("search", {"stream": "a/b/c/d@0000000000000001", "name": "d"}, 400,
     "stream: an address has all names"),
    ("search", {"stream": "a/b"}, 400, "a/b"),
    ("search", {"stream": "a/b/c/d@0000000000000000"}, 400,
     "stream: no stream has the incarnation 0"),
    ("counts", {"by": "name"}, 400, 'by: "name" is none of source, datatype and severity'),
    ("counts", {"step": "0s"}, 400, "step: it is not longer than 0"),
    ("counts", {"step": "x"}, 400, "step"),
    ("counts", {"until": 1 << 62}, 400, "since or until lies too far from now"),
    ("counts", {"since": "1970-01-01", "step": "1s"}, 400, "more than 10000 steps"),
    ("lines", {"offset": 1}, 400, "stream"),
    ("lines", {"stream": "a/b/c/d@0000000000000001"}, 400, "offset"),
    ("lines", {"stream": "a/b/c/d@0000000000000001", "offset": 1, "before": 101}, 400, "before"),
])
def test_questions_that_are_none(server, route, params, status, sentence):
    answer = server.get("/api/streams/" + route, **params)
    assert answer.status == status and sentence in answer.json["error"]["message"], answer.text


def test_tenants_see_their_own_lines(server):
    assert post(server, v2(5, b"mine\n"), v2(7, b"theirs\n", tenant="other")).status == 200
    assert [one["text"] for one in search(server)] == ["mine"]
    assert [one["text"] for one in search(server, tenant="other")] == ["theirs"]
    assert search(server, tenant="none") == []


def test_what_is_no_text(server):
    """Bytes that are no UTF-8 are told as U+FFFD; a long line is cut, and says how long it is."""
    long = b"long " + b"x" * 200_000
    data = b"a\xff\x00b\n" + long + b"\n"
    assert post(server, v2(len(data), data)).status == 200
    first, second = search(server, order="oldest")
    assert first["text"] == "a\ufffd\0b" and first["bytes"] == 5
    assert second["text"] == long[:64 << 10].decode() and second["cut"] is True
    assert second["bytes"] == len(long) + 1
    # What is just as long as that is not cut.
    end = len(data) + (64 << 10) + 1
    assert post(server, v2(end, b"y" * (64 << 10) + b"\n")).status == 200
    whole = search(server, q="~^y")[0]
    assert len(whole["text"]) == 64 << 10 and "cut" not in whole
    # What is behind the cut is searched all the same.
    assert [one["offset"] for one in search(server, q="*xx")] == [5]


def test_answers_have_a_maximum(server):
    """What JSON makes six times as long, at a long address: it comes in several answers."""
    line, name, end = b"\1" * 790 + b"\n", '"' * 1000, 0
    for _ in range(100):
        end += 100 * len(line)
        assert post(server, v2(end, line * 100, name=name, lines=True)).status == 200
    answer = server.get("/api/streams/search", limit=10000, order="oldest")
    assert answer.status == 200 and "token" in answer.json
    assert 4000 < len(answer.json["lines"]) < 8_388_608 / 1790
    found = [one["offset"] for one in search(server, limit=10000, order="oldest")]
    assert found == list(range(0, end, len(line)))


def test_the_commands(server):
    lines = "".join(f"2026-01-01T00:00:{second:02d}Z {word} here\n"
                    for second, word in enumerate(["lock wait", "ERROR x", "\x1b[31mred"]))
    assert post(server, v2(len(lines), lines.encode())).status == 200
    url = ("--server", server.url)
    out = run("stream", "search", "lock wait", *url, "-o", "table")
    assert out.stdout == "2026-01-01T00:00:00Z host1 log: 2026-01-01T00:00:00Z lock wait here\n"
    out = run("stream", "search", *url, "--limit", "2", "-o", "csv")
    rows = list(csv.reader(out.stdout.splitlines()))
    assert [row[0] for row in rows] == ["time", "2026-01-01T00:00:02Z", "2026-01-01T00:00:01Z"]
    assert "there may be more lines than the 2 of --limit" in out.stderr
    out = run("stream", "search", *url, "--order", "oldest", "-o", "json", "--", "-error")
    assert [one["offset"] for one in json.loads(out.stdout)["lines"]] == [0, 70]
    # What stands before the blanks' quotation marks is what the server takes for more than a text.
    for word, offsets in (("-~lock w.*", [36, 70]), ("~-01T00:00:01Z E.*x", [36]),
                          ("-*ock wait*", [36, 70]), ("--lock wait", [0, 36, 70]),
                          ("*R x h*", [36])):
        out = run("stream", "search", *url, "--order", "oldest", "-o", "json", "--", word)
        assert [one["offset"] for one in json.loads(out.stdout)["lines"]] == offsets, word
    out = run("stream", "lines", FIRST, "40", *url, "--before", "1", "--behind", "0", "-o",
                  "csv")
    assert [row[2] for row in csv.reader(out.stdout.splitlines())] == ["offset", "0", "36"]
    out = run("stream", "count", *url, "--since", "2026-01-01", "--until",
                  "2026-01-01T00:01:00Z", "--step", "1m", "--by", "severity", "-o", "csv")
    assert out.stdout.splitlines() == ["time,source,datatype,severity,lines",
                                       "2026-01-01T00:00:00Z,,,unknown,2",
                                       "2026-01-01T00:00:00Z,,,error,1"]
