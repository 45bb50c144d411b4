"""A mixture of experts on many ranks equals one process that has them all."""

import math

import pytest
import torch
from torch import nn

from distlab import InvalidArgument, RankRaised
from distlab.collectives import ring_all_reduce
from distlab.train.expert_parallel import (
    MixtureOfExperts,
    balanced_bias,
    own_experts,
    within_capacity,
)

SIZES = [1, 2, 3, 4]
WIDTH, EXPERTS = 4, 5


def expert(number):
    torch.manual_seed(number)
    layers = nn.Linear(WIDTH, 7), nn.Tanh(), nn.Linear(7, WIDTH)
    return nn.Sequential(*layers).double()


def router(rank, avoided=()):
    torch.manual_seed(50 + rank)
    made = nn.Linear(WIDTH, EXPERTS).double()
    made.bias.data[list(avoided)] = -1e6
    return made


def inputs(world_size):
    """Return each rank's tokens; rank 2 has none."""
    torch.manual_seed(70)
    counts = [0 if rank == 2 else 3 + 2 * rank for rank in range(world_size)]
    return [torch.randn(2, n, WIDTH).double().requires_grad_() for n in counts]


def dense(every, top_k, factor, avoided):
    """Return outputs, counts that are kept, experts and router, token by token."""
    experts, gate = [expert(e) for e in range(EXPERTS)], router(0, avoided)
    outputs, kept, wanted = [], [], torch.zeros(EXPERTS).double()
    count = sum(x[..., 0].numel() for x in every)
    for x in every:
        tokens = x.flatten(0, 1)
        p = gate(tokens).softmax(-1)
        best = p.argsort(-1, descending=True)[:, :top_k]
        most = math.inf if factor is None else factor * top_k * len(p) / EXPERTS
        rows, taken = [0.0 * token for token in tokens], [0] * EXPERTS
        for choice in range(top_k):
            for t, e in enumerate(best[:, choice].tolist()):
                whole = p[t, best[t]].sum() if top_k > 1 else 1
                wanted[e] += 1
                if taken[e] < math.ceil(most) if factor else True:
                    taken[e] += 1
                    rows[t] = rows[t] + p[t, e] / whole * experts[e](tokens[t])
        outputs.append(torch.stack(rows).view_as(x) if rows else 0 * x)
        kept.append(taken)
    mean = sum(gate(x).softmax(-1).sum((0, 1)) for x in every) / count
    auxiliary = EXPERTS * (wanted / wanted.sum() * mean).sum()
    none = sum(0 * p.sum() for each in experts for p in each.parameters())
    (sum(out.square().sum() for out in outputs) + 3 * auxiliary + none).backward()
    return outputs, kept, experts, gate


def beside_dense(comm, top_k, factor, avoided=()):
    """Return how far this rank is from the dense computation, and its routing."""
    every, x = inputs(comm.world_size), inputs(comm.world_size)[comm.rank]
    outputs, kept, experts, gate = dense(every, top_k, factor, avoided)
    own, gates = own_experts(comm, EXPERTS), router(comm.rank, avoided)
    made = [expert(e) for e in own]
    layer = MixtureOfExperts(comm, gates, made, top_k=top_k, capacity_factor=factor)
    output, auxiliary = layer(x)
    (output.square().sum() + 3 * auxiliary).backward()
    pairs = [(output, outputs[comm.rank]), (x.grad, every[comm.rank].grad)]
    for parameter in layer.router.parameters():
        ring_all_reduce(comm, parameter.grad)
    ours = [*layer.router.parameters(), *layer.experts.parameters()]
    theirs = [
        p for each in (gate, *(experts[e] for e in own)) for p in each.parameters()
    ]
    pairs += [(a.grad, b.grad) for a, b in zip(ours, theirs, strict=True)]
    assert layer.routing.kept == kept
    apart = [(a - b).abs().max().item() for a, b in pairs if a.numel()]
    return max(apart), layer.routing


@pytest.mark.parametrize("n", SIZES)
def test_outputs_and_gradients_are_those_of_the_dense_computation(worlds, n):
    cases = [(1, None), (2, None), (5, None), (2, 1.0), (1, 0.5), (3, 0.9)]
    for case in [*cases, (2, 1.25, (2, 3))]:
        report = worlds[n].run(beside_dense, *case)
        apart, (routing, *others) = zip(*report.results, strict=True)
        assert max(apart) < 1e-12 and others == [routing] * (n - 1), case
        assert (routing.dropped > 0) == (case[1] is not None)
        top = max(routing.choices) / sum(routing.choices)
        assert routing.imbalance == pytest.approx(top * EXPERTS)
    assert routing.without_tokens == [2, 3]  # of three ranks, all that one has


