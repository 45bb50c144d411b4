"""Who owns which shard; what a rank computes beside what it communicates."""

import pytest
import torch

from distlab import InvalidArgument, run, show
from distlab.collectives import ring_reduce_scatter
from distlab.links import Link
from distlab.simulated import Uniform
from distlab.train.shards import all_gather_parts

KINDS = {"parameters": 2, "gradients": 2, "optimizer state": 12}


@pytest.mark.parametrize(
    "own, held",
    [([], "16"), (["optimizer state"], "7"), (list(KINDS), "4")],
)
def test_a_rank_holds_its_part_of_what_is_sharded_and_all_of_the_rest(own, held):
    alt = show.shards({"stage": own}, KINDS, ranks=4).alt
    assert f"a rank holds {held} B" in alt


def test_a_kind_without_a_size_is_named():
    with pytest.raises(InvalidArgument, match="'activations' has no size"):
        show.shards({"stage": ["activations"]}, KINDS)


def two_blocks(comm):
    """Gather and compute two blocks, gathering the second ahead; reduce both."""
    calls = []

    def start(name, block, collective):
        calls.append((name, block))
        return comm.start(collective, torch.zeros(1000, dtype=torch.uint8))

    first = start("all-gather", 0, all_gather_parts)
    first.wait()
    second = start("all-gather", 1, all_gather_parts)
    for block in (0, 1):
        with comm.work(f"backward {block}", seconds=2):
            pass
        second.wait()
        start("reduce-scatter", block, ring_reduce_scatter)
    comm.finish()
    return calls


@pytest.fixture(scope="module")
def report():
    return run(two_blocks, 2, fabric=Uniform(Link(0, 500)), quiet=True)


def test_exposed_communication_is_when_a_rank_cannot_compute(report):
    """A collective takes 1 s: the first all-gather and the last reduce-scatter wait."""
    played = show.streams(report, report.results[0])
    assert "6,000 ms, of which 2,000 ms exposed communication" in played.alt


def test_blocks_are_held_from_gather_to_use_and_gradients_until_they_are_reduced(
    report,
):
    """0 s gather 0, 1 s gather 1 and backward 0, 3 s reduce 0 and backward 1."""
    animation = show.streams(report, report.results[0]).animations[0]
    spans = [(start / 1e3, end / 1e3, count) for start, end, count in animation.held[0]]
    assert spans == [(0, 1, 1), (1, 3, 3), (3, 4, 3), (4, 5, 2), (5, 6, 1)]
    assert not animation.held[1]


def test_every_moment_is_told_with_what_is_held(report):
    animation = show.streams(report, report.results[0]).animations[0]
    assert animation.frames[1].text == "Compute: B0, network: A1. Full blocks held: 3."


def test_calls_that_do_not_fit_the_messages_are_refused(report):
    with pytest.raises(InvalidArgument, match="3 collectives don't explain 4 messages"):
        show.streams(report, report.results[0][:3])
