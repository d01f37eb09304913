"""What streams of logs cost: a file of lines of 200 bytes to Granary by its agent, and to a file by
two rsyslogs over TCP, in turns. Both are told of the file when all of it is there."""

import http.client
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse

from servers import Granary, Server, free_port

MEGABYTES = 400
IDLE_FILES = 10000
SLOW_STREAMS = 1000
PACED_BYTES_S = 10_000_000
WATCHED_S, SEEN_S = 20, 10
PATIENCE_S = 300
SEARCHES = 5
LOOK_EVERY_S = 0.2  # what the server does to answer counts as its own
ACCESS_LINES = 2000000
USERS = ["root", "admin", "deploy", "postgres", "www-data", "alice", "bob", "backup"]
# What is said of one connection, message or run, line by line.
SCRIPTS = [
    ['sshd[{pid}]: Connection from {ip} port {port} on 10.0.0.1 port 22 rdomain ""; {few} of 200 '
     'connections are open, limit of unauthenticated ones not reached',
     'sshd[{pid}]: Failed password for invalid user {user} from {ip} port {port} ssh2; attempt {n} '
     'of 6 from this address, the next one is answered after a delay of {n} s',
     'sshd[{pid}]: Received disconnect from {ip} port {port}:11: Bye Bye [preauth]; connection of '
     'user {user} was closed by the peer before the end of the exchange of keys'],
    ['sshd[{pid}]: Accepted publickey for {user} from {ip} port {port} ssh2: ED25519 SHA256:{key}, '
     'certificate authority none, forwarding of agent and X11 is not permitted',
     'sshd[{pid}]: pam_unix(sshd:session): session opened for user {user}(uid={uid}) by (uid=0), '
     'terminal ssh, remote host {ip}, service sshd, environment was read from /etc/environment',
     'systemd-logind[612]: New session {session} of user {user}: seat none, remote host {ip}, '
     'class user, type tty, leader {pid}, runtime directory /run/user/{uid} is mounted',
     'systemd[1]: Started session-{session}.scope - Session {session} of User {user}: slice '
     'user-{uid}.slice, control group is ready, no dependency has failed, result done',
     'sshd[{pid}]: pam_unix(sshd:session): session closed for user {user}: it was open for {ms} s, '
     'disconnected by {ip} port {port}, all processes of the session have ended'],
    ['postfix/smtpd[{pid}]: connect from mail-{uid}.example.org[{ip}]: name and address agree, TLS '
     'connection established, TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits)',
     'postfix/cleanup[{pid}]: {queue}: message-id=<{queue}.{session}@mail-{uid}.example.org>, '
     'client mail-{uid}.example.org[{ip}], no header was rewritten, no milter has refused it',
     'postfix/qmgr[914]: {queue}: from=<{user}@mail-{uid}.example.org>, size={ms}, nrcpt=1 (queue '
     'active), priority is the ordinary one, the destination has {few} messages in its queue',
     'postfix/local[{pid}]: {queue}: to=<{user}@example.org>, relay=local, delay=0.{n}, '
     'delays=0.{n}/0/0/0, dsn=2.0.0, status=sent (delivered to maildir /srv/mail/{user}/new)',
     'postfix/qmgr[914]: {queue}: removed; the message was in the queue for less than a second, no '
     'warning was sent to <{user}@mail-{uid}.example.org>, and nothing is to be tried again'],
    ['CRON[{pid}]: ({user}) CMD (/usr/local/bin/backup --target=/srv/backup/{user} --level {n} '
     '--exclude-from=/etc/backup.exclude --quiet >> /var/log/backup-{user}.log 2>&1)',
     'kernel: [{session}.{ms}] IN=eth0 OUT= MAC=52:54:00:12:34:56:52:54:00:ab:cd:ef:08:00 '
     'SRC={ip} DST=10.0.0.1 LEN=60 TOS=0x00 PREC=0x00 TTL=54 ID={port} DF PROTO=TCP SPT={port} '
     'DPT=22 WINDOW=64240 SYN',
     'nginx[{pid}]: {ip} - {user} "GET /items/{uid}?page={n} HTTP/1.1" 200 {ms} '
     '"https://www.example.org/items" "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 '
     'Firefox/128.0" 0.0{n}'],
]


