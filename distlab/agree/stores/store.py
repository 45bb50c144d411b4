"""Versions, copies and the base class of the stores."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from distlab.network import Effect, Node, Refuse
from distlab.trace import Call

__all__ = ["NOTHING", "Copy", "Store", "Version"]


class Version(NamedTuple):
    """A logical time stamp of a write: a later write has the greater version.

    counter: one more than that of any version the writer knew of. node: the writer, so
    that no two versions are equal, and all replicas order two of them alike.
    """

    counter: int
    node: int

    def __repr__(self):
        return f"v{self.counter}.{self.node}"


class Copy(NamedTuple):
    """A replica's value of a key, with its version."""

    version: Version
    value: Any

    def __repr__(self):
        written = self.version.node >= 0
        return f"{self.value!r} ({self.version!r})" if written else "nothing"


NOTHING = Copy(Version(0, -1), None)


class Store(Node):
    """A replicated key-value store: every node is a replica, and takes clients' calls.

    calls: the operations that it knows. A subclass implements them in `serve`.
    """

    calls: tuple[str, ...] = ("read", "write")

    def on_client(self, request: int, call: Call) -> Iterable[Effect] | None:
        """Serve a call, or refuse one that this store doesn't know."""
        if call.op in self.calls:
            return self.serve(request, call)
        known = " and ".join(self.calls)
        return [Refuse(request, f"this store knows {known}, and no {call.op!r}")]

    def serve(self, request: int, call: Call) -> Iterable[Effect] | None:
        """Execute a call that this store knows."""
        raise NotImplementedError
