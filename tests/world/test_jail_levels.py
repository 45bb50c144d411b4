"""The jail where there is no root, and where there are no namespaces."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jails
import pytest
from jails import all_may_read_python, did, refused, until_ended

from distlab.errors import JailFailed
from distlab.jail import Jail, Limits, best_isolation, isolation, words
from distlab.jail.users import pids_of, users_from

ROOT = Path(__file__).parents[2]
MiB = 2**20
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root has users to give")


@pytest.fixture
def jail():
    with Jail(isolation="unprivileged user") as one:
        yield one


def read(path):
    return Path(path).read_text()


@AS_ROOT
def test_without_namespaces_what_is_closed_to_others_is_closed(jail, tmp_path):
    marks = tmp_path / "gradebook.db"
    marks.write_text("the marks")
    marks.chmod(0o600)
    assert "PermissionError" in refused(jail, read, str(marks))
    assert "PermissionError" in refused(jail, read, "/etc/shadow")
    assert "PermissionError" in refused(jail, os.kill, os.getpid(), signal.SIGKILL)
    assert "PermissionError" in refused(jail, os.setuid, 0)
    assert did(jail, os.getcwd) == jail.home


def leave_daemons():
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.fork():
                os._exit(0)
            time.sleep(0.002)
    time.sleep(0.2)
    return os.getuid()


@AS_ROOT
def test_without_namespaces_nothing_stays_either(jail):
    users = users_from(jail._uid)
    with jail.inhabit():
        processes = jails.start(jail, leave_daemons)
    while not pids_of(users):
        processes.poll(0.05)
    time.sleep(0.3)
    jail.close()
    assert pids_of(users) == [] and not os.path.exists(jail.folder)
    processes.stop()


def fork_bomb():
    while True:
        try:
            os.fork()
        except OSError:
            pass


def fill(folder):
    for number in range(10**9):
        Path(folder, str(number)).write_bytes(b"x" * MiB)


@AS_ROOT
@pytest.mark.parametrize("bomb", [fork_bomb, fill])
def test_without_namespaces_bombs_end_too(bomb):
    limits = Limits(processes=40, disk_bytes=100 * MiB)
    with Jail(limits, isolation="unprivileged user") as jail:
        args = (jail.folder,) if bomb is fill else ()
        why, _ = until_ended(jail, bomb, *args)
        assert "more than" in why


@pytest.mark.parametrize("level", ["unprivileged user", "none"])
def test_its_words_say_what_is_not_covered(level):
    assert "network" in words(level)


def test_none_is_never_chosen_but_can_be_asked_for(monkeypatch):
    monkeypatch.setattr("distlab.jail.jail.best_isolation", lambda: "none")
    with pytest.raises(JailFailed, match="no way here"):
        Jail()
    with Jail(isolation="none") as jail:
        assert did(jail, os.getuid) == os.getuid()


def test_the_best_that_works_is_chosen(monkeypatch):
    best = best_isolation.__wrapped__

    make = Jail.__init__

    def fails(jail, limits=None, *, isolation=None):
        if isolation == "namespaces":
            raise JailFailed("no")
        make(jail, limits, isolation=isolation)

    monkeypatch.setattr("distlab.jail.jail.Jail.__init__", fails)
    lower = os.getuid() == 0 and all_may_read_python()
    assert best() == ("unprivileged user" if lower else "none")
    monkeypatch.setattr(isolation.sys, "platform", "darwin")
    assert best() == "none"


# Makes this a machine where Python is in nobody's home.
PYTHON_FOR_ALL = """
import json, os, sys
from distlab.jail import system
if {root!r}:
    system.unshare(system.NEW_MOUNTS)
    system.private_mounts()
    prefix = sys.base_prefix
    tree = system.taken(prefix)
    system.mount("tmpfs", "/root", "mode=755")
    os.makedirs(prefix, exist_ok=True)
    system.attach(tree, prefix)
"""
ALONE = """
from distlab import run
from distlab.jail import Jail
from distlab.jail.isolation import _works

def who(comm):
    import os
    comm.send_object(os.getuid(), (comm.rank + 1) % 2) if comm.rank else None
    return os.getuid(), comm.rank or comm.recv_object(1), os.listdir()

