"""./run, ./test and ./bench on a machine that has not seen them yet, in any order."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from server import ROOT, Server, long_run

# What ./test and ./bench need besides what ./run needs, by the name pkg-config has for it.
PACKAGES_OF_TESTS = {"cmocka.pc", "netsnmp.pc"}


def clone(folder):
    """The tree as it is here, without what was built of it."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                           check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def without_packages_of_tests(folder):
    """An environment in which pkg-config does not find them."""
    folder.mkdir()
    found = subprocess.run(["pkg-config", "--variable", "pc_path", "pkg-config"], check=True,
                           capture_output=True, text=True).stdout.strip()
    for directory in found.split(":"):
        for path in pathlib.Path(directory).glob("*.pc"):
            if path.name not in PACKAGES_OF_TESTS and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
    return {**os.environ, "PKG_CONFIG_LIBDIR": str(folder)}


def set_up(folder, env=None):
    """Sets the release up as ./run and ./test do, without building it; the tests it then has."""
    subprocess.run(["tools/build", "release", "-n", "granary"], cwd=folder, env=env, check=True,
                   capture_output=True, timeout=300)
    told = subprocess.run(["meson", "introspect", "--tests", "build"], cwd=folder, check=True,
                          capture_output=True, text=True).stdout
    return {test["name"] for test in json.loads(told)}


def test_the_release_set_up_before_the_test_packages_came_had_no_tests(tmp_path):
    tree = clone(tmp_path / "tree")
    bare = without_packages_of_tests(tmp_path / "pkgconfig")
    assert set_up(tree, bare) == set()
    (tree / "build" / "kept").touch()
    assert {"conf_read", "contract_lmdb", "sim"} <= set_up(tree)
    assert (tree / "build" / "kept").exists(), "what ./run has built is built again"


@pytest.mark.parametrize("command,shown", [
    (["./test", "--help"], "--long"), (["./test", "--list"], "test_two_commands"),
    (["./test", "--list", "unit"], "conf_read"), (["./bench", "--help"], "--parts")])
def test_help_and_list_installed_and_built_everything_first(tmp_path, command, shown):
    tree = clone(tmp_path / "tree")
    for tool in ("setup", "build"):
        (tree / "tools" / tool).write_text("#!/bin/sh\necho called >&2\nexit 9\n")
    answer = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=60)
    assert (answer.returncode, answer.stderr) == (0, ""), answer
    assert shown in answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 100
    assert not list(tree.glob("build*")) and not (tree / ".venv").exists()


# ---- the same on a bare Debian


def debian_mirror():
    """Where this machine's apt gets bookworm from."""
    told = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)",
                           "Created-By: Packages"], capture_output=True, text=True).stdout
    for line in told.splitlines():
        uri, codename = line.split()
        if codename == "bookworm":
            return uri
    return pytest.skip("apt is not set up with a mirror of Debian 12")


@pytest.fixture
def bare_debian(tmp_path):
    """A Debian 12 with nothing but apt, and how to run a command in it."""
    if not shutil.which("debootstrap"):
        pytest.skip("debootstrap (package debootstrap) is not installed")
    if os.geteuid() != 0:
        pytest.skip("only root can make a Debian to change into")
    root = tmp_path / "debian"
    subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm",
                    str(root), debian_mirror()], check=True, timeout=900,
                   stdout=subprocess.DEVNULL)
    for path in ("sources.list", "sources.list.d", "apt.conf.d", "auth.conf.d"):
        path = pathlib.Path("/etc/apt") / path
        if path.is_dir():
            shutil.copytree(path, root / str(path)[1:], dirs_exist_ok=True)
        elif path.exists():
            shutil.copy2(path, root / str(path)[1:])
    for path in pathlib.Path("/usr/share/keyrings").glob("*"):
        shutil.copy2(path, root / str(path)[1:])
    shutil.copy2("/etc/resolv.conf", root / "etc/resolv.conf")
    clone(root / "granary")
    subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
    try:
        yield root
    finally:
        subprocess.run(["umount", "-l", str(root / "proc")], check=True)


def in_debian(root, *command):
    env = {key: value for key, value in os.environ.items()
           if key.lower().endswith("_proxy") or key in ("LANG", "TERM")}
    env["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"args": ["chroot", str(root), "sh", "-c", f"cd /granary && exec {' '.join(command)}"],
            "env": env, "stdin": subprocess.DEVNULL}


def run_then_test_then_bench_on_a_bare_debian(bare_debian, tmp_path):
    server = Server(tmp_path / "run")
    with open(server.log_path, "w") as log:
        server.process = subprocess.Popen(
            **in_debian(bare_debian, "./run", "--listen", f"127.0.0.1:{server.port}"),
            stdout=log, stderr=log)
    try:
        server.wait_ready(1200)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0, server.log_tail()
    finally:
        server.kill()
    for command, last in ((["./test", "conf_read"], " 0 failed, 0 skipped"),
                          (["./bench", "--help"], "")):
        answer = subprocess.run(**in_debian(bare_debian, *command), capture_output=True, text=True,
                                timeout=3000)
        assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-4000:]
        assert answer.stdout.strip().endswith(last)


if long_run():  # it installs and builds everything, which takes a quarter of an hour
    test_run_then_test_then_bench_on_a_bare_debian = run_then_test_then_bench_on_a_bare_debian
