"""What `distlab prove` says of an exercise that is not right yet."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from distlab.checks.kit.answer_variants import concerned
from distlab.checks.kit.check_proof import prove
from distlab.checks.kit.mutants import mutants, survivors
from distlab.errors import DistlabError

IMPORTS = """from distlab.checks import grade
from distlab.checks import start_here as checks"""
SOLVED = """def take_turns(comm, speak):
    ### BEGIN SOLUTION
    for _ in range(1):
        if comm.rank:
            comm.recv_object(comm.rank - 1)
        speak()
        if comm.rank < comm.world_size - 1:
            comm.send_object(None, comm.rank + 1)
    ### END SOLUTION"""
GRADED = """hidden = []
### BEGIN HIDDEN TESTS
hidden = [(3,)]
### END HIDDEN TESTS
grade(4, checks.speak_in_order, take_turns, [(2,)], hidden)"""
VARIANT = '"""About."""\n\nPOINTS = {}\nHINT = "{}"\n{}'


@pytest.fixture
def exercise(tmp_path, monkeypatch):
    """Return what writes an exercise of one step, and proves it."""

    def written(solved=SOLVED, graded=GRADED, variant=None, more="", **how):
        roles = {"locked": IMPORTS, "solution": solved, "grade": graded}
        cells = [new_markdown_cell("# Words, not Python", metadata=_about("locked"))]
        cells += [new_code_cell(each, metadata=_about(r)) for r, each in roles.items()]
        cells += [new_code_cell(more, metadata=_about("grade"))] if more else []
        folder = tmp_path / "99_total"
        (folder / "variants").mkdir(parents=True, exist_ok=True)
        nbformat.write(new_notebook(cells=cells), folder / "99_total.ipynb")
        if variant:
            (folder / "variants" / "wrong_one.py").write_text(variant)
        return prove(folder, **how)

    return written


def _about(role):
    about = {"grade_id": role, role: True, "points": 4, "schema_version": 3}
    return {"nbgrader": about}


def check_says(proof, words):
    assert any(words in fault for fault in proof.faults), proof.faults


def test_a_cell_that_cannot_run_is_named_with_its_line(exercise):
    proof = exercise(solved=SOLVED + "\n\nhalf = 1 / 0")
    check_says(proof, "solution: cell solution, line 11: ZeroDivisionError")


def test_a_grade_cell_that_gives_no_points_is_named(exercise):
    proof = exercise(graded="points = " + GRADED.splitlines()[-1].replace("hidden", ""))
    check_says(proof, "cell grade must end with grade(...)")


def test_hidden_cases_without_a_default_break_what_is_released(exercise):
    proof = exercise(graded=GRADED.removeprefix("hidden = []\n"))
    check_says(proof, "stubs: cell grade, line 2: NameError: name 'hidden'")


def test_a_case_that_does_not_fit_the_checks_title_is_named(exercise):
    proof = exercise(graded="grade(4, checks.speak_in_order, take_turns, [()])")
    check_says(proof, "IndexError")


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("def take_turn(comm, speak):\n    speak()", "takes the place of nothing"),
        ('REPLACE = {"if comm.rank:": "if comm.rank"}', "line 3, is no Python"),
    ],
)
def test_a_variant_that_cannot_be_what_it_says_is_refused(exercise, rest, words):
    with pytest.raises(DistlabError, match=words):
        exercise(variant=VARIANT.format(0, "x", rest))


def test_too_few_variants_prove_nothing(exercise):
    check_says(exercise(), "0 right variants and 0 wrong ones")


def test_a_step_is_concerned_by_what_it_uses_through_other_cells():
    cells = {
        "imports": "import torch",
        "sum": "def add(a, b):\n    return a + b",
        "sum-check": "grade(1, checks.add, add)",
        "mean": "class Mean:\n    def of(self, a, b):\n        return add(a, b) / 2",
        "mean-check": "grade(1, checks.mean, Mean)",
        "least": "def least(a, b):\n    return min(a, b)",
        "least-check": "grade(1, checks.least, least)",
    }
    both = {"mean", "mean-check"}
    assert concerned(cells, {"mean"}) == both
    assert concerned(cells, {"sum"}) == {"sum", "sum-check", *both}
    assert concerned(cells, {"imports"}) == {"imports"}


