"""Merging groups of fault reports, and splitting them off again, against the real server. What
groups add up to is compared with a count in Python over what was sent; a model says which group
stands for which."""

import collections
import concurrent.futures
import json
import random
import time

import pytest

from server import eventually, run
from test_clock import HOOK, ClockServer
from test_fault_gc import DAY_S, let_age
from test_fault_groups import send
from test_fault_live import Viewer
from test_fault_messages import messages_of
from test_fault_states import check_groups, group_of, groups_of, made, say, status_of
from test_oops import command, pages, report_of


def merge(server, group, into, **params):
    return server.request("POST", f"/oops/groups/{group}/merge", None, None, into=into, **params)


def split(server, group, **params):
    return server.request("POST", f"/oops/groups/{group}/split", None, None, **params)


def done(answer):
    assert answer.status == 200, answer
    return answer.json


class Model:
    """Which group stands for which."""

    def __init__(self):
        self.into = {}

    def root(self, group):
        while group in self.into:
            group = self.into[group]
        return group

    def members(self, root):
        return sorted(group for group in self.into if self.root(group) == root)

    def merge(self, group, into):
        self.into[group] = self.root(into)


class Sent:
    """Reports, in the order in which they were sent, each with the group of its own."""

    def __init__(self, server):
        self.server, self.reports, self.own = server, [], {}

    def send(self, reports):
        send(self.server, reports)
        self.reports += reports
        for report in reports:
            if report["id"] not in self.own:
                why = self.server.get(f"/oops/{report['id']}/why").json
                self.own[report["id"]] = why.get("own_group", why["group"])

    def of(self, groups):
        return [r for r in self.reports if self.own[r["id"]] in groups]

    def groups(self):
        return sorted(set(self.own.values()))


def check(server, sent, model):
    """Lists, groups and single groups have each report in the group that stands for its own."""
    listed = {report["id"]: report["group"] for report in pages(server, limit=1000)}
    assert listed == {name: model.root(own) for name, own in sent.own.items()}
    check_groups(server, sent.reports)
    for group in sent.groups():
        root = model.root(group)
        one = group_of(server, group)
        assert one["group"] == root and one["merged"] == model.members(root)
        assert one.get("asked") == (group if group != root else None)
        assert one["count"] == len(sent.of([root, *model.members(root)]))


