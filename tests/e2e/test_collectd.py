"""collectd, unchanged: its write_tsdb plugin sends this machine's metrics to the telnet door.

What must be stored is read off the bytes that collectd sent, which pass through a relay here."""

import contextlib
import datetime
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from server import eventually
from test_doors import Doors

PLUGINS = "/usr/lib/collectd"
TYPES = "/usr/share/collectd/types.db"

CONFIG = """
Hostname "test-host"
FQDNLookup false
Interval 1
BaseDir "{folder}"
PIDFile "{folder}/pid"
PluginDir "{plugins}"
TypesDB "{types}"
LoadPlugin logfile
<Plugin logfile>
  LogLevel info
  File "{folder}/log"
</Plugin>
LoadPlugin load
LoadPlugin memory
LoadPlugin cpu
LoadPlugin uptime
LoadPlugin write_tsdb
<Plugin write_tsdb>
  <Node>
    Host "127.0.0.1"
    Port "{port}"
    HostTags "site=here rack=7"
    StoreRates true
    AlwaysAppendDS false
  </Node>
</Plugin>
"""


class Relay:
    """Passes a connection on and keeps what its client says."""

    def __init__(self, port):
        self.port, self.data, self.lock = port, b"", threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()

    @property
    def address(self):
        return self.listener.getsockname()[1]

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.pass_on, args=(client,), daemon=True).start()

    def pass_on(self, client):
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            with contextlib.suppress(OSError):
                while data := client.recv(65536):
                    with self.lock:
                        self.data += data
                    server.sendall(data)

    def lines(self):
        with self.lock:
            return self.data.decode().split("\r\n")[:-1]


def points_of(lines):
    """{(metric, tags): {time: value}}; what is not a number yet cannot be stored."""
    found, not_numbers = {}, 0
    for line in lines:
        command, metric, when, value, *tags = line.split()
        assert command == "put"
        if value in ("nan", "-nan"):
            not_numbers += 1
            continue
        seconds, ms = divmod(int(when), 1000) if len(when) >= 13 else (int(when), 0)
        key = metric, tuple(sorted(tuple(tag.split("=", 1)) for tag in tags))
        stamp = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        text = stamp.strftime("%Y-%m-%dT%H:%M:%S") + (f".{ms:03}Z" if ms else "Z")
        found.setdefault(key, {})[text] = float(value)
    return found, not_numbers


def test_collectd_write_tsdb(make_server, tmp_path):
    program = shutil.which("collectd", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        pytest.skip("there is no collectd")
    doors = Doors(make_server)
    relay = Relay(doors.puts)
    folder = tmp_path / "collectd"
    folder.mkdir()
    config = folder / "collectd.conf"
    config.write_text(CONFIG.format(folder=folder, plugins=PLUGINS, types=TYPES,
                                    port=relay.address))
    process = subprocess.Popen([program, "-f", "-C", config], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        # The plug-in sends when its buffer of about 1.4 KB is full.
        eventually(lambda: len(points_of(relay.lines())[0].get(
            ("load.load.shortterm", (("fqdn", "test-host"), ("rack", "7"), ("site", "here"))),
            {})) >= 3, 60)
    finally:
        process.send_signal(signal.SIGTERM)
        status = process.wait(60)
    assert status == 0, (folder / "log").read_text()
    # What is in the sockets still, passes first.
    eventually(lambda: doors.server.metric("granary_tcp_connections") == 0)
    expected, not_numbers = points_of(relay.lines())
    assert {metric.split(".")[0] for metric, _ in expected} >= {"load", "memory", "cpu", "uptime"}
    for (metric, tags), values in expected.items():
        now_s = int(time.time())
        found, = doors.server.query(metric, start=now_s - 3600, end=now_s + 60)
        assert found["tags"] == dict(tags)
        assert found["values"] == values
    assert doors.refused("not_finite") == not_numbers
    assert doors.refused("syntax") == 0
    doors.server.stop()
