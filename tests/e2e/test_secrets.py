"""Secrets are planted in all places where they belong, shown rightly and wrongly, and then looked
for where they do not: logs, arguments of processes, `granary config`, counters, answers, and the
store."""

import base64
import json
import pathlib

import pytest

from redis import Redis
from remote_poller import OIDSETS, RemotePoller, wait_for
from server import run, running
from test_users import Users, basic, log_in

PASSWORD, COMMUNITY, V3 = "hush-password", "hush-community", "hush-v3-secret"
OF_REDIS, OF_HOOKS = "hush-redis", "hush-hooks"


@pytest.fixture
def redis(tmp_path):
    folder = tmp_path / "redis"
    folder.mkdir()
    server = Redis(folder)
    server.say("CONFIG", "SET", "requirepass", OF_REDIS)
    yield server
    server.kill()


def file_of(folder, name, text):
    path = folder / name
    path.write_text(f"{text}\n")
    path.chmod(0o600)
    return path


def arguments_of(process):
    """What everybody on the machine sees of it."""
    folder = pathlib.Path(f"/proc/{process.pid}")
    return (folder / "cmdline").read_bytes().decode()


def answers(server, users, cookie):
    """What is said where secrets are shown, rightly, wrongly, and where none belongs."""
    root, token = users.head("root"), users.root
    body = json.dumps({"password": PASSWORD})
    shown = json.dumps({"name": "ann", "password": PASSWORD})
    asked = [
        ("GET", "/metrics", None, root), ("GET", "/api/stats", None, root),
        ("GET", "/api/credentials", None, root), ("GET", "/api/devices", None, root),
        ("GET", "/api/session", None, cookie), ("GET", "/", None, root),
        ("GET", "/api/rollups", None, root), ("GET", "/-/ready", None, {}),
        ("GET", "/api/stats", None, basic("ann", PASSWORD + "x")),
        ("GET", "/api/stats", None, {"Authorization": f"Bearer {token}x"}),
        ("GET", "/api/stats", None, {"Authorization": f"Digest {PASSWORD}"}),
        ("POST", f"/api/put?u=ann&p={PASSWORD}", "[]", {}),
        ("POST", f"/api/put?u=ann&p={PASSWORD}", "[]", root),
        ("POST", f"/write?u=ann&p={PASSWORD}x", "m f=1", {}),
        ("POST", f"/write?u=ann&p={token}&precision=x", "m f=1", {}),
        ("GET", f"/api/query?token={PASSWORD}", None, root),
        # A secret in the place of the name, and a wrong password of a user who is there.
        ("GET", "/api/stats", None, basic(token, "x")),
        ("GET", "/api/stats", None, basic(PASSWORD, "x")),
        ("GET", "/api/stats", None, basic("ann", "x")),
        ("POST", "/api/session", shown[:-1], {}), ("POST", "/api/session", shown + "x", {}),
        ("POST", "/api/session", json.dumps({"token": f"{token}x"}), {}),
        ("POST", "/api/session", json.dumps({"name": PASSWORD}), {}),
        ("POST", "/api/session", shown, {"Content-Encoding": "gzip"}),
        ("POST", "/api/credentials?name=a&roles=read&tenants=*", body, root),
        ("POST", "/api/credentials?name=a&roles=x&tenants=*&kind=user", body, root),
        ("PUT", "/api/credentials/root", body, root),
        ("PUT", "/api/credentials/ann", json.dumps({"password": PASSWORD + "\n"}), root),
        ("PUT", "/api/credentials/ann", body[:-1], root),
    ]
    for method, path, sent, headers in asked:
        yield f"{method} {path.partition('?')[0]}", server.request(method, path, sent, headers)


def test_planted_secrets(make_server, redis, tmp_path):
    snmp = file_of(tmp_path, "snmp.yml", "lab: {version: 2c, community: %s}\ncore: {version: 3, "
                   "user: u, auth: SHA, auth_password: %s}" % (COMMUNITY, V3))
    options = [f"--rollup.tracking={redis.url}",
               f"--rollup.redis_password_file={file_of(tmp_path, 'redis.password', OF_REDIS)}",
               f"--snmp.secrets_file={snmp}",
               f"--fault.webhooks_secret_file={file_of(tmp_path, 'hooks.secret', OF_HOOKS)}",
               "--log.level=debug"]
    server = make_server(config=OIDSETS, options=options)
    seen = {}
    with running(server):
        users = Users(server)
        users.create_user("ann", PASSWORD, "read,write", "*")
        site = users.create("site", "poll:site", "snmp")
        for credentials in ("lab", "core"):
            added = server.request("POST", "/api/devices", json.dumps(
                {"name": credentials, "address": "127.0.0.1:9", "credentials": credentials,
                 "oidsets": ["Fast"]}), users.head("root"))
            assert added.status < 300, added
        assert server.get("/api/stats", basic("ann", PASSWORD)).status == 200
        cookie = log_in(server, name="ann", password=PASSWORD)
        signed = cookie["Cookie"].partition("=")[2]
        poller = RemotePoller(tmp_path / "poller", server.url, "site",
                              ["--token-file", users.path("site")])
        poller.start()
        try:
            wait_for(lambda: "site" in server.get("/api/pollers", users.head("root")).text)
            seen["arguments of the poller"] = arguments_of(poller.process)
        finally:
            poller.kill()
        seen["log of the poller"] = poller.log_path.read_text()
        seen["arguments"] = arguments_of(server.process)
        for what, answer in answers(server, users, cookie):
            seen[f"{what} ({answer.status}) {len(seen)}"] = f"{answer.text}{answer.headers}"
        taken = run("backup", tmp_path / "backup", "--server", server.url, "--token-file",
                    users.path("root"))
        assert taken.returncode == 0, taken
        seen["backup"] = (tmp_path / "backup").read_bytes().decode("latin-1")
        seen["log"] = server.log_text()
    shown = run("config", "--config", server.config, *options)
    assert "redis.password" in shown.stdout, shown
    seen["config"] = shown.stdout + shown.stderr
    seen["store"] = b"".join(path.read_bytes() for path in server.data.rglob("*")
                             if path.is_file()).decode("latin-1")
    assert "/api/credentials" in seen["log"] and "a secret, and the user ann" in seen["log"]
    secrets = [PASSWORD, COMMUNITY, V3, OF_REDIS, OF_HOOKS, signed,
               base64.b64encode(PASSWORD.encode()).decode()[:-4],
               *(token.split("_")[2][:32] for token in (users.root, site))]
    for where, text in seen.items():
        for secret in secrets:
            assert secret not in text, (where, secret)
