"""A real Chromium without a window, steered over a pipe (Chrome DevTools Protocol)."""

import json
import os
import select
import shutil
import subprocess
import time

import pytest

from server import PATIENCE_S



class Browser:
    """Names given with their addresses are resolved to these."""

    def __init__(self, folder, names):
        program = shutil.which("chromium")
        if not program:
            pytest.skip("chromium (package chromium) is not installed")
        rules = ", ".join(f"MAP {name} {address}" for name, address in names.items())
        from_us, self.to = os.pipe()
        self.come, to_us = os.pipe()
        self.seen, self.number, self.events = b"", 0, []
        with open(folder / "chromium.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", f'exec "$@" 3</proc/self/fd/{from_us} 4>/proc/self/fd/{to_us}', "sh",
                 program,
                 "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
                 # What a browser forbids of itself is not what is tested here.
                 "--disable-features=LocalNetworkAccessChecks,HttpsUpgrades,HttpsFirstBalancedMode",
                 f"--host-resolver-rules={rules}", f"--user-data-dir={folder / 'profile'}",
                 "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(from_us, to_us))
        os.close(from_us)
        os.close(to_us)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        self.call("Page.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.come)

    def message(self, deadline):
        while b"\0" not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.come], [], [], left)[0], "chromium is silent"
            piece = os.read(self.come, 1 << 16)
            assert piece, "chromium has ended"
            self.seen += piece
        text, _, self.seen = self.seen.partition(b"\0")
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while (answer := self.message(deadline)).get("id") != self.number:
            self.events.append(answer.get("method"))
        assert "result" in answer, answer
        return answer["result"]

    def open(self, url):
        """As a visitor does who types it, and waits until all of it is there."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_loaded()

    def wait_loaded(self):
        deadline = time.monotonic() + PATIENCE_S
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.message(deadline).get("method"))

    def run(self, script, **values):
        """In the page, as one of its own scripts: what the body of an async function returns."""
        given = "".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
        answer = self.call("Runtime.evaluate", expression=f"(async () => {{{given}{script}}})()",
                           awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")
