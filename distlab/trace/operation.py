"""Operations of clients on a store, from invocation to response."""

from typing import Any, NamedTuple

from distlab.units import readable_seconds

__all__ = ["Call", "Operation"]


class Call(NamedTuple):
    """A client's call of a store.

    op: "read", "write", "cas", "enqueue", "dequeue", "acquire", "release", "add",
        "remove", "contains", or a word that only the store knows.
    key: its key; None in a store of one thing.
    value: its argument: of a "cas" the pair (old, new), None for a "read".
    """

    op: str
    key: Any = None
    value: Any = None


class Operation(NamedTuple):
    """A call and its outcome.

    client: the caller; a number or a name. op, key, value: the `Call`.
    start: time of the invocation, in seconds. end: time of the response, else None.
    outcome: "ok"; "failed", if the response is that nothing was done; "unknown", if
        there was no response: it may take effect at any time after start, or never.
    result: of the response: the value of a "read", True or False of a "cas".
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
        """The operation's `Call`."""
        return Call(self.op, self.key, self.value)

    def _repr_pretty_(self, printer, cycle):
        who = f"client {self.client}" if isinstance(self.client, int) else self.client
        about = "".join(f" {part!r}" for part in self.call[1:] if part is not None)
        told = self.value is None or self.result is not None
        answer = f" → {self.result!r}" if told and self.outcome == "ok" else ""
        ended = f", {self.outcome}"
        ended += "" if self.end is None else f" at {readable_seconds(self.end)}"
        called = f"called at {readable_seconds(self.start)}"
        printer.text(f"{who}: {self.op}{about}{answer} ({called}{ended})")
