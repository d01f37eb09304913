"""Clients that go away: over every route of the server, by RST or FIN, before, in and after the
answer, while series, devices and roll-ups come and go. The servers here are built with a sanitizer,
which says when memory is used that was given back, or by two threads at once."""

import contextlib
import html
import json
import os
import random
import re
import socket
import struct
import threading
import time

import pytest

from chunks import v1, v1_post, v2
from server import eventually, long_run, sanitized_build
from test_polls import octets

pytestmark = pytest.mark.not_sanitized("chooses its servers itself")

SECONDS = 600 if long_run() else 8
REQUESTS_LEAST = 50000 if long_run() else 0
STOPS = 100 if long_run() else 2
CLIENTS = 6
PATIENCE_S = 1800 if long_run() else 120
METRICS = 40
RESETS = struct.pack("ii", 1, 0)

# Roll-ups and rates are made all the time, and little waits for company.
OPTIONS = ["--rollup.slot=4s", "--rollup.granularities=1s,2s", "--rollup.quiet=1s",
           "--rollup.every=1s", "--rollup.clock_difference=0", "--ingest.wait_max=10ms",
           "--persist.derive_every=1s", "--store.journal_max=1M", "--store.map_size=4G",
           "--store.read_threads=4", "--host.enabled=true", "--host.interval=100ms",
           "--log.level=error"]
SECRETS = "lab: {version: 2c, community: public}\n"


class World:
    """What clients ask about: names that come and go. `number` tells what is new."""

    def __init__(self, seed):
        self.token = "gr_"
        self.random = random.Random(seed)
        self.number = seed % 1000 * 1000000
        self.key, self.spare = "", ("1", "0" * 32)
        self.group = self.other = "1-none"

    def learn(self, server):
        """The key of project 1, and another project's, which may go; project 1 stays. Two groups
        that are there."""
        self.token = server.token or self.token
        projects = server.get("/oops/projects").json["projects"]
        self.key = projects[0]["keys"][0]
        self.spare = next(((p["number"], p["keys"][0]) for p in projects[1:] if p["keys"]),
                          self.spare)
        groups = server.get("/oops/groups").json["groups"]
        self.group = groups[0]["group"] if groups else self.group
        self.other = groups[-1]["group"] if groups else self.other

    def new(self):
        self.number += 1
        return self.number

    def metric(self):
        """Often one that came a moment ago, or that nobody has."""
        return f"m{self.random.randrange(METRICS)}"

    def device(self):
        return f"rtr_{self.random.randrange(6)}"

    def name(self):
        return self.random.choice(["a", "b", "x" * 200, "q-1"])

    def start(self):
        return self.random.choice(["1h-ago", "10s-ago", "0", str(int(time.time()) - 60)])


# ---- What is asked of each route ----------------------------------------------------------------


def get(path):
    """The same each time; {m} is a metric, {d} a device, {t} a time, {n} some name."""
    def make(world):
        return path.format(m=world.metric(), d=world.device(), t=world.start(), n=world.name()), b""
    return make


def any_of(*paths):
    makes = [get(path) for path in paths]
    return lambda world: world.random.choice(makes)(world)


def sends(path, *bodies):
    """Bodies as JSON, or as they are; a function makes one."""
    def make(world):
        body = world.random.choice(bodies)
        body = body(world) if callable(body) else body
        return get(path)(world)[0], body if isinstance(body, bytes) else json.dumps(body).encode()
    return make


def points(world):
    return [{"metric": world.metric(), "timestamp": int(time.time()) - world.random.randrange(20),
             "value": world.random.random(), "tags": {"h": f"n{world.new()}", "g": "x"}}
            for _ in range(world.random.choice([1, 5, 10]))]


def lines(world):
    """One new metric, and some new series of old ones: so many that those who look at all of them
    still end soon after 50,000 requests."""
    now = time.time_ns()
    text = "".join(f"m{world.random.randrange(METRICS)},h=n{world.new()} v={i}i {now - i}\n"
                   f"m0,h=old{i % 4} v={i}i {now - i * 10**9}\n"
                   for i in range(world.random.choice([1, 3, 20])))
    return f"{text}new{world.new()} v=1 {now}\n".encode()


