"""Cards in a cell: answer first, and only then compare with the key points.

    <div class="distlab-cards">  <style>
      <section data-card="10-walk">  question, <details> with the key points
      <script>  puts a field for the answer before each <details>

No kernel and no network; without scripts the key points are in the <details>.
"""

from dataclasses import dataclass
from html import escape
from importlib.resources import files
from textwrap import TextWrapper

from distlab.quiz.card import Card
from distlab.quiz.shelf import cards

__all__ = ["Deck", "ask"]


@dataclass(frozen=True)
class Deck:
    """Cards that ask, as the last line of a cell; in a terminal only the questions."""

    cards: tuple[Card, ...]

    def __repr__(self):
        questions = (
            f"{number}. ({card.level}, {card.topic}) {card.question}"
            for number, card in enumerate(self.cards, 1)
        )
        page = TextWrapper(88, subsequent_indent="   ", break_on_hyphens=False)
        return "\n".join(map(page.fill, questions))

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": _page(self.cards), "text/plain": repr(self)}


def ask(lesson: str | int, level: str | None = None) -> Deck:
    """Return the cards of a lesson, to be answered where they are shown.

    What is written and ticked stays in the browser, and survives a reload there.

    Raises: InvalidArgument for a lesson without cards or a level that is not there.
    """
    return Deck(tuple(cards(lesson, level)))


def _page(shown):
    web = files("distlab.quiz") / "web"
    style = (web / "cards.css").read_text(encoding="utf-8")
    script = (web / "cards.js").read_text(encoding="utf-8")
    # Without the attribute JupyterLab takes letters typed here for its shortcuts.
    return (
        '<div class="distlab-cards" data-lm-suppress-shortcuts="true">'
        f"<style>{style}</style>{''.join(map(_section, shown))}"
        f"<script>{script}</script></div>"
    )


def _section(card):
    points = "".join(f"<li>{escape(point)}</li>" for point in card.key_points)
    # With the file's name JupyterLab takes it for a place in a notebook; an exported
    # page has the place itself, and the script finds it there.
    place = escape(f"{card.lesson}.ipynb#cell-id={card.cell}")
    return (
        f'<section data-card="{escape(card.id)}">'
        f'<p class="about">{escape(card.level)} · {escape(card.topic)}</p>'
        f'<p class="question">{escape(card.question)}</p>'
        f"<details><summary>Key points</summary><ul>{points}</ul>"
        f'<p><a href="{place}">The cell that shows it</a></p></details></section>'
    )
