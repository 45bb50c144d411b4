"""Traces: the events of every rank, their counts, and the ranks' contributions."""

from distlab.trace.contributions import (
    BASE,
    FIRST_PLACE,
    Contributions,
    Shares,
    counts_in,
    shares_named,
)
from distlab.trace.event import (
    Event,
    Message,
    group_name,
    members_of,
    mesh_dimension_of,
    moves,
)
from distlab.trace.lineage import Lineage, LineageNode, Parent, StageRun
from distlab.trace.operation import Call, Operation
from distlab.trace.trace import Trace, is_lost, words_of

__all__ = [
    "BASE",
    "FIRST_PLACE",
    "Call",
    "Contributions",
    "Event",
    "Lineage",
    "LineageNode",
    "Message",
    "Operation",
    "Parent",
    "Shares",
    "StageRun",
    "Trace",
    "counts_in",
    "group_name",
    "is_lost",
    "members_of",
    "mesh_dimension_of",
    "moves",
    "shares_named",
    "words_of",
]
