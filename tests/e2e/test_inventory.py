"""What is polled: configuration, commands, API, and that it outlives the server."""

import contextlib
import csv
import io
import json
import os
import pty
import subprocess

import pytest

from server import granary, run, running
from test_polls import T0, octets, send, wait_persisted

SECRETS = "lab: {version: 2c, community: public}\ncore: {version: 2c, community: x}\n"


@pytest.fixture
def secrets(tmp_path):
    path = tmp_path / "secrets.yml"
    path.write_text(SECRETS)
    path.chmod(0o600)
    return path


@pytest.fixture
def inventory(make_server, secrets):
    with running(make_server(config=f"snmp:\n  secrets_file: {secrets}\n")) as server:
        yield server


def ask(server, *arguments, status=0):
    answer = run(*arguments[:2], "--server", server.url, *arguments[2:])
    assert answer.returncode == status, (arguments, answer.stdout, answer.stderr)
    return answer


def listed(server):
    rows = list(csv.DictReader(io.StringIO(ask(server, "device", "list").stdout)))
    return {row["name"]: row for row in rows}


def refused(server, sentence, *arguments, status=1):
    assert ask(server, *arguments, status=status).stderr.strip() == sentence


def test_devices_are_added_listed_changed_and_removed(inventory):
    ask(inventory, "device", "add", "rtr_a", "192.0.2.1", "--credentials", "lab")
    ask(inventory, "device", "add", "rtr_b", "[2001:db8::1]:1161", "FastPollHC", "Errors",
        "--credentials", "core", "--end", "2020-01-02", "--begin", "2020-01-01")
    found = listed(inventory)
    assert found["rtr_a"] == {"name": "rtr_a", "address": "192.0.2.1", "port": "161",
                              "credentials": "lab", "poller": "", "oidsets": "IfRefPoll IfXTable",
                              "state": "waiting", "since": "", "reason": ""}
    assert found["rtr_b"]["address"] == "2001:db8::1" and found["rtr_b"]["port"] == "1161"
    assert found["rtr_b"]["oidsets"] == "Errors FastPollHC"
    assert found["rtr_b"]["state"] == "inactive"
    assert found["rtr_b"]["reason"] == "its end has passed"
    assert found["rtr_b"]["since"] == "2020-01-02T00:00:00Z"

    ask(inventory, "device", "change", "rtr_a", "Errors", "--active", "false")
    assert listed(inventory)["rtr_a"]["oidsets"] == "Errors"
    assert listed(inventory)["rtr_a"]["reason"] == "it is switched off"
    ask(inventory, "device", "rename", "rtr_a", "rtr/z")
    assert list(listed(inventory)) == ["rtr/z", "rtr_b"]
    ask(inventory, "device", "remove", "rtr/z")
    answer = inventory.request("DELETE", "/api/devices/rtr_b", withData="true")
    assert answer.status == 200 and answer.json["series"] == 0
    assert not listed(inventory)


def stored(server, device):
    return server.query("ifHCInOctets", f"device={device}", tenant="snmp", start=0)


def test_what_is_stored_goes_with_the_device(inventory):
    """Renamed with its data; what somebody left under the new name is nobody's."""
    ask(inventory, "device", "add", "a", "192.0.2.1", "FastPollHC", "--credentials", "lab",
        "--active", "false")
    assert send(inventory, [octets(T0, 1, device="a"), octets(T0, 2, device="c")]).status == 204
    wait_persisted(inventory)
    ask(inventory, "device", "rename", "a", "b")
    assert inventory.get("/api/devices/b").json["storedAs"] == "a"
    refused(inventory, "granary device remove: device a: does not exist; what is stored under "
            "that name is of device b, which had it before", "device", "remove", "a", "--with-data")
    assert [s["tags"]["device"] for s in stored(inventory, "b")] == ["b"]
    ask(inventory, "device", "remove", "b", "--with-data")
    assert not stored(inventory, "a") and not stored(inventory, "b")
    assert not listed(inventory)
    refused(inventory, "granary device remove: device b: does not exist",
            "device", "remove", "b", "--with-data")
    # Of no device, but of its data.
    assert len(stored(inventory, "c")) == 1
    ask(inventory, "device", "remove", "c", "--with-data")
    assert not stored(inventory, "c")


