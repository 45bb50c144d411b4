"""`World`: the same processes again and again, whole or clearly closed."""

import os
import subprocess
import sys
import time

import psutil
import pytest
import torch
import torch.distributed as dist
from outcomes import after_the_outcome
from stores import wait_until

from distlab import (
    InvalidArgument,
    RankDied,
    RankRaised,
    World,
    WorldClosed,
    WorldTimeout,
)

counter = 0
rate = 0.1


def bump(comm):
    global counter
    counter += 1
    return counter


def test_calls_run_on_the_same_processes_in_turn():
    with World(3) as world:
        first = world.run(lambda comm: os.getpid()).results
        assert world.run(lambda comm: os.getpid()).results == first


def test_module_state_persists_between_calls():
    def remember(comm, value):
        import math

        math.distlab_remembers = value + comm.rank

    def recall(comm):
        import math

        return math.distlab_remembers

    with World(2) as world:
        world.run(remember, 10)
        assert world.run(recall).results == [10, 11]


def test_globals_persist_as_in_a_notebook():
    """Cell functions live in `__main__`, so a fresh one is made."""
    code = """
from distlab import World
counter, rate = 0, 0.1
def bump(comm):
    global counter, seen
    counter += 1
    seen = counter
    return counter
def look(comm):
    return seen, rate
world = World(2)
world.run(bump)
print(world.run(bump).results, world.run(look).results)
counter, rate = 10, 0.5
print(world.run(bump).results, world.run(look).results)
counter = 11  # what the ranks have by now
print(world.run(bump).results, world.run(bump).results)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[2, 2] [(2, 0.1), (2, 0.1)]",
        "[11, 11] [(11, 0.5), (11, 0.5)]",
        "[12, 12] [13, 13]",
    ]


def test_each_call_has_a_trace_of_its_own():
    def once(comm):
        room = torch.zeros(2)
        comm.sendrecv(torch.ones(2), room, dst=1 - comm.rank, src=1 - comm.rank)

    with World(2) as world:
        traces = [world.run(once).trace for _ in range(3)]
    assert [trace.messages_sent(0) for trace in traces] == [1, 1, 1]
    assert [trace.of(0, "send")[0].step for trace in traces] == [1, 1, 1]


def test_closing_twice_is_fine_and_a_call_afterwards_says_so():
    world = World(2)
    world.close()
    world.close()
    with pytest.raises(WorldClosed, match="has been closed"):
        world.run(bump)


def test_a_failed_call_is_followed_by_fresh_ranks_that_say_so():
    def fails(comm):
        if comm.rank == 1:
            raise ValueError("no")
        comm.barrier()

    with World(2) as world:
        before = world.run(lambda comm: os.getpid()).results
        with pytest.raises(RankRaised):
            world.run(fails)
        after = world.run(lambda comm: os.getpid())
        assert not set(after.results) & set(before)
        assert "Fresh ranks" in after.notes[0]
        assert world.run(lambda comm: comm.barrier()).notes == []


def test_an_argument_error_costs_no_rank_its_life():
    with World(2) as world:
        before = world.run(lambda comm: os.getpid()).results
        with pytest.raises(InvalidArgument):
            world.run(lambda: None)
        assert world.run(lambda comm: os.getpid()).results == before


def test_a_rank_killed_between_calls_is_named_at_the_next():
    with World(3) as world:
        pids = world.run(lambda comm: os.getpid()).results
        victim = psutil.Process(pids[1])
        victim.kill()
        victim.wait()
        with pytest.raises(RankDied) as died:
            world.run(lambda comm: comm.rank)
        assert died.value.rank == 1
        assert world.run(lambda comm: comm.rank).results == [0, 1, 2]


def test_a_rank_that_dies_after_its_return_is_replaced_before_the_next_call():
    def die_soon(comm):
        if comm.rank == 1:
            comm.send_object(os.getpid(), 0)
            after_the_outcome(os._exit, 3)
        else:
            pid = comm.recv_object(1)
            wait_until(lambda: not psutil.pid_exists(pid))

    with World(2) as world:
        world.run(die_soon)
        report = world.run(lambda comm: comm.rank)
        assert report.results == [0, 1] and "Fresh ranks" in report.notes[0]


def test_a_world_whose_process_group_was_destroyed_begins_anew():
    with World(2) as world:
        world.run(lambda comm: dist.destroy_process_group())
        report = world.run(lambda comm: comm.barrier())
        assert "Fresh ranks" in report.notes[0]


def test_a_call_may_be_given_its_own_time():
    with World(2) as world:
        world.timeout_s = 0.1
        with pytest.raises(WorldTimeout):
            world.run(lambda comm: time.sleep(60))


def test_a_forgotten_world_is_closed_with_its_last_name():
    world = World(2)
    pids = world.run(lambda comm: os.getpid()).results
    del world
    psutil.wait_procs(
        [psutil.Process(p) for p in pids if psutil.pid_exists(p)], timeout=2
    )
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_world_left_open_ends_with_its_process():
    code = (
        "import os; from distlab import World\n"
        "world = World(2)\n"
        "print(world.run(lambda comm: os.getpid()).results)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert not any(psutil.pid_exists(pid) for pid in eval(done.stdout))


def test_ddp_and_fsdp2_run_as_they_are():
    def train(comm):
        from torch.distributed.fsdp import fully_shard
        from torch.nn.parallel import DistributedDataParallel

        torch.manual_seed(0)
        losses = []
        for wrap in (DistributedDataParallel, fully_shard):
            model = torch.nn.Linear(4, 2)
            wrapped = wrap(model)
            optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
            for _ in range(3):
                loss = wrapped(torch.ones(2, 4) * (comm.rank + 1)).pow(2).mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
        return losses

    with World(2) as world:
        report = world.run(train)
    assert all(loss > 0 for losses in report.results for loss in losses)
    assert report.output == ["", ""]
