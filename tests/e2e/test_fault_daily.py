"""The daily report against the real server. What it is to say is counted here, in Python, from
what was sent; JSON, text and HTML are each compared with that count. The page is read by a parser,
and by a real Chromium."""

import collections
import html.parser
import json
import random
import re
import time
import urllib.parse

import pytest

from browser import Browser
from server import eventually, run
from test_clock import HOOK as CLOCK_HOOK, ClockServer
from test_fault_groups import send
from test_fault_states import say
from test_oops import command, pages, post

SECTIONS = ["new", "durations", "statements", "timeout_pages", "exceptions", "timeouts",
            "soft_timeouts", "informational", "user_generated", "unauthorized", "not_found"]
CLASSES = SECTIONS[4:]
# Exception, level and class; a fault of each kind has several groups.
KINDS = [("KeyError", "error", "exceptions"), ("ValueError", "", "exceptions"),
         ("RequestExpired", "", "timeouts"), ("QueryTimeoutException", "error", "timeouts"),
         ("SoftRequestTimeout", "info", "soft_timeouts"), ("Deprecated", "info", "informational"),
         ("UnexpectedFormData", "", "user_generated"), ("Unauthorized", "", "unauthorized"),
         ("NotFound", "", "not_found")]
# As a program makes them, and without what varies.
STATEMENTS = [("SELECT name FROM person WHERE id = %d", "select name from person where id = ?"),
              ("SELECT a, b FROM item WHERE x IN (%d, 7)", "select a, b from item where x in (?)"),
              ("UPDATE stock SET n = %d", "update stock set n = ?")]


def made(chance, number, faults):
    fault = chance.randrange(faults)
    exception, level, _ = KINDS[fault % len(KINDS)]
    report = {"id": f"OOPS-{number:04d}", "exception": exception, "value": f"fault {fault}",
              "fingerprint": [f"fault {fault}"]}
    if level:
        report["level"] = level
    if chance.random() < 0.9:
        report["context"] = f"/page{chance.randrange(13)}"
    if chance.random() < 0.8:
        report["duration"] = chance.randrange(1, 10**7) / 1000
    if chance.random() < 0.8:
        rows, at = [], 0
        for _ in range(chance.randrange(1, 30)):
            length = chance.randrange(1, 1000)
            text = chance.choice(STATEMENTS)[0] % chance.randrange(10**4)
            rows.append([at, at + length, "SQL-main", text])
            at += length
        report["timeline"] = rows
    return report


# ---- What a report is to say ---------------------------------------------------------------------


def statements(report):
    """The most repeated and the most expensive statement of a report."""
    found = {}
    for start, stop, _, text in report.get("timeline", ()):
        shown = next(shown for made, shown in STATEMENTS if made[:12] == text[:12])
        count, total = found.get(shown, (0, 0))
        found[shown] = (count + 1, total + stop - start)
    named = [{"statement": shown, "count": count, "duration": total}
             for shown, (count, total) in found.items()]
    repeated = max(named, key=lambda s: s["count"], default=None)
    expensive = max(named, key=lambda s: s["duration"], default=None)
    return repeated if repeated and repeated["count"] > 1 else None, expensive


def tops(reports, value, key, list_max=100):
    """The pages of the highest reports."""
    listed = sorted((r for r in reports if value(r) is not None),
                    key=lambda r: (-value(r), r["id"]))[:list_max]
    found, looked_at = {}, 0
    for report in listed[:30]:
        if len(found) == 10:
            break
        looked_at += 1
        context = report.get("context", "")
        if context not in found:
            found[context] = {"context": context, "id": report["id"], key: value(report)}
            if key == "statements" and statements(report)[0]:
                found[context]["repeated"] = statements(report)[0]
    return {"pages": list(found.values()), "listed": len(listed), "looked_at": looked_at,
            "unread": 0}


def contexts_of(reports):
    counts = collections.Counter(r.get("context", "") for r in reports)
    order = sorted(counts.items(), key=lambda c: (-c[1], c[0] == "", c[0]))
    return {"contexts": [list(c) for c in order[:5]],
            "contexts_rest": sum(count for _, count in order[5:])}


