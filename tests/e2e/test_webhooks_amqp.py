"""Messages that the server publishes by AMQP: to Debian's RabbitMQ, and to brokers of the test's
own that hang and say nonsense."""

import json
import random
import re
import socket
import struct
import time
import urllib.parse

import pytest

from rabbit import PASSWORD, USER, VHOST
from server import eventually, free_port, long_run, run, running
from test_fault_amqp import STOPS_WITHIN_S, Nonsense, header, is_taking, method, wait_taking
from test_fault_groups import send
from test_fault_messages import made, messages_of, wait_new
from test_webhooks import counted, options_of, receiver  # noqa: F401 (a fixture)


def quoted(text):
    return urllib.parse.quote(text, safe="")


def address(port, password=PASSWORD):
    return f"amqp://{USER}:{quoted(password)}@127.0.0.1:{port}/{quoted(VHOST)}"


@pytest.fixture
def make(make_server, tmp_path):
    def make_it(*lines):
        return make_server(options=options_of(tmp_path, *lines, secret=False))
    return make_it


def line_of(queue):
    return f"{address(queue.rabbit.port)} exchange={queue.exchange}"


def faults(*names):
    return [{"id": name, "fingerprint": [name]} for name in names]


def send_of_shop(server, name):
    """Of another tenant."""
    answer = server.request("POST", "/oops", json.dumps(faults(name)[0]),
                            {"Content-Type": "application/json", "X-Tenant": "shop"})
    assert answer.status == 201


def ids(published):
    return [message.properties["message_id"] for message in published]


def logged(server, text):
    """A warning of a line of the file, with what it says of the broker."""
    return [line for line in server.log_text().splitlines()
            if "amqp://127.0.0.1:" in line and text in line]


# ---- What is published ---------------------------------------------------------------------------


