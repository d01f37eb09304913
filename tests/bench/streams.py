"""What streams of logs cost: a file of lines of 200 bytes to Granary by its agent, and to a file by
two rsyslogs over TCP, in turns. Both are told of the file when all of it is there."""

import os
import random
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse

from servers import Granary, Server, free_port

MEGABYTES = 400
LINE_BYTES = 200
IDLE_FILES = 10000
SLOW_STREAMS = 1000
PACED_BYTES_S = 10_000_000
WATCHED_S = 20
PATIENCE_S = 300
SEARCHES = 5
ACCESS_LINES = 2000000
PROGRAMS = ["sshd", "kernel", "systemd", "cron", "postfix/smtpd", "nginx", "dhclient", "sudo"]
TEXTS = ["Accepted publickey for {user} from {ip} port {port} ssh2: RSA SHA256:{hex}",
         "Failed password for invalid user {user} from {ip} port {port} ssh2",
         "pam_unix(sshd:session): session opened for user {user}(uid={uid}) by (uid=0)",
         "connect from unknown[{ip}]: TLS handshake failed, error {uid} after {port} ms",
         "IN=eth0 OUT= MAC={hex} SRC={ip} DST=10.0.0.1 LEN=60 TTL=54 ID={uid} PROTO=TCP SPT={port}",
         "Started session {uid} of user {user}.",
         '{ip} - - "GET /items/{uid}?page={port} HTTP/1.1" 200 {port} "-" "curl/8.{uid}"',
         "({user}) CMD (/usr/local/bin/backup --target=/srv/{hex} --level {uid})"]
USERS = ["root", "admin", "deploy", "postgres", "www-data", "alice", "bob", "backup"]


