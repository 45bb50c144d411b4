"""Notebook services: recognized, linked to, given notebooks that install distlab."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pip
import pytest

from distlab import run
from distlab.commands.running.hosted_notebooks import open_in, repository
from distlab.launch.gpus import on_two_gpus, ratio_on_gpus
from distlab.launch.machine import count_gpus

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "lessons").glob("*.ipynb"))
NAMED = "from distlab.commands.running.hosted_notebooks import here\n"
NAMED += "print(here() and here().name)"


def python(*words, **variables):
    """Run Python with these variables and those of no service."""
    kept = {k: v for k, v in os.environ.items() if "DISTLAB" not in k}
    how = {"env": kept | variables, "capture_output": True, "text": True, "cwd": ROOT}
    return subprocess.run([sys.executable, *map(str, words)], **how)


def cells_of(path):
    cells = json.loads(path.read_text())["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells}


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "None"),
        ({"COLAB_RELEASE_TAG": "release"}, "Colab"),
        ({"COLAB_RELEASE_TAG": "release", "KAGGLE_KERNEL_RUN_TYPE": "Batch"}, "Kaggle"),
        ({"BINDER_LAUNCH_HOST": "https://mybinder.org/"}, "Binder"),
    ],
)
def test_a_service_is_recognized_by_its_environment(variables, name):
    assert python("-c", NAMED, **variables).stdout == f"{name}\n"


def test_doctor_names_the_service_and_says_how_to_keep_progress():
    done = python("-m", "distlab", "doctor", KAGGLE_KERNEL_RUN_TYPE="Interactive")
    assert done.returncode == 0, done.stdout + done.stderr
    words = " ".join(re.findall(r"[\w,/]+", done.stdout))
    for said in ("service Kaggle", "GPU T4 x2", "Persistence is Files only"):
        assert said in words, done.stdout


def test_each_lesson_opens_in_each_service():
    for path in LESSONS:
        assert cells_of(path)["title"].splitlines()[-1] == open_in(
            f"lessons/{path.name}"
        )


def test_a_clone_that_is_on_the_path_and_not_installed_has_an_address(monkeypatch):
    monkeypatch.setattr(sys, "path", [])  # where metadata are looked for
    assert open_in("lessons/02_cap.ipynb").startswith("Open in: [Colab](https://")


def test_every_address_of_the_project_is_that_of_pyproject():
    slug = repository().removeprefix("https://github.com/")
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *LESSONS]
    texts += [*(ROOT / ".github").rglob("*.yml"), *(ROOT / "distlab").rglob("*.py")]
    for path in texts:
        found = re.findall(
            r"(?:github(?:\.com)?|gh)/([\w.-]+/distlab)\b", path.read_text()
        )
        assert set(found) <= {slug}, path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kaggle")
    done = python("-m", "distlab", "notebooks", "--for", "kaggle", "--to", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_notebooks_for_a_service_are_all_there_and_no_link_in_them_is_relative(made):
    found = sorted(p.relative_to(made) for p in made.rglob("*.ipynb"))
    given = [*LESSONS, *(ROOT / "exercises").glob("*/*.ipynb")]
    assert found == sorted(path.relative_to(ROOT) for path in given)
    for path in found:
        for text in cells_of(made / path).values():
            assert not re.search(r"\]\((?!https://|#)[\w./]+\.(ipynb|md)", text)


def test_what_a_lesson_needs_beyond_the_core_is_installed(made):
    for stem, extras in {
        "02_cap": "'notebook,systems', 'notebook'",
        "07_rdds_and_spark": "'notebook,spark', 'notebook'",
        "10_ring_all_reduce": "'notebook',",
    }.items():
        assert f"in ({extras})" in cells_of(made / f"lessons/{stem}.ipynb")["install"]


def wheel(folder, name, version, requires="", files=()):
    """Write a wheel with these files, {place: text}."""
    info = f"{name}-{version}.dist-info"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    kind = (
        "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    files = dict(files) | {
        f"{info}/METADATA": head + requires,
        f"{info}/WHEEL": kind,
        f"{info}/RECORD": "",
    }
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in files.items():
            archive.writestr(place, text)
    return path


def test_the_first_cell_changes_no_package_that_is_there(made, tmp_path):
    venv.create(tmp_path / "there", symlinks=True)
    there = tmp_path / "there" / "bin" / "python"
    [packages] = (tmp_path / "there").glob("lib/python*/site-packages")
    shutil.copytree(Path(pip.__file__).parent, packages / "pip")
    old = wheel(tmp_path, "jupyter", "1.0")
    wheel(tmp_path, "jupyter", "2.0")
    subprocess.run([there, "-m", "pip", "install", "-q", "--no-index", old], check=True)
    ready = {
        "distlab/__init__.py": "",
        "distlab/commands/__init__.py": "",
        "distlab/commands/running/hosted_notebooks.py": "def ready(): print('ready')",
    }
    cell = cells_of(made / "lessons/02_cap.ipynb")["install"]
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}

    def outcome(requires):
        extras = "Provides-Extra: notebook\nProvides-Extra: systems\n"
        made_here = wheel(tmp_path, "distlab", "0.1.0", extras + requires, ready)
        text = re.sub('wheel = ".*"', f'wheel = "{made_here.as_uri()}"', cell)
        how = {"capture_output": True, "text": True, "cwd": tmp_path}
        without = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        how |= {"env": without | offline}
        done = subprocess.run([there, "-c", text], **how)
        listed = [there, "-m", "pip", "list", "--format=freeze"]
        assert "jupyter==1.0" in subprocess.run(listed, **how).stdout
        return done

    refused = outcome("Requires-Dist: jupyter>=2\n")
    assert "Is Internet on? See Settings. pip said:" in refused.stderr
    # The systems cannot be had, and the lesson goes on without them.
    needs = 'Requires-Dist: jupyter>=1\nRequires-Dist: etcd; extra == "systems"\n'
    for _ in range(2):
        assert outcome(needs).stdout == "ready\n"


# ---- with two GPUs -----------------------------------------------------------------

MAKERS = {"arange", "empty", "ones", "rand", "randint", "randn", "tensor", "zeros"}


def made_without_device(tree):
    """Yield the lines that make a tensor and don't say on which device."""
    moved = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node).endswith("(comm.device)"):
            moved |= set(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func)[6:] in MAKERS:
            said = {keyword.arg for keyword in node.keywords}
            if node not in moved and not said & {"device", "pin_memory"}:
                yield ast.unparse(node)


