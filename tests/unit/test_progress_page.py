"""The page of progress: what it shows, how wide it is, and what it says is next."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from distlab import progress
from distlab.learner.progress.page import Page
from distlab.learner.progress.progress_summary import progress_summary
from distlab.learner.progress.record import Record

ROOT = Path(__file__).parents[2]
RING = "10_ring_all_reduce"
STEPS = ("step-one-check", "step-two-check", "step-three-check")
CELLS = ["imports", "first-run", "guess-naive"]


@pytest.fixture
def stands(tmp_path):
    """Return a function that gives the page for a record."""

    def given(lessons=(), exercises=()):
        path = tmp_path / "progress.json"
        held = {"lessons": dict(lessons), "exercises": dict(exercises)}
        path.write_text(json.dumps(held))
        return Page(progress_summary(Record(path)))

    return given


def printed(page, width):
    paper = io.StringIO()
    Console(file=paper, width=width, color_system=None).print(page)
    return paper.getvalue()


def read_whole(stem):
    """Return a record of a lesson whose cells all ran."""
    from distlab.learner.progress.progress_summary import find_course

    lessons, _ = find_course({"lessons": {}, "exercises": {}})
    return {"cells": list(lessons[stem].cells), "last": "2026-03-01T10:00:00"}


def cells_of(stem):
    """Return how many code cells a lesson has."""
    cells = json.loads((ROOT / "lessons" / f"{stem}.ipynb").read_text())["cells"]
    return sum(c["cell_type"] == "code" and bool(c["source"]) for c in cells)


def solved(*best):
    of = (3, 4, 3)
    steps = {
        name: {"of": of[n], "best": points, "last": points, "attempts": 1}
        for n, (name, points) in enumerate(zip(STEPS, best, strict=False))
    }
    return {"steps": steps, "last": "2026-03-02T10:00:00"}


def test_who_has_done_nothing_begins_with_the_first_lesson(stands):
    page = stands()
    assert repr(page).splitlines()[-1] == "Next: lesson 00, Start here."
    assert f"0/{cells_of('00_start_here')}" in repr(page) and "0/10" in repr(page)


def test_counts_are_of_what_the_notebooks_have(stands):
    guesses = {"How many?": {"said": "7 MB", "outcome": "near"}}
    lesson = {"cells": [*CELLS, "a-cell-of-my-own"], "predictions": guesses}
    page = stands({RING: lesson | {"last": "2026-03-01T10:00:00"}})
    (line,) = [line for line in repr(page).splitlines() if "Ring all-reduce  " in line]
    cells = cells_of(RING)
    assert f"3/{cells}" in line and "2026-03-01" in line
    assert re.search(r"1/\d+, 1 close", line)
    assert repr(page).splitlines()[-1] == (
        f"Next: go on with lesson 10, Ring all-reduce: {cells - 3} cells are left."
    )


def test_a_lesson_that_is_read_leads_to_its_exercise_and_that_to_the_next(stands):
    whole = {RING: read_whole(RING)}
    last = repr(stands(whole)).splitlines()[-1]
    assert last == "Next: exercise 10, Ring all-reduce, step 1 (0 of 4 points)."
    last = repr(stands(whole, {RING: solved(4, 0)})).splitlines()[-1]
    assert last == "Next: exercise 10, Ring all-reduce, step 2 (0 of 3 points)."
    last = repr(stands(whole, {RING: solved(4, 3, 3)})).splitlines()[-1]
    assert last == "Next: lesson 00, Start here."


def test_who_has_tried_often_without_a_hint_is_told_of_hints(stands):
    tried = solved(0)
    tried["steps"]["step-one-check"]["attempts"] = 3
    assert "hint() says more" in repr(stands({RING: read_whole(RING)}, {RING: tried}))


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_every_lesson_is_there(stands, width):
    words = printed(stands({RING: read_whole(RING)}, {RING: solved(3, 2, 0)}), width)
    assert max(map(len, words.splitlines())) <= width
    assert all(number in words for number in ("00", "01", "10", "12"))
    assert "5/10" in words and "Next: exercise" in words


def test_the_html_page_has_the_same_and_asks_nothing_of_the_network(stands):
    page = stands({RING: read_whole(RING)}, {RING: solved(3, 2, 0)}).html()
    assert (
        f"{cells_of(RING)}/{cells_of(RING)}" in page
        and "5/10" in page
        and "Next: exercise 10" in page
    )
    assert "best 2, last 2 of 3 points, 1 tries" in page
    assert not re.findall(r"(?:src|href)=|https?:|@import", page)


def test_a_notebook_shows_the_page_once(stands, monkeypatch):
    page = stands({})
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "Next: " in repr(page)  # and rich has not displayed it instead


def test_a_lesson_that_nobody_knows_is_shown_as_it_was_recorded(stands):
    entry = {"cells": ["<b>one</b>"], "path": "/gone/my_own.ipynb"}
    page = stands({"my_<own>": entry})
    assert "my_<own>" in repr(page) and "my_&lt;own&gt;" in page.html()


def test_a_note_is_said_before_what_comes_next(tmp_path):
    (tmp_path / "progress.json").write_text("{")
    lines = repr(
        Page(progress_summary(Record(tmp_path / "progress.json")))
    ).splitlines()
    assert any("damaged" in line for line in lines[:-1]) and "Next" in lines[-1]


def test_progress_is_a_function_of_distlab(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTLAB_HOME", str(tmp_path))
    assert "Next: lesson 00" in progress()._repr_mimebundle_()["text/plain"]
    assert "distlab-progress" in progress()._repr_mimebundle_()["text/html"]
