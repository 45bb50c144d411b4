"""Checkpoints of sharded training: what comes back, and what is refused."""

import re
import shutil

import pytest
import torch
from torch import nn

from distlab import CheckpointError, Kill, RankDied, run
from distlab.train.checkpoint import files, load_sharded, save_full, save_sharded
from distlab.train.fsdp import FullySharded
from distlab.train.models import GPT, Block
from distlab.train.optimizer_steps import MasterWeights
from distlab.train.zero import ZeroOptimizer

STEPS = 3

SAVE = "step-00000001"


SIZES = [1, 2, 3, 4]


def adam(parameters):
    return torch.optim.Adam(parameters, 1e-3)


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.1, momentum=0.9)


def masters(parameters):
    return MasterWeights(parameters, adam)


OPTIMIZERS = {"adam": adam, "sgd": sgd, "masters": masters}


class Model(nn.Module):
    """A GPT with a weight that is tied, one that is frozen, and a buffer."""

    def __init__(self, width=16, dtype=torch.float64):
        super().__init__()
        self.gpt = GPT(width=width, layers=2, heads=2, length=12)
        self.gpt.head.weight = self.gpt.token_embedding.weight
        self.gpt.position_embedding.requires_grad_(False)
        self.register_buffer("seen", torch.zeros(()))
        self.to(dtype)

    def forward(self, text):
        self.seen += 1
        return self.gpt.loss(text)


def model(seed=0, **options):
    torch.manual_seed(seed)
    return Model(**options)


def text(step, rank=0, n=1):
    draw = torch.Generator().manual_seed(step)
    return torch.randint(0, 256, (12, 13), generator=draw)[rank::n]


def begun(comm, kind, make=adam, **options):
    """Return a model, what is trained, and the optimizer of it, if it needs one."""
    plain = model(**options)
    if kind == "zero":
        limits = {"first_bytes": 4_000, "group_bytes": 30_000}
        return plain, ZeroOptimizer(comm, plain, make, stage=2, **limits), None
    trained = FullySharded(comm, plain, Block)
    return plain, trained, make(trained.shards)


def train(comm, steps, plain, trained, optimizer):
    for step in steps:
        plain(text(step, comm.rank, comm.world_size)).backward()
        if optimizer is None:
            trained.step()
        else:
            optimizer.step()
            optimizer.zero_grad()


def train_alone(steps, plain, optimizer):
    for step in steps:
        optimizer.zero_grad()
        plain(text(step)).backward()
        optimizer.step()
    return plain.state_dict()


def saves(comm, save, path, kind, name, options):
    everything = begun(comm, kind, OPTIMIZERS[name], **options)
    train(comm, range(STEPS), *everything)
    save(comm, path, *everything[1:])


def goes_on(comm, path, kind, name, full, steps=STEPS):
    """Load into a model of another seed, train on, and save all of it."""
    everything = begun(comm, kind, OPTIMIZERS[name], seed=1)
    load_sharded(comm, path, *everything[1:], reshard=True)
    train(comm, range(STEPS, STEPS + steps), *everything)
    save_full(comm, full, *everything[1:])


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        assert torch.allclose(ours[name], values, rtol=0, atol=1e-12), name


@pytest.mark.parametrize("kind", ["zero", "fully sharded"])
@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_any_number_of_ranks_goes_on_where_four_have_saved(
    worlds, tmp_path, kind, name
):
    plain = model()
    expected = train_alone(
        range(2 * STEPS), plain, OPTIMIZERS[name](plain.parameters())
    )
    worlds[4].run(saves, save_sharded, tmp_path, kind, name, {})
    for n in (4, 2, 3, 1):
        full = tmp_path / "full.pt"
        worlds[n].run(goes_on, tmp_path, kind, name, full)
        same(torch.load(full, weights_only=True)["model"], expected)


@pytest.mark.parametrize("kind", ["zero", "fully sharded"])
@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_a_full_state_goes_on_in_one_process(worlds, tmp_path, kind, name):
    file = tmp_path / "full.pt"
    worlds[4].run(saves, save_full, file, kind, name, {})
    saved = torch.load(file, weights_only=True)
    plain = model(seed=1)
    optimizer = OPTIMIZERS[name](plain.parameters())
    plain.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    assert plain.seen == STEPS
    found = train_alone(range(STEPS, 2 * STEPS), plain, optimizer)
    alone = model()
    whole = train_alone(range(2 * STEPS), alone, OPTIMIZERS[name](alone.parameters()))
    same(found, whole)


@pytest.mark.parametrize("kind", ["zero", "fully sharded"])
def test_master_weights_come_back_with_all_their_bits(worlds, tmp_path, kind):
    def both(comm, kind, path):
        dtype = torch.bfloat16
        everything = begun(comm, kind, masters, dtype=dtype)
        train(comm, range(STEPS), *everything)
        save_sharded(comm, path, *everything[1:])
        train(comm, range(STEPS, 2 * STEPS), *everything)
        save_full(comm, path / "expected.pt", *everything[1:])
        again = begun(comm, kind, masters, dtype=dtype, seed=1)
        load_sharded(comm, path, *again[1:])
        train(comm, range(STEPS, 2 * STEPS), *again)
        save_full(comm, path / "found.pt", *again[1:])

    worlds[3].run(both, kind, tmp_path)
    expected = torch.load(tmp_path / "expected.pt", weights_only=True)
    found = torch.load(tmp_path / "found.pt", weights_only=True)
    pairs = zip(
        found["optimizer"]["masters"], expected["optimizer"]["masters"], strict=True
    )
    assert all(torch.equal(ours, theirs) for ours, theirs in pairs)
    optimizer = masters(model(seed=1, dtype=torch.bfloat16).parameters())
    optimizer.load_state_dict(expected["optimizer"])
    rounded = [p.detach() for p in optimizer.parameters]
    names = [n for n, p in model().named_parameters() if p.requires_grad]
    for name, values in zip(names, rounded, strict=True):
        assert torch.equal(expected["model"][name], values)


