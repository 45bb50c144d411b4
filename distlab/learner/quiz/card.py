"""A card: an interviewer's question about a lesson, and a good answer's key points.

A file of cards is plain text; a line of dashes stands between two of them:

    id: 10-walk
    level: mid
    topic: the two laps
    cell: build-indices
    follows: 10-naive
    question:
    Four ranks run a ring all-reduce. What does rank 2 send?
    answer:
    Three chunks in each phase: one in every step, to rank 3.
    key points:
    - Chunks 2, 1 and 0 on the first lap. A point may go on
      in the next line.
    - Chunks 3, 2 and 1 on the second.

`cell` is the id of the cell of the lesson that shows the answer; `follows`, where it is
given, is the id of the card after which an interviewer asks this one: a card of any
lesson, of the same level or a lower one. An answer has 60 words at most.

Each lesson has its cards in one text file of this folder.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from distlab.errors import InvalidArgument

__all__ = [
    "LEVELS",
    "Card",
    "cards",
    "follow_ups",
    "lessons",
    "parse_cards",
    "read_folder",
]

LEVELS = ("mid", "senior", "principal")
_HEADS = ("id", "level", "topic", "cell", "follows")
_FIELDS = (*_HEADS, "question", "answer", "key points")
_OPTIONAL = ("follows",)
_ANSWER_WORDS = 60


@dataclass(frozen=True)
class Card:
    """One question, an answer, its key points, and the lesson and cell that show it."""

    id: str
    level: str
    topic: str
    question: str
    answer: str
    key_points: tuple[str, ...]
    cell: str
    lesson: str
    follows: str = ""


def parse_cards(text: str, *, lesson: str, file: Path) -> list[Card]:
    """Return the cards in `text`, in order.

    Raises: InvalidArgument with file, line and problem.
    """
    return [card for card, _ in _numbered(text, lesson, file)]


def read_folder(folder: Path) -> dict[str, list[Card]]:
    """Return the cards of each file of a folder, by stem, in order.

    Raises: InvalidArgument with file, line and problem, also if what a card follows is
    no card, has a higher level, or follows that card itself.
    """
    lines = {
        file.stem: _numbered(file.read_text(encoding="utf-8"), file.stem, file)
        for file in sorted(folder.glob("*.txt"))
    }
    all_cards = {card.id: card for each in lines.values() for card, _ in each}
    for stem, numbered in lines.items():
        for card, line in numbered:
            if card.follows and (wrong := _wrong_chain(card, all_cards)):
                _refuse(folder / f"{stem}.txt", line, wrong)
    return {stem: [card for card, _ in each] for stem, each in lines.items()}


def _numbered(text, lesson, file):
    """Return each card with the line on which it says what it follows, or begins."""
    found = {}
    for block in _blocks(text):
        fields = _fields(block, file)
        card = _card(fields, lesson, file)
        if card.id in found:
            _refuse(file, fields["id"][0][0], f"there is another card {card.id!r}")
        found[card.id] = card, fields.get("follows", fields["id"])[0][0]
    if not found:
        _refuse(file, 1, "there is no card in this file")
    return list(found.values())


def _wrong_chain(card, all_cards):
    """Return the reason why a card cannot follow the one that it names, or ""."""
    before = all_cards.get(card.follows)
    if before is None:
        return f"there is no card {card.follows!r} to follow"
    if LEVELS.index(card.level) < LEVELS.index(before.level):
        said = f"a card of level {card.level} cannot follow {before.id!r}, which is of"
        return f"{said} level {before.level}"
    seen = [card.id]
    while before and before.id not in seen:
        seen.append(before.id)
        before = all_cards.get(before.follows)
    # A cycle that this card only leads into is reported where it is.
    return "cards follow each other in a cycle" if before and before is card else ""


def _blocks(text):
    """Return the numbered lines of every card."""
    blocks = [[]]
    for numbered in enumerate(text.splitlines(), 1):
        if re.fullmatch("-{3,}", numbered[1].strip()):
            blocks.append([])
        else:
            blocks[-1].append(numbered)
    return [block for block in blocks if any(line.strip() for _, line in block)]


def _fields(block, file):
    """Return the numbered lines of every field of a card, by the field's name."""
    fields, free = {}, None
    for number, line in block:
        name, colon, rest = line.partition(":")
        if free and line.strip() not in ("answer:", "key points:"):
            fields[free].append((number, line))
        elif line.strip():
            if not colon or name not in _FIELDS:
                wanted = ", ".join(f"{field}:" for field in _FIELDS)
                _refuse(file, number, f"one of {wanted} should be here, not {line!r}")
            if name in fields:
                _refuse(file, number, f"this card has {name}: twice")
            fields[name] = [(number, rest)]
            free = None if name in _HEADS else name
    first = next(number for number, line in block if line.strip())
    for name in _FIELDS:
        if name not in _OPTIONAL and not _prose(fields.get(name, [])):
            _refuse(file, first, f"the card that begins here has no {name}")
    return fields


