"""Kinds of answer to a question: a number, or one of several choices.

Both kinds parse an answer, format it, read it back from the file, and describe how a
guess differs from the measurement.
"""

import math
import re
from dataclasses import dataclass

from distlab.errors import InvalidArgument

__all__ = ["Choice", "Number"]

_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
_NEAR = 0.1  # within a tenth a difference is given in percent, beyond it as a ratio


@dataclass(frozen=True)
class Number:
    """Any finite number, in `unit` where that is not ""."""

    unit: str = ""

    @property
    def wanted(self) -> str:
        """A description of a valid answer, for messages."""
        return f"a number{f' in {self.unit}' if self.unit else ''}"

    def read(self, given) -> float:
        """Return the number in `given`: a number, or text such as "2/3" or "7 MB".

        Raises: InvalidArgument for anything else.
        """
        value = self._in_text(given) if isinstance(given, str) else _finite(given)
        if value is None:
            raise InvalidArgument(
                f"{_brief(given)} is not {self.wanted}: write one such as 7, 1e3 or 2/3"
            )
        return value

    def _in_text(self, text):
        text = text.strip().removesuffix(self.unit).strip().replace("−", "-")
        grouped = _THOUSANDS.fullmatch(text)
        text = text.replace(",", "" if grouped else ".")  # 300,000 and 2,5
        above, slash, below = text.partition("/")
        try:
            return _finite(float(above) / (float(below) if slash else 1))
        except (ValueError, ArithmeticError):
            return None

    def entry(self, value) -> dict:
        """Return the file's entry for `value`."""
        return {"value": value, "unit": self.unit}

    def stored(self, entry) -> float | None:
        """Return the guess that `entry` holds, or None if its unit or type differs."""
        if not isinstance(entry, dict) or entry.get("unit") != self.unit:
            return None
        value = entry.get("value")
        return None if isinstance(value, str) else _finite(value)

    def said(self, value) -> str:
        """Format a number with its unit, to four digits where it is not whole."""
        return f"{_readable(value)} {self.unit}".rstrip()

    def outcome(self, guess, measured) -> str:
        """Return "right", "near" (within a tenth of the measurement) or "off"."""
        if self.said(guess) == self.said(measured):
            return "right"
        return "near" if abs(guess - measured) <= _NEAR * abs(measured) else "off"

    def line(self, guess, formula, measured) -> str:
        """Return a line with guess, formula (may be None), measurement and error."""
        parts = [f"you said {self.said(guess)}"]
        if formula is not None:
            parts.append(f"the formula says {self.said(formula)}")
        verdict = self._verdict(guess, measured)
        return " · ".join([*parts, f"measured {self.said(measured)}: {verdict}"])

    def _verdict(self, guess, measured):
        if self.said(guess) == self.said(measured):
            return "just as you said"
        if guess * measured <= 0:
            return f"you were off by {self.said(abs(guess - measured))}"
        ratio = guess / measured
        if abs(ratio - 1) < _NEAR:
            side = "high" if guess > measured else "low"
            return f"your guess was {100 * abs(ratio - 1):.2g} % too {side}"
        if ratio < _NEAR:
            return f"that is {_rough(measured / guess)} times your guess"
        return (
            f"your guess was {_rough(ratio)} {'times that' if ratio > 1 else 'of it'}"
        )


@dataclass(frozen=True)
class Choice:
    """One of `choices`, word for word."""

    choices: tuple[str, ...]

    @property
    def wanted(self) -> str:
        """A description of a valid answer, for messages."""
        *most, last = map(repr, self.choices)
        return f"one of {', '.join(most)} and {last}"

    def read(self, given) -> str:
        """Return `given` if it is one of the choices.

        Raises: InvalidArgument otherwise.
        """
        if not isinstance(given, str) or given not in self.choices:
            raise InvalidArgument(
                f"{_brief(given)} is not {self.wanted}: take {self.choices[0]!r}, "
                "for example"
            )
        return given

    def entry(self, value) -> dict:
        """Return the file's entry for `value`."""
        return {"value": value}

    def stored(self, entry) -> str | None:
        """Return the guess that `entry` holds, or None if it is no longer a choice."""
        value = entry.get("value") if isinstance(entry, dict) else None
        return value if value in self.choices else None

    def said(self, value) -> str:
        """Return the choice as it is."""
        return value

    def outcome(self, guess, measured) -> str:
        """Return "right" or "off"."""
        return "right" if guess == measured else "off"

    def line(self, guess, formula, measured) -> str:
        """Return a line with guess, formula (may be None) and measurement."""
        parts = [f"you said {guess}"]
        if formula is not None:
            parts.append(f"the formula says {formula}")
        same = ", as you said" if guess == measured else ""
        return " · ".join([*parts, f"measured: {measured}{same}"])


def _finite(given):
    """Return a number of any library as a finite float, or None if it is not one."""
    if isinstance(given, bool | str | bytes):
        return None
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def _readable(value):
    whole = value if value.is_integer() else float(f"{value:.4g}")
    if whole.is_integer() and abs(whole) < 1e7:
        return f"{whole:,.0f}" if abs(whole) >= 1e4 else f"{whole:.0f}"
    return f"{value:.4g}".replace("e+", "e").replace("e0", "e").replace("e-0", "e-")


def _rough(value):
    return _readable(float(f"{value:.2g}"))


def _brief(given):
    text = repr(given)
    return text if len(text) <= 60 else text[:59] + "…"
