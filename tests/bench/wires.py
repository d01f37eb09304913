"""TLS beside no TLS, of the same server: what it takes in and answers for a CPU-second, and how
long a write takes while others only begin handshakes."""

import os
import random
import socket
import ssl
import subprocess
import threading

from servers import FIELDS, START_S, Granary, free_port

ROUNDS = 5
FLOODERS = 4


class GranaryTls(Granary):
    def command(self):
        self.tls_port = free_port()
        certificate, key = (os.path.join(self.data, "..", name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=bench",
                        "-keyout", key, "-out", certificate], check=True,
                       stderr=subprocess.DEVNULL)
        os.chmod(key, 0o600)
        listen = f"127.0.0.1:{self.port},tls:127.0.0.1:{self.tls_port}"
        return [self.binary, "serve", "--listen", listen, "--tls.certificate_file", certificate,
                "--tls.key_file", key, "--data", self.data, "--host.enabled=false", *self.options]


def client_hello():
    """The first flight of a client: all that it costs one to have the server sign."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    out = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), out)
    try:
        connection.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


class Flood:
    """Clients that send their first flight, wait for the answer, and go."""

    def __init__(self, port):
        self.port, self.hello, self.ends, self.count = port, client_hello(), False, 0
        self.threads = [threading.Thread(target=self.run) for _ in range(FLOODERS)]

    def run(self):
        while not self.ends:
            with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
                connection.sendall(self.hello)
                connection.recv(1)
                self.count += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        for thread in self.threads:
            thread.join()


class Wires:
    """`bench` runs the tools and takes what they find."""

    def __init__(self, bench):
        self.bench = bench

    def run(self, path, hosts):
        for _ in range(self.bench.options.rounds):
            plain, server = self.ingest(path, [])
            server.stop()
            tls, server = self.ingest(path, ["--tls"])
            self.bench.note(Granary, "ingest over TLS, % of plain", 100 * tls / plain)
            self.queries(server, hosts)
            self.flood(server, path)
            server.stop()

    def ingest(self, path, tls):
        server = GranaryTls(self.bench.work)
        before = server.cpu_s()
        found = self.load(server, path, *tls)
        server.wait_quiet()
        return found["samples"] / (server.cpu_s() - before), server

    def load(self, server, path, *more):
        port = server.tls_port if "--tls" in more else server.port
        return self.bench.found_by("loader", "--port", port, *more, path)

    def queries(self, server, hosts):
        server.wait_quiet()
        pick = random.Random(7)
        paths = "\n".join(server.one_series(pick.randrange(hosts), pick.choice(FIELDS), START_S,
                                            START_S + 3600) for _ in range(1000)).encode()
        for _ in range(ROUNDS):
            rates = []
            for port, more in ((server.port, []), (server.tls_port, ["--tls"])):
                before = server.cpu_s()
                self.bench.found_by("querier", "--port", port, "--count", 20000, "--connections",
                                    8, *more, input=paths)
                rates.append(20000 / (server.cpu_s() - before))
            self.bench.note(Granary, "queries over TLS, % of plain", 100 * rates[1] / rates[0])

    def flood(self, server, path):
        """The same lines again, which are known by now, a thousand a request."""
        few = ["--connections", 1, "--rows", 1000]
        for _ in range(ROUNDS):
            without = self.load(server, path, *few)["p99_ms"]
            with Flood(server.tls_port) as flood:
                beside = self.load(server, path, *few)
            self.bench.note(Granary, "p99 of writes beside handshakes, x",
                            beside["p99_ms"] / without)
            self.bench.note(Granary, "handshakes begun per s", flood.count / beside["seconds"])
