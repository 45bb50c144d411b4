"""Snapshots in the memory of a neighbour: back without a file, wherever one dies."""

import os
import random
import signal
import sys
import threading

import pytest
import torch
from soaks import repeats

from distlab import RankRaised, run, run_elastic
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
    """Save after each step; a process is killed some time after its first."""
    memory = kept.setdefault("memory", PeerMemory())
    found = memory.load(comm)
    began, state = found or (0, {"x": torch.zeros(500_000) + comm.rank})
    if not found and comm.rank == victim:
        threading.Timer(after_s, os.kill, [os.getpid(), signal.SIGKILL]).start()
    for step in range(began + 1, 41):
        state["x"] += 1
        memory.save(comm, step, state)
    return state["x"].mean().item()


@repeats(6, 200)
@pytest.mark.timeout(600)
def test_a_new_process_goes_on_with_what_its_neighbour_has(count):
    """Wherever it is killed: one rank may be done with a save, and the next not."""
    draw, hit = random.Random(count), 0
    for trial in range(count):
        after = [trial % 4, 0.02 + 0.3 * draw.random()]
        report = run_elastic(goes_on_from_peers, 4, args=after, least=4)
        assert report.results == [40.0, 41.0, 42.0, 43.0]
        hit += len(report.worlds) == 2
    assert hit


def test_two_neighbours_lost_at_once_are_told():
    with pytest.raises(RankRaised, match="two neighbours have died at once"):
        run(from_a_peer, 4, args=[[1, 2]])
