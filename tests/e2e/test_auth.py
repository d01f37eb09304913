"""Who may ask a server for what: tokens through the real doors, clients of others with them, and
that the data of a tenant that one does not have cannot be told from data that never was. Every
route with every sort of credential: tests/unit/auth_guard.c."""

import base64
import json
import os
import pathlib
import re
import socket
import stat
import subprocess
import time
import warnings

import influxdb
import influxdb_client
import pytest
from influxdb_client.client.write_api import SYNCHRONOUS

from remote_poller import OIDSETS, RemotePoller, wait_for
from server import PATIENCE_S, ROOT, Server, eventually, granary, run, running

NOW_S = int(time.time()) - 600
TOKEN = re.compile(r"gr_[0-9a-f]{16}_[0-9a-f]{64}")


class Tokens:
    """Tokens of a server, by the name of their credential, each in a file of its own."""

    def __init__(self, server):
        self.server = server
        self.root = self.create("root", "admin", "*", by=None)

    def path(self, name):
        return self.server.folder / f"{name}.token"

    def create(self, name, roles, tenants, *options, by="root"):
        made = self.command("create", name, "--roles", roles, "--tenants", tenants, *options, by=by)
        assert made.returncode == 0, made.stderr
        assert TOKEN.fullmatch(made.stdout.strip()), made.stdout
        self.path(name).write_text(made.stdout)
        self.path(name).chmod(0o600)
        return made.stdout.strip()

    def command(self, verb, *arguments, by="root"):
        shown = ["--token-file", self.path(by)] if by else []
        return run("token", verb, *arguments, "--server", self.server.url, *shown)

    def head(self, name, **headers):
        return {"Authorization": f"Bearer {self.path(name).read_text().strip()}", **headers}


@pytest.fixture
def tokens(server):
    return Tokens(server)


# ---- making and taking back --------------------------------------------------------------------


def test_the_first_credential_closes_the_server(server):
    assert server.get("/api/stats").status == 200
    refused = run("token", "create", "web", "--roles", "write", "--tenants", "a", "--server",
                  server.url)
    assert refused.returncode == 1 and "the first credential" in refused.stderr
    assert server.get("/api/stats").status == 200
    tokens = Tokens(server)
    answer = server.get("/api/stats")
    assert answer.status == 401
    assert sorted(answer.headers.get_all("WWW-Authenticate")) == [
        'Basic realm="granary"', 'Bearer realm="granary"']
    assert server.get("/api/stats", tokens.head("root")).status == 200
    assert server.get("/-/healthy").status == server.get("/ping").status // 204 * 200 == 200
    server.restart()
    assert server.get("/api/stats").status == 401
    assert server.get("/api/stats", tokens.head("root")).status == 200


def test_a_token_is_shown_once(server, tokens):
    web = tokens.create("web", "write", "acme,b")
    listed = json.loads(tokens.command("list", "-o", "json").stdout)["credentials"]
    assert [(c["name"], c["roles"], c["tenants"]) for c in listed] == [
        ("root", ["admin"], ["*"]), ("web", ["write"], ["acme", "b"])]
    for text in (json.dumps(listed), server.log_text(), tokens.command("list").stdout,
                 server.get("/metrics", tokens.head("root")).text, run("config").stdout):
        for token in (web, tokens.root):
            assert token not in text and token.split("_")[2] not in text
    server.stop()
    stored = b"".join(path.read_bytes() for path in server.data.rglob("*") if path.is_file())
    assert b"acme" in stored  # it looks at the right files
    for token in (web, tokens.root):
        assert token.split("_")[2].encode() not in stored
        assert bytes.fromhex(token.split("_")[2]) not in stored


