"""A pipelined model has the gradients of the whole one, whatever the schedule."""

import numpy as np
import pytest
import torch
from torch import nn

from distlab import InvalidArgument, Kill, RankDied, RankRaised, run
from distlab.links import Link
from distlab.simulated import Uniform
from distlab.train.pipeline import (
    PipelinedModel,
    Times,
    cells_of,
    clip_gradients,
    gpipe,
    interleaved,
    naive,
    one_f_one_b,
    play,
    timed,
    zero_bubble_h1,
    zero_bubble_h2,
)

SCHEDULES = [naive, gpipe, one_f_one_b, interleaved, zero_bubble_h1, zero_bubble_h2]
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
    every = parts(schedule.parts)
    return [
        every[chunk * comm.world_size + comm.rank] for chunk in range(schedule.chunks)
    ]


def gradients(comm, schedule, recompute=False, most=None):
    """Return a stage's losses, its gradients, and the norm that was clipped."""
    chunks = own_chunks(comm, schedule)
    pipe = PipelinedModel(comm, chunks, schedule, loss_of, recompute=recompute)
    losses = pipe.step(*batch())
    norm = clip_gradients(comm, pipe.chunks.parameters(), most) if most else None
    return losses, [[p.grad.tolist() for p in c.parameters()] for c in chunks], norm


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
    stages = len(schedule.stages)
    assert np.mean(results[-1][0]) == pytest.approx(loss, abs=1e-12)
    for part, right in enumerate(expected):
        chunk, stage = divmod(part, stages)
        for mine, p in zip(results[stage][1][chunk], right, strict=True):
            mine = torch.tensor(mine, dtype=torch.float64)
            assert torch.allclose(mine, p, rtol=0, atol=1e-12)
    assert [r[2] for r in results] == pytest.approx([norm] * stages, abs=1e-12)


@schedules
@pytest.mark.parametrize(("p", "m"), [(1, 3), (2, 4), (3, 2), (4, 8)])
def test_gradients_are_those_of_the_whole_model(make, p, m):
    if make is interleaved and m % p:
        pytest.skip("microbatches in whole groups")
    schedule = make(p, m)
    check_beside_the_whole(schedule, run(gradients, p, args=(schedule,)).results)


def test_recomputation_changes_no_gradient_and_clipping_counts_all_stages():
    for make in (one_f_one_b, interleaved):
        schedule = make(4, 8)
        found = run(gradients, 4, args=(schedule, True, 1e-2)).results
        check_beside_the_whole(schedule, found, 1e-2)


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
        seconds=lambda stage, work: times.of(schedule, stage, work.kind),
    )


@schedules
@pytest.mark.parametrize(("p", "m"), [(3, 3), (4, 8), (8, 24)])
@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
def test_on_the_virtual_clock_it_takes_what_was_predicted(make, p, m, uneven):
    # A rank's messages to both sides share its port, if they meet: not among even ones.
    times = Times(18.5, 18.0, 9.3, communication=0.6)
    if uneven:
        times = Times(18.5, [18.0] * (p - 1) + [30.0], 9.3)
    schedule = make(p, m)
    fabric = Uniform(Link(times.communication, float("inf")))
    report = run(played, p, args=(schedule, times), fabric=fabric)
    predicted = timed(schedule, times)
    assert report.elapsed_s == pytest.approx(predicted.end, rel=1e-9)
    worked = [e for e in report.trace.events if e.kind == "work"]
    found = sorted((e.rank, e.label, round(e.start, 6)) for e in worked)
    rows = [(stage, str(w), round(start, 6)) for stage, w, start, _ in predicted.rows]
    assert found == sorted(rows)
    drawn = [(c[0], *c[3:]) for c in cells_of(report.trace)]
    assert sorted(drawn) == sorted((c[0], *c[3:]) for c in predicted.cells())


def test_losses_and_gradients_are_those_of_torchs_pipelining():
    def beside(comm, name):
        from torch.distributed import pipelining

        (own,) = own_chunks(comm, gpipe(4, 8))
        device = torch.device("cpu")
        stage = pipelining.PipelineStage(own, comm.rank, 4, device)
        schedule = getattr(pipelining, name)(stage, 8, loss_fn=loss_of)
        inputs, targets = batch()
        losses = []
        if comm.rank == 0:
            schedule.step(inputs)
        else:
            last = comm.rank == 3
            schedule.step(**({"target": targets, "losses": losses} if last else {}))
        return [loss.item() for loss in losses], [
            p.grad.tolist() for p in own.parameters()
        ]

    for make, name in ((gpipe, "ScheduleGPipe"), (one_f_one_b, "Schedule1F1B")):
        ours = run(gradients, 4, args=(make(4, 8),)).results
        theirs = run(beside, 4, args=(name,)).results
        assert ours[-1][0] == pytest.approx(theirs[-1][0], abs=1e-12)
        for mine, other in zip(ours, theirs, strict=True):
            flat = zip(mine[1][0], other[1], strict=True)
            assert all(np.allclose(a, b, rtol=0, atol=1e-12) for a, b in flat)


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
    PipelinedModel(comm, chunks, schedule, loss_of).step(inputs, targets)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("batch", "inputs: 22 samples do not make 4 equal microbatches"),
        ("chunks", "1 chunks of the model, and there are 2 modules"),
        ("stages", "3 stages, one for each rank, and there are 2 ranks"),
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
