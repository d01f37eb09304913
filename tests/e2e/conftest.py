"""Fixtures of the end-to-end tests: real servers, real sockets, a data directory each."""

import sys

import pytest

from server import ROOT, Server, running
from snmp_agent import Snmpd

sys.path.append(str(ROOT / "tools"))
from missing import all_has_to_be_here  # noqa: E402


@pytest.fixture
def make_server(tmp_path, request):
    """Makes servers; all that still run at the end are killed."""
    servers = []

    def make(name="main", **options):
        server = Server(tmp_path / name, **options)
        servers.append(server)
        request.node.servers = servers
        return server

    yield make
    for server in servers:
        server.kill()


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