def test_a_wrong_answer_is_graded_until_it_has_met_its_hint(exercise):
    """Then points of later steps are open; those lost already are not."""
    again = GRADED.replace("[(2,)]", "[(3,)]")
    mute = "def take_turns(comm, speak):\n    pass"
    for points, proven in ((0, True), (4, True), (8, False)):
        variant = VARIANT.format(points, "How often does the rank", mute)
        proof = exercise(more=again, variant=variant, every_step=False)
        row = proof.rows[-1]
        assert (row.points, row.open_points, not row.fault) == (0, 4, proven), row.fault
    assert exercise(more=again, variant=variant).rows[-1].open_points == 0


def test_of_wrong_answers_with_one_hint_the_default_proof_grades_one(
    exercise, tmp_path
):
    mute = "def take_turns(comm, speak):\n    pass"
    hints = {"two": "How often does the rank", "three": "another"}
    (tmp_path / "99_total" / "variants").mkdir(parents=True)
    for name, hint in hints.items():
        path = tmp_path / "99_total" / "variants" / f"wrong_{name}.py"
        path.write_text(VARIANT.format(0, hint, mute))
    variant = VARIANT.format(0, hints["two"], mute)
    all_of_them = {row.name for row in exercise(variant=variant).rows}
    fewer = {row.name for row in exercise(variant=variant, every_step=False).rows}
    assert all_of_them - fewer == {"wrong_two"}


PART = """def part(comm, tensor, n=2):
    ### BEGIN SOLUTION
    total = tensor.clone()
    if n > 1 and comm.rank < n - 1:
        comm.send(total, dst=comm.rank + 1)
    total += 1
    return total
    ### END SOLUTION"""


def test_each_kind_of_change_is_made_once_and_only_in_the_solution():
    found = {(each.before, each.after) for each in mutants({"part": PART})}
    head = "if n > 1 and comm.rank < n - 1"
    assert {
        ("total = tensor.clone()", "total = tensor"),
        (head, "if n >= 1 and comm.rank < n - 1"),
        (head, "if n > 1 or comm.rank < n - 1"),
        (head, "if n > 1 and 0 < n - 1"),
        (head, "if n > 1 and comm.rank < n - 2"),
        (head, "if not (n > 1 and comm.rank < n - 1)"),
        ("comm.send(total, dst=comm.rank + 1)", "comm.send(total, src=comm.rank + 1)"),
        ("comm.send(total, dst=comm.rank + 1)", "comm.send(total)"),
        ("comm.send(total, dst=comm.rank + 1)", "(dropped)"),
        ("total += 1", "(dropped)"),
        ("total += 1", "total += 2"),
    } <= found
    assert not [pair for pair in found if "n=" in "".join(pair)]  # the head is given


@pytest.fixture
def survive(exercise, tmp_path):
    """Return what writes an exercise, and returns the mutants that survive it."""

    def survive(cases, equivalent=""):
        exercise(graded=GRADED.replace("[(2,)]", cases))
        listed = tmp_path / "99_total" / "variants" / "equivalent_mutants.toml"
        listed.write_text(equivalent)
        return [(each.before, each.after) for each in survivors(listed.parents[1])]

    return survive


LAST = "if comm.rank < comm.world_size - 1", "if comm.rank < comm.world_size - 2"
LISTED = """[[mutant]]
cell = "solution"
before = "{}"
after = "{}"
why = "it is only a test"
"""


def test_a_mutant_survives_if_no_public_case_notices_it(survive):
    assert LAST in survive("[(1,)]")  # a hidden case would
    assert survive("[(1,), (2,), (3,)]") == []


def test_a_listed_mutant_is_left_out_and_one_that_is_none_is_refused(survive):
    assert LAST not in survive("[(1,)]", LISTED.format(*LAST))
    with pytest.raises(DistlabError, match="has no mutant"):
        survive("[(1,)]", LISTED.format("pass", "(dropped)"))
