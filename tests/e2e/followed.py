"""`granary agent` under test, logs whose lines say their own number, and what a server holds of
them."""

import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import threading

from server import PATIENCE_S, eventually, granary


def line(number):
    """Its length and its bytes depend on the number."""
    filler = hashlib.md5(str(number).encode()).hexdigest() * 4
    return f"{number:08d} {filler[:number * 7 % 120]}\n".encode()


def lines(begin, end):
    return b"".join(map(line, range(begin, end)))


class Log:
    """A file that is written to; `written` is all that ever was, in order, whatever the file's name
    was then."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.written = b""
        self.next = 0

    def append(self, count=100):
        self.append_bytes(lines(self.next, self.next + count))
        self.next += count

    def append_bytes(self, data):
        with open(self.path, "ab") as file:
            file.write(data)
        self.written += data

    def beside(self, ending):
        return self.path.with_name(self.path.name + ending)

    def rename(self, ending):
        self.path.rename(self.beside(ending))

    def copy_and_empty(self, ending):
        self.beside(ending).write_bytes(self.path.read_bytes())
        os.truncate(self.path, 0)


class Writer(Log):
    """Writes lines from a thread of its own. It keeps the file open and opens what is at the path
    when that is another one, as programs do that are told of a rotation. While `still` is held, it
    writes nothing."""

    def __init__(self, path, rest_s=0.001):
        super().__init__(path)
        self.rest_s, self.still = rest_s, threading.Lock()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.write)

    def write(self):
        pieces, file = [], open(self.path, "ab", buffering=0)
        while not self.over.wait(self.rest_s):
            with self.still:
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.stat(self.path), os.fstat(file.fileno())):
                        file = self.put(file, pieces)
                        continue
                file.close()
                file = open(self.path, "ab", buffering=0)
        file.close()
        self.written = b"".join(pieces)

    def put(self, file, pieces):
        pieces.append(line(self.next))
        file.write(pieces[-1])
        self.next += 1
        return file

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def await_lines(self, count):
        until = self.next + count
        eventually(lambda: self.next >= until, f"line {until} is written")


class Follower:
    """A `granary agent`. Its folder holds `granary.yml`, `data` and `log`."""

    def __init__(self, folder, collectors, adaptors, options=(), wrap=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data, self.log_path = self.folder / "data", self.folder / "log"
        self.config = self.folder / "granary.yml"
        self.collectors = [collectors] if isinstance(collectors, str) else collectors
        self.options, self.wrap = list(options), list(wrap)
        self.process = None
        self.configure(adaptors)

    def configure(self, adaptors):
        """Adaptors by name; a path stands for a tail of it."""
        text = "adaptors:\n" if adaptors else ""
        for name, said in adaptors.items():
            said = said if isinstance(said, dict) else {"tail": said}
            text += f"  {name}:\n"
            for key, value in {"datatype": "app", **said}.items():
                value = json.dumps(value) if isinstance(value, (dict, list)) else f"'{value}'"
                text += f"    {key}: {value}\n"
        self.config.write_text(text)

    def command(self):
        return [*self.wrap, granary(), "agent", "run", "--data", str(self.data), "--config",
                str(self.config), "--agent.collectors", ",".join(self.collectors),
                "--agent.source", "host1", *self.options]

    def start(self):
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        return self

    def running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE_S) == 0, self.log_text()

    def kill(self):
        if self.running():
            self.process.kill()
        if self.process:
            self.process.wait()

    def log_text(self):
        return self.log_path.read_text(errors="replace")

    def log_tail(self, count=60):
        return "\n".join(self.log_text().splitlines()[-count:])

    def await_said(self, text):
        eventually(lambda: text in self.log_text(),
                   lambda: f"the log says {text!r}:\n{self.log_tail()}")

    def checkpoint(self):
        """What the newest checkpoint says of each path."""
        found = {}
        for which in (0, 1):
            with contextlib.suppress(OSError, ValueError):
                title, *rest = (self.data / "agent" / f"checkpoint.{which}").read_text().split("\n")
                found[int(title.split()[-3])] = [json.loads(one) for one in rest if one]
        return {one.get("path") or one["name"]: one for one in found[max(found)]
                if "datatype" in one} if found else {}

    def await_saved(self, log):
        def saved():
            return self.checkpoint().get(str(log.path), {}).get("offset") == len(log.written)
        eventually(saved, lambda: f"{log.path} is in the checkpoint: {self.checkpoint()}")


# ---- What a server holds


def incarnations(server, path):
    """Of the stream of a path, in order of their making."""
    found, token = [], None
    while True:
        answer = server.get("/api/streams", limit=1000, **({"token": token} if token else {}))
        assert answer.status == 200, answer
        found += [one for one in answer.json["streams"] if one["name"] == str(path)]
        token = answer.json.get("token")
        if not token:
            return sorted(found, key=lambda one: one["made"])


def export(server, stream):
    data, at = b"", 0
    while True:
        answer = server.get("/api/streams/export", stream=stream, **{"from": at})
        assert answer.status == 200, answer
        if not answer.body:
            return data
        data += answer.body
        at = int(answer.headers["x-granary-offset"]) + len(answer.body)


def held_bytes(server, path):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return sum(end - begin for one in incarnations(server, path)
                   for begin, end in one["held"])
    return -1


def difference(got, wanted):
    """Which lines are too few, too many, or in the wrong place."""
    got, wanted = got.splitlines(), wanted.splitlines()
    missing, more = set(wanted) - set(got), len(got) - len(set(got))
    first = next((at for at, (a, b) in enumerate(zip(got, wanted)) if a != b),
                 min(len(got), len(wanted)))
    return (f"{len(got)} lines instead of {len(wanted)}, {len(missing)} are missing such as "
            f"{sorted(missing)[:3]}, {more} are double; the first difference is at line {first}: "
            f"{got[first:first + 2]} instead of {wanted[first:first + 2]}")


def await_held(server, path, wanted, follower=None, streams=1, seconds=60):
    """Until a server holds just these bytes of a path, in so many incarnations."""
    def said():
        got = b"".join(export(server, one["stream"]) for one in incarnations(server, path))
        return difference(got, wanted) + ("\n" + follower.log_tail() if follower else "")
    def whole():
        assert not follower or follower.running(), follower.log_tail()
        return held_bytes(server, path) >= len(wanted)
    eventually(whole, said, seconds)
    found = incarnations(server, path)
    assert b"".join(export(server, one["stream"]) for one in found) == wanted, said()
    assert len(found) == streams, (found, follower and follower.log_tail())
    return found


def await_log(server, log, follower=None, **said):
    return await_held(server, log.path, log.written, follower, **said)
