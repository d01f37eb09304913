"""`granary snmp` against Debian's snmpd: every version, every combination of version 3, and a proxy
between the two that does harm. Debian's net-snmp 5.9.3 speaks all that Granary speaks (MD5, SHA-1,
SHA-224 to 512; DES, AES-128, AES-192 and 256 with both ways of making keys longer), so that nothing
is left to vectors alone."""

import re
import signal
import subprocess

import pytest

from server import run
from snmp_agent import (AUTH_PASSWORD, AUTHS, ENGINE_ID, PRIV_PASSWORD, PRIVS, Proxy, Snmpd,
                        have_snmpd, user_of)

pytestmark = pytest.mark.skipif(not have_snmpd(), reason="snmpd is not installed")

SYS_NAME = '.1.3.6.1.2.1.1.5.0 = STRING: "granary-test"\n'
# What does not change from one walk to the next, and has several types.
STILL = [".1.3.6.1.2.1.1.9.1.2", ".1.3.6.1.2.1.1.9.1.3", ".1.3.6.1.2.1.2.2.1.1",
         ".1.3.6.1.2.1.2.2.1.2", ".1.3.6.1.2.1.2.2.1.3", ".1.3.6.1.2.1.2.2.1.5",
         ".1.3.6.1.2.1.2.2.1.6"]


@pytest.fixture
def make_proxy(agent):
    proxies = []

    def make(**options):
        proxies.append(Proxy(agent.port, **options))
        return proxies[-1]

    yield make
    for proxy in proxies:
        proxy.stop()


def v3(auth="SHA", priv="AES", auth_password=AUTH_PASSWORD, priv_password=PRIV_PASSWORD):
    options = ["-v", "3", "-u", user_of(auth, priv)]
    if auth:
        options += ["-a", auth, "-A", auth_password]
    if priv:
        options += ["-x", priv, "-X", priv_password]
    return options


def get(address, *options, oids=("sysName.0",)):
    return run("snmp", "get", "-On", *options, address, *oids)


def walk(address, *options, oids=tuple(STILL)):
    answer = run("snmp", "walk", "-On", *options, address, *oids)
    assert answer.returncode == 0, answer
    return sorted(answer.stdout.splitlines())


def their_walk(agent, *oids):
    lines = []
    for oid in oids:
        done = subprocess.run(["snmpbulkwalk", "-v2c", "-c", "public", "-On", "-m", "",
                               agent.address, oid], capture_output=True, text=True, check=True)
        lines += [line.rstrip() for line in done.stdout.splitlines()]
    return sorted(lines)


# ---- what is spoken -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1", "2c"])
def test_communities(agent, version):
    assert get(agent.address, "-v", version).stdout == SYS_NAME
    assert get(agent.address, "-v" + version, "-c", "public").stdout == SYS_NAME
    refused = get(agent.address, "-v", version, "-c", "wrong", "-t", "0.2", "-r", "1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "does not answer" in refused.stderr


@pytest.mark.parametrize("version", ["1", "2c"])
def test_what_is_missing(agent, version):
    answer = get(agent.address, "-v", version, oids=("1.3.6.1.2.1.1.99.0", "sysName.0"))
    assert sorted(answer.stdout.splitlines()) == [
        SYS_NAME.strip(),
        ".1.3.6.1.2.1.1.99.0 = No Such Object available on this agent at this OID"]


@pytest.mark.parametrize("options", [["-v", "1"], ["-v", "2c"], ["-v", "2c", "-Cr", "1"],
                                     ["-Cr3"], v3("SHA-256", "AES-256")], ids=str)
def test_a_walk_is_that_of_net_snmp(agent, options):
    theirs = their_walk(agent, *STILL)
    assert len(theirs) > 20
    assert walk(agent.address, *options) == theirs


def test_names_and_an_empty_column(agent):
    answer = run("snmp", "walk", agent.address, "ifDescr")
    assert '.1.3.6.1.2.1.2.2.1.2.1 (ifDescr.1) = STRING: "lo"' in answer.stdout.splitlines()
    answer = run("snmp", "walk", agent.address, "1.3.6.1.2.1.99")
    assert (answer.returncode, answer.stdout) == (0, "")


@pytest.mark.parametrize("auth", AUTHS)
def test_every_combination_of_version_3(agent, auth):
    assert get(agent.address, *v3(auth, None)).stdout == SYS_NAME
    for priv in PRIVS:
        assert get(agent.address, *v3(auth, priv)).stdout == SYS_NAME, priv
    assert get(agent.address, *v3(None, None)).stdout == SYS_NAME


def test_the_engine_id_may_be_given(agent, make_proxy):
    """Then nothing is discovered: the device's time comes with its report."""
    proxy = make_proxy()
    assert get(proxy.address, *v3(), "-e", ENGINE_ID).stdout == SYS_NAME
    assert len(proxy.seen_requests) == 2
    assert all(bytes.fromhex(ENGINE_ID) in request for request in proxy.seen_requests)


def test_discover(agent):
    answer = run("snmp", "discover", agent.address)
    assert answer.returncode == 0, answer
    assert '(sysDescr.0) = STRING: "an agent for tests"' in answer.stdout
    assert f"engine id = {ENGINE_ID}\n" in answer.stdout
    assert any(line.split()[:3] == ["1", "lo", "lo"] for line in answer.stdout.splitlines())


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("options, sentence", [
    (v3(auth_password="not-the-password"), "wrong authentication password"),
    (["-v3", "-u", "nobody", "-A", AUTH_PASSWORD], "does not know the user"),
    (["-v3", "-u", "user", "-A", AUTH_PASSWORD], "refuses this security level"),
    (v3() + ["-e", "8000000001020304"], "another engine id"),
    (v3(priv_password="not-the-password") + ["-t", "0.2", "-r", "1"], "perhaps the privacy"),
    (["-v", "3", "-u", user_of("SHA", "AES"), "-a", "MD5", "-A", AUTH_PASSWORD], "wrong auth"),
])
def test_what_the_device_refuses(agent, options, sentence):
    answer = get(agent.address, *options)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert sentence in answer.stderr


@pytest.mark.parametrize("arguments", [
    [], ["get"], ["get", "127.0.0.1"], ["set", "127.0.0.1", "sysName.0"],
    ["get", "127.0.0.1", "noSuchName.0"], ["get", "127.0.0.1", "1.3.6.1", "-v", "4"],
    ["get", "127.0.0.1", "1.3.6.1", "-Q"], ["get", "127.0.0.1", "1.3.6.1", "-t", "0"],
    ["get", "127.0.0.1", "1.3.6.1", "-r", "8"], ["get", "127.0.0.1", "1.3.6.1", "-e", "xyz"],
    ["get", "127.0.0.1", "1.3.6.1", "-v3", "-u", "u", "-A", "short"],
    ["get", "127.0.0.1", "1.3.6.1", "-v3", "-u", "u", "-a", "MD6", "-A", "long-enough"],
    ["discover", "127.0.0.1", "sysName.0"], ["get", "127.0.0.1", "1.3.6.1", "-v"],
])
def test_wrong_usage(arguments):
    answer = run("snmp", *arguments)
    assert (answer.returncode, answer.stdout) == (2, ""), answer
    assert re.match(r"granary snmp( \w+)?: ", answer.stderr)


# ---- harm on the way ----------------------------------------------------------------------------


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x01]) + data[at + 1:]