class SystemLog:
    """Lines like those of a system's log, of 200 bytes, the same every time. They have 190,000
    words a MB, and `zstd -9` packs them to a 11th; sixteen public logs (loghub's) have 125,000 to
    211,000, and are packed to a 12th together."""

    def __init__(self):
        self.pick = random.Random(1)
        self.addresses = [f"192.168.{self.pick.randrange(8)}.{self.pick.randrange(256)}"
                          for _ in range(500)]
        self.keys = [f"{self.pick.getrandbits(64):016x}" for _ in range(20)]
        self.second, self.pid, self.session, self.at = 0, 1000, 0, 0
        self.told = [self.another() for _ in range(30)]

    def another(self):
        pick = self.pick
        self.pid = 1000 + (self.pid - 999 + pick.randrange(4)) % 31000
        self.session += 1
        facts = {"pid": self.pid, "session": self.session, "user": pick.choice(USERS),
                 "ip": self.addresses[int(len(self.addresses) * pick.random() ** 3)],
                 "port": pick.randrange(32768, 61000), "uid": 1000 + pick.randrange(50),
                 "n": pick.randrange(1, 6), "few": pick.randrange(40),
                 "ms": pick.randrange(1, 5000), "key": pick.choice(self.keys),
                 "queue": f"4{self.second:05X}{pick.getrandbits(20):05X}"}
        host = pick.randrange(4)
        return iter([f"host{host} {text.format(**facts)}\n" for text in pick.choice(SCRIPTS)])

    def line(self):
        self.second += self.pick.random() < 0.2
        if self.pick.random() < 0.5:
            self.at = self.pick.randrange(len(self.told))
        text = next(self.told[self.at], None)
        if text is None:
            self.told[self.at] = self.another()
            text = next(self.told[self.at])
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1767225600 + self.second))
        return f"{stamp}.{self.pick.randrange(1000):03d}Z {text}"


def write_lines(path, total_bytes):
    log, written = SystemLog(), 0
    with open(path, "w", encoding="ascii") as file:
        while written < total_bytes:
            block = "".join(log.line() for _ in range(1000))
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
        time.sleep(LOOK_EVERY_S)


def thread_cpu_s(server, name):
    """Of the threads of that name: a server's job is one."""
    ticks, folder = 0, f"/proc/{server.process.pid}/task"
    for task in os.listdir(folder):
        with open(f"{folder}/{task}/stat", encoding="ascii") as file:
            head, fields = file.read().rsplit(")", 1)
        if head.split("(", 1)[1] == name:
            ticks += sum(int(field) for field in fields.split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def write_slowly(files, seconds):
    """A line a second to each. It says when it is written."""
    for _ in range(seconds):
        begun = time.monotonic()
        for number, file in enumerate(files):
            file.write(f"line of {number}, written at {time.monotonic_ns()}\n")
            file.flush()
        time.sleep(max(begun + 1 - time.monotonic(), 0))


def read_tail(answer, count, took):
    """How many ms each of so many lines took."""
    for line in answer:
        if written := re.search(rb"written at (\d+)", line):
            took.append((time.monotonic_ns() - int(written[1])) / 1e6)
            if len(took) == count:
                break


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
        write_slowly(files, 5)
        before = server.cpu_s()
        write_slowly(files, WATCHED_S)
        self.note("server with 1,000 streams of a line a second, % of a core",
                  100 * (server.cpu_s() - before) / WATCHED_S)
        self.tail(server, files)
        agent.stop()
        server.stop()
        for file in files:
            file.close()
        shutil.rmtree(folder)

    def tail(self, server, files):
        """From when a line is written to when a reader of all lines has it."""
        took = []
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        connection.request("GET", "/api/streams/tail")
        answer = connection.getresponse()
        viewer = threading.Thread(target=read_tail, args=(answer, SEEN_S * len(files), took))
        viewer.start()
        write_slowly(files, SEEN_S)
        viewer.join()
        connection.close()
        took.sort()
        self.note("written to seen, p50 ms", took[len(took) // 2])
        self.note("written to seen, p99 ms", took[len(took) * 99 // 100])

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
