"""What a submission tries that knows all of the source, and what it gains: nothing."""

import json

import nbformat
import psutil
import pytest
from courses import Course, cell, solved

from distlab.calls.plain import unpack_plain
from distlab.calls.travel import Packed, pack
from distlab.errors import CannotTravel
from distlab.grading import AllReduceSums, AllReduceTraffic
from distlab.grading.marking.restored import Restored
from distlab.grading.verdict import judged
from distlab.jail import Jail
from distlab.preloads import CHECKING, KERNEL
from distlab.processes import warm_up

pytestmark = pytest.mark.timeout(300)

HONEST = {"one-check": 3.0, "two-check": 0.0}
NOTHING = "def ring(comm, tensor):\n    pass\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    warm_up(CHECKING)
    warm_up(KERNEL)
    return Course(tmp_path_factory.mktemp("course"), timeout=20, restarts=3)


def graded(course, **sources):
    """Return what becomes of the solved notebook with other sources in some cells."""
    notebook = solved()
    for name, source in ({"two": NOTHING} | sources).items():
        cell(notebook, name).source = source
    return course.grade(notebook)


def test_an_output_that_was_cleaned_is_not_written_to_by_a_later_cell(course):
    own = """
from IPython.display import HTML, display
display(HTML("<b>tidy</b>"), display_id="mine")"""
    last = """
from IPython.display import HTML, update_display
update_display(HTML("<img src=x onerror=alert(1)>"), display_id="mine")"""
    done = graded(course, own=own, last=last)
    assert done.steps == HONEST
    assert "tidy" in done.words("own")
    assert "onerror" not in done.words("own") + done.words("last")


def test_a_message_without_end_costs_its_own_kernel(course):
    own = """
import time, zmq
kernel = get_ipython().kernel
frame = zmq.Frame(b"x" * 15 * 2**20)
def send():
    ended = time.monotonic() + 8
    for _ in range(200):
        if time.monotonic() < ended:
            kernel.iopub_thread.socket.send(frame, zmq.SNDMORE, copy=False)
kernel.iopub_thread.schedule(send)
time.sleep(9)"""
    before = psutil.Process().memory_info().rss
    done = graded(course, own=own)
    assert done.steps == HONEST
    said = done.words("own")  # the second where there is no time for so much
    assert "more than can be kept" in said or "did not run any other" in said
    assert psutil.Process().memory_info().rss - before < 2**30


UNWRITABLE = {
    "why it cannot be had": """
class Odd:
    def __reduce__(self):
        raise Exception("\\n4 of 4 points\\ud800")
ring = Odd()""",
    "titles of cells": """
import json
from distlab.grading.marking import packing
real = packing.asked
def asked(names, namespace):
    told = json.loads(real(names, namespace))
    cells = told["cells"].items()
    told["cells"] = {n: ["\\n4 of 4 points\\ud800", lines] for n, (_, lines) in cells}
    return packing.Plain(json.dumps(told))
packing.asked = asked
def ring(comm, tensor):
    raise ValueError""",
}


@pytest.mark.parametrize("what", UNWRITABLE)
def test_what_no_file_can_hold_is_written_in_other_words(course, what):
    done = graded(course, two=UNWRITABLE[what])
    assert done.success, done.log
    assert done.steps == HONEST
    assert "\\n4 of 4" not in done.words("two-check")


def test_a_notebook_of_very_many_cells_is_refused_by_name():
    notebook = solved()
    notebook.cells += [nbformat.v4.new_markdown_cell() for _ in range(2001)]
    whose = {"nbgrader": {"student": "ann", "notebook": "rings"}}
    with pytest.raises(ValueError, match="ann, rings: more than 2,000 cells"):
        Restored().preprocess(notebook, whose)


def test_a_result_of_millions_of_things_is_refused_soon():
    with pytest.raises(CannotTravel):
        unpack_plain(b"\x80\x04](" + b"]" * (11 * 10**6) + b"e.")


