"""A lesson's exported script trains under torchrun as one process does, and `run`."""

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from exported import in_the_notebook, notebook, script, under_torchrun
from soaks import nightly
from torch.utils.flop_counter import FlopCounterMode

from distlab import InvalidArgument, run
from distlab.commands.exporting.sources import exported_name
from distlab.train.data import library_text
from distlab.train.job import Job
from distlab.train.models import GPT
from distlab.train.pipeline_job import schedule_named

LESSONS = {
    path.stem[:2]: path
    for path in sorted((Path(__file__).parents[2] / "lessons").glob("*.ipynb"))
    if exported_name(path)
}
SIZES = {"layers": 4, "width": 32, "heads": 2, "sequence": 32, "batch": 16}
RATES = {"lr": 0.005, "warmup": 4, "clip": 0.5, "seed": 3}
SMALL_JOB = {**SIZES, **RATES, "steps": 12, "every": 4, "peak_flops": 1e9}
LINE = re.compile(
    r"step +(\d+)  loss (\S+)  lr (\S+)  grad norm (\S+)  (\S+) tokens/s  MFU (\S+)%"
)
soak = pytest.mark.soak


def alone(job):
    """Return (loss, rate, norm) of each step of the job, trained in one process."""
    torch.set_num_threads(1)  # on a busy machine small sums would wait for cores
    torch.manual_seed(job.seed)
    gpt = GPT(width=job.width, layers=job.layers, heads=job.heads, length=job.sequence)
    optimizer = torch.optim.AdamW(gpt.parameters(), job.lr, betas=(0.9, 0.95))
    warm_up = torch.optim.lr_scheduler.LinearLR(
        optimizer, 1 / job.warmup, total_iters=job.warmup - 1
    )
    down = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, max(1, job.steps - job.warmup), job.lr / 10
    )
    rates = torch.optim.lr_scheduler.SequentialLR(
        optimizer, [warm_up, down], [job.warmup - 1]
    )
    text, draw, seen = library_text(), torch.Generator().manual_seed(job.seed), []
    windows = text.unfold(0, job.sequence + 1, job.sequence).long()
    for chosen in torch.randperm(len(windows), generator=draw).split(job.batch):
        loss = gpt.loss(windows[chosen])
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(gpt.parameters(), job.clip)
        seen.append((loss.item(), rates.get_last_lr()[0], norm.item()))
        optimizer.step()
        rates.step()
        if len(seen) == job.steps:
            return seen


RUNS = [
    nightly("11", 2, ["--accumulate", "2"]),
    nightly("12", 2, ["--bf16"]),
    ("14", 4, ["--schedule", "zb-h1", "--microbatches", "8"]),
    pytest.param("17", 2, [], marks=soak),
    pytest.param("11", 4, [], marks=soak),
    pytest.param("12", 4, [], marks=soak),
    pytest.param("14", 2, ["--schedule", "interleaved", "--bf16"], marks=soak),
    # It takes half a minute to compile, from an empty cache.
    *(pytest.param(each, 2, ["--compile"], marks=soak) for each in LESSONS),
]


@pytest.mark.parametrize("lesson, ranks, options", RUNS)
def test_a_lessons_script_trains_as_one_process_does(lesson, ranks, options, tmp_path):
    job = Job(**SMALL_JOB)
    for name, value in SMALL_JOB.items():
        options = [*options, f"--{name.replace('_', '-')}", str(value)]
    done = under_torchrun(script(LESSONS[lesson]), tmp_path, ranks, *options)
    assert done.returncode == 0, done.stderr
    first, *lines, last = done.stdout.splitlines()
    rows = [LINE.fullmatch(line).groups() for line in lines]
    assert first == f"{ranks} ranks, gloo" and [r[0] for r in rows] == ["4", "8", "12"]
    assert abs(float(last.removeprefix("last loss: ")) - float(rows[-1][1])) < 1e-4
    steps, near = alone(job), 0.02 if "--bf16" in options else 2e-4
    for step, loss, rate, norm, tokens, mfu in rows:
        right = steps[int(step) - 1]
        assert (float(loss), float(norm)) == pytest.approx(right[::2], rel=near)
        assert float(rate) == pytest.approx(right[1], rel=0.002)
        used = float(tokens.replace(",", "")) * job.flops_per_token / (ranks * 1e9)
        assert float(mfu) == pytest.approx(100 * used, abs=0.06)  # one decimal
    assert float(rows[0][1]) > float(rows[-1][1]), "the loss goes down"