def test_what_is_taken_back_holds_at_once(server, tokens):
    tokens.create("web", "read", "acme")
    ask = lambda: server.get("/api/metadata/metricNames", tokens.head("web")).status  # noqa: E731
    assert ask() == 200
    assert tokens.command("change", "web", "--roles", "write").returncode == 0
    assert ask() == 403
    assert tokens.command("change", "web", "--roles", "read", "--expires", "1ms").returncode == 0
    eventually(lambda: ask() == 401)
    assert tokens.command("change", "web", "--expires", "never").returncode == 0
    assert ask() == 200
    assert tokens.command("revoke", "web").returncode == 0
    assert ask() == 401
    again = tokens.command("revoke", "web")
    assert again.returncode == 1 and "there is no credential web" in again.stderr
    last = tokens.command("revoke", "root")
    assert last.returncode == 1 and "no other credential" in last.stderr
    log = server.log_text()
    assert re.search(r"root at 127\.0\.0\.1:\d+: POST /api/credentials\?name=web&.*: 201\n", log)
    assert re.search(r"root at 127\.0\.0\.1:\d+: DELETE /api/credentials/web: 200\n", log)


def test_a_token_of_a_stopped_server(make_server):
    server = make_server()
    with running(server):
        Tokens(server)
    made = run("token", "create", "again", "--roles", "admin", "--tenants", "*", "--data",
               server.data)
    assert made.returncode == 0, made.stderr
    assert run("token", "revoke", "root", "--data", server.data).returncode == 0
    listed = run("token", "list", "--data", server.data)
    assert listed.stdout.splitlines()[1].startswith("again,admin,*,")
    with running(server):
        assert server.get("/api/stats").status == 401
        head = {"Authorization": f"Bearer {made.stdout.strip()}"}
        assert server.get("/api/stats", head).status == 200


def test_only_the_first_credential_makes_a_directory(tmp_path):
    where = ["--data", tmp_path / "d"]
    for command in (["token", "list"], ["user", "list"], ["session", "reset"],
                    ["token", "change", "web1", "--tenants", "acme"], ["token", "revoke", "web1"]):
        said = run(*command, *where)
        assert (said.returncode, said.stdout) == (1, "")
        assert f"no store in {tmp_path}/d" in said.stderr
        assert not (tmp_path / "d").exists()
    made = run("token", "create", "me", "--roles", "admin", "--tenants", "*", *where)
    assert made.returncode == 0, made.stderr
    assert run("token", "list", *where).stdout.splitlines()[1].startswith("me,admin,*,")


def lines_that_write_tokens():
    help_of = run("help", "token", "create")
    texts = [help_of.stdout, *(path.read_text() for path in
                               [ROOT / "README.md", *sorted((ROOT / "doc").glob("*.md"))])]
    return [line.strip(" $") for text in texts for line in text.splitlines()
            if "granary token create" in line and " > " in line]


def test_the_examples_write_files_that_are_taken(server, tokens, tmp_path):
    """The lines of the manual, with the umask that systems have by default."""
    lines = lines_that_write_tokens()
    assert len(lines) >= 4
    for i, line in enumerate(lines):
        folder = tmp_path / str(i)
        folder.mkdir()
        command = re.sub(r"--data \S+", "", line).replace("build/granary", "granary")
        command = re.sub(r"create (\w+)", rf"create \1_{i}", command)
        done = subprocess.run(["sh", "-c", "umask 022; " + command], cwd=folder, text=True,
                              capture_output=True, env={
                                  **os.environ, "HOME": str(folder), "GRANARY_SERVER": server.url,
                                  "GRANARY_TOKEN_FILE": str(tokens.path("root")),
                                  "PATH": f"{pathlib.Path(granary()).parent}:{os.environ['PATH']}"})
        assert done.returncode == 0, (line, done.stderr)
        (written,) = folder.iterdir()
        assert stat.S_IMODE(written.stat().st_mode) == 0o600, line
        used = run("query", "m", "--tenant", "acme", "--server", server.url, "--token-file",
                   written)
        assert "token" not in used.stderr, used.stderr


def test_two_authorizations(server, tokens):
    head = f"Authorization: Bearer {tokens.root}"

    def status(*heads):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as sock:
            sock.sendall("\r\n".join(["GET /api/stats HTTP/1.1", "Host: localhost",
                                      "Connection: close", *heads, "", ""]).encode())
            answer = b"".join(iter(lambda: sock.recv(100000), b"")).decode()
        return int(answer.split()[1]), answer
    assert status(head)[0] == status(head, head.replace("Auth", "auth"))[0] == 200
    basic = "authorization: Basic eA=="
    for heads in ((head, head + "x"), (head + "x", head), (head, head, basic)):
        assert status(*heads)[0] == 400
        assert "Authorization is given twice" in status(*heads)[1]


