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
given, is the id of the card after which an interviewer asks this one. An answer has 60
words at most.

Each lesson has its cards in one text file of this folder.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from distlab.errors import InvalidArgument

__all__ = ["LEVELS", "Card", "cards", "lessons", "parse_cards"]

LEVELS = ("mid", "senior", "principal")
_HEADS = ("id", "level", "topic", "cell", "follows")
_FIELDS = (*_HEADS, "question", "answer", "key points")
_OPTIONAL = ("follows", "answer")


@dataclass(frozen=True)
class Card:
    """One question, its key points, and the lesson and cell that show the answer."""

    id: str
    level: str
    topic: str
    question: str
    key_points: tuple[str, ...]
    cell: str
    lesson: str
    answer: str = ""
    follows: str = ""


def parse_cards(text: str, *, lesson: str, file: Path) -> list[Card]:
    """Return the cards in `text`, in order.

    Raises: InvalidArgument with file, line and problem.
    """
    found = {}
    for block in _blocks(text):
        fields = _fields(block, file)
        card = _card(fields, lesson, file)
        if card.id in found:
            _refuse(file, fields["id"][0][0], f"there is another card {card.id!r}")
        found[card.id] = card
    if not found:
        _refuse(file, 1, "there is no card in this file")
    return list(found.values())


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
    file = _file_of(lesson)
    found = parse_cards(file.read_text(encoding="utf-8"), lesson=file.stem, file=file)
    return [card for card in found if level in (None, card.level)]


def lessons() -> list[str]:
    """Return the stems of all lessons that have cards."""
    return sorted(file.stem for file in _FOLDER.glob("*.txt"))


def _file_of(lesson):
    files = sorted(_FOLDER.glob("*.txt"))
    wanted = f"{lesson}".zfill(2) if f"{lesson}".isdecimal() else lesson
    for file in files:
        if wanted in (file.stem, file.stem.partition("_")[0]):
            return file
    stems = ", ".join(file.stem for file in files)
    raise InvalidArgument(f"there are no cards for lesson {lesson!r}, only for {stems}")
