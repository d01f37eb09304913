"""Steady state: much more data than the file may hold flows through a store of bounded retention.
tests/bench/churn drives the store itself, on a clock of its own, so that weeks pass in seconds."""

import json
import subprocess

import pytest

from server import build_folder, long_run

pytestmark = pytest.mark.not_sanitized("runs a program of tests/bench over gigabytes")

CHURN_GB = 30 if long_run() else 3


def test_churn_through_bounded_retention(tmp_path):
    answer = subprocess.run([build_folder() / "tests" / "bench" / "churn", "--gigabytes",
                             str(CHURN_GB), "--rounds", "5" if long_run() else "1",
                             "--data", str(tmp_path / "data")],
                            capture_output=True, text=True, timeout=3600 if long_run() else 600)
    assert answer.returncode == 0, answer.stderr
    print(answer.stdout)
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    windows, summary = found[:-1], found[-1]
    assert summary["written_bytes"] >= CHURN_GB * 1e9
    # After the first retention the file has its size: what expires makes the room for what comes.
    assert summary["file_bytes"] <= 1.3 * summary["file_bytes_day_5"]
    assert summary["days"] >= 10
    assert summary["visible_samples"] == summary["expected_samples"]
    assert summary["expired_samples"] == 0
    print(f"samples per CPU second of the aged store: {summary['ratio']:.0%} of a new one's, "
          f"{len(windows)} days")
