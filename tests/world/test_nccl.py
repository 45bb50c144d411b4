"""Training on GPUs: the same numbers as on CPUs, whatever runs beside what.

Ranks share a GPU where there are too few. What needs a GPU is skipped where there is
none. One part needs none: on
torch's device "meta", which computes nothing, a tensor that was made on the wrong
device is an error all the same.
"""

import copy
import functools

import pytest
import torch
from exported import notebook, script, under_torchrun
from training_steps import ALL, KINDS, small_gpt, trained

from distlab import run
from distlab.collectives import (
    multi_ring_all_reduce,
    naive_all_reduce,
    pipelined_ring_all_reduce,
    ring_all_reduce,
    tree_all_reduce,
)
from distlab.comm import Comm
from distlab.launch.machine import count_gpus
from distlab.train.batch_norm import SyncBatchNorm
from distlab.train.data import windows
from distlab.train.models import spell
from distlab.train.optimizer_steps import MasterWeights
from distlab.train.parameter_checksums import ParameterWatch
from distlab.train.shards import mean_part

GPUS = count_gpus()


NCCL = {"backend": "nccl", "share_gpu": True}


def ranks(*counts, shared=True):
    """Parametrize over counts of ranks; skip those that have no GPU."""
    return pytest.mark.parametrize(
        "n",
        [
            pytest.param(
                n,
                marks=pytest.mark.skipif(
                    n > GPUS and not (shared and GPUS),
                    reason=f"{n} ranks on NCCL; GPUs here: {GPUS}",
                ),
            )
            for n in counts
        ],
    )


@ranks(1, 2)
@pytest.mark.parametrize("kind", ALL)
def test_training_with_nccl_gives_what_gloo_gives(kind, n):
    expected = run(trained, n, args=(kind, 10), backend="gloo").results
    results = run(trained, n, args=(kind, 10), **NCCL).results
    for ours, theirs in zip(results, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert torch.allclose(one, other, rtol=0, atol=1e-9)


def summed(comm, all_reduce):
    found = []
    for count in (1, 7, 1_000_003):
        tensor = torch.arange(count, device=comm.device) * (comm.rank + 1)
        all_reduce(comm, tensor)
        factor = comm.world_size * (comm.world_size + 1) // 2
        expected = torch.arange(count, device=comm.device) * factor
        found.append(torch.equal(tensor, expected))
    return found


@ranks(1, 2, 4)
@pytest.mark.parametrize(
    "all_reduce",
    [
        multi_ring_all_reduce,
        naive_all_reduce,
        pipelined_ring_all_reduce,
        ring_all_reduce,
        tree_all_reduce,
    ],
)
def test_an_all_reduce_adds_up_on_gpus(all_reduce, n):
    if all_reduce is multi_ring_all_reduce:
        all_reduce = functools.partial(all_reduce, channels=min(2, n))
    assert run(summed, n, args=(all_reduce,), **NCCL).results == [[True] * 3] * n


def raced(comm, rounds):
    """Start collectives on what slow kernels are about to write; count wrong results.

    Tensors are dropped at once, so that their memory is wanted again while the GPU is
    still at work on it.
    """
    wrong = 0
    for number in range(rounds):
        side = torch.cuda.Stream() if number % 2 else torch.cuda.current_stream()
        with torch.cuda.stream(side):
            given = torch.zeros(1 << 20, device=comm.device)
            torch.cuda._sleep(20_000_000)
            given += number
            request = comm.start(mean_part, given)
            del given
            torch.full((1 << 20,), -1.0, device=comm.device)
            part = request.wait()
            torch.cuda._sleep(5_000_000)
            bad = (part != number).sum()
            del part, request
            after = torch.full((1 << 20,), -2.0, device=comm.device)
            comm.start(ring_all_reduce, after)
        side.synchronize()
        wrong += int(bad)
    return wrong


@ranks(1, 2)
def test_what_is_started_waits_for_the_gpu_and_is_waited_for(n):
    assert run(raced, n, args=(20,), **NCCL).results == [0] * n


def some_meet_first(comm):
    """Exchange messages between two of the ranks only, before all have met."""
    found = torch.zeros(5, device=comm.device)
    if comm.rank < 2:
        peer = 1 - comm.rank
        mine = torch.full((5,), float(comm.rank), device=comm.device)
        comm.sendrecv(mine, found, dst=peer, src=peer)
    return found.tolist()


@ranks(3)
def test_two_ranks_may_exchange_messages_before_the_others_do(n):
    results = run(some_meet_first, n, **NCCL).results
    assert results == [[1.0] * 5, [0.0] * 5, [0.0] * 5]


@ranks(2)
def test_ranks_that_share_a_gpu_are_said_to_share_it(n):
    report = run(lambda comm: str(comm.device), n, **NCCL)
    shared = any("share 1 GPU" in note for note in report.notes)
    assert shared == (GPUS == 1)
    assert report.results == [f"cuda:{rank % GPUS}" for rank in range(n)]


def sampled(comm):
    gpt = small_gpt(comm.device, torch.float32)
    return spell(gpt, "def ", 20) == spell(copy.deepcopy(gpt).cpu(), "def ", 20)


@ranks(1)
def test_a_model_on_a_gpu_spells_the_same(n):
    assert run(sampled, n, **NCCL).results == [True]


TRAIN = """
import torch
import torch.distributed as dist


def train(*, steps=3):
    total = torch.ones((), device="cuda" if dist.get_backend() == "nccl" else "cpu")
    dist.all_reduce(total)
    return total.item() * steps
"""


@ranks(1, 2, shared=False)
def test_an_exported_script_takes_a_gpu_for_each_rank(n, tmp_path):
    path = notebook(tmp_path / "lesson.ipynb", {"train": TRAIN})
    done = under_torchrun(script(path), tmp_path, n, "--steps", "5")
    assert done.stdout == f"{n} ranks, nccl\nlast loss: {5 * n:.6f}\n", done.stderr


def on_meta(comm):
    """Take steps of every kind with all tensors on "meta"; return who complained."""
    comm = Comm(0, 1, device=torch.device("meta"), recorder=comm.recorder)
    device, complaints = comm.device, []
    ParameterWatch.note = ParameterWatch.check = lambda *_: (
        None
    )  # it compares values; here are none

    def with_master_weights(comm, gpt):
        optimizer = MasterWeights(gpt.bfloat16().parameters(), torch.optim.AdamW)

        def step(text):
            gpt.loss(text).backward()
            optimizer.step()

        return step, []

    def with_batch_norm(comm, _):
        norm = SyncBatchNorm(comm, 13).to(device)
        return lambda text: norm(text.float().requires_grad_()).sum().backward(), []

    kinds = {**KINDS, "master": with_master_weights, "batch norm": with_batch_norm}
    text = torch.zeros(99, dtype=torch.int64, device=device)
    for name, kind in kinds.items():
        try:
            step, _ = kind(comm, small_gpt(device))
            for _ in range(2):
                step(windows(text, torch.zeros(3, device=device).long(), 12))
        except (RuntimeError, NotImplementedError) as error:
            complaints.append(f"{name}: {error}")
    return complaints


def test_whatever_training_makes_is_on_the_models_device():
    assert run(on_meta, 1).results == [[]]
