"""Groups of fault reports against the real server: what they add up to is compared with a count in
Python over what was sent; what people say of them, and which reports open them again; kills, and
requests that make no sense."""

import collections
import itertools
import json
import random
import urllib.parse

from server import run
from test_fault_groups import send
from test_oops import command, day_of, pages

NUMBERS = itertools.count(1)
FACTS = {"release": "release", "environment": "environment", "host": "host", "level": "level",
         "user": "username", "context": "context", "exception": "exception"}


def say(server, group, **params):
    return server.request("PUT", f"/oops/groups/{group}", None, None, **params)


def groups_of(server, **params):
    answer = server.get("/oops/groups", **params)
    assert answer.status == 200, answer
    return answer.json


def group_of(server, group):
    answer = server.get(f"/oops/groups/{group}")
    assert answer.status == 200, answer
    return answer.json


def status_of(server, group):
    """As the list has it, and as the group itself has it."""
    one = group_of(server, group)
    listed = {g["group"]: g for g in groups_of(server)["groups"]}[group]
    assert (listed["status"], listed.get("again")) == (one["status"], one.get("again"))
    return one["status"] + ("+" if one.get("again") else "")


def made(rng, number):
    """Half of the groups have all facts in every report."""
    fault = rng.randrange(20)
    report = {"id": f"OOPS-{number}", "exception": rng.choice(["KeyError", "ValueError"]),
              "fingerprint": [f"fault {fault}"], "value": f"number {number}"}
    for name, most in [("release", 4), ("environment", 2), ("host", 9), ("level", 2),
                       ("username", 30), ("context", 5)]:
        if fault % 2 or rng.random() < 0.8:
            report[name] = f"{name}{rng.randrange(most)}"
    return report


def check_groups(server, sent):
    """`sent`: the reports, in the order in which they were received."""
    listed = {report["id"]: report for report in pages(server, limit=1000)}
    by_group = collections.defaultdict(list)
    for report in sent:
        by_group[listed[report["id"]]["group"]].append(report)
    answer = groups_of(server, limit=1000)
    assert {g["group"] for g in answer["groups"]} == set(by_group)
    assert answer["total"] == len(by_group)
    dates = [g["last"] for g in answer["groups"]]
    assert dates == sorted(dates, reverse=True)
    for group in answer["groups"]:
        reports = by_group[group["group"]]
        ids = [report["id"] for report in reports]
        assert group["count"] == len(reports)
        assert (group["first_id"], group["last_id"]) == (ids[0], ids[-1])
        assert group["first"] == listed[ids[0]]["date"]
        assert group["last"] == listed[ids[-1]]["date"]
        assert group["title"] == f"{reports[0]['exception']}: {reports[0]['value']}"
        assert group["users"] == len({r["username"] for r in reports if "username" in r})
        assert "users_about" not in group
        one = group_of(server, group["group"])
        assert sum(count for _, count in one["days"]) == sum(one["hours"]) == len(reports)
        for fact, name in FACTS.items():
            counts = collections.Counter(r[name] for r in reports if name in r)
            given = one["facts"][fact]
            assert given["distinct"] == len(counts)
            wanted = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            assert [(v["value"], v["count"]) for v in given["values"]] == wanted[:100]
            assert given["rest"] == 0
            for value in given["values"]:
                of_it = [listed[r["id"]]["date"] for r in reports
                         if r.get(name) == value["value"]]
                assert (value["first"], value["last"]) == (of_it[0], of_it[-1])
    return by_group


