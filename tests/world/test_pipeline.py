"""A pipelined model has the gradients of the whole one, whatever the schedule."""

from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn

from distlab import InvalidArgument, Kill, RankDied, RankRaised, run
from distlab.links import Link
from distlab.simulated import Uniform
from distlab.train.models import GPT
from distlab.train.pipeline import (
    PipelinedModel,
    Times,
    cells_of,
    clip_gradients,
    dual_pipe_v,
    gpipe,
    interleaved,
    naive,
    of_torch,
    one_f_one_b,
    play,
    timed,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_v,
)
from distlab.train.pipeline.model import WeightsLater

SIZES = [1, 2, 3, 4]
SCHEDULES = [naive, gpipe, one_f_one_b, interleaved, zero_bubble_h1, zero_bubble_h2]
SCHEDULES += [zero_bubble_v, dual_pipe_v]
schedules = pytest.mark.parametrize("make", SCHEDULES, ids=lambda make: make.__name__)


def parts(count):
    """Return a model in parts; the second one has no parameters."""
    torch.manual_seed(0)
    made = [nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(count)]
    made[1:2] = [nn.Tanh()] * (count > 1)
    return [part.double() for part in made]


def loss_of(output, target):
    return (output - target).square().mean()


def batch():
    draw = torch.Generator().manual_seed(1)
    return torch.rand(2, 24, 6, generator=draw, dtype=torch.float64)


def own_chunks(comm, schedule):
    return schedule.chunks_of(comm.rank, parts(schedule.parts))


def gradients(comm, schedule, recompute=False, most=None):
    """Return a stage's losses, its gradients, and the norm that was clipped."""
    chunks = own_chunks(comm, schedule)
    pipe = PipelinedModel(comm, chunks, schedule, loss_of, recompute=recompute)
    losses = pipe.step(*batch())
    norm = clip_gradients(comm, pipe.chunks.parameters(), most) if most else None
    grads = [[p.grad.tolist() for p in c.parameters()] for c in chunks]
    return losses.tolist(), grads, norm


def whole(schedule, most=None):
    """Return the loss and the gradients of all parts, in one process."""
    every = parts(schedule.parts)
    output, targets = batch()
    for part in every:
        output = part(output)
    loss = loss_of(output, targets)
    loss.backward()
    trained = [p for part in every for p in part.parameters()]
    norm = nn.utils.clip_grad_norm_(trained, most).item() if most else None
    return loss.item(), [[p.grad for p in part.parameters()] for part in every], norm


def check_beside_the_whole(schedule, results, most=None):
    loss, expected, norm = whole(schedule, most)
    stages, (last, _) = len(schedule.stages), schedule.place(schedule.parts - 1)
    assert np.mean(results[last][0]) == pytest.approx(loss, abs=1e-12)
    for part, right in enumerate(expected):
        stage, chunk = schedule.place(part)
        for mine, p in zip(results[stage][1][chunk], right, strict=True):
            mine = torch.tensor(mine, dtype=torch.float64)
            assert torch.allclose(mine, p, rtol=0, atol=1e-12)
    assert [r[2] for r in results] == pytest.approx([norm] * stages, abs=1e-12)


@schedules
@pytest.mark.parametrize(("p", "m"), [(1, 3), (2, 4), (3, 2), (4, 8)])
def test_gradients_are_those_of_the_whole_model(worlds, make, p, m):
    if make is interleaved and m % p:
        pytest.skip("microbatches in whole groups")
    schedule = make(p, m)
    check_beside_the_whole(schedule, worlds[p].run(gradients, schedule).results)


def test_recomputation_changes_no_gradient_and_clipping_counts_all_stages(worlds):
    for schedule in (one_f_one_b(4, 8), interleaved(4, 8, paired=True)):
        found = worlds[4].run(gradients, schedule, True, 1e-2).results
        check_beside_the_whole(schedule, found, 1e-2)


def frozen_first(comm, schedule):
    [chunk] = own_chunks(comm, schedule)
    chunk.requires_grad_(comm.rank > 0)
    PipelinedModel(comm, [chunk], schedule, loss_of).step(*batch())
    return [p.grad for p in chunk.parameters()]


