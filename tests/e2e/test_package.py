"""The Debian package, and its units: installed for real, upgraded, removed and purged, in a copy of
this machine's root that lies in memory (an overlay) and ends with the test. There systemctl is a
program that notes how it was called; what systemd would do then the test does."""

import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import textwrap

import pytest

import mounts
from server import PATIENCE_S, ROOT, Server, eventually, run
from supervisor import Supervisor

pytestmark = pytest.mark.not_sanitized("packs what the release build has")

UNITS = {path.name.split(".")[-2]: path for path in (ROOT / "debian").glob("*.service")}
EXPOSURE_MAX = 3.0
BUILD_S = 600


def need(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


def of_unit(name, key):
    """The values of a key, in their order."""
    return re.findall(rf"^{key}=(.*)$", UNITS[name].read_text(), re.M)


@pytest.mark.parametrize("name", ["granary", "granary-agent", "granary-poll"])
def test_units_are_hardened(name):
    need("systemd-analyze")
    answer = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                             UNITS[name]], capture_output=True, text=True, timeout=PATIENCE_S)
    assert answer.returncode == 0, answer.stderr
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", answer.stdout).group(1)
    assert float(exposure) <= EXPOSURE_MAX
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", UNITS[name]],
                             capture_output=True, text=True, timeout=PATIENCE_S)
    wrong = [line for line in checked.stderr.splitlines() if "is not executable" not in line]
    assert not wrong
    assert of_unit(name, "Type") == ["notify"] and of_unit(name, "User") == ["granary"]


def test_the_unit_gives_the_server_the_time_that_it_takes():
    """stop_timeout, what comes on top of it, and the closing of the store."""
    assert int(of_unit("granary", "TimeoutStopSec")[0]) >= 10 + 30 + 30
    assert int(of_unit("granary", "WatchdogSec")[0]) >= 60


def calls_of(group):
    """The system calls of a group of systemd's, as systemd itself has them."""
    answer = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", group],
                            capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    found = set()
    for word in answer.stdout.split("\n")[1:]:
        if (word := word.strip()) and not word.startswith("#"):
            found |= calls_of(word) if word.startswith("@") else {word}
    return found


def test_the_server_makes_no_call_that_its_unit_forbids(make_server, tmp_path):
    """What it calls from its start to its end, with something of everything between."""
    need("strace")
    need("systemd-analyze")
    log = tmp_path / "app.log"
    log.write_text("a line\n")
    server = make_server(host_metrics=True, config=(
        'line_udp: {listen: "127.0.0.1:0"}\n'
        f"adaptors: {{app: {{tail: {log}, datatype: App}}}}\n"))
    command = server.command()
    server.command = lambda: ["strace", "-f", "-qq", "-o", str(tmp_path / "calls"), *command]
    server.start()
    assert server.write("m,a=b value=1").status == 204
    assert server.query("m", start="1h-ago")
    assert server.request("POST", "/oops", json.dumps({"id": "OOPS-1", "type": "E", "value": "v"}),
                          {"Content-Type": "application/json"}).status < 300
    eventually(lambda: server.get("/api/streams").json["streams"], "the line has arrived")
    children = f"/proc/{server.process.pid}/task/{server.process.pid}/children"
    with open(children) as file:
        traced = int(file.read().split()[0])
    os.kill(traced, signal.SIGHUP)
    eventually(lambda: "reload: done" in server.log_text())
    server.close()
    os.kill(traced, signal.SIGTERM)
    assert server.process.wait(PATIENCE_S) == 0
    calls = (tmp_path / "calls").read_text()
    made = set(re.findall(r"^\d+ +(\w+)\(", calls, re.M))
    assert {"pwrite64", "fdatasync", "epoll_wait", "recvfrom"} & made and len(made) > 40
    filters = [line.split() for line in of_unit("granary", "SystemCallFilter")]
    assert filters == [["@system-service"], ["~@privileged"]]
    assert made <= calls_of("@system-service") - calls_of("@privileged")
    families = set(re.findall(r"\bsocket\((AF_\w+)", calls))
    assert families <= set(of_unit("granary", "RestrictAddressFamilies")[0].split())
    assert not re.search(r"\b(?:mmap|mprotect)\(.*PROT_WRITE\|PROT_EXEC", calls)


