"""Fixtures of the end-to-end tests: real servers, real sockets, a data directory each."""

import contextlib
import re
import sys

import pytest

from rabbit import Rabbit
from server import ROOT, Server, findings, running, sanitizer
from snmp_agent import Snmpd

sys.path.append(str(ROOT / "tools"))
from missing import all_has_to_be_here  # noqa: E402


@pytest.fixture(autouse=True)
def no_findings():
    """What a sanitizer finds fails the test, whatever else it says. This comes first, so that it
    looks when everything that the test started has ended."""
    yield
    found = findings()
    assert not found, "\n".join(found)[:20000]


TOKEN = re.compile(r"gr_[0-9a-f]{16}_[0-9a-f]{64}")


@pytest.fixture
def make_server(tmp_path, request):
    """Makes servers; all that still run at the end are killed. No log has a token, whatever was
    done."""
    servers = []

    def make(name="main", **options):
        server = Server(tmp_path / name, **options)
        servers.append(server)
        request.node.servers = servers
        return server

    yield make
    with contextlib.ExitStack() as ends:
        for server in servers:
            ends.callback(server.kill)
    for server in servers:
        assert not TOKEN.search(server.log_text()), server.log_path


@pytest.fixture
def server(make_server):
    """A running server without host metrics."""
    with running(make_server()) as server:
        yield server


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """Debian's snmpd."""
    daemon = Snmpd(tmp_path_factory.mktemp("snmpd")).start()
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory):
    """A RabbitMQ."""
    broker = Rabbit(tmp_path_factory.mktemp("rabbit") / "broker")
    try:
        broker.start()
        yield broker
    finally:
        broker.end()


@pytest.fixture
def queue(rabbit):
    return rabbit.queue()


def pytest_configure(config):
    config.addinivalue_line("markers", "not_sanitized(reason): measures, or sets up, what a "
                                       "sanitizer changes; left out of ./test e2e --sanitized")


def pytest_collection_modifyitems(config, items):
    """Under a sanitizer: without the tests that cannot run so. Each is named with its reason."""
    if not sanitizer():
        return
    left_out = [item for item in items if item.get_closest_marker("not_sanitized")]
    for item in left_out:
        print(f"not under {sanitizer()}: {item.nodeid}: "
              f"{item.get_closest_marker('not_sanitized').args[0]}")
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A skip is a failure where nothing may be missing. What the servers said stands beside the
    failure."""
    outcome = yield
    report = outcome.get_result()
    if report.skipped and all_has_to_be_here():
        report.outcome, report.longrepr = "failed", report.longrepr[2].removeprefix("Skipped: ")
    if report.failed:
        for server in getattr(item, "servers", []):
            report.sections.append((f"log of server {server.folder.name}", server.log_tail()))
