"""Ranks on the nodes of a cluster: the world's side, in the process of the cell."""

from collections.abc import Callable, Sequence

from distlab.engines.ray.processes import NodeAddress, NodesProcesses, connect
from distlab.engines.ray.store import StoreServer
from distlab.launch.call import RunningCall
from distlab.launch.ranks import Ranks
from distlab.launch.scene import ranks_in_words
from distlab.units import readable_seconds

__all__ = ["RayRanks"]


class RayRanks(Ranks):
    """Ranks that the nodes of a cluster run.

    open_nodes: given the entry point and further imports, has each node listen; returns
    their addresses, with contiguous ranks.
    release: gives the cluster's resources back.
    """

    def __init__(
        self,
        world_size: int,
        backend: str,
        *,
        persistent: bool,
        open_nodes: Callable[[str, Sequence[str]], list[NodeAddress]],
        release: Callable[[], None],
    ):
        self._open_nodes, self._release = open_nodes, release
        self._nodes, self._store = [], None
        how = {"persistent": persistent, "start_method": "fork"}
        super().__init__(world_size, backend, **how)

    @property
    def where(self) -> list[str]:
        """The name of each rank's node."""
        return [node.name for node in self._nodes for _ in node.ranks]

    def _start(self, *, entry="distlab.launch.rank:main", also=(), **how):
        self._nodes = self._open_nodes(entry, also)
        processes = NodesProcesses(self._nodes, self.board)
        self._store = StoreServer(
            [connect(node, rank) for node in self._nodes for rank in node.ranks]
        )
        return processes

    def _settings(self, persistent):
        nodes = [node.ranks for node in self._nodes]
        return super()._settings(persistent) | {"nodes": nodes, "threads": 1}

    def _begin(self, console, faults):
        self.processes.compare_clocks()
        self.board.begin()
        how = {"console": console, "faults": faults}
        return _CallOnNodes(self.processes, self.board, **how)

    def notes(self) -> list[str]:
        """Return sentences for the report on nodes and clocks."""
        places = [f"{ranks_in_words(n.ranks)} on {n.name}" for n in self._nodes]
        error = readable_seconds(self.board.clock_error_s)
        return [
            f"Nodes: {', '.join(places)}.",
            f"The nodes' clocks were compared, and may be {error} apart: which of two "
            "events on different nodes was first is unknown below that.",
        ]

    def close(self) -> None:
        """Kill the remaining processes and free all resources."""
        super().close()
        if self._store is not None:
            self._store.close()
            self._store = None
        self._release()


class _CallOnNodes(RunningCall):
    """A call whose ranks' times are on the clocks of their nodes."""

    def _hear(self, frame):
        super()._hear(frame)
        outcome = self.outcomes[frame.index]
        if "time" in outcome.details:
            outcome.time += self._board.offsets_s[frame.index]
