"""Partial orders: which of some things must come before which."""

import heapq
from collections.abc import Sequence

__all__ = ["merged"]


def merged(chains: Sequence[Sequence], rank: dict[int, float]) -> list | None:
    """Return all things of several chains in one order, or None if there is none.

    Each chain is in this order; of two that may come next, the one of lower rank does.
    rank: id -> where it comes if nothing else decides.
    """
    things = {id(thing): thing for chain in chains for thing in chain}
    follow, waits = {name: [] for name in things}, dict.fromkeys(things, 0)
    for chain in chains:
        for one, two in zip(chain, chain[1:], strict=False):
            follow[id(one)].append(id(two))
            waits[id(two)] += 1
    number = {name: place for place, name in enumerate(things)}
    ready = [(rank[name], number[name], name) for name in things if not waits[name]]
    heapq.heapify(ready)
    order = []
    while ready:
        name = heapq.heappop(ready)[-1]
        order.append(things[name])
        for later in follow[name]:
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, (rank[later], number[later], later))
    return order if len(order) == len(things) else None
