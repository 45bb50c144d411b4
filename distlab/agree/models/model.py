"""`Model`: what a store of one copy answers, if it has one client."""

from collections.abc import Hashable
from typing import Any

__all__ = ["ANY", "Model", "unfit"]


class _Any:
    """The result of an operation that nobody knows: it equals every other one."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __bool__(self):
        raise TypeError(
            "The result of this operation is not known. A model's step may only "
            "compare it, with ==, and takes it for the right one."
        )

    __hash__ = None

    def __repr__(self):
        return "ANY"


ANY = _Any()


class Model:
    """One thing in a store, as if there were one copy of it and one client.

    operations: the words that it knows. initial: its state before the first one.
    A state can be hashed, and is not None. Several keys are several things.
    """

    operations: tuple[str, ...] = ()
    initial: Hashable = ()

    @property
    def name(self) -> str:
        """What it is called in a verdict."""
        return type(self).__name__

    def step(self, state: Any, op: str, value: Any, result: Any) -> Any:
        """Return the state after an operation, or None if it cannot be answered so.

        result: what was answered, or `ANY` if that is not known. What an operation does
        depends on the state, and not on the result.
        """
        raise NotImplementedError

    def faults(self, op: str, value: Any, result: Any) -> str | None:
        """Return in words what makes no sense about an operation, if anything."""

    # What follows makes checks faster and their explanations shorter; without it they
    # are right all the same.

    overwrites = False  # whether a state is (the value that was given last,), no more

    def observes(self, op: str, result: Any) -> bool:
        """Return whether an operation with this result changes nothing in any state."""
        return False

    def gives(self, op: str, value: Any) -> tuple:
        """Return the values that can be found because of this operation."""
        return ()

    def finds(self, op: str, value: Any, result: Any) -> tuple:
        """Return the values that an operation answered so has found there."""
        return ()


def unfit(what: str, value: Any) -> str | None:
    """Return in words why a value cannot be compared, or None if it can."""
    if value is ANY:
        return None
    try:
        hash(value)
    except TypeError:
        return (
            f"has the {what} {value!r}, which can change and so cannot be kept in a "
            "state; use a tuple for a list, a frozenset for a set"
        )
    if value != value:
        return f"has the {what} {value!r}, which is not equal to itself"
    return None
