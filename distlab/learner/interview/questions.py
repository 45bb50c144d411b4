"""A question of a mock interview: a card, and what the kind of question adds to it.

    10-walk                            a card: answer, then key points to tick
    whiteboard-bubble-71               also a number, compared with the formula's
    live-coding-10_ring_all_reduce     also a stub, checked as in the exercise

An id alone rebuilds its question, so that a record of ids is a record of an interview.
"""

from dataclasses import dataclass

from distlab.learner.predictions.answers import Number
from distlab.learner.quiz.card import Card

__all__ = ["CARD_MINUTES", "Question", "card_question", "minutes_of"]

CARD_MINUTES = {"mid": 3, "senior": 4, "principal": 6}


@dataclass(frozen=True)
class Question:
    """A question and the minutes that it may take.

    value, unit: of a whiteboard question, its number and what that counts; else None.
    code: of a live-coding question, the program with the stub and its check; else "".
    """

    card: Card
    minutes: int
    value: float | None = None
    unit: str = ""
    code: str = ""

    @property
    def number(self) -> Number:
        """The kind of number that a whiteboard question asks for."""
        return Number(self.unit)

    def is_right(self, number: float | None) -> bool:
        """Return True for a number within a tenth of the value."""
        if number is None or self.value is None:
            return False
        return self.number.outcome(number, self.value) != "off"


def card_question(card: Card) -> Question:
    """Return the question of a card of the quiz."""
    return Question(card, CARD_MINUTES[card.level])


def minutes_of(questions: list[Question]) -> int:
    """Return the minutes that questions may take together."""
    return sum(each.minutes for each in questions)
