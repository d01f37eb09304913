"""What is kept for how long, by rules, on the real server."""

import time

import pytest

from server import PATIENCE_S, eventually, run

# Slots of a second, rolled up after one that is quiet: raw samples are kept for 3 s at least.
SHORT = ["--rollup.slot=1s", "--rollup.granularities=1s:1d", "--rollup.quiet=1s",
         "--rollup.every=1s", "--ingest.wait_max=10ms", "--rollup.clock_difference=0"]


def lines(metrics, times_s):
    return "".join(f"{metric},h=a value={i}i {at}000000000\n"
                   for metric in metrics for i, at in enumerate(times_s))


def grains(server, metric, tenant, start_s):
    """Which granularities answer, without the times."""
    answer = server.get("/api/query", tenant=tenant, metricName=metric, start=start_s)
    return [part.split(" ")[0] for part in answer.headers["X-Granary-Grain"].split(", ")]


def test_raw_samples_of_a_rule_go_and_their_roll_ups_stay(make_server):
    server = make_server(options=[*SHORT, "--retention.rules=acme/debug.*/raw:6s"])
    server.start()
    now_s = int(time.time())
    times_s = [now_s - 2, now_s - 1, now_s]
    for tenant in ["acme", "other"]:
        sent = server.write(lines(["debug.x", "cpu"], times_s), {"X-Tenant": tenant})
        assert sent.status == 204, sent
    eventually(lambda: server.metric("granary_rollup_rows_total") >= 12, "roll-ups")
    eventually(lambda: time.time() > now_s + 8, "end of raw samples")
    for tenant, metric, grain in [("acme", "debug.x", ["1s", "raw"]), ("acme", "cpu", ["raw"]),
                                  ("other", "debug.x", ["raw"])]:
        assert grains(server, metric, tenant, now_s - 2) == grain
        found = server.values(metric, tenant=tenant, start=now_s - 2)
        assert list(found.values()) == [0, 1, 2], (tenant, metric)
    server.stop()


@pytest.mark.parametrize("late", ["refuse", "keep"])
def test_a_raise_gives_nothing_back(make_server, late):
    """Kept for 6 seconds, then for a day: what was older by then is as it was."""
    server = make_server(options=[*SHORT, "--rollup.granularities=1s:30d", f"--rollup.late={late}",
                                  "--retention.raw=6s"])
    server.start()
    now_s = int(time.time())
    times_s = [now_s - 2, now_s - 1, now_s]
    assert server.write(lines(["cpu"], times_s)).status == 204
    eventually(lambda: server.metric("granary_rollup_rows_total") >= 3, "roll-ups")
    eventually(lambda: time.time() > now_s + 8, "end of raw samples")
    server.stop()
    server.options[-1] = "--retention.raw=1d"
    server.start()
    assert grains(server, "cpu", "default", times_s[0]) == ["1s", "raw"]
    sent = server.write(f"cpu,h=a value=9i {times_s[1]}500000000\n")
    assert sent.status == (204 if late == "keep" else 400)
    if late == "keep":
        eventually(lambda: server.metric("granary_rollup_rows_total") >= 1, "late roll-ups")
    else:
        assert "is older than the retention of 6 s" in sent.text
    counts = server.values("cpu", start=times_s[0], fn="count", window="1s")
    assert list(counts.values())[:3] == [1, 2 if late == "keep" else 1, 1]
    server.stop()


def test_what_is_older_than_its_rule_is_refused(server_with_rules):
    server = server_with_rules
    old_s = int(time.time()) - 3 * 3600
    sent = server.write(f"x,h=a cpu=1,debug=2 {old_s}000000000\n", {"X-Tenant": "acme"})
    assert sent.status == 400
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(old_s))
    assert f"the time {date} is older than the retention of 7200 s" in sent.text
    assert list(server.values("x_cpu", tenant="acme", start=old_s).values()) == [1]
    assert server.query("x_debug", tenant="acme", start=old_s) == []


@pytest.fixture
def server_with_rules(make_server):
    server = make_server(config='retention:\n  raw: 30d\n  rules:\n    - "acme/*debug/raw:2h"\n'
                                '    - "*/*/raw:90d"\n    - "acme/*/1h:0"\n')
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("rules, sentence", [
    ("acme", '"acme": it is not TENANT/METRIC/GRANULARITY:DURATION, such as acme/*/raw:7d'),
    ("acme/*/2h:7d", '"acme/*/2h:7d": there is no granularity "2h": it is one of raw, 5m, 1h, or '
                     "* for all"),
    ("acme/*/5m:59m", '"acme/*/5m:59m": nothing is kept for less than a slot of 1h'),
    ("acme/*/raw:1h", '"acme/*/raw:1h": raw samples have to be kept for 70m at least'),
    ("acme/*/raw:101y", '"acme/*/raw:101y": "101y" is above the maximum of 36500d'),
    ("acme/*/raw:7d,acme/cpu/raw:9d", '"acme/cpu/raw:9d": it is never reached: "acme/*/raw:7d" '
                                      "before it takes all that it is about"),
])
def test_refused_at_the_start(make_server, rules, sentence):
    server = make_server(config=f'retention:\n  raw: 30d\n  rules: "{rules}"\n')
    server.spawn()
    assert server.process.wait(PATIENCE_S) == 2
    assert f"granary.yml:3: retention.rules: {sentence}" in server.log_text(), server.log_text()
    assert not server.data.exists()


