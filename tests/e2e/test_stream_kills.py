"""Kills between any two steps of what keeps streams: of the agent while it writes its checkpoint,
of the server at its commits. Where the process dies is said by GRANARY_FAULTS. All lines are there
once, the bins are those of Python over the same lines, and `granary verify` finds nothing wrong.
tests/unit/stream_kills.c does the same at each commit of one run of sealing, demux, retention and
deletion."""

import contextlib
import http.client
import json
import random
import signal

import pytest

from chunks import v2
from followed import Follower, Log, await_held
from server import PATIENCE_S, eventually, long_run, run
from test_demux import APP, Events, lines_read
from test_streams import export, post, streams

STEPS = ("file.write", "file.fsync", "file.rename", "file.renamed")


def held(server, log):
    return sum(end - begin for one in streams(server) if one["name"] == str(log.path)
               for begin, end in one["held"])


def kill_at(server, follower, log, step, number, monkeypatch):
    """Runs the agent until it dies there, while lines are appended."""
    monkeypatch.setenv("GRANARY_FAULTS", f"{step}=kill@{number}")
    follower.start()
    monkeypatch.delenv("GRANARY_FAULTS")
    while follower.running():
        log.append(10)  # so that there is something to be noted
        eventually(lambda: not follower.running() or held(server, log) >= len(log.written),
                   follower.log_tail)
    assert follower.process.wait(PATIENCE_S) == -signal.SIGKILL, follower.log_tail()
    log.append(10)


@pytest.mark.parametrize("step", STEPS)
def test_the_agent_is_killed_at_each_step_of_its_checkpoint(server, tmp_path, monkeypatch, step):
    """The very first checkpoint, and those that take another's place. What has a checkpoint is
    rotated while the agent is dead."""
    log = Log(tmp_path / "logs" / "app.log")
    follower = Follower(tmp_path / "follower", server.url, {"app": log.path})
    log.append()
    try:
        kill_at(server, follower, log, step, 1, monkeypatch)
        follower.start()
        follower.await_saved(log)
        follower.kill()
        for number in (1, 2, 3):
            kill_at(server, follower, log, step, number, monkeypatch)
            log.rename(f".{number}")
            log.append(10)
        follower.start()
        await_held(server, log.path, log.written, follower)
        follower.stop()
    finally:
        follower.kill()
    assert run("verify", "--server", server.url).returncode == 0


def deliver(server, at, data):
    """As an agent does, until all is acknowledged or the server is dead; how far that is."""
    while at < len(data):
        end = min(len(data), at + 2000)
        within = at > 0 and data[at - 1:at] != b"\n"
        chunk = v2(end, data[at:end], datatype="app", flags=3 if within else 1)
        try:
            if post(server, chunk).status == 200:
                at = end
        except (OSError, http.client.HTTPException):
            break
    return at


def is_quiet(server, data):
    """All is counted and in blocks, or the server is dead."""
    try:
        return (lines_read(server) == data.count(b"\n")
                and streams(server)[0].get("sealed") == [[0, len(data)]])
    except (OSError, http.client.HTTPException):
        return True


def test_the_server_is_killed_at_its_commits(make_server, monkeypatch):
    """While events are taken, put into blocks and counted."""
    server = make_server(config=APP, options=("--stream.seal_after", "1s"))
    events, chance, data, at = Events(7), random.Random(7), b"", 0
    for turn in range(40 if long_run() else 4):
        point = chance.choice(("store.commit", "store.committed"))
        monkeypatch.setenv("GRANARY_FAULTS", f"{point}=kill@{chance.randrange(3, 16)}")
        with contextlib.suppress(AssertionError):  # it dies before it is ready
            server.start()
        while server.running():
            data += events.lines(50, late=0.1)
            at = deliver(server, at, data)
            eventually(lambda: not server.running() or is_quiet(server, data))
        server.kill()
        monkeypatch.delenv("GRANARY_FAULTS")
        found = json.loads(run("verify", "--data", server.data, "-o", "json").stdout)
        assert found["problems"] == 0, (turn, found["sentences"])
    server.start()
    assert deliver(server, at, data) == len(data)
    eventually(lambda: is_quiet(server, data), "each line is read once")
    eventually(lambda: events.are_those_of(server), "the bins have what the lines say")
    assert export(server, streams(server)[0]["stream"]) == [(0, data)]
    server.stop()
