"""Models: what a store of one copy answers, if it has one client.

A model of your own needs the words that it knows, what it begins with, and `step`:

    class Counter(Model):
        operations = ("increment", "read")
        initial = 0

        def step(self, state, op, value, result):
            if op == "increment":
                return state + 1
            if result == state:
                return state
"""

from collections.abc import Hashable
from typing import Any

__all__ = [
    "ANY",
    "CasRegister",
    "KeyValue",
    "Lock",
    "Model",
    "Queue",
    "Register",
    "Set",
]


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


class Register(Model):
    """One value: "write" sets it, "read" answers it."""

    operations = ("read", "write")
    overwrites = True

    def __init__(self, initial: Any = None):
        self.initial = (initial,)  # a pair of brackets, since None is no state

    def step(self, state, op, value, result):
        """Return the state after a read or write."""
        if op == "write":
            return (value,)
        return state if (result,) == state else None

    def observes(self, op, result):
        """Return whether it is a read."""
        return op == "read"

    def gives(self, op, value):
        """Return what is written."""
        return (value,) if op == "write" else ()

    def finds(self, op, value, result):
        """Return what is read."""
        return (result,) if op == "read" else ()

    def faults(self, op, value, result):
        """Tell of a value that cannot be compared."""
        return _unfit("value", value) or _unfit("result", result)


class CasRegister(Register):
    """A register with "cas" of (old, new): True and new if it was old, else False."""

    operations = ("read", "write", "cas")

    def step(self, state, op, value, result):
        """Return the state after a read, write or compare-and-set."""
        if op != "cas":
            return super().step(state, op, value, result)
        old, new = value
        fits = state == (old,)
        if fits != result:
            return None
        return (new,) if fits else state

    def observes(self, op, result):
        """Return whether it is a read, or a cas that found another value."""
        return op == "read" or (op == "cas" and result is False)

    def gives(self, op, value):
        """Return what is written, or would be by a cas that fits."""
        return (value[1],) if op == "cas" else super().gives(op, value)

    def finds(self, op, value, result):
        """Return what is read, or was found by a cas that fitted."""
        if op == "cas":
            return (value[0],) if result is True else ()
        return super().finds(op, value, result)

    def faults(self, op, value, result):
        """Tell of a cas without (old, new), or an answer other than True and False."""
        if op == "cas":
            if not (isinstance(value, tuple | list) and len(value) == 2):
                return f"is called with {value!r}, and not with a pair (old, new)"
            if result is not ANY and not isinstance(result, bool):
                return f"has the result {result!r}, and not True or False"
            return _unfit("value", tuple(value))
        return super().faults(op, value, result)


class KeyValue(CasRegister):
    """A key-value store: a register for each key, also with "delete" and "append"."""

    operations = ("read", "write", "cas", "append", "delete")

    def step(self, state, op, value, result):
        """Return the state of one key after an operation."""
        if op == "append":
            return (value if state[0] is None else state[0] + value,)
        if op == "delete":
            return self.initial
        return super().step(state, op, value, result)

    def gives(self, op, value):
        """Return what is written; what an append makes, nobody can say beforehand."""
        return self.initial if op == "delete" else super().gives(op, value)


class Set(Model):
    """A set: "add" and "remove", "contains" a value, and "read" of all of it.

    An add or remove that is answered True or False says whether it changed anything.
    """

    operations = ("add", "remove", "contains", "read")
    initial = frozenset()

    def step(self, state, op, value, result):
        """Return what is in the set after an operation."""
        if op == "read":
            known = result is ANY or state == frozenset(result or ())
            return state if known else None
        there = value in state
        if op == "contains":
            return state if there == result else None
        changes = there if op == "remove" else not there
        if isinstance(result, bool) and changes != result:
            return None
        return state | {value} if op == "add" else state - {value}

    def observes(self, op, result):
        """Return whether it only looks, or changed nothing."""
        return op in ("contains", "read") or result is False

    def gives(self, op, value):
        """Return what is put in."""
        return (value,) if op == "add" else ()

    def finds(self, op, value, result):
        """Return what was found in it."""
        if op == "read":
            return tuple(result or ())
        found = op == "contains" or op == "remove"
        return (value,) if found and result is True else ()

    def faults(self, op, value, result):
        """Tell of a value that cannot be compared, and of an answer of another kind."""
        if op == "read" and result is not ANY:
            if not isinstance(result, tuple | list | set | frozenset | None):
                return f"has the result {result!r}, and not a set"
            return _unfit("result", tuple(result or ()))
        if op == "contains" and result is not ANY and not isinstance(result, bool):
            return f"has the result {result!r}, and not True or False"
        return _unfit("value", value)


class Queue(Model):
    """First in, first out: "enqueue", and "dequeue", which answers None when empty."""

    operations = ("enqueue", "dequeue")
    initial = ()

    def step(self, state, op, value, result):
        """Return what is in the queue after an enqueue or dequeue."""
        if op == "enqueue":
            return (*state, value)
        if not state:
            return state if result is None or result is ANY else None
        return state[1:] if result == state[0] else None

    def observes(self, op, result):
        """Return whether it is a dequeue that found nothing."""
        return op == "dequeue" and result is None

    def gives(self, op, value):
        """Return what is put in."""
        return (value,) if op == "enqueue" else ()

    def finds(self, op, value, result):
        """Return what is taken out."""
        return (result,) if op == "dequeue" and result is not None else ()

    def faults(self, op, value, result):
        """Tell of a value that cannot be compared."""
        if op == "enqueue" and value is None:
            return "puts None in, which a dequeue answers when there is nothing"
        return _unfit("value", value) or _unfit("result", result)


class Lock(Model):
    """A lock: "acquire" and "release", answered False if it was held, or not held.

    Any other answer is that it was done. If they are called with a value, such as the
    client's number, only who holds the lock can release it.
    """

    operations = ("acquire", "release")
    initial = ("free",)

    def step(self, state, op, value, result):
        """Return who holds the lock after an acquire or release."""
        held = ("held", value)
        before, after = (("free",), held) if op == "acquire" else (held, ("free",))
        if result is ANY:
            return after if state == before else state
        if result is False:
            return None if state == before else state
        return after if state == before else None

    def observes(self, op, result):
        """Return whether it was answered False."""
        return result is False

    def faults(self, op, value, result):
        """Tell of a holder that cannot be compared."""
        return _unfit("value", value)


def _unfit(what: str, value: Any) -> str | None:
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
