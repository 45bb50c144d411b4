"""`WatchedSimulatedComm`: `distlab.comm.WatchedComm` for a simulated rank."""

from distlab.simulated.comm import SimulatedComm

__all__ = ["WatchedSimulatedComm"]


class WatchedSimulatedComm(SimulatedComm):
    """The Comm of a simulated rank, with a record of `tensor` after each call.

    held: (step, numbers of the tensor) after each call, the input first, as step 0.
    sent: (peer, numbers) of each message, in order.
    """

    def __init__(self, comm: SimulatedComm, tensor):
        self.__dict__.update(vars(comm))
        self._tensor = tensor
        self.held, self.sent = [], []
        self.look()

    def look(self) -> None:
        """Record the tensor as it is now."""
        step = self._engine.steps[self._me]
        self.held.append((step, self._tensor.flatten().tolist()))

    def _begin(self, *about, **more):
        self.look()
        return super()._begin(*about, **more)

    def _check(self, thing, peer, name):
        peer = super()._check(thing, peer, name)
        if name == "dst":
            known = hasattr(thing, "flatten")  # a pickled object has no numbers
            self.sent.append((peer, thing.flatten().tolist() if known else []))
        return peer
