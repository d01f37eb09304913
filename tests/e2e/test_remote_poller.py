"""The poller as a process of its own: what it polls arrives, once, whatever is away or killed."""

import collections
import csv
import io
import itertools
import pathlib
import random
import re
import signal
import time
from datetime import datetime

import pytest

from poll_format import read_frames
from remote_poller import FAST, OIDSETS, Line, RemotePoller, wait_for
from server import PATIENCE_S, long_run, run, running
from snmp_agent import have_snmpd

ROUNDS = 200 if long_run() else 10
METRICS = ("ifHCInOctets", "ifHCOutOctets", "ifCounterDiscontinuityTime")

pytestmark = pytest.mark.skipif(not have_snmpd(), reason="snmpd is not installed")


@pytest.fixture
def make_poller(tmp_path, request):
    """Makes pollers; all that still run at the end are killed."""
    pollers = []

    def make(url, folder="poller", **options):
        poller = RemotePoller(tmp_path / folder, url, **options)
        pollers.append(poller)
        request.node.servers = [*getattr(request.node, "servers", []), poller]
        return poller

    yield make
    for poller in pollers:
        poller.kill()


@pytest.fixture
def central(make_server):
    """A server that has no secrets: who polls has them."""
    with running(make_server(config=OIDSETS)) as server:
        yield server


@pytest.fixture
def line(central):
    between = Line(central.port)
    yield between
    between.stop()


def device(server, verb, *arguments):
    answer = run("device", verb, *arguments, "--server", server.url)
    assert answer.returncode == 0, answer.stderr


def add(server, name, agent, oidset="Fast", poller="site"):
    device(server, "add", name, agent.address, oidset, "--credentials", "lab", "--poller", poller)


def state_of(server, name):
    return server.get(f"/api/devices/{name}").json


def values(server, name, metric="ifHCInOctets", interface="lo"):
    found = server.query(metric, f"device={name}", f"interface={interface}", tenant="snmp", start=0)
    return found[0]["values"] if found else {}


def in_ms(text):
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def all_stored(server):
    """(device, oid, path, time in ms) -> value, of all that is stored; nothing is there twice."""
    stored = collections.Counter()
    result = {}
    for metric in METRICS:
        answer = server.get("/api/query", tenant="snmp", metricName=metric, start=0, format="csv")
        assert answer.status == 200, answer
        for row in csv.DictReader(io.StringIO(answer.text)):
            key = row["device"], metric, (row["interface"],), in_ms(row["time"])
            stored[key] += 1
            result[key] = int(row["value"])
    assert not [key for key, count in stored.items() if count > 1]
    return result


def all_sent(bodies):
    """The same of bodies of POST /api/polls."""
    return {(name, oid, path, time_ms): value
            for body in bodies for name, _, found in read_frames(body)
            for oid, path, time_ms, value in found if oid in METRICS}


