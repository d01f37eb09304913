"""Fault reports that python-oops publishes by AMQP: oops, oops-amqp and oops-wsgi of PyPI,
unchanged, and Debian's RabbitMQ."""

import bz2
import datetime
import json
import random
import socket
import struct
import threading
import time

import bson
import oops
import oops_amqp
import oops_wsgi
import pytest
from oops_datedir_repo import serializer_rfc822

import mounts
from rabbit import PASSWORD, USER, VHOST
from server import eventually, long_run, run, running
from test_oops import day_of, pages, post, report_of

ADDRESS, SECRET = "/checkout", "tok-4711-abc"


@pytest.fixture
def make_reader(make_server, tmp_path, queue):
    """Makes servers that read the queue."""
    def make(*options, port=queue.rabbit.port, **more):
        secret = tmp_path / "password"
        secret.write_text(PASSWORD + "\n")
        secret.chmod(0o600)
        return make_server(options=[
            "--fault.amqp.host=127.0.0.1", f"--fault.amqp.port={port}",
            f"--fault.amqp.vhost={VHOST}", f"--fault.amqp.queue={queue.name}",
            f"--fault.amqp.user={USER}", f"--fault.amqp.password_file={secret}", *options], **more)
    return make


@pytest.fixture
def reader(make_reader):
    with running(make_reader()) as server:
        yield server


def is_taking(server):
    return server.get("/-/ready").text == "ready\n"


def wait_taking(server):
    eventually(lambda: is_taking(server), lambda: server.get("/-/ready").text)


def row(server):
    """Of the queue, in GET /api/queues."""
    return server.get("/api/queues").json["queues"][-1]


def wait_done(server, count):
    """So many messages have been acknowledged since it started. The broker alone cannot say it: a
    message that is on its way does not wait any more."""
    eventually(lambda: row(server)["done"] == count, lambda: row(server))


def publisher(queue):
    return oops_amqp.Publisher(queue.rabbit.factory, queue.exchange, "", inherit_id=True)


def lines(server, text):
    return [line for line in server.log_text().splitlines() if text in line]


def number_of(server, event):
    return server.metric("granary_amqp_messages_total", event=event)


# ---- What python-oops sends ----------------------------------------------------------------------


def application(environ, start_response):
    raise KeyError("the customer's basket")


def ask(application_, **environ):
    """One request of a WSGI server: status, headers, body."""
    answer = []

    def start_response(status, headers, exc_info=None):
        answer.extend([status, dict(headers)])
        return lambda text: None
    environ = {"REQUEST_METHOD": "POST", "SCRIPT_NAME": "", "PATH_INFO": ADDRESS,
               "QUERY_STRING": f"item=7&token={SECRET}", "SERVER_NAME": "shop.example",
               "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http",
               **environ}
    pieces = application_(environ, start_response)
    return answer[0], answer[1], "".join(p if isinstance(p, str) else p.decode() for p in pieces)


