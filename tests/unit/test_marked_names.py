"""What a grade cell needs, and who is asked for it."""

import time

import pytest
from nbformat import from_dict

from distlab.grading.marking.names import Known, needed
from distlab.grading.marking.outputs import inert, inert_text, plain
from distlab.grading.marking.paper import visible


def test_names_that_a_cell_makes_or_python_has_are_not_needed():
    source = """
import math
sizes = [n for n in range(3)]
def again(x): return x + step + math.pi
class Local: field = first
grade(3, [Check(answer, size, *more) for size in sizes], key=lambda y: y)
"""
    names = ["step", "first", "grade", "Check", "answer", "more"]
    assert sorted(needed(source)) == sorted(names)


def test_a_name_that_is_used_and_then_made_counts_as_made():
    assert needed("sizes += 1\nprint(sizes)") == []


def test_literals_and_imports_of_locked_cells_are_known():
    known = Known()
    known.learn("A, B = 0.2, 'x'\nC = [1, (2, 3)]\nD = make()\nA = -1")
    known.learn("import math as m, os\nfrom distlab.links import Link as L")
    known.learn("%matplotlib inline")
    assert known.constants == {"A": -1, "B": "x", "C": [1, (2, 3)]}
    assert known.imports["m"] == ("math", None)
    assert known.imports["L"] == ("distlab.links", "Link")


def test_a_constant_that_becomes_something_else_is_none():
    known = Known()
    known.learn("A = 1")
    known.learn("A = make()")
    assert known.constants == {}


@pytest.mark.parametrize("kind", ["text/html", "image/svg+xml"])
@pytest.mark.parametrize(
    "piece",
    ["<script ", "<script></script", "<style>", "<div ", "<", "<p>", "&", '<g x="1" '],
)
def test_pages_and_drawings_of_eight_megabytes_are_done_with_at_once(kind, piece):
    before = time.process_time()
    for most in (100_000, 8_000_000):
        inert({kind: piece * (most // len(piece))})
    assert time.process_time() - before < 15


def test_of_very_many_pages_the_first_are_kept():
    page = {"text/html": "<p>" + "a" * 90_000, "text/plain": "a"}
    shown = {"output_type": "display_data", "metadata": {}}
    kept = plain([from_dict(shown | {"data": dict(page)}) for _ in range(9)], 10**6)
    assert ["text/html" in each.data for each in kept] == [True] * 3 + [False] * 6
    assert all(each.data["text/plain"] == "a" for each in kept)


def test_hidden_regions_are_cut_out():
    source = "a\n### BEGIN HIDDEN TESTS\nb\n### END HIDDEN TESTS\nc"
    assert visible(source, "BEGIN HIDDEN TESTS", "END HIDDEN TESTS") == "a\nc"


def test_what_a_page_would_run_becomes_text():
    page = "<p onclick='x()'>a</p><script>x()</script><svg onload=x()></svg>"
    kept = inert({"text/html": page, "application/javascript": "x()"})
    assert kept == {"text/html": "<p>a</p>"}
    page = "a<STYLE>x</style >b<script>y</SCRIPT>c<styles>d<script>e</style>f"
    assert inert({"text/html": page}) == {"text/html": "abcd"}
    assert inert({"image/png": '"><script>'}) == {}
    assert inert({"image/png": "aGk=\n", "text/html": page}) == {"image/png": "aGk=\n"}
    assert inert_text("[a](JavaScript:x())") == "[a](JavaScript :x())"
    assert inert_text("a < b <b>c</b> <https://x.org>") == (
        "a < b &lt;b>c&lt;/b> <https://x.org>"
    )
