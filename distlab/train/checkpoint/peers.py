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

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.utils import _pytree as tree

from distlab.errors import CheckpointError
from distlab.train.checkpoint.files import on_all_ranks

__all__ = ["PeerMemory"]

_ALIGNED = 16


@dataclass
class _Slot:
    """Where a tensor was."""

    dtype: torch.dtype
    shape: torch.Size


class _Snapshot(NamedTuple):
    """A state: its tensors in one flat tensor of bytes, and the state without them."""

    flat: torch.Tensor
    rest: object

    @classmethod
    def of(cls, state, room=None):
        """Copy a state, into the room of an older snapshot if there is some."""
        tensors = [leaf for leaf in tree.tree_leaves(state) if torch.is_tensor(leaf)]
        sizes = [_aligned(tensor.nbytes) for tensor in tensors]
        flat = _room(room, sum(sizes))
        for tensor, piece in zip(tensors, flat.split(sizes), strict=True):
            _view(piece, tensor).copy_(tensor.detach())

        def slot(tensor):
            return _Slot(tensor.dtype, tensor.shape)

        return cls(flat, tree.tree_map_only(torch.Tensor, slot, state))

    def state(self):
        """Return a copy of the state."""
        slots = [
            leaf for leaf in tree.tree_leaves(self.rest) if isinstance(leaf, _Slot)
        ]
        pieces = iter(self.flat.split([_aligned(_nbytes(slot)) for slot in slots]))

        def tensor(slot):
            return _view(next(pieces), slot).clone()

        return tree.tree_map_only(_Slot, tensor, self.rest)


def _nbytes(slot):
    return slot.dtype.itemsize * math.prod(slot.shape)


def _aligned(nbytes):
    return -(-nbytes // _ALIGNED) * _ALIGNED


def _view(flat, slot):
    return flat[: _nbytes(slot)].view(slot.dtype).view(slot.shape)


def _room(room, size):
    if room is not None and len(room) == size:
        return room
    return torch.empty(size, dtype=torch.uint8)


class PeerMemory:
    """This rank's snapshot and that of the rank before it; keep it where you survive.

    The last two saves are kept, so that who dies in one leaves the one before. It is of
    the same number of ranks: in `run_elastic`, `least` has to be all of them.
    """

    def __init__(self):
        self._kept = {}  # (step, owner) -> bytes of that rank
        self._world_size = 0

    def save(self, comm, step: int, state: dict) -> None:
        """Keep a snapshot here and on the next rank.

        Cost: a message of the state's size to the next rank, and a barrier: the save
            before the last is given up once all ranks have the last one.
        """
        n, rank = comm.world_size, comm.rank
        after, before = (rank + 1) % n, (rank - 1) % n
        old = min(self._kept, default=(0, 0))[0] if len(self._kept) > 2 else None
        rooms = {key[1]: it.flat for key, it in self._kept.items() if key[0] == old}
        self._kept = {key: it for key, it in self._kept.items() if key[0] != old}
        mine = _Snapshot.of(state, rooms.get(rank))
        self._kept[step, rank], self._world_size = mine, n
        if n == 1:
            return
        for turn in range(2):  # even ranks send first: a ring of sends would wait
            if turn == rank % 2:
                comm.send_object((len(mine.flat), mine.rest), after)
            else:
                size, rest = comm.recv_object(before)
        other = _Snapshot(_room(rooms.get(before), size), rest)
        comm.sendrecv(mine.flat, other.flat, dst=after, src=before)
        self._kept[step, before] = other
        comm.barrier()

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
        return step, self._kept[step, comm.rank].state()

    def _hand_over(self, comm, step, owner, holder):
        if owner == holder:
            return
        if comm.rank == holder:
            snapshot = self._kept[step, owner]
            comm.send_object((len(snapshot.flat), snapshot.rest), owner)
            comm.send(snapshot.flat, owner)
        elif comm.rank == owner:
            size, rest = comm.recv_object(holder)
            flat = comm.recv(torch.empty(size, dtype=torch.uint8), holder)
            self._kept[step, owner] = _Snapshot(flat, rest)
            self._world_size = comm.world_size
