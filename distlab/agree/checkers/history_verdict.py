"""`HistoryVerdict`: a checker's answer about a history, with the reason."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from distlab import show
from distlab.history import History, described
from distlab.trace import Operation

__all__ = ["HistoryVerdict"]


@dataclass(frozen=True)
class HistoryVerdict:
    """A checker's answer: ok, violated, or inconclusive.

    It is neither true nor false, so that `assert verdict` cannot pass by accident: read
    `verdict.ok`, `verdict.violated` or `verdict.inconclusive`.

    answer: "ok", "violated" or "inconclusive".
    model: the model that was checked, such as "linearizable Register".
    why: the reason, in a sentence.
    history: the history that was checked.
    witness: if ok, the operations in one order that explains every result; those of
        unknown outcome that need not have taken effect are left out.
    orders: if ok and there is no single order: of a causal history client -> an order
        in which it may have seen all writes and made its own reads; of a session
        guarantee key -> an order of its writes.
    smallest: if violated, a sub-history that is enough for it, by
        `checkers/smallest.py`.
    """

    answer: str
    model: str
    why: str
    history: History
    witness: tuple[Operation, ...] | None = None
    orders: dict[Hashable, Sequence[Operation]] = field(default_factory=dict)
    smallest: History | None = None

    @property
    def ok(self) -> bool:
        """True if an order explains every result."""
        return self.answer == "ok"

    @property
    def violated(self) -> bool:
        """True if no order explains every result."""
        return self.answer == "violated"

    @property
    def inconclusive(self) -> bool:
        """True if neither was found."""
        return self.answer == "inconclusive"

    def __bool__(self):
        raise TypeError(
            "A verdict is ok, violated or inconclusive, and so neither true nor false. "
            "Ask for verdict.ok, verdict.violated or verdict.inconclusive."
        )

    def __repr__(self):
        head = f"{self.model}: {self.answer}. {self.why}"
        if self.smallest is None:
            return head
        lines = [f"    {described(operation)}" for operation in self.smallest]
        return "\n".join([head, "Enough for it:", *lines])

    def _repr_mimebundle_(self, include=None, exclude=None):
        if len(self.history):
            return show.history(self)._repr_mimebundle_(include, exclude)
        return {"text/plain": repr(self)}
