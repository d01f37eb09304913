"""Damaged data files: flipped bits, pages that are zeroed, swapped, or from an older copy, files
cut at every page, older copies of the whole. Every value is a function of its series and time
(tests/fault/damage_store.c), so a wrong number is recognised whatever was done to the file.

Damage may be harmless (a page that is free), or it is named: the store refuses to open with a
sentence, a read gives an error, verify tells, or the process ends with a sentence and status 74. It
never gives a wrong number and never hangs; nothing is missing in silence but where a page was
replaced by another whole one, since LMDB keeps no sums of pages.

Each file is also given to `granary verify`, which dies of none and finds something wrong with each
that a reader could not read, and to `granary repair`: its copy is whole, has no wrong number and
nothing that was deleted, and what of the samples is not in it lies in a line of the report."""

import collections
import concurrent.futures
import contextlib
import itertools
import json
import math
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import tempfile
import time

import pytest

import mounts
from server import build_folder, granary, long_run, run
from test_fault_loops import folder_in_memory

pytestmark = pytest.mark.not_sanitized(
    "runs a program of tests/fault in which signals are expected")

PAGE = 4096
HANG_S = 20
STEP_MS = 600000
HARMLESS, REFUSED, MISSING, NAMED, LAST_WORDS = 0, 1, 4, 5, 74
FLIPS_A_PAGE = 20 if long_run() else 3
ALL_COPIED, SOME_LOST, NO_COPY = 0, 1, 3  # of granary repair


def program():
    return str(build_folder() / "tests" / "fault" / "damage_store")


def make(folder, stage, bands):
    subprocess.run([program(), "make", "--data", str(folder), "--stage", str(stage), "--bands",
                    str(bands)], check=True, capture_output=True, timeout=60)


class Store:
    """A store, and its data file as it was some time before."""

    def __init__(self, folder, bands):
        self.folder, self.bands = pathlib.Path(folder), bands
        make(self.folder / "data", 1, bands)
        self.older = (self.folder / "data" / "data.mdb").read_bytes()
        make(self.folder / "data", 2, bands)
        self.content = (self.folder / "data" / "data.mdb").read_bytes()
        assert check(self, self.content).returncode == HARMLESS


@pytest.fixture(name="store", scope="module")
def made_store():
    with tempfile.TemporaryDirectory(dir=folder_in_memory(), prefix="granary-damage-") as name:
        yield Store(name, 8)


@pytest.fixture(name="deep", scope="module")
def made_deep_store():
    """So large that its trees have branches."""
    with tempfile.TemporaryDirectory(dir=folder_in_memory(), prefix="granary-damage-") as name:
        yield Store(name, 240)


def look(store, data, *options):
    return subprocess.run([program(), "check", "--data", str(data), "--bands", str(store.bands),
                           *options], capture_output=True, text=True, timeout=HANG_S)


def directory(store, name, content):
    data = pathlib.Path(name, "data")
    shutil.copytree(store.folder / "data", data, ignore=shutil.ignore_patterns("*.mdb", "lock"))
    (data / "data.mdb").write_bytes(content)
    return data


def check(store, content):
    """What a store with that data file says; in a directory and a process of its own."""
    with tempfile.TemporaryDirectory(dir=store.folder) as name:
        return look(store, directory(store, name, content))


def is_told(gone, lost):
    """Whether lines of the report cover all that is missing: `gone BAND FROM TO`."""
    _, band, start, end = gone.split()
    spans = [(line["from"] or -math.inf, line["to"] or math.inf) for line in lost
             if line["series"] in (None, f"damage_a,damage_b,damage_c{{band={band}}}")]
    return all(any(first <= ts <= last for first, last in spans)
               for ts in range(int(start), int(end) + 1, STEP_MS))