def saves_twice(comm, path, kind):
    everything = begun(comm, kind)
    save_sharded(comm, path, *everything[1:])
    train(comm, range(STEPS), *everything)
    begins = comm.recorder.step
    save_sharded(comm, path, *everything[1:])
    return begins, comm.recorder.step


def loaded(comm, path, kind):
    everything = begun(comm, kind, seed=1)
    load_sharded(comm, path, *everything[1:])
    save_full(comm, path / "full.pt", *everything[1:])


def test_a_save_that_was_cut_off_leaves_the_one_before(worlds, tmp_path):
    n, kind = 3, "fully sharded"
    begins, ends = run(saves_twice, n, args=(tmp_path / "whole", kind)).results[1]
    (left,) = (tmp_path / "whole").glob("step-*")
    assert left.name == "step-00000002"
    assert ends == begins + 6  # asks and is told: a folder, checksums, that it counts
    for at, can_be in ((1, {0}), (3, {0}), (5, {0, STEPS})):
        folder = tmp_path / f"cut-{at}"
        kill = Kill(rank=1, step=begins + at)
        with pytest.raises(RankDied, match="rank 1"):
            run(saves_twice, n, args=(folder, kind), faults=kill)
        worlds[n].run(loaded, folder, kind)
        found = torch.load(folder / "full.pt", weights_only=True)["model"]
        steps = int(found["seen"])
        assert steps in can_be
        plain = model()
        same(found, train_alone(range(steps), plain, adam(plain.parameters())))


def refused(comm, path, make, options):
    """Return what the error says, and whether nothing was changed by it."""
    _, trained, optimizer = begun(comm, "fully sharded", make, **options)
    before = [shard.detach().clone() for shard in trained.shards]
    try:
        load_sharded(comm, path, trained, optimizer)
    except CheckpointError as error:
        pairs = zip(before, trained.shards, strict=True)
        return str(error), all(torch.equal(a, b) for a, b in pairs)


def truncated(file):
    with file.open("rb+") as data:
        data.truncate(file.stat().st_size // 2)


def changed(file):
    """Flip one bit of a number in the middle."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def removed(file):
    file.unlink()


@pytest.fixture(scope="module")
def sound(worlds, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint")
    worlds[3].run(saves, save_sharded, folder, "fully sharded", "adam", {})
    return folder


@pytest.mark.parametrize("name, harm, words", [
    (SAVE + "/rank-2.pt", truncated, "on rank 2: .*rank-2.pt is torn"),
    (SAVE + "/rank-1.pt", changed, "on rank 1: .*rank-1.pt is torn"),
    (SAVE + "/rank-0.pt", removed, "rank-0.pt is missing"),
    (SAVE + "/manifest.json", truncated, "manifest.json is torn"),
    (SAVE + "/manifest.json", removed, "there is no checkpoint in"),
])  # fmt: skip
def test_a_harmed_file_is_named_on_all_ranks_and_changes_nothing(
    worlds, sound, tmp_path, name, harm, words
):
    folder = tmp_path / "copy"
    shutil.copytree(sound, folder)
    harm(folder / name)
    results = worlds[3].run(refused, folder, adam, {}).results
    assert results == [results[0]] * 3
    assert re.search(words, results[0][0]) and results[0][1]


@pytest.mark.parametrize("n, make, options, words", [
    (3, adam, {"width": 24}, r"another model: .*gpt\.blocks\.0\.before_attention"),
    (3, sgd, {}, "saved with"),
    (3, masters, {}, "saved with"),
    (2, adam, {}, "saved by 3 ranks, and here are 2. Pass reshard=True"),
])  # fmt: skip
def test_what_does_not_fit_is_told_on_all_ranks(worlds, sound, n, make, options, words):
    results = worlds[n].run(refused, sound, make, options).results
    assert results == [results[0]] * n
    assert re.search(words, results[0][0]) and results[0][1]


def test_what_is_not_plain_data_is_not_loaded(tmp_path):
    """A pickle may run anything, so that a checkpoint from elsewhere would too."""
    file = tmp_path / "rank-1.pt"
    torch.save({"flat": nn.Linear(1, 1)}, file)
    sums = {file.name: [file.stat().st_size, files._checksum(file)]}
    with pytest.raises(CheckpointError, match="more than tensors"):
        files.read_part(tmp_path, file.name, {"files": sums})


def test_a_rank_that_cannot_write_is_an_error_on_all(worlds, tmp_path):
    def blocked(comm, path):
        _, trained, optimizer = begun(comm, "fully sharded")
        if comm.rank == 0:
            (path / SAVE).write_text("in the way")
        comm.barrier()
        try:
            save_sharded(comm, path, trained, optimizer)
        except CheckpointError as error:
            return str(error)

    results = worlds[3].run(blocked, tmp_path).results
    assert results[0].startswith("on rank 0: ") and results == [results[0]] * 3
