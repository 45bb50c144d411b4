"""The record of mock interviews: each with its questions, answers and seconds.

    interviews.json   {"2026-11-28T09:30:00": {"level": "senior", "minutes": 45, ...
        "questions": ["10-walk", "whiteboard-bubble-71"], "ended": false,
        "answers": {"10-walk": {"answer": "...", "seconds": 61.5, "ticked": [...]}}}}

It lies beside cards.json, and every line of an answer is stored as it comes.
"""

from dataclasses import dataclass, field
from datetime import datetime
from random import randrange

from distlab.errors import InvalidArgument
from distlab.learner.interview.draw import draw, question_of
from distlab.learner.predictions.answer_storage import kept_by_learner
from distlab.learner.quiz.card import LEVELS

__all__ = ["MockInterview", "begin", "current", "earlier"]


@dataclass
class MockInterview:
    """An interview under way, or one that has ended.

    answers: by a question's id: "answer", "seconds", "ticked", and "number" and
        "passed" where the question has them; "answered" before it is compared, and
        "done" afterwards; "ticked", the key points that it had, "of" how many.
    """

    started: str
    level: str
    minutes: int
    topic: str | None
    seed: int
    questions: list[str]
    answers: dict[str, dict] = field(default_factory=dict)
    ended: bool = False

    def keep(self, question: str = "", **new: object) -> None:
        """Store what is new of a question's answer, or that the interview ended."""
        if question:
            self.answers[question] = {**self.answers.get(question, {}), **new}
        else:
            self.ended = True
        kept_by_learner("interviews").put(self.started, vars(self))

    @property
    def spent_s(self) -> float:
        """The seconds that all answers took together."""
        return sum(each.get("seconds", 0.0) for each in self.answers.values())

    def open(self) -> list[str]:
        """Return the ids of the questions that are not done, in order."""
        done = {name for name, each in self.answers.items() if each.get("done")}
        return [name for name in self.questions if name not in done]

    @property
    def points(self) -> dict[str, tuple[int, int]]:
        """The key points that each answer had, and all of them, by question."""
        return {
            name: (len(each["ticked"]), each["of"])
            for name, each in self.answers.items()
            if each.get("done")
        }

    def read_again(self) -> list[str]:
        """Return the questions that lacked points, those with the fewest first."""
        share = {name: had / of for name, (had, of) in self.points.items()}
        return sorted((name for name in share if share[name] < 1), key=share.get)


def begin(
    level: str = "senior",
    minutes: int = 45,
    topic: str | None = None,
    seed: int | None = None,
) -> MockInterview:
    """Draw an interview; it is stored with its first answer.

    Raises: InvalidArgument, as `draw` does.
    """
    recent = [name for each in earlier() for name in each.answers]
    seed = randrange(10**6) if seed is None else seed
    drawn = draw(level, minutes, topic, seed, recent)
    # To the microsecond: two of one second are two interviews.
    started = datetime.now().isoformat()
    names = [question.card.id for question in drawn]
    return MockInterview(started, level, minutes, topic, seed, names)


def current(**given: object) -> MockInterview | None:
    """Return the latest interview if it has not ended and is as `given`, else None.

    given: fields of it; one that is None may be anything.
    """
    for latest in earlier()[-1:]:
        fits = all(v in (None, getattr(latest, name)) for name, v in given.items())
        if fits and not latest.ended and all(map(_is_there, latest.questions)):
            return latest
    return None


def earlier() -> list[MockInterview]:
    """Return the interviews in the record, in order; other entries are left out."""
    kept = kept_by_learner("interviews")
    found = []
    for name in sorted(kept.names()):
        entry = kept.get(name)
        try:
            each = MockInterview(**entry)
            sound = each.level in LEVELS and all(
                had <= of for had, of in each.points.values()
            )
            found += [each] * (sound and each.spent_s >= 0)
        except (TypeError, KeyError, AttributeError):
            continue
    return found


def _is_there(name):
    try:
        return bool(question_of(name))
    except (InvalidArgument, ValueError):
        return False
