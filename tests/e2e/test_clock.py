"""A clock that is wrong: what would have expired by it stays, until the clock is back, has stood
for a day, or is accepted. The server runs on clocks that a preloaded hook sets while it serves."""

import json
import mmap
import os
import struct
import subprocess
import time

import pytest

from chunks import v2
from server import Server, build_folder, eventually, run
from test_streams import export, post

DAY_S = 86400
AHEAD_S = 400 * DAY_S
HOOK = build_folder() / "tests" / "fault" / "clock_hook.so"


class ClockServer(Server):
    """A server whose clocks can be set: `set_wall`, `pass_time` as while the machine sleeps, and
    `pass_awake` for all of them."""

    def __init__(self, folder, config):
        super().__init__(folder, config)
        path = self.folder / "clock"
        path.write_bytes(bytes(16))
        with open(path, "r+b") as file:
            self.offsets = mmap.mmap(file.fileno(), 16)
        self.wall_s = self.passed_s = self.awake_s = 0

    def spawn(self):
        env = {**os.environ, "LD_PRELOAD": str(HOOK), "CLOCK_HOOK": str(self.folder / "clock")}
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=env)

    def _store(self):
        self.offsets[8:] = struct.pack("=q", self.awake_s)
        self.offsets[:8] = struct.pack("=ii", self.wall_s, self.passed_s)

    def set_wall(self, seconds):
        self.wall_s = seconds
        self._store()

    def pass_time(self, seconds):
        self.wall_s += seconds
        self.passed_s += seconds
        self._store()

    def pass_awake(self, seconds):
        self.close()  # no connection is kept for so long
        self.awake_s += seconds
        self.pass_time(seconds)

    def is_doubted(self):
        return self.metric("granary_store_clock_doubted") == 1

    def upkeep(self):
        """Upkeep has run since: what expires by the clock was looked for in the commit of this."""
        assert self.write("upkeep ran=1i").status == 204


@pytest.fixture
def server(tmp_path):
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "retention:\n  raw: 30d\n")
    server.start()
    yield server
    server.kill()


def write_samples(server):
    """A sample for each of the last ten days; what the query of all has to give."""
    now = int(time.time())
    times = [now - day * DAY_S for day in range(10, 0, -1)]
    answer = server.put([{"metric": "room", "timestamp": at, "value": at, "tags": {"k": "v"}}
                         for at in times])
    assert answer.status == 204, answer
    return {time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)): at for at in times}


def samples(server):
    return server.values("room", "k=v")


def shows(server):
    """What `granary clock` prints."""
    status = run("clock", "--server", server.url, "-o", "json")
    assert status.returncode == 0, status
    return json.loads(status.stdout)


def test_a_clock_that_is_ahead_for_a_moment(server):
    written = write_samples(server)
    assert samples(server) == written
    assert server.get("/-/ready").text == "ready\n"
    server.set_wall(AHEAD_S)
    server.upkeep()
    eventually(server.is_doubted, "the clock is doubted")
    server.upkeep()
    ready = server.get("/-/ready")
    assert ready.status == 200
    assert ready.text.startswith("degraded: the clock shows ")
    assert "granary clock accept" in ready.text
    assert "Nothing expires" in server.log_text()
    said = shows(server)
    assert said["doubted"] is True
    assert abs(said["shows"] - said["expected"] - AHEAD_S * 1000) < 60000
    server.set_wall(0)
    server.upkeep()
    eventually(lambda: not server.is_doubted(), "the clock is believed")
    assert samples(server) == written
    assert server.get("/-/ready").text == "ready\n"
    assert shows(server)["doubted"] is False
    assert server.metric("granary_store_clock_jumps_total") == 1


def test_samples_of_now_are_taken_by_a_clock_that_is_ahead(server):
    server.set_wall(AHEAD_S)
    written = write_samples(server)
    server.set_wall(0)
    assert samples(server) == written


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_start_by_a_clock_that_is_ahead(server, end):
    written = write_samples(server)
    getattr(server, end)()
    server.set_wall(AHEAD_S)
    for _ in range(2):  # the second start does not believe what the first has doubted
        server.start()
        server.upkeep()
        server.upkeep()
        assert server.is_doubted()
        getattr(server, end)()
    server.set_wall(0)
    server.start()
    assert not server.is_doubted()
    assert samples(server) == written


