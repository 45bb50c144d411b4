"""The question of `predict`, and the `Guess` that stores its answer.

A comparison sets it beside the result, in one line below an experiment.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from html import escape

from distlab.calls.notebook_frontend import cell_number, show
from distlab.errors import InvalidArgument
from distlab.learner.predictions.answer_storage import kept_by_learner, tell
from distlab.learner.predictions.answers import Choice, Number
from distlab.learner.predictions.form import Form
from distlab.learner.predictions.kernel_bridge import open_bridge, said_style

__all__ = ["Guess", "PredictionComparison", "predict"]

_GUESS_FIRST = "Guess first, above: this line then tells what came out."


class PredictionComparison:
    """A guess beside a formula and a measurement; shows no number before the guess.

    It is plain HTML under a display id and no widget, so that a saved notebook and an
    exported page show it, too.
    """

    def __init__(self, guess, measured, formula):
        self._guess, self._measured, self._formula = guess, measured, formula
        self._shown = []

    def __repr__(self):
        value = self._guess.value
        if value is None:
            return _GUESS_FIRST
        return self._guess.answer.line(value, self._formula, self._measured)

    def _ipython_display_(self):
        if cell_number() is None:
            raise NotImplementedError  # IPython then prints the words
        if not self._shown:
            self._guess.watch(self._refresh)
        bundle = self._bundle()
        self._shown.append(show(bundle))
        if self._bundle() != bundle:  # kept in another thread, while it was shown
            self._refresh()

    def _refresh(self):
        for shown in self._shown:
            shown.update(self._bundle(), raw=True)

    def _bundle(self):
        tell(self._guess, self._measured)
        line = repr(self)
        html = (
            f'{said_style()}<div class="distlab-said distlab-compared'
            f'{" first" * (line == _GUESS_FIRST)}" role="status" '
            f'data-guess="{escape(self._guess.key)}" data-result="{self._result()}">'
            f"{escape(line)}</div>"
        )
        return {"text/html": html, "text/plain": line}

    def _result(self):
        """Return the result as base64 JSON, for a page without a kernel."""
        result = {"measured": self._measured, "formula": self._formula}
        result["first"] = _GUESS_FIRST
        result["unit"] = getattr(self._guess.answer, "unit", "")
        return b64encode(json.dumps(result).encode()).decode()


def predict(
    question: str,
    *,
    unit: str | None = None,
    choices: Sequence[str] | None = None,
    key: str | None = None,
) -> "Guess":
    """Request a guess, by a form in the cell of a notebook; never wait for it.

    The answer is a number, in `unit` if one is given, or one of `choices`. A guess is
    stored by its question; `key` distinguishes two questions of the same words.

    Raises: InvalidArgument for a malformed question, unit, key or choices.
    """
    _check_text("question", question)
    answer = _answer(unit, choices)
    if key is not None:
        _check_text("key", key)
    return Guess(question, answer, key=f"{key}: {question}" if key else question)


class Guess:
    """A question and the learner's answer to it.

    Made by `predict`. As the last line of a cell it shows its form once more, or text
    where there are no forms. key: the key under which the answer is stored.
    """

    def __init__(self, question: str, answer: Choice | Number, *, key: str):
        self.question = question
        self.answer = answer
        self.key = key
        self._guesses = kept_by_learner("guesses")
        self._asked_in = cell_number()
        if self._asked_in is not None:
            self._show_form()
        tell(self)

    @property
    def value(self) -> float | str | None:
        """The number in the question's unit, or the choice; None until there is one."""
        return self.answer.stored(self._guesses.get(self.key))

    def keep(self, value: object) -> None:
        """Keep `value` as the guess, as the button of the form does.

        A number may be text such as "7 MB" or "2/3".

        Raises: InvalidArgument for a value that does not answer the question.
        """
        self._guesses.put(self.key, self.answer.entry(self.answer.read(value)))
        tell(self)

    def compare(self, measured: object, formula: object = None) -> PredictionComparison:
        """Return one line with the guess, a formula's result, and the measurement.

        Both are in the question's unit, or choices. Until there is a guess the line
        only requests one; in a notebook it is then filled in without a second run.

        Raises: InvalidArgument for a value that does not answer the question.
        """
        read = self.answer.read
        return PredictionComparison(
            self, read(measured), None if formula is None else read(formula)
        )

    def watch(self, changed) -> None:
        """Call `changed()` whenever this question is answered."""
        self._guesses.watch(self.key, changed)

    @property
    def note(self) -> str:
        """A note for the learner on the file that stores this guess; mostly ""."""
        return self._guesses.note(self.key)

    def __repr__(self):
        value = self.value
        if value is None:
            return f"{self.question}\nNo guess yet; wanted is {self.answer.wanted}."
        return f"{self.question}\nYou said {self.answer.said(value)}."

    def _ipython_display_(self):
        number = cell_number()
        if number is None:
            raise NotImplementedError  # IPython then prints the words
        if number != self._asked_in:  # else the form stands in this very cell
            self._show_form()

    def _show_form(self):
        open_bridge()
        Form(self).show()


def _check_text(name, given):
    if not isinstance(given, str) or not given.strip():
        raise InvalidArgument(
            f"the {name} of a prediction is a text, and got {given!r}. For example: "
            'predict("How many megabytes does rank 0 send?", unit="MB")'
        )


def _answer(unit, choices):
    if choices is None:
        if unit is not None:
            _check_text("unit", unit)
        return Number(unit.strip() if unit else "")
    if unit is not None:
        raise InvalidArgument(
            f"a prediction has a unit or choices, and got both: unit={unit!r}. "
            "Leave one of them out"
        )
    listed = [] if isinstance(choices, str) else list(choices)
    if len(listed) < 2 or len(set(map(str, listed))) < len(listed):
        raise InvalidArgument(
            f"choices are two different texts or more, and got {choices!r}. "
            'For example: choices=["grows", "shrinks"]'
        )
    for choice in listed:
        _check_text("choice", choice)
    return Choice(tuple(listed))