def repair(store, data, to, newest=True):
    """The exit status of granary repair, what is missing in its copy, and what is wrong with it.
    `newest`: nothing in the file is whole and of an earlier time."""
    done = run("repair", "--data", data, "--to", to, "-o", "json", timeout=HANG_S)
    if done.returncode == NO_COPY:
        return NO_COPY, None, "" if done.stderr.startswith("granary repair: ") else done.stderr
    if done.returncode not in (ALL_COPIED, SOME_LOST):
        return done.returncode, None, f"repair: {done.returncode}: {done.stderr[-300:]}"
    lost = json.loads(done.stdout)["lost"]
    whole = run("verify", "--data", to, timeout=HANG_S)
    found = look(store, to, *(["--repaired"] if newest else []))
    gone = [line for line in found.stdout.splitlines() if line.startswith("gone ")]
    wrong = ""
    names = [line["series"] for line in lost if line["series"] is not None
             and not re.fullmatch(r"damage_a,damage_b,damage_c\{(band=\d+|\?)\}|and others|"
                                  "series whose names are lost", line["series"])]
    if names:
        wrong = f"series that there are not: {names[:3]}"
    if whole.returncode != 0:
        wrong = f"verify of the copy: {whole.returncode}: {whole.stdout[-300:]}"
    elif found.returncode not in (HARMLESS, MISSING):
        wrong = f"the copy: {found.returncode}: {found.stderr[-300:]}"
    elif newest and found.returncode == MISSING and done.returncode == ALL_COPIED:
        wrong = f"lost in silence: {found.stderr[-300:]}"
    elif newest and not all(is_told(line, lost) for line in gone):
        wrong = f"not told: {[line for line in gone if not is_told(line, lost)][:3]}"
    return done.returncode, found, wrong


def check_whole(store, content, silence, number):
    """What check says; and what is wrong with verify and repair of the same file (of one in
    three). LMDB, by which check reads, trusts the keys of its branches; verify does not."""
    wrong, verified = "", None
    with tempfile.TemporaryDirectory(dir=store.folder) as name:
        data = directory(store, name, content)
        if number % 3 == 0 or long_run():
            verified = run("verify", "--data", data, timeout=HANG_S)
            _, _, wrong = repair(store, data, pathlib.Path(name, "copy"), not silence)
            assert (data / "data.mdb").read_bytes() == content
        found = look(store, data)
    if found.returncode == MISSING and not silence:
        with tempfile.TemporaryDirectory(dir=store.folder) as name:
            verified = run("verify", "--data", directory(store, name, content), timeout=HANG_S)
        found.returncode = NAMED if verified.returncode == 1 else MISSING
    if verified and verified.returncode not in (0, 1):
        wrong += f" verify: {verified.returncode}: {verified.stderr[-300:]}"
    if verified and verified.returncode == 0 and found.returncode not in (HARMLESS, MISSING):
        wrong += f" verify found nothing, but {found.returncode}: {found.stderr[-300:]}"
    return found, wrong


def check_all(store, cases, silence=False):
    """Each case is a name and a damaged file. `silence`: something may be missing unnamed."""
    found, bad = collections.Counter(), []
    allowed = {HARMLESS, REFUSED, NAMED, LAST_WORDS} | ({MISSING} if silence else set())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [(name, pool.submit(check_whole, store, content, silence, number))
                for number, (name, content) in enumerate(cases)]
        for name, job in jobs:
            try:
                ended, wrong = job.result()
            except subprocess.TimeoutExpired:
                bad.append(f"{name}: no end")
                continue
            found[ended.returncode] += 1
            if wrong:
                bad.append(f"{name}: {wrong}")
            if ended.returncode not in allowed:
                bad.append(f"{name}: {ended.returncode}: {ended.stderr[-300:]}")
    print(dict(found))
    assert not bad, f"{len(bad)} of {len(jobs)}:\n" + "\n".join(bad[:40])
    return found


def content_of(store):
    return store.content


