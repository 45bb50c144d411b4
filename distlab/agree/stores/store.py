"""What the stores share: versions, copies, and the calls that they know."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from distlab.network import Effect, Node, Refuse
from distlab.trace import Call

__all__ = ["NOTHING", "Copy", "Forgetful", "Store", "Version"]


class Version(NamedTuple):
    """When a value was written: a later write has the greater version.

    counter: one more than that of any version the writer had heard of. node: who wrote,
    so that no two versions are equal, and all replicas order two of them alike.
    """

    counter: int
    node: int

    def __repr__(self):
        return f"v{self.counter}.{self.node}"


class Copy(NamedTuple):
    """What a replica has under a key."""

    version: Version
    value: Any

    def __repr__(self):
        return f"{self.value!r} ({self.version!r})" if self != NOTHING else "nothing"


NOTHING = Copy(Version(0, -1), None)


class Store(Node):
    """A replicated key-value store: every node is a replica, and takes clients' calls.

    calls: the operations that it knows. A subclass says in `serve` what it does.
    """

    calls: tuple[str, ...] = ("read", "write")

    def on_client(self, request: int, call: Call) -> Iterable[Effect] | None:
        """Serve a call, or refuse one that this store doesn't know."""
        if call.op in self.calls:
            return self.serve(request, call)
        known = " and ".join(self.calls)
        return [Refuse(request, f"this store knows {known}, and no {call.op!r}")]

    def serve(self, request: int, call: Call) -> Iterable[Effect] | None:
        """Begin with a call that this store knows."""
        raise NotImplementedError


class Forgetful:
    """Put before a store, it has that store forget in a crash what it had saved.

    `class ForgetfulQuorum(Forgetful, Quorum): pass` is a store without a disk.
    """

    def on_start(self, saved: dict[str, Any]) -> Iterable[Effect] | None:
        """Begin as if nothing had ever been saved."""
        return super().on_start({})
