"""Linux namespaces for forks in the sandbox, by system calls that Python lacks."""

import ctypes
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["become_nobody", "enter_own", "fork_in_own_pids", "users_of_root"]

_NEWNS, _NEWIPC, _NEWUSER = 0x00020000, 0x08000000, 0x10000000
_NEWPID, _NEWNET = 0x20000000, 0x40000000
_NOSUID_NODEV, _BIND_ALL, _SET_DUMPABLE = 2 | 4, 4096 | 16384, 4
NOBODY = 65534
_libc = ctypes.CDLL(None, use_errno=True)


def become_nobody() -> None:
    """Become a user without any rights, in a user namespace with all users."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    _check(_libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0), "prctl")  # /proc/self is its own


def users_of_root() -> int | None:
    """Return a descriptor of a user namespace with all users, None if not root.

    Limits on processes do not bind root, so forks in the sandbox become `NOBODY`.
    """
    if os.getuid() != 0:
        return None
    (ready, is_ready), (seen, is_seen) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(is_seen)
            _check(_libc.unshare(_NEWUSER), "unshare")
            os.write(is_ready, b"!")
            os.read(seen, 1)
        finally:
            os._exit(0)
    os.close(is_ready)
    try:
        if not os.read(ready, 1):
            return None
        for kind in ("uid", "gid"):
            Path(f"/proc/{pid}/{kind}_map").write_text("0 0 65536")
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
    except OSError:
        return None
    finally:
        for each in (ready, seen, is_seen):
            os.close(each)
        os.waitpid(pid, 0)


def fork_in_own_pids() -> int:
    """Fork; the child is the first process of a new pid namespace, and ends it."""
    here, pid = os.open("/proc/self/ns/pid", os.O_RDONLY), None
    _check(_libc.unshare(_NEWPID), "unshare")  # of the children of this process
    try:
        pid = os.fork()
    finally:
        if pid != 0:
            _check(_libc.setns(here, _NEWPID), "setns")
        os.close(here)
    return pid


def enter_own(disk_bytes: int, *, network: bool) -> None:
    """Enter new namespaces of mounts, users and IPC, with a new /tmp and /dev/shm.

    All these mounts stay, and can no longer be unmounted; so does a Python that is
    somewhere in /tmp. network: also a network namespace, which is empty.
    """
    _enter_users(_NEWNS | _NEWIPC | (_NEWNET if network else 0))
    for what in ("shmmni", "msgmni"):  # memory that no limit would see
        with suppress(OSError):
            Path(f"/proc/sys/kernel/{what}").write_text("0")
    options = f"size={disk_bytes},nr_inodes=50000".encode()
    for place in (b"/tmp", b"/dev/shm"):
        kept = [(path, os.open(path, os.O_PATH)) for path in _mounted_in(place)]
        done = _libc.mount(b"tmpfs", place, b"tmpfs", _NOSUID_NODEV, options)
        _check(done, "mount")
        for path, file in kept:
            os.makedirs(path)
            there = f"/proc/self/fd/{file}".encode()
            _check(_libc.mount(there, path, None, _BIND_ALL, None), "mount")
            os.close(file)
    _enter_users(_NEWNS)  # which locks the mounts that it inherits


def _enter_users(kinds):
    """Become the root of a new user namespace, and enter others that it owns."""
    user, group = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEWUSER | kinds), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")  # or nothing can be mounted
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")


def _mounted_in(place):
    """Return the outermost mount points below a folder."""
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    found = []
    for path in sorted({line.split()[4] for line in lines}, key=len):
        if path.startswith(place + b"/") and not any(
            path.startswith(outer + b"/") for outer in found
        ):
            found.append(path)
    return found


def _check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