def test_queries_call_devices_as_they_are_called_now(inventory):
    def values(**tags):
        asked = [f"{key}={value}" for key, value in tags.items()]
        found = inventory.query("ifHCInOctets", *asked, tenant="snmp", start=0)
        return {s["tags"]["device"]: list(s["values"].values()) for s in found}

    def names(**parameters):
        return inventory.get("/api/metadata/tagValues", tenant="snmp", metricName="ifHCInOctets",
                             tagKey="device", **parameters).json

    for name in ("old", "z"):
        ask(inventory, "device", "add", name, "192.0.2.1", "FastPollHC", "--credentials", "lab",
            "--active", "false")
    polls = [octets(T0, 1, device="old"), octets(T0, 3, device="z"), octets(T0, 4, device="odd")]
    assert send(inventory, polls).status == 204
    wait_persisted(inventory)
    ask(inventory, "device", "rename", "old", "new")
    # Polls that are still on their way say the old name, esmond's pollers soon the new one.
    assert send(inventory, [octets(T0 + 30, 2, device="old")]).status == 204
    assert send(inventory, [octets(T0 + 60, 3, device="new")]).status == 204
    wait_persisted(inventory)
    assert values() == {"new": [1, 2, 3], "z": [3], "odd": [4]}
    assert values(device="new") == {"new": [1, 2, 3]}
    assert values(device="old") == {}
    assert values(device="o*") == {"odd": [4]}
    assert values(device="n*|z") == {"new": [1, 2, 3], "z": [3]}
    assert names() == ["new", "odd", "z"]
    assert names(prefix="o") == ["odd"] and names(prefix="n", limit=1) == ["new"]
    series = inventory.get("/api/metadata/series", tenant="snmp", metricName="ifHCInOctets",
                           tag="device=new").json
    assert [s["tags"]["device"] for s in series] == ["new"]
    assert "device=new" in series[0]["seriesSet"]
    assert inventory.get("/api/metadata/series", tenant="snmp", metricName="ifHCInOctets",
                         tag="device=o*").json[0]["tags"]["device"] == "odd"
    sums = inventory.get("/api/query", metricName="ifHCInOctets", tenant="snmp", start=str(T0),
                         end=str(T0 + 100), agg="max", by="device", format="csv")
    if sums.status == 200:
        assert ",new," in sums.text and ",old," not in sums.text

    # Another one takes the name: it begins with nothing, and each has its own.
    ask(inventory, "device", "add", "old", "192.0.2.2", "FastPollHC", "--credentials", "lab",
        "--active", "false")
    assert values(device="old") == {}
    assert send(inventory, [octets(T0, 7, device="old")]).status == 204
    wait_persisted(inventory)
    assert values(device="old") == {"old": [7]}
    assert values(device="new") == {"new": [1, 2, 3]}
    assert names() == ["new", "odd", "old", "z"]
    inventory.restart()
    assert values() == {"new": [1, 2, 3], "old": [7], "odd": [4], "z": [3]}
    ask(inventory, "device", "remove", "old", "--with-data")
    assert values() == {"new": [1, 2, 3], "odd": [4], "z": [3]}


@pytest.mark.parametrize("headers, status", [
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "HERE"}, 400),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site", "Origin": "HERE"}, 403),
    ({"Sec-Fetch-Site": "same-origin", "Origin": "https://before.a.proxy"}, 403),
    ({"Sec-Fetch-Site": "none"}, 400),
    ({}, 400),
])
def test_pages_of_other_sites_read_and_change_nothing(inventory, headers, status):
    """What a browser says of the page that has it send something; 400 is the handler's answer."""
    headers = {name: inventory.url if value == "HERE" else value for name, value in headers.items()}
    for method, path in (("POST", "/api/devices"), ("POST", "/api/put"), ("POST", "/write")):
        answer = inventory.request(method, path, "{", headers)
        assert answer.status == status, path
    assert inventory.get("/api/devices", headers=headers).status == (403 if status == 403 else 200)
    refused = inventory.metric("granary_http_foreign_refused_total", reason="page")
    assert refused == (4 if status == 403 else 0)