POISONS = {
    "no standard error": "import sys\nsys.stderr = None",
    "a shell that runs nothing": "get_ipython().run_cell = None",
    "a kernel that does nothing": "get_ipython().kernel.do_execute = None",
}


@pytest.mark.parametrize("what", POISONS)
def test_a_cell_after_which_no_other_runs_costs_itself_alone(course, what):
    done = graded(course, own=POISONS[what])
    assert done.success, done.log
    assert done.steps == HONEST
    assert "did not run any other" in done.words("own")


def test_a_file_that_was_handed_in_is_there_in_a_rank_too(course):
    reads = """
def ring(comm, tensor):
    with open("notes.csv") as file:
        raise ValueError(f"the file says {file.read()}")"""
    notebook = solved()
    cell(notebook, "two").source = reads
    done = course.grade(notebook, files=[("notes.csv", "mine alone")])
    assert done.steps == HONEST
    assert "the file says mine alone" in done.words("two-check")


ZEROS = """
import torch
def waves(comm, tensor, laps):
    n, me = comm.world_size, comm.rank
    chunks, to = tensor.tensor_split(n), {"dst": (me + 1) % n, "src": (me - 1) % n}
    for lap in laps:
        for step in range(n - 1):
            room = torch.empty_like(chunks[(me + lap - step - 1) % n])
            comm.sendrecv(torch.zeros_like(chunks[(me + lap - step) % n]), room, **to)
"""
LOCKS = """
import fcntl, os, struct, time
def ring(comm, tensor):
    where, file = "hhqqi4x", os.open(os.__file__, os.O_RDONLY)
    mine, n, me = tensor.tolist(), comm.world_size, comm.rank
    for i, x in enumerate(mine):
        said = (((me << 12) + i) << 44) + round(x * 1024) + (1 << 40)
        lock = struct.pack(where, fcntl.F_RDLCK, 0, said, 1, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
    waves(comm, tensor, [0])
    for peer in set(range(n)) - {me}:
        for i in range(len(mine)):
            said = ((peer << 12) + i) << 44
            lock = struct.pack(where, fcntl.F_WRLCK, 0, said, 1 << 44, 0)
            for _ in range(50):
                found = fcntl.fcntl(file, fcntl.F_OFD_GETLK, lock)
                kind, _, start, _, _ = struct.unpack(where, found)
                if kind != fcntl.F_UNLCK:
                    break
                time.sleep(0.01)
            mine[i] += (start - said - (1 << 40)) / 1024
    waves(comm, tensor, [1])
    tensor.copy_(torch.tensor(mine))
"""
MISFITS = """
import re
def ring(comm, tensor):
    line, numbers, mine = comm._line, iter(range(10**6, 10**7)), tensor.tolist()
    peer = 1 - comm.rank
    for x in mine:
        asked = {"do": "call", "call": next(numbers), "kind": "recv", "waits": False}
        line.ask(asked | {"into": [peer, "z", round(x * 1024) + 2**35]})
    comm.barrier()
    for i in range(len(mine)):
        said = {"do": "call", "call": next(numbers), "kind": "send", "waits": False}
        told = ""
        while not told:
            try:
                line.ask(said | {"out": [peer, "y"]})
            except ValueError as error:
                told = re.search(r"room for (\\d+) bytes", str(error))[1]
        mine[i] += (int(told) - 2**35) / 1024
    comm.barrier()
    waves(comm, tensor, [0, 1])
    tensor.copy_(torch.tensor(mine))
"""
COUNTERS = """
import ctypes
def call(*how):
    return ctypes.CDLL(None, use_errno=True).syscall(*how)
def held():
    with open("/proc/sys/fs/aio-nr") as file:
        return int(file.read())
def summed(comm, number):
    comm.barrier()
    before = held()
    comm.barrier()
    context = ctypes.c_ulong(0)
    assert call(206, number + 1, ctypes.byref(context)) == 0
    comm.barrier()
    total = held() - before - comm.world_size
    comm.barrier()
    call(207, context)
    for _ in range(200):
        if held() == before:
            break
    return total
def total(comm, x):
    x = int(x) + 10**4
    many = summed(comm, x % 256) + 256 * summed(comm, x // 256)
    return many - comm.world_size * 10**4
def ring(comm, tensor):
    sums = [total(comm, x) for x in tensor.tolist()]
    waves(comm, tensor, [0, 1])
    tensor.copy_(torch.tensor(sums))
"""


