"""`compare`: two runs side by side, up to the first step where they differ."""

from distlab.errors import InvalidArgument
from distlab.show.canvas.text import literal
from distlab.show.player.animation import Animation
from distlab.show.player.differences import first_difference
from distlab.show.player.page import fragment
from distlab.show.player.player import PipelinePlayer, Player
from distlab.show.player.still import pair_row
from distlab.show.reading.trace_reading import trace_of

__all__ = ["Comparison", "compare"]


class Comparison(Player):
    """Two animations in step, and their first difference.

    same: True if they agree in every step. stop: the first step where they differ, 0
    if none. difference: the difference there, in words; "" if none.
    """

    def __init__(self, mine: Animation, ideal: Animation, names: tuple[str, str]):
        super().__init__(mine)
        self.ideal = ideal
        self.names = names = tuple(literal(name, 40) for name in names)
        self.stop, self.difference = first_difference(mine, ideal, names)
        self.same = not self.stop
        self.alt = f"Side by side, {names[0]} and {names[1]}. {self.verdict}"

    @property
    def verdict(self) -> str:
        """The agreement of the runs, or their first difference, in words."""
        steps = len(self.animation.frames) - 1
        if self.same:
            return self._agreement(steps)
        title = self.animation.frames[min(self.stop, steps)].title
        where = f" ({title})" if self.stop <= steps else ""
        described = f"First difference at step {self.stop}{where}: {self.difference}"
        if self.equal_end:
            described += " In the end every rank holds the same contributions in both."
        return described

    @property
    def equal_end(self) -> bool:
        """True if both runs end with the same contributions on every rank."""
        if not self._shares or self.animation.bounds[-1] != self.ideal.bounds[-1]:
            return False
        animations = self.animation, self.ideal
        last = [animation.frames[-1].tables for animation in animations]
        equal = animations[0].bounds == animations[1].bounds and last[0] == last[1]
        return equal or all(animation.complete_at_end for animation in animations)

    def _agreement(self, steps):
        sent = sum(len(frame.moves) for frame in self.animation.frames)
        size, shares = f"{self.animation.world_size} ranks", ""
        if self._shares:
            size += f" and {self.animation.bounds[-1]} numbers"
            shares = ", and the same contributions everywhere"
        described = f"agree in all {steps} steps: the same {sent} messages{shares}"
        return f"With {size} both runs {described}."

    @property
    def _shares(self):
        return self.animation.chunks and self.ideal.chunks

    def html(self, image: str = "") -> str:
        """Return both players with one set of controls, as HTML; see `Player.html`."""
        return fragment(
            [self.animation, self.ideal],
            names=self.names,
            differs=self.stop,
            verdict=self.verdict,
            wrong=not (self.same or self.equal_end),
            image=image,
        )

    def strip(self) -> str:
        """Return both runs at the step where they differ, or at the end, as SVG."""
        last = max(len(self.animation.frames), len(self.ideal.frames)) - 1
        number = self.stop or last
        return pair_row([self.animation, self.ideal], self.names, number, self.verdict)


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
    animations = [Animation(trace, title, shape=shape) for trace in traces]
    return Comparison(*animations, names)