def polls(world):
    now = int(time.time())
    return [octets(now, world.new(), f"xe-0/0/{world.random.randrange(20)}", world.device())
            for _ in range(world.random.choice([1, 10]))]


def device(world):
    return {"name": world.device(), "address": "127.0.0.1:9", "credentials": "lab",
            "oidsets": ["FastPollHC", "IfRefPoll"], "begin": "2020-01-01"}


def report(world):
    """Often one that is there, with the same content or another."""
    return {"id": f"OOPS-{world.random.randrange(50)}", "context": world.name(),
            "exception": f"E{world.random.randrange(3)}", "duration": world.random.randrange(5),
            "n": world.new(), "timeline": [[0, 1, "SQL-main", f"SELECT {world.new()}"]]}


def chunks(world):
    data = world.random.choice((b"one\n", b"another\n", b"more of them\n" * 5000))
    at = world.random.randrange(3) * len(data)
    return v2(at + len(data), data, name=world.name()) + v2(len(data), data, name="/same")


def loki_push(world):
    return {"streams": [{"stream": {"host": "a", "job": world.name()},
                         "values": [[str(time.time_ns()), f"line {world.new()}"]]}]}


def event(world):
    return {"event_id": f"{world.random.randrange(50):032x}", "transaction": world.name(),
            "exception": {"values": [{"type": f"E{world.random.randrange(3)}"}]}, "n": world.new()}


def sentry(door, make):
    """With the key, or with none."""
    def request(world):
        key = world.random.choice(["", world.key, world.key])
        return f"/api/1/{door}/?sentry_key={key}", make(world)
    return request


def envelope(world):
    return b'{}\n{"type":"event"}\n' + json.dumps(event(world)).encode()


def a_group(world):
    return f"/oops/groups/{world.group}", b""


def says_of_a_group(world):
    said = world.random.choice(["status=resolved&next=true", "status=muted&until=2&within=1h",
                                "status=open&assignee=anna", "tracker=jira&bug=1"])
    return f"/oops/groups/{world.group}?{said}", b""


def merges_groups(world):
    what = world.random.choice([f"merge?into={world.other}", "split", "split?dryRun=true",
                                f"merge?into={world.other}&dryRun=true"])
    return f"/oops/groups/{world.group}/{what}", b""


def says_of_a_report(world):
    bug = world.random.choice(["tracker=jira&bug=1", "tracker=jira&bug=", "tracker=lp&bug=2"])
    return f"/oops/OOPS-{world.random.randrange(5)}/bug?{bug}", b""


def remove_key(world):
    number, key = world.spare
    return f"/oops/projects/{number}/keys/{key}", b""


FILTERS = [{"type": "wildcard", "tagk": "h", "filter": "*", "groupBy": True},
           {"type": "regexp", "tagk": "h", "filter": "(o|n)(l|[0-9]+)*.*1", "groupBy": True}]


def tsdb_query(world):
    queries = [{"metric": world.metric(), "aggregator": world.random.choice(["sum", "none"]),
                "downsample": world.random.choice(["1s-avg", "1m-max"]),
                "filters": [world.random.choice(FILTERS)]}
               for _ in range(world.random.choice([1, 8]))]
    return {"start": world.random.choice(["1h-ago", "10s-ago"]), "queries": queries}


def says_of_adaptors(world):
    """As one of a few agents that start again and again: mostly of all, or refused."""
    return {"boot": f"{world.random.randrange(2):016x}", "all": world.random.random() < 0.6,
            "version": "1", "collector": "", "problem": "", "gone": ["a1", world.name()],
            "adaptors": [{"name": f"a{number}", "kind": "tail", "datatype": "log", "path": "/l",
                          "state": "following", "offset": world.new(), "behind": 0, "lastLine": 0,
                          "error": "e" * world.random.randrange(99)}
                         for number in range(world.random.choice([0, 3, 300]))]}


