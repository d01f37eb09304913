"""Users with passwords, and sessions of browsers, through the real doors: how passwords are given
and where they never stand, what ends a session, what a session may not do, and a flood of wrong
passwords beside others' work."""

import base64
import http.client
import json
import os
import pathlib
import pty
import re
import socket
import struct
import subprocess
import threading
import time

import influxdb
import pytest

from server import PATIENCE_S, eventually, granary, run, running
from test_auth import NOW_S, Tokens, samples
from test_browser import all_requests

RESETS = struct.pack("ii", 1, 0)


def basic(name, password):
    code = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {code}"}


class Users(Tokens):
    """Beside tokens."""

    def user(self, verb, *arguments, by="root", **options):
        shown = ["--token-file", self.path(by)] if by else []
        return run("user", verb, *arguments, "--server", self.server.url, *shown, **options)

    def create_user(self, name, password, roles="read", tenants="acme", *options):
        made = self.user("create", name, "--roles", roles, "--tenants", tenants,
                         "--password-file", "-", *options, input=f"{password}\n")
        assert made.returncode == 0, made.stderr
        assert made.stdout == made.stderr == ""


@pytest.fixture
def users(server):
    return Users(server)


# ---- passwords ---------------------------------------------------------------------------------


def test_a_user_is_made_changed_and_taken_back(server, users):
    users.create_user("ann", "correct: horse")
    ask = lambda password: server.get(  # noqa: E731
        "/api/metadata/metricNames", basic("ann", password)).status
    assert [ask("correct: horse"), ask("correct: horse"), ask("correct: hors")] == [200, 200, 401]
    listed = json.loads(users.user("list", "-o", "json").stdout)["credentials"]
    assert [(c["name"], c["kind"], c["roles"]) for c in listed] == [("ann", "user", ["read"])]
    assert [c["name"] for c in json.loads(
        users.command("list", "-o", "json").stdout)["credentials"]] == ["root"]
    assert users.user("change", "ann", "--roles", "write").returncode == 0
    assert ask("correct: horse") == 403
    assert users.user("change", "ann", "--roles", "read").returncode == 0
    path = server.folder / "ann.password"
    path.write_text("another horse\nof no account\n")
    path.chmod(0o600)
    changed = users.user("password", "ann", "--password-file", path)
    assert changed.returncode == 0, changed.stderr
    assert [ask("correct: horse"), ask("another horse")] == [401, 200]
    server.restart()
    assert ask("another horse") == 200
    assert users.user("revoke", "ann").returncode == 0
    assert ask("another horse") == 401
    refused = users.user("password", "root", "--password-file", path)
    assert refused.returncode == 1 and "root has a token, and no password" in refused.stderr


@pytest.mark.parametrize("given, says", [
    (b"", "is empty"), (b"\n", "is empty"), (b"1234567\n", "fewer than 8 bytes"),
    (b"x" * 513, "more than 512 bytes"), (b"x" * 100000, "more than 512 bytes"),
    (b"12345678\x0012345678\n", "a zero byte"), (b"123456\t78\n", "control character"),
    (b"1234567\xff\n", "not UTF-8"), (b"gr_" + b"0" * 16 + b"_" + b"1" * 64, "like a token")])
def test_what_is_no_password(server, users, given, says):
    for verb in (("create", "ann", "--roles", "read", "--tenants", "a"), ("password", "ann")):
        refused = subprocess.run(
            [granary(), "user", *verb, "--password-file", "-", "--server", server.url,
             "--token-file", users.path("root")], input=given, capture_output=True, check=False)
        assert refused.returncode == 1 and says in refused.stderr.decode()
    assert json.loads(users.user("list", "-o", "json").stdout)["credentials"] == []


@pytest.mark.parametrize("content, mode, says", [
    ("correct horse\n", 0o644, "others"), ("", 0o600, "secret of 1 to"), (None, 0, "")])
