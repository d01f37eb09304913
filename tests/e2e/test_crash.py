"""kill -9 at any moment: what was answered with success is there, nothing else, and the store is
whole."""

import json
import os
import random
import subprocess
import time

import pytest

from server import build_folder, eventually, long_run, run, tool

pytestmark = pytest.mark.not_sanitized("is about disks: thousands of starts")

ROUNDS = 1000 if long_run() else 50
ROUNDS_A_DIRECTORY = 50  # then a fresh one, so that a long run checks more beginnings
FULL_JOURNAL_SAMPLES = 10_000_000


def crash_writer(mode, server, seed, log, *options):
    return [tool("crash_writer"), mode, "--port", str(server.port), "--seed", str(seed), "--log",
            str(log), *options]


def check(server, seed, log, *options):
    answer = subprocess.run(crash_writer("check", server, seed, log, *options),
                            capture_output=True, text=True, timeout=600)
    assert answer.returncode == 0, (seed, answer.stdout, answer.stderr)
    return json.loads(answer.stdout)["samples"]


def verify(server):
    answer = run("verify", "--data", server.data, timeout=600)
    assert answer.returncode == 0, (answer.stdout, answer.stderr)


def crash_rounds(server, seed, rounds):
    """Writes, kills, starts, checks; gives how many samples the last check saw."""
    pick, log = random.Random(seed), server.folder / "sent"
    server.start()
    for number in range(rounds):
        writer = subprocess.Popen(crash_writer("write", server, seed, log), stderr=subprocess.PIPE)
        time.sleep(pick.uniform(0.001, 0.5))  # the moment of the crash
        server.kill()
        _, complaint = writer.communicate(timeout=60)
        assert writer.returncode == 0, (seed, number, complaint)
        if number % 10 == 9:
            verify(server)
        server.start()
        check(server, seed, log, "--tail")
    samples = check(server, seed, log)
    server.stop()
    verify(server)
    return samples


def test_kill_under_load(make_server):
    seed = int(os.environ.get("GRANARY_SEED", random.SystemRandom().getrandbits(32)))
    print(f"GRANARY_SEED={seed}")
    begun, samples = time.monotonic(), 0
    for part in range(0, ROUNDS, ROUNDS_A_DIRECTORY):
        # A small journal, so that crashes also fall into its being cut and heads being sealed.
        server = make_server(f"part-{part}", options=[f"--store.journal_max={1 + part % 8}M"]
                             if part % 100 else ["--store.journal_max=2M"])
        samples += crash_rounds(server, seed + part, min(ROUNDS_A_DIRECTORY, ROUNDS - part))
    print(f"{ROUNDS} rounds, {samples} samples, {time.monotonic() - begun:.0f} s")
    assert samples > 1000


def test_the_check_finds_what_is_missing_and_what_is_wrong(make_server, tmp_path):
    """The oracle itself: a log that claims more than was sent, and one that claims less."""
    server = make_server()
    server.start()
    log = tmp_path / "sent"
    writer = subprocess.Popen(crash_writer("write", server, 1, log))
    eventually(lambda: log.exists() and log.read_text().count("A ") >= 100, "100 answers")
    server.kill()
    writer.wait(60)
    server.start()
    check(server, 1, log)
    lines = log.read_text().splitlines()

    def complains(claim, seed=1):
        log.write_text("\n".join(claim) + "\n")
        answer = subprocess.run(crash_writer("check", server, seed, log), capture_output=True,
                                timeout=60)
        return answer.returncode == 1

    last = max(int(line.split()[2]) for line in lines if line.startswith("S 0 "))
    assert complains(lines + [f"S 0 {last + 1}", f"A 0 {last + 1}"])  # answered, not there
    assert complains(lines + ["S 0 1", "A 0 1"])                      # there, never sent
    assert complains(lines, seed=2)                                   # other values
    assert not complains(lines)


def test_kill_of_the_store_itself(tmp_path):
    """Below HTTP: overwriting, deletions and cells too, and rows of one batch stay together."""
    seed = int(os.environ.get("GRANARY_SEED", random.SystemRandom().getrandbits(32)))
    print(f"GRANARY_SEED={seed}")
    pick, samples = random.Random(seed), 0
    for part in range(0, ROUNDS, ROUNDS_A_DIRECTORY):
        data, log = tmp_path / f"data-{part}", tmp_path / f"log-{part}"
        options = ["--data", data, "--seed", str(seed), "--log", log]
        for number in range(min(ROUNDS_A_DIRECTORY, ROUNDS - part)):
            writer = subprocess.Popen([tool("crash_store"), "write", *options])
            time.sleep(pick.uniform(0.001, 0.5))  # the moment of the crash
            assert writer.poll() is None, (seed, part, number, "ended by itself")
            writer.kill()
            writer.wait()
            answer = subprocess.run([tool("crash_store"), "check", *options],
                                    capture_output=True, text=True, timeout=120)
            assert answer.returncode == 0, (seed, part, number, answer.stderr)
            samples = json.loads(answer.stdout)["samples"]
    print(f"{ROUNDS} rounds, {samples} samples at the end")
    assert samples > 1000 or ROUNDS < 20


def test_a_start_with_a_full_journal(make_server, tmp_path):
    """10 million samples that are only in the journal when the server dies: many series with few
    points each, since long heads are sealed as they come."""
    hosts, points = FULL_JOURNAL_SAMPLES // 500, 50
    server = make_server(options=["--store.journal_max=4G", "--store.head_max=4G"])
    server.start()
    bench, lines = build_folder() / "tests" / "bench", tmp_path / "lines"
    with open(lines, "wb") as file:
        subprocess.run([bench / "tsbs_gen", "--hosts", str(hosts), "--points", str(points)],
                       stdout=file, check=True)
    subprocess.run([bench / "loader", "--port", str(server.port), lines], check=True,
                   stdout=subprocess.PIPE)
    lines.unlink()
    server.kill()
    took = server.start()
    replayed = server.metric("granary_store_replayed_samples_total")
    print(f"ready after {took:.2f} s, {replayed:.0f} samples from the journal")
    assert replayed == FULL_JOURNAL_SAMPLES
    for metric in ("cpu_usage_user", "cpu_usage_guest_nice"):
        for part in range(0, 100, 20):  # racks, at most so many series in an answer
            racks = "|".join(str(rack) for rack in range(part, part + 20))
            counts = server.query(metric, f"rack={racks}", start="2016-01-01", end="2016-01-02",
                                  fn="count", window="1d")
            assert len(counts) > hosts // 10
            assert {tuple(series["values"].values()) for series in counts} == {(points,)}
    server.stop()
    verify(server)