def a_dashboard_with_all(world):
    name = world.name()
    return {"dashboard": {"id": name, "n": world.new(), "grid": [{"title": name}]},
            "widgets": [{"title": name, "src": f"/hicc/v1/chart/draw/{name}"}],
            "charts": [{"id": name, "n": world.new()}]}


def boards(kind):
    key, path = "title" if kind == "widget" else "id", f"/hicc/v1/{kind}/"
    yield f"GET {path}…", any_of(path + "list", path + "list?brief=true&limit=2", path + "search/a",
                                 path + "view/{n}", "/hicc/v1/dashboard/export/{n}")
    yield f"POST {path}…", sends(path + "create", lambda world: {key: f"n{world.new()}"},
                                 lambda world: {key: world.name()}, [], b"{")
    yield f"PUT {path}…", lambda world: (
        f"{path}update/a", json.dumps({key: "a", "n": world.new()}).encode())
    yield f"DELETE {path}…", get(path + "delete/{n}")


INTERFACE = "/v2/device/{d}/interface/xe-0@2F0@2F1/in"

REQUESTS = {
    "GET /": get("/"),
    "GET /style.css": get("/style.css"),
    "GET /metrics": get("/metrics"),
    "GET /-/healthy": get("/-/healthy"),
    "GET /-/ready": get("/-/ready"),
    "GET /api/query": any_of(
        "/api/query?metricName={m}&start={t}", "/api/query?metricName={m}&start=0&format=csv",
        "/api/query?metricName={m}&start={t}&fn=avg&window=1s",
        "/api/query?metricName={m}&start={t}&fn=sum&window=2s&agg=sum",
        "/api/query?metricName={m}&tag=h=n*&start=0&fn=last",
        "/api/query?tenant=snmp&metricName=ifHCInOctets&start=0&tag=device={d}",
        "/api/query?tenant=snmp&metricName=ifHCInOctets&start=0&tag=alias=*",
        "/api/query?tenant=host&metricName=SystemMetrics.LoadAverage.1&start=5m-ago&fn=rate"),
    "GET /api/metadata/tenants": get("/api/metadata/tenants"),
    "GET /api/metadata/metricNames": any_of(
        "/api/metadata/metricNames", "/api/metadata/metricNames?limit=100000",
        "/api/metadata/metricNames?prefix=new&limit=7", "/api/metadata/metricNames?tenant={n}"),
    "GET /api/metadata/tagKeys": get("/api/metadata/tagKeys?metricName={m}"),
    "GET /api/metadata/tagValues": any_of(
        "/api/metadata/tagValues?metricName={m}&tagKey=h",
        "/api/metadata/tagValues?tenant=snmp&metricName=ifHCInOctets&tagKey=device"),
    "GET /api/metadata/series": any_of(
        "/api/metadata/series?metricName={m}", "/api/metadata/series?metricName={m}&tag=h=old*",
        "/api/metadata/series?tenant=snmp&metricName=ifHCInOctets"),
    "GET /api/metadata/metric": get("/api/metadata/metric?metricName={m}"),
    "PUT /api/metadata/metric": sends("/api/metadata/metric?metricName={m}", {"unit": "%"},
                                      {"kind": "gauge", "description": "d" * 500},
                                      {"unit": None, "description": None}),
    "GET /api/clock": get("/api/clock"),
    "GET /api/backup": get("/api/backup"),
    "POST /api/clock/accept": get("/api/clock/accept"),
    "POST /api/query": sends("/api/query", tsdb_query, b"{"),
    "GET /api/suggest": any_of(
        "/api/suggest?type=metrics&max=10000", "/api/suggest?type=metrics&q=new",
        "/api/suggest?type=tagk", "/api/suggest?type=tagv&max=100",
        "/api/suggest?type=tagv&tenant=snmp&q=rtr"),
    "GET /api/search/lookup": any_of("/api/search/lookup?m={m}",
                                     "/api/search/lookup?m={m}{{h=*}}&limit=5"),
    "POST /api/suggest": sends("/api/suggest", {"type": "metrics", "q": "new"}, {"type": "tagv"}),
    "GET /api/query/last": any_of("/api/query/last?timeseries={m}",
                                  "/api/query/last?tenant=snmp&timeseries=ifHCInOctets"),
    "POST /api/query/last": sends("/api/query/last", lambda world: {
        "queries": [{"metric": world.metric(), **world.random.choice(
            [{}, {"tags": {"h": "regexp((o|n)(l|[0-9]+)*.*1)"}}])} for _ in range(3)]}),
    "GET /api/version": get("/api/version"),
    "POST /api/polls/now": get("/api/polls/now?device={d}"),
    "GET /api/aggregators": get("/api/aggregators"),
    "GET /api/config/filters": get("/api/config/filters"),
    "GET /api/stats": get("/api/stats"),
    "GET /api/verify": get("/api/verify"),
    "GET /api/devices": get("/api/devices"),
    "POST /api/devices": sends("/api/devices", device, lambda world: [device(world)]),
    "GET /api/devices/…": get("/api/devices/{d}"),
    "POST /api/devices/…": sends("/api/devices/{d}", lambda world: {"name": world.device()},
                                 {"oidsets": ["FastPollHC"]}, {"active": False}, {"active": True}),
    "DELETE /api/devices/…": any_of("/api/devices/{d}", "/api/devices/{d}?withData=true"),
    "GET /api/oidsets": get("/api/oidsets"),
    "GET /api/oidsets/…": any_of("/api/oidsets/IfXTable", "/api/oidsets/{n}"),
    "GET /api/interfaces": any_of("/api/interfaces", "/api/interfaces?device={d}",
                                  "/api/interfaces?begin=0&end=now", "/api/interfaces?kind=saps"),
    "POST /api/put": sends("/api/put?details", points, b"[{}"),
    "POST /write": sends("/write", lines, b"m v="),
    "POST /api/v2/write": sends("/api/v2/write?org=o&bucket=b", lines),
    "POST /api/recompute": any_of(
        "/api/recompute?device={d}&from=1h-ago&to=now", "/api/recompute?device={d}&from=1h-ago"
        "&to=now&dryRun=true"),
    "GET /api/rollups": get("/api/rollups"),
    "POST /api/rollups/rebuild": any_of("/api/rollups/rebuild?from=1h-ago",
                                        "/api/rollups/rebuild?from=1h-ago&dryRun=true"),
    "GET /api/retention": get("/api/retention"),
    "POST /api/retention/apply": any_of("/api/retention/apply", "/api/retention/apply?dryRun=true"),
    "POST /api/delete": any_of(
        "/api/delete?metricName={m}&start=0&end=now",
        "/api/delete?metricName={m}&start=0&end=now&tag=h=n*&dryRun=true"),
    "GET /api/queues": get("/api/queues"),
    "GET /api/queues/aside": any_of("/api/queues/aside?queue=counters",
                                    "/api/queues/aside?queue={n}"),
    "POST /api/queues/retry": get("/api/queues/retry?queue=counters"),
    "POST /api/polls": sends("/api/polls", polls),
    "GET /api/pollers": get("/api/pollers"),
    "GET /api/pollers/…": get("/api/pollers/site_{n}/inventory"),
    "POST /api/pollers/…": sends("/api/pollers/site_b/report", {
        "problem": "", "pending": 1, "pendingBytes": 9, "aside": 0, "dropped": 0, "devices": []},
        []),
    "GET /api/agents": any_of("/api/agents", "/api/agents?limit=1&token=a"),
    "GET /api/agents/…": any_of("/api/agents/web_{n}", "/api/agents/web_a",
                                "/api/agents/web_a?state=following&limit=2&token=a1"),
    "POST /api/agents/…": sends("/api/agents/web_{n}/report", says_of_adaptors, []),
    "DELETE /api/agents/…": get("/api/agents/web_{n}"),
    "POST /chukwa": sends("/chukwa", chunks,
                           lambda world: v1_post(v1(4, b"abc\n", name=world.name())),
                           b"Gch2"),
    "DELETE /api/streams": any_of(
        "/api/streams?stream=host1/demo/log//same@0000000000000001",
        "/api/streams?stream=host1/demo/log/{n}@0000000000000001&dryRun=true"),
    "GET /api/streams": any_of("/api/streams", "/api/streams?source=host1&limit=3"),
    "GET /api/streams/demux": any_of("/api/streams/demux", "/api/streams/demux?datatype=a&limit=3"),
    "POST /api/streams/demux": any_of(
        "/api/streams/demux?stream=host1/demo/log//same@0000000000000001",
        "/api/streams/demux?stream=host1/demo/log/{n}@0000000000000001"),
    "GET /api/streams/search": any_of(
        "/api/streams/search?q=abc", "/api/streams/search?limit=3&order=oldest",
        "/api/streams/search?q={n}&since=1h-ago"),
    "GET /api/streams/counts": any_of(
        "/api/streams/counts", "/api/streams/counts?q=abc&by=source,severity&step=1h"),
    "GET /api/streams/lines": any_of(
        "/api/streams/lines?stream=host1/demo/log//same@0000000000000001&offset=0",
        "/api/streams/lines?stream=host1/demo/log/{n}@0000000000000001&offset=0"),
    "GET /api/streams/tail": any_of("/api/streams/tail", "/api/streams/tail?q=abc"),
    "POST /loki/api/v1/push": sends(
        "/loki/api/v1/push", loki_push, lambda world: {"streams": []}, b"{"),
    "GET /api/export": any_of("/api/export?limit=3", "/api/export?metricName={m}&format=json",
                              "/api/export?format=csv&token=5%20{m};"),
    "GET /api/streams/export": any_of(
        "/api/streams/export?stream=host1/demo/log//same@0000000000000001",
        "/api/streams/export?stream=host1/demo/log/{n}@0000000000000001"),
    "GET /hicc/v1/metrics/schema…": any_of(
        "/hicc/v1/metrics/schema", "/hicc/v1/metrics/schema/SystemMetrics",
        "/hicc/v1/metrics/schema/SystemMetrics?details=true"),
    "GET /hicc/v1/metrics/source/…": get("/hicc/v1/metrics/source/SystemMetrics"),
    "GET /hicc/v1/metrics/series/…": any_of(
        f"/hicc/v1/metrics/series/SystemMetrics.cpu.user.0/{socket.gethostname()}?start={{t}}",
        "/hicc/v1/metrics/series/a.b.c.d/{n}?tenant=default", "/hicc/v1/metrics/series/{m}/{n}"),
    "GET /hicc/v1/metrics/notes/…": get("/hicc/v1/metrics/notes/a.b/{n}?start={t}"),
    "POST /hicc/v1/metrics/notes/…": sends(
        "/hicc/v1/metrics/notes/a.b/{n}", lambda world: {"text": f"note {world.random.random()}"},
        {"text": "same", "time": 1700000000000}),
    "DELETE /hicc/v1/metrics/notes/…": any_of(
        "/hicc/v1/metrics/notes/a.b/{n}/1700000000000-51037a4a37730f52",
        "/hicc/v1/metrics/notes/a.b/{n}/x"),
    "PUT /hicc/v1/chart/preview/series": sends(
        "/hicc/v1/chart/preview/series?tenant=default&start={t}", lambda world: [
            {"query": {"metricName": world.metric(), "fn": "avg", "window": "1s"}},
            {"url": f"/hicc/v1/metrics/series/{world.metric()}/a"}] * 5, {}, b"["),
    "POST /hicc/v1/dashboard/import": sends(
        "/hicc/v1/dashboard/import?overwrite=true", a_dashboard_with_all, {}, b"{"),
    **{row: make for kind in ("chart", "widget", "dashboard") for row, make in boards(kind)},
    "GET /oops": any_of("/oops", "/oops?context={n}&limit=5", "/oops?since={t}&format=csv"),
    "GET /oops/live": any_of("/oops/live", "/oops/live?level=error"),
    "POST /oops": sends("/oops", report, lambda world: [report(world) for _ in range(20)], b"{",
                        lambda world: {"context": world.name()}),
    "GET /oops/groups": any_of("/oops/groups", "/oops/groups?status=muted&sort=users"),
    "GET /oops/groups/…": a_group,
    "PUT /oops/groups/…": says_of_a_group,
    "POST /oops/groups/…": merges_groups,
    "GET /oops/messages": any_of("/oops/messages", "/oops/messages?kind=new&heldBack=true"),
    "GET /oops/messages/live": any_of("/oops/messages/live", "/oops/messages/live?token=0"),
    "GET /api/credentials": get("/api/credentials"),
    "POST /api/credentials": any_of(
        *(f"/api/credentials?name=n{n}&roles=write,poll&tenants=a,b" for n in range(6))),
    "PUT /api/credentials/…": any_of("/api/credentials/n0?roles=read&tenants=*",
                                     "/api/credentials/n1?expires=1h"),
    "DELETE /api/credentials/…": any_of(*(f"/api/credentials/n{n}" for n in range(6))),
    "POST /api/session": sends("/api/session", {"name": "n0", "password": "wrong one"},
                               {"token": "gr_"}, lambda world: {"token": world.token}),
    "GET /api/session": get("/api/session"),
    "DELETE /api/session": get("/api/session"),
    "DELETE /api/sessions": get("/api/sessions"),
    "GET /oops/projects": get("/oops/projects"),
    "POST /oops/projects": any_of(*(f"/oops/projects?name=p{n}" for n in range(6))),
    "POST /oops/projects/#/keys": any_of("/oops/projects/2/keys", "/oops/projects/3/keys"),
    "DELETE /oops/projects/#/keys/…": remove_key,
    "POST /api/#/envelope": sentry("envelope", envelope),
    "POST /api/#/store": sentry("store", lambda world: json.dumps(event(world)).encode()),
    "GET /oops/…": any_of(*(f"/oops/OOPS-{n}" for n in range(5)), "/oops/OOPS-1/why"),
    "POST /oops/…": says_of_a_report,
    "PUT /oops/…": lambda world: (f"/oops/OOPS-put-{world.random.randrange(50)}",
                                  json.dumps({**report(world), "id": None}).encode()),
    "GET /oops/days/…": any_of("/oops/days/today", "/oops/days/today?from=00:00",
                               "/oops/days/today/oops?limit=7", "/oops/days/yesterday",
                               "/oops/days/today/report", "/oops/days/today/report?format=html"),
    "POST /oops/days/…": get("/oops/days/today/recount"),
    "POST /oops/delete": any_of("/oops/delete?user={n}", "/oops/delete?user=a&dryRun=true"),
    "POST /oops/gc": any_of("/oops/gc?before=1h-ago", "/oops/gc?bytes=1&dryRun=true"),
    "GET /query": any_of("/query?q=SHOW%20DATABASES", "/query?q=CREATE%20DATABASE%20{n}"),
    "POST /query": get("/query?q=SHOW%20DATABASES"),
    "GET /ping": any_of("/ping", "/ping?verbose=true"),
    "GET /health": get("/health"),
    "GET /api/v2/health": get("/api/v2/health"),
    "GET /ready": get("/ready"),
    "GET /api/v2/ready": get("/api/v2/ready"),
    "GET /api/v2/buckets": get("/api/v2/buckets?name={n}"),
    "GET /api/v2/orgs": get("/api/v2/orgs?org={n}"),
    "GET /v2/device…": any_of("/v2/device/", "/v2/device/{d}/", "/v2/device/{d}/interface/",
                              INTERFACE, INTERFACE + "?agg=300", "/v2/device/{d}/interface/"
                              "xe-0@2F0@2F1/", "/v2/device/{d}/sap/"),
    "PUT /v2/device/…": sends("/v2/device/{d}/", {"oidsets": ["FastPollHC"]}, {}),
    "GET /v2/interface…": any_of("/v2/interface/", "/v2/interface/?ifAlias__icontains=a"),
    "GET /v2/oidsetmap…": get("/v2/oidsetmap/"),
    "GET /v2/oidset…": get("/v2/oidset/"),
    "GET /v2/timeseries/…": any_of(
        *(f"/v2/timeseries/{kind}/snmp/{{d}}/FastPollHC/ifHCInOctets/xe-0@2F0@2F1/30000"
          for kind in ("RawData", "BaseRate", "Aggs"))),
    "POST /v2/timeseries/…": sends(
        "/v2/timeseries/RawData/snmp/{d}/FastPollHC/ifHCInOctets/xe-0@2F0@2F1/30000",
        lambda world: [{"ts": int(time.time() * 1000), "val": world.new()}]),
    "POST /v2/bulk/interface…": sends(
        "/v2/bulk/interface/", lambda world: {
            "interfaces": [{"device": world.device(), "iface": f"xe-0/0/{i}"} for i in range(5)],
            "endpoint": ["in", "out"]}),
    "POST /v2/bulk/timeseries…": sends(
        "/v2/bulk/timeseries/", lambda world: {
            "type": "BaseRate", "paths": [["snmp", world.device(), "FastPollHC", "ifHCInOctets",
                                           f"xe-0/0/{i}", 30000] for i in range(5)]}),
    "GET /v2/report/percentile…": any_of(
        "/v2/report/percentile?device={d}&interface=xe-0/0/1&zone=Europe/Berlin",
        "/v2/report/percentile?device={d}&format=csv"),
    "GET /v2/report/volume…": get("/v2/report/volume?device={d}&interface=xe-0/0/1"),
    "GET /v2/report/sum…": get("/v2/report/sum?endpoint=in&ifAlias__icontains=a"),
    "GET /v2/report/top…": any_of("/v2/report/top?endpoint=in&by=max&n=10",
                                  "/v2/report/top?endpoint=in&by=volume&n=10&begin=0"),
    "GET /v2/inventory…": any_of("/v2/inventory/", "/v2/inventory/?row_key__contains=In"),
    "GET /v2/outlet…": get("/v2/outlet/"),
    "GET /v2/pdu…": any_of("/v2/pdu/", "/v2/pdu/{d}/"),
}

