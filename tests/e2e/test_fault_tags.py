"""Tags of reports, and what those of a group add up to: a group's page is compared with a count in
Python over what was sent, by events of Sentry's clients and by POST /oops."""

import collections
import json
import random

from server import eventually
from test_fault_groups import send as send_reports
from test_fault_states import group_of, groups_of
from test_oops import command, pages
from test_sentry import envelope, projects_of, send

TAGS_MAX, NAME_MAX, VALUE_MAX, KEPT_MAX = 20, 32, 200, 100


def counts_of(reports):
    """How many of them have a tag; of one that a report has twice it counts once."""
    counts = collections.Counter()
    for report in reports:
        tags = report.get("tags", {})
        counts.update({(name, str(value)) for name, value in
                       (tags.items() if isinstance(tags, dict) else tags)})
    return counts


def shown(group):
    return [(tag["key"], tag["value"], tag["count"]) for tag in group["facts"]["tags"]["values"]]


def most_first(counts):
    """Of as many reports by name and value, in bytes; a name is before one that begins so."""
    return [(*tag, count) for tag, count in sorted(
        counts.items(), key=lambda one: (-one[1], [text.encode() + b"\xff" for text in one[0]]))]


def check_tags(group, reports, dates):
    counts, tags = counts_of(reports), group["facts"]["tags"]
    assert shown(group) == most_first(counts)
    assert (tags["distinct"], tags["rest"]) == (len(counts), 0) and "about" not in tags
    for tag in tags["values"]:
        of_it = [dates[report["id"]] for report in reports
                 if (tag["key"], tag["value"]) in counts_of([report])]
        assert (tag["first"], tag["last"]) == (min(of_it), max(of_it))


def test_tags_are_a_count_of_what_was_sent(server):
    """By both doors, in both shapes, in one server, after a kill, and with what comes after it."""
    rng, sent = random.Random(17), []
    key = projects_of(server)[0]["keys"][0]
    for number in range(200):
        tags = {name: rng.choice([f"{name}{rng.randrange(most)}", rng.randrange(3), "ä=1,b:2"])
                for name, most in [("browser", 4), ("os.name", 9), ("shard", 2)]
                if rng.random() < 0.7}
        report = {"id": f"{number:032x}", "fingerprint": [f"g{number % 3}"], "message": "no"}
        if number % 4:
            report["tags"] = tags if number % 2 else [*tags.items(), *list(tags.items())[:1]]
        sent.append(report)
        if number % 5:
            send_reports(server, [report])
        else:
            event = {"event_id": report["id"], **report}
            del event["id"]
            answer = send(server, envelope(("event", event), event_id=report["id"]), key)
            assert answer.status == 200, answer
        if number in (99, 150):
            server.kill()
            server.start()
    listed = {report["id"]: report for report in pages(server, limit=1000)}
    assert len(listed) == len(sent) and not any("tags" in report for report in listed.values())
    by_group = collections.defaultdict(list)
    for report in sent:
        by_group[listed[report["id"]]["group"]].append(report)
    assert len(by_group) == 3
    dates = {name: report["date"] for name, report in listed.items()}
    for name, reports in by_group.items():
        check_tags(group_of(server, name), reports, dates)
    names = list(by_group)
    table = command(server, "group", names[0], "-o", "csv").stdout.splitlines()
    for tag, value, count in most_first(counts_of(by_group[names[0]])):
        quoted = f'"{value}"' if "," in value else value
        assert [line for line in table if line.startswith(f"tags.{tag},{quoted},{count},")]
    assert server.request("POST", f"/oops/groups/{names[0]}/merge", None, None,
                          into=names[1]).status == 200
    check_tags(group_of(server, names[0]), by_group[names[0]] + by_group[names[1]], dates)
    found = pages(server, q='browser:browser1', limit=1000)
    assert len(found) == sum("browser1" == dict(r.get("tags", {})).get("browser") for r in sent)
    assert server.get("/oops", format="csv").body.splitlines()[0].endswith(b",title")


def test_a_tag_with_very_many_values_does_not_hide_the_others(server):
    """Each that is kept has been counted from its first report on; the rest is told."""
    rng = random.Random(17)
    sent = [{"id": f"OOPS-{number}", "fingerprint": ["g"], "message": "no",
             "tags": {"request": f"r{rng.randrange(500)}", "number": number % 7}}
            for number in range(1500)]
    send_reports(server, sent)
    counts = counts_of(sent)
    (group,) = groups_of(server)["groups"]
    tags = group_of(server, group["group"])["facts"]["tags"]
    values = {(tag["key"], tag["value"]): tag["count"] for tag in tags["values"]}
    assert len(counts) > 400 and len(values) == len(tags["values"]) == KEPT_MAX
    assert all(counts[tag] == count for tag, count in values.items())
    assert {tag for tag in values if tag[0] == "number"} == {("number", f"{n}") for n in range(7)}
    assert tags["rest"] == sum(counts.values()) - sum(values.values())
    assert tags["about"] and len(counts) * 0.6 < tags["distinct"] < len(counts) * 1.4


def test_limits_of_tags(server):
    """Twenty of a report, the first by name; names and values are cut between characters."""
    long = {"a" * (NAME_MAX - 1) + "é": "v" * VALUE_MAX, "b" * 40: "v" * (VALUE_MAX - 1) + "é"}
    many = {f"n{number:02}": "v" for number in range(25)}
    send_reports(server, [{"id": "OOPS-long", "fingerprint": ["long"], "tags": long},
                          {"id": "OOPS-many", "fingerprint": ["many"], "tags": many},
                          {"id": "OOPS-none", "fingerprint": ["none"], "tags": ["a", ["b"], 7]}])
    of = {report["id"]: group_of(server, report["group"]) for report in pages(server)}
    assert shown(of["OOPS-long"]) == [("a" * (NAME_MAX - 1), "v" * VALUE_MAX, 1),
                                      ("b" * NAME_MAX, "v" * (VALUE_MAX - 1), 1)]
    assert shown(of["OOPS-many"]) == [(name, "v", 1) for name in sorted(many)[:TAGS_MAX]]
    assert shown(of["OOPS-none"]) == []
    assert server.get("/oops/OOPS-many").json["tags"] == many


def test_secrets_and_users_are_in_no_tag(server):
    """A secret is masked before it is a tag. A tag with the name of a user whose reports are
    erased goes with them."""
    send_reports(server, [
        {"id": "OOPS-1", "fingerprint": ["g"], "username": "anna",
         "tags": {"password": "s3cret", "who": "anna", "shard": "1"}},
        {"id": "OOPS-2", "fingerprint": ["g"], "username": "bob", "tags": {"shard": "1"}}])
    (group,) = {report["group"] for report in pages(server)}
    assert sorted(shown(group_of(server, group))) == [
        ("password", "<hidden>", 1), ("shard", "1", 2), ("who", "anna", 1)]
    done = json.loads(command(server, "delete", "--user", "anna", "-o", "json").stdout)
    assert done["reports"] == 1
    eventually(lambda: shown(group_of(server, group)) == [("shard", "1", 1)], "anna's tags go")
    assert b"anna" not in server.get(f"/oops/groups/{group}").body
