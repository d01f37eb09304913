"""Agents that follow log files elsewhere: what they report, and what is told of it. The reports are
the test's own."""

import contextlib
import json
import time

import pytest

from server import Server, longest_turn_ms, run, running, turn_max_ms
from test_clock import DAY_S, HOOK, ClockServer

BOOT = "00c1d2e3f4a5b6c7"
OTHER_BOOT = "00c1d2e3f4a5b6c8"
STATES = ["following", "behind", "waiting", "missing", "stopped", "done"]
MiB = 1 << 20


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with running(Server(tmp_path_factory.mktemp("agents"))) as server:
        yield server


@contextlib.contextmanager
def clock_server(tmp_path):
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "")
    server.start()
    try:
        yield server
    finally:
        server.kill()


def adaptor(name, **said):
    return {"name": name, "kind": "tail", "datatype": "syslog", "path": f"/var/log/{name}",
            "state": "following", "offset": 100, "behind": 0, "lastLine": 1600000000000,
            "error": "", **said}


def report(*adaptors, **said):
    return {"boot": BOOT, "all": True, "version": "0.x", "collector": "http://127.0.0.1:8470",
            "problem": "", "adaptors": list(adaptors), "gone": [], **said}


def post(server, body, name="web1"):
    body = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return server.request("POST", f"/api/agents/{name}/report", body)


def take(server, *adaptors, name="web1", **said):
    answer = post(server, report(*adaptors, **said), name)
    assert (answer.status, answer.body) == (204, b""), answer


def refused(answer, status):
    assert answer.status == status, answer
    assert answer.json["error"]["code"] == status
    return answer.json["error"]["message"]


def shown(server, name="web1", **params):
    answer = server.get(f"/api/agents/{name}", **params)
    assert answer.status == 200, answer
    return answer.json


def names(server, name="web1", **params):
    return [one["name"] for one in shown(server, name, **params)["adaptors"]]


def reports(server, result):
    return server.metric("granary_agents_reports_total", result=result)


def test_what_is_reported_is_told(server):
    said = [adaptor("messages", behind=789, offset=2**63 - 1),
            adaptor("auth", state="stopped", error="it cannot be read: EACCES", lastLine=0),
            adaptor("gone\u00e9/\U0001f4c4", kind="file", datatype="Access", state="done")]
    before = time.time() * 1000
    take(server, *said, problem="the collector is not reached")
    told = shown(server)
    assert before - 1000 < told.pop("heard") < time.time() * 1000 + 1000
    assert told == {
        "name": "web1", "version": "0.x", "collector": "http://127.0.0.1:8470", "silent": False,
        "shared": False, "problem": "the collector is not reached", "boot": BOOT, "behind": 789,
        "states": {**dict.fromkeys(STATES, 0), "following": 1, "stopped": 1, "done": 1},
        "adaptors": [said[1], said[2], said[0]]}
    take(server, name="a b/c".replace("/", "%2F").replace(" ", "%20"), version="1")
    told = server.get("/api/agents").json
    assert list(told) == ["agents"]
    assert [(one["name"], one["adaptors"], one["behind"]) for one in told["agents"]] == [
        ("a b/c", 0, 0), ("web1", 3, 789)]
    assert set(told["agents"][1]) == {"name", "version", "collector", "heard", "silent", "shared",
                                      "problem", "adaptors", "behind", "states"}
    assert server.metric("granary_agents_known") == 2
    assert reports(server, "taken") == 2


def test_what_is_not_named_stays_as_it_is(server):
    take(server, *(adaptor(name) for name in "dbac"))
    before = shown(server)["adaptors"]
    changed = adaptor("b", state="behind", behind=7)
    take(server, changed, adaptor("e"), gone=["c", "never"], all=False)
    assert shown(server)["adaptors"] == [before[0], changed, before[3], adaptor("e")]
    take(server, problem="p", all=False)
    assert shown(server)["problem"] == "p" and names(server) == ["a", "b", "d", "e"]
    take(server, adaptor("z"))
    assert names(server) == ["z"]


def test_a_report_of_changes_needs_one_of_all(server):
    change = report(adaptor("a"), all=False)
    assert "report all" in refused(post(server, change), 409)
    assert server.get("/api/agents").json == {"agents": []}
    take(server, adaptor("a"), adaptor("b"))
    take(server, adaptor("a", offset=5), all=False)
    # Another start of the agent, and what is late of the one before.
    assert "report all" in refused(post(server, {**change, "boot": OTHER_BOOT}), 409)
    assert names(server) == ["a", "b"]
    take(server, adaptor("c"), boot=OTHER_BOOT)
    refused(post(server, change), 409)
    assert names(server) == ["c"] and shown(server)["boot"] == OTHER_BOOT
    # Another start of the server.
    server.restart()
    refused(post(server, {**change, "boot": OTHER_BOOT}), 409)
    assert reports(server, "unknown") == 1
    take(server, adaptor("d"), boot=OTHER_BOOT)
    assert names(server) == ["d"]