def test_versions_are_one():
    version = run("version").stdout.split()[1]
    assert re.match(r"granary \((.*?)-\d+\) ", (ROOT / "debian/changelog").read_text()).group(1) \
        == version


# ---- The package


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Packed once; what it packs has been built."""
    need("dh")
    answer = subprocess.run([ROOT / "tools/build", "package"], capture_output=True, text=True,
                            timeout=BUILD_S)
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-4000:]
    built = re.search(r"^dpkg-deb: building package 'granary' in '(.*)'\.$", answer.stdout, re.M)
    return ROOT / built.group(1)


@pytest.fixture(scope="module")
def older(package, tmp_path_factory):
    """The same, of a lower version and with another text in its configuration."""
    folder = tmp_path_factory.mktemp("older")
    subprocess.run(["dpkg-deb", "-R", package, folder / "tree"], check=True, timeout=PATIENCE_S)
    control = folder / "tree/DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*$", "Version: 0.0.1-1", control.read_text()))
    conf = folder / "tree/etc/granary/granary.yml"
    conf.write_text("# As it was.\n" + conf.read_text())
    old = folder / "granary_0.0.1-1_amd64.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder / "tree", old], check=True,
                   capture_output=True, timeout=PATIENCE_S)
    return old


def test_lintian_finds_no_error(package):
    need("lintian")
    answer = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", package],
                            capture_output=True, text=True, timeout=BUILD_S)
    assert answer.returncode == 0, answer.stdout + answer.stderr


class Root:
    """A copy of this machine's root, in which programs run."""

    ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                   "DEBIAN_FRONTEND": "noninteractive"}

    def __init__(self, folder):
        self.path = folder / "root"

    def run(self, *command, user=None, **options):
        words = ["chroot", self.path, *(["setpriv", f"--reuid={user}", f"--regid={user}",
                                         "--init-groups"] if user else []), *command]
        return subprocess.run(list(map(str, words)), capture_output=True, text=True,
                              timeout=PATIENCE_S, env=self.ENVIRONMENT, **options)

    def dpkg(self, *words, package=None):
        if package:
            shutil.copy(package, self.path / "tmp/granary.deb")
            words = [*words, "/tmp/granary.deb"]
        answer = self.run("dpkg", "--force-unsafe-io", *words, stdin=subprocess.DEVNULL)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    def file(self, name):
        return self.path / name.lstrip("/")

    def have_systemd(self):
        """One that is up, as packages see it: it notes what it is told."""
        self.file("/run/systemd/system").mkdir(parents=True)
        program = self.file("/usr/bin/systemctl")
        program.rename(program.with_name("systemctl.real"))
        program.write_text(textwrap.dedent("""\
            #!/bin/sh
            echo "$@" >>/run/systemctl
            for unit; do :; done
            case "$*" in
            *preset* | *--root=*) exec systemctl.real "$@" ;;
            *is-enabled*) exec systemctl.real --root=/ is-enabled "$unit" ;;
            *is-active*) exit 3 ;;
            esac
            """))
        program.chmod(0o755)
        self.file("/usr/sbin/policy-rc.d").unlink(missing_ok=True)

    def told(self):
        """What systemd was told since the last time, of granary's units."""
        notes = self.file("/run/systemctl")
        text = notes.read_text() if notes.exists() else ""
        notes.unlink(missing_ok=True)
        return re.findall(r"\b(start|restart|stop) (granary\S*\.service)", text)


@contextlib.contextmanager
def copied_root(folder):
    mounts.need_mounts()
    place = Root(folder)
    with contextlib.ExitStack() as ends:
        memory = ends.enter_context(mounts.memory(folder / "memory", "512m"))
        for name in ["upper", "work"]:
            (memory.folder / name).mkdir()
        parts = [mounts.Mount(place.path, "overlay", "overlay",
                              f"lowerdir=/,upperdir={memory.folder}/upper,"
                              f"workdir={memory.folder}/work"),
                 mounts.Mount(place.path / "proc", "proc", "proc"),
                 mounts.Mount(place.path / "dev", "none", "/dev", "bind"),
                 mounts.Mount(place.path / "run", "tmpfs", "run")]
        for part in parts:
            part.mount()
            ends.callback(subprocess.run, ["umount", "-l", part.folder], check=True)
        if place.run("dpkg-query", "-W", "granary").returncode == 0:
            pytest.skip("this machine has granary installed")
        # The index of all manual pages takes longer than everything else.
        place.file("/var/lib/man-db/auto-update").unlink(missing_ok=True)
        yield place