def test_what_oops_wsgi_reports_is_read_back(reader, queue):
    """By AMQP, and once more by HTTP: the same report, so the same content came both ways."""
    sent, answers = [], []

    def publish_by_http(report):
        wait_done(reader, 1)
        sent.append(dict(report))
        answers.append(post(reader, bson.dumps(report)))
        return [answers[-1].headers["X-Oops-Id"]]
    config = oops.Config()
    oops_wsgi.install_hooks(config)
    config.template.update(reporter="shop", branch_nick="main", revno="42", topic=ADDRESS,
                           timeline=[[0, 12, "SQL-main", "SELECT 1"],
                                     [13, 20, "SQL-main", "SELECT 2"]])
    by_amqp = oops_amqp.Publisher(queue.rabbit.factory, queue.exchange, "")
    config.publisher = oops.publish_to_many(by_amqp, publish_by_http)
    status, headers, body = ask(oops_wsgi.make_app(application, config),
                                HTTP_X_SHOP="north", HTTP_COOKIE=f"session={SECRET}")
    name = sent[0]["id"]
    assert status.startswith("500") and headers["X-Oops-Id"] == name, (status, headers)
    assert name in body and name.startswith("OOPS-")
    assert answers[0].status == 200 and answers[0].json["result"] == "repeated", answers
    kept, report = report_of(reader, name), sent[0]
    assert (kept["exception"], kept["value"]) == ("KeyError", report["value"])
    assert SECRET in report["url"] and SECRET in report["req_vars"]["QUERY_STRING"]
    assert SECRET not in json.dumps(kept)
    assert (kept["context"], kept["URL"]) == (ADDRESS, report["url"].replace(SECRET, "<hidden>"))
    assert kept["tb_text"] == report["tb_text"] and "basket" in kept["tb_text"]
    assert kept["timeline"] == report["timeline"]
    assert (kept["reporter"], kept["branch"], kept["revision"]) == ("shop", "main", "42")
    assert report["req_vars"].keys() >= {"HTTP_X_SHOP", "PATH_INFO", "SERVER_NAME"}
    for variable, value in report["req_vars"].items():
        shown = kept.get(f"REQUEST.{variable}", kept.get(variable.replace("HTTP_", "HTTP.")))
        assert shown == value.replace(SECRET, "<hidden>"), (variable, kept)
    listed = pages(reader)
    assert [r["id"] for r in listed] == [name] and listed[0]["statements"] == 2
    assert day_of(reader)["total"] == 1
    assert (number_of(reader, "received"), number_of(reader, "acknowledged")) == (1, 1)


def some_report(number, **more):
    return {"id": f"OOPS-{number}", "type": "KeyError", "value": f"'k{number}'", "topic": ADDRESS,
            "time": datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.timezone.utc), **more}


def test_a_message_has_any_form_that_post_takes(reader, queue):
    rfc822 = b"".join(serializer_rfc822.to_chunks(some_report(2)))
    queue.publish(bson.dumps(some_report(1)), rfc822, bz2.compress(bson.dumps(some_report(3))),
                  json.dumps({"id": "OOPS-4", "exception": "KeyError", "value": "'k4'"}).encode())
    wait_done(reader, 4)
    for number in range(1, 5):
        kept = report_of(reader, f"OOPS-{number}")
        assert (kept["exception"], kept["value"]) == ("KeyError", f"'k{number}'")


def test_they_belong_to_the_configured_tenant(make_reader, queue):
    with running(make_reader("--fault.amqp.tenant=shop")) as server:
        queue.publish(bson.dumps(some_report(1)))
        wait_done(server, 1)
        assert [r["id"] for r in pages(server, tenant="shop")] == ["OOPS-1"]
        assert pages(server) == []


# ---- What cannot be taken ------------------------------------------------------------------------


def aside(server, queue):
    answer = server.get("/api/queues/aside", queue=f"amqp/{queue.name}")
    assert answer.status == 200, answer
    return answer.json