assert _works("unprivileged user")
with Jail(isolation="unprivileged user", files={files!r}) as jail, jail.inhabit():
    print(json.dumps(run(who, 2, relayed=True).results))
"""


@AS_ROOT
def test_without_namespaces_ranks_that_are_alone_are_different_users(tmp_path):
    (tmp_path / "handed.txt").write_text("in")
    code = PYTHON_FOR_ALL.format(root=True) + ALONE.format(files=str(tmp_path))
    how = {"capture_output": True, "text": True, "cwd": ROOT, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", code], **how)
    assert done.returncode == 0, done.stderr
    zero, one = json.loads(done.stdout.splitlines()[-1])
    assert 0 < zero[0] != one[0] > 0
    assert zero[1] == one[0]
    assert zero[2] == one[2] == ["handed.txt"]


NOT_ROOT = """
if {root!r}:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    system.set_dumpable(True)
sys.path.insert(0, {tests!r})
import cloudpickle, jails
from distlab.jail import Jail, Limits, best_isolation
cloudpickle.register_pickle_by_value(sys.modules["__main__"])

def attack():
    import signal, sqlite3, ctypes
    os.kill(1, signal.SIGKILL)
    libc = ctypes.CDLL(None, use_errno=True)
    caps = [l for l in open("/proc/self/status") if l.startswith("CapEff")]
    said = [caps[0].split()[1], libc.unshare(0x10000000), libc.ptrace(16, 1, 0, 0)]
    said += [os.path.exists({gradebook!r}), os.listdir("/home")]
    return said + [os.access(place, os.W_OK) for place in ("/", "/etc", "/tmp")]

def bomb():
    while True:
        try: os.fork()
        except OSError: pass

if best_isolation() != "namespaces":
    print(json.dumps("skip"))
    sys.exit()
with Jail(Limits(processes=40)) as jail:
    did = jails.did(jail, attack)
    folder = jail.folder
    why = jails.until_ended(jail, bomb)[0]
print(json.dumps([did, why, os.path.exists(folder)]))
"""


def test_a_jail_without_root_holds_as_well(tmp_path):
    import json

    (tmp_path / "gradebook.db").write_text("the marks")
    is_root = os.getuid() == 0
    code = PYTHON_FOR_ALL.format(root=is_root) + NOT_ROOT.format(
        root=is_root,
        tests=str(ROOT / "tests"),
        gradebook=str(tmp_path / "gradebook.db"),
    )
    how = {"capture_output": True, "text": True, "cwd": ROOT, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", code], **how)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    if said == "skip":
        pytest.skip("users who are not root make no namespaces here")
    did, why, left = said
    assert did == ["0" * 16, -1, -1, False, ["learner"], False, False, True]
    assert "processes" in why and not left


SECRET = """
import ctypes, os, re, sys
sys.path.insert(0, {tests!r})
import cloudpickle, jails
from distlab.jail import Jail
cloudpickle.register_pickle_by_value(sys.modules["__main__"])

def search(start):
    import posix, re
    found = [str(os.environ), str(posix.environ), open("/proc/self/environ").read()]
    wanted = bytes(reversed(start))
    places = []
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            where, rights, *_, = line.split()
            if not rights.startswith("rw") or "[v" in line:
                continue
            low, high = (int(n, 16) for n in where.split("-"))
            try:
                memory.seek(low)
                data = memory.read(high - low)
            except OSError:
                continue
            if re.search(wanted + b"[0-9]", data):
                places.append(line)
    return sum(bytes(reversed(start)).decode() in one for one in found), places

with Jail() as jail:
    print(jails.did(jail, search, b"-terces-eht"))
"""


def test_secrets_of_the_owners_environment_are_nowhere_in_memory():
    if best_isolation() != "namespaces":
        pytest.skip(words(best_isolation()))
    code = SECRET.format(tests=str(ROOT / "tests"))
    env = os.environ | {"A_TOKEN": "the-secret-1234567"}
    how = {"capture_output": True, "text": True, "cwd": ROOT, "timeout": 60}
    done = subprocess.run([sys.executable, "-c", code], env=env, **how)
    assert done.stdout.strip() == "[0, []]", done.stdout + done.stderr
