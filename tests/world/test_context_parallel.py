"""Ring attention equals attention on one rank, whatever the ranks and the cut."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

from distlab import InvalidArgument, MessageMismatch, RankRaised, run
from distlab.links import LINKS
from distlab.simulated import Uniform
from distlab.train import context_parallel
from distlab.train.context_parallel import contiguous, cut_sequence, zigzag

ring_attention = context_parallel.ring_attention

SIZES = [1, 2, 3, 4]
CLOSE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.05}


def beside_torch(comm, shape, dtype, causal, layout, scale=1.0, group=1):
    """Return how far a shard's output and gradients are from torch's, at most."""
    torch.manual_seed(3)
    q, k, v, d_output = torch.randn(4, *shape, dtype=torch.float64).to(dtype)
    given = [scale * q, scale * k[:, ::group], v[:, ::group]]
    theirs = [each.clone().requires_grad_() for each in given]
    output = scaled_dot_product_attention(
        *theirs, is_causal=causal, enable_gqa=group > 1
    )
    output.backward(d_output)
    cut = [cut_sequence(comm, each, layout=layout) for each in given]
    mine = [each.clone().requires_grad_() for each in cut]
    shard = ring_attention(comm, *mine, causal=causal, layout=layout)
    shard.backward(cut_sequence(comm, d_output, layout=layout))
    pairs = [(a.grad, b.grad) for a, b in zip(mine, theirs, strict=True)]
    pairs.append((shard, output))
    joined = [
        (context_parallel.join_sequence(comm, a, layout=layout), b) for a, b in pairs
    ]
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
        ((2, 6, 2 * n, 5), torch.float64, True, zigzag, 1.0, 3),
        ((2, 4, 2 * n, 5), torch.float32, False, zigzag, 1.0, 4),
    ]
    for case in cases:
        for apart in worlds[n].run(beside_torch, *case).results:
            assert apart < CLOSE[case[1]], case


def counted(comm, layout):
    """Return the operations of a shard's forward and backward, as torch counts them."""
    mine = [torch.randn(1, 1, 1024, 4, requires_grad=True) for _ in "qkv"]
    with FlopCounterMode(display=False) as flops:
        ring_attention(comm, *mine, layout=layout).sum().backward()
    return flops.get_total_flops()


def test_work_is_equal_in_every_step_with_an_early_and_a_late_chunk(worlds):
    assert context_parallel.causal_work(4) == [[2.0] * 4] * 4
    assert context_parallel.causal_work(4, contiguous)[0] == [2, 0, 0, 0]
    assert context_parallel.causal_work(4, contiguous)[3] == [2, 4, 4, 4]
    equal = worlds[4].run(counted, zigzag).results
    assert len(set(equal)) == 1
    uneven = worlds[4].run(counted, contiguous).results
    assert sum(uneven) == sum(equal)
    # A tile on the diagonal counts in full, an eighth of a chunk's half.
    assert uneven[3] / uneven[0] == pytest.approx(7, rel=0.12)


def test_messages_are_counted_and_every_step_is_marked(worlds):
    """Also with grouped queries, of which only keys and values travel."""
    n, heads, length, width, group = 4, 2, 6, 4, 2
    shape = (1, heads, length * n, width)
    case = shape, torch.float64, True, zigzag, 1.0, group
    report = worlds[n].run(beside_torch, *case)
    q = heads * length * width * 8
    kv = q // group
    moved = (3 * n - 2) * 2 * kv + (n - 1) * 2 * (q + kv)  # and what joins shards
    for rank in range(n):
        assert report.trace.bytes_sent(rank) == moved
        events = [e for e in report.trace.events if e.rank == rank]
        marks = [e.label for e in events if e.kind == "mark"]
        for name in ("ring attention", "attention backward", "gradients of keys"):
            steps = [label for label in marks if label.startswith(name)]
            assert steps == [f"{name}, step {k} of {n}" for k in range(1, n + 1)]
        keys = [e.label for e in events if e.kind == "work"]
        assert keys == [f"keys of rank {(rank - k) % n}" for k in range(n)] * 2


def in_halves(comm, *case):
    return beside_torch(comm.split(comm.rank % 2), *case)


def forward_only(comm):
    q = torch.randn(1, 1, 16, 2, generator=torch.Generator().manual_seed(0)).double()
    shard = ring_attention(comm, *[cut_sequence(comm, q)] * 3)
    joined = context_parallel.join_sequence(comm, shard)
    return (joined - scaled_dot_product_attention(q, q, q, is_causal=True)).abs().max()


def test_subgroups_attend_and_simulated_ranks_forward(worlds):
    case = (1, 1, 16, 2), torch.float64, True, zigzag
    assert max(worlds[4].run(in_halves, *case).results) < 1e-12
    fabric = Uniform(LINKS["NVLink 4"])  # on which no message moves within a backward
    assert max(run(forward_only, 4, fabric=fabric).results) < 1e-12


MISTAKES = [
    (lambda comm: cut_sequence(comm, torch.zeros(10, 2)), "10 tokens .* 4 equal.* 12"),
    (lambda comm: ring_attention(comm, *torch.zeros(3, 1, 1, 3, 2)), "an even length"),
    (lambda comm: ring_attention(comm, *torch.zeros(3, 1, 4, 2)), "one shape, .*head_"),
    (
        lambda comm: ring_attention(
            comm, torch.zeros(1, 4, 2, 2), *torch.zeros(2, 1, 3, 2, 2)
        ),
        "heads, which divide q's",
    ),
    (
        lambda comm: ring_attention(comm, *torch.zeros(3, 1, 1, 2 + 2 * comm.rank, 2)),
        "4",
    ),
]


def test_what_does_not_fit_is_named(worlds):
    for mistake, words in MISTAKES:
        with pytest.raises(RankRaised, match=words) as raised:
            worlds[2].run(mistake)
        assert isinstance(raised.value.cause, InvalidArgument | MessageMismatch)
