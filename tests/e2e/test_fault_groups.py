"""Groups of fault reports through the server: hundreds of traces as several languages write them,
of which it is known what they are of (fault_traces.py), lists of a group, and why a report is in
it."""

import collections
import json
import re

import fault_traces
from server import run
from test_oops import command, pages, post, report_of

TRACES_MIN = 300


def send(server, reports):
    for at in range(0, len(reports), 100):
        answer = post(server, reports[at:at + 100])
        assert answer.status == 200, answer
        assert all(item["result"] == "taken" for item in answer.json["results"])


def test_traces_are_grouped_by_what_failed(server):
    made = fault_traces.reports()
    assert len(made) >= TRACES_MIN
    fault_of = {f"OOPS-{number}": fault for number, (fault, _) in enumerate(made)}
    send(server, [{**report, "id": f"OOPS-{number}"} for number, (_, report) in enumerate(made)])
    groups, faults = collections.defaultdict(set), collections.defaultdict(set)
    for report in pages(server, limit=1000):
        groups[fault_of[report["id"]]].add(report["group"])
        faults[report["group"]].add(fault_of[report["id"]])
    assert len(groups) == len(set(fault_of.values()))
    assert {fault: found for fault, found in groups.items() if len(found) > 1} == {}
    assert {group: found for group, found in faults.items() if len(found) > 1} == {}


def test_a_group_is_listed_and_explained(server):
    trace = ('Traceback (most recent call last):\n'
             '  File "/srv/web/shop/views.py", line {}, in pay\n    no()\nKeyError: {}\n')
    reports = [{"id": f"OOPS-a{n}", "exception": "KeyError", "value": f"{n}",
                "tb_text": trace.format(n, n)} for n in range(3)]
    other = {"id": "OOPS-b", "exception": "KeyError", "value": "1", "fingerprint": ["mine"],
             "group": "of the sender"}
    send(server, reports + [other])
    shown = report_of(server, "OOPS-a1")
    group = shown["group"]
    assert group.startswith("1-") and len(group) == 22 and shown["title"] == "KeyError: 1"
    assert {report["id"] for report in pages(server, group=group)} == {r["id"] for r in reports}
    assert report_of(server, "OOPS-b")["reported.group"] == "of the sender"
    why = server.get("/oops/a1/why")
    assert why.status == 200, why
    assert {key: why.json[key] for key in ("id", "group", "rule", "words")} == {
        "id": "OOPS-a1", "group": group, "rule": "frames", "words": [
            {"kind": "frame", "text": "shop/views.py pay", "application": True},
            {"kind": "type", "text": "KeyError", "application": True}]}
    assert server.get("/oops/OOPS-b/why").json["rule"] == "fingerprint"
    assert server.get("/oops/OOPS-none/why").status == 404
    assert "shop/views.py pay" in command(server, "why", "OOPS-a2").stdout
    assert json.loads(command(server, "why", "a2", "-o", "json").stdout)["group"] == group
    listed = json.loads(command(server, "list", "--group", group, "-o", "json").stdout)
    assert len(listed["reports"]) == 3
    assert run("fault", "why", "--server", server.url, "OOPS-none").returncode == 1


def frames(*frames_of):
    return [{"type": "KeyError", "value": "1", "stacktrace": {"frames": [
        {"module": module, "function": function, "in_app": application}
        for module, function, application in frames_of]}}]


def test_a_fault_stays_in_its_group_when_other_frames_are_the_applications(server):
    """After the next deployment the sender calls `pool` its own: another hash of the application's
    frames, the same of all. After the one after that there is one frame more."""
    first = frames(("lib.pool", "run", False), ("shop.cart", "pay", True))
    second = frames(("lib.pool", "run", True), ("shop.cart", "pay", True))
    third = frames(("lib.wsgi", "call", False), ("lib.pool", "run", True),
                   ("shop.cart", "pay", True))
    other = frames(("lib.pool", "run", False), ("shop.cart", "drop", True))
    for name, exceptions in (("1", first), ("2", second), ("3", third), ("4", other)):
        send(server, [{"id": f"OOPS-{name}", "exceptions": exceptions}])
    groups = {report["id"]: report["group"] for report in pages(server)}
    assert groups["OOPS-1"] == groups["OOPS-2"] == groups["OOPS-3"] != groups["OOPS-4"]
    why = [server.get(f"/oops/{number}/why").json for number in (1, 2, 3)]
    assert why[0]["hashes"]["application"] == groups["OOPS-1"] and "own_group" not in why[0]
    assert why[1]["hashes"]["all"] == why[0]["hashes"]["all"]
    assert why[1]["hashes"]["application"] == why[2]["hashes"]["application"]
    assert why[2]["hashes"]["all"] != why[1]["hashes"]["all"]
    assert why[1]["own_group"] == why[2]["own_group"] == groups["OOPS-1"]
    listed = {g["group"]: g["count"] for g in server.get("/oops/groups").json["groups"]}
    assert listed == {groups["OOPS-1"]: 3, groups["OOPS-4"]: 1}


