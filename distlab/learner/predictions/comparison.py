"""Comparison of a guess with the result: one line below an experiment."""

import json
from base64 import b64encode
from html import escape

from distlab.calls.notebook import cell_number, show
from distlab.learner.predictions.assets import said_style
from distlab.learner.predictions.listeners import tell

__all__ = ["PredictionComparison"]

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
