"""The page that ./bench writes, and the table that it prints."""

import datetime
import os
import platform
import re
import subprocess

import faults
import polling
import streams
from servers import ROOT, Granary, Victoria


def shown(value, unit):
    if value is None:
        return "-"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.{2 if size == 1e6 else 1}f} {letter}{unit}"
    return f"{value:.3g} {unit}".strip()


# What is shown: title, key, unit, whether more is better, to resolve, aim.
ROWS = [
    ("ingest by line protocol, samples per CPU-second", "samples per CPU-s", "", True,
     "5 x VictoriaMetrics", "11 x (8 M/CPU-s)"),
    ("the same, at the last answer", "at last answer", "", True, "", ""),
    ("the same, with all work until settled", "with settling", "", True, "", ""),
    ("ingest, samples per second of wall time", "samples per wall s", "", True, "", ""),
    ("the same with 1 M series, all new", "samples per CPU-s, 1 M new", "", True, "10 x", "30 x"),
    ("the same with 1 M series, known", "samples per CPU-s, 1 M active", "", True, "10 x", "30 x"),
    ("new series per CPU-second", "new series per CPU-s", "", True, "10 x", "30 x (200 k/CPU-s)"),
    ("memory per active series, 11 labels", "memory per series", "B", False, "<= 1 KB", "400 B"),
    ("the same, once it is quiet", "memory per series, quiet", "B", False, "", ""),
    ("memory after the steady ingest", "RssAnon after ingest", "B", False, "", ""),
    ("bytes per sample on disk, settled, pages in use", "bytes per sample", "B", False,
     "<= VictoriaMetrics'", "0.29"),
    ("bytes per sample, length of the files", "bytes per sample, file", "B", False, "", ""),
    ("one series, 1 h, per query at one connection, p50", "query p50 ms", "ms", False,
     "<= VictoriaMetrics'", "0.10 ms"),
    ("the same, queries per second at 8 connections", "queries per s at 8", "", True, ">= 2 x",
     "30 k"),
    ("the same, per CPU-second of the server", "queries per CPU-s at 8", "", True, "", ""),
    ("max by 1 h over 12 h for 1000 series, p50", "max by 1 h, ms", "ms", False,
     "<= VictoriaMetrics'", "10 ms"),
    ("the same for all ten fields", "max by 1 h, ten fields, ms", "ms", False, "a quarter",
     "60 ms"),
    ("last point of 1000 series, p50", "last points, ms", "ms", False, "a quarter", "1 ms"),
    ("full scan, samples per CPU-second", "scan, samples per CPU-s", "", True, "5 x", "500 M"),
    ("full scan, samples per second of wall time", "scan, samples per s", "", True, "", ""),
    ("the same in windows of 5 min, per CPU-second", "scan by 5 min, samples per CPU-s", "", True,
     "", ""),
    ("export of all samples as JSON lines, per CPU-second", "export, samples per CPU-s", "", True,
     "5 M", "20 M"),
    ("import of lines from a file, of the loader's rate at two connections",
     "import, % of the loader's rate", "%", True, "50 %", "90 %"),
    ("check of one token of 1,000, share of a query of one series",
     "check of a token, % of a query", "%", False, "3 %", "1 %"),
    ("the same, CPU time", "check of a token, ns", "ns", False, "", ""),
    ("ingest over TLS, of plain, per CPU-second", "ingest over TLS, % of plain", "%", True, "70 %",
     "85 %"),
    ("queries of one series over kept TLS connections, of plain, per CPU-second",
     "queries over TLS, % of plain", "%", True, "75 %", "90 %"),
    ("p99 of writes beside a flood of handshakes, to without",
     "p99 of writes beside handshakes, x", "x", False, "2 x", "1.2 x"),
    ("the flood, handshakes begun per second", "handshakes begun per s", "", True, "", ""),
    ("backup to a file, of `cp` and `sync` of the data file, which is in memory",
     "backup, warm, % of cp", "%", True, "50 %", "90 %"),
    ("the same of a data file that is not in memory", "backup, cold, % of cp", "%", True, "50 %",
     "90 %"),
    ("the same, bytes per second", "backup, cold, MB/s", "MB/s", True, "", ""),
    ("ingest while backups are taken, of the rate without", "ingest during backups, % of without",
     "%", True, "80 %", "95 %"),
    ("restart after kill -9 with 10 M samples in the journal", "restart, s", "s", False, "3 s",
     "1 s"),
    ("commit rate after 30 GB of churn, of a new store's beside it", "commit rate after churn, %",
     "%", True, "80 %", "95 %"),
    ("file on day 5 of the churn", "file before churn", "B", False, "", ""),
    ("file at its end", "file after churn", "B", False, "bounded", ""),
]