def test_a_configured_name(make_server):
    """As a proxy passes it on, or with a Host of its own; and what is no name is named."""
    with running(make_server(options=["--http.names=granary.lan,before.a.proxy:8443"])) as server:
        for host, origin, status in (("granary.lan", None, 200), ("GRANARY.LAN:1", None, 200),
                                     ("granary.wan", None, 421), ("", None, 421),
                                     (None, "https://before.a.proxy:8443", 200),
                                     (None, "https://before.a.proxy", 403)):
            headers = {"Origin": origin} if origin else {"Host": host}
            for path in ("/api/devices", "/-/healthy", "/metrics", "/nowhere"):
                answer = server.get(path, headers=headers)
                assert answer.status == (404 if (status, path) == (200, "/nowhere") else status)
                assert status != 421 or "the names in http.names" in answer.text
        assert server.metric("granary_http_foreign_refused_total", reason="host") == 8
    wrong = run("serve", "--http.names=granary.lan,http://granary.lan")
    assert wrong.returncode == 2
    assert "--http.names: 'http://granary.lan' is neither a name nor an address" in wrong.stderr


def test_a_name_that_is_no_utf8_became_another_one(inventory):
    sentence = "what is given is not UTF-8"
    refused(inventory, f"granary device add: {sentence}",
            "device", "add", os.fsdecode(b"\xff\xfe"), "h", "--credentials", "lab", status=2)
    ask(inventory, "device", "add", "a", "h", "--credentials", "lab")
    refused(inventory, f"granary device rename: {sentence}", "device", "rename", "a",
            os.fsdecode(b"a\xc3"), status=2)
    refused(inventory, f"granary device change: {sentence}", "device", "change", "a",
            "--poller", os.fsdecode(b"\xe9"), status=2)
    assert set(listed(inventory)) == {"a"}


def test_what_is_wrong_is_said_and_changes_nothing(inventory):
    # Of one that is polled the state would change meanwhile.
    ask(inventory, "device", "add", "a", "h", "--credentials", "lab", "--active", "false")
    before = ask(inventory, "device", "list").stdout
    refused(inventory, "granary device add: device a: is there already",
            "device", "add", "a", "h", "--credentials", "lab")
    refused(inventory, "granary device add: device b: 'FastPolHC' is not an OIDSet; "
            "did you mean FastPollHC?", "device", "add", "b", "h", "FastPolHC",
            "--credentials", "lab")
    refused(inventory, "granary device add: device b: 'labb' is not a name of credentials in the "
            "secrets file; did you mean lab?", "device", "add", "b", "h", "--credentials", "labb")
    refused(inventory, "granary device rename: device x: does not exist",
            "device", "rename", "x", "y")
    refused(inventory, "granary device remove: device x: does not exist", "device", "remove", "x")
    dots = "a name that is nothing but dots, one or two, cannot stand in an URL"
    refused(inventory, f"granary device add: device ..: {dots}",
            "device", "add", "..", "h", "--credentials", "lab")
    refused(inventory, f"granary device rename: device .: {dots}", "device", "rename", "a", ".")
    ask(inventory, "device", "add", "b", "h", status=2)
    ask(inventory, "device", "add", "b", "h", "--credentials", "lab", "--active", "maybe", status=2)
    ask(inventory, "device", "add", "b", "h", "--credentials", "lab", "--begin", "soon", status=2)
    assert ask(inventory, "device", "list").stdout == before

    def post(body, path="/api/devices"):
        answer = inventory.request("POST", path, body)
        return answer.status, answer.json["error"]["message"], answer.json["error"].get("item")

    good = {"name": "c", "address": "h", "credentials": "lab"}
    assert post("[")[0] == 400
    assert post("7") == (400, "a device is an object", 0)
    assert post(json.dumps([good, {**good, "name": "d", "port": 1}])) == (
        400, "port is not known: name, address, credentials, active, begin, end, oidsets "
        "and poller are", 1)
    assert post(json.dumps([good, {**good, "active": 1}])) == (
        400, "active must be true or false", 1)
    assert post(json.dumps([good, good])) == (400, "device c: stands twice", 1)
    assert post(json.dumps([good, {**good, "name": "a"}])) == (
        409, "device a: is there already", 1)
    assert post('{"name":"x","active":true}', "/api/devices/a") == (
        400, "a device is renamed by itself: send nothing beside the name", None)
    assert post('{"active":true}', "/api/devices/x") == (404, "device x: does not exist", None)
    assert inventory.get("/api/devices/x").status == 404
    assert inventory.get("/api/devices/a/b").status == 404
    assert inventory.get("/api/devices", bogus="1").status == 400
    assert inventory.get("/api/oidsets/x").json["error"]["message"] == "'x' is not an OIDSet"
    assert ask(inventory, "device", "list").stdout == before


