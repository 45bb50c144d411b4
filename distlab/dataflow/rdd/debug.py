"""The lineage as text, as Spark prints it."""

from distlab.dataflow.rdd.graph import Node, Wide

__all__ = ["debug_string"]


def debug_string(node: Node) -> str:
    """Return the lineage, one line for each data set, parents below.

    A number in brackets is how many partitions there are on this side of a shuffle.
    """
    lines = []
    _add(node, f"({node.partitions}) ", " |  ", lines)
    return "\n".join(lines)


def _add(node, first, rest, lines):
    kept = f" [{node.level}]" if node.kept else " []"
    label = f"{node.label} " if node.label else ""
    lines.append(f"{first}{label}{node.operation}[{node.number}]{kept}")
    several = len(node.dependencies) > 1
    for number, each in enumerate(node.dependencies):
        parent, last = each.parent, number == len(node.dependencies) - 1
        below = rest if not last else rest.removesuffix(" |  ") + "    "
        if isinstance(each, Wide):
            head = f" +-({parent.partitions}) "
            _add(
                parent,
                rest[:-4] + head,
                below[:-4] + " " * (len(head) - 4) + " |  ",
                lines,
            )
        else:
            _add(parent, rest if several or True else first, rest, lines)