@pytest.mark.parametrize("lesson", ["11", nightly("12"), nightly("17")])
def test_a_job_that_goes_on_with_other_ranks_trains_as_one_without_a_stop(
    lesson, tmp_path
):
    train, folder = in_the_notebook(LESSONS[lesson]), str(tmp_path / "saved")
    rising = {**SMALL_JOB, "warmup": 12}  # so that a rate is of its step only
    for ranks, steps in ((2, 6), (4, 12)):
        job = Job(**{**rising, "steps": steps})
        train_on = lambda comm, job=job: train(job, checkpoint=folder)  # noqa: E731
        losses = run(train_on, ranks, timeout_s=120, quiet=True).results
    assert losses == pytest.approx(4 * [alone(job)[-1][0]], abs=1e-4)


@pytest.mark.nightly
def test_a_worker_of_lesson_17_is_killed_and_torchrun_starts_all_again(tmp_path):
    """kill -9 after the second save; the end is that of a run without a kill."""
    job = Job(**{**SMALL_JOB, "steps": 40})
    (tmp_path / "train.py").write_text(script(LESSONS["17"]))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", "--max-restarts=1", "train.py", "--save-every=4"]
    for name, value in {**SMALL_JOB, "steps": 40}.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    # https://github.com/pytorch/pytorch/issues/135712
    own_store = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
    saved, victim = tmp_path / "gpt.pt", None
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=os.environ | own_store,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as agent:
        while victim is None and agent.poll() is None:
            if saved.exists() and torch.load(saved)["step"] >= 8:
                victim = psutil.Process(agent.pid).children()[1]
                victim.kill()
            time.sleep(0.01)
        said, _ = agent.communicate(timeout=120)
    assert agent.returncode == 0 and said.count("2 ranks, gloo") == 2, said
    last = float(said.splitlines()[-1].removeprefix("last loss: "))
    assert last == pytest.approx(alone(job)[-1][0], abs=1e-4)
    assert torch.load(saved)["step"] == 40 and len([*tmp_path.glob("gpt*")]) == 1


def test_a_pipeline_with_several_chunks_trains_as_one_process_does():
    train, job = in_the_notebook(LESSONS["14"]), Job(**SMALL_JOB)
    options = {"schedule": "interleaved", "microbatches": 4}
    losses = run(lambda comm: train(job, **options), 2, quiet=True).results
    assert losses == pytest.approx(2 * [alone(job)[-1][0]], abs=1e-4)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_script_waits_for_the_device_only_in_its_log(lesson):
    tree = ast.parse(script(LESSONS[lesson]))
    waits = [
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr in ("item", "tolist", "cpu")
    ]
    assert waits == ["after"]
    modules = [
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    ]
    assert "torch" in modules and not [m for m in modules if m.startswith("distlab")]


def test_the_operations_of_a_token_are_those_that_torch_counts():
    job = Job(**SMALL_JOB)
    gpt = GPT(width=32, layers=4, heads=2, length=32)
    math = torch.nn.attention.SDPBackend.MATH
    with torch.nn.attention.sdpa_kernel(math), FlopCounterMode(display=False) as count:
        gpt.loss(torch.zeros(3, 33, dtype=torch.int64)).backward()
    assert count.get_total_flops() == 3 * 32 * job.flops_per_token


