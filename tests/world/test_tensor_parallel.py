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
    ParallelGPT,
    VocabParallelEmbedding,
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
        gpt.head.weight = gpt.token_embedding.weight
    own = ParallelGPT(comm, gpt, sequence=sequence)
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
    for name in ("token_embedding", "head"):
        ours, theirs = getattr(own, name).weight, getattr(gpt, name).weight
        pairs.append((ours.grad, own_columns(comm, theirs.grad)))
    for ours, theirs in (
        (own.position_embedding, gpt.position_embedding),
        (own.last_norm, gpt.last_norm),
    ):
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
def test_outputs_and_gradients_are_those_of_the_unsplit_model(worlds, n):
    found = worlds[n].run(all_of_it).results
    assert max(map(max, found)) < 1e-12, found


def without_f(comm):
    tp.copy_to_ranks = lambda comm, x: x
    return in_linear_layers(comm), in_a_block(comm, False)


def test_an_all_reduce_forgotten_in_backward_is_found():
    for found in run(without_f, 2).results:
        assert min(found) > 1e-3


# ---- beside torch's, bytes, memory, seeds, mistakes -----------------------------


class LocalBlock(Block):
    """A `Block` whose fused weight is ordered by ranks, as torch's split needs it."""

    def __init__(self, block, n):
        super().__init__(block.after_attention.in_features, block.heads)
        self.double().load_state_dict(block.state_dict())
        self.size = block.after_attention.in_features // block.heads
        weight = self.queries_keys_values.weight
        weight.data = weight.unflatten(0, (3, n, -1)).transpose(0, 1).flatten(0, 2).data

    def forward(self, x):
        qkv = self.queries_keys_values(self.before_attention(x))
        q, k, v = qkv.unflatten(-1, (3, -1, self.size)).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.after_attention(seen.transpose(1, 2).flatten(2))
        return x + self.network(self.before_network(x))


