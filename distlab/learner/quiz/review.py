"""Spaced repetition of cards: each is due a little before it would be forgotten.

    review(level="senior")       # as last line of a cell: today's cards, one at a time

FSRS computes a card's next date from the ratings of all its reviews. Its state of a
card is stored beside the learner's answer, in cards.json.

Source: Ye, Su and Cao, "A stochastic shortest path algorithm for optimizing spaced
repetition scheduling" (KDD 2022), in the package fsrs.
"""

import re
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import zip_longest

from distlab.errors import InvalidArgument
from distlab.learner.predictions.answer_storage import kept_by_learner
from distlab.learner.quiz.card import LEVELS, Card, cards, lessons

__all__ = ["RATINGS", "due", "keep_answer", "new_today", "rate", "selected"]

RATINGS = ("again", "hard", "good", "easy")


def selected(
    *,
    lesson: str | int | None = None,
    level: str | None = None,
    topic: str | None = None,
) -> list[Card]:
    """Return the cards of a lesson, level and topic, those of these that are given.

    They are in order of level; those of a level come in turns from all lessons. A topic
    is looked for in the cards' topics and lessons, and if not there in their text.

    Raises: InvalidArgument if there is none.
    """
    stems = lessons() if lesson is None else [lesson]
    found = _in_turns([cards(each, level) for each in stems])
    if not topic:
        return found
    topics = {c: _plain(f"{c.lesson} {c.topic}") for c in found}
    texts = {c: _plain(" ".join([c.question, c.answer, *c.key_points])) for c in found}
    for words in (topics, texts):
        if about := [c for c in found if _plain(topic) in words[c]]:
            return about
    names = {_plain(card.topic) for card in found}
    names |= {*re.findall(r"\w{5,}", " ".join([*topics.values(), *texts.values()]))}
    near = ", ".join(get_close_matches(_plain(topic), sorted(names), 5, cutoff=0))
    raise InvalidArgument(
        f"none of {len(found)} cards {f'of level {level} ' if level else ''}is about "
        f"{topic!r}. Spelled most like it are: {near}"
    )


def _in_turns(decks):
    """Return cards by level; of each level every lesson's first card, then its second.

    New cards are asked in this order, and it lets no lesson wait for the one before it.
    """
    return [
        card
        for level in LEVELS
        for turn in zip_longest(*([c for c in d if c.level == level] for d in decks))
        for card in turn
        if card
    ]


def _plain(text):
    return re.sub("[-_]", " ", text.lower()).strip()


def due(
    chosen: list[Card], *, new: int = 10, now: datetime | None = None
) -> list[Card]:
    """Return the cards that are due, longest first, then new ones.

    new: the most of a day, of all lessons, levels and topics; see `new_today`.
    """
    now, kept = now or datetime.now(UTC), kept_by_learner("cards")
    seen = [(_due(kept.get(card.id)), card) for card in chosen]
    old = [each for each in seen if each[0] and each[0] <= now]
    old.sort(key=lambda each: each[0])
    left = max(0, new - new_today(now))
    return [c for _, c in old] + [c for when, c in seen if when is None][:left]


def new_today(now: datetime | None = None) -> int:
    """Return the number of cards whose first rating was on this day, in local time."""
    day = (now or datetime.now(UTC)).astimezone().date().isoformat()
    kept = kept_by_learner("cards")
    entries = [
        entry for name in kept.names() if isinstance(entry := kept.get(name), dict)
    ]
    return sum(entry.get("first") == day for entry in entries)


def keep_answer(card_id: str, **new: str | list[str]) -> None:
    """Store the `answer` to a card, or the key points `ticked`, those that it had."""
    kept = kept_by_learner("cards")
    kept.put(card_id, {**(kept.get(card_id) or {}), **new})


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
    if not _due(entry):
        day = (now or datetime.now(UTC)).astimezone().date()
        entry = {**entry, "first": day.isoformat()}
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
