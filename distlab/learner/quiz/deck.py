"""Cards in a cell: the learner answers, and only then sees the answer and key points.

    <style>
    <div class="distlab-cards">
      <section data-card="10-walk">  question, <details>: answer, key points, follow-up
    <script>  puts a field for the answer before each <details>

No network; without scripts the key points are in the <details>. In a notebook answers
go to the learner's cards.json, in a page without a kernel they stay in the browser.
"""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import TextWrapper

from distlab.calls.message_html import plain, typeset
from distlab.calls.notebook_frontend import cell_number, person_is_there, show
from distlab.learner.predictions.answer_storage import kept_by_learner
from distlab.learner.predictions.kernel_bridge import (
    form_script,
    form_style,
    open_bridge,
    receive,
)
from distlab.learner.quiz.card import Card, cards, follow_ups
from distlab.learner.quiz.review import due, keep_answer, rate, selected

__all__ = [
    "Deck",
    "ask",
    "deck_html",
    "place_of",
    "review",
    "section",
]

# With the file's name JupyterLab takes it for a place in a notebook; an exported page
# has the place itself, and the script finds it there.
_PLACE = "{lesson}.ipynb#cell-id={cell}"
# Where lessons are, seen from the folder of the course or of an exercise, which has a
# notebook of a lesson's name.
_FOLDERS = ("lessons/", "../../lessons/")
_above = {}  # ids of cards that are shown -> the handle of their answers


@dataclass(frozen=True)
class Deck:
    """Cards to answer, as the last line of a cell; in a terminal only the questions."""

    cards: tuple[Card, ...]
    one_at_a_time: bool = False

    def __repr__(self):
        if not self.cards:
            return "No card is due today."
        questions = (
            f"{number}. ({card.level}, {card.topic}) {plain(card.question)}"
            for number, card in enumerate(self.cards, 1)
        )
        page = TextWrapper(88, subsequent_indent="   ", break_on_hyphens=False)
        hint = ["`distlab review` asks them one at a time."] * self.one_at_a_time
        return "\n".join([*map(page.fill, questions), *hint])

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self._page(), "text/plain": repr(self)}

    def _ipython_display_(self):
        if cell_number() is None:
            raise NotImplementedError  # IPython then uses the MIME bundle
        open_bridge()
        receive("cards", _heard)
        if person_is_there():
            ids = tuple(card.id for card in self.cards)
            _above[ids] = show(_answers(ids))
        show(self._repr_mimebundle_())

    def _page(self):
        kept = kept_by_learner("cards")
        sections = "".join(
            section(card, kept.get(card.id), self.one_at_a_time, place_of(card.lesson))
            for card in self.cards
        )
        mark = "data-review" * self.one_at_a_time
        return deck_html(sections or f"<p>{self!r}</p>", mark=mark)


def deck_html(inner: str, *scripts: str, mark: str = "") -> str:
    """Return the HTML of a deck with `inner` in it.

    scripts: files beside cards.js. mark: an attribute that makes it a review, or so.
    """
    # Without the attribute JupyterLab takes letters typed here for its shortcuts.
    return (
        f"{form_style('.distlab-cards', 'distlab.learner.quiz', 'cards.css')}"
        f'<div class="distlab-cards" {mark} data-lm-suppress-shortcuts="true">'
        f"{inner}</div>{form_script('distlab.learner.quiz', 'cards.js', *scripts)}"
    )


def ask(lesson: str | int, level: str | None = None) -> Deck:
    """Return the cards of a lesson, to be answered where they are shown.

    Answers and ticks are stored in cards.json in DISTLAB_HOME, or in ~/.distlab.

    Raises: InvalidArgument for a lesson without cards or a level that is not there.
    """
    return Deck(tuple(cards(lesson, level)))


def review(
    *,
    lesson: str | int | None = None,
    level: str | None = None,
    topic: str | None = None,
    new: int = 10,
) -> Deck:
    """Return the cards of today: those due, then new ones, at most `new` a day.

    Raises: InvalidArgument for a lesson, level or topic that no card has.
    """
    chosen = selected(lesson=lesson, level=level, topic=topic)
    return Deck(tuple(due(chosen, new=new)), one_at_a_time=True)


def _heard(value):
    """Store a card's message from the page: an answer with its ticks, or a rating."""
    if "rating" in value:
        rate(value["id"], value["rating"])
    else:
        keep_answer(value["id"], answer=value["answer"], ticked=value["ticked"])
    for ids, shown in _above.items():
        if value["id"] in ids:
            shown.update(_answers(ids), raw=True)


def _answers(ids):
    """Return a hidden output with the cards' entries, for a notebook saved now.

    Writing them into the cards themselves would redraw them under the cursor.
    """
    kept = {each: kept_by_learner("cards").get(each) for each in ids}
    held = escape(json.dumps(kept))
    html = f'<div class="distlab-kept" data-kept="{held}" hidden></div>'
    return {"text/html": html, "text/plain": ""}


def place_of(lesson: str) -> str:
    """Return the template of a link to a lesson from the kernel's working directory."""
    found = (each for each in _FOLDERS if Path(f"{each}{lesson}.ipynb").is_file())
    return next(found, "") + _PLACE


def section(
    card: Card,
    kept: object,
    review: bool,
    place: str,
    *,
    below: str = "",
    **data: object,
) -> str:
    """Return a card as HTML.

    kept: its entry in cards.json. place: template of its link; see _PLACE. below: HTML
    below the question. data: more attributes, data-NAME.
    """
    more = "".join(f'data-{name}="{escape(str(v))}" ' for name, v in data.items())
    points = "".join(
        f'<li data-point="{escape(plain(point))}">{typeset(point)}</li>'
        for point in card.key_points
    )
    link = escape(place.format(lesson=card.lesson, cell=card.cell))
    about = f"{card.level} · {card.topic}"
    about = f"lesson {card.lesson[:2]} · {about}" if review else about
    return (
        f'<section data-card="{escape(card.id)}" data-lesson="{escape(card.lesson)}" '
        f'data-level="{card.level}" data-topic="{escape(card.topic)}" {more}'
        f'data-kept="{escape(json.dumps(kept or {}))}">'
        f'<p class="about">{escape(about)}</p>'
        f'<p class="question">{typeset(card.question)}</p>{below}'
        f"<details><summary>Answer and key points</summary>"
        f'<p class="said">{typeset(card.answer)}</p>'
        f'<ul>{points}</ul><p><a href="{link}">The cell that shows it</a></p>'
        f"{_follow_ups(card)}</details></section>"
    )


def _follow_ups(card):
    after = follow_ups(card)
    ids = escape(" ".join(each.id for each in after))
    asked = " ".join(typeset(each.question) for each in after)
    said = f"An interviewer may go on: {asked}"
    return asked and f'<p class="next" data-next="{ids}">{said}</p>'
