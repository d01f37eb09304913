"""Removal of all reports of a user: no answer has them any more, nor the name, and what days and
groups add up to is what the other reports are. The server's clocks are set while it serves."""

import collections
import json
import random
import shutil
import threading
import time

import pytest

from server import eventually, run
from test_clock import HOOK
from test_fault_gc import (LONGEST_QUERY_S, begin, collected, days, go_on, let_age,
                           make_clock_server, server, start_again)  # noqa: F401 fixtures
from test_fault_groups import send
from test_oops import day_of, pages, post
from test_sentry import send as send_event, with_files

USERS = ["anna", "ann", "bob", "carl", ""]
NAME = "anna"


def made(chance, count, first=0):
    """No two take as long."""
    return [{"id": f"OOPS-{first + number:05}", "username": chance.choice(USERS),
             "context": f"/{chance.randrange(3)}", "duration": duration,
             "fingerprint": [f"fault {chance.randrange(4)}"],
             "value": f"word{first + number} of all", "release": chance.choice(["1.0", "2.0"])}
            for number, duration in enumerate(chance.sample(range(1, 10**6), count))]


def delete(server, *args, user=NAME, status=0):
    result = run("fault", "delete", "--user", user, *args, "-o", "json", "--server", server.url)
    assert result.returncode == status, result
    return result.stderr if status else json.loads(result.stdout)


def group_of(server, name):
    return server.get(f"/oops/groups/{name}").json


def check_others(server, reports):
    """All that is said of reports is said of these, and of no other."""
    rest = {r["id"]: r for r in reports if r["username"] != NAME}
    listed = pages(server, limit=1000)
    assert [r["id"] for r in reversed(listed)] == list(rest)
    groups = collections.defaultdict(list)
    for report in listed:
        groups[report["group"]].append(rest[report["id"]])
    answer = server.get("/oops/groups", since="30d-ago", limit=1000).json["groups"]
    assert {g["group"]: g["count"] for g in answer} == {g: len(of) for g, of in groups.items()}
    for name, of in groups.items():
        users = collections.Counter(r["username"] for r in of if r["username"])
        facts = group_of(server, name)["facts"]
        assert {v["value"]: v["count"] for v in facts["user"]["values"]} == users
    assert sum(day_of(server, day)["total"] for day in days(server)) == len(rest)
    for report in reports[::5]:
        assert server.get(f"/oops/{report['id']}").status == (200 if report["id"] in rest else 404)
        found = [r["id"] for r in pages(server, q=report["value"].split()[0])]
        assert found == [report["id"]] * (report["id"] in rest)


def check_lists(server, reports):
    rest = [r for r in reports if r["username"] != NAME]
    for day in days(server):
        longest = sorted(((r["duration"], r["id"]) for r in rest), reverse=True)[:3]
        assert [(d, i) for d, i in day_of(server, day)["duration"]] == longest


def test_reports_of_a_user_go(server):
    chance = random.Random(1)
    reports = made(chance, 300)
    send(server, reports)
    count = sum(r["username"] == NAME for r in reports)
    wanted = {"reports": count, "days": 1, "more": False}
    assert delete(server, "--dry-run") == wanted | {"dry_run": True}
    assert sum(r.get("user") == NAME for r in pages(server, limit=1000)) == count
    assert delete(server) == wanted | {"dry_run": False}
    check_others(server, reports)
    check_lists(server, reports)
    start_again(server, server.kill)
    check_others(server, reports)
    check_lists(server, reports)
    assert delete(server)["reports"] == 0
    # It does not come back; a new one is taken.
    gone = next(r for r in reports if r["username"] == NAME)
    answer = post(server, gone)
    assert answer.status == 410
    assert "removed with all reports of its user" in answer.json["error"]["message"]
    assert post(server, [gone]).json["results"][0]["result"] == "removed"
    new = {"id": "OOPS-new", "username": NAME, "fingerprint": ["fault 0"]}
    assert post(server, new).status == 201
    assert [r["id"] for r in pages(server, user=NAME)] == ["OOPS-new"]
    server.stop()
    assert run("verify", "--data", server.data).returncode == 0


def test_days_that_were_collected_lose_the_name(server):
    """Counts of such days stay, as collection has it: reports of the user count without one."""
    chance = random.Random(2)
    reports = made(chance, 300)
    send(server, reports)
    let_age(server)
    then = days(server)
    groups = sorted({r["group"] for r in pages(server, limit=1000)})
    before = {name: group_of(server, name) for name in groups}
    begin(server, "--before", "1d-ago", "--newest", "2")
    server.pass_awake(LONGEST_QUERY_S)
    go_on(server, lambda: collected(server) > 100)
    server.pass_awake(LONGEST_QUERY_S)  # the earlier segment goes
    go_on(server, lambda: server.metric("granary_fault_runs_cleared_total") >= 2)
    left = pages(server, limit=1000)
    lists = {day: day_of(server, day) for day in then}
    gone = {r["id"] for r in left if r.get("user") == NAME}
    assert gone
    assert delete(server)["reports"] == len(gone)
    for restarted in (False, True):
        if restarted:
            start_again(server, server.kill)
        assert pages(server, limit=1000) == [r for r in left if r["id"] not in gone]
        for day in then:
            assert day_of(server, day) == lists[day] | {
                what: [top for top in lists[day][what] if top[1] not in gone]
                for what in ("duration", "statement count")}
        for name in groups:
            was, now = before[name], group_of(server, name)
            assert (now["count"], now["days"]) == (was["count"], was["days"])
            assert now["users"] == was["users"] - 1
            assert now["facts"]["user"]["values"] == [
                v for v in was["facts"]["user"]["values"] if v["value"] != NAME]


