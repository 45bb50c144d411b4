"""Looks of kinds: one colour and hatching per kind of memory, or of pipeline work.

Kinds differ in lightness, which every eye sees, and in hatching. Their browns are those
of no rank, also for an eye that mixes up red and green.
"""

from typing import NamedTuple

from distlab.show.canvas.theme import INK, KIND_COLORS, PAPER

__all__ = ["Look", "looks_of"]

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
