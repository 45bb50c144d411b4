"""Outputs of a submission's cells, sent by its process, and verdicts, made here.

An instructor opens them in a page that can write grades, so of a submission's outputs
only text and pixel images are kept. Verdicts are trusted, and may show players.
"""

import json
import re
from dataclasses import replace

import nbformat
from nbformat import from_dict

from distlab.checks.kit.contracts import clauses_met
from distlab.checks.kit.grading import Verdict, VerdictDisplay

__all__ = ["MARK", "Paper", "clean", "score", "text", "trouble"]

MARK = "distlab"  # in the metadata of an output: {"hidden": bool, "seen": str}
_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_MOST_OUTPUTS, _MOST_BYTES, _MOST_PICTURE_BYTES = 200, 2**23, 2**22


def trouble(why: str) -> dict:
    """Return the output of a cell that was ended, or was not run."""
    said = [f"\x1b[0;31m{why}\x1b[0m"]
    described = {"output_type": "error", "ename": "CellEnded", "evalue": why}
    return from_dict(described | {"traceback": said})


def text(said: str) -> dict:
    """Return printed text as an output."""
    return {"output_type": "stream", "name": "stdout", "text": said}


def score(earned: float) -> dict:
    """Return a grade cell's value as the output that nbgrader reads."""
    value = {"output_type": "execute_result", "execution_count": None}
    mark = {MARK: {"hidden": False, "seen": ""}}
    return value | {"data": {"text/plain": repr(float(earned))}, "metadata": mark}


def clean(outputs: object) -> list:
    """Return the valid outputs among those that a submission has sent."""
    kept, size = [], 0
    for output in outputs if isinstance(outputs, list) else []:
        try:
            if "data" in output:
                output = output | {"data": _plain(output["data"]), "metadata": {}}
            nbformat.validate(output, ref="output", version=4)
            size += len(json.dumps(output).encode(errors="replace"))
        except Exception:  # untrusted data can provoke any
            kept.append(trouble("An output was left out: no notebook can hold it."))
            continue
        if size > _MOST_BYTES or len(kept) == _MOST_OUTPUTS:
            return [*kept, trouble("More was shown than is kept.")]
        # Without lone surrogates, which UTF-8 cannot encode.
        encoded = json.dumps(output, ensure_ascii=False).encode(errors="replace")
        kept.append(from_dict(json.loads(encoded)))
    return kept


def _plain(data):
    """Return the harmless parts of a display: plain text and pixel images."""
    kept = {"text/plain": _joined(data.get("text/plain", ""))}
    for kind in ("image/png", "image/jpeg"):
        if kind in data and _BASE64.fullmatch(_joined(data[kind])):
            kept[kind] = _joined(data[kind])
    return kept


def _joined(value):
    return "".join(map(str, value)) if isinstance(value, list) else str(value)


class Paper(VerdictDisplay):
    """A collector of verdicts as outputs, with a student's view of hidden cases.

    inconclusive: whether a verdict is. met: clauses of another contract that a hint
    says were met.
    """

    def __init__(self):
        self.outputs, self.inconclusive, self.met = [], False, set()

    def show(self, verdict: Verdict, hidden: bool) -> None:
        """Add a verdict, and its picture if it did not pass."""
        verdict = replace(verdict, hints=verdict.hints[:1])  # a page has no `hint()`
        self.inconclusive |= verdict.outcome == "inconclusive"
        self.met |= {*filter(None, map(clauses_met, verdict.hints))}
        if hidden:
            blank = Verdict(verdict.outcome, "a hidden case", "", verdict.hints)
            self._display({"text/plain": f"{verdict}\n"}, f"{blank}\n")
        else:
            self._print(f"{verdict}\n")
        drawn = {} if verdict.outcome == "pass" else verdict.drawn()
        drawn = {kind: data for kind, data in drawn.items() if kind != "text/plain"}
        if drawn and len(json.dumps(drawn)) < _MOST_PICTURE_BYTES:
            self._display(drawn, "" if hidden else None)

    def total(self, earned: float, line: str) -> float:
        """Add the line with the points; return them."""
        self._print(f"{line}\n")
        return earned

    def _print(self, said):
        if self.outputs and self.outputs[-1]["output_type"] == "stream":
            self.outputs[-1]["text"] += said
        else:
            self.outputs.append(text(said))

    def _display(self, data, seen):
        """Add a display of MIME type -> data; seen: a text for students, or None."""
        mark = {"hidden": seen is not None, "seen": seen or ""}
        display = {"output_type": "display_data", "data": data}
        self.outputs.append(display | {"metadata": {MARK: mark}})
