"""Expected and yours per rank, side by side, around the first difference."""

__all__ = ["excerpt", "side_by_side"]

_WIDEST = 26
_MOST_ROWS = 8


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