def groups_of(reports, dates, names, before, older):
    """By fault; of each what the report says of its group, and its class."""
    by_fault = collections.defaultdict(list)
    for report in reports:
        by_fault[report["fingerprint"][0]].append(report)
    found = []
    for fault, those in by_fault.items():
        kind = KINDS[int(fault.split()[1]) % len(KINDS)]
        first, last = those[0], those[-1]
        group = {"group": names[fault], "status": "open", "title": f"{kind[0]}: {first['value']}",
                 "count": len(those), "first": dates[first["id"]], "first_id": first["id"],
                 "last": dates[last["id"]], "last_id": last["id"], "exception": kind[0],
                 "before": sum(r["fingerprint"][0] == fault for r in before),
                 "new": all(r["fingerprint"][0] != fault for r in older), **contexts_of(those)}
        found.append((kind[2], group, last))
    found.sort(key=lambda f: (-f[1]["count"], f[1]["exception"], f[1]["title"]))
    return found


def timeout_pages(reports):
    counts = collections.defaultdict(lambda: [0, 0])
    for report in reports:
        kind = KINDS[int(report["fingerprint"][0].split()[1]) % len(KINDS)][2]
        if kind in ("timeouts", "soft_timeouts"):
            counts[report.get("context", "")][kind == "soft_timeouts"] += 1
    order = sorted(counts.items(), key=lambda c: (-c[1][0], -c[1][1], c[0]))
    return {"pages": [{"context": c, "hard": hard, "soft": soft} for c, (hard, soft) in order[:10]],
            "total": len(order), "hard_rest": sum(c[1][0] for c in order[10:]),
            "soft_rest": sum(c[1][1] for c in order[10:])}


def section_of(groups):
    shown = groups[:50]
    reports = sum(g["count"] for g in groups)
    return {"groups": shown, "total": len(groups), "reports": reports,
            "rest": reports - sum(g["count"] for g in shown)}


def expected(server, sent, before=(), older=()):
    """What the report of a day is to say of what was sent on it, in the order of receipt; `before`:
    on the day before, `older`: on all days before."""
    listed = pages(server, limit=1000)
    dates = {r["id"]: r["date"] for r in listed}
    group_of = {r["id"]: r["group"] for r in listed}
    names = {r["fingerprint"][0]: group_of[r["id"]] for r in sent}
    groups = groups_of(sent, dates, names, before, older)
    says = {"new": section_of([g for _, g, _ in groups if g["new"]])}
    for kind in CLASSES:
        of_kind = [(g, last) for c, g, last in groups if c == kind]
        if kind in ("timeouts", "soft_timeouts"):
            for group, last in of_kind[:5]:
                if statements(last)[1]:
                    group["statement"] = statements(last)[1]
        says[kind] = section_of([g for g, _ in of_kind])
    says["durations"] = tops(sent, lambda r: r.get("duration"), "duration")
    says["statements"] = tops(sent, lambda r: len(r["timeline"]) if "timeline" in r else None,
                              "statements")
    says["timeout_pages"] = timeout_pages(sent)
    return {"total": len(sent), "before": len(before), "groups": len(groups), "rest": 0,
            "first": min(dates[r["id"]] for r in sent), "last": max(dates[r["id"]] for r in sent),
            "sections": says}


# ---- What it says --------------------------------------------------------------------------------


def daily(server, day="today", **params):
    answer = server.get(f"/oops/days/{day}/report", **params)
    assert answer.status == 200, answer
    return answer


def check_json(server, wanted, day="today", closed=False):
    said = daily(server, day).json
    assert [s.pop("section") for s in said["sections"]] == SECTIONS
    assert all(s.pop("title") for s in said["sections"])
    said["sections"] = dict(zip(SECTIONS, said["sections"]))
    assert (said.pop("tenant"), said.pop("closed")) == ("default", closed)
    assert re.fullmatch(r"\d{8}", said.pop("day"))
    for name in SECTIONS:
        assert said["sections"][name] == wanted["sections"][name], name
    assert said == wanted


TITLES = {"New Groups": "new", "Durations by Page": "durations",
          "Statement Counts by Page": "statements", "Time Out Counts by Page": "timeout_pages",
          "Exceptions": "exceptions", "Time Outs": "timeouts", "Soft Time Outs": "soft_timeouts",
          "Informational": "informational", "User Generated": "user_generated",
          "Unauthorized": "unauthorized", "Pages Not Found": "not_found"}


