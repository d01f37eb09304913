"""Backups beside cp of the same data file, and what a load loses while they are taken."""

import os
import random
import struct
import subprocess
import threading
import time

from servers import Granary

CHUNK_BYTES = 1 << 20
DROP_CACHES = "/proc/sys/vm/drop_caches"


def chunk(number, data):
    """One chunk of a stream as Chukwa's agents send it; nothing packs it."""
    text = [value.encode() for value in ("host", ' cluster="c"', "/noise", "log", "")]
    body = struct.pack(">iiq", 1, 1, (number + 1) * len(data))
    body += b"".join(struct.pack(">H", len(value)) + value for value in text)
    return body + struct.pack(">ii", 1, len(data) - 1) + data


class Backups:
    """`note` takes (key, value) of Granary."""

    def __init__(self, work, note):
        self.work, self.note = work, note
        self.file = os.path.join(work, "backup")

    def fill(self, server, megabytes):
        noise = random.Random(1)
        for number in range(megabytes):
            body = chunk(number, noise.randbytes(CHUNK_BYTES))
            status, body = server.get("/chukwa", "POST", body)
            assert status == 200, body
        server.wait_quiet()

    def seconds(self, command):
        begun = time.monotonic()
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        taken = time.monotonic() - begun
        os.unlink(self.file)
        subprocess.run(["sync"], check=True)
        return taken

    def cold(self, server):
        """What is not in memory cannot be, of a server that has just been started."""
        server.end()
        server.log = open(server.log.name, "a")
        subprocess.run(["sync"], check=True)
        with open(DROP_CACHES, "w") as file:
            file.write("3")
        server.start()

    def copies(self, megabytes):
        """Each synced, as a backup is. The cold ones need root."""
        server = Granary(self.work)
        self.fill(server, megabytes)
        data = os.path.join(server.data, "data.mdb")
        cp = ["sh", "-c", 'cp "$1" "$2" && sync "$2"', "sh", data, self.file]
        url = f"http://127.0.0.1:{server.port}"
        backup = [Granary.binary, "backup", "--server", url, self.file]
        for name in ["warm", "cold"] if os.access(DROP_CACHES, os.W_OK) else ["warm"]:
            seconds = []
            for command in cp, backup:
                if name == "cold":
                    self.cold(server)
                else:
                    subprocess.run(["cat", data], check=True, stdout=subprocess.DEVNULL)
                seconds.append(self.seconds(command))
            self.note(f"backup, {name}, MB/s", os.path.getsize(data) / 1e6 / seconds[1])
            self.note(f"backup, {name}, % of cp", 100 * seconds[0] / seconds[1])
        server.stop()

    def beside_load(self, megabytes, load):
        """`load` gives the samples a second of one load; backups are taken all the while."""
        rates = []
        for with_backups in False, True:
            server = Granary(self.work)
            self.fill(server, megabytes)
            is_over = threading.Event()

            def take(server=server, is_over=is_over):
                while not is_over.is_set():
                    subprocess.run([Granary.binary, "backup", "--server",
                                    f"http://127.0.0.1:{server.port}", "-"], check=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            taker = threading.Thread(target=take)
            if with_backups:
                taker.start()
            rates.append(load(server))
            is_over.set()
            if with_backups:
                taker.join()
            server.stop()
        self.note("ingest during backups, % of without", 100 * rates[1] / rates[0])
