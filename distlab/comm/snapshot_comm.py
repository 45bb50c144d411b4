"""`WatchedComm`: a Comm that records one tensor before each call, and every message.

It is for runs that follow every rank's contribution; see `distlab.follow`.
"""

from distlab.comm.comm import Comm

__all__ = ["SameRank", "WatchedComm"]


class SameRank(Comm):
    """Another Comm of a rank, the base of classes that observe the rank.

    It carries messages in the same way, whatever kind of Comm the rank has.
    """

    def __new__(cls, comm: Comm, *_, **__):
        """Return an object that is also an instance of the class of `comm`."""
        if not issubclass(cls, type(comm)):
            cls = type(cls.__name__, (cls, type(comm)), {})
        return super().__new__(cls)

    def __init__(self, comm: Comm):
        self.__dict__.update(vars(comm))


class WatchedComm(SameRank):
    """The Comm of a rank, with a record of `tensor` after each call.

    held: (step, elements of the tensor) after each call, the input first, as step 0.
    sent: (peer, elements) of each message, in order; of an object no elements.
    """

    def __init__(self, comm: Comm, tensor):
        super().__init__(comm)
        self._tensor = tensor
        self.held = []
        self.sent = []
        self.look()

    def next_step(self) -> None:
        """Record the tensor, as the call before left it; then count this one."""
        self.look()
        super().next_step()

    def send_object(self, thing: object, dst: int) -> None:
        """Send it, and record that a message went to `dst`."""
        self.sent.append((self.ranks[dst], []))
        super().send_object(thing, dst)

    def look(self) -> None:
        """Record the tensor as it is now."""
        self.held.append((self.recorder.step, self._tensor.flatten().tolist()))

    def _offer_sides(self, out, into):
        if out is not None:
            tensor, peer = out
            self.sent.append((self.ranks[peer], tensor.flatten().tolist()))
        return super()._offer_sides(out, into)
