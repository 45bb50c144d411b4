"""A queue: first in, first out."""

from distlab.agree.models.model import ANY, Model, unfit

__all__ = ["Queue"]


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
        return unfit("value", value) or unfit("result", result)
