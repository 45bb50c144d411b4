"""Links between ranks: how long a message takes."""

import math
from dataclasses import dataclass

from distlab.errors import InvalidArgument

__all__ = ["Link"]


@dataclass(frozen=True)
class Link:
    """A way for messages: `latency_s` for each, then `bytes_per_s`, in one direction.

    Raises: InvalidArgument for a negative or infinite latency, or no rate above 0.
    """

    latency_s: float
    bytes_per_s: float

    def __post_init__(self):
        numbers = [self.latency_s, self.bytes_per_s]
        usable = all(hasattr(x, "__float__") and not math.isnan(x) for x in numbers)
        if not usable or not 0 <= self.latency_s < math.inf or not self.bytes_per_s > 0:
            raise InvalidArgument(
                "a link has a latency in seconds from 0 on and a rate in bytes per "
                f"second above 0, and got {self.latency_s!r} and {self.bytes_per_s!r}. "
                "For example: Link(latency_s=5e-6, bytes_per_s=12.5 * GB)"
            )

    def seconds(self, message_bytes: float) -> float:
        """Return how long a message takes."""
        return self.latency_s + message_bytes / self.bytes_per_s
