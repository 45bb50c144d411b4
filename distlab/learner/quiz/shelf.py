"""Files of cards: one text file per lesson, in this folder."""

from pathlib import Path

from distlab.errors import InvalidArgument
from distlab.learner.quiz.card import LEVELS, Card, parse_cards

__all__ = ["cards", "lessons"]

_FOLDER = Path(__file__).parent


def cards(lesson: str | int, level: str | None = None) -> list[Card]:
    """Return the cards of a lesson, given its number or stem; of one level, or of all.

    Raises: InvalidArgument for a lesson without cards or a level that is not there.
    """
    if level is not None and level not in LEVELS:
        raise InvalidArgument(
            f"a level is one of {', '.join(LEVELS)}, and got {level!r}. "
            f'For example: cards({lesson!r}, level="senior")'
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
    raise InvalidArgument(
        f"there are no cards for lesson {lesson!r}, only for {stems}. "
        "For example: cards(10)"
    )
