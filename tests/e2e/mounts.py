"""File systems of our own to break: images on loop devices and tmpfs, in a mount namespace that
ends with this process, so that nothing is left mounted whatever happens to it."""

import contextlib
import ctypes
import fcntl
import functools
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

from server import eventually

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
GOING_DOWN = 0x8004587D  # _IOR('X', 125, uint32)
LOG_FLUSH, NO_LOG_FLUSH = 1, 2

MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}


def command(*arguments):
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise OSError(f"{' '.join(map(str, arguments))}: {(done.stderr or done.stdout).strip()}")


@functools.cache
def why_not():
    """Why this machine cannot mount for us; empty if it can. After it, mounts are private."""
    if os.geteuid() != 0:
        return "mounting takes root"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        return f"no mount namespace: {os.strerror(ctypes.get_errno())}"
    return ""


def need_mounts():
    if why_not():
        pytest.skip(why_not())


class Mount:
    """A mounted place; `folder` is unmounted at the end however busy it is."""

    def __init__(self, folder, kind, source, options=""):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kind, self.source, self.options = kind, source, options

    def mount(self, options=""):
        options = ",".join(filter(None, [self.options, options]))
        command("mount", "-t", self.kind, *(["-o", options] if options else []), self.source,
                self.folder)

    def unmount(self):
        """What another thread forks has our files, too, until it is another program."""
        def unmounted():
            try:
                command("umount", self.folder)
            except OSError as error:
                if "busy" not in str(error):
                    raise
                return False
            return True
        eventually(unmounted, f"{self.folder} is not busy")

    def remount(self, options):
        command("mount", "-o", f"remount,{options}", self.folder)

    def shut_down(self, flag):
        """Power cut: what was not synced is gone, every later I/O is an error."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, GOING_DOWN, struct.pack("I", flag))
        finally:
            os.close(folder)


@contextlib.contextmanager
def image(folder, kind, megabytes):
    """A fresh file system of its own, mounted; skips the test where that cannot be had."""
    need_mounts()
    if not shutil.which(MAKE[kind][0]):
        pytest.skip(f"{MAKE[kind][0]} is not installed")
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{kind}.img"
    with open(path, "wb") as file:
        file.truncate(megabytes << 20)
    command(*MAKE[kind], path)
    place = Mount(folder / f"on-{kind}", kind, path, "loop")
    try:
        place.mount()
    except OSError as error:
        pytest.skip(f"no loop mount of {kind}: {error}")
    try:
        yield place
    finally:
        with contextlib.suppress(OSError):
            command("umount", "-l", place.folder)
        path.unlink()


@contextlib.contextmanager
def memory(folder, size):
    """A tmpfs of that size."""
    need_mounts()
    place = Mount(folder, "tmpfs", "granary-test", f"size={size}")
    place.mount()
    try:
        yield place
    finally:
        with contextlib.suppress(OSError):
            command("umount", "-l", place.folder)
