"""A tenant that one does not have looks like one that never was: through every door, when its owner
has just used it, so that all that remembers is warm."""

import json
import time

import pytest

import chunks
from test_auth import NOW_S, Tokens, samples

NOW_MS = NOW_S * 1000
LINE = "the owner's own line"
REPORT = {"id": "OOPS-owner", "type": "KeyError", "value": "owner's", "url": "/owner"}


def loki(text):
    return json.dumps({"streams": [{"stream": {"service_name": "web"},
                                    "values": [[str(time.time_ns()), text]]}]})


def warm(server, head):
    """All that an owner sends and asks for."""
    assert server.write(f"secret,host=h value=1 {NOW_S}", head, precision="s").status == 204
    assert server.put({"metric": "secret", "timestamp": NOW_S, "value": 1,
                       "tags": {"host": "h"}}, head).status == 204
    assert server.request("POST", "/loki/api/v1/push", loki(LINE), head).status == 204
    assert server.request("POST", "/oops", json.dumps(REPORT), head).status < 300
    assert server.get("/api/query", head, metricName="secret", start=0).json
    assert server.get("/api/suggest", head, type="metrics").json == ["secret"]
    assert server.get("/api/metadata/metricNames", head).json == ["secret"]
    assert "secret" in server.get("/api/export", head).text
    assert LINE in server.get("/api/streams/search", head).text
    assert server.get("/oops/OOPS-owner", head).status == 200


@pytest.fixture
def tokens(server):
    tokens = Tokens(server)
    for tenant in ("owner", "b"):
        tokens.create(tenant, "admin", tenant)
    for _ in range(3):
        warm(server, tokens.head("owner"))
    return tokens


METRIC = {"metricName": "secret"}
QUESTION = json.dumps({"start": 1, "queries": [{"metric": "secret", "aggregator": "none"}]})
REQUESTS = [
    ("GET", "/api/query", None, {**METRIC, "start": 0}),
    ("GET", "/api/query", None, {"m": "none:secret", "start": 1}),
    ("POST", "/api/query", QUESTION, {}),
    ("GET", "/api/query/last", None, {"timeseries": "secret"}),
    ("GET", "/api/export", None, {}), ("GET", "/api/export", None, METRIC),
    ("GET", "/api/metadata/metricNames", None, {}), ("GET", "/api/metadata/tagKeys", None, METRIC),
    ("GET", "/api/metadata/tagValues", None, {**METRIC, "tagKey": "host"}),
    ("GET", "/api/metadata/series", None, METRIC), ("GET", "/api/metadata/metric", None, METRIC),
    ("PUT", "/api/metadata/metric", '{"unit":"s"}', METRIC),
    ("GET", "/api/suggest", None, {"type": "metrics"}),
    ("GET", "/api/suggest", None, {"type": "tagv"}),
    ("GET", "/api/search/lookup", None, {"m": "secret"}),
    ("POST", "/api/put", json.dumps({"metric": "secret", "timestamp": NOW_S, "value": 6,
                                     "tags": {"host": "h"}}), {}),
    ("POST", "/write", f"secret,host=h value=6 {NOW_S}", {"precision": "s"}),
    ("POST", "/api/v2/write", f"secret,host=h value=6 {NOW_S}", {"precision": "s"}),
    ("POST", "/loki/api/v1/push", loki("another line"), {}),
    ("POST", "/chukwa", b"", {}),
    ("GET", "/api/streams", None, {}), ("GET", "/api/streams/search", None, {}),
    ("GET", "/api/streams/counts", None, {"step": "1h"}), ("GET", "/api/streams/demux", None, {}),
    ("GET", "/oops", None, {}), ("GET", "/oops/days/today", None, {}),
    ("GET", "/oops/groups", None, {}), ("GET", "/oops/OOPS-owner", None, {}),
    ("GET", "/oops/messages", None, {}), ("POST", "/oops", json.dumps(REPORT), {}),
    ("PUT", "/oops/OOPS-owner", json.dumps({"value": "thief's"}), {}),
    ("POST", "/oops/delete", "", {"id": "OOPS-owner"}),
    ("POST", "/oops/OOPS-owner/bug", "", {"tracker": "x", "bug": "1"}),
    ("POST", "/api/delete", "", {**METRIC, "start": 0, "end": "now"}),
    ("POST", "/api/delete", "", {"allMetrics": "true", "all": "true"}),
    ("DELETE", "/api/streams", None, {"source": "web"}),
    ("GET", "/hicc/v1/metrics/schema", None, {}), ("GET", "/hicc/v1/chart/list", None, {}),
    ("GET", "/hicc/v1/dashboard/view/1", None, {}),
    ("PUT", "/hicc/v1/chart/preview/series",
     json.dumps([{"query": {"metricName": "secret"}}]), {"start": NOW_S - 60}),
]


def is_untouched(server, tokens):
    head = tokens.head("owner")
    assert samples(server, tokens, "owner") == {("secret", (("host", "h"),)): [1.0]}
    assert "unit" not in server.get("/api/metadata/metric", head, **METRIC).text or \
        '"unit":"s"' not in server.get("/api/metadata/metric", head, **METRIC).text
    found = server.get("/api/streams/search", head).text
    assert LINE in found and "another line" not in found
    report = server.get("/oops/OOPS-owner", head).text
    assert "owner's" in report and "thief" not in report and '"tracker":"x"' not in report


