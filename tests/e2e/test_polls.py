"""Polls that others made: through the queue into raw data, whatever is killed on the way."""

import http.client
import itertools
import json
import random
import threading
import time
from datetime import UTC, datetime

import pytest

from server import PATIENCE_S, eventually, long_run, run

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


def wait_persisted(server):
    """Until no queue holds anything."""
    def queues():
        return server.get("/api/queues").json["queues"]
    eventually(lambda: not any(queue["pending"] for queue in queues()), queues)


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


def test_polls_of_the_future_are_refused_at_the_door(server):
    """Ten minutes ahead nothing is taken: who sends it hears of it, and which message it was."""
    now = int(time.time())
    answer = send(server, [octets(now - 10, 1), octets(now + 590, 2), octets(now + 700, 3)])
    assert answer.status == 400
    ahead = datetime.fromtimestamp(now + 700, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (f"message 3: the time {ahead} is more than 600 s ahead of this server's clock"
            in answer.json["error"]["message"])
    # None of a request's messages are taken where one is refused.
    assert server.metric("granary_queue_messages_added_total") == 0
    assert send(server, [octets(now - 10, 1), octets(now + 590, 2)]).status == 204
    wait_persisted(server)
    found = server.query("ifHCInOctets", tenant="snmp", start=now - 60, end=now + 3600)
    assert [list(series["values"].values()) for series in found] == [[1, 2]]
    assert server.metric("granary_persist_refused_total", reason="time") == 0


def test_too_many_messages_are_none(server):
    """One more than a request may have; what a request may have is taken."""
    sentence = ("there are more than 10000 messages, which is what one request may have; none of "
                "them was taken: send them in several requests")
    answer = send(server, [octets(T0 + i, i) for i in range(10001)])
    assert answer.status == 413 and sentence in answer.text, answer
    assert send(server, [octets(T0 + i, i) for i in range(10000)]).status == 204
    wait_persisted(server)
    assert len(server.query("ifHCInOctets", tenant="snmp", start=T0, end=T0 + 20000)[0]["values"]
               ) == 10000


def test_the_queue_command(server):
    assert send(server, [octets(T0, 1), octets(T0 + 30, 2)]).status == 204
    wait_persisted(server)
    answer = run("queue", "--once", "--server", server.url)
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[0] == "queue,pending,new,done,delta,max,parked,aside,dropped"
    assert "counters,0,2,2,0,2,0,0,0" in lines and lines[-1] == "TOTAL,0,2,2,0,2,0,0,0"
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
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
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
    eventually(lambda: told in server.log_text(), server.log_text)
    server.stop()
    server.configure(one_queue("old"))
    server.log_path.unlink()
    server.start()
    wait_persisted(server)
    found = server.query("ifHCInOctets", tenant="snmp", start=T0, end=T0 + 60000)
    assert len(found[0]["values"]) == 2000
    assert told not in server.log_text()


MINE = """oidsets:
  Mine: {frequency: 30s, correlator: IfName, oids: [ifHCInOctets]}
"""
COUNT = 10000


def mine(number):
    return message("Mine", "ifHCInOctets", T0 + number, [[["ifHCInOctets", "port"], number]])


def queue_of_counters(server):
    return next(queue for queue in server.get("/api/queues").json["queues"]
                if queue["name"] == "counters")


def feed_and_kill(server):
    """Polls of an OIDSet that the next configuration does not have: most of them still wait."""
    server.configure(one_queue("counters") + MINE)
    server.start()
    assert send(server, [mine(i) for i in range(COUNT)]).status == 204
    server.kill()


def start_without_it(server, more=""):
    server.configure(more + one_queue("counters"))
    server.start()
    wait_persisted(server)
    return queue_of_counters(server)


def numbers_of_mine(server):
    found = server.query("ifHCInOctets", "oidset=Mine", tenant="snmp", start=T0, end=T0 + 2 * COUNT)
    return list(by_second(found[0]).values()) if found else []


def test_an_oidset_that_the_configuration_has_no_more(make_server):
    """Its polls stay, whatever becomes of the server meanwhile, and stop no others; when it is back
    they are persisted in their place, before what was polled after them."""
    server = make_server()
    feed_and_kill(server)
    parked = start_without_it(server)["parked"]
    assert 0 < parked <= COUNT
    told = "queue counters: polls are parked: there is no OIDSet Mine;"
    assert server.log_text().count(told) == 1
    assert server.metric("granary_queue_messages_parked") == parked
    answer = run("queue", "--once", "--server", server.url)
    assert f"counters,0,{parked},0,{parked},{parked},{parked},0,0" in answer.stdout.splitlines()
    assert answer.stderr == ""
    # Of the same device, so of the same shard.
    assert send(server, [octets(T0 + i, i) for i in range(20)]).status == 204
    wait_persisted(server)
    found = server.query("ifHCInOctets", "oidset=FastPollHC", tenant="snmp", start=T0, end=T0 + 60)
    assert len(found[0]["values"]) == 20
    server.kill()
    queue = start_without_it(server)
    assert (queue["parked"], queue["aside"], queue["done"]) == (parked, 0, 0)
    server.kill()
    server.configure(one_queue("counters") + MINE)
    server.log_path.unlink()
    server.start()
    assert send(server, [mine(COUNT)]).status == 204
    wait_persisted(server)
    queue = queue_of_counters(server)
    assert (queue["parked"], queue["done"]) == (0, parked + 1)
    assert numbers_of_mine(server) == list(range(COUNT + 1))
    assert server.metric("granary_persist_refused_total", reason="order") == 0
    assert told not in server.log_text()
    server.stop()
    answer = run("verify", "--data", server.data, timeout=600)
    assert answer.returncode == 0, answer.stdout


def test_a_queue_of_another_kind(make_server):
    """Counters in a queue that became one of interfaces: they stay until it is one of counters."""
    server = make_server()
    feed_and_kill(server)
    kinds = "".join(f"  {kind}: {{persister: {kind}, oidsets: [\"*\"]}}\n"
                    for kind in ("saps", "lsps", "outlets"))
    server.configure(MINE + "persist_queue:\n"
                     "  counters: {persister: interfaces, oidsets: [\"*\"]}\n"
                     "  interfaces: {persister: counters, oidsets: [\"*\"]}\n" + kinds)
    server.start()
    wait_persisted(server)
    parked = queue_of_counters(server)["parked"]
    assert 0 < parked <= COUNT
    assert len(numbers_of_mine(server)) == COUNT - parked
    assert "OIDSet Mine is for persisters of counters, those of queue counters are for " \
           "interfaces" in server.log_text()
    server.configure(one_queue("counters") + MINE)
    server.stop()
    server.start()
    wait_persisted(server)
    assert numbers_of_mine(server) == list(range(COUNT))


def test_more_than_can_be_parked(make_server):
    """As many as may wait are parked, a thousand more lie aside; both are said, as is the rest."""
    server = make_server()
    feed_and_kill(server)
    queue = start_without_it(server, "queue:\n  messages_max: 50\n")
    rest = queue["added"] - 50
    assert rest > 1000  # most of them waited
    assert (queue["parked"], queue["unparked"]) == (50, rest)
    assert (queue["aside"], queue["dropped"]) == (1000, rest - 1000)
    assert server.metric("granary_queue_messages_unparked_total") == rest
    assert server.metric("granary_queue_messages_aside_dropped_total") == rest - 1000
    assert "queue counters: as many polls are parked as may be; new ones (there is no OIDSet Mine" \
           in server.log_text()
    answer = run("queue", "--once", "--server", server.url)
    assert f"granary queue: queue counters: {rest} polls were set aside because as many are " \
           "parked as may be" in answer.stderr
    counters = next(line for line in answer.stdout.splitlines() if line.startswith("counters,"))
    assert counters.split(",")[6:] == ["50", "1000", str(rest - 1000)]
    answer = run("queue", "--aside", "counters", "--server", server.url)
    assert all(line.endswith(",there is no OIDSet Mine") for line in answer.stdout.splitlines()[1:])
    assert len(answer.stdout.splitlines()) == 1001
    at = datetime.fromisoformat(answer.stdout.splitlines()[1].split(",")[0].replace("Z", "+00:00"))
    assert abs(at.timestamp() - time.time()) < 3600


def some_aside(make_server):
    """A server whose configuration is right again, with 1,000 polls aside and what was parked, the
    oldest, persisted; and the numbers of those 1,000."""
    server = make_server()
    feed_and_kill(server)
    start_without_it(server, "queue:\n  messages_max: 50\n")
    server.stop()
    server.configure(one_queue("counters") + MINE)
    server.start()
    wait_persisted(server)
    assert queue_of_counters(server)["aside"] == 1000
    assert numbers_of_mine(server)[-1] < COUNT - 1000
    return server, list(range(COUNT - 1000, COUNT))


def test_what_lies_aside_is_tried_again(make_server):
    server, aside = some_aside(make_server)
    answer = run("queue", "--retry", "counters", "--server", server.url)
    assert (answer.returncode, answer.stdout) == (0, "queue,given,kept\ncounters,1000,0\n"), answer
    wait_persisted(server)
    assert queue_of_counters(server)["aside"] == 0
    assert numbers_of_mine(server)[-1000:] == aside
    assert server.metric("granary_persist_refused_total", reason="order") == 0
    assert server.metric("granary_queue_messages_retried_total") == 1000
    # Nothing more: of that queue, or of any.
    answer = run("queue", "--retry", "counters", "-o", "json", "--server", server.url)
    assert json.loads(answer.stdout) == {"queue": "counters", "given": 0, "kept": 0}
    assert run("queue", "--retry", "--server", server.url).stdout == "queue,given,kept\n"
    assert run("queue", "--aside", "counters", "--server", server.url).stdout.count("\n") == 1


def test_what_is_tried_again_in_vain_lies_aside_again(make_server):
    server = make_server()
    feed_and_kill(server)
    start_without_it(server, "queue:\n  messages_max: 50\n")
    before = server.get("/api/queues/aside", queue="counters").json
    answer = run("queue", "--retry", "--server", server.url)
    assert answer.returncode == 0 or "the queue has no room for more" in answer.stderr, answer
    wait_persisted(server)
    after = server.get("/api/queues/aside", queue="counters").json
    assert sorted(row["text"] for row in after) == sorted(row["text"] for row in before)
    assert {row["reason"] for row in after} == {"there is no OIDSet Mine"}


def test_killed_while_it_is_tried_again(make_server):
    """Each of them is persisted in the end, whenever the server was killed or told to stop."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    pick = random.Random(seed)
    server, aside = some_aside(make_server)
    for end in (server.kill, server.kill, server.stop, server.kill, server.stop):
        thread = threading.Thread(target=run, args=("queue", "--retry", "--server", server.url))
        thread.start()
        time.sleep(pick.uniform(0.005, 0.1))  # the moment of the crash
        end()
        thread.join()
        server.start()
    assert run("queue", "--retry", "--server", server.url).returncode == 0
    wait_persisted(server)
    assert queue_of_counters(server)["aside"] == 0
    assert numbers_of_mine(server)[-1000:] == aside


def test_wrong_uses_of_retry(server):
    answer = run("queue", "--retry", "nothing", "--server", server.url)
    assert answer.returncode == 1
    assert "there is no queue nothing: name one with queue=" in answer.stderr
    for arguments in (("counters",), ("--retry", "a", "b"), ("--retry=counters",)):
        assert run("queue", *arguments, "--server", server.url).returncode == 2
    assert server.request("POST", "/api/queues/retry").status == 404
    assert server.get("/api/queues/retry", queue="counters").status == 405
    assert "--retry" in run("queue", "--help").stdout