def sections_of_text(text):
    """The lines of each section, those that are not empty."""
    assert all(len(line) <= 80 for line in text.split("\n"))
    parts = re.split(r"^=== (?:All|Top \d+) (.*?)(?: \(total of \d+ unique items\))? ===$", text,
                     flags=re.M)
    return parts[0], {TITLES[title]: [line for line in lines.split("\n") if line]
                      for title, lines in zip(parts[1::2], parts[2::2])}


def rows_of_text(lines):
    """A row begins with its number, which ends in the eighth column."""
    rows = []
    for line in lines:
        if line.startswith("["):
            continue
        if line[:8].strip():
            rows.append([line[:8].strip()])
        rows[-1].append(line[10:])
    return rows


def shown_context(context):
    return context or "(no context)"


def lines_of_group(group):
    lines = [str(group["count"]), group["title"]]
    tail = "new" if group["new"] else f"the day before {group['before']}"
    lines.append(f"{group['group']}, {group['status']}, {tail}")
    if "statement" in group:
        statement = group["statement"]
        lines.append(f"statement {statement['count']} times, "
                     f"{statement['duration'] / 1000:.2f} s: {statement['statement']}")
    lines += [f"{count}: {shown_context(context)}" for context, count in group["contexts"][:3]]
    rest = group["contexts_rest"] + sum(count for _, count in group["contexts"][3:])
    lines += [f"{rest}: [other contexts]"] if rest else []
    return lines + [group["first_id"]] + ([group["last_id"]] if group["count"] > 1 else [])


def lines_of_top(top, key):
    value = f"{top[key] / 1000:.2f}" if key == "duration" else str(top[key])
    lines = [value, top["id"], shown_context(top["context"])]
    if "repeated" in top:
        repeated = top["repeated"]
        lines.append(f"repeated {repeated['count']} times, {repeated['duration'] / 1000:.2f} s: "
                     f"{repeated['statement']}")
    return lines


def check_text(server, wanted, day="today"):
    answer = daily(server, day, format="text")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    head, sections = sections_of_text(answer.text)
    says = wanted["sections"]
    assert f" * {wanted['total']} reports; the day before {wanted['before']}\n" in head
    assert f" * {wanted['groups']} groups, {says['new']['total']} of them new\n" in head
    for title, name in TITLES.items():
        counted = f" * {says[name].get('reports', 0)} {title}\n" in head
        assert counted == (name in CLASSES and says[name]["reports"] > 0)
    assert list(sections) == [s for s in SECTIONS if says[s].get("groups") or says[s].get("pages")]
    for name, lines in sections.items():
        rows = rows_of_text(lines)
        if name in ("durations", "statements"):
            key = name if name == "statements" else "duration"
            assert rows == [lines_of_top(top, key) for top in says[name]["pages"]]
        elif name == "timeout_pages":
            found = [re.fullmatch(r" *(\d+) / +(\d+)  (.*)", line).groups() for line in lines[1:]]
            rest = (says[name]["hard_rest"], says[name]["soft_rest"])
            pages_said = [(p["hard"], p["soft"], shown_context(p["context"]))
                          for p in says[name]["pages"]]
            pages_said += [(*rest, "[other pages]")] if any(rest) else []
            assert [(int(hard), int(soft), page) for hard, soft, page in found] == pages_said
        else:
            rest = says[name]["rest"]
            others = [[str(rest), f"[{says[name]['total'] - 50} other groups]"]] if rest else []
            assert rows == [lines_of_group(group) for group in says[name]["groups"]] + others


