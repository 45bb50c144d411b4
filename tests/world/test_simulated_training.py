"""Training on the virtual clock: gradients of real ranks, times computed apart."""

import os
import signal
import threading

import pytest
import torch
from torch import nn
from torch.autograd import Variable
from torch.utils.flop_counter import FlopCounterMode

from distlab import (
    LINKS,
    Computing,
    Deadlock,
    Kill,
    Mesh,
    Nodes,
    RankDied,
    RankRaised,
    cost,
    run,
)
from distlab.errors import InvalidArgument
from distlab.simulated import Jittered
from distlab.simulated.fabric import rate_of
from distlab.train.context_parallel import (
    contiguous,
    cut_sequence,
    ring_attention,
    zigzag,
)
from distlab.train.expert_parallel import MixtureOfExperts, StartedExchange, own_experts
from distlab.train.fsdp import FullySharded
from distlab.train.models import Block
from distlab.train.tensor_parallel import ParallelBlock

INSIDE, OUTSIDE = LINKS["NVLink 4"], LINKS["InfiniBand NDR"]
NODES, RATE = Nodes(8, INSIDE, OUTSIDE), 2e10
WIDTH, TOKENS, BLOCKS = 64, 16, 3
SIZES, RANKS = [4], [16, pytest.param(64, marks=pytest.mark.nightly)]


def tensor_parallel(comm, sequence=False):
    tp = Mesh(comm, dp=-(-comm.world_size // 8), tp=min(8, comm.world_size)).tp
    torch.manual_seed(0)
    block = ParallelBlock(tp, Block(WIDTH, 8), sequence=sequence)
    x = torch.randn(2, TOKENS, WIDTH)
    x = x.chunk(tp.world_size, 1)[tp.rank].clone() if sequence else x
    block(x.requires_grad_(), TOKENS).square().sum().backward()
    return [x.grad, *(p.grad for p in block.parameters())]


def fully_sharded(comm, prefetch):
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(WIDTH, 4) for _ in range(BLOCKS)))
    sharded = FullySharded(comm, model, Block, prefetch=prefetch)
    x = torch.randn(2, TOKENS, WIDTH) + comm.rank
    comm.barrier()
    comm.mark("step")
    model(x.requires_grad_()).square().sum().backward()
    comm.barrier()
    return [x.grad, *(shard.grad for shard in sharded.shards)]


def attention(comm, layout):
    torch.manual_seed(0)
    whole = torch.randn(3, 1, 2, 8 * comm.world_size, 16)
    own = [cut_sequence(comm, each, layout=layout).contiguous() for each in whole]
    output = ring_attention(comm, *(x.requires_grad_() for x in own), layout=layout)
    output.square().sum().backward()
    return [output.detach(), *(x.grad for x in own)]


