"""The report on an action: its stages, partitions computed, and data shuffled."""

from dataclasses import dataclass

from distlab.dataflow.rdd.dependencies import DatasetNode, Wide, within
from distlab.dataflow.rdd.stages import DatasetStage
from distlab.show.table import html_report, text_report
from distlab.trace import Lineage, Trace
from distlab.trace.lineage import LineageNode, Parent, StageRun
from distlab.units import readable_bytes, readable_seconds

__all__ = ["JobReport", "debug_string", "lineage_of", "report_of"]

_HEAD = ("stage", "ends with", "ran", "records", "bytes", "time")
_SIDES = "<<<>>>"
_STEM = " |  "


@dataclass(repr=False)
class JobReport:
    """The report on one action.

    action: its name, such as "collect". lineage: its graph, with the stages.
    computed, reused: (RDD, partition) that were computed, or read from a cache, in
    order of completion. counts: spilled records and bytes, broadcasts fetched.
    shuffled, records: shuffle -> bytes, or records, from each map task, a row each, to
    each partition; of those shuffles that the action wrote or read.
    """

    number: int
    action: str
    lineage: Lineage
    computed: list[tuple[int, int]]
    reused: list[tuple[int, int]]
    counts: dict[str, int]
    shuffled: dict[int, list[list[int]]]
    records: dict[int, list[list[int]]]
    seconds: float
    trace: Trace

    @property
    def stages(self) -> tuple[StageRun, ...]:
        """The stages, parents first."""
        return self.lineage.stages

    def rows(self) -> list[tuple[str, ...]]:
        """Return for each stage, as text: its number, the operation that ends it, the
        tasks that ran, the records and bytes that it shuffled, its time.
        """
        named = {node.id: node.label or node.name for node in self.lineage.nodes}
        return [
            (
                str(stage.id),
                named[stage.node],
                _ran(stage),
                *self._moved(stage),
                "" if stage.skipped else readable_seconds(stage.seconds),
            )
            for stage in self.stages
        ]

    def _moved(self, stage):
        if stage.skipped or stage.shuffle not in self.shuffled:
            return "", ""
        records = sum(map(sum, self.records[stage.shuffle]))
        size = sum(map(sum, self.shuffled[stage.shuffle]))
        return f"{records:,}", readable_bytes(size)

    def __repr__(self):
        rows = [_HEAD, *self.rows()]
        return text_report(self._headline(), rows, _SIDES, [self._footnote()])

    def _repr_html_(self):
        rows = [_HEAD, *self.rows()]
        return html_report(self._headline(), rows, _SIDES, [self._footnote()])

    def _headline(self):
        stages = _plural(len(self.stages), "stage")
        workers = _plural(self.trace.world_size, "worker")
        took = readable_seconds(self.seconds)
        return f"{self.action}: {stages} on {workers}, {took}"

    def _footnote(self):
        said = f"{_plural(len(self.computed), 'partition')} computed"
        if self.reused:
            said += f", {len(self.reused)} from the cache"
        if self.counts.get("spilled_records"):
            size = readable_bytes(self.counts["spilled_bytes"])
            said += f", {self.counts['spilled_records']:,} records ({size}) spilled"
        return f"{said}."


def _ran(stage):
    if stage.skipped:
        return f"{_plural(stage.tasks, 'task')}, skipped"
    ran = _plural(len(stage.ran), "task")
    if len(stage.ran) < stage.tasks:
        ran = f"{len(stage.ran)} of {_plural(stage.tasks, 'task')}"
    more = stage.attempts - len(stage.ran)
    return f"{ran}, {_plural(stage.attempts, 'attempt')}" if more else ran


def _plural(count, what):
    return f"{count:,} {what}" + "s" * (count != 1)


def report_of(action, operation: str, number: int) -> JobReport:
    """Return the report on an action that has ended."""
    cluster = action.cluster
    shuffled, records = {}, {}
    for stage in action.stages:
        if stage.wide is not None:
            have = cluster.locations.outputs[stage.wide.number]
            outputs = [have[task][1] for task in sorted(have)]
            shuffled[stage.wide.number] = [output.sizes for output in outputs]
            records[stage.wide.number] = [output.records for output in outputs]
    return JobReport(
        number,
        operation,
        lineage_of(action.node, action.stages, cluster.locations, action),
        action.computed,
        action.reused,
        dict(action.counts),
        shuffled,
        records,
        cluster.pool.now() - action.began_s,
        cluster.pool.trace(action.began_s),
    )


def lineage_of(
    node: DatasetNode, stages: list[DatasetStage], locations, action=None
) -> Lineage:
    """Return the lineage of a node as data, cut into `stages`."""
    members, nodes = {}, {}
    for stage in stages:
        for member in within(stage.node):
            nodes[member.number] = member
            members.setdefault(member.number, []).append(stage.number)
    order = [nodes[number] for number in sorted(nodes)]  # parents have smaller numbers
    held = {}
    for (number, partition), workers in locations.kept.items():
        for worker in sorted(workers):
            held.setdefault(number, []).append((partition, worker))
    drawn = [_node(each, members, held, action) for each in order]
    return Lineage(tuple(drawn), tuple(map(_stage, stages)))


def _node(node, members, held, action):
    number = node.number
    ran = action.computed if action else []
    reused = action.reused if action else []
    return LineageNode(
        number,
        node.operation,
        node.label or "",
        node.partitions,
        tuple(members[number]),
        node.level.value,
        tuple(_parent(each, node) for each in node.dependencies),
        tuple(p for n, p in ran if n == number),
        tuple(p for n, p in reused if n == number),
        tuple(sorted(held.get(number, ()))),
    )


def _parent(dependency, node):
    if isinstance(dependency, Wide):
        return Parent(dependency.parent.number, "wide", (), dependency.number)
    needs = tuple(tuple(dependency.needs(p)) for p in range(node.partitions))
    return Parent(dependency.parent.number, "narrow", needs)


def _stage(stage):
    return StageRun(
        stage.number,
        stage.node.number,
        stage.wide and stage.wide.number,
        tuple(parent.number for parent in stage.parents),
        len(stage.tasks),
        stage.attempts,
        tuple(stage.ran),
        not stage.attempts,
        stage.ended_s - stage.began_s if stage.ran else 0.0,
    )


def debug_string(node: DatasetNode) -> str:
    """Return the lineage as Spark prints it: a line for each data set, parents below.

    A number in brackets is the number of partitions on this side of a shuffle.
    """
    lines = []
    _add(node, f"({node.partitions}) ", _STEM, lines)
    return "\n".join(lines)


def _add(node, first, rest, lines):
    label = f"{node.label} " if node.label else ""
    lines.append(f"{first}{label}{node.operation}[{node.number}] [{node.level.value}]")
    for number, each in enumerate(node.dependencies, 1):
        if isinstance(each, Wide):
            outside = rest.removesuffix(_STEM)
            count = f"({each.parent.partitions}) "
            last = number == len(node.dependencies)
            below = (
                outside + ("   " if last else " | ") + " " * (len(count) - 4) + _STEM
            )
            _add(each.parent, f"{outside} +-{count}", below, lines)
        else:
            _add(each.parent, rest, rest, lines)
