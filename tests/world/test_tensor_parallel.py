"""A split layer is the unsplit one: outputs, gradients, norm, loss; and its bytes."""

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from distlab import InvalidArgument, Mesh, RankRaised, cost, run
from distlab.links import LINKS
from distlab.simulated import Nodes
from distlab.train import tensor_parallel
from distlab.train.memory import SavedForBackward
from distlab.train.models import GPT, Block
from distlab.train.tensor_parallel import (
    ParallelBlock,
    ParallelGPT,
    ParallelMLP,
    clip_gradients,
    layer_on_the_clock,
    own_part,
    own_randomness,
    sum_replicated_gradients,
)

WIDTH, HEADS, LENGTH = 24, 4, 12


def small_gpt(length=LENGTH):
    torch.manual_seed(0)
    gpt = GPT(width=WIDTH, layers=2, heads=HEADS, length=length).double()
    for parameter in gpt.parameters():
        nn.init.normal_(parameter, std=0.3)
    return gpt, torch.randint(0, 256, (3, length + 1))


def parts_of(comm, gpt):
    """Return the unsplit gradient that each parameter of a ParallelGPT should have."""
    heads, columns = own_part(comm, HEADS), own_part(comm, 4 * WIDTH)
    size = WIDTH // HEADS
    places = torch.arange(3 * WIDTH).view(3, HEADS, size)[:, heads].flatten()
    rows = slice(heads.start * size, heads.stop * size)
    wanted, (_, *blocks) = {}, enumerate([None, *gpt.blocks])
    for number, block in blocks:
        at, first, second = f"layers.{number}", block.network[0], block.network[2]
        qkv, after = block.queries_keys_values, block.after_attention
        wanted |= {
            f"{at}.attention.columns.weight": qkv.weight.grad[places],
            f"{at}.attention.rows.weight": after.weight.grad[:, rows],
            f"{at}.network.columns.weight": first.weight.grad[columns],
            f"{at}.network.columns.bias": first.bias.grad[columns],
            f"{at}.network.rows.weight": second.weight.grad[:, columns],
            f"{at}.network.rows.bias": second.bias.grad,
        }
        for name in ("before_attention", "before_network"):
            norm = getattr(block, name)
            wanted[f"{at}.{name}.weight"] = norm.weight.grad
            wanted[f"{at}.{name}.bias"] = norm.bias.grad
    vocabulary, head = own_part(comm, 256), f"layers.{len(gpt.blocks) + 1}"
    return wanted | {
        "layers.0.bytes.weight": gpt.bytes.weight.grad[vocabulary],
        "layers.0.places.weight": gpt.places.weight.grad,
        f"{head}.norm.weight": gpt.last_norm.weight.grad,
        f"{head}.norm.bias": gpt.last_norm.bias.grad,
        f"{head}.scores.weight": gpt.scores.weight.grad[vocabulary],
    }


def compared(comm, sequence):
    """Return the largest difference between a ParallelGPT and the unsplit one."""
    gpt, text = small_gpt()
    loss = gpt.loss(text)
    loss.backward()
    split = ParallelGPT(comm, gpt, sequence=sequence)
    mine = split.loss(text)
    mine.backward()
    if sequence:
        sum_replicated_gradients(comm, split)
    wanted = parts_of(comm, gpt)
    away = [abs(mine - loss).item()]
    away += [
        (p.grad - wanted[name]).abs().max().item()
        for name, p in split.named_parameters()
    ]
    whole = nn.utils.clip_grad_norm_(gpt.parameters(), 1.0).item()
    norm = clip_gradients(split.parameters(), 1.0, split=comm)
    away += [abs(norm - whole) / whole]
    away += [
        (p.grad - wanted[n]).abs().max().item() for n, p in split.named_parameters()
    ]
    return max(away)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("sequence", [False, True])
def test_a_split_gpt_has_the_loss_gradients_and_norm_of_the_unsplit_one(n, sequence):
    assert max(run(compared, n, args=(sequence,)).results) < 1e-12


def test_without_the_all_reduce_of_f_gradients_are_wrong():
    def broken(comm):
        def forgotten(comm, x):
            return tensor_parallel._Between.apply(
                comm, x, tensor_parallel._same, tensor_parallel._same
            )

        tensor_parallel._ways = lambda _: (forgotten, tensor_parallel.reduce_from_ranks)
        return compared(comm, False)

    assert min(run(broken, 2).results) > 1e-3


