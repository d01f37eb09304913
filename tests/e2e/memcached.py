"""A memcached of the test's own, and the way into its queue that esmond's poller takes."""

import contextlib
import json
import shutil
import socket
import subprocess

import pytest

from server import eventually, free_port



class Memcached:
    def __init__(self):
        if not shutil.which("memcached"):
            pytest.skip("memcached (package memcached) is not installed")
        self.port = free_port()
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-U", "0",
                                         "-p", str(self.port)])
        self.connection = eventually(self.connect, "memcached answers")
        self.answers = self.connection.makefile("rb")

    def connect(self):
        assert self.process.poll() is None, f"memcached ended with {self.process.returncode}"
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def kill(self):
        self.answers.close()
        self.connection.close()
        self.process.kill()
        self.process.wait()

    def restart(self):
        """On the same port, with nothing of what it had."""
        self.kill()
        self.start()

    def say(self, line, data=b""):
        self.connection.sendall(line.encode() + b"\r\n" + data)
        return self.answers.readline().decode().strip()

    def incr(self, key):
        """The new number; None where there is no such counter."""
        answer = self.say(f"incr {key} 1")
        return None if answer == "NOT_FOUND" else int(answer)

    def set(self, key, value):
        data = value.encode()
        assert self.say(f"set {key} 0 0 {len(data)}", data + b"\r\n") == "STORED"

    def get(self, key):
        """Its text; None where there is none."""
        head = self.say(f"get {key}")
        if head == "END":
            return None
        value = self.answers.read(int(head.split()[3]) + 2)[:-2].decode()
        assert self.answers.readline() == b"END\r\n"
        return value


class EsmondQueue:
    """esmond's MemcachedPersistQueue of that name, as its poller and its statistics use it."""

    def __init__(self, memcached, name):
        self.memcached, self.prefix = memcached, f"_mcpq__{name}_"

    def number(self):
        """The first half of a put. Without counters esmond's poller dies of None."""
        return self.memcached.incr(self.prefix + "last_added")

    def put(self, message):
        self.memcached.set(f"{self.prefix}{self.number()}", json.dumps(message))

    def pending(self):
        """None while there are no counters."""
        added, read = (self.memcached.get(self.prefix + name)
                       for name in ("last_added", "last_read"))
        return None if added is None or read is None else int(added) - int(read)

    def wait_pending(self, count=0):
        eventually(lambda: self.pending() == count,
                   lambda: f"{self.pending()} pending, not {count}")
