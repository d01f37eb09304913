"""Messages of what fault reports bring about, against the real server: each cause once, whatever is
killed; what is too much is told of in one. The server's clocks are set while it serves."""

import collections
import json
import random
import time

import pytest

from server import eventually, long_run, run
from test_clock import HOOK, ClockServer
from test_fault_gc import go_on
from test_fault_groups import send
from test_fault_live import Viewer
from test_fault_states import say
from test_oops import command, pages

DAY_S, HOUR_S = 86400, 3600


def messages_of(server, **params):
    answer = server.get("/oops/messages", **{"limit": 1000, **params})
    assert answer.status == 200, answer
    listed = answer.json["messages"]
    assert len({m["id"] for m in listed}) == len(listed)
    dates = [m["date"] for m in listed]
    assert dates == sorted(dates, reverse=True)
    return listed


def made(chance, first, count, faults):
    return [{"id": f"OOPS-{n:05}", "fingerprint": [f"fault {chance.randrange(faults)}"],
             "exception": "KeyError", "value": f"number {n}", "environment": "live",
             "level": "error", "release": "shop@1.2.3"} for n in range(first, first + count)]


def firsts(server):
    """The oldest report of each group, as lists have them."""
    by_group = collections.OrderedDict()
    for report in reversed(pages(server, limit=1000)):
        by_group.setdefault(report["group"], report)
    return by_group


def wait_new(server):
    groups = firsts(server)
    eventually(lambda: len(messages_of(server, kind="new", heldBack="true")) >= len(groups))
    return groups


def test_each_group_is_new_once(server):
    chance = random.Random(1)
    send(server, made(chance, 0, 200, 30))
    groups = wait_new(server)
    assert len(groups) == 30
    for message in messages_of(server):
        first = groups.pop(message["group"])
        assert message["kind"] == "new" and message["report"] == first["id"]
        assert message["title"] == f"KeyError: number {int(first['id'][5:])}" == first["title"]
        assert (message["environment"], message["level"]) == ("live", "error")
        assert message["release"] == "shop@1.2.3" and message["reports"] >= 1
        assert message["date"] >= first["date"] and "said" not in message
    assert not groups
    assert server.metric("granary_fault_messages_total") == 30
    send(server, made(chance, 200, 200, 30))
    server.stop()
    server.start()
    send(server, made(chance, 400, 20, 31))
    groups = wait_new(server)
    assert len(messages_of(server)) == len(groups) <= 31
    rows = command(server, "messages", "--kind", "new", "-o", "csv").stdout.splitlines()
    assert rows[0] == "date,kind,of,count,report,title" and len(rows) == 1 + len(groups)
    assert rows[-1].split(",")[1:3] == ["new", messages_of(server)[-1]["group"]]


def test_what_people_said_comes_to_nothing(server):
    """Resolved, and there again; muted until there are so many."""
    send(server, [{"id": "a1", "fingerprint": ["a"]}, {"id": "b1", "fingerprint": ["b"]},
                  {"id": "c1", "fingerprint": ["c"]}])
    groups = {report["id"]: group for group, report in wait_new(server).items()}
    assert say(server, groups["a1"], status="resolved").status == 200
    assert say(server, groups["b1"], status="muted", until=2).status == 200
    assert say(server, groups["c1"], status="resolved").status == 200
    said = server.get(f"/oops/groups/{groups['a1']}").json
    send(server, [{"id": "a2", "fingerprint": ["a"]}, {"id": "b2", "fingerprint": ["b"]}])
    eventually(lambda: messages_of(server, kind="regressed"))
    [message] = messages_of(server, kind="regressed")
    assert (message["group"], message["report"], message["reports"]) == (groups["a1"], "a2", 2)
    assert message["said"] <= message["date"] and said["status"] == "resolved"
    send(server, [{"id": "a3", "fingerprint": ["a"]}, {"id": "b3", "fingerprint": ["b"]}])
    eventually(lambda: messages_of(server, kind="unmuted"))
    [unmuted] = messages_of(server, kind="unmuted")
    assert (unmuted["group"], unmuted["report"], unmuted["reports"]) == (groups["b1"], "b3", 3)
    assert [m["id"] for m in messages_of(server, kind="regressed")] == [message["id"]]
    assert say(server, groups["a1"], status="resolved").status == 200
    send(server, [{"id": "a4", "fingerprint": ["a"]}])
    eventually(lambda: len(messages_of(server, kind="regressed")) == 2)
    assert len(messages_of(server)) == 3 + 2 + 1


