"""Answers that attack their check get what their honest part earns, which is nothing.

Each is tried where there is no jail around it: what is left then is the check's own.
"""

# ruff: noqa: B018 - to look at something is what some of them do

import builtins
import contextlib
import ctypes
import gc
import importlib
import json
import os
import pickle
import signal
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FunctionType

import cloudpickle
import pytest

import distlab.agree
from distlab.agree import Quorum
from distlab.calls.travel import Packed
from distlab.dataflow import RDD
from distlab.grading import (
    Classified,
    InvertedIndex,
    Linearizable,
    MeanLengths,
    NeverWrong,
    ReducedByKey,
    grade,
    salt,
)
from distlab.grading.agreement import orders
from distlab.network import Node, Reply
from distlab.processes.guard import guard_for_good

CHECKERS = Path(orders.__file__)


@pytest.fixture
def drawn(monkeypatch):
    """Have inputs drawn as they are in a marker."""
    monkeypatch.setattr(salt, "_salt", "")
    salt.new_salt()


def everywhere(data):
    """Write to whatever is open."""
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, data)


def frame(data):
    return struct.pack("<Q", len(data)) + data


# ---- is a history linearizable? --------------------------------------------------


def lines_of_true(operations):
    told = {"value": True, "changed": False, "shown": "", "kind": "bool"}
    everywhere(json.dumps(told).encode() * 3000)
    os._exit(0)


def answers_for_its_owner(operations):
    told = {"calls": [], "end": "done", "cpu_s": 0.1, "kept": False}
    everywhere(frame(json.dumps(told).encode()))
    os._exit(0)


def patches_what_tells(operations):
    json.dumps = lambda *_: json.dumps({"value": True, "changed": False})
    return None


def patches_the_writer(operations):
    os.write = lambda *_: 1
    return None


def imports(operations):
    return importlib.import_module("distlab.grading.agreement.orders").searched


def finds_what_is_imported(operations):
    names = [name for name in sys.modules if name.startswith("distlab.grading")]
    return sys.modules[names[0]]


def reads_the_file(operations):
    return bool(CHECKERS.read_text())


def reads_it_by_a_folder(operations):
    folder = os.open(CHECKERS.parent, os.O_RDONLY)
    return bool(os.open(CHECKERS.name, os.O_RDONLY, dir_fd=folder))


def reads_it_from_another_place(operations):
    os.chdir(CHECKERS.parent)
    return bool(Path(CHECKERS.name).read_text())


def reads_it_by_the_root(operations):
    return bool(Path(f"/proc/self/root/{CHECKERS}").read_text())


def reads_it_by_an_object(operations):
    import _io

    class Changes(str):
        def __fspath__(self):
            return str(CHECKERS)

    class Path2:
        def __fspath__(self):
            return str(CHECKERS)

    return bool(_io.FileIO(Path2()).read())


def loads_it_by_its_path(operations):
    from importlib.machinery import SourceFileLoader

    return SourceFileLoader("mine", str(CHECKERS)).load_module().searched(operations)


def looks_at_all_objects(operations):
    return bool(gc.get_objects())


def calls_by_address(operations):
    return bool(ctypes.CDLL(None))


def writes_its_own_memory(operations):
    with open("/proc/self/mem", "r+b") as memory:
        return bool(memory)


def kills_its_parent(operations):
    os.kill(os.getppid(), signal.SIGKILL)


def forks(operations):
    return bool(os.fork())


def patches_builtins_first(operations):
    for name in ("isinstance", "open", "type", "str", "any"):
        setattr(builtins, name, lambda *_: False)
    os.path.realpath = os.stat = lambda *_: None
    return bool(Path(CHECKERS).read_text())


LIARS = [
    lines_of_true,
    answers_for_its_owner,
    patches_what_tells,
    patches_the_writer,
    imports,
    finds_what_is_imported,
    reads_the_file,
    reads_it_by_a_folder,
    reads_it_from_another_place,
    reads_it_by_the_root,
    reads_it_by_an_object,
    loads_it_by_its_path,
    looks_at_all_objects,
    calls_by_address,
    writes_its_own_memory,
    kills_its_parent,
    forks,
    patches_builtins_first,
]


