"""Spaced repetition of cards: each is due a little before it would be forgotten.

    review(level="senior")       # as last line of a cell: today's cards, one at a time

FSRS computes a card's next date from the ratings of all its reviews. Its state of a
card is stored beside the learner's answer, in cards.json.

Source: Ye, Su and Cao, "A stochastic shortest path algorithm for optimizing spaced
repetition scheduling" (KDD 2022), in the package fsrs.
"""

from datetime import UTC, datetime

from distlab.errors import InvalidArgument
from distlab.learner.predictions.answer_storage import kept_by_learner
from distlab.learner.quiz.card import Card, cards, lessons

__all__ = ["RATINGS", "due", "rate", "selected"]

RATINGS = ("again", "hard", "good", "easy")


def selected(
    *,
    lesson: str | int | None = None,
    level: str | None = None,
    topic: str | None = None,
) -> list[Card]:
    """Return all cards of a lesson, level and topic, those of these that are given.

    Raises: InvalidArgument if there is none.
    """
    found = [c for each in lessons() for c in cards(each)]
    if lesson is not None:
        found = cards(lesson)
    if level is not None:
        cards(found[0].lesson, level)  # refuses a level that is none
        found = [card for card in found if card.level == level]
    if topic is not None:
        topics = sorted({card.topic for card in found})
        found = [card for card in found if topic.lower() in card.topic.lower()]
        if not found:
            raise InvalidArgument(
                f"no card is about {topic!r}. These topics are there: "
                f"{', '.join(topics)}"
            )
    return found


def due(
    chosen: list[Card], *, new: int = 10, now: datetime | None = None
) -> list[Card]:
    """Return the cards that are due, longest first, then at most `new` new ones."""
    now, kept = now or datetime.now(UTC), kept_by_learner("cards")
    seen = [(_due(kept.get(card.id)), card) for card in chosen]
    old = [each for each in seen if each[0] and each[0] <= now]
    old.sort(key=lambda each: each[0])
    return [c for _, c in old] + [c for when, c in seen if when is None][:new]


def rate(card_id: str, rating: str, *, now: datetime | None = None) -> datetime:
    """Store a rating of a card, one of RATINGS; return the time of its next review.

    Raises: InvalidArgument for another rating.
    """
    from fsrs import Card as State
    from fsrs import Rating, Scheduler

    if rating not in RATINGS:
        raise InvalidArgument(
            f"a rating is one of {', '.join(RATINGS)}, and got {rating!r}"
        )
    kept = kept_by_learner("cards")
    entry = kept.get(card_id) or {}
    state = State.from_dict(entry["fsrs"]) if _due(entry) else State()
    # Without chance a page, which has FSRS in JavaScript, gives the same dates.
    fsrs = Scheduler(enable_fuzzing=False)
    state, _ = fsrs.review_card(state, Rating(1 + RATINGS.index(rating)), now)
    kept.put(card_id, {**entry, "rating": rating, "fsrs": state.to_dict()})
    return state.due


def _due(entry):
    """Return the time at which a card is due, None if it was never rated."""
    try:
        return datetime.fromisoformat(entry["fsrs"]["due"])
    except (TypeError, KeyError, ValueError):
        return None