def pages_of(content):
    return range(len(content) // PAGE)


def replaced(content, page, by):
    return content[:page * PAGE] + by + content[(page + 1) * PAGE:]


def page_at(content, page):
    return content[page * PAGE:(page + 1) * PAGE]


def test_a_page_of_zeros(store):
    content = content_of(store)
    check_all(store, [(f"page {n}", replaced(content, n, bytes(PAGE))) for n in pages_of(content)])


def test_a_page_of_noise(store):
    content, pick = content_of(store), random.Random(7)
    check_all(store, [(f"page {n}", replaced(content, n, pick.randbytes(PAGE)))
                      for _ in range(5 if long_run() else 1) for n in pages_of(content)])


def test_a_file_cut_at_every_page(store):
    content = content_of(store)
    found = check_all(store, [(f"{n} pages", content[:n * PAGE]) for n in pages_of(content)]
                      + [(f"{n} pages and a bit", content[:n * PAGE + 100])
                         for n in pages_of(content)])
    # Free pages at the end may be missing: LMDB need not have written them.
    stats = json.loads(run("stats", "--data", store.folder / "data", "-o", "json").stdout)
    assert found[HARMLESS] <= 2 * stats["freeBytes"] // PAGE and not found[NAMED]
    assert found[REFUSED] + found[HARMLESS] == sum(found.values())


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
    content, older = content_of(store), store.older
    check_all(store, [(f"page {n}", replaced(content, n, page_at(older, n)))
                      for n in pages_of(older)], silence=True)


def test_an_older_copy_of_the_file(store):
    """It is a store; just not the newest: what it has is right."""
    assert check(store, store.older).returncode in (HARMLESS, MISSING)


def test_an_empty_or_missing_file_is_no_new_store(store):
    for content in (b"", None):
        with tempfile.TemporaryDirectory(dir=store.folder) as name:
            data = directory(store, name, content or b"")
            if content is None:
                (data / "data.mdb").unlink()
            ended = look(store, data)
            assert ended.returncode == REFUSED and "there was a store" in ended.stderr


# ---- What lies where: LMDB's pages, read by their description, not by our reader ---------------

META, BRANCH, LEAF, OVERFLOW = 8, 1, 2, 4


def flags_of(content, page):
    return struct.unpack_from("<H", content, page * PAGE + 10)[0]


def trees_of(content):
    """The roots of the newer meta page: of the free list and of the list of databases."""
    newer = max((0, 1), key=lambda page: struct.unpack_from("<Q", content, page * PAGE + 144)[0])
    return [struct.unpack_from("<Q", content, newer * PAGE + at)[0] for at in (80, 128)]


def children_of(content, page):
    for at in range(16, struct.unpack_from("<H", content, page * PAGE + 12)[0], 2):
        node = page * PAGE + struct.unpack_from("<H", content, page * PAGE + at)[0]
        low, high = struct.unpack_from("<IH", content, node)
        yield low | high << 32


def roots_of(content):
    """By name, from the list of databases: one leaf."""
    roots, main = {}, trees_of(content)[1]
    assert flags_of(content, main) == LEAF
    for at in range(16, struct.unpack_from("<H", content, main * PAGE + 12)[0], 2):
        node = main * PAGE + struct.unpack_from("<H", content, main * PAGE + at)[0]
        length = struct.unpack_from("<H", content, node + 6)[0]
        name = content[node + 8:node + 8 + length].decode()
        roots[name] = struct.unpack_from("<Q", content, node + 8 + length + 40)[0]
    return roots


def spoilt(content, page, pick):
    """The page in every way: zeros, noise, fields of its header at extremes, bits of it."""
    yield "zeros", replaced(content, page, bytes(PAGE))
    yield "noise", replaced(content, page, pick.randbytes(PAGE))
    for at, length in ((0, 8), (10, 2), (12, 2), (14, 2), (16, 2)):
        for value in (b"\x00", b"\xff", b"\x7f"):
            place = page * PAGE + at
            yield f"{at}: {value}", content[:place] + value * length + content[place + length:]
    for _ in range(FLIPS_A_PAGE):
        place = page * PAGE + pick.randrange(16 + 64)
        yield f"bit at {place}", (content[:place] + bytes([content[place] ^ 1 << pick.randrange(8)])
                                  + content[place + 1:])


def whole_again(store, content, name):
    """Damage that costs nothing: repair finds everything."""
    with tempfile.TemporaryDirectory(dir=store.folder) as folder:
        data = directory(store, folder, content)
        _, found, wrong = repair(store, data, pathlib.Path(folder, "copy"))
        assert not wrong, f"{name}: {wrong}"
        assert found.returncode == HARMLESS, f"{name}: {found.stderr[-300:]}"


def test_nothing_is_lost_with_a_branch(deep):
    """Its leaves are found by themselves."""
    content, pick = content_of(deep), random.Random(8)
    branches = [root for root in roots_of(content).values()
                if root < len(content) // PAGE and flags_of(content, root) == BRANCH]
    assert len(branches) >= 4
    for page in branches:
        for how, damaged in itertools.islice(spoilt(content, page, pick),
                                             None if long_run() else 4):
            whole_again(deep, damaged, f"page {page}, {how}")


def test_nothing_is_lost_with_an_index_or_the_free_list(deep):
    content, pick, roots = content_of(deep), random.Random(9), roots_of(content_of(deep))
    free = trees_of(content)[0]
    for name, page in (("free", free), ("shape_index", roots["shape_index"]),
                       ("metric_index", roots["metric_index"]),
                       ("band_index", roots["band_index"])):
        for how, damaged in itertools.islice(spoilt(content, page, pick),
                                             None if long_run() else 4):
            whole_again(deep, damaged, f"{name}, page {page}, {how}")


def test_every_kind_of_page_spoilt_in_every_way(deep):
    """Meta pages, the free list, the list of databases, roots and a leaf of each tree."""
    content, pick = content_of(deep), random.Random(10)
    pages = {0, 1, *trees_of(content)} | {root for root in roots_of(content).values()
                                          if root < len(content) // PAGE}
    leaves = [next(children_of(content, page)) for page in pages
              if page > 1 and flags_of(content, page) == BRANCH]
    cases = [(f"page {page}, {how}", damaged) for page in sorted(pages | set(leaves))
             for how, damaged in spoilt(content, page, pick)]
    check_all(deep, cases if long_run() else pick.sample(cases, 120))


def keys_of(content, page):
    """Places and keys of a leaf's entries, as LMDB lays them out: a header of 16 bytes, then where
    each entry begins; an entry has 8 bytes before its key, the last two of them its length."""
    begin = page * PAGE
    lower, = struct.unpack_from("<H", content, begin + 12)
    for place in range(16, lower, 2):
        at = begin + struct.unpack_from("<H", content, begin + place)[0]
        yield at + 8, struct.unpack_from("<H", content, at + 6)[0]


def test_a_key_that_is_damaged_brings_nothing_back_that_was_deleted(store):
    """Keys of the journal's pages are sequences. One that is higher than it was says of its page
    that it is of later than the last deletion."""
    content, cases = content_of(store), []
    for page in pages_of(content):
        if page > 1 and flags_of(content, page) == LEAF:
            for at, length in keys_of(content, page):
                if length == 8:
                    for byte, bit in ((0, 7), (7, 0), (7, 1), (7, 4), (6, 0)):
                        cases.append((f"key at {at} byte {byte} bit {bit}", replaced_byte(
                            content, at + byte, content[at + byte] ^ 1 << bit)))
    assert len(cases) >= 5
    bad = []
    for name, damaged in cases:
        with tempfile.TemporaryDirectory(dir=store.folder) as folder:
            _, _, wrong = repair(store, directory(store, folder, damaged),
                                 pathlib.Path(folder, "copy"))
            if wrong:
                bad.append(f"{name}: {wrong}")
    assert not bad, "\n".join(bad)


def replaced_byte(content, at, byte):
    return content[:at] + bytes([byte]) + content[at + 1:]


def test_a_band_that_the_index_lacks_is_named(store):
    """One bit of the hash of its tags: the series was not found any more, and nothing said so. The
    index has the bands' keys, u32 each, behind hashes of 8 bytes."""
    content = content_of(store)
    page = roots_of(content)["band_index"]
    at = content.index(struct.pack(">II", 1, 3), page * PAGE, (page + 1) * PAGE) - 1
    damaged = content[:at] + bytes([content[at] ^ 8]) + content[at + 1:]
    with tempfile.TemporaryDirectory(dir=store.folder) as name:
        verified = run("verify", "--data", directory(store, name, damaged))
    assert verified.returncode == 1 and "it is not in the index" in verified.stdout
    whole_again(store, damaged, "the index of bands")


@pytest.mark.parametrize("db", ["metric_index"])
def test_verify_ends_where_a_page_leads_round_in_a_circle(store, db):
    """The header says that the page is of every kind, and holds nothing: LMDB never comes back."""
    content = bytearray(content_of(store))
    page = roots_of(content)[db]
    content[page * PAGE + 10], content[page * PAGE + 12:page * PAGE + 14] = 255, b"\0\0"
    with tempfile.TemporaryDirectory(dir=store.folder) as name:
        verified = run("verify", "--data", directory(store, name, bytes(content)), timeout=60)
    assert verified.returncode == 1 and f"page {page} of {db}: " in verified.stdout


def test_a_damaged_free_list_ends_the_start_with_a_sentence(deep, make_server):
    """It led LMDB astray: the server died of a signal at each start, and verify found nothing."""
    content, pick = content_of(deep), random.Random(11)
    server = make_server()
    server.data.mkdir(parents=True, exist_ok=True)
    (server.data / "made").write_bytes((deep.folder / "data" / "made").read_bytes())
    free = trees_of(content)[0]
    for how, damaged in itertools.islice(spoilt(content, free, pick), 6):
        (server.data / "data.mdb").write_bytes(damaged)
        ended = run("serve", "--data", server.data, "--listen", "127.0.0.1:0", timeout=HANG_S)
        assert ended.returncode == 1, (how, ended.returncode, ended.stderr[-300:])
        assert f"page {free}, of the list of free pages: " in ended.stderr
        assert "granary verify" in ended.stderr and "granary repair" in ended.stderr
        verified = run("verify", "--data", server.data)
        assert verified.returncode == 1 and f"page {free} of the list of free pages" in (
            verified.stdout)


# ---- What stops a repair


def test_a_repair_without_room_says_so_and_leaves_nothing(deep, tmp_path):
    size = len(content_of(deep))
    with mounts.memory(tmp_path / "small", f"{size // 3 // 1024}k") as place:
        done = run("repair", "--data", deep.folder / "data", "--to", place.folder / "copy")
        assert done.returncode == NO_COPY
        assert done.stderr.startswith("granary repair: cannot write ")
        assert f"no room there; the copy takes up to {size // 10**6 + 1} MB" in done.stderr
        assert not list(place.folder.iterdir())


def test_a_repair_that_is_killed_has_no_copy_or_all_of_it(deep, tmp_path):
    """And what it has begun is in the way of the next, which says so."""
    pick = random.Random(12)
    begun = time.monotonic()
    assert run("repair", "--data", deep.folder / "data", "--to", tmp_path / "0").returncode == 0
    took_s = time.monotonic() - begun
    broken_off = 0
    for number in range(1, 101 if long_run() else 13):
        to, part = tmp_path / str(number), tmp_path / f"{number}.part"
        command = [granary(), "repair", "--data", deep.folder / "data", "--to", to]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        if number % 2:
            while not part.exists() and process.poll() is None:
                pass
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(pick.uniform(0, took_s))
        process.kill()
        process.wait()
        if to.exists():
            assert not part.exists()
            assert look(deep, to).returncode == HARMLESS
        elif part.exists():
            broken_off += 1
            again = run("repair", "--data", deep.folder / "data", "--to", to)
            assert again.returncode == NO_COPY
            assert f"{part} is there already" in again.stderr
            shutil.rmtree(part)
        assert run("verify", "--data", deep.folder / "data").returncode == 0
    assert broken_off
