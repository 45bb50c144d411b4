"""A model cut by tensor parallelism has output and gradients of the whole one."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from distlab import InvalidArgument, RankRaised, cost, run
from distlab.links import LINKS
from distlab.simulated import Nodes
from distlab.train import tensor_parallel as tp
from distlab.train.memory import SavedForBackward
from distlab.train.models import GPT, Block
from distlab.train.shared_parameters import (
    RegionSeeds,
    clip_gradients,
    finalize_gradients,
    sharded_parameters,
)
from distlab.train.vocab_parallel import (
    VocabParallelEmbedding,
    tensor_parallel,
    vocab_parallel_cross_entropy,
)

SIZES = (1, 2, 3, 4)


def drawn(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def made(kind, *args, **options):
    torch.manual_seed(0)
    module = kind(*args, **options).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


def own_columns(comm, whole, unit=1, fused=1):
    """Return what this rank has of a tensor that is cut along dim 0."""
    start, end = tp.own_range(comm, len(whole) // fused, unit)
    return whole.unflatten(0, (fused, -1))[:, start:end].flatten(0, 1)


def apart(pairs):
    return max((a - b).abs().max().item() if a.numel() else 0.0 for a, b in pairs)


def in_linear_layers(comm):
    """Return how far columns, then rows, are from two unsplit layers; 5 hidden."""
    first, second = made(nn.Linear, 3, 5), made(nn.Linear, 5, 3)
    columns = tp.ColumnParallelLinear(comm, first)
    rows = tp.RowParallelLinear(comm, second)
    x, mine = (drawn(2, 7, 3).requires_grad_() for _ in range(2))
    right, found = second(first(x).sin()), rows(columns(mine).sin())
    slope = drawn(2, 7, 3, seed=2)
    right.backward(slope)
    found.backward(slope)
    pairs = [(found, right), (mine.grad, x.grad), (rows.bias.grad, second.bias.grad)]
    for own, whole in ((columns.weight, first.weight), (columns.bias, first.bias)):
        pairs.append((own.grad, own_columns(comm, whole.grad)))
    pairs.append((rows.weight.grad, own_columns(comm, second.weight.grad.T).T))
    return apart(pairs)


def in_a_block(comm, sequence):
    """Return how far a block of 5 heads, on 7 places, is from the unsplit one."""
    block = made(Block, 20, 5)
    own = tp.ParallelBlock(comm, block, sequence=sequence)
    x, slope = drawn(2, 7, 20).requires_grad_(), drawn(2, 7, 20, seed=2)
    right = block(x)
    right.backward(slope)
    start, end = tp.own_range(comm, 7) if sequence else (0, 7)
    mine = x.detach()[:, start:end].clone().requires_grad_()
    found = own(mine, 7)
    found.backward(slope[:, start:end])
    finalize_gradients(comm, own)
    qkv, out = own.attention.queries_keys_values, own.attention.after_attention
    up, down, (first, _, last) = own.network.up, own.network.down, block.network
    grads = block.queries_keys_values.weight.grad
    pairs = [(found, right[:, start:end]), (mine.grad, x.grad[:, start:end])]
    pairs.append((qkv.weight.grad, own_columns(comm, grads, 4, fused=3)))
    grads = block.after_attention.weight.grad
    pairs.append((out.weight.grad, own_columns(comm, grads.T, 4).T))
    pairs.append((up.weight.grad, own_columns(comm, first.weight.grad)))
    pairs.append((up.bias.grad, own_columns(comm, first.bias.grad)))
    pairs.append((down.weight.grad, own_columns(comm, last.weight.grad.T).T))
    pairs.append((down.bias.grad, last.bias.grad))
    for name in ("before_attention", "before_network"):
        norms = getattr(own, name), getattr(block, name)
        pairs += [(norms[0].weight.grad, norms[1].weight.grad)]
        pairs += [(norms[0].bias.grad, norms[1].bias.grad)]
    return apart(pairs)


def in_a_gpt(comm, sequence, tied):
    """Return how far loss, gradients and their norm are from the unsplit GPT's."""
    gpt = made(GPT, width=16, layers=2, heads=4, length=9)
    if tied:
        gpt.scores.weight = gpt.bytes.weight
    own = tensor_parallel(comm, gpt, sequence=sequence)
    text = torch.randint(0, 256, (2, 8), generator=torch.Generator().manual_seed(1))
    right, found = gpt.loss(text), own.loss(text)
    right.backward()
    found.backward()
    finalize_gradients(comm, own)
    sharded = sharded_parameters(own)
    parameters = list(own.parameters())
    norm = clip_gradients(parameters, 0.1, comm, sharded=sharded)
    whole = nn.utils.clip_grad_norm_(gpt.parameters(), 0.1)
    pairs = [(found, right), (torch.tensor(norm, dtype=torch.float64), whole)]
    for name in ("bytes", "scores"):
        ours, theirs = getattr(own, name).weight, getattr(gpt, name).weight
        pairs.append((ours.grad, own_columns(comm, theirs.grad)))
    for ours, theirs in ((own.places, gpt.places), (own.last_norm, gpt.last_norm)):
        pairs.append((ours.weight.grad, theirs.weight.grad))
    return apart(pairs)


def in_a_vocabulary(comm):
    """Return how far embedding and cross-entropy of 11 tokens are from torch's."""
    table, tokens = made(nn.Embedding, 11, 3), torch.tensor([[0, 10, 5], [3, 4, 3]])
    own = VocabParallelEmbedding(comm, table)
    rows, found = table(tokens), own(tokens)
    slope = drawn(2, 3, 3)
    rows.backward(slope)
    found.backward(slope)
    pairs = [(found, rows), (own.weight.grad, own_columns(comm, table.weight.grad))]
    logits = (50 * drawn(2, 3, 11)).requires_grad_()
    start, end = tp.own_range(comm, 11)
    mine = logits.detach()[..., start:end].clone().requires_grad_()
    right = functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    loss = vocab_parallel_cross_entropy(comm, mine, tokens, vocabulary=11)
    right.backward()
    loss.backward()
    pairs += [(loss, right), (mine.grad, logits.grad[..., start:end])]
    return apart(pairs)


def all_of_it(comm):
    found = [in_linear_layers(comm), in_a_vocabulary(comm)]
    found += [in_a_block(comm, sequence) for sequence in (False, True)]
    found += [in_a_gpt(comm, *how) for how in ((False, True), (True, False))]
    return [*found, in_a_gpt(comm, True, True)]


@pytest.mark.parametrize("n", SIZES)
def test_outputs_and_gradients_are_those_of_the_unsplit_model(n):
    found = run(all_of_it, n).results
    assert max(map(max, found)) < 1e-12, found


def without_f(comm):
    tp.copy_to_ranks = lambda comm, x: x
    return in_linear_layers(comm), in_a_block(comm, False)


def test_an_all_reduce_forgotten_in_backward_is_found():
    for found in run(without_f, 2).results:
        assert min(found) > 1e-3
