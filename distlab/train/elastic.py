"""Elastic state: the state of training that survives changes of the world size.

    world of 4   step ─ commit ─ step ─ commit ─ st✗
    world of 3                                     sync ─ step ─ commit ─ ...

A rank may be anywhere when its world ends: one has stepped its optimizer, another still
waits for a gradient. So each keeps a snapshot of its last whole step, in memory, and
all continue from the newest one. At most the step that was not committed is repeated.

The batch stays the same when ranks come and go: each takes its part of the same
samples, and weights its gradient by their number. Then the learning rate stays the
same, too. With a batch that grows with the ranks it would have to be scaled as well.

Source: Horovod's elastic state (commit, restore, sync).
"""

import copy
import io

import torch

from distlab.collectives import tree_broadcast

__all__ = ["ElasticState"]


class ElasticState(dict):
    """Modules, optimizers, positions in data, and plain values, by name.

        if not kept:
            kept["state"] = ElasticState(model=model, optimizer=optimizer, losses=[])
        state = kept["state"]
        state.sync(comm)

    commits: the number of snapshots that this process has taken, or received.
    Memory: a second copy of everything, which is the snapshot.
    """

    def __init__(self, **things):
        super().__init__(things)
        self.commits = 0
        self._snapshot = self._taken()

    def commit(self) -> None:
        """Take a snapshot; call it after each whole step, or after every few."""
        self._snapshot = self._taken()
        self.commits += 1

    def restore(self) -> None:
        """Load the last snapshot into the present objects."""
        for name, value in copy.deepcopy(self._snapshot).items():
            if hasattr(self[name], "load_state_dict"):
                self[name].load_state_dict(value)
            else:
                self[name] = value

    def sync(self, comm) -> None:
        """Load the newest snapshot of any rank on all ranks.

        Before the first commit it is rank 0's.
        Cost: a number of each rank; if one of them lacks the newest, a broadcast of it.
        """
        commits = torch.zeros(comm.world_size, dtype=torch.int64)
        commits[comm.rank] = self.commits
        for rank in range(comm.world_size):
            tree_broadcast(comm, commits[rank : rank + 1], root=rank)
        newest = int(commits.max())
        if int(commits.min()) < newest or not newest:
            self._take_over(comm, int(commits.argmax()))
            self.commits = newest
        self.restore()

    def _take_over(self, comm, owner):
        """Broadcast the snapshot of rank `owner`."""
        packed = io.BytesIO()
        if comm.rank == owner:
            torch.save(self._snapshot, packed)
        size = torch.tensor([packed.tell()])
        tree_broadcast(comm, size, root=owner)
        content = torch.zeros(int(size), dtype=torch.uint8)
        if comm.rank == owner:
            content = torch.frombuffer(packed.getbuffer(), dtype=torch.uint8)
        tree_broadcast(comm, content, root=owner)
        if comm.rank != owner:
            packed = io.BytesIO(content.numpy().tobytes())
            self._snapshot = torch.load(packed, weights_only=True)

    def _taken(self):
        return {
            name: copy.deepcopy(
                thing.state_dict() if hasattr(thing, "state_dict") else thing
            )
            for name, thing in self.items()
        }
