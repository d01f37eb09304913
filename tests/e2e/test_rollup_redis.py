"""Roll-ups whose marks a real Redis keeps: its keys, and Redis gone, hanging and emptied while
there is work."""

import copy
import http.client
import pathlib
import socket
import threading
import time

import pytest

from redis import Redis
from rollups import LONG_AGO, SHORT, lines, rollup, state, stored, until
from server import PATIENCE_S, eventually, run, running

SLOTS = 5
WAITING = ["--rollup.slot=4s", "--rollup.granularities=1s,2s", "--rollup.quiet=1h"]


@pytest.fixture
def redis(tmp_path):
    folder = tmp_path / "redis"
    folder.mkdir()
    server = Redis(folder)
    yield server
    server.go_on()
    server.kill()


@pytest.fixture
def short(make_server, redis):
    with running(make_server(options=[*SHORT, f"--rollup.tracking={redis.url}"])) as server:
        yield server


def until_ready_says(server, word):
    eventually(lambda: server.get("/-/ready").text.startswith(word),
               lambda: (word, server.get("/-/ready")))
    assert server.get("/-/ready").status == 200


def until_nothing_waits(server):
    """As far as all that waits can be told."""
    return until(server, lambda said: not said["pending"] and not said["cut"],
                 "end of what waits")


def until_whole(server):
    """Nothing waits, nothing is lost and Redis is there."""
    return until(server, lambda said: not said["pending"] and not said["cut"]
                 and not said["tracking"]["incomplete"] and not said["tracking"]["degraded"],
                 "end of what waits")


def expect_pairs(server, series, seconds=4 * SLOTS):
    """Sums of the pairs of seconds that `lines` writes."""
    found = server.query("m", start=LONG_AGO, end=LONG_AGO + seconds, aggregator="sum",
                         granularity="2s")
    assert len(found) == series
    wanted = [2 * s + 1 for s in range(0, seconds, 2)]
    assert all(list(one["values"].values()) == wanted for one in found), found


# ---- Redis is there


def test_keys_are_those_of_the_document(make_server, redis):
    server = make_server(options=[*WAITING, "--rollup.partitions=64", "--retention.raw=0",
                                  f"--rollup.tracking={redis.url}"])
    server.start()
    assert server.get("/-/ready").text == "ready\n"
    assert server.write(lines("m", [0, 1, 4])).status == 204
    keys = [key for key in redis.keys() if key != "granary:epoch"]
    partition = keys[0].split(":")[1]
    assert keys == [f"{kind}:{partition}:{slot}" for kind in ("ingesting", "pending", "touches")
                    for slot in (LONG_AGO, LONG_AGO + 4)]
    assert redis.say("TYPE", keys[2]) == ["set"] and redis.say("TYPE", keys[4]) == ["hash"]
    assert redis.say("SMEMBERS", keys[2]) == ["default:m,h=0"]
    assert redis.say("HKEYS", keys[4]) == ["default:m,h=0"]
    assert 3590 <= int(redis.say("TTL", keys[0])[0]) <= 3600
    assert redis.say("TTL", keys[2]) == ["-1"]
    # The same for those who look from our side.
    rows = [row.split(",") for row in rollup(server, "pending").stdout.splitlines()]
    assert [(row[0], row[2], row[3], row[4]) for row in rows[1:]] == [
        ("2020-09-13T12:26:40Z", "1", "1", "0"), ("2020-09-13T12:26:44Z", "1", "1", "0")]
    assert "in Redis" in rollup(server, "status").stdout
    assert server.metric("granary_rollup_touches_total") == 2
    server.stop()


def test_lines_are_rolled_up_and_their_keys_go(short, redis):
    assert short.write(lines("m", range(8))).status == 204
    until_nothing_waits(short)
    assert short.metric("granary_rollup_series_total") == 2
    assert list(stored(short, "m", "sum", "2s").values()) == [1, 5, 9, 13]
    assert short.write(f"m,h=0 value=10 {LONG_AGO}500000000").status == 204
    until_nothing_waits(short)
    assert list(stored(short, "m", "sum", "2s").values())[0] == 11
    assert redis.keys("pending*") == redis.keys("touches*") == []