def test_two_agents_of_one_name(tmp_path):
    with clock_server(tmp_path) as server:
        take(server, adaptor("a"))
        take(server, adaptor("b"), boot=OTHER_BOOT)  # as after another start
        assert shown(server)["shared"] is False
        change = report(adaptor("a"), all=False)
        assert "each needs an agent.name of its own" in refused(post(server, change), 409)
        assert shown(server)["shared"] is True
        take(server, adaptor("a"))
        assert server.get("/api/agents").json["agents"][0]["shared"] is True
        told = 'several agents report under the name "web1"'
        assert server.log_text().count(told) == 1
        listed = run("agent", "list", "--server", server.url, "-o", "csv").stdout
        assert "several agents report under this name" in listed
        listed = run("agent", "list", "web1", "--server", server.url, "-o", "csv")
        assert "this is what one of them said" in listed.stderr
        server.pass_awake(40)
        assert shown(server)["shared"] is False
        server.pass_awake(600)
        take(server, adaptor("b"), boot=OTHER_BOOT)
        assert shown(server)["shared"] is True and server.log_text().count(told) == 2


def test_an_agent_that_is_not_heard_of_is_silent(tmp_path):
    with clock_server(tmp_path) as server:
        take(server, adaptor("a"))
        server.pass_awake(20)
        assert shown(server)["silent"] is False
        server.pass_awake(15)
        assert shown(server)["silent"] is True
        assert server.get("/api/agents").json["agents"][0]["silent"] is True
        take(server, all=False)
        assert shown(server)["silent"] is False


def without(key):
    return {name: value for name, value in report().items() if name != key}


def one(**said):
    return report(adaptor("x", **said))


def lacking(key):
    return report({name: value for name, value in adaptor("x").items() if name != key})


@pytest.mark.parametrize("body, sentence", [
    ("", "line 1"), ("{", "line 1"), ("[]", "a report is an object"), ("1", "an object"),
    (b'{"boot":"\xff"}', "UTF-8"),
    (without("boot"), '"boot" is missing'), (without("all"), '"all" is missing'),
    (without("version"), '"version" is missing'), (without("gone"), '"gone" is missing'),
    (without("collector"), '"collector" is missing'), (without("problem"), '"problem" is missing'),
    (without("adaptors"), '"adaptors" is missing'),
    (report(boot=BOOT[1:]), '"boot" is not 16 hexadecimal digits'),
    (report(boot=BOOT + "0"), '"boot" is not 16'), (report(boot="g" * 16), '"boot" is not 16'),
    (report(boot=1), '"boot" is not a text'), (report(all=1), '"all" is not true or false'),
    (report(version="v" * 65), '"version" has 65 bytes; at most 64 are taken'),
    (report(collector="c" * 1025), '"collector" has 1025 bytes; at most 1024'),
    (report(problem="p" * 513), '"problem" has 513 bytes; at most 512'),
    (report(adaptors={}), '"adaptors" is not'), (report(adaptors=[1]), '"name" is missing'),
    (report(gone="x"), '"gone" is not'), (report(gone=[1]), '"gone" is not an array of names'),
    (report(gone=["a\nb"]), '"gone": "a\nb" is no name of an adaptor'),
    (report(adaptor("")), '"" is no name of an adaptor'),
    (report(adaptor("a\x07b")), "without control characters"),
    (report(adaptor("a\0b")), "without control characters"),
    (report(adaptor("\u00e9" * 512 + "n")), "1 to 1024 bytes"),
    (report(adaptor("x"), adaptor("y"), adaptor("x")), 'the adaptor "x" is named twice'),
    (one(kind="k" * 65), 'adaptor "x": "kind" has 65 bytes'),
    (one(datatype="d" * 65), 'adaptor "x": "datatype" has 65 bytes'),
    (one(path="p" * 4097), 'adaptor "x": "path" has 4097 bytes; at most 4096 are taken'),
    (one(error="e" * 513), 'adaptor "x": "error" has 513 bytes; at most 512 are taken'),
    (one(state="Following"), '"state" is "Following", and not following, behind, waiting,'),
    (one(state=0), 'adaptor "x": "state" is not a text'),
    (one(offset=-1), 'adaptor "x": "offset" is less than 0'),
    (one(offset=2**63), 'adaptor "x": "offset" is not a whole number of 64 bits'),
    (one(behind=1.5), 'adaptor "x": "behind" is not a whole number'),
    (one(behind="1"), 'adaptor "x": "behind" is not a whole number'),
    (one(lastLine=-1600000000000), 'adaptor "x": "lastLine" is less than 0'),
    (one(lastLine=None), 'adaptor "x": "lastLine" is not a whole number'),
    *((lacking(key), f'"{key}" is missing') for key in adaptor("x")),
])
def test_what_is_no_report(shared, body, sentence):
    """And changes nothing."""
    take(shared, adaptor("here"))
    before = shown(shared), reports(shared, "refused")
    assert sentence in refused(post(shared, body), 400)
    after = shown(shared), reports(shared, "refused") - 1
    assert after == before


