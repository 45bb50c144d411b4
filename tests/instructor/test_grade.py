"""`distlab grade` and nbgrader's own commands on a small course."""

import signal
import subprocess
import sys
import time

import pytest
from courses import STEM, SmallCourse

pytestmark = pytest.mark.timeout(300)

WRONG = "def all_reduce(comm, tensor, ring):\n    return 4.0"


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course in which everything was graded once, and feedback written."""
    course = SmallCourse(tmp_path_factory.mktemp("course"))
    for student in ("ada", "bob"):
        course.submit(student)
    course.submit("eve", two=WRONG)
    course.submit("fay", two="def all_reduce(:")
    helper = "def summed(a, b):\n    return a + b\n"
    place = course.submit("gus", one=f"from helper import summed\n{course.one()}")
    (place / "helper.py").write_text(helper)
    wrong = course.one().replace("range(n - 1)", "range(1 if n == 2 else n)")
    course.submit("hal", one=wrong)
    course.said = course.grade("--feedback")
    course.run("distlab", "marks", STEM, "--to", "table.csv")
    return course


def test_the_table_has_every_student_and_says_how_it_was_graded(graded):
    lines = [line.split("│") for line in graded.said.splitlines() if "│" in line]
    rows = {cells[1].strip(): cells[-2].strip() for cells in lines if len(cells) > 4}
    assert {"ada": "7", "bob": "7", "eve": "3", "fay": "3", "gus": "7"}.items() <= (
        rows.items()
    )
    assert "Graded in a sandbox (bubblewrap)" in graded.said
    assert "eve,3.0,0.0,3.0" in (graded.folder / "table.csv").read_text()


def test_right_answers_print_no_line_each(graded):
    assert "ada: " not in graded.said and graded.said.count("ada") == 1


def test_files_beside_a_notebook_are_beside_it_when_it_is_graded(graded):
    assert graded.points("gus") == (3.0, 4.0)


def test_a_cell_that_failed_is_named_by_the_verdict_that_misses_it(graded):
    shown = graded.shown("fay", "two-check")
    assert "'all_reduce' is not defined: its cell ended early (SyntaxError" in shown
    assert "Mend that cell" in shown


def test_feedback_shows_the_verdict_and_hint_of_a_hidden_case_and_nothing_else(graded):
    assert "3 of 3 ranks, 9 elements: fail" in graded.shown("hal", "one-check")
    page = (graded.folder / "feedback" / "hal" / STEM / f"{STEM}.html").read_text()
    assert "a hidden case: fail" in page and "Hint:" in page
    assert "3 of 3 ranks" not in page and "(3, 3, 9)" not in page
    assert "2 of 2 ranks, 6 elements: pass" in page
    assert ">Rings</a>: 0 of 3 points" in page and ">two check</a>: " in page


def test_a_second_run_grades_only_what_was_submitted_anew(graded):
    assert "6 submissions graded before" in graded.grade()
    graded.submit("bob", two=WRONG)
    assert "5 submissions graded before" in graded.grade()
    assert graded.points("bob") == (3.0, 0.0)
    log = (graded.folder / ".distlab" / STEM / "log.txt").read_text()
    said = [
        log.count(each) for each in ("InSandbox", f"gus/{STEM}/{STEM}.html", "--- d")
    ]
    assert said == [7, 1, 4], "what was said of an earlier run is lost"


@pytest.mark.nightly
def test_nbgraders_own_autograde_gives_the_same(course):
    course.submit("ada")
    course.submit("eve", two=WRONG)
    course.run("nbgrader", "generate_assignment", STEM, "--force")
    course.run("nbgrader", "autograde", STEM)
    assert course.points("ada") == (3.0, 4.0) and course.points("eve") == (3.0, 0.0)


def test_after_a_kill_the_same_command_goes_on_and_nothing_is_left(course):
    for number in range(3):
        course.submit(f"s{number}")
    running = course.begin_grading()
    autograded = course.folder / "autograded"
    while not list(autograded.glob(f"*/{STEM}/*.ipynb")) and running.poll() is None:
        time.sleep(0.02)
    running.kill()
    running.wait()
    course.grade()
    assert {course.points(f"s{number}") for number in range(3)} == {(3.0, 4.0)}
    assert not (course.folder / ".distlab" / STEM / "aside").exists()


@pytest.mark.nightly
def test_ctrl_c_ends_at_once_and_says_how_to_go_on(course):
    course.submit("ada")
    course.submit("bob", one="while True:\n    pass")  # so it is not done by then
    running = course.begin_grading(stdout=subprocess.PIPE, text=True)
    assert "another `distlab grade`" in course.grade(check=False)
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 130 and "the same command goes on" in said


def test_where_there_can_be_no_sandbox_nothing_is_graded_unless_insisted(course):
    course.submit("ada")
    code = "import distlab.sandbox.bwrap as b; b.bwrap = lambda: None; from distlab."
    code += "__main__ import main; main()"

    def grade():
        return subprocess.run(
            [sys.executable, "-c", code, "grade", STEM],
            cwd=course.folder,
            capture_output=True,
            text=True,
            env=course.environment(),
        )

    refused = grade()
    assert refused.returncode != 0 and "nothing was graded" in refused.stderr
    config = course.folder / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.InSandbox.allow_unsafe = True\n")
    assert "Graded without a sandbox" in grade().stdout
    assert course.points("ada") == (3.0, 4.0)
