"""`distlab prove` believes no check that its variants do not prove."""

import os
import subprocess
import sys

import pytest
from light import STEM, light_course

from distlab.commands.proving import read_variants
from distlab.errors import DistlabError

pytestmark = pytest.mark.timeout(400)
BARE = {"one": "def a():\n    return 1", "two": "def b():\n    return 2\n\n\nc = 3"}


def prove(folder, *arguments):
    """Run the command in a course that is not the project's."""
    return subprocess.run(
        [sys.executable, "-m", "distlab", "prove", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"COLUMNS": "120"},
    )


@pytest.fixture
def solution(tmp_path):
    return light_course(tmp_path)


def row(done, name):
    return next(line for line in done.stdout.splitlines() if f"│ {name} " in line)


def test_a_table_shows_what_every_answer_should_get_and_got(solution):
    done = prove(solution.parents[1], "1", "--jobs", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert STEM in done.stdout and "✗" not in done.stdout
    assert row(done, "solution").split("│")[2:4] == ["        4 ", "   4 "]
    assert row(done, "untouched").split("│")[2:4] == ["        0 ", "   0 "]
    assert "Next to it" in row(done, "wrong_one_too_few")


def test_an_answer_that_gets_other_points_or_another_hint_is_named(solution):
    variants = solution / "variants"
    named = {"POINTS = 0": "POINTS = 2"}
    other = {"Return two numbers": "One rank may be enough"}
    for name, changes in (("wrong_seconds", named), ("wrong_size_only", other)):
        text = (variants / f"{name}.py").read_text()
        for old, new in changes.items():
            text = text.replace(old, new)
        (variants / f"{name}.py").write_text(text)
    done = prove(solution.parents[1])
    assert done.returncode == 1
    assert "wrong_seconds: got 0 points instead of 2" in done.stdout
    assert 'instead of "One rank may be enough"' in done.stdout
    assert done.stdout.count("✗ ") == 4, "two rows, two sentences"


@pytest.mark.parametrize("left", [0, 6])
def test_too_few_variants_prove_nothing(solution, left):
    for path in sorted((solution / "variants").glob("*.py"))[left:]:
        path.unlink()
    if not left:
        (solution / "variants").rmdir()
    done = prove(solution.parents[1])
    assert done.returncode == 1
    right, wrong = min(left, 2), max(left - 2, 0)
    assert f"has {right} right variants and {wrong} wrong ones" in done.stdout


def test_an_exercise_that_is_not_there_is_answered_with_those_that_are(solution):
    done = prove(solution.parents[1], "99")
    assert done.returncode == 2 and STEM in done.stderr


def variant(folder, code, name="wrong_one"):
    (folder / f"{name}.py").write_text(code)
    return read_variants(folder, BARE)[0].cells


HEAD = '"""About."""\n\nPOINTS = 1\nHINT = "why"\n'


def test_what_a_variant_does_not_change_is_the_solutions(tmp_path):
    assert variant(tmp_path, HEAD) == BARE
    changed = variant(tmp_path, HEAD + 'REPLACE = {"return 1": "return 7"}\n')
    assert changed == BARE | {"one": "def a():\n    return 7"}


def after_each_cell(cells):
    """Return what the names are worth after each cell."""
    there, seen = {}, []
    for cell in cells.values():
        exec(cell, there)
        values = {name: there.get(name) for name in "abc"}
        seen.append([each() if callable(each) else each for each in values.values()])
    return seen


def test_what_a_variant_defines_takes_the_place_of_the_solutions(tmp_path):
    own = HEAD + "def a():\n    return b() + 10\n\n\ndef b():\n    return 5\n"
    assert after_each_cell(variant(tmp_path, own)) == [[15, 5, None], [15, 5, 3]]
    late = HEAD + "import math\n\nc = math.floor(b() + 5.5)\n"
    assert after_each_cell(variant(tmp_path, late)) == [[1, None, None], [1, 2, 7]]


@pytest.mark.parametrize(
    "name, code, said",
    [
        ("almost_right", HEAD, "neither with right_ nor wrong_"),
        ("wrong_one", "POINTS = 1", "no docstring"),
        ("wrong_one", '"""About."""\nPOINTS = 1', "no POINTS or no HINT"),
        ("wrong_one", HEAD + "def", "line 5"),
        ("wrong_one", HEAD + 'REPLACE = {"return": "x"}', "has 2 times"),
        ("wrong_one", HEAD + 'REPLACE = {"gone": "x"}', "has 0 times"),
    ],
)
def test_a_variant_that_cannot_be_read_is_named_with_what_is_wrong(
    tmp_path, name, code, said
):
    with pytest.raises(DistlabError, match=said) as caught:
        variant(tmp_path, code, name)
    assert f"{name}.py" in str(caught.value)