def told_of(server, head, request):
    """What is said of tenants that `head` does not have, in every way to name them."""
    method, path, body, params = request
    told = set()
    for tenant in ("owner", "never"):
        for shown, asked in (({"X-Tenant": tenant}, {}), ({"X-Scope-OrgID": tenant}, {}),
                             ({}, {"tenant": tenant}), ({"X-Tenant": "b"}, {"tenant": tenant})):
            answer = server.request(method, path, body, {**head, **shown}, **params, **asked)
            assert answer.status == 403, (request, answer)
            headers = [(name, value) for name, value in answer.headers.items()
                       if name not in ("Date", "Content-Length")]
            told.add((answer.text.replace(tenant, "TENANT"), *sorted(headers)))
    return told


def test_one_that_is_named(server, tokens):
    for request in REQUESTS:
        assert len(told_of(server, tokens.head("b"), request)) == 1, request
    is_untouched(server, tokens)


@pytest.mark.parametrize("tenant", ["owner", "never-was"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_chunk_that_names_one(server, tokens, version, tenant):
    """Nothing is taken of the body, whose first chunk is of the sender's own tenant."""
    data = b"forged\n"
    own, other = (chunks.v2(len(data), data, tenant=name) if version == 2 else
                  chunks.v1(len(data), data, tags=f' tenant="{name}"')
                  for name in ("b", tenant))
    body = own + other if version == 2 else chunks.v1_post(own, other)
    answer = server.request("POST", "/chukwa", body, tokens.head("b"))
    assert answer.status == 403
    assert f"this credential does not have tenant {tenant}" in answer.text
    assert not server.get("/api/streams", tokens.head("b")).json["streams"]
    shown = server.get("/api/streams", tokens.head("owner")).json["streams"]
    assert len(shown) == 1  # that of warm()
    own = own if version == 2 else chunks.v1_post(own)
    assert server.request("POST", "/chukwa", own, tokens.head("b")).status == 200


@pytest.mark.parametrize("path", ["/api/streams/tail", "/oops/live"])
@pytest.mark.parametrize("verb", [["revoke"], ["change", "--roles", "admin,read"]])
def test_what_is_followed_ends_with_the_credential(server, tokens, path, verb):
    """Nothing that comes after the change is shown, and the stream has an end."""
    connection = server.new_connection()
    connection.request("GET", path, headers=tokens.head("owner"))
    answer = connection.getresponse()
    assert answer.status == 200
    tokens.create("sender", "write", "owner")
    assert tokens.command(verb[0], "owner", *verb[1:]).returncode == 0
    head = tokens.head("sender")
    for _ in range(3):
        server.request("POST", "/loki/api/v1/push", loki("after the change"), head)
        server.request("POST", "/oops", json.dumps({**REPORT, "value": "after the change"}), head)
    assert b"after the change" not in answer.read()  # up to its end
    connection.close()


def test_agents_of_two_tenants_have_names_of_their_own(server, tokens):
    report = {"boot": f"{1:016x}", "all": True, "version": "1", "collector": "c", "problem": "",
              "adaptors": [], "gone": []}
    for tenant in ("owner", "b"):
        answer = server.request("POST", "/api/agents/web/report",
                                json.dumps({**report, "collector": tenant}), tokens.head(tenant))
        assert answer.status == 204, answer
    server.request("POST", "/api/agents/web/report", json.dumps(report), tokens.head("root"))
    shown = server.get("/api/agents", tokens.head("root")).json["agents"]
    assert [(one["name"], one["collector"]) for one in shown] == [
        ("b/web", "b"), ("owner/web", "owner"), ("web", "c")]
    one = server.get("/api/agents/owner%2Fweb", tokens.head("root"))
    assert (one.status, one.json["collector"]) == (200, "owner")


def test_what_is_asked_without_a_name(server, tokens):
    """It is of one's own tenant, which has nothing; what is the owner's is as what nobody has."""
    head, cursor = tokens.head("b"), server.get("/api/export", tokens.head("owner"), limit=1)
    for method, path, body, params in REQUESTS:
        if method != "GET":
            continue
        as_owners = server.get(path, head, **params)
        asked = {key: value.replace("secret", "missing") if isinstance(value, str) else value
                 for key, value in params.items()}
        as_nobodys = server.get(path.replace("OOPS-owner", "OOPS-never"), head, **asked)
        assert as_owners.status == as_nobodys.status, path
        told = [a.text.replace("OOPS-owner", "OOPS-never").replace("secret", "missing")
                for a in (as_owners, as_nobodys)]
        assert told[0] == told[1], path
        assert LINE not in as_owners.text and "owner's" not in as_owners.text
    # A place in the owner's samples is none in others'.
    token = cursor.headers["X-Granary-Next"]
    if token:
        assert "secret" not in server.get("/api/export", head, token=token).text
    assert server.get("/api/metadata/tenants", head).json in ([], ["b"])
    is_untouched(server, tokens)


def test_what_is_deleted_without_a_name(server, tokens):
    head = tokens.head("b")
    for method, path, body, params in REQUESTS:
        if method in ("DELETE",) or "delete" in path:
            answer = server.request(method, path, body, head, **params)
            assert answer.status in (200, 202, 204, 400, 404), answer
    is_untouched(server, tokens)