def _card(fields, lesson, file):
    text = {name: _prose(lines) for name, lines in fields.items()}
    if text["level"] not in LEVELS:
        said = f"the level is one of {', '.join(LEVELS)}, not {text['level']!r}"
        _refuse(file, fields["level"][0][0], said)
    for name in ("id", "cell"):
        if not re.fullmatch(r"[\w-]+", text[name]):
            said = f"the {name} is letters, digits and dashes, not {text[name]!r}"
            _refuse(file, fields[name][0][0], said)
    if (words := len(text.get("answer", "").split())) > _ANSWER_WORDS:
        said = f"this answer has {words} words; {_ANSWER_WORDS} are allowed"
        _refuse(file, fields["answer"][0][0], said)
    return Card(
        **{name: text.get(name, "") for name in (*_HEADS, "question", "answer")},
        key_points=_points(fields["key points"], file),
        lesson=lesson,
    )


def _points(lines, file):
    points = []
    for number, line in lines:
        text = line.strip()
        if text == "-":
            _refuse(file, number, "this key point is empty")
        if text.startswith("- "):
            points.append(text[2:].strip())
        elif text:
            if not points:
                _refuse(file, number, f"a key point begins with '- ', not {text!r}")
            points[-1] += f" {text}"
    return tuple(points)


def _prose(lines):
    return " ".join(" ".join(line for _, line in lines).split())


def _refuse(file, number, what):
    raise InvalidArgument(f"{file.name}, line {number}: {what}")


_FOLDER = Path(__file__).parent


def cards(lesson: str | int, level: str | None = None) -> list[Card]:
    """Return the cards of a lesson, given its number or stem; of one level, or of all.

    Raises: InvalidArgument for a lesson without cards or a level that is not there.
    """
    if level is not None and level not in LEVELS:
        raise InvalidArgument(
            f"a level is one of {', '.join(LEVELS)}, and got {level!r}"
        )
    return [card for card in _cards_of(lesson) if level in (None, card.level)]


def lessons() -> list[str]:
    """Return the stems of all lessons that have cards."""
    return list(_read_once(_FOLDER))


def follow_ups(card: Card) -> list[Card]:
    """Return the cards that an interviewer asks after this one, in order."""
    everything = [each for cards in _read_once(_FOLDER).values() for each in cards]
    return [each for each in everything if each.follows == card.id]


_read_once = cache(read_folder)


def _cards_of(lesson):
    everything = _read_once(_FOLDER)
    wanted = f"{lesson}".zfill(2) if f"{lesson}".isdecimal() else lesson
    for stem, found in everything.items():
        if wanted in (stem, stem.partition("_")[0]):
            return found
    stems = ", ".join(everything)
    raise InvalidArgument(f"there are no cards for lesson {lesson!r}, only for {stems}")
