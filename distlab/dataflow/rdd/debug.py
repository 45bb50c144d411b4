"""The lineage as text, as Spark prints it."""

from distlab.dataflow.rdd.graph import Node, Wide

__all__ = ["debug_string"]

_STEM = " |  "


def debug_string(node: Node) -> str:
    """Return the lineage, one line for each data set, parents below.

    A number in brackets is how many partitions there are on this side of a shuffle.
    """
    lines = []
    _add(node, f"({node.partitions}) ", _STEM, lines)
    return "\n".join(lines)


def _add(node, first, rest, lines):
    label = f"{node.label} " if node.label else ""
    kept = str(node.level) if node.kept else ""
    lines.append(f"{first}{label}{node.operation}[{node.number}] [{kept}]")
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
