"""Ulysses equals attention on one rank, and sends what its formula says."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from distlab import InvalidArgument, run
from distlab.links import LINKS
from distlab.simulated import Uniform
from distlab.train.context_parallel import contiguous, ring_attention
from distlab.train.ulysses import heads_to_tokens, tokens_to_heads, ulysses_attention

SIZES = [1, 2, 3, 4]
WIDTH, LENGTH = 3, 4  # of a head, and tokens of a rank


def shards(comm, heads, key_heads):
    """Return the whole q, k and v, and this rank's shards, all with gradients."""
    torch.manual_seed(3)
    sizes = [(2, count, LENGTH * comm.world_size, WIDTH) for count in
             (heads, key_heads, key_heads)]  # fmt: skip
    whole = [torch.randn(size, dtype=torch.float64) for size in sizes]
    own = [each.chunk(comm.world_size, 2)[comm.rank].contiguous() for each in whole]
    return [[each.clone().requires_grad_() for each in kind] for kind in (whole, own)]


def beside_torch(comm, heads, key_heads, causal):
    """Return how far output and gradients are from torch's on the whole sequence."""
    whole, own = shards(comm, heads, key_heads)
    times = heads // key_heads
    repeated = [whole[0], *(each.repeat_interleave(times, 1) for each in whole[1:])]
    wanted = scaled_dot_product_attention(*repeated, is_causal=causal)
    wanted.square().sum().backward()
    comm.mark("attention")
    output = ulysses_attention(comm, *own, causal=causal)
    output.square().sum().backward()
    pairs = [(output, wanted), *((a.grad, b.grad) for a, b in zip(own, whole))]  # noqa: B905
    cut = [(a, b.chunk(comm.world_size, 2)[comm.rank]) for a, b in pairs]
    return max((a - b).abs().max().item() for a, b in cut)


@pytest.mark.parametrize("n", SIZES)
def test_output_and_gradients_are_those_of_attention_on_one_rank(worlds, n):
    for heads, key_heads in ((2 * n, 2 * n), (2 * n, n)):
        for causal in (True, False):
            report = worlds[n].run(beside_torch, heads, key_heads, causal)
            assert max(report.results) < 1e-12


def test_a_rank_sends_each_tensor_once_less_what_stays(worlds):
    n, heads, key_heads = 4, 8, 4
    report = worlds[n].run(beside_torch, heads, key_heads, True)
    tokens = 2 * LENGTH * WIDTH * 8  # bytes of a head of a shard
    each_way = (n - 1) * (2 * heads + 2 * key_heads) // n * tokens
    for rank in range(n):
        assert report.trace.since("attention").bytes_sent(rank) == 2 * each_way


def forward_bytes(comm, attend):
    _, own = shards(comm, 4, 4)
    comm.mark("attention")
    attend(comm, *own)


def test_ring_attention_sends_half_of_n_times_as_much(worlds):
    def ring(comm, *qkv):
        return ring_attention(comm, *qkv, layout=contiguous)

    sent = [
        worlds[4].run(forward_bytes, way).trace.since("attention").bytes_sent(1)
        for way in (ring, ulysses_attention)
    ]
    assert sent[0] == 4 / 2 * sent[1]


def there_and_back(comm):
    x = torch.randn(1, 8, 3, 2)
    heads = tokens_to_heads(comm, x)
    return heads.shape, (heads_to_tokens(comm, heads) - x).abs().max()


def test_both_all_to_alls_are_each_others_reverse_also_on_the_virtual_clock():
    report = run(there_and_back, 4, fabric=Uniform(LINKS["NVLink 4"]))
    assert report.results == [((1, 2, 12, 2), 0)] * 4


@pytest.mark.parametrize("way", [tokens_to_heads, heads_to_tokens])
def test_what_does_not_divide_is_named(worlds, way):
    def mistaken(comm):
        with pytest.raises(InvalidArgument, match=r"3 .*divides dim .*\[1, 4, 5, 2\]"):
            way(comm, torch.zeros(1, 4, 5, 2))

    worlds[3].run(mistaken)
