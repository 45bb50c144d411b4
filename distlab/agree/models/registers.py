"""Registers: one value, that is read and written, compared and set."""

from typing import Any

from distlab.agree.models.model import ANY, Model, unfit

__all__ = ["CasRegister", "KeyValue", "Register"]


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
        return unfit("value", value) or unfit("result", result)


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
            return unfit("value", tuple(value))
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
