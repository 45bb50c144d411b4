"""The form of a question in a notebook.

How many megabytes does rank 0 send?
[ 8        ] MB  ( Change my guess )
You said 8 MB.

It is plain HTML that already contains the stored guess, so that a saved notebook and an
exported page show it without a kernel. A page without one keeps guesses in the browser.
"""

from html import escape
from uuid import uuid4

from distlab.calls.notebook_frontend import show
from distlab.errors import InvalidArgument
from distlab.learner.predictions.answers import Choice
from distlab.learner.predictions.kernel_bridge import form_script, form_style, receive

__all__ = ["Form"]

_PACKAGE = "distlab.learner.predictions"


class Form:
    """The form for one guess, which also shows the stored one."""

    def __init__(self, guess):
        self._guess = guess
        self._id = f"guess-{uuid4().hex[:12]}"
        self._shown, self._refused, self._problem = [], None, ""
        guess.watch(self._refresh)
        receive(self._id, self.given)

    def show(self) -> None:
        """Show the form in the cell that runs."""
        self._shown.append(show(self.bundle()))

    def given(self, value: object) -> None:
        """Keep the value that the learner typed or chose, or show why it is invalid.

        Called by: the page, through the bridge.
        """
        self._refused, self._problem = None, ""
        try:
            if self._guess.answer.read(value) != self._guess.value:
                return self._guess.keep(value)
        except InvalidArgument as error:
            self._refused, self._problem = str(value), f"{error}."
        self._refresh()

    def bundle(self) -> dict:
        """Return the form as a MIME bundle: HTML, and text for frontends without it."""
        return {"text/html": self._html(), "text/plain": repr(self._guess)}

    def _refresh(self):
        for shown in self._shown:
            shown.update(self.bundle(), raw=True)

    def _html(self):
        guess, value = self._guess, self._guess.value
        said = self._problem
        if not said and value is not None:
            said = f"You said {guess.answer.said(value)}."
        fields = self._choices if isinstance(guess.answer, Choice) else self._number
        # Without the attribute JupyterLab takes letters typed here for its shortcuts.
        return (
            f"{form_style('.distlab-guess', _PACKAGE, 'guess.css')}"
            f'<form class="distlab-guess" id="{self._id}" autocomplete="off" '
            f'data-lm-suppress-shortcuts="true" data-guess="{escape(guess.key)}" '
            f'data-unit="{escape(getattr(guess.answer, "unit", ""))}">{fields(value)}'
            f'<p id="{self._id}-said"><span role="status">{escape(said)}</span>'
            f'<span class="note">{escape(guess.note and f" {guess.note}")}</span></p>'
            f"</form>{form_script(_PACKAGE, 'guess.js')}"
        )

    def _number(self, value):
        text = "" if value is None else repr(value).removesuffix(".0")
        text = text if self._refused is None else self._refused
        unit = escape(self._guess.answer.unit)
        return (
            f'<label class="question" for="{self._id}-field">'
            f'{escape(self._guess.question)}</label><div class="given">'
            f'<input type="text" id="{self._id}-field" value="{escape(text)}" '
            f'aria-describedby="{self._id}-unit {self._id}-said">'
            f'<span id="{self._id}-unit">{unit}</span>{self._buttons(value)}</div>'
        )

    def _choices(self, value):
        boxes = "".join(
            f'<label class="choice"><input type="radio" name="{self._id}" '
            f'value="{escape(choice)}"{" checked" * (choice == value)}> '
            f"{escape(choice)}</label>"
            for choice in self._guess.answer.choices
        )
        question = f'<legend class="question">{escape(self._guess.question)}</legend>'
        row = f'<div class="given">{boxes}{self._buttons(value)}</div>'
        return f"<fieldset>{question}{row}</fieldset>"

    def _buttons(self, value):
        return (
            f"<button>{'Keep' if value is None else 'Change'} my guess</button>"
            '<button type="button" hidden>Clear my guess</button>'
        )
