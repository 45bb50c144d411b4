"""Rows as a table, in text and in HTML: what a report on a job shows."""

import html
from collections.abc import Sequence

__all__ = ["html_table", "text_table"]

Rows = Sequence[Sequence[str]]


def text_table(rows: Rows, sides: str) -> list[str]:
    """Return the lines of a table; sides: < or > for each column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        shown = (f"{cell:{side}{width}}" for cell, side, width in cells)
        lines.append("  " + "  ".join(shown).rstrip())
    return lines


def html_table(rows: Rows, sides: str) -> str:
    """Return the same for a notebook; the first row is the head."""
    aligned = ["left" if side == "<" else "right" for side in sides]

    def cells(tag, row):
        return "".join(
            f"<{tag} style='padding:2px 14px 2px 0;text-align:{side}'>"
            f"{html.escape(cell)}</{tag.split()[0]}>"
            for cell, side in zip(row, aligned, strict=True)
        )

    head, *body = rows
    shown = "".join(f"<tr>{cells('td', row)}</tr>" for row in body)
    return (
        "<table style='margin:4px 0'><thead><tr>"
        f"{cells('th scope=col', head)}</tr></thead><tbody>{shown}</tbody></table>"
    )
