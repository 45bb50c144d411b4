"""`PeerMemory`: checkpoints in the memory of another rank, without a disk.

    rank 0   own snapshot   and that of rank 3
    rank 1   own snapshot   and that of rank 0       rank 1 dies, and is replaced:
    rank 2   own snapshot   and that of rank 1  ──▶  rank 2 sends it its snapshot
    rank 3   own snapshot   and that of rank 2

If two neighbours die at once, their state is on the disk only. So jobs save to a peer
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
    """The placeholder of a tensor in a state."""

    dtype: torch.dtype
    shape: torch.Size


class _Snapshot(NamedTuple):
    """A state: its tensors in one flat tensor of bytes, and the state without them."""

    flat: torch.Tensor
    rest: object

    @classmethod
    def of(cls, state, room=None):
        """Copy a state, into the memory of an older snapshot if there is one."""
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
    """This rank's snapshot and that of the rank before it; store it in `kept`.

    The last save that all ranks have is kept until they have the next one, so that a
    death during a save leaves the one before. The number of ranks must not change: in
    `run_elastic`, `least` has to be all of them.
    """

    def __init__(self):
        self._kept = {}  # (step, owner) -> bytes of that rank
        self._world_size, self._whole = 0, None  # step of the save that all ranks have

    def save(self, comm, step: int, state: dict) -> None:
        """Store a snapshot here and on the next rank.

        Cost: a message of the state's size to the next rank, and a barrier.
        """
        n, rank = comm.world_size, comm.rank
        after, before = (rank + 1) % n, (rank - 1) % n
        old = {key: it for key, it in self._kept.items() if key[0] != self._whole}
        rooms = {owner: it.flat for (_, owner), it in old.items()}
        self._kept = {key: it for key, it in self._kept.items() if key not in old}
        mine = _Snapshot.of(state, rooms.get(rank))
        self._kept[step, rank], self._world_size = mine, n
        if n == 1:
            self._whole = step
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
        self._whole = step

    def load(self, comm) -> tuple[int, dict] | None:
        """Return the newest step with all ranks' snapshots, and this rank's state.

        None if no save was complete, as when a run begins. No file is opened.

        Raises: CheckpointError on every rank if no rank has the snapshot of some rank,
            or if another number of ranks saved.
        """
        mine = self._world_size, self._whole, sorted(self._kept)
        described = on_all_ranks(comm, lambda: mine)
        sizes = {size for size, _, _ in described} - {0}
        if not sizes:
            return None
        if sizes != {comm.world_size}:
            raise CheckpointError(
                f"snapshots are of {max(sizes)} ranks, and here are {comm.world_size}; "
                "load the last checkpoint from the disk."
            )
        there = [set(map(tuple, keys)) for _, _, keys in described]
        everyone = range(comm.world_size)
        steps = {step for step, _ in set.union(*there)}
        whole = [
            s for s in steps if {(s, owner) for owner in everyone} <= set.union(*there)
        ]
        if not whole and all(before is None for _, before, _ in described):
            return None
        if not whole:
            raise CheckpointError(
                "two neighbours have died at once, and with them a snapshot and its "
                "copy; load the last checkpoint from the disk."
            )
        step = max(whole)
        for owner in everyone:
            has = [rank for rank in everyone if (step, owner) in there[rank]]
            for rank in (owner, (owner + 1) % comm.world_size):
                if rank not in has:
                    self._hand_over(comm, (step, owner), has[0], rank)
        self._world_size, self._whole = comm.world_size, step
        return step, self._kept[step, comm.rank].state()

    def _hand_over(self, comm, key, src, dst):
        if comm.rank == src:
            snapshot = self._kept[key]
            comm.send_object((len(snapshot.flat), snapshot.rest), dst)
            comm.send(snapshot.flat, dst)
        elif comm.rank == dst:
            size, rest = comm.recv_object(src)
            flat = comm.recv(torch.empty(size, dtype=torch.uint8), src)
            self._kept[key] = _Snapshot(flat, rest)
