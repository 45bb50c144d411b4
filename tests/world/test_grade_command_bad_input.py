"""What is wrong with a submission is said by name, and all others are graded."""

import io
import json
import os
import zipfile

import nbformat
import pytest
from tiny_course import STEM, Course, cell, notebook

FULL = 7.0


def without(*names):
    made = notebook()
    made.cells = [one for one in made.cells if one.id not in names]
    return made


def in_order(*names):
    made = notebook()
    by_name = {one.id: one for one in made.cells}
    made.cells = [by_name[name] for name in names]
    return made


def with_cell(place, added, **answers):
    made = notebook(**answers)
    made.cells.insert(place, added)
    return made


def text_of(content):
    return json.dumps(content)


def zipped(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.ipynb", text_of(content))
    return buffer.getvalue()


def other_kernel():
    made = notebook()
    made.metadata.kernelspec = {"name": "ir", "display_name": "R", "language": "R"}
    made.metadata.language_info = {"name": "R"}
    return made


def changed(name, **fields):
    made = notebook()
    [one] = [one for one in made.cells if one.id == name]
    one.update(fields)
    return made


def broken_metadata():
    """Return a notebook with metadata that no tool writes."""
    made = json.loads(text_of(notebook()))
    made["cells"][0]["metadata"] = {"nbgrader": None}
    made["cells"][1]["metadata"]["nbgrader"] = "locked"
    made["cells"][3]["metadata"]["nbgrader"] |= {"points": 900, "schema_version": "x"}
    made["cells"][6]["metadata"]["nbgrader"]["grade"] = False
    made["cells"].append({"cell_type": "poem", "source": 5})
    made["cells"].append("no cell")
    made["metadata"] = []
    return made


ACCENTS = text_of(notebook(one="def one():\n    'é'\n    return 1"))
ACCENTS = ACCENTS.replace("\\u00e9", "é")
IMPOSTOR = cell("extra-check", "9.0", grade=True, locked=True, points=9)

# student -> what is submitted, the points, and what is noted
GRADED = {
    "fine": (notebook(), FULL, ""),
    "wrong": (notebook(two="def two():\n    return 3"), 3.0, ""),
    "no check": (without("two-check"), FULL, "1 cell missing: two-check"),
    "no answer": (without("two"), 3.0, "1 cell missing: two"),
    "nothing left": (without("one", "one-check", "two", "two-check"), 0.0, "4 cells"),
    "no imports": (without("imports", "two-shown"), FULL, "2 cells missing: imports"),
    "twice": (
        with_cell(1, cell("one", "def one():\n    return 5", solution=True)),
        FULL,
        "one is there 2 times, the last one counts",
    ),
    "reordered": (
        in_order("two-check", "two", "imports", "one-check", "one", "two-shown"),
        FULL,
        "cells in another order, moved back: one, two, two-check",
    ),
    "moved": (
        in_order("imports", "two", "one", "one-check", "two-shown", "two-check"),
        FULL,
        "cells in another order, moved back: two",
    ),
    "stranger": (with_cell(1, IMPOSTOR), FULL, "not cells of this exercise"),
    "edited check": (
        changed("two-check", source="4.0"),
        FULL,
        "locked cells edited, put back: two-check",
    ),
    "edited imports": (
        changed("imports", source="import math, os"),
        FULL,
        "locked cells edited, put back: imports",
    ),
    "spaces": (changed("imports", source=" import  math\n"), FULL, ""),
    "turned": (
        changed("one", cell_type="markdown"),
        FULL,
        "cells of another type, put right: one",
    ),
    "R": (other_kernel(), FULL, "written for another language (r), run as python"),
    "odd metadata": (broken_metadata(), FULL, "1 cell missing: imports"),
    "utf-16": (ACCENTS.encode("utf-16"), FULL, "written as UTF-16, not UTF-8"),
    "latin-1": (ACCENTS.encode("latin-1"), FULL, "not UTF-8, read as Latin-1"),
    "bom": (ACCENTS.encode("utf-8-sig"), FULL, "UTF-8 with a BOM"),
    "v3": (
        nbformat.v3.writes_json(nbformat.v4.downgrade(notebook())),
        FULL,
        "an old notebook (nbformat 3), upgraded",
    ),
    "surrogate": (notebook(one="def one():\n    '\udcff'\n    return 1"), FULL, ""),
}
# student -> what is submitted, and what is said
NOT_GRADED = {
    "truncated": (text_of(notebook())[:700], "it breaks off after 700 B"),
    "empty file": (b"", "the file is empty"),
    "blanks": (b" \n\n", "nothing but blanks"),
    "script": (b"def one():\n    return 1\n", "not a notebook, but some other text"),
    "page": (b"<!DOCTYPE html><html></html>", "it is a web page"),
    "pdf": (b"%PDF-1.7 \xff\xfe", "it is a PDF"),
    "damaged": ('{"cells": [}, "x": 1}', "it is damaged: Expecting value in line 1"),
    "json": (b'{"answers": [1, 2]}', "JSON, but not a notebook"),
    "list": (b"[]", "JSON, but not a notebook"),
    "deep": (b"[" * 100_000, "no JSON that can be read"),
    "v5": ('{"nbformat": 5, "cells": [], "metadata": {}}', "its format is nbformat 5"),
}
# student -> the file's name, its content, and what is noted
RENAMED = {
    "copied": (f"{STEM} (1).ipynb", notebook(), f"{STEM} (1).ipynb taken as"),
    "loud": (f"{STEM.upper()}.IPYNB", notebook(), "taken as"),
    "dashes": (f"{STEM.replace('_', '-')}.ipynb", notebook(), "taken as"),
    "text": (f"{STEM}.ipynb.txt", notebook(), "taken as"),
    "own name": ("homework.ipynb", notebook(), "homework.ipynb taken as"),
    "below": (f"{STEM}/{STEM}.ipynb", notebook(), f"{STEM}/{STEM}.ipynb taken as"),
    "zip": (f"{STEM}.zip", zipped(homework=notebook()), f"{STEM}.zip (homework.ipynb)"),
}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    return submitted_by_all(Course(tmp_path_factory.mktemp("course")))


@pytest.fixture(scope="module")
def outcome(course):
    return course.distlab("grade", STEM, "--jobs", 2)


def submitted_by_all(course):
    for student, (content, *_) in (GRADED | NOT_GRADED).items():
        course.submit(student, content)
    for student, (name, content, _) in RENAMED.items():
        course.submit(student, content, name)
    folder = course.folder / "submitted"
    (folder / f"empty folder/{STEM}").mkdir(parents=True)
    course.submit("other file", b"print(1)", "notes.py")
    course.submit("two files", notebook(one="def one():\n    return 5"), "a.ipynb")
    course.submit("two files", notebook(), "b.ipynb")
    course.submit("same twice", notebook(), f"{STEM} (1).ipynb")
    course.submit("same twice", notebook(), f"{STEM} (2).ipynb")
    course.submit("exact too", notebook())
    course.submit("exact too", b"{}", f"{STEM} (1).ipynb")
    course.submit("bad stem", stem="99_tyni")
    course.submit("two zips", zipped(a=notebook(), b=without("one")), "all.zip")
    course.submit("late", at="2026-01-02 00:00:00 UTC")
    course.submit("no time", at="yesterday, I think")
    secret = course.folder / "secret"
    secret.write_text("secret")
    course.submit("linked file")
    (folder / f"linked file/{STEM}/data.txt").symlink_to(secret)
    (folder / f"linked notebook/{STEM}").mkdir(parents=True)
    link = folder / f"linked notebook/{STEM}/{STEM}.ipynb"
    link.symlink_to(folder / f"fine/{STEM}/{STEM}.ipynb")
    (folder / "linked folder").symlink_to(folder / "fine")
    (folder / f"pipe/{STEM}").mkdir(parents=True)
    os.mkfifo(folder / f"pipe/{STEM}/{STEM}.ipynb")
    course.submit("huge")
    with (folder / f"huge/{STEM}/{STEM}.ipynb").open("r+b") as file:
        file.truncate(60_000_000)
    course.submit("Anna", at="2025-01-01 00:00:00 UTC")
    wrong = notebook(one="def one():\n    return 5")
    course.submit("anna", wrong, at="2025-01-02 00:00:00 UTC")
    course.submit("bob")
    course.submit("bob (1)")
    course.write("submitted/loose.ipynb", notebook())
    return course


@pytest.mark.parametrize("student", GRADED)
def test_what_can_be_graded_is_and_what_was_odd_is_noted(course, outcome, student):
    _, points, note = GRADED[student]
    assert course.scores().get(student) == points, outcome[1]
    assert note in course.note(student)
    assert bool(note) == bool(course.note(student))


@pytest.mark.parametrize("student", NOT_GRADED)
def test_what_is_no_notebook_is_named_with_the_reason(course, outcome, student):
    _, said = NOT_GRADED[student]
    status, printed = outcome
    assert status == 1
    assert f"{student}  submitted/{student}/{STEM}: {STEM}.ipynb: " in printed
    assert said in printed
    assert student not in course.scores() and student not in course.graded()


@pytest.mark.parametrize("student", RENAMED)
def test_a_renamed_notebook_that_is_surely_meant_is_taken(course, outcome, student):
    assert course.scores().get(student) == FULL, outcome[1]
    assert RENAMED[student][2] in course.note(student)


@pytest.mark.parametrize(
    ("student", "said"),
    [
        ("empty folder", "the folder is empty"),
        ("other file", "nothing that could be it; there is notes.py"),
        ("two files", "2 notebooks could be it: a.ipynb, b.ipynb"),
        ("two zips", "2 notebooks could be it"),
        ("bad stem", f"no assignment is named so. If it is {STEM}, rename the folder"),
        ("linked notebook", "and links are not followed"),
        ("linked folder", "and links are not followed"),
        ("pipe", "it is not a file"),
        ("huge", "it has 60 MB, and a notebook may have 50 MB"),
        ("bob", "bob and bob (1) look like one student, and no timestamp.txt says"),
    ],
)
def test_what_cannot_be_told_is_not_graded_and_named(course, outcome, student, said):
    assert student not in course.scores() and student not in course.graded()
    [line] = [x for x in outcome[1].splitlines() if x.startswith(f"  {student}  ")]
    assert said in line


def test_a_late_submission_is_graded_and_marked_late(course, outcome):
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course.folder}/gradebook.db") as gradebook:
        gradebook.update_or_create_assignment(STEM, duedate="2026-01-01")
    _, said = course.distlab("grade", STEM, "--student", "late", "--student", "fine")
    [late] = [line for line in said.splitlines() if "late " in line and "1 d" in line]
    assert "1 d 0 h" in late and course.scores()["late"] == FULL
    [fine] = [line for line in said.splitlines() if "fine" in line]
    assert "1 d" not in fine


