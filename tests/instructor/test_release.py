"""A variant goes through nbgrader's whole round, and the published exercise returns."""

import json
import shutil

import pytest
from courses import ROOT, empty_gradebook, run_distlab
from soaks import nightly

from distlab.checks.kit.contracts import RULES, contract_in, contract_of

SEED, OTHER = "spring-2031", "spring-2029"
SAME = "3"  # has the contract of SEED in exercise 10
RING, SHARES = "10_ring_all_reduce", "01_why_distribute"
STEMS = [path.parents[1].name for path in sorted(ROOT.glob(f"solutions/*/{RULES}"))]


class Released:
    """A course folder with one of the project's exercises."""

    def __init__(self, folder, stem):
        self.folder, self.stem = folder, stem
        (folder / "exercises").mkdir()
        shutil.copytree(ROOT / "solutions" / stem, folder / "solutions" / stem)
        shutil.copy(ROOT / "nbgrader_config.py", folder)
        shutil.copy(ROOT / "exercises" / "AGENTS.md", folder / "exercises")
        (folder / "gradebook.db").write_bytes(empty_gradebook())
        self.solution = folder / "solutions" / stem / f"{stem}.ipynb"
        self.exercise = folder / "exercises" / stem / f"{stem}.ipynb"

    def run(self, command, *arguments, check=True):
        """Run `distlab COMMAND` on the exercise; return what it printed."""
        return run_distlab(self.folder, command, self.stem, *arguments, check=check)

    def submit(self, student, old="", new=""):
        """Submit the solution as it is now, a text in it replaced by another."""
        place = self.folder / "submitted" / student / self.stem
        place.mkdir(parents=True)
        text = self.solution.read_text().replace(old, new)
        (place / f"{self.stem}.ipynb").write_text(text)

    def contract(self):
        """Return the contract of the solution as it is now."""
        return contract_in(json.loads(self.solution.read_text())["cells"])


@pytest.fixture
def ring(tmp_path):
    """A course with exercise 10."""
    return Released(tmp_path, RING)


def test_a_variant_is_released_made_anew_and_taken_back(ring):
    published = ring.solution.read_text()
    ring.run("release", "--variant", SAME)
    said = ring.run("release", "--variant", SEED)
    assert f"contract of seed {SAME}, too" in said and "lose points" not in said
    assert "Elements are combined by their maximum." in said and SEED in said
    text = ring.exercise.read_text()
    assert "Elements are combined by their maximum." in text
    assert SEED not in text and "torch.maximum" not in text
    edited = ring.solution.read_text().replace("90 minutes", "80 minutes")
    ring.solution.write_text(edited)
    said = ring.run("release", "--variant", OTHER, check=False)
    assert "was edited after its release" in said
    assert ring.solution.read_text() == edited
    ring.submit("ada")
    ring.run("release", "--variant", SEED, "--force")
    assert "80 minutes" not in ring.solution.read_text()
    said = ring.run("release", "--variant", OTHER, check=False)
    assert "1 submission of" in said and "another contract" in said
    ring.solution.write_text(published)
    said = ring.run("grade", check=False)
    assert f"distlab release {RING} --variant {SEED}" in said
    assert f"variant of seed {SEED}" in ring.run("release", "--force")
    said = ring.run("grade", check=False)
    assert "1 of 1 submissions" in said and "this folder has the published" in said
    assert "'' is no seed" in ring.run("release", "--variant", "", check=False)
    committed = ROOT / "exercises" / RING / f"{RING}.ipynb"
    assert ring.solution.read_text() == published
    assert ring.exercise.read_text() == committed.read_text()
    assert SEED not in (ring.folder / ".distlab" / RING / "variant.json").read_text()


def test_a_solution_that_a_rule_does_not_fit_is_left_as_it_is(ring):
    text = ring.solution.read_text().replace("target += comm", "target = target + comm")
    ring.solution.write_text(text)
    said = ring.run("release", "--variant", SEED, check=False)
    assert "which the solution has 0 times" in said
    assert ring.solution.read_text() == text and not ring.exercise.exists()


@pytest.mark.parametrize("stem", [SHARES, RING])
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_of_three_solutions_only_the_variants_own_gets_all_points(stem, tmp_path):
    from nbgrader.api import Gradebook

    course = Released(tmp_path, stem)
    course.submit("published")
    course.submit("changed", "### END SOLUTION", "print(end=str())")
    course.run("release", "--variant", OTHER, "--force")
    course.submit("last-year")
    course.run("release", "--variant", SEED, "--force")
    course.submit("own")
    choices = contract_of(json.loads(course.solution.read_text())["cells"])
    said = course.run("grade", "--feedback")
    course.run("marks", "--to", "marks.csv")
    assert all(each in said for each in choices.sentences(course.contract()))
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as gradebook:
        students = "own", "published", "last-year", "changed"
        scores = [gradebook.find_submission(stem, who).score for who in students]
        most = gradebook.find_assignment(stem).max_score
    assert scores[0] == most and max(scores[1:]) < most
    for who in students[1:]:
        [page] = (tmp_path / "feedback" / who / stem).glob("*.html")
        text = page.read_text()
        assert "keeps to another contract" in text and SEED not in text
        assert "it is not this exercise's" in text
    rows = (tmp_path / "marks.csv").read_text().splitlines()
    notes = {row.partition(",")[0]: row for row in rows}
    another = "answers another contract: "
    assert f"is the published solution that {another}" in notes["published"]
    assert f"is the solution of a variant that {another}" in notes["last-year"]
    assert another in notes["changed"] and f"that {another}" not in notes["changed"]
    assert another not in notes["own"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stem", [*map(nightly, STEMS[:-1]), STEMS[-1]])
def test_a_released_variant_has_a_rubric_and_a_proof(stem, tmp_path):
    course = Released(tmp_path, stem)
    course.run("release", "--variant", SEED)
    choices = contract_of(json.loads(course.solution.read_text())["cells"])
    said = course.run("rubric")
    assert " ".join(choices.sentences(course.contract())) in said
    assert len(said.partition("mistake | points left")[2].splitlines()) > 5
    assert "is proven by" in course.run("prove", "--variant", SEED)
