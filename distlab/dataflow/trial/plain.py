"""Values on their way from where they may be anything to where they are compared."""

import reprlib
from typing import NamedTuple

from distlab.dataflow.trial.sealed import Sealed, SealedTuple

__all__ = ["Odd", "plain", "value_of"]


class Odd(NamedTuple):
    """Stands for a value that is no plain data; it equals nothing that is."""

    kind: str
    shown: str

    def __repr__(self):
        return f"{self.shown} (a {self.kind})"


def plain(value: object) -> object:
    """Return a value as what JSON can hold; what is no plain data, as a description.

    Kinds are compared exactly: a str with an `__eq__` of its own is no str.
    """
    if type(value) is Odd:
        return value._asdict()
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value) is list:
        return [plain(part) for part in value]
    if type(value) in (tuple, SealedTuple):
        return {"tuple": [plain(part) for part in value]}
    if type(value) is Sealed:
        return {"kind": value.kind, "shown": value.shown}
    shown = " ".join(reprlib.repr(value).split())
    return {"kind": type(value).__name__, "shown": shown}


def value_of(told: object) -> object:
    """Return the value that `plain` described."""
    if isinstance(told, list):
        return [value_of(part) for part in told]
    if isinstance(told, dict):
        if "tuple" in told:
            return tuple(map(value_of, told["tuple"]))
        return Odd(**told)
    return told
