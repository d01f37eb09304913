"""Rows of document K: this machine's metrics under Chukwa's names, their groups and notes."""

import json
import os
import pathlib
import re
import socket
import time
import urllib.parse

import pytest

from server import eventually, running

HOST = socket.gethostname()


def path(*parts):
    return "/hicc/v1/metrics/" + "/".join(urllib.parse.quote(part, safe="") for part in parts)


@pytest.fixture(name="machine")
def server_of_this_machine(make_server):
    with running(make_server(host_metrics=True, options=["--host.interval=1s"])) as server:
        eventually(lambda: server.get(path("schema", "SystemMetrics")).json, "names of metrics")
        yield server


def data_of(server, metric, source=HOST, **params):
    answer = server.get(path("series", metric, source), **params)
    assert answer.status == 200, answer
    assert answer.json["name"] == f"{metric}:{source}"
    return answer.json["data"]


def test_this_machine_by_real_names(machine):
    assert machine.get(path("schema")).json == ["SystemMetrics"]
    assert machine.get(path("source", "SystemMetrics")).json == [HOST]
    names = machine.get(path("schema", "SystemMetrics")).json
    assert names == sorted(names)
    cores = {name for name in names if re.fullmatch(r"SystemMetrics\.cpu\.user\.\d+", name)}
    online = re.findall(r"^cpu(\d+) ", pathlib.Path("/proc/stat").read_text(), re.M)
    assert cores == {f"SystemMetrics.cpu.user.{core}" for core in online}
    assert {"SystemMetrics.cpu.combined", "SystemMetrics.LoadAverage.1", "SystemMetrics.Uptime",
            "SystemMetrics.memory.Total", "SystemMetrics.swap.Free"} <= set(names)
    details = {key["name"]: key
               for key in machine.get(path("schema", "SystemMetrics"), details="true").json}
    assert details["SystemMetrics.LoadAverage.1"] == {
        "name": "SystemMetrics.LoadAverage.1", "sig": "f4768a0d6fe0", "unit": "tasks",
        "kind": "gauge"}


def test_values_are_those_of_proc(machine):
    text = pathlib.Path("/proc/meminfo").read_text()
    total = 1024 * int(re.search(r"^MemTotal: +(\d+) kB", text, re.M).group(1))
    data = data_of(machine, "SystemMetrics.memory.Total")
    assert data and {value for _, value in data} == {total}
    now = time.time() * 1000
    assert all(now - 3600000 <= at <= now for at, _ in data)
    uptime = float(pathlib.Path("/proc/uptime").read_text().split()[0])
    at, value = data_of(machine, "SystemMetrics.Uptime")[-1]
    assert abs(value + (time.time() - at / 1000) - uptime) < 15


def test_values_are_those_of_a_query(machine):
    """A row has the averages of steps of 5 s that a query of the same time gives, by core and of
    all."""
    def both():
        span = {"start": str(int(time.time()) - 600), "end": str(int(time.time()) - 5)}
        answers = []
        for core in ("0", None):
            tags = ["host=" + HOST] + ([f"core={core}"] if core else [])
            found = [series for series in machine.query(
                "SystemMetrics.cpu.idle", *tags, tenant="host", fn="avg", window="5s", **span)
                if ("core" in series["tags"]) == (core is not None)]
            name = "SystemMetrics.cpu.idle" + (f".{core}" if core else "")
            answers.append(([[at, value] for at, value in data_of(machine, name, **span)],
                            list(found[0]["values"].values()) if found else []))
        return answers if all(values for _, values in answers) else None
    for data, values in eventually(both, "samples that are older than 5 s"):
        assert [value for _, value in data] == values
        assert all(at % 5000 == 0 for at, _ in data[1:])


def test_every_name_of_the_group_has_values(machine):
    """Mounts, disks and interfaces among them, with slashes."""
    names = machine.get(path("schema", "SystemMetrics")).json
    assert any("/" in name for name in names) or os.path.exists("/.dockerenv")
    for name in names:
        assert data_of(machine, name), name


def test_notes_stay_over_a_kill(machine):
    note = {"text": "a new disk", "time": int(time.time() * 1000) - 1000}
    where = path("notes", "SystemMetrics.LoadAverage.1", HOST)
    answer = machine.request("POST", where, json.dumps(note),
                             {"Content-Type": "application/json"})
    assert answer.status == 201
    machine.kill()
    machine.start()
    expected = {"id": answer.json["id"], "metric": "SystemMetrics.LoadAverage.1", **note}
    assert machine.get(where).json == {"notes": [expected]}
    series = path("series", "SystemMetrics.LoadAverage.1", HOST)
    assert machine.get(series).json["notes"] == [expected]
    assert machine.request("DELETE", where + "/" + answer.json["id"]).status == 200
    assert "notes" not in machine.get(series).json
    assert machine.metric("granary_row_notes_total", result="deleted") == 1


def test_another_tenant_by_header(server):
    server.put([{"metric": "shop.orders", "timestamp": int(time.time() * 1000) - 1000, "value": 7,
                 "tags": {"host": "web", "tenant": "shop"}}])
    where = path("series", "shop.orders", "web")
    assert server.get(where).json["data"] == []
    assert [v for _, v in server.get(where, {"X-Tenant": "shop"}).json["data"]] == [7.0]


def test_an_option_names_the_tenant(make_server):
    with running(make_server(options=["--hicc.tenant=shop"])) as server:
        server.put([{"metric": "shop.orders", "timestamp": int(time.time() * 1000) - 1000,
                     "value": 7, "tags": {"host": "web", "tenant": "shop"}}])
        assert [v for _, v in server.get(path("series", "shop.orders", "web")).json["data"]] == [7]


def test_a_tenant_that_cannot_be_is_refused(make_server):
    server = make_server(options=["--hicc.tenant=a b"])
    server.spawn()
    assert server.process.wait() == 2
    assert '"a b" cannot be the name of a tenant' in server.log_text()
