"""What is tried in a jail, and does not work: each of these is an attack."""

import ctypes
import errno
import mmap
import os
import signal
import socket
import sys
import time
from pathlib import Path

import jails
import psutil
import pytest
from jails import did, played, refused, until_ended

from distlab.jail import Jail, Limits, best_isolation, words
from distlab.jail.users import pids_of, users_from

ROOT = Path(__file__).parents[2]
MiB = 2**20
SMALL = Limits(memory_bytes=400 * MiB, processes=40, disk_bytes=100 * MiB)

pytestmark = pytest.mark.skipif(
    best_isolation() != "namespaces",
    reason=f"no namespaces can be made here: {words(best_isolation())}",
)


@pytest.fixture(scope="module")
def jail():
    with Jail() as one:
        yield one


@pytest.fixture
def small():
    with Jail(SMALL) as one:
        yield one


# Reading


def read(path):
    return Path(path).read_text()


def test_files_of_others_cannot_be_read(jail, tmp_path):
    gradebook = tmp_path / "gradebook.db"
    gradebook.write_text("the marks")
    gradebook.chmod(0o666)
    for folder in tmp_path.parents[:-1]:
        assert did(jail, os.path.exists, str(folder / "gradebook.db")) is False
    solution = ROOT / "solutions/10_ring_all_reduce/10_ring_all_reduce.ipynb"
    for path in (gradebook, solution, ROOT / "README.md", "/etc/shadow"):
        assert Path(path).exists()
        assert "No such file" in refused(jail, read, str(path))


def names_below(folder, depth):
    found = []
    for entry in os.scandir(folder):
        found.append(entry.path)
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            try:
                found += names_below(entry.path, depth - 1)
            except OSError:
                pass
    return found


def test_of_a_checkout_only_the_library_is_there(jail):
    assert did(jail, os.path.exists, str(ROOT / "distlab/__init__.py"))
    there = set(did(jail, os.listdir, str(ROOT)))
    assert "distlab" in there and not there & {"solutions", "tests", "exercises"}


def test_homes_are_not_there(jail):
    assert did(jail, os.listdir, "/home") == ["learner"]
    assert did(jail, os.listdir, jail.home) == []


def shown_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def test_processes_of_outside_are_not_seen(jail):
    assert len(did(jail, shown_pids)) <= 2


def looked_into(pid):
    return os.listdir(f"/proc/{pid}/fd"), os.readlink(f"/proc/{pid}/root")


def test_the_init_cannot_be_looked_into(jail):
    assert "PermissionError" in refused(jail, looked_into, 1)


# Writing


def writable():
    """Return the folders that can be written to."""
    found = []
    for folder, below, _ in os.walk("/"):
        if folder == "/proc" or folder.count("/") > 8:
            below.clear()
        elif os.access(folder, os.W_OK):
            found.append(folder)
            below.clear()
    return found


def test_only_its_own_folders_can_be_written_to(jail):
    home = {"/tmp", "/dev/shm", jail.home}
    assert set(did(jail, writable)) == home
    assert did(jail, os.access, jail.folder, os.W_OK)


def rewritten(path):
    Path(path).write_text("x")


def test_python_and_its_libraries_cannot_be_changed(jail):
    for path in (os.__file__, ROOT / "distlab/__init__.py", psutil.__file__):
        assert "Read-only" in refused(jail, rewritten, str(path))


# Reaching


def connected(family, address):
    with socket.socket(family) as sock:
        sock.settimeout(2)
        sock.connect(address)


@pytest.mark.parametrize("kind", ["port", "path", "abstract"])
def test_nothing_that_listens_outside_can_be_reached(jail, tmp_path, kind):
    family = socket.AF_INET if kind == "port" else socket.AF_UNIX
    addresses = {
        "port": ("127.0.0.1", 0),
        "path": str(tmp_path / "door"),
        "abstract": "\0distlab-test",
    }
    with socket.socket(family) as door:
        door.bind(addresses[kind])
        door.listen()
        connected(family, door.getsockname())  # from here it works
        said = refused(jail, connected, family, door.getsockname())
    assert "refused" in said or "No such file" in said


def test_the_network_outside_cannot_be_reached(jail):
    assert "unreachable" in refused(jail, connected, socket.AF_INET, ("192.0.2.1", 80))


def talked_to_itself():
    with socket.create_server(("127.0.0.1", 0)) as door:
        connected(socket.AF_INET, door.getsockname())
    return "talked"


def test_its_own_loopback_works(jail):
    assert did(jail, talked_to_itself) == "talked"


# Harming


def test_the_owner_and_the_init_cannot_be_killed(jail):
    said = refused(jail, os.kill, os.getpid(), signal.SIGKILL)
    assert "ProcessLookupError" in said
    assert "PermissionError" in refused(jail, os.kill, 1, signal.SIGKILL)
    played(jail, os.kill, -1, signal.SIGKILL)
    assert did(jail, os.getpid) > 1  # the jail is still there


