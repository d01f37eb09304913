"""The poller as a process of its own: what it polls arrives, whatever is away or killed."""

import pytest

from remote_poller import OIDSETS, RemotePoller, wait_for
from server import run
from snmp_agent import Snmpd, have_snmpd

needs_snmpd = pytest.mark.skipif(not have_snmpd(), reason="snmpd is not installed")


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    daemon = Snmpd(tmp_path_factory.mktemp("snmpd")).start()
    yield daemon
    daemon.stop()


@pytest.fixture
def make_poller(tmp_path, request):
    """Makes pollers; all that still run at the end are killed."""
    pollers = []

    def make(url, folder="poller", **options):
        poller = RemotePoller(tmp_path / folder, url, **options)
        pollers.append(poller)
        request.node.servers = [*getattr(request.node, "servers", []), poller]
        return poller

    yield make
    for poller in pollers:
        poller.kill()


@pytest.fixture
def central(make_server):
    """A server that has no secrets: who polls has them."""
    server = make_server(config=OIDSETS)
    server.start()
    yield server
    if server.running():
        server.stop()


def device(server, verb, *arguments):
    answer = run("device", verb, *arguments, "--server", server.url)
    assert answer.returncode == 0, answer.stderr


def add(server, name, agent, oidset="Fast", poller="site"):
    device(server, "add", name, agent.address, oidset, "--credentials", "lab", "--poller", poller)


def state_of(server, name):
    return server.get(f"/api/devices/{name}").json


def values(server, name, metric="ifHCInOctets", interface="lo"):
    found = server.query(metric, f"device={name}", f"interface={interface}", tenant="snmp", start=0)
    return found[0]["values"] if found else {}


@needs_snmpd
def test_values_arrive(central, make_poller, agent):
    add(central, "r", agent)
    add(central, "own", agent, poller="another")
    assert state_of(central, "r")["reason"] == "its poller has not been heard of"
    poller = make_poller(central.url).start()
    polled = wait_for(lambda: len(values(central, "r")) >= 3 and values(central, "r"))
    # Nothing but this machine counts on `lo`, and it counts upwards.
    assert list(polled.values()) == sorted(polled.values())
    wait_for(lambda: state_of(central, "r")["state"] == "ok")
    assert values(central, "own") == {}
    assert state_of(central, "own")["reason"] == "its poller has not been heard of"
    poller.stop()