def test_a_rule_is_refused_with_its_own_line(make_server):
    server = make_server(config='retention:\n  raw: 30d\n  rules:\n    - "a/b/raw:2d"\n'
                                '    - "*/*/*:1d"\n\n    - "c/d/raw:5d"\n')
    server.spawn()
    assert server.process.wait(PATIENCE_S) == 2
    assert ('granary.yml:7: retention.rules: "c/d/raw:5d": it is never reached: "*/*/*:1d"'
            in server.log_text()), server.log_text()


# ---- What is stored for how long


def retention(server, *arguments):
    return run("retention", arguments[0], "--server", server.url, "-o", "csv", *arguments[1:])


def rows(answer):
    """The cells of each row but bytes and times, which others know better."""
    assert answer.returncode == 0, answer
    table = [line.split(",") for line in answer.stdout.splitlines()]
    skipped = [table[0].index(title) for title in ["bytes", "oldest"]]
    return [",".join(cell for i, cell in enumerate(row) if i not in skipped) for row in table[1:]]


def test_what_lies_in_another_class_is_shown_and_counted(make_server):
    server = make_server(options=["--retention.raw=30d"])
    server.start()
    now_s = int(time.time())
    times_s = [now_s - 3 * 86400, now_s - 1, now_s]
    for host in ["a", "b"]:
        server.write(lines(["cpu", "debug"], times_s).replace("h=a", f"h={host}"))
    assert rows(retention(server, "show")) == [
        "default,cpu,raw,30d,-,35d,2,6", "default,debug,raw,30d,-,35d,2,6"]
    assert rows(retention(server, "apply", "--dry-run")) == []
    server.stop()
    server.options.append("--retention.rules=*/debug/raw:2d,*/cpu/raw:0")
    server.start()
    assert server.write(lines(["debug"], [now_s - 2])).status == 204
    assert rows(retention(server, "show")) == [
        "default,cpu,raw,ever,*/cpu/raw:0,35d*,2,6",
        "default,debug,raw,2d,*/debug/raw:2d,2d,1,1",
        "default,debug,raw,2d,*/debug/raw:2d,35d*,2,6"]
    assert rows(retention(server, "show", "--metric", "cpu", "--tenant", "default")) == [
        "default,cpu,raw,ever,*/cpu/raw:0,35d*,2,6"]
    assert rows(retention(server, "show", "--tenant", "other")) == []
    assert rows(retention(server, "apply", "--dry-run")) == [
        "raw,35d,2d,2,6", "raw,35d,ever,2,6"]
    # What is older than two days is there, but not shown.
    assert len(server.values("debug", "h=b", start=now_s - 9 * 86400)) == 2
    said = server.get("/api/retention", metric="debug").json
    assert said["rules"] == ["*/debug/raw:2d", "*/cpu/raw:0"] and not said["cut"]
    assert said["kept"][0]["stored"][1]["oldest"] == times_s[0] * 1000
    server.stop()


def test_a_list_that_is_too_long_is_cut_and_says_so(server):
    assert server.write(lines(["a", "b", "c"], [int(time.time())])).status == 204
    answer = retention(server, "show", "--limit", "2")
    assert len(rows(answer)) == 2
    assert "there are more metrics; --limit gives up to 10000" in answer.stderr


def test_wrong_questions(server):
    for path, params in [("/api/retention", {"limit": "0"}), ("/api/retention", {"tenant": "a b"}),
                         ("/api/retention", {"metrics": "x"})]:
        assert server.get(path, **params).status == 400
    answer = server.request("POST", "/api/retention/apply", dryRun="no")
    assert answer.status == 400
    assert answer.json["error"]["message"] == 'dryRun is true or false, not "no"'


def test_what_lies_in_another_class_is_moved(make_server):
    """Written for 30 days, of debug for two and of cpu for ever; killed when it is moved."""
    server = make_server(options=["--retention.raw=30d", "--query.timeout=1s"])
    server.start()
    now_s = int(time.time())
    times_s = [now_s - 3 * 86400, now_s - 86400, now_s]
    for host in ["a", "b"]:
        server.write(lines(["cpu", "debug", "same"], times_s).replace("h=a", f"h={host}"))
    server.stop()
    server.options.append("--retention.rules=*/debug/raw:2d,*/cpu/raw:0")
    server.start()
    server.write(lines(["cpu"], [now_s - 86400, now_s - 5]).replace("=1i", "=7i"))
    answer = retention(server, "apply")
    assert rows(answer) == ["raw,35d,2d,2,6", "raw,35d,ever,2,6"] and not answer.stderr
    for life in range(2):
        assert rows(retention(server, "show")) == [
            "default,cpu,raw,ever,*/cpu/raw:0,ever,2,7",
            "default,debug,raw,2d,*/debug/raw:2d,2d,2,4",
            "default,same,raw,30d,-,35d,2,6"]
        cpu = server.values("cpu", "h=a", start=times_s[0])
        assert list(cpu.values()) == [0, 0, 7, 2]
        assert list(server.values("debug", "h=b", start=times_s[0]).values()) == [1, 2]
        assert rows(retention(server, "apply", "--dry-run")) == []
        server.kill()
        server.start()
    assert rows(retention(server, "apply")) == []
    server.stop()
    checked = run("verify", "--data", server.data)
    assert checked.returncode == 0, checked
