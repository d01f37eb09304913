"""`granary poll` under test."""

import contextlib
import http.client
import http.server
import pathlib
import re
import signal
import subprocess
import threading

from server import PATIENCE_S, Server, check_turns, eventually, granary

SECRETS = "lab: {version: 2c, community: public}\n"
# Every second: two columns of each interface; what interfaces there are.
FAST = """
    frequency: 1s
    correlator: IfName
    oids: [sysUpTime, ifHCInOctets, ifHCOutOctets]
"""
OIDSETS = f"""
oidsets:
  Fast: {FAST}
  Refs: {{frequency: 1s, kind: interfaces, oids: [ifName, ifDescr, ifMtu]}}
"""


def wait_for(look):
    """As eventually, of one who may not be there yet."""
    def there():
        with contextlib.suppress(OSError):
            return look()
    return eventually(there, look)


class RemotePoller:
    """Its folder holds `spool`, `secrets.yml` and `log`."""

    def __init__(self, folder, url, name="site", options=()):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.url, self.name, self.options = url, name, list(options)
        self.secrets = self.folder / "secrets.yml"
        self.secrets.write_text(SECRETS)
        self.secrets.chmod(0o600)
        self.log_path = self.folder / "log"
        self.process = None

    def command(self):
        return list(map(str, [granary(), "poll", "--server", self.url, "--name", self.name,
                              "--data", self.folder / "spool", "--listen", "127.0.0.1:0",
                              "--snmp.secrets_file", self.secrets, *self.options]))

    def start(self):
        begun = self.log_path.stat().st_size if self.log_path.exists() else 0
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

        def ready():
            assert self.process.poll() is None, self.log_text()
            return re.search(r"status at (http://127.0.0.1:(\d+))/", self.log_text()[begun:])
        found = wait_for(ready)
        # What talks to a server talks to the status page, too.
        self.status = Server(self.folder / "status")
        self.status.port = int(found.group(2))
        return self

    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.running():
            self.process.kill()
        if self.process is not None:
            self.process.wait()
            self.status.close()
        check_turns(self.log_text())

    def stop(self):
        """By TERM; everything but a clean exit is a failure."""
        self.status.close()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE_S)
        assert status == 0, f"stopped with {status}:\n{self.log_text()}"
        check_turns(self.log_text())

    def log_text(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    log_tail = log_text

    def spool(self):
        return self.status.get("/api/queues").json["queues"][0]


class Line:
    """Stands between a poller and its server, and remembers each request with what the poller was
    told of it. `rule(method, path, body)` may say what happens instead of passing it on: a tuple
    of status and body (and headers), "cut" (nothing comes back, and nothing is passed on), "lose"
    (it is passed on, the answer is lost), "hang" (nothing happens until the end)."""

    def __init__(self, target_port):
        self.target_port, self.rule = target_port, lambda method, path, body: None
        self.seen = []  # [method, path, body, status told or None]
        self.ended = threading.Event()
        line = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def handle_one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                line.serve(self, body)

            do_GET = do_POST = handle_one

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def forward(self, handler, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.target_port, timeout=60)
        try:
            headers = {name: value for name, value in handler.headers.items()
                       if name not in ("Host", "Connection")}
            connection.request(handler.command, handler.path, body or None, headers)
            answer = connection.getresponse()
            kept = {name: value for name, value in answer.headers.items()
                    if name in ("ETag", "Retry-After", "Content-Type")}
            return answer.status, answer.read(), kept
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def serve(self, handler, body):
        rule = self.rule(handler.command, handler.path, body)
        request = [handler.command, handler.path, body, None]
        self.seen.append(request)
        answer = None
        if rule == "hang":
            self.ended.wait()
        elif rule != "cut":
            answer = (*rule, {})[:3] if isinstance(rule, tuple) else self.forward(handler, body)
        if answer is None or rule == "lose":
            handler.close_connection = True
            return
        status, text, headers = answer
        request[3] = status  # before it is told
        with contextlib.suppress(OSError):
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            if status not in (204, 304):
                handler.send_header("Content-Length", str(len(text)))
            handler.end_headers()
            handler.wfile.write(b"" if status in (204, 304) else text)

    def stop(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()

    def polls(self, told=None):
        """Bodies of polls, of those with that answer."""
        return [body for method, path, body, status in self.seen
                if (method, path) == ("POST", "/api/polls") and told in (None, status)]
