"""A supervisor as sd_notify(3) describes it: a socket of datagrams, and what came on it."""

import contextlib
import os
import secrets
import socket
import time

from server import PATIENCE_S


class Supervisor:
    """Its environment goes to a process; what the process tells is a dict for each datagram."""

    def __init__(self, folder=None, watchdog_s=None):
        """Without a folder the socket is a name of the abstract namespace."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.name = str(folder / "notify") if folder else f"@granary-{secrets.token_hex(8)}"
        self.socket.bind(self.name if folder else "\0" + self.name[1:])
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.environment = {"NOTIFY_SOCKET": self.name}
        if watchdog_s:
            self.environment["WATCHDOG_USEC"] = str(int(watchdog_s * 1e6))
        self.told = []
        self.pids = set()

    def receive(self, seconds):
        """The next datagram, or None."""
        self.socket.settimeout(seconds)
        with contextlib.suppress(TimeoutError, BlockingIOError):
            text, extra, _, _ = self.socket.recvmsg(4096, 64)
            self.pids.add(int.from_bytes(extra[0][2][:4], "little"))
            lines = dict(line.split("=", 1) for line in text.decode().split("\n"))
            self.told.append(lines)
            return lines
        return None

    def wait(self, name, value=None, seconds=PATIENCE_S):
        """Until it was told this; gives all that came up to then."""
        deadline, heard = time.monotonic() + seconds, []
        while (left := deadline - time.monotonic()) > 0:
            if (lines := self.receive(left)) is None:
                break
            heard.append(lines)
            if name in lines and value in (None, lines[name]):
                return heard
        raise AssertionError(f"{name}={value} did not come; but {heard}")

    def drain(self):
        """What has come so far."""
        heard = []
        while (lines := self.receive(0.000001)) is not None:
            heard.append(lines)
        return heard

    def close(self):
        self.socket.close()
        with contextlib.suppress(OSError):
            os.unlink(self.name)
