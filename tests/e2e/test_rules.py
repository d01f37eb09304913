"""The rules of durability, a test or more each, under the rule's name. Those shown elsewhere:

D1  an answer comes after the sync            test_power_cut.py, test_crash.py
D2  files are replaced, never overwritten     test_fault_loops.py (main-fsync ...), base_file.c
D3  a checksum with its key in every value    test_damage.py, store_lmdb_extent.c
D4  a failed sync or commit ends it with 74   test_fault_loops.py, test_serve.py, and below
D6  damage is refused or named                test_damage.py, test_commands.py, and below
D8  the clock jumps                           store_lmdb_engine.c
D9  (counters and rates: there are none yet)
D12 one process, no newer format              test_run.py, and below
"""

import collections
import concurrent.futures
import contextlib
import datetime
import http.client
import itertools
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

import mounts
from server import PATIENCE_S, eventually, granary, run

DISK_GONE = 74
T0 = 1600000000
ROWS = 2000  # of a body


def lines(number, rows=ROWS):
    """A body of its own times; value = f(time), so that it compresses badly and can be told."""
    return "".join(f"d5,s=a v={value_of(number * rows + i)} {T0 + number * rows + i}\n"
                   for i in range(rows))


def value_of(n):
    return (n * 2654435761 % 2**32) / 7


def write(server, number):
    return server.write(lines(number), precision="s").status


def stored(server):
    """Times and values of all there is."""
    found = server.query("d5_v", "s=a", start=T0 - 1, end=T0 + 10**7)
    return list(found[0]["values"].values()) if found else []


def check_stored(server, kept):
    expected = [value_of(number * ROWS + i) for number in sorted(kept) for i in range(ROWS)]
    values = stored(server)
    assert len(values) == len(expected)
    assert all(abs(a - b) <= 1e-6 * b for a, b in zip(values, expected))


def fill(server, kept, limit=20000):
    """Writes until there is no room; what was answered with success goes to `kept`."""
    for number in range(len(kept), limit):
        answer = server.write(lines(number), precision="s")
        if answer.status == 507:  # What is full is named, and the option that bounds it.
            assert re.search(rf"no room in {re.escape(str(server.data))}: its file has grown to "
                             "store.map_size|: its file system has less free than store.min_free",
                             answer.text), answer
            health = server.get("/health")
            assert (health.status, health.json["status"]) == (503, "fail"), health
        if answer.status != 204:
            return answer.status
        kept.append(number)
    raise AssertionError("it is never full")


def full_and_recovered(server, make_room):
    kept = []
    status = fill(server, kept)
    assert status in (503, 507), status
    assert kept and server.metric("granary_store_read_only") == 1
    assert server.running()
    check_stored(server, kept)  # queries go on
    make_room()
    eventually(lambda: write(server, len(kept)) == 204)
    kept.append(len(kept))
    assert server.metric("granary_store_read_only") == 0
    assert (server.get("/health").json["status"]) == "pass"
    check_stored(server, kept)
    server.restart()
    check_stored(server, kept)


OPTIONS = ["--store.journal_max=1M", "--query.points_max=100000000"]


def disk_filled_and_emptied(make_server, place, filler_bytes, min_free):
    server = make_server(options=[*OPTIONS, f"--store.min_free={min_free}"])
    server.data = place.folder / "data"
    filler = place.folder / "filler"
    filler.write_bytes(bytes(filler_bytes))
    server.start()
    full_and_recovered(server, filler.unlink)
    server.stop()


@pytest.mark.parametrize("min_free", ["1M", "0"])
def test_d5_a_full_memory_disk(make_server, tmp_path, min_free):
    with mounts.memory(tmp_path / "small", "8m") as place:
        disk_filled_and_emptied(make_server, place, 6 << 20, min_free)


@pytest.mark.parametrize("min_free", ["1M", "0"])
def test_d5_a_full_ext4(make_server, tmp_path, min_free):
    with mounts.image(tmp_path / "disk", "ext4", 16) as place:
        disk_filled_and_emptied(make_server, place, 10 << 20, min_free)


