"""Fixtures of the end-to-end tests: real servers, real sockets, a data directory each."""

import pytest

from server import Server


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
    """A running server without host metrics; stopped by TERM at the end, and cleanly."""
    server = make_server()
    server.start()
    yield server
    if server.running():
        server.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What the servers said stands beside the failure."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for server in getattr(item, "servers", []):
            report.sections.append((f"log of server {server.folder.name}", server.log_tail()))
