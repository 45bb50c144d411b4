"""A set: what was added and not removed."""

from distlab.agree.models.model import ANY, Model, unfit

__all__ = ["Set"]


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
            return unfit("result", tuple(result or ()))
        if op == "contains" and result is not ANY and not isinstance(result, bool):
            return f"has the result {result!r}, and not True or False"
        return unfit("value", value)
