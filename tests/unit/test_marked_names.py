"""What a grade cell needs, and who is asked for it."""

from distlab.grading.marking.names import Known, needed
from distlab.grading.marking.outputs import inert, inert_text
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


def test_hidden_regions_are_cut_out():
    source = "a\n### BEGIN HIDDEN TESTS\nb\n### END HIDDEN TESTS\nc"
    assert visible(source, "BEGIN HIDDEN TESTS", "END HIDDEN TESTS") == "a\nc"


def test_what_a_page_would_run_becomes_text():
    page = "<p onclick='x()'>a</p><script>x()</script><svg onload=x()></svg>"
    kept = inert({"text/html": page, "application/javascript": "x()"})
    assert kept == {"text/html": "<p>a</p>"}
    assert inert({"image/png": '"><script>'}) == {}
    assert inert({"image/png": "aGk=\n", "text/html": page}) == {"image/png": "aGk=\n"}
    assert inert_text("[a](JavaScript:x())") == "[a](JavaScript :x())"
    assert inert_text("a < b <b>c</b> <https://x.org>") == (
        "a < b &lt;b>c&lt;/b> <https://x.org>"
    )
