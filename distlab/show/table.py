"""Reports with a table: text in a terminal, HTML of one look in a notebook."""

from collections.abc import Sequence
from html import escape
from itertools import zip_longest

from distlab.show.assets import style, themed

__all__ = ["aligned", "html_report", "text_report"]

Rows = Sequence[Sequence[str]]

_STYLE = """.distlab-table{color:var(--ink);max-width:100%;overflow-x:auto}
.distlab-table table{border-collapse:collapse;margin:4px 0}
.distlab-table tr{background:none!important}
.distlab-table :is(th,td){padding:3px 14px 3px 0;white-space:pre;
vertical-align:baseline;border:0;border-bottom:1px solid var(--line);font-weight:400;
font-variant-numeric:tabular-nums}
.distlab-table .l{text-align:left!important}
.distlab-table td.l{white-space:normal}
.distlab-table .r{text-align:right}
.distlab-table thead th{color:var(--muted)}
.distlab-table i{font-style:normal}"""


def aligned(rows: Rows, sides: str) -> list[str]:
    """Return a line of text for each row; sides: < or > for each column."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        shown = (f"{cell:{side}{width}}" for cell, side, width in cells)
        lines.append("  ".join(shown).rstrip())
    return lines


def text_report(headline: str, rows: Rows, sides: str, notes: Sequence[str]) -> str:
    """Return a headline, a table whose first row is its head, and notes, as text.

    sides: < or > for each column.
    """
    return "\n".join(
        [headline, *(f"  {line}" for line in aligned(rows, sides)), *notes]
    )


def html_report(
    headline: str,
    rows: Rows,
    sides: str,
    notes: Sequence[str] = (),
    *,
    groups: Sequence[tuple[str, int]] = (),
    signs: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the same as HTML; the first cell of each row names it.

    groups: (name, width) of columns that belong together. signs: (sign, colour) before
    each row's name.
    """
    head, *body = rows
    above = "".join(
        f'<th scope="colgroup" colspan="{wide}" class="l">{escape(name)}</th>'
        for name, wide in groups
    )
    heads = f"<tr>{above}</tr>" if groups else ""
    heads += f"<tr>{_cells(head, sides, 'th scope=col')}</tr>" if any(head) else ""
    lines = ""
    for row, sign in zip_longest(body, signs):
        marked = f'<i style="color:{sign[1]}">{sign[0]}</i> ' if sign else ""
        name = _cells(row[:1], sides, "th scope=row", marked)
        lines += f"<tr>{name}{_cells(row[1:], sides[1:], 'td')}</tr>"
    title = f"<b>{escape(headline)}</b>" if headline else ""
    described = "".join(f"<div>{escape(note)}</div>" for note in notes)
    return (
        f'{style(themed(".distlab-table"), _STYLE)}<div class="distlab-table">{title}'
        f"<table><thead>{heads}</thead><tbody>{lines}</tbody></table>{described}</div>"
    )


def _cells(row, sides, tag, before=""):
    return "".join(
        f'<{tag} class="{"l" if side == "<" else "r"}">{before}{escape(cell)}'
        f"</{tag.split()[0]}>"
        for cell, side in zip(row, sides, strict=False)
    )