@pytest.fixture
def root(tmp_path):
    with copied_root(tmp_path) as place:
        yield place


@contextlib.contextmanager
def started(root, name="granary", **settings):
    """The unit's own command, as systemd would run it: its user, its folders, its socket."""
    user = of_unit(name, "User")[0]
    command = of_unit(name, "ExecStart")[0].split()
    for key, value in settings.items():
        command = [word.replace("${%s}" % key, value).replace(f"${key}", value) for word in command]
    environment = dict(root.ENVIRONMENT)
    for file in of_unit(name, "EnvironmentFile"):
        if file.startswith("-") and root.file(file[1:]).exists():
            environment |= dict(line.split("=", 1)
                                for line in root.file(file[1:]).read_text().splitlines())
    data = root.file(f"/var/lib/{of_unit(name, 'StateDirectory')[0]}")
    identity = root.run("id", "-u", user).stdout.strip()
    if not data.exists():
        data.mkdir(mode=0o750)
        os.chown(data, int(identity), int(identity))
    supervisor = Supervisor(watchdog_s=2)
    process = subprocess.Popen(["chroot", root.path, "setpriv", f"--reuid={user}",
                                f"--regid={user}", "--init-groups", "--inh-caps=-all",
                                "--bounding-set=-all", "--no-new-privs", *command],
                               env={**environment, **supervisor.environment})
    try:
        supervisor.wait("READY", "1")
        supervisor.wait("WATCHDOG", "1")
        status = (root.path / f"proc/{process.pid}/status").read_text()
        assert re.search(rf"^Uid:\t{identity}\t", status, re.M)
        assert re.search(r"^CapEff:\t0+$", status, re.M)
        yield process
        process.terminate()
        supervisor.wait("STOPPING", "1")
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        supervisor.close()


def configure(root):
    """A port of the test's, behind what the package has."""
    server = Server(root.path / "tmp")  # which knows a port, and how to ask there
    with open(root.file("/etc/granary/granary.yml"), "a") as conf:
        conf.write(f'listen: "127.0.0.1:{server.port}"\nhost: {{enabled: false}}\n')
    return server


def state_of(root):
    answer = root.run("dpkg-query", "-W", "-f", "${db:Status-Status}", "granary")
    return answer.stdout if answer.returncode == 0 else "unknown"


def test_a_package_is_installed_upgraded_removed_and_purged(root, package, older):
    root.have_systemd()
    root.dpkg("-i", package=older)
    assert root.told() == [("start", "granary.service")]
    assert root.file("/etc/systemd/system/multi-user.target.wants/granary.service").is_symlink()
    assert not root.file("/etc/systemd/system/multi-user.target.wants/"
                         "granary-agent.service").is_symlink()
    data = root.file("/var/lib/granary")
    identity = int(root.run("id", "-u", "granary").stdout)
    assert data.stat().st_uid == identity and data.stat().st_mode & 0o777 == 0o750
    assert identity not in {one.pw_uid for one in pwd.getpwall()}  # it is the copy's alone
    server = configure(root)
    mine = root.file("/etc/granary/granary.yml").read_text()
    with started(root):
        assert server.write("m,a=b value=1 1600000000000000000").status == 204
        server.close()

    # What somebody has changed is kept, and the server begins again with its data.
    root.dpkg("--force-confold", "-i", package=package)
    assert root.told() == [("restart", "granary.service")]
    assert root.file("/etc/granary/granary.yml").read_text() == mine
    with started(root):
        assert list(server.values("m").values()) == [1.0]
        assert server.write("m,a=b value=2 1600000001000000000").status == 204
        server.close()

    root.dpkg("-r", "granary")
    assert sorted(root.told()) == [("stop", f"{name}.service") for name in
                                   ["granary-agent", "granary-poll", "granary"]]
    assert state_of(root) == "config-files" and not root.file("/usr/bin/granary").exists()
    assert root.file("/etc/granary/granary.yml").read_text() == mine
    assert (data / "data.mdb").exists()
    root.dpkg("-i", package=package)
    with started(root):
        assert list(server.values("m").values()) == [1.0, 2.0]
        server.close()

    # All that doc/install.md and doc/tls.md have one make there.
    made = set(re.findall(r"/etc/(?:granary|default)/[\w.-]+", "".join(
        (ROOT / "doc" / page).read_text() for page in ["install.md", "tls.md"])))
    assert {"/etc/granary/agent.token", "/etc/granary/poll.token", "/etc/granary/server.key",
            "/etc/default/granary-agent", "/etc/default/granary-poll"} <= made
    for name in made:
        root.file(name).touch(0o400)
    root.dpkg("-P", "granary")
    assert state_of(root) == "unknown"
    assert not [name for name in made if root.file(name).exists()]
    assert not root.file("/etc/granary").exists()
    left = root.run("find", "/etc", "/lib/systemd", "/usr", "/var/lib", "-xdev", "-name",
                    "*granary*").stdout
    assert not [name for name in left.split() if not name.startswith("/usr/share/doc-base")], left
    assert root.run("id", "-u", "granary").stdout  # what is left of its files is nobody else's


