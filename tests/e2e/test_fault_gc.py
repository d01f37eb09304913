"""Collection of fault reports: which go, by age and by bytes, is compared with a choice in Python.
What stays is whole, and what days and groups add up to stays as it was. The server's clocks are
set while it serves."""

import json
import random
import time

import pytest

from server import eventually, run
from test_clock import HOOK, ClockServer
from test_fault_groups import send
from test_oops import day_of, pages, post, report_of
from test_sentry import send as send_event, with_files

DAY_S = 86400
LISTS, NEWEST = 3, 2
LONGEST_QUERY_S = 301


@pytest.fixture
def make_clock_server(tmp_path):
    servers = []

    def make(config=""):
        if not HOOK.exists():
            pytest.skip("a sanitizer has its own idea of preloaded calls")
        server = ClockServer(tmp_path, f"fault:\n  list: {LISTS}\n{config}")
        servers.append(server)
        server.start()
        server.pass_awake(DAY_S + DAY_S // 2 - int(time.time()) % DAY_S)  # far from midnight
        return server
    yield make
    for server in servers:
        server.kill()


@pytest.fixture
def server(make_clock_server):
    return make_clock_server()


def made(chance, count, fault_of):
    """No two take as long."""
    reports = []
    for number, duration in enumerate(chance.sample(range(1, 10**6), count)):
        fault = fault_of(number)
        report = {"id": f"OOPS-{number:05}", "context": f"/{fault % 3}", "duration": duration,
                  "fingerprint": [f"fault {fault}"], "value": f"word{number} of all"}
        if number % 50 == 7:
            report["bug.tracker"] = str(number)
        reports.append(report)
    return reports


def go_on(server, is_done):
    """The server looks at a tenant to which nobody writes once a minute."""
    passed = time.monotonic()

    def look():
        nonlocal passed
        if not is_done() and time.monotonic() > passed + 2:
            server.pass_awake(61)
            passed = time.monotonic()
        return is_done()
    eventually(look)


def checkpoints(server):
    return server.metric("granary_fault_checkpoints_total")


def start_again(server, end):
    """The clocks of the machine itself have stood: by these the new one is far ahead."""
    end()
    server.start()
    assert run("clock", "accept", "--server", server.url).returncode == 0


def let_age(server):
    """Their writer has ended, they are sealed and lie nowhere else; their days are over."""
    start_again(server, server.stop)
    sealed = len(pages(server, limit=1000))
    go_on(server, lambda: server.metric("granary_fault_reports_sealed_total") == sealed)
    runs = server.metric("granary_fault_runs_sealed_total")
    server.pass_awake(LONGEST_QUERY_S)
    go_on(server, lambda: server.metric("granary_fault_runs_cleared_total") == runs)
    server.pass_awake(3 * DAY_S)
    go_on(server, lambda: all(day_of(server, day)["closed"] for day in days(server)))


def days(server):
    return sorted({time.strftime("%Y%m%d", time.gmtime(r["date"] / 1000))
                   for r in pages(server, limit=1000)})


def referred(reports, newest=NEWEST, bug_of=None):
    """Ids that stay, of reports of one day in the order of receipt, for what all reports are."""
    stay = {r["id"] for r in sorted(reports, key=lambda r: -r["duration"])[:LISTS]}
    for fault in {r["fingerprint"][0] for r in reports}:
        ids = [r["id"] for r in reports if r["fingerprint"][0] == fault]
        stay |= set(ids) if fault == bug_of else {ids[0], *ids[-newest:]}
    return stay


def with_bugs(reports):
    return {r["id"] for r in reports if "bug.tracker" in r}


def gc(server, *args, status=0):
    result = run("fault", "gc", *args, "-o", "json", "--server", server.url)
    assert result.returncode == status, result
    return result.stderr if status else json.loads(result.stdout)


def begin(server, *args):
    """It waits for the longest query only."""
    before = checkpoints(server)
    said = gc(server, *args)
    eventually(lambda: checkpoints(server) > before)
    return said


def collected(server):
    return server.metric("granary_fault_reports_collected_total")


def sums(server, listed_days):
    groups = server.get("/oops/groups", since="30d-ago", limit=1000).json
    return [day_of(server, day) for day in listed_days], groups


def check(server, reports, stay, whole):
    listed = [r["id"] for r in reversed(pages(server, limit=1000)) if r["id"].startswith("OOPS-")]
    assert listed == [r["id"] for r in reports if r["id"] in stay]
    for report in reports:
        answer = server.get(f"/oops/{report['id']}")
        assert answer.status == (200 if report["id"] in stay else 404), answer
        if report["id"] in stay:
            assert answer.json == whole[report["id"]]
    for report in reports[::7]:
        found = [r["id"] for r in pages(server, q=report["value"].split()[0])]
        assert found == [report["id"]] * (report["id"] in stay)


def give_bug(server, name, bug):
    answer = server.request("POST", f"/oops/{name}/bug?tracker=later&bug={bug}")
    assert answer.status == 200 and answer.json.get("bug.later", "") == bug, answer


def test_what_is_old_goes(server):
    chance = random.Random(5)
    reports = made(chance, 400, lambda _: chance.randrange(20))
    key = server.get("/oops/projects").json["projects"][0]["keys"][0]
    for number in range(4):  # of these the first and the newest two stay
        event = {"message": "with a file", "fingerprint": ["file"]}
        body = with_files(b"file %d" % number, event_id=str(number) * 32, event=event)
        assert send_event(server, body, key).status == 200
    send(server, reports)
    group, bug_of = report_of(server, reports[-1]["id"])["group"], reports[-1]["fingerprint"][0]
    assert server.request("PUT", f"/oops/groups/{group}?tracker=lp&bug=5").status == 200
    let_age(server)
    stay = referred(reports, bug_of=bug_of)
    given, taken, *_ = [r["id"] for r in reports if r["id"] not in stay | with_bugs(reports)]
    for name, bug in [(given, "7"), (taken, "7"), (taken, "")]:
        give_bug(server, name, bug)
    whole = {r["id"]: report_of(server, r["id"]) for r in reports}
    then = days(server)
    before = sums(server, then)
    stay.add(given)
    said = gc(server, "--before", "1d-ago", "--newest", str(NEWEST), "--dry-run")
    # To plan nobody looks at bodies: reports with bugs of their own are among these.
    assert (said["reports"], said["all_reports"]) == (len(reports) - len(stay) + 1, 404)
    stay |= with_bugs(reports)
    check(server, reports, {r["id"] for r in reports}, whole)
    begun = begin(server, "--before", "1d-ago", "--newest", str(NEWEST))
    assert begun == said | {"dry_run": False}
    assert "at work already" in gc(server, "--before", "1d-ago", status=1)
    server.pass_awake(LONGEST_QUERY_S)
    go_on(server, lambda: collected(server) == len(reports) - len(stay) + 1)
    for restarted in (False, True):
        if restarted:
            start_again(server, server.kill)
        check(server, reports, stay, whole)
        events = [r["id"][0] for r in pages(server, limit=1000) if r["id"][0].isdigit()]
        assert events == ["3", "2", "0"]
        assert server.get("/oops/" + 32 * "0" + "/attachments/0").body == b"file 0"
        assert server.get("/oops/" + 32 * "1" + "/attachments/0").status == 404
        assert sums(server, then) == before
        server.pass_awake(LONGEST_QUERY_S)
    # Nothing is known any more of one that is gone.
    gone = next(r for r in reports if r["id"] not in stay)
    assert post(server, gone | {"value": "another"}).status == 201
    kept = next(r for r in reports if r["id"] in stay)
    assert post(server, kept | {"value": "another"}).status == 409
    answer = server.request("POST", f"/oops/days/{then[0]}/recount")
    assert answer.status == 409 and "collected" in answer.json["error"]["message"]
    server.stop()
    verified = run("verify", "--data", server.data)
    assert verified.returncode == 0, verified


def test_the_fullest_groups_go_down(server):
    chance = random.Random(6)
    reports = made(chance, 600, lambda number: 0 if number % 6 else 1 + number // 6 % 20)
    send(server, reports)
    let_age(server)
    stored = gc(server, "--bytes", "1000000000", "--dry-run")
    assert (stored["reports"], stored["all_reports"]) == (0, 600)
    said = begin(server, "--bytes", str(stored["all_bytes"] // 2), "--newest", str(NEWEST))
    assert 200 < said["reports"] <= 300
    server.pass_awake(LONGEST_QUERY_S)
    go_on(server, lambda: collected(server))
    left = {r["id"] for r in pages(server, limit=1000)}
    # A hundred are of faults with five each, and these stay.
    assert {r["id"] for r in reports if r["fingerprint"] != ["fault 0"]} < left
    assert referred(reports) | with_bugs(reports) <= left
    assert len(left) == 600 - collected(server) and collected(server) <= said["reports"]
    after = gc(server, "--bytes", "1000000000", "--dry-run")
    assert after["all_bytes"] < stored["all_bytes"] * 3 // 4


def test_it_is_done_from_time_to_time(make_clock_server):
    server = make_clock_server("  keep: 2d\n  keep_newest: 1\n  collect_every: 1s\n")
    chance = random.Random(7)
    reports = made(chance, 100, lambda _: chance.randrange(5))
    send(server, reports)
    let_age(server)
    before = checkpoints(server)
    eventually(lambda: checkpoints(server) > before)
    server.pass_awake(LONGEST_QUERY_S)
    stay = referred(reports, newest=1) | with_bugs(reports)
    go_on(server, lambda: collected(server) == len(reports) - len(stay))
    assert {r["id"] for r in pages(server, limit=1000)} == stay


def test_a_server_that_is_killed_meanwhile(server):
    chance = random.Random(8)
    reports = made(chance, 300, lambda _: chance.randrange(20))
    send(server, reports)
    let_age(server)
    whole = {r["id"]: report_of(server, r["id"]) for r in reports}
    stay = referred(reports) | with_bugs(reports)
    for _ in range(6):
        begin(server, "--before", "1d-ago", "--newest", str(NEWEST))
        server.pass_awake(LONGEST_QUERY_S)
        time.sleep(chance.random())
        start_again(server, server.kill)
        left = {r["id"] for r in pages(server, limit=1000)}
        assert stay <= left
        for name in stay:
            assert report_of(server, name) == whole[name]
    begin(server, "--before", "1d-ago", "--newest", str(NEWEST))
    server.pass_awake(LONGEST_QUERY_S)
    go_on(server, lambda: {r["id"] for r in pages(server, limit=1000)} == stay)
    check(server, reports, stay, whole)


def test_what_is_wrong_is_said(server):
    post(server, {"id": "OOPS-1", "context": "/a"})
    assert "nothing says which reports are to go" in gc(server, status=1)
    for params, sentence in [("before=tomorrow", "before"), ("bytes=0", "bytes"),
                             ("before=1d-ago&newest=0", "newest"), ("keep=1d", "keep")]:
        answer = server.request("POST", f"/oops/gc?{params}")
        assert answer.status == 400 and sentence in answer.json["error"]["message"]
    assert gc(server, "--before", "1h-ago")["reports"] == 0
    server.set_wall(server.wall_s + 400 * DAY_S)
    eventually(server.is_doubted)
    assert "granary clock accept" in gc(server, "--before", "1d-ago", status=1)
