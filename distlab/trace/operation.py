"""One operation of one client on a store, from the call to the answer."""

from typing import Any, NamedTuple

from distlab.units import readable_seconds

__all__ = ["Call", "Operation"]


class Call(NamedTuple):
    """What a client asks of a store.

    op: "read", "write", "cas", "enqueue", "dequeue", "acquire", "release", "add",
        "remove", "contains", or a word that only the store knows.
    key: what it is about; None in a store of one thing.
    value: what it is called with: of a "cas" the pair (old, new), None for a "read".
    """

    op: str
    key: Any = None
    value: Any = None


class Operation(NamedTuple):
    """A call and what came of it.

    client: who called; a number or a name. op, key, value: the `Call`.
    start: when it was called, in seconds. end: when the answer came, else None.
    outcome: "ok"; "failed", if the client was told that nothing was done; "unknown", if
        it was told nothing: it may take effect at any time after its start, or never.
    result: what was answered: the value of a "read", True or False of a "cas".
    Invariant: end is None exactly if the outcome is "unknown".
    """

    client: int | str
    op: str
    key: Any
    value: Any
    start: float
    end: float | None
    outcome: str
    result: Any = None

    @property
    def call(self) -> Call:
        """What was asked."""
        return Call(self.op, self.key, self.value)

    def _repr_pretty_(self, printer, cycle):
        who = f"client {self.client}" if isinstance(self.client, int) else self.client
        about = "".join(f" {part!r}" for part in self.call[1:] if part is not None)
        told = self.outcome == "ok" and (self.value is None or self.result is not None)
        answer = f" → {self.result!r}" if told else ""
        ended = f", {self.outcome}"
        ended += "" if self.end is None else f" at {readable_seconds(self.end)}"
        called = f"called at {readable_seconds(self.start)}"
        printer.text(f"{who}: {self.op}{about}{answer} ({called}{ended})")