def test_groups_are_a_count_of_what_was_sent(server):
    """In one server, after a kill, and with what comes after it. Another tenant's stay its own."""
    rng = random.Random(17)
    sent = [made(rng, number) for number in range(600)]
    send(server, sent[:300])
    check_groups(server, sent[:300])
    server.kill()
    server.start()
    check_groups(server, sent[:300])
    send(server, sent[300:])
    by_group = check_groups(server, sent)
    assert groups_of(server, tenant="other") == {"groups": [], "total": 0}
    answer = groups_of(server, sort="count", limit=3)
    assert [g["count"] for g in answer["groups"]] == sorted(
        (len(reports) for reports in by_group.values()), reverse=True)[:3]
    assert answer["total"] == len(by_group)
    wanted = {name for name, reports in by_group.items()
              if any(r.get("host") == "host3" for r in reports)}
    assert {g["group"] for g in groups_of(server, host="host3")["groups"]} == wanted
    for fact, name in FACTS.items():
        wanted = {group for group, reports in by_group.items()
                  if any(name not in report for report in reports)}
        assert {g["group"] for g in groups_of(server, **{fact: ""})["groups"]} == wanted, fact
    assert groups_of(server, until="1d-ago", since="5d-ago")["groups"] == []
    table = command(server, "groups", "-o", "csv").stdout.splitlines()
    assert len(table) == 1 + len(by_group)


def a_group(server, number=1, **attributes):
    """One report of the group; which group that is."""
    name = f"OOPS-s{next(NUMBERS)}"
    send(server, [{"id": name, "fingerprint": [f"g{number}"], "value": "no", **attributes}])
    return server.get(f"/oops/{name}").json["group"]


def test_what_is_resolved_is_opened_by_the_reports_that_should(server):
    group = a_group(server, release="shop@1.9.0")
    assert status_of(server, group) == "open"
    assert say(server, group, status="resolved").json["status"] == "resolved"
    assert status_of(server, group) == "resolved"
    server.kill()
    server.start()
    assert status_of(server, group) == "resolved"
    a_group(server, number=2)  # another group's report
    assert status_of(server, group) == "resolved"
    a_group(server, release="shop@1.9.0")
    assert status_of(server, group) == "open+"
    # In a release: that one and later ones open it, by the numbers and not by the letters.
    say(server, group, status="resolved", **{"in": "shop@1.10.0"})
    for release in ["shop@1.9.7", "shop@1.10.0-rc.1", "shop@1.2.0"]:
        a_group(server, release=release)
        assert status_of(server, group) == "resolved", release
    a_group(server, release="shop@1.10.0+build7")
    assert status_of(server, group) == "open+"
    # In the next one: those that there are do not.
    say(server, group, status="resolved", next="true")
    assert group_of(server, group)["said"]["after"] == "shop@1.10.0+build7"
    a_group(server, release="shop@1.10.0")
    assert status_of(server, group) == "resolved"
    a_group(server, release="shop@2.0")
    assert status_of(server, group) == "open+"
    # The latest is the highest, not the one of the last report.
    a_group(server, release="shop@1.0.0")
    say(server, group, status="resolved", next="true")
    assert group_of(server, group)["said"]["after"] == "shop@2.0"
    assert {g["group"]: g for g in groups_of(server)["groups"]}[group]["release"] == "shop@2.0"
    for release in ["shop@1.0.0", "2.0", "web@1"]:
        a_group(server, release=release)
        assert status_of(server, group) == ("open+" if release == "web@1" else "resolved")
    # Where releases are no versions, the one that came first is the earlier.
    say(server, group, status="resolved", **{"in": "f00dfeed"})
    a_group(server, release="shop@2.0")
    assert status_of(server, group) == "resolved"
    a_group(server, release="cafebabe")
    assert status_of(server, group) == "open+"
    say(server, group, status="resolved", **{"in": "shop@9"})
    a_group(server)  # nobody can say that it has the mend
    assert status_of(server, group) == "open+"
    assert say(server, group, status="open").json["status"] == "open"
    assert status_of(server, group) == "open"


def test_what_is_muted_is_opened_by_so_many_reports(server):
    group = a_group(server)
    say(server, group, status="muted")
    for _ in range(5):
        a_group(server)
    assert status_of(server, group) == "muted"
    for params in ({"until": 3}, {"until": 3, "within": "24h"}):
        say(server, group, status="muted", **params)
        for wanted in ("muted", "muted", "open+"):
            a_group(server)
            assert status_of(server, group) == wanted, params
    listed = groups_of(server, status="open")["groups"]
    assert [g["group"] for g in listed] == [group]
    assert groups_of(server, status="muted") == {"groups": [], "total": 0}


