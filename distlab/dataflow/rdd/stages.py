"""The lineage, cut into stages at its wide dependencies; and the tasks ready to run.

    a ─▶ b ══▶ c ─▶ d ══▶ e          stage 0: a b     writes shuffle 0
                                     stage 1: c d     writes shuffle 1
                                     stage 2: e       the result

A task can run when every piece that it needs exists. The needed pieces are computed
anew each time, from the result backwards, so exactly the pieces lost meanwhile are
found missing.
"""

from dataclasses import dataclass, field

from distlab.dataflow.rdd.dependencies import DatasetNode, Wide, within
from distlab.dataflow.rdd.locations import Locations

__all__ = ["DatasetStage", "cut", "ready"]


@dataclass(eq=False)
class DatasetStage:
    """A stage of one action: its last data set, and the shuffle that it writes.

    tasks: its partitions. attempts: the number begun. ran: the partitions completed.
    """

    number: int
    node: DatasetNode
    wide: Wide | None
    parents: list["DatasetStage"]
    tasks: list[int]
    attempts: int = 0
    ran: list[int] = field(default_factory=list)
    began_s: float | None = None
    ended_s: float = 0.0

    def __str__(self):
        return f"stage {self.number}"


def wides_of(node: DatasetNode) -> list[Wide]:
    """Return the shuffles that the stage which ends with `node` reads."""
    wides = {
        each.number: each
        for member in within(node)
        for each in member.dependencies
        if isinstance(each, Wide)
    }
    return [wides[number] for number in sorted(wides)]


def cut(node: DatasetNode, partitions: list[int], numbers) -> list[DatasetStage]:
    """Return the stages of an action on `node`, parents first, the result's last."""
    order, waiting, wides = {}, [(None, node, False)], {}
    while waiting:
        wide, last, visited = waiting.pop()
        key = wide and wide.number
        if visited:
            order.setdefault(key, (wide, last))
        elif key not in wides:
            wides[key] = wides_of(last)
            waiting.append((wide, last, True))
            waiting += [(each, each.parent, False) for each in reversed(wides[key])]
    stages = {}
    for key, (wide, last) in order.items():
        parents = [stages[each.number] for each in wides[key]]
        tasks = partitions if wide is None else list(range(last.partitions))
        stages[key] = DatasetStage(numbers(), last, wide, parents, tasks)
    return list(stages.values())


def ready(
    stages: list[DatasetStage], locations: Locations, done: set[int]
) -> list[tuple[DatasetStage, int, set[int]]]:
    """Return the tasks that are needed and could run now, in order of their stage.

    Each comes with the workers that are to do it, because of the partitions they keep;
    if the set is empty, any worker can.

    done: the partitions of the result that are complete.
    """
    result = stages[-1]
    by_shuffle = {stage.wide.number: stage for stage in stages[:-1]}
    waiting = [(result, p) for p in reversed(result.tasks) if p not in done]
    asked, found, missing = set(waiting), [], {}
    while waiting:
        stage, partition = waiting.pop()
        holders = locations.holders(stage.node, partition)
        worker = min(holders, default=None)
        lacking = False
        for wide, _ in locations.pieces(stage.node, partition, worker):
            if wide.number not in missing:
                missing[wide.number] = locations.missing(wide)
            for task in missing[wide.number]:
                lacking = True
                needed = by_shuffle[wide.number], task
                if needed not in asked:
                    asked.add(needed)
                    waiting.append(needed)
        if not lacking:
            found.append((stage, partition, holders))
    return sorted(found, key=lambda task: (task[0].number, task[1]))
