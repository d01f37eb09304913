"""Which bug a fault report is, as people say it when the report is there: what is shown is compared
with a dictionary in Python of what was sent and said."""

import random

import pytest

from server import run
from test_fault_groups import send
from test_oops import command, post, report_of


def say(server, name, tracker, bug, **params):
    return server.request("POST", f"/oops/{name}/bug", None, None, tracker=tracker, bug=bug,
                          **params)


def bugs_of(report):
    return {name.removeprefix("bug."): value for name, value in report.items()
            if name.startswith("bug.")}


def sentence(answer, status):
    assert answer.status == status, answer
    return answer.json["error"]["message"]


def test_what_is_said_wins_over_what_was_sent(server):
    sent = {"id": "OOPS-7f3c", "context": "/a", "bug.lp": "1", "bug.jira": "SHOP-1"}
    assert post(server, sent).status == 201
    plain = report_of(server, "7f3c")
    for tracker, bug, bugs in [("lp", "2", {"lp": "2", "jira": "SHOP-1"}),
                               ("gnats", "\u00fc/&?", {"lp": "2", "jira": "SHOP-1",
                                                     "gnats": "\u00fc/&?"}),
                               ("jira", "", {"lp": "2", "gnats": "\u00fc/&?"}),
                               ("none", "", {"lp": "2", "gnats": "\u00fc/&?"}),
                               ("gnats", "", {"lp": "2"}), ("lp", "", {}),
                               ("lp", "3", {"lp": "3"}), ("jira", "SHOP-2",
                                                          {"lp": "3", "jira": "SHOP-2"})]:
        answer = say(server, "oops-7F3C", tracker, bug)  # as people write ids
        assert answer.status == 200, answer
        assert bugs_of(answer.json) == bugs
        assert answer.json == report_of(server, "OOPS-7f3c")
        rest = {name: value for name, value in answer.json.items() if "bug." not in name}
        assert rest == {name: value for name, value in plain.items() if "bug." not in name}
    server.kill()
    server.start()
    assert bugs_of(report_of(server, "7f3c")) == {"lp": "3", "jira": "SHOP-2"}
    # What was sent is what makes it the same report.
    assert post(server, sent).status == 200
    assert post(server, sent | {"bug.lp": "3", "bug.jira": "SHOP-2"}).status == 409


def test_command(server):
    post(server, {"id": "OOPS-1", "context": "/a"})
    shown = command(server, "bug", "1", "launchpad", "1234", "-o", "csv")
    assert shown.returncode == 0 and "bug.launchpad,1234" in shown.stdout.splitlines(), shown
    assert "bug.launchpad,1234" in command(server, "show", "1", "-o", "csv").stdout
    assert "bug." not in command(server, "bug", "1", "launchpad", "").stdout
    missing = run("fault", "bug", "2", "lp", "1", "--server", server.url)
    assert missing.returncode == 1 and "there is no report 2" in missing.stderr, missing


def test_bounds(server):
    post(server, {"id": "x" * 200, "context": "/a"})
    name = "x" * 200
    trackers = {f"{number:02}" + "t" * 98: "b" * 200 for number in range(16)}
    for tracker, bug in trackers.items():
        assert say(server, name, tracker, bug).status == 200
    assert bugs_of(report_of(server, name)) == trackers
    assert "has bugs of 16 trackers" in sentence(say(server, name, "lp", "1"), 400)
    tracker = min(trackers)
    assert say(server, name, tracker, "2").status == 200
    assert say(server, name, tracker, "").status == 200  # and there is room
    assert say(server, name, "lp", "1").status == 200
    assert bugs_of(report_of(server, name)) == {"lp": "1"} | {
        other: bug for other, bug in trackers.items() if other != tracker}


@pytest.mark.parametrize("path, status, words", [
    ("OOPS-1/bug?tracker=lp", 400, "tracker and bug go together"),
    ("OOPS-1/bug?bug=1", 400, "tracker and bug go together"),
    ("OOPS-1/bug?tracker=&bug=1", 400, "tracker and bug go together"),
    ("OOPS-1/bug?tracker=" + "t" * 101 + "&bug=1", 400, "tracker"),
    ("OOPS-1/bug?tracker=lp&bug=" + "b" * 201, 400, "bug"),
    ("OOPS-1/bug?tracker=l%0Ap&bug=1", 400, "tracker has a control character"),
    ("OOPS-1/bug?tracker=lp&bug=%7f", 400, "bug has a control character"),
    ("OOPS-1/bug?tracker=%ff&bug=1", 400, "tracker is not UTF-8"),
    ("OOPS-1/bug?tracker=lp&bug=1&by=anna", 400, "by"),
    ("OOPS-2/bug?tracker=lp&bug=1", 404, "there is no report OOPS-2"),
    ("OOPS-1/bug?tracker=lp&bug=1&tenant=other", 404, "there is no report OOPS-1"),
    ("a%20b/bug?tracker=lp&bug=1", 404, "there is no report a b"),
    ("OOPS-1/bugs?tracker=lp&bug=1", 404, "there is nothing at"),
    ("OOPS-1?tracker=lp&bug=1", 404, "there is nothing at"),
])
def test_what_is_wrong_is_said(server, path, status, words):
    post(server, {"id": "OOPS-1", "context": "/a"})
    assert words in sentence(server.request("POST", f"/oops/{path}"), status)
    assert bugs_of(report_of(server, "OOPS-1")) == {}


def test_many_reports_with_kills(server):
    chance = random.Random(17)
    names = [f"OOPS-{number}" for number in range(50)]
    sent = [{"id": name, "context": "/a"} | {f"bug.t{tracker}": f"of {name}"
                                             for tracker in range(chance.randrange(3))}
            for name in names]
    send(server, sent)
    bugs = {report["id"]: bugs_of(report) for report in sent}
    for number in range(300):
        name, tracker = chance.choice(names), f"t{chance.randrange(4)}"
        bug = chance.choice(["", f"said {number}"])
        assert say(server, name, tracker, bug).status == 200
        bugs[name][tracker] = bug
        if not bug:
            del bugs[name][tracker]
        if number % 100 == 50:
            server.kill()
            server.start()
    assert {name: bugs_of(report_of(server, name)) for name in names} == bugs


def test_bugs_of_a_user_who_is_removed(server):
    post(server, {"id": "OOPS-1", "username": "anna"})
    assert say(server, "OOPS-1", "lp", "1").status == 200
    answer = server.request("POST", "/oops/delete?user=anna")
    assert (answer.status, answer.json["reports"]) == (200, 1), answer
    assert server.get("/oops/OOPS-1").status == 404
    assert "report OOPS-1 was removed" in sentence(say(server, "OOPS-1", "lp", "2"), 404)