# A client may go away at any moment, but what these three have is what others need to be there.
RARELY = {"DELETE /api/devices/…", "POST /api/delete", "GET /api/verify"}


def routes_of(server):
    """Those that the server has: the page of its own lists the table they are made from."""
    rows = re.findall(r"<tr><td><code>([A-Z]+ [^<]+)</code>", server.get("/").body.decode())
    return [html.unescape(row) for row in rows]


# ---- Clients ------------------------------------------------------------------------------------


def message(server, verb, path, body):
    head = f"{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in server.shown().items())
    return (head + "Content-Type: application/json\r\n" * (body[:1] in (b"{", b"["))
            + "\r\n").encode() + body


def answer_began(sock):
    with contextlib.suppress(OSError):
        return bool(sock.recv(1))
    return False


def leave(sock, rng):
    """By RST, which also says at once that what was sent may be forgotten, or by FIN."""
    if rng.random() < 0.7:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
    sock.close()


def ask_and_leave(server, verb, path, body, rng):
    """Goes away at some moment; the status of an answer that was seen whole, else None."""
    data = message(server, verb, path, body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        moment = rng.choice(["within", "at once", "soon", "soon", "soon", "begun", "whole"])
        if moment == "within":
            sock.sendall(data[:rng.randrange(len(data))])
        else:
            sock.sendall(data)
        if moment == "soon":
            time.sleep(rng.expovariate(1 / 0.004))
        elif moment == "begun":
            answer_began(sock)
        elif moment == "whole":
            status = sock.recv(65536)[9:12]
            leave(sock, rng)
            return int(status) if status else None
        leave(sock, rng)
    return None


class Clients:
    """They ask for every route in turn until they are told to stop, or the server goes away."""

    def __init__(self, server, routes, seed):
        self.server, self.routes = server, routes
        self.stop = threading.Event()
        self.asked, self.failed = dict.fromkeys(routes, 0), []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.go, args=(seed + i, self.world(seed + i)))
                        for i in range(CLIENTS)]

    def world(self, seed):
        """Not by the threads: the server's kept connection is for one at a time."""
        world = World(seed)
        world.learn(self.server)
        return world

    def go(self, seed, world):
        rng = random.Random(seed)
        routes = list(self.routes)
        while not self.stop.is_set():
            rng.shuffle(routes)
            for route in routes:
                if self.stop.is_set() or (route in RARELY and rng.random() < 0.8):
                    continue
                verb = route.split()[0]
                path, body = REQUESTS[route](world)
                try:
                    status = ask_and_leave(self.server, verb, path, body, rng)
                except OSError:
                    if self.stop.is_set() or not self.server.running():
                        return
                    continue
                with self.lock:
                    self.asked[route] += 1
                    if status == 500:
                        self.failed.append((route, path))

    def enough(self):
        return sum(self.asked.values()) >= REQUESTS_LEAST and min(self.asked.values()) > 0

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