# Counters of interfaces. What net-snmp did for the first row is the second.
COUNTER_ROWS = [
    ("objects polled, parsed, put into bins and stored, per CPU-second; of net-snmp polled alone",
     "objects per CPU-s", "", True, "2 M", "5 M"),
    ("polled and parsed alone, per CPU-second", "varbinds per CPU-s", "", True, "", ""),
    ("rates computed and stored per CPU-second", "rates per CPU-s", "", True, "1 M", "3 M"),
    ("the same, with all work until settled", "rates per CPU-s, settled", "", True, "", ""),
    ("one interface, 24 h of 30 s rates by `/v2`, p50", "24 h by /v2, p50 ms", "ms", False, "1 ms",
     "0.3 ms"),
    ("10,000 devices x 48 interfaces x 10 counters every 30 s: share of one core",
     "fleet, share of a core, %", "%", False, "25 %", "8 %"),
    ("memory for that", "fleet, memory", "B", False, "2 GB", "600 MB"),
    ("its objects per CPU-second", "fleet, objects per CPU-s", "", True, "", ""),
]


# Roll-ups: of nobody else.
ROLLUP_ROWS = [
    ("raw samples rolled up to 5 min and 1 h, per CPU-second", "rolled up per CPU-s", "", True,
     "20 M", "100 M"),
    ("the same, with all work until settled", "rolled up per CPU-s, settled", "", True, "", ""),
    ("marks: more CPU per ingested sample", "marking, % of ingest", "%", False, "5 %", "1 %"),
    ("a year of 1000 series by the hour: one maximum of all", "a year, max, one number, ms", "ms",
     False, "50 ms", "10 ms"),
    ("one average", "a year, avg, one number, ms", "ms", False, "50 ms", "10 ms"),
    ("a maximum of all for each day", "a year, max by day, ms", "ms", False, "", ""),
    ("an average of all for each hour", "a year, avg by hour, ms", "ms", False, "", ""),
    ("from ready to visible, a slot of 1 M series", "delay of 1 M series, s", "s", False, "60 s",
     "10 s"),
]

FAULT_ROWS = [
    ("reports of 5 KB of known groups, per CPU-second", "reports of 5 KB per CPU-s", "", True,
     "1.5 k", "6 k"),
    ("the same, each the first of its group", "first reports of groups per CPU-s", "", True, "",
     ""),
    ("reports of 5 KB per second, the sender on the same cores", "reports of 5 KB per s", "", True,
     "2 k", "10 k"),
    ("reports of 50 KB per CPU-second", "reports of 50 KB per CPU-s", "", True, "200", "1 k"),
    ("bytes stored, a report of 5 KB", "bytes a report of 5 KB", "B", False, "1 kB", "500 B"),
    ("a report of 50 KB", "bytes a report of 50 KB", "B", False, "8 kB", "4 kB"),
    ("the summary of the day, p50; of bugsink the counts by hour", "a day, p50 ms", "ms", False,
     "50 ms", "5 ms"),
    ("reports of 5 KB that are searched for one word, per CPU-second",
     "reports searched per CPU-s", "", True, "", ""),
    ("of 1,000,000 reports of 5 KB, a search for a word of one of them, p50",
     "search, a word of one report, p50 ms", "ms", False, "300 ms", "50 ms"),
    ("for two words, each of 1 % of them", "search, two words of 1 %, p50 ms", "ms", False,
     "1 s", "200 ms"),
    ("a group, p50", "a group, p50 ms", "ms", False, "50 ms", "5 ms"),
    ("memory with 10 M reports of 100,000 groups", "RssAnon with 10 M reports", "B", False,
     "500 MB", "200 MB"),
    ("from kill -9 to ready, and the first answer of how many there are",
     "ready and counted with 10 M reports, s", "s", False, "10 s", "1 s"),
    ("from a report to the live viewer, p99, at 1,000 a second", "sent to shown live, p99 ms",
     "ms", False, "1 s", "50 ms"),
    ("a report by its id, p50", "a report by its id, p50 ms", "ms", False, "", ""),
    ("memory after the reports of 5 KB", "RssAnon after reports", "B", False, "", ""),
]

