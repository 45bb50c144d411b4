"""Looks of kinds: one colour and hatching per kind of memory, or of pipeline work.

Kinds differ in lightness, which every eye sees, and in hatching. Their browns are those
of no rank, also for an eye that mixes up red and green.

Operations have one look per kind and outcome, for the bars in a history's lanes.
"""

from typing import NamedTuple

from distlab.show.canvas.theme import INK, KIND_COLORS, MUTED, PAPER, tint
from distlab.trace import Operation

__all__ = ["Look", "key_of", "kinds_of", "look_of", "looks_of"]

_DARK, _STRONG, _MIDDLE, _LIGHT, _PALE = KIND_COLORS
_WITH_WHITE = (_DARK, _STRONG, _MIDDLE)
_CHUNKS = (None, "....", "xxxx", "----", "||||")  # the hatching of chunk 0, 1, ...
_HATCHES = (None, "////", "....", "\\\\\\\\", "xxxx", "----", "||||")


class Look(NamedTuple):
    """Colour and hatching of a kind. hatch: in matplotlib's notation, or None."""

    color: str
    hatch: str | None

    @property
    def line(self) -> str:
        """The colour of the edge and of the hatching."""
        if self.hatch is None:
            return PAPER
        light = _PALE if self.color == _LIGHT else _MIDDLE
        return _LIGHT if self.color in _WITH_WHITE else light

    @property
    def letters(self) -> str:
        """The colour of text on it."""
        return PAPER if self.color in _WITH_WHITE else INK

    @property
    def swatch(self) -> dict:
        """The keyword arguments for `canvas.bars`."""
        return {"color": self.color, "edge": self.line, "hatch": self.hatch}


_NAMED = {
    "parameters": Look(_DARK, None),
    "gradients": Look(_MIDDLE, "////"),
    "optimizer state": Look(_LIGHT, "...."),
    "activations": Look(_PALE, "\\\\\\\\"),
    "forward": Look(_PALE, None),
    "backward": Look(_MIDDLE, None),
    "weights": Look(_LIGHT, None),
}
# Five and seven have no common divisor: 35 kinds differ in colour or hatching.
_ORDER = (_LIGHT, _STRONG, _PALE, _DARK, _MIDDLE)
_OTHERS = [Look(_ORDER[n % 5], _HATCHES[n % 7]) for n in range(35)]


def looks_of(kinds) -> dict[str, Look]:
    """Return kind -> look, no two alike up to 35 kinds.

    The usual kinds look the same in every picture, also "forward, chunk 1", which is
    hatched in addition; others get a look that is free, with a colour of their own as
    long as there is one.
    """
    looks = {}
    for kind in kinds:
        base, _, chunk = kind.lower().partition(", chunk ")
        named = _NAMED.get(base)
        if named and chunk.isdigit():
            named = named._replace(hatch=_CHUNKS[int(chunk) % len(_CHUNKS)])
        if named and named not in looks.values():
            looks[kind] = named
    for kind in kinds:
        if kind not in looks:
            used = {look.color for look in looks.values()}
            free = [look for look in _OTHERS if look not in looks.values()]
            free.append(_OTHERS[len(looks) % len(_OTHERS)])
            looks[kind] = next(
                (look for look in free if look.color not in used), free[0]
            )
    return {kind: looks[kind] for kind in kinds}


_KINDS = {
    "write": "filled: a write",
    "read": "pale: a read",
    "other": "hatched: another operation",
    "open": "pointed: unknown outcome; it may take effect later, or never",
    "failed": "crossed: refused, not done",
}


def kinds_of(one: Operation) -> list[str]:
    """Return the kinds of an operation; as the last of them it is drawn."""
    kind = one.op if one.op in ("read", "write") else "other"
    if one.outcome == "failed":
        return [kind, "failed"]
    return [kind, "open"] if one.end is None else [kind]


def look_of(kind: str, color: str) -> dict:
    """Return a kind of bar's keyword arguments for `shapes`, in a client's colour."""
    looks = {
        "write": {"color": color, "edge": PAPER},
        "read": {"color": tint(color, 0.25), "edge": color},
        "other": {"color": tint(color, 0.25), "edge": color, "hatch": "////"},
        "open": {"color": PAPER, "edge": color, "dashed": True},
        "failed": {"color": PAPER, "edge": MUTED, "dashed": True},
    }
    return looks[kind]


def key_of(operations, color: str) -> list[tuple[dict, str]]:
    """Return the legend's entries for the kinds that are there."""
    there = {kind for one in operations for kind in kinds_of(one)}
    return [(look_of(kind, color), _KINDS[kind]) for kind in _KINDS if kind in there]
