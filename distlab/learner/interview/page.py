"""A mock interview in a cell, and on the site's page, where no kernel is.

    <div class="distlab-cards" data-interview="{...}">   what MockInterview holds
      <form class="interview">  <section data-card="10-walk" ...>  <div class="report">

The sections are those of the quiz. In a cell the interview is drawn, and answers go to
the record; on the site draw.js draws, and the browser keeps the answers.
"""

import json
from html import escape

from distlab.calls.notebook_frontend import cell_number, person_is_there, show
from distlab.learner.interview.draw import question_of
from distlab.learner.interview.live_coding import EXERCISES, live_coding
from distlab.learner.interview.questions import Question, card_question
from distlab.learner.interview.record import MockInterview, begin, current
from distlab.learner.interview.whiteboard import TOPICS, whiteboard
from distlab.learner.predictions.kernel_bridge import open_bridge, receive
from distlab.learner.quiz.card import LEVELS, Card
from distlab.learner.quiz.deck import deck_html, place_of, section
from distlab.learner.quiz.page import ON_SITE, select, topic_field

__all__ = ["InterviewPage", "interview", "interview_page"]

_DRAWS = 6  # of each whiteboard question on the site
_shown = {}  # when an interview began -> itself, and the handle of its hidden output


class InterviewPage:
    """A mock interview to hold in a cell; in a terminal its questions."""

    def __init__(self, held: MockInterview):
        self.held = held
        self.questions = [question_of(name) for name in held.questions]

    def __repr__(self):
        kinds = [
            f"{q.minutes:2} min  {q.card.level:9}  {q.card.topic}"
            for q in self.questions
        ]
        head = f"{self.held.level} interview, {self.held.minutes} minutes"
        last = "`distlab interview` holds one in a terminal."
        return "\n".join([head.capitalize(), *kinds, last])

    def _repr_mimebundle_(self, include=None, exclude=None):
        sections = "".join(_section(q, place_of(q.card.lesson)) for q in self.questions)
        held = escape(json.dumps(vars(self.held)))
        many, left = len(self.questions), len(self.held.open())
        intro = f"A {self.held.level} interview of {self.held.minutes} minutes: "
        intro += (
            f"{left} of {many} questions left." if left < many else f"{many} questions."
        )
        button = "Go on" if self.held.answers else "Begin"
        mark = f'data-interview="{held}"'
        html = _page(intro, sections, "interview.js", mark=mark, button=button)
        return {"text/html": html, "text/plain": repr(self)}

    def _ipython_display_(self):
        if cell_number() is None:
            raise NotImplementedError  # IPython then uses the MIME bundle
        open_bridge()
        receive("interview", _heard)
        handle = show(_hidden(self.held)) if person_is_there() else None
        _shown[self.held.started] = self.held, handle
        show(self._repr_mimebundle_())


def interview(
    level: str | None = None,
    minutes: int | None = None,
    topic: str | None = None,
    *,
    seed: int | None = None,
    new: bool = False,
) -> InterviewPage:
    """Return a mock interview, to hold as the last line of a cell.

    It goes on with the last one that was not finished, if that is as given and `new` is
    False; else it draws one: senior and 45 minutes if nothing is said.

    Raises: InvalidArgument for a level or topic that no card has, or minutes out of
        range.
    """
    given = {"level": level, "minutes": minutes, "topic": topic, "seed": seed}
    wanted = {name: value for name, value in given.items() if value is not None}
    return InterviewPage((None if new else current(**given)) or begin(**wanted))


def interview_page(cards: list[Card]) -> str:
    """Return the interview as HTML for a page without a kernel: all its questions."""
    questions = [card_question(card) for card in cards]
    questions += [whiteboard(topic, seed) for topic in TOPICS for seed in range(_DRAWS)]
    questions += [live_coding(stem) for stem in EXERCISES]
    lessons = {card.lesson for card in cards}
    questions = [each for each in questions if each.card.lesson in lessons]
    levels = {level: level for level in LEVELS}
    lengths = {f"{n}": f"{n}" for n in (15, 30, 45, 60, 90)}
    form = (
        '<form class="choose row interview-choice" hidden>'
        f"{select('level', levels, 'senior')}{select('minutes', lengths, '45')}"
        f'{topic_field(cards)}</form><p class="today" role="status"></p>'
    )
    sections = "".join(_section(question, ON_SITE) for question in questions)
    intro = "Chains of questions, one with numbers, and one of live coding."
    scripts = "interview.js", "draw.js"
    return _page(intro, sections, *scripts, form=form, mark='data-interview="null"')


def _page(intro, sections, *scripts, mark, form="", button="Begin"):
    how = (
        " Write each answer, then compare; the clock stops while you do. Nothing "
        "leaves this machine."
    )
    inner = (
        f"<p>{escape(intro + how)}</p>{form}"
        f'<form class="interview row"><button>{button}</button>'
        '<span class="note" role="status"></span></form>'
        '<p class="clock note" role="timer" hidden></p>'
        f'{sections}<div class="report" tabindex="-1" hidden></div>'
    )
    return deck_html(inner, *scripts, mark=mark)


def _section(question: Question, place: str) -> str:
    card, data = question.card, {"minutes": question.minutes, "kind": "card"}
    if card.follows:
        data["follows"] = card.follows
    if question.value is not None:
        data |= {"kind": "whiteboard", "value": question.value, "unit": question.unit}
    code = ""
    if question.code:
        data["kind"] = "live-coding"
        code = (
            '<button type="button" class="copy">Copy the cell</button> '
            '<span class="note">Paste it into a new cell of a notebook; its last line '
            f'checks.</span><pre tabindex="0">{escape(question.code)}</pre>'
        )
    return section(card, None, True, place, below=code, **data)


def _heard(value):
    """Store a part of an answer, or the end, that the page sends."""
    held, handle = _shown[value.pop("started")]
    held.keep(value.pop("question"), **value)
    if handle:
        handle.update(_hidden(held), raw=True)


def _hidden(held):
    """Return a hidden output with the interview, for a notebook saved now."""
    kept = escape(json.dumps(vars(held)))
    html = f'<div class="distlab-kept" data-kept="{kept}" hidden></div>'
    return {"text/html": html, "text/plain": ""}
