"""Looks of operations: one per kind and outcome, of bars in a history's lanes."""

from distlab.show.canvas.theme import MUTED, PAPER, tint
from distlab.trace import Operation

__all__ = ["key_of", "kinds_of", "look_of"]

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