def test_a_batch_costs_one_round_trip_at_most(make_server, redis):
    """500 series of one slot in one request: one transaction; the same again: none, as the series
    of the slot are touched."""
    server = make_server(options=["--rollup.slot=1h", "--rollup.granularities=1m",
                                  f"--rollup.tracking={redis.url}"])
    server.start()
    now = int(time.time()) // 60 * 60
    text = "".join(f"m,h={h} value=1 {now}000000000\n" for h in range(500))
    redis.say("CONFIG", "RESETSTAT")
    for _ in range(2):
        assert server.write(text).status == 204
        assert redis.calls("exec") == redis.calls("multi") == 1
    assert redis.calls("sadd") == redis.calls("hset") == 1
    server.stop()


def test_what_another_program_marks_is_rolled_up(make_server, redis):
    """As the document's ingester does it: no touches."""
    server = make_server(options=[*SHORT, "--rollup.granularities=", "--retention.raw=0"])
    server.start()
    assert server.write(lines("m", range(4))).status == 204
    server.stop()
    server.options = [*SHORT, f"--rollup.tracking={redis.url}"]
    server.start()
    until_whole(server)
    assert stored(server, "m", "sum", "2s") == {}
    redis.say("SETEX", f"ingesting:0:{LONG_AGO}", 1, "")
    redis.say("SADD", f"pending:0:{LONG_AGO}", "default:m,h=0")
    until(server, lambda _: server.metric("granary_rollup_series_total"), "roll-up")
    assert list(stored(server, "m", "sum", "2s").values()) == [1, 5]
    server.stop()


def test_nothing_is_lost_by_a_kill(short, redis):
    """500 series in 5 slots; the server is killed as soon as some of them have their rows. Redis
    has the marks still, and nothing is made again."""
    assert short.write(lines("m", range(20), series=500)).status == 204
    until(short, lambda _: short.metric("granary_rollup_rows_total") > 0, "row")
    short.kill()
    short.start()
    until_whole(short)
    expect_pairs(short, 500)
    assert "marks in Redis are lost" not in short.log_text()
    assert redis.keys("pending*") == redis.keys("touches*") == []


# ---- Redis goes


def test_a_redis_that_is_killed_is_not_waited_for(short, redis):
    """What comes meanwhile is marked in the store and rolled up all the same; what waited in Redis
    comes back from raw data."""
    assert short.write(lines("m", range(4))).status == 204
    redis.kill()
    assert short.write(lines("m", range(4, 20))).status == 204
    until_ready_says(short, "degraded")
    assert "in the store" in short.get("/-/ready").text
    done = rollup(short, "pending")
    assert done.returncode == 0
    assert "it cannot be used, the store has them for now: " in rollup(short, "status").stdout
    # What a pass broke off at has words, too.
    said = until(short, lambda said: said["lastPass"] and said["lastPass"]["error"],
                 "error of a pass")
    assert said["lastPass"]["error"].startswith("Redis: ")
    assert "try again" not in said["lastPass"]["error"]
    assert short.write(lines("m", range(20), series=3)).status == 204
    redis.start()
    until_ready_says(short, "ready")
    until_whole(short)
    expect_pairs(short, 3)


def test_a_redis_that_hangs_is_not_waited_for(short, redis):
    """Its kernel still takes connections; nobody answers. The store takes marks that have waited
    for it in vain, once; then it is not even asked."""
    def missed():
        return short.metric("granary_rollup_redis_missed_total")
    redis.stop_still()
    assert short.write(lines("m", range(20))).status == 204
    assert missed() == 1
    until_ready_says(short, "degraded")
    assert short.write(lines("m", range(20)).replace("h=0", "h=1")).status == 204
    assert missed() == 1
    redis.go_on()
    until_ready_says(short, "ready")
    until_whole(short)
    expect_pairs(short, 2)


class Detour:
    """A way to Redis on which answers take `late_s` longer."""

    def __init__(self, redis):
        self.redis, self.late_s = redis, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}/0"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            redis = socket.create_connection(("127.0.0.1", self.redis.port))
            for pair in (client, redis, False), (redis, client, True):
                threading.Thread(target=self.carry, args=pair, daemon=True).start()

    def carry(self, source, target, answers):
        try:
            while data := source.recv(1 << 20):
                time.sleep(self.late_s if answers else 0)  # what the test is about
                target.sendall(data)
        except OSError:
            pass
        source.close()
        target.close()


