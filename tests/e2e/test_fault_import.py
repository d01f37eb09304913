"""fault import: what PyPI's oops-datedir-repo wrote is read back from the server."""

import bz2
import csv
import datetime
import io
import json
import os
import subprocess

import pytest
from oops_datedir_repo import DateDirRepo, serializer_rfc822

from server import eventually, granary, run
from test_fault_search import pages
from test_oops import report_of

DAYS = [datetime.datetime(2026, 11, day, 12, tzinfo=datetime.timezone.utc) for day in (23, 24)]
SAVED = 200  # files after which the command notes how far it came


def report(day, number):
    return {"id": f"OOPS-{day.day}-{number}", "type": "KeyError", "value": f"'k{number}'",
            "time": day, "topic": "/login", "req_vars": {"number": str(number)}}


def fill(root, day, numbers):
    """As a server of python-oops does, which has no day but the present one."""
    repository = DateDirRepo(str(root), inherit_id=True)
    for number in numbers:
        repository.publish(report(day, number), now=day)


def imported(server, root, *options, status=0):
    """The rows that it printed, and what it complained of."""
    answer = run("fault", "import", root, "--server", server.url, *options)
    assert answer.returncode == status, answer
    rows = list(csv.DictReader(io.StringIO(answer.stdout)))
    return [tuple(row.values()) for row in rows], answer.stderr


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "datedir"
    for day in DAYS:
        fill(folder, day, range(30))
    return folder


def settle(root):
    """As if nothing had changed for some time."""
    for day in root.glob("20*"):
        os.utime(day, (day.stat().st_atime, day.stat().st_mtime - 10))


def test_a_datedir_is_imported_once(server, root):
    settle(root)
    rows, complaints = imported(server, root)
    assert rows == [("2026-11-23", "30", "30", "0", "0"), ("2026-11-24", "30", "30", "0", "0")]
    assert complaints == ""
    for day in DAYS:
        for number in range(30):
            found = report_of(server, f"OOPS-{day.day}-{number}")
            assert found["value"] == f"'k{number}'" and found["context"] == "/login"
            assert found["REQUEST.number"] == str(number), found
            assert found["reported.date"].startswith(day.strftime("%Y-%m-%dT12:00")), found
    assert imported(server, root) == ([], "")
    fill(root, DAYS[1], [30])
    assert imported(server, root)[0] == [("2026-11-24", "31", "1", "30", "0")]
    # It has changed just now, so nobody knows whether it will once more.
    assert imported(server, root)[0] == [("2026-11-24", "31", "0", "31", "0")]
    as_json = run("fault", "import", root, "--server", server.url, "-o", "json")
    assert json.loads(as_json.stdout) == {"days": [
        {"day": "2026-11-24", "files": 31, "taken": 0, "repeated": 31, "failed": 0}]}, as_json


def test_what_is_no_report_is_named(server, root):
    folder = root / "2026-11-24"
    written = io.BytesIO()
    serializer_rfc822.write(report(DAYS[1], 40), written)
    (folder / "0-rfc822").write_bytes(written.getvalue())
    (folder / "1-packed").write_bytes(bz2.compress(
        written.getvalue().replace(b"OOPS-24-40", b"OOPS-24-41")))
    (folder / "2-empty").touch()
    first = next(path for path in folder.glob("OOPS-*") if b"OOPS-24-0\0" in path.read_bytes())
    (folder / "3-torn").write_bytes(first.read_bytes()[:9])
    (folder / "X-other").write_bytes(first.read_bytes().replace(b"'k0'", b"'k9'"))
    (folder / "OOPS-24-99.tmp").write_bytes(b"half")
    (root / "notes.txt").write_text("no day")
    rows, complaints = imported(server, root, status=1)
    assert rows[1][0] == "2026-11-24" and rows[1][1] == "35", rows
    assert rows[1][2] == "32" and rows[1][4] == "3", rows
    lines = complaints.splitlines()
    assert len(lines) == 3, complaints
    assert "2-empty: the file is empty" in lines[0]
    assert "3-torn: " in lines[1]
    assert "OOPS-24-0" in lines[2] and "another report" in lines[2], lines
    assert report_of(server, "OOPS-24-40")["value"] == "'k40'"
    assert report_of(server, "OOPS-24-41")["value"] == "'k40'"


def test_it_goes_on_where_it_was_killed(server, tmp_path):
    root, count = tmp_path / "datedir", 2 * SAVED + 50
    fill(root, DAYS[0], range(count))
    settle(root)
    state = root / "metadata" / "granary-import"
    process = subprocess.Popen([granary(), "fault", "import", root, "--server", server.url],
                               stdout=subprocess.DEVNULL)
    eventually(lambda: state.exists() and state.read_text().startswith("2026-11-23"))
    process.kill()
    process.wait()
    rows, _ = imported(server, root)
    if rows:  # else it was done before it was killed
        assert int(rows[0][1]) <= count - SAVED, rows
    assert len(pages(server, limit=1000)) == count
    assert imported(server, root) == ([], "")


def test_its_troubles_are_said(server, root, tmp_path):
    settle(root)
    _, complaints = imported(server, tmp_path / "none", status=1)
    assert "none: " in complaints
    away = run("fault", "import", root, "--server", "http://127.0.0.1:1")
    assert away.returncode == 1 and "127.0.0.1:1" in away.stderr, away
    state = tmp_path / "state"
    state.write_text("2026-11-23 then OOPS-1\n")
    _, complaints = imported(server, root, "--state", state, status=1)
    assert f"{state}, line 1: " in complaints
    _, complaints = imported(server, root, "--state", tmp_path / "none" / "state", status=1)
    assert "--state" in complaints
    assert len(imported(server, root)[0]) == 2


def test_the_tenant_of_the_token(server, root, tmp_path):
    """Without --tenant it is the first of the token: no request names another."""
    token = {name: tmp_path / name for name in ("root", "web")}
    for name, roles, tenants in (("root", "admin", "*"), ("web", "write", "acme")):
        shown = ["--token-file", token["root"]] if name == "web" else []
        made = run("token", "create", name, "--roles", roles, "--tenants", tenants, "--server",
                   server.url, *shown)
        token[name].touch(0o600)
        token[name].write_text(made.stdout)
    rows, complaints = imported(server, root, "--token-file", token["web"])
    assert [row[2] for row in rows] == ["30", "30"] and complaints == ""