def test_an_import_is_taken_whole_or_not_at_all(inventory, tmp_path):
    table = tmp_path / "d.csv"
    table.write_text("name,address,credentials,oidsets\nr1,h1,lab,FastPollHC Errors\n"
                     "r2,h2:1161,core,\n")
    tree = tmp_path / "d.yml"
    tree.write_text("devices:\n  - {name: r3, address: h3, credentials: lab}\n"
                    "  - name: r2\n    address: h\n    credentials: lab\n")
    assert ask(inventory, "device", "import", table).stdout == "2 devices were added\n"
    assert list(listed(inventory)) == ["r1", "r2"]
    refused(inventory, f"granary device import: {tree}:3: device r2: is there already; "
            "nothing was imported", "device", "import", tree)
    tree.write_text(tree.read_text().replace("r2", "r4").replace("lab}", "nobody}"))
    refused(inventory, f"granary device import: {tree}:2: device r3: 'nobody' is not a name of "
            "credentials in the secrets file; nothing was imported", "device", "import", tree)
    assert list(listed(inventory)) == ["r1", "r2"]
    table.write_text("name,address,credentials\nr9,h,lab\nr8,,lab\n")
    refused(inventory, f"granary device import: {table}:3: device r8: needs an address; "
            "nothing was imported", "device", "import", table)
    refused(inventory, f"granary device import: {tmp_path}/x: not found",
            "device", "import", tmp_path / "x")


def test_ten_thousand_devices(inventory, tmp_path):
    table = tmp_path / "d.csv"
    table.write_text("name,address,credentials\n" +
                     "".join(f"r{i:05},10.0.{i // 256}.{i % 256},lab\n" for i in range(10000)))
    ask(inventory, "device", "import", table)
    inventory.restart()
    devices = inventory.get("/api/devices").json
    assert len(devices) == 10000
    assert devices[4711]["name"] == "r04711" and devices[4711]["address"] == "10.0.18.103"


def test_devices_survive_a_kill(inventory):
    for i in range(5):
        ask(inventory, "device", "add", f"r{i}", "h", "--credentials", "lab")
    ask(inventory, "device", "remove", "r3")
    inventory.kill()
    inventory.start()
    assert list(listed(inventory)) == ["r0", "r1", "r2", "r4"]


def test_names_that_the_configuration_lost_are_a_problem(make_server, secrets):
    own = "oidsets: {Own: {frequency: 60s, correlator: Index, oids: [ifMtu]}}\n"
    server = make_server(config=f"snmp: {{secrets_file: {secrets}}}\n{own}")
    server.start()
    ask(server, "device", "add", "a", "h", "Own", "Errors", "--credentials", "core")
    server.stop()
    secrets.write_text("lab: {version: 2c, community: public}\n")
    server.configure(f"snmp: {{secrets_file: {secrets}}}\n")
    server.start()
    row = listed(server)["a"]
    assert row["state"] == "misconfigured"
    assert row["reason"] == "there is no entry of the secrets file called core, OIDSet Own"
    ask(server, "device", "change", "a", "--active", "false")
    assert listed(server)["a"]["state"] == "inactive"
    server.stop()


def test_oidsets_and_interfaces(inventory):
    rows = {row["name"]: row for row in
            csv.DictReader(io.StringIO(ask(inventory, "oidset", "list").stdout))}
    assert len(rows) == 18
    assert rows["ALUSAPPoll"]["frequency"] == "11s" and rows["ALUSAPPoll"]["correlator"] == "ALUSAP"
    shown = list(csv.reader(io.StringIO(ask(inventory, "oidset", "show", "FastPollHC").stdout)))
    assert shown == [["name", "oid", "type", "aggregate", "alias"],
                     ["sysUpTime", "1.3.6.1.2.1.1.3", "TimeTicks", "false", ""],
                     ["ifHCInOctets", "1.3.6.1.2.1.31.1.1.1.6", "Counter64", "true", "in"],
                     ["ifHCOutOctets", "1.3.6.1.2.1.31.1.1.1.10", "Counter64", "true", "out"]]
    refused(inventory, "granary oidset show: 'x' is not an OIDSet", "oidset", "show", "x")
    assert json.loads(ask(inventory, "oidset", "show", "ALUErrors", "-o", "json").stdout)[
        "setName"] == "Errors"
    ask(inventory, "device", "add", "a", "h", "--credentials", "lab")
    assert json.loads(ask(inventory, "interface", "list", "-o", "json").stdout) == []
    assert json.loads(ask(inventory, "interface", "list", "a", "-o", "json").stdout) == []
    assert inventory.get("/api/interfaces", kind="ports").json["error"]["message"] == (
        'kind "ports" is none of interfaces, saps, lsps, outlets')
    assert inventory.get("/api/interfaces", begin="soon").status == 400


