"""The n-th call that fails, for every n until an operation ends without having met it: each write,
sync, allocation, opening, lock and map of LMDB's and of our own, once and for ever. A preloaded
hook (tests/fault/hook.c) breaks the call under a short life of a store (fault_store.c beside it).

For every n: the store ends as declared or goes on, it never hangs, and afterwards, without faults,
it holds what its answers said."""

import concurrent.futures
import itertools
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

from server import build_folder, long_run

pytestmark = pytest.mark.not_sanitized("preloads a library, and runs programs of tests/fault")

OVER, REFUSED_TO_OPEN, DISK_GONE = 0, 1, 74
HANG_S = 30
ONCE, FOR_EVER = 1, 0

# Who calls, what, how it goes wrong, and how often.
LOOPS = [
    # The pages of a transaction, and at its end the meta page.
    ("lmdb", "pwrite", "EIO", ONCE),
    ("lmdb", "pwrite", "ENOSPC", ONCE), ("lmdb", "pwrite", "ENOSPC", FOR_EVER),
    ("lmdb", "pwrite", "short", ONCE), ("lmdb", "pwrite", "late", ONCE),
    ("lmdb", "pwrite", "EINTR", ONCE),
    ("lmdb", "pwrite", "kill", ONCE),
    ("lmdb", "writev", "EIO", ONCE),
    ("lmdb", "writev", "ENOSPC", ONCE), ("lmdb", "writev", "ENOSPC", FOR_EVER),
    ("lmdb", "writev", "short", ONCE),
    ("lmdb", "writev", "late", ONCE), ("lmdb", "writev", "EINTR", ONCE),
    ("lmdb", "writev", "kill", ONCE),
    ("lmdb", "lseek", "EIO", ONCE), ("lmdb", "lseek", "EINTR", ONCE),
    ("lmdb", "fdatasync", "EIO", ONCE),
    ("lmdb", "fdatasync", "ENOSPC", ONCE), ("lmdb", "fdatasync", "ENOSPC", FOR_EVER),
    ("lmdb", "fdatasync", "EINTR", ONCE), ("lmdb", "fdatasync", "kill", ONCE),
    ("lmdb", "fsync", "EIO", ONCE), ("lmdb", "msync", "EIO", ONCE),
    ("lmdb", "write", "EIO", ONCE),
    ("lmdb", "pread", "EIO", ONCE), ("lmdb", "pread", "short", ONCE),
    ("lmdb", "open", "EMFILE", ONCE), ("lmdb", "open", "EIO", FOR_EVER),
    ("lmdb", "mmap", "ENOMEM", ONCE), ("lmdb", "mmap", "ENOMEM", FOR_EVER),
    ("lmdb", "fcntl", "ENOLCK", ONCE), ("lmdb", "fcntl", "EINTR", ONCE),
    ("lmdb", "ftruncate", "ENOSPC", ONCE), ("lmdb", "ftruncate", "EIO", FOR_EVER),
    ("lmdb", "alloc", "ENOMEM", ONCE), ("lmdb", "alloc", "ENOMEM", FOR_EVER),
    # Our own files: the lock, directories.
    ("main", "write", "EIO", ONCE), ("main", "write", "ENOSPC", FOR_EVER),
    ("main", "write", "short", ONCE), ("main", "write", "EINTR", ONCE),
    ("main", "fsync", "EIO", ONCE), ("main", "fsync", "EIO", FOR_EVER),
    ("main", "open", "EMFILE", ONCE), ("main", "open", "EIO", FOR_EVER),
    ("main", "open", "EINTR", ONCE), ("main", "fcntl", "ENOLCK", ONCE),
    ("main", "ftruncate", "ENOSPC", ONCE), ("main", "alloc", "ENOMEM", ONCE),
]
# These add little to their "once", or to the loop beside them: for the long run.
LONG_LOOPS = [("lmdb", "pwrite", "EIO", FOR_EVER), ("lmdb", "pwrite", "late", FOR_EVER),
              ("lmdb", "writev", "EIO", FOR_EVER), ("lmdb", "writev", "short", FOR_EVER),
              ("lmdb", "fdatasync", "EIO", FOR_EVER), ("lmdb", "lseek", "EIO", FOR_EVER)]
