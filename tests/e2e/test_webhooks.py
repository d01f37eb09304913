"""Messages that the server posts to webhooks: to an HTTP server of Python's library, which checks
the signature by its own means, fails, hangs and redirects."""

import email
import email.policy
import hashlib
import hmac
import http.server
import json
import random
import re
import socket
import threading
import time

import aiosmtpd.controller
import pytest

from server import eventually, free_port, long_run, run, running
from test_clock import HOOK, ClockServer
from test_fault_gc import DAY_S, go_on
from test_fault_groups import send
from test_fault_messages import made, messages_of, wait_new

SECRET = "the receiver's secret"
PATH = "/hooks/7f3c-a-secret-of-its-own"


class Receiver(http.server.ThreadingHTTPServer):
    """What it has taken, by path, in the order of arrival."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.taken, self.seen = threading.Lock(), [], []
        self.answers = []  # statuses of the next requests; then 204
        self.hangs = threading.Event()  # of those to /hangs: until it is set
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path=PATH):
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def messages(self, path=PATH):
        with self.lock:
            return [message for at, message in self.taken if at == path]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message = json.loads(body)
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["X-Granary-Id"] == message["id"]
        signature = self.headers["X-Granary-Signature"]
        if signature:
            at, digest = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", signature).groups()
            right = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256)
            assert hmac.compare_digest(right.hexdigest(), digest)
        message["signed"] = bool(signature)
        if self.path == "/hangs":
            self.server.hangs.wait(60)
        with self.server.lock:
            self.server.seen.append((self.path, message["id"]))
            status = self.server.answers.pop(0) if self.server.answers else 204
            if status == 204:
                self.server.taken.append((self.path, message))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", self.server.url("/elsewhere"))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.hangs.set()
    receiver.shutdown()
    receiver.server_close()


def options_of(tmp_path, *lines, secret=True, internal=True):
    path, key = tmp_path / "webhooks", tmp_path / "secret"
    path.write_text("# where messages go\n\n" + "".join(line + "\n" for line in lines))
    key.write_text(SECRET + "\n")
    for file in (path, key):
        file.chmod(0o600)
    return ([f"--fault.webhooks_file={path}"] +
            ([f"--fault.webhooks_secret_file={key}"] if secret else []) +
            (["--fault.webhooks_internal=true"] if internal else []))


@pytest.fixture
def make(make_server, tmp_path):
    def make_it(*lines, secret=True, internal=True):
        return make_server(options=options_of(tmp_path, *lines, secret=secret, internal=internal))
    return make_it


def counted(server, event):
    return server.metric("granary_webhook_messages_total", event=event)


def test_messages_are_posted_in_order_and_signed(make, receiver):
    kinds, shop, live = "/kinds", "/shop", "/live"
    with running(make(receiver.url(), f"{receiver.url(kinds)} kind=regressed",
                      f"{receiver.url(shop)} tenant=shop",
                      f"{receiver.url(live)} environment=live level=error")) as server:
        send(server, made(random.Random(1), 0, 60, 20))
        send(server, [{"id": "other", "fingerprint": ["other"], "environment": "test"}])
        answer = server.request("POST", "/oops", json.dumps({"id": "s", "fingerprint": ["s"]}),
                                {"Content-Type": "application/json", "X-Tenant": "shop"})
        assert answer.status == 201
        wait_new(server)
        wanted = list(reversed(messages_of(server)))
        eventually(lambda: len(receiver.messages()) == len(wanted) + 1)
        of_live = len(wanted) - 1
        eventually(lambda: receiver.messages(shop) and len(receiver.messages(live)) == of_live)
        eventually(lambda: counted(server, "sent") == len(wanted) + 1 + 1 + of_live)
    told = [m for m in receiver.messages() if m["tenant"] == "default"]
    for message in told:
        assert message.pop("signed") and message.pop("tenant") == "default"
        assert message.pop("text") == (f"New fault (default, {message['environment']}): "
                                       f"{message.get('title', message['group'])}")
    assert told == wanted
    assert {m["environment"] for m in receiver.messages(live)} == {"live"}
    assert [m["report"] for m in receiver.messages(shop)] == ["s"]
    assert receiver.messages(kinds) == []
    assert PATH not in server.log_text() and SECRET not in server.log_text()


def test_what_is_not_taken_is_sent_again_under_its_id(make, receiver):
    with running(make(receiver.url(), secret=False)) as server:
        receiver.answers = [500, 302]
        send(server, [{"id": f"a{n}", "fingerprint": [f"a{n}"]} for n in range(3)])
        wait_new(server)
        eventually(lambda: {"a0", "a1", "a2"} <= {m["report"] for m in receiver.messages()})
        assert counted(server, "failed") == 2 and counted(server, "given_up") == 0
        assert "127.0.0.1" in server.log_text() and "it answered 500" in server.log_text()
    tried = [id_ for _, id_ in receiver.seen]
    assert len(tried) == len(set(tried)) + 2  # the same one three times
    assert not any(m["signed"] for m in receiver.messages())
    assert {path for path, _ in receiver.seen} == {PATH}  # no redirect was followed


def test_none_is_lost_when_the_server_is_killed(make, receiver):
    server, chance = make(receiver.url()), random.Random(3)
    server.start()
    for n in range(20 if long_run() else 5):
        before = len(receiver.messages())
        send(server, made(chance, n * 20, 20, 10000))
        eventually(lambda: len(receiver.messages()) > before + chance.randrange(3))
        server.kill()
        server.start()
    wait_new(server)
    wanted = [m["id"] for m in reversed(messages_of(server))]
    eventually(lambda: {m["id"] for m in receiver.messages()} == set(wanted))
    server.stop()
    assert list(dict.fromkeys(m["id"] for m in receiver.messages())) == wanted


def send_as(server, tenant, report):
    answer = server.request("POST", "/oops", json.dumps(report),
                            {"Content-Type": "application/json", "X-Tenant": tenant})
    assert answer.status == 201, answer


def test_the_first_message_of_a_new_tenant_is_not_lost(make, receiver):
    """However soon the server ends after it was made."""
    server = make(receiver.url())
    server.start()
    tenants = [f"t{n}" for n in range(20 if long_run() else 6)]
    for n, tenant in enumerate(tenants):
        send_as(server, tenant, {"id": tenant, "fingerprint": ["x"]})
        eventually(lambda tenant=tenant: messages_of(server, tenant=tenant))
        if n % 2:
            server.kill()
        else:
            server.stop()
        server.start()
    eventually(lambda: {m["report"] for m in receiver.messages()} == set(tenants))
    server.stop()


def test_a_webhook_begins_behind_the_messages_that_there_are(tmp_path, receiver):
    """Whatever the clock says then: here it is ahead by three hours."""
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "")
    noon = DAY_S // 2 - int(time.time()) % DAY_S  # no day closes between here and three hours on
    server.set_wall(noon)
    server.start()
    try:
        for n in range(3):
            send(server, [{"id": f"before{n}", "fingerprint": [f"before{n}"]}])
        wait_new(server)
        server.stop()
        server.options += options_of(tmp_path, receiver.url())
        server.set_wall(noon + 3 * 3600)
        server.start()
        # Its own note is there when this tenant's message is posted.
        send_as(server, "other", {"id": "other", "fingerprint": ["other"]})
        eventually(lambda: receiver.messages())
        server.set_wall(noon)
        for n in range(3):
            send(server, [{"id": f"after{n}", "fingerprint": [f"after{n}"]}])
        eventually(lambda: len(receiver.messages()) == 4)
    finally:
        server.kill()
    assert {m["report"] for m in receiver.messages()} == {"other", "after0", "after1", "after2"}


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    b"HTTP/1.1 202 Accepted\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense"])
def test_what_follows_the_head_of_an_answer_does_not_matter(make, answer):
    seen = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            while True:
                connection, _ = listener.accept()
                with connection:
                    head = connection.recv(65536)
                    seen.append(re.search(rb"X-Granary-Id: (\w+)", head).group(1))
                    connection.sendall(answer)
        threading.Thread(target=serve, daemon=True).start()
        with running(make(f"http://127.0.0.1:{listener.getsockname()[1]}/x")) as server:
            send(server, [{"id": f"a{n}", "fingerprint": [f"a{n}"]} for n in range(3)])
            eventually(lambda: counted(server, "sent") == 3)
            assert counted(server, "failed") == 0
    assert len(seen) == len(set(seen)) == 3


def test_a_webhook_that_hangs_holds_nobody_up(make, receiver):
    with running(make(receiver.url("/hangs"), receiver.url())) as server:
        for n in range(10):
            send(server, [{"id": f"b{n}", "fingerprint": [f"b{n}"]}])
        wait_new(server)
        eventually(lambda: {f"b{n}" for n in range(10)} <=
                   {m["report"] for m in receiver.messages()})
        begun = time.monotonic()
    assert time.monotonic() - begun < 8  # a stop breaks it off
    receiver.hangs.set()


def test_internal_addresses_are_refused(make, receiver):
    """Also by a name: what is connected to counts."""
    url = receiver.url().replace("127.0.0.1", "localhost")
    with running(make(url, f"http://[::1]:{free_port()}/x", internal=False)) as server:
        send(server, [{"id": "c", "fingerprint": ["c"]}])
        eventually(lambda: counted(server, "failed") >= 2)
        assert "its address is an internal one" in server.log_text()
    assert receiver.seen == []


def test_what_is_never_taken_is_given_up(tmp_path, receiver):
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "")
    server.options += options_of(tmp_path, receiver.url())
    server.set_wall(DAY_S // 2 - int(time.time()) % DAY_S)  # no day closes within two hours
    server.start()
    try:
        receiver.answers = [500] * 9
        send(server, [{"id": "d", "fingerprint": ["d"]}])
        wait_new(server)
        passed = 0

        def look():
            nonlocal passed
            if counted(server, "failed") > passed:
                passed = counted(server, "failed")
                server.pass_awake(601)
            return counted(server, "given_up") == 1
        eventually(look)
        assert counted(server, "failed") == 9
        assert "is not sent to http://127.0.0.1" in server.log_text()
        send(server, [{"id": "e", "fingerprint": ["e"]}])
        eventually(lambda: [m["report"] for m in receiver.messages()][-1:] == ["e"])
    finally:
        server.kill()
    assert "d" not in [m["report"] for m in receiver.messages()]


# ---- Mail ----------------------------------------------------------------------------------------


class Mailbox:
    """What an SMTP server has taken."""

    def __init__(self):
        self.mails, self.answers = [], []

    async def handle_DATA(self, _server, _session, envelope):
        if self.answers:
            return self.answers.pop(0)
        self.mails.append((envelope.mail_from, envelope.rcpt_tos, email.message_from_bytes(
            envelope.content, policy=email.policy.default)))
        return "250 taken"


@pytest.fixture
def mailbox():
    mailbox = Mailbox()
    controller = aiosmtpd.controller.Controller(mailbox, hostname="127.0.0.1", port=free_port())
    controller.start()
    mailbox.options = [f"--fault.mail_server=smtp://127.0.0.1:{controller.port}",
                       "--fault.mail_from=granary@shop.example"]
    yield mailbox
    controller.stop()


def text_of(mail):
    return next(part for part in mail.walk() if part.get_content_type() == "text/plain"
                ).get_content().replace("\r\n", "\n")


def test_messages_are_mailed(make_server, tmp_path, mailbox):
    server = make_server(options=[*options_of(tmp_path, "mailto:team@shop.example",
                                              internal=False), *mailbox.options])
    mailbox.answers = ["451 not now"]
    with running(server):
        value = "für größere Körbe " * 9
        send(server, [{"id": "a", "fingerprint": ["a"], "exception": "KeyError", "value": value,
                       "environment": "live", "level": "error", "release": "shop@1.2"}])
        wait_new(server)
        eventually(lambda: counted(server, "sent") == 1)
        [message] = messages_of(server)
    [(sender, receivers, mail)] = mailbox.mails
    assert (sender, receivers) == ("granary@shop.example", ["team@shop.example"])
    assert (mail["From"], mail["To"]) == (sender, receivers[0])
    assert mail["Subject"] == f"New fault (default, live): {message['title']}"
    assert all(len(line) <= 78 for line in mail.as_string(
        policy=email.policy.compat32).split("\n\n")[0].splitlines())
    assert mail["Message-ID"] == f"<{message['id']}@granary>"
    assert abs(mail["Date"].datetime.timestamp() - time.time()) < 60
    assert mail["Auto-Submitted"] == "auto-generated"
    assert text_of(mail).splitlines() == [
        mail["Subject"], "", f"group        {message['group']}", "report       a",
        "environment  live", "level        error", "release      shop@1.2", "reports      1"]
    assert counted_before(server.log_text()) == 1


def counted_before(log):
    return log.count("mailto:team@shop.example has not taken a message")


def test_the_daily_report_is_mailed(tmp_path, mailbox):
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "")
    server.options += [*options_of(tmp_path, "mailto:team@shop.example kind=day"),
                       *mailbox.options]
    server.start()
    try:
        server.pass_awake(DAY_S + DAY_S // 2 - int(time.time()) % DAY_S)
        send(server, made(random.Random(5), 0, 50, 9))
        wait_new(server)
        day = time.strftime("%Y%m%d", time.gmtime(messages_of(server)[0]["date"] / 1000))
        server.pass_awake(DAY_S)
        go_on(server, lambda: mailbox.mails)
        report = server.get(f"/oops/days/{day}/report", format="text").text
    finally:
        server.kill()
    [(_, _, mail)] = mailbox.mails
    assert mail["Subject"] == "The day is over (default): 50 reports"
    assert text_of(mail).rstrip() == f"{mail['Subject']}\n\n{report}".rstrip()


class SlowMail:
    """A server of mail that takes what it is sent, but does not answer one of the commands."""

    def __init__(self, hangs_at):
        self.hangs_at, self.taken = hangs_at, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.options = ["--fault.mail_server=smtp://127.0.0.1:"
                        f"{self.listener.getsockname()[1]}"]
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            self.open.append(connection)
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        lines, within = connection.makefile("rb"), False
        connection.sendall(b"220 here\r\n")
        for line in lines:
            words = [line.rstrip()] if within and line == b".\r\n" else line.split()[:1]
            word = words[0] if words and (words == [b"."] or not within) else b""
            within = (within or word.upper() == b"DATA") and word != b"."
            if word == b".":
                self.taken += 1
            if word and word.decode().upper() != self.hangs_at:
                connection.sendall(b"354 go on\r\n" if within else b"250 good\r\n")


@pytest.mark.parametrize("hangs_at", [".", "QUIT"])
def test_a_server_of_mail_that_hangs_holds_nobody_up(make_server, tmp_path, receiver, hangs_at):
    mail = SlowMail(hangs_at)
    server = make_server(options=[
        *options_of(tmp_path, "mailto:one@shop.example", "mailto:two@shop.example",
                    receiver.url()), *mail.options])
    with running(server):
        for n in range(10):
            send(server, [{"id": f"b{n}", "fingerprint": [f"b{n}"]}])
            begun = time.monotonic()
            eventually(lambda n=n: f"b{n}" in {m["report"] for m in receiver.messages()})
            assert time.monotonic() - begun < 8  # libcurl waits for thirty seconds
        eventually(lambda: mail.taken > 0)
        begun = time.monotonic()
    assert time.monotonic() - begun < 8
    assert counted_failed(server) == 0


def counted_failed(server):
    return server.log_text().count("did not end in time")


@pytest.mark.parametrize("options, sentence", [
    ([], "fault.mail_server"), (["--fault.mail_server=127.0.0.1"], "smtp://"),
    (["--fault.mail_server=smtp://127.0.0.1", "--fault.mail_from=a b@c"], "fault.mail_from")])
def test_mail_needs_a_server_and_a_sender(tmp_path, options, sentence):
    answer = run("serve", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0",
                 *options_of(tmp_path, "mailto:team@shop.example"), *options)
    assert answer.returncode != 0 and sentence in answer.stderr, answer.stderr


@pytest.mark.parametrize("line, sentence", [
    ("ftp://example.org/secret", "line 3 of .*: it does not begin with https:// or http://"),
    ("http://example.org/secret colour=red", '"colour=red" behind the address'),
    ("http://example.org/secret kind=old", '"kind=old" behind the address'),
    ("http://example.org/secret kind=new kind=new", '"kind=new" behind the address'),
    ("http://example.org/secret tenant=a/b", '"tenant=a/b" behind the address'),
    ("http://example.org/secret\nhttp://example.org/secret", "line 4 of .* is there already"),
    ("mailto:a@b@c", "mailto: and an address"), ("mailto:a,b@c", "mailto: and an address"),
    ("http://example.org/" + "x" * 2000, "more than 2000 bytes")])
def test_files_that_make_no_sense(tmp_path, line, sentence):
    answer = run("serve", "--data", str(tmp_path / "data"), "--listen",
                 "127.0.0.1:0", *options_of(tmp_path, line))
    assert answer.returncode != 0 and re.search(sentence, answer.stderr), answer.stderr
    assert "fault.webhooks_file" in answer.stderr and "secret" not in answer.stderr.replace(
        str(tmp_path), "")


def test_lines_may_end_as_on_windows(make_server, tmp_path, receiver):
    options = options_of(tmp_path, f"{receiver.url()} environment=live\r")
    (tmp_path / "secret").write_bytes(SECRET.encode() + b"\r\n")
    with running(make_server(options=options)) as server:
        send(server, [{"id": "a", "fingerprint": ["a"], "environment": "live"}])
        eventually(lambda: receiver.messages())
    assert receiver.messages()[0]["signed"]


def test_a_file_that_anybody_may_read_is_refused(tmp_path):
    options = options_of(tmp_path, "http://example.org/")
    (tmp_path / "webhooks").chmod(0o644)
    answer = run("serve", "--data", str(tmp_path / "data"), "--listen",
                 "127.0.0.1:0", *options)
    assert answer.returncode != 0 and "fault.webhooks_file" in answer.stderr, answer.stderr