@pytest.mark.parametrize("content, mode, says", [
    ("{token}\n", 0o644, "others"), ("", 0o600, "has to be a secret"),
    ("\n{token}\n", 0o600, "has to be a secret"),
    ("changeme\n", 0o600, "stands where a secret belongs"),
    ("{token}x\n", 0o600, "no token of Granary"), (None, 0o600, "")])
def test_a_file_that_holds_no_token(server, tokens, content, mode, says):
    path = server.folder / "some.token"
    if content is not None:
        path.write_text(content.format(token=tokens.root))
        path.chmod(mode)
    for how in ({"arguments": ["--token-file", path]}, {"env": {"GRANARY_TOKEN_FILE": str(path)}}):
        refused = run("stats", "--server", server.url, *how.get("arguments", []),
                      env={**os.environ, **how.get("env", {})})
        assert refused.returncode == 1 and says in refused.stderr and str(path) in refused.stderr
        assert tokens.root not in refused.stderr
    path.write_text(tokens.root)
    path.chmod(0o600)
    allowed = run("stats", "--server", server.url, env={**os.environ,
                                                        "GRANARY_TOKEN_FILE": str(path)})
    assert allowed.returncode == 0, allowed.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


# ---- tenants through the doors -----------------------------------------------------------------


def samples(server, tokens, tenant):
    """Of all that a tenant has: what the metrics are called, and their points."""
    head, found = tokens.head("root"), {}
    for name in server.get("/api/metadata/metricNames", head, tenant=tenant).json:
        for series in server.get("/api/query", head, tenant=tenant, metricName=name, start=0).json:
            key = name, tuple(sorted(series["tags"].items()))
            found[key] = list(series["values"].values())
    return found


def test_a_writer_reaches_its_own_tenant_alone(server, tokens):
    """Through every door for samples, after its owner has written the same series by a tag, by
    which it would be found without looking at who asks."""
    tokens.create("acme", "write", "acme")
    owners = f"cpu,host=h,tenant=owner value=1 {NOW_S}"
    head = tokens.head("root")
    for _ in range(3):
        assert server.write(owners, head, precision="s").status == 204
    point = {"metric": "cpu", "timestamp": NOW_S, "value": 1,
             "tags": {"host": "h", "tenant": "owner"}}
    assert server.put([point] * 3, head).status == 204
    before = samples(server, tokens, "owner")
    assert before == {("cpu", (("host", "h"),)): [1.0]}

    head = tokens.head("acme")
    thief = owners.replace("value=1", "value=666")
    assert server.write(thief, head, precision="s").status == 204
    assert server.request("POST", "/api/v2/write", thief, head, precision="s").status == 204
    assert server.put({**point, "value": 666}, head).status == 204
    assert samples(server, tokens, "owner") == before
    assert samples(server, tokens, "acme") == {
        ("cpu", (("host", "h"), ("tenant", "owner"))): [666.0]}
    for tenant in ("owner", "none"):  # one that is there, and one that never was
        for answer in (
                server.write(thief, {**head, "X-Tenant": tenant}, precision="s"),
                server.request("POST", "/api/v2/write", thief, {**head, "X-Tenant": tenant}),
                server.put(point, {**head, "X-Tenant": tenant}),
                server.request("POST", "/oops", "{}", {**head, "X-Tenant": tenant}),
                server.request("POST", "/oops", "{}", head, tenant=tenant),
                server.request("POST", "/chukwa", b"", {**head, "X-Tenant": tenant}),
                server.request("POST", "/loki/api/v1/push", "{}",
                               {**head, "X-Scope-OrgID": tenant})):
            assert answer.status == 403
            assert answer.text.count(f"this credential does not have tenant {tenant}") == 1
    assert samples(server, tokens, "owner") == before
    assert server.get("/api/metadata/tenants", tokens.head("root")).json == ["acme", "owner"]