def called(name, *args):
    """Call the C library; raise what it says."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) == -1:
        raise OSError(ctypes.get_errno(), name)


def test_system_calls_that_lead_out_are_refused(jail):
    new_users, new_mounts, attach = 0x10000000, 0x20000, 16
    calls = [
        ("ptrace", attach, 1, 0, 0),
        ("unshare", new_users),
        ("unshare", new_mounts),
        ("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, 0),
        ("umount2", b"/proc", 2),
        ("chroot", b"/tmp"),
        ("syscall", 250, 0, 0, 0, 0),
        ("process_vm_readv", 1, 0, 0, 0, 0, 0),
    ]
    for call in calls:
        assert "[Errno 1]" in refused(jail, called, *call), call


def forked_into_new_users():
    number = 56 if os.uname().machine == "x86_64" else 220
    called("syscall", number, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)


def test_no_new_namespace_by_clone(jail):
    assert "[Errno 1]" in refused(jail, forked_into_new_users)


def test_nobody_becomes_another_user(jail):
    assert did(jail, os.getuid) > 0x70000000
    for call in (os.setuid, os.setgid, os.seteuid):
        assert "PermissionError" in refused(jail, call, 0)
    status = did(jail, read, "/proc/self/status")
    assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status


# Staying


def leave_a_daemon(folder):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                Path(folder, "beat").write_text(str(time.time()))
                time.sleep(0.01)
        os._exit(0)
    while not Path(folder, "beat").exists():
        time.sleep(0.01)
    return os.getuid()


def test_a_daemon_ends_with_its_session():
    with Jail() as jail:
        did(jail, leave_a_daemon, jail.folder)
        beat = Path(jail.folder, "beat")
        last = beat.read_text()
        time.sleep(0.1)
        assert beat.read_text() == last


def hold_on():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
    while True:
        os.fork()
        time.sleep(0.05)


def test_close_ends_whatever_runs():
    with Jail(Limits(processes=1000)) as jail:
        user = did(jail, os.getuid)
        processes = jails.start(jail, hold_on, count=2)
        time.sleep(0.5)
        assert len(pids_of(users_from(user))) > 4
        jail.close()
        assert pids_of(users_from(user)) == [] and not os.path.exists(jail.folder)
        processes.stop()


def leave_things(folder):
    for place in ("/tmp", "/dev/shm", folder, os.getcwd()):
        Path(place, "torch.py").write_text("raise SystemExit")
    called("shmget", 77, 4096, 0o1666)
    return sorted(os.listdir("/tmp"))


def test_the_next_jail_finds_nothing_of_the_last():
    libc = ctypes.CDLL(None, use_errno=True)
    with Jail() as jail:
        before = did(jail, os.listdir, "/tmp")
        assert did(jail, leave_things, jail.folder) != before
    with Jail() as jail:
        assert did(jail, os.listdir, "/tmp") == before
        assert did(jail, os.listdir, jail.home) == []
        assert did(jail, os.listdir, jail.folder) == []
        assert "[Errno 2]" in refused(jail, called, "shmget", 77, 4096, 0)
    assert libc.shmget(77, 4096, 0) == -1


# Using too much


def fork_bomb():
    while True:
        try:
            os.fork()
        except OSError:
            pass


def memory_bomb():
    kept = []
    while True:
        try:
            kept.append(bytearray(10 * MiB))
        except MemoryError:
            pass


def memory_in_forks(many):
    for _ in range(many):
        if os.fork() == 0:
            break
    kept = b"x" * (30 * MiB)
    time.sleep(60)
    return len(kept)


def shared_memory_bomb():
    kept = []
    while True:
        kept.append(mmap.mmap(-1, 10 * MiB))
        kept[-1].write(b"x" * (10 * MiB))


def nameless_files():
    while True:
        file = os.memfd_create("x")
        os.write(file, b"x" * (10 * MiB))


def fill(folder):
    for number in range(10**9):
        try:
            Path(folder, str(number)).write_bytes(b"x" * MiB)
        except OSError:
            pass


def many_files(folder):
    for number in range(10**9):
        try:
            Path(folder, str(number)).touch()
        except OSError:
            pass


BOMBS = {
    "forks": (fork_bomb, (), "processes"),
    "memory": (memory_bomb, (), "memory"),
    "memory in forks": (memory_in_forks, (20,), "memory"),
    "shared memory": (shared_memory_bomb, (), "memory"),
    "files without names": (nameless_files, (), "memory"),
    "/dev/shm": (fill, ("/dev/shm",), "files"),
    "/tmp": (fill, ("/tmp",), "files"),
    "many files": (many_files, ("/tmp",), "files"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_its_jail_soon_and_says_why(small, name):
    function, args, what = BOMBS[name]
    why, seconds = until_ended(small, function, *args)
    assert what in why and why.startswith("it "), (why, seconds)
    assert seconds < 6


def test_a_full_exchange_folder_ends_the_jail(small):
    why, _ = until_ended(small, fill, small.folder)
    assert "files" in why


def test_one_process_gets_no_more_memory_than_the_jail(small):
    assert "MemoryError" in refused(small, bytearray, 10**9)
    assert small.exceeded() == ""


def open_all():
    files = []
    try:
        while True:
            files.append(os.dup(0))
    except OSError:
        for file in files:
            os.close(file)
        return len(files)


def test_files_are_limited(small):
    assert did(small, open_all) < SMALL.files


def big_file():
    Path("/tmp/x").touch()
    os.truncate("/tmp/x", 2**30)


def test_a_file_cannot_be_large(small):
    assert "File too large" in refused(small, big_file)


def print_bomb():
    while True:
        print("x" * 1000)


def test_who_prints_without_end_is_read_in_pieces_and_can_be_stopped(small):
    processes = jails.start(small, print_bomb)
    before = psutil.Process().memory_info().rss
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        processes.poll(0.1)
    processes.stop()
    assert psutil.Process().memory_info().rss - before < 100 * MiB
    assert did(small, os.getpid)


def long_frame():
    from distlab.processes import inside

    inside()._channel.sendall((2**50).to_bytes(8, "little"))
    time.sleep(60)


def test_a_frame_that_is_too_long_ends_who_sends_it(small):
    assert played(small, long_frame, timeout_s=10) == {0: {"ended": -9}}


# Being alone


def alone():
    Path("/tmp/mine").write_text("x")
    Path("/dev/shm/mine").write_text("x")
    time.sleep(0.5)
    seen = [p for p in shown_pids() if p != os.getpid()]
    return os.getuid(), os.listdir("/dev/shm"), seen, os.path.exists("/disk/jail")


def test_processes_that_are_alone_share_nothing(jail):
    told = played(jail, alone, count=3, alone=True)
    users = {told[index]["did"][0] for index in range(3)}
    assert len(users) == 3
    for index in range(3):
        assert told[index]["did"][1:] == [["mine"], [], False]
    assert not did(jail, os.path.exists, "/dev/shm/mine")
    assert "No such file" in refused(jail, os.listdir, jail.folder, alone=True)


# Its owner


SCRIPT = """
import os, sys, time
sys.path.insert(0, {tests!r})
import jails
from distlab.jail import Jail
jail = Jail()
def beat(folder):
    open(folder + "/beat", "w").close()
    time.sleep(100)
