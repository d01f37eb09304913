"""The poller against real agents: Debian's snmpd, which tells of this machine's own interfaces;
snmpsim for the tables of vendors that nobody has here; and a proxy between the two that does harm,
while the other devices are to notice nothing."""

import collections
import contextlib
import csv
import os
import pathlib
import shutil
import socket
import subprocess

import pytest

from server import PATIENCE_S, eventually, run, tool
from snmp_agent import Proxy, free_udp_port, have_snmpd

# Two columns of each interface, every second.
OIDSETS = """
oidsets:
  Fast:
    frequency: 1s
    correlator: IfName
    oids: [sysUpTime, ifHCInOctets, ifHCOutOctets]
"""

needs_snmpd = pytest.mark.skipif(not have_snmpd(), reason="snmpd is not installed")
needs_snmpsim = pytest.mark.skipif(not shutil.which("snmpsimd"), reason="snmpsim is not installed")


# ---- this machine's interfaces ------------------------------------------------------------------


def proc_net_dev():
    """name -> (received octets, sent octets)"""
    counters = {}
    for line in pathlib.Path("/proc/net/dev").read_text().splitlines()[2:]:
        name, rest = line.split(":")
        fields = rest.split()
        counters[name.strip()] = int(fields[0]), int(fields[8])
    return counters


def poll_once(address, oidset, *options):
    answer = run("snmp", "poll-once", address, oidset, *options)
    assert answer.returncode == 0, answer
    return list(csv.DictReader(answer.stdout.splitlines()))


def values_of(rows, oid):
    return {row["path"]: row["value"] for row in rows if row["oid"] == oid}


@needs_snmpd
def test_interfaces_are_those_of_this_machine(agent):
    before = proc_net_dev()
    rows = poll_once(agent.address, "IfXTable")
    after = proc_net_dev()
    names = set(values_of(rows, "ifHCInOctets"))
    # Others may add and remove interfaces meanwhile.
    assert set(before) & set(after) <= names
    assert names <= set(before) | set(after)
    assert {row["path"] for row in rows if row["oid"] == "sysUpTime"} == {""}
    refs = poll_once(agent.address, "IfRefPoll")
    assert set(values_of(refs, "ifName").values()) >= set(before) & set(after)
    assert values_of(refs, "ifDescr")["1"] == "lo"


@pytest.fixture
def veth():
    """Two ends of a wire; nothing but the test sends there."""
    ends = f"gp{os.getpid() % 10000}a", f"gp{os.getpid() % 10000}b"
    made = subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]],
                          capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("interfaces cannot be made here: " + made.stderr.decode().strip())
    try:
        for end in ends:
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1")
            subprocess.run(["ip", "link", "set", end, "up"], check=True)
        yield ends
    finally:
        subprocess.run(["ip", "link", "delete", ends[0]], check=False)


def send_frames(interface, count, size):
    """Ethernet frames of a type that is nobody's."""
    frame = b"\xff" * 6 + b"\x02\0\0\0\0\1" + b"\x88\xb5"
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((interface, 0))
        for _ in range(count):
            sock.send(frame + bytes(size - len(frame)))


def octets_of(agent, names):
    """(received, sent) by name as polled; None for those that the agent does not know yet."""
    rows = poll_once(agent.address, "FastPollHC")
    received, sent = values_of(rows, "ifHCInOctets"), values_of(rows, "ifHCOutOctets")
    return [(int(received[n]), int(sent[n])) if n in received else None for n in names]


def wait_until_polled(agent, names):
    """snmpd looks at the interfaces every few seconds; until it has seen what /proc says."""
    def there():
        now = proc_net_dev()
        return [now[name] for name in names]

    def equal():
        said, polled = there(), octets_of(agent, names)
        return polled if polled == said else None
    return eventually(equal, lambda: f"{octets_of(agent, names)}, /proc/net/dev says {there()}")


@needs_snmpd
def test_octets_grow_as_traffic_does(agent, veth):
    before = wait_until_polled(agent, veth)
    send_frames(veth[0], 2000, 1000)
    after = wait_until_polled(agent, veth)
    # What one end sends, the other receives; the test sent two million octets, and perhaps the
    # kernel a word of its own.
    sent, received = after[0][1] - before[0][1], after[1][0] - before[1][0]
    assert sent == received
    assert 2_000_000 <= sent <= 2_020_000


