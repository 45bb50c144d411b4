"""Tables of expected and actual values per rank, around the first difference."""

from distlab.show.table import aligned
from distlab.trace import counts_in, shares_named

__all__ = ["by_key", "difference", "excerpt", "side_by_side"]

_WIDEST = 26
_MISSING = "-"
_MOST_ROWS = 8


def difference(
    rows: list[tuple[list, list]], *, described: bool = False
) -> tuple[str, dict] | None:
    """Return a table around the first element that differs, and facts; None if none.

    rows: for each rank the numbers expected, and yours. described: True if they were
    `contributions`; then the table shows the ranks in each sum, and the fact `counts`
    is the number of each rank's in the first that differs. If the lengths differ, the
    fact is `misshapen`.
    """
    n = len(rows)
    for rank, (right, mine) in enumerate(rows):
        if len(mine) != len(right):
            found = f"Rank {rank} ends with {len(mine)} elements, not {len(right)}."
            return found, {"rank": rank, "n": n, "misshapen": True}
        if mine == right:
            continue
        both = enumerate(zip(right, mine, strict=True))
        place = next(i for i, (a, b) in both if a != b)
        near = slice(max(0, place - _WIDEST), place + _WIDEST)  # more is not shown
        words = [
            tuple([_in_words(v, n, described) for v in half[near]] for half in r)
            for r in rows
        ]
        lines = side_by_side(words, rank, place - near.start)
        facts = {"rank": rank, "place": place, "n": n}
        if described:
            lines.append("(0+1: the contributions of ranks 0 and 1 are in this sum)")
            facts["counts"] = counts_in(mine[place], n)
        return "\n".join(lines), facts
    return None


def _in_words(value, n, described):
    if not described:
        return f"{value:g}"
    counts = counts_in(value, n)
    return "?" if counts is None else shares_named(counts) or "none"


def side_by_side(
    rows: list[tuple[list[str], list[str]]], rank: int, place: int
) -> list[str]:
    """Return a table as lines, of a few ranks around `rank`, from `place` on.

    rows: for each rank the words that are expected, and yours.
    """
    first = max(0, min(rank - _MOST_ROWS // 2, len(rows) - _MOST_ROWS))
    shown = range(len(rows))[first : first + _MOST_ROWS]
    lines = [("  rank", "expected", "yours", "")]
    for number in shown:
        mark = "← first difference" if number == rank else ""
        cells = [excerpt(words, place, _WIDEST) for words in rows[number]]
        lines.append((str(number), *cells, mark))
    lines = aligned(lines, "><<<")
    more = len(rows) - len(shown)
    if more:
        lines.append(f"   and {more} more rank{'s' * (more > 1)}")
    return lines


def by_key(heads: tuple[str, str, str], some: dict, other: dict) -> str:
    """Return two dicts side by side around the first key that differs; "" if none does.

    heads: of the keys, and of the values of each; a list's items are shown one by one.
    """
    keys = sorted({*some, *other}, key=repr)
    both = [[d.get(key, _MISSING) for d in (some, other)] for key in keys]
    first = next((n for n, (a, b) in enumerate(both) if a is not b and a != b), None)
    if first is None:
        return ""
    rows, shown = [heads], range(len(keys))[max(0, first - 1) : first + 2]
    for number in shown:
        cells = [_items(value) for value in both[number]]
        same = zip(*cells, strict=False)
        place = next(
            (i for i, (a, b) in enumerate(same) if a != b), min(map(len, cells))
        )
        start = place if number == first else 0
        shown_cells = [excerpt(c, min(start, len(c) - 1), _WIDEST) for c in cells]
        rows.append((str(keys[number]), *shown_cells))
    lines = aligned(rows, "<<<")
    lines[shown.index(first) + 1] += "  ← first difference"
    more = len(keys) - len(shown)
    lines += [f"and {more} more row{'s' * (more > 1)}"] * bool(more)
    return "\n".join(lines)


def _items(value):
    if type(value) is float:
        return [f"{value:.9g}"]
    items = value if type(value) is list else [value]
    words = [item if type(item) is str else repr(item) for item in items]
    return [w if len(w) <= _WIDEST else f"{w[:_WIDEST]}…" for w in words] or ["(empty)"]


def excerpt(words: list[str], start: int, width: int) -> str:
    """Return as many of `words` as fit, from `start` on; dots for those left out."""
    if len(", ".join(words)) <= width:
        start = 0
    before = "… " * bool(start)
    shown = words[start : start + 1]
    for word in words[start + 1 :]:
        if len(before + ", ".join([*shown, word])) + 2 > width:
            break
        shown.append(word)
    after = " …" * (start + len(shown) < len(words))
    return before + ", ".join(shown) + after