def test_what_cannot_be_taken_is_set_aside(make_reader, queue):
    server = make_reader("--fault.report_max=8K")
    server.start()
    whole = bson.dumps(some_report(1))
    large = bson.dumps(some_report(5, noise=random.Random(1).randbytes(9000).hex()))
    huge = b"x" * (32 << 20) + b"end"
    queue.publish(whole, b"hello", whole[:9], b"", b"[{}]", huge,
                  bson.dumps(some_report(1, reporter="another")), large,
                  bson.dumps(some_report(2)), whole)
    wait_done(server, 10)
    assert sorted(r["id"] for r in pages(server)) == ["OOPS-1", "OOPS-2"]
    found = aside(server, queue)[::-1]  # the newest stands first
    reasons = [message["reason"] for message in found]
    for reason, part in zip(reasons, [
            "neither JSON nor BSON nor rfc822", "BSON, byte 0: ", "Empty OOPS report", "an array",
            f"it has {len(huge)} bytes, and a message may have {32 << 20}",
            "there is another report with the id OOPS-1; it stays",
            "more than 8192 bytes"], strict=True):
        assert part in reason, reasons
    assert [message["bytes"] for message in found] == [
        5, 9, 0, 4, len(huge), len(bson.dumps(some_report(1, reporter="another"))), len(large)]
    assert found[0]["text"] == "hello" and len(found[4]["text"]) == 1 << 20
    assert report_of(server, "OOPS-1").get("reporter") is None
    assert (number_of(server, "set_aside"), number_of(server, "acknowledged")) == (7, 10)
    assert lines(server, "is set aside: neither JSON nor BSON nor rfc822")
    # They lie there after a kill, too; what can be taken now, is.
    server.kill()
    server.options.remove("--fault.report_max=8K")
    with running(server):
        assert row(server)["aside"] == 7
        name = f"amqp/{queue.name}"
        shown = run("queue", "--server", server.url, "--aside", name, "-o", "csv")
        assert "OOPS-1; it stays" in shown.stdout, shown
        again = run("queue", "--server", server.url, "--retry", name, "-o", "csv")
        assert again.stdout.splitlines() == ["queue,given,kept", f"{name},1,6"], again
        assert report_of(server, "OOPS-5")["value"] == "'k5'"
        assert [message["reason"] for message in aside(server, queue)[::-1]] == reasons[:6]
        table = run("queue", "--server", server.url, "--once", "-o", "csv").stdout
        assert f"{name},0,0,0,0,0,0,6,0" in table.splitlines(), table
        assert server.get("/api/queues/aside", queue="amqp/other").status == 404


# ---- When somebody is away -----------------------------------------------------------------------


