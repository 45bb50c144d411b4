"""Files of a checkpoint: a save is written as a whole or does not count.

    folder   step-00000300/  rank-0.pt    phase 1: each rank writes its file, and votes
                             rank-0.vote  {"rank-0.pt": [bytes, checksum]}
                             rank-1.pt
                             rank-1.vote
                             manifest.json  phase 2: rank 0 commits, with all votes in
             lock            held by the job that saves here

Every file is written under another name, forced to the disk, and renamed; then the
folder is forced to the disk, which holds the rename. To remove a save, its manifest is
removed first. So a kill at any point leaves saves that are complete, and saves that do
not count; the next save removes those.
"""

import fcntl
import hashlib
import io
import json
import os
import pickle
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import torch

from distlab.errors import CheckpointError
from distlab.train.replica_checks import judged_by_rank_0

__all__ = [
    "MANIFEST",
    "begin",
    "commit",
    "complete",
    "discard",
    "lock",
    "on_all_ranks",
    "part_file",
    "read_manifest",
    "read_part",
    "remove_incomplete",
    "unlock",
    "vote",
    "write_whole",
]

MANIFEST = "manifest.json"
_AGAIN = "Save it again, or load an older one."
_TICK_S = 0.005


def on_all_ranks(comm, call: Callable, *args, only: int | None = None) -> list:
    """Make a call on each rank; return the list of all ranks' results.

    only: the one rank that calls; the result of the others is None.
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


def write_whole(file: Path, content: dict) -> list:
    """Write under another name and rename, so that the file is never seen half.

    Returns: the size in bytes and the checksum of the file.
    Raises: CheckpointError if it has objects that `read_part` would not load.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(file.name + ".part")
    with _Out(draft, "wb") as out:
        try:
            torch.save(content, out)
        except RuntimeError as error:
            why = out.failure.strerror if out.failure else error
            raise CheckpointError(f"{file} could not be written: {why}.") from None
    try:  # maps the tensors, and reads none
        torch.load(draft, weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:
        what = re.search(r"GLOBAL (\S+)", str(error))
        raise CheckpointError(
            f"{file.name} would hold more than tensors and plain data"
            f"{f', {what[1]}' if what else ''}, which no `load` takes. Save numbers "
            "and lists instead, such as float(loss)."
        )
    size, checksum = draft.stat().st_size, _checksum(draft)
    _put(draft, file)
    return [size, checksum]


class _Out(io.FileIO):
    """A file that stores the error of a failed write, which torch does not report."""

    failure = None

    def write(self, data):
        left = memoryview(data).cast("B")
        try:
            while left:
                left = left[super().write(left) :]
        except OSError as error:
            self.failure = error
            raise
        return len(data)


def _put(draft, file):
    """Force a draft to the disk and rename it, durably against a power failure."""
    _force(draft)
    draft.replace(file)
    _force(file.parent)


def _force(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_json(file, content):
    draft = file.with_name(file.name + ".part")
    draft.write_text(json.dumps(content))
    _put(draft, file)


def part_file(rank: int) -> str:
    """Return the name of the file of a rank's parts."""
    return f"rank-{rank}.pt"


def _checksum(file):
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _checksum_of(manifest):
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()


def _saves(folder):
    """Return the folders of saves, also of incomplete ones, oldest first."""
    found = (path for path in folder.glob("step-*") if _number(path))
    return sorted(found, key=_number)


def _number(path):
    """Return (step, attempt), by which saves are ordered; a clock may jump."""
    parts = path.name.split("-")[1:]
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()


def complete(folder: Path) -> list[Path]:
    """Return the folders of the complete saves, newest first."""
    return [save for save in _saves(folder)[::-1] if (save / MANIFEST).exists()]


def begin(folder: Path, step: int | None = None) -> str:
    """Make a new folder for a save in this one, and return its name.

    step: one more than that of the last save, if not given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    remove_incomplete(folder)
    saves = _saves(folder)
    if step is None:
        step = _number(saves[-1])[0] + 1 if saves else 1
    name, attempt = f"step-{step:08d}", 1
    while (folder / name).exists():
        attempt += 1
        name = f"step-{step:08d}-{attempt}"
    (folder / name).mkdir()
    _force(folder)
    return name


def vote(save: Path, rank: int, contents: dict[str, dict]) -> None:
    """Write a rank's files, and then its vote: the first phase."""
    written = {name: write_whole(save / name, it) for name, it in contents.items()}
    _write_json(save / f"rank-{rank}.vote", written)


def commit(save: Path, manifest: dict) -> None:
    """Wait for the votes of all ranks, and write the manifest: the second phase."""
    votes = [save / f"rank-{rank}.vote" for rank in range(manifest["world_size"])]
    while not all(vote.exists() for vote in votes):
        time.sleep(_TICK_S)
    files = {}
    for vote in votes:
        files |= json.loads(vote.read_text())
    manifest |= {"files": files}
    _write_json(save / MANIFEST, manifest | {"checksum": _checksum_of(manifest)})


def discard(save: Path) -> None:
    """Remove a save, its manifest first, so that it does not count any more."""
    (save / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(save, ignore_errors=True)


def remove_incomplete(folder: Path) -> None:
    """Remove incomplete saves, which a job left that died during a save."""
    for save in _saves(folder):
        if not (save / MANIFEST).exists():
            shutil.rmtree(save)


def lock(folder: Path) -> IO:
    """Lock the folder for this process; return a file that holds the lock while open.

    The system releases the lock when the process ends, however that happens.
    Raises: CheckpointError if another process has it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise CheckpointError(
            f"another job saves its checkpoints in {folder}. Give each job a folder of "
            "its own, or end the other one first."
        )
    return file


def unlock(file: IO) -> None:
    """Release the folder's lock, even if a forked process has the file open, too."""
    fcntl.flock(file, fcntl.LOCK_UN)
    file.close()


def read_manifest(save: Path) -> dict:
    """Return the manifest of a save.

    Raises: CheckpointError if it is torn.
    """
    file = save / MANIFEST
    try:
        manifest = json.loads(file.read_text())
        if manifest.pop("checksum") == _checksum_of(manifest):
            return manifest
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise CheckpointError(f"{file} is torn or was changed. {_AGAIN}")


def read_part(save: Path, name: str, manifest: dict) -> dict:
    """Return the contents of a file of a save.

    Raises: CheckpointError if the file is missing, its size or checksum differs, or it
        holds more than plain data.
    """
    file = save / name
    if not file.exists():
        raise CheckpointError(f"{file} is missing. {_AGAIN}")
    if [file.stat().st_size, _checksum(file)] != manifest["files"][name]:
        raise CheckpointError(f"{file} is torn or was changed. {_AGAIN}")
    try:
        return torch.load(file, weights_only=True)
    except pickle.UnpicklingError:
        raise CheckpointError(f"{file} is no checkpoint: it holds more than tensors.")
