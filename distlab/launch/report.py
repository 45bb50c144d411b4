"""The report on a run: results, trace, output, and a summary."""

import reprlib
from dataclasses import dataclass, field

from distlab.show import folded
from distlab.show.canvas.theme import rank_color
from distlab.show.table import html_report, text_report
from distlab.trace import Trace
from distlab.units import readable_bytes, readable_seconds

__all__ = ["Report"]

_COLUMNS = ("rank", "result", "sent", "messages", "waited")
_SIDES = "<<>>>"
_ROWS = 16
_MOST_PLAYED = 3000  # events; for more, ask for show.player


@dataclass
class Report:
    """The report on one finished call on every rank.

    results: the function's results, one value per rank.
    trace: the events of every rank.
    output: the printed text of every rank, one string per rank.
    elapsed_s: seconds from the call, with all ranks up, to the last rank's return.
    backend: "gloo" or "nccl".
    notes: remarks on the run for the summary, one sentence each.
    """

    results: list
    trace: Trace
    output: list[str]
    elapsed_s: float
    backend: str
    notes: list[str] = field(default_factory=list)

    def __repr__(self):
        rows = [_COLUMNS, *self._rows()]
        return text_report(self._headline(), rows, _SIDES, self._footnotes())

    def _repr_html_(self):
        rows = [_COLUMNS, *self._rows()]
        signs = [("●", rank_color(rank)) for rank in range(len(rows) - 1)]
        notes = self._footnotes()
        table = html_report(self._headline(), rows, _SIDES, notes, signs=signs)
        return table + folded(self.trace, _MOST_PLAYED)

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
