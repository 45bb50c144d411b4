"""`streams`: computation and communication of one rank, on one clock.

compute   ▒▒│F0│▒▒│F1│▒▒│F2│        ▒ above: exposed communication
network   │A0│▒▒│A1│▒▒│A2│▒▒

holds     ▂▂▂▂▂▂ ▂▂▂▂▂ ▂▂▂▂▂        blocks in full, from gather to use
"""

import itertools
from collections import Counter

from distlab.errors import InvalidArgument
from distlab.show.player.player import PipelinePlayer
from distlab.show.reading.pipeline_cells import PipelineCells
from distlab.show.reading.trace_reading import trace_of

__all__ = ["streams"]

_ROWS = ("compute", "network")


def streams(trace, calls, title: str = "", *, rank: int = 0) -> PipelinePlayer:
    """Return a player of a rank's work, its collectives, and the blocks it holds.

    A block's full parameters are held from the start of its all-gather to the end of
    the next work on it, its full gradients from the work before its reduce-scatter on.

    trace: a `Trace`, or anything with a `.trace`. Its works are named "forward 3".
    calls: (name, block) of each collective, such as ("all-gather", 3), in the order of
        starting; all send equally many messages, as those around a ring do.

    Raises: InvalidArgument if the rank's messages don't share out over the calls.
    """
    trace, calls = trace_of(trace), list(calls)
    sends = sorted(trace.of(rank, "send"), key=lambda event: event.start)
    each, rest = divmod(len(sends), len(calls) or 1)
    if not each or rest:
        raise InvalidArgument(
            f"{len(calls)} collectives don't explain {len(sends)} messages of rank "
            f"{rank}; calls has one (name, block) for each that was started."
        )
    cells = []
    for event in trace.of(rank, "work"):
        kind, _, block = event.label.rpartition(" ")
        cells.append((0, 1e3 * event.start, 1e3 * event.end, kind, block))
    for number, (kind, block) in enumerate(calls):
        own = sends[number * each : (number + 1) * each]
        cells.append((1, 1e3 * own[0].start, 1e3 * own[-1].end, kind, block))
    return PipelinePlayer([_Streams(cells, "ms")], title)


class _Streams(PipelineCells):
    """Two rows of one rank: its processor, and its network."""

    WHAT, IDLE = "rank over time", "idle; above, exposed communication"
    holds = "full blocks"

    def name(self, stage):
        return _ROWS[stage]

    def headline(self):
        lasts, waits = self._time(self._lasted()), self._time(self._idle(0))
        return f"{lasts}, of which {waits} exposed communication"

    def held(self, stage):
        steps = Counter()
        for _, start, end, kind, block in () if stage else self.cells[1]:
            uses = [cell for cell in self.cells[0] if cell.microbatch == block]
            if kind == "all-gather":
                end = min(use.end for use in uses if use.end > start)
            else:
                start = max(use.start for use in uses if use.start < start)
            steps.update({start: 1})
            steps.subtract({end: 1})
        times = sorted(steps)
        counts = itertools.accumulate(steps[time] for time in times)
        spans = zip(itertools.pairwise(times), counts, strict=False)
        return [(start, end, count) for (start, end), count in spans if count > 0]

    def held_sentences(self):
        return [f"Full blocks held at most: {self.most_held(0)}."]

    def moment(self, does, held):
        now = f"Compute: {does[0]}, network: {does[1]}"
        return f"{now}. Full blocks held: {held[0]}."
