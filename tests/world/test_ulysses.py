"""Ulysses equals attention on one rank, and sends what its formula says."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from distlab import RankRaised
from distlab.train.ulysses import heads_to_tokens, tokens_to_heads, ulysses_attention

SIZES = [1, 2, 3, 4]
WIDTH, LENGTH = 3, 4  # of a head, and tokens of a rank


def beside_torch(comm, heads, key_heads, causal):
    """Return how far output and gradients are from torch's on the whole sequence."""
    n, rank = comm.world_size, comm.rank
    torch.manual_seed(3)
    counts = heads, key_heads, key_heads
    whole = [torch.randn(2, count, LENGTH * n, WIDTH).double() for count in counts]
    own = [x.chunk(n, 2)[rank].clone().requires_grad_() for x in whole]
    q, *kv = (each.requires_grad_() for each in whole)
    kv = [each.repeat_interleave(heads // key_heads, 1) for each in kv]
    wanted = scaled_dot_product_attention(q, *kv, is_causal=causal)
    wanted.square().sum().backward()
    comm.mark("attention")
    output = ulysses_attention(comm, *own, causal=causal)
    output.square().sum().backward()
    ours = [output, *(each.grad for each in own)]
    theirs = [each.chunk(n, 2)[rank] for each in (wanted, *(x.grad for x in whole))]
    return max((a - b).abs().max().item() for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("n", SIZES)
def test_output_and_gradients_are_those_of_one_rank_and_bytes_those_of_the_formula(
    worlds, n
):
    for heads, key_heads in ((2 * n, 2 * n), (2 * n, n)):
        for causal in (True, False):
            report = worlds[n].run(beside_torch, heads, key_heads, causal)
            assert max(report.results) < 1e-12
            head = 2 * LENGTH * WIDTH * 8  # bytes of one head of a shard
            each_way = (n - 1) * (2 * heads + 2 * key_heads) // n * head
            step = report.trace.since("attention")
            assert [step.bytes_sent(rank) for rank in range(n)] == [2 * each_way] * n


@pytest.mark.parametrize(("way", "dim"), [(tokens_to_heads, 1), (heads_to_tokens, 2)])
def test_what_does_not_divide_is_named(worlds, way, dim):
    with pytest.raises(RankRaised, match=rf"3 divides dim {dim} of .*4, 5, 2\]"):
        worlds[3].run(way, torch.zeros(1, 4, 5, 2))
