"""Another machine: a network namespace of our own at the other end of a wire."""

import os
import subprocess

import pytest

from server import PATIENCE_S, granary

OURS = "198.51.100.1"  # addresses of documentation (RFC 5737)
THEIRS = "198.51.100.2"
OUTSIDER = "198.51.100.130"  # theirs too, and of another network of 25 bits


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False)


class Elsewhere:
    def __init__(self):
        self.name = f"granary{os.getpid()}"
        self.end = f"gn{os.getpid() % 100000}"

    def make(self):
        for command in (f"netns add {self.name}",
                        f"link add {self.end} type veth peer name eth0 netns {self.name}",
                        f"addr add {OURS}/24 dev {self.end}", f"link set {self.end} up",
                        f"-n {self.name} addr add {THEIRS}/24 dev eth0",
                        f"-n {self.name} addr add {OUTSIDER}/24 dev eth0",
                        f"-n {self.name} link set lo up", f"-n {self.name} link set eth0 up"):
            made = ip(*command.split())
            if made.returncode != 0:
                self.remove()
                pytest.skip(f"no network can be made here: {made.stderr.strip()}")
        return self

    def remove(self):
        ip("link", "delete", self.end)
        ip("netns", "delete", self.name)

    def execute(self, *command, **options):
        """What a command there does."""
        return subprocess.run(["ip", "netns", "exec", self.name, *map(str, command)],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              **options)

    def run(self, *arguments):
        return self.execute(granary(), *arguments)


@pytest.fixture
def elsewhere():
    there = Elsewhere().make()
    yield there
    there.remove()
