"""A lock: at most one holds it."""

from distlab.agree.models.model import ANY, Model, unfit

__all__ = ["Lock"]


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
        return unfit("value", value)