def test_a_file_that_holds_no_password(server, users, content, mode, says):
    path = server.folder / "some.password"
    if content is not None:
        path.write_text(content)
        path.chmod(mode)
    refused = users.user("create", "ann", "--roles", "read", "--tenants", "a", "--password-file",
                         path)
    assert refused.returncode == 1 and says in refused.stderr and str(path) in refused.stderr
    assert "correct horse" not in refused.stderr


def test_the_first_credential_may_be_a_user(server):
    made = run("user", "create", "me", "--roles", "admin", "--tenants", "*", "--password-file", "-",
               "--server", server.url, input="correct horse\n")
    assert made.returncode == 0, made.stderr
    assert server.get("/api/stats").status == 401
    assert server.get("/api/stats", basic("me", "correct horse")).status == 200
    server.stop()
    made = run("user", "create", "other", "--roles", "admin", "--tenants", "*", "--password-file",
               "-", "--data", server.data, input="battery staple\n")
    assert made.returncode == 0, made.stderr
    assert run("user", "revoke", "me", "--data", server.data).returncode == 0
    server.start()
    assert server.get("/api/stats", basic("me", "correct horse")).status == 401
    assert server.get("/api/stats", basic("other", "battery staple")).status == 200


def typed(arguments, answers):
    """Runs a command on a terminal of its own, where each prompt is answered. Its status, and what
    the terminal showed."""
    child, terminal = pty.fork()
    if not child:
        os.execv(granary(), [granary(), *map(str, arguments)])
    shown = b""
    try:
        for prompt, answer in answers:
            while not shown.endswith(prompt):
                shown += os.read(terminal, 4096)
            os.write(terminal, answer)
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:  # the command has ended
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode()


def test_a_password_is_typed_twice_and_not_shown(server, users):
    command = ["user", "create", "ann", "--roles", "read", "--tenants", "a", "--server", server.url,
               "--token-file", users.path("root")]
    first, again = b"password: ", b"the same once more: "
    for answers, says in (
            ([(first, b"correct horse\n"), (again, b"Correct horse\n")], "passwords differ"),
            ([(first, b"short\n")], "fewer than 8"), ([(first, b"\n")], "is empty"),
            ([(first, b"correct\x03horse\n")], "control character")):
        status, shown = typed(command, answers)
        assert status == 1 and says in shown
        assert "horse" not in shown and "short" not in shown
    status, shown = typed(command, [(first, b"correct horse\n"), (again, b"correct horse\n")])
    assert status == 0 and "horse" not in shown
    assert server.get("/api/suggest", basic("ann", "correct horse"), type="metrics").status == 200
    # Where there is no terminal, it is said what to do.
    refused = run(*command, start_new_session=True)
    assert refused.returncode == 1 and "--password-file" in refused.stderr


def test_influx_clients_with_a_name_and_a_password(server, users):
    users.create_user("sender", "correct horse", "write")
    client = influxdb.InfluxDBClient("127.0.0.1", server.port, "sender", "correct horse", "db")
    assert client.write_points([{"measurement": "one", "fields": {"f": 1.5}, "time": NOW_S}],
                               time_precision="s")
    assert server.request("POST", "/write", f"two f=2 {NOW_S}", precision="s", u="sender",
                          p="correct horse").status == 204
    assert server.request("POST", "/write", "two f=3", u="sender", p="wrong horse").status == 401
    assert server.request("POST", "/api/put", "[]", u="sender", p="correct horse").status == 401
    found = samples(server, users, "acme")
    assert {name: values for (name, _), values in found.items()} == {
        "one_f": [1.5], "two_f": [2.0]}


# ---- a flood -----------------------------------------------------------------------------------


