"""Expected and yours for the keys of a job, side by side, at the first difference."""

from distlab.grading.tables import excerpt

__all__ = ["beside", "first_apart"]

_WIDE = 28
_AROUND = 1


def beside(
    rows: list[tuple[str, list[str], list[str]]],
    first: int,
    heads: tuple[str, str, str],
    says: str = "first difference",
) -> list[str]:
    """Return a table as lines: the row `first`, and one before and after it.

    rows: what a row is called, the words that are expected, and yours.
    says: what is said of the row `first`.
    """
    shown = range(max(0, first - _AROUND), min(len(rows), first + _AROUND + 1))
    names = [_short(rows[number][0]) for number in shown]
    wide = max(map(len, [heads[0], *names]))
    lines = [f"{heads[0]:{wide}}  {heads[1]:{_WIDE}}  {heads[2]}"]
    place = first_apart(rows[first][1], rows[first][2])
    for name, number in zip(names, shown, strict=True):
        left, right = (
            excerpt(words, place if number == first else 0, _WIDE) if words else "-"
            for words in rows[number][1:]
        )
        mark = f"← {says}" if number == first else ""
        lines.append(f"{name:{wide}}  {left:{_WIDE}}  {right:{_WIDE}}  {mark}".rstrip())
    more = len(rows) - len(shown)
    if more:
        lines.append(f"and {more} more row{'s' * (more > 1)}")
    return lines


def first_apart(some: list, other: list) -> int:
    """Return the first place at which two lists differ."""
    both = zip(some, other, strict=False)
    apart = (place for place, (a, b) in enumerate(both) if a != b)
    return next(apart, min(len(some), len(other)))


def _short(name):
    return name if len(name) <= _WIDE else f"{name[: _WIDE - 1]}…"
