"""What shells offer behind half of a command line: the program knows it, and each shell asks."""

import contextlib
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from server import PATIENCE_S, ROOT, granary, run

SCRIPTS = ROOT / "completions"
ANSWER_S = 20


def offered(*words):
    answer = run("complete", "--", *words)
    assert answer.returncode == 0 and answer.stderr == ""
    return [line.split("\t")[0] for line in answer.stdout.splitlines()]


def commands():
    return re.findall(r"^  (\w+)  ", run("help").stdout, re.M)


def verbs(command):
    """As the usage of its help lists them."""
    usages = re.findall(rf"^(?:usage:|      ) granary {command} ([a-z-]+)\b",
                        run("help", command).stdout, re.M)
    return list(dict.fromkeys(usages))


def test_each_command_and_verb_is_offered():
    assert offered("") == offered() == commands()
    assert offered("tok") == ["token"]
    assert verbs("token") == ["list", "create", "change", "revoke"]
    for command in ["token", "device", "board", "snmp"]:
        assert offered(command, "") == verbs(command), command
    assert offered("token", "c") == ["create", "change"]
    assert offered("token", "--server", "http://[::1]:1", "c") == ["create", "change"]


def test_each_option_of_each_help_is_offered():
    for command in commands():
        for verb in verbs(command) if offered(command, "") == verbs(command) else [None]:
            words = [command] + ([verb] if verb else [])
            text = run("help", *words).stdout
            named = {name for name in re.findall(r"^  (?:-\w, )?(--[\w.-]+)", text, re.M)}
            found = offered(*words, "--")
            assert named <= set(found), (words, named - set(found))
            assert len(found) == len(set(found))
            assert found[-1:] == ["--help"] or command == "help"  # behind which are commands
    assert "--store.map_size" in offered("serve", "")
    assert offered("serve", "--store.map") == ["--store.map_size"]


def test_values_are_offered_where_they_are_known():
    assert offered("query", "--output", "") == ["table", "csv", "json"]
    assert offered("query", "-o", "j") == ["json"]
    assert offered("query", "--output=c") == ["--output=csv"]
    assert offered("serve", "--log.level", "") == ["error", "warn", "info", "debug"]
    assert offered("serve", "--log.level=d") == ["--log.level=debug"]
    assert offered("serve", "--host.enabled", "") == ["false", "true"]
    assert offered("manual", "") == ["1", "5"]
    assert offered("help", "tok") == ["token"]
    assert offered("help", "token", "l") == ["list"]
    # Nothing: the shell has files for it.
    for words in [("serve", "--config", ""), ("query", "--start", ""), ("import", ""),
                  ("nosuch", ""), ("token", "create", "--name", "")]:
        assert offered(*words) == [], words


def test_lines_that_are_odd_do_no_harm():
    for words in [("",) * 200, ("=",), ("-=", "=-"), ("--output=",), ("help", "nosuch", ""),
                  ("help", "token", "list", ""), ("query", "x" * 10000), ("token", "=x", "--=")]:
        assert isinstance(offered(*words), list)


# ---- Shells


def need(shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    return shell


class Terminal:
    """A shell on a terminal of its own, which has `granary` in its path."""

    def __init__(self, folder, *command):
        place = folder / "bin"
        place.mkdir()
        (place / "granary").symlink_to(granary())
        environment = {"PATH": f"{place}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "> ",
                       "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)
        self.seen = ""

    def type(self, text):
        self.seen = ""
        os.write(self.fd, text.encode())

    def expect(self, words):
        deadline = time.monotonic() + ANSWER_S
        while words not in self.seen:
            if not select.select([self.fd], [], [], max(0, deadline - time.monotonic()))[0]:
                pytest.fail(f"{words!r} did not come, but {self.seen!r}")
            self.seen += os.read(self.fd, 65536).decode(errors="replace").replace("\r", "")

    def close(self):
        os.close(self.fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


@contextlib.contextmanager
def terminal(folder, *command):
    shell = Terminal(folder, *command)
    try:
        yield shell
    finally:
        shell.close()


def complete_in(shell):
    """The same lines in both shells; what is typed is echoed, so what is awaited goes on."""
    shell.type("granary tok\t")
    shell.expect("granary token")
    shell.type("cr\t")
    shell.expect("create")
    shell.type("--exp\t")
    shell.expect("--expires")
    shell.type("\x15")  # the line is taken back
    shell.type("granary query m --output=j\t")
    shell.expect("m --output=json")
    shell.type("\x15")  # the line is taken back
    shell.type("granary serve --log.level d\t")
    shell.expect("--log.level debug")
    shell.type("\x15")  # the line is taken back
    shell.type("granary serve --host.enabled \t\t")
    shell.expect("false")
    shell.type("\x15")  # the line is taken back
    shell.type("granary serve --config a-f\t")
    shell.expect("a-file.yml")


def test_bash_completes(tmp_path):
    (tmp_path / "a-file.yml").touch()
    with terminal(tmp_path, need("bash"), "--norc", "--noprofile", "-i") as shell:
        shell.expect("> ")
        shell.type(f". {SCRIPTS}/granary.bash; echo do''ne\n")
        shell.expect("done")
        complete_in(shell)


def test_zsh_completes(tmp_path):
    (tmp_path / "a-file.yml").touch()
    with terminal(tmp_path, need("zsh"), "-f", "-i") as shell:
        shell.type(f"fpath=({SCRIPTS} $fpath); autoload -U compinit; compinit -u -D; echo do''ne\n")
        shell.expect("done")
        complete_in(shell)


def test_fish_completes(tmp_path):
    (tmp_path / "a-file.yml").touch()
    place = tmp_path / "bin"
    place.mkdir()
    (place / "granary").symlink_to(granary())

    def found(line):
        answer = subprocess.run(
            [need("fish"), "--no-config", "-c",
             f"source {SCRIPTS}/granary.fish; complete -C '{line}'"], cwd=tmp_path,
            env={"PATH": f"{place}:{os.environ['PATH']}", "HOME": str(tmp_path)},
            capture_output=True, text=True, timeout=PATIENCE_S)
        assert answer.returncode == 0 and answer.stderr == "", answer.stderr
        return [tuple(each.split("\t")) for each in answer.stdout.splitlines()]

    assert found("granary tok") == [("token", "make, list, change and revoke credentials")]
    assert [word for word, *_ in found("granary token c")] == ["change", "create"]
    assert [word for word, *_ in found("granary token create --exp")] == ["--expires"]
    words = [word for word, *_ in found("granary query --output ")]
    assert sorted(words) == ["csv", "json", "table"]
    assert [word for word, *_ in found("granary serve --config a-f")] == ["a-file.yml"]