def test_d5_free_pages_of_the_file_are_room(make_server, tmp_path):
    """The disk has less room than it is to keep, but the file need not grow: what was deleted has
    left more pages free than what comes next takes."""
    with mounts.memory(tmp_path / "small", "64m") as place:
        server = make_server(options=[*OPTIONS, "--store.map_size=32M", "--store.min_free=16M",
                                      "--retention.raw=36500d"])
        server.data = place.folder / "data"
        server.start()
        kept = []
        while os.stat(server.data / "data.mdb").st_size < 12 << 20:
            assert write(server, len(kept)) == 204
            kept.append(len(kept))
        answer = server.request("POST", "/api/delete", metricName="d5_v", start=T0 - 1,
                                end=T0 + 10**7)
        assert answer.status == 200, answer
        eventually(lambda: server.metric("granary_store_used_bytes") <
              server.metric("granary_store_file_bytes") / 2)
        stats = os.statvfs(place.folder)
        place_left = stats.f_bavail * stats.f_frsize
        (place.folder / "filler").write_bytes(bytes(place_left - (8 << 20)))
        refused = server.metric("granary_store_read_only")
        length = os.stat(server.data / "data.mdb").st_size
        for number in range(len(kept) // 4):
            assert write(server, number) == 204
        assert refused == server.metric("granary_store_read_only") == 0
        assert os.stat(server.data / "data.mdb").st_size == length
        server.stop()


class Filler:
    """Takes every block of a file system, also those kept for root, and gives them back one by
    one."""

    def __init__(self, place):
        self.folder = place.folder
        self.file = open(place.folder / "filler", "wb", buffering=0)

    def fill(self):
        for size in (65536, 4096, 1024, 1):
            with contextlib.suppress(OSError):
                while self.file.write(bytes(size)):
                    pass
        os.fsync(self.file.fileno())
        with pytest.raises(OSError, match="No space left"):
            self.file.write(b"x")
        # What is left is the file system's own: nobody gets it, root neither.
        return os.statvfs(self.folder).f_bavail

    def give_back(self, count):
        size = os.fstat(self.file.fileno()).st_size
        self.file.truncate(max(0, size - count))


class Writers:
    """Clients that write until they are stopped, whatever they are answered."""

    def __init__(self, server, first, count=4):
        self.numbers, self.lock = itertools.count(first), threading.Lock()
        self.statuses, self.kept, self.unknown = collections.Counter(), [], []
        self.stopping = threading.Event()
        self.url, self.threads = server.url, []
        for _ in range(count):
            self.threads.append(threading.Thread(target=self.run))
            self.threads[-1].start()

    def one(self):
        with self.lock:
            number = next(self.numbers)
        try:
            request = urllib.request.Request(f"{self.url}/write?precision=s",
                                             lines(number).encode())
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                status = answer.status
        except urllib.error.HTTPError as error:
            status = error.code
        except (OSError, http.client.HTTPException):
            status = 0
        with self.lock:
            self.statuses[status] += 1
            if status == 204:
                self.kept.append(number)
            elif status not in (503, 507):
                self.unknown.append(number)

    def answered(self):
        with self.lock:
            return sum(self.statuses.values())

    def run(self):
        while not self.stopping.is_set():
            self.one()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


def bodies_stored(server):
    """Which bodies are there, each whole and right."""
    found = server.query("d5_v", "s=a", start=T0 - 1, end=T0 + 10**8)
    values = found[0]["values"] if found else {}
    by_body = collections.defaultdict(dict)
    for ts, value in values.items():
        seconds = int(datetime.datetime.fromisoformat(ts.replace("Z", "+00:00")).timestamp())
        number, i = divmod(seconds - T0, ROWS)
        by_body[number][i] = value
    for number, rows in by_body.items():
        assert len(rows) == ROWS, (number, len(rows))
        assert all(abs(value - value_of(number * ROWS + i)) <= 1e-6 * value
                   for i, value in rows.items())
    return set(by_body)


def test_d5_not_one_free_block_under_load(make_server, tmp_path):
    """Every write of a page may be the one that finds none, those of the free list, too: blocks
    come back one by one, so that each commit gets further than the one before."""
    with mounts.image(tmp_path / "disk", "ext4", 32) as place:
        server = make_server(options=[*OPTIONS, "--store.min_free=0"])
        server.data = place.folder / "data"
        server.start()
        kept = [number for number in range(10) if write(server, number) == 204]
        assert len(kept) == 10
        filler = Filler(place)
        assert filler.fill() == 0
        writers = Writers(server, 10)
        try:
            eventually(lambda: writers.statuses[507] >= 8 and
                  server.metric("granary_store_refused_total", reason="full") > 0)
            eventually(lambda: server.metric("granary_store_read_only") == 1)
            assert bodies_stored(server) >= set(kept)  # reading goes on
            for _ in range(60):
                before = writers.answered()
                filler.give_back(1024)
                eventually(lambda: writers.answered() > before)  # a commit or a refusal
                assert server.running()
            answered = set(kept) | set(writers.kept)
            assert bodies_stored(server) >= answered
            filler.file.truncate(0)
            before = writers.statuses[204]
            eventually(lambda: writers.statuses[204] > before + 3)
        finally:
            writers.stop()
        assert not writers.unknown and server.metric("granary_store_read_only") == 0
        assert bodies_stored(server) == set(kept) | set(writers.kept)
        server.restart()
        assert bodies_stored(server) == set(kept) | set(writers.kept)
        server.stop()
        assert run("verify", "--data", server.data).returncode == 0
        filler.file.close()


def test_d5_a_full_map(make_server):
    """No room in the file: reading and restarting go on, and a larger map takes writes again."""
    server = make_server(options=[*OPTIONS, "--store.map_size=2M"])
    server.start()
    kept = []
    assert fill(server, kept) in (503, 507)
    check_stored(server, kept)
    server.restart()
    check_stored(server, kept)
    assert write(server, len(kept)) in (204, 503, 507)
    server.stop()
    server.options[-1] = "--store.map_size=64M"
    server.start()
    eventually(lambda: write(server, len(kept)) == 204)
    kept.append(len(kept))
    check_stored(server, kept)


def test_d5_a_start_on_a_full_disk_is_a_sentence(tmp_path):
    with mounts.memory(tmp_path / "small", "1m") as place:
        with open(place.folder / "filler", "wb", buffering=0) as file:
            with pytest.raises(OSError):
                while file.write(bytes(4096)):
                    pass
        ended = run("serve", "--data", place.folder / "data", "--listen", "127.0.0.1:0")
        assert ended.returncode in (1, DISK_GONE)
        assert "No space" in ended.stderr or "room" in ended.stderr or "cannot" in ended.stderr


def test_d4_a_disk_that_goes_read_only_under_load(make_server, tmp_path):
    """As ext4 does when it finds an error: writes fail from one moment to the next."""
    with mounts.image(tmp_path / "disk", "ext4", 64) as place:
        server = make_server(options=["--store.min_free=1M"])
        server.data = place.folder / "data"
        server.start()
        kept = []
        for number in range(20):
            assert write(server, number) == 204
            kept.append(number)
        place.remount("abort")
        assert write(server, 20) in (500, 503, 507)
        assert server.process.wait(PATIENCE_S) == DISK_GONE
        assert "commit failed" in server.log_text() or "cannot be read" in server.log_text()
        server.close()
        place.unmount()
        place.mount()
        server.start()
        values = stored(server)
        assert len(values) in (20 * ROWS, 21 * ROWS)  # that of the last is unknown
        server.stop()


def test_d4_a_file_system_turns_read_only_in_mid_write(make_server, tmp_path):
    """Under several writers: one sentence, status 74, nothing that was answered is lost. (Asked
    politely the kernel does not do it while the data file is open: that costs nothing.)"""
    with mounts.image(tmp_path / "disk", "ext4", 64) as place:
        server = make_server(options=["--store.min_free=0"])
        server.data = place.folder / "data"
        server.start()
        writers = Writers(server, 0)
        try:
            eventually(lambda: writers.statuses[204] >= 12)
            with pytest.raises(OSError, match="busy"):
                place.remount("ro")
            before = writers.statuses[204]
            eventually(lambda: writers.statuses[204] >= before + 4)
            place.remount("abort")
            assert server.process.wait(PATIENCE_S) == DISK_GONE
            with pytest.raises(OSError):
                (place.folder / "file").write_bytes(b"x")
        finally:
            writers.stop()
        said = server.log_text()
        assert "commit failed" in said or "cannot be read" in said
        server.close()
        place.unmount()
        place.mount()
        server.start()
        assert set(writers.kept) <= bodies_stored(server) <= set(range(next(writers.numbers)))
        server.stop()
        assert run("verify", "--data", server.data).returncode == 0


def test_d4_a_file_that_is_cut_under_the_server(make_server):
    """Its pages are gone from the map: SIGBUS, which must not be a bare one."""
    server = make_server()
    server.start()
    assert write(server, 0) == 204
    os.truncate(server.data / "data.mdb", 4096 * 2)
    try:
        server.write(lines(1), precision="s")
    except (OSError, http.client.HTTPException):
        pass
    assert server.process.wait(PATIENCE_S) == DISK_GONE
    assert "cannot be read" in server.log_text() and str(server.data) in server.log_text()
    server.close()
    ended = run("serve", "--data", server.data, "--listen", "127.0.0.1:0")
    assert ended.returncode == 1 and "damaged" in ended.stderr


def test_d6_a_shortened_file_is_refused(server):
    assert write(server, 0) == 204
    server.stop()
    path = server.data / "data.mdb"
    # Not the last page alone: that may be a free one, which nobody misses.
    os.truncate(path, path.stat().st_size // 4 // 4096 * 4096)
    ended = run("serve", "--data", server.data, "--listen", "127.0.0.1:0")
    assert ended.returncode == 1 and "damaged" in ended.stderr and "data.mdb" in ended.stderr


@pytest.mark.parametrize("how", ["missing", "empty"])
def test_d6_a_lost_file_is_no_new_store(server, how):
    assert write(server, 0) == 204
    server.stop()
    (server.data / "data.mdb").unlink()
    if how == "empty":
        (server.data / "data.mdb").touch()
    ended = run("serve", "--data", server.data, "--listen", "127.0.0.1:0")
    assert ended.returncode == 1 and how in ended.stderr and "made" in ended.stderr
    (server.data / "made").unlink()  # as the sentence says, to begin again
    server.start()
    assert stored(server) == []


PAGE = 4096


def put_beginning(folder, pages, with_mark):
    """What a power cut in the middle of making a store leaves: its length, but not its pages."""
    folder.mkdir(parents=True)
    with open(folder / "data.mdb", "wb") as file:
        file.truncate(pages * PAGE)
        if with_mark:  # the first page came to the disk, the second did not
            file.write(bytes(16) + bytes.fromhex("dec0efbe"))


@pytest.mark.parametrize("with_mark", [False, True])
@pytest.mark.parametrize("pages", [0, 1, 2, 3, 4])
def test_d6_a_store_that_was_cut_short_while_it_was_made(make_server, pages, with_mark):
    server = make_server()
    put_beginning(server.data, pages, with_mark)
    server.start()
    assert write(server, 0) == 204
    check_stored(server, [0])


def test_d6_a_longer_file_is_never_taken_for_a_beginning(tmp_path):
    put_beginning(tmp_path / "data", 5, False)
    ended = run("serve", "--data", tmp_path / "data", "--listen", "127.0.0.1:0")
    assert ended.returncode == 1 and "damaged" in ended.stderr and "data.mdb" in ended.stderr
    assert (tmp_path / "data" / "data.mdb").read_bytes() == bytes(5 * PAGE)


def test_d7_sending_again_after_an_unknown_outcome(make_server, monkeypatch):
    """The commit is done and the process dies before it answers: the client sends again."""
    monkeypatch.setenv("GRANARY_FAULTS", "store.committed=kill@4")
    server = make_server(options=["--rollup.granularities="])  # which has commits of its own
    server.start()
    sent = 0
    try:
        for sent in range(10):
            assert write(server, sent) == 204
    except (OSError, http.client.HTTPException):
        pass
    assert server.process.wait(PATIENCE_S) == -signal.SIGKILL
    monkeypatch.delenv("GRANARY_FAULTS")
    server.close()
    server.start()
    for number in (sent, sent, 0):
        assert write(server, number) == 204
    check_stored(server, range(sent + 1))


DROPS = [
    ("granary_ingest_refused_total", "syntax", "no line at all\n"),
    ("granary_ingest_refused_total", "name", f"m,a=b v=1 {T0}\n".replace("m", "\x01", 1)),
    ("granary_ingest_refused_total", "too_long", "m" * 2000 + f",a=b v=1 {T0}\n"),
    ("granary_ingest_refused_total", "too_new", "m,a=b v=1 99999999999\n"),
    ("granary_ingest_refused_total", "too_old", "m,a=b v=1 -1\n"),
    ("granary_ingest_refused_total", "not_finite", f"m,a=b v=NaN {T0}\n"),
    ("granary_ingest_refused_total", "out_of_range", f"m,a=b v=-1u {T0}\n"),
    ("granary_ingest_refused_total", "time", "m,a=b v=1 99999999999999999999999\n"),
]


def counters(server, name):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in server.get("/metrics").text.splitlines() if line.startswith(name)}


@pytest.mark.parametrize("name, reason, body", DROPS, ids=[drop[1] for drop in DROPS])
def test_d10_what_ingest_drops_is_counted(server, name, reason, body):
    """By one, and whatever the reason is called it is one of those that /metrics has."""
    before = counters(server, name)
    assert server.write(body, precision="s").status == 400
    after = counters(server, name)
    moved = {key: after[key] - before[key] for key in after if after[key] != before[key]}
    assert sum(moved.values()) == 1, moved


def test_d10_what_the_catalog_refuses_is_counted(make_server):
    server = make_server(options=["--catalog.series_per_tenant=1", "--catalog.tags_max=2"])
    server.start()
    body = "".join(f"m,a={i} v=1 {T0}\n" for i in range(3)) + f"m,a=1,b=2,c=3 v=1 {T0}\n"
    assert server.write(body, precision="s").status == 400
    assert server.metric("granary_catalog_refused_total", reason="series_per_tenant") == 2
    assert server.metric("granary_ingest_refused_total") == 3


def test_d10_what_http_cuts_is_counted(make_server):
    server = make_server(options=["--http.connections_max=2", "--http.header_timeout=100ms"])
    server.start()
    server.close()
    for _ in range(2):
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
        for sock in held:
            with contextlib.suppress(OSError):  # it had to make room
                sock.sendall(b"GET / HT")
        for sock in held:  # each is ended: answered and closed, or only closed
            sock.settimeout(PATIENCE_S)
            try:
                while sock.recv(4096):
                    pass
            except ConnectionResetError:
                pass
            sock.close()
    eventually(lambda: server.get("/metrics").status == 200)  # their places are free again
    assert (server.metric("granary_http_connections_evicted_total")
            + server.metric("granary_http_connections_refused_total")) >= 1
    assert server.metric("granary_http_timeouts_total", kind="header") >= 1


def test_d11_term_under_load_loses_nothing_that_was_answered(make_server):
    server = make_server()
    server.start()
    kept, lock = [], threading.Lock()

    def writer(first):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        for number in range(first, 4000, 4):
            try:
                connection.request("POST", "/write?precision=s", lines(number))
                status = connection.getresponse()
                status.read()
            except (OSError, http.client.HTTPException):
                return
            if status.status != 204:
                return
            with lock:
                kept.append(number)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(writer, first) for first in range(4)]
        eventually(lambda: len(kept) > 50)
        server.stop()  # asserts that the status is 0
        for job in jobs:
            job.result()
    server.start()
    values = stored(server)
    expected = {round(value_of(n * ROWS + i), 3) for n in kept for i in range(ROWS)}
    assert len(kept) > 50 and expected <= {round(value, 3) for value in values}
    assert len(values) - len(kept) * ROWS in range(0, 4 * ROWS + 1, ROWS)


