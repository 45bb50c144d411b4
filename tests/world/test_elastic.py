"""A world that loses ranks and takes new ones in: who goes on, with what, how soon."""

import contextlib
import os
import random
import select
import signal
import threading
import time

import psutil
import pytest
import torch
import torch.distributed as dist
from leaks import left_since, what_there_is
from soaks import repeats
from stores import wait_until
from torch import nn

from distlab import (
    Deadlock,
    Hang,
    InvalidArgument,
    Kill,
    RankDied,
    RankRaised,
    WorldChanged,
    WorldTimeout,
    run_elastic,
)
from distlab.collectives import ring_all_reduce
from distlab.faults import Storm
from distlab.train.elastic import ElasticState

SAMPLES, BATCH, EPOCHS = 48, 12, 3


def data():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(SAMPLES, 5, generator=draw, dtype=torch.float64)
    return x, x.sin().sum(1, keepdim=True)


def begun():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    return ElasticState(model=model, optimizer=optimizer, step=0, seen=[])


def batch_of(step):
    epoch, at = divmod(step * BATCH, SAMPLES)
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(epoch))
    return order[at : at + BATCH]


def train_step(state, samples, reduce):
    x, y = data()
    model = state["model"]
    model.zero_grad()
    ((model(x[samples]) - y[samples]) ** 2).sum().div(BATCH).backward()
    gradients = [p.grad for p in model.parameters()]
    flat = torch.cat([g.flatten() for g in gradients])
    reduce(flat)
    sizes = [g.numel() for g in gradients]
    for g, summed in zip(gradients, flat.split(sizes), strict=True):
        g.copy_(summed.view_as(g))
    state["optimizer"].step()


def train(comm, kept, reduce=ring_all_reduce, epochs=EPOCHS, full_at=None):
    """Train on the same batches whoever is there; return what came of it.

    full_at: at which step to wait until there are four ranks.
    """
    if not kept:
        kept["state"] = begun()
    state = kept["state"]
    state.sync(comm)
    while state["step"] < epochs * SAMPLES // BATCH:
        while state["step"] == full_at and comm.world_size < 4:
            comm.barrier()
        samples = batch_of(state["step"])
        mine = samples[comm.rank :: comm.world_size]
        train_step(state, mine, lambda flat: reduce(comm, flat))
        state["seen"].append(samples.tolist())
        state["step"] += 1
        state.commit()
    return [p.tolist() for p in state["model"].parameters()], state["seen"], os.getpid()


