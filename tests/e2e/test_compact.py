"""granary compact: nothing is lost or changed, whenever it ends."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import time

import pytest

import mounts
from server import eventually, granary, long_run, run

DAY = 86400
HOSTS, POINTS = 20, 400


def lines(first_s, step_s=4):
    """Two fields that walk, of each host."""
    pick = random.Random(first_s)
    for i in range(POINTS):
        stamp = (first_s + i * step_s) * 10**9
        for host in range(HOSTS):
            yield (f"cpu,host=h{host} user={pick.randrange(50) // 9}i,idle={pick.random():.2f} "
                   f"{stamp}\n")


def everything(server):
    """All that is stored, as a server answers it."""
    found = {}
    for metric in ("cpu_user", "cpu_idle"):
        for series in server.query(metric, start=0, end="now"):
            found[metric, series["tags"]["host"]] = series["values"]
    assert len(found) == 2 * HOSTS
    return found


@pytest.fixture
def stopped(make_server):
    """Three segments that are closed, one that is not, written out of order; and what they hold."""
    server = make_server()
    server.start()
    now = int(time.time())
    for first in (1600000000, 1600000000 + 2 * DAY, 1600000000 + DAY, now - POINTS * 4):
        assert server.write("".join(lines(first))).status == 204
    for first in (1600000002, now - POINTS * 4 + 2):
        assert server.write("".join(lines(first))).status == 204
    held = everything(server)
    server.stop()
    return server, held


def compact(server, *options, faults=None, status=0):
    environment = dict(os.environ, **({"GRANARY_FAULTS": faults} if faults else {}))
    answer = run("compact", "--data", server.data, *options, env=environment)
    assert answer.returncode == status, (answer.stdout, answer.stderr)
    return answer


def assert_whole(server, held):
    answer = run("verify", "--data", server.data)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    server.start()
    assert everything(server) == held
    assert not (server.data / "data.mdb.new").exists()
    server.stop()


def stats(server):
    return json.loads(run("stats", "--data", server.data, "-o", "json").stdout)


def raw_data(server):
    return next(t for t in stats(server)["tables"] if t["table"] == "data_raw")


def test_the_same_in_less_room(stopped):
    server, held = stopped
    before = (server.data / "data.mdb").stat().st_size
    found = json.loads(compact(server, "-o", "json").stdout)
    assert found["bytesBefore"] == before
    assert found["bytesAfter"] == (server.data / "data.mdb").stat().st_size
    assert found["bytesAfter"] < before * 3 / 4
    after = stats(server)
    assert after["freeBytes"] <= 16 * 4096
    # What is still being written is not settled.
    assert raw_data(server)["headSamples"] == 2 * 2 * HOSTS * POINTS
    assert raw_data(server)["samples"] == 6 * 2 * HOSTS * POINTS
    assert_whole(server, held)


def fill_a_head(server):
    """So many rows of one series are sealed at once, and wait to be settled."""
    rows, first = 2048, 1600000000 + 10 * DAY
    server.start()
    assert server.write("".join(f"mem,host=h0 used={i}i {first + i}000000000\n"
                                for i in range(rows))).status == 204
    eventually(lambda: server.metric("granary_store_seals_total"), server.log_tail)
    server.stop()


def test_all_of_it_is_settled_when_asked(stopped):
    server, held = stopped
    fill_a_head(server)
    assert stats(server)["unsettledGroups"] == 1
    assert compact(server, "--all", "-o", "csv").stdout.startswith("bytes before,bytes after\n")
    assert raw_data(server)["headSamples"] == 0
    assert stats(server)["journalRecords"] == stats(server)["unsettledGroups"] == 0
    assert_whole(server, held)
    # And it goes on from there.
    server.start()
    assert server.write(f"cpu,host=h0 user=1i {int(time.time())}000000000").status == 204
    server.restart()
    assert len(everything(server)["cpu_user", "h0"]) == len(held["cpu_user", "h0"]) + 1


def test_twice_changes_nothing_more(stopped):
    server, held = stopped
    first = json.loads(compact(server, "--all", "-o", "json").stdout)
    second = json.loads(compact(server, "--all", "-o", "json").stdout)
    assert second["bytesBefore"] == first["bytesAfter"]
    assert abs(second["bytesAfter"] - first["bytesAfter"]) <= 8 * 4096
    assert_whole(server, held)


def test_a_served_directory_is_refused(server):
    answer = compact(server, status=1)
    assert str(server.process.pid) in answer.stderr and "lock" in answer.stderr


def test_what_it_cannot_do_is_said(tmp_path):
    answer = run("compact", "--data", tmp_path)
    assert answer.returncode == 1 and "no store" in answer.stderr
    assert not list(tmp_path.iterdir())
    assert run("compact").returncode == 2
    assert run("compact", "--data", tmp_path, "--all=yes").returncode == 2
    assert run("compact", "--data", tmp_path, "surplus").returncode == 2


@pytest.mark.parametrize("point", ["sync", "rename", "renamed"])
def test_killed_at_each_step(stopped, point):
    server, held = stopped
    compact(server, faults=f"compact.{point}=kill@1", status=-signal.SIGKILL)
    assert (server.data / "data.mdb.new").exists() == (point != "renamed")
    assert_whole(server, held)
    compact(server)
    assert_whole(server, held)


@pytest.mark.parametrize("point", ["sync", "rename"])
def test_a_failure_leaves_it_as_it_was(stopped, point):
    server, held = stopped
    answer = compact(server, faults=f"compact.{point}=error@1", status=1)
    assert "as it was" in answer.stderr
    assert not (server.data / "data.mdb.new").exists()
    assert_whole(server, held)


def fill_up(file):
    with open(file, "wb", buffering=0) as filler:
        with contextlib.suppress(OSError):
            while filler.write(bytes(4096)):
                pass


def test_a_full_disk_says_what_to_do(stopped, tmp_path):
    server, held = stopped
    with mounts.memory(tmp_path / "small", "16m") as place:
        shutil.copytree(server.data, place.folder / "data")
        server.data, size = place.folder / "data", (server.data / "data.mdb").stat().st_size
        fill_up(place.folder / "filler")
        answer = compact(server, "--all", status=1)
        assert "no room" in answer.stderr
        assert (f"Compacting writes a second file beside the first: make room in {server.data}, "
                f"up to {size // 10**6 + 1} MB") in answer.stderr
        assert not (server.data / "data.mdb.new").exists()
        (place.folder / "filler").unlink()
        compact(server, "--all")
        assert_whole(server, held)


def test_a_read_only_disk_can_be_looked_at(stopped, tmp_path):
    """Nothing is written there, and the answers are those of the same store where one may write."""
    server, _ = stopped
    asked = stats(server)
    with mounts.memory(tmp_path / "small", "16m") as place:
        for lock in (True, False):
            shutil.copytree(server.data, place.folder / "data", dirs_exist_ok=True)
            if not lock:
                (place.folder / "data" / "lock").unlink()
                (place.folder / "data" / "lock.mdb").unlink()
            place.remount("ro")
            before = {path.name: path.stat() for path in (place.folder / "data").iterdir()}
            answer = run("verify", "--data", place.folder / "data", "-o", "json")
            assert answer.returncode == 0, answer.stderr
            found = json.loads(answer.stdout)
            assert found["problems"] == 0 and found["checked"] > 0
            answer = run("stats", "--data", place.folder / "data", "-o", "json")
            assert json.loads(answer.stdout) == asked
            assert before == {path.name: path.stat()
                              for path in (place.folder / "data").iterdir()}
            assert run("compact", "--data", place.folder / "data").returncode == 1
            place.remount("rw")


def test_a_read_only_view_of_a_served_directory_is_refused(make_server, tmp_path):
    with mounts.memory(tmp_path / "small", "16m") as place:
        server = make_server()
        server.data = place.folder / "data"
        server.start()
        view = tmp_path / "view"
        view.mkdir()
        mounts.command("mount", "--bind", place.folder, view)
        try:
            mounts.command("mount", "-o", "remount,ro,bind", view)
            answer = run("verify", "--data", view / "data")
            assert answer.returncode == 1
            assert f"lock is in use by process {server.process.pid}" in answer.stderr
        finally:
            mounts.command("umount", view)
        server.stop()


def test_killed_at_any_moment(stopped):
    server, held = stopped
    pick = random.Random(5)
    for _ in range(100 if long_run() else 8):
        process = subprocess.Popen([granary(), "compact", "--all", "--data", server.data],
                                   stdout=subprocess.DEVNULL)
        try:
            process.wait(pick.random() * 0.12)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert_whole(server, held)


def assert_adds_up(server):
    found = stats(server)
    kinds = ("payloadBytes", "headerBytes", "keyBytes", "pageBytes")
    tables = sum(table[kind] for table in found["tables"] for kind in kinds)
    rest = sum(found[part + "Bytes"]
               for part in ("registry", "journalPage", "blob", "other", "free"))
    assert tables + rest == found["fileBytes"] == (server.data / "data.mdb").stat().st_size
    raw = raw_data(server)
    sealed = raw["samples"] - raw["headSamples"]
    assert raw["bytesPerSample"] == pytest.approx(sum(raw[kind] for kind in kinds) / sealed)
    return raw


def test_the_parts_of_the_file_add_up(stopped):
    server, _ = stopped
    compact(server)
    raw = assert_adds_up(server)
    assert raw["keyBytes"] == raw["extents"] * 40
    assert raw["pageBytes"] < 4096 * raw["extents"]
    compact(server, "--all")
    assert_adds_up(server)
    server.start()
    server.write("".join(lines(1600000000 + 5 * DAY)))
    server.kill()
    server.start()
    server.stop()
    assert_adds_up(server)
