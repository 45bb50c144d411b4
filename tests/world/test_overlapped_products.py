"""Overlapped products equal gather-then-multiply, send as much, and hide messages."""

import pytest
import torch

from distlab import RankRaised, run
from distlab.links import Link
from distlab.simulated import Uniform
from distlab.train.overlapped_products import (
    gathered_linear,
    gathered_product,
    scattered_linear,
    scattered_product,
)

SIZES = [1, 2, 3, 4]
ROWS, WIDTH, HIDDEN = 3, 4, 5


def beside_one_rank(comm):
    """Return how far output and gradients of two layers are from the whole ones."""
    n, rank = comm.world_size, comm.rank
    torch.manual_seed(5)
    sizes = (n * ROWS, WIDTH), (n * HIDDEN, WIDTH), (WIDTH, n * HIDDEN)  # x, W1, W2
    x, up, down = whole = [torch.randn(size).double() for size in sizes]
    cuts = list(zip(whole, (0, 0, 1), strict=True))
    own = [each.chunk(n, dim)[rank].clone().requires_grad_() for each, dim in cuts]
    for each in whole:
        each.requires_grad_()
    wanted = (x @ up.T).tanh() @ down.T
    wanted.square().sum().backward()
    comm.mark("layers")
    hidden = gathered_linear(comm, own[0], own[1]).tanh()
    output = scattered_linear(comm, hidden, own[2])
    output.square().sum().backward()
    ours = [output, *(each.grad for each in own)]
    theirs = [each.grad.chunk(n, dim)[rank] for each, dim in cuts]
    pairs = zip(ours, [wanted.chunk(n)[rank], *theirs], strict=True)
    return max((a - b).abs().max().item() for a, b in pairs)


@pytest.mark.parametrize("n", SIZES)
def test_outputs_and_gradients_are_those_of_one_rank(worlds, n):
    report = worlds[n].run(beside_one_rank)
    assert max(report.results) < 1e-11
    # A gather and a scatter forward; backward as many, and x is gathered again.
    wire = 5 * (n - 1) * ROWS * WIDTH * 8
    for rank in range(n):
        assert report.trace.since("layers").bytes_sent(rank) == wire


def timed(comm, scatter):
    def product(*_):
        with comm.work("product", seconds=1.0):
            return torch.zeros(100, dtype=torch.uint8)

    if scatter:
        scattered_product(comm, product)
    else:
        gathered_product(comm, product(), product)


@pytest.mark.parametrize("scatter", [False, True])
@pytest.mark.parametrize("message_s", [0.25, 2.0])
def test_a_message_is_exposed_only_by_what_it_takes_longer_than_a_product(
    scatter, message_s
):
    link = Link(0.0, 100 / message_s)
    took_s = run(timed, 4, args=(scatter,), fabric=Uniform(link)).elapsed_s
    before = 0 if scatter else 1  # the product that makes the shard
    assert took_s == pytest.approx(before + 1 + 3 * max(1.0, message_s))


@pytest.mark.parametrize("inputs", [4, 5])  # 3 rows for 2 ranks, and a wrong width
def test_shapes_that_do_not_fit_are_named(worlds, inputs):
    linear = scattered_linear if inputs == 4 else gathered_linear
    with pytest.raises(RankRaised, match=rf"ranks: \[3, 4\] and \[5, {inputs}\]"):
        worlds[2].run(linear, torch.zeros(3, 4), torch.zeros(5, inputs))
