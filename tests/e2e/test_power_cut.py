"""Power cuts: the file system goes down under the store at any moment, and what was not synced is
gone. What was answered with success is there after the mount, nothing else, and the store is whole.

The shutdown ioctl comes in two kinds, taken in turn: the journal of the file system is written
first, or not. XFS shows what ext4 hides, so both are tested."""

import concurrent.futures
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import time

import pytest

import mounts
from server import PATIENCE_S, long_run, run, tool
from test_crash import check, crash_writer

pytestmark = pytest.mark.not_sanitized("needs block devices, and is about disks")

ROUNDS = 2500 if long_run() else 100  # of each file system
ROUNDS_A_DIRECTORY = 25  # then a fresh one, so that creating the store is cut, too
HTTP_ROUNDS = 40 if long_run() else 4
MEGABYTES = {"ext4": 128, "xfs": 320}
DISK_GONE = 74
REFUSAL = re.compile(r"writer \d+: status 50[37]: |$")


def new_seed():
    seed = int(os.environ.get("GRANARY_SEED", random.SystemRandom().getrandbits(32)))
    print(f"GRANARY_SEED={seed}")
    return seed


def cut(place, number):
    place.shut_down(mounts.LOG_FLUSH if number % 2 else mounts.NO_LOG_FLUSH)


def store_round(place, options, number, pause_s):
    """One cut under a writer; gives what the check after it saw."""
    writer = subprocess.Popen([tool("crash_store"), "write", *options], stderr=subprocess.PIPE,
                              text=True)
    time.sleep(pause_s)  # the moment of the cut
    assert writer.poll() is None, (number, "ended by itself", writer.communicate())
    cut(place, number)
    _, words = writer.communicate(timeout=60)
    # While it opens there is nobody to answer yet: that is a refusal, with its reason.
    opening = writer.returncode == 1 and ("rror" in words or "cannot be read" in words)
    assert writer.returncode == DISK_GONE or opening, (number, writer.returncode, words)
    place.unmount()
    place.mount()
    answer = subprocess.run([tool("crash_store"), "check", *options], capture_output=True,
                            text=True, timeout=120)
    assert answer.returncode == 0, (number, answer.stdout, answer.stderr)
    return json.loads(answer.stdout)["samples"], opening


def store_rounds(kind, folder, seed):
    pick, samples, opening = random.Random(f"{seed} {kind}"), 0, 0
    with mounts.image(folder, kind, MEGABYTES[kind]) as place:
        for number in range(ROUNDS):
            part = number // ROUNDS_A_DIRECTORY
            data, log = place.folder / f"data-{part}", folder / f"log-{part}"
            if number % ROUNDS_A_DIRECTORY == 0:
                shutil.rmtree(place.folder / f"data-{part - 1}", ignore_errors=True)
            # Now and then while it opens and makes its files.
            pause_s = pick.uniform(0.001, 0.4) if number % 5 else pick.uniform(0.001, 0.015)
            found = store_round(place, ["--data", data, "--seed", str(seed), "--log", log],
                                number, pause_s)
            samples, opening = samples + found[0], opening + found[1]
    return samples, opening


@pytest.mark.parametrize("kinds", [("ext4", "xfs")], ids=["ext4-xfs"])
def test_power_cut_under_the_store(tmp_path, kinds):
    mounts.need_mounts()
    seed, begun = new_seed(), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:
        jobs = {kind: pool.submit(store_rounds, kind, tmp_path / kind, seed) for kind in kinds}
        for kind, job in jobs.items():
            samples, opening = job.result()
            print(f"{kind}: {ROUNDS} cuts, {opening} of them while opening, {samples} samples "
                  f"checked, {time.monotonic() - begun:.0f} s")
            assert samples > 1000


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_power_cut_under_the_server(make_server, tmp_path, kind):
    seed = new_seed()
    pick = random.Random(f"{seed} {kind}")
    with mounts.image(tmp_path, kind, MEGABYTES[kind]) as place:
        server = make_server(options=["--store.journal_max=2M", "--store.min_free=1M"])
        server.data, log = place.folder / "data", tmp_path / "sent"
        server.start()
        for number in range(HTTP_ROUNDS):
            writer = subprocess.Popen(crash_writer("write", server, seed, log),
                                      stderr=subprocess.PIPE, text=True)
            time.sleep(pick.uniform(0.05, 0.5))  # the moment of the cut
            cut(place, number)
            assert server.process.wait(PATIENCE_S) == DISK_GONE, server.log_tail()
            assert "commit failed" in server.log_text() or "cannot be read" in server.log_text()
            _, complaints = writer.communicate(timeout=60)
            assert all(REFUSAL.match(line) for line in complaints.splitlines()), complaints
            server.close()
            place.unmount()
            place.mount()
            answer = run("verify", "--data", server.data, timeout=600)
            assert answer.returncode == 0, (seed, number, answer.stdout, answer.stderr)
            server.start()
            check(server, seed, log, "--tail")
        assert check(server, seed, log) > 100
        server.stop()


def test_a_store_that_does_not_sync_is_found_out(tmp_path):
    """The rig itself: answers before the disk has the data are caught within a few cuts."""
    with mounts.image(tmp_path, "ext4", MEGABYTES["ext4"]) as place:
        for number in range(20):
            options = ["--data", place.folder / f"{number}", "--seed", "1", "--log",
                       tmp_path / f"log-{number}", "--no-sync"]
            with contextlib.suppress(AssertionError):
                store_round(place, options, number, 0.2)
                continue
            break
        else:
            pytest.fail("20 cuts, and nothing was missing")


def test_what_is_not_synced_is_gone(tmp_path):
    """The rig itself: a file that was only written is gone after each kind of cut, and the one
    that was synced is there."""
    for kind in ("ext4", "xfs"):
        with mounts.image(tmp_path / kind, kind, MEGABYTES[kind]) as place:
            for flag in (mounts.LOG_FLUSH, mounts.NO_LOG_FLUSH):
                for name in ("synced", "written"):
                    with open(place.folder / name, "wb") as file:
                        file.write(b"granary")
                        file.flush()
                        if name == "synced":
                            os.fsync(file.fileno())
                place.shut_down(flag)
                with pytest.raises(OSError):
                    (place.folder / "later").write_bytes(b"x")
                place.unmount()
                place.mount()
                assert (place.folder / "synced").read_bytes() == b"granary"
                with contextlib.suppress(FileNotFoundError):
                    assert (place.folder / "written").read_bytes() == b""
