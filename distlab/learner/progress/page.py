"""The progress page: text for a terminal, HTML for a cell or a file."""

import io
from collections import Counter
from html import escape

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from distlab.learner.predictions.answer_storage import kept_by_learner
from distlab.learner.progress.progress_summary import ProgressSummary
from distlab.show.assets import document, read, style, themed
from distlab.show.canvas.theme import RANK_COLORS, WARNING

__all__ = ["Page"]

_DONE = RANK_COLORS[2]
_HEADS = ("lesson", "cells", "guesses", "steps", "tries", "hints", "cards", "last")
_WIDE, _NAMED = 92, 56  # columns from which there is room for all, and for names


class Page:
    """A table of the learner's progress; the last line names the next thing to do."""

    def __init__(self, shown: ProgressSummary):
        self.shown = shown

    def __repr__(self):
        paper = io.StringIO()
        plain = {"color_system": None, "force_jupyter": False}
        Console(file=paper, width=100, **plain).print(self)
        return paper.getvalue().rstrip()

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.fragment(), "text/plain": repr(self)}

    def __rich_console__(self, console, options):
        wide, named = options.max_width >= _WIDE, options.max_width >= _NAMED
        table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
        table.add_column("", overflow="fold")
        table.add_column("cells", no_wrap=True)
        table.add_column("guesses" if wide else "guess", no_wrap=True)
        table.add_column("steps", no_wrap=True)
        if wide:
            table.add_column("tries", justify="right", no_wrap=True)
            table.add_column("hints", justify="right", no_wrap=True)
            table.add_column("last", no_wrap=True)
        for row in self.shown.rows:
            cells = [
                Text(row.title if named else row.number, "bold" if row.last else ""),
                _bar(row, 10) if wide else Text(_share(row.run, row.cells)),
                Text(_guesses(row) if wide else _share(row.guessed, row.asked)),
                _signs(row),
            ]
            if wide:
                cells += [
                    _number(sum(s.attempts for s in row.steps)),
                    _number(sum(s.hints for s in row.steps)),
                    row.last[:10],
                ]
            table.add_row(*cells)
        yield Group(
            table,
            *(Padding(Text(note, WARNING), (1, 0, 0, 0)) for note in self.shown.notes),
            Text(""),
            Text(self.shown.next, "bold"),
        )

    def fragment(self) -> str:
        """Return the page as HTML that can stand in a cell."""
        css = read("distlab.learner.progress", "progress.css")
        cards = Counter(key[:2] for key in kept_by_learner("cards").names())
        rows = "".join(_row_html(row, cards[row.number]) for row in self.shown.rows)
        heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
        notes = "".join(f'<p class="note">{escape(n)}</p>' for n in self.shown.notes)
        return (
            f"{style(themed('.distlab-progress'), css)}"
            f'<div class="distlab-progress"><table><thead><tr>{heads}</tr></thead>'
            f"<tbody>{rows}</tbody></table>{notes}"
            f'<p class="next">{escape(self.shown.next)}</p></div>'
        )

    def html(self) -> str:
        """Return a whole page, for a browser without a notebook."""
        return document(f"<h1>Progress</h1>{self.fragment()}", "distlab: progress")


def _share(part, whole):
    return f"{part}/{whole}" if whole else _number(part)


def _number(value):
    return f"{value:g}" if value else ""


def _guesses(row):
    if not row.guessed:
        return _share(0, row.asked) if row.asked else ""
    right = f", {row.right + row.near} close" if row.right + row.near else ""
    return f"{_share(row.guessed, row.asked)}{right}"


def _bar(row, width):
    done = round(width * row.run / row.cells) if row.cells else 0
    done = max(done, 1) if row.run else done
    bar = Text("━" * done, _DONE).append("━" * (width - done), "dim")
    return bar.append(f" {_share(row.run, row.cells)}", "default")


def _signs(row):
    """Return a sign for each step: solved, tried, or not begun; and the points."""
    text = Text()
    for step in row.steps:
        text.append(*_sign(step))
    best, most = row.points
    return text.append(f" {best:g}/{most:g}", "default") if most else text


def _sign(step):
    if step.best >= step.of:
        return "●", _DONE
    return ("◐", RANK_COLORS[1]) if step.attempts else ("○", "dim")


def _row_html(row, cards):
    share = 100 * min(1, row.run / row.cells) if row.cells else 0
    best, most = row.points
    steps = "".join(_step_html(n, step) for n, step in enumerate(row.steps, 1))
    points = f" {best:g}/{most:g}" if most else ""
    return (
        f'<tr data-lesson="{escape(row.number)}">'
        f'<th scope="row">{escape(row.title)}</th>'
        f'<td><span class="bar"><i style="width:{share:.0f}%"></i></span> '
        f"{_share(row.run, row.cells)}</td><td>{_guesses(row)}</td>"
        f'<td class="steps">{steps}{points}</td>'
        f"<td>{_number(sum(s.attempts for s in row.steps))}</td>"
        f"<td>{_number(sum(s.hints for s in row.steps))}</td>"
        f"<td>{_number(cards)}</td><td>{escape(row.last[:10])}</td></tr>"
    )


def _step_html(number, step):
    kind = "tried" if step.attempts else "open"
    kind = "solved" if step.best >= step.of else kind
    said = (
        f"step {number}, {kind}: best {step.best:g}, last {step.last:g} of {step.of:g} "
        f"points, {step.attempts} tries, {step.hints} hints"
    )
    names = f'class="{kind}" role="img" aria-label="{said}" title="{said}"'
    return f"<span {names}>{_sign(step)[0]}</span>"
