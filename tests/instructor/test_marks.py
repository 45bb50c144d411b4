"""Marks tell why somebody has none, and are old for nobody; feedback is one page."""

import csv
import json
import re
import subprocess
import sys
import time
import zipfile

import pytest
from courses import ONE, STEM, STUB, TWO, SmallCourse, exercise

pytestmark = pytest.mark.timeout(300)

STUDENTS = "ada", "bob", "cem", "dan", "eve"
NOTHING = "def {}(comm, *args):\n    return 0"
MOODLE = f"Bob Li_123_assignsubmission_file_{STEM}"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A right answer, an untouched one, a torn one, none, and one without points."""
    course = SmallCourse(tmp_path_factory.mktemp("course"))
    source = exercise()
    source.cells[
        0
    ].source += "\nIt costs $2(n-1)\\alpha$. ![x](http://example.org/x.png)"
    path = course.folder / "solutions" / STEM / f"{STEM}.ipynb"
    path.write_text(json.dumps(source))
    rows = [f"{who},{who.title()},Example,{who}@example.org" for who in STUDENTS]
    lines = ["id,first_name,last_name,email", *rows]
    (course.folder / "students.csv").write_text("\n".join(lines))
    course.run("nbgrader", "db", "student", "import", "students.csv")
    course.submit("ada").joinpath("timestamp.txt").write_text("2030-06-01 11:58 UTC")
    stubs = [re.sub(r"### BEGIN.*", STUB, each, flags=re.S) for each in (ONE, TWO)]
    course.submit("bob", one=stubs[0], two=stubs[1])
    course.submit("cem", json.dumps(course.answer())[:700].encode())
    zero = {
        "one": NOTHING.format("reduce_scatter"),
        "two": NOTHING.format("all_reduce"),
    }
    course.submit("eve", **zero)
    kept = course.folder / ".distlab" / STEM
    kept.mkdir(parents=True)
    (kept / "collected.json").write_text(json.dumps({"bob": f"{MOODLE}.ipynb"}))
    (kept / "log.txt").symlink_to("/dev/full")
    course.said = course.grade("--feedback", check=False)
    return course


def marks(course, *arguments, file="marks.csv"):
    course.run("distlab", "marks", STEM, *arguments, "--to", file)
    with (course.folder / file).open() as table:
        return list(csv.reader(table))


def states(course):
    return {row[0]: (row[4], row[3], row[5]) for row in marks(course)[1:]}


def test_why_somebody_has_no_points_is_told_apart(course):
    assert states(course) == {
        "ada": ("graded", "7.0", "2030-06-01 11:58"),
        "bob": ("untouched", "0.0", ""),
        "cem": ("could not be graded", "", ""),
        "dan": ("nothing came", "", ""),
        "eve": ("graded", "0.0", ""),
    }


def test_canvas_and_moodle_get_the_columns_that_they_import(course):
    head, possible, *rows = marks(course, "--for", "canvas", file="canvas.csv")
    assert head == ["Student", "ID", "SIS Login ID", "Section", STEM]
    assert possible == ["    Points Possible", "", "", "", "7.0"]
    assert rows[0] == ["Example, Ada", "", "ada", "", "7.0"]
    assert [row[-1] for row in rows] == ["7.0", "0.0", "", "", "0.0"]
    head, *rows = marks(course, "--for", "moodle", file="moodle.csv")
    assert head == ["First name", "Last name", "ID", "Email address", STEM]
    assert rows[0] == ["Ada", "Example", "ada", "ada@example.org", "7.0"]


def test_feedback_has_a_name_and_is_one_archive_that_platforms_know(course):
    with zipfile.ZipFile(course.folder / "feedback" / f"{STEM}.zip") as archive:
        names = archive.namelist()
        page = archive.read(f"eve_{STEM}.html").decode()
    assert names == [f"ada_{STEM}.html", f"{MOODLE}.html", f"eve_{STEM}.html"]
    assert "<title>Eve Example" in page and "<math" in page
    assert "hint()" not in page and "Hint:" in page
    policy = page.index("default-src 'unsafe-inline' data:")
    assert "cdnjs" not in page and policy < page.index("example.org")
    assert not re.search(r'<(script|link)[^>]+(src|href)="http', page)


def test_a_full_disk_shows_no_traceback(course):
    assert "Logging error" not in course.said and "Traceback" not in course.said
    said = course.run("distlab", "marks", STEM, "--to", "/dev/full", check=False)
    assert "the disk is full" in said and "Traceback" not in said


def test_old_marks_are_never_graded_before(course):
    path = course.folder / "autograded" / "eve" / STEM / f"{STEM}.ipynb"
    command = [sys.executable, "-m", "distlab", "grade", STEM, "--force", "--jobs", "1"]
    place = {"cwd": course.folder, "env": course.environment()}
    running = subprocess.Popen(command, **place, stdout=subprocess.DEVNULL)
    while json.loads(path.read_text())["metadata"]["distlab"]["submitted"]:
        time.sleep(0.02)
    running.kill()
    running.wait()
    assert states(course)["eve"] == ("to grade again", "", "")
    course.grade(check=False)
    assert "3 submissions graded before" in course.grade(check=False)
    solution = course.folder / "solutions" / STEM / f"{STEM}.ipynb"
    solution.write_text(solution.read_text().replace("(3, 3, 9)", "(3, 3, 12)"))
    assert states(course)["ada"][0] == "to grade again"
    assert "graded before" not in course.grade(check=False)
    assert states(course)["ada"][0] == "graded"