# ---- tables of vendors --------------------------------------------------------------------------

IF_NAME = "1.3.6.1.2.1.31.1.1.1.1"
ALU = "1.3.6.1.4.1.6527.3.1.2.4.3"
JNX = "1.3.6.1.4.1.2636.3"
SENTRY = "1.3.6.1.4.1.1718.3.2"
CISCO = "1.3.6.1.4.1.9.9.109.1.1.1.1"


def indexed(text):
    return ".".join(str(n) for n in [len(text), *text.encode()])


def table():
    """oid -> (tag, value), in snmpsim's words."""
    return {
        "1.3.6.1.2.1.1.3.0": ("67", 4711),
        "1.3.6.1.2.1.31.1.5.0": ("67", 17),
        f"{IF_NAME}.513": ("4", "xe-0/0/0"),
        f"{IF_NAME}.514": ("4", "xe-0/1/0"),
        f"{JNX}.5.2.1.5.{indexed('fw-in')}.{indexed('count http')}.2": ("70", 18446744073709551615),
        f"{JNX}.5.2.1.5.{indexed('fw-in')}.{indexed('limit')}.3": ("70", 7),
        f"{JNX}.15.1.1.5.513.{indexed('best-effort')}": ("70", 100),
        f"{JNX}.15.1.1.5.514.{indexed('best-effort')}": ("70", 200),
        f"{JNX}.15.1.1.9.513.{indexed('best-effort')}": ("70", 90),
        f"{SENTRY}.3.1.2.1.1.1": ("4", "AA1"),
        f"{SENTRY}.3.1.2.1.1.2": ("4", "AA2"),
        f"{SENTRY}.3.1.7.1.1.1": ("2", 205),
        f"{SENTRY}.3.1.7.1.1.2": ("2", 0),
        f"{SENTRY}.5.1.2.1.1": ("4", "A1"),
        f"{SENTRY}.5.1.6.1.1": ("2", 23),
        f"{SENTRY}.5.1.10.1.1": ("2", 41),
        f"{ALU}.2.1.5.1.270565376.100": ("4", "to the lab"),
        f"{ALU}.2.1.8.1.270565376.100": ("66", 1),
        f"{ALU}.6.1.12.1.270565376.100": ("70", 1234),
        f"{ALU}.6.1.12.9.1342177285.0": ("70", 5678),
        f"{CISCO}.2.1": ("2", 9),
        f"{CISCO}.5.1": ("66", 17),
        "1.3.6.1.2.1.47.1.1.1.1.7.1": ("4", "Chassis"),
        "1.3.6.1.2.1.47.1.1.1.1.7.9": ("4", "CPU_of_Module_2"),
    }


