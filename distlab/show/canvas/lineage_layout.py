"""Layout of a lineage: stages in columns, data sets in stages.

    column 0       column 1       column 2
    ┌ stage 0 ┐
    │ textFile│
    │ map     │ ═╗
    └─────────┘  ║ ┌ stage 2 ┐
    ┌ stage 1 ┐  ╠▶│ join    │ ═▶ ...
    │ ...     │ ═╝ └─────────┘
    └─────────┘

A stage stands right of all whose shuffles it reads. In it stands every data set that it
computes, below those that it is made from, also if another stage computes it as well.
"""

from distlab.trace import Lineage

__all__ = ["StageLayout"]

_MOST_COLUMNS, _MOST_ROWS = 6, 20


class StageLayout:
    """Positions of the nodes of a lineage.

    columns: for each column its stages, from the top down; of many the last are kept.
    members: stage -> its nodes, from the top down; of many the last are kept.
    hidden: the number of nodes that are not drawn.
    """

    def __init__(self, lineage: Lineage):
        self._stages = {stage.id: stage for stage in lineage.stages}
        self._nodes = {node.id: node for node in lineage.nodes}
        groups = {number: [] for number in self._stages}
        for node in lineage.nodes:
            for stage in node.stages or [None]:
                groups.setdefault(stage, []).append(node)
        depth = {}
        for number in groups:
            self._fathom(number, depth)
        last = max(depth.values())
        first = max(0, last - _MOST_COLUMNS + 1)
        self.columns = [
            [number for number in groups if depth[number] == at]
            for at in range(first, last + 1)
        ]
        shown = [number for numbers in self.columns for number in numbers]
        self.members = {n: self._ordered(groups[n])[-_MOST_ROWS:] for n in shown}
        placed = {node.id for some in self.members.values() for node in some}
        self.hidden = len(self._nodes) - len(placed)

    def _fathom(self, number, depth):
        """Return the largest number of shuffles before a stage; store it in `depth`."""
        if number not in depth:
            stage = self._stages.get(number)
            parents = [p for p in stage.parents if p in self._stages] if stage else []
            before = [self._fathom(parent, depth) for parent in parents]
            depth[number] = 1 + max(before, default=-1)
        return depth[number]

    def _ordered(self, nodes):
        """Return the nodes of a stage such that chains stay together."""
        own, ordered = {node.id for node in nodes}, {}

        def settle(node):
            if node.id not in ordered:
                for parent in node.parents:
                    if parent.kind == "narrow" and parent.id in own:
                        settle(self._nodes[parent.id])
                ordered[node.id] = node

        for node in reversed(nodes):
            settle(node)
        return list(ordered.values())

    def writer(self, parent) -> int | None:
        """Return the stage that writes the shuffle of a wide dependency."""
        for stage in self._stages.values():
            if stage.shuffle is not None and stage.shuffle == parent.shuffle:
                return stage.id
        return None