def alone(epochs):
    state = begun()
    for step in range(epochs * SAMPLES // BATCH):
        train_step(state, batch_of(step), lambda flat: None)
    return list(state["model"].parameters())


def as_if_nothing_had_happened(report, epochs=EPOCHS):
    for result in filter(None, report.results):
        parameters, seen, _ = result
        for ours, theirs in zip(parameters, alone(epochs), strict=True):
            assert torch.allclose(torch.tensor(ours).double(), theirs, atol=1e-12)
        of_epochs = torch.tensor(seen).view(epochs, -1)
        assert of_epochs.sort().values.tolist() == [list(range(SAMPLES))] * epochs


def sizes(report):
    return [len(world.processes) for world in report.worlds]


STEP = 6  # Comm calls of a step on four ranks


def test_survivors_go_on_without_the_rank_that_died():
    report = run_elastic(train, 4, faults=Kill(2, 5 * STEP), restarts=0)
    assert sizes(report) == [4, 3]
    assert report.results[2] is None
    as_if_nothing_had_happened(report)


def test_a_new_process_takes_its_place_and_survivors_stay_the_same_processes():
    faults = [Kill(0, 2 * STEP), Kill(3, 5 * STEP)]
    args = [ring_all_reduce, EPOCHS, 10]
    report = run_elastic(train, 4, args=args, faults=faults)
    assert sizes(report)[0] == sizes(report)[-1] == 4
    assert len({pid for *_, pid in report.results}) == 4
    as_if_nothing_had_happened(report)


def pids_of_worlds(comm, kept):
    kept.setdefault("pids", []).append(os.getpid())
    kept["worlds"] = kept.get("worlds", 0) + 1
    for _ in range(100):
        ring_all_reduce(comm, torch.ones(8))
    return kept["worlds"], len(set(kept["pids"]))


def test_a_process_keeps_what_it_kept_from_world_to_world():
    report = run_elastic(pids_of_worlds, 3, faults=Kill(1, 50), restarts=0)
    assert report.results == [(2, 1), None, (2, 1)]


def test_a_rank_that_hangs_is_suspected_and_replaced():
    faults = Hang(1, 5 * STEP)
    report = run_elastic(train, 3, faults=faults, suspect_after_s=2, restarts=0)
    assert sizes(report) == [3, 2]
    assert "did nothing for 2 s while all others waited" in report.worlds[1].why
    as_if_nothing_had_happened(report)


def waits_of_all_kinds(comm, kept, how, folder):
    """Be in one kind of wait while rank 2 dies."""
    if kept:
        comm.barrier()
        return comm.world_size
    kept["been"] = True
    if comm.rank == 2:
        comm.send_object(os.getpid(), 1)
        wait_until(lambda: len(os.listdir(folder)) == 2)
        os.kill(os.getpid(), signal.SIGKILL)
    victim = psutil.Process(comm.recv_object(2)) if comm.rank == 1 else None
    (folder / str(comm.rank)).touch()
    x = torch.ones(100_000)
    if how == "recv of a healthy rank":
        comm.recv(x, 1) if comm.rank == 0 else victim.wait()
        comm.barrier()
    elif how == "torch's all_reduce":
        dist.all_reduce(x)
    elif how == "started":
        comm.start(ring_all_reduce, x).wait()
    elif how == "isend":
        comm.isend(x, 2).wait()
    return "not reached"


@pytest.mark.parametrize(
    "how", ["recv of a healthy rank", "torch's all_reduce", "started", "isend"]
)
def test_whatever_a_survivor_waits_in_it_leaves(how, tmp_path):
    report = run_elastic(waits_of_all_kinds, 3, args=[how, tmp_path], restarts=0)
    assert report.results == [2, 2, None]


def keeps_the_exception(comm, kept):
    """Hear of the change by the exception that says so."""
    if "why" in kept:
        return kept["why"]
    try:
        while True:
            comm.mark("at work")
            comm.next_step()
            if comm.rank == 1 and comm.recorder.step > 50:
                os.kill(os.getpid(), signal.SIGKILL)
    except WorldChanged as error:
        kept["why"] = str(error)
        raise


def test_a_call_in_a_world_that_is_over_says_so():
    report = run_elastic(keeps_the_exception, 2, restarts=0)
    assert "has died or joined" in report.results[0]


def raises(comm, kept):
    comm.barrier()
    if comm.rank == 1:
        raise ValueError("a bug is no fault")
    comm.barrier()


def test_a_bug_is_no_fault_and_ends_the_run():
    with pytest.raises(RankRaised, match="rank 1 raised ValueError: a bug is no fault"):
        run_elastic(raises, 3)


def crosswise(comm, kept):
    comm.recv(torch.ones(1), 1 - comm.rank)


def test_a_deadlock_is_recognised():
    with pytest.raises(Deadlock):
        run_elastic(crosswise, 2)


def test_too_few_ranks_end_the_run():
    faults = [Kill(1, 10), Kill(2, 20)]
    with pytest.raises(RankDied, match="as planned by Kill") as raised:
        run_elastic(train, 3, faults=faults, restarts=0, least=2)
    assert "least=2" in raised.value.__notes__[0]


def sleeps(comm, kept):
    time.sleep(60)


def test_time_runs_out(monkeypatch):
    monkeypatch.setenv("DISTLAB_PATIENCE", "2")
    with pytest.raises(WorldTimeout, match=r"0\.4 s \(timeout_s=0\.2, DISTLAB_PAT"):
        run_elastic(sleeps, 2, timeout_s=0.2)


def test_bad_arguments_are_told_before_anything_starts():
    with pytest.raises(InvalidArgument, match="least=5"):
        run_elastic(train, 4, least=5)
    with pytest.raises(InvalidArgument, match="rank 4"):
        run_elastic(train, 4, faults=Kill(4, 1))


def test_the_trace_has_whole_messages_deaths_and_worlds():
    report = run_elastic(train, 3, faults=Kill(1, 5 * STEP), restarts=0)
    trace = report.trace
    assert all(None not in message for message in trace.messages())
    assert [e.label for e in trace.of(1, "fault")] == ["kill"]
    marks = [e.label for e in trace.of(2, "mark")]
    worlds = [mark for mark in marks if mark.startswith("rank")]
    assert worlds == ["rank 2 of 3", "rank 1 of 2"]
    report.results[0] = None
    assert "killed" in str(report)


@pytest.mark.timeout(600)
@repeats(6, 200)
def test_a_storm_changes_nothing_in_the_result(count):
    """Each process is killed or hangs, again and again, as long as there are steps."""
    report = run_elastic(
        train,
        4,
        args=[ring_all_reduce, count],
        faults=Storm(1, every=30 * STEP),
        restarts=10_000,
        suspect_after_s=1,
        timeout_s=60 + 2 * count,
    )
    assert len(report.worlds) > count / 6
    as_if_nothing_had_happened(report, count)


@repeats(1, 60)
def test_kills_from_outside_at_any_step_change_nothing_in_the_result(count, tmp_path):
    """Also while others join, and several at once."""
    os.mkfifo(tmp_path / "steps")
    steps = os.open(tmp_path / "steps", os.O_RDWR)
    before = what_there_is()

    def noted(comm, flat):
        (tmp_path / "steps").write_bytes(b"s")
        ring_all_reduce(comm, flat)

    def strike(draw):
        for _ in range(4):
            for _ in range(draw.randint(1, 10)):
                os.read(steps, 1)
            there = sorted(what for what in left_since(before) if "proc" in what)
            if there:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(draw.choice(there).split()[1]), signal.SIGKILL)

    for seed in range(count):
        striker = threading.Thread(target=strike, args=[random.Random(seed)])
        striker.start()
        report = run_elastic(train, 4, args=[noted], timeout_s=120)
        os.write(steps, bytes(40))  # those that it waits for still
        striker.join()
        while select.select([steps], [], [], 0)[0]:
            os.read(steps, 100)
        assert len(report.worlds) > 1
        as_if_nothing_had_happened(report)
    os.close(steps)
    assert not left_since(before)