@pytest.mark.parametrize("path, status, sentence", [
    ("a%01b/report", 400, "is no name: those have 1 to 255 bytes of UTF-8 without control"),
    ("a%7Fb/report", 400, "is no name"), ("%FF/report", 400, "is no name"),
    ("n" * 256 + "/report", 400, "is no name"), ("%2E%2E/report", 400, "is no name"),
    ("/report", 400, "is no name"), ("web1", 404, "there is nothing at this path"),
    ("web1/reports", 404, "nothing"), ("web1/report/x", 404, "nothing"),
    ("web1/report?all=true", 400, 'unknown parameter "all"')])
def test_where_no_report_goes(shared, path, status, sentence):
    body = json.dumps(report())
    assert sentence in refused(shared.request("POST", f"/api/agents/{path}", body), status)


def test_an_agent_that_is_not_there(server):
    for verb in ("GET", "DELETE"):
        answer = server.request(verb, "/api/agents/web2")
        assert 'no agent "web2" has reported' in refused(answer, 404)
    take(server, adaptor("a"))
    take(server, adaptor("a"), name="web2")
    answer = server.request("DELETE", "/api/agents/web2")
    assert (answer.status, answer.body) == (204, b"")
    refused(server.get("/api/agents/web2"), 404)
    refused(server.request("DELETE", "/api/agents/web2"), 404)
    refused(post(server, report(all=False), "web2"), 409)
    assert [one["name"] for one in server.get("/api/agents").json["agents"]] == ["web1"]


def test_lists_go_on_by_a_token(server):
    """Over 2,500 adaptors, each third one missing."""
    expected = [f"a{number:05}" for number in range(2500)]
    take(server, *(adaptor(name, state="missing" if number % 3 == 0 else "done")
                   for number, name in enumerate(expected)))

    def pages(path, key, **params):
        found, token = [], {}
        while True:
            answer = server.get(path, **params, **token)
            assert answer.status == 200, answer
            found.append([one["name"] for one in answer.json[key]])
            if "token" not in answer.json:
                return found
            token = {"token": answer.json["token"]}

    found = pages("/api/agents/web1", "adaptors")
    assert [len(page) for page in found] == [1000, 1000, 500] and sum(found, []) == expected
    found = pages("/api/agents/web1", "adaptors", state="missing", limit=417)
    assert [len(page) for page in found] == [417, 417] and sum(found, []) == expected[::3]
    assert pages("/api/agents/web1", "adaptors", state="stopped") == [[]]
    assert names(server, token="a02498x") == ["a02499"] and names(server, token="b") == []
    expected = [f"m{number:03}" for number in range(7)]
    for name in expected:
        take(server, name=name)
    found = pages("/api/agents", "agents", limit=3)
    assert [len(page) for page in found] == [3, 3, 2] and sum(found, []) == [*expected, "web1"]
    for path, param, sentence in (
            ("/api/agents", "limit=0", "from 1 to 1000"),
            ("/api/agents/web1", "limit=1001", "from 1 to 1000"),
            ("/api/agents/web1", "state=gone", "is none of following, behind, waiting, missing"),
            ("/api/agents", "state=done", 'unknown parameter "state"')):
        assert sentence in refused(server.get(f"{path}?{param}"), 400)


def test_an_agent_may_report_in_several_parts(server):
    """A body has 4 MiB at most, and an agent 20,000 adaptors."""
    big = report(*(adaptor(f"a{number:05}", error="e" * 500) for number in range(20000)))
    refused(post(server, big), 413)
    for first in range(0, 20000, 5000):
        take(server, *big["adaptors"][first:first + 5000], all=not first)
    assert shown(server, limit=1)["states"]["following"] == 20000
    one_more = report(adaptor("b"), all=False)
    assert "would have 20001 adaptors" in refused(post(server, one_more), 422)
    take(server, adaptor("b"), all=False, gone=["a00000"])
    assert shown(server, limit=1)["states"]["following"] == 20000
    assert longest_turn_ms(server) < turn_max_ms()


def test_a_body_that_is_all_brackets(server):
    """It would take much more memory as a tree than it has bytes."""
    refused(post(server, b"[" + b"[]," * 1300000 + b"[]]"), 422)
    assert longest_turn_ms(server) < turn_max_ms()


