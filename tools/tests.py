"""Runs the tests and counts them: the body of ./test.

Every case is counted where it runs: a cmocka case, a pytest case, a fuzz target, a check of the
lint, a build. Nothing is counted that did not run, and a program that dies takes the cases that
it did not reach with it as failures.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

from missing import all_has_to_be_here

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = ["build", "lint", "unit", "contract", "valgrind", "e2e", "fuzz"]
FLAVOURS = ["release", "clang", "asan", "fuzz"]
BUILD_DIRS = {"release": "build", "clang": "build-clang", "asan": "build-asan",
              "fuzz": "build-fuzz"}
# All fuzz targets together, on two cores.
FUZZ_SECONDS, FUZZ_SECONDS_LONG = 100, 3600
LONG_FACTOR = 20
WORKERS = max(1, min(4, os.cpu_count() or 1))

SANITIZER_ENV = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:strict_string_checks=1:"
                    "detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}

# Values that were never set are what no sanitizer of ours sees. Slow, so it gets what takes bytes
# from the network and what counts; with --long every unit.
VALGRIND = ["valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite", "--error-exitcode=99"]
VALGRIND_UNITS = ["model_poll", "persist_persist", "persist_recompute", "rate_counter_periods",
                  "rate_counter_split", "rate_counter_state", "rate_counter_wrap", "rate_history",
                  "snmp_client", "snmp_correlate", "snmp_poller", "snmp_session", "snmp_walk",
                  "wire_ber", "wire_esmond_message", "wire_oid", "wire_snmp", "wire_usm"]
# The naive engine adds in long doubles there, which valgrind makes doubles.
VALGRIND_CANNOT = ["query_windows"]
VALGRIND_FACTOR = 10  # of the time limits


class Results:
    """What has happened so far; cases are added from several threads."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def add(self, name, status, reason=""):
        if status == "skipped" and all_has_to_be_here():
            status = "failed"  # one that skips in a way of its own
        if status == "passed":
            self.passed += 1
        elif status == "failed":
            self.failed.append((name, reason))
            say(f"FAILED  {name}: {reason}" if reason else f"FAILED  {name}")
        else:
            self.skipped.append((name, reason or "no reason given"))
            say(f"skipped {name}: {reason or 'no reason given'}")

    def finish(self):
        """The list of what was not well, the count, and the exit status."""
        if self.failed or self.skipped:
            say("")
        for name, reason in self.skipped:
            say(f"skipped {name}: {reason}")
        for name, reason in self.failed:
            say(f"FAILED  {name}: {reason}")
        say(f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped")
        return 1 if self.failed or not (self.passed or self.skipped) else 0


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# Process groups that run now; they must not outlive us.
RUNNING = set()


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of it has ended


def end_all(*_):
    for group in list(RUNNING):
        kill_group(group)
    os._exit(130)


def run(command, timeout_s, env=None, cwd=ROOT):
    """Status and combined output. Each command has a process group, which dies with its time limit
    and with its leader, so that a server which a test started does not outlive it."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, cwd=cwd, start_new_session=True,
                                   env={**os.environ, **(env or {})})
        RUNNING.add(process.pid)
        late = ""
        try:
            status = process.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            kill_group(process.pid)
            process.wait()
            status, late = -signal.SIGKILL, f"\nno end within {timeout_s} s\n"
        kill_group(process.pid)
        RUNNING.discard(process.pid)
        out.seek(0)
        return status, out.read().decode("utf-8", "replace") + late


def tail(text, lines=40):
    kept = text.strip().splitlines()[-lines:]
    return "\n".join("    " + line for line in kept)


def died(status):
    if status < 0:
        try:
            return f"died of {signal.Signals(-status).name}"
        except ValueError:
            return f"died of signal {-status}"
    return f"exit status {status}"


# ---- builds ------------------------------------------------------------------------------------


def build(results, flavour, count):
    """Whether it stands. A warning is an error (meson.build), so a pass means warning-free."""
    started = time.monotonic()
    status, output = run(["tools/build", flavour], 1800)
    say(f"built {BUILD_DIRS[flavour]} in {time.monotonic() - started:.0f} s")
    if status != 0:
        say(tail(output, 80))
        results.add(f"build:{flavour}", "failed", "does not build")
    elif count:
        results.add(f"build:{flavour}", "passed")
    return status == 0


# ---- cmocka ------------------------------------------------------------------------------------

CASE_RUN = re.compile(r"^\[ RUN      \] (\S+)")
CASE_END = re.compile(r"^\[\s+(OK|FAILED|SKIPPED|ERROR)\s+\] (\S+)\s*$")
PLACE = re.compile(r"^(?:\[  ERROR   \] --- )?\[   LINE   \] --- (\S+): error: ")
TAGS = re.compile(r"^(?:\[[^]]*\] ---\s*|ERROR: )+")
GROUP = re.compile(r"^\[==========\] Running (\d+) test")


def cmocka_cases(output):
    """(name, status, reason) of each case, and how many were announced. A program may hold several
    groups. The reason of a skip or a failure is the last line written before it; of an assertion,
    what it says and where it stands."""
    cases, announced, current, last = [], 0, None, ""
    for line in output.splitlines():
        group, begin, end = GROUP.match(line), CASE_RUN.match(line), CASE_END.match(line)
        place = PLACE.match(line)
        if group:
            announced += int(group.group(1))
        elif begin:
            current, last = begin.group(1), ""
        elif end and current is not None and end.group(2) == current:
            word = end.group(1)
            status = {"OK": "passed", "SKIPPED": "skipped"}.get(word, "failed")
            cases.append((current, status, "" if status == "passed" else last))
            current = None
        elif place and last:
            last += f" ({place.group(1)})"
        elif line.strip():
            last = TAGS.sub("", line.strip()) if current else ""
    return cases, announced, current


def tell(label, output):
    """What a long run tried, and from which seed: its own words, but for JSON and the log."""
    for line in output.splitlines():
        if line.strip() and not re.match(r"\{|\d{4}-\d\d-\d\dT", line):
            say(f"{label}: {line}")


def count_program(results, label, status, output, long):
    """A cmocka program counts by its cases; any other by its exit status."""
    cases, announced, unfinished = cmocka_cases(output)
    if announced == 0:
        reason = output.strip().splitlines()[-1] if output.strip() else ""
        word = {0: "passed", 77: "skipped"}.get(status, "failed")
        results.add(label, word, "" if word == "passed" else reason or died(status))
        if word == "failed":
            say(tail(output))
        elif long:
            tell(label, output)
        return
    failed = False
    for name, word, reason in cases:
        results.add(f"{label}:{name}", word, reason)
        failed |= word == "failed"
    for number in range(len(cases), announced):
        name = unfinished if unfinished and number == len(cases) else f"case {number + 1}"
        results.add(f"{label}:{name}", "failed", f"not finished, {died(status)}")
        failed = True
    if status != 0 and not failed:
        results.add(label, "failed", died(status))  # a leak, or a sanitizer at exit
        failed = True
    if failed:
        say(tail(output, 60))


def meson_tests(flavour):
    """Name, suite, command, time limit of every C test."""
    directory = BUILD_DIRS[flavour]
    status, output = run(["meson", "introspect", "--tests", directory], 60)
    if status != 0:
        raise SystemExit(f"meson introspect failed:\n{output}")
    return [{"name": t["name"], "suite": t["suite"][0].split(":")[-1], "command": t["cmd"],
             "timeout_s": t["timeout"], "env": t.get("env") or {}}
            for t in json.loads(output)]


def run_programs(results, suites, names, long):
    """Release first, then the same under the sanitizers; two at a time."""
    for flavour in ("release", "asan"):
        tests = [t for t in meson_tests(flavour) if t["suite"] in suites or t["name"] in names]
        if not tests:
            results.add(BUILD_DIRS[flavour], "failed",
                        "has no tests: cmocka (package libcmocka-dev) is not installed")
        env = SANITIZER_ENV if flavour == "asan" else {}
        factor = (LONG_FACTOR if long else 1) * (4 if flavour == "asan" else 1)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            jobs = {pool.submit(run, t["command"], t["timeout_s"] * factor,
                                {**t["env"], **env}): t for t in tests}
            for job in concurrent.futures.as_completed(jobs):
                status, output = job.result()
                label = f"{jobs[job]['suite']}/{jobs[job]['name']}"
                count_program(results, label if flavour == "release" else label + " (asan)",
                              status, output, long)


def run_valgrind(results, long):
    """The released programs: what they pick by the processor is what valgrind can run."""
    if not shutil.which(VALGRIND[0]):
        results.add("valgrind", "skipped", "valgrind (package valgrind) is not installed")
        return
    tests = [t for t in meson_tests("release") if t["name"] in VALGRIND_UNITS or
             (long and t["suite"] == "unit" and t["name"] not in VALGRIND_CANNOT)]
    for name in set(VALGRIND_UNITS) - {t["name"] for t in tests}:
        results.add(f"valgrind/{name}", "failed", "there is no such test")
    factor = VALGRIND_FACTOR * (LONG_FACTOR if long else 1)
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        jobs = {pool.submit(run, VALGRIND + t["command"], t["timeout_s"] * factor, t["env"]): t
                for t in tests}
        for job in concurrent.futures.as_completed(jobs):
            status, output = job.result()
            count_program(results, f"valgrind/{jobs[job]['name']}", status, output, False)


# ---- lint --------------------------------------------------------------------------------------


def run_lint(results):
    status, output = run(["tools/lint"], 300)
    seen = 0
    for line in output.splitlines():
        match = re.match(r"^(ok|not ok|skip) - ([^:]+)(?:: (.*))?$", line)
        if match:
            seen += 1
            word = {"ok": "passed", "not ok": "failed", "skip": "skipped"}[match.group(1)]
            results.add(f"lint/{match.group(2)}", word, match.group(3) or "")
        else:
            say("    " + line)
    if status not in (0, 1) or seen == 0:
        results.add("lint", "failed", died(status))


# ---- fuzz --------------------------------------------------------------------------------------


def fuzz_targets():
    path = os.path.join(ROOT, BUILD_DIRS["fuzz"], "tests", "fuzz")
    sources = os.path.join(ROOT, "tests", "fuzz")
    names = [f[:-2] for f in os.listdir(sources) if f.endswith(".c")] \
        if os.path.isdir(sources) else []
    return {name: os.path.join(path, "fuzz_" + name) for name in sorted(names)}


def fuzz_one(name, program, seconds):
    """New finds go to a folder that is thrown away; what crashes is kept in build-fuzz/crash."""
    crash = os.path.join(ROOT, BUILD_DIRS["fuzz"], "crash")
    os.makedirs(crash, exist_ok=True)
    corpus = os.path.join(ROOT, "tests", "fuzz", "corpus", name)
    with tempfile.TemporaryDirectory() as finds:
        command = [program, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
                   "-max_len=65536", "-print_final_stats=1", "-verbosity=0",
                   f"-artifact_prefix={crash}/{name}-", finds]
        if os.path.isdir(corpus):
            command.append(corpus)
        dictionary = os.path.join(ROOT, "tests", "fuzz", name + ".dict")
        if os.path.exists(dictionary):
            command.insert(1, f"-dict={dictionary}")
        return run(command, seconds + 120, SANITIZER_ENV)


def run_fuzz(results, names, long):
    targets = {n: p for n, p in fuzz_targets().items() if not names or "fuzz_" + n in names}
    if not targets:
        return
    total = FUZZ_SECONDS_LONG if long else FUZZ_SECONDS
    seconds = max(2, min(total * WORKERS // len(targets), 600 if long else 10))
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        jobs = {pool.submit(fuzz_one, n, p, seconds): n for n, p in targets.items()}
        for job in concurrent.futures.as_completed(jobs):
            status, output = job.result()
            runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", output)
            if status == 0 and runs and int(runs.group(1)) > 0:
                results.add(f"fuzz/{jobs[job]}", "passed")
                say(f"fuzz/{jobs[job]}: {runs.group(1)} inputs")
            else:
                say(tail(output, 60))
                results.add(f"fuzz/{jobs[job]}", "failed", died(status))


# ---- end to end --------------------------------------------------------------------------------


def venv_python():
    """pytest as tests/e2e/requirements.txt pins it, in a folder of its own; Debian's python3 when
    it is there, since the one on the path may lack venv."""
    directory = os.path.join(ROOT, ".venv")
    python = os.path.join(directory, "bin", "python")
    pinned = os.path.join(ROOT, "tests", "e2e", "requirements.txt")
    mark = os.path.join(directory, "requirements.txt")
    with open(pinned, encoding="utf-8") as file:
        wanted = file.read()
    if os.path.exists(mark):
        with open(mark, encoding="utf-8") as file:
            if file.read() == wanted:
                return python
    base = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    for command in ([base, "-m", "venv", "--clear", directory],
                    [python, "-m", "pip", "install", "-q", "-r", pinned]):
        status, output = run(command, 600)
        if status != 0:
            raise RuntimeError(f"{' '.join(command)}:\n{output}")
    with open(mark, "w", encoding="utf-8") as file:
        file.write(wanted)
    return python


def pytest_args(python, long):
    return [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o",
            "junit_logging=system-out", "tests/e2e"], {
        "GRANARY": os.path.join(ROOT, "build", "granary"), "PYTHONDONTWRITEBYTECODE": "1",
        **({"GRANARY_LONG": "1"} if long else {})}


def e2e_names():
    """Names of files (test_x) and functions, read from the text: no environment needed."""
    names = set()
    directory = os.path.join(ROOT, "tests", "e2e")
    for file_name in sorted(os.listdir(directory)):
        if file_name.startswith("test_") and file_name.endswith(".py"):
            names.add(file_name[:-3])
            with open(os.path.join(directory, file_name), encoding="utf-8") as file:
                names |= set(re.findall(r"^\s*def (test_\w+)", file.read(), re.M))
    return names


def run_e2e(results, names, long):
    if not e2e_names():
        return
    try:
        python = venv_python()
    except RuntimeError as error:
        results.add("e2e", "failed", str(error))
        return
    command, env = pytest_args(python, long)
    with tempfile.TemporaryDirectory() as directory:
        report = os.path.join(directory, "report.xml")
        command += [f"--junitxml={report}"]
        if names:
            command += ["-k", " or ".join(sorted(names))]
        status, output = run(command, 1200 * (LONG_FACTOR if long else 1), env)
        cases = []
        if os.path.exists(report):
            cases = ElementTree.parse(report).getroot().iter("testcase")
        count_pytest(results, cases, status, output, long)


def told_by(case):
    """What a case printed; pytest puts a ruler before it."""
    text = case.findtext("system-out") or ""
    return "\n".join(line for line in text.splitlines() if not line.startswith("----"))


def count_pytest(results, cases, status, output, long):
    before = len(results.failed)
    for case in cases:
        name = f"e2e/{case.get('classname', '').split('.')[-1]}:{case.get('name')}"
        bad = case.find("failure")
        bad = case.find("error") if bad is None else bad
        skip = case.find("skipped")
        if bad is not None:
            results.add(name, "failed", (bad.get("message") or "").splitlines()[:1] and
                        bad.get("message").splitlines()[0])
        elif skip is not None:
            results.add(name, "skipped", skip.get("message") or "")
        else:
            results.add(name, "passed")
            if long:
                tell(name, told_by(case))
    if status != 0:
        say(tail(output, 200))
        if len(results.failed) == before:
            results.add("e2e", "failed", died(status))


# ---- the whole ---------------------------------------------------------------------------------


def single_names():
    """Every name that may be given besides the parts. The build knows the C tests."""
    status, output = run(["tools/build", "release"], 1800)
    if status != 0:
        raise SystemExit(tail(output, 80) + "\nbuild: does not build")
    c_names = {test["name"] for test in meson_tests("release")}
    return c_names, e2e_names(), {"fuzz_" + name for name in fuzz_targets()}


def choose(names):
    """Parts, C tests, pytest names and fuzz targets that the arguments mean."""
    if all(name in PARTS for name in names):
        return {"parts": set(names or PARTS), "c": set(), "py": set(), "fuzz": set()}
    c_names, py_names, fuzz_names = single_names()
    chosen = {"parts": set(), "c": set(), "py": set(), "fuzz": set()}
    for name in names:
        if name in PARTS:
            chosen["parts"].add(name)
            continue
        hits = [(kind, known) for kind, known in (("c", c_names), ("py", py_names),
                                                  ("fuzz", fuzz_names)) if name in known]
        if not hits:
            raise SystemExit(f"no test is called {name}; ./test --list shows the names")
        for kind, _ in hits:
            chosen[kind].add(name)
    return chosen


def flavours_needed(chosen):
    parts = chosen["parts"]
    if "build" in parts:
        return FLAVOURS
    needed = []
    if parts & {"unit", "contract"} or chosen["c"]:
        needed += ["release", "asan"]
    if "valgrind" in parts:
        needed += ["release"]
    if "e2e" in parts or chosen["py"]:
        needed += ["release"]
    if "fuzz" in parts or chosen["fuzz"]:
        needed += ["fuzz"]
    return [f for f in FLAVOURS if f in needed]


def main():
    parser = argparse.ArgumentParser(prog="./test", description="Runs the tests.")
    parser.add_argument("names", nargs="*", help="parts or single tests; all without")
    parser.add_argument("--long", action="store_true", help="the full counts")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    if options.list:
        for group in (PARTS, *map(sorted, single_names())):
            say(" ".join(group))
        return 0
    chosen = choose(options.names)
    if options.long:
        os.environ["GRANARY_LONG"] = "1"
    # Colours would hide the lines that are counted.
    os.environ["CMOCKA_MESSAGE_OUTPUT"] = "STDOUT"

    signal.signal(signal.SIGINT, end_all)
    signal.signal(signal.SIGTERM, end_all)

    results = Results()
    started = time.monotonic()
    if "lint" in chosen["parts"]:
        run_lint(results)
    count = "build" in chosen["parts"]
    standing = {f for f in flavours_needed(chosen) if build(results, f, count)}
    suites = chosen["parts"] & {"unit", "contract"}
    if (suites or chosen["c"]) and {"release", "asan"} <= standing:
        run_programs(results, suites, chosen["c"], options.long)
    if "valgrind" in chosen["parts"] and "release" in standing:
        run_valgrind(results, options.long)
    if ("e2e" in chosen["parts"] or chosen["py"]) and "release" in standing:
        run_e2e(results, set() if "e2e" in chosen["parts"] else chosen["py"], options.long)
    if ("fuzz" in chosen["parts"] or chosen["fuzz"]) and "fuzz" in standing:
        run_fuzz(results, set() if "fuzz" in chosen["parts"] else chosen["fuzz"], options.long)
    say(f"in {time.monotonic() - started:.0f} s")
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
