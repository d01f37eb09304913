"""What memcached loses, with the whole server: what lay in it unread, no more, and counted."""

import http.client
import json
import random
import threading
import time

import pytest

from memcached import EsmondQueue, Memcached
from server import eventually, long_run, run
from test_polls import T0, by_second, message, octets, wait_persisted
from test_worked_examples import CONFIG, import_devices, wait_for_metric

ROUNDS = 50 if long_run() else 4
TRIES = 10


@pytest.fixture
def memcached():
    memcached = Memcached()
    yield memcached
    memcached.kill()


@pytest.fixture
def server(make_server, memcached):
    server = make_server(
        config=CONFIG.format(driver=f"driver: memcached, server: '{memcached.address}'"))
    server.start()
    yield server
    server.stop()


def added(server):
    return next(queue["added"] for queue in server.get("/api/queues").json["queues"]
                if queue["name"] == "counters")


def wait_until_seen(server, number):
    eventually(lambda: added(server) >= number, lambda: server.get("/api/queues"))


def stored(server):
    return by_second(server.query("ifHCInOctets", tenant="snmp", start=T0, end=T0 + 10**7)[0])


def missing(server):
    return int(server.metric("granary_queue_messages_missing_total"))


class Poller:
    """esmond's, of one interface every 30 s; the counter grows by 3,000 from poll to poll."""

    def __init__(self, queue):
        self.queue, self.sent = queue, {}

    def poll(self, count):
        for _ in range(count):
            second = 30 * len(self.sent)
            self.sent[second] = 100 * second
            self.queue.put(octets(T0 + second, 100 * second))


def lose_some(server, memcached, poller):
    """Five polls behind a number without an item, which is waited for, until memcached is killed.
    A machine that holds us up for that second loses only the number."""
    number = poller.queue.number()
    poller.poll(5)
    wait_until_seen(server, number + 5)
    memcached.restart()
    eventually(lambda: poller.queue.pending() is not None, "counters that are made again")


def test_memcached_is_restarted_in_the_middle(server, memcached):
    """Polls before and after it are there, those it took along are counted, and the growth over
    them is not: what is in bins and what is unplaced are the counter's growth."""
    poller = Poller(EsmondQueue(memcached, "counters"))
    import_devices(server, {"router_a": "FastPollHC"})
    for tries in range(1, TRIES + 1):
        poller.poll(10)
        poller.queue.wait_pending()
        lose_some(server, memcached, poller)
        wait_for_metric(server, "granary_queue_memcached_restarts_total", tries)
        before = missing(server)
        poller.poll(10)
        poller.queue.wait_pending()
        if len(stored(server)) < len(poller.sent):
            break
    there = stored(server)
    lost = poller.sent.keys() - there.keys()
    first = 30 * (len(poller.sent) - 15)
    assert lost == set(range(first, first + 150, 30))
    assert there.items() <= poller.sent.items()
    # Each round also the number that never had an item.
    assert missing(server) == before == len(lost) + tries
    volume = server.get("/v2/report/volume", device="router_a", interface="xe-0/2/0", begin=T0,
                        end=T0 + 10**5).json["children"][0]["spans"]
    assert sum(span["in"]["total"] for span in volume) == max(poller.sent.values())
    assert sum(span["in"]["unplaced"] for span in volume) > 0


def test_an_oidset_that_the_configuration_does_not_have(server, memcached):
    """esmond's poller polls it all the same: that is set aside, and tried again later."""
    queue = EsmondQueue(memcached, "counters")
    for second in range(5):
        queue.put(message("Mine", "ifHCInOctets", T0 + second, [[["ifHCInOctets", "p"], second]]))
    queue.put(octets(T0, 7))
    queue.wait_pending()
    wait_persisted(server)
    assert list(stored(server).values()) == [7]
    answer = run("queue", "--once", "--server", server.url)
    assert "counters,0,6,6,0,6,0,5,0" in answer.stdout.splitlines()
    answer = run("queue", "--aside", "counters", "--server", server.url)
    assert [line.split(",", 3)[3] for line in answer.stdout.splitlines()[1:]] == \
        ["there is no OIDSet Mine"] * 5
    server.stop()
    text = server.config.read_text()
    mine = "oidsets:\n  Mine: {frequency: 30s, correlator: IfName, oids: [ifHCInOctets]}\n"
    server.configure(text.replace("oidsets:\n", mine, 1))
    server.start()
    answer = run("queue", "--retry", "--server", server.url)
    assert answer.stdout == "queue,given,kept\ncounters,5,0\n", answer
    queue.wait_pending()
    wait_persisted(server)
    found = server.query("ifHCInOctets", "oidset=Mine", tenant="snmp", start=T0, end=T0 + 100)
    assert list(by_second(found[0]).values()) == [0, 1, 2, 3, 4]


class Feeder(threading.Thread):
    """Sends polls one by one until it is told to end; remembers what was acknowledged."""

    def __init__(self, server):
        super().__init__()
        self.port, self.going = server.port, True
        self.acknowledged, self.sent = set(), 0

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while self.going:
            self.sent += 1
            connection.request("POST", "/api/polls", json.dumps(octets(T0 + self.sent, self.sent)),
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status == 204:
                self.acknowledged.add(self.sent)
        connection.close()


def test_what_was_acknowledged_is_there_or_counted(server, memcached):
    """Memcached is killed at random moments while polls come: every one that it had taken is either
    stored or counted as missing."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    pick, feeder = random.Random(seed), Feeder(server)
    feeder.start()
    try:
        for _ in range(ROUNDS):
            time.sleep(pick.uniform(0.05, 0.8))  # the moment of the crash
            memcached.restart()
    finally:
        feeder.going = False
        feeder.join()
    EsmondQueue(memcached, "counters").wait_pending()
    wait_persisted(server)  # also what was read before the last restart
    there = stored(server)
    assert all(second == value for second, value in there.items()), seed
    lost = feeder.acknowledged - there.keys()
    unknown = feeder.sent - len(feeder.acknowledged)
    assert len(lost) <= missing(server) <= len(lost) + unknown, (seed, unknown)
    assert len(feeder.acknowledged) > ROUNDS
    print(f"{len(feeder.acknowledged)} polls, {ROUNDS} restarts, {len(lost)} lost and counted")