def test_a_copy_of_repair_doubts_as_the_store_did(server):
    written = write_samples(server)
    server.set_wall(AHEAD_S)
    server.upkeep()
    eventually(server.is_doubted, "the clock is doubted")
    server.stop()
    copy = server.folder / "copy"
    assert run("repair", "--data", server.data, "--to", copy).returncode == 0
    server.data = copy
    server.start()
    server.upkeep()
    server.upkeep()
    assert server.is_doubted()
    server.set_wall(0)
    server.upkeep()
    eventually(lambda: not server.is_doubted(), "the clock is believed")
    assert samples(server) == written


def values_of(content, wanted):
    """Where values under that key lie in the leaves of a data file, old ones too: offsets of nodes
    from byte 16 of a page to `lower`; a node is length u32, flags u16, key's length u16, key."""
    for page in range(2 * 4096, len(content), 4096):
        flags, lower = struct.unpack_from("<HH", content, page + 10)
        for at in range(page + 16, page + lower if flags == 2 else 0, 2):
            node = page + struct.unpack_from("<H", content, at)[0]
            key = node + 8
            key_end = key + struct.unpack_from("<H", content, node + 6)[0]
            if content[key:key_end] == wanted:
                yield key_end


def test_a_record_of_the_clock_that_is_damaged(server):
    """A wrong clock may have written all that the store knows of time: any clock is doubted."""
    written = write_samples(server)
    server.set_wall(AHEAD_S)
    server.upkeep()
    eventually(server.is_doubted, "the clock is doubted")
    server.stop()
    content = bytearray((server.data / "data.mdb").read_bytes())
    places = list(values_of(content, b"clock"))
    assert places
    for at in places:
        content[at + 20] ^= 1
    (server.data / "data.mdb").write_bytes(content)
    server.start()
    server.upkeep()
    server.upkeep()
    assert server.is_doubted()
    server.set_wall(0)
    assert samples(server) == written


def test_accepted_what_has_expired_goes(server):
    write_samples(server)
    server.stop()
    server.set_wall(AHEAD_S)
    server.start()
    server.upkeep()
    eventually(server.is_doubted, "the clock is doubted")
    status = run("clock", "accept", "--server", server.url)
    assert status.returncode == 0, status
    assert status.stdout.splitlines()[1].startswith("no,"), status
    eventually(lambda: server.metric("granary_store_expired_segments_total") >= 10, "it is over")
    assert server.get("/-/ready").text == "ready\n"
    server.set_wall(0)
    assert samples(server) == {}
    server.stop()  # what was accepted stays so
    server.set_wall(AHEAD_S)
    server.start()
    assert not server.is_doubted()


def test_after_a_day_what_has_expired_goes(server):
    write_samples(server)
    server.set_wall(AHEAD_S)
    server.upkeep()
    eventually(server.is_doubted, "the clock is doubted")
    server.pass_time(DAY_S - 600)
    server.upkeep()
    assert server.is_doubted()
    server.pass_time(700)
    eventually(lambda: server.metric("granary_store_expired_segments_total") >= 10, "it is over")
    assert not server.is_doubted()
    server.set_wall(server.passed_s)
    assert samples(server) == {}


def test_what_can_be_said_to_the_clock(server):
    status = run("clock", "believe", "--server", server.url)
    assert status.returncode == 2
    assert "believe" in status.stderr
    assert server.get("/api/clock/accept").status == 405
    assert server.get("/api/clock", when="now").status == 400
    assert server.get("/api/clock").json["standsMs"] == DAY_S * 1000


def test_streams_stay(tmp_path):
    """What is deleted goes in the same pass as what is old: then that pass is over."""
    if not HOOK.exists():
        pytest.skip("a sanitizer has its own idea of preloaded calls")
    server = ClockServer(tmp_path, "stream:\n  keep: 30d\n  seal_after: 1s\n  retain_every: 1h\n")
    server.start()
    try:
        for name in ("a", "b"):
            assert post(server, v2(7, b"a line\n", name=f"/{name}")).status == 200
        eventually(lambda: server.metric("granary_chunks_blocks_total") == 2, "both are in blocks")
        first, second = (row["stream"] for row in server.get("/api/streams").json["streams"])
        server.set_wall(60 * DAY_S)
        server.upkeep()
        eventually(server.is_doubted, "the clock is doubted")
        assert server.request("DELETE", "/api/streams", stream=second).status == 200
        eventually(lambda: server.metric("granary_chunks_removed_bytes_total") == 7, "one is gone")
        server.set_wall(0)
        server.upkeep()
        eventually(lambda: not server.is_doubted(), "the clock is believed")
        assert export(server, first) == [(0, b"a line\n")]
        assert server.metric("granary_chunks_removed_bytes_total") == 7
    finally:
        server.kill()
