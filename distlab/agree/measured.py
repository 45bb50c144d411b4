"""What was found about a store, as data: latency, availability, consistency."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from distlab.agree.ladder import Ladder
from distlab.history import History

__all__ = ["Measured", "Watched"]


@dataclass(frozen=True)
class Watched:
    """A history, and what the clients of some nodes met in it.

    node_of: which node each client asked. start_s, end_s: only calls that began between
    them are told of.
    """

    history: History
    node_of: Sequence[int]
    start_s: float = 0.0
    end_s: float = math.inf

    def latencies_s(self, op: str) -> list[float]:
        """Return how long each answered call of this kind took."""
        return [each.end - each.start for each in self._told(op) if _answered(each)]

    def answered(self, op: str, nodes: Sequence[int]) -> float | None:
        """Return the share of calls of this kind, at these nodes, that were answered.

        None if there was no such call.
        Every client counts the same: one that has to wait for a refusal asks less
        often, so by the number of calls a store would look the better the longer it
        lets them wait.
        """
        shares = []
        for client, node in enumerate(self.node_of):
            told = [each for each in self._told(op) if each.client == client]
            if told and node in nodes:
                shares.append(statistics.fmean(map(_answered, told)))
        return statistics.fmean(shares) if shares else None

    def _told(self, op):
        between = (e for e in self.history if self.start_s <= e.start < self.end_s)
        return [each for each in between if each.op == op]


def _answered(operation):
    return operation.outcome == "ok"


@dataclass(frozen=True, repr=False)
class Measured:
    """What was found about one store.

    sides: which nodes were together in the split, the majority first.
    quiet, split: the run without a fault, and that with the split.
    one_way_s: how long every message took in those two.
    ladder: what the checkers said about all runs.
    stale_s: of every read in the run with the split, how old its value was
        (see `staleness`).
    """

    name: str
    sides: tuple[tuple[int, ...], tuple[int, ...]]
    quiet: Watched
    split: Watched
    one_way_s: float
    ladder: Ladder
    stale_s: list[float]

    @property
    def consistency(self) -> str:
        """The strongest model that was not violated in any run; no proof of it."""
        return self.ladder.strongest

    def delays(self, op: str, *, split: bool = False) -> list[int]:
        """Return for each answered call how many messages it waited for, sorted.

        That is how often `one_way_s` fits in: what real processes take on top, which is
        less than that, is not counted.
        """
        seconds = (self.split if split else self.quiet).latencies_s(op)
        return sorted(int(each / self.one_way_s + 0.01) for each in seconds)

    def median_s(self, op: str, *, split: bool = False) -> float | None:
        """Return how long an answered call took, in the middle; None without any."""
        seconds = (self.split if split else self.quiet).latencies_s(op)
        return statistics.median(seconds) if seconds else None

    def availability(self, nodes: Sequence[int] | None = None) -> float:
        """Return the share of calls answered during the split, at these nodes.

        Reads and writes count the same. Without `nodes`: at all of them.
        """
        return statistics.fmean(self.availability_of(nodes).values())

    def availability_of(self, nodes: Sequence[int] | None = None) -> dict[str, float]:
        """Return that share of reads, and of writes."""
        nodes = sum(self.sides, ()) if nodes is None else nodes
        shares = {op: self.split.answered(op, nodes) for op in ("read", "write")}
        return {op: share for op, share in shares.items() if share is not None}

    def __repr__(self):
        spent = " and ".join(self._spent(op) for op in ("read", "write"))
        shares = " and ".join(f"{self.availability(side):.0%}" for side in self.sides)
        return (
            f"{self.name}: {self.consistency} in {self.ladder.judged} runs; {spent}; "
            f"in a split {shares} of calls are answered on the majority's and on the "
            "minority's side"
        )

    def _spent(self, op):
        delays = self.delays(op)
        if not delays:
            return f"no {op} was answered"
        return f"a {op} waits for {statistics.median(delays):g} messages"
