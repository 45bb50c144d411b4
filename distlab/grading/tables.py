"""Expected and yours per rank, side by side, around the first difference."""

__all__ = ["excerpt", "side_by_side"]

_COLUMN = 28
_MOST_ROWS = 8


def side_by_side(
    rows: list[tuple[list[str], list[str]]], rank: int, place: int
) -> list[str]:
    """Return a table as lines, of a few ranks around `rank`, from `place` on.

    rows: for each rank the words that are expected, and yours.
    """
    first = max(0, min(rank - _MOST_ROWS // 2, len(rows) - _MOST_ROWS))
    shown = range(len(rows))[first : first + _MOST_ROWS]
    lines = [f"{'rank':>6}  {'expected':{_COLUMN}}  yours"]
    for number in shown:
        columns = [excerpt(words, place, _COLUMN) for words in rows[number]]
        mark = "← first difference" if number == rank else ""
        row = f"{number:>6}  {columns[0]:{_COLUMN}}  {columns[1]:{_COLUMN}}  {mark}"
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
