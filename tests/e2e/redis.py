"""A Redis of the test's own; what is said to it goes through redis-cli."""

import shutil
import signal
import subprocess

import pytest

from server import eventually, free_port



class Redis:
    def __init__(self, folder, *options):
        for tool in ("redis-server", "redis-cli"):
            if not shutil.which(tool):
                pytest.skip(f"{tool} (package redis-server) is not installed")
        self.folder, self.options, self.port = folder, options, free_port()
        self.start()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "",
             "--dir", str(self.folder), "--logfile", str(self.folder / "redis.log"),
             *self.options])
        eventually(self.answers, "Redis answers")

    def answers(self):
        assert self.process.poll() is None, f"Redis ended with {self.process.returncode}"
        return self.say("PING", check=False) == ["PONG"]

    def say(self, *words, check=True):
        """The lines of the answer."""
        done = subprocess.run(["redis-cli", "-p", str(self.port), *map(str, words)],
                              capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, done
        return done.stdout.splitlines()

    def keys(self, pattern="*"):
        return sorted(filter(None, self.say("KEYS", pattern)))

    def calls(self, command):
        """How often it was called since CONFIG RESETSTAT (INFO commandstats)."""
        for line in self.say("INFO", "commandstats"):
            if line.startswith(f"cmdstat_{command}:"):
                return int(line.split("calls=")[1].split(",")[0])
        return 0

    def stop_still(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()
