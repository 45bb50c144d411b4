"""Standing of a learner: each lesson with its exercise, and the next thing to do."""

from dataclasses import dataclass

from distlab.learner.progress.course import find_course
from distlab.learner.progress.record import Record

__all__ = ["ExerciseStep", "LessonRow", "ProgressSummary", "progress_summary"]

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
    return 'Next: the cards once more, such as ask(10, level="principal"). All is done.'


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
