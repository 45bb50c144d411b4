"""`Disk`: the saved values of one node, in files that outlive its process.

A value is written to a new file, which is renamed over the old one, so that a process
that is killed in between leaves the old value whole. SIGKILL ends a process and not
the system; fsync would guard against a crash of the system.
"""

import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

import cloudpickle

from distlab.files import write_whole

__all__ = ["Disk", "serialize"]

_NAME = 64  # hexadecimal digits


class Disk:
    """The folder of one node: a file for each name."""

    def __init__(self, folder: str):
        self._folder = folder
        os.makedirs(folder, exist_ok=True)

    def save(self, name: str, value: Any) -> None:
        """Write a value under a name, replacing the one before."""
        path = Path(self._folder, hashlib.sha256(name.encode()).hexdigest())
        write_whole(path, serialize((name, value)))

    def load(self) -> dict[str, Any]:
        """Return every name with its value."""
        saved = {}
        for entry in os.scandir(self._folder):
            if len(entry.name) == _NAME:  # else a write that a kill cut off
                with open(entry.path, "rb") as file:
                    name, value = pickle.load(file)
                saved[name] = value
        return dict(sorted(saved.items()))


def serialize(thing: Any) -> bytes:
    """Return plain data as bytes, for a node, for the notebook, or for a disk.

    A class that was written in a notebook exists in every node, but a class of a
    script's own module may not; then its definition is serialized, too.
    """
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return cloudpickle.dumps(thing)