def test_a_reader_sees_what_is_its_own(server, tokens):
    tokens.create("b", "read", "b,c")
    head = tokens.head("root")
    for tenant in ("b", "c", "d"):
        lines = f"m,of={tenant} value=1 {NOW_S}\n"
        assert server.write(lines, {**head, "X-Tenant": tenant}, precision="s").status == 204
    head = tokens.head("b")
    assert server.get("/api/metadata/tenants", head).json == ["b", "c"]
    assert server.get("/api/metadata/tenants", head, prefix="c").json == ["c"]
    ask = {"metricName": "m", "start": 0}
    assert [s["tags"] for s in server.get("/api/query", head, **ask).json] == [{"of": "b"}]
    assert [s["tags"] for s in server.get("/api/query", {**head, "X-Tenant": "c"}, **ask).json] == [
        {"of": "c"}]
    bodies = set()
    for tenant in ("d", "e"):
        answer = server.get("/api/query", head, tenant=tenant, **ask)
        assert answer.status == 403
        bodies.add(answer.text.replace(f"tenant {tenant}", "tenant"))
        # A chart that asks for another tenant's numbers.
        chart = json.dumps([{"query": {"tenant": tenant, "metricName": "m"}}])
        answer = server.request("PUT", "/hicc/v1/chart/preview/series", chart, head,
                                start=NOW_S - 60)
        assert answer.status == 400 and f'tenant is \\"{tenant}\\"' in answer.text
    assert len(bodies) == 1
    own = json.dumps([{"query": {"tenant": "b", "metricName": "m"}}])
    answer = server.request("PUT", "/hicc/v1/chart/preview/series", own, head, start=NOW_S - 60)
    assert answer.status == 200 and answer.json[0]["data"]
    both = server.get("/api/query", {**head, "X-Tenant": "b"}, tenant="c", **ask)
    assert both.status == 400


def test_devices_are_listed_without_their_addresses(make_server):
    with running(make_server(config=OIDSETS)) as server:
        tokens = Tokens(server)
        tokens.create("noc", "read", "snmp")
        tokens.create("web", "read", "acme")
        added = server.request("POST", "/api/devices", json.dumps(
            {"name": "rtr", "address": "192.0.2.1", "credentials": "lab", "oidsets": [],
             "poller": "site"}),
            tokens.head("root"))
        assert added.status < 300, added
        whole, = server.get("/api/devices", tokens.head("root")).json
        part, = server.get("/api/devices", tokens.head("noc")).json
        assert whole["address"] == "192.0.2.1" and whole["credentials"] == "lab"
        assert {"address", "port", "credentials"} == set(whole) - set(part)
        one = server.get("/api/devices/rtr", tokens.head("noc")).json
        assert one["name"] == "rtr" and "address" not in one
        assert server.get("/api/devices", tokens.head("web")).status == 403


# ---- who else asks -----------------------------------------------------------------------------


def test_influx_clients_with_a_token_that_may_only_write(server, tokens):
    token = tokens.create("sender", "write", "acme")
    first = influxdb.InfluxDBClient("127.0.0.1", server.port, "any", token, "db")
    first.create_database("db")
    assert first.write_points([{"measurement": "one", "fields": {"f": 1.5}, "time": NOW_S}],
                              time_precision="s")
    with pytest.raises(influxdb.exceptions.InfluxDBClientError) as refused:
        influxdb.InfluxDBClient("127.0.0.1", server.port, "any", token[:-1] + "g", "db").write(
            ["one f=1"], {"db": "db"}, protocol="line")
    assert refused.value.code == 401
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with influxdb_client.InfluxDBClient(server.url, token, org="o") as second:
            second.write_api(SYNCHRONOUS).write("b", "o", f"two f=2.5 {NOW_S}",
                                                write_precision="s")
            assert second.buckets_api().find_bucket_by_name("b").name == "b"
    assert server.get("/query", q="SHOW DATABASES", p=token, u="any").status == 200
    assert server.request("POST", "/write", f"three f=3 {NOW_S}", precision="s", u="x",
                          p=token).status == 204
    found = samples(server, tokens, "acme")
    assert {name: values for (name, _), values in found.items()} == {
        "one_f": [1.5], "two_f": [2.5], "three_f": [3.0]}


def test_header_forms_of_esmond(server, tokens):
    token = tokens.create("esmond", "read", "snmp")
    basic = base64.b64encode(f"x:{token}".encode()).decode()
    for form in (f"Token {token}", f"ApiKey esmond:{token}", f"Basic {basic}"):
        assert server.get("/v2/device/", {"Authorization": form}).status == 200, form
    for form in (f"ApiKey other:{token}", "ApiKey esmond:", f"Basic {basic[:-8]}"):
        assert server.get("/v2/device/", {"Authorization": form}).status == 401, form


