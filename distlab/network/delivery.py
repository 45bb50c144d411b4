"""`Delivery`: delays, loss, duplication and order of messages, without planned faults.

`SimulatedNetwork` determines for each message of a simulated run when it arrives, once,
twice or never. The faults of such a run are known beforehand, so this is determined as
the message is sent: it is dropped if its link is cut, or its receiver dead, at any time
until it arrives.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from distlab.errors import InvalidArgument
from distlab.faults import Crash, Cut, NodeFault, Pause, Split
from distlab.network.client import check_seconds

__all__ = ["Delivery", "SimulatedNetwork", "check_delivery", "check_range"]


@dataclass(frozen=True)
class Delivery:
    """Parameters of message delivery between nodes.

    delay_s: the shortest and longest delay, uniformly distributed; or a distribution
        of `distlab.network.delays`.
    loss: the share of messages that is dropped. duplicate: the share that arrives
    twice. ordered: whether messages from one node to another arrive in the order in
    which they were sent; if not, their delays can reorder them.
    """

    delay_s: Any = (0.001, 0.003)
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
    if not hasattr(delivery.delay_s, "draw"):
        or_a = ", or a distribution of distlab.network.delays"
        check_range(f"{delivery}: delay_s", delivery.delay_s, or_a)
    for name in ("loss", "duplicate"):
        share = getattr(delivery, name)
        real = isinstance(share, int | float) and not isinstance(share, bool)
        if not real or not 0 <= share <= 1:
            raise InvalidArgument(f"{delivery}: {name} is a share, from 0 to 1.")


def check_range(what: str, value: Any, more: str = "") -> None:
    """Check that `value` is two times, the shortest and the longest.

    Raises: InvalidArgument.
    """
    try:
        shortest, longest = value
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"{what} is the shortest and the longest time, such as (0.001, 0.003)"
            f"{more}; it came as {value!r}."
        ) from None
    check_seconds(f"the shortest time of {what}", shortest)
    check_seconds(f"the longest time of {what}", longest)
    if shortest > longest:
        raise InvalidArgument(f"{what}: the shortest time is above the longest.")


class SimulatedNetwork:
    """The network of one simulated run, with its planned faults.

    A message to a node that pauses is under way until the pause ends.
    """

    def __init__(
        self, nodes: int, delivery: Delivery, faults: Iterable[NodeFault], seed: Any
    ):
        chance = random.Random(f"{seed} network")
        self._random, self._draw = chance.random, None
        if hasattr(delivery.delay_s, "draw"):
            self._draw = partial(delivery.delay_s.draw, chance)
        else:
            self._shortest, longest = delivery.delay_s
            self._spread = longest - self._shortest
        self._loss, self._duplicate = delivery.loss, delivery.duplicate
        self._last = {} if delivery.ordered else None  # (src, to) -> last arrival
        self._deaths, self._pauses, self._cuts = {}, {}, []
        for fault in faults:
            self._plan(fault, nodes)
        self._faulty = bool(self._deaths or self._cuts or self._pauses)

    def _plan(self, fault, nodes):
        when = fault.at_s if hasattr(fault, "at_s") else 0.0, _end_of(fault)
        if isinstance(fault, Crash):
            self._deaths.setdefault(fault.node, []).append(when)
        elif isinstance(fault, Pause):
            self._pauses.setdefault(fault.node, []).append(when)
        elif isinstance(fault, Cut):
            self._cuts.append((*when, partial(_is_link, fault.src, fault.dst)))
        elif isinstance(fault, Split):
            self._cuts.append((*when, partial(_apart, _side_of(fault, nodes))))

    def resumes(self, node: int, when: float) -> float:
        """Return the end of a pause of a node, or `when` if it does not pause."""
        for at_s, until_s in self._pauses.get(node, ()):
            if at_s <= when < until_s:
                when = until_s
        return when

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
            if self._draw is None:
                when = now + self._shortest + self._spread * random()
            else:
                when = now + self._draw()
            if self._last is not None:
                when = self._last[src, to] = max(when, self._last.get((src, to), 0.0))
            if self._faulty:
                when = self.resumes(to, when)
                if not self._gets_through(src, to, now, when):
                    continue
            arrivals.append(when)
        return sorted(arrivals) if copies > 1 else arrivals

    def _gets_through(self, src, to, now, when):
        for at_s, until_s, severs in self._cuts:
            if at_s <= when and now < until_s and severs(src, to):
                return False
        deaths = self._deaths.get(to, ())
        return not any(at_s <= when and now < until_s for at_s, until_s in deaths)


def _end_of(fault):
    until_s = getattr(fault, "until_s", None)
    return float("inf") if until_s is None else until_s


def _side_of(split, nodes):
    """Return each node's side; one that is on no side is alone."""
    sides = {node: k for k, side in enumerate(split.sides) for node in side}
    return [sides.get(node, -1 - node) for node in range(nodes)]


def _apart(side_of, src, to):
    return side_of[src] != side_of[to]


def _is_link(one, other, src, to):
    return (src, to) == (one, other)
