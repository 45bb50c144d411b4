"""Text of `lineage`: the data sets' dependencies, and the execution of stages."""

from distlab.show.canvas.text import literal
from distlab.show.reading.sentences import listed, plural
from distlab.units import readable_seconds

__all__ = ["has_run", "headline", "outcome", "sentences"]

_TOLD = 24


def has_run(lineage) -> bool:
    """Return True if it is the lineage of an action, and not only of a plan."""
    return any(stage.attempts for stage in lineage.stages)


def headline(lineage) -> str:
    """Return data sets, stages and tasks in one line."""
    stages = lineage.stages
    parts = [plural(len(lineage.nodes), "RDD"), plural(len(stages), "stage")]
    if has_run(lineage):
        parts.append(f"{plural(sum(len(stage.ran) for stage in stages), 'task')} done")
        skipped = sum(stage.skipped for stage in stages)
        parts += [f"{plural(skipped, 'stage')} skipped"] if skipped else []
    return ", ".join(parts)


def outcome(stage, ran: bool) -> str:
    """Return the outcome of a stage: its tasks, attempts and time, or "skipped"."""
    if stage is None:
        return ""
    tasks, done = plural(stage.tasks, "task"), len(stage.ran)
    if not ran:
        return tasks
    if stage.skipped:
        return "skipped"
    words = f"{done} of {tasks}" if done < stage.tasks else tasks
    if stage.attempts > done:
        words += f", {plural(stage.attempts, 'attempt')}"
    return f"{words}, {readable_seconds(stage.seconds)}"


def sentences(lineage) -> list[str]:
    """Return a sentence on each data set's dependencies, and on each stage that ran."""
    said = [_node(node) for node in lineage.nodes[:_TOLD]]
    if len(lineage.nodes) > _TOLD:
        said.append(f"And {len(lineage.nodes) - _TOLD} more.")
    for stage in lineage.stages if has_run(lineage) else ():
        said.append(f"Stage {stage.id}: {outcome(stage, True)}.")
    return said


def _node(node):
    words = f"RDD {node.id}, {literal(node.name, 40)}"
    words += f" ({literal(node.label, 30)})" if node.label else ""
    parts = [f"{words}: {plural(node.partitions, 'partition')}"]
    if node.stages:
        numbers = " and ".join(map(str, node.stages))
        parts.append(f"stage{'s' * (len(node.stages) > 1)} {numbers}")
    if node.parents:
        parts.append(listed((f"{p.kind} from RDD {p.id}" for p in node.parents), 4))
    if node.cached:
        parts.append(f"cached in {node.cached}")
    ran = _which("computed", node.computed, node)
    return ", ".join(parts) + ran + _which("from a cache", node.reused, node) + "."


def _which(what, partitions, node):
    """Return words for the partitions of a data set that are `what`."""
    numbers = sorted(set(partitions))
    if not numbers:
        return ""
    if len(numbers) == node.partitions:
        return f"; {what}: all"
    noun = "partition" if len(numbers) == 1 else "partitions"
    return f"; {what}: {noun} {listed(numbers, 8)}"