class Page(html.parser.HTMLParser):
    """The texts and links of each section, and each group of it; what is not well-formed fails."""

    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.sections, self.links, self.tags = [], {}, [], collections.Counter()
        self.section = None
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags[tag] += 1
        assert not any(name.startswith("on") for name in attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "section":
            self.section = self.sections.setdefault(attrs["id"], {"rows": [], "links": []})
        if self.section is not None and (attrs.get("class") == "group" or tag == "tr"):
            self.section["rows"].append([])
        if tag == "a":
            self.links.append(attrs["href"])
            if self.section is not None:
                self.section["links"].append(attrs["href"])

    def handle_endtag(self, tag):
        assert tag not in self.VOID and self.open.pop() == tag, tag
        if tag == "section":
            self.section = None

    def handle_data(self, data):
        if self.section is not None and self.section["rows"] and data.strip(", .\n"):
            self.section["rows"][-1].append(data.strip(", \n"))


def check_html(server, wanted, day="today"):
    answer = daily(server, day, format="html")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    page, says = Page(answer.text), wanted["sections"]
    assert not page.tags["script"] and not page.tags["link"] and not page.tags["img"]
    assert list(page.sections) == [s for s in SECTIONS
                                   if says[s].get("groups") or says[s].get("pages")]
    for name, found in page.sections.items():
        if name in ("durations", "statements", "timeout_pages"):
            shown = [row[:2] for row in found["rows"][1:]]
            no = "no context"
            if name == "durations":
                rows = [[f"{p['duration'] / 1000:.2f}", p["context"] or no]
                        for p in says[name]["pages"]]
            elif name == "statements":
                rows = [[str(p["statements"]), p["context"] or no] for p in says[name]["pages"]]
            else:
                rest = [says[name]["hard_rest"], says[name]["soft_rest"]]
                rows = [[str(p["hard"]), str(p["soft"])] for p in says[name]["pages"]]
                rows += [[str(n) for n in rest]] if any(rest) else []
            assert shown == rows
            continue
        groups = says[name]["groups"]
        assert [(row[0], row[1], row[2]) for row in found["rows"]] == [
            (str(g["count"]), g["title"], g["group"]) for g in groups]
        links = []
        for group in groups:
            links.append(f"/oops/groups/{group['group']}?tenant=default")
            links.append(f"/oops/{group['first_id']}?tenant=default")
            if group["count"] > 1:
                links.append(f"/oops/{group['last_id']}?tenant=default")
        assert found["links"] == links
    for link in random.Random(5).sample([link for link in page.links if link[0] == "/"], 20):
        assert server.get(link).status == 200, link


def check(server, wanted, day="today", closed=False):
    check_json(server, wanted, day, closed)
    check_text(server, wanted, day)
    check_html(server, wanted, day)


# ---- Tests ---------------------------------------------------------------------------------------


def test_a_report_is_a_count_of_what_was_sent(server):
    """Also after a kill; another tenant's reports are its own."""
    chance = random.Random(11)
    sent = [made(chance, number, 70) for number in range(400)]
    send(server, sent)
    assert post(server, {"id": "OOPS-0001", "exception": "Other"},
                **{"X-Tenant": "other"}).status == 201
    wanted = expected(server, sent)
    assert wanted["sections"]["new"]["total"] == 70  # more than are shown
    check(server, wanted)
    server.kill()
    server.start()
    check(server, wanted)
    other = daily(server, tenant="other").json
    assert (other["total"], other["groups"]) == (1, 1)
    assert "/oops/OOPS-0001?tenant=other" in daily(server, tenant="other", format="html").text


def test_reports_that_are_sealed(server):
    """Two runs: the whole reports that are read lie in either."""
    chance = random.Random(15)
    sent = [made(chance, number, 30) for number in range(8400)]
    for at in range(0, len(sent), 1000):
        assert post(server, sent[at:at + 1000]).status == 200
    eventually(lambda: server.metric("granary_fault_runs_sealed_total") == 2)
    check_json(server, expected(server, sent))


@pytest.fixture
def clock_server(tmp_path):
    if not CLOCK_HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "")
    server.start()
    yield server
    server.kill()