# What rsyslog did stands beside; of what is stored, zstd -9 of the whole; of counts, awk.
STREAM_ROWS = [
    ("lines of 200 B from a file to acknowledged, agent and server, MB per CPU-second",
     "file to acknowledged, MB per CPU-s", "MB", True, "150", "450"),
    ("the same until they are in blocks and searched by their words",
     "file to sealed, MB per CPU-s", "MB", True, "70", "150"),
    ("stored, all tables, of the lines; beside it `zstd -9`", "stored, % of the lines", "%", False,
     "1/8", "1/10"),
    ("a rare word, for each GB", "rare word in 1 GB, CPU-ms", "ms", False, "300 ms", "50 ms"),
    ("a text that no filter excludes, raw GB per CPU-second",
     "text that no filter excludes, GB per CPU-s", "GB", True, "0.7", "1.3"),
    ("lines of access logs made into counts, per CPU-second; beside it `awk`",
     "access lines demuxed, M per CPU-s", "M", True, "0.7 M", "2 M"),
    ("the server with 1,000 streams of a line a second",
     "server with 1,000 streams of a line a second, % of a core", "%", False, "10 %", "4 %"),
    ("from a line of these that is written to who reads all lines as they come, p50",
     "written to seen, p50 ms", "ms", False, "", ""),
    ("p99", "written to seen, p99 ms", "ms", False, "1 s", "0.3 s"),
    ("the agent at 10 MB/s, share of a core", "agent at 10 MB/s, % of a core", "%", False, "6 %",
     "3 %"),
    ("the agent with 10,000 files in which nothing happens",
     "agent with 10,000 idle files, % of a core", "%", False, "1 %", "0.2 %"),
    ("memory for that", "memory for that", "B", False, "60 MB", "25 MB"),
]


def tables(bench):
    """Of what was measured."""
    found = bench.found["granary"]
    both = [(title, peer, [row for row in rows if row[1] in found]) for title, peer, rows in
            (("VictoriaMetrics", "victoria-metrics", ROWS), ("net-snmp", "net-snmp", COUNTER_ROWS),
             ("-", "", ROLLUP_ROWS), (faults.Bugsink.name, faults.Bugsink.name, FAULT_ROWS),
             (streams.Rsyslog.name, streams.Rsyslog.name, STREAM_ROWS))]
    return "\n\n".join(table(bench, *part) for part in both if part[2])


def table(bench, title, peer, rows):
    lines = [f"| | Granary | {title} | ratio | to resolve | aim |",
             "|---|---|---|---|---|---|"]
    for title, key, unit, more, resolve, aim in rows:
        ours, theirs = bench.median("granary", key), bench.median(peer, key)
        found, ratio = bench.ratio(key, peer), "-"
        if found:
            ratio = f"{found if more else 1 / found:.1f} x"
        lines.append(f"| {title} | {shown(ours, unit)} | {shown(theirs, unit)} | {ratio} | "
                     f"{resolve} | {aim} |")
    return "\n".join(lines)


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")),
                     platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, Linux {platform.release()}"


def commit():
    answer = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"],
                            capture_output=True, text=True)
    return answer.stdout.strip() or "not from a repository"


NOTES = "## Notes"


def details(bench, when):
    lines = []
    for name, found in bench.found.items():
        for key, values in found.items():
            lines.append(f"| {name} | {key} | {', '.join(f'{v:,.4g}' for v in values)} | "
                         f"{bench.kept.get((name, key), when)} |")
    return "\n".join(["| server | what | by round | when, commit |", "|---|---|---|---|", *lines])


def keep_rounds(bench, path):
    """What was not measured now stays as the page has it."""
    with open(path) as file:
        text = file.read().split("## Rounds", 1)[1].split(NOTES, 1)[0]
    head = re.search(r"^- (\S+),.*\n.*\(commit (\w+)\)", open(path).read(), re.M)
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) < 3 or cells[0] in ("server", "---"):
            continue
        name, key, values, *when = cells
        if key not in bench.found.setdefault(name, {}):
            bench.found[name][key] = [float(v.replace(",", "")) for v in values.split(", ")]
            bench.kept[name, key] = when[0] if when else " ".join(head.groups())


def reports_sent(size):
    """Of one round, to each server."""
    ours, theirs = (faults.COUNTS[size][p] for p in (faults.FaultServer, faults.Bugsink))
    return f"{theirs:,} of {ours:,} of {size}"


