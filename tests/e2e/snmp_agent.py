"""Debian's snmpd on a free port of loopback, and a proxy that stands before it and does harm."""

import contextlib
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import threading

from server import eventually

ENGINE_ID = "80001f8804676e7279"   # net-snmp's number, format 4 (text), `gnry`
AUTH_PASSWORD = "maplesyrup-auth"
PRIV_PASSWORD = "maplesyrup-priv"
AUTHS = ["MD5", "SHA", "SHA-224", "SHA-256", "SHA-384", "SHA-512"]
PRIVS = ["DES", "AES", "AES-192", "AES-256", "AES-192-C", "AES-256-C"]


def user_of(auth=None, priv=None):
    return "-".join(["user", *(part.lower() for part in (auth, priv) if part)])


def have_snmpd():
    return shutil.which("snmpd") or os.path.exists("/usr/sbin/snmpd")


def free_udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Snmpd:
    """Communities `public`; users of every combination, named by user_of()."""

    def __init__(self, folder, extra="", engine_id=ENGINE_ID, port=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_udp_port()
        self.address = f"127.0.0.1:{self.port}"
        self.engine_id = engine_id
        self.config = self.folder / "snmpd.conf"
        self.config.write_text(self.configuration() + extra)
        self.process = None

    def configuration(self):
        lines = ["rocommunity public 127.0.0.1", f"exactEngineID 0x{self.engine_id}",
                 "sysName granary-test", "sysLocation a shelf", "sysContact nobody",
                 "sysDescr an agent for tests", "master no",
                 "createUser user", "rouser user noauth"]
        for auth in AUTHS:
            lines += [f"createUser {user_of(auth)} {auth} {AUTH_PASSWORD}",
                      f"rouser {user_of(auth)} auth"]
            for priv in PRIVS:
                name = user_of(auth, priv)
                lines += [f"createUser {name} {auth} {AUTH_PASSWORD} {priv} {PRIV_PASSWORD}",
                          f"rouser {name} priv"]
        return "\n".join(lines) + "\n"

    def start(self):
        program = shutil.which("snmpd") or "/usr/sbin/snmpd"
        self.log = open(self.folder / "log", "a")
        self.process = subprocess.Popen(
            [program, "-f", "-Lo", "-C", "-c", self.config, "-p", self.folder / "pid",
             f"udp:{self.address}"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env={**os.environ, "SNMP_PERSISTENT_DIR": str(self.folder / "state"),
                 "SNMPCONFPATH": str(self.folder), "MIBS": ""})
        self.wait_ready()
        return self

    def wait_ready(self):
        """It is when it answers: a GET of sysUpTime.0 by hand."""
        ask = bytes.fromhex("302602010104067075626c6963a01902010102010002010030"
                            "0e300c06082b060102010103000500")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(0.1)

            def answers():
                assert self.process.poll() is None, (self.folder / "log").read_text()
                with contextlib.suppress(OSError):
                    sock.sendto(ask, ("127.0.0.1", self.port))
                    return sock.recv(2000)
            eventually(answers, (self.folder / "log").read_text)

    def stop(self, how=signal.SIGKILL):
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.log.close()
            self.process = None


class Proxy:
    """Passes datagrams on. `replies(n, bytes)` gives the list of datagrams that the client gets
    instead of the n-th reply, `requests` the same for the agent. Everything is remembered."""

    def __init__(self, port, replies=None, requests=None):
        self.target = ("127.0.0.1", port)
        self.replies = replies or (lambda n, data: [data])
        self.requests = requests or (lambda n, data: [data])
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.back.bind(("127.0.0.1", 0))
        self.wake, self.woken = socket.socketpair()
        self.port = self.front.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.seen_requests, self.seen_replies = [], []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        client = None
        while True:
            ready, _, _ = select.select([self.front, self.back, self.woken], [], [])
            if self.woken in ready:
                return
            if self.front in ready:
                data, client = self.front.recvfrom(65536)
                self.seen_requests.append(data)
                for piece in self.requests(len(self.seen_requests), data):
                    self.back.sendto(piece, self.target)
            if self.back in ready:
                data, _ = self.back.recvfrom(65536)
                self.seen_replies.append(data)
                for piece in self.replies(len(self.seen_replies), data):
                    self.front.sendto(piece, client)

    def stop(self):
        self.wake.send(b"x")
        self.thread.join()
        for sock in (self.front, self.back, self.wake, self.woken):
            sock.close()
