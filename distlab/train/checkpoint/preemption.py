"""`Preemption`: a machine is taken away soon, and the run saves before it goes."""

import signal
import threading

import torch

from distlab.collectives import tree_broadcast
from distlab.errors import InvalidArgument

__all__ = ["Preemption"]


class Preemption:
    """Hears SIGTERM, with which clouds and Slurm announce the end, often 30 s ahead.

        with Preemption() as preemption:
            for batch in batches:
                step(batch)
                if preemption.asked(comm):
                    checkpoints.save(...)
                    break

    Source: Slurm's `--signal`; Kubernetes sends SIGTERM 30 s before SIGKILL.
    """

    def __enter__(self):
        if threading.current_thread() is not threading.main_thread():
            raise InvalidArgument("signals arrive on the main thread: use it there.")
        self._here = False
        self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_):
        signal.signal(signal.SIGTERM, self._before)

    def _note(self, *_):
        self._here = True

    def asked(self, comm) -> bool:
        """Return whether any rank was asked to leave; the same on all ranks.

        Cost: two small messages a rank; ask after every step, or after every few.
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
