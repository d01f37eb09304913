"""Damaged data files: flipped bits, pages that are zeroed, swapped, or from an older copy, files
cut at every page, older copies of the whole. Every value is a function of its series and time
(tests/fault/damage_store.c), so a wrong number is recognised whatever was done to the file.

Damage may be harmless (a page that is free), or it is named: the store refuses to open with a
sentence, a read gives an error, verify tells, or the process ends with a sentence and status 74.
A pointer of LMDB's may lead anywhere: then the process dies of it, with a word about the file. It
never gives a wrong number and never hangs; nothing is missing in silence but where a page was
replaced by another whole one, since LMDB keeps no sums of pages."""

import collections
import concurrent.futures
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile

import pytest

from server import build_folder, long_run
from test_fault_loops import folder_in_memory

PAGE = 4096
HANG_S = 20
HARMLESS, REFUSED, MISSING, NAMED, LAST_WORDS = 0, 1, 4, 5, 74
FLIPS_A_PAGE = 40 if long_run() else 3


def program():
    return str(build_folder() / "tests" / "fault" / "damage_store")


def make(folder, stage):
    subprocess.run([program(), "make", "--data", str(folder), "--stage", str(stage)], check=True,
                   capture_output=True, timeout=60)


@pytest.fixture(name="store", scope="module")
def made_store():
    """A store, and its data file as it was some time before."""
    with tempfile.TemporaryDirectory(dir=folder_in_memory(), prefix="granary-damage-") as name:
        folder = pathlib.Path(name)
        make(folder / "data", 1)
        shutil.copy(folder / "data" / "data.mdb", folder / "older.mdb")
        make(folder / "data", 2)
        assert check(folder, (folder / "data" / "data.mdb").read_bytes()).returncode == HARMLESS
        yield folder


def check(folder, content):
    """What a store with that data file says; in a directory and a process of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        data = pathlib.Path(name, "data")
        shutil.copytree(folder / "data", data, ignore=shutil.ignore_patterns("*.mdb", "lock"))
        (data / "data.mdb").write_bytes(content)
        return subprocess.run([program(), "check", "--data", str(data)], capture_output=True,
                              text=True, timeout=HANG_S)


def check_all(store, cases, silence=False):
    """Each case is a name and a damaged file. `silence`: something may be missing unnamed."""
    found, bad = collections.Counter(), []
    allowed = {HARMLESS, REFUSED, NAMED, LAST_WORDS} | ({MISSING} if silence else set())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [(name, pool.submit(check, store, content)) for name, content in cases]
        for name, job in jobs:
            try:
                ended = job.result()
            except subprocess.TimeoutExpired:
                bad.append(f"{name}: no end")
                continue
            found[ended.returncode] += 1
            led_astray = (ended.returncode == -signal.SIGSEGV
                          and "a damaged page in" in ended.stderr.splitlines()[-1])
            if ended.returncode not in allowed and not led_astray:
                bad.append(f"{name}: {ended.returncode}: {ended.stderr[-300:]}")
    print(dict(found))
    assert not bad, f"{len(bad)} of {len(jobs)}:\n" + "\n".join(bad[:40])
    return found


def content_of(store):
    return (store / "data" / "data.mdb").read_bytes()


def pages_of(content):
    return range(len(content) // PAGE)


def replaced(content, page, by):
    return content[:page * PAGE] + by + content[(page + 1) * PAGE:]


def page_at(content, page):
    return content[page * PAGE:(page + 1) * PAGE]


def test_a_page_of_zeros(store):
    content = content_of(store)
    check_all(store, [(f"page {n}", replaced(content, n, bytes(PAGE))) for n in pages_of(content)])


def test_a_file_cut_at_every_page(store):
    content = content_of(store)
    found = check_all(store, [(f"{n} pages", content[:n * PAGE]) for n in pages_of(content)]
                      + [(f"{n} pages and a bit", content[:n * PAGE + 100])
                         for n in pages_of(content)])
    # Free pages at the end may be missing: LMDB need not have written them.
    assert found[REFUSED] >= sum(found.values()) * 9 // 10 and not found[NAMED]


def test_flipped_bits(store):
    content, pick, cases = content_of(store), random.Random(4), []
    for page in pages_of(content):
        for number in range(FLIPS_A_PAGE):
            # LMDB's own header and pointers, too, which are few among all bytes.
            byte = page * PAGE + pick.randrange(64 if number % 3 == 0 else PAGE)
            bit = pick.randrange(8)
            flipped = bytes([content[byte] ^ 1 << bit])
            cases.append((f"page {page} byte {byte - page * PAGE} bit {bit}",
                          content[:byte] + flipped + content[byte + 1:]))
    check_all(store, cases)


def mostly_named(found):
    """A page that lands on another may be an older one of the same place in the tree."""
    assert found[MISSING] <= sum(found.values()) // 20


def test_swapped_pages(store):
    content, pick, cases = content_of(store), random.Random(5), []
    pages = pages_of(content)
    for one in pages:
        for other in {(one + 1) % len(pages), pick.randrange(len(pages))} - {one}:
            swapped = replaced(content, one, page_at(content, other))
            cases.append((f"pages {one}, {other}",
                          replaced(swapped, other, page_at(content, one))))
    mostly_named(check_all(store, cases, silence=True))


def test_a_page_twice(store):
    content, pick = content_of(store), random.Random(6)
    pages = pages_of(content)
    cases = [(f"page {other} over {one}", replaced(content, one, page_at(content, other)))
             for one in pages for other in [pick.randrange(len(pages))] if other != one]
    mostly_named(check_all(store, cases, silence=True))


def test_a_page_of_an_older_copy(store):
    """What was valid once and is no more: LMDB keeps no sums of pages in their parents."""
    content, older = content_of(store), (store / "older.mdb").read_bytes()
    check_all(store, [(f"page {n}", replaced(content, n, page_at(older, n)))
                      for n in pages_of(older)], silence=True)


def test_an_older_copy_of_the_file(store):
    """It is a store; just not the newest: what it has is right."""
    assert check(store, (store / "older.mdb").read_bytes()).returncode in (HARMLESS, MISSING)


def test_an_empty_or_missing_file_is_no_new_store(store):
    for content in (b"", None):
        with tempfile.TemporaryDirectory(dir=store) as name:
            data = pathlib.Path(name, "data")
            shutil.copytree(store / "data", data, ignore=shutil.ignore_patterns("*.mdb", "lock"))
            if content is not None:
                (data / "data.mdb").write_bytes(content)
            ended = subprocess.run([program(), "check", "--data", str(data)], text=True,
                                   capture_output=True, timeout=HANG_S)
            assert ended.returncode == REFUSED and "there was a store" in ended.stderr