import cloudpickle
cloudpickle.register_pickle_by_value(sys.modules["__main__"])
p = jails.start(jail, beat, jail.folder)
while not os.path.exists(jail.folder + "/beat"):
    p.poll(0.05)
print(jail.folder, jail._uid, flush=True)
time.sleep(100)
"""


def test_the_death_of_the_owner_ends_all(tmp_path):
    import subprocess

    code = SCRIPT.format(tests=str(ROOT / "tests"))
    how = {"stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with subprocess.Popen([sys.executable, "-c", code], **how) as owner:
        folder, user = owner.stdout.readline().split()
        assert len(pids_of(users_from(int(user)))) == 1
        owner.kill()
        owner.wait()
        deadline = time.monotonic() + 5
        users = users_from(int(user))
        while time.monotonic() < deadline and (
            os.path.exists(folder) or pids_of(users)
        ):
            time.sleep(0.01)
        assert not os.path.exists(folder) and pids_of(users) == []


def test_the_home_has_the_plain_files_of_a_folder_and_no_links(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "data.csv").write_text("1,2")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    with Jail(files=tmp_path) as jail:
        assert did(jail, read, "below/data.csv") == "1,2"
        assert sorted(did(jail, os.listdir, ".")) == ["below"]
        did(jail, rewritten, "below/data.csv")
    assert (tmp_path / "below" / "data.csv").read_text() == "1,2"


def around_files():
    """Try what would tell others something."""
    tried = []
    for path in ("data.csv", "below/data.csv", "below/new"):
        try:
            Path(path).write_text("x")
        except OSError as error:
            tried.append(error.errno)
    Path("mine").write_text("x")
    return tried, Path("below/data.csv").read_text(), sorted(os.listdir("."))


def test_who_is_alone_has_the_same_files_and_can_change_none(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "data.csv").write_text("1,2")
    (tmp_path / "data.csv").write_text("3")
    with Jail(files=tmp_path) as jail:
        if jail.isolation != "namespaces":
            pytest.skip("there is one home")
        told = played(jail, around_files, count=2, alone=True)
        for index in range(2):
            tried, read_there, names = told[index]["did"]
            assert tried == [errno.EROFS] * 3
            assert read_there == "1,2" and names == ["below", "data.csv", "mine"]
        assert sorted(did(jail, os.listdir, ".")) == ["below", "data.csv"]
        did(jail, rewritten, "below/data.csv")


def terminal():
    """Return the names of a new terminal and of all that are there."""
    _, end = os.openpty()
    return os.ttyname(end), sorted(os.listdir("/dev/pts"))


def test_a_shell_command_of_a_cell_has_a_terminal_and_nobody_elses():
    if best_isolation() != "namespaces":
        pytest.skip("terminals are the system's own")
    with Jail() as jail:
        assert did(jail, terminal) == ["/dev/pts/0", ["0", "ptmx"]]
        told = did(jail, os.path.exists, "/dev/pts/ptmx", alone=True)
        assert told is False