def test_killed_in_a_stream(server):
    """No cause is lost, and none is told twice."""
    chance, rounds = random.Random(2), 30 if long_run() else 6
    for n in range(rounds):
        send(server, made(chance, n * 20, 20, 1000))
        eventually(lambda: server.metric("granary_fault_checkpoints_total") > chance.randrange(2))
        server.kill()
        server.start()
    groups = wait_new(server)
    told = messages_of(server, kind="new", heldBack="true")
    assert {m["group"]: m["report"] for m in told} == {
        group: report["id"] for group, report in groups.items()}
    assert len(told) == len(groups)


@pytest.fixture
def clock_server(tmp_path):
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "fault:\n  messages_max: 3\n  messages_keep: 2d\n")
    server.start()
    # Far from midnight, and ten minutes into an hour.
    server.pass_awake(DAY_S + DAY_S // 2 + 600 - int(time.time()) % DAY_S)
    yield server
    server.kill()


def test_a_group_that_has_more_than_usual(clock_server):
    """Two reports on each of four days, then twenty: of these at noon two are usual at most."""
    server = clock_server
    for day in range(5):
        send(server, [{"id": f"r{day}-{n}", "fingerprint": ["r"]} for n in range(2)])
        send(server, [{"id": f"q{day}-{n}", "fingerprint": ["q"]} for n in range(2)])
        if day < 4:
            server.pass_awake(DAY_S)
    wait_new(server)
    assert messages_of(server, kind="risen") == []
    send(server, [{"id": f"s{n}", "fingerprint": ["r"]} for n in range(17)])
    send(server, [{"id": f"s{n}", "fingerprint": ["r"]} for n in range(17, 18)])
    eventually(lambda: messages_of(server, kind="risen"))
    send(server, [{"id": f"t{n}", "fingerprint": ["r"]} for n in range(40)])
    [risen] = messages_of(server, kind="risen")
    group = firsts(server)[risen["group"]]
    assert group["id"] == "r0-0" and risen["reports"] == 20
    assert risen["day"] == time.strftime("%Y%m%d", time.gmtime(risen["date"] / 1000))


def test_more_than_so_many_of_an_hour(clock_server):
    server = clock_server
    send(server, [{"id": f"a{n}", "fingerprint": [f"a{n}"]} for n in range(5)])
    wait_new(server)
    everything = messages_of(server, heldBack="true")
    assert [m.get("held_back", False) for m in everything] == [True] * 2 + [False] * 3
    assert len(messages_of(server)) == 3
    assert server.metric("granary_fault_messages_held_back_total") == 2
    server.pass_awake(HOUR_S)
    go_on(server, lambda: messages_of(server, kind="held_back"))
    [held] = messages_of(server, kind="held_back")
    assert held["messages"] == 2 and held["hour"] % (HOUR_S * 1000) == 0
    assert held["hour"] <= everything[0]["date"] < held["hour"] + HOUR_S * 1000
    send(server, [{"id": "b", "fingerprint": ["b"]}])
    eventually(lambda: len(messages_of(server)) == 5)
    table = command(server, "messages", "--held-back", "-o", "csv").stdout.splitlines()
    assert len(table) == 1 + 7 and table[2].split(",")[1] == "held_back"


def test_a_day_is_over_and_messages_go(clock_server):
    server = clock_server
    send(server, [{"id": f"a{n}", "fingerprint": ["a"]} for n in range(4)])
    wait_new(server)
    day = time.strftime("%Y%m%d", time.gmtime(messages_of(server)[0]["date"] / 1000))
    server.pass_awake(DAY_S)
    go_on(server, lambda: messages_of(server, kind="day"))
    [message] = messages_of(server, kind="day")
    assert (message["day"], message["reports"]) == (day, 4)
    server.pass_awake(DAY_S + HOUR_S)
    assert [m["kind"] for m in messages_of(server)] == ["day"]  # two days are over for the other
    server.pass_awake(DAY_S)
    assert messages_of(server) == []


# ---- As they are made ----------------------------------------------------------------------------


def viewer_of(server, query="", **more):
    return Viewer(server, query, path="/oops/messages/live", **more)


def take(viewer, count):
    events = [viewer.next() for _ in range(count)]
    assert {event.kind for event in events} <= {"message"}
    return [event.data for event in events]


def test_each_message_is_told_once_in_order(server):
    send(server, [{"id": "old", "fingerprint": ["old"]}])
    [old] = wait_new(server)
    with viewer_of(server) as viewer, viewer_of(server, "environment=test") as other, \
            viewer_of(server, "tenant=shop") as shop:
        assert viewer.headers["content-type"] == "text/event-stream"
        assert [v.until_ready() for v in (viewer, other, shop)] == [[], [], []]
        chance = random.Random(3)
        send(server, made(chance, 0, 40, 12))
        send(server, [{"id": "t", "fingerprint": ["test"], "environment": "test"}])
        groups = wait_new(server)
        told = take(viewer, len(groups) - 1)
        assert told == list(reversed(messages_of(server)))[1:]
        assert {m["group"] for m in told} == set(groups) - {old}
        assert [m["report"] for m in take(other, 1)] == ["t"]
    with viewer_of(server, last=viewer.last) as again:
        assert again.until_ready() == []
        send(server, [{"id": "new", "fingerprint": ["new"]}])
        assert take(again, 1)[0]["report"] == "new"
    with viewer_of(server, "token=0") as whole:
        events = whole.until_ready()
        assert [e.data for e in events] == list(reversed(messages_of(server)))


def test_a_viewer_goes_on_when_the_server_was_killed(server):
    chance, told, last = random.Random(4), [], None
    for n in range(20 if long_run() else 5):
        with viewer_of(server, last=last) as viewer:
            told += [e.data for e in viewer.until_ready()]
            last = viewer.last or last
            send(server, made(chance, n * 10, 10, 1000))
            for event in (viewer.next() for _ in range(chance.randrange(4))):
                told.append(event.data)
                last = event.id
            server.kill()
        server.start()
        wait_new(server)
    with viewer_of(server, last=last) as viewer:
        told += [e.data for e in viewer.until_ready()]
    assert told == list(reversed(messages_of(server)))


def test_a_viewer_that_does_not_read_misses_nothing(make_server):
    """It is told what it has room for, and the rest when it has read."""
    server = make_server(options=["--fault.messages_max=0"])
    server.start()
    with viewer_of(server, buffer=4096) as viewer:
        assert viewer.until_ready() == []
        send(server, [{"id": f"OOPS-{n:05}", "fingerprint": [f"fault {n}"],
                       "exception": "E" * 180, "value": "v" * 180, "release": "r" * 190,
                       "environment": "e" * 190} for n in range(3000)])
        eventually(lambda: server.metric("granary_fault_messages_total") == 3000)
        told = take(viewer, 3000)
    assert len({m["report"] for m in told}) == 3000
    assert told[-1000:] == list(reversed(messages_of(server)))


def test_questions_that_make_no_sense(server):
    for params, sentence in [({"kind": "old"}, "kind"), ({"limit": 0}, "limit"),
                             ({"limit": 1001}, "limit"), ({"since": "x"}, "since"),
                             ({"heldBack": "maybe"}, "heldBack"), ({"colour": "red"}, "colour")]:
        answer = server.get("/oops/messages", **params)
        assert answer.status == 400 and sentence in answer.json["error"]["message"], answer
    assert messages_of(server, tenant="nobody") == []
    for params in [{"token": "x"}, {"kind": "old"}, {"colour": "red"}]:
        assert server.get("/oops/messages/live", **params).status == 400
    answer = server.request("HEAD", "/oops/messages/live")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
    failed = run("fault", "messages", "--server", server.url, "--kind", "old")
    assert failed.returncode == 1 and "kind" in failed.stderr
    assert json.loads(command(server, "messages", "-o", "json").stdout)["messages"] == []