@pytest.fixture(scope="module")
def installed(package, older, tmp_path_factory):
    """A machine without systemd, as a container, where the package is; upgraded from an older one
    whose configuration nobody has changed."""
    with copied_root(tmp_path_factory.mktemp("installed")) as root:
        shutil.rmtree(root.file("/usr/lib/systemd"))
        for program in ["systemctl", "deb-systemd-invoke"]:
            root.file(f"/usr/bin/{program}").unlink()
        root.dpkg("-i", package=older)
        assert root.file("/etc/granary/granary.yml").read_text().startswith("# As it was.")
        root.dpkg("-i", package=package)
        yield root
        root.dpkg("-P", "granary")
        assert state_of(root) == "unknown"
        assert not root.file("/var/lib/granary").exists()


def test_a_configuration_that_nobody_changed_is_the_new_one(installed):
    assert installed.file("/etc/granary/granary.yml").read_text() \
        == (ROOT / "debian/granary.yml").read_text()


def test_manual_pages_and_completions_are_where_they_are_looked_for(installed):
    for section, name in [("1", "granary"), ("5", "granary.yml")]:
        answer = installed.run("man", "-w", section, name)
        assert answer.stdout.strip() == f"/usr/share/man/man{section}/{name}.{section}.gz"
    answer = installed.run("bash", "-c", ". /usr/share/bash-completion/completions/granary; "
                           "COMP_LINE='granary tok'; COMP_POINT=11; _granary; "
                           "echo \"${COMPREPLY[@]}\"")
    assert answer.stdout == "token\n"


def test_server_agent_and_poller_start_by_their_units(installed):
    """Agent and poller once they are configured; before that they are off."""
    for name, file in [("granary-agent", "agent.yml"), ("granary-poll", "poll.yml")]:
        assert of_unit(name, "ConditionPathExists") == [f"/etc/granary/{file}"]
        assert not installed.file(f"/etc/granary/{file}").exists()
    installed.file("/var/log/app.log").write_text("a line\n")
    server = configure(installed)
    installed.file("/etc/granary/agent.yml").write_text(
        f"agent: {{collectors: [{server.url}]}}\n"
        "adaptors: {app: {tail: /var/log/app.log, datatype: App}}\n")
    with started(installed):
        server.put([{"metric": "m", "timestamp": 1600000000, "value": 5, "tags": {"a": "b"}}])
        answer = installed.run("granary", "query", "m", "--start", "0", "-o", "csv", "--server",
                               server.url)
        assert answer.returncode == 0 and answer.stdout.splitlines()[1].endswith(",5.0")
        server.close_to_others()
        agent = server.request("POST", "/api/credentials?name=agent&roles=read,write&tenants=*")
        token = installed.file("/etc/granary/agent.token")
        token.write_text(agent.json["token"] + "\n")
        os.chown(token, *[int(installed.run("id", "-u", "granary").stdout)] * 2)
        token.chmod(0o400)
        installed.file("/etc/default/granary-agent").write_text(
            "GRANARY_TOKEN_FILE=/etc/granary/agent.token\n")
        with started(installed, "granary-agent"):
            eventually(lambda: server.get("/api/streams").json["streams"], "the line has arrived")
        server.close()
    installed.file("/etc/granary/poll.yml").write_text('listen: "127.0.0.1:0"\n')
    with started(installed, "granary-poll", SERVER=server.url, ARGUMENTS="--name=here"):
        assert installed.file("/var/lib/granary-poll/data.mdb").exists()
