"""A learner's copy of the course: updates come in, and no edit is ever lost."""

import json
import random

import pytest

from distlab.commands.copy import update
from distlab.errors import DistlabError
from distlab.files import course_files


def notebook(*sources, outputs=()):
    return json.dumps(
        {
            "cells": [
                {"cell_type": "code", "source": [s], "outputs": list(outputs)}
                for s in sources
            ]
        }
    )


@pytest.fixture
def course(tmp_path):
    """Return a function that writes a version of a course, and returns its files."""

    def course(version, stems=("00_start", "10_ring")):
        folder = tmp_path / f"v{version}"
        folder.mkdir()
        for stem in stems:
            (folder / f"{stem}.ipynb").write_text(notebook(stem, f"v{version}"))
        return {f"lessons/{stem}.ipynb": folder / f"{stem}.ipynb" for stem in stems}

    return course


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "mine"


def test_the_project_has_a_course():
    places = course_files()
    assert "lessons/10_ring_all_reduce.ipynb" in places
    assert "exercises/10_ring_all_reduce/10_ring_all_reduce.ipynb" in places
    assert all(path.is_file() for path in places.values())


def test_what_is_missing_is_copied_and_a_second_start_changes_nothing(course, mine):
    first = course(1)
    assert update(mine, first).copied == list(first)
    before = {p: p.stat().st_mtime_ns for p in mine.rglob("*") if p.is_file()}
    done = update(mine, first)
    assert not (done.copied or done.updated or done.kept)
    assert before == {p: p.stat().st_mtime_ns for p in mine.rglob("*") if p.is_file()}


def test_a_notebook_that_was_only_run_is_updated(course, mine):
    update(mine, course(1))
    ran = mine / "lessons" / "10_ring.ipynb"
    ran.write_text(notebook("10_ring", "v1", outputs=[{"text": "a picture"}]))
    assert update(mine, course(2)).updated == [*course_places()]
    assert "v2" in ran.read_text()


def course_places():
    return "lessons/00_start.ipynb", "lessons/10_ring.ipynb"


def test_an_edited_notebook_stays_and_the_new_version_is_offered_once(course, mine):
    update(mine, course(1))
    edited = mine / "lessons" / "10_ring.ipynb"
    edited.write_text(notebook("10_ring", "my answer"))
    second = course(2)
    assert update(mine, second).kept == {"lessons/10_ring.ipynb": "10_ring.new.ipynb"}
    assert "my answer" in edited.read_text()
    assert "v2" in (mine / "lessons" / "10_ring.new.ipynb").read_text()
    assert not update(mine, second).kept


def test_an_offer_that_was_edited_stays_too(course, mine):
    update(mine, course(1))
    folder = mine / "lessons"
    (folder / "10_ring.ipynb").write_text(notebook("one"))
    update(mine, course(2))
    (folder / "10_ring.new.ipynb").write_text(notebook("two"))
    done = update(mine, course(3))
    assert done.kept == {"lessons/10_ring.ipynb": "10_ring.new2.ipynb"}
    assert {"one", "two"} < written(mine)


def written(folder):
    """Return what stands in any cell of any notebook of a learner."""
    found = set()
    for path in folder.glob("lessons/*.ipynb"):
        try:
            cells = json.loads(path.read_text())["cells"]
            found |= {"".join(cell["source"]) for cell in cells}
        except ValueError:
            found.add(path.read_text())
    return found


def test_nothing_that_was_written_is_lost_in_random_edits_and_versions(course, mine):
    rng, texts = random.Random(1), set()
    for version in range(50):
        update(mine, course(version))
        for path in rng.sample(sorted(mine.glob("lessons/*.ipynb")), 1):
            text = f"mine {version}"
            kind = rng.choice(["cell", "all", "damaged", "none", "gone"])
            if kind == "cell":
                cells = json.loads(notebook(*written_in(path), text))
                path.write_text(json.dumps(cells))
            elif kind == "all":
                texts -= written_in(path)
                path.write_text(notebook(text))
            elif kind == "damaged":
                texts -= written_in(path)
                path.write_text(text)
            elif kind == "gone":
                texts -= written_in(path)
                path.unlink()
            if kind in ("cell", "all", "damaged"):
                texts.add(text)
        update(mine, course(f"{version}b"))
        assert texts <= written(mine)
    assert len(texts) > 5


def written_in(path):
    try:
        cells = json.loads(path.read_text())["cells"]
        return {"".join(cell["source"]) for cell in cells}
    except ValueError:
        return {path.read_text()}


def test_a_lesson_that_left_the_course_stays_and_is_told_once(course, mine):
    update(mine, course(1))
    edited = mine / "lessons" / "10_ring.ipynb"
    edited.write_text(notebook("10_ring", "my answer"))
    update(mine, course(2))  # its offer is no lesson that left
    renamed = course(3, ("00_start", "10_rings"))
    done = update(mine, renamed)
    assert done.left == ["lessons/10_ring.ipynb"]
    assert done.copied == ["lessons/10_rings.ipynb"]
    assert "my answer" in edited.read_text() and not update(mine, renamed).left
    [(place, beside)] = update(mine, course(4)).kept.items()
    assert (place, beside) == ("lessons/10_ring.ipynb", "10_ring.new.ipynb")


def test_a_folder_that_cannot_be_written_is_named(course, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DistlabError, match=r"--folder"):
        update(tmp_path / "file", course(1))