def test_marks_that_wait_too_long_for_their_turn_go_to_the_store(make_server, redis):
    """Redis is asked 64 at a time, and answers after 1.5 s of the 2 s that marks wait: those that
    are asked third cannot have their answer in time."""
    detour = Detour(redis)
    with running(make_server(options=[*WAITING, "--retention.raw=0",
                                      f"--rollup.tracking={detour.url}"])) as server:
        until_ready_says(server, "ready")
        detour.late_s = 1.5
        answers = []

        def write(host):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
            connection.request("POST", "/write", f"m,h={host} value=1 {LONG_AGO}000000000\n")
            answers.append(connection.getresponse().status)
            connection.close()

        writers = [threading.Thread(target=write, args=[host]) for host in range(250)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        assert answers == [204] * 250
        assert server.metric("granary_rollup_redis_missed_total") > 0
        detour.late_s = 0
    detour.listener.close()


def test_without_redis_it_starts_all_the_same(make_server, redis):
    server = make_server(options=[*SHORT, f"--rollup.tracking={redis.url}"])
    redis.kill()
    server.start()
    until_ready_says(server, "degraded")
    assert server.write(lines("m", range(20))).status == 204
    redis.start()
    until_ready_says(server, "ready")
    until_whole(server)
    expect_pairs(server, 1)
    server.stop()


# ---- Redis forgets


@pytest.mark.parametrize("how", ["emptied", "restarted", "restarted with what it had saved"])
def test_what_redis_forgets_is_marked_again(make_server, redis, how):
    """Nothing is ready until Redis has forgotten, as the quiet time is long; then the server is
    restarted with a short one."""
    server = make_server(options=[*WAITING, "--retention.raw=0",
                                  f"--rollup.tracking={redis.url}"])
    server.start()
    assert server.write(lines("m", range(8), series=50)).status == 204
    if how == "restarted with what it had saved":
        redis.say("SAVE")
    assert server.write(lines("m", range(20), series=50)).status == 204
    if how == "emptied":
        redis.say("FLUSHALL")
    else:
        redis.kill()
        redis.start()
    until(server, lambda said: said["tracking"]["incomplete"]
          and not said["tracking"]["degraded"], "loss")
    assert "lost" in rollup(server, "status").stdout
    server.stop()
    server.options = [*SHORT, f"--rollup.tracking={redis.url}"]
    server.start()
    # Slots were the same; what was lost is known from before.
    until_whole(server)
    expect_pairs(server, 50)
    assert "marks in Redis are lost" in server.log_text()
    assert "have been made again" in server.log_text()
    server.stop()


def test_after_a_rebuild_everything_is_complete(make_server, redis):
    """By hand, without waiting for what the server does by itself."""
    server = make_server(options=[*SHORT[:2], "--rollup.quiet=4s", *SHORT[3:],
                                  f"--rollup.tracking={redis.url}"])
    server.start()
    assert server.write(lines("m", range(20), series=50)).status == 204
    redis.say("FLUSHALL")
    done = rollup(server, "rebuild")
    assert done.returncode == 0, done
    until_nothing_waits(server)
    expect_pairs(server, 50)
    server.stop()


def test_touches_that_are_lost_are_made_again(make_server, redis):
    """In a slot that goes on a series is touched once; after the loss, again."""
    server = make_server(options=["--rollup.slot=1d", "--rollup.granularities=1h",
                                  f"--rollup.tracking={redis.url}"])
    server.start()
    now = int(time.time()) // 86400 * 86400
    for _ in range(2):
        assert server.write(f"m,h=0 value=1 {now}000000000").status == 204
        assert redis.say("SMEMBERS", f"pending:0:{now}") == ["default:m,h=0"]
        redis.say("FLUSHALL")
        until(server, lambda said: redis.keys("granary*"), "epoch")
    server.stop()


def test_nothing_is_lost_whatever_happens(short, redis):
    """Redis is emptied, killed and stopped while four clients write and slots are rolled up."""
    answers, may_write = [], threading.Semaphore(0)

    def client(h):
        mine = copy.copy(short)
        mine.connection = None
        for s in range(4 * SLOTS):
            may_write.acquire()
            text = "".join(f"m,h={h}.{i} value={s} {LONG_AGO + s}000000000\n" for i in range(20))
            while (answer := mine.write(text)).status == 503:
                pass
            answers.append(answer.status)

    def write(count):
        """What follows comes when half of so many batches are taken."""
        half = len(answers) + count // 2
        may_write.release(count)
        eventually(lambda: len(answers) >= half, lambda: answers)

    clients = [threading.Thread(target=client, args=(h,), daemon=True) for h in range(4)]
    for one in clients:
        one.start()
    write(16)
    redis.say("FLUSHALL")
    write(16)
    until(short, lambda _: short.metric("granary_rollup_rows_total") > 0, "row")
    write(8)
    redis.kill()
    write(12)
    until_ready_says(short, "degraded")
    redis.start()
    write(8)
    redis.stop_still()
    write(12)
    redis.go_on()
    redis.say("FLUSHALL")
    write(8)
    for one in clients:
        one.join()
    assert answers == [204] * 16 * SLOTS
    until_ready_says(short, "ready")
    until_whole(short)
    expect_pairs(short, 80)


def test_who_rolls_nothing_up_is_told_to_rebuild(make_server, redis):
    """Nobody makes again by itself what was lost; a rebuild of everything does, a part does not."""
    server = make_server(options=[*SHORT, "--rollup.own=", f"--rollup.tracking={redis.url}"])
    server.start()
    assert server.write(lines("m", range(20), series=3)).status == 204
    redis.say("FLUSHALL")
    until(server, lambda said: said["tracking"]["incomplete"], "loss")

    def restored(*arguments):
        assert rollup(server, "rebuild", *arguments).returncode == 0
        return not state(server)["tracking"]["incomplete"]

    assert not restored("--metric", "m")
    assert not restored("--dry-run")
    eventually(restored, "a rebuild that finds all marks of before")
    assert len(redis.keys("pending*")) == SLOTS
    server.stop()


# ---- Bad input


@pytest.mark.parametrize("url,reason", [
    ("memcached", "it is store, or redis://"), ("redis://", "it has no host"),
    ("redis://h:0", "a port is 1 to 65535"), ("redis://h/x", "the number of a database")])
def test_what_is_no_redis_is_refused(make_server, url, reason):
    server = make_server(config=f"rollup:\n  tracking: {url}\n")
    done = run(*server.command()[1:])
    assert done.returncode == 2
    assert f"{server.config}:2" in done.stderr and reason in done.stderr, done.stderr


def test_no_password_is_shown(make_server, redis, tmp_path):
    """Neither by the log nor by the API, nor where all who are on the machine see it."""
    secret = tmp_path / "redis.password"
    secret.write_text("hush/hush\n")
    secret.chmod(0o600)
    redis.say("CONFIG", "SET", "requirepass", "hush/hush")
    options = [*SHORT, f"--rollup.tracking={redis.url}", f"--rollup.redis_password_file={secret}"]
    server = make_server(options=options)
    server.start()
    until_ready_says(server, "ready")
    redis.kill()
    until_ready_says(server, "degraded")
    cmdline = pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_bytes().decode()
    shown = run("config", *options)
    assert str(secret) in cmdline and str(secret) in shown.stdout
    for text in (server.log_text(), server.get("/-/ready").text, cmdline, shown.stdout,
                 server.get("/api/rollups").text, server.get("/api/stats").text):
        assert "hush" not in text
    server.stop()
    secret.chmod(0o644)
    refused = run(*server.command()[1:])
    assert refused.returncode == 2 and str(secret) in refused.stderr, refused.stderr
    assert "hush" not in refused.stderr


@pytest.mark.parametrize("login", ["u:hush", ":hush"])
def test_a_password_is_no_part_of_an_option(make_server, login):
    server = make_server(options=[f"--rollup.tracking=redis://{login}@127.0.0.1:1/0"])
    for command in (server.command()[1:], ["config", *server.command()[2:]]):
        refused = run(*command)
        assert refused.returncode == 2 and "rollup.redis_password_file" in refused.stderr
        assert "hush" not in refused.stderr + refused.stdout


def test_a_user_without_a_password_is_refused(make_server):
    refused = run(*make_server(options=["--rollup.tracking=redis://u@127.0.0.1"]).command()[1:])
    assert refused.returncode == 2 and "rollup.tracking has a user" in refused.stderr