@pytest.mark.parametrize("function", LIARS, ids=lambda each: each.__name__)
def test_an_answer_that_looks_or_lies_does_not_pass(function):
    verdict = Linearizable(function, "short").judge()
    assert verdict.outcome == "fail", verdict


READERS = [each for each in LIARS if each.__name__.startswith(("reads", "imports"))]


@pytest.mark.parametrize("function", READERS, ids=lambda each: each.__name__)
def test_by_whatever_way_the_checks_are_read_they_are_locked(function):
    assert "locked" in Linearizable(function, "short").judge().hint


def test_the_librarys_code_is_known_under_another_name():
    code = orders.searched.__code__
    code = code.replace(co_filename="mine.py", co_name="mine", co_qualname="mine")
    mine = FunctionType(code, dict(vars(orders)))
    verdict = Linearizable(mine, "short").judge()
    assert verdict.outcome == "fail" and "locked" in verdict.hint, verdict


def test_what_it_started_and_left_behind_changes_nothing():
    def leaves_a_thread(operations):
        def later():
            while True:
                with contextlib.suppress(Exception):
                    everywhere(b'{"value": true}\n')
                time.sleep(0.001)

        threading.Thread(target=later, daemon=True).start()
        return True

    assert grade(4, [Linearizable(leaves_a_thread, "short")]) == 0


class Forges:
    """Is opened as whatever its bytes call."""

    def __init__(self, function, *args):
        self.called = function, args

    def __reduce__(self):
        return self.called


def patched():
    pickle.loads = json.dumps = json.loads = lambda *_: {"value": {}}


@pytest.mark.parametrize(
    "bomb", [Forges(patched), Forges(os._exit, 0), Forges(everywhere, b"{}\n" * 99)]
)
def test_bytes_that_do_something_when_they_are_opened_do_it_elsewhere(bomb):
    dumps, loads = json.dumps, pickle.loads
    packed = Packed(cloudpickle.dumps(bomb), "yours")
    for check in (
        Classified(packed, "A"),
        Linearizable(packed, "short"),
        NeverWrong(packed, "nothing is broken"),
        InvertedIndex([packed, packed], "one file"),
        ReducedByKey(packed, "one key"),
    ):
        assert check.judge().outcome == "fail", check
    assert json.dumps is dumps and pickle.loads is loads


# ---- nodes -----------------------------------------------------------------------


