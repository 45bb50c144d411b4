"""Ctrl-C tells which rank, or worker, was where, and stays a KeyboardInterrupt."""

import os
import re
import signal
import subprocess
import sys

import pytest
import torch

from distlab import LINKS, Context, Uniform, World, run, run_elastic


def hang(comm, owner):
    """Have rank 1 interrupt its owner and compute on; the others wait for it."""
    here = torch.zeros(1)
    if comm.rank == 1:
        comm.recv(here, 2)
        comm.recv(here, 0)  # the last to be heard waits already on a virtual clock
        os.kill(owner, signal.SIGINT)
        while True:
            here = here + 1
    comm.send(here, 1)
    comm.recv(here, 1)  # never sent


def in_a_world(owner):
    with World(3) as world:
        try:
            world.run(hang, owner)
        finally:
            assert world.run(lambda comm: comm.rank).results == [0, 1, 2]


WAYS = {
    "run": lambda me: run(hang, 3, args=(me,)),
    "world": in_a_world,
    "elastic": lambda me: run_elastic(
        lambda comm, _, me: hang(comm, me), 3, args=(me,)
    ),
    "simulated": lambda me: run(hang, 3, args=(me,), fabric=Uniform(LINKS["NVLink 4"])),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_tells_which_rank_was_where(way):
    with pytest.raises(KeyboardInterrupt) as caught:
        WAYS[way](os.getpid())
    story = str(caught.value)
    assert "rank 1 was running, test_interrupted.py, line" in story
    for rank in (0, 2):  # whose send may be in its last moment
        at = rf"rank {rank} waited in .*, line \d+: comm\.(send|recv)\(here, 1\)"
        assert re.search(at, story), story
    assert "rank 1 has not returned, and ranks 0 and 2 wait for it" in story
    assert caught.value.trace.world_size == 3


def test_an_interrupt_tells_what_each_worker_was_doing():
    def never(number, owner=os.getpid()):  # noqa: B008
        os.kill(owner, signal.SIGINT)
        while True:
            number += 1

    with Context(workers=1) as context:
        with pytest.raises(KeyboardInterrupt, match="worker 0 was at stage 0"):
            context.parallelize([1], 1).map(never).collect()
        assert context.parallelize([1], 1).map(str).collect() == ["1"]


def test_an_interrupted_script_ends_as_by_the_signal_with_the_story():
    code = "import os, test_interrupted as t; t.run(t.hang, 3, args=[os.getpid()])"
    command, here = [sys.executable, "-c", code], os.path.dirname(__file__)
    done = subprocess.run(command, cwd=here, capture_output=True, text=True)
    assert done.returncode == -signal.SIGINT
    assert "\nKeyboardInterrupt: rank 1 has not returned" in done.stderr
