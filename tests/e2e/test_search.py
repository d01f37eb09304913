"""Searching lines of logs, against the real server. The oracle is Python's `re` over the bytes that
were sent, and over those that are exported."""

import datetime
import random
import re

from chunks import v2
from server import eventually, long_run, running
from test_streams import export, post, streams

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
