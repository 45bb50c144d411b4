"""`Preemption`: the notice that a machine is taken away, for a save before that."""

import signal
import threading

import torch

from distlab.collectives import tree_broadcast
from distlab.errors import InvalidArgument

__all__ = ["Preemption"]


class Preemption:
    """A handler of SIGTERM, by which clouds and Slurm announce the end, often by 30 s.

        with Preemption() as preemption:
            for batch in batches:
                step(batch)
                if preemption.asked(comm):
                    checkpoints.save(...)
                    break

    deadline_s: seconds from the signal to the end of the process, wherever it is: a
        save that is incomplete by then is lost, and the one before it counts.

    Source: Slurm's `--signal`; Kubernetes sends SIGTERM 30 s before SIGKILL.
    """

    def __init__(self, deadline_s: float = 30):
        self._deadline_s = deadline_s

    def __enter__(self):
        if threading.current_thread() is not threading.main_thread():
            raise InvalidArgument("signals arrive on the main thread: use it there.")
        self._here = False
        self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_):
        signal.signal(signal.SIGTERM, self._before)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _note(self, *_):
        if not self._here:
            self._here = True
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it ends the process
            signal.setitimer(signal.ITIMER_REAL, self._deadline_s)

    def asked(self, comm) -> bool:
        """Return True if any rank has received the signal; the same on all ranks.

        Cost: two small messages a rank; call it after every step, or after every few.
        """
        asked = torch.tensor([int(self._here)])
        for rank in range(1, comm.world_size):
            if comm.rank == rank:
                comm.send(asked, 0)
            elif comm.rank == 0:
                other = torch.zeros(1, dtype=torch.int64)
                asked |= comm.recv(other, rank)
        tree_broadcast(comm, asked, root=0)
        return bool(asked)
