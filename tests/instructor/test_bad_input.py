"""What is wrong with a submission is named, and all others are graded."""

import json
import os

import nbformat
import pytest
from courses import STEM, TWO, cell, exercise

from distlab.instructor.notebook_choice import choose
from distlab.instructor.notebook_reader import Unreadable, notebook_from
from distlab.instructor.skeleton import filled
from distlab.instructor.submissions import find_submissions

NAMES = [c.id for c in exercise().cells]


def made(*order, **sources):
    """Return a submission with these cells in this order, all of them if none."""
    notebook = exercise()
    by_name = {each.id: each for each in notebook.cells}
    for name, source in sources.items():
        by_name[name.replace("_", "-")].source = source
    notebook.cells = [by_name[name] for name in order or NAMES]
    return notebook


def with_cells(*added, at=1):
    notebook = made()
    notebook.cells[at:at] = added
    return notebook


def changed(name, **fields):
    notebook = made()
    next(each for each in notebook.cells if each.id == name).update(fields)
    return notebook


def odd_metadata():
    notebook = json.loads(nbformat.writes(made()))
    notebook["cells"][0]["metadata"] = {"nbgrader": None}
    notebook["cells"][1]["metadata"]["nbgrader"] = "locked"
    notebook["cells"][3]["metadata"]["nbgrader"] |= {"points": 900, "grade": False}
    notebook["cells"] += [{"cell_type": "poem", "source": 5}, "no cell"]
    notebook["metadata"] = []
    return notebook


def bare():
    notebook = made()
    for each in notebook.cells:
        each.metadata = {}
    return notebook


def in_r():
    notebook = made()
    notebook.metadata.kernelspec = {"name": "ir", "display_name": "R", "language": "R"}
    return notebook


FILLED = {
    "nothing odd": (made(), ""),
    "no check": (made(*NAMES[:-1]), "missing, put back: two-check"),
    "no imports": (made(*NAMES[2:]), "missing, put back: imports"),
    "reordered": (made(*NAMES[::-1]), "cells in another order"),
    "twice": (
        with_cells(cell("two", "def all_reduce(): pass", solution=True)),
        "two is there 2 times, the last one counts",
    ),
    "a stranger": (with_cells(cell("x", "9.0", points=9)), "not cells of this"),
    "an edited check": (made(two_check="4.0"), "edited, put back: two-check"),
    "a check turned to text": (changed("two-check", cell_type="markdown"), ""),
    "odd metadata": (odd_metadata(), "missing, put back: imports"),
    "no metadata": (bare(), "recognized by their ids"),
    "another kernel": (in_r(), "another language (r), run as Python"),
}


@pytest.mark.parametrize("name", FILLED)
def test_the_instructors_notebook_with_the_answers_is_what_is_graded(name):
    submitted, said = FILLED[name]
    notebook, notes = filled(submitted, exercise())
    known = [c for c in notebook.cells if "nbgrader" in c.metadata]
    right = [c for c in exercise().cells if "nbgrader" in c.metadata]
    assert [(c.metadata, c.source) for c in known] == [
        (c.metadata, c.source) for c in right
    ]
    assert said in "; ".join(notes) and bool(said) == bool(notes)


def test_an_answer_that_is_missing_is_not_the_instructors():
    notebook, notes = filled(made("imports", "one", "one-check"), exercise())
    assert next(c for c in notebook.cells if c.id == "two").source == ""
    assert notes == ["missing, put back: two, two-check"]


def test_cells_of_the_learners_own_stay_behind_the_cell_that_they_follow():
    own = nbformat.v4.new_code_cell("helper = 1")
    notebook, _ = filled(with_cells(own, at=3), exercise())
    sources = [c.source for c in notebook.cells]
    assert sources.index("helper = 1") == sources.index(made().cells[2].source) + 1
    assert "print('a look at', split(torch.arange(4), 2))" in sources


def test_of_an_altered_text_only_its_other_lines_are_shown_and_marked():
    source = exercise()
    goal = nbformat.v4.new_markdown_cell(
        "## Goal\n\nEach rank once.\n\n- Cost", id="goal"
    )
    source.cells.insert(1, goal)
    altered = goal.source.replace("once", "twice")
    for name in ("goal", "made-anew"):  # known by its id, or by its heading
        notebook = made()
        other = nbformat.v4.new_markdown_cell(altered, id=name)
        notebook.cells.insert(1, other)
        texts = [c.source for c in filled(notebook, source)[0].cells]
        said = texts[texts.index(goal.source) + 1]
        assert "it is not this exercise's:\n\n> Each rank twice." in said
        assert "Cost" not in said and altered not in texts


