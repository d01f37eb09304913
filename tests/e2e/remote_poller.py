"""`granary poll` under test."""

import contextlib
import pathlib
import re
import signal
import subprocess
import time

from server import Server, granary

SECRETS = "lab: {version: 2c, community: public}\n"
# Two columns of each interface, every second.
OIDSETS = """
oidsets:
  Fast:
    frequency: 1s
    correlator: IfName
    oids: [sysUpTime, ifHCInOctets, ifHCOutOctets]
"""
DEADLINE_S = 60


def wait_for(look, seconds=DEADLINE_S, every=0.05):
    """Looks until there is something; gives it."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if found := look():
                return found
        assert time.monotonic() < deadline, f"nothing after {seconds} s: {look}"
        time.sleep(every)


class RemotePoller:
    """Its folder holds `spool`, `secrets.yml` and `log`."""

    def __init__(self, folder, url, name="site", options=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.url, self.name, self.options = url, name, list(options)
        self.secrets = self.folder / "secrets.yml"
        self.secrets.write_text(SECRETS)
        self.secrets.chmod(0o600)
        self.log_path = self.folder / "log"
        self.process = None

    def command(self):
        return list(map(str, [granary(), "poll", "--server", self.url, "--name", self.name,
                              "--data", self.folder / "spool", "--listen", "127.0.0.1:0",
                              "--snmp.secrets_file", self.secrets, *self.options]))

    def start(self):
        begun = self.log_path.stat().st_size if self.log_path.exists() else 0
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

        def ready():
            assert self.process.poll() is None, self.log_text()
            return re.search(r"status at (http://127.0.0.1:(\d+))/", self.log_text()[begun:])
        found = wait_for(ready, every=0.005)
        # What talks to a server talks to the status page, too.
        self.status = Server(self.folder / "status")
        self.status.port = int(found.group(2))
        return self

    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.running():
            self.process.kill()
        if self.process is not None:
            self.process.wait()
            self.status.close()

    def stop(self):
        """By TERM; everything but a clean exit is a failure."""
        self.status.close()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(40)
        assert status == 0, f"stopped with {status}:\n{self.log_text()}"

    def log_text(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    log_tail = log_text

    def spool(self):
        return self.status.get("/api/queues").json["queues"][0]