def experts(comm, chunks):
    torch.manual_seed(comm.rank)
    n, expert = comm.world_size, nn.Linear(WIDTH, WIDTH, bias=False)
    rows = torch.randn(4 * n * 8, WIDTH, requires_grad=True)
    even = [4 * 8 // chunks] * n
    parts, combining = rows.chunk(chunks), []
    arriving = StartedExchange(comm, parts[0], even, even)
    for k in range(chunks):
        arrived = arriving.wait()
        if k + 1 < chunks:
            arriving = StartedExchange(comm, parts[k + 1], even, even)
        combining.append(StartedExchange(comm, expert(arrived), even, even))
    made = torch.cat([each.wait() for each in combining])
    made.square().sum().backward()
    return [made.detach(), rows.grad, expert.weight.grad]


def mixture(comm):
    torch.manual_seed(comm.rank)
    count = 2 * comm.world_size
    own = [nn.Linear(16, 16) for _ in own_experts(comm, count)]
    layer, x = MixtureOfExperts(comm, nn.Linear(16, count), own), torch.randn(32, 16)
    output, auxiliary = layer(x.requires_grad_())
    (output.square().sum() + auxiliary).backward()
    return [output.detach(), x.grad, layer.router.weight.grad]


TRAINED = [(tensor_parallel,), (tensor_parallel, True), (mixture,)]
TRAINED += [(fully_sharded, True), (fully_sharded, False)]
TRAINED += [(attention, zigzag), (attention, contiguous), (experts, 1), (experts, 4)]


@pytest.mark.parametrize("trained", TRAINED, ids=lambda way: way[0].__name__)
def test_results_are_those_of_real_ranks_bit_by_bit(worlds, trained):
    fn, *args = trained
    real = worlds[4].run(fn, *args).results
    simulated = run(fn, 4, args=args, fabric=Computing(NODES, RATE)).results
    for ours, theirs in zip(simulated, real, strict=True):
        assert all(map(torch.equal, ours, theirs))


class Clocks:
    """Each rank's time, and the time from which its network is free: an own model.

    A step of a collective: rank r sends to r + shift, and receives from r - shift.
    """

    def __init__(self, n):
        self.n, self.now, self.free, self.ends = n, [0.0] * n, [0.0] * n, {}

    def compute(self, seconds):
        for rank in range(self.n):
            each = seconds[rank] if isinstance(seconds, list) else seconds
            self.now[rank] += each

    def start(self, name, size, shifts):
        at = [max(pair) for pair in zip(self.now, self.free, strict=True)]
        for shift in shifts:
            sent = [0.0] * self.n
            for rank in range(self.n):
                to = (rank + shift) % self.n
                link = INSIDE if rank // 8 == to // 8 else OUTSIDE
                sent[rank] = max(at[rank], at[to]) + link.seconds(size)
            at = [max(sent[r], sent[(r - shift) % self.n]) for r in range(self.n)]
        self.free = self.ends[name] = at

    def wait(self, name):
        self.now = [max(*pair) for pair in zip(self.now, self.ends[name], strict=True)]


@pytest.mark.parametrize("n", RANKS)
def test_a_tensor_parallel_layer_takes_four_all_reduces_and_its_flops(n):
    elapsed_s = run(tensor_parallel, n, fabric=Computing(NODES, RATE)).elapsed_s
    shape = cost.TransformerShape(layers=1, width=WIDTH, heads=8, vocabulary=1)
    flops = 3 * shape.layer_flops(TOKENS) + 2 * TOKENS * WIDTH  # scores again
    reduce = cost.ring_all_reduce(8, 2 * TOKENS * WIDTH * 4)
    reduce_s = reduce.seconds(INSIDE.latency_s, INSIDE.bytes_per_s)
    compute_s = 2 * TOKENS * flops / 8 / RATE
    assert elapsed_s == pytest.approx(4 * reduce_s + compute_s)


@pytest.mark.parametrize("prefetch", [True, False])
@pytest.mark.parametrize("n", RANKS)
def test_fully_sharded_training_gathers_while_it_computes(n, prefetch):
    report = run(fully_sharded, n, args=(prefetch,), fabric=Computing(NODES, RATE))
    products, attends = 24 * WIDTH**2, 4 * TOKENS * WIDTH  # FLOPs of a token
    forward_s = 2 * TOKENS / RATE * (products + attends)
    backward_s = 2 * TOKENS / RATE * (2 * products + 2.5 * attends)
    part = -(-sum(p.numel() for p in Block(WIDTH, 4).parameters()) // n)
    clocks, ring = Clocks(n), [4 * part, [1] * (n - 1)]

    def a_pass(order, seconds, reduces):
        for at, k in enumerate(order):
            if at == 0 or not prefetch:
                clocks.start(k, *ring)
            clocks.wait(k)
            if prefetch and at + 1 < BLOCKS:
                clocks.start(order[at + 1], *ring)
            clocks.compute(seconds)
            if reduces:
                clocks.start(("mean", k), *ring)

    order = range(BLOCKS)
    a_pass(order, forward_s, False)
    a_pass(order[::-1], backward_s, True)
    for k in order:
        clocks.wait(("mean", k))
    step_s = report.trace.since("step").duration_s()
    assert step_s == pytest.approx(max(clocks.now))


@pytest.mark.parametrize("layout", [zigzag, contiguous])
@pytest.mark.parametrize("n", RANKS)
def test_ring_attention_waits_for_the_rank_with_most_tiles(n, layout):
    rate = RATE / 20
    took = run(attention, n, args=(layout,), fabric=Computing(NODES, rate))
    clocks, chunk, size = Clocks(n), 4, 2 * 2 * 8 * 16 * 4

    def tiles(step):
        own = [layout(n, rank) for rank in range(n)]
        return [
            sum(a >= b for a in own[rank] for b in own[(rank - step) % n])
            for rank in range(n)
        ]

    for products in (2, 5):
        for step in range(n):
            if step < n - 1:
                clocks.start("keys", size, [1])
            flops = products * 2 * 2 * chunk * chunk * 16
            clocks.compute([flops * each / rate for each in tiles(step)])
            if step < n - 1:
                clocks.wait("keys")
            if products == 5:
                clocks.start("gradients", size, [1])
                clocks.wait("gradients")
    assert took.elapsed_s == pytest.approx(max(clocks.now))


@pytest.mark.parametrize("chunks", [1, 4])
@pytest.mark.parametrize("n", RANKS)
def test_an_all_to_all_hides_behind_experts_in_both_directions(n, chunks):
    rate = RATE / 2
    took = run(experts, n, args=(chunks,), fabric=Computing(NODES, rate))
    clocks, rows = Clocks(n), 4 * 8 // chunks
    swap = [rows * WIDTH * 4, range(1, n)]
    compute_s = 2 * n * rows * WIDTH**2 / rate
    clocks.start(("out", 0), *swap)
    for k in range(chunks):
        clocks.wait(("out", k))
        if k + 1 < chunks:
            clocks.start(("out", k + 1), *swap)
        clocks.compute(compute_s)
        clocks.start(("back", k), *swap)
    for k in range(chunks):
        clocks.wait(("back", k))
    for k in reversed(range(chunks)):
        clocks.start(("d back", k), *swap)
    for k in reversed(range(chunks)):
        clocks.wait(("d back", k))
        clocks.compute(2 * compute_s)
        if k + 1 < chunks:
            clocks.wait(("d out", k + 1))
        clocks.start(("d out", k), *swap)
    clocks.wait(("d out", 0))
    assert took.elapsed_s == pytest.approx(max(clocks.now))


def in_a_collective(comm):
    pairs = comm.split(comm.rank // 2)

    def swap_twice(comm):
        comm.barrier()
        other = 1 - pairs.rank
        swap = pairs.start(pairs_swap, torch.empty(1), other)
        swap.wait()

    def pairs_swap(pairs, room, other):
        pairs.sendrecv(torch.ones(1), room, dst=other, src=other)

    request = comm.start(swap_twice)
    comm.compute(1.0)
    request.wait()


def test_a_collective_in_a_collective_does_not_wait_for_what_its_rank_computes():
    trace = run(in_a_collective, 4, fabric=NODES).trace
    assert max(e.end for e in trace.of(0, "send")) == INSIDE.seconds(4)


def test_coroutines_do_not_nest_however_many_ranks_start_a_collective():
    def deep(levels):
        if levels:
            return deep(levels - 1)
        return run(in_a_collective, 64, fabric=NODES)

    assert deep(500).trace.messages_sent(63) == 1


class InBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, call):
        ctx.call = call
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.call()
        return gradient, None


def calling(comm, call):
    """Call a function of comm inside of a backward pass."""
    x = torch.ones(2, requires_grad=True)
    InBackward.apply(x, lambda: call(comm)).sum().backward()


def fails(comm):
    comm.barrier()
    if comm.rank == 2:
        raise ValueError("in a hook")
    comm.barrier()


def receives(comm):
    comm.recv(torch.empty(2), (comm.rank + 1) % comm.world_size)


def interrupts(comm):
    comm.barrier()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass
    comm.barrier()


@pytest.mark.parametrize(
    ("call", "error", "line"),
    [
        (fails, RankRaised, 'raise ValueError("in a hook")'),
        (receives, Deadlock, "waited in recv from rank 0, test_simulated_training.py"),
        (receives, RankDied, "rank 1 was killed"),
        (interrupts, KeyboardInterrupt, "rank 1 was running, test_simulated_trai"),
    ],
)
def test_a_failure_in_backward_has_its_story_and_leaves_no_thread(call, error, line):
    before, engine = threading.active_count(), Variable._execution_engine
    faults = [Kill(rank=1, step=1)] if error is RankDied else []
    with pytest.raises(error) as caught:
        run(calling, 4, args=(call,), fabric=NODES, faults=faults)
    assert line in str(caught.value)
    assert threading.active_count() == before
    assert Variable._execution_engine is engine


def modes(comm):
    found, count = [], FlopCounterMode(display=False)
    with count, torch.autocast("cpu", torch.bfloat16), torch.device("meta"):
        calling(comm, lambda _: found.append(torch.ones(2, 2) @ torch.ones(2, 2)))
    return str(found[0].dtype), found[0].device.type, count.get_total_flops()


def test_backward_has_the_modes_of_its_rank():
    assert run(modes, 1, fabric=NODES).results == [modes(None)]
    assert modes(None)[::2] == ("torch.bfloat16", 16)


def test_products_are_work_of_the_rank_that_runs():
    def products(comm):
        x = torch.ones(10, 10, requires_grad=comm.rank == 0)
        y = x @ x
        with comm.work("named"):
            y = y @ y
        with torch.inference_mode():
            nn.functional.linear(x, x)
        if comm.rank == 0:
            y.sum().backward()

    trace = run(products, 2, fabric=Computing(NODES, flops_per_s=2000.0)).trace
    spans = [[(e.label, e.start, e.end) for e in trace.of(r, "work")] for r in (0, 1)]
    forward = [("forward", 0, 1), ("named", 1, 2), ("forward", 2, 3)]
    assert spans == [[*forward, ("backward", 3, 7)], forward]


def test_the_rate_of_a_fabric_is_that_of_any_layer_of_it():
    assert rate_of(NODES) is None
    assert rate_of(Jittered(Computing(NODES, 3.0), 0.1)) == 3.0
    with pytest.raises(InvalidArgument, match="flops_per_s is above 0"):
        Computing(NODES, 0)