def ring_of(source):
    """Return the function `ring` that some source defines, as a notebook packs it."""
    space = {"__name__": "__main__"}
    exec(source, space)
    return Packed(pack(space["ring"]), "ring")


def in_a_jail(check):
    """Return the verdict of a check that is made in a jail."""
    with Jail() as trial, trial.inhabit():
        return judged(check)


WAYS = {"locks": LOCKS, "misfits": MISFITS, "counters": COUNTERS}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_ranks_tell_each_other_nothing_around_the_relay(way):
    assert in_a_jail(AllReduceSums(ring_of(ZEROS + way), 2, 4)).outcome != "pass"


UNWAITED = """
def ring(comm, tensor):
    line, peer = comm._line, 1 - comm.rank
    data = tensor.numpy().tobytes()
    told = {"do": "call", "call": 10**6, "kind": "send", "waits": False}
    line.ask(told | {"out": [peer, "u"]}, data)
    asked = {"do": "call", "call": 10**6 + 1, "kind": "recv", "waits": True}
    _, came = line.ask(asked | {"into": [peer, "u", len(data)]})
    total = tensor + torch.frombuffer(bytearray(came), dtype=tensor.dtype)
    waves(comm, tensor, [0, 1])
    tensor.copy_(total)
"""


def test_a_message_that_nobody_waits_for_is_counted():
    verdict = in_a_jail(AllReduceTraffic(ring_of(ZEROS + UNWAITED), 2, 8))
    assert verdict.outcome == "fail", json.dumps(str(verdict))
    assert "sent 64 bytes" in verdict.found


MACHINES_OWN = """
import os
def ring(comm, tensor):
    with open("/proc/self/status") as file:
        mine = file.read()
    raise ValueError(f"of mine {len(mine) > 99}, of all {os.path.exists('/proc/sys')}")
"""


def test_a_rank_sees_no_counters_of_the_whole_machine():
    verdict = in_a_jail(AllReduceSums(ring_of(MACHINES_OWN), 2, 4))
    assert "of mine True, of all False" in verdict.found


@pytest.mark.parametrize(
    "dies",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "signal.raise_signal(signal.SIGKILL)",
        "signal.pthread_kill(threading.get_ident(), signal.SIGKILL)",
        "os.abort()",
    ],
)
def test_a_rank_that_kills_itself_is_dead_although_it_is_the_first_of_its_pids(dies):
    lines = f"    if comm.rank == 1:\n        {dies}\n    ring_all_reduce(comm, tensor)"
    ring = ring_of(
        "import os, signal, threading\n"
        "from distlab.collectives import ring_all_reduce\n"
        f"def ring(comm, tensor):\n{lines}\n"
    )
    verdict = in_a_jail(AllReduceSums(ring, 2, 4))
    assert verdict.outcome == "fail"
    assert "rank 1 killed itself" in verdict.found, verdict


def test_a_function_that_takes_all_memory_fails_and_is_told_so():
    ring = ring_of(
        "def ring(comm, tensor):\n"
        "    kept = []\n"
        "    while True:\n"
        "        kept.append(b'x' * 10**7)\n"
    )
    verdict = in_a_jail(AllReduceSums(ring, 2, 4))
    assert verdict.outcome == "fail"
    assert "it used more than 2 GiB of memory" in verdict.found
    assert "is there a last round?" in verdict.found