@pytest.mark.parametrize(
    "lesson",
    [path for path in LESSONS if "10" <= path.stem[:2] <= "17"],
    ids=lambda path: path.stem,
)
def test_a_section_for_two_gpus_takes_device_and_backend_from_one_place(lesson):
    cells = {k: v for k, v in cells_of(lesson).items() if "two-gpus" in k}
    described, *code = cells.values()
    assert described.startswith("### With two GPUs") and len(code) == 2
    assert "on_two_gpus(" in code[-1]
    assert not re.search(r"\.cuda\(|cuda:|backend=|\.cpu\(", "".join(code))
    assert not list(made_without_device(ast.parse("\n".join(code))))


def test_two_gpus_or_two_ranks_of_a_cpu_run_the_same_function(capsys):
    def where(comm, size):
        return comm.device.type, comm.world_size, size

    gpus = count_gpus()
    results = on_two_gpus(where, on_gpu=("large",), on_cpu=("small",)).results
    expected = ("cuda", 2, "large") if gpus else ("cpu", 2, "small")
    assert results == [expected] * 2
    said = ["gloo, on CPUs", "share one GPU", "NCCL, a GPU each"][min(gpus, 2)]
    assert said in capsys.readouterr().out
    assert ratio_on_gpus(3, 2) == ("1.50" if gpus >= 2 else "only on two GPUs")


def test_a_world_on_gloo_sees_no_gpu():
    assert run(lambda comm: os.environ["CUDA_VISIBLE_DEVICES"], 2).results == ["", ""]