def test_long_texts_end_a_list_early(server):
    """Control characters, which JSON writes six times as long: no answer has much over 4 MiB."""
    for part in range(2):
        take(server, *(adaptor(f"a{part}{number:03}", path="\x01" * 4096, error="\x02" * 512)
                       for number in range(140)), all=not part)
    first = server.get("/api/agents/web1")
    assert 4 * MiB <= len(first.body) < 4 * MiB + 64 * 1024
    rest = names(server, token=first.json["token"])
    assert len(first.json["adaptors"]) + len(rest) == 280 and rest[-1] == "a1139"


def test_agents_of_a_week_ago_make_room(tmp_path):
    """Reports of more than 64 MiB altogether."""
    with clock_server(tmp_path) as server:
        body = json.dumps(report(*(adaptor(f"a{number:03}", path="p" * 4000, error="e" * 500)
                                   for number in range(850))))
        count = 0
        while (answer := post(server, body, f"web{count}")).status == 204:
            count += 1
        assert "64 MB at most" in refused(answer, 507)
        assert 16 <= count <= 17
        assert reports(server, "no_room") == 1
        assert 60 * MiB < server.metric("granary_agents_memory_bytes") <= 64 * MiB
        refused(post(server, body, "new"), 507)
        # Those that are there go on.
        take(server, all=False, name="web0")
        assert server.request("DELETE", "/api/agents/web1").status == 204
        assert post(server, body, "new").status == 204
        server.pass_awake(4 * DAY_S)
        take(server, all=False, name="web2")
        server.pass_awake(4 * DAY_S)
        assert len(server.get("/api/agents").json["agents"]) == count
        assert post(server, body, "newer").status == 204
        assert [one["name"] for one in server.get("/api/agents").json["agents"]] == [
            "newer", "web2"]
        assert server.metric("granary_agents_forgotten_total") == count - 1
        assert longest_turn_ms(server) < turn_max_ms()


def test_the_command(tmp_path):
    with clock_server(tmp_path) as server:
        url = ("--server", server.url, "-o", "csv")
        take(server, *(adaptor(f"a{number:04}") for number in range(1500)), name="many")
        take(server, adaptor("messages", behind=789, state="behind"),
             adaptor("evil\u202e", path="/l/\x1b[2J", state="stopped", error="no, it \"is\"",
                     lastLine=0),
             problem="p")
        heard = [one["heard"] for one in server.get("/api/agents").json["agents"]]
        at = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) for ms in heard]
        many, web = run("agent", "list", *url).stdout.splitlines()[1:]
        assert many.startswith(f"many,{at[0]}")
        assert many.endswith("Z,false,1500,0,following 1500,,0.x")
        assert web.startswith(f"web1,{at[1]}")
        assert web.endswith('Z,false,2,789,"behind 1, stopped 1",p,0.x')
        answer = run("agent", "list", "web1", *url)
        assert answer.stdout.splitlines() == [
            "name,state,behind,lastLine,path,error",
            'evil\u202e,stopped,0,,/l/\x1b[2J,"no, it ""is"""',
            "messages,behind,789,2020-09-13T12:26:40Z,/var/log/messages,"]
        assert answer.stderr == ""
        lines = run("agent", "list", "many", *url).stdout.splitlines()
        assert len(lines) == 1501 and lines[-1].startswith("a1499,following,0,")
        answer = run("agent", "list", "web1", "--state", "stopped", "--server", server.url,
                     "-o", "json")
        assert [one["path"] for one in json.loads(answer.stdout)["adaptors"]] == ["/l/\x1b[2J"]
        answer = run("agent", "list", "web2", *url)
        assert answer.returncode == 1 and 'no agent "web2" has reported' in answer.stderr
        answer = run("agent", "list", "web1", "--state", "gone", *url)
        assert answer.returncode == 1 and "is none of following" in answer.stderr
        answer = run("agent", "list", "--state", "done", *url)
        assert answer.returncode == 2 and "name the agent" in answer.stderr
        server.pass_awake(40)
        assert run("agent", "list", *url).stdout.splitlines()[2].endswith(
            'Z,true,2,789,"behind 1, stopped 1",p,0.x')
        assert "silent for more than 30 s" in run("agent", "list", "web1", *url).stderr


def test_pages_of_other_sites_reach_nothing(server):
    take(server, adaptor("a"))
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        for verb, path, body in (("POST", "/api/agents/web1/report", json.dumps(report())),
                                 ("DELETE", "/api/agents/web1", None),
                                 ("GET", "/api/agents/web1", None)):
            assert server.request(verb, path, body, headers).status == 403
    assert names(server) == ["a"]
