"""Ranks that serve several relayed worlds, one after another."""

import os
import threading
import time

import pytest
import torch

from distlab import RankRaised, WorldFailed, run
from distlab.grading import AllReduceSums, grade
from distlab.launch import Relaying, kept_ranks
from distlab.launch.world import in_turn

KEPT = Relaying(kept=True)


def who(comm):
    return os.getpid()


def pids(world_size, relaying=KEPT, fn=who):
    return run(fn, world_size, relayed=relaying).results


def test_worlds_of_any_size_have_the_same_processes_in_turn():
    with kept_ranks():
        three, two, five, one = (pids(size) for size in (3, 2, 5, 1))
    assert len(set(three)) == 3
    assert two == three[:2] and five[:3] == three and one == three[:1]


def test_outside_and_for_who_does_not_ask_they_are_fresh():
    before, again = pids(2), pids(2)
    assert not set(before) & set(again)
    with kept_ranks():
        first = pids(2)
        assert not set(first) & set(pids(2, Relaying()))
        assert pids(2) == first
    assert not set(first) & set(pids(2))


def test_a_body_inside_another_uses_its_processes():
    with kept_ranks():
        first = pids(2)
        with kept_ranks():
            assert pids(2) == first
        assert pids(2) == first


def test_who_needs_other_modules_has_other_processes():
    with kept_ranks():
        first = pids(2)
        other = Relaying(kept=True, modules=("distlab.grading.inside",))
        assert not set(first) & set(pids(2, other))


def raises(comm):
    raise KeyError("one")


def leaves_a_thread(comm):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return os.getpid()


def test_after_a_failure_or_with_threads_left_they_are_fresh():
    with kept_ranks():
        first = pids(2)
        with pytest.raises(RankRaised, match="one"):
            run(raises, 2, relayed=KEPT)
        second = pids(2, fn=leaves_a_thread)
        assert not set(first) & set(second)
        assert not set(second) & set(pids(2))


def dies_when_idle(comm):
    if comm.rank == 1:
        os.set_blocking(0, False)
        os.fork() or (time.sleep(0.1), os.kill(os.getppid(), 9), os._exit(0))
    return os.getpid()


def test_one_that_died_while_it_waited_is_not_missed():
    with kept_ranks():
        first = pids(2, fn=dies_when_idle)
        time.sleep(0.4)
        assert not set(first) & set(pids(2))


def passes_on(comm, number):
    got = torch.zeros(1)
    left, right = (comm.rank - 1) % comm.world_size, (comm.rank + 1) % comm.world_size
    comm.sendrecv(torch.full((1,), float(number)), got, dst=right, src=left)
    print(comm.rank, number)
    return got.item()


def test_each_world_has_its_own_trace_output_and_steps():
    with kept_ranks():
        for number, size in enumerate((2, 4, 3)):
            report = run(passes_on, size, args=(number,), relayed=KEPT, quiet=True)
            assert report.results == [number] * size
            assert report.output == [f"{rank} {number}\n" for rank in range(size)]
            assert report.trace.world_size == size
            assert [e.step for e in report.trace.events] == [1] * 2 * size


def test_torchs_own_calls_go_to_the_world_of_the_moment():
    def ranks(comm):
        import torch.distributed as dist

        return dist.get_rank(), dist.get_world_size()

    with kept_ranks():
        for size in (2, 3):
            found = run(ranks, size, relayed=KEPT).results
            assert found == [(rank, size) for rank in range(size)]


def test_what_a_rank_may_send_is_counted_anew(monkeypatch):
    monkeypatch.setattr("distlab.launch.relayed._MOST_BYTES", 400_000)

    def sends(comm):
        comm.send(torch.zeros(30_000), 1) if not comm.rank else None
        return comm.recv(torch.zeros(30_000), 0).sum().item() if comm.rank else 0.0

    with kept_ranks():
        for _ in range(4):
            assert run(sends, 2, relayed=KEPT).results == [0.0, 0.0]


REMEMBERED = """
import builtins

def cheats(comm, tensor):
    # the sums of the case before: with other numbers they are no help
    known = getattr(builtins, "known", None)
    if known is not None:
        tensor.copy_(known)
        return
    total = tensor.clone()
    for other in range(comm.world_size):
        if other != comm.rank:
            request = comm.isend(tensor, other)
            total += comm.recv(tensor.clone(), other)
            request.wait()
    tensor.copy_(total)
    builtins.known = total
"""


def test_what_was_seen_in_one_case_is_no_help_in_the_next(capsys):
    space = {"__name__": "__main__"}
    exec(REMEMBERED, space)
    cases = [AllReduceSums(space["cheats"], 3, length) for length in (6, 6, 7)]
    assert grade(3, cases[:1]) == 3.0
    assert grade(3, [cases[0], cases[2]]) == 0.0


def test_calls_in_turn_have_the_same_ranks_unless_a_message_is_left():
    def calls(comm, leaves):
        if leaves and comm.rank == 0:
            comm.isend(torch.zeros(1), 1)
        return os.getpid()

    first, second, third = in_turn(calls, 2, [(False,), (True,), (False,)], quiet=True)
    assert first.results == second.results
    assert not set(second.results) & set(third.results)


def test_calls_in_turn_end_with_the_first_that_fails():
    with pytest.raises(WorldFailed, match="second"):
        in_turn(fails_at, 2, [(1, 2), (2, 2), (3, 2)])


def fails_at(comm, number, fatal):
    if number == fatal:
        raise RuntimeError("the second call")
    return number
