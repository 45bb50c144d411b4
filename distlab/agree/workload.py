"""Clients that make a store show what it does: many at once, and no value twice."""

import itertools
import random

from distlab.network import Client
from distlab.trace import Call

__all__ = ["final_reads", "workload"]


def workload(
    nodes: int,
    clients: int,
    *,
    operations: int = 20,
    keys: int = 2,
    seed: int = 0,
) -> list[Client]:
    """Return clients, spread evenly over the nodes, that read and write a few keys.

    Every call is a read or a write, as a coin falls, of one of the keys "x", "y", "z",
    ... No value is written twice, so that what a read returns says which write it saw.
    `dataclasses.replace(client, pause_s=0.1)` changes one.
    """
    values = itertools.count(1)
    made = []
    for number in range(clients):
        dice = random.Random(f"client {number} of workload {seed}")
        calls = [_call(dice, _names(keys), values) for _ in range(operations)]
        start_s, pause_s = dice.uniform(0, 0.03), dice.uniform(0.03, 0.05)
        made.append(Client(number % nodes, calls, start_s, pause_s, timeout_s=0.4))
    return made


def final_reads(nodes: int, *, keys: int, start_s: float) -> list[Client]:
    """Return a client for each node that reads every key once, from `start_s` on."""
    calls = [Call("read", key) for key in _names(keys)]
    return [Client(node, calls, start_s) for node in range(nodes)]


def _call(dice, names, values):
    key = dice.choice(names)
    if dice.random() < 0.5:
        return Call("read", key)
    return Call("write", key, next(values))


def _names(keys):
    letters = "xyzuvwabcdefghijklmnopqrst"
    return [*letters[:keys], *(f"x{k}" for k in range(len(letters), keys))]