def floods(port, stop, counts, number):
    """Wrong passwords for a few accounts; many clients do not wait for the answer."""
    while not stop.is_set():
        number += 10
        shown = basic(f"user{number % 3}", f"wrong horse {number}")["Authorization"]
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
            client.sendall(f"POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                           f"Authorization: {shown}\r\n\r\nm f=1".encode())
            if number % 4 == 0:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
                continue
            status = client.recv(4096)[9:12].decode()
            counts[status] = counts.get(status, 0) + 1


def test_a_flood_of_wrong_passwords(server, users):
    """Others are answered, and who is known is; nobody of the flood gets in."""
    users.create_user("user0", "correct horse", "write")
    users.create("sender", "write", "acme")
    known = {**basic("user0", "correct horse")}
    assert server.write("known f=1", known).status == 204
    stop, counts = threading.Event(), {}
    threads = [threading.Thread(target=floods, args=(server.port, stop, counts, n))
               for n in range(8)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: counts.get("429", 0) > 50 and counts.get("401", 0) > 0)
        head = users.head("sender")
        for i in range(50):
            assert server.write(f"m f={i} {NOW_S + i}", head, precision="s").status == 204
            assert server.write(f"known f={i} {NOW_S + i}", known, precision="s").status == 204
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert set(counts) == {"401", "429"}
    answer = server.get("/api/suggest", basic("nobody", "wrong horse"))
    assert answer.status == 429 and int(answer.headers["Retry-After"]) > 0
    server.token = users.root
    assert server.metric("granary_auth_refused_total", reason="held_up") > 0
    # Five, and one each time a wait is over, of each account and of the address.
    assert server.metric("granary_auth_passwords_total", how="compared") < 30
    assert server.metric("granary_auth_passwords_total", how="remembered") >= 50
    # What is logged of it is bounded.
    assert server.log_text().count(" is refused: ") < 200
    assert "horse" not in server.log_text()


def test_clients_that_leave_while_their_password_is_compared(make_server):
    """And a server that stops meanwhile."""
    server = make_server()
    with running(server):
        users = Users(server)
        users.create_user("ann", "correct horse")
        clients = []
        for i in range(20):
            shown = basic(f"user{i}", "some password")["Authorization"]
            client = socket.create_connection(("127.0.0.1", server.port), PATIENCE_S)
            client.sendall(f"GET /api/suggest HTTP/1.1\r\nHost: localhost\r\n"
                           f"Authorization: {shown}\r\n\r\n".encode() * 2)
            clients.append(client)
        for i, client in enumerate(clients):
            if i % 2:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
                client.close()
        server.stop()
        for client in clients:
            client.close()
        server.start()
        assert server.get("/api/suggest", basic("ann", "correct horse")).status == 400


# ---- sessions ----------------------------------------------------------------------------------

OURS, FOREIGN = {"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://evil.example"}


def log_in(server, **body):
    answer = server.request("POST", "/api/session", json.dumps(body), OURS)
    assert answer.status == 200, answer.text
    made = answer.headers["Set-Cookie"]
    assert re.fullmatch(r"granary_session=[0-9a-f]{130}; Path=/; Max-Age=43200; HttpOnly; "
                        r"SameSite=Strict", made), made
    assert answer.headers["Cache-Control"] == "no-store"
    return {"Cookie": made.partition(";")[0]}


def test_a_session_outlives_a_start_and_ends_with_its_credential(server, users):
    users.create_user("ann", "correct horse", "read,write")
    ann, root = log_in(server, name="ann", password="correct horse"), log_in(server,
                                                                            token=users.root)
    server.restart()
    who = server.get("/api/session", ann)
    assert who.json == {"name": "ann", "how": "session", "roles": ["read", "write"],
                        "tenants": ["acme"]}
    assert server.get("/api/session", root).json["name"] == "root"
    assert server.get("/api/session", basic("ann", "correct horse")).json["how"] == "password"
    assert server.get("/api/session", users.head("root")).json["how"] == "token"
    assert server.get("/api/session").status == 401
    assert server.get("/api/stats", ann).status == 403
    gone = server.request("DELETE", "/api/session", headers={**ann, **OURS})
    assert gone.status == 204 and "Max-Age=0" in gone.headers["Set-Cookie"]
    assert users.user("password", "ann", "--password-file", "-",
                      input="battery staple\n").returncode == 0
    assert server.get("/api/session", ann).status == 401
    ann = log_in(server, name="ann", password="battery staple")
    reset = run("session", "reset", "--server", server.url, "--token-file", users.path("root"))
    assert reset.returncode == 0
    assert re.search(r"root at 127\.0\.0\.1:\d+: DELETE /api/sessions: 200", server.log_text())
    assert [server.get("/api/session", head).status for head in (ann, root)] == [401, 401]
    ann = log_in(server, name="ann", password="battery staple")
    server.stop()
    assert run("session", "reset", "--data", server.data).returncode == 0
    server.start()
    assert server.get("/api/session", ann).status == 401


def test_who_cannot_log_in(server, users):
    users.create_user("ann", "correct horse")
    for body, status in (
            ({"name": "ann", "password": "wrong horse"}, 401),
            ({"name": "nobody", "password": "wrong horse"}, 401),
            ({"token": "gr_wrong"}, 401), ({"token": users.root[:-1] + "g"}, 401),
            ({"name": "ann"}, 400), ({"password": "correct horse"}, 400), ({}, 400),
            ({"name": "ann", "password": "correct horse", "more": 1}, 400),
            ({"name": 1, "password": 2}, 400), ([], 400), ("{", 400), ("", 400)):
        answer = server.request("POST", "/api/session",
                                body if isinstance(body, str) else json.dumps(body))
        assert answer.status == status, (body, answer)
        assert answer.headers["Set-Cookie"] is None and "horse" not in answer.text
        if status == 401:  # for which no browser asks its visitor by itself
            assert answer.headers.get_all("WWW-Authenticate") == ['Bearer realm="granary"']
    answer = server.request("POST", "/api/session",
                            json.dumps({"name": "ann", "password": "correct horse"}), FOREIGN)
    assert answer.status == 403


def test_what_a_session_alone_may_not(server, users):
    """Each route, from a page of ours, from another's, and where nothing says from which."""
    anyone = {"/api/1/envelope", "/api/1/store", "/api/session"}
    server.token = users.root
    requests = [(method, path.partition("?")[0], body) for method, path, body in
                all_requests(server)]
    server.token = None
    cookie = log_in(server, token=users.root)
    for method, path, body in requests:
        if path in anyone or "live" in path or "tail" in path:
            continue
        answer = server.request(method, path, body, {**cookie, **FOREIGN})
        assert answer.status == 403, (method, path, answer)
        answer = server.request(method, path, body, {**cookie, "Sec-Fetch-Site": "cross-site"})
        assert answer.status == 403, (method, path, answer)
        if method != "GET":
            answer = server.request(method, path, body, cookie)
            assert answer.status == 403 and "a session is not enough" in answer.text, (method, path)
    for shown in (OURS, {"Origin": server.url}):
        assert server.write(f"m f=1 {NOW_S}", {**cookie, **shown}, precision="s").status == 204
    # What is shown beside it counts alone.
    both = {**cookie, **users.head("root")}
    assert server.write(f"m f=1 {NOW_S}", both, precision="s").status == 204
    assert server.write("m f=1", {**cookie, **OURS, "Authorization": "Bearer x"}).status == 401


# ---- names -------------------------------------------------------------------------------------


def test_a_name_counts_while_those_who_show_nothing_are_answered(make_server):
    rebound = {"Host": "rebound.example"}
    with running(make_server()) as server:
        for host, status in (("rebound.example", 421), ("192.0.2.7", 200), ("[2001:db8::7]:1", 200),
                             ("localhost", 200), ("0.0.0.0", 421), ("192.0.2.7.example", 421)):
            assert server.get("/api/stats", {"Host": host}).status == status, host
        users = Users(server)
        users.create_user("ann", "correct horse", "read", "*")
        # From now on nobody is answered who shows nothing, by whichever name.
        assert server.get("/api/stats", rebound).status == 401
        assert server.get("/-/healthy", rebound).status == 200
        assert server.get("/api/stats", {**rebound, **basic("ann", "correct horse")}).status == 200
        assert server.get("/api/stats", {**rebound, **basic("ann", "wrong horse")}).status == 401
        cookie = log_in(server, name="ann", password="correct horse")
        assert server.get("/api/stats", {**rebound, **cookie}).status == 200