def test_d12_two_processes_at_once_have_one_winner(tmp_path):
    """Started at the same moment on a directory that is not there yet."""
    command = [granary(), "serve", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0",
               "--host.enabled=no"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)]
    try:
        eventually(lambda: any(process.poll() is not None for process in both))
        loser = next(process for process in both if process.poll() is not None)
        winner = next(process for process in both if process is not loser)
        assert loser.returncode == 1 and "in use by process" in loser.communicate()[1]
        assert "ready" in winner.stdout.readline()
    finally:
        for process in both:
            process.terminate()
            process.communicate()


def test_descriptors_run_out(make_server):
    """Connections beyond the limit wait; the store does not notice; then all is as before. The
    limit is taken back while the server runs, since it opens with as many as it has."""
    server = make_server()
    server.start()
    assert write(server, 0) == 204
    most = len(os.listdir(f"/proc/{server.process.pid}/fd")) + 4
    subprocess.run(["prlimit", f"--pid={server.process.pid}", f"--nofile={most}:{most}"],
                   check=True)
    held = []
    try:
        for _ in range(80):
            held.append(socket.create_connection(("127.0.0.1", server.port), PATIENCE_S))
        assert write(server, 1) == 204  # on the connection that is there
        eventually(lambda: server.metric("granary_loop_accept_rests_total") > 0)
    finally:
        for sock in held:
            sock.close()
    server.close()
    eventually(lambda: answers(server))
    assert write(server, 2) == 204
    check_stored(server, [0, 1, 2])
    server.stop()


def answers(server):
    try:
        return server.get("/-/ready").status == 200
    except (OSError, http.client.HTTPException):
        return False