@pytest.mark.parametrize("make", [one_f_one_b, zero_bubble_h1])
def test_a_first_stage_with_nothing_to_train_leaves_the_others_theirs(worlds, make):
    schedule = make(3, 4)
    first, second, third = worlds[3].run(frozen_first, schedule).results
    assert first == [None, None] and second == []
    for mine, right in zip(third, whole(schedule)[1][2], strict=True):
        assert torch.allclose(mine, right, rtol=0, atol=1e-12)


class Nothing:
    """A stage of messages alone."""

    def do(self, work, arrived):
        return np.zeros(1)

    def room(self, part, kind):
        return np.zeros(1)


def played(comm, schedule, times):
    play(
        comm,
        schedule,
        Nothing(),
        seconds=lambda stage, *works: times.of(
            schedule, stage, *(w.kind for w in works)
        ),
    )


@schedules
@pytest.mark.parametrize(("p", "m"), [(3, 3), (4, 8), (8, 24)])
@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
def test_on_the_virtual_clock_it_takes_what_was_predicted(make, p, m, uneven):
    # A rank's messages to both sides share its port, if they meet: not among even ones
    # in turn, but in a V.
    schedule = make(p, m)
    takes = 0.0 if schedule.v_shaped else 0.6
    times = Times(18.5, 18.0, 9.3, communication=takes, overlapped=41.0)
    if uneven:
        times = Times(18.5, [18.0] * (p - 1) + [30.0], 9.3)
    fabric = Uniform(Link(times.communication, float("inf")))
    report = run(played, p, args=(schedule, times), fabric=fabric)
    predicted = timed(schedule, times)
    assert report.elapsed_s == pytest.approx(predicted.end, rel=1e-9)
    worked = [e for e in report.trace.events if e.kind == "work"]
    found = sorted(
        (e.rank, word, round(e.start, 6)) for e in worked for word in e.label.split("+")
    )
    rows = [(stage, str(w), round(start, 6)) for stage, w, start, _ in predicted.rows]
    assert found == sorted(rows)
    drawn = [(c[0], *c[3:]) for c in cells_of(report.trace)]
    assert sorted(drawn) == sorted((c[0], *c[3:]) for c in predicted.cells())


class AsOnGPUs:
    """A Comm that says it has a GPU, and notes the messages that are posted."""

    device = "cuda:0"

    def __init__(self, comm):
        self.rank, self.world_size, self.work = comm.rank, comm.world_size, comm.work
        self._comm, self.posted = comm, []

    def isend(self, tensor, dst):
        self.posted.append((self.rank, dst))
        return self._comm.isend(tensor, dst)

    def irecv(self, tensor, src):
        self.posted.append((src, self.rank))
        return self._comm.irecv(tensor, src)


def posted(comm, schedule):
    comm = AsOnGPUs(comm)
    play(comm, schedule, Nothing(), seconds=lambda stage, *works: 1.0)
    return comm.posted


@pytest.mark.parametrize("make", [one_f_one_b, interleaved, zero_bubble_v, dual_pipe_v])
def test_on_gpus_two_ranks_post_their_messages_in_one_order(make):
    fabric = Uniform(Link(0.1, 1e9))
    logs = run(posted, 4, args=(make(4, 8),), fabric=fabric).results
    for one, other in combinations(range(4), 2):
        between = [[p for p in logs[r] if {*p} == {one, other}] for r in (one, other)]
        assert between[0] == between[1]


OF_TORCH = {
    "ScheduleGPipe": gpipe(4, 8),
    "Schedule1F1B": one_f_one_b(4, 8),
    "ScheduleInterleaved1F1B": interleaved(4, 8),
    "ScheduleInterleavedZeroBubble": zero_bubble_h1(4, 8),
    "ScheduleZBVZeroBubble": zero_bubble_v(4, 8),
    "ScheduleDualPipeV": dual_pipe_v(4, 8),
}


