"""The form of a question in a notebook.

How many megabytes does rank 0 send?
[ 8        ] MB  ( Change my guess )
You said 8 MB.
"""

import time
from html import escape

from distlab.errors import InvalidArgument
from distlab.predictions.answers import Choice

__all__ = ["Form"]

# A field's last value can arrive after the Enter or the click that it is meant by: the
# browser sends it second, or holds it back while an earlier value is on its way.
_TOGETHER_S = 0.5

_STYLE = """<style>
.distlab-guess { border: 1px solid var(--jp-border-color2, #D5DBE1); border-radius: 6px;
  padding: 10px 14px; margin: 4px 0; max-width: 46em; overflow: visible; }
.distlab-guess > style, .distlab-guess .distlab-guess-style { display: none; }
.distlab-guess-row { display: flex; flex-flow: row wrap; align-items: center;
  gap: 8px; overflow: visible; }
.distlab-guess .widget-text, .distlab-guess .widget-radio { display: contents; }
.distlab-guess .widget-label { width: auto; max-width: none; margin: 0;
  color: var(--jp-ui-font-color1, #1F2933); }
.distlab-guess .widget-text > label, .distlab-guess .widget-radio > label {
  flex: 1 0 100%; text-align: left; white-space: normal; height: auto;
  line-height: 1.4; font-weight: 600; overflow: visible; }
.distlab-guess .widget-text > input { flex: 0 0 11em; }
.distlab-guess .widget-radio-box { flex: 0 1 auto; margin: 0 12px 0 0 !important;
  flex-flow: row wrap; gap: 2px 18px; }
.distlab-guess .widget-radio-box label { width: auto; max-width: none; height: auto;
  line-height: 1.8; white-space: normal; text-align: left; display: flex;
  flex-direction: row-reverse; justify-content: flex-end; align-items: center; }
.distlab-guess .widget-radio-box input { margin: 0 6px 0 0; float: none; }
.distlab-guess button { width: auto; padding: 0 14px; margin: 0; }
.distlab-guess .widget-html { margin: 6px 0 0; }
.distlab-guess .widget-html-content { height: auto; line-height: 1.5; }
.distlab-guess-note { color: var(--jp-ui-font-color2, #6B7785); }
</style>"""


# The notebook has its own plans for most keys: with a choice in focus, x would cut the
# cell. Widgets cannot run scripts, so this stands beside the form.
_KEYS = """<script>
if (!window.distlabGuessKeys) {
  window.distlabGuessKeys = true;
  window.addEventListener("focusin", event => {
    const form = event.target.closest?.(".distlab-guess");
    if (form) form.onkeydown = key => key.stopPropagation();
  });
}
</script>"""


class Form:
    """The widgets that ask for one guess and say what was kept."""

    def __init__(self, guess):
        import ipywidgets as widgets

        self._guess = guess
        self._acted_s = float("-inf")
        self._field = self._make_field(widgets)
        self._button = widgets.Button()
        self._said = widgets.HTML()
        self._field.observe(self._field_changed, "value")
        self._field.on_msg(self._field_told)
        self._button.on_click(self._clicked)
        self._box = self._arranged(widgets)
        guess.watch(self._show)
        self._show()

    def bundle(self) -> dict:
        """Return what a notebook shows, and the words for where there are no forms."""
        return {**self._box._repr_mimebundle_(), "text/plain": repr(self._guess)}

    def keys(self) -> dict:
        """Return what keeps the form's keys from the notebook."""
        return {"text/html": _KEYS, "text/plain": ""}

    def _make_field(self, widgets):
        question, answer = self._guess.question, self._guess.answer
        if isinstance(answer, Choice):
            return widgets.RadioButtons(
                options=answer.choices, value=self._guess.value, description=question
            )
        return widgets.Text(description=question, continuous_update=False)

    def _arranged(self, widgets):
        unit = getattr(self._guess.answer, "unit", "")
        row = [self._field, *([widgets.Label(unit)] if unit else []), self._button]
        line = widgets.Box(row)
        line.add_class("distlab-guess-row")
        style = widgets.HTML(_STYLE)
        style.add_class("distlab-guess-style")
        box = widgets.VBox([style, line, self._said])
        box.add_class("distlab-guess")
        return box

    def _field_told(self, _, content, buffers):
        """Take Enter; what was typed before it may follow only now."""
        if content.get("event") == "submit":
            self._acted_s = time.monotonic()
            if self._field.value:
                self._keep()

    def _clicked(self, _):
        self._acted_s = time.monotonic()
        self._keep()

    def _field_changed(self, _):
        if time.monotonic() - self._acted_s < _TOGETHER_S:
            self._keep()

    def _keep(self):
        given = self._field.value
        if not given:
            return self._say(
                "Choose one first." if given is None else "Write a number first."
            )
        try:
            if self._guess.answer.read(given) != self._guess.value:
                self._guess.keep(given)
            else:
                self._show()
        except InvalidArgument as error:
            self._say(f"{error}.")

    def _show(self):
        """Say what is kept; called after each guess, whoever made it."""
        value = self._guess.value
        self._button.description = (
            "Keep my guess" if value is None else "Change my guess"
        )
        if value is None:
            return self._say("", self._guess.note)
        self._fill_in(value)
        self._say(f"You said {self._guess.answer.said(value)}.", self._guess.note)

    def _fill_in(self, value):
        try:
            same = self._guess.answer.read(self._field.value) == value
        except InvalidArgument:
            same = False
        if not same:
            self._field.value = (
                value if isinstance(value, str) else repr(value).removesuffix(".0")
            )

    def _say(self, sentence, note=""):
        rest = (
            f' <span class="distlab-guess-note">{escape(note)}</span>' if note else ""
        )
        self._said.value = f'<span role="status">{escape(sentence)}{rest}</span>'