@pytest.mark.parametrize("config, sentence", [
    ("oidsets:\n  Fast:\n    frequency: 60s\n    correlator: IfNmae\n    oids: [ifMtu]\n",
     "granary.yml:4: oidsets.Fast.correlator: 'IfNmae' is not a correlator; did you mean IfName?"),
    ("oidsets: {A: {frequency: 60s, correlator: Index, oids: [ifMtuu]}}\n",
     "granary.yml:1: oidsets.A.oids[0]: 'ifMtuu' is not an OID that is known by name; did you mean "
     "ifMtu?"),
    ("persist_queue:\n  q: {persister: counters, oidsets: [FastPol]}\n",
     "granary.yml:2: persist_queue.q.oidsets[0]: 'FastPol' is not an OIDSet; did you mean "
     "FastPoll?"),
    ("oidset: {}\n", "granary.yml:1: oidset is not an option; did you mean oidsets?"),
])
def test_a_wrong_configuration_is_refused_with_file_and_line(tmp_path, config, sentence):
    path = tmp_path / "granary.yml"
    path.write_text(config)
    for command in (("serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "data"), ("config",)):
        answer = run(command[0], "--config", path, *command[1:])
        assert answer.returncode == 2
        assert answer.stderr.strip() == f"granary {command[0]}: {tmp_path}/{sentence}"


def test_secrets_that_others_can_read_are_refused(tmp_path, secrets):
    secrets.chmod(0o644)
    answer = run("config", "--snmp.secrets_file", secrets)
    assert answer.returncode == 2
    assert answer.stderr.strip() == (
        f"granary config: --snmp.secrets_file: {secrets}: holds secrets, but others than its "
        "owner and group may read it, or others than its owner may write it (mode 644); "
        "chmod 600 it")
    secrets.chmod(0o600)
    assert run("config", "--snmp.secrets_file", secrets).returncode == 0
    secrets.write_text("lab: {version: 3, user: u, auth: SHA, auth_password: topsecr}\n")
    answer = run("config", "--snmp.secrets_file", secrets)
    assert answer.returncode == 2 and "topsecr" not in answer.stderr
    assert answer.stderr.endswith("lab.auth_password: a password has at least 8 characters\n")


def on_terminal(*arguments):
    """What a terminal is given."""
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as terminal, subprocess.Popen(
            [granary(), *map(str, arguments)], stdout=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        given = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while piece := terminal.read(65536):
                given += piece
        assert process.wait(timeout=60) == 0
    return given


def test_a_terminal_gets_no_commands(inventory):
    """Interfaces are described by others. A program gets what they wrote, a terminal shows it."""
    alias = "x\x1b[2J\x1b]0;owned\x07 \x9b31m \u202egnp.exe"
    ask(inventory, "device", "add", "a", "192.0.2.1", "IfRefPoll", "--credentials", "lab",
        "--active", "false")
    message = {"oidset_name": "IfRefPoll", "device_name": "a", "oid_name": "", "timestamp": T0,
               "data": {"ifName": [["ifName.1", "xe-0"]], "ifAlias": [["ifAlias.1", alias]]},
               "metadata": {}}
    assert send(inventory, [message]).status == 204
    wait_persisted(inventory)
    listing = "interface", "list", "--server", inventory.url
    row, = csv.DictReader(io.StringIO(run(*listing, "-o", "csv").stdout))
    assert alias in row.values()
    visible = rb"x\x1b[2J\x1b]0;owned\x07 \u009b31m \u202egnp.exe"
    for output in ([], ["-o", "csv"], ["-o", "table"]):
        assert visible in on_terminal(*listing, *output), output
    for output in ([], ["-o", "csv"], ["-o", "table"], ["-o", "json"]):
        given = on_terminal(*listing, *output).decode()
        assert not set(given) & {*map(chr, range(32)), "\x7f", "\x9b", "\u202e"} - {*"\r\n"}