# Allocations are many and alike: in the short run every so manieth.
STEPS = {("lmdb", "alloc"): 5, ("main", "alloc"): 37}


def folder_in_memory():
    """Thousands of stores are made: not on a disk, where one can."""
    shm = pathlib.Path("/dev/shm")
    return shm if os.access(shm, os.W_OK) else None


def program(name):
    return str(build_folder() / "tests" / "fault" / name)


def work(folder, loop, n):
    who, kind, how, times = loop
    env = {"FAULT_HOOK": f"{who}:{kind}:{n}:{times}:{how}", "FAULT_HOOK_LOG": f"{folder}/log",
           "LD_PRELOAD": program("fault_hook.so"), "PATH": os.environ["PATH"]}
    options = ["--data", f"{folder}/data", "--log", f"{folder}/log"]
    recovers = ["--recovers"] if times == ONCE else []
    ended = subprocess.run([program("fault_store"), "work", *options, *recovers], env=env,
                           capture_output=True, text=True, timeout=HANG_S)
    log = pathlib.Path(folder, "log")
    return ended, log.read_text() if log.exists() else "", options


def declared_end(loop, ended):
    """Whether it ended as it may, having met the fault."""
    who, kind, how, _ = loop
    if how == "kill":
        return ended.returncode == -signal.SIGKILL
    if (who, kind) == ("main", "alloc"):
        return ended.returncode == -signal.SIGABRT and "out of memory" in ended.stderr
    if kind == "fdatasync":  # never goes on, whatever the error is
        return ended.returncode in (REFUSED_TO_OPEN, DISK_GONE)
    if how in ("EIO", "late", "short") and kind in ("pwrite", "writev", "lseek"):
        return ended.returncode in (REFUSED_TO_OPEN, DISK_GONE)
    if how == "EINTR":
        return ended.returncode in (OVER, REFUSED_TO_OPEN)
    return ended.returncode in (OVER, REFUSED_TO_OPEN, DISK_GONE)


def answered_well_after(log):
    """Writes that went out after the fault and were answered with success. What was out when it
    came may have been in the commit before: whether that is there, the check knows."""
    out, well = set(), []
    for line in itertools.dropwhile(lambda line: not line.startswith("H "), log.splitlines()):
        if line.startswith("S "):
            out.add(line[2:])
        elif line.startswith("A ") and line.endswith(" 0") and line[2:-2] in out:
            well.append(line)
    return well


def run_one(loop, n):
    """Whether the fault was met; what went wrong is an assertion."""
    with tempfile.TemporaryDirectory(dir=folder_in_memory(), prefix="granary-fault-") as folder:
        ended, log, options = work(folder, loop, n)
        where = (loop, n, ended.returncode, ended.stderr[-2000:], log[-500:])
        met = "\nH " in "\n" + log
        if not met:
            assert ended.returncode == OVER, where
            return False
        assert declared_end(loop, ended), where
        if ended.returncode == DISK_GONE:
            assert not answered_well_after(log), where
        checked = subprocess.run([program("fault_store"), "check", *options], capture_output=True,
                                 text=True, timeout=HANG_S)
        assert checked.returncode == 0, (*where, checked.stderr[-2000:])
        return True


def loop_name(loop):
    who, kind, how, times = loop
    return f"{who}-{kind}-{how}-{'once' if times else 'for-ever'}"


def run_loop(loop):
    """Every n; gives how many faults were met."""
    step = 1 if long_run() else STEPS.get(loop[:2], 1)
    met = 0
    for n in itertools.count(1, step):
        if not run_one(loop, n):
            return met
        met += 1
    return met


def test_every_call_that_can_fail():
    if not os.path.exists(program("fault_hook.so")):
        pytest.skip("the hook is not built with sanitizers")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        loops = LOOPS + LONG_LOOPS if long_run() else LOOPS
        jobs = {loop: pool.submit(run_loop, loop) for loop in loops}
        failed = []
        for loop, job in jobs.items():
            try:
                print(f"{loop_name(loop)}: {job.result()} faults")
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failed.append(f"{loop_name(loop)}: {error}")
    assert not failed, "\n".join(failed)