def by_torch(comm, name, chunks):
    """Return torch's losses, its gradients, and its order of work as ours."""
    from torch.distributed import pipelining
    from torch.distributed.pipelining import schedules as torch_schedules

    ours, device = OF_TORCH[name], torch.device("cpu")
    own, places = own_chunks(comm, ours), ours.chunks_of(comm.rank, range(4 * chunks))
    stages = [
        pipelining.PipelineStage(part, place, 4 * chunks, device)
        for part, place in zip(own, places, strict=True)
    ]
    single = name in ("ScheduleGPipe", "Schedule1F1B")
    make, (inputs, targets), losses = getattr(torch_schedules, name), batch(), []
    schedule = make(stages[0] if single else stages, 8, loss_fn=loss_of)
    given, last = (inputs,) if comm.rank == 0 else (), 4 * chunks - 1 in places
    schedule.step(*given, **({"target": targets, "losses": losses} if last else {}))
    grads = [[p.grad.tolist() for p in part.parameters()] for part in own]
    described = OF_TORCH[name] if name == "Schedule1F1B" else of_torch(schedule)
    return [loss.item() for loss in losses], grads, described


@pytest.mark.parametrize("name", OF_TORCH)
def test_order_losses_and_gradients_are_those_of_torchs_schedules(worlds, name):
    ours = OF_TORCH[name]
    theirs = worlds[4].run(by_torch, name, ours.chunks).results
    assert str(theirs[0][2]) == str(ours)
    assert theirs[0][2].overlapped == ours.overlapped
    mine = worlds[4].run(gradients, theirs[0][2]).results
    losses = [sorted(mine[stage][0]) for stage in range(4)]
    assert losses == [pytest.approx(sorted(each[0]), abs=1e-12) for each in theirs]
    for (_, grads, _), (_, others, _) in zip(mine, theirs, strict=True):
        for chunk, other in zip(grads, others, strict=True):
            for a, b in zip(chunk, other, strict=True):
                assert np.allclose(a, b, rtol=0, atol=1e-12)


# ---- weights later, tied parameters, memory -------------------------------------


def small_gpt():
    torch.manual_seed(0)
    gpt = GPT(width=8, layers=3, heads=2, length=9).double()
    gpt.head.weight = gpt.token_embedding.weight
    gpt.blocks[1].network[0].weight.requires_grad_(False)
    draw = torch.Generator().manual_seed(1)
    return gpt, torch.randint(0, 256, (8, 10), generator=draw)


def cut(gpt):
    def embedded(text):
        return gpt.token_embedding(text) + gpt.position_embedding(
            torch.arange(text.shape[1])
        )

    first = nn.Module()
    first.token_embedding, first.position_embedding, first.forward = (
        gpt.token_embedding,
        gpt.position_embedding,
        embedded,
    )
    middle = nn.Sequential(gpt.blocks[1], nn.Identity())
    last = nn.Sequential(gpt.blocks[2], gpt.last_norm, gpt.head)
    return nn.Sequential(first, gpt.blocks[0]), middle, last


def next_byte(scores, text):
    return nn.functional.cross_entropy(scores.flatten(0, 1), text.flatten())


def tied_beside_whole(comm, make, recompute):
    gpt, text = small_gpt()
    stage = cut(gpt)[comm.rank]
    tied = gpt.token_embedding.weight if comm.rank != 1 else None
    how = {"recompute": recompute, "tied": tied}
    pipe = PipelinedModel(comm, [stage], make(3, 4), next_byte, **how)
    pipe.step(text[:, :-1], text[:, 1:])
    norm = clip_gradients(comm, stage.parameters(), 0.1, tied=tied)
    mine = [p.grad for p in stage.parameters() if p.requires_grad]
    whole, _ = small_gpt()
    whole.loss(text).backward()
    trained = [p for p in whole.parameters() if p.requires_grad]
    theirs_norm = nn.utils.clip_grad_norm_(trained, 0.1).item()
    theirs = [p.grad for p in cut(whole)[comm.rank].parameters() if p.requires_grad]
    apart = [(a - b).abs().max().item() for a, b in zip(mine, theirs, strict=True)]
    return max(apart), abs(norm - theirs_norm)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("make", [one_f_one_b, zero_bubble_h1])