def beside_torch(comm, sequence):
    """Return how far our block is from one that parallelize_module has cut."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, parallel

    n, block = comm.world_size, made(Block, 24, 6)
    mesh = init_device_mesh("cpu", (n,))
    enters = {"input_layouts": Shard(1)} if sequence else {}
    leaves = {"output_layouts": Shard(1)} if sequence else {}
    plan = {
        "queries_keys_values": parallel.ColwiseParallel(**enters),
        "after_attention": parallel.RowwiseParallel(**leaves),
        "network.0": parallel.ColwiseParallel(**enters),
        "network.2": parallel.RowwiseParallel(**leaves),
    }
    if sequence:
        norms = ("before_attention", "before_network")
        how = {"use_local_output": True}
        plan |= {name: parallel.SequenceParallel(**how) for name in norms}
    theirs = parallel.parallelize_module(LocalBlock(block, n), mesh, plan)
    own = tp.ParallelBlock(comm, block, sequence=sequence)
    start, end = tp.own_range(comm, 12) if sequence else (0, 12)
    x, y = (drawn(2, 12, 24)[:, start:end].requires_grad_() for _ in range(2))
    found, right = own(x, 12), theirs(y)
    slope = drawn(2, 12, 24, seed=2)[:, start:end]
    found.backward(slope)
    right.backward(slope)
    finalize_gradients(comm, own)
    attention, network = own.attention, own.network
    pairs = [
        (attention.queries_keys_values, theirs.queries_keys_values),
        (attention.after_attention, theirs.after_attention),
        (network.up, theirs.network[0]),
        (network.down, theirs.network[2]),
    ]
    grads = [(a.weight.grad, b.weight.grad.to_local()) for a, b in pairs]
    norm = theirs.before_network.weight.grad
    norm = norm.full_tensor() if sequence else norm
    grads.append((own.before_network.weight.grad, norm))
    return apart([(found, right), (x.grad, y.grad), *grads])


@pytest.mark.parametrize("sequence", [False, True])
@pytest.mark.parametrize("n", [2, 3])
def test_it_equals_what_parallelize_module_computes(worlds, n, sequence):
    assert max(worlds[n].run(beside_torch, sequence).results) < 1e-12


def kept_by_a_block(comm, sequence):
    own = tp.ParallelBlock(comm, Block(32, 4), sequence=sequence)
    start, end = tp.own_range(comm, 16) if sequence else (0, 16)
    x = torch.rand(3, end - start, 32, requires_grad=True)
    with SavedForBackward(own.parameters()) as kept:
        y = own(x, 16)
    y.sum().backward()
    return kept.nbytes


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("sequence", [False, True])
def test_bytes_sent_and_kept_are_those_of_the_formulas(worlds, n, sequence):
    report = worlds[n].run(kept_by_a_block, sequence)
    kept = cost.block_activation_bytes(16, 3, 32, 4, tp=n, sequence=sequence)
    assert report.results == [kept] * n
    sent = cost.tensor_parallel_bytes(16, 3, 32, tp=n, itemsize=4)
    assert sent_by_ranks(report, n) == [sent] * n
    nodes = Nodes(4, LINKS["NVLink 4"], LINKS["InfiniBand NDR"])
    clocked = run(kept_by_a_block, n, args=(sequence,), fabric=nodes)
    assert sent_by_ranks(clocked, n) == [sent] * n


def sent_by_ranks(report, n):
    sent = [e for e in report.trace.events if e.kind == "send"]
    return [sum(e.bytes for e in sent if e.rank == rank) for rank in range(n)]


@pytest.mark.parametrize(
    ("width", "heads", "mib"),
    [
        (12288, 96, (2736, 552, 342, 312, 102, 48)),  # GPT-3, by hand: 24 MiB x 114
        (20480, 128, (3920, 840, 490, 520, 170, 80)),  # 530B: 40 MiB x 98
    ],
)
def test_activations_are_those_of_the_paper(width, heads, mib):
    how = [{"tp": 1}, {"tp": 8}, {"tp": 8, "sequence": True}]
    how += [each | {"recompute": "selective"} for each in how[1:]]
    how.append({"recompute": "full"})
    found = [cost.activation_bytes(2048, 1, width, heads, **each) for each in how]
    assert found == [each * 2**20 for each in mib]


def masks(comm):
    x, seeds = torch.ones(64), RegionSeeds(comm, 1)
    found = [functional.dropout(x)]
    for _ in range(2):
        with seeds.split():
            found.append(functional.dropout(x))
        found.append(functional.dropout(x))
    return [each.tolist() for each in found]


def test_dropout_is_the_same_where_tensors_are_whole_and_differs_where_cut(worlds):
    first, second, third = worlds[3].run(masks).results
    assert first[0::2] == second[0::2] == third[0::2]
    for cut in zip(first[1::2], second[1::2], third[1::2], strict=True):
        assert len(set(map(tuple, cut))) == 3
    everything = [tuple(mask) for mask in first]
    assert len(set(everything)) == len(everything)  # no region repeats another's


def with_mistake(comm, mistake):
    if mistake == "heads":
        tp.ParallelBlock(comm, Block(6, 2))
    if mistake == "piece":
        tp.gather_sequence(comm, torch.zeros(1, 4, 2), 7)
    if mistake == "token":
        VocabParallelEmbedding(comm, nn.Embedding(7, 2))(torch.tensor([3, 7]))
    if mistake == "logits":
        own, target = torch.zeros(1, 7), torch.zeros(1, dtype=torch.int64)
        vocab_parallel_cross_entropy(comm, own, target, vocabulary=7)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("heads", "width of 6 and 2 heads do not make whole heads for 3 ranks"),
        ("piece", "4 places of a sequence of 7, and its piece on 3 ranks is [23]"),
        ("token", "7 is no token of a vocabulary of 7"),
        ("logits", r"need logits of \[1, [23]\] here, and got \[1, 7\]"),
    ],
)
def test_what_does_not_fit_is_named(mistake, words):
    with pytest.raises(RankRaised, match=words) as failure:
        run(with_mistake, 3, args=(mistake,))
    assert isinstance(failure.value.cause, InvalidArgument)