def test_a_group_has_an_assignee_and_bugs(server):
    group = a_group(server)
    say(server, group, assignee="anna")
    say(server, group, tracker="jira", bug="SHOP-1")
    say(server, group, tracker="debbugs", bug="4711", status="resolved")
    one = group_of(server, group)
    assert one["assignee"] == "anna" and one["status"] == "resolved"
    assert one["bugs"] == {"jira": "SHOP-1", "debbugs": "4711"}
    say(server, group, tracker="jira", bug="", assignee="")
    one = group_of(server, group)
    assert "assignee" not in one and one["bugs"] == {"debbugs": "4711"}
    result = command(server, "group", group, "--assignee", "bob", "--tracker", "jira", "--bug",
                     "SHOP-2", "-o", "json")
    assert json.loads(result.stdout)["assignee"] == "bob"
    assert "SHOP-2" in command(server, "group", group).stdout
    for number in range(14):
        assert say(server, group, tracker=f"t{number}", bug="1").status == 200
    assert say(server, group, tracker="one more", bug="1").status == 400


REFUSED = [
    ({}, "nothing is said"),
    ({"status": "gone"}, "status"),
    ({"in": "1.0"}, "status=resolved"),
    ({"status": "muted", "next": "true"}, "status=resolved"),
    ({"status": "resolved", "in": "1", "next": "true"}, "do not go together"),
    ({"status": "resolved", "in": ""}, "empty"),
    ({"status": "open", "until": "3"}, "status=muted"),
    ({"status": "muted", "within": "1h"}, "until"),
    ({"status": "muted", "until": "3", "within": "90m"}, "whole hours"),
    ({"status": "muted", "until": "3", "within": "32d"}, "31 days"),
    ({"status": "muted", "until": "0"}, "until"),
    ({"tracker": "jira"}, "go together"),
    ({"bug": "1"}, "go together"),
    ({"assignee": "a" * 201}, "200"),
    ({"assign": "a"}, "assign"),
    ({"assignee": b"\xff"}, "assignee is not UTF-8"),
    ({"status": "resolved", "in": b"1.0\n"}, "in has a control character"),
]


def test_what_makes_no_sense_is_refused(server):
    group = a_group(server)
    for params, sentence in REFUSED:
        answer = say(server, group, **params)
        assert answer.status == 400 and sentence in answer.text, (params, answer)
    assert "said" not in group_of(server, group)


def test_no_group_is_not_found(server):
    a_group(server)
    for name in ["1-0123456789abcdef0123", "x" * 300, "a/b", urllib.parse.quote("é")]:
        assert server.get(f"/oops/groups/{name}").status == 404
        assert say(server, name, status="resolved").status == 404
    assert server.get("/oops/groups/").json == groups_of(server)
    assert run("fault", "group", "--server", server.url, "1-none").returncode == 1
    for params in ({"since": "500d-ago"}, {"since": "now", "until": "1h-ago"}, {"limit": 0},
                   {"sort": "size"}, {"status": "new"}):
        assert server.get("/oops/groups", **params).status == 400, params


def test_many_groups_of_a_day_meet_their_bound(server):
    """The first of them are counted, the reports of all are kept."""
    server.configure("fault.groups_max: 5\n")
    server.restart()
    reports = [{"id": f"OOPS-m{n}", "fingerprint": [f"m{n % 8}"]} for n in range(40)]
    for report in reports:
        send(server, [report])
    answer = groups_of(server)
    assert {g["last_id"] for g in answer["groups"]} == {f"OOPS-m{32 + n}" for n in range(5)}
    assert {g["count"] for g in answer["groups"]} == {5}
    assert len(pages(server)) == 40
    assert day_of(server)["groups_rest"] == 15