def test_it_works_in_a_subgroup_and_sends_what_the_formula_says():
    def layer(comm, sequence):
        mesh = Mesh(comm, dp=2, tp=2)
        torch.manual_seed(mesh.dp.rank)
        block, x = Block(WIDTH, HEADS), torch.rand(2, 8, WIDTH)
        split = ParallelBlock(mesh.tp, block, sequence=sequence)
        piece = x[:, own_part(mesh.tp, 8)] if sequence else x
        piece.requires_grad_()
        comm.mark("layer")
        with SavedForBackward(split.parameters()) as kept:
            y = split(piece)
        y.sum().backward()
        x.requires_grad_()
        whole = block(x)
        whole.sum().backward()
        wanted = whole[:, own_part(mesh.tp, 8)] if sequence else whole
        return (y - wanted).abs().max().item(), kept.nbytes

    plain, sequence = (run(layer, 4, args=(cut,)) for cut in (False, True))
    formula = cost.tensor_parallel_traffic_bytes(2, 2 * 8 * WIDTH * 4)
    for report in (plain, sequence):
        assert max(away for away, _ in report.results) < 1e-5
        tp = report.trace.among("tp")
        assert [tp.bytes_sent(rank) for rank in range(4)] == [formula] * 4
    assert sequence.results[0][1] < plain.results[0][1]


def test_activation_bytes_are_those_of_the_paper():
    gpt3 = {"length": 2048, "batch": 1, "width": 12288, "heads": 96}
    sbh = 2048 * 12288
    assert cost.activation_bytes(**gpt3) == sbh * (34 + 80)
    assert cost.activation_bytes(**gpt3, ranks=8) == sbh * (10 + 3 + 10)
    assert cost.activation_bytes(**gpt3, ranks=8, sequence=True) == sbh * 114 / 8
    cut = {"ranks": 8, "sequence": True, "recompute": "selective"}
    assert cost.activation_bytes(**gpt3, **cut) == sbh * 34 / 8
    assert cost.activation_bytes(**gpt3, recompute="full") == 2 * sbh
    with pytest.raises(InvalidArgument, match="recompute is one of none, selective"):
        cost.activation_bytes(**gpt3, recompute="some")


def test_torchs_parallelize_module_computes_the_same_and_counts_the_same_all_reduces():
    def both(comm):
        torch.manual_seed(0)
        network = Block(WIDTH, HEADS).network
        x = torch.rand(5, WIDTH)
        mine = x.clone().requires_grad_()
        y = ParallelMLP(comm, network)(mine)
        y.square().sum().backward()
        mesh = init_device_mesh("cpu", (comm.world_size,))
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        theirs = x.clone().requires_grad_()
        out = parallelize_module(network, mesh, plan)(theirs)
        out.square().sum().backward()
        return (y - out).abs().max().item(), (
            mine.grad - theirs.grad
        ).abs().max().item()

    report = run(both, 4)
    assert max(map(max, report.results)) < 1e-4
    labels = [
        e.label for e in report.trace.of(0, "collective") if "all_reduce" in e.label
    ]
    assert len(labels) == 2


def test_dropout_of_what_is_cut_differs_between_ranks_and_of_what_is_whole_does_not():
    def draws(comm):
        torch.manual_seed(7)
        whole = [torch.rand(1).item()]
        with own_randomness(comm, 3):
            own = torch.rand(1).item()
        return own, [*whole, torch.rand(1).item()]

    results = run(draws, 4).results
    assert len({own for own, _ in results}) == 4
    assert all(whole == results[0][1] for _, whole in results)


@pytest.mark.parametrize(
    "make, said",
    [
        (
            lambda c: ParallelBlock(c, Block(24, 2)),
            "2 heads cannot be split over 4 ranks",
        ),
        (
            lambda c: tensor_parallel.scatter_sequence(c, torch.zeros(1, 6, 2)),
            "6 tokens of a sequence do not divide by 4 ranks",
        ),
    ],
)
def test_what_cannot_be_split_is_named(make, said):
    with pytest.raises(RankRaised, match=said):
        run(make, 4)


def test_on_the_clock_a_layer_sends_as_much_and_takes_longer_over_nics():
    sizes = {"length": 128, "batch": 1, "width": 64, "flops_per_s": 1e12}
    nodes = Nodes(4, LINKS["NVLink 4"], LINKS["InfiniBand NDR"])
    inside, across = (
        run(lambda c: layer_on_the_clock(c, **sizes), n, fabric=nodes) for n in (4, 8)
    )
    for report, n in ((inside, 4), (across, 8)):
        formula = cost.tensor_parallel_traffic_bytes(n, 2 * 128 * 64)
        assert report.trace.bytes_sent(0) == pytest.approx(formula)
    flops = 24 * 128 * 64**2 + 4 * 128**2 * 64
    link, n = LINKS["NVLink 4"], 4
    steps = 4 * 2 * (n - 1) * link.seconds(2 * 128 * 64 / n)
    assert inside.elapsed_s == pytest.approx(3 * flops / n / 1e12 + steps)
    assert across.elapsed_s > inside.elapsed_s
