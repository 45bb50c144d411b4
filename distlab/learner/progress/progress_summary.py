"""Standing of a learner: each lesson with its exercise, and the next thing to do.

The contents of the course come from the notebooks: cells, questions and steps.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from distlab.files import course_files
from distlab.learner.progress.record import Record

__all__ = [
    "Exercise",
    "ExerciseStep",
    "Lesson",
    "LessonRow",
    "ProgressSummary",
    "find_course",
    "progress_summary",
]


@dataclass(frozen=True)
class Lesson:
    """A lesson: its title, its code cells' ids, and its number of predictions."""

    stem: str
    title: str
    cells: tuple[str, ...]
    predictions: int


@dataclass(frozen=True)
class Exercise:
    """An exercise: its title, and the points of each graded cell by its id."""

    stem: str
    title: str
    steps: dict[str, float] = field(default_factory=dict)


def find_course(held: dict) -> tuple[dict[str, Lesson], dict[str, Exercise]]:
    """Return lessons and exercises by stem, in order.

    held: the record, which names the notebooks that were open.
    """
    ours = [(place.split("/")[0], path) for place, path in course_files().items()]
    worked = {
        kind: [Path(entry["path"]) for entry in held[kind].values()]
        for kind in ("lessons", "exercises")
    }
    lessons, exercises = (
        [*worked[kind], *(path for of, path in ours if of == kind)]
        for kind in ("lessons", "exercises")
    )
    return _by_stem(lessons, _lesson), _by_stem(exercises, _exercise)


def _by_stem(paths, read):
    """Return `read`'s result for each notebook by stem; the last of a stem counts."""
    found = {}
    for path in paths:
        try:
            cells = json.loads(path.read_bytes())["cells"]
            found[path.stem] = read(path.stem, cells)
        except (OSError, ValueError, KeyError, TypeError):
            continue  # moved, or never a notebook: then the record alone is shown
    return dict(sorted(found.items()))


def _lesson(stem, cells):
    code = {
        cell.get("id", ""): "".join(cell["source"])
        for cell in cells
        if cell["cell_type"] == "code" and cell["source"]
    }
    asked = sum(source.count("predict(") for source in code.values())
    return Lesson(stem, _title(cells), tuple(code), asked)


def _exercise(stem, cells):
    graded = [
        (cell.get("id", ""), cell["metadata"].get("nbgrader", {})) for cell in cells
    ]
    steps = {name: meta["points"] for name, meta in graded if meta.get("grade")}
    return Exercise(stem, _title(cells), steps)


def _title(cells):
    lines = [
        line for cell in cells[:1] for line in "".join(cell["source"]).splitlines()
    ]
    return lines[0].lstrip("# ").strip() if lines else ""


_TRIES = 3  # after so many without all the points, a hint is due


@dataclass(frozen=True)
class ExerciseStep:
    """A step: the points it gives, the best and last that it gave, tries and hints."""

    of: float
    best: float = 0.0
    last: float = 0.0
    attempts: int = 0
    hints: int = 0


@dataclass(frozen=True)
class LessonRow:
    """One lesson and its exercise.

    run, cells: numbers of cells that ran and of all; cells is 0 if it is unknown.
    guessed, right, near, asked: numbers of predictions made, of right and near ones,
    and of those in the lesson. last: the last day of work on it, "" if never.
    """

    stem: str
    title: str
    run: int
    cells: int
    guessed: int
    right: int
    near: int
    asked: int
    steps: tuple[ExerciseStep, ...]
    last: str

    @property
    def number(self) -> str:
        """The lesson's number, as the commands take it."""
        return self.stem.partition("_")[0]

    @property
    def points(self) -> tuple[float, float]:
        """The best points of all steps, and the most there are."""
        return sum(s.best for s in self.steps), sum(s.of for s in self.steps)

    @property
    def read(self) -> bool:
        """True if every cell of the lesson ran."""
        return 0 < self.cells <= self.run

    @property
    def solved(self) -> bool:
        """True if every step of the exercise has all its points."""
        best, most = self.points
        return best >= most


@dataclass(frozen=True)
class ProgressSummary:
    """All lessons in order, the next thing to do, and the record's own notes."""

    rows: tuple[LessonRow, ...]
    next: str
    notes: tuple[str, ...] = ()


def progress_summary(record: Record) -> ProgressSummary:
    """Return the learner's standing, from the record and the notebooks."""
    try:
        held = record.read()
    except OSError as error:
        note = f"{record.path} cannot be read ({error.strerror})."
        held = {"lessons": {}, "exercises": {}, "notes": [note]}
    lessons, exercises = find_course(held)
    stems = {*lessons, *exercises, *held["lessons"], *held["exercises"]}
    rows = tuple(
        _row(stem, lessons.get(stem), exercises.get(stem), held)
        for stem in sorted(stems)
    )
    return ProgressSummary(rows, _next(rows), tuple(map(str, held["notes"])))


def _row(stem, lesson, exercise, held):
    read = held["lessons"].get(stem, {})
    tried = held["exercises"].get(stem, {})
    ran, guesses = set(read.get("cells", ())), read.get("predictions", {})
    cells = set(lesson.cells) if lesson else set()
    outcomes = [guess.get("outcome", "") for guess in guesses.values()]
    times = [entry.get("last", "") for entry in (read, tried)]
    return LessonRow(
        stem,
        lesson.title if lesson else stem,
        len(ran & cells if cells else ran),
        len(cells),
        len(guesses),
        outcomes.count("right"),
        outcomes.count("near"),
        max(lesson.predictions if lesson else 0, len(guesses)),
        _steps(exercise, tried.get("steps", {})),
        max(times),
    )


def _steps(exercise, tried):
    points = dict(exercise.steps) if exercise else {}
    for name, kept in tried.items():
        if not exercise:
            points[name] = kept.get("of", 0)
    known = ("best", "last", "attempts", "hints")
    return tuple(
        ExerciseStep(
            of, **{n: tried[name][n] for n in known if n in tried.get(name, {})}
        )
        for name, of in points.items()
    )


def _next(rows):
    """Return one sentence on what to do next."""
    if not rows:
        return "Next: get the lessons, and run `distlab lab`."
    latest = max(rows, key=lambda row: row.last)
    if latest.last and (said := _left(latest)):
        return said
    for row in rows:
        if said := _left(row):
            return said
    return "Next: the cards that are due, with `distlab review`. All else is done."


def _left(row):
    """Return a sentence on the rest of a lesson and its exercise, "" if none is."""
    name = row.title.replace(" · ", ", ")
    if not row.read and row.cells:
        if not row.run:
            return f"Next: lesson {name}."
        return f"Next: go on with lesson {name}: {row.cells - row.run} cells are left."
    for number, step in enumerate(row.steps, 1):
        if step.best < step.of:
            asks = step.attempts >= _TRIES and not step.hints
            tip = " hint() says more about what the check found." if asks else ""
            points = f"{step.best:g} of {step.of:g} points"
            return f"Next: exercise {name}, step {number} ({points}).{tip}"
    return ""
