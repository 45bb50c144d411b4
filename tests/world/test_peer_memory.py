"""Snapshots in the memory of a neighbour: back without a file, wherever one dies."""

import os
import random
import signal
import sys
import threading

import pytest
import torch
from soaks import repeats

from distlab import Kill, RankRaised, run, run_elastic
from distlab.train.checkpoint import PeerMemory


def from_a_peer(comm, lost):
    memory, opened = PeerMemory(), []
    for step in (1, 2, 3):
        memory.save(comm, step, {"x": torch.full((1000,), 10.0 * step + comm.rank)})
    comm.barrier()
    if comm.rank in lost:
        memory = PeerMemory()
    sys.addaudithook(lambda event, what: opened.append(what) if event == "open" else 0)
    step, state = memory.load(comm)
    return step, state["x"].mean().item(), opened


@pytest.mark.parametrize("lost", [[], [1], [0, 2]])
def test_who_was_replaced_has_its_state_from_a_peer_and_opens_no_file(lost):
    results = run(from_a_peer, 4, args=[lost]).results
    assert results == [(3, 30.0 + rank, []) for rank in range(4)]


def goes_on_from_peers(comm, kept, victim, after_s):
    """Save after each step; a process is killed after some time, then the next one.

    Where the first died before all had saved, its replacement dies as the first, and
    its neighbour stays, for both at once would lose a snapshot and its copy.
    """
    memory = kept.setdefault("memory", PeerMemory())
    began, state = memory.load(comm) or (0, {"x": torch.zeros(500_000) + comm.rank})
    kept["worlds"] = kept.get("worlds", 0) + 1
    first = comm.rank == victim and not began
    second = comm.rank == (victim + 1) % 4 and kept["worlds"] == 2 and began
    for step in range(began + 1, 41):
        state["x"] += 1
        memory.save(comm, step, state)
        if step == began + 1 and (first or second):
            threading.Timer(after_s, os.kill, [os.getpid(), signal.SIGKILL]).start()
    return state["x"].mean().item()


@repeats(3, 200)
@pytest.mark.timeout(1200)
def test_a_new_process_goes_on_with_what_its_neighbour_has(count):
    """Wherever it is killed: one rank may be done with a save, and the next not."""
    draw, worlds = random.Random(count), 0
    for trial in range(count):
        after = [trial % 4, 0.2 * draw.random()]
        report = run_elastic(goes_on_from_peers, 4, args=after, least=4)
        assert report.results == [40.0, 41.0, 42.0, 43.0]
        worlds += len(report.worlds)
    assert worlds > 2 * count


@pytest.mark.parametrize("step", [3, 5, 6])
def test_a_death_in_the_first_save_leaves_none_to_go_on_from(step):
    """A load is 2 Comm calls of rank 1, and a save 4."""
    fault = Kill(1, step)
    report = run_elastic(goes_on_from_peers, 4, args=[9, 0.0], least=4, faults=fault)
    assert report.results == [40.0, 41.0, 42.0, 43.0]
    assert len(report.worlds) >= 2


def test_two_neighbours_lost_at_once_are_told():
    with pytest.raises(RankRaised, match="two neighbours have died at once"):
        run(from_a_peer, 4, args=[[1, 2]])