def test_a_poller_that_may_only_be_itself(make_server, tmp_path):
    with running(make_server(config=OIDSETS)) as server:
        tokens = Tokens(server)
        tokens.create("site", "poll:site", "snmp")
        assert server.request("POST", "/api/devices", json.dumps(
            {"name": "rtr", "address": "127.0.0.1", "credentials": "lab", "oidsets": ["Fast"],
             "poller": "site"}), tokens.head("root")).status < 300
        poller = RemotePoller(tmp_path / "poller", server.url, "site",
                              options=["--token-file", tokens.path("site")])
        poller.start()
        try:
            wait_for(lambda: [p["name"] for p in server.get(
                "/api/pollers", tokens.head("root")).json if p["devices"]] == ["site"])
        finally:
            poller.kill()
        head = tokens.head("site")
        assert server.get("/api/pollers/site/inventory", head).status == 200
        assert server.get("/api/pollers/other/inventory", head).status == 403
        assert server.request("POST", "/api/polls", b"",
                              {**head, "Content-Type": "application/octet-stream"}).status < 300
        for method, path in (("GET", "/api/devices"), ("POST", "/write"), ("GET", "/api/pollers"),
                             ("POST", "/api/devices")):
            assert server.request(method, path, "" if method == "POST" else None,
                                  head).status == 403, path


def test_agents_with_a_token(server, tokens, tmp_path):
    """One within the server, which has a token of its own, and one elsewhere."""
    tokens.create("agent", "write,read", "logs")
    log = tmp_path / "a.log"
    log.write_text("".join(f"line {i}\n" for i in range(100)))
    other = Server(server.folder / "agent")
    config = other.folder / "agent.yml"
    config.write_text(f"adaptors:\n  app: {{tail: {log}, datatype: app}}\n")
    with open(other.log_path, "w") as out:
        agent = subprocess.Popen([granary(), "agent", "run", "--server", server.url, "--token-file",
                                  tokens.path("agent"), "--config", config, "--data", other.data],
                                 stdout=out, stderr=out)
    try:
        def lines():
            answer = server.get("/api/streams/search", tokens.head("root"), tenant="logs",
                                limit=1000)
            return answer.status == 200 and len(answer.json["lines"]) == 100
        eventually(lines, other.log_tail)
    finally:
        agent.terminate()
        assert agent.wait(PATIENCE_S) == 0


def test_an_agent_says_why_it_is_refused(server, tokens, tmp_path):
    tokens.create("writer", "write", "logs")
    log = tmp_path / "a.log"
    log.write_text("a line\n")
    other = Server(server.folder / "agent")
    config = other.folder / "agent.yml"
    config.write_text(f"adaptors:\n  app: {{tail: {log}, datatype: app}}\n")
    with open(other.log_path, "w") as out:
        agent = subprocess.Popen([granary(), "agent", "run", "--server", server.url, "--token-file",
                                  tokens.path("writer"), "--config", config, "--data", other.data],
                                 stdout=out, stderr=out)
    try:
        eventually(lambda: re.search(r"answers /api/streams\S* with status 403: this credential "
                                     "does not have the role read", other.log_text()),
                   other.log_tail)
    finally:
        agent.terminate()
        assert agent.wait(PATIENCE_S) == 0


def test_what_others_may_who_show_nothing(make_server):
    with running(make_server(options=["--auth.anonymous=read"])) as server:
        tokens = Tokens(server)
        assert server.get("/api/stats").status == 200
        assert server.write("m f=1").status == 403
        assert server.get("/api/credentials").status == 403
        assert server.get("/api/stats", {"Authorization": "Bearer gr_wrong"}).status == 401
        # The name counts where no credential says who asks.
        assert server.get("/api/stats", {"Host": "rebound.example"}).status == 421
        head = tokens.head("root", Host="rebound.example")
        assert server.get("/api/stats", head).status == 200
        assert server.metric("granary_auth_refused_total", reason="unknown") == 1
        assert server.metric("granary_auth_refused_total", reason="role") == 2
