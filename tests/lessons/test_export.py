"""A lesson's exported script trains under torchrun as the lesson does under `run`."""

import re
from pathlib import Path

import pytest
from exported import in_the_notebook, notebook, script, under_torchrun

from distlab import run
from distlab.commands.sources import exported_name

LESSONS = [
    path
    for path in sorted((Path(__file__).parents[2] / "lessons").glob("*.ipynb"))
    if exported_name(path)
]
STEPS = 3

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


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.soak)])
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lessons_script_has_the_lessons_loss(lesson, ranks, tmp_path):
    check_beside_run(lesson, tmp_path, ranks, "--steps", str(STEPS), steps=STEPS)


def test_options_reach_the_function_and_one_rank_speaks(small, tmp_path):
    options = ["--steps", "5", "--rate", "0.05", "--checked", "--name", "a longer name"]
    given = {"steps": 5, "rate": 0.05, "checked": True, "name": "a longer name"}
    check_beside_run(small, tmp_path, 4, *options, **given)


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