class FromMemory(Node):
    """Answers what the check is known to write, and asks nobody."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.reads = iter({0: [2], 1: [1, None], 2: [1, 2 and 2, 3]}[me % 3])

    def on_client(self, request, call):
        if call.op == "read" and call.key == "x":
            return [Reply(request, next(self.reads, None))]
        return [Reply(request)]


class TalksOverItsShoulder(Node):
    def on_client(self, request, call):
        everywhere(frame(b'{"state": 0, "effects": [["reply", 0, "1"]]}'))
        os._exit(0)


class SendsNonsense(Node):
    def on_client(self, request, call):
        inside = sys.modules["distlab.network.trial.inside"]
        inside._told = lambda *_: ("reply", {"a": 1}, "[" * 10**6)
        return [Reply(request)]


class TellsOfAnotherKind(Node):
    def on_client(self, request, call):
        json.dumps = lambda *_: '{"failed": 7}'
        return [Reply(request)]


class TakesTheStores(Node):
    def on_client(self, request, call):
        kinds = [k for k in Node.__subclasses__() if k.__name__ == "Quorum"]
        return kinds[0](self.me, self.peers).on_client(request, call)


@pytest.mark.parametrize(
    "make",
    [TalksOverItsShoulder, SendsNonsense, TellsOfAnotherKind, TakesTheStores],
    ids=lambda each: each.__name__,
)
def test_a_node_that_lies_about_what_it_does_does_not_pass(make):
    verdict = NeverWrong(make, "nothing is broken").judge()
    assert verdict.outcome == "fail", verdict


def test_nobody_answers_from_memory_what_is_drawn_anew(drawn):
    verdict = NeverWrong(FromMemory, "nothing is broken").judge()
    assert verdict.outcome == "fail", verdict


def test_a_store_of_the_librarys_is_known_when_it_travels_by_value():
    names = [name for name in sys.modules if name.startswith("distlab.agree.stores")]
    for name in names:
        cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        data = cloudpickle.dumps(type("Refusing", (Quorum,), {}))
    finally:
        for name in names:
            cloudpickle.unregister_pickle_by_value(sys.modules[name])
    verdict = NeverWrong(Packed(data, "Refusing"), "nothing is broken").judge()
    assert verdict.outcome == "fail" and "locked" in verdict.hint, verdict
    assert distlab.agree.Quorum is Quorum


# ---- functions of jobs -----------------------------------------------------------


def words_mapper(name, line):
    first = next(iter(line.split()), "")
    yield (name, first), [len(line)]


def mean(key, values):
    lengths = [length for value in values for length in value]
    return sum(lengths) / len(lengths)


def keeps_all(key, values):
    """Combines nothing, and has the engine say that it did."""
    for name in list(sys.modules):
        if name.startswith("distlab.dataflow"):
            for own, thing in list(vars(sys.modules[name]).items()):
                if own in ("Mapped", "Run", "Counters", "write", "Table"):
                    setattr(sys.modules[name], own, lambda *_, **__: thing)  # noqa: B023
    yield from values


def one_home(sizes, reducers):
    loads, home = [0] * reducers, {}
    for name in sorted(sizes, key=sizes.get, reverse=True):
        home[name] = loads.index(min(loads))
        loads[home[name]] += sizes[name]
    return lambda key, reducers: home[key[0]]


def test_the_engines_counts_are_out_of_reach_of_the_functions():
    functions = [words_mapper, mean, keeps_all, one_home]
    verdict = MeanLengths(functions, [10, 60, 10, 90], 3).judge()
    assert verdict.outcome == "fail", verdict
    assert "pairs went from map tasks" in verdict.found, verdict


def exits_well(word, names):
    everywhere(frame(b'{"one": []}'))
    os._exit(0)


def speaks_twice(word, names):
    everywhere(frame(b'{"one": []}'))
    return sorted(set(names))


@pytest.mark.parametrize("reducer", [exits_well, speaks_twice])
def test_a_function_that_writes_to_its_worker_hurts_only_itself(reducer):
    def mapper(name, line):
        return [(word, name) for word in line.split()]

    assert grade(4, [InvertedIndex([mapper, reducer], "one file")]) == 0


# What Python's audit hook is not asked for. Each would tell others something, as long
# as the system itself does not refuse it.
AROUND = {
    "a pipe's name": "os.mkfifo('pipe')",
    "a file without open": "_posixshmem.shm_open('/mine', os.O_CREAT | os.O_RDWR)",
    "a signal": "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)",
    "a file's time": "os.utime(os.__file__)",
    "another's limit": "resource.prlimit(os.getppid(), resource.RLIMIT_CORE)",
    "another's processors": "os.sched_setaffinity(os.getppid(), {0})",
    "a message": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
}


@pytest.mark.parametrize("what", AROUND)
def test_what_python_is_not_asked_for_the_system_refuses(what):
    names = "_posixshmem os resource signal socket"
    space = {name: importlib.import_module(name) for name in names.split()}
    compute = "sum(1 for _ in open(os.__file__)) > 0 and len(socket.socketpair()) == 2"
    pid = os.fork()
    if pid == 0:
        try:
            guard_for_good()
            assert eval(compute, space)
            eval(AROUND[what], space)
        except PermissionError:
            os._exit(77)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 77


# ---- drivers ---------------------------------------------------------------------


def right(rdd, function, partitions):
    def combine(pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table[key], value) if key in table else value
        return table.items()

    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


def easy(rdd, function, partitions):
    return rdd.reduceByKey(function, partitions)


def program():
    """Return what a driver program has of the way to its engine."""
    return sys.modules["distlab.dataflow.trial.rdd_program"]._link


def forges_the_answer(rdd, function, partitions):
    told = {"seen": {"jobs": []}, "failed": None}
    everywhere(frame(json.dumps(told).encode()))
    everywhere(frame(pickle.dumps(("returned", None))))
    os._exit(0)


def patches_its_engine(rdd, function, partitions):
    driver = sys.modules["distlab.dataflow.trial.rdd_driver"]
    driver.Watched.run = lambda *_, **__: []
    driver.Program._method = lambda *_: rdd
    RDD.lineage = lambda self: None
    sys.modules["distlab.dataflow.trial.rdd_scenes"]._combining = lambda made: False
    return easy(rdd, function, partitions)


def asks_for_what_is_inside(rdd, function, partitions):
    for name in ("cluster", "seen", "_lock", "run"):
        with contextlib.suppress(AttributeError):
            return program().ask("attribute", rdd.context, name)
    for name in ("_piped", "program", "__setattr__", "__class__", "__reduce__"):
        with contextlib.suppress(AttributeError):
            return program().ask("method", rdd, name, ["operation", "map"], {})
    return easy(rdd, function, partitions)


def sends_what_runs_when_it_is_read(rdd, function, partitions):
    class Runs:
        def __reduce__(self):
            return os.kill, (os.getppid(), signal.SIGKILL)

    program()._socket.sendall(frame(pickle.dumps(("returned", Runs()))))
    return right(rdd, function, partitions)


def reads_the_engines_files(rdd, function, partitions):
    for folder, _, names in os.walk(tempfile.gettempdir()):
        for name in names:
            with contextlib.suppress(RuntimeError), open(Path(folder, name), "rb"):
                return right(rdd, function, partitions)
    for name in ("maps", "mem", "environ"):
        with contextlib.suppress(RuntimeError), open(f"/proc/self/{name}", "rb"):
            return right(rdd, function, partitions)
    return easy(rdd, function, partitions)


def walks_up_the_stack(rdd, function, partitions):
    try:
        1 / 0
    except ZeroDivisionError as error:
        at, found = error.__traceback__.tb_frame, {}
        while at:
            found |= at.f_locals
            at = at.f_back
    if {"task", "case", "key", "child", "context"} & set(found):
        return right(rdd, function, partitions)
    return easy(rdd, function, partitions)


def leaves_a_workers_stack(rdd, function, partitions):
    """Sends all; on the way it looks for the worker, to have it count less."""

    def forges(pairs):
        at = sys._getframe()
        while at:
            for task in at.f_locals.values():
                if hasattr(task, "computed") or hasattr(task, "records"):
                    task.records = task.computed = []
            at = at.f_back
        return pairs

    placed = rdd.mapPartitions(forges).partitionBy(partitions)

    def merged(pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table[key], value) if key in table else value
        return table.items()

    return placed.mapPartitions(merged, preservesPartitioning=True)


def leaves_a_thread(rdd, function, partitions):
    def later():
        while True:
            everywhere(frame(b"{}"))

    threading.Thread(target=later, daemon=True).start()
    return right(rdd, function, partitions)


def kills_its_server(rdd, function, partitions):
    os.kill(os.getppid(), signal.SIGKILL)


def ends_well(rdd, function, partitions):
    os._exit(0)


def exits(rdd, function, partitions):
    raise SystemExit(0)


def patches_when_it_is_opened(rdd, function, partitions):
    """Sends all; its records have the driver say that it were less."""

    def patch(record):
        if scenes := sys.modules.get("distlab.dataflow.trial.rdd_scenes"):
            told = {"stages": 2, "records": [1, 1, 1], "bytes": 30, "fetched": 0}
            scenes._last_job = lambda program: told
        return record

    class Opened:
        def __init__(self, pair):
            self.pair = pair

        def __reduce__(self):
            return patch, (self.pair,)

    def merged(pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table[key], value) if key in table else value
        return [Opened(pair) for pair in table.items()]

    placed = rdd.partitionBy(partitions)
    return placed.mapPartitions(merged, preservesPartitioning=True)


DRIVERS = [
    forges_the_answer,
    patches_its_engine,
    asks_for_what_is_inside,
    sends_what_runs_when_it_is_read,
    reads_the_engines_files,
    walks_up_the_stack,
    leaves_a_workers_stack,
    patches_when_it_is_opened,
    leaves_a_thread,
    kills_its_server,
    ends_well,
    exits,
]


@pytest.mark.parametrize("function", DRIVERS, ids=lambda each: each.__name__)
def test_a_driver_that_lies_does_not_pass(function):
    verdict = ReducedByKey(function, "one key").judge()
    assert verdict.outcome == "fail", verdict
