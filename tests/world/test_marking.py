"""Honest submissions get their points, whatever shape they are handed in."""

import os

import pytest
from courses import STEP_TWO, Course, cell, solved
from distlab.grading.desk.notes import notes_of
from distlab.grading.marking import marking
from distlab.preloads import CHECKING, KERNEL
from jails import all_may_read_python

from distlab.processes import warm_up

pytestmark = pytest.mark.timeout(400)

ALL = {"one-check": 3.0, "two-check": 4.0}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    warm_up(CHECKING)
    warm_up(KERNEL)
    course = Course(tmp_path_factory.mktemp("course"))
    course.grade(solved())  # what is made once for all submissions is there by now
    return course


def without(*names):
    notebook = solved()
    notebook.cells = [each for each in notebook.cells if each.id not in names]
    return notebook


def test_the_solution_gets_all_points(course):
    graded = course.grade(solved())
    assert graded.success, graded.log
    assert graded.steps == ALL
    assert not graded.unclear
    assert "2 ranks, 6 numbers: pass" in graded.words("one-check")
    assert "isolation" in str(graded.notebook.metadata["distlab"])
    assert "How this was graded" in graded.notebook.cells[-1].source


def test_a_step_that_is_missing_costs_its_own_points_only(course):
    graded = course.grade(without("one"))
    assert graded.steps == {"one-check": 0.0, "two-check": 4.0}
    said = "✗ `reduce_scatter` is not defined, so this step could not be judged."
    assert said in graded.words("one-check")


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("x = split((1, 2)\n", "SyntaxError: '(' was never closed (line 1)"),
        ("boxes = [1]\nboxes[3]\n", "IndexError: list index out of range (line 2)"),
        (
            "import nowhere\n",
            "No module named 'nowhere' (line 1): where this is graded",
        ),
        ("x = input()\n", "asks for input (line 1), and nobody answers while it is"),
        ("import os\nos._exit(0)\n", "ended its kernel"),
    ],
)
def test_where_a_name_is_missing_the_verdict_says_what_its_cell_did(
    course, before, said
):
    notebook = solved()
    cell(notebook, "two").source = before + STEP_TWO
    graded = course.grade(notebook)
    assert graded.steps == {"one-check": 3.0, "two-check": 0.0}
    assert "✗ the cell that defines `ring` " in graded.words("two-check")
    assert said in graded.words("two-check")
    [*_, note] = notes_of(graded.notebook)
    assert said in note and "two-check could not be judged: the cell that" in note
    assert "(3, 10)" not in str(graded.outputs("two-check"))


def test_what_cannot_travel_is_named(course):
    notebook = solved()
    cell(notebook, "two").source = (
        STEP_TWO + "\nimport threading\nring.lock = threading.Lock()"
    )
    graded = course.grade(notebook)
    assert graded.steps == {"one-check": 3.0, "two-check": 0.0}
    assert "lock" in graded.words("two-check")


def test_missing_checks_and_imports_are_put_back(course):
    graded = course.grade(without("imports", "one-check", "two-check", "last"))
    assert graded.steps == ALL
    assert "'imports' is missing, and put back" in graded.log


def test_cells_in_another_order_go_back_to_theirs(course):
    notebook = solved()
    notebook.cells.reverse()
    graded = course.grade(notebook)
    assert graded.steps == ALL
    assert "put back into theirs" in graded.log


def test_a_duplicated_answer_is_named_and_the_last_counts(course):
    notebook = solved()
    copy = type(notebook.cells[0])(cell(notebook, "two") | {"id": "copy"})
    copy.source = "def ring(comm, tensor):\n    pass"
    notebook.cells.insert(1, copy)
    graded = course.grade(notebook)
    assert graded.steps == ALL
    assert "'two' is there twice" in graded.log


def test_another_kernel_or_language_does_not_matter(course):
    notebook = solved()
    notebook.metadata["kernelspec"] = {
        "name": "ir",
        "display_name": "R",
        "language": "R",
    }
    notebook.metadata["language_info"] = {"name": "R"}
    assert course.grade(notebook).steps == ALL


def test_a_function_that_moved_into_a_module_beside_the_notebook(course):
    notebook = solved()
    cell(notebook, "two").source = "from mine import ring"
    source = "from distlab.collectives.chunks import split\nimport torch\n\n" + STEP_TWO
    assert course.grade(notebook, files=[("mine.py", source)]).steps == ALL


def test_a_hidden_case_is_for_the_instructor(course):
    notebook = solved()
    cell(notebook, "two").source += """
def ring(comm, tensor, right=ring):
    if comm.world_size == 2:
        right(comm, tensor)"""
    graded = course.grade(notebook)
    assert graded.steps == {"one-check": 3.0, "two-check": 0.0}
    assert "3 ranks, 10 numbers: fail" in graded.words("two-check")
    page = course.feedback(graded.student)
    assert "✗ a case that is not shown: fail" in page
    assert "2 ranks, 4 numbers: pass" in page
    for secret in ("3 ranks, 10", "(3, 10)", "HIDDEN", "(3, 9)", "3 ranks, 9"):
        assert secret not in page, secret


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
@pytest.mark.skipif(not all_may_read_python(), reason="this Python is its owner's")
def test_a_level_below_is_used_and_said(course, monkeypatch):
    monkeypatch.setattr(marking, "best_isolation", lambda: "unprivileged user")
    graded = course.grade(solved())
    assert graded.steps == ALL
    assert graded.notebook.metadata["distlab"]["isolation"] == ["unprivileged user"]
    assert "network" in graded.notebook.cells[-1].source


@pytest.mark.parametrize(
    ("waits", "did"),
    [
        ("time.sleep(100)", ", and was interrupted. The cells after it were run with"),
        (
            "signal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(100)",
            ", nor when it was interrupted. The cells after it were run in a new",
        ),
    ],
)
def test_a_cell_that_is_late_is_named_with_what_became_of_the_rest(
    tmp_path, waits, did
):
    course, notebook = Course(tmp_path, timeout=3), solved()
    cell(notebook, "own").source = f"\ntries = 0\nimport signal, time\n{waits}"
    graded = course.grade(notebook)
    assert graded.steps == ALL
    assert f"This cell did not end within 3 s{did}" in graded.words("own")
    [note] = notes_of(graded.notebook)
    assert note.startswith(f"cell 3 (`tries = 0`) did not end within 3 s{did}")


def test_steps_after_the_exercises_deadline_get_nothing_and_say_so(course, monkeypatch):
    notebook = solved()
    cell(notebook, "two").source += "\nimport time\ntime.sleep(100)"
    monkeypatch.setattr(marking.Marking.exercise_timeout, "default_value", 20.0)
    graded = course.grade(notebook)
    assert graded.steps == {"one-check": 3.0, "two-check": 0.0}
    assert "time was over, so this step could not" in graded.words("two-check")
    assert "No cell after it was run: the time for the" in graded.words("two")
    assert not graded.unclear


def test_a_marker_that_is_late_costs_its_step_and_is_told_to_the_instructor(
    course, monkeypatch
):
    monkeypatch.setattr(marking.Marking.check_timeout, "default_value", 0.001)
    graded = course.grade(solved())
    assert set(graded.steps.values()) == {0.0}
    assert "still at work" in graded.log
    assert "your instructor can see why" in graded.words("one-check")


def test_without_isolation_nothing_is_graded(course, monkeypatch):
    monkeypatch.setattr(marking, "best_isolation", lambda: "none")
    graded = course.grade(solved())
    assert not graded.success
    assert "allow_unsafe" in graded.log
    assert set(graded.steps.values()) == {None}
