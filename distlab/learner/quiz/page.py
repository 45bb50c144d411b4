"""The review page of a site: all cards, without a kernel."""

from html import escape

from distlab.calls.message_html import typeset
from distlab.learner.quiz.card import LEVELS, Card, follow_ups
from distlab.learner.quiz.deck import deck_html, section

__all__ = ["ON_SITE", "anki", "card_address", "review_page", "select", "topic_field"]

# The address, on the site, of the cell that shows the answer.
ON_SITE = "lessons/{lesson}.html#cell-id={cell}"
_SCRIPTS = ("ts-fsrs.min.js", "schedule.js", "review.js")


def review_page(cards: list[Card]) -> str:
    """Return cards as HTML: those that are due, one at a time.

    Ratings and answers are in the browser, together with those of the lessons' pages.
    It links to a file distlab-cards.txt beside it, which holds `anki`'s text.
    """
    stems = sorted({card.lesson for card in cards})
    lessons = {"": "all"} | {stem: stem.replace("_", " ") for stem in stems}
    levels = {"": "all"} | {level: level for level in LEVELS}
    form = (
        f'<form class="choose row" hidden>{select("lesson", lessons)}'
        f"{select('level', levels)}{topic_field(cards)}</form>"
    )
    sections = "".join(section(card, None, True, ON_SITE) for card in cards)
    return deck_html(
        f'{form}<p class="today" role="status"></p>{sections}'
        '<p><a href="distlab-cards.txt" download>Download all cards for Anki</a></p>',
        *_SCRIPTS,
        mark="data-review",
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
    return f"{site}/{ON_SITE.format(lesson=card.lesson, cell=card.cell)}"


def topic_field(cards: list[Card]) -> str:
    """Return a field that offers the topics of cards, as HTML."""
    topics = "".join(map(_option, sorted({card.topic for card in cards})))
    return (
        '<label>Topic <input type="text" name="topic" list="distlab-topics"></label>'
        f'<datalist id="distlab-topics">{topics}</datalist>'
    )


def select(name: str, choices: dict[str, str], chosen: str = "") -> str:
    """Return a menu as HTML; choices: the words for each value."""
    options = "".join(
        _option(value, words, " selected" * (value == chosen))
        for value, words in choices.items()
    )
    return f'<label>{name.title()} <select name="{name}">{options}</select></label>'


def _option(value, words="", more=""):
    return f'<option value="{escape(value)}"{more}>{escape(words)}</option>'


def _html(text):
    return typeset(text, r"\({}\)").replace("\t", " ")
