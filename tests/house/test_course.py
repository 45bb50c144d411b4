"""What instructors plan with: rubrics as the checks have them, minutes that add up."""

import json
import re
from pathlib import Path

from distlab.commands.lessons import find_exercises
from distlab.instructor.rubric import page

ROOT = Path(__file__).parents[2]


def test_the_rubrics_are_those_of_the_checks():
    assert (ROOT / "docs" / "rubrics.md").read_text("utf-8") == page(find_exercises([]))


def test_a_syllabus_adds_up_and_puts_no_lesson_before_what_it_needs():
    text = (ROOT / "docs" / "course.md").read_text("utf-8")
    syllabi = re.split(r"\n### ", text)[1:4]
    lessons, needs, exercises = _lesson_minutes(), _needs(), _exercise_minutes()
    for syllabus in syllabi:
        taught = set()
        rows = re.findall(
            r"^\d+ \| (.+) \| (\d+) \| (.+) \| (\d+) \| (.+)$", syllabus, re.M
        )
        assert len(rows) in (6, 12)
        for plan, minutes, assigned, exercise_minutes, hours in rows:
            plan, assigned = plan.split(", "), assigned.split(", ")
            for each in plan:
                assert needs[each] <= taught, each
                taught.add(each)
            assert set(assigned) <= taught
            assert sum(lessons[each] for each in plan) == int(minutes), plan
            assert sum(exercises[each] for each in assigned) == int(exercise_minutes)
            assert float(hours) == round((int(minutes) + int(exercise_minutes)) / 60, 1)
    assert _taught(syllabi[0]) == set(lessons)


def _taught(syllabus):
    plans = re.findall(r"^\d+ \| ([\d, ]+) \|", syllabus, re.M)
    return {each for plan in plans for each in plan.split(", ")}


def _lesson_minutes():
    rows = re.findall(
        r"^\[(\d\d) .*?\| (\d+) \|", (ROOT / "README.md").read_text(), re.M
    )
    return {number: int(minutes) for number, minutes in rows}


def _needs():
    rows = re.findall(
        r"^\[(\d\d) .*\| \d+ \| (.*)$", (ROOT / "README.md").read_text(), re.M
    )
    return {number: set(re.findall(r"\b\d\d\b", needs)) for number, needs in rows}


def _exercise_minutes():
    """Return an exercise's number -> its minutes, the middle of a range."""
    found = {}
    for folder in find_exercises([]):
        notebook = json.loads((folder / f"{folder.name}.ipynb").read_text("utf-8"))
        title = "".join(notebook["cells"][0]["source"]).replace("two", "2")
        low, high, unit = re.search(
            r"points, (?:about )?(\d+)(?: to (\d+))? (minutes|hours)", title
        ).groups()
        middle = (int(low) + int(high or low)) / 2 * (60 if unit == "hours" else 1)
        found[folder.name[:2]] = int(middle)
    return found
