"""`distlab review`: today's cards, one at a time."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer
from rich.console import Console

from distlab.calls.message_html import plain
from distlab.commands.running.hosted_notebooks import site
from distlab.errors import DistlabError
from distlab.learner.predictions.answer_storage import kept_by_learner
from distlab.learner.quiz.card import Card, follow_ups
from distlab.learner.quiz.page import anki, card_address
from distlab.learner.quiz.review import (
    RATINGS,
    due,
    keep_answer,
    new_today,
    rate,
    selected,
)

__all__ = ["compare", "line", "review"]

_KEYS = {rating[:n]: rating for rating in RATINGS for n in range(1, len(rating) + 1)}
_HELP = """
  Enter       shows answer and key points; what you type before it is kept
  1 3         ticks the key points 1 and 3, which you had; Enter alone ticks none
  a, h, g, e  again, hard, good, easy: the better you knew it, the later it comes back
  q           quits; what you answered is kept
"""


def review(
    lesson: Annotated[
        str | None, typer.Argument(help="Number or stem of a lesson; all if left out.")
    ] = None,
    level: Annotated[str | None, typer.Option(help="mid, senior or principal.")] = None,
    topic: Annotated[
        str | None, typer.Option(help="Such as quorum, FSDP or fault tolerance.")
    ] = None,
    new: Annotated[int, typer.Option(help="New cards a day, at most.")] = 10,
    anki: Annotated[
        Path | None, typer.Option(help="Write the cards to this file, for Anki.")
    ] = None,
    topics: Annotated[
        bool, typer.Option("--topics", help="List level and topic of the cards.")
    ] = False,
) -> None:
    """Go through the cards that are due today; FSRS schedules the next date of each.

    New ones come by level, in turns from all lessons, ten a day. While it asks: ?
    helps, q quits.
    """
    cards = selected(lesson=lesson, level=level, topic=topic)
    console = Console(highlight=False)
    if anki:
        _write(anki, cards)
        console.print(f"{len(cards)} cards in {anki}. In Anki: File, Import.")
    elif topics:
        for card in sorted(cards, key=lambda card: card.lesson):
            print(f"{card.lesson[:2]}  {card.level:9}  {card.topic}")
    else:
        _ask_all(console, cards, due(cards, new=new))


def _ask_all(console, cards, today):
    """Ask the cards of today until the last one, `q`, Ctrl-C or the input's end."""
    import_module("fsrs")  # missed now, not after the first answer
    if not today:
        console.print(f"None of {len(cards)} cards is due today.")
        if had := new_today():
            console.print(f"New today: {had}; --new {had + 10} brings ten more.")
        return
    with suppress(ImportError):
        import_module("readline")  # so that arrow keys edit the answer
    try:
        for number, card in enumerate(today, 1):
            _ask(console, card, f"{number} of {len(today)}")
        end = "That was the last card for today."
    except (EOFError, KeyboardInterrupt):
        end = "\nWhat you answered is kept; the same command goes on."
    console.print(kept_by_learner("cards").problem or end)


def _ask(console, card, where):
    """Show a card's question, then its key points; record answer, ticks and rating."""
    console.rule(f"{where} · lesson {card.lesson[:2]} · {card.level} · {card.topic}")
    console.print(plain(card.question), style="bold", markup=False)
    how = "\nSay or type your answer, then Enter (? helps, q quits): "
    if answer := line(how, str):
        keep_answer(card.id, answer=answer)
    ticked = compare(console, card, follow_ups(card))
    keep_answer(card.id, ticked=ticked)
    how = "again, hard, good or easy (a, h, g, e)? "
    when = rate(card.id, line(how, lambda said: _KEYS.get(said.lower())))
    print(f"Comes back on {when.astimezone():%d %B, %H:%M}.\n")


def compare(
    console: Console, card: Card, then: list[Card], help_text: str = _HELP
) -> list[str]:
    """Show answer, key points and cell; return the points that the learner ticks.

    then: the cards that an interviewer may ask next. help_text: what `?` prints.

    Raises: EOFError for `q` and at the input's end, KeyboardInterrupt.
    """
    print(fill(plain(card.answer), console.width) + "\n")
    points = {f"{n}": plain(point) for n, point in enumerate(card.key_points, 1)}
    for number, point in points.items():
        indent = {"initial_indent": f"  {number}. ", "subsequent_indent": "     "}
        print(fill(point, console.width, **indent))
    print(f"Shown in lesson {card.lesson[:2]}: {card_address(card, site())}")
    for each in then:
        said = f"An interviewer may go on: {plain(each.question)}"
        print(fill(said, console.width))
    how = f"\nWhich did you have (1 to {number}, or Enter for none)? "
    ticked = line(how, partial(_ticks, points), help_text)
    print(f"You had {len(ticked)} of {number}.")
    return ticked


def line(prompt: str, read: Callable, help_text: str = _HELP):
    """Prompt for a line until `read` returns a result for it; return that.

    Raises: EOFError for `q`.
    """
    while True:
        said = input(prompt).strip()
        if said.lower() == "q":
            raise EOFError
        if said == "?":
            print(help_text)
        elif (found := read(said)) is not None:
            return found


def _ticks(points, said):
    numbers = set(said.replace(",", " ").split())
    if numbers <= set(points):
        return [point for number, point in points.items() if number in numbers]
    print(f"Numbers from 1 to {len(points)}, such as 1 3.")
    return None


def _write(path: Path, cards: list[Card]):
    """Write the cards as a file that Anki imports."""
    try:
        path.write_text(anki(cards, site()), encoding="utf-8")
    except OSError as error:
        raise DistlabError(f"{path} cannot be written: {error.strerror}.")