def test_a_day_is_compared_with_those_before(clock_server):
    """Three days: what is new on the last was on none before, what was on the first only is not."""
    server, chance = clock_server, random.Random(12)
    noon = int(time.time()) // 86400 * 86400 + 86400 + 43200
    days, number = [], 0
    for at, faults in enumerate((25, 9, 40)):
        server.set_wall(noon + at * 86400 - int(time.time()))
        days.append([made(chance, number + n, faults) for n in range(150)])
        number += 150
        send(server, days[-1])
    names = [time.strftime("%Y%m%d", time.gmtime(noon + at * 86400)) for at in range(4)]
    wanted = expected(server, days[2], days[1], days[0] + days[1])
    news = wanted["sections"]["new"]
    assert 0 < news["total"] < wanted["groups"]
    assert any(not g["new"] and not g["before"]
               for kind in CLASSES for g in wanted["sections"][kind]["groups"])
    check(server, wanted, names[2])
    first = expected(server, days[0])
    server.set_wall(server.wall_s + 86400)
    eventually(lambda: server.get(f"/oops/days/{names[2]}").json["closed"])
    check(server, wanted, names[2], closed=True)
    check(server, first, names[0], closed=True)
    assert "so far" not in daily(server, names[2], format="text").text
    empty = daily(server, names[3], format="text").text
    assert "so far" in empty and "No fault reports were received." in empty
    assert f"0 reports; the day before {len(days[2])}" in empty


def test_what_was_said_of_groups_is_in_the_report(server):
    for name in "abc":
        send(server, [{"id": f"OOPS-{name}", "fingerprint": [name], "exception": name}])
    group_of = {r["id"]: r["group"] for r in pages(server)}
    say(server, group_of["OOPS-a"], status="resolved", assignee="anna", tracker="lp",
        bug="https://bugs.example/4711")
    say(server, group_of["OOPS-b"], status="resolved")
    say(server, group_of["OOPS-c"], status="muted", tracker="jira", bug="SHOP-17")
    send(server, [{"id": "OOPS-b2", "fingerprint": ["b"], "exception": "b"}])
    said = {g["first_id"]: g for g in daily(server).json["sections"][4]["groups"]}
    assert said["OOPS-a"]["status"] == "resolved" and said["OOPS-a"]["assignee"] == "anna"
    assert said["OOPS-a"]["bugs"] == {"lp": "https://bugs.example/4711"}
    assert (said["OOPS-b"]["status"], said["OOPS-b"]["again"]) == ("open", True)
    assert said["OOPS-c"]["status"] == "muted" and said["OOPS-c"]["bugs"] == {"jira": "SHOP-17"}
    text = daily(server, format="text").text
    assert ", resolved, of anna, new\n          bug lp: https://bugs.example/4711\n" in text
    assert ", open again, new\n" in text and "bug jira: SHOP-17\n" in text
    page = Page(daily(server, format="html").text)
    assert page.links.count("https://bugs.example/4711") == 2  # as new, and in its class


def test_an_empty_day(server):
    assert daily(server, "2001-02-03").json == {
        "day": "20010203", "tenant": "default", "closed": True, "total": 0, "before": 0,
        "groups": 0, "rest": 0, "sections": daily(server).json["sections"]}
    for form in ("text", "html"):
        answer = daily(server, "2001-02-03", format=form)
        assert "on 2001-02-03\n" in answer.text or "on 2001-02-03<" in answer.text
        assert "No fault reports were received." in answer.text
    assert not Page(daily(server, format="html").text).sections


REFUSED = [("today/report", {"format": "csv"}, "none of json, text, html"),
           ("today/report", {"from": "10:00"}, "takes no from"),
           ("today/report", {"limit": 5}, "takes no from, to and limit"),
           ("today/report", {"token": "x"}, "token is of"),
           ("today", {"format": "html"}, "format is of /oops/days/DAY/report"),
           ("today/oops", {"format": "text"}, "format is of /oops/days/DAY/report"),
           ("noday/report", {}, "is no day")]


def test_what_makes_no_sense_is_refused(server):
    for path, params, sentence in REFUSED:
        answer = server.get(f"/oops/days/{path}", **params)
        assert answer.status == 400 and sentence in answer.text, (path, params, answer)
    assert server.get("/oops/days/today/reports").status == 404
    assert server.request("POST", "/oops/days/today/report").status == 404


def test_the_command_prints_the_report(server):
    send(server, [made(random.Random(13), number, 5) for number in range(20)])
    assert command(server, "report").stdout == daily(server, format="text").text
    assert command(server, "report", "today", "-o", "html").stdout == daily(
        server, format="html").text
    printed = command(server, "report", "-o", "json").stdout
    assert json.loads(printed) == daily(server).json and printed.endswith("}\n")
    wrong = run("fault", "report", "--server", server.url, "-o", "csv")
    assert wrong.returncode == 2 and "text html json" in wrong.stderr


