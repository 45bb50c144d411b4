"""Exercise 13: unusual ranks and answers, and what is told where no variant fails."""

import pytest
import torch
from torch.nn.functional import gelu

from distlab.checks import tensor_parallel as checks
from distlab.checks.kit.grading import judge
from distlab.collectives import ring_all_reduce


class Summed(torch.autograd.Function):
    """Sums over ranks in forward, in backward, or in neither."""

    @staticmethod
    def forward(ctx, x, comm, forward, backward):
        ctx.comm, ctx.sums = comm, backward
        return total(comm, x) if forward else x

    @staticmethod
    def backward(ctx, gradient):
        return total(ctx.comm, gradient) if ctx.sums else gradient, None, None, None


def total(comm, tensor):
    copy = tensor.clone(memory_format=torch.contiguous_format)
    ring_all_reduce(comm, copy)
    return copy


def shard_of(comm, mlp):
    n, rank = comm.world_size, comm.rank
    up, up_bias, down, bias = mlp.parameters()
    mine = [
        t.tensor_split(n, dim)[rank] for t, dim in ((up, 0), (up_bias, 0), (down, 1))
    ]
    return dict(zip(dict(mlp.named_parameters()), (*mine, bias), strict=True))


def mlp(comm, shard, x, skips=False):
    up, up_bias, down, bias = shard.values()
    if skips and not len(up):
        return x * 0 + bias
    hidden = gelu(Summed.apply(x, comm, False, True) @ up.T + up_bias)
    return Summed.apply(hidden @ down.T, comm, True, False) + bias


def skips_its_sum(comm, shard, x):
    return mlp(comm, shard, x, skips=True)


def in_another_order(comm, shard, x):
    return mlp(comm, shard, x).flip(0)


def two_rows(comm, shard, x):
    return mlp(comm, shard, x)[:2]


def bias_counts_twice(comm, shard, x):
    bias = shard["up.bias"]
    return mlp(comm, shard | {"up.bias": 2 * bias - bias.detach()}, x)


FOUND = {
    skips_its_sum: ("returned", "Does every rank make the same number of steps"),
    in_another_order: ("MLP, output", "What stands before it in this order is right"),
    bias_counts_twice: ("gradient of up.bias", "What stands before it in this order"),
    two_rows: ("Mismatch in shape", "The message above names the line"),
}


@pytest.mark.parametrize("parallel", FOUND, ids=lambda function: function.__name__)
def test_what_no_variant_does_is_told_and_has_a_hint(parallel):
    verdict = judge(checks.split_mlp, (shard_of, parallel), (3, 4, 2, 2))
    found, hint = FOUND[parallel]
    assert verdict.outcome == "fail" and found in verdict.found
    assert hint in " ".join(verdict.hints)


@pytest.mark.parametrize("n", [1, 4, 9])  # nine ranks are on the virtual clock
def test_a_right_answer_passes_on_any_number_of_ranks(n):
    assert judge(checks.split_mlp, (shard_of, mlp), (n, 5, 3, 7)).outcome == "pass"


def test_a_rank_has_q_k_and_v_of_its_own_heads():
    numbers = torch.arange(18.0)
    tensors = numbers[:, None].expand(18, 6), numbers, numbers[:6].expand(6, 6), None
    rows, bias, columns, _ = checks._parts("attention", 3, tensors, 2, 1)
    assert rows[:, 0].tolist() == bias.tolist() == [4, 5, 10, 11, 16, 17]
    assert columns[0].tolist() == [4, 5]


def test_the_oracle_is_torchs_attention():
    attention, x, slope = checks.made("attention", 6, 3, 4, seed=1)
    tensors = dict(attention.named_parameters())
    unsplit = checks.partial(checks._unsplit, "attention", attention)
    whole = checks._results(unsplit, tensors, x, slope)
    expected = attention(x, x, x)[0]
    expected.backward(slope)
    assert torch.equal(whole["output"], expected)
    for name, parameter in tensors.items():
        assert torch.allclose(whole[f"gradient of {name}"], parameter.grad, 1e-12)