def unprotected(data):
    """The same message of version 3, saying that it is neither signed nor encrypted."""
    at = data.index(b"\x04\x01\x03")
    return data[:at] + b"\x04\x01\x00" + data[at + 3:]


class Replayer:
    def __init__(self):
        self.seen = []

    def __call__(self, n, data):
        self.seen.append(data)
        return [*self.seen[-3:-1], data]


HARM = {
    "twice": lambda n, data: [data, data],
    "truncated first": lambda n, data: [data[:len(data) // 2], data[:-1], data],
    "nothing and noise": lambda n, data: [b"", b"\x30", b"\xff" * 100, data],
    "every third is lost": lambda n, data: [data] if n % 3 else [],
}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("options", [["-v", "2c"], v3("SHA", "AES")], ids=["2c", "3"])
def test_harm_that_a_walk_survives(agent, make_proxy, harm, options):
    proxy = make_proxy(replies=HARM[harm])
    assert walk(proxy.address, "-t", "0.3", "-Cr", "3", *options) == their_walk(agent, *STILL)


@pytest.mark.parametrize("options", [["-v", "2c"], v3("SHA", "AES")], ids=["2c", "3"])
def test_replayed_replies_count_for_nothing(agent, make_proxy, options):
    proxy = make_proxy(replies=Replayer())
    assert walk(proxy.address, "-t", "0.3", "-Cr", "3", *options) == their_walk(agent, *STILL)


def test_a_late_reply_counts_once(agent, make_proxy):
    """The first reply comes together with the second."""
    held = []

    def hold(n, data):
        held.append(data)
        return [] if n == 1 else held

    proxy = make_proxy(replies=hold)
    assert get(proxy.address, "-t", "0.3").stdout == SYS_NAME
    assert len(proxy.seen_requests) == 2


@pytest.mark.parametrize("harm", [unprotected, lambda data: flipped(data, len(data) - 3),
                                  lambda data: data[:-1]], ids=["unprotected", "damaged", "cut"])
def test_what_is_not_genuine_is_never_taken(agent, make_proxy, harm):
    """The report of discovery passes; each reply behind it comes damaged only."""
    proxy = make_proxy(replies=lambda n, data: [data if n == 1 else harm(data)])
    answer = get(proxy.address, *v3(), "-t", "0.2", "-r", "1")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert len(proxy.seen_replies) == 3


def test_a_recorded_conversation_is_not_taken_again(agent, make_proxy):
    """Everything that the agent has said to one client is said to another one."""
    proxy = make_proxy()
    assert get(proxy.address, *v3()).stdout == SYS_NAME
    recorded = list(proxy.seen_replies)
    replayed = make_proxy(replies=lambda n, data: [recorded[min(n, len(recorded)) - 1]])
    answer = get(replayed.address, *v3(), "-t", "0.2", "-r", "1")
    assert (answer.returncode, answer.stdout) == (1, "")


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_an_agent_that_starts_again_in_the_middle(tmp_path, end):
    """It counts its boots when it ends by TERM, and does not when it is killed: then only its time
    is another one. The walk goes on."""
    daemon = Snmpd(tmp_path / "snmpd").start()
    proxy = None

    def restart(n, data):
        if n == 5:
            daemon.stop(end)
            daemon.start()
        return [data]

    try:
        theirs = their_walk(daemon, *STILL)
        proxy = Proxy(daemon.port, requests=restart)
        assert walk(proxy.address, "-t", "2", "-r", "7", "-Cr", "2", *v3()) == theirs
        assert len(proxy.seen_requests) > 6
    finally:
        if proxy:
            proxy.stop()
        daemon.stop()


def test_a_dead_port(agent):
    answer = get("127.0.0.1:9", "-t", "0.1", "-r", "2")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "does not answer" in answer.stderr
