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
_ABOUT = re.compile(r"^(?:about|around|ca\.?|[~≈=])\s*", re.IGNORECASE)
_WITH_UNIT = re.compile(r"(.*[\d.])\s*([a-zA-Zµ]+)")
_SCALES = (  # units that a number may be given in, of one kind
    {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "second": 1, "min": 60, "minute": 60}
    | {"h": 3600, "hour": 3600, "d": 86400, "day": 86400},
    {"B": 1, "byte": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
    | {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
)
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

        Another unit of time or of bytes is converted: "about 1.5 h" are 90 minutes.

        Raises: InvalidArgument for anything else.
        """
        value = self._in_text(given) if isinstance(given, str) else _finite(given)
        if value is None:
            raise InvalidArgument(
                f"{_brief(given)} is not {self.wanted}: write one such as 7, 1e3 or 2/3"
            )
        return value

    def _in_text(self, text):
        text = _ABOUT.sub("", text.strip())
        own = rf"(?<![a-zA-Zµ]){re.escape(self.unit)}$"
        text = re.sub(own, "", text).strip().replace("−", "-")
        factor = 1.0
        if (found := _WITH_UNIT.fullmatch(text)) and (factor := self._factor(found[2])):
            text = found[1]
        grouped = _THOUSANDS.fullmatch(text)
        text = text.replace(",", "" if grouped else ".")  # 300,000 and 2,5
        above, slash, below = text.partition("/")
        try:
            return _finite(factor * float(above) / (float(below) if slash else 1))
        except (ValueError, ArithmeticError):
            return None

    def _factor(self, unit):
        """Return the factor from another unit to this one; 0.0 if there is none."""
        for scale in _SCALES:
            given, own = (
                scale.get(each) or scale.get(each.removesuffix("s"))
                for each in (unit, self.unit)
            )
            if given and own:
                return given / own
        return 0.0

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
