"""The files of a checkpoint: written whole or not at all, and read with suspicion.

    folder   index.json           which save counts; replaced last, by a rename
             save-2/rank-0.pt     this rank's parts
                    rank-1.pt

A save writes to a folder of its own. Whoever dies during it leaves the index as it was,
and with it the save before. Errors are the same on all ranks, so that nobody waits.
"""

import hashlib
import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch

from distlab.errors import CheckpointError
from distlab.train.sameness import judged_by_rank_0

__all__ = [
    "make_it_count",
    "make_room",
    "on_all_ranks",
    "part_file",
    "read_full",
    "read_index",
    "read_part",
    "write_whole",
]

_AGAIN = "Save it again, or load an older one."


def on_all_ranks(comm, call: Callable, *args, only: int | None = None) -> list:
    """Call, and return what it returned on each rank.

    only: the rank that calls; the others have None for a result.
    Raises: CheckpointError on every rank, if one rank's call raised an OSError.
    """
    result = failure = None
    if only in (None, comm.rank):
        try:
            result = call(*args)
        except OSError as error:
            failure = str(error)
    answers = judged_by_rank_0(comm, (result, failure), list)
    for rank, (_, failure) in enumerate(answers):
        if failure:
            raise CheckpointError(f"on rank {rank}: {failure}")
    return [result for result, _ in answers]


def write_whole(file: Path, content: dict) -> str:
    """Write under another name and rename, so that no half of it is ever seen.

    Returns: the checksum of what was written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(file.name + ".part")
    with draft.open("wb") as out:
        torch.save(content, out)
        out.flush()
        os.fsync(out.fileno())
    checksum = _checksum(draft)
    draft.replace(file)
    return checksum


def part_file(rank: int) -> str:
    """Return the name of the file of a rank's parts."""
    return f"rank-{rank}.pt"


def _checksum(file):
    digest = hashlib.sha256()
    with file.open("rb") as data:
        while block := data.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _saves(folder):
    """Return the folders of saves, also of those that were cut off, by number."""
    found = (p for p in folder.glob("save-*") if p.name[5:].isdigit())
    return {int(path.name[5:]): path for path in found}


def make_room(folder: Path) -> str:
    """Make a new folder for a save in this one, and return its name."""
    last = max(_saves(folder), default=0)
    (folder / f"save-{last + 1}").mkdir(parents=True)
    return f"save-{last + 1}"


def make_it_count(folder: Path, index: dict) -> None:
    """Have the index name this save from now on, and remove all others."""
    draft = folder / "index.json.part"
    with draft.open("w") as out:
        json.dump(index, out)
        out.flush()
        os.fsync(out.fileno())
    draft.replace(folder / "index.json")
    for save in _saves(folder).values():
        if save.name != index["save"]:
            shutil.rmtree(save)


def read_index(folder: Path) -> dict:
    """Return the index of the save that counts.

    Raises: CheckpointError if there is none, or a torn one.
    """
    file = folder / "index.json"
    if not file.exists():
        raise CheckpointError(f"there is no checkpoint in {folder}: no {file.name}.")
    try:
        return json.loads(file.read_text())
    except ValueError:
        raise CheckpointError(f"{file} is torn: it is no JSON. {_AGAIN}")


def read_part(folder: Path, rank: int, index: dict) -> dict:
    """Return what a rank has saved.

    Raises: CheckpointError if its file is missing, or is not what was written.
    """
    file = folder / part_file(rank)
    if not file.exists():
        raise CheckpointError(f"{file} is missing. {_AGAIN}")
    if _checksum(file) != index["checksums"][rank]:
        raise CheckpointError(f"{file} is torn or was changed. {_AGAIN}")
    return torch.load(file, weights_only=True)


def read_full(file: Path) -> dict:
    """Return what is in a file of torch's, once its checksums have been compared.

    Raises: CheckpointError if it is missing, torn, or holds more than plain data.
    """
    if not file.exists():
        raise CheckpointError(f"there is no checkpoint {file}.")
    try:
        with zipfile.ZipFile(file) as archive:
            torn = archive.testzip()
    except zipfile.BadZipFile:
        torn = file.name
    if torn:
        raise CheckpointError(f"{file} is torn or was changed. {_AGAIN}")
    try:
        return torch.load(file, weights_only=True)
    except pickle.UnpicklingError:
        raise CheckpointError(f"{file} is no checkpoint: it holds more than tensors.")
