"""Checkpoints of a run: whole or not at all, whoever dies, and bit for bit."""

import contextlib
import fcntl
import itertools
import json
import math
import os
import random
import resource
import signal
import threading
import time

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from soaks import nightly
from torch import nn
from torch.utils.data import DataLoader

from distlab import (
    InvalidArgument,
    Kill,
    RankDied,
    RankRaised,
    run,
    run_elastic,
)
from distlab.collectives import ring_all_reduce
from distlab.errors import CheckpointError
from distlab.train.checkpoint import Checkpoints, Preemption, RandomState
from distlab.train.position import Samples

SAMPLES, STEPS = 40, 10
SIZES = [1, 2, 3]


class Noisy(torch.utils.data.Dataset):
    """Samples that are augmented in the loader's workers."""

    def __getitem__(self, key):
        index, seed = key
        draw = torch.Generator().manual_seed(seed)
        return torch.full((6,), index / SAMPLES) + torch.randn(6, generator=draw)


def train(comm, folder, stop=STEPS, every=3):
    """Train with everything that has a state; return parameters and batches."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4)
    samples, random_state = Samples(SAMPLES, 12, seed=3), RandomState()
    state = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    state |= {"samples": samples, "seen": []}
    own, parameters = {"random": random_state}, list(model.parameters())
    for seed in (torch.manual_seed, random.seed, np.random.seed):
        seed(comm.rank)
    with Checkpoints(comm, folder, background=True) as checkpoints:
        step = checkpoints.load(state, own) or 0
        while step < stop:
            rest = samples.rest_of_epoch(comm.rank, comm.world_size)
            how = {"num_workers": 1, "generator": torch.Generator()}
            for x in DataLoader(Noisy(), batch_sampler=list(rest), **how):
                model.zero_grad()
                noise = random.random() + np.random.rand()
                (model(x) * noise).square().sum().backward()
                for p in parameters:
                    ring_all_reduce(comm, p.grad)
                optimizer.step()
                scheduler.step()
                state["seen"].append(samples.batch().tolist())
                samples.advance()
                step += 1
                if step % every == 0:
                    checkpoints.save(step, state, own)
                if step == stop:
                    break
    return [p.detach() for p in parameters], state["seen"]


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path):
    whole = run(train, 4, args=[tmp_path / "whole"]).results
    for step in (100, 70):
        with pytest.raises(RankDied):
            run(train, 4, args=[tmp_path / "killed"], faults=Kill(2, step))
    resumed = run(train, 4, args=[tmp_path / "killed"]).results
    for (ours, seen), (theirs, all_seen) in zip(resumed, whole, strict=True):
        assert seen == all_seen
        assert all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize("ranks", [2, nightly(3)])
def test_on_another_number_of_ranks_each_sample_comes_once(ranks, tmp_path):
    run(train, 4, args=[tmp_path, 6])
    _, seen = run(train, ranks, args=[tmp_path, 8]).results[0]
    for epoch in (seen[:4], seen[4:]):
        assert sorted(itertools.chain(*epoch)) == list(range(SAMPLES))


def save_and_die(comm, folder, victim, at):
    """Save again and again; somebody is killed once there is a file `at`."""
    checkpoints, x = Checkpoints(comm, folder, background=True), torch.zeros(200_000)

    def kills():
        while not any(folder.glob(at)):
            time.sleep(0.0005)
        pid = checkpoints._writer._pid if victim >= 2 else os.getpid()
        os.kill(pid, signal.SIGKILL)

    if comm.rank == victim % 2:
        threading.Thread(target=kills, daemon=True).start()
    for step in range(1, 9):
        x += 1
        checkpoints.save(step, {"x": x, "list": [step]}, {"mine": x + comm.rank})
    checkpoints.wait()


def what_is_loaded(comm, folder):
    own = {"mine": None}
    shared = {"x": torch.zeros(200_000), "list": None}
    checkpoints = Checkpoints(comm, folder)
    step = checkpoints.load(shared, own)
    assert shared["list"] == [step] and shared["x"].eq(step).all()
    assert own["mine"].eq(step + comm.rank).all()
    newest = max(path.parent.name for path in folder.glob("step-*/manifest.json"))
    assert int(newest.removeprefix("step-")) == step and not checkpoints.skipped
    checkpoints.save(100, shared, own)
    return sorted(path.name for path in folder.iterdir()), step


MANY = [nightly(40)]
MANY += [pytest.param(2000, marks=pytest.mark.soak)]
PARTS = ["", "shared.pt", "rank-1.pt", "rank-1.vote", "manifest.json"]


@pytest.mark.parametrize("count", [8, *MANY])
@pytest.mark.timeout(7200)
def test_a_kill_at_any_point_of_a_save_leaves_the_newest_complete_one(
    worlds, count, tmp_path
):
    """Once each of its files is there: of rank 0, of rank 1, of the writer of each."""
    for trial in range(count):
        folder, least = tmp_path / str(trial), 2 + trial % 3
        at = f"step-*[{least}-8]/{PARTS[trial % 5]}"
        try:
            run(save_and_die, 2, args=[folder, trial % 4, at])
        except RankDied:
            pass
        except RankRaised as error:
            assert "the writer process was killed (SIGKILL)" in str(error)
        names, step = worlds[2].run(what_is_loaded, folder).results[0]
        assert least - 1 <= step
        assert names == ["lock", f"step-{step:08d}", "step-00000100"]


def kill_a_writer(comm, folder, victim):
    checkpoints, x = Checkpoints(comm, folder, background=True), torch.zeros(10**6)
    checkpoints.save(1, {"x": x}, {"mine": x})
    checkpoints.save(2, {"x": x}, {"mine": x})
    if comm.rank == victim:
        os.kill(checkpoints._writer._pid, signal.SIGKILL)
    try:
        checkpoints.wait()
    except CheckpointError as error:
        said = str(error)
    checkpoints.save(3, {"x": x}, {"mine": x})
    checkpoints.close()
    return said, sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_writer_that_is_killed_is_told_on_all_ranks_and_the_next_save_counts(
    victim, tmp_path
):
    said = f"on rank {victim}: the writer process was killed (SIGKILL)."
    names = ["lock", "step-00000001", "step-00000003"]
    results = run(kill_a_writer, 3, args=[tmp_path, victim]).results
    assert results == [(said, names)] * 3


def saves_in_elastic_worlds(comm, kept, folder):
    state = {"x": torch.zeros(10**6), "step": 0}
    with Checkpoints(comm, folder, background=True) as checkpoints:
        checkpoints.load(state)
        while state["step"] < 12:
            comm.barrier()
            state["x"] += 1
            state["step"] += 1
            checkpoints.save(state["step"], state, {"mine": comm.rank})
    return state["x"].mean().item()


def test_a_writer_of_a_world_that_is_over_stops_and_the_next_world_saves(tmp_path):
    """It would wait for the vote of the dead rank, and keep the folder."""
    faults = [Kill(1, 60), Kill(2, 90)]
    report = run_elastic(saves_in_elastic_worlds, 3, args=[tmp_path], faults=faults)
    assert len(report.worlds) > 2
    assert set(report.results) - {None} == {12.0}


def three_saves(comm, folder, **how):
    with Checkpoints(comm, folder, **how) as checkpoints:
        for step in (1, 2, 3):
            model = nn.Linear(2, 2)
            nn.init.constant_(model.weight, step)
            checkpoints.save(step, {"model": model}, {"rank": comm.rank})


def load_model(comm, folder, model=None):
    model = model or nn.Linear(2, 2)
    before = model.weight.detach().clone()
    own = {"rank": None}
    checkpoints = Checkpoints(comm, folder)
    try:
        step = checkpoints.load({"model": model}, own)
    except CheckpointError:
        assert model.weight.equal(before)
        raise
    value = model.weight[0, 0].item()
    return step, value, own["rank"], checkpoints.skipped, checkpoints.left_out


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize(
    "name, damage, said",
    [
        ("manifest.json", cut, "manifest.json is torn"),
        ("shared.pt", flip, "shared.pt is torn or was changed"),
        ("rank-1.pt", flip, "on rank 1: .*rank-1.pt is torn or was changed"),
        ("rank-0.pt", cut, "rank-0.pt is torn or was changed"),
        ("shared.pt", os.unlink, "shared.pt is missing"),
    ],
)
def test_a_damaged_save_is_named_and_the_older_one_is_loaded(
    worlds, name, damage, said, tmp_path
):
    worlds[2].run(three_saves, tmp_path)
    damage(tmp_path / "step-00000003" / name)
    for rank, loaded in enumerate(worlds[2].run(load_model, tmp_path).results):
        step, value, own, skipped, _ = loaded
        assert (step, value, own) == (2, 2.0, rank)
        (described,) = skipped
        assert all(words in described for words in said.split(".*"))


def test_another_model_is_named_before_anything_has_changed(worlds, tmp_path):
    worlds[2].run(three_saves, tmp_path)
    said = r"model\.weight is float32\[2, 2\] in it, and float32\[3, 2\] here"
    with pytest.raises(RankRaised, match=said):
        run(load_model, 2, args=[tmp_path, nn.Linear(2, 3)])


def every_flip(comm, folder):
    """Flip each bit of the newest manifest; return what was loaded."""
    manifest, found = folder / "step-00000003" / "manifest.json", set()
    whole = manifest.read_bytes()
    for place in range(0, len(whole), 3):
        harmed = bytearray(whole)
        harmed[place] ^= 1 << place % 8
        manifest.write_bytes(harmed)
        same = json.loads(whole) == readable(harmed)  # as 1e5 and 1E5
        saves = Checkpoints(comm, folder, read_only=True)
        found.add((same, saves.load({"model": nn.Linear(2, 2)})))
    return found


def readable(content):
    with contextlib.suppress(ValueError):
        return json.loads(content)


def test_no_flipped_bit_of_a_manifest_is_believed(worlds, tmp_path):
    worlds[1].run(three_saves, tmp_path)
    (found,) = worlds[1].run(every_flip, tmp_path).results
    assert found <= {(False, 2), (True, 3)}


def saves_adam(comm, folder):
    model = nn.Linear(2, 2)
    adam = torch.optim.Adam(model.parameters())
    Checkpoints(comm, folder).save(1, {"model": model, "optimizer": adam})


def loads_sgd(comm, folder):
    model = nn.Linear(2, 2)
    before = model.weight.tolist()
    state = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1)}
    try:
        Checkpoints(comm, folder).load(state)
    except CheckpointError as error:
        return str(error), model.weight.tolist() == before


def test_another_optimizer_is_named_before_anything_has_changed(worlds, tmp_path):
    worlds[1].run(saves_adam, tmp_path)
    ((said, unchanged),) = worlds[1].run(loads_sgd, tmp_path).results
    assert "optimizer is Adam[2] in it, and SGD[2] here" in said and unchanged


def saves_a_number_of_numpy(comm, folder):
    checkpoints, state = Checkpoints(comm, folder, background=True), {"loss": 1.0}
    checkpoints.save(1, state)
    with pytest.raises(CheckpointError, match=r"more than tensors and plain data, num"):
        checkpoints.save(2, {"loss": np.float64(2.0)})
        checkpoints.wait()
    return checkpoints.load(state)


def test_what_could_not_be_loaded_is_refused_when_it_is_saved(worlds, tmp_path):
    assert worlds[2].run(saves_a_number_of_numpy, tmp_path).results == [1, 1]


def loads_more(comm, folder):
    checkpoints = Checkpoints(comm, folder, read_only=True)
    with pytest.raises(InvalidArgument, match="read_only=True"):
        checkpoints.save(4, {})
    found = {"model": nn.Linear(2, 2), "schedule": 7}
    return checkpoints.load(found, {"rank": 0, "random": 0}), checkpoints.left_out


def test_what_a_save_has_not_is_named_also_beside_a_job_that_saves(worlds, tmp_path):
    worlds[2].run(three_saves, tmp_path)
    with (tmp_path / "lock").open("w") as other_job:
        fcntl.flock(other_job, fcntl.LOCK_EX)
        results = worlds[2].run(loads_more, tmp_path).results
    assert results == [(3, "schedule, random: not in the save.")] * 2


def test_an_empty_folder_has_no_checkpoint_and_another_world_size_says_what_is_left_out(
    worlds, tmp_path
):
    assert worlds[2].run(load_model, tmp_path).results[0][0] is None
    worlds[2].run(three_saves, tmp_path)
    step, value, own, _, left_out = worlds[3].run(load_model, tmp_path).results[2]
    assert (step, value, own) == (3, 3.0, None)
    assert left_out == "rank: of each of 2 ranks, and here are 3."


def without_room(comm, folder, background):
    checkpoints = Checkpoints(comm, folder, background=background)
    checkpoints.save(1, {"x": torch.ones(10)})
    checkpoints.wait()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
    try:
        checkpoints.save(2, {"x": torch.ones(100_000)}, {"mine": comm.rank})
        checkpoints.wait()
    except CheckpointError as error:
        said = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    x = {"x": None}
    step = checkpoints.load(x)
    checkpoints.save(3, x)
    return said, step, sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("background", [False, True])
def test_a_full_disk_is_told_on_all_ranks_and_the_older_save_stays(
    background, tmp_path
):
    for said, step, names in run(without_room, 2, args=[tmp_path, background]).results:
        assert said.startswith("on rank 0: ") and "File too large" in said
        assert step == 1
        assert names == ["lock", "step-00000001", "step-00000003"]


def test_a_folder_that_cannot_be_used_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(RankRaised, match=r"Not a directory|File exists"):
        run(three_saves, 2, args=[tmp_path / "file"])


def test_two_jobs_do_not_save_in_one_folder(tmp_path):
    with (tmp_path / "lock").open("w") as other_job:
        fcntl.flock(other_job, fcntl.LOCK_EX)
        with pytest.raises(RankRaised, match="another job saves its checkpoints in"):
            run(three_saves, 2, args=[tmp_path])
    run(three_saves, 2, args=[tmp_path])


def rotate(comm, folder, clock, **how):
    times = iter(clock)
    time.time = lambda: next(times)
    with Checkpoints(comm, folder, **how) as checkpoints:
        for step, metric in enumerate([5, 1, math.nan, 2, 3, 6], 1):
            checkpoints.save(step, {"x": step}, metric=metric)
    return sorted(int(path.name[5:]) for path in folder.glob("step-*"))


@pytest.mark.parametrize(
    "how, kept",
    [
        ({"keep_last": 1}, [6]),
        ({"keep_last": 3}, [4, 5, 6]),
        ({"keep_last": 1, "keep_best": 2}, [2, 4, 6]),
        ({"keep_last": 1, "keep_every_s": 10}, [1, 4, 6]),
    ],
)
def test_rotation_keeps_what_its_rules_say(how, kept, tmp_path):
    report = run(lambda comm: rotate(comm, tmp_path, [0, 3, 9, 11, 12, 19], **how), 1)
    assert report.results == [kept]


def test_a_clock_that_jumps_does_not_decide_which_save_is_the_newest(tmp_path):
    clock = [900, 800, 700, 5, 4, 3]
    report = run(lambda comm: rotate(comm, tmp_path, clock, keep_last=2), 1)
    assert report.results == [[5, 6]]


def all_voted(comm, folder):
    """Be killed between the phases: rank 0 has all votes, and has not committed."""
    checkpoints = Checkpoints(comm, folder, background=True)
    checkpoints.save(1, {"x": 1})
    checkpoints.wait()
    if comm.rank == 0:
        import distlab.train.checkpoint.checkpoints as module

        module.commit = lambda *_: time.sleep(60)
    checkpoints.save(2, {"x": 2})
    votes = [folder / "step-00000002" / f"rank-{rank}.vote" for rank in range(2)]
    while not all(vote.exists() for vote in votes):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_coordinator_killed_between_the_phases_leaves_the_old_save_valid(tmp_path):
    with pytest.raises(RankDied):
        run(all_voted, 2, args=[tmp_path])
    assert (tmp_path / "step-00000002" / "shared.pt").exists()

    def load(comm):
        x = {"x": None}
        return Checkpoints(comm, tmp_path).load(x), x["x"]

    assert run(load, 2).results == [(1, 1)] * 2
    assert not (tmp_path / "step-00000002").exists()


def until_asked(comm, folder):
    with Preemption() as preemption, Checkpoints(comm, folder) as checkpoints:
        for step in range(1, 1000):
            if comm.rank == 1 and step == 5:
                os.kill(os.getpid(), signal.SIGTERM)
            if preemption.asked(comm):
                checkpoints.save(step, {"step": step})
                break
    return step, signal.getsignal(signal.SIGTERM) == preemption._before


def test_a_rank_that_gets_sigterm_has_all_save_the_same_step_and_leave(tmp_path):
    assert run(until_asked, 3, args=[tmp_path]).results == [(5, True)] * 3
    assert json.loads((tmp_path / "step-00000005" / "manifest.json").read_text())


def stuck_after_sigterm(comm):
    with Preemption(deadline_s=0.2):
        if comm.rank == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            comm.recv(torch.ones(1), 1)
        time.sleep(60)


def test_a_rank_that_gets_sigterm_is_gone_after_the_deadline_wherever_it_is():
    with pytest.raises(RankDied, match="rank 0 was killed by SIGALRM"):
        run(stuck_after_sigterm, 2)


def beside_dcp(comm, folder):
    torch.manual_seed(0)
    model = nn.Linear(5, 5)
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder / "torch")
    Checkpoints(comm, folder / "ours").save(1, {"model": model})
    ours, theirs = nn.Linear(5, 5), {"model": nn.Linear(5, 5).state_dict()}
    Checkpoints(comm, folder / "ours").load({"model": ours})
    dcp.load(theirs, checkpoint_id=folder / "torch")
    return all(map(torch.equal, ours.state_dict().values(), theirs["model"].values()))


def test_the_same_state_comes_back_as_from_torchs_own_checkpoint(worlds, tmp_path):
    assert worlds[2].run(beside_dcp, tmp_path).results == [True, True]
