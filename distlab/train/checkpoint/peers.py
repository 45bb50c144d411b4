"""`PeerMemory`: checkpoints in the memory of another rank, which no disk slows down.

    rank 0   own snapshot   and that of rank 3
    rank 1   own snapshot   and that of rank 0       rank 1 dies, and is replaced:
    rank 2   own snapshot   and that of rank 1  ──▶  rank 2 sends it its snapshot
    rank 3   own snapshot   and that of rank 2

What is lost with two neighbours at once is on the disk only. So jobs save to a peer
every few steps, and to the disk every hour.

Source: Wang et al., Gemini: Fast Failure Recovery in Distributed Training with
In-Memory Checkpoints, SOSP 2023.
"""

import io

import torch

from distlab.errors import CheckpointError
from distlab.train.checkpoint.files import on_all_ranks

__all__ = ["PeerMemory"]


class PeerMemory:
    """This rank's snapshot and that of the rank before it; keep it where you survive.

    The last two saves are kept, so that who dies in one leaves the one before.
    """

    def __init__(self):
        self._kept = {}  # (step, owner) -> bytes of that rank
        self._world_size = 0

    def save(self, comm, step: int, state: dict) -> None:
        """Keep a snapshot here and on the next rank.

        Cost: a message of the state's size to the next rank.
        """
        packed = io.BytesIO()
        torch.save(state, packed)
        mine = torch.frombuffer(packed.getbuffer(), dtype=torch.uint8)
        n, rank = comm.world_size, comm.rank
        after, before = (rank + 1) % n, (rank - 1) % n
        size, other_size = torch.tensor([len(mine)]), torch.zeros(1, dtype=torch.int64)
        comm.sendrecv(size, other_size, dst=after, src=before)
        other = torch.empty(int(other_size), dtype=torch.uint8)
        comm.sendrecv(mine, other, dst=after, src=before)
        self._kept |= {(step, rank): mine, (step, before): other}
        self._world_size = n
        steps = sorted({step for step, _ in self._kept})[-2:]
        self._kept = {key: it for key, it in self._kept.items() if key[0] in steps}

    def load(self, comm) -> tuple[int, dict] | None:
        """Return the newest step of which all snapshots are there, and this rank's.

        None if no rank has a snapshot, as when a run begins. No file is opened.

        Raises: CheckpointError on every rank if that of some rank is nowhere, or it was
            another number of ranks that saved.
        """
        mine = self._world_size, sorted(self._kept)
        told = on_all_ranks(comm, lambda: mine)
        sizes = {size for size, _ in told} - {0}
        if not sizes:
            return None
        if sizes != {comm.world_size}:
            raise CheckpointError(
                f"snapshots are of {max(sizes)} ranks, and here are {comm.world_size}; "
                "load the last checkpoint from the disk."
            )
        holders = {}
        for rank, (_, keys) in enumerate(told):
            for key in map(tuple, keys):
                if key not in holders or key[1] == rank:
                    holders[key] = rank
        everyone = range(comm.world_size)
        steps = {step for step, _ in holders}
        whole = [s for s in steps if all((s, rank) in holders for rank in everyone)]
        if not whole:
            raise CheckpointError(
                "two neighbours have died at once, and with them a snapshot and its "
                "copy; load the last checkpoint from the disk."
            )
        step = max(whole)
        for owner in everyone:
            self._hand_over(comm, step, owner, holders[step, owner])
        packed = io.BytesIO(self._kept[step, comm.rank].numpy())
        return step, torch.load(packed, weights_only=True)

    def _hand_over(self, comm, step, owner, holder):
        if owner == holder:
            return
        if comm.rank == holder:
            comm.send(torch.tensor([len(self._kept[step, owner])]), owner)
            comm.send(self._kept[step, owner], owner)
        elif comm.rank == owner:
            size = comm.recv(torch.zeros(1, dtype=torch.int64), holder)
            room = torch.empty(int(size), dtype=torch.uint8)
            self._kept[step, owner] = comm.recv(room, holder)
            self._world_size = comm.world_size
