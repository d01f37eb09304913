"""What an agent takes in besides files, such as what commands print. What the server holds is
compared with what was sent."""

import os
import re
import signal

import pytest

from followed import Follower, await_held, export, incarnations
from server import eventually

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z"


@pytest.fixture
def follow(server, tmp_path):
    """Starts agents; all that still run at the end are killed."""
    followers = []

    def make(adaptors, name="follower", collectors=None, **options):
        follower = Follower(tmp_path / name, collectors or server.url, adaptors, **options)
        followers.append(follower)
        return follower.start()

    yield make
    for follower in followers:
        follower.kill()


def held(server, name):
    """What the server has of the streams of a name."""
    return b"".join(export(server, one["stream"]) for one in incarnations(server, name))


def await_lines(server, follower, name, count):
    def enough():
        assert follower.running(), follower.log_tail()
        return held(server, name).count(b"\n") >= count
    eventually(enough, lambda: f"{held(server, name)[-500:]}\n{follower.log_tail()}")
    return held(server, name).decode()


def told(server, name, agent="host1"):
    """What `granary agent list` says of an adaptor."""
    answer = server.get("/api/agents/" + agent)
    if answer.status != 200:
        return {}
    return next((one for one in answer.json["adaptors"] if one["name"] == name), {})


# ---- Commands


def test_a_command_is_run_again_and_again(server, follow):
    follower = follow({"numbers": {"exec": 'echo "a b"; printf "c"; echo said >&2',
                                   "datatype": "numbers", "every": "1s"}})
    text = await_lines(server, follower, "exec:numbers", 6)
    head = re.escape(' exec status=0 echo "a b"; printf "c"; echo said >&2\n')
    assert re.fullmatch(f"({TIME}{head}a b\nc\n)+", text), text
    follower.await_said("adaptor numbers: its command says: said")
    eventually(lambda: told(server, "numbers").get("state") == "following",
               lambda: told(server, "numbers"))
    assert told(server, "numbers")["kind"] == "exec"
    follower.stop()


def test_all_that_a_command_prints_may_be_one_record(server, follow):
    follower = follow({"one": {"exec": "echo a; echo; echo b", "datatype": "x",
                               "records": "escaped", "every": "7d"}})
    text = await_lines(server, follower, "exec:one", 4)
    assert re.fullmatch(f"{TIME} exec status=0 echo a; echo; echo b\4\na\4\n\4\nb\n", text), text
    follower.stop()


def test_commands_that_fail(server, follow):
    follower = follow({
        "status": {"exec": "echo x; exit 3", "datatype": "x", "every": "7d"},
        "signal": {"exec": "kill -9 $$", "datatype": "x", "every": "7d"},
        "hangs": {"exec": "echo y; sleep 1000 & sleep 1000", "datatype": "x", "every": "7d",
                  "timeout": "300ms"},
        "absent": {"exec": "/nowhere/nothing", "datatype": "x", "every": "7d"},
        "much": {"exec": "head -c 600000 /dev/zero | tr \"\\0\" x", "datatype": "x", "every": "7d"},
    })
    assert " exec status=3 " in await_lines(server, follower, "exec:status", 2)
    assert " exec signal=9 " in await_lines(server, follower, "exec:signal", 1)
    assert re.fullmatch(f"{TIME} exec timeout echo y; sleep 1000 & sleep 1000\ny\n",
                        await_lines(server, follower, "exec:hangs", 2))
    assert " exec status=127 " in await_lines(server, follower, "exec:absent", 1)
    text = await_lines(server, follower, "exec:much", 2)
    # 512 KiB are 524288.
    assert f" cut={600000 - 524288} " in text and text.endswith("\n" + 524288 * "x" + "\n")
    for name, said in (("status", "its command ended with status 3"),
                       ("signal", "its command was ended by signal 9"),
                       ("hangs", "its command was killed, since it took longer than `timeout`")):
        eventually(lambda: told(server, name).get("error") == said, lambda: told(server, name))
    follower.stop()


def test_a_command_ends_with_the_agent(server, follow, tmp_path):
    pid = tmp_path / "pid"
    follower = follow({"long": {"exec": f"echo $$ > {pid}; sleep 1000", "datatype": "x",
                                "timeout": "1h"}})
    eventually(lambda: pid.exists() and pid.read_text().endswith("\n"), "it runs")
    follower.stop()
    eventually(lambda: not os.path.exists(f"/proc/{pid.read_text().strip()}"), "it is gone")


def test_what_was_printed_is_delivered_when_the_collector_is_there(server, follow, tmp_path):
    """The runs of an agent that was killed are in its spool, and are delivered when their adaptor
    is not there any more."""
    follower = follow({"run": {"exec": "echo x", "datatype": "x", "every": "1s"}},
                      collectors="http://127.0.0.1:1")
    spool = follower.data / "agent" / "spool" / "x:exec%3Arun"
    eventually(lambda: spool.exists() and spool.read_bytes().count(b"\n") >= 4, follower.log_tail)
    follower.signal(signal.SIGKILL)
    follower.process.wait()
    wanted = spool.read_bytes()
    follower.collectors = [server.url]
    follower.configure({"other": tmp_path / "none"})
    follower.start()
    await_held(server, "exec:run", wanted, follower)
    follower.stop()


def test_a_configuration_that_changes(server, follow):
    follower = follow({"a": {"exec": "echo a", "datatype": "x", "every": "1s"}})
    await_lines(server, follower, "exec:a", 2)
    follower.configure({"b": {"exec": "echo b", "datatype": "x", "every": "1s"}})
    follower.signal(signal.SIGHUP)
    await_lines(server, follower, "exec:b", 2)
    eventually(lambda: not told(server, "a") and told(server, "b"), lambda: told(server, "a"))
    before = held(server, "exec:a")
    await_lines(server, follower, "exec:b", 6)
    assert held(server, "exec:a") == before
    follower.stop()