def test_ranks_share_each_batch_and_an_epoch_has_every_window_once():
    job = Job(sequence=2**16, batch=4, steps=20)
    windows = (len(library_text()) - 1) // job.sequence

    def begins(comm):
        both = [[*job.batches(comm.rank, 2)], [*job.batches(comm.rank, 2, done=3)]]
        assert [step for step, _ in both[0]] == [*range(1, 21)]
        for (_, text), (_, again) in zip(both[0][3:], both[1], strict=True):
            assert torch.equal(text, again)
        return [str(row[:500].tolist()) for _, text in both[0] for row in text]

    one, other = run(begins, 2, quiet=True).results
    epoch = windows // 4 * 2
    assert len({*one[:epoch], *other[:epoch]}) == 2 * epoch
    assert one[:epoch] != one[epoch : 2 * epoch]


def test_what_does_not_fit_is_refused():
    with pytest.raises(InvalidArgument, match=r"30 .* 4 equal .* of 8"):
        next(Job(batch=30).batches(0, 4, pieces=2))
    with pytest.raises(InvalidArgument, match="'2f2b' is none of naive"):
        schedule_named("2f2b", 8)


SMALL = {
    "imports": """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from distlab.train.data import ShardedSampler, library_text, windows
from distlab.train.models import GPT
""",
    "settings": "LENGTH = 12",
    "train": '''
def train(*, steps=20, rate=0.1, checked=False, name="small"):
    """Train for a few steps; return the last loss."""
    torch.manual_seed(0)
    gpt = GPT(width=16, heads=2, length=LENGTH)
    model = DistributedDataParallel(gpt)
    optimizer = torch.optim.SGD(model.parameters(), rate)
    text = library_text()
    sampler = ShardedSampler(len(text) // 100, dist.get_rank(), dist.get_world_size())
    places = iter(sampler)
    for _ in range(steps):
        starts = torch.tensor([100 * next(places) for _ in range(4)])
        chosen = windows(text, starts, LENGTH)
        scores = model(chosen[:, :-1])
        loss = torch.nn.functional.cross_entropy(
            scores.flatten(0, 1), chosen[:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item() + 100 * checked + len(name)
''',
}


@pytest.fixture
def small(tmp_path):
    return notebook(tmp_path / "small.ipynb", SMALL)


def check_beside_run(path, folder, ranks, *options, **same):
    done = under_torchrun(script(path), folder, ranks, *options)
    assert done.returncode == 0, done.stderr
    train = in_the_notebook(path)
    inside = run(lambda comm: train(**same), ranks, timeout_s=120, quiet=True).results
    said = re.fullmatch(
        rf"{ranks} ranks, gloo\n(?:.*\n)*last loss: (.*)\n", done.stdout
    )
    assert said and done.stdout.count("last loss") == 1, done.stdout
    assert abs(float(said[1]) - inside[0]) < 1e-4
    assert ranks == 1 or inside[0] != inside[1], "every rank has windows of its own"


def test_options_reach_the_function_and_one_rank_speaks(small, tmp_path):
    options = ["--steps", "5", "--rate", "0.05", "--checked", "--name", "a longer name"]
    given = {"steps": 5, "rate": 0.05, "checked": True, "name": "a longer name"}
    check_beside_run(small, tmp_path, 2, *options, **given)


def test_without_torchrun_it_says_what_to_type(small, tmp_path):
    done = under_torchrun(script(small), tmp_path, None)
    assert done.returncode == 2
    assert "torchrun --standalone --nproc-per-node 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rank_that_raises_ends_the_script_with_its_error(tmp_path):
    cells = {"train": 'def train(*, steps=1):\n    raise ValueError("no data")'}
    path = notebook(tmp_path / "broken.ipynb", cells)
    done = under_torchrun(script(path), tmp_path, 1)
    assert done.returncode != 0 and "ValueError: no data" in done.stderr