class Snmpsim:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.port = free_udp_port()
        self.address = f"127.0.0.1:{self.port}"

    def record(self, name, values):
        """A device of that community."""
        ordered = sorted(values.items(), key=lambda item: [int(n) for n in item[0].split(".")])
        text = "".join(f"{oid}|{tag}|{value}\n" for oid, (tag, value) in ordered)
        (self.folder / f"{name}.snmprec").write_text(text)

    def start(self):
        for path in [self.folder, *self.folder.parents]:
            if path.owner() == pathlib.Path.home().owner() and path != pathlib.Path("/"):
                path.chmod(path.stat().st_mode | 0o055)
        self.log = open(self.folder / "log", "w")
        self.process = subprocess.Popen(
            ["snmpsimd", f"--data-dir={self.folder}", f"--cache-dir={self.folder / 'cache'}",
             f"--agent-udpv4-endpoint={self.address}", "--process-user=nobody",
             "--process-group=nogroup"], stdout=self.log, stderr=self.log)
        eventually(self.answers, (self.folder / "log").read_text)
        return self

    def answers(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        return run("snmp", "get", self.address, "sysUpTime.0", "-t", "0.3",
                   "-r", "0").returncode == 0

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def vendors(tmp_path_factory):
    simulated = Snmpsim(tmp_path_factory.mktemp("snmpsim"))
    (simulated.folder / "cache").mkdir(mode=0o777)
    (simulated.folder / "cache").chmod(0o777)
    simulated.record("public", table())
    yield simulated.start()
    simulated.stop()


@needs_snmpsim
@pytest.mark.parametrize("oidset, expected", [
    ("JnxFirewall", {("counter:fw-in:count http", "jnxFWCounterByteCount", "18446744073709551615"),
                     ("policer:fw-in:limit", "jnxFWCounterByteCount", "7")}),
    ("JnxCOS", {("", "sysUpTime", "4711"),
                ("xe-0/0/0:best-effort", "jnxCosIfqQedBytes", "100"),
                ("xe-0/1/0:best-effort", "jnxCosIfqQedBytes", "200"),
                ("xe-0/0/0:best-effort", "jnxCosIfqTxedBytes", "90")}),
    ("SentryPoll", {("AA1", "outletLoadValue", "205"), ("AA2", "outletLoadValue", "0"),
                    ("A1", "tempHumidSensorTempValue", "23"),
                    ("A1", "tempHumidSensorHumidValue", "41")}),
    ("ALUSAPPoll", {("", "sysUpTime", "4711"),
                    ("1-8/1/1-100", "sapBaseStatsIngressQchipForwardedInProfOctets", "1234"),
                    ("9-lag-5-0", "sapBaseStatsIngressQchipForwardedInProfOctets", "5678")}),
    ("ALUSAPRefPoll", {("1.270565376.100:1-8/1/1-100", "sapDescription", "to the lab"),
                       ("1.270565376.100:1-8/1/1-100", "sapIngressQosPolicyId", "1")}),
    ("CiscoCPU", {("Module_2", "cpmCPUTotal5min", "17")}),
], ids=lambda value: value if isinstance(value, str) else "")
def test_tables_of_vendors(vendors, oidset, expected):
    rows = poll_once(vendors.address, oidset)
    assert {(row["path"], row["oid"], row["value"]) for row in rows} == expected


def test_what_cannot_be_polled_is_said():
    nobody = f"127.0.0.1:{free_udp_port()}"
    cases = [
        ([nobody, "FastPollHC", "-t", "0.1", "-r", "0"], 1, "does not answer"),
        ([nobody, "Fast"], 2, "there is no OIDSet called Fast"),
        ([nobody], 2, "OIDSET is missing"),
        (["host.invalid", "FastPollHC"], 1, "host.invalid: "),
        ([f"{nobody}0000", "FastPollHC"], 2, "is no HOST or HOST:PORT"),
        ([nobody, "FastPollHC", "-v3", "-u", "me", "-A", "short"], 1, "8"),
        ([nobody, "FastPollHC", "--config", "/nowhere.yml"], 2, "/nowhere.yml"),
    ]
    for arguments, status, sentence in cases:
        answer = run("snmp", "poll-once", *arguments)
        assert (answer.returncode, answer.stdout) == (status, ""), answer
        assert sentence in answer.stderr


# ---- a proxy that does harm ---------------------------------------------------------------------


class Poller:
    """tests/tools/poller_run: polls until it is told to stop, and keeps what came."""

    def __init__(self, folder, devices):
        oidsets = pathlib.Path(folder) / "oidsets.yml"
        oidsets.write_text(OIDSETS)
        self.process = subprocess.Popen(
            [tool("poller_run"), *(f"{name}={address}=Fast" for name, address in devices),
             f"--snmp.oidset_files={oidsets}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        self.lines = []

    def read_until(self, enough):
        while not enough(self.lines):
            line = self.process.stdout.readline()
            assert line, "it ended"
            self.lines.append(line.rstrip("\n"))

    def stop(self):
        self.process.stdin.close()
        self.lines += self.process.stdout.read().splitlines()
        assert self.process.wait(timeout=PATIENCE_S) == 0
        self.stats = dict(line.rsplit(" ", 1) for line in self.lines
                          if line.startswith("granary_poll"))
        self.states = dict(line[len("state "):].split(": ", 1) for line in self.lines
                           if line.startswith("state "))

    def times(self, device, path="lo", oid="ifHCInOctets"):
        """When that value was polled, in ms."""
        found = []
        for line in self.lines:
            fields = line.split(",")
            if len(fields) == 6 and (fields[0], fields[2], fields[3]) == (device, path, oid):
                found.append(int(fields[5]))
        return found


class Harm:
    """What the proxy does with replies, one kind after the other by device."""

    def __init__(self):
        self.held = []

    def late(self, number, data):
        """Each reply comes with the next one: by then it was asked for again."""
        self.held.append(data)
        return [self.held.pop(0)] if len(self.held) > 1 else []

    @staticmethod
    def twice(number, data):
        return [data, data, data]

    def out_of_order(self, number, data):
        self.held.append(data)
        if len(self.held) < 2:
            return []
        pair, self.held = self.held[::-1], []
        return pair

    @staticmethod
    def wrong_id(number, data):
        """The request id is the first INTEGER of four bytes."""
        at = data.find(b"\x02\x04")
        return [data[:at + 2] + bytes([data[at + 2] ^ 1]) + data[at + 3:]] if at > 0 else []

    @staticmethod
    def truncated(number, data):
        return [data[:37 * number % len(data)], data[:-1]]

    @staticmethod
    def silent(number, data):
        return []


@needs_snmpd
def test_harm_to_one_device_is_none_to_others(agent, tmp_path):
    kinds = ["late", "out_of_order", "silent", "truncated", "twice", "wrong_id"]
    proxies = {kind: Proxy(agent.port, replies=getattr(Harm(), kind)) for kind in kinds}
    devices = [(f"a-{n}", agent.address) for n in range(4)]
    devices += [(f"b-{kind}", proxy.address) for kind, proxy in proxies.items()]
    poller = Poller(tmp_path, devices)
    polls = 12
    poller.read_until(lambda lines: len(poller.times("a-0")) >= polls)
    poller.stop()
    for proxy in proxies.values():
        proxy.stop()

    for name, _ in devices[:4]:
        times = poller.times(name)
        assert polls - 1 <= len(times) <= polls + 2, name  # one a second
        # One a slot, however late in it: slots begin where the poll that was least late did.
        slots = [len({(t - first) // 1000 for t in times}) for first in times]
        assert max(slots) == len(times), name
        assert poller.states[name] == ""
    # Nothing double, whatever the device did: each value once a time.
    seen = collections.Counter(tuple(line.split(",")[:4] + line.split(",")[5:])
                               for line in poller.lines if line.count(",") == 5)
    assert seen and max(seen.values()) == 1
    assert len(poller.times("b-twice")) >= polls - 2
    for kind in ["silent", "truncated", "wrong_id"]:
        assert poller.times(f"b-{kind}") == []
        assert poller.states[f"b-{kind}"] != ""
    assert int(poller.stats['granary_polls_total{result="failed"}']) >= 3
    # What is 0 is not printed.
    assert "granary_polls_running{}" not in poller.stats


@needs_snmpd
def test_a_new_device_is_polled_at_once_and_when_it_is_asked_for(agent, make_server):
    """Its slots are an hour apart: what is stored of it before, was not waited for."""
    server = make_server(config=OIDSETS.replace("frequency: 1s", "frequency: 1h"))
    server.start()

    def times():
        return server.values("ifHCInOctets", "interface=lo", tenant="snmp", start="2h-ago")

    def wait_for_polls(count):
        eventually(lambda: len(times()) >= count, lambda: server.get("/api/devices").json)

    at = ["--server", server.url]
    assert run("device", "add", "new", agent.address, "Fast", "--credentials", "public",
               *at).returncode == 0
    wait_for_polls(1)
    assert run("device", "poll", "new", *at).returncode == 0
    wait_for_polls(2)
    answer = run("device", "poll", "nobody", *at)
    assert answer.returncode == 1 and "device nobody: does not exist" in answer.stderr
    assert run("device", "change", "new", "--poller", "site", *at).returncode == 0
    answer = run("device", "poll", "new", *at)
    assert answer.returncode == 1 and "is polled by site" in answer.stderr
    server.stop()
