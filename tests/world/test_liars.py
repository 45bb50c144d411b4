"""Answers that would rather fool a check than solve its exercise gain nothing."""

import gc
import os
import sys
import threading

import pytest
import torch
import torch.distributed as dist

from distlab import recorder
from distlab.calls.travel import Packed, pack
from distlab.comm.relayed import Line, RelayedComm
from distlab.grading import (
    AllGatherInRounds,
    AllReduceSums,
    AllReduceTraffic,
    BalancedWork,
    BestWorldSize,
    BroadcastInRounds,
    PreparesAndSpeaks,
    ReduceScatterSums,
    SharedWork,
    SpeaksInOrder,
    SpeaksInRounds,
    probes,
)
from distlab.grading.probes import MARKS
from distlab.processes import inside


def refused(check):
    """Return the verdict, which is no pass, and of a check that could be made."""
    verdict = check.judge()
    assert verdict.outcome in ("fail", "inconclusive"), verdict
    assert str(verdict)
    return verdict


def everything_that_is_about():
    """Return all numbers that a rank can find: in its frames, and anywhere else."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        found += frame.f_locals.values()
        frame = frame.f_back
    found += [thing for thing in gc.get_objects() if isinstance(thing, list | dict)]
    return found


# ---- collectives ----------------------------------------------------------------


def looks_for_the_inputs_of_others(comm, tensor, *root):
    mine = tensor.tolist()
    for thing in everything_that_is_about():
        fits = isinstance(thing, list) and len(thing) == len(mine) and thing != mine
        if fits and all(isinstance(x, float) for x in thing):
            tensor.copy_(torch.tensor(thing))


def looks_for_the_sum(comm, tensor):
    total = tensor.clone()
    seen = []
    for thing in everything_that_is_about():
        fits = isinstance(thing, list) and len(thing) == len(tensor)
        if fits and all(isinstance(x, int | float) for x in thing) and len(seen) < 8:
            seen.append(thing)
            total += torch.tensor([float(x) for x in thing])
    tensor.copy_(total)


def patches_everything(comm, tensor, *_):
    class Equal(list):
        def __eq__(self, other):
            return True

        def __reduce__(self):
            return eval, ("__import__('builtins').True",)

    torch.Tensor.tolist = lambda self: Equal()
    recorder.Recorder.event = lambda *a, **k: None
    RelayedComm._transfer = lambda *a, **k: None
    Line.ask = lambda *a, **k: ({"done": True}, memoryview(b""))
    probes.shown = lambda value: Equal()
    probes.lock_the_library = lambda: None


def returns_subclasses(comm, tensor, *_):
    class Float(float):
        def __eq__(self, other):
            return True

        __hash__ = float.__hash__

    torch.Tensor.tolist = lambda self: [Float(x) for x in range(len(self))]


def too_long(comm, tensor, *_):
    torch.Tensor.tolist = lambda self: [0.0] * 1000


def nested(comm, tensor, *_):
    torch.Tensor.tolist = lambda self: [[[]]] * len(self)


def ends_the_process(comm, tensor, *_):
    os._exit(0)


def forges_its_end(comm, tensor, *_):
    result = {"held": [1.0] * len(tensor), "returned": "None"}
    inside().send(b'={"outcome": "returned"}\n' + pack(result))
    os._exit(0)


def forges_messages(comm, tensor, *_):
    for peer in range(comm.world_size):
        line = comm._line
        line.tell({"do": "call", "call": -peer, "kind": "recv", "waits": True})


def meets_in_another_group(comm, tensor, *_):
    store = dist.HashStore()
    dist.init_process_group("gloo", store=store, rank=comm.rank, world_size=2)
    dist.all_reduce(tensor)


def catches_the_refusal(comm, tensor, *_):
    try:
        dist.all_reduce(tensor)
    except RuntimeError:
        pass


def raises_what_cannot_be_told(comm, tensor, *_):
    class Evil(Exception):
        __reduce__ = property(lambda self: 1 / 0)

        def __str__(self):
            raise ValueError

        __repr__ = __str__

    raise Evil


def leaves_threads_behind(comm, tensor, *_):
    def chatters():
        while True:
            comm.mark("hello")

    threading.Thread(target=chatters, daemon=True).start()


LIARS = [
    looks_for_the_inputs_of_others,
    looks_for_the_sum,
    patches_everything,
    returns_subclasses,
    too_long,
    nested,
    ends_the_process,
    forges_its_end,
    forges_messages,
    meets_in_another_group,
    catches_the_refusal,
    raises_what_cannot_be_told,
    leaves_threads_behind,
]


@pytest.mark.parametrize("liar", LIARS)
@pytest.mark.parametrize(
    "check, case",
    [
        (AllReduceSums, (3, 6)),
        (AllReduceTraffic, (2, 6)),
        (BroadcastInRounds, (4,)),
        (BroadcastInRounds, (9, 3, 2)),
    ],
    ids=str,
)
def test_a_collective_that_lies_gains_nothing(liar, check, case):
    refused(check(liar, *case))


@pytest.mark.parametrize("liar", LIARS)
def test_a_list_or_chunks_in_the_hands_of_a_liar_gain_nothing(liar):
    def on_the_first(comm, tensors):
        liar(comm, torch.cat(list(tensors)))
        return comm.rank

    refused(AllGatherInRounds(on_the_first, 4))
    refused(ReduceScatterSums(on_the_first, 3, 6))


def knows_the_first_run(comm, tensor):
    """Wasteful in the run that is random, and a fake in the one that is not."""
    n = comm.world_size
    if (tensor == 8.0**comm.rank).all():
        tensor.fill_(sum(8.0**rank for rank in range(n)))
        return
    for _ in range(2):  # the bytes of both runs are at hand
        total, room = tensor.clone(), torch.empty_like(tensor)
        for step in range(1, n):
            ahead, behind = (comm.rank + step) % n, (comm.rank - step) % n
            total += comm.sendrecv(tensor, room, dst=ahead, src=behind)
    tensor.copy_(total)


def test_the_bytes_of_one_run_cannot_be_spent_in_the_other():
    refused(AllReduceTraffic(knows_the_first_run, 3, 12))


# ---- turns ----------------------------------------------------------------------


def in_order(comm, speak):
    if comm.rank:
        comm.recv_object(comm.rank - 1)
    speak()
    if comm.rank + 1 < comm.world_size:
        comm.send_object(0, comm.rank + 1)


def counts_for_itself(comm, speak):
    speak.calls = 1


def marks_for_itself(comm, speak):
    comm.mark(MARKS[1].format("speak"))
    comm.mark(MARKS[0].format("speak"))


def speaks_when_it_likes(comm, speak):
    """End first, for the one that follows, and begin when it suits."""
    comm.mark(MARKS[1].format("speak"))
    in_order(comm, lambda: None)
    comm.mark(MARKS[0].format("speak"))
    speak.calls = 1


def turns_the_clock(comm, speak):
    import time

    time.monotonic = lambda: 0.0
    time.sleep = lambda seconds: None
    speak()


@pytest.mark.parametrize(
    "liar",
    [counts_for_itself, marks_for_itself, speaks_when_it_likes, turns_the_clock],
)
def test_who_speaks_out_of_turn_is_seen_by_the_relay(liar):
    refused(SpeaksInOrder(liar, 3))
    refused(SpeaksInRounds(lambda comm, speak, rounds: liar(comm, speak), 3, 1))
    refused(PreparesAndSpeaks(lambda comm, prepare, speak: liar(comm, speak), 3))


# ---- work -----------------------------------------------------------------------


def knows_the_results(comm, tasks, work, *_):
    if comm.rank == 0:
        for task in tasks:
            work(task)
    return sum(4**place for place in range(len(set(tasks))))


def asks_for_more(comm, tasks, work, *_):
    for task in [*tasks, *tasks]:
        work(task)


def does_it_without_work(comm, tasks, work, *_):
    return 0


def adds_up_on_each_rank(comm, tasks, work, *_):
    total = sum(map(work, tasks[comm.rank :: comm.world_size]))
    for thing in everything_that_is_about():
        if isinstance(thing, dict) and set(thing) == set(tasks):
            total = sum(thing.values())
    return total


class Number(int):
    """Equal to any other."""

    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


def any_number(comm, tasks, work, *_):
    for task in tasks[comm.rank :: comm.world_size]:
        work(task)
    return Number(7)


def nonsense(comm, tasks, work, *_):
    comm.ask([[1, {"a": None}], "b"])


def a_huge_number(comm, tasks, work, *_):
    return 10**1200


@pytest.mark.parametrize(
    "liar",
    [
        knows_the_results,
        asks_for_more,
        does_it_without_work,
        adds_up_on_each_rank,
        any_number,
        nonsense,
        a_huge_number,
    ],
)
def test_work_is_what_the_check_was_asked_for(liar):
    refused(SharedWork(liar, 3, "abcdefgh"))
    refused(BalancedWork(liar, 4, [1] * 8))


@pytest.mark.parametrize(
    "returned",
    [
        (Number(7), Number(8)),
        (10**1200, 1.0),
        (14, 10**1200),
        (14, float("nan")),
        (float("inf"), 1.0),
        (14, float("inf")),
        (-1, -1),
        (True, True),
        (0.5, [1]),
    ],
    ids=lambda pair: str(pair)[:20],
)
def test_a_world_size_is_a_plain_number(returned):
    refused(BestWorldSize(lambda *job: returned, 2, 100, 0.5, 64))


# ---- what is packed -------------------------------------------------------------


def tree(comm, tensor):
    distance = 1
    while distance < comm.world_size:
        if comm.rank < distance and comm.rank + distance < comm.world_size:
            comm.send(tensor, comm.rank + distance)
        elif distance <= comm.rank < 2 * distance:
            comm.recv(tensor, comm.rank - distance)
        distance *= 2


def test_what_is_packed_is_judged_as_what_is_not():
    packed = Packed(pack(tree), "broadcast")
    assert BroadcastInRounds(packed, 4).judge().outcome == "pass"
    assert BroadcastInRounds(packed, 16).judge().outcome == "pass"


@pytest.mark.parametrize("data", [b"", b"garbage", pack(17), pack(len)], ids=repr)
def test_what_is_packed_and_is_no_such_function_fails(data):
    refused(BroadcastInRounds(Packed(data, "broadcast"), 2))
    refused(SpeaksInOrder(Packed(data, "speak"), 2))