def memory_peak(poller):
    status = pathlib.Path(f"/proc/{poller.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) << 10


def wait_until_all_is_there(poller, server):
    wait_for(lambda: poller.spool()["pending"] == 0 and
             not any(queue["pending"] for queue in server.get("/api/queues").json["queues"]))


def test_values_arrive_and_changes_are_followed(central, make_poller, agent, line):
    add(central, "r", agent)
    add(central, "other", agent, poller="another")
    assert state_of(central, "r")["reason"] == "its poller has not been heard of"
    poller = make_poller(line.url).start()
    polled = wait_for(lambda: len(values(central, "r")) >= 3 and values(central, "r"))
    # Nothing but this machine counts on `lo`, and it counts upwards.
    assert list(polled.values()) == sorted(polled.values())
    wait_for(lambda: state_of(central, "r")["state"] == "ok")
    assert values(central, "other") == {}
    assert state_of(central, "other")["reason"] == "its poller has not been heard of"

    # One more, one that does not answer, one that nobody has credentials for.
    add(central, "later", agent)
    device(central, "add", "dead", "127.0.0.1:9", "Fast", "--credentials", "lab", "--poller",
           "site")
    device(central, "add", "secret", agent.address, "Fast", "--credentials", "core", "--poller",
           "site")
    add(central, "names", agent, oidset="Refs")
    wait_for(lambda: len(values(central, "later")) >= 2)
    rows = wait_for(lambda: central.get("/api/interfaces", device="names").json)
    assert {"lo": "lo"}.items() <= {
        row["name"]: row["attributes"]["ifDescr"] for row in rows}.items()
    wait_for(lambda: state_of(central, "dead")["state"] == "failing")
    assert state_of(central, "dead")["since"] and state_of(central, "dead")["reason"]
    wait_for(lambda: state_of(central, "secret")["reason"] ==
             "its credentials are not in the secrets file")
    with open(poller.secrets, "a") as secrets:
        secrets.write("core: {version: 2c, community: public}\n")
    poller.process.send_signal(signal.SIGHUP)
    wait_for(lambda: state_of(central, "secret")["state"] == "ok")

    # By whatever name, it goes on in the same series; who has the name then has others.
    count = len(values(central, "later"))
    device(central, "rename", "later", "renamed")
    device(central, "rename", "names", "renamed_names")
    add(central, "later", agent)
    wait_for(lambda: len(values(central, "renamed")) >= count + 2)
    wait_for(lambda: len(values(central, "later")) >= 2)
    assert list(values(central, "renamed"))[:count][-1] < min(values(central, "later"))
    before, = [row for row in rows if row["name"] == "lo"]
    assert before | {"device": "renamed_names"} in central.get(
        "/api/interfaces", device="renamed_names", begin="2000-01-01").json
    device(central, "remove", "renamed")

    # Back to the server, which has no such credentials and says so.
    device(central, "change", "r", "--poller", "another")
    device(central, "remove", "later")
    device(central, "remove", "renamed_names")
    wait_for(lambda: poller.status.metric("granary_poll_devices") == 2)
    answer = run("device", "change", "r", "--poller", "", "--server", central.url)
    assert "'lab' is not a name of credentials in the secrets file" in answer.stderr
    device(central, "change", "r", "--poller", "", "--credentials", "public")
    count = len(values(central, "r"))
    wait_for(lambda: len(values(central, "r")) > count)
    assert state_of(central, "r")["poller"] == ""

    rows = csv.DictReader(io.StringIO(run("poller", "list", "--server", central.url).stdout))
    found = {row["name"]: row for row in rows}
    assert found["site"]["state"] == "ok" and found["site"]["devices"] == "2"
    assert found["another"]["state"] == "silent" and found["another"]["devices"] == "1"
    poller.stop()
    # What the poller was told is there is there, as it was sent.
    wait_for(lambda: not any(q["pending"] for q in central.get("/api/queues").json["queues"]))
    sent, stored = all_sent(line.polls(204)), all_stored(central)
    assert sent and {key: stored.get(key) for key in sent} == sent


def test_nothing_acknowledged_is_lost_when_either_is_killed(central, make_poller, agent, line):
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    pick, count = random.Random(seed), itertools.count()
    for name in ("a", "b", "c"):
        add(central, name, agent)
    # Now and then an answer is lost, so that a poll is sent that is there already; or the request.
    line.rule = lambda method, path, body: \
        {3: "lose", 4: "cut"}.get(next(count) % 5) if path == "/api/polls" else None
    poller = make_poller(line.url).start()
    wait_for(lambda: line.polls(204))
    for _ in range(ROUNDS):
        time.sleep(pick.uniform(0.01, 1.2))  # the moment of the crash
        victims = pick.choice([[poller], [central], [poller, central]])
        for victim in victims:
            victim.kill()
        for victim in victims:
            victim.start()
    line.rule = lambda method, path, body: None
    acknowledged = len(line.polls(204))
    wait_for(lambda: len(line.polls(204)) > acknowledged)
    for name in ("a", "b", "c"):
        device(central, "change", name, "--poller", "nobody")
    wait_for(lambda: poller.status.metric("granary_poll_devices") == 0)
    wait_until_all_is_there(poller, central)
    told, sent, stored = (all_sent(line.polls(204)), all_sent(line.polls()), all_stored(central))
    assert {key: stored.get(key) for key in told} == told, seed
    # What was sent once was in the spool, and has to stay there until it is acknowledged.
    assert stored == sent, seed
    assert len(line.polls()) > len(line.polls(204))
    poller.stop()


def test_what_was_polled_while_the_server_was_away_arrives(central, make_poller, agent):
    add(central, "r", agent)
    poller = make_poller(central.url).start()
    wait_for(lambda: len(values(central, "r")) >= 1)
    before = len(values(central, "r"))
    central.kill()
    # The newest is counted before it is on disk; the one before it has been there for some time.
    waiting = wait_for(lambda: poller.spool()["pending"] >= 3 and poller.spool()["pending"]) - 1
    poller.kill()
    poller.start()  # from what it knows
    assert poller.spool()["pending"] >= waiting
    waiting = wait_for(lambda: poller.spool()["pending"] >= waiting + 2 and
                       poller.spool()["pending"])
    answer = run("queue", "--once", "--server", poller.status.url)
    assert answer.stdout.splitlines()[1].startswith("spool,"), answer
    assert "polls wait in the spool: " + central.url in poller.log_text()
    central.start()
    wait_until_all_is_there(poller, central)
    assert len(values(central, "r")) >= before + waiting
    poller.stop()


def test_a_full_spool_is_counted_and_delays_no_poll(central, make_poller, agent):
    add(central, "r", agent)
    poller = make_poller(central.url, options=["--queue.messages_max=2"]).start()
    wait_for(lambda: len(values(central, "r")) >= 1)
    central.kill()
    wait_for(lambda: poller.status.metric("granary_queue_messages_refused_total") > 0)
    assert poller.spool()["pending"] == 2
    polls = poller.status.metric("granary_polls_total", result="ok")
    # Others go on being polled, and wait in memory.
    wait_for(lambda: poller.status.metric("granary_poll_waiting_messages") >= 2)
    assert poller.status.metric("granary_polls_total", result="ok") > polls
    assert poller.status.metric("granary_poll_slots_left_out_total", reason="running") == 0
    before_all = poller.status.metric("granary_polls_total", result="ok")
    central.start()
    wait_for(lambda: poller.status.metric("granary_poll_waiting_messages") == 0)
    wait_until_all_is_there(poller, central)
    assert len(values(central, "r")) >= before_all
    assert poller.status.metric("granary_poll_dropped_total") == 0
    poller.stop()


def test_what_the_server_refuses_is_set_aside(central, make_poller, agent):
    central.stop()
    kept = f"  Kept: {FAST}"
    central.configure(OIDSETS + kept)
    central.start()
    add(central, "bad", agent)
    add(central, "good", agent, oidset="Kept")
    poller = make_poller(central.url).start()
    wait_for(lambda: values(central, "bad") and values(central, "good"))
    central.stop()
    wait_for(lambda: poller.spool()["pending"] >= 6)
    before = len(lines_of_refusals(poller))
    central.configure("oidsets:\n" + kept)
    central.start()
    wait_for(lambda: poller.spool()["pending"] == 0 and poller.spool()["aside"] >= 2)
    aside = run("queue", "--aside", "spool", "--server", poller.status.url)
    assert aside.returncode == 0, aside
    rows = list(csv.DictReader(io.StringIO(aside.stdout)))
    assert {(row["device"], row["reason"]) for row in rows} == {
        ("bad", "message 1: there is no OIDSet Fast")}
    assert len(lines_of_refusals(poller)) == before + len(rows)
    assert poller.status.metric("granary_handover_messages_total", result="refused") == len(rows)
    # The others arrive, those of the time before and those that come.
    count = len(values(central, "good"))
    wait_for(lambda: len(values(central, "good")) > count)
    wait_for(lambda: state_of(central, "bad")["state"] == "misconfigured")
    # Once the server has that OIDSet again, they can be tried again.
    central.stop()
    central.configure(OIDSETS + kept)
    central.start()
    wait_for(lambda: poller.spool()["pending"] == 0)
    refused = poller.spool()["aside"]
    answer = run("queue", "--retry", "spool", "--server", poller.status.url)
    assert answer.stdout == f"queue,given,kept\nspool,{refused},0\n", answer
    wait_for(lambda: poller.spool()["pending"] == 0)
    assert poller.spool()["aside"] == 0
    poller.stop()


def lines_of_refusals(poller):
    return [text for text in poller.log_text().splitlines() if "is set aside: " in text]


def test_only_204_is_an_acknowledgement(central, make_poller, agent, line):
    add(central, "r", agent)
    answers = [(200, b"welcome"), (404, b"{}"), (503, b""), "hang"]
    line.rule = lambda method, path, body: answers[0] if path == "/api/polls" else None
    poller = make_poller(line.url).start()
    while len(answers) > 1:
        seen = len(line.polls())
        wait_for(lambda: len(line.polls()) > seen)
        assert values(central, "r") == {} and poller.spool()["done"] == 0
        answers.pop(0)
        line.rule = lambda method, path, body: answers[0] if path == "/api/polls" else None
    wait_for(lambda: poller.spool()["pending"] >= 3)
    waiting = poller.spool()["pending"]
    poller.stop()  # though a request hangs
    line.rule = lambda method, path, body: None
    poller.start()
    wait_until_all_is_there(poller, central)
    assert len(values(central, "r")) >= waiting
    poller.stop()


def test_an_inventory_that_cannot_be_read_changes_nothing(central, make_poller, agent, line):
    add(central, "r", agent)
    poller = make_poller(line.url).start()
    wait_for(lambda: values(central, "r"))
    bad = (b'{"poller":"site","definitions":"0123456789abcdef","oids":{},\n"oidsets":{"New":'
           b'{"frequency":"1s","correlator":"Quantum","oids":["x"]}},"devices":[]}')
    line.rule = lambda method, path, body: \
        (200, bad, {"ETag": '"new"'}) if path.endswith("/inventory") else None
    found = wait_for(lambda: [row for row in central.get("/api/pollers").json if row["reason"]])
    assert found[0]["state"] == "failing"
    assert f"{line.url}:2: oidsets.New.correlator: 'Quantum' is not a correlator" in \
        found[0]["reason"]
    count = len(values(central, "r"))
    wait_for(lambda: len(values(central, "r")) > count)
    line.rule = lambda method, path, body: None
    wait_for(lambda: central.get("/api/pollers").json[0]["state"] == "ok")
    poller.stop()


def test_an_inventory_without_end_changes_nothing(central, make_poller, agent, line):
    """A server that is none, or broken: no more of it is read than an inventory may have."""
    add(central, "r", agent)
    poller = make_poller(line.url).start()
    wait_for(lambda: values(central, "r"))
    before = memory_peak(poller)
    endless = b" " * (200 << 20)
    line.rule = lambda method, path, body: \
        (200, endless, {"ETag": '"new"'}) if path.endswith("/inventory") else None
    found = wait_for(lambda: [row for row in central.get("/api/pollers").json if row["reason"]])
    assert "its answer is longer than 32 MB; is that a granary server?" in found[0]["reason"]
    assert poller.status.metric("granary_poll_inventories_refused_total",
                                reason="too_long") >= 1
    assert memory_peak(poller) - before < 100 << 20
    count = len(values(central, "r"))
    wait_for(lambda: len(values(central, "r")) >= count + 2)
    # It is there again, and has not changed: 304.
    line.rule = lambda method, path, body: None
    wait_for(lambda: not any(row["reason"] for row in central.get("/api/pollers").json))
    assert poller.status.metric("granary_poll_devices") == 1
    poller.stop()


def test_a_failed_commit_ends_the_poller_with_74(central, make_poller, agent, monkeypatch):
    add(central, "r", agent)
    poller = make_poller(central.url).start()
    wait_for(lambda: values(central, "r"))
    poller.stop()
    monkeypatch.setenv("GRANARY_FAULTS", "store.sync=error@3")
    poller.start()
    assert poller.process.wait(PATIENCE_S) == 74
    assert "a commit failed" in poller.log_text()
    monkeypatch.delenv("GRANARY_FAULTS")
    before = len(values(central, "r"))
    poller.start()
    wait_for(lambda: len(values(central, "r")) > before)
    poller.stop()


def test_two_pollers_of_one_name_double_nothing(central, make_poller, agent, line):
    add(central, "r", agent)
    pollers = [make_poller(line.url, folder=folder).start() for folder in ("one", "two")]
    wait_for(lambda: len(values(central, "r")) >= 5)
    for poller in pollers:
        poller.stop()
    wait_for(lambda: not any(q["pending"] for q in central.get("/api/queues").json["queues"]))
    stored, sent = all_stored(central), all_sent(line.polls())
    assert stored.items() <= sent.items()
    # In the order of time the counter never falls: what grew between two of them counts once.
    series = [value for key, value in sorted(stored.items(), key=lambda item: item[0][3])
              if key[:3] == ("r", "ifHCInOctets", ("lo",))]
    assert series == sorted(series)


@pytest.mark.parametrize("arguments, status, sentence", [
    ([], 2, "--server is missing"),
    (["--server", "http://127.0.0.1:1"], 2, "--data is missing"),
    (["--server", "http://me:secret@127.0.0.1:1", "--data", "{}/d"], 2, "with a password in it"),
    (["--server", "http://127.0.0.1:1", "--data", "{}/d", "--bogus", "1"], 2,
     "bogus is not an option"),
    (["--server", "http://127.0.0.1:1", "--data", "{}/d", "--name", ""], 2, "--name has 1 to"),
    (["--server", "http://127.0.0.1:1", "--data", "{}/d", "--snmp.secrets_file", "{}/x"], 2,
     "/x: "),
    (["--server", "http://127.0.0.1:1", "--data", "{}/d", "--listen", "192.0.2.1:1"], 2,
     "--listen: "),
])
def test_wrong_use_is_said(tmp_path, arguments, status, sentence):
    answer = run("poll", *[argument.format(tmp_path) for argument in arguments])
    assert answer.returncode == status, answer
    assert answer.stderr.startswith("granary poll: ") and sentence in answer.stderr, answer
