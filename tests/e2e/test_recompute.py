"""`granary recompute` against a server that has polls."""

import json
import threading

import pytest

from server import run
from test_polls import T0, message, octets, send, wait_persisted

HOUR = ["--from", "2014-05-13T17:00Z", "--to", "2014-05-13T18:00Z"]


@pytest.fixture
def fed(server):
    """100 octets in each bin from T0 on: the last sample is at 300 s, so ten bins are over, but
    what is newer than half an interval before it waits for the next poll: nine."""
    assert send(server, [octets(T0 + 30 * i, 1000 + 100 * i) for i in range(11)]).status == 204
    wait_persisted(server)
    return server


def recompute(server, *options):
    return run("recompute", "--server", server.url, *options)


def test_a_body_is_none_of_its_parameters(server):
    sentence = "this takes no body: its parameters belong into the address, behind a ?"
    for headers in ({}, {"Content-Encoding": "gzip"}):
        answer = server.request("POST", "/api/recompute", b'{"device":"rtr_a"}', headers)
        assert answer.status == 413 and sentence in answer.text, answer


def test_says_what_it_compared(fed):
    """Nothing was stored before, since the rates of a device are due after minutes; they are made
    first, and so nothing differs."""
    done = recompute(fed, "--device", "router_a", *HOUR)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["oidset,compared,differed,missing,extra",
                                        "FastPollHC,9,0,0,0"]
    done = recompute(fed, "--device", "router_a", "--from", "1970-01-01", "--to", "2100-01-01")
    assert done.stdout.splitlines()[1] == "FastPollHC,9,0,0,0"
    done = recompute(fed, "--device", "router_a", *HOUR, "--oidset", "ALUFastPollHC", "--dry-run",
                     "-o", "json")
    assert json.loads(done.stdout) == {"device": "router_a", "oidsets": [
        {"oidset": "FastPollHC", "compared": 9, "differed": 0, "missing": 0, "extra": 0,
         "differences": []}]}


@pytest.mark.parametrize("options, status, sentence", [
    (["--device", "router_b", *HOUR], 1,
     "nothing is stored of device router_b that rates are made of"),
    (["--device", "router_a", *HOUR, "--oidset", "FastPollCH"], 1, "'FastPollCH' is not an OIDSet"),
    (["--device", "router_a", *HOUR, "--oidset", "IfRefPoll"], 1,
     "OIDSet IfRefPoll has no counters"),
    (["--device", "router_a", "--from", "now", "--to", "1h-ago"], 1, "from is not before to"),
    (["--device", "router_a", "--from", "yesterday", "--to", "now"], 1, "from: "),
    (["--device", "router_a", "--from", "now"], 2, "--to is missing"),
    (HOUR, 2, "--device is missing"),
])
def test_what_cannot_be_done(fed, options, status, sentence):
    done = recompute(fed, *options)
    assert done.returncode == status and done.stdout == ""
    assert sentence in done.stderr and done.stderr.startswith("granary recompute: ")


LINE = """
oidsets:
  Line: {frequency: 30s, correlator: IfName, aggregates: [1h],
         oids: [sysUpTime, ifInOctets, ifHighSpeed]}
"""


def line_polls(first, values, speed):
    """Polls of xe-0 from the one of that number on."""
    for i, value in enumerate(values, first):
        ts = T0 + 30 * i
        yield message("Line", "sysUpTime", ts, [[["sysUpTime"], 100000 + 3000 * i]])
        yield message("Line", "ifHighSpeed", ts, [[["ifHighSpeed", "xe-0"], speed]])
        yield message("Line", "ifInOctets", ts, [[["ifInOctets", "xe-0"], value]])


def test_a_wrap_is_not_judged_by_a_speed_of_later(make_server):
    """1e8 octets a second, once over 2^32; then the line says that it has 10 Mbit/s, which would be
    no more than 46,875,000 in 30 s. 6e9 - 2^32 = 1705032704."""
    server = make_server(config=LINE)
    server.start()
    before = [0, 3000000000, 1705032704, 1705032704 + 1000]
    after = [1705032704 + 1000 * i for i in range(2, 6)]
    for polls in (line_polls(0, before, 10000), line_polls(len(before), after, 10)):
        assert send(server, list(polls)).status == 204
        wait_persisted(server)
        done = recompute(server, "--device", "router_a", "--oidset", "Line", *HOUR)
        assert (done.returncode, done.stderr) == (0, "")
        differed = done.stdout.splitlines()[1].split(",")[2:]
        assert differed == ["0", "0", "0"]
        server.restart()
    done = recompute(server, "--device", "router_a", "--oidset", "Line", *HOUR)
    assert done.stdout.splitlines()[1] == "Line,6,0,0,0"


def test_many_at_once_and_a_stop(fed):
    """Each is answered, or ends with the server; the stop waits for none."""
    ends = []
    threads = [threading.Thread(target=lambda: ends.append(
        recompute(fed, "--device", "router_a", "--from", "2000-01-01", "--to", "2030-01-01")))
        for _ in range(8)]
    for thread in threads:
        thread.start()
    fed.stop()
    for thread in threads:
        thread.join()
    assert all(end.returncode in (0, 1) for end in ends) and len(ends) == 8
