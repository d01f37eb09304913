"""What a running server says about itself: every link and every example of its page works."""

import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from server import PATIENCE_S, ROOT, eventually



def granary():
    if "GRANARY_BUILD" in os.environ:
        return pathlib.Path(os.environ["GRANARY_BUILD"]) / "granary"
    return pathlib.Path(os.environ.get("GRANARY", ROOT / "build" / "granary"))


@pytest.fixture(scope="module", name="address")
def running_server(tmp_path_factory):
    data = tmp_path_factory.mktemp("self") / "data"
    command = [granary(), "serve", "--data", data, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://([0-9.]+:\d+)/", process.stdout.readline()).group(1)
        # Examples are of this machine's own metrics.
        names = "/api/metadata/metricNames?tenant=host&prefix=SystemMetrics.LoadAverage"
        eventually(lambda: fetch(address, names)[2] != b"[]", "this machine's metrics")
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        process.stdout.close()


def fetch(address, path, method="GET"):
    """Status, headers, body; also of answers that urllib takes for errors."""
    request = urllib.request.Request(f"http://{address}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            endless = answer.headers["Content-Type"] == "text/event-stream"
            return answer.status, answer.headers, b"" if endless else answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def test_it_is_ready(address):
    assert fetch(address, "/-/healthy")[0] == 200
    assert fetch(address, "/-/ready")[0] == 200


# Devices, pollers and reports of the examples, which a server that has just been started does not
# have.
OTHERS = re.compile(r"rtr_a|site_b|OOPS-7f3c")


def test_every_link_of_the_page_works(address):
    """An example that names a device is understood, and the device is not there."""
    status, headers, body = fetch(address, "/")
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'self'")
    links = {html.unescape(link) for link in re.findall(r'href="([^"]+)"', body.decode())}
    assert len(links) > 10
    for link in sorted(links):
        if link.startswith("#"):  # a place on the page
            assert f'id="{link[1:]}"' in body.decode()
            continue
        assert link.startswith("/")
        status, _, body = fetch(address, link)
        assert status == 200 or OTHERS.search(link) and b"rror" in body, (link, body)


class Tags(html.parser.HTMLParser):
    """Complains of a tag that is not closed, or closed in the wrong order."""

    ALONE = ("meta", "link", "br", "wbr")

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        names = [name for name, _ in attrs]
        assert "style" not in names and not any(name.startswith("on") for name in names)
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_proper_html(address):
    parser = Tags()
    parser.feed(fetch(address, "/")[2].decode())
    parser.close()
    assert parser.open == []
    assert {"nav", "table", "thead", "tbody", "dl"} <= parser.seen
    assert not {"script", "style"} & parser.seen


def test_every_command_of_the_page_works(address):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    page = fetch(address, "/")[2].decode()
    commands = [html.unescape(c) for c in re.findall(r"<code>(curl .*?)</code>", page)]
    assert len(commands) >= 2
    for command in commands:
        assert address in command
        command = command.replace("curl ", "curl -sS -w ' %{http_code}' ", 1)
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        body, _, status = done.stdout.rpartition(" ")
        named = OTHERS.search(command)
        assert done.returncode == 0 and (status[0] == "2" or named and named.group() in body), (
            command, done.stdout, done.stderr)


def test_errors_are_json(address):
    for path, status in (("/nowhere", 404), ("/api/query", 400), ("/write", 405)):
        found, headers, body = fetch(address, path)
        assert found == status
        assert headers["Content-Type"] == "application/json"
        assert json.loads(body)["error"]["code"] == status


def test_metrics_please_promtool(address):
    if not shutil.which("promtool"):
        pytest.skip("promtool (package prometheus) is not installed")
    status, headers, body = fetch(address, "/metrics")
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    subprocess.run(["promtool", "check", "metrics"], input=body, check=True, timeout=PATIENCE_S)
    assert re.search(rb"^granary_http_responses_total\{class=\"2xx\"\} [1-9]", body, re.M)
    assert re.search(rb"^process_resident_memory_bytes [1-9]", body, re.M)
