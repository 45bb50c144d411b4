"""Ring attention equals attention on one rank, whatever the ranks and the cut."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from distlab import InvalidArgument, MessageMismatch, RankRaised, World, run
from distlab.links import Link
from distlab.simulated import Uniform
from distlab.train.context_parallel import (
    causal_work,
    contiguous,
    cut_sequence,
    join_sequence,
    ring_attention,
    zigzag,
)

SIZES = [1, 2, 3, 4]
CLOSE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.05}


def whole(shape, dtype, scale=1.0):
    """Return q, k, v of a whole sequence, and the gradient of the output.

    scale: of queries and keys.
    """
    torch.manual_seed(3)
    q, k, v, d_output = torch.randn(4, *shape, dtype=torch.float64).to(dtype)
    return scale * q, scale * k, v, d_output


def beside_torch(comm, shape, dtype, causal, layout, scale=1.0):
    """Return how far output and gradients of a shard are from torch's, at most."""
    *given, d_output = whole(shape, dtype, scale)
    theirs = [each.clone().requires_grad_() for each in given]
    output = scaled_dot_product_attention(*theirs, is_causal=causal)
    output.backward(d_output)
    cut = [cut_sequence(comm, each, layout=layout) for each in given]
    mine = [each.clone().requires_grad_() for each in cut]
    shard = ring_attention(comm, *mine, causal=causal, layout=layout)
    shard.backward(cut_sequence(comm, d_output, layout=layout))
    pairs = [(a.grad, b.grad) for a, b in zip(mine, theirs, strict=True)]
    pairs.append((shard, output))
    joined = [(join_sequence(comm, a, layout=layout), b) for a, b in pairs]
    return max(((a - b).abs().max() / b.abs().max().clamp(1)).item() for a, b in joined)


@pytest.mark.parametrize("n", SIZES)
def test_output_and_gradients_are_those_of_attention_on_one_rank(worlds, n):
    tiles_cut = (1, 2, 2 * n * 150, 4)  # chunks are one tile and a part of another
    cases = [
        ((2, 3, 2 * n, 5), torch.float64, True, zigzag),
        (tiles_cut, torch.float64, True, zigzag),
        (tiles_cut, torch.float64, True, contiguous),
        (tiles_cut, torch.float64, False, zigzag),
        (tiles_cut, torch.float32, True, zigzag),
        (tiles_cut, torch.bfloat16, True, zigzag),
        ((1, 1, 6 * n, 8), torch.float64, True, zigzag, 20.0),  # exp of it overflows
    ]
    for case in cases:
        for apart in worlds[n].run(beside_torch, *case).results:
            assert apart < CLOSE[case[1]], case


def not_causal_and_odd(comm):
    """Return how far a shard of 3 tokens per rank is from torch's, any cut."""
    q, k, v, _ = whole((1, 2, 3 * comm.world_size, 4), torch.float64)
    mine = [each.chunk(comm.world_size, 2)[comm.rank] for each in (q, k, v)]
    expected = scaled_dot_product_attention(q, k, v).chunk(comm.world_size, 2)
    return (ring_attention(comm, *mine, causal=False) - expected[comm.rank]).abs().max()


def test_without_a_mask_any_cut_will_do(worlds):
    assert max(worlds[3].run(not_causal_and_odd).results) < 1e-12


def counted(comm, layout):
    """Return the operations of a shard's forward and backward, as torch counts them."""
    mine = [torch.randn(1, 1, 1024, 4, requires_grad=True) for _ in "qkv"]
    with FlopCounterMode(display=False) as flops:
        ring_attention(comm, *mine, layout=layout).sum().backward()
    return flops.get_total_flops()


def test_work_is_equal_in_every_step_with_an_early_and_a_late_chunk(worlds):
    assert causal_work(4) == [[2.0] * 4] * 4
    assert causal_work(4, contiguous)[0] == [2, 0, 0, 0]
    assert causal_work(4, contiguous)[3] == [2, 4, 4, 4]
    equal = worlds[4].run(counted, zigzag).results
    assert len(set(equal)) == 1
    uneven = worlds[4].run(counted, contiguous).results
    assert sum(uneven) == sum(equal)
    # A tile on the diagonal counts in full, an eighth of a chunk's half.
    assert uneven[3] / uneven[0] == pytest.approx(7, rel=0.12)


def test_messages_are_counted_and_every_step_is_marked(worlds):
    n, heads, length, width = 4, 2, 6, 4
    shape = (1, heads, length * n, width)
    report = worlds[n].run(beside_torch, shape, torch.float64, True, zigzag)
    shard = heads * length * width * 8
    moved = (3 * n - 2) * 2 * shard + (n - 1) * 4 * shard  # and what joins shards
    for rank in range(n):
        assert report.trace.bytes_sent(rank) == moved
        events = [e for e in report.trace.events if e.rank == rank]
        marks = [e.label for e in events if e.kind == "mark"]
        for name in ("ring attention", "attention backward", "gradients of keys"):
            steps = [label for label in marks if label.startswith(name)]
            assert steps == [f"{name}, step {k} of {n}" for k in range(1, n + 1)]
        keys = [e.label for e in events if e.kind == "work"]
        assert keys == [f"keys of rank {(rank - k) % n}" for k in range(n)] * 2


def forward_only(comm):
    q, k, v, _ = whole((1, 1, 16, 2), torch.float64)
    shard = ring_attention(comm, *(cut_sequence(comm, each) for each in (q, k, v)))
    expected = scaled_dot_product_attention(q, k, v, is_causal=True)
    return (join_sequence(comm, shard) - expected).abs().max()


def test_on_simulated_ranks_forward_is_the_same():
    report = run(forward_only, 4, fabric=Uniform(Link(1e-6, 1e9)))
    assert max(report.results) < 1e-12


def mistaken(comm, name):
    shard = torch.zeros(1, 1, 4, 2)
    if name == "length":
        cut_sequence(comm, torch.zeros(1, 1, 10, 2))
    if name == "odd":
        ring_attention(comm, *[shard[:, :, :3]] * 3)
    if name == "heads":
        ring_attention(comm, shard, shard[0], shard)
    if name == "ranks":
        ring_attention(comm, *[shard[:, :, : 2 + 2 * comm.rank]] * 3)


def test_what_does_not_fit_is_named():
    with World(2) as world:
        for name, kind, words in [
            ("length", InvalidArgument, "10 tokens do not cut into 4 equal chunks.*12"),
            ("odd", InvalidArgument, r"an even length: \(\[1, 1, 3, 2\]"),
            ("heads", InvalidArgument, "one shape, .*head_dim"),
            ("ranks", MessageMismatch, "rank 1"),
        ]:
            with pytest.raises(RankRaised, match=words) as raised:
                world.run(mistaken, name)
            assert isinstance(raised.value.cause, kind)
