"""A data directory of an earlier version: it opens, and what waited there is done
(tests/data/README.md says what is in it)."""

import pathlib
import tarfile

from rollups import state, until_nothing_waits
from server import run, running

DATA = pathlib.Path(__file__).parents[1] / "data"
OPTIONS = ["--rollup.granularities=5m,1h", "--rollup.name=before", "--rollup.partitions=4"]
BEGIN = 1795417200


def whole(server):
    assert run("verify", "--data", server.data).returncode == 0


def test_marks_of_an_earlier_version_are_rolled_up(make_server):
    server = make_server(options=OPTIONS)
    server.data.mkdir()
    with tarfile.open(DATA / "store_with_marks.tgz") as archive:
        archive.extractall(server.data)
    whole(server)
    with running(server):
        until_nothing_waits(server)
        assert state(server)["held"] == "0-3"
        hour = {"start": BEGIN, "end": BEGIN + 3600}
        for host in range(3):
            minutes = [host * 1000 + minute for minute in range(60)]
            used = server.values("disk_used", f"host=h{host}", aggregator="sum", granularity="5m",
                                 **hour)
            assert list(used.values()) == [sum(minutes[i:i + 5]) for i in range(0, 60, 5)]
            used = server.values("disk_used", f"host=h{host}", aggregator="sum", granularity="1h",
                                 **hour)
            assert list(used.values()) == [sum(minutes)]
            # From the first of 5 minutes, and of 60, to the last.
            grown = server.values("net_bytes_total", f"host=h{host}", aggregator="increase",
                                  granularity="5m", **hour)
            assert list(grown.values()) == [40] * 12
            grown = server.values("net_bytes_total", f"host=h{host}", aggregator="increase",
                                  granularity="1h", **hour)
            assert list(grown.values()) == [590]
        # The raw samples are what they were.
        raw = server.values("disk_used", "host=h2", **hour)
        assert list(raw.values()) == [2000 + minute for minute in range(60)]
    whole(server)
