"""`Delivery`: how messages between nodes travel when nothing is broken on purpose."""

from dataclasses import dataclass

__all__ = ["Delivery"]


@dataclass(frozen=True)
class Delivery:
    """How messages between nodes travel.

    delay_s: the shortest and longest time on the way, all between equally likely.
    loss: the share of messages that never arrive. duplicate: the share that arrives
    twice. ordered: whether of two messages from one node to another the first that was
    sent arrives first; if not, they overtake each other as their delays have it.
    """

    delay_s: tuple[float, float] = (0.001, 0.003)
    loss: float = 0.0
    duplicate: float = 0.0
    ordered: bool = False
