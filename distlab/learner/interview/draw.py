"""The draw of a mock interview: chains of cards, a whiteboard question, live coding.

    chains       mid ─▶ senior ─▶ principal    a question, and how it goes on
    whiteboard   once, from a quarter of an hour up
    live coding  once, from half an hour up

Chains that were not asked for long come first, and for principals those without mid
cards; the rest is chance, from a seed. No two chains begin with the same topic.
"""

from collections.abc import Collection
from random import Random

from distlab.errors import InvalidArgument
from distlab.learner.interview.live_coding import EXERCISES, live_coding
from distlab.learner.interview.questions import Question, card_question, minutes_of
from distlab.learner.interview.whiteboard import TOPICS, whiteboard
from distlab.learner.quiz.card import LEVELS, Card, cards, follow_ups, lessons
from distlab.learner.quiz.review import selected

__all__ = ["MINUTES", "draw", "question_of"]

MINUTES = range(5, 241)
_WHITEBOARD_FROM, _CODING_FROM = 15, 30


def draw(
    level: str, minutes: int, topic: str | None, seed: int, recent: Collection[str] = ()
) -> list[Question]:
    """Return the questions of an interview, at most `minutes` long.

    Chains have a card of `level`, and go one level beyond it at most. The whiteboard
    question and the exercise are of the lessons nearest to the topic's.

    recent: ids of questions asked before, the latest last.
    Raises: InvalidArgument for a level or topic that no card has, or too few or too
        many minutes.
    """
    if type(minutes) is not int or minutes not in MINUTES:
        few, many = MINUTES[0], MINUTES[-1]
        said = f"an interview has {few} to {many} minutes, and got {minutes!r}"
        raise InvalidArgument(said)
    asked_for = selected(level=level, topic=topic)
    chance, most = Random(seed), LEVELS.index(level) + 1
    numbers = {int(card.lesson[:2]) for card in asked_for} if topic else None
    last = []
    if minutes >= _WHITEBOARD_FROM:
        fit = {t: row[0] for t, row in TOPICS.items() if LEVELS.index(row[2]) <= most}
        name = _nearest(
            fit, numbers, chance, [each[11:].rpartition("-")[0] for each in recent]
        )
        last.append(whiteboard(name, chance.randrange(10**6)))
    if minutes >= _CODING_FROM:
        done = [each.removeprefix("live-coding-") for each in recent]
        last.append(
            live_coding(_nearest({e: e for e in EXERCISES}, numbers, chance, done))
        )
    wanted = {card.id for card in asked_for}
    chains = [c for c in _chains(chance, most) if wanted & {card.id for card in c}]
    age = {name: at for at, name in enumerate(recent)}

    def order(chain):
        mids = sum(card.level == "mid" for card in chain)
        asked = max(age.get(card.id, -1) for card in chain)
        return asked, mids if level == "principal" else 0

    chains.sort(key=order)
    fresh = [chain for chain in chains if not age.keys() & {c.id for c in chain}]
    left = minutes - minutes_of(last)
    found = _fitting(fresh, left)
    found += _fitting(chains[len(fresh) :], left - minutes_of(found))
    return found + last


def question_of(name: str) -> Question:
    """Return the question with this id.

    Raises: InvalidArgument if there is none (any more).
    """
    kind, _, rest = name.partition("-")
    if kind == "whiteboard":
        topic, _, seed = rest.rpartition("-")
        return whiteboard(topic, int(seed))
    if name.startswith("live-coding-"):
        return live_coding(name.removeprefix("live-coding-"))
    for lesson in lessons():
        for card in cards(lesson):
            if card.id == name:
                return card_question(card)
    raise InvalidArgument(f"there is no question {name!r} in this version of distlab.")


def _nearest(lesson_of, numbers, chance, recent):
    """Return a name whose lesson is nearest to the numbers, one not asked recently."""

    def key(name):
        far = min((abs(int(lesson_of[name][:2]) - n) for n in numbers or ()), default=0)
        age = len(recent) - recent[::-1].index(name) if name in recent else 0
        return far, age, chance.random()

    return min(lesson_of, key=key)


def _chains(chance, most) -> list[list[Card]]:
    """Return a path from every first card, up to a level, in random order."""
    chains = []
    for card in selected():
        if not card.follows:
            chain = [card]
            while after := follow_ups(chain[-1]):
                chain.append(chance.choice(after))
            chains.append([c for c in chain if LEVELS.index(c.level) <= most])
    chance.shuffle(chains)
    return [chain for chain in chains if chain]


def _fitting(chains, minutes):
    """Return the questions of the first chains that fit, then of one cut short."""
    found, rest, topics = [], [], set()
    for chain in ([card_question(card) for card in chain] for chain in chains):
        if topics & {question.card.topic for question in chain}:
            continue
        if minutes_of(found) + minutes_of(chain) <= minutes:
            found += chain
            topics |= {question.card.topic for question in chain}
        else:
            rest.append(chain)
    for chain in rest:
        for question in chain:
            if minutes_of(found) + question.minutes > minutes:
                break
            found.append(question)
    return found
