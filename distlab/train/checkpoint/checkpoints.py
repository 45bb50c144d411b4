"""`Checkpoints`: several saves of a training run, their rotation, and loading one."""

import math
import time
from collections.abc import MutableMapping
from pathlib import Path

import torch

from distlab.errors import CheckpointError, InvalidArgument
from distlab.train.checkpoint.files import (
    begin,
    commit,
    complete,
    discard,
    lock,
    on_all_ranks,
    part_file,
    read_manifest,
    read_part,
    remove_incomplete,
    unlock,
    vote,
)
from distlab.train.checkpoint.writer import Writer

__all__ = ["Checkpoints"]

_SHARED = "shared.pt"


class Checkpoints:
    """The saves of one run in one folder; every rank makes one, with the same options.

    folder: the same for all ranks, and visible to all; one job at a time saves in it.
    keep_last: the number of newest saves to keep.
    keep_best: the number of saves with the smallest `metric` to keep in addition.
    keep_every_s: keep the first save of each interval of so many seconds in addition.
    background: True if `save` returns once it has a snapshot. A writer process of each
        rank does the rest; memory that the rank changes meanwhile exists twice.
    read_only: True if it only loads, also from a folder that cannot be written, or in
        which another job saves.

    skipped: of the last `load`: the saves that were torn, with reasons.
    left_out: of the last `load`: values that could not be restored and reasons, or "".

    Raises: CheckpointError on every rank if the folder cannot be used, or another job
        saves there.
    """

    def __init__(
        self,
        comm,
        folder: str | Path,
        *,
        keep_last: int = 2,
        keep_best: int = 0,
        keep_every_s: float | None = None,
        background: bool = False,
        read_only: bool = False,
    ):
        if keep_last < 1:
            raise InvalidArgument(f"keep_last={keep_last}: at least the newest stays.")
        self.comm, self.folder = comm, Path(folder)
        self.keep = keep_last, keep_best, keep_every_s
        self.background, self.read_only = background, read_only
        self.skipped, self.left_out = [], ""
        self._writer = self._save = self._lock = None
        if not read_only:
            on_all_ranks(comm, self._begin, only=0)

    def _begin(self):
        self._lock = lock(self.folder)
        remove_incomplete(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.wait()
        self._abandon()
        self._unlock()

    def save(
        self,
        step: int,
        shared: MutableMapping,
        own: MutableMapping | None = None,
        metric: float | None = None,
    ) -> None:
        """Save on all ranks; it counts when all have written, and not before.

        shared: values that are the same on all ranks, by name; rank 0 writes them.
        own: values of each rank itself, by name, such as its `RandomState`.
        Values are tensors and plain data, or have `state_dict` and `load_state_dict`.

        Raises: CheckpointError on every rank if one could not write, now or in the
            save before; the saves that were complete stay.
        """
        if self.read_only:
            raise InvalidArgument("read_only=True: these checkpoints are only loaded.")
        self.wait()
        name = on_all_ranks(self.comm, begin, self.folder, step, only=0)[0]
        self._save = self.folder / name
        kinds = _kinds(shared)
        shared = {name: _taken(value) for name, value in shared.items()}
        mine = {name: _taken(value) for name, value in (own or {}).items()}
        contents = {part_file(self.comm.rank): mine}
        if self.comm.rank == 0:
            contents[_SHARED] = shared
        manifest = {
            "step": step,
            "world_size": self.comm.world_size,
            "time": time.time(),
            "metric": None if metric is None else float(metric),
            "shapes": _shapes(kinds, shared),
        }
        self._writer = Writer(self._written, contents, manifest)
        if not self.background:
            self.wait()

    def _written(self, contents, manifest):
        """Write this rank's files; rank 0 commits once all have."""
        vote(self._save, self.comm.rank, contents)
        if self.comm.rank == 0:
            commit(self._save, manifest)
            self._rotate()

    def wait(self) -> None:
        """Wait until the last save is complete.

        Raises: CheckpointError on every rank if it could not be written.
        """
        writer = self._writer
        if writer is None:
            return
        try:
            # Rank 0's writer waits for the votes of the others: it comes last.
            on_all_ranks(self.comm, writer.wait if self.comm.rank else int)
            on_all_ranks(self.comm, writer.wait, only=0)
        except CheckpointError:
            self._abandon()
            on_all_ranks(self.comm, discard, self._save, only=0)
            raise
        self._writer = None

    def close(self) -> None:
        """Wait for the last save, and release the folder's lock."""
        self.wait()
        self._unlock()

    def _abandon(self):
        """Kill the writer, which may wait for votes that never arrive."""
        if self._writer:
            self._writer.kill()
            self._writer = None

    def _unlock(self):
        if self._lock and not self._lock.closed:
            unlock(self._lock)

    def _rotate(self):
        """Remove the saves that no rule keeps."""
        keep_last, keep_best, keep_every_s = self.keep
        saves = complete(self.folder)
        kept = set(saves[:keep_last])
        if keep_best or keep_every_s:
            facts = {save: _facts(save) for save in saves}
            kept |= set(sorted(saves, key=lambda s: facts[s][0])[:keep_best])
            if keep_every_s:  # older ones overwrite newer ones of the same span
                kept |= set({facts[s][1] // keep_every_s: s for s in saves}.values())
        for save in saves:
            if save not in kept:
                discard(save)

    def load(
        self, shared: MutableMapping, own: MutableMapping | None = None
    ) -> int | None:
        """Restore the newest save that is whole into the mappings; return its step.

        Values with `load_state_dict` are changed in place, others replaced in the
        mapping. Without a whole save nothing is changed, and it returns None. On
        another number of ranks `own` cannot be restored, nor values that the save does
        not have; `left_out` lists them.

        Raises: CheckpointError on every rank, before anything was changed, if the save
            is of another model.
        """
        self.wait()
        self.skipped, self.left_out = [], ""
        saves = on_all_ranks(
            self.comm, lambda: [s.name for s in complete(self.folder)], only=0
        )[0]
        for name in saves:
            try:
                found = self._read(self.folder / name)
            except CheckpointError as error:
                self.skipped.append(str(error))
                continue
            on_all_ranks(self.comm, _check_shapes, found[0]["shapes"], shared)
            return self._put_back(*found, shared, {} if own is None else own)
        return None

    def _read(self, save):
        manifest = on_all_ranks(self.comm, read_manifest, save, only=0)[0]
        same = manifest["world_size"] == self.comm.world_size
        found = []

        def read():
            found.append(read_part(save, _SHARED, manifest))
            mine = part_file(self.comm.rank)
            found.append(read_part(save, mine, manifest) if same else {})

        on_all_ranks(self.comm, read)
        return manifest, *found

    def _put_back(self, manifest, saved, mine, shared, own):
        here, there = self.comm.world_size, manifest["world_size"]
        absent = [name for name in shared if name not in saved]
        if here == there:
            absent += [name for name in own if name not in mine]
        elif own:
            self.left_out = (
                f"{', '.join(own)}: of each of {there} ranks, and here are {here}."
            )
        if absent:
            self.left_out += f"{', '.join(absent)}: not in the save."
        for place, content in ((shared, saved), (own, mine)):
            for name in place.keys() & content.keys():
                if hasattr(place[name], "load_state_dict"):
                    place[name].load_state_dict(content[name])
                else:
                    place[name] = content[name]
        return manifest["step"]


def _taken(value):
    """Return the state of an object, or a value itself, with its tensors on the CPU."""
    state = value.state_dict() if hasattr(value, "state_dict") else value
    return torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu, state)


def _kinds(shared):
    """Return name -> [parameters of each group, class name] of each optimizer."""
    return {
        name: [[len(g["params"]) for g in value.param_groups], type(value).__name__]
        for name, value in shared.items()
        if hasattr(value, "param_groups")
    }


def _shapes(kinds, states):
    """Add the shape and type of every tensor that has a name, as of a module."""
    return kinds | {
        f"{what}.{name}": [list(value.shape), str(value.dtype)]
        for what, state in states.items()
        if isinstance(state, dict)
        for name, value in state.items()
        if torch.is_tensor(value)
    }


def _check_shapes(saved, shared):
    states = {name: _taken(value) for name, value in shared.items()}
    ours = _shapes(_kinds(shared), states)
    for name in [*saved, *ours]:
        if saved.get(name) != ours.get(name):
            there, here = (_words(shapes.get(name)) for shapes in (saved, ours))
            raise CheckpointError(
                f"the checkpoint is of another model: {name} is {there} in it, and "
                f"{here} here. Build the model that was saved, or use another folder."
            )


def _words(shape):
    return f"{shape[1].removeprefix('torch.')}{shape[0]}" if shape else "missing"


def _facts(save):
    """Return (metric, time in seconds) of a save; (inf, 0) if it is torn."""
    try:
        manifest = read_manifest(save)
    except CheckpointError:
        return math.inf, 0.0
    metric = manifest.get("metric")
    useless = metric is None or math.isnan(metric)
    return math.inf if useless else metric, manifest.get("time", 0.0)