def shown(reports, listed):
    """What a change says of a group, counted here."""
    dates = [listed[r["id"]]["date"] for r in reports]
    users = {report["username"] for report in reports if "username" in report}
    return {"count": len(reports), "users": len(users), "first": dates[0],
            "first_id": reports[0]["id"], "last": dates[-1], "last_id": reports[-1]["id"],
            "days": len({date // (1000 * DAY_S) for date in dates}),
            "title": f"{reports[0]['exception']}: {reports[0]['value']}"}


def check_change(server, sent, answer, moves, becomes, names):
    listed = {report["id"]: report for report in pages(server, limit=1000)}
    assert answer["moves"] == {"group": moves, **shown(sent.of(names[0]), listed)}
    assert answer["becomes"] == {"group": becomes, **shown(sent.of(names[1]), listed)}


def test_groups_are_a_count_over_what_is_merged(server):
    """Merged and split at random, with reports that come in between, and kills."""
    chance, model, sent = random.Random(23), Model(), Sent(server)
    sent.send([made(chance, number) for number in range(200)])
    groups = sent.groups()
    check(server, sent, model)
    for step in range(40):
        if step % 4 == 3 and model.into:
            group = chance.choice(sorted(model.into))
            done(split(server, group))
            del model.into[group]
        else:
            group, into = chance.sample(groups, 2)
            answer = merge(server, group, into)
            if model.root(into) == group or (group in model.into and
                                             model.root(group) != model.root(into)):
                assert answer.status == 409, answer
            else:
                done(answer)
                if group not in model.into:
                    model.merge(group, into)
        if step % 10 == 5:
            sent.send([made(chance, len(sent.reports) + n) for n in range(20)])
            check(server, sent, model)
        if step % 10 == 9:
            server.kill()
            server.start()
            check(server, sent, model)
    assert len(model.into) > 5
    for group in sorted(model.into):
        done(split(server, group))
    check(server, sent, Model())


def test_a_dry_run_says_what_would_become_of_them(server):
    chance, sent = random.Random(5), Sent(server)
    sent.send([made(chance, number) for number in range(100)])
    a, b, c = sent.groups()[:3]
    answer = done(merge(server, a, b, dryRun="true"))
    assert answer["dry_run"] is True
    check_change(server, sent, answer, a, b, ([a], [a, b]))
    assert {**answer, "dry_run": False} == done(merge(server, a, b))
    answer = done(merge(server, b, c, dryRun="true"))
    check_change(server, sent, answer, b, c, ([a, b], [a, b, c]))
    assert group_of(server, b)["merged"] == [a] and group_of(server, c)["merged"] == []
    done(merge(server, b, c))
    answer = done(split(server, b, dryRun="true"))
    check_change(server, sent, answer, b, c, ([a, b], [c]))
    assert group_of(server, c)["merged"] == sorted([a, b])
    answer = done(split(server, a))
    assert answer["dry_run"] is False
    check_change(server, sent, answer, a, c, ([a], [b, c]))
    assert group_of(server, c)["merged"] == [b]
    model = Model()
    model.merge(b, c)
    check(server, sent, model)


def one_each(server, *names):
    """A report of each fault; their groups."""
    send(server, [{"id": f"{name}1", "fingerprint": [name], "value": name} for name in names])
    return [report_of(server, f"{name}1")["group"] for name in names]


def test_lists_searches_and_streams_know_a_group_by_each_name(server):
    a, b, c = one_each(server, "a", "b", "c")
    done(merge(server, a, b))
    send(server, [{"id": "a2", "fingerprint": ["a"], "value": "again"}])
    both = {"a1", "a2", "b1"}

    def found(**params):
        return {report["id"] for report in pages(server, **params)}

    for name in (a, b):
        assert found(group=name) == both
        assert found(q=f"group:{name}") == both
        assert found(q=f"group:{name} again") == {"a2"}
        assert found(q=f"-group:{name}") == {"c1"}
        listed = json.loads(command(server, "list", "--group", name, "-o", "json").stdout)
        assert {r["id"] for r in listed["reports"]} == both
        assert {r["group"] for r in listed["reports"]} == {b}
    assert found(group=c) == {"c1"} == found(q=f"group:{c}")
    assert report_of(server, "a1")["group"] == b
    why = server.get("/oops/a1/why").json
    assert (why["group"], why["own_group"], why["hashes"]["application"]) == (b, a, a)
    assert "own_group" not in server.get("/oops/b1/why").json
    printed = command(server, "why", "a1").stdout
    assert a in printed and b in printed
    with Viewer(server, f"group={a}") as first, Viewer(server, f"group={b}") as second, \
            Viewer(server, f"group={c}") as third:
        for viewer in (first, second, third):
            viewer.until_ready()
        send(server, [{"id": "a3", "fingerprint": ["a"]}, {"id": "b2", "fingerprint": ["b"]},
                      {"id": "c2", "fingerprint": ["c"]}])
        for viewer in (first, second):
            events, _ = viewer.take(2)
            assert [(e.data["id"], e.data["group"]) for e in events] == [("a3", b), ("b2", b)]
        last = third.take(1)[0][0]
        assert (last.data["id"], last.data["group"]) == ("c2", c)
        # While they watch: c is a part of b from now on, and a is none any more.
        done(merge(server, c, b))
        done(split(server, a))
        send(server, [{"id": "c3", "fingerprint": ["c"]}, {"id": "a4", "fingerprint": ["a"]},
                      {"id": "b3", "fingerprint": ["b"]}])
        assert [e.data["id"] for e in first.take(1)[0]] == ["a4"]
        assert [e.data["id"] for e in second.take(2)[0]] == ["c3", "b3"]
    with Viewer(server, f"group={c}", last=last.id) as again:
        assert [e.data["id"] for e in again.until_ready()] == ["c3", "b3"]


def test_what_is_said_of_the_one_counts_for_all(server):
    a, b, c = one_each(server, "a", "b", "c")
    done(say(server, a, status="resolved", assignee="anna", tracker="jira", bug="A-1"))
    done(say(server, b, assignee="bob", tracker="jira", bug="B-1"))
    done(merge(server, a, b))
    one = group_of(server, a)
    assert (one["status"], one["assignee"], one["bugs"]) == ("open", "bob", {"jira": "B-1"})
    assert {g["group"] for g in groups_of(server, status="open")["groups"]} == {b, c}
    # It is said of the group that stands for both, whichever name is given.
    assert say(server, a, status="resolved").json["group"] == b
    assert status_of(server, b) == "resolved"
    send(server, [{"id": "a2", "fingerprint": ["a"]}])
    assert status_of(server, b) == "open+"
    assert say(server, b, status="muted", until=2).status == 200
    send(server, [{"id": "b2", "fingerprint": ["b"]}])
    assert status_of(server, b) == "muted"
    # What it gets by a merge came before, or in the hour in which it was said.
    send(server, [{"id": f"c{n}", "fingerprint": ["c"]} for n in range(2, 12)])
    done(merge(server, c, b))
    assert status_of(server, b) == "muted"
    done(split(server, c))
    send(server, [{"id": "a3", "fingerprint": ["a"]}])
    assert status_of(server, b) == "open+"
    done(split(server, a))
    one = group_of(server, a)
    assert (one["assignee"], one["bugs"]) == ("anna", {"jira": "A-1"})
    assert status_of(server, a) == "open+"  # it has reports since
    assert group_of(server, b)["assignee"] == "bob"


def test_old_reports_that_are_merged_into_it_do_not_open_a_group(server):
    a, b = one_each(server, "a", "b")
    assert say(server, b, status="resolved").status == 200
    done(merge(server, a, b))
    assert status_of(server, b) == "resolved"
    done(split(server, a))
    send(server, [{"id": "a2", "fingerprint": ["a"]}])
    assert status_of(server, b) == "resolved"
    done(merge(server, a, b))  # a2 came after it was resolved
    assert status_of(server, b) == "open+"


def test_messages_are_of_the_group_that_stands_for_it(server):
    a, b = one_each(server, "a", "b")
    eventually(lambda: len(messages_of(server, kind="new")) == 2)
    done(merge(server, a, b))
    assert say(server, b, status="resolved").status == 200
    send(server, [{"id": "a2", "fingerprint": ["a"]}])
    eventually(lambda: messages_of(server, kind="regressed"))
    [told] = messages_of(server, kind="regressed")
    assert (told["group"], told["report"], told["reports"]) == (b, "a2", 3)
    done(split(server, a))
    server.restart()
    # Whatever the server looks at: the next group is told of last.
    [c] = one_each(server, "c")
    eventually(lambda: len(messages_of(server, kind="new")) == 3)
    assert collections.Counter((m["kind"], m["group"]) for m in messages_of(server)) == {
        ("new", a): 1, ("new", b): 1, ("new", c): 1, ("regressed", b): 1}


def test_merged_both_ways_at_once(make_server):
    """One of them comes first, and the other one is refused."""
    server = make_server()
    server.start()
    names = [f"f{n}" for n in range(40)]
    groups = one_each(server, *names)

    def ask(pair):
        return run("fault", "merge", "--server", server.url, *pair).returncode

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        pairs = [pair for n in range(0, 40, 2)
                 for pair in ((groups[n], groups[n + 1]), (groups[n + 1], groups[n]))]
        results = list(pool.map(ask, pairs))
    for n in range(0, 40, 2):
        assert sorted(results[n:n + 2]) == [0, 1]
        group, into = pairs[n] if results[n] == 0 else pairs[n + 1]
        assert group_of(server, group)["group"] == into
        assert group_of(server, into)["merged"] == [group]
    assert groups_of(server)["total"] == 20
    assert sum(g["count"] for g in groups_of(server)["groups"]) == 40


def test_what_makes_no_sense_is_refused(server):
    a, b, c = one_each(server, "a", "b", "c")
    none = "1-0123456789abcdef0123"
    done(merge(server, a, b))
    for answer, status, sentence in [
            (merge(server, a, a), 400, f"group {a} cannot be merged into itself"),
            (merge(server, c, none), 404, f"there is no group {none}"),
            (merge(server, none, c), 404, f"there is no group {none}"),
            (split(server, none), 404, f"there is no group {none}"),
            (merge(server, b, a), 409, f"group {b} cannot be merged into a group that is merged"),
            (merge(server, a, c), 409, f"group {a} is merged into {b}; it is to be split off"),
            (split(server, b), 409, f"group {b} is not merged into another one"),
            (merge(server, c, "x" * 201), 400, "200"),
            (merge(server, c, b"\xff"), 400, "UTF-8"),
            (merge(server, c, ""), 400, "into is missing"),
            (split(server, a, into=b), 400, "into goes with merge"),
            (merge(server, c, b, dry="true"), 400, "dry"),
            (merge(server, "x" * 300, b), 404, "there is nothing"),
            (server.request("POST", f"/oops/groups/{a}"), 404, "there is nothing"),
            (server.request("POST", f"/oops/groups/{a}/join"), 404, "there is nothing")]:
        assert answer.status == status and sentence in answer.text, answer
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = server.request("POST", f"/oops/groups/{c}/merge?into={b}", None, headers)
        assert answer.status == 403, answer
    assert group_of(server, b)["merged"] == [a] and group_of(server, c)["group"] == c
    done(merge(server, a, b))  # as it is already
    assert group_of(server, b)["count"] == 2
    other = {"X-Tenant": "other"}
    assert server.request("POST", f"/oops/groups/{a}/split", None, other).status == 404
    assert run("fault", "split", "--server", server.url, c).returncode == 1


def test_a_group_whose_reports_have_all_been_deleted(server):
    """It stands for others all the same, and is split off."""
    a, b, c = one_each(server, "a", "b", "c")
    send(server, [{"id": f"{name}2", "fingerprint": [name], "username": f"of {name}"}
                  for name in "de"])
    d, e = (report_of(server, f"{name}2")["group"] for name in "de")
    for group, into in ((a, d), (e, b)):
        done(merge(server, group, into))
    for name in "de":
        assert run("fault", "delete", "--user", f"of {name}", "--server",
                   server.url).returncode == 0
    assert {g["group"]: g["count"] for g in groups_of(server)["groups"]} == {d: 1, b: 1, c: 1}
    done(merge(server, c, d))
    assert group_of(server, a)["count"] == 2
    answer = done(split(server, e))
    assert answer["moves"] == {"group": e, "days": 0} and answer["becomes"]["count"] == 1
    assert server.get(f"/oops/groups/{e}").status == split(server, e).status == 404
    done(split(server, a))
    done(split(server, c))
    assert {g["group"]: g["count"] for g in groups_of(server)["groups"]} == {a: 1, b: 1, c: 1}


def test_the_command_line(server):
    a, b = one_each(server, "a", "b")
    send(server, [{"id": "a2", "fingerprint": ["a"], "username": "anna"}])

    def rows(*arguments):
        lines = command(server, *arguments, "-o", "csv").stdout.splitlines()
        return [line.split(",")[:5] for line in lines]

    wanted = [["what", "group", "count", "days", "users"], ["moves", a, "2", "1", "1"],
              ["becomes", b, "3", "1", "1"]]
    assert rows("merge", a, b, "--dry-run") == wanted
    assert group_of(server, a)["group"] == a
    assert rows("merge", a, b) == wanted
    printed = [line.split(",")[:2] for line in
               command(server, "group", b, "-o", "csv").stdout.splitlines()]
    assert ["merged", a] in printed
    wanted[2] = ["becomes", b, "1", "1", "0"]
    assert rows("split", a, "--dry-run") == wanted
    assert group_of(server, a)["group"] == b
    assert rows("split", a) == wanted
    assert group_of(server, a)["group"] == a


def test_so_many_groups_can_be_merged(server):
    """A hundred into one, and all others in pairs."""
    send(server, [{"id": f"f{n}", "fingerprint": [f"f{n}"]} for n in range(101 + 2 * 900 + 2)])
    groups = [report["group"] for report in pages(server, limit=1000)]
    root, *others = groups[:101]
    pairs = list(zip(groups[101::2], groups[102::2]))
    for group in others:
        done(merge(server, group, root))
    for group, into in pairs[:900]:
        done(merge(server, group, into))
    answer = merge(server, *pairs[900])
    assert answer.status == 422 and "1000 groups are merged into others" in answer.text, answer
    one = group_of(server, root)
    assert one["count"] == 101 and one["merged"] == sorted(others)
    assert groups_of(server)["total"] == 1 + 900 + 2
    assert len(pages(server, limit=1000, group=others[7])) == 101
    assert len(pages(server, limit=1000, q=f"group:{others[7]}")) == 101
    done(split(server, others[0]))
    done(merge(server, *pairs[900]))
    assert group_of(server, pairs[900][0])["count"] == 2


# ---- Over days -----------------------------------------------------------------------------------


@pytest.fixture
def clock_server(tmp_path):
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "fault:\n  list: 1\n")
    server.start()
    server.pass_awake(DAY_S + DAY_S // 2 - int(time.time()) % DAY_S)  # far from midnight
    yield server
    server.kill()


def day_groups(server, day, section):
    answer = done(server.get(f"/oops/days/{day}/report"))
    [found] = [s for s in answer["sections"] if s["section"] == section]
    return {g["group"]: (g["count"], g["before"]) for g in found["groups"]}


def fill_days(server):
    """Three days: a has 2, 3 and 0 reports, b 0, 1 and 4, c 0, 0 and 5, d 1, 0 and 0."""
    for day, counts in enumerate([{"a": 2, "d": 1}, {"a": 3, "b": 1}, {"b": 4, "c": 5}]):
        if day:
            server.pass_awake(DAY_S)
        send(server, [{"id": f"{name}{day}{n}", "fingerprint": [name], "exception": "KeyError",
                       "value": f"all of {name}{day}{n}", "username": f"{name}{n}"}
                      for name, count in counts.items() for n in range(count)])
    return [report_of(server, name)["group"] for name in ("a00", "b10", "c20", "d00")]


def test_over_days_and_in_the_daily_report(clock_server):
    """What is sealed is searched by its filters; what is collected still counts."""
    server = clock_server
    a, b, c, d = fill_days(server)
    dates = sorted({report["date"] // (1000 * DAY_S) for report in pages(server, limit=1000)})
    days = [time.strftime("%Y%m%d", time.gmtime(date * DAY_S)) for date in dates]
    assert day_groups(server, days[1], "new") == {b: (1, 0)}
    assert day_groups(server, days[2], "new") == {c: (5, 0)}
    answer = done(merge(server, a, b))
    assert (answer["moves"]["days"], answer["moves"]["count"]) == (2, 5)
    assert (answer["becomes"]["days"], answer["becomes"]["count"]) == (3, 10)
    assert group_of(server, a)["days"] == [[days[0], 2], [days[1], 4], [days[2], 4]]
    assert day_groups(server, days[0], "new") == {b: (2, 0), d: (1, 0)}
    assert day_groups(server, days[1], "new") == {}
    assert day_groups(server, days[1], "exceptions") == {b: (4, 2)}
    assert day_groups(server, days[2], "exceptions") == {b: (4, 4), c: (5, 0)}
    done(merge(server, d, c))
    assert day_groups(server, days[0], "new") == {b: (2, 0), c: (1, 0)}
    assert day_groups(server, days[2], "new") == {}  # d has a report of two days before
    done(say(server, b, tracker="jira", bug="B-1", status="resolved"))
    send(server, [{"id": "a20", "fingerprint": ["a"], "exception": "KeyError"}])
    report = done(server.get(f"/oops/days/{days[2]}/report"))
    [shown_b] = [g for s in report["sections"] if s["section"] == "exceptions"
                 for g in s["groups"] if g["group"] == b]
    assert (shown_b["status"], shown_b["again"], shown_b["count"]) == ("open", True, 5)
    let_age(server)
    for name in (a, b):
        for params in ({"group": name}, {"q": f"group:{name}"}):
            assert len(pages(server, limit=1000, **params)) == 11
        assert [r["id"] for r in pages(server, q=f"group:{name} a12")] == ["a12"]
        assert len(pages(server, q=f"-group:{name}")) == 6
    # All of a has the bug of b. Of c and of d the first and the newest stay.
    gone = {"before": "1d-ago", "newest": 1, "dryRun": "true"}
    assert server.request("POST", "/oops/gc", None, None, **gone).json["reports"] == 3
    done(split(server, a))
    # And without it a01, a10, a11 and a12 go, too.
    assert server.request("POST", "/oops/gc", None, None, **gone).json["reports"] == 7
    assert group_of(server, a)["days"] == [[days[0], 2], [days[1], 3], [days[2], 1]]
    assert group_of(server, b)["days"] == [[days[1], 1], [days[2], 4]]