def test_of_two_folders_of_a_student_the_later_one_is_taken(course, outcome):
    assert course.scores().get("anna") == 4.0
    assert "Anna" not in course.scores()
    assert "folder anna taken, which was handed in last" in course.note("anna")


def test_a_link_out_of_the_folder_is_not_followed(course, outcome):
    assert course.scores()["linked file"] == FULL
    assert "data.txt left out: a link" in course.note("linked file")
    left = list(course.folder.glob(f"autograded/linked file/{STEM}/*"))
    assert [path.name for path in left] == [f"{STEM}.ipynb"]


def test_notebooks_beside_the_one_that_is_named_right_are_named(course, outcome):
    assert course.scores()["exact too"] == FULL
    note = f"taken: {STEM}.ipynb; not looked at: {STEM} (1).ipynb"
    assert note in course.note("exact too")


def test_the_same_notebook_twice_is_one_submission(course, outcome):
    assert course.scores()["same twice"] == FULL


def test_a_time_that_is_none_is_said(course, outcome):
    assert course.scores()["no time"] == FULL
    assert "timestamp.txt holds no time" in course.note("no time")


def test_a_file_among_the_students_folders_is_pointed_out(outcome):
    assert "submitted/loose.ipynb is a file" in outcome[1]


def test_nothing_of_the_submissions_is_changed(course, outcome, tmp_path):
    again = submitted_by_all(Course(tmp_path))
    for path in (again.folder / "submitted").rglob("*.ipynb"):
        if path.is_file() and not path.is_symlink():
            same = course.folder / path.relative_to(again.folder)
            assert same.read_bytes() == path.read_bytes()
