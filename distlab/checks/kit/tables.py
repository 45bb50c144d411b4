"""Expected and yours per rank, side by side, around the first difference."""

from distlab.trace import counts_in, shares_named

__all__ = ["difference", "excerpt", "side_by_side"]

_WIDEST = 26
_MOST_ROWS = 8


def difference(
    rows: list[tuple[list, list]], *, told: bool = False
) -> tuple[str, dict] | None:
    """Return a table around the first element that differs, and facts; None if none.

    rows: for each rank the numbers expected, and yours. told: whether the inputs were
    `contributions`; then the table shows whose are in each sum, and the fact `counts`
    is how often each rank's is in the first that differs. Where the lengths differ,
    the fact is `misshapen`.
    """
    n = len(rows)
    for rank, (right, mine) in enumerate(rows):
        if len(mine) != len(right):
            found = f"Rank {rank} ends with {len(mine)} elements, not {len(right)}."
            return found, {"rank": rank, "n": n, "misshapen": True}
        both = enumerate(zip(right, mine, strict=True))
        place = next((i for i, (a, b) in both if a != b), None)
        if place is None:
            continue
        words = [
            tuple([_in_words(v, n, told) for v in half] for half in r) for r in rows
        ]
        lines = side_by_side(words, rank, place)
        facts = {"rank": rank, "place": place, "n": n}
        if told:
            lines.append("(0+1: the contributions of ranks 0 and 1 are in this sum)")
            facts["counts"] = counts_in(mine[place], n)
        return "\n".join(lines), facts
    return None


def _in_words(value, n, told):
    if not told:
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
    cells = [[excerpt(words, place, _WIDEST) for words in rows[n]] for n in shown]
    columns = zip(("expected", "yours"), *cells, strict=True)
    one, other = (max(map(len, column)) for column in columns)
    lines = [f"{'rank':>6}  {'expected':{one}}  yours"]
    for number, (expected, yours) in zip(shown, cells, strict=True):
        mark = "← first difference" if number == rank else ""
        row = f"{number:>6}  {expected:{one}}  {yours:{other}}  {mark}"
        lines.append(row.rstrip())
    more = len(rows) - len(shown)
    if more:
        lines.append(f"   and {more} more rank{'s' * (more > 1)}")
    return lines


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
