"""Whose share is in a sum: read it from the digits.

If every number of rank r is 16**r, then a sum of shares, written in base 16, has as its
r-th digit how often rank r's share is in it.
"""

__all__ = ["BASE", "cut", "digits", "in_words", "what_is_wrong"]

BASE = 16
_WIDTH = 28


def digits(value: int, world_size: int) -> list[int] | None:
    """Return how often each rank's share is in `value`; None if it is no such sum."""
    counts = []
    for _ in range(world_size):
        value, count = divmod(value, BASE)
        counts.append(count)
    return None if value else counts


def in_words(value: int) -> str:
    """Return whose shares are in `value`, such as "0+1+3"; "?" if it is no such sum."""
    counts = digits(value, BASE)
    if counts is None:
        return "?"
    ranks = [str(rank) for rank, count in enumerate(counts) for _ in range(count)]
    return "+".join(ranks) or "nobody"


def cut(values: list, start: int) -> str:
    """Return a few of `values`, from `start` on, in the width of a table's column."""
    shown = ", ".join(map(str, values[start : start + 3]))
    before, after = "… " * bool(start), " …" * (start + 3 < len(values))
    return (before + shown + after)[:_WIDTH]


def what_is_wrong(counts: list[int] | None) -> str:
    """Return which shares are missing or counted too often, in words."""
    if counts is None:
        return "this is no sum of whole shares"
    missing = [str(rank) for rank, count in enumerate(counts) if count == 0]
    extra = [
        f"{rank} ({count} times)" for rank, count in enumerate(counts) if count > 1
    ]
    told = []
    if missing:
        told.append(f"the share of rank {' and of rank '.join(missing)} is missing")
    if extra:
        told.append(
            f"the share of rank {' and of rank '.join(extra)} is in it too often"
        )
    return ", ".join(told)