CONFIG = """snmp:
  secrets_file: {}
datatypes:
  log: {{pattern: '<word>', events: {{tags: [word]}}}}
"""


@pytest.fixture(params=["asan", "tsan"])
def make_sanitized(request, make_server, tmp_path, monkeypatch):
    monkeypatch.setenv("GRANARY", sanitized_build(request.param))
    secrets = tmp_path / "secrets.yml"
    secrets.write_text(SECRETS)
    secrets.chmod(0o600)

    def make(name="main"):
        server = make_server(name, config=CONFIG.format(secrets), options=OPTIONS,
                             host_metrics=True)
        server.start()
        server.close_to_others()
        for number in range(3):
            said = server.request("POST", "/api/devices", json.dumps(
                {**device(World(number)), "name": f"rtr_{number}"}))
            assert said.status in (200, 201, 204), said
        return server

    return make


def seed_of_run():
    seed = int(os.environ.get("GRANARY_SEED", time.time_ns() % 10**6))
    print(f"seed {seed}")
    return seed


def test_every_route_is_asked(server):
    assert sorted(routes_of(server)) == sorted(REQUESTS)


def test_every_route_answers_some(make_server, tmp_path):
    """What is asked of it is not only refused."""
    secrets = tmp_path / "secrets.yml"
    secrets.write_text(SECRETS)
    secrets.chmod(0o600)
    server, world = make_server(config=CONFIG.format(secrets), options=OPTIONS,
                                host_metrics=True), World(1)
    server.start()
    server.close_to_others()
    routes, answered = {}, set()

    def ask_all():
        world.learn(server)
        for route in routes_of(server):  # once more those that answered: others need what they do
            path, body = REQUESTS[route](world)
            kind = {"Content-Type": "application/json"} if body[:1] in (b"{", b"[") else {}
            endless = route.endswith(("/live", "/tail"))
            verb = "HEAD" if endless else route.split()[0]
            answer = server.request(verb, path, body, kind)
            if 200 <= answer.status < 300:
                answered.add(route)
                routes.pop(route, None)
            elif route not in answered:
                routes[route] = (path, answer.status, answer.text[:100])
        return answered == set(REQUESTS)
    eventually(ask_all, lambda: routes)
    server.stop()


def test_clients_that_go_away(make_sanitized):
    server, seed = make_sanitized(), seed_of_run()
    routes = routes_of(server)
    end = time.monotonic() + SECONDS
    with Clients(server, routes, seed) as clients:
        eventually(lambda: not server.running() or (time.monotonic() > end and clients.enough()),
                   lambda: clients.asked, SECONDS + PATIENCE_S)
    print(f"{sum(clients.asked.values())} requests, {min(clients.asked.values())} of the rarest")
    server.stop()
    assert not clients.failed
    assert min(clients.asked.values()) > 0


def test_a_stop_while_clients_go_away(make_sanitized):
    """TERM at some moment; what is under way is carried out or left, and the end is a clean one."""
    seed = seed_of_run()
    rng = random.Random(seed)
    server = make_sanitized()
    for number in range(STOPS):
        if not server.running():
            server.start()
        with Clients(server, routes_of(server), seed + 100 * number) as clients:
            time.sleep(rng.uniform(0.1, 2))  # the moment of the stop
            server.stop()
        assert sum(clients.asked.values())