def test_messages_are_published_as_they_are_posted(make, receiver, queue, rabbit):  # noqa: F811
    """In their order, with their properties; each line those that it chooses."""
    to_shop, of_kind = rabbit.queue(), rabbit.queue()
    with running(make(receiver.url(), f"{line_of(queue)} key=granary",
                      f"{address(rabbit.port)} key={to_shop.name} tenant=shop kind=new",
                      f"{line_of(of_kind)} kind=regressed")) as server:
        send(server, made(random.Random(1), 0, 55, 10000))
        send_of_shop(server, "s")
        wait_new(server)
        wanted = list(reversed(messages_of(server)))
        eventually(lambda: counted(server, "sent") == 2 * (len(wanted) + 1) + 1)
        assert counted(server, "failed") == 0
    published = queue.take()
    for message in receiver.messages():
        message.pop("signed")
        [same] = [m for m in published if m.properties["message_id"] == message["id"]]
        assert json.loads(same.body) == message
        assert same.properties == {
            "content_type": "application/json", "delivery_mode": 2, "message_id": message["id"],
            "timestamp": message["date"] // 1000, "type": message["kind"]}
        assert same.delivery_info["exchange"] == queue.exchange
        assert same.delivery_info["routing_key"] == "granary"
    assert [i for i in ids(published) if i in {m["id"] for m in wanted}] == [
        m["id"] for m in wanted]
    assert len(published) == len(wanted) + 1
    assert [json.loads(m.body)["report"] for m in to_shop.take()] == ["s"]
    assert of_kind.take() == []


def test_none_is_lost_when_the_server_is_killed(make, queue):
    server, chance, published = make(line_of(queue)), random.Random(3), []
    server.start()
    for n in range(20 if long_run() else 4):
        send(server, made(chance, n * 20, 20, 10000))
        goal = len(published) + 1 + chance.randrange(3)
        eventually(lambda: published.extend(queue.take()) or len(published) >= goal)
        server.kill()
        server.start()
    wait_new(server)
    wanted = [m["id"] for m in reversed(messages_of(server))]
    eventually(lambda: published.extend(queue.take()) or set(ids(published)) == set(wanted))
    server.stop()
    assert list(dict.fromkeys(ids(published))) == wanted


# ---- What is not taken ---------------------------------------------------------------------------


def test_without_an_exchange(make, rabbit):
    name = f"later-{free_port()}"
    with running(make(f"{address(rabbit.port)} exchange={name}")) as server:
        send(server, faults("a"))
        eventually(lambda: logged(server, f"NOT_FOUND - no exchange '{name}'"))
        queue = rabbit.queue(exchange=name)
        eventually(lambda: counted(server, "sent") == 1)
        assert counted(server, "failed") >= 1
        [message] = messages_of(server)
    assert ids(queue.take()) == [message["id"]]


def test_without_a_queue(make, queue):
    """The broker returns what nobody would have."""
    queue.remove()
    with running(make(line_of(queue))) as server:
        send(server, faults("a", "b"))
        eventually(lambda: logged(server, "no queue takes the message"))
        queue.make()
        eventually(lambda: counted(server, "sent") == 2)
        wanted = [m["id"] for m in reversed(messages_of(server))]
    assert ids(queue.take()) == wanted


def test_a_queue_that_is_full(make, rabbit):
    queue = rabbit.queue(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    with running(make(line_of(queue))) as server:
        send(server, faults("a", "b"))
        eventually(lambda: logged(server, "a queue did not take the message"))
        first = queue.take()
        eventually(lambda: counted(server, "sent") == 2)
        wanted = [m["id"] for m in reversed(messages_of(server))]
    assert ids(first) + ids(queue.take()) == wanted


def test_a_broker_that_lacks_memory(make, queue, tmp_path):
    """Whoever publishes is told so; whoever reads goes on."""
    rabbit, secret = queue.rabbit, tmp_path / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    server = make(line_of(queue))
    server.options += ["--fault.amqp.host=127.0.0.1", f"--fault.amqp.port={rabbit.port}",
                       f"--fault.amqp.vhost={VHOST}", f"--fault.amqp.queue={rabbit.queue().name}",
                       f"--fault.amqp.user={USER}", f"--fault.amqp.password_file={secret}"]
    with running(server):
        wait_taking(server)
        rabbit.control("set_vm_memory_high_watermark", "0")
        try:
            send(server, faults("a"))
            eventually(lambda: logged(server, "low on memory"))
            assert is_taking(server)
        finally:
            rabbit.control("set_vm_memory_high_watermark", "0.4")
        eventually(lambda: counted(server, "sent") == 1)
        assert is_taking(server) and server.metric("granary_amqp_connections_total") == 1
        [message] = messages_of(server)
    assert set(ids(queue.take())) == {message["id"]}


def test_a_login_that_is_refused(make, rabbit):
    """Neither password is shown anywhere."""
    wrong = "another secret%"
    lines = (f"{address(rabbit.port, wrong)} key=x", f"{address(rabbit.port)} exchange=none")
    server = make(*lines)
    with running(server):
        send(server, faults("a"))
        eventually(lambda: logged(server, "ACCESS_REFUSED"))
        eventually(lambda: logged(server, "no exchange 'none'"))
        eventually(lambda: counted(server, "failed") >= 2)
        told = run("config", *server.options).stdout + server.get("/metrics").text
    assert "fault.webhooks_file" in told or "webhooks_file" in told
    for text in (server.log_text(), told):
        for secret in (wrong, PASSWORD):
            assert secret not in text and quoted(secret) not in text


# ---- When the broker is away ---------------------------------------------------------------------


def test_the_broker_is_lost_and_comes_back(make, queue):
    """Each message is published at least once, under its id."""
    published = []
    with running(make(line_of(queue))) as server:
        queue.rabbit.remember()
        send(server, faults(*(f"a{n}" for n in range(20))))
        eventually(lambda: queue.ready() > 0)
        queue.rabbit.kill()
        send(server, faults(*(f"b{n}" for n in range(5))))
        eventually(lambda: counted(server, "failed") > 0)
        assert logged(server, "the server tries again")
        queue.rabbit.start()
        wait_new(server)
        wanted = [m["id"] for m in reversed(messages_of(server))]
        eventually(lambda: published.extend(queue.take()) or set(ids(published)) == set(wanted))
        eventually(lambda: counted(server, "sent") == len(wanted) == 25)
    assert list(dict.fromkeys(ids(published))) == wanted


def test_a_broker_that_hangs_holds_nobody_up(make, receiver, queue):  # noqa: F811
    """Neither other lines, nor a stop."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel takes connections
        port = silent.getsockname()[1]
        with running(make(f"{address(port)} key=x", receiver.url(), line_of(queue))) as server:
            send(server, faults("a", "b"))
            eventually(lambda: counted(server, "sent") == 4)
            assert counted(server, "failed") == 0  # the first has not failed yet
            assert {m["report"] for m in receiver.messages()} == {"a", "b"}
            assert len(queue.take()) == 2
            begun = time.monotonic()
        assert time.monotonic() - begun < STOPS_WITHIN_S
        with running(server):  # and what it says when it has waited
            eventually(lambda: logged(server, "cannot log in: "), server.log_tail)


def test_a_broker_that_stands_still(make, queue):
    with running(make(line_of(queue))) as server:
        send(server, faults("a"))
        eventually(lambda: counted(server, "sent") == 1)
        queue.rabbit.stop_still()
        try:
            send(server, faults("b"))
            wait_new(server)
            begun = time.monotonic()
            server.stop()
            assert time.monotonic() - begun < STOPS_WITHIN_S
        finally:
            queue.rabbit.go_on()
    with running(server):
        eventually(lambda: counted(server, "sent") >= 1)
        wanted = [m["id"] for m in reversed(messages_of(server))]
    assert list(dict.fromkeys(ids(queue.take()))) == wanted


# ---- A broker that says nonsense -----------------------------------------------------------------

CONFIRMING = [method(1, 85, 11), b"", b"", b""]  # the message comes in three frames
BLOCKED = method(0, 10, 60, b"\x0alow on\nram")

NONSENSE = {
    "no memory": (BLOCKED, r"it did not take the message: low on\nram"),
    "the end": (method(0, 10, 50, b"\x01\x40\x03bye\0\0\0\0"), "it did not take the message: bye"),
    "a refusal": (method(1, 60, 120, bytes(9)), "a queue did not take the message"),
    "a part of a message": (header(3), "has not begun"),
    "a delivery": (method(1, 60, 60, bytes(12)), "AMQP_BASIC_DELIVER_METHOD"),
    "no frame": (b"\x01\0\x01\0\0\0\x04abcdX", "the connection is broken"),
    "nothing": (b"", "it has not confirmed the message within 10 s"),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_a_broker_that_says_nonsense(make, what):
    last, part = NONSENSE[what]
    broker = Nonsense(last, CONFIRMING)
    broker.start()
    with running(make(f"{address(broker.port)} key=x")) as server:
        send(server, faults("a"))
        eventually(lambda: logged(server, part), server.log_tail)
    broker.listener.close()


def test_no_message_follows_one_that_failed(make):
    """By its connection: the next would be taken for confirmed by what comes late."""
    broker = Nonsense(NONSENSE["a refusal"][0], CONFIRMING)
    broker.start()
    with running(make(f"{address(broker.port)} key=x")) as server:
        send(server, faults("a"))
        send_of_shop(server, "b")
        eventually(lambda: counted(server, "failed") >= 2)
        assert broker.connections >= 2
    broker.listener.close()


def test_a_connection_that_is_idle_is_closed(make):
    """It has no heartbeats."""
    broker = Nonsense(method(1, 60, 80, struct.pack(">QB", 1, 0)), CONFIRMING)
    broker.start()
    with running(make(f"{address(broker.port)} key=x")) as server:
        send(server, faults("a"))
        eventually(lambda: counted(server, "sent") == 1)
        eventually(lambda: broker.ended == 1)
        assert counted(server, "failed") == 0
    broker.listener.close()


# ---- Lines ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("line, sentence", [
    ("amqp://u:secret@a", "line 3 of .*: neither exchange= nor key="),
    ("amqp://u:sec/secret@a key=x", "line 3 of .*: it has an @, /"),
    ("amqps://u:secret@a key=x", "line 3 of .*: it does not begin with"),
    ("http://u:secret@a exchange=x", '"exchange=x" behind the address'),
    ("amqp://u:secret@a key=x key=x", '"key=x" behind the address'),
    ("\n".join(f"amqp://u:secret@a key=x{n}" for n in range(17)), "more than 16 lines of amqp://")])
def test_lines_that_make_no_sense(tmp_path, line, sentence):
    answer = run("serve", "--data", str(tmp_path / "data"), "--listen",
                 "127.0.0.1:0", *options_of(tmp_path, line, secret=False))
    assert answer.returncode == 2 and re.search(sentence, answer.stderr), answer.stderr
    assert "fault.webhooks_file" in answer.stderr and "secret" not in answer.stderr.replace(
        str(tmp_path), "")
