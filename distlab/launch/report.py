"""What a run gives back: results, trace, output, and a summary to look at."""

import html
import reprlib
from dataclasses import dataclass, field

from distlab.show import folded
from distlab.show.theme import rank_color
from distlab.trace import Trace
from distlab.units import readable_bytes, readable_seconds

__all__ = ["Report"]

_COLUMNS = ("rank", "result", "sent", "messages", "waited")
_ROWS = 16
_MOST_PLAYED = 3000  # events; for more, ask for show.player


@dataclass
class Report:
    """One finished call on every rank.

    results: what the function returned, one value per rank.
    trace: what every rank did.
    output: what every rank printed, one string per rank.
    elapsed_s: seconds from the call, with all ranks up, to the last rank's return.
    backend: "gloo" or "nccl".
    notes: what the reader of the summary should know, one sentence each.
    """

    results: list
    trace: Trace
    output: list[str]
    elapsed_s: float
    backend: str
    notes: list[str] = field(default_factory=list)

    def __repr__(self):
        rows = [_COLUMNS, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [self._headline()]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join([*lines, *self._footnotes()])

    def _repr_html_(self):
        cell = "padding:2px 14px 2px 0;text-align:left"
        head = "".join(
            f"<th scope='col' style='{cell}'>{name}</th>" for name in _COLUMNS
        )
        body = ""
        for number, row in enumerate(self._rows()):
            dot = (
                f"<span style='color:{rank_color(number)}' aria-hidden='true'>"
                "&#9679;</span> "
            )
            rank, *rest = map(html.escape, row)
            cells = "".join(
                f"<td style='{cell}'>{value}</td>" for value in (dot + rank, *rest)
            )
            body += f"<tr>{cells}</tr>"
        notes = "".join(f"<div>{html.escape(note)}</div>" for note in self._footnotes())
        played = folded(self.trace, _MOST_PLAYED)
        return (
            f"<div><b>{html.escape(self._headline())}</b>"
            f"<table style='margin:4px 0'><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{notes}{played}</div>"
        )

    def _headline(self):
        count = len(self.results)
        ranks = "1 rank" if count == 1 else f"{count} ranks"
        rounds = self.trace.rounds()
        sent = sum(self.trace.bytes_sent(rank) for rank in range(count))
        in_rounds = f"in {rounds} round" + "s" * (rounds != 1)
        moved = f", {readable_bytes(sent)} {in_rounds}" if rounds else ""
        return f"{ranks} on {self.backend}, {readable_seconds(self.elapsed_s)}{moved}"

    def _rows(self):
        shorten = reprlib.Repr()
        shorten.maxother = shorten.maxstring = 40
        for rank, result in enumerate(self.results[:_ROWS]):
            yield (
                str(rank),
                " ".join(shorten.repr(result).split()),
                readable_bytes(self.trace.bytes_sent(rank)),
                str(self.trace.messages_sent(rank)),
                readable_seconds(self.trace.waited_s(rank)),
            )

    def _footnotes(self):
        hidden = len(self.results) - _ROWS
        more = [f"and {hidden} more ranks"] if hidden > 0 else []
        return more + self.notes
