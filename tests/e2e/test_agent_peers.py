"""Programs of others beside `granary agent` (rsyslog and logger are in test_agent_inlets.py,
logrotate in test_agent.py, journals in test_agent_journal.py)."""

import os
import pathlib
import re
import subprocess

import pytest

from server import eventually, free_port
from test_agent_inlets import await_bound, follow, held, lost, told  # noqa: F401 (a fixture)

# tools/setup has unpacked it there: as a package it excludes rsyslog.
PEERS = pathlib.Path(__file__).resolve().parents[2] / "build-peers"
SYSLOG_NG = PEERS / "usr/sbin/syslog-ng"
MODULES = PEERS / "usr/lib/syslog-ng"
LIBRARIES = ":".join(map(str, [MODULES, *PEERS.glob("**/*-linux-gnu")]))
LINES = 5000

# RFC 5424 with the length in front, by TCP; the same without, by UDP; RFC 3164 in lines.
DESTINATIONS = {"syslog-tcp": 'syslog("127.0.0.1" port({port}) transport("tcp"))',
                "syslog-udp": 'syslog("127.0.0.1" port({port}) transport("udp"))',
                "bsd-tcp": 'network("127.0.0.1" port({port}) transport("tcp"))',
                "bsd-udp": 'network("127.0.0.1" port({port}) transport("udp"))'}
HEADS = {"syslog": r'<156>1 \S+ \S+ - - - \[meta sequenceId="\d+"\] ',
         "bsd": r"<156>\w{3} [ \d]\d [\d:]{8} \S+ "}


class SyslogNg:
    """Reads a file, and sends each line of it."""

    def __init__(self, folder, destination):
        self.folder, self.log = folder, folder / "in.log"
        self.folder.mkdir()
        (folder / "syslog-ng.conf").write_text(f"""@version: 3.35
options {{ stats-freq(0); log-fifo-size(10000); }};
source s {{ file("{self.log}" flags(no-parse) default-facility(local3)
                 default-priority(warning)); }};
destination d {{ {destination}; }};
log {{ source(s); destination(d); }};
""")

    def __enter__(self):
        self.process = subprocess.Popen(
            [SYSLOG_NG, "-F", "--no-caps", "-f", self.folder / "syslog-ng.conf",
             "--module-path", MODULES / "3.38",
             "-R", self.folder / "persist", "-p", self.folder / "pid",
             "-c", self.folder / "control"],
            env={**os.environ, "LD_LIBRARY_PATH": LIBRARIES},
            stdout=subprocess.DEVNULL, stderr=open(self.folder / "said", "w"))
        return self

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(60) == 0


@pytest.mark.skipif(not SYSLOG_NG.exists(), reason="syslog-ng is not there")
@pytest.mark.parametrize("kind", DESTINATIONS)
def test_syslog_ng(server, follow, tmp_path, kind):
    """5,000 lines of a file; the collector is away at first. By TCP each line is there once, in
    order; by UDP it is there or counted."""
    port = free_port()
    server.kill()
    follower = follow({"log": {"syslog": port, "datatype": "syslog"}})
    await_bound(follower, port)
    peer = SyslogNg(tmp_path / "peer", DESTINATIONS[kind].format(port=port))
    peer.log.write_text("".join(f"line {number:05d} of the file\n" for number in range(LINES)))
    with peer:
        spool = follower.data / "agent" / "spool" / "syslog:127%2E0%2E0%2E1"
        eventually(lambda: spool.exists() and spool.stat().st_size > 1000,
                   lambda: follower.log_tail() + (peer.folder / "said").read_text())
        server.start()
        def done():
            return held(server, "127.0.0.1").count(b"\n") + lost(told(server, "log")) >= LINES
        eventually(done, lambda: f"{held(server, '127.0.0.1')[-300:]}\n{follower.log_tail()}")
    text = held(server, "127.0.0.1").decode()
    numbers = [int(one)
               for one in re.findall(rf"(?m)^{HEADS[kind[:-4]]}line (\d{{5}}) of the file$", text)]
    assert len(numbers) == text.count("\n"), text[:300]
    if kind.endswith("tcp"):
        assert numbers == list(range(LINES))
    assert numbers == sorted(set(numbers))
    assert len(numbers) + lost(told(server, "log")) == LINES
    follower.stop()
