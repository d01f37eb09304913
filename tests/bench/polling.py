"""What counters cost: an agent that answers canned packets is polled by the whole server and, in
turns, by net-snmp's client; rates by themselves; the API of the network engineer.

`fleet` is the real thing: 10,000 devices, 48 interfaces of each, 10 counters of each, every 30 s.
`polling` is a model of it: a twentieth of the devices, with a twentieth of the store's limits, and
thirty times as fast: what happens every 30 s, 5 min, hour and day happens every 1 s, 10 s, 2 min
and 48 min there, so that a minute has the work of half an hour, sealing included."""

import json
import os
import random
import shutil
import subprocess
import sys
import time

from servers import TICKS_PER_SECOND, Granary, Server

COUNTERS = ["ifHCInOctets", "ifHCOutOctets", "ifHCInUcastPkts", "ifHCOutUcastPkts",
            "ifHCInMulticastPkts", "ifHCOutMulticastPkts", "ifHCInBroadcastPkts",
            "ifHCOutBroadcastPkts", "ifInErrors", "ifOutErrors"]
ROWS = 48
OBJECTS = ROWS * len(COUNTERS)  # of one device
# Stored beside them: the interfaces' ifCounterDiscontinuityTime and sysUpTime. Not counted as
# objects, though they are polled, parsed and stored like these.
VALUES = OBJECTS + ROWS + 1
DAY_S, STEP_S = 86400, 30
FLEET_DEVICES = 10000

# What must not happen while it is measured: nothing of it leaves the objects as many as they were.
LOSSES = ["granary_persist_refused_total", "granary_poll_dropped_total", "granary_polls_total",
          "granary_poll_slots_left_out_total", "granary_persist_rates_failed_total",
          "granary_poll_refused_total"]


class NetSnmp:
    """The peer: its client alone, nothing parsed is kept."""

    name = "net-snmp"

    @staticmethod
    def version():
        answer = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libsnmp-dev"],
                                capture_output=True, text=True)
        return answer.stdout.strip() or "unknown"