def bytes_of(server, tmp_path):
    """All that is stored, without pages that are free."""
    copy = tmp_path / "copy"
    shutil.copytree(server.data, copy)
    assert run("compact", "--all", "--data", copy).returncode == 0
    stored = b"".join(path.read_bytes() for path in copy.iterdir() if path.is_file())
    shutil.rmtree(copy)
    return stored


def test_the_bytes_go(make_clock_server, tmp_path):
    """Of a file that cannot be compressed, whatever would keep its report; and cells, which have
    what they were before, have the name no more."""
    server = make_clock_server("  collect_every: 1s\n")
    users = {user: user.encode() * 20 for user in (NAME, "bob")}
    key = server.get("/oops/projects").json["projects"][0]["keys"][0]
    files = {user: random.Random(user).randbytes(3000) for user in users}
    for number, user in enumerate(users):
        event = {"message": "with a file", "user": {"username": users[user].decode()}}
        body = with_files(files[user], event_id=str(number) * 32, event=event)
        assert send_event(server, body, key).status == 200
    group = pages(server)[0]["group"]
    assert server.request("PUT", f"/oops/groups/{group}?tracker=lp&bug=5").status == 200
    let_age(server)
    server.stop()
    stored = bytes_of(server, tmp_path)
    assert all(files[user] in stored and users[user] in stored for user in users)
    start_again(server, lambda: None)
    assert delete(server, user=users[NAME].decode())["reports"] == 1
    server.pass_awake(LONGEST_QUERY_S)
    go_on(server, lambda: "1 reports of tenant default that were removed" in server.log_text())
    runs = server.metric("granary_fault_runs_cleared_total")
    server.pass_awake(LONGEST_QUERY_S)
    go_on(server, lambda: server.metric("granary_fault_runs_cleared_total") > runs)
    server.stop()
    stored = bytes_of(server, tmp_path)
    assert files["bob"] in stored and users["bob"] in stored
    assert files[NAME] not in stored and users[NAME] not in stored




def test_whatever_is_killed(server):
    """Whoever asks again until there is an answer finds that nothing of the user is left."""
    chance = random.Random(3)
    reports = made(chance, 2000)
    for at in range(0, len(reports), 500):
        send(server, reports[at:at + 500])

    def ask():
        try:
            return server.request("POST", f"/oops/delete?user={NAME}").status
        except OSError:
            return None
    for _ in range(8):
        asking = threading.Thread(target=ask)
        asking.start()
        time.sleep(chance.random() * 2.5)  # any moment of it
        start_again(server, server.kill)
        asking.join()
    eventually(lambda: ask() == 200)
    check_others(server, reports)
    check_lists(server, reports)


def test_users_with_long_names_that_begin_alike_are_several(server):
    """And one with a NUL in its name is found as lists show it."""
    users = {"a": 200 * "u" + "A", "b": 200 * "u" + "B", "c": 200 * "u", "d": "eve\x00x"}
    for id_, user in users.items():
        post(server, {"id": id_, "username": user})
    shown = {r["id"]: r["user"] for r in pages(server)}
    assert shown["c"] == users["c"] and shown["d"] == "eve\ufffdx"
    assert len(set(shown.values())) == 4 and all(len(shown[i]) == 200 for i in "abc")
    for user in (users["a"], shown["a"]):
        assert [r["id"] for r in pages(server, user=user)] == ["a"]
    assert delete(server, user=users["b"])["reports"] == 1
    assert delete(server, user=shown["a"])["reports"] == 1
    assert delete(server, user="eve\ufffdx")["reports"] == 1
    assert [r["id"] for r in pages(server)] == ["c"]


def test_what_is_no_user(server):
    post(server, {"id": "a"})
    for query, said in (("", "user"), ("user=", "user is empty"),
                        ("user=" + 8193 * "x", "user has 8193 bytes; at most 8192"),
                        ("user=%ff", "UTF-8"), ("user=a&user=b", "user")):
        answer = server.request("POST", f"/oops/delete?{query}")
        assert answer.status == 400 and said in answer.json["error"]["message"], answer
    assert delete(server, user="nobody")["reports"] == 0
    assert [r["id"] for r in pages(server)] == ["a"]
    result = run("fault", "delete", "--server", server.url)
    assert result.returncode == 2 and "--user" in result.stderr


@pytest.mark.parametrize("within", ["", "&within=2h"])
def test_a_group_that_is_open_again_stays_open(server, within):
    """It was muted until three more reports, of which there are five, and none of the user."""
    def sent(name, count):
        send(server, [{"id": f"{name}{n}", "username": name, "fingerprint": ["f"]}
                      for n in range(count)])
    sent(NAME, 20)
    group = pages(server)[0]["group"]
    said = server.request("PUT", f"/oops/groups/{group}?status=muted&until=3{within}")
    assert said.status == 200
    server.pass_awake(3600)  # what came after the hour in which it was said
    sent("bob", 2)
    assert group_of(server, group)["status"] == "muted"
    sent("carl", 3)
    assert (group_of(server, group)["status"], group_of(server, group)["again"]) == ("open", True)
    assert delete(server)["reports"] == 20
    assert (group_of(server, group)["status"], group_of(server, group)["again"]) == ("open", True)