def write_page(bench, path):
    """Replaces what was measured and keeps what people wrote below the line `## Notes`."""
    o = bench.options
    notes, today = "\n", datetime.date.today().isoformat()
    if os.path.exists(path):
        with open(path) as file:
            text = file.read()
        if NOTES in text:
            notes = text.split(NOTES, 1)[1]
    page = f"""# Benchmarks

Written by `./bench`. Both servers ran in the same run on the same machine, in turns, with their
defaults, and were sent the same bytes by two connections of 10,000 rows a request. CPU seconds are
user and system time of the server process, from the first request until it is quiet again. A value
is the median of several rounds, a ratio the median of the ratios in each round. Granary answers
after its commit is on disk, VictoriaMetrics before. Parts may be older than the rest: when each was
measured stands under Rounds.

- {today}, {machine()}
- {Granary.version()} (commit {commit()}), victoria-metrics {Victoria.version()} and
  net-snmp {polling.NetSnmp.version()} (Debian), bugsink {faults.Bugsink.version()} (PyPI)
- steady: {o.hosts:,} hosts x {o.points:,} points x 10 fields = {o.hosts * o.points * 10:,} samples
- new series: {o.churn_hosts:,} hosts x 10 points = {o.churn_hosts * 10:,} series; the cost of
  their samples at the steady rate is subtracted in "new series per CPU-second"
- queries: of {o.hosts:,} hosts x {o.query_hours} h x 10 fields, settled, both servers up and asked
  in turns; VictoriaMetrics without a cache of results; "all ten fields" is one request to it and
  ten to Granary; a full scan asks for the maximum over all hosts in windows of 1 h, which decodes
  every sample: hardly a block of Granary's lies within a window, so that its summary could answer
  (its `explain` is checked)

{table(bench, "VictoriaMetrics", "victoria-metrics", ROWS)}

A ratio above 1 is in Granary's favour.

## Counters

An agent that answers canned packets is every address of 127.0.0.0/8, each of them a router with
{polling.ROWS} interfaces and {len(polling.COUNTERS)} counters of each. `granary serve` polls it:
names come from `ifName`, each poll goes through the queue into raw data, and from there into
bins, hours and days. CPU seconds are those of the server. `ifCounterDiscontinuityTime` and
`sysUpTime`, which it polls and stores beside, are not counted as objects. net-snmp's asynchronous
client (GETBULK of ten columns and five rows, 64 sessions in flight, `select`) keeps nothing.

The last rows are {polling.FLEET_DEVICES:,} devices every 30 s, over five minutes, after the first
seven. The first row is a model of that: a twentieth of the devices, with a twentieth of the
store's limits for journal and heads, and thirty times as fast: polls every second, rates every 10
s, hours and days of 2 and 48 minutes; a minute of it has the work of half an hour, sealing
included.

{table(bench, "net-snmp", "net-snmp", COUNTER_ROWS)}

## Roll-ups

One sample in 10 s, slots of an hour, granularities of 5 min and 1 h. What is rolled up lies settled
in the store, and counts when its rows are durable. Marks are measured in turns: 20,000 series,
whose first sample was taken before, are sent the rest of four hours, by a server with marks and by
one without roll-ups. A year is asked of the store without HTTP, the best of ten times.

{table(bench, "-", "", ROLLUP_ROWS)}

## Fault reports

bugsink takes the envelopes of Sentry's clients, too. Both are sent the same bytes in turns, by
{faults.CONNECTIONS} connections: events as the Python client writes and gzips them, made from a
seed before the clock starts, of {len(faults.GROUPS):,} groups. Each round begins with a copy of a
directory that holds one report of each group. Of the events that Granary is sent, bugsink is sent
the first, for which it takes as long: {reports_sent("5 KB")}, {reports_sent("50 KB")}.

bugsink is run as its makers run it: gunicorn with a worker for each core, and snappea, which
digests; SQLite in a directory of its own. Its limits of rates and of what it keeps are out of
reach, and it sends no messages. CPU seconds and memory are those of all its processes. The clock
ends when all reports are digested, for Granary when the summary of the day has all; that of CPU
seconds ends when the server is quiet again. Granary answers after its commit is on disk, bugsink
before it digests. Granary packs each 4,096 reports of a process together meanwhile. Bytes are
those of the pages in use, in an empty directory and once what was packed lies nowhere else.

bugsink has no summary of a day. It is asked for its numbers of reports by the hour, Granary for
these with volumes and the longest requests. One connection reads; bugsink closes it after each
answer. All but a few of the searched reports are packed; bugsink has no search in texts.

{table(bench, faults.Bugsink.name, faults.Bugsink.name, FAULT_ROWS)}

## Streams of logs

{streams.MEGABYTES} MB of lines like those of a system's log, of 200 bytes on average, made from a
seed before the clock starts. Granary's agent reads the file and its server takes it; rsyslog
{streams.Rsyslog.version()} reads it (imfile) and sends it by TCP to a second one, which writes a
file. CPU seconds are those of both processes; of "acknowledged" without those of the job that makes
blocks. Searches find nothing, so that all of it is looked at. The 1,000 lines of a second are
written at once.

{table(bench, streams.Rsyslog.name, streams.Rsyslog.name, STREAM_ROWS)}

## Rounds

{details(bench, today + " " + commit())}

{NOTES}{notes}"""
    with open(path, "w") as file:  # with all that it says: what fails before leaves the page
        file.write(page)