EVIL = ("<script>pwned = 1</script><img src=x onerror='pwned=1'>\"&amp;\r\n\x1b[31m\x9b\u202e"
        "\u05d0\u05d1 ")
EVIL_ID = "OOPS-<b\"onload='x'>&amp;%2F?#" + "\u00e4" * 60


def send_evil(server):
    for number in range(2):
        report = {"id": EVIL_ID + str(number), "exception": EVIL + "E" * 300,
                  "value": EVIL + "v" * 300, "fingerprint": ["evil"], "level": EVIL,
                  "context": EVIL + "c" * 400, "duration": 17, "host": EVIL, "release": EVIL,
                  "timeline": [[0, 1, "SQL-main", "SELECT " + EVIL]] * 2}
        soft = {**report, "id": f"OOPS-{number}", "exception": "SoftRequestTimeout",
                "fingerprint": ["soft"], "context": "/" + "x" * 400}
        send(server, [report, soft])
    group = server.get("/oops/" + urllib.parse.quote(EVIL_ID, safe="") + "0").json["group"]
    visible = "".join(c for c in EVIL if c >= " " and c not in "\x7f\x9b")
    for params in ({"assignee": visible}, {"tracker": visible[:100], "bug": visible},
                   {"tracker": "a", "bug": "javascript:pwned=1"},
                   {"tracker": "b", "bug": "https://bugs.example/?\"><script>pwned=1</script>"}):
        assert say(server, group, **params).status == 200, params


def test_hostile_text_is_text(server):
    send_evil(server)
    said = daily(server).json
    assert said["sections"][4]["groups"][0]["first_id"] == EVIL_ID + "0"
    text = daily(server, format="text").text
    sections_of_text(text)
    assert all(c == "\n" or c.isprintable() or c == "\xa0" for c in text)
    assert "<script>" in text and "\\u202e" in text and "\\x1b" in text
    page = Page(daily(server, format="html").text)
    assert not page.tags["script"] and not page.tags["img"]
    assert page.tags["b"] == 4  # the marks of what is new: two groups, in two sections each
    for link in page.links:
        assert link[0] in "#/" or link.startswith("https://bugs.example/"), link
        if link[0] == "/":
            assert server.get(link).status == 200, link


def test_the_page_in_a_browser(server, tmp_path):
    """Nothing of a hostile report runs; on a phone nothing is wider than the screen."""
    chance = random.Random(14)
    send(server, [made(chance, number, 20) for number in range(60)])
    send_evil(server)
    browser = Browser(tmp_path, {})
    try:
        browser.call("Emulation.setDeviceMetricsOverride", width=360, height=740,
                     deviceScaleFactor=2, mobile=True)
        browser.open(f"{server.url}/oops/days/today/report?format=html")
        found = browser.run("""return {
            pwned: typeof pwned, scripts: document.querySelectorAll('script, img').length,
            wide: document.documentElement.scrollWidth, columns: innerWidth,
            sections: [...document.querySelectorAll('section')].map(s => s.id),
            counts: [...document.querySelectorAll('#new .count')].map(c => c.textContent),
            links: [...document.links].map(l => l.protocol),
            font: getComputedStyle(document.body).maxWidth}""")
        assert found["pwned"] == "undefined" and found["scripts"] == 0
        assert found["wide"] <= found["columns"]
        assert found["font"] != "none"  # the style of the page is not refused by its own policy
        says = dict(zip(SECTIONS, daily(server).json["sections"]))
        assert found["sections"] == [s for s in SECTIONS
                                     if says[s].get("groups") or says[s].get("pages")]
        assert found["counts"] == [str(g["count"]) for g in says["new"]["groups"]]
        assert set(found["links"]) <= {"http:", "https:"}
        # A link in the page leads to the report, whatever its id is.
        browser.events.clear()
        browser.run("""[...document.querySelectorAll('#new a')].find(
            a => a.textContent.startsWith('OOPS-<b')).click()""")
        browser.wait_loaded()
        assert EVIL_ID in browser.run("return JSON.parse(document.body.textContent).id")
    finally:
        browser.close()