def test_groups_with_one_hash_of_all_frames_are_merged_by_regroup(server):
    """`pay` alone, with `call`, and with `call` and `go` as the application's are three groups, for
    each is known before it is met in a trace of the next one."""
    def trace(*application, depth):
        names = ("go", "call", "run", "pay")[4 - depth:]
        return frames(*((f"lib.{name}", name, name in application) for name in names))
    reports = [trace("pay", depth=2), trace("call", "pay", depth=3),
               trace("go", "call", "pay", depth=4), trace("call", "pay", depth=4),
               trace("pay", depth=3), frames(("lib.run", "run", False), ("a", "b", True))]
    for number, exceptions in enumerate(reports):
        send(server, [{"id": f"OOPS-{number}", "exceptions": exceptions}])
        if number == 2:  # so the reports lie on two pages
            send(server, [{"id": f"m{n}", "message": "many"} for n in range(1000)])
    own = {int(report["id"][5:]): report["group"] for report in pages(server, limit=1000)
           if report["id"].startswith("OOPS-")}
    many = report_of(server, "m0")["group"]
    assert own[0] == own[4] and own[1] == own[3] and len(set(own.values())) == 4
    hashes = [server.get(f"/oops/{number}/why").json["hashes"]["all"] for number in range(6)]
    for options in (["--dry-run"], []):
        told = json.loads(command(server, "regroup", *options, "-o", "json").stdout)
        assert told["reports"] == 1006
        merges = {(one["group"], one["into"]) for one in told["merges"]}
        assert merges == {(own[1], own[0]), (own[2], own[0])}
        assert {one["hash"] for one in told["merges"]} == {hashes[1], hashes[2]}
        listed = {g["group"]: g["count"] for g in server.get("/oops/groups").json["groups"]}
        if options:
            assert listed == {own[0]: 2, own[1]: 2, own[2]: 1, own[5]: 1, many: 1000}
    assert listed == {own[0]: 5, own[5]: 1, many: 1000}
    again = command(server, "regroup")
    assert again.stdout == "group,into,hash\n"
    assert server.request("POST", f"/oops/groups/{own[1]}/split", None, None).status == 200
    group, into, by = command(server, "regroup").stdout.splitlines()[1].split(",")
    assert (group, into) == (own[1], own[0]) and by in hashes[1:3]
    assert run("fault", "regroup", "--server", "http://127.0.0.1:1").returncode == 1


def test_regroup_knows_the_hash_of_a_report_whose_group_is_merged(server):
    """`one` has one hash, by which its group and the third report's are one. People have merged it
    into another group."""
    send(server, [{"id": "OOPS-other", "message": "something else"}])
    for name, *trace in (("one", ("lib.q", "q", True), ("shop.z", "z", True)),
                         ("two", ("lib.p", "p", False), ("shop.z", "z", True)),
                         ("three", ("lib.q", "q", False), ("shop.z", "z", True))):
        send(server, [{"id": f"OOPS-{name}", "exceptions": frames(*trace)}])
    one, two, three, other = (report_of(server, f"OOPS-{name}")["group"]
                              for name in ("one", "two", "three", "other"))
    assert two == three and len({one, two, other}) == 3
    assert server.request("POST", f"/oops/groups/{one}/merge", None, None, into=other).status == 200
    listed = {report["id"]: report for report in pages(server)}
    assert listed["OOPS-one"]["group"] == other and listed["OOPS-one"]["group_all"] == one
    assert listed["OOPS-three"]["group_all"] == one
    told = json.loads(command(server, "regroup", "-o", "json").stdout)
    assert told == {"reports": 4, "merges": [{"group": two, "into": other, "hash": one}]}


def test_regroup_goes_on_behind_groups_that_are_not_counted(make_server):
    """Of three pairs of groups that are one fault each, the first is counted as a whole, of the
    second one group, of the third none."""
    server = make_server(options=["--fault.groups_max=3"])
    server.start()
    own = {}
    for name in "abc":
        callee = (f"{name}.y", "two", True)
        for number, trace in enumerate(([(f"{name}.x", "one", False), (f"{name}.y", "two", False)],
                                        [callee], [(f"{name}.x", "one", False), callee])):
            send(server, [{"id": f"OOPS-{name}{number}", "exceptions": frames(*trace)}])
            own[f"{name}{number}"] = report_of(server, f"OOPS-{name}{number}")["group"]
    assert len(set(own.values())) == 6 and all(own[f"{name}1"] == own[f"{name}2"] for name in "abc")
    for options in (["--dry-run"], []):
        done = run("fault", "regroup", "--server", server.url, "-o", "json", *options)
        assert done.returncode == 1
        assert json.loads(done.stdout)["merges"] == [
            {"group": own["a1"], "into": own["a0"], "hash": own["a0"]}]
        assert own["b1"] in done.stderr and own["c1"] in done.stderr


def test_a_hash_that_is_damaged_is_as_none(server):
    """A bit of its cell is flipped. The report is taken, with those that are sent with it."""
    trace, other = frames(("a.x", "one", True)), frames(("b.x", "one", True))
    send(server, [{"id": "OOPS-1", "exceptions": trace}, {"id": "OOPS-2", "exceptions": other}])
    group = report_of(server, "OOPS-1")["group"]
    server.stop()
    file = server.data / "data.mdb"
    content, name = bytearray(file.read_bytes()), re.escape(group.encode())
    ends = [match.end() for match in re.finditer(name + b".{0,60}?" + name, content, re.DOTALL)]
    for end in ends:
        content[end - 1] ^= 4
    file.write_bytes(content)
    assert ends
    server.start()
    send(server, [{"id": "OOPS-3", "exceptions": trace}, {"id": "OOPS-4", "exceptions": other}])
    assert report_of(server, "OOPS-3")["group"] == group
    assert server.metric("granary_fault_hashes_left_out_total") == 1
    server.kill()
    server.start()
    send(server, [{"id": "OOPS-5", "exceptions": trace}])
    assert report_of(server, "OOPS-5")["group"] == group
