"""Without any extra: ranks, pictures and commands work, and others name their extra."""

import os
import re
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.utils import canonicalize_name
from pins import needed

FIRST = """from distlab import run, show
def hello(comm):
    return comm.rank
if __name__ == "__main__":
    report = run(hello, 4)
    print(report.results, "<svg" in show.player(report).html())
"""
HIDE = """from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *how: None if name in missing else find(name, *how)
"""


@pytest.fixture
def alone(tmp_path):
    """Return a function that runs Python as if only the core were installed."""
    core = needed(["distlab"]) | {"distlab"}
    missing = [
        module
        for module, brought_by in metadata.packages_distributions().items()
        if not core & set(map(canonicalize_name, brought_by))
    ]
    (tmp_path / "sitecustomize.py").write_text(f"missing = {missing}\n{HIDE}")
    env = os.environ | {"PYTHONPATH": str(tmp_path), "DISTLAB_HOME": str(tmp_path)}

    def alone(*command):
        done = subprocess.run(
            [sys.executable, *command], env=env, capture_output=True, text=True
        )
        return done.returncode, (done.stdout + done.stderr).strip()

    return alone


def test_a_script_and_its_picture_need_nothing_but_the_core(alone, tmp_path):
    (tmp_path / "first.py").write_text(FIRST)
    done = alone(tmp_path / "first.py")
    assert done == (0, "[0, 1, 2, 3] True"), done[1]


def test_commands_that_need_more_say_in_one_line_which_extra(alone):
    for command, needs in {
        "lab": "JupyterLab: lab",
        "run 00": "nbformat: lab",
        "review": "fsrs: notebook",
        "grade 10": "nbgrader: grading",
    }.items():
        package, extra = needs.split(": ")
        status, described = alone("-m", "distlab", *command.split())
        name = command.split()[0]
        line = f'distlab {name} needs {package}: pip install "distlab[{extra}]"'
        assert (status, described) == (1, line)
    assert alone("-m", "distlab", "--help")[0] == 0
    assert alone("-m", "distlab", "progress")[0] == 0


def test_doctor_lists_by_lesson_and_last_what_is_optional_and_not_installed(alone):
    status, described = alone("-m", "distlab", "doctor")
    *rows, last = (line for line in described.splitlines() if line[:1] not in "├└")
    states = [row.split("│")[1].strip() for row in rows if row.count("│") == 4]
    assert status == 0 and last.startswith("A world of ranks runs here")
    named = [state for state in states if state]
    assert named == sorted(named, key="optional".__eq__) and "missing" not in named
    assert re.search(
        r'optional │ lessons 07, 08 +│ Spark: pip install "distlab\[spark\]"', described
    )
    assert "graded" not in described