def one_step(comm):
    made = [expert(e) for e in own_experts(comm, EXPERTS)]
    layer = MixtureOfExperts(comm, router(0), made)
    comm.mark("step")
    layer(inputs(4)[comm.rank])[0].sum().backward()
    return layer.routing.sent_bytes


def test_bytes_of_the_all_to_alls_are_those_in_the_trace(worlds):
    report = worlds[4].run(one_step)
    for rank, expected in enumerate(report.results[0]):
        events = [e for e in report.trace.events if e.rank == rank]
        begun = [e.label for e in events].index("step")
        sent = [e.bytes for e in events[begun:] if e.kind == "send"]
        assert sent[:3] == [16 * EXPERTS] * 3 and len(sent) == 3 + 4 * 3
        assert sum(sent[3:]) == 2 * expected


def biased(comm, steps):
    """Return the routings without a bias and with one, and the weights' change."""
    made = [expert(e) for e in own_experts(comm, EXPERTS)]
    layer = MixtureOfExperts(comm, router(0), made, top_k=2, capacity_factor=None)
    x = torch.randn(300, WIDTH, generator=torch.Generator().manual_seed(comm.rank))
    x = x.double()
    before, _ = layer(x)
    first = layer.routing
    layer.bias += 7.0  # for all experts alike: nothing may change
    alike = (layer(x)[0] - before).abs().max().item()
    for _ in range(steps):
        layer.bias = balanced_bias(layer.bias, layer.routing.choices, 0.01)
        layer(x)
    return first, layer.routing, alike


def test_a_bias_balances_the_choices_and_leaves_the_weights_of_the_sum(worlds):
    [(first, last, alike), *_] = worlds[3].run(biased, 60).results
    assert first.imbalance > 1.3 and last.imbalance < 1.2 and alike < 1e-12
    assert not first.dropped and sum(last.tokens) == 2 * 3 * 300
    with pytest.raises(InvalidArgument, match=r"each of 3 experts .* got 2"):
        balanced_bias(torch.zeros(3), [4, 5], 0.1)


def test_earlier_choices_are_kept_and_sorted_by_expert():
    chosen = torch.tensor([2, 0, 2, 2, 0, 1])
    assert within_capacity(chosen, 4, 2).tolist() == [1, 4, 5, 0, 2]
    assert within_capacity(chosen[:0], 4, 2).tolist() == []


def in_groups(comm):
    """Step layers of which rank 0 has nothing to train, then one in each half."""
    made = [expert(e).requires_grad_(comm.rank > 0) for e in own_experts(comm, EXPERTS)]
    layer = MixtureOfExperts(comm, router(0).requires_grad_(False), made)
    layer(inputs(4)[comm.rank].detach())[0].sum().backward()
    trained = [p.grad is not None for p in layer.experts.parameters()]
    return any(trained), beside_dense(comm.split(comm.rank % 2), 2, None)[0]


def test_ranks_with_nothing_to_train_take_part_and_so_do_subgroups(worlds):
    trained, apart = zip(*worlds[4].run(in_groups).results, strict=True)
    assert trained == (False, True, True, True) and max(apart) < 1e-12


def mistaken(comm, count, outputs, options):
    made = [expert(e) for e in own_experts(comm, count)]
    gate = nn.Linear(WIDTH, outputs).double()
    MixtureOfExperts(comm, gate, made, **options)(inputs(2)[comm.rank])


MISTAKES = [
    (1, 1, {}, "1 experts for 2 ranks, and none on rank 1"),
    (3, 3, {"top_k": 4}, "top_k is 1 to 3, of 3 experts: 4"),
    (3, 3, {"capacity_factor": 0}, "capacity_factor is above 0, or None: 0"),
    (3, 3, {"capacity_factor": -1.0}, "capacity_factor is above 0"),
    (3, 4, {}, "the router knows 4 experts, of 3"),
]


def test_numbers_that_cannot_be_are_named(worlds):
    for count, outputs, options, words in MISTAKES:
        with pytest.raises(RankRaised, match=words) as raised:
            worlds[2].run(mistaken, count, outputs, options)
        assert isinstance(raised.value.cause, InvalidArgument)
