"""The review page of a site: all cards, without a kernel."""

from html import escape

from distlab.calls.message_html import typeset
from distlab.learner.quiz.card import LEVELS, Card, follow_ups
from distlab.learner.quiz.deck import deck_html, section

__all__ = ["anki", "card_address", "review_page"]

# The address, on the site, of the cell that shows the answer.
_PLACE = "lessons/{lesson}.html#cell-id={cell}"
_SCRIPTS = ("ts-fsrs.min.js", "schedule.js", "review.js")


def review_page(cards: list[Card]) -> str:
    """Return cards as HTML: those that are due, one at a time.

    Ratings and answers are in the browser, together with those of the lessons' pages.
    It links to a file distlab-cards.txt beside it, which holds `anki`'s text.
    """
    stems = sorted({card.lesson for card in cards})
    lessons = {stem: stem.replace("_", " ") for stem in stems}
    topics = "".join(map(_option, sorted({card.topic for card in cards})))
    form = (
        f'<form class="choose row" hidden>{_select("lesson", lessons)}'
        f"{_select('level', {level: level for level in LEVELS})}"
        '<label>Topic <input type="text" name="topic" list="distlab-topics"></label>'
        f'<datalist id="distlab-topics">{topics}</datalist></form>'
    )
    sections = "".join(section(card, None, True, _PLACE) for card in cards)
    return deck_html(
        f'{form}<p class="today" role="status"></p>{sections}'
        '<p><a href="distlab-cards.txt" download>Download all cards for Anki</a></p>',
        *_SCRIPTS,
        review=True,
    )


def anki(cards: list[Card], site: str) -> str:
    """Return the text that Anki imports: id, question, the other side, tags.

    site: its address, to which the key points link.
    """
    head = ["#separator:tab", "#html:true", "#guid column:1", "#tags column:4"]
    lines = [
        "\t".join(
            [
                f"distlab-{card.id}",
                _html(card.question),
                _back(card, site),
                f"distlab::{card.lesson} {card.level} {card.topic.replace(' ', '-')}",
            ]
        )
        for card in cards
    ]
    return "\n".join([*head, *lines, ""])


def _back(card, site):
    points = "".join(f"<li>{_html(point)}</li>" for point in card.key_points)
    link = f'<a href="{card_address(card, site)}">The cell that shows it</a>'
    asked = " ".join(_html(each.question) for each in follow_ups(card))
    asked = asked and f"<p>An interviewer may go on: {asked}</p>"
    return f"<p>{_html(card.answer)}</p><ul>{points}</ul>{link}{asked}"


def card_address(card: Card, site: str) -> str:
    """Return the address, on the site, of the cell that shows a card's answer."""
    return f"{site}/{_PLACE.format(lesson=card.lesson, cell=card.cell)}"


def _select(name, choices):
    options = _option("", "all") + "".join(map(_option, choices, choices.values()))
    return f'<label>{name.title()} <select name="{name}">{options}</select></label>'


def _option(value, words=""):
    return f'<option value="{escape(value)}">{escape(words)}</option>'


def _html(text):
    return typeset(text, r"\({}\)").replace("\t", " ")
