"""The checks' toolkit: verdicts and hints, and four ways to run a function.

on_ranks      ranks whose messages pass a relay in this process
on_nodes      protocol nodes, each in a process, under a simulation in this process
on_workers    jobs of the dataflow engines, in processes of their own
call          one function, in one process
"""

from distlab.checks.kit.contracts import PUBLISHED, Contract
from distlab.checks.kit.grading import Inconclusive, Wrong, check
from distlab.checks.kit.hints import Hint
from distlab.checks.kit.isolated_call import call
from distlab.checks.kit.jobs import on_workers
from distlab.checks.kit.nodes import (
    NODE_HINTS,
    clients_of,
    last_reads,
    last_steps,
    listed,
    messages_between,
    on_nodes,
    require_loss,
)
from distlab.checks.kit.ranks import called, contributions, draws, followed, on_ranks
from distlab.checks.kit.tables import difference, side_by_side
from distlab.checks.kit.verdict_player import Played, librarys, ring_seats, tree_seats
from distlab.sandbox.withheld import modules_of

__all__ = [
    "NODE_HINTS",
    "PUBLISHED",
    "Contract",
    "Hint",
    "Inconclusive",
    "Played",
    "Wrong",
    "call",
    "called",
    "check",
    "clients_of",
    "contributions",
    "difference",
    "draws",
    "followed",
    "last_reads",
    "last_steps",
    "librarys",
    "listed",
    "messages_between",
    "modules_of",
    "on_nodes",
    "on_ranks",
    "on_workers",
    "require_loss",
    "ring_seats",
    "side_by_side",
    "tree_seats",
]
