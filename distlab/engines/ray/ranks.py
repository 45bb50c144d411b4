"""Ranks on the nodes of a cluster: the world's side, in the process of the cell."""

from collections.abc import Callable
from itertools import groupby

from distlab.diagnosis import ranks_in_words
from distlab.engines.ray.processes import NodesProcesses
from distlab.launch.call import RunningCall
from distlab.launch.ranks import Ranks
from distlab.units import readable_seconds

__all__ = ["RayRanks"]


class RayRanks(Ranks):
    """Ranks that the nodes of a cluster run.

    start: given the board, the entry point and further imports, starts processes.
    """

    def __init__(
        self,
        world_size: int,
        backend: str,
        *,
        persistent: bool,
        start: Callable[..., NodesProcesses],
    ):
        self._start_on_nodes = start
        how = {"persistent": persistent, "start_method": "fork"}
        super().__init__(world_size, backend, **how)

    def _start(self, *, entry="distlab.launch.rank:main", also=(), **how):
        started = self._start_on_nodes(self.board, entry, also)
        self.where = started.names()
        return started

    def _settings(self, persistent):
        nodes = [list(ranks) for _, ranks in self._by_node()]
        return super()._settings(persistent) | {"nodes": nodes, "threads": 1}

    def _by_node(self):
        """Return each node's name with its ranks, which are contiguous."""
        ranks = range(self.world_size)
        by_node = groupby(ranks, lambda rank: self.where[rank])
        return [(name, list(members)) for name, members in by_node]

    def _begin(self, console, faults):
        self.processes.compare_clocks(range(self.world_size))
        self.board.begin()
        how = {"console": console, "faults": faults}
        return _CallOnNodes(self.processes, self.board, **how)

    def notes(self) -> list[str]:
        """Return sentences for the report on nodes and clocks."""
        places = [f"{ranks_in_words(r)} on {name}" for name, r in self._by_node()]
        error = readable_seconds(self.board.clock_error_s)
        return [
            f"Nodes: {', '.join(places)}.",
            f"The nodes' clocks were compared, and may be {error} apart: which of two "
            "events on different nodes was first is unknown below that.",
        ]


class _CallOnNodes(RunningCall):
    """A call whose ranks' times are on the clocks of their nodes."""

    def _hear(self, frame):
        super()._hear(frame)
        outcome = self.outcomes[frame.index]
        if "time" in outcome.details:
            outcome.time += self._board.offsets_s[frame.index]