def write_lines(path, total_bytes):
    """Lines like those of a system's log. The same every time."""
    pick = random.Random(1)
    written, second = 0, 0
    with open(path, "w", encoding="ascii") as file:
        while written < total_bytes:
            lines = []
            for _ in range(1000):
                second += pick.random() < 0.2
                address = f"192.168.{pick.randrange(8)}.{pick.randrange(256)}"
                text = pick.choice(TEXTS).format(
                    user=pick.choice(USERS), ip=address,
                    port=pick.randrange(1024, 65536), uid=pick.randrange(5000),
                    hex=f"{pick.getrandbits(64):016x}")
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1767225600 + second))
                line = (f"{stamp}.{pick.randrange(1000):03d}Z host{pick.randrange(4)} "
                        f"{pick.choice(PROGRAMS)}[{pick.randrange(32768)}]: {text}")
                # Filled up to 200 bytes, but for some that stay short.
                lines.append(line + " x" * ((LINE_BYTES - len(line)) // 2 if len(line) % 3 else 0))
            block = "\n".join(lines) + "\n"
            file.write(block)
            written += len(block)
    return written


def write_access(path, count):
    """Lines of an access log in the combined form. The same every time."""
    pick = random.Random(2)
    ms = 1767225600000
    with open(path, "w", encoding="ascii") as file:
        for _ in range(count):
            ms += pick.randrange(20)
            stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(ms // 1000))
            file.write(f'10.0.{pick.randrange(256)}.{pick.randrange(256)} - - [{stamp}] '
                       f'"{pick.choice(["GET", "GET", "GET", "POST", "HEAD"])} '
                       f'/items/{pick.randrange(10000)}?page={pick.randrange(50)} HTTP/1.1" '
                       f'{pick.choice([200, 200, 200, 304, 404, 500])} {pick.randrange(50000)} '
                       f'"https://example.org/" "Mozilla/5.0 (X11; Linux x86_64)"\n')


def command_cpu_s(*command):
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return (after.children_user - before.children_user +
            after.children_system - before.children_system)


class Agent(Server):
    """granary agent. It has no port: it is ready when its server has heard of it."""

    name = "agent"

    def __init__(self, work, server, adaptors):
        self.server, self.adaptors = server, adaptors
        super().__init__(work)

    def command(self):
        config = os.path.join(self.data, "agent.yml")
        with open(config, "w", encoding="ascii") as file:
            file.write("adaptors:\n" + self.adaptors)
        return [Granary.binary, "agent", "--config", config, "--data", self.data, "--server",
                f"http://127.0.0.1:{self.server.port}"]

    def wait_ready(self):
        pass


class Rsyslog(Server):
    """Two of them: one reads a file and sends its lines by TCP, the other writes them to a file."""

    name = "rsyslog"

    def __init__(self, work, source):
        self.source = source
        super().__init__(work)

    def start(self):
        self.written = os.path.join(self.data, "written")
        receiver = (f'module(load="imtcp")\ninput(type="imtcp" port="{self.port}" '
                    f'address="127.0.0.1")\ntemplate(name="raw" type="string" '
                    f'string="%msg:2:$%\\n")\naction(type="omfile" file="{self.written}" '
                    f'template="raw")\n')
        sender = (f'module(load="imfile" mode="inotify")\ninput(type="imfile" file="{self.source}" '
                  f'tag="x" reopenOnTruncate="on")\naction(type="omfwd" target="127.0.0.1" '
                  f'port="{self.port}" protocol="tcp")\n')
        self.pair = [self.begin("receiver", receiver)]
        time.sleep(1)  # rsyslog does not say when it listens; it would try again after 30 s
        self.pair.append(self.begin("sender", sender))
        self.process = self.pair[1]
        self.running.add(self)

    def begin(self, name, text):
        folder = os.path.join(self.data, name)
        os.mkdir(folder)
        config = os.path.join(folder, "rsyslog.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(f'global(workDirectory="{folder}")\n' + text)
        return subprocess.Popen(["rsyslogd", "-n", "-f", config, "-i",
                                 os.path.join(folder, "pid")], stdout=self.log, stderr=self.log)

    def processes(self):
        return [process.pid for process in self.pair]

    def end(self):
        for process in self.pair:
            process.terminate()
            process.wait(60)
        self.running.discard(self)
        self.log.close()

    @staticmethod
    def version():
        answer = subprocess.run(["rsyslogd", "-v"], capture_output=True, text=True, check=True)
        return re.search(r"rsyslogd\s+([\d.]+)", answer.stdout)[1]


def until(look, what):
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        if time.monotonic() > deadline:
            raise SystemExit(f"bench: after {PATIENCE_S} s {what}")
        time.sleep(0.02)


def thread_cpu_s(server, name):
    """Of the threads of that name: a server's job is one."""
    ticks, folder = 0, f"/proc/{server.process.pid}/task"
    for task in os.listdir(folder):
        with open(f"{folder}/{task}/stat", encoding="ascii") as file:
            head, fields = file.read().rsplit(")", 1)
        if head.split("(", 1)[1] == name:
            ticks += sum(int(field) for field in fields.split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


class Streams:
    def __init__(self, bench):
        self.bench = bench
        self.work = tempfile.mkdtemp(prefix="streams-", dir=bench.work)
        self.quick = bench.options.quick
        self.file = os.path.join(self.work, "lines.log")

    def note(self, key, value, peer=Granary):
        self.bench.note(peer, key, value)

    def taken(self, server):
        return server.metric("granary_chunks_taken_bytes_total")

    def through(self):
        """A file through the agent into blocks, and what is asked of it then."""
        server = Granary(self.work, ["--stream.seal_after=1s"])
        agent = Agent(self.work, server, f"  a:\n    tail: {self.file}\n    datatype: log\n")
        until(lambda: self.taken(server) >= self.bytes, "not all was delivered")
        acknowledged = agent.cpu_s() + server.cpu_s() - thread_cpu_s(server, "streams")
        self.note("file to acknowledged, MB per CPU-s", self.bytes / 1e6 / acknowledged)
        until(lambda: server.metric("granary_chunks_blocks_raw_bytes_total") >= self.bytes,
              "not all was in blocks")
        server.wait_quiet()
        self.note("file to sealed, MB per CPU-s",
                  self.bytes / 1e6 / (agent.cpu_s() + server.cpu_s()))
        self.note("stored, % of the lines", 100 * server.stats()["usedBytes"] / self.bytes)
        agent.stop()
        self.search(server)
        server.stop()

    def search(self, server):
        for word, key in (("zweiundvierzig", "rare word in 1 GB, CPU-ms"),
                          ("*zweiundvierzig*", "text that no filter excludes, GB per CPU-s")):
            path = "/api/streams/search?" + urllib.parse.urlencode({"q": word})
            before = server.cpu_s()
            for _ in range(SEARCHES):
                status, body = server.get(path)
                if status != 200 or b'"lines":[]' not in body:
                    raise SystemExit(f"bench: {path} was answered {status}: {body[:200]}")
            each = max(server.cpu_s() - before, 0.001) / SEARCHES
            gigabytes = self.bytes / 1e9
            self.note(key, 1000 * each / gigabytes if "rare" in key else gigabytes / each)

    def peer(self):
        pair = Rsyslog(self.work, self.file)
        until(lambda: os.path.exists(pair.written) and
              os.path.getsize(pair.written) >= self.bytes, "not all was delivered by rsyslog")
        self.note("file to acknowledged, MB per CPU-s", self.bytes / 1e6 / pair.cpu_s(), Rsyslog)
        pair.stop()

    def zstd(self):
        """The whole at level 9, which nobody can search."""
        answer = subprocess.run(["zstd", "-9", "-c", self.file], capture_output=True, check=True)
        self.note("stored, % of the lines", 100 * len(answer.stdout) / self.bytes, Rsyslog)

    def demux(self):
        """An access log becomes counts by method and status. awk makes these of the file, in
        whole, and not by time."""
        path, config = os.path.join(self.work, "access.log"), os.path.join(self.work, "demux.yml")
        count = ACCESS_LINES // (20 if self.quick else 1)
        write_access(path, count)
        with open(config, "w", encoding="ascii") as file:
            file.write("datatypes: {access: access}\n")
        server = Granary(self.work, [f"--config={config}"])
        agent = Agent(self.work, server, f"  a:\n    tail: {path}\n    datatype: access\n")
        until(lambda: server.metric('granary_demux_lines_total{result="read"}') >= count,
              "not all lines were read")
        self.note("access lines demuxed, M per CPU-s",
                  count / 1e6 / thread_cpu_s(server, "demux"))
        agent.stop()
        server.stop()
        program = '{gsub(/"/, "", $6); n[$6 " " $9]++; b[$6 " " $9] += $10} END {print length(n)}'
        self.note("access lines demuxed, M per CPU-s",
                  count / 1e6 / command_cpu_s("awk", program, path), Rsyslog)
        os.remove(path)

    def slow(self):
        """A line a second of each of 1,000 files."""
        folder = os.path.join(self.work, "slow")
        os.mkdir(folder)
        files = [open(f"{folder}/{number}.log", "w", encoding="ascii")
                 for number in range(SLOW_STREAMS)]
        server = Granary(self.work)
        agent = Agent(self.work, server, f"  a:\n    directory: {folder}\n    datatype: log\n")
        for second in range(WATCHED_S + 5):
            begun = time.monotonic()
            if second == 5:
                before = server.cpu_s()
            for number, file in enumerate(files):
                file.write(f"2026-01-01T00:00:{second:02d}Z line of {number}\n")
                file.flush()
            time.sleep(max(begun + 1 - time.monotonic(), 0))
        self.note("server with 1,000 streams of a line a second, % of a core",
                  100 * (server.cpu_s() - before) / WATCHED_S)
        agent.stop()
        server.stop()
        for file in files:
            file.close()
        shutil.rmtree(folder)

    def paced(self):
        """The agent while a file grows by 10 MB a second."""
        path = os.path.join(self.work, "paced.log")
        with open(self.file, "rb") as lines, open(path, "wb") as file:
            server = Granary(self.work)
            agent = Agent(self.work, server, f"  a:\n    tail: {path}\n    datatype: log\n")
            time.sleep(1)
            before, begun = agent.cpu_s(), time.monotonic()
            for step in range(10 * WATCHED_S // 2):
                file.write(lines.read(PACED_BYTES_S // 10))
                file.flush()
                time.sleep(max(begun + (step + 1) / 10 - time.monotonic(), 0))
            self.note("agent at 10 MB/s, % of a core",
                      100 * (agent.cpu_s() - before) / (time.monotonic() - begun))
            agent.stop()
            server.stop()

    def idle(self):
        folder = os.path.join(self.work, "idle")
        os.mkdir(folder)
        for number in range(IDLE_FILES):
            with open(f"{folder}/{number}.log", "w", encoding="ascii") as file:
                file.write(f"2026-01-01T00:00:00Z line of {number}\n")
        server = Granary(self.work, ["--stream.streams_max=20000", "--stream.new_per_minute=20000"])
        agent = Agent(self.work, server, f"  a:\n    directory: {folder}\n    datatype: log\n")
        until(lambda: server.metric('granary_chunks_total{result="taken"}') >= IDLE_FILES,
              "not all files were delivered")
        agent.wait_quiet()
        before = agent.cpu_s()
        time.sleep(WATCHED_S)
        self.note("agent with 10,000 idle files, % of a core",
                  100 * (agent.cpu_s() - before) / WATCHED_S)
        self.note("memory for that", agent.anon_bytes())
        agent.stop()
        server.stop()
        shutil.rmtree(folder)

    def run(self):
        self.bytes = write_lines(self.file, MEGABYTES * 1000000 // (20 if self.quick else 1))
        for round_ in range(self.bench.options.rounds):
            print(f"streams, round {round_ + 1} of {self.bench.options.rounds}")
            self.through()
            self.peer()
        self.zstd()
        self.demux()
        self.slow()
        self.paced()
        self.idle()
        shutil.rmtree(self.work)