def test_the_broker_is_lost_and_comes_back(reader, queue):
    wait_taking(reader)
    publish = publisher(queue)
    assert publish(some_report(1)) == ["OOPS-1"]
    wait_done(reader, 1)
    begun = time.monotonic()
    queue.rabbit.kill()
    eventually(lambda: "degraded: fault reports by AMQP" in reader.get("/-/ready").text)
    assert reader.metric("granary_amqp_connected") == 0
    assert post(reader, {"id": "OOPS-2"}).status == 201
    queue.rabbit.start()
    queue.make()  # a broker that is killed may forget a binding made seconds before
    queue.publish(bson.dumps(some_report(3)))
    wait_taking(reader)
    # Whether the broker still knows that the first was acknowledged is its own affair.
    eventually(lambda: sorted(r["id"] for r in pages(reader)) == ["OOPS-1", "OOPS-2", "OOPS-3"])
    assert len(lines(reader, "they are taken from the queue")) == 2
    lost = lines(reader, "none are taken from the queue")
    minutes = 1 + int((time.monotonic() - begun) // 60)
    assert 1 <= len(lost) <= 3 * minutes and f"127.0.0.1:{queue.rabbit.port}" in lost[0], lost
    # A broker that starts may take a connection before it has its queues.
    assert reader.metric("granary_amqp_connections_total") >= 2


def test_a_queue_that_is_not_there(make_reader, queue):
    queue.remove()
    with running(make_reader()) as server:
        eventually(lambda: f"no queue '{queue.name}'" in server.get("/-/ready").text)
        queue.make()
        queue.publish(bson.dumps(some_report(1)))
        wait_done(server, 1)
        queue.remove()
        eventually(lambda: not is_taking(server))
        assert lines(server, "the queue was deleted")
        queue.make()
        wait_taking(server)


def test_a_wrong_password(make_reader, tmp_path):
    server = make_reader()
    (tmp_path / "password").write_text("guess")
    with running(server):
        eventually(lambda: "ACCESS_REFUSED" in server.get("/-/ready").text)
    assert "guess" not in server.log_text()


def test_killed_in_a_stream(make_reader, queue):
    """Whatever is acknowledged is there, and what came twice is there once."""
    server, kills, chance = make_reader("--fault.amqp.prefetch=20"), 4, random.Random(5)
    if long_run():
        kills = 20
    count = 300 * (kills + 1)
    queue.publish(*(bson.dumps(some_report(n)) for n in range(count)))
    for _ in range(kills):
        server.start()
        seen = chance.randrange(1, 300)
        eventually(lambda: number_of(server, "received") >= seen)
        server.kill()
        eventually(queue.ready, "some are left")
    with running(server):
        eventually(lambda: day_of(server)["total"] == count, lambda: day_of(server)["total"])
        listed = [r["id"] for r in pages(server, limit=1000)]
        assert sorted(listed) == sorted(f"OOPS-{n}" for n in range(count))
        eventually(lambda: row(server)["pending"] == 0)
        assert day_of(server)["total"] == count and queue.ready() == 0
        assert row(server)["aside"] == 0


def test_the_store_is_full(make_reader, queue, tmp_path):
    """The broker keeps them, but for a few; when there is room again all are taken."""
    with mounts.memory(tmp_path / "small", "16m") as place:
        server = make_reader("--store.journal_max=1M", "--store.min_free=1M",
                             "--fault.amqp.prefetch=7")
        server.data = place.folder / "data"
        filler = place.folder / "filler"
        filler.write_bytes(bytes(10 << 20))
        chance = random.Random(9)
        noise = [chance.randbytes(10000).hex() for _ in range(20)]
        server.start()
        sent = 0

        def is_full():
            nonlocal sent
            queue.publish(*(bson.dumps(some_report(n, noise=noise[n % 20]))
                            for n in range(sent, sent + 100)))
            sent += 100
            return "the store takes no reports: " in server.get("/-/ready").text
        eventually(is_full)
        queue.publish(b"hello", *(bson.dumps(some_report(n)) for n in range(sent, sent + 50)))
        sent += 50
        eventually(lambda: row(server)["pending"] == 7)
        retries = server.metric("granary_amqp_retries_total")
        eventually(lambda: server.metric("granary_amqp_retries_total") > retries)
        assert row(server)["pending"] == 7 and queue.ready() > 0
        assert len(lines(server, "the store takes no reports")) == 1
        assert server.metric("granary_amqp_connections_total") == 1
        filler.unlink()
        wait_done(server, sent + 1)
        wait_taking(server)
        assert {r["id"] for r in pages(server, limit=1000)} == {
            f"OOPS-{n}" for n in range(sent)}
        assert [m["reason"][:7] for m in aside(server, queue)] == ["neither"]
        server.stop()


STOPS_WITHIN_S = 5  # of the 10 s that the server waits for an answer of the broker


def test_a_stop_does_not_wait_for_a_broker_that_hangs(make_reader, queue):
    server = make_reader()
    server.start()
    wait_taking(server)
    queue.rabbit.stop_still()
    try:
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun < STOPS_WITHIN_S
        server.start()  # the kernel takes the connection, and nobody says a word
        begun = time.monotonic()
        server.stop()
        assert time.monotonic() - begun < STOPS_WITHIN_S
    finally:
        queue.rabbit.go_on()


# ---- A broker that says nonsense -----------------------------------------------------------------


def frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(channel, class_id, method_id, arguments=b""):
    return frame(1, channel, struct.pack(">HH", class_id, method_id) + arguments)


DELIVER = method(1, 60, 60, b"\x01c" + struct.pack(">Q", 1) + b"\0\0\0")


def header(length):
    return frame(2, 1, struct.pack(">HHQH", 60, 0, length, 0))


NONSENSE = {
    "a part that nothing began": (frame(3, 1, b"abc"), "has not begun"),
    "a header that nothing began": (header(3), "has not begun"),
    "a body that is too long": (DELIVER + header(3) + frame(3, 1, b"abcd"), "longer than it says"),
    "a body of empty parts": (DELIVER + header(3) + frame(3, 1, b""), "has an empty frame"),
    "a body without a header": (DELIVER + frame(3, 1, b"abc"), "is not its next"),
    "two at once": (DELIVER + header(3) + DELIVER, "within a message"),
    "no end of a frame": (b"\x01\0\x01\0\0\0\x04abcdX", "is broken"),
    "an endless frame": (b"\x03\0\x01\xff\xff\xff\xff" + bytes(100), "is broken"),
    "a method that is none": (method(1, 999, 999), "is broken"),
    "a request": (method(1, 60, 40, bytes(20)), "AMQP_BASIC_PUBLISH_METHOD"),
    "more than it was told": (2 * (DELIVER + header(3) + frame(3, 1, b"{}x")), "more messages"),
    "a reason with a line end": (method(1, 20, 40, b"\x01\x2c\x04x\ny\x1b\0\0\0\0"), "x\\ny\\x1b"),
}


CONSUMING = [method(1, 60, 11), method(1, 60, 21, b"\x01c")]


class Nonsense(threading.Thread):
    """Lets whoever connects log in, and answers each frame of what he wants by one of these; with
    the last answer it sends these bytes."""

    def __init__(self, last, wanted=CONSUMING):
        super().__init__(daemon=True)
        self.answers, self.connections = [*wanted[:-1], wanted[-1] + last], 0
        self.ended = 0  # by who had connected
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.connections += 1
            with connection:
                self.talk(connection)
            self.ended += 1

    def talk(self, connection):
        start = b"\0\x09\0\0\0\0" + struct.pack(">I", 5) + b"PLAIN" + struct.pack(">I", 1) + b"C"
        tune = struct.pack(">HIH", 1, 131072, 0)
        with connection.makefile("rb") as said:
            said.read(8)  # the protocol
            connection.sendall(method(0, 10, 10, start))
            for answer in (method(0, 10, 30, tune), b"", method(0, 10, 41, b"\0"),
                           method(1, 20, 11, bytes(4)), *self.answers):
                length = struct.unpack(">BHI", said.read(7))[2]
                said.read(length + 1)
                connection.sendall(answer)
            said.read()


@pytest.mark.parametrize("what", NONSENSE)
def test_a_broker_that_says_nonsense(make_reader, what):
    last, part = NONSENSE[what]
    broker = Nonsense(last)
    broker.start()
    with running(make_reader("--fault.amqp.prefetch=1", port=broker.port)) as server:
        eventually(lambda: any(part in line for line in lines(server, "none are taken")),
                   lambda: server.log_tail())
        assert post(server, {"id": "OOPS-1"}).status == 201
    broker.listener.close()


# ---- Options -------------------------------------------------------------------------------------


def test_wrong_options(tmp_path):
    secret = tmp_path / "password"
    for text, mode, more, part in [
            ("x", 0o644, (), "chmod 600 it"),
            ("", 0o600, (), "has to be a secret of 1 to 255 bytes"),
            (256 * "x", 0o600, (), "has to be a secret"),
            ("a\0b", 0o600, (), "has to be a secret"),
            ("\nx", 0o600, (), "has to be a secret"),
            ("x", 0o600, ("--fault.amqp.tenant=a/b",), "--fault.amqp.tenant: "),
            ("x", 0o600, ("--fault.amqp.prefetch=1001",), "--fault.amqp.prefetch: "),
            ("x", 0o600, ("--fault.amqp.queue=",), "--fault.amqp.queue: "),
            ("x", 0o600, ("--fault.amqp.password_file=/none/there",), "/none/there")]:
        secret.write_text(text)
        secret.chmod(mode)
        options = ["--fault.amqp.host=localhost", f"--fault.amqp.password_file={secret}"]
        if more and more[0].startswith("--fault.amqp.password_file"):
            options.pop()
        answer = run("serve", "--data", tmp_path / "data", *options, *more)
        assert answer.returncode == 2 and part in answer.stderr, (more, answer)
        assert not (tmp_path / "data").exists()
