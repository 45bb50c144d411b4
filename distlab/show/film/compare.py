"""`compare`: two runs side by side, up to the first step where they differ."""

from distlab.errors import InvalidArgument
from distlab.show.film.differences import first_difference
from distlab.show.film.film import Film
from distlab.show.film.page import fragment
from distlab.show.film.player import PipelinePlayer, Player
from distlab.show.film.still import pair_strip
from distlab.show.lettering import literal
from distlab.show.reading import trace_of

__all__ = ["Comparison", "compare"]


class Comparison(Player):
    """Two animations in step, and their first difference.

    same: True if they agree in every step. stop: the first step where they differ, 0
    if none. difference: the difference there, in words; "" if none.
    """

    def __init__(self, mine: Film, ideal: Film, names: tuple[str, str]):
        super().__init__(mine)
        self.ideal = ideal
        self.names = names = tuple(literal(name, 40) for name in names)
        self.stop, self.difference = first_difference(mine, ideal, names)
        self.same = not self.stop
        self.alt = f"Side by side, {names[0]} and {names[1]}. {self.verdict}"

    @property
    def verdict(self) -> str:
        """The agreement of the runs, or their first difference, in words."""
        steps = len(self.film.frames) - 1
        if self.same:
            return self._agreement(steps)
        title = self.film.frames[min(self.stop, steps)].title
        where = f" ({title})" if self.stop <= steps else ""
        told = f"First difference at step {self.stop}{where}: {self.difference}"
        if self.equal_end:
            told += " In the end every rank holds the same contributions in both."
        return told

    @property
    def equal_end(self) -> bool:
        """True if both runs end with the same contributions on every rank."""
        if not self._shares or self.film.bounds[-1] != self.ideal.bounds[-1]:
            return False
        films = self.film, self.ideal
        last = [film.frames[-1].tables for film in films]
        equal = films[0].bounds == films[1].bounds and last[0] == last[1]
        return equal or all(film.complete_at_end for film in films)

    def _agreement(self, steps):
        sent = sum(len(frame.moves) for frame in self.film.frames)
        size, shares = f"{self.film.world_size} ranks", ""
        if self._shares:
            size += f" and {self.film.bounds[-1]} numbers"
            shares = ", and the same contributions everywhere"
        told = f"agree in all {steps} steps: the same {sent} messages{shares}"
        return f"With {size} both runs {told}."

    @property
    def _shares(self):
        return self.film.chunks and self.ideal.chunks

    def html(self, image: str = "") -> str:
        """Return both players with one set of controls, as HTML; see `Player.html`."""
        return fragment(
            [self.film, self.ideal],
            names=self.names,
            differs=self.stop,
            verdict=self.verdict,
            wrong=not (self.same or self.equal_end),
            image=image,
        )

    def strip(self) -> str:
        """Return both runs at the step where they differ, or at the end, as SVG."""
        last = max(len(self.film.frames), len(self.ideal.frames)) - 1
        number = self.stop or last
        return pair_strip([self.film, self.ideal], self.names, number, self.verdict)


def compare(
    mine, ideal, title="", *, names=("yours", "ideal"), shape="auto", unit="slot"
) -> Player:
    """Play two runs in step; stop where they first differ, and show the difference.

    Messages are compared step by step by sender, receiver and bytes; if both traces
    come from `follow`, also by the chunk they carry, and by the contributions that
    each rank holds afterwards.

    Two pipelines play on one clock, up to the first work that differs.

    mine, ideal: a `Trace`, or anything with a `.trace`; or a list of a pipeline's
    cells, in `unit`s. names: over each of them.

    Raises: InvalidArgument for two runs of different numbers of ranks, or no trace.
    """
    if isinstance(mine, list):
        return PipelinePlayer([mine, ideal], title, unit, names)
    traces = trace_of(mine), trace_of(ideal)
    others = [trace.who for trace in traces if trace.who != "rank"]
    if others:
        raise InvalidArgument(
            f"runs of ranks are compared; these are runs of {others[0]}s."
        )
    sizes = [trace.world_size for trace in traces]
    if sizes[0] != sizes[1]:
        raise InvalidArgument(
            f"two runs are compared step by step, rank by rank, and these have "
            f"{sizes[0]} and {sizes[1]} ranks. Run both with the same world_size."
        )
    films = [Film(trace, title, shape=shape) for trace in traces]
    return Comparison(*films, names)
