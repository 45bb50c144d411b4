"""`Client`: who asks a store, where, what, and how long it waits for an answer."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

from distlab.trace import Call

__all__ = ["Client"]


@dataclass(frozen=True)
class Client:
    """One client: it makes one call after another.

    node: the number of the node that it asks. A client is on the side of its node: no
        split comes between them.
    calls: what it asks. A generator is sent the result of each call, None if it was
        refused or not answered: `version = yield Call("read", "x")`. What runs a client
        more than once, as a search does, needs the function that makes the generator.
    start_s: when it makes its first call.
    pause_s: how long it waits after an answer, before it makes the next call.
    timeout_s: how long it waits for an answer; what then has not come is never heard
        of, and the operation's outcome is unknown.
    """

    node: int
    calls: Iterable[Call] | Callable[[], Generator[Call, Any, None]]
    start_s: float = 0.0
    pause_s: float = 0.0
    timeout_s: float = 1.0
