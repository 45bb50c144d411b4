"""Checkpoints of sharded training: a file of each rank, or one of the whole model.

    sharded   every rank writes and reads its own shard, and another number of ranks
              may reshard
    full      rank 0 writes one file, which a process without shards can load:

        saved = torch.load(file, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])

All of a full state passes through the memory of rank 0, so that a model that is too
large for one rank cannot have one.
"""

import copy
import itertools
from collections.abc import Iterable
from pathlib import Path

import torch

from distlab.collectives import naive_gather
from distlab.errors import CheckpointError
from distlab.train.checkpoint.files import (
    begin,
    commit,
    complete,
    discard,
    on_all_ranks,
    part_file,
    read_manifest,
    read_part,
    vote,
    write_whole,
)
from distlab.train.state import Learned

__all__ = ["load_sharded", "save_full", "save_sharded"]


def save_sharded(comm, folder: str | Path, trained, optimizer=None) -> None:
    """Write every rank's shard; the save before counts until all have done so.

    folder: the same for all ranks, and visible to all.
    trained: a `FullySharded`, with its optimizer, or a `ZeroOptimizer`.

    Raises: CheckpointError on every rank if one could not write.
    Cost: a rank writes its own shard; only names and checksums are sent.
    """
    folder, learned = Path(folder), Learned(trained, optimizer)
    save = folder / on_all_ranks(comm, begin, folder, only=0)[0]
    on_all_ranks(comm, vote, save, comm.rank, {part_file(comm.rank): learned.taken()})
    manifest = {
        "world_size": comm.world_size,
        "optimizer": learned.kind,
        "groups": learned.layout(),
    }

    def count():
        commit(save, manifest)
        for older in complete(folder)[1:]:
            discard(older)

    on_all_ranks(comm, count, only=0)


def load_sharded(
    comm, folder: str | Path, trained, optimizer=None, *, reshard: bool = False
) -> None:
    """Load the last complete save.

    reshard: True to accept a save of another number of ranks.

    Raises: CheckpointError on every rank, before anything was changed: nothing there, a
        file missing or changed, another world size, model or optimizer.
    Cost: a rank reads its own shard; with another world size it reads all, one by one.
    """
    folder, learned = Path(folder), Learned(trained, optimizer)
    name, manifest = on_all_ranks(comm, _newest, folder, only=0)[0]
    on_all_ranks(comm, _check_fits, manifest, learned, comm.world_size, reshard)
    save, found = folder / name, []

    def read():
        saved_by = manifest["world_size"]
        ranks = [comm.rank] if saved_by == comm.world_size else range(saved_by)
        files = (read_part(save, part_file(rank), manifest) for rank in ranks)
        if saved_by == comm.world_size:
            found.extend(files)
        else:
            found.append(_resharded(files, trained.groups, comm.rank))

    on_all_ranks(comm, read)
    learned.put_back(found[0])


def save_full(comm, file: str | Path, trained, optimizer=None) -> None:
    """Gather the whole state on rank 0, which writes it in torch's format.

    With `MasterWeights`, "optimizer" has the format of its `load_state_dict`.

    Raises: CheckpointError on every rank if rank 0 could not write.
    """
    learned = Learned(trained, optimizer)
    mine = learned.taken()
    states = {}  # of each parameter, by its name
    for group, flat, single in zip(
        trained.groups, mine["flat"], mine["single"], strict=True
    ):
        # Copies: an optimizer that loads a count of steps increments it in place.
        states |= {name: copy.deepcopy(single) for name in group.names}
        for key, part in flat.items():
            parts = naive_gather(comm, part.to(comm.device))
            if comm.rank == 0:
                views = group.views(torch.cat(parts).cpu())
                for name, view in zip(group.names, views, strict=True):
                    states[name][key] = view
    content = _as_full(learned, mine, states) if comm.rank == 0 else None
    on_all_ranks(comm, write_whole, Path(file), content, only=0)


def _as_full(learned, taken, states):
    """Return the full state in torch's format; states: name -> kind -> value.

    torch's optimizers count parameters in order of registration; with `MasterWeights`,
    only those that are trained.
    """
    names = learned.trained.names
    values = {alias: states[n]["values"] for alias, n in names.items() if n in states}
    order, state = _order(learned), {}
    for place, name in enumerate(order):
        rest = dict(states.get(name, {}))
        masters = rest.pop("masters", None)
        rest.pop("values", None)
        if rest:
            state[place] = rest
    options = taken["options"] | {"params": list(range(len(order)))}
    optimizer = {"state": state, "param_groups": [options]}
    if learned.has_masters:
        masters = [states[name]["masters"] for name in order]
        optimizer = {"masters": masters, "optimizer": optimizer}
    return {"model": taken["rest"] | values, "optimizer": optimizer}


def _order(learned):
    names = list(dict.fromkeys(learned.trained.names.values()))
    if learned.has_masters:
        return [name for name in names if name in learned.shapes()]
    return names


def _newest(folder):
    """Return the name of the last complete save, and its manifest."""
    saves = complete(folder)
    if not saves:
        raise CheckpointError(f"there is no checkpoint in {folder}: no complete save.")
    return saves[0].name, read_manifest(saves[0])


def _check_fits(manifest, learned, world_size, reshard):
    saved_by, layout = manifest["world_size"], learned.layout()
    every = [list(itertools.chain(*groups)) for groups in (manifest["groups"], layout)]
    for saved, ours in zip(*every, strict=False):
        if saved != ours:
            raise CheckpointError(
                f"it is of another model: it has {_words(saved)} where this one has "
                f"{_words(ours)}."
            )
    if manifest["groups"] != layout:
        raise CheckpointError(
            "it is of another model, or the same one cut into other groups: build it "
            "with the same layers, and the same unit or bytes per group."
        )
    if manifest["optimizer"] != learned.kind:
        raise CheckpointError(
            f"it was saved with {manifest['optimizer']}, and this is {learned.kind}."
        )
    if saved_by != world_size and not reshard:
        raise CheckpointError(
            f"it was saved by {saved_by} ranks, and here are {world_size}. Pass "
            "reshard=True to cut it into other parts."
        )


def _words(parameter):
    name, shape, dtype = parameter
    return f"{name} {dtype}{shape}"


def _resharded(contents: Iterable[dict], groups, rank):
    """Return this rank's shards, cut out of those of another number of ranks."""
    mine = None
    for old_rank, content in enumerate(contents):
        if mine is None:
            mine = {**content, "flat": [{} for _ in groups]}
        for group, parts, new in zip(
            groups, content["flat"], mine["flat"], strict=True
        ):
            for key, part in parts.items():
                room = new.setdefault(key, part.new_zeros(group.part))
                _copy_overlap(part, old_rank * len(part), room, rank * group.part)
    return mine


def _copy_overlap(part, part_begins, room, room_begins):
    begin = max(part_begins, room_begins)
    end = min(part_begins + len(part), room_begins + len(room))
    if begin < end:
        found = part[begin - part_begins : end - part_begins]
        room[begin - room_begins : end - room_begins] = found
