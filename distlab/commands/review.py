"""`distlab review`: today's cards, one at a time."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from distlab.errors import DistlabError
from distlab.learner.quiz.card import Card
from distlab.learner.quiz.page import anki
from distlab.learner.quiz.review import RATINGS, due, rate, selected

__all__ = ["review"]

_KEYS = {rating[0]: rating for rating in RATINGS}


def review(
    lesson: Annotated[
        str | None, typer.Argument(help="Number or stem of a lesson; all if left out.")
    ] = None,
    level: Annotated[str | None, typer.Option(help="mid, senior or principal.")] = None,
    topic: Annotated[str | None, typer.Option(help="Such as quorum.")] = None,
    new: Annotated[int, typer.Option(help="New cards today, at most.")] = 10,
    anki: Annotated[
        Path | None, typer.Option(help="Write all cards to this file, for Anki.")
    ] = None,
) -> None:
    """Go through the cards that are due today; FSRS schedules the next date of each."""
    cards = selected(lesson=lesson, level=level, topic=topic)
    console = Console(highlight=False)
    if anki:
        _write(anki, cards)
        console.print(f"{len(cards)} cards in {anki}. In Anki: File, Import.")
        return
    today = due(cards, new=new)
    if not today:
        console.print(f"None of {len(cards)} cards is due today.")
    import_module("fsrs")  # missed now, not after the first answer
    try:
        for number, card in enumerate(today, 1):
            _ask(console, card, f"{number} of {len(today)}")
    except (EOFError, KeyboardInterrupt):
        console.print("\nWhat is rated is kept; the same command goes on.")


def _ask(console, card, where):
    """Show a card's question, then its key points; record the learner's rating."""
    console.rule(f"{where} · lesson {card.lesson[:2]} · {card.level} · {card.topic}")
    console.print(card.question, style="bold", markup=False)
    input("\nSay your answer, then press Enter. ")
    for point in card.key_points:
        console.print(f"  - {point}", markup=False)
    while True:
        said = input("\nagain, hard, good or easy (a, h, g, e)? ").strip().lower()
        if said[:1] in _KEYS and _KEYS[said[:1]].startswith(said):
            break
    when = rate(card.id, _KEYS[said[:1]])
    console.print(f"Comes back on {when.astimezone():%d %B, %H:%M}.\n")


def _write(path: Path, cards: list[Card]):
    """Write the cards as a file that Anki imports."""
    try:
        path.write_text(anki(cards), encoding="utf-8")
    except OSError as error:
        raise DistlabError(f"{path} cannot be written: {error.strerror}.")
