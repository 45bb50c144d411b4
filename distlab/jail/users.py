"""Users that nobody else is, and the processes that are theirs."""

import os
import signal
import time
from pathlib import Path

__all__ = ["descendants", "first_user", "kill_all_of", "pids_of", "users_from"]

# The last numbers that a user can have, 64 for each process that there can be. systemd
# and containers take theirs from below.
_USERS = range(0x70000000, 0x7FFFFFFF, 64)
_FEW = range(20_000, 60_000)  # in a container that has no more


def first_user(init_pid: int) -> int:
    """Return the first of the users that a jail with this init may have."""
    first = _USERS.start + init_pid * _USERS.step
    known = [tuple(map(int, line.split())) for line in _lines("/proc/self/uid_map")]
    if any(start <= first < start + count - _USERS.step for start, _, count in known):
        return first
    return _FEW[init_pid % len(_FEW)]


def users_from(first: int) -> range:
    """Return all users of the jail whose first user this is."""
    return range(first, first + (_USERS.step if first >= _USERS.start else 1))


def pids_of(users: range) -> list[int]:
    """Return the processes of some users, of those that can be seen from here."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid in users:
                    found.append(int(name))
            except OSError:
                pass  # it has ended
    return found


def descendants() -> list[int]:
    """Return this process's children, and theirs, and so on."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2]
                parents.setdefault(int(fields.split()[1]), []).append(int(name))
            except OSError:
                pass  # it has ended
    found, todo = [], [os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def kill_all_of(users: range) -> None:
    """Kill every process of some users, however fast they start new ones."""
    while found := [pid for pid in pids_of(users) if not _is_zombie(pid)]:
        for user in {os.stat(f"/proc/{p}").st_uid for p in found if _exists(p)}:
            _kill_as(user)
        time.sleep(0.001)


def _kill_as(user):
    """Kill all that this user may kill: one call, so that none is born meanwhile."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def _is_zombie(pid):
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        )
    except OSError:
        return True


def _exists(pid):
    return os.path.exists(f"/proc/{pid}")


def _lines(path):
    return Path(path).read_text().splitlines()
