"""Clients' operations as text: a plan before a run, and a list after it."""

from collections.abc import Iterable, Sequence
from typing import Any

from distlab.checks.kit.verdict import Inconclusive
from distlab.network import Client, Outcome
from distlab.trace import Call, Event, Operation

__all__ = ["clients_of", "last_reads", "listed", "messages_between", "require_loss"]


def clients_of(plan: str, values: Sequence, **how: Any) -> list[Client]:
    """Return a client for each call of a plan: "0.1 0 write x 1, 0.5 2 read x".

    A call is a second, a node, an operation and its key; a number in the place of a
    value is the index of one of `values`, else it is the value. how: see `Client`.
    """
    clients = []
    for words in plan.split(", "):
        second, node, op, key, *value = words.split()
        value = [values[int(v)] if v.isdigit() else v for v in value]
        clients.append(Client(int(node), [Call(op, key, *value)], float(second), **how))
    return clients


def last_reads(nodes: int, keys: Iterable, start_s: float) -> list[Client]:
    """Return a client for each node that reads every key."""
    calls = [Call("read", key) for key in keys]
    return [Client(node, calls, start_s) for node in range(nodes)]


def messages_between(run: Outcome) -> list[Event]:
    """Return the events of messages from nodes to other nodes, in order."""
    nodes = run.trace.world_size - run.trace.clients
    events = [e for e in run.trace.events if e.kind == "send"]
    return [event for event in events if event.rank < nodes and event.peer < nodes]


def require_loss(run: Outcome) -> None:
    """Raise Inconclusive if nodes sent messages and a partition dropped none."""
    sent = messages_between(run)
    if sent and not any(event.label.startswith("dropped: ") for event in sent):
        raise Inconclusive("No message met the split: run this cell again.")


def listed(run: Outcome, operations: Iterable[Operation]) -> str:
    """Return operations of a run as text, one a line, with their times."""
    nodes = run.trace.world_size - run.trace.clients
    asked = [event for event in run.trace.events if event.rank >= nodes]
    node_of = {event.rank - nodes: event.peer for event in asked}
    return "\n".join(_described(one, node_of.get(one.client)) for one in operations)


def _described(one, node):
    words = [word for word in (one.op, one.key, one.value) if word is not None]
    said = " ".join(map(str, words))
    if one.op == "read" and one.outcome == "ok":
        said += f" → {one.result!r}"
    said += {"ok": "", "failed": ", refused"}.get(one.outcome, ", unknown outcome")
    when = f"{one.start:.3f} to {one.end:.3f}" if one.end else f"from {one.start:.3f}"
    return f"  {when} s  client {one.client} at node {node}: {said}"
