"""The instructor's table fits a narrow terminal, and breaks no word."""

import io

from rich.console import Console

from distlab.grading.desk.marks import Step
from distlab.grading.desk.summary import Row, show_summary

WORDS = ["Eva", "Maria", "Featherstone", "three", "questions", "seconds", "2 d 3 h"]


def shown(rows, width):
    names = ["step-one-check", "step-two-check", "step-three-check", "questions"]
    steps = [Step("exercise", name, 4) for name in names]
    console = Console(width=width, file=io.StringIO(), force_terminal=True)
    show_summary(console, steps, rows, [])
    return console.file.getvalue()


def row(student, isolation="in a jail"):
    points, notes = [2, 4, 0, None], ("`ring` is not defined",)
    return Row(student, points, 6, "2 d 3 h", notes, isolation, 12.3)


def test_a_narrow_table_wraps_names_at_spaces_and_nothing_else():
    said = shown([row("Eva Maria Featherstone")], 80)
    table = said.partition("Isolation")[0]
    assert all(word in table for word in WORDS) and "…" not in table


def test_isolations_that_differ_are_told_with_whom_they_are_of():
    said = shown([row("anna"), row("ben", "none"), row("carla")], 200)
    assert "in a jail (anna, carla)\n" in said and "none (ben)\n" in said
