"""Models: sequential specifications, the results of one copy with one client.

A model of your own needs the names of its operations, its initial state, and `step`:

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
    """An unknown result of an operation: it equals every other one."""

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
    """A sequential specification of one object: one copy of it, and one client.

    operations: their names. initial: the state before the first one.
    A state is hashable, and not None. Several keys are several objects.
    """

    operations: tuple[str, ...] = ()
    initial: Hashable = ()

    @property
    def name(self) -> str:
        """The model's name in a verdict."""
        return type(self).__name__

    def step(self, state: Any, op: str, value: Any, result: Any) -> Any:
        """Return the state after an operation, or None if it cannot have this result.

        result: the result in the history, or `ANY` if it is unknown. The effect of an
        operation depends on the state, and not on the result.
        """
        raise NotImplementedError

    def faults(self, op: str, value: Any, result: Any) -> str | None:
        """Return a phrase that describes an invalid value or result, or None."""

    # The rest makes checks faster and their explanations shorter; they are correct
    # without it.

    overwrites = False  # True if a state is (the value written last,) and no more

    def observes(self, op: str, result: Any) -> bool:
        """Return True if an operation with this result changes nothing in any state."""
        return False

    def gives(self, op: str, value: Any) -> tuple:
        """Return the values that later operations can find because of this one."""
        return ()

    def finds(self, op: str, value: Any, result: Any) -> tuple:
        """Return the values that an operation with this result has found."""
        return ()

    def makes(self, op: str, value: Any, found: Any) -> bool:
        """Return True if an operation can have made a value that its `gives` lacks."""
        return False


class Register(Model):
    """One value: "write" sets it, "read" returns it."""

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
        """Return True for a read."""
        return op == "read"

    def gives(self, op, value):
        """Return the value of a write."""
        return (value,) if op == "write" else ()

    def finds(self, op, value, result):
        """Return the result of a read."""
        return (result,) if op == "read" else ()

    def faults(self, op, value, result):
        """Return a phrase that describes a value that cannot be compared, or None."""
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
        """Return True for a read, or a cas that found another value."""
        return op == "read" or (op == "cas" and result is False)

    def gives(self, op, value):
        """Return the value of a write, or the new value of a cas."""
        return (value[1],) if op == "cas" else super().gives(op, value)

    def finds(self, op, value, result):
        """Return the result of a read, or the old value of a cas that succeeded."""
        if op == "cas":
            return (value[0],) if result is True else ()
        return super().finds(op, value, result)

    def faults(self, op, value, result):
        """Return a phrase for a cas without (old, new), or a result that is no bool."""
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
        """Return the value written; that of an append depends on the state: none."""
        return self.initial if op == "delete" else super().gives(op, value)

    def makes(self, op, value, found):
        """Return True for an append if the value that was found can end with its."""
        if op != "append":
            return False
        try:
            return found[len(found) - len(value) :] == value
        except TypeError:
            return True  # such as numbers, which are added


class Set(Model):
    """A set: "add" and "remove", "contains" a value, and "read" of all of it.

    The result of an add or remove is True if it changed the set, False if not.
    """

    operations = ("add", "remove", "contains", "read")
    initial = frozenset()

    def step(self, state, op, value, result):
        """Return the members of the set after an operation."""
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
        """Return True for contains and read, or a result False."""
        return op in ("contains", "read") or result is False

    def gives(self, op, value):
        """Return the value of an add or enqueue."""
        return (value,) if op == "add" else ()

    def finds(self, op, value, result):
        """Return the values that were found in the set."""
        if op == "read":
            return tuple(result or ())
        found = op in ("contains", "remove") and result is True
        return (value,) if found else ()

    def faults(self, op, value, result):
        """Return a phrase that describes an invalid value or result, or None."""
        if op == "read" and result is not ANY:
            if not isinstance(result, tuple | list | set | frozenset | None):
                return f"has the result {result!r}, and not a set"
            return _unfit("result", tuple(result or ()))
        if op == "contains" and result is not ANY and not isinstance(result, bool):
            return f"has the result {result!r}, and not True or False"
        return _unfit("value", value)


class Queue(Model):
    """A FIFO queue: "enqueue", and "dequeue", which returns None when it is empty."""

    operations = ("enqueue", "dequeue")
    initial = ()

    def step(self, state, op, value, result):
        """Return the queue's values, the oldest first, after an enqueue or dequeue."""
        if op == "enqueue":
            return (*state, value)
        if not state:
            return state if result is None or result is ANY else None
        return state[1:] if result == state[0] else None

    def observes(self, op, result):
        """Return True for a dequeue that found the queue empty."""
        return op == "dequeue" and result is None

    def gives(self, op, value):
        """Return the value of an add or enqueue."""
        return (value,) if op == "enqueue" else ()

    def finds(self, op, value, result):
        """Return the value that was dequeued."""
        return (result,) if op == "dequeue" and result is not None else ()

    def faults(self, op, value, result):
        """Return a phrase that describes a value that cannot be compared, or None."""
        if op == "enqueue" and value is None:
            return "puts None in, which a dequeue answers when there is nothing"
        return _unfit("value", value) or _unfit("result", result)


class Lock(Model):
    """A lock: "acquire" and "release", which return False if it was held, or not held.

    Any other result means success. If they are called with a value, such as the
    client's number, only the holder can release the lock.
    """

    operations = ("acquire", "release")
    initial = ("free",)

    def step(self, state, op, value, result):
        """Return the state after an operation: ("free",) or ("held", value)."""
        held = ("held", value)
        before, after = (("free",), held) if op == "acquire" else (held, ("free",))
        if result is ANY:
            return after if state == before else state
        if result is False:
            return None if state == before else state
        return after if state == before else None

    def observes(self, op, result):
        """Return True if the result is False."""
        return result is False

    def faults(self, op, value, result):
        """Return a phrase that describes a holder that cannot be compared, or None."""
        return _unfit("value", value)


def _unfit(what: str, value: Any) -> str | None:
    """Return a phrase, the reason why a value cannot be compared, or None."""
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
