"""`Delivery`: delays, loss, duplication and order of messages, without planned faults.

`SimulatedNetwork` determines for each message of a simulated run when it arrives, once,
twice or never. The faults of such a run are known beforehand, so this is determined as
the message is sent: it is dropped if its link is cut, or its receiver dead, at any time
until it arrives.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from distlab.errors import InvalidArgument
from distlab.faults import Crash, NodeFault
from distlab.network.client import check_seconds

__all__ = ["Delivery", "SimulatedNetwork", "check_delivery"]


@dataclass(frozen=True)
class Delivery:
    """Parameters of message delivery between nodes.

    delay_s: the shortest and longest delay, uniformly distributed.
    loss: the share of messages that is dropped. duplicate: the share that arrives
    twice. ordered: whether messages from one node to another arrive in the order in
    which they were sent; if not, their delays can reorder them.
    """

    delay_s: tuple[float, float] = (0.001, 0.003)
    loss: float = 0.0
    duplicate: float = 0.0
    ordered: bool = False


def check_delivery(delivery: Delivery) -> None:
    """Check the parameters of a delivery.

    Raises: InvalidArgument.
    """
    if not isinstance(delivery, Delivery):
        raise InvalidArgument(
            f"delivery is {delivery!r}. For example: Delivery(delay_s=(0.01, 0.02))"
        )
    try:
        shortest, longest = delivery.delay_s
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{delivery}: delay_s is the shortest and the longest time, (0.001, 0.003)."
        ) from None
    check_seconds("the shortest delay", shortest)
    check_seconds("the longest delay", longest)
    if shortest > longest:
        raise InvalidArgument(f"{delivery}: the shortest delay is above the longest.")
    for name in ("loss", "duplicate"):
        share = getattr(delivery, name)
        real = isinstance(share, int | float) and not isinstance(share, bool)
        if not real or not 0 <= share <= 1:
            raise InvalidArgument(f"{delivery}: {name} is a share, from 0 to 1.")


class SimulatedNetwork:
    """The network of one simulated run, with its planned faults."""

    def __init__(
        self, nodes: int, delivery: Delivery, faults: Iterable[NodeFault], seed: Any
    ):
        self._shortest = delivery.delay_s[0]
        self._spread = delivery.delay_s[1] - delivery.delay_s[0]
        self._loss, self._duplicate = delivery.loss, delivery.duplicate
        self._random = random.Random(f"{seed} network").random
        self._last = {} if delivery.ordered else None  # (src, to) -> last arrival
        self._deaths, self._cuts = {}, []
        for fault in faults:
            until_s = float("inf") if fault.until_s is None else fault.until_s
            if isinstance(fault, Crash):
                self._deaths.setdefault(fault.node, []).append((fault.at_s, until_s))
            else:
                self._cuts.append((fault.at_s, until_s, _side_of(fault, nodes)))
        self._faulty = bool(self._deaths or self._cuts)

    def arrivals(self, src: int, to: int, now: float) -> list[float]:
        """Return the arrival times of a message sent now; [] if it is dropped."""
        if src == to:
            return [now]  # it needs no network
        random, copies = self._random, 1
        if self._loss and random() < self._loss:
            return []
        if self._duplicate and random() < self._duplicate:
            copies = 2
        arrivals = []
        for _ in range(copies):
            when = now + self._shortest + self._spread * random()
            if self._last is not None:
                when = self._last[src, to] = max(when, self._last.get((src, to), 0.0))
            if not self._faulty or self._gets_through(src, to, now, when):
                arrivals.append(when)
        return arrivals

    def _gets_through(self, src, to, now, when):
        for at_s, until_s, side_of in self._cuts:
            if at_s <= when and now < until_s and side_of[src] != side_of[to]:
                return False
        deaths = self._deaths.get(to, ())
        return not any(at_s <= when and now < until_s for at_s, until_s in deaths)


def _side_of(split, nodes):
    """Return each node's side; one that is on no side is alone."""
    sides = {node: k for k, side in enumerate(split.sides) for node in side}
    return [sides.get(node, -1 - node) for node in range(nodes)]