class Agent:
    """Answers on every address of 127.0.0.0/8: each is a device. Ends with its standard input."""

    def __init__(self, bench):
        command = os.path.join(bench.options.build, "tests", "bench", "canned_agent")
        self.process = subprocess.Popen([command, "--rows", str(ROWS)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.port = json.loads(self.process.stdout.readline())["port"]

    def address(self, number):
        return f"127.{1 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}:{self.port}"

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Poller(Granary):
    """A server with one OIDSet of ours."""

    def __init__(self, work, frequency, aggregates, derive_every, *options):
        oidsets = os.path.join(work, "oidsets.yml")
        with open(oidsets, "w") as file:
            file.write(f"oidsets:\n  Bench:\n    frequency: {frequency}\n    correlator: IfName\n"
                       f"    aggregates: [{aggregates}]\n    oids: [{', '.join(COUNTERS)}]\n")
        super().__init__(work, [f"--snmp.oidset_files={oidsets}",
                                f"--persist.derive_every={derive_every}", *options])

    def add(self, addresses, **more):
        devices = [{"name": f"router-{i}", "address": address, "credentials": "public",
                    "oidsets": ["Bench"], **more} for i, address in enumerate(addresses)]
        for begin in range(0, len(devices), 500):
            self.post("/api/devices", json.dumps(devices[begin:begin + 500]), "application/json")

    def threads(self):
        """CPU seconds by the name of the thread: who spends them."""
        spent = {}
        folder = f"/proc/{self.process.pid}/task"
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/stat") as file:
                name, fields = file.read().split("(", 1)[1].rsplit(")", 1)
            fields = fields.split()
            spent[name] = spent.get(name, 0) + (int(fields[11]) + int(fields[12])) \
                / TICKS_PER_SECOND
        return spent


class Window:
    """What a server did between two moments."""

    def __init__(self, server):
        self.server = server
        self.cpu_s, self.wall_s = server.cpu_s(), time.monotonic()
        self.before, self.threads = server.metrics(), server.threads()

    def end(self):
        self.cpu_s = self.server.cpu_s() - self.cpu_s
        self.wall_s = time.monotonic() - self.wall_s
        after = self.server.metrics()
        self.grown = {key: value - self.before.get(key, 0) for key, value in after.items()}
        self.objects = self.grown["granary_persist_values_total"] * OBJECTS / VALUES
        now = self.server.threads()
        self.threads = {name: s - self.threads.get(name, 0) for name, s in now.items()}

    def check(self, bench, name):
        """Losses are told, and rates must have been made of what was stored: some more or less,
        since they are made every tenth poll."""
        lost = {key: int(value) for key, value in self.grown.items()
                if value and key.split("{")[0] in LOSSES and 'result="ok"' not in key}
        if lost:
            print(f"  lost or left out: {lost}", flush=True)
        bins = self.grown["granary_rate_rows_total"]
        bench.note(Granary, name + ", bins made of them, %", 100 * bins / self.objects)
        if bins < 0.3 * self.objects:
            sys.exit("bench: this was not the whole path")

    def shares(self):
        busy = sorted(self.threads.items(), key=lambda item: -item[1])
        return ", ".join(f"{name} {100 * s / self.cpu_s:.0f} %" for name, s in busy
                         if s > 0.02 * self.cpu_s)


class Polling:
    def __init__(self, bench):
        self.bench = bench
        self.quick = bench.options.quick
        self.agent = Agent(bench)
        bench.found.setdefault(NetSnmp.name, {})

    def tool(self, name, *arguments):
        environment = {**os.environ, "SNMP_PERSISTENT_DIR": self.bench.work}
        answer = self.bench.tool(name, *arguments, stdout=subprocess.PIPE, env=environment)
        return json.loads(answer.stdout.splitlines()[-1])

    # ---- objects -------------------------------------------------------------------------------

    def clients(self):
        """Polling alone: both clients ask 64 devices as fast as they can."""
        seconds = 2 if self.quick else 5
        theirs = self.tool("netsnmp_bench", "--port", self.agent.port, "--seconds", seconds)
        ours = self.tool("snmp_bench", "--port", self.agent.port, "--seconds", seconds)
        key = "varbinds per CPU-s"
        self.bench.note(NetSnmp, key, theirs[key])
        self.bench.note(Granary, key, ours[key])
        self.bench.note(NetSnmp, "objects per CPU-s", theirs[key])

    def objects(self):
        """From the packet to bins in the store."""
        devices, warm_s, seconds = (500, 15, 20) if self.quick else (500, 30, 60)
        scale = FLEET_DEVICES // devices
        server = Poller(self.bench.work, "1s", "2m, 48m", "10s",
                        f"--store.journal_max={(512 << 10) // scale}K",
                        f"--store.head_max={(512 << 10) // scale}K")
        server.add(map(self.agent.address, range(devices)))
        time.sleep(warm_s)
        window = Window(server)
        time.sleep(seconds)
        window.end()
        window.check(self.bench, "objects")
        self.bench.note(Granary, "objects per CPU-s", window.objects / window.cpu_s)
        print(f"  by thread: {window.shares()}", flush=True)
        server.stop()

    # ---- rates ---------------------------------------------------------------------------------

    def rates(self):
        folder = os.path.join(self.bench.work, "rates")
        os.mkdir(folder)
        found = self.tool("rate_bench", "--polls", 100 if self.quick else 400, "--data", folder)
        shutil.rmtree(folder)
        self.bench.note(Granary, "rates per CPU-s", found["jobs_per_cpu_s"])
        self.bench.note(Granary, "rates per CPU-s, settled",
                        found["rates"] / (found["jobs_cpu_s"] + found["settle_cpu_s_of_all"]))

    # ---- /v2 -----------------------------------------------------------------------------------

    def send_polls(self, server, devices, polls, begin_s):
        """Polls as a poller would have sent them, from `begin_s` on."""
        command = [os.path.join(self.bench.options.build, "tests", "bench", "persist_bench"),
                   "--devices", str(devices), "--rows", str(ROWS), "--polls", str(polls),
                   "--begin", str(begin_s), "--messages"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as made:
            body = bytearray()
            while header := made.stdout.read(4):
                body += header + made.stdout.read(int.from_bytes(header, "little"))
                if len(body) > 4 << 20:
                    server.post("/api/polls", bytes(body), "application/octet-stream")
                    body.clear()
            server.post("/api/polls", bytes(body), "application/octet-stream")

    def wait_rates(self, server, samples):
        """Until bins were made of so many samples."""
        deadline = time.monotonic() + 300
        while server.metrics()["granary_rate_rows_total"] < samples:
            if time.monotonic() > deadline:
                sys.exit(f"bench: no rates of {samples} samples after 300 s")
            time.sleep(0.5)
        server.wait_quiet()

    def v2(self):
        """One interface, 24 h of 30 s rates, asked by one client."""
        devices, polls = 2, DAY_S // STEP_S + 20
        begin_s = int(time.time()) // STEP_S * STEP_S - polls * STEP_S
        server = Poller(self.bench.work, "30s", "1h, 1d", "1s")
        server.add(["127.0.0.1:9"] * devices, active=False, begin=begin_s - DAY_S)
        self.send_polls(server, devices, polls, begin_s)
        self.wait_rates(server, devices * OBJECTS * (polls - 2))
        pick = random.Random(7)
        paths = [self.v2_path(pick, devices, begin_s + 5 * STEP_S) for _ in range(200)]
        for path in paths[:3]:
            self.check_v2(server, path)
        for _ in range(5):
            found = self.bench.ask(server, paths, 200 if self.quick else 1000)
            self.bench.note(Granary, "24 h by /v2, p50 ms", found["p50_ms"])
        server.stop()

    @staticmethod
    def v2_path(pick, devices, begin_s):
        row = pick.randrange(ROWS)
        return (f"/v2/device/router-{pick.randrange(devices)}/interface/"
                f"xe-0@2F{row // 24}@2F{row % 24}/{pick.choice(['in', 'out'])}"
                f"?begin={begin_s}&end={begin_s + DAY_S - STEP_S}")

    @staticmethod
    def check_v2(server, path):
        status, body = server.get(path)
        data = json.loads(body)["data"] if status == 200 else []
        if len(data) != DAY_S // STEP_S or any(not point["val"] for point in data):
            sys.exit(f"bench: not the day that was asked for: {status} {body[:300]}")

    # ---- the fleet -----------------------------------------------------------------------------

    def fleet(self):
        devices, warm_s, seconds = (1000, 75, 60) if self.quick else (FLEET_DEVICES, 400, 300)
        derive = "30s" if self.quick else "5m"
        server = Poller(self.bench.work, "30s", "1h, 1d", derive)
        server.add(map(self.agent.address, range(devices)))
        time.sleep(warm_s)
        window = Window(server)
        time.sleep(seconds)
        window.end()
        asked = devices * OBJECTS * seconds / STEP_S
        if abs(window.objects - asked) > 0.02 * asked:
            print(f"  {window.objects:.0f} of {asked:.0f} objects were stored", flush=True)
        note = self.bench.note
        note(Granary, "fleet, share of a core, %", 100 * window.cpu_s / window.wall_s)
        note(Granary, "fleet, memory", server.anon_bytes())
        note(Granary, "fleet, objects per CPU-s", window.objects / window.cpu_s)
        print(f"  by thread: {window.shares()}", flush=True)
        window.check(self.bench, "fleet")
        server.stop()

    def run(self, parts):
        try:
            if "polling" in parts:
                for _ in range(self.bench.options.rounds):
                    print("polling, round by round")
                    self.clients()
                    self.objects()
                    self.rates()
                self.v2()
            if "fleet" in parts:
                print("the fleet")
                self.fleet()
        finally:
            self.agent.stop()
            for server in list(Server.running):
                server.stop()