def test_tied_embeddings_have_the_gradient_of_the_whole_model(worlds, make, recompute):
    for apart, norm in worlds[3].run(tied_beside_whole, make, recompute).results:
        assert apart < 1e-12 and norm < 1e-6


def test_tied_parameters_that_differ_are_refused():
    def differ(comm):
        own = nn.Parameter(torch.full((2,), float(comm.rank)))
        layer, schedule = [nn.Linear(2, 2)], gpipe(2, 1)
        PipelinedModel(comm, layer, schedule, loss_of, tied=own)

    with pytest.raises(RankRaised, match="tied parameters of the first and the last"):
        run(differ, 2)


@pytest.mark.parametrize("before", [(), (8,), (2, 4)])
def test_weights_wait_for_w_in_one_product_each(before):
    layer, later = nn.Linear(3, 5), WeightsLater()
    x = torch.rand(*before, 3, requires_grad=True)
    with later:
        y = layer(x)
    y.sum().backward()
    assert layer.weight.grad is None and x.grad is not None
    assert torch.allclose(layer.bias.grad, torch.full((5,), float(np.prod(before))))
    assert later.nbytes == x.nbytes + y.nbytes
    later.add_up()
    summed = x.detach().reshape(-1, 3).sum(0)
    assert torch.allclose(layer.weight.grad, summed.expand(5, 3))
    assert later.nbytes == 0


def held_by(comm, make, recompute):
    width = [8, 24, 8][comm.rank]  # of a stage within: stages are uneven
    stage = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 8))
    how = {"recompute": recompute, "measure": True}
    pipe = PipelinedModel(comm, [stage], make(3, 6), loss_of, **how)
    pipe.step(torch.rand(12, 8), torch.rand(12, 8))
    return pipe.held_bytes


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("make", [naive, gpipe, one_f_one_b])
def test_bytes_kept_are_those_of_the_microbatches_held(worlds, make, recompute):
    schedule = make(3, 6)
    results = worlds[3].run(held_by, make, recompute).results
    for stage, found in enumerate(results):
        each = found[0]  # after the first F one is held
        assert each > 0
        assert found == [each * count for count in schedule.held(stage)]


def with_mistake(comm, mistake):
    schedule = one_f_one_b(2, 4)
    chunks = own_chunks(comm, schedule)
    inputs, targets = batch()
    if mistake == "batch":
        inputs = inputs[:22]
    if mistake == "chunks":
        chunks *= 2
    if mistake == "stages":
        schedule = one_f_one_b(3, 4)
    if mistake == "shapes" and comm.rank:
        chunks = [nn.Linear(5, 6).double()]
    if mistake == "tied":
        schedule, chunks = dual_pipe_v(2, 4), chunks * 2
    tied = chunks[0][0].weight if mistake == "tied" and not comm.rank else None
    PipelinedModel(comm, chunks, schedule, loss_of, tied=tied).step(inputs, targets)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("batch", "inputs: 22 samples do not make 4 equal microbatches"),
        ("chunks", "1 chunks of the model, and there are 2 modules"),
        ("stages", "3 stages, one for each rank, and there are 2 ranks"),
        ("tied", "In a V both are on rank 0: use one parameter in its chunks"),
        ("shapes", "stage 1 cannot take what the stage before gives, 6 x 6"),
    ],
)
def test_what_does_not_fit_is_named(mistake, words):
    with pytest.raises(RankRaised, match=words) as failure:
        run(with_mistake, 2, args=(mistake,))
    assert isinstance(failure.value.cause, InvalidArgument)


def test_a_stage_that_dies_in_the_middle_is_named():
    with pytest.raises(RankDied, match="rank 2 was killed") as failure:
        run(gradients, 4, args=(gpipe(4, 8),), faults=[Kill(rank=2, step=9)])
    assert failure.value.rank == 2
