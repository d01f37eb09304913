"""Polls that others made: through the queue into raw data, whatever is killed on the way."""

import http.client
import itertools
import json
import random
import threading
import time
from datetime import datetime

import pytest

from server import long_run, run

T0 = 1400000400  # 2014-05-13T17:00:00Z
ROUNDS = 200 if long_run() else 12


def message(oidset, oid, timestamp, data, device="router_a"):
    return {"oidset_name": oidset, "device_name": device, "oid_name": oid, "timestamp": timestamp,
            "data": data, "metadata": {}}


def octets(timestamp, value, interface="xe-0/2/0", device="router_a"):
    return message("FastPollHC", "ifHCInOctets", timestamp,
                   [[["ifHCInOctets", interface], value]], device)


def send(server, messages):
    return server.request("POST", "/api/polls", json.dumps(messages),
                          {"Content-Type": "application/json"})


def wait_persisted(server, seconds=60):
    """Until no queue holds anything."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        queues = server.get("/api/queues").json["queues"]
        if not any(queue["pending"] for queue in queues):
            return
        time.sleep(0.02)
    pytest.fail(f"still waiting after {seconds} s: {queues}")


def by_second(series):
    """Values by seconds from T0 on."""
    return {int(datetime.fromisoformat(ts.replace("Z", "+00:00")).timestamp()) - T0: value
            for ts, value in series["values"].items()}


def test_messages_of_esmond(server):
    """A poll's time is floored to whole seconds, its value kept to the unit."""
    polls = [octets(T0 + 31.9, 2**64 - 1), octets(T0 + 62.1, 5, "ge-0/0/1")]
    assert send(server, polls).status == 204
    wait_persisted(server)
    found = server.query("ifHCInOctets", tenant="snmp", start=T0, end=T0 + 3600)
    assert [(series["tags"]["interface"], series["values"]) for series in found] == [
        ("ge-0/0/1", {"2014-05-13T17:01:02Z": 5}),
        ("xe-0/2/0", {"2014-05-13T17:00:31Z": 2**64 - 1})]


@pytest.mark.parametrize("body, sentence", [
    (b"[1]", "a message is a JSON object, and several of them are an array"),
    (b"{}", "message 1: \"device_name\" is missing"),
    (b"[] []", "line 1, column"),
    (json.dumps(message("NoSuchSet", "a", 1, [[["a"], 1]])).encode(),
     "message 1: there is no OIDSet NoSuchSet"),
    (json.dumps([octets(T0, 1), {"oidset_name": "FastPollHC"}]).encode(), "message 2:"),
])
def test_what_is_no_poll_is_refused(server, body, sentence):
    answer = server.request("POST", "/api/polls", body, {"Content-Type": "application/json"})
    assert answer.status == 400
    assert sentence in answer.json["error"]["message"], answer
    assert server.metric("granary_queue_messages_added_total") == 0


@pytest.mark.parametrize("body, sentence", [
    (b"\x05\0\0\0abc", "message 1 is cut off: its length does not lie within the body"),
    (b"\x03\0\0\0abc", "message 1: "),
    (b"\xff\xff\xff\xff", "message 1 is cut off"),
])
def test_frames_that_are_none(server, body, sentence):
    answer = server.request("POST", "/api/polls", body)
    assert answer.status == 400
    assert sentence in answer.json["error"]["message"], answer


def test_the_queue_command(server):
    assert send(server, [octets(T0, 1), octets(T0 + 30, 2)]).status == 204
    wait_persisted(server)
    answer = run("queue", "--once", "--server", server.url)
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[0] == "queue,pending,new,done,delta,max"
    assert "counters,0,2,2,0,2" in lines and lines[-1] == "TOTAL,0,2,2,0,2"
    answer = run("queue", "--aside", "counters", "--server", server.url)
    assert answer.stdout.splitlines() == ["at,device,bytes,reason"]
    answer = run("queue", "--aside", "nothing", "--server", server.url)
    assert answer.returncode == 1
    assert "there is no queue nothing" in answer.stderr


class Feeder(threading.Thread):
    """Sends polls of some devices until its server is gone; remembers what was acknowledged."""

    def __init__(self, server, numbers):
        super().__init__()
        self.server, self.numbers = server, numbers
        self.acknowledged, self.sent = set(), set()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        for number in self.numbers:
            polls = [octets(T0 + number, number * 10 + port, f"port-{port}", device)
                     for device in ("a", "b", "c") for port in range(2)]
            self.sent.add(number)
            try:
                connection.request("POST", "/api/polls", json.dumps(polls),
                                   {"Content-Type": "application/json"})
                if connection.getresponse().read() == b"":
                    self.acknowledged.add(number)
            except (OSError, http.client.HTTPException):
                return


def test_kill_loses_nothing_that_was_acknowledged(make_server):
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    pick, numbers = random.Random(seed), itertools.count(1)
    acknowledged, sent = set(), set()
    server = make_server(config="persist:\n  derive_every: 1s\n")
    server.start()
    for _ in range(ROUNDS):
        feeder = Feeder(server, numbers)
        feeder.start()
        time.sleep(pick.uniform(0.01, 0.6))  # the moment of the crash
        server.kill()
        feeder.join()
        acknowledged |= feeder.acknowledged
        sent |= feeder.sent
        server.start()
    wait_persisted(server)
    found = server.query("ifHCInOctets", tenant="snmp", start=T0, end=T0 + 10**7)
    assert len(found) == 6
    for series in found:
        port = int(series["tags"]["interface"][-1])
        expected = {number: number * 10 + port for number in sent}
        there = by_second(series)
        assert acknowledged <= there.keys(), (seed, sorted(acknowledged - there.keys())[:5])
        assert there.items() <= expected.items(), seed
    assert len(acknowledged) > ROUNDS
    server.stop()
    answer = run("verify", "--data", server.data, timeout=600)
    assert answer.returncode == 0, answer.stdout



def one_queue(name):
    kinds = "".join(f"  {kind}: {{persister: {kind}, oidsets: [\"*\"]}}\n"
                    for kind in ("interfaces", "saps", "lsps", "outlets"))
    return f"persist_queue:\n  {name}: {{persister: counters, oidsets: [\"*\"]}}\n{kinds}"


def test_a_queue_that_got_another_name(make_server):
    """What waits in it is said at the start, stays, and is persisted when the name is back."""
    server = make_server(config=one_queue("old"))
    server.start()
    assert send(server, [octets(T0 + 30 * i, i) for i in range(2000)]).status == 204
    server.kill()  # most of them still wait
    told = "queue old: polls wait in it, but persist_queue has no local queue of that name any more"
    server.configure(one_queue("new"))
    server.start()
    deadline = time.monotonic() + 60
    while told not in server.log_text():
        assert time.monotonic() < deadline, server.log_text()
        time.sleep(0.02)
    server.stop()
    server.configure(one_queue("old"))
    server.log_path.unlink()
    server.start()
    wait_persisted(server)
    found = server.query("ifHCInOctets", tenant="snmp", start=T0, end=T0 + 60000)
    assert len(found[0]["values"]) == 2000
    assert told not in server.log_text()