WRITTEN = json.dumps(made(two=TWO + "  # é"), ensure_ascii=False)
UNREADABLE = {
    "cut off": (WRITTEN[:700].encode(), "it breaks off after 700 B"),
    "empty": (b"", "the file is empty"),
    "utf-16": (WRITTEN.encode("utf-16"), "it is not UTF-8 text"),
    "latin-1": (WRITTEN.encode("latin-1"), "it is not UTF-8 text"),
    "a script": (b"def one():\n    return 1\n", "not a notebook, but some other text"),
    "a page": (b"<!DOCTYPE html><html></html>", "it is a web page"),
    "a pdf": (b"%PDF-1.7 \xff\xfe", "it is a PDF"),
    "damaged": (b'{"cells": [}, "x": 1}', "it is damaged: Expecting value in line 1"),
    "json": (b'{"answers": [1, 2]}', "JSON, but not a notebook"),
    "deep": (b"[" * 100_000, "no JSON that can be read"),
    "v5": (b'{"nbformat": 5, "cells": [], "metadata": {}}', "its format is nbformat 5"),
}


def test_an_old_notebook_is_upgraded_and_a_mark_of_windows_editors_is_no_fault():
    old = nbformat.v3.writes_json(nbformat.v4.downgrade(made())).encode()
    notebook, notes = notebook_from(old)
    assert notes == ["an old notebook (nbformat 3), upgraded"]
    assert len(notebook.cells) == len(NAMES)
    notebook, notes = notebook_from(WRITTEN.encode("utf-8-sig"))
    assert (len(notebook.cells), notes) == (len(NAMES), [])


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_notebook_is_named(name):
    data, said = UNREADABLE[name]
    with pytest.raises(Unreadable) as caught:
        notebook_from(data)
    assert said in str(caught.value)


def test_a_renamed_notebook_that_is_surely_meant_is_taken(tmp_path):
    (tmp_path / "homework.ipynb").write_text(WRITTEN)
    _, notes = choose(tmp_path, STEM, {"two-check"})
    assert notes == [f"homework.ipynb taken as {STEM}.ipynb"]
    (tmp_path / "other.ipynb").write_text(nbformat.writes(made(two="x")))
    with pytest.raises(Unreadable, match="2 notebooks could be it"):
        choose(tmp_path, STEM, {"two-check"})


def test_links_and_pipes_are_not_opened(tmp_path):
    (tmp_path / "secret.ipynb").write_text(WRITTEN)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / f"{STEM}.ipynb").symlink_to(tmp_path / "secret.ipynb")
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b" / f"{STEM}.ipynb")
    for name, said in (("a", "links are not followed"), ("b", "it is not a file")):
        with pytest.raises(Unreadable, match=said):
            choose(tmp_path / name, STEM, set())


def test_of_two_folders_of_one_student_the_later_counts_or_none(tmp_path):
    for name in ("Ann", "ann (1)", "bob", "bob (1)"):
        (tmp_path / name / STEM).mkdir(parents=True)
    for name, day in (("Ann", 1), ("ann (1)", 2)):
        stamp = tmp_path / name / STEM / "timestamp.txt"
        stamp.write_text(f"2026-01-0{day} 00:00:00 UTC")
    found = find_submissions(tmp_path, STEM, [STEM], {"ann"})
    assert [(one.student, one.folder.parent.name) for one in found.submissions] == [
        ("ann", "ann (1)")
    ]
    assert "look like one student" in found.troubles[0].what


@pytest.mark.timeout(200)
def test_in_one_run_each_is_named_and_the_rest_graded(course):
    course.submit("fine", late="")
    course.submit("reordered", made(*NAMES[::-1]))
    course.submit("latin", WRITTEN.encode("latin-1"))
    course.submit("pdf", b"%PDF-1.7")
    course.submit("no time").joinpath("timestamp.txt").write_text("yesterday")
    course.submit("late").joinpath("timestamp.txt").write_text("2031-01-02 00:00 UTC")
    (course.folder / "submitted" / "empty" / STEM).mkdir(parents=True)
    (course.folder / "submitted" / "loose.ipynb").write_text(WRITTEN)
    due = ["--duedate", "2031-01-01 00:00 UTC"]
    course.run("nbgrader", "db", "assignment", "add", STEM, *due)
    said = " ".join(course.grade(check=False).split())
    for student in ("fine", "reordered", "no time", "late"):
        assert course.points(student) == (3.0, 4.0)
    assert "reordered cells in another order" in said
    assert "it is not UTF-8 text" in said
    assert "no time timestamp.txt holds no time" in said
    assert "1 d 0 h" in said
    assert "3 submissions could not be graded" in said and "it is a PDF" in said
    assert "the folder is empty" in said and "submitted/loose.ipynb is a file" in said
