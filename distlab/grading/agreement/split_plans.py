"""Clients and faults to try a replicated register on, and who was answered then."""

import random
from collections.abc import Sequence
from dataclasses import replace

from distlab.agree import workload
from distlab.faults import Split
from distlab.history import History
from distlab.network import Client, Delivery, Outcome
from distlab.trace import Call, Operation

__all__ = [
    "PATIENCE_S",
    "SPLIT_S",
    "during",
    "rough",
    "shares_told",
    "split_clients",
    "split_fired",
]

PATIENCE_S = 0.5
SPLIT_S = (0.2, 1.2)
_ASKED_S = (0.22, 0.6)  # what is called then has its answer before the split heals


def split_clients(nodes: int, calls: int = 16, pause_s: float = 0.08) -> list[Client]:
    """Return a client for each node, which writes and reads in turns."""
    return [
        Client(node, _turns(node, nodes, calls), 0.01 * node, pause_s, timeout_s=0.6)
        for node in range(nodes)
    ]


def _turns(node, nodes, calls):
    return [
        Call("write", "x", 1 + node + nodes * n) if n % 2 else Call("read", "x")
        for n in range(calls)
    ]


def during(outcome: Outcome, side: Sequence[int]) -> list[Operation]:
    """Return what the clients of a side called while the network was split."""
    history = outcome.history.between(*_ASKED_S)
    return [one for one in history if one.client in side]


def split_fired(outcome: Outcome) -> bool:
    """Whether a message was lost between the sides, or none was sent at all."""
    nodes = range(outcome.trace.world_size - outcome.trace.clients)
    sends = [
        event
        for event in outcome.trace.events
        if event.kind == "send" and event.rank in nodes and event.peer in nodes
    ]
    return not sends or any(event.label.startswith("dropped: ") for event in sends)


def shares_told(outcome: Outcome, sides: Sequence[Sequence[int]]) -> str:
    """Return a table of who was answered during the split."""
    lines = ["  during the split   answered   refused   never answered"]
    for side in sides:
        some = during(outcome, side)
        counts = [sum(o.outcome == how for o in some) for how in _OUTCOMES]
        name = "nodes " + " ".join(map(str, side))
        lines.append("  {:17}  {:8}   {:7}   {:14}".format(name, *counts))
    return "\n".join(lines)


_OUTCOMES = ("ok", "failed", "unknown")


def rough(nodes: int, seed: object, operations: int = 6) -> tuple[list, dict]:
    """Return clients of a run with a split, losses and doubles, and the rest of it."""
    dice = random.Random(f"rough {seed}")
    alone = dice.randrange(nodes)
    at_s = dice.uniform(0, 0.2)
    together = [node for node in range(nodes) if node != alone]
    split = Split(at_s, together, [alone], until_s=at_s + 0.3)
    made = workload(nodes, 2 * nodes, operations=operations, keys=1, seed=seed)
    clients = [replace(one, pause_s=dice.uniform(0, 0.03)) for one in made]
    delivery = Delivery((0.001, 0.04), loss=0.08, duplicate=0.25)
    return clients, {"faults": split, "delivery": delivery, "seed": seed}


def lanes_of(history: History) -> str:
    """Return operations, one a line, in the order of their starts."""
    return "\n".join(f"  {told(one)}" for one in history)


def told(one: Operation) -> str:
    """Return an operation in words, with its times."""
    what = f"{one.op} {one.value}" if one.op != "read" else f"read → {one.result!r}"
    if one.outcome == "failed":
        what = f"{one.op} {one.value or ''}".strip() + ", refused"
    elif one.outcome == "unknown" and one.op == "read":
        what = "read"
    when = f"{one.start:.3f} to {one.end:.3f}" if one.end else f"from {one.start:.3f}"
    return f"{when} s  client {one.client}: {what}"
