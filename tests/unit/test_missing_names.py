"""What is said of a name that a submission should have defined."""

import time

import pytest
from nbformat.v4 import new_code_cell, new_output

from distlab.grading.marking.missing import why_missing


def failed(source, ename="ValueError", evalue="no", trace=()):
    error = new_output("error", ename=ename, evalue=evalue, traceback=list(trace))
    return new_code_cell(source, outputs=[error])


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\ndef ring(comm):",
        " async def ring(comm",
        "class ring:",
        "ring = 3",
        "a, ring = 1, 2",
        "ring: object = None",
        "from mine import other, ring",
    ],
)
def test_a_cell_that_defines_a_name_is_found_though_it_is_no_python(source):
    said = why_missing("ring", [failed(source + "\n((")])
    assert said == "the cell that defines `ring` ended with ValueError: no"


def test_a_cell_that_only_uses_a_name_is_not_to_blame():
    cells = [failed("def ring(: pass"), failed("ring(comm, x=3)", "NameError")]
    assert "ValueError" in why_missing("ring", cells)


def test_where_no_cell_defines_it_the_last_that_failed_is_named():
    cells = [failed("\n this is prose", "SyntaxError", "invalid (1.py, line 2)")]
    said = "`ring` is not defined, and the cell `this is prose` ended with "
    assert why_missing("ring", cells) == said + "SyntaxError: invalid (line 2)"
    assert why_missing("ring", [new_code_cell("1")]) == "`ring` is not defined"


def test_what_a_cell_says_is_on_one_line_and_short_and_can_be_shown():
    said = why_missing("ring", [failed("ring = 1", evalue="a\n\x1b[31m" + "b" * 10**6)])
    assert said.startswith(
        "the cell that defines `ring` ended with ValueError: a [31mb"
    )
    assert len(said) < 300 and said.isprintable()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", ["a,", "ring,", "import ", "\n", " ", "from a ", " ("])
def test_no_source_keeps_it_busy(part):
    many = part * 10**5
    begun = time.monotonic()
    why_missing("ring", [failed(many + "ring = 1", evalue=many, trace=[many])])
    assert time.monotonic() - begun < 5
