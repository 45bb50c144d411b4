"""What the instructor's table says of a step that was not judged."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from distlab.grading.desk.notes import notes_of


def marked(*said):
    """Return a notebook with one graded cell, which shows this."""
    outputs = [new_output("stream", text=words) for words in said]
    told = {"nbgrader": {"grade_id": "one-check", "grade": True}}
    return new_notebook(cells=[new_code_cell(metadata=told, outputs=outputs)])


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("`ring` is not defined", "`ring` is not defined"),
        ("{0.__class__} and {}", "{0.__class__} and {}"),
        ("\x1b[31mred\x1b[0m\x07", "[31mred[0m"),
        ("a" * 200, "a" * 160 + "..."),
    ],
)
def test_a_note_has_the_reason_and_nothing_that_could_harm_a_terminal(why, told):
    [note] = notes_of(marked(f"✗ {why}, so this step could not be judged.\n"))
    assert note == f"one-check could not be judged: {told}"


def test_where_only_the_log_knows_why_the_note_says_so():
    said = "✗ This step could not be judged; your instructor can see why.\n"
    assert notes_of(marked(said)) == ["one-check could not be judged, see the log"]


def test_a_verdict_is_no_note():
    assert not notes_of(marked("✓ 2 ranks: pass\n✗ 3 ranks: fail\n", "3 of 4 points\n"))
