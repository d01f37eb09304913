"""Charts, widgets and dashboards against the real server: every verb of the three kinds, editors
who meet, members that nobody knows, export and import, shipped ones, limits, kills, the command
line."""

import copy
import json
import re
import subprocess
import threading

import pytest

from server import eventually, granary, running

KINDS = {"chart": "id", "widget": "title", "dashboard": "id"}
# Constructor of Chukwa's Chart: what a chart has that says nothing.
PRESETS = {"type": "TIME_SERIES", "title": "Untitled Chart", "xLabelOn": True, "yLabelOn": True,
           "width": 100, "height": 100, "legend": True}
UNKNOWN = {"big": 18446744073709551615, "odd": 9007199254740993, "text": "ä\u202e\\\"",
           "none": None, "deep": {"a": [1.5, [], {}, {"b": [[True]]}]}}


def ask(server, method, path, body=None, tenant="t", **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
    if tenant:
        headers["X-Tenant"] = tenant
    return server.request(method, "/hicc/v1/" + path,
                          body if body is None or isinstance(body, (str, bytes))
                          else json.dumps(body), headers)


def sentence(answer):
    return answer.json["error"]["message"]


def make(server, kind, body, tenant="t"):
    answer = ask(server, "POST", f"{kind}/create", body, tenant)
    assert answer.status == 201, answer
    return answer


# ---- Verbs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_one_is_made_found_changed_and_deleted(server, kind):
    key, tenant = KINDS[kind], f"verbs-{kind}"
    first = {key: "a b/c", "note": UNKNOWN}
    made = make(server, kind, first, tenant)
    assert made.json.items() >= first.items()
    seen = ask(server, "GET", f"{kind}/view/a%20b%2Fc", tenant=tenant)
    assert (seen.status, seen.body) == (200, made.body)
    assert seen.headers["etag"] == made.headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', seen.headers["etag"])
    for word in ("describe", "load"):
        assert ask(server, "GET", f"{kind}/{word}/a%20b%2Fc", tenant=tenant).body == made.body
    head = ask(server, "HEAD", f"{kind}/view/a%20b%2Fc", tenant=tenant)
    assert (head.status, head.body) == (200, b"")

    again = ask(server, "POST", f"{kind}/create", first, tenant)
    assert again.status == 400 and sentence(again) == f'there is a {kind} "a b/c" already'
    changed = ask(server, "PUT", f"{kind}/update/a%20b%2Fc", {**first, "n": 2}, tenant)
    assert changed.status == 200 and changed.json["n"] == 2
    assert changed.headers["etag"] != made.headers["etag"]
    assert ask(server, "PUT", f"{kind}/save/new", {key: "new"}, tenant).status == 201

    listed = ask(server, "GET", f"{kind}/list", tenant=tenant).json
    assert [one[key] for one in listed if one[key] in ("a b/c", "new")] == ["a b/c", "new"]
    assert ask(server, "GET", f"{kind}/search/ne", tenant=tenant).json == [
        ask(server, "GET", f"{kind}/view/new", tenant=tenant).json]
    brief = ask(server, "GET", f"{kind}/search/a?brief=true", tenant=tenant).json
    assert brief == [{"id": "a b/c", **({} if kind == "dashboard" else {
        "title": "Untitled Chart" if kind == "chart" else "a b/c"}),
        **({"type": "TIME_SERIES"} if kind == "chart" else {}), "bytes": len(changed.body),
        "shipped": False, "etag": changed.headers["etag"]}]

    gone = ask(server, "DELETE", f"{kind}/delete/a%20b%2Fc", tenant=tenant)
    assert gone.json == {"deleted": "a b/c", "shippedIsBack": False}
    for method, path in (("GET", "view"), ("DELETE", "delete")):
        missing = ask(server, method, f"{kind}/{path}/a%20b%2Fc", tenant=tenant)
        assert missing.status == 404 and sentence(missing) == f'there is no {kind} "a b/c"'


def test_chukwas_way(server):
    """save answers with the id alone; a chart that says nothing gets what Chukwa's constructor
    gives; the document is a dashboard's as HICC has it."""
    saved = ask(server, "POST", "chart/save", {"series": []})
    assert saved.status == 200 and saved.headers.get_content_type() == "text/plain"
    assert re.fullmatch("[0-9a-f]{16}", saved.text)
    described = ask(server, "GET", f"chart/describe/{saved.text}")
    assert described.json == {"id": saved.text, "series": [], **PRESETS}
    assert ask(server, "PUT", f"chart/save/{saved.text}", {"title": "T"}).status == 200
    assert ask(server, "GET", f"chart/describe/{saved.text}").json["title"] == "T"
    grid = {"grid": [{"col": 1, "row": 1, "size_x": 2, "size_y": 3, "title": "w",
                      "src": f"/hicc/v1/chart/draw/{saved.text}", "tokens": ["w"]}]}
    assert ask(server, "PUT", "dashboard/save/default", grid).status == 201
    assert ask(server, "GET", "dashboard/load/default").json == {"id": "default", **grid}


def test_pages_of_a_list(server):
    titles = [f"{n:03}" for n in range(25)]
    for title in titles:
        make(server, "widget", {"title": title}, "pages")
    shipped = [one["title"] for one in ask(server, "GET", "widget/list", tenant="empty").json]
    everything = sorted(titles + shipped)
    pages = [ask(server, "GET", f"widget/list?limit=7&offset={at}", tenant="pages").json
             for at in range(0, 42, 7)]
    assert [one["title"] for page in pages for one in page] == everything
    assert [len(page) for page in pages] == [7, 7, 7, 7, 3, 0]


def test_a_list_says_that_there_are_more(server):
    for at in range(5):
        make(server, "chart", {"id": f"m{at}"})
    ids = [f"m{at}" for at in range(5)]
    for limit, offset in ((4, 0), (5, 0), (6, 0), (2, 2), (3, 2)):
        answer = ask(server, "GET", f"chart/search/m?limit={limit}&offset={offset}")
        assert [one["id"] for one in answer.json] == ids[offset:offset + limit]
        assert answer.headers["X-Granary-Cut"] == ("limit" if offset + limit < 5 else None)


def test_paths_that_are_none(server):
    get = "list, search/ID, view/ID, describe/ID, load/ID"
    for method, path, words in (
            ("GET", "chart/export/1", get), ("GET", "chart/", get), ("GET", "widget/view/a/b", get),
            ("GET", "dashboard/whoami", get + ", export/ID"),
            ("POST", "chart/save/1", "create, save"), ("PUT", "chart/save", "update/ID, save/ID"),
            ("DELETE", "chart/1", "delete/ID")):
        answer = ask(server, method, path, None if method in ("GET", "DELETE") else {})
        assert answer.status == 404
        assert sentence(answer) == (f"behind /hicc/v1/{path.split('/')[0]}/ stands one of {words}; "
                                    "a slash in an id is %2F")
    assert ask(server, "GET", "chart/list?limit=0").status == 400
    assert ask(server, "GET", "chart/list?order=1").status == 400
    assert ask(server, "GET", "chart/draw/1").status == 404
    assert server.get("/hicc/v1/").status == 404


# ---- Editors who meet ---------------------------------------------------------------------------


def test_a_slash_that_is_part_of_a_word(server):
    """The words of a path stand between its slashes; an encoded one does not part them."""
    for method in ("GET", "POST", "PUT", "DELETE"):
        for path in ("/hicc%2Fv1/chart/list", "/hicc/v1%2Fchart/list", "/hicc/v1/chart%2Flist",
                     "/hicc%2Fv1/metrics/notes/a/m/s"):
            answer = server.request(method, path, "{}" if method[0] == "P" else None,
                                    {"Content-Type": "application/json"})
            assert answer.status == 404, (method, path)
    assert ask(server, "GET", "chart/list").status == 200


def test_two_editors(server):
    for kind, key in KINDS.items():
        seen = make(server, kind, {key: "both"}, "editors").headers["etag"]
        one = ask(server, "PUT", f"{kind}/update/both", {key: "both", "by": 1}, "editors",
                  If_Match=seen)
        assert one.status == 200
        for method, path, body in (("PUT", "update", {key: "both", "by": 2}),
                                   ("DELETE", "delete", None)):
            other = ask(server, method, f"{kind}/{path}/both", body, "editors", If_Match=seen)
            assert other.status == 412
            assert sentence(other) == (f'the {kind} "both" is another one by now: somebody else '
                                       "has saved it meanwhile")
        assert ask(server, "GET", f"{kind}/view/both", tenant="editors").json["by"] == 1
        fresh = ask(server, "GET", f"{kind}/view/both", tenant="editors",
                    If_None_Match=one.headers["etag"])
        assert (fresh.status, fresh.body) == (304, b"")
        assert ask(server, "PUT", f"{kind}/update/both", {key: "both"}, "editors",
                   If_None_Match="*").status == 412
        assert ask(server, "DELETE", f"{kind}/delete/both", tenant="editors",
                   If_Match=f'"x", W/{one.headers["etag"]}').status == 200
        for method, path, body in (("PUT", "update", {key: "both"}), ("DELETE", "delete", None)):
            gone = ask(server, method, f"{kind}/{path}/both", body, "editors", If_Match="*")
            assert gone.status == 412 and sentence(gone) == f'there is no {kind} "both" any more'
    assert server.metric("granary_boards_changes_total", result="stale") == 5 * len(KINDS)


def test_many_editors_at_once_are_one_after_the_other(server):
    """Each adds one to a number, over what it has seen only: none of the 80 is lost."""
    make(server, "dashboard", {"id": "count", "n": 0}, "many")

    def count(port):
        client = copy.copy(server)
        client.connection = None
        for _ in range(10):
            while True:
                seen = ask(client, "GET", "dashboard/load/count", tenant="many")
                status = ask(client, "PUT", "dashboard/save/count",
                             {"id": "count", "n": seen.json["n"] + 1}, "many",
                             If_Match=seen.headers["etag"]).status
                if status == 200:
                    break
                assert status in (412, 503)
        client.close()

    threads = [threading.Thread(target=count, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ask(server, "GET", "dashboard/load/count", tenant="many").json["n"] == 80


# ---- What may be --------------------------------------------------------------------------------


def test_unknown_members_are_kept(server):
    text = ('{"title":"w","n":[1.10,1e400,-0.0,123456789012345678901234567890,0.1e-7],'
            '"same":1,"same":2}')
    assert ask(server, "POST", "widget/create", text, "unknown").body.decode() == text
    assert ask(server, "GET", "widget/view/w", tenant="unknown").body.decode() == text
    make(server, "chart", {"id": "c", **UNKNOWN}, "unknown")
    assert ask(server, "GET", "chart/view/c", tenant="unknown").json == {"id": "c", **UNKNOWN,
                                                                        **PRESETS}


REFUSED = [
    ("chart", "", "line 1, column 1"), ("chart", "[]", "a chart is a JSON object"),
    ("chart", '{"title":NaN}', "line 1"), ("chart", '{"a":"\\ud800"}', "line 1"),
    ("chart", b'{"a":"\xff"}', "line 1"), ("chart", "[" * 65 + "]" * 65, "line 1"),
    ("chart", {"width": "100"}, "width is not a whole number from 0 to 100000"),
    ("chart", {"series": [{"yaxis": 99}]}, "series[0]: yaxis is not a whole number from 0 to 16"),
    ("chart", {"id": "x" * 201}, "id is not a text of 1 to 200 bytes"),
    ("chart", {"id": "a\nb"}, "id is not a text of 1 to 200 bytes without control characters"),
    ("chart", {"series": [{"query": "m=x"}]}, "series[0]: query is not an object"),
    ("widget", {"src": "/x"}, "title is missing"),
    ("dashboard", {"grid": [{"title": "w", "col": -1}]}, "grid[0]: col is not a whole number"),
    ("dashboard", {"variables": [{"name": "a b"}]}, "variables[0]: name is not 1 to 64 letters"),
    ("dashboard", {"range": {}}, "range: start is missing"),
    ("dashboard", {"refresh": 10}, "refresh is not a duration"),
]


def test_what_may_not_be_is_named(server):
    for kind, body, said in REFUSED:
        answer = ask(server, "POST", f"{kind}/create", body)
        assert answer.status == 400 and said in sentence(answer), answer
    assert server.metric("granary_boards_changes_total", result="refused") == len(REFUSED)
    assert ask(server, "PUT", "chart/save/a%0Ab", {}).status == 400
    assert ask(server, "GET", f"chart/view/{'x' * 300}").status == 404


def test_too_large(server):
    fits = {"title": "w", "x": ""}
    fits["x"] = "x" * (65536 - len(json.dumps(fits, separators=(",", ":"))))
    assert len(make(server, "widget", fits, "large").body) == 65536
    fits["x"] += "x"
    answer = ask(server, "PUT", "widget/update/w", fits, "large")
    assert answer.status == 422 and sentence(answer) == "the widget has more than 64 KB"
    assert ask(server, "POST", "widget/create", "[" + "0," * 600000 + "0]").status == 413
    answer = ask(server, "POST", "dashboard/create", {"id": "d", "x": "x" * 262144}, "large")
    assert answer.status == 422 and sentence(answer) == "the dashboard has more than 256 KB"
    assert ask(server, "GET", "widget/view/w", tenant="large").json["x"] == fits["x"][:-1]


def test_as_many_as_there_may_be(make_server):
    with running(make_server("few", options=("--boards.each_max", "2"))) as server:
        for name in ("a", "b"):
            make(server, "chart", {"id": name})
        answer = ask(server, "POST", "chart/create", {"id": "c"})
        assert answer.status == 422 and sentence(answer) == (
            "the tenant has 2 charts already; boards.each_max allows for 2")
        assert ask(server, "PUT", "chart/save/1", {}).status == 422
        assert ask(server, "PUT", "chart/save/a", {"title": "again"}).status == 200
        make(server, "chart", {"id": "c"}, "another")
        make(server, "widget", {"title": "c"})


def test_a_page_of_another_site_changes_nothing(server):
    for header in ({"Origin": "http://elsewhere"}, {"Sec_Fetch_Site": "cross-site"}):
        answer = ask(server, "POST", "chart/create", {"id": "foreign"}, **header)
        assert answer.status == 403
    assert ask(server, "GET", "chart/view/foreign").status == 404


# ---- Shipped ones -------------------------------------------------------------------------------


def test_a_shipped_one_is_covered_and_is_back(server):
    shipped = ask(server, "GET", "chart/view/1", tenant="cover")
    assert shipped.json["title"] == "System Load Average"
    answer = ask(server, "DELETE", "chart/delete/1", tenant="cover")
    assert answer.status == 409
    assert sentence(answer) == 'the chart "1" is part of the program and stays'
    assert ask(server, "POST", "chart/create", {"id": "1"}, "cover").status == 400
    mine = ask(server, "PUT", "chart/save/1", {"title": "mine"}, "cover",
               If_Match=shipped.headers["etag"])
    assert mine.status == 200
    assert ask(server, "PUT", "chart/save/1", {"title": "late"}, "cover",
               If_Match=shipped.headers["etag"]).status == 412
    assert ask(server, "GET", "chart/view/1", tenant="cover").json["title"] == "mine"
    assert ask(server, "GET", "chart/view/1", tenant="not-cover").body == shipped.body
    listed = ask(server, "GET", "chart/list", tenant="cover").json
    assert [(one["id"], one["title"]) for one in listed][:2] == [("1", "mine"),
                                                                ("2", "CPU Utilization")]
    assert ask(server, "DELETE", "chart/delete/1", tenant="cover").json == {
        "deleted": "1", "shippedIsBack": True}
    assert ask(server, "GET", "chart/view/1", tenant="cover").body == shipped.body


def test_the_host_dashboard_shows_metrics_that_there_are(make_server):
    """What its charts name is what this machine's collector stores."""
    with running(make_server("hosts", host_metrics=True,
                             options=("--host.interval", "1s"))) as server:
        whole = ask(server, "GET", "dashboard/export/host", tenant=None).json
        assert whole["missing"] == [] and len(whole["charts"]) == 6
        assert {one["src"] for one in whole["dashboard"]["grid"]} == {
            f"/hicc/v1/chart/draw/{one['id']}" for one in whole["charts"]}
        named = {series["url"] for chart in whole["charts"] for series in chart["series"]}
        names = {re.fullmatch(r"/hicc/v1/metrics/series/(.+)/\$host", url)[1] for url in named}
        assert len(names) == 13
        eventually(lambda: names <= set(
            server.get("/api/metadata/metricNames", tenant="host").json), "the host's metrics")


def test_the_tenant_that_nobody_names(make_server):
    with running(make_server("presumed", options=("--hicc.tenant", "ops"))) as server:
        make(server, "chart", {"id": "x"}, None)
        assert ask(server, "GET", "chart/view/x", tenant="ops").status == 200
        assert ask(server, "GET", "chart/view/x?tenant=ops", tenant=None).status == 200
        assert ask(server, "GET", "chart/view/x", tenant="default").status == 404


# ---- Export and import --------------------------------------------------------------------------

DASHBOARD = {"id": "d", "title": "D", "refresh": "30s", "range": {"start": "6h-ago", "end": "now"},
             "variables": [{"name": "host", "values": ["a", "b"]}], "x": UNKNOWN,
             "grid": [{"title": "own", "src": "/hicc/v1/chart/draw/a%2Fb"}, {"title": "made"},
                      {"title": "System Load Average", "src": "/hicc/v1/chart/draw/1"},
                      {"title": "lost", "src": "/hicc/v1/tile/draw/lost"}]}


def test_a_dashboard_in_another_tenant(server):
    make(server, "dashboard", DASHBOARD, "from")
    make(server, "widget", {"title": "made", "src": "/hicc/v1/circles/draw/c"}, "from")
    for name in ("a/b", "c", "not named"):
        make(server, "chart", {"id": name, **UNKNOWN}, "from")
    exported = ask(server, "GET", "dashboard/export/d", tenant="from")
    whole = exported.json
    assert whole["dashboard"] == DASHBOARD
    assert [one["id"] for one in whole["charts"]] == ["a/b", "c", "1", "lost"][:3]
    assert [one["title"] for one in whole["widgets"]] == ["made", "System Load Average"]
    assert whole["missing"] == ["lost"]

    done = ask(server, "POST", "dashboard/import", json.dumps(whole, indent=2), "to")
    assert done.json == {"id": "d", "created": 4, "replaced": 0, "unchanged": 2}
    assert ask(server, "GET", "dashboard/export/d", tenant="to").body == exported.body
    assert ask(server, "POST", "dashboard/import", exported.body, "to").json == {
        "id": "d", "created": 0, "replaced": 0, "unchanged": 6}

    whole["charts"][1]["title"] = "another"
    whole["dashboard"]["id"] = "e"
    answer = ask(server, "POST", "dashboard/import", whole, "to")
    assert answer.status == 409 and sentence(answer) == (
        'there is another chart "c" already; with overwrite=true it is replaced')
    assert ask(server, "GET", "dashboard/view/e", tenant="to").status == 404
    done = ask(server, "POST", "dashboard/import?overwrite=true", whole, "to")
    assert done.json == {"id": "e", "created": 1, "replaced": 1, "unchanged": 4}
    assert ask(server, "GET", "chart/view/c", tenant="to").json["title"] == "another"


def test_an_import_that_may_not_be(server):
    for body, said in (("{}", "dashboard is missing"), ("nonsense", "line 1, column 1"),
                       ({"dashboard": {"id": "d"},
                         "charts": [{"id": "a"}, {"id": "b", "width": ""}]},
                        "charts[1]: width is not"),
                       ({"dashboard": {"id": "d"}, "widgets": 7}, "widgets is not a list")):
        answer = ask(server, "POST", "dashboard/import", body, "refused-import")
        assert answer.status == 400 and said in sentence(answer), answer
    assert ask(server, "GET", "chart/view/a", tenant="refused-import").status == 404


# ---- Data ---------------------------------------------------------------------------------------

AT_S = 1700000000 - 1700000000 % 300


def series_of(server, asked, tenant="t", **params):
    params = {"start": "20231114221000", "end": "20231114231000", **params}
    path = "chart/preview/series?" + "&".join(f"{name}={value}" for name, value in params.items())
    return ask(server, "PUT", path, asked, tenant)


def put_orders(server):
    """Of two hosts, one with two desks; a value each 10 s: 0, 1, 2 ... of the first one."""
    points = [{"metric": "shop.orders", "timestamp": AT_S + 10 * i, "value": i,
               "tags": {"host": "web/1", "tenant": "t"}} for i in range(6)]
    points += [{"metric": "shop.orders", "timestamp": AT_S + 10 * i, "value": 100,
                "tags": {"host": "b", "desk": desk, "tenant": "t"}}
               for i in range(3) for desk in ("x", "y")]
    assert server.put(points).status == 204


def test_series_get_their_data(server):
    put_orders(server)
    row = {"url": "/hicc/v1/metrics/series/shop.orders/web%2F1", "label": "L", "x": 10**30,
           "data": [[1, 2]]}
    desk = {"url": "/hicc/v1/metrics/series/shop.orders.y/b?start=1"}
    none = {"url": "/hicc/v1/metrics/series/shop.orders/$host", "lines": {"show": True}}
    total = {"label": "sum", "query": {"metricName": "shop.orders", "fn": "sum", "window": "1m",
                                       "agg": "sum"}}
    each = {"query": {"tenant": "t", "metricName": "shop.orders", "tag": ["host=b", "desk=*"],
                      "fn": "count", "window": "5m"}, "tags": "not these"}
    answer = series_of(server, [row, desk, none, total, each])
    assert answer.status == 200, answer
    assert answer.json == [
        {"url": row["url"], "label": "L", "x": 10**30,
         "data": [[1000 * (AT_S + 10 * i), i] for i in range(6)]},
        {**desk, "data": [[1000 * (AT_S + 10 * i), 100] for i in range(3)]},
        {**none, "data": []},
        {**total, "tags": {}, "data": [[1000 * AT_S, 15 + 600]]},
        {"query": each["query"], "tags": {"desk": "x", "host": "b"}, "data": [[1000 * AT_S, 3]]},
        {"query": each["query"], "tags": {"desk": "y", "host": "b"}, "data": [[1000 * AT_S, 3]]}]
    end = f"{1000 * (AT_S + 20)}"
    assert [len(one["data"]) for one in series_of(server, [row, total], end=end).json] == [2, 1]
    assert series_of(server, [row], tenant="u").json[0]["data"] == []
    assert series_of(server, []).json == []


def test_a_row_is_what_metrics_series_gives(server):
    put_orders(server)
    for path in ("shop.orders/web%2F1", "shop.orders.x/b", "shop.orders/b", "shop/web%2F1"):
        row = ask(server, "GET", f"metrics/series/{path}?start=20231114221000&end=20231114231000")
        previewed = series_of(server, [{"url": f"/hicc/v1/metrics/series/{path}"}])
        assert previewed.json[0]["data"] == row.json["data"], path


def test_series_that_have_no_data(server):
    row = {"url": "/hicc/v1/metrics/series/a/b"}
    for asked, said in (
            ("{}", "series is not a list of at most 200 objects"), ("", "line 1, column 1"),
            ([row] * 201, "series is not a list of at most 200 objects"),
            ([row, {}], "series[1]: url is not /hicc/v1/metrics/series/METRIC/SOURCE, and"),
            ([{"url": "/hicc/v1/metrics/series/a"}], "series[0]: url is not"),
            ([{"url": "/hicc/v1/metrics/series/a/b/c"}], "series[0]: url is not"),
            ([{"url": "/hicc/v1/metrics/series/%zz/b"}], "series[0]: url is not"),
            ([{"query": {"metricName": "m", "taag": "a=b"}}],
             'series[0]: query: unknown parameter "taag"'),
            ([row, {"query": {"metricName": "m", "start": "0"}}],
             "series[1]: query: start is given twice"),
            ([{"query": {"metricName": "m", "fn": "sum"}}],
             "series[0]: query: fn is given without window or points"),
            ([{"query": {"tenant": "snmp", "metricName": "m", "tag": "alias=x"}}],
             "series[0]: query: alias is found by GET /api/query only"),
            ([{"query": {"metricName": "m", "tag": [f"a{n}=b" for n in range(254)]}}],
             "series[0]: query has more than 253 parameters")):
        answer = series_of(server, asked)
        assert answer.status == 400 and said in sentence(answer), answer
    assert series_of(server, [row], start="20231115").status == 400


# ---- Kills, the command line --------------------------------------------------------------------


def test_an_answer_that_has_begun_says_why_it_ends(server):
    """The second series cannot be answered; the first one has left by then."""
    points = [{"metric": "long", "timestamp": AT_S + at, "value": at + 0.123456789,
               "tags": {"host": "h", "tenant": "t"}} for at in range(3000)]
    assert server.put(points).status == 204
    long = {"query": {"metricName": "long"}}
    wrong = {"query": {"metricName": "long", "fn": "none_such"}, "label": "wrong", "error": "mine"}
    alone = series_of(server, [wrong])
    assert alone.status == 400 and "none_such" in alone.text
    answer = series_of(server, [long, wrong, long])
    assert answer.status == 200 and len(answer.text) > 65536
    first, second = answer.json
    assert len(first["data"]) == 3000 and second["label"] == "wrong"
    assert second["error"] == sentence(alone).replace("series[0]", "series[1]")
    assert "data" not in second
    # It is said behind the answer, too.
    body = json.dumps([long, wrong]).encode()
    raw = server.raw(b"PUT /hicc/v1/chart/preview/series?start=20231114221000&end=20231114231000 "
                     b"HTTP/1.1\r\nHost: localhost\r\nX-Tenant: t\r\nConnection: close\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert b"X-Granary-Cut: error" in raw[-100:]


def test_an_import_over_another_edit(server):
    tag = make(server, "dashboard", {"id": "mine"}).headers["ETag"]

    def put(value, **headers):
        return ask(server, "POST", "dashboard/import?overwrite=true",
                   {"dashboard": {"id": "mine", "n": value}}, **headers)

    assert put(1, If_Match=tag).status == 200
    stale = put(2, If_Match=tag)
    assert stale.status == 412 and "somebody else has saved it meanwhile" in sentence(stale)
    assert put(2, If_None_Match="*").status == 412
    assert ask(server, "GET", "dashboard/view/mine").json["n"] == 1
    assert put(3).status == 200


def test_what_no_import_takes_is_not_exported(server):
    for at in range(550):
        make(server, "chart", {"id": f"c{at}", "pad": "x" * 60_000})
    grid = [{"title": f"w{at}", "src": f"/hicc/v1/chart/draw/c{at}"} for at in range(500)]
    make(server, "dashboard", {"id": "d", "grid": grid})
    answer = ask(server, "GET", "dashboard/export/d")
    assert answer.status == 200 and 30_000_000 < len(answer.text) < 31 << 20
    again = ask(server, "POST", "dashboard/import", answer.text, tenant="other")
    assert again.status == 200 and again.json["created"] == 501
    for at in range(500, 550):
        make(server, "widget", {"title": f"w{at - 500}", "src": f"/hicc/v1/chart/draw/c{at}"})
    answer = ask(server, "GET", "dashboard/export/d")
    assert answer.status == 422 and "more than 31 MB, which no import takes" in sentence(answer)


def test_what_was_answered_survives_a_kill(make_server):
    with running(make_server("killed")) as server:
        for turn in range(5):
            made = make(server, "chart", {"id": f"c{turn}", "n": turn})
            moved = ask(server, "PUT", f"chart/save/c{turn}", {"id": f"d{turn}", "n": turn})
            assert moved.status == 200, made
            whole = {"dashboard": {"id": f"b{turn}"}, "charts": [{"id": f"e{turn}"}]}
            assert ask(server, "POST", "dashboard/import", whole).status == 200
            if turn:
                assert ask(server, "DELETE", f"chart/delete/d{turn - 1}").status == 200
            server.kill()
            server.start()
            ids = [one["id"] for one in ask(server, "GET", "chart/list?brief=true").json
                   if not one["shipped"]]
            assert ids == [f"d{turn}"] + [f"e{n}" for n in range(turn + 1)]
            assert ask(server, "GET", f"dashboard/load/b{turn}").status == 200


def test_the_command_line(server, tmp_path):
    def board(*arguments, status=0):
        done = subprocess.run([granary(), "board", *arguments, "--server", server.url],
                              capture_output=True, text=True, check=False)
        assert done.returncode == status, done
        return done

    make(server, "dashboard", {**DASHBOARD, "id": "unsaid"}, "host")
    assert "unsaid" in board("list", "dashboard").stdout, "the tenant is that of hicc.tenant"
    make(server, "dashboard", DASHBOARD, "cli")
    rows = board("list", "dashboard", "--tenant", "cli").stdout.splitlines()
    assert rows[0] == "id,title,type,bytes,shipped"
    assert re.fullmatch(r"d,D,,\d+,false\nhost,Host,,\d+,true", "\n".join(rows[1:]))
    assert board("list", "widget", "--prefix", "CPU", "--tenant", "cli").stdout.count("\n") == 2
    shown = board("show", "dashboard", "d", "--tenant", "cli").stdout
    assert json.loads(shown) == DASHBOARD and shown.startswith('{\n  "id": "d",\n')
    exported = board("export", "d", "--tenant", "cli").stdout
    assert json.loads(exported) == ask(server, "GET", "dashboard/export/d", tenant="cli").json
    (tmp_path / "d.json").write_text(exported)
    done = board("import", str(tmp_path / "d.json"), "--tenant", "cli-to")
    assert json.loads(done.stdout) == {"id": "d", "created": 1, "replaced": 0, "unchanged": 2}
    assert board("export", "d", "--tenant", "cli-to").stdout == exported
    (tmp_path / "d.json").write_text(exported.replace('"title": "D"', '"title": "E"'))
    refused = board("import", str(tmp_path / "d.json"), "--tenant", "cli-to", status=1)
    assert f'{tmp_path}/d.json: there is another dashboard "d" already' in refused.stderr
    (tmp_path / "none.json").write_text("root:x:0")
    refused = board("import", str(tmp_path / "none.json"), "--tenant", "cli-to", status=1)
    assert f"{tmp_path}/none.json: line 1, column 1: " in refused.stderr
    board("import", str(tmp_path / "d.json"), "--overwrite", "--tenant", "cli-to")
    assert json.loads(board("show", "dashboard", "d", "--tenant", "cli-to").stdout)["title"] == "E"
    board("delete", "dashboard", "d", "--tenant", "cli-to")
    assert "there is no dashboard" in board("delete", "dashboard", "d", "--tenant", "cli-to",
                                            status=1).stderr
    assert "none: not found" in board("import", str(tmp_path / "none"), status=1).stderr
    board("show", "series", "1", status=2)
