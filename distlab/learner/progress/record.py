"""The file of a learner's progress, which several kernels may write.

    {"lessons": {"10_ring_all_reduce": {
        "path": "/home/.../lessons/10_ring_all_reduce.ipynb",
        "last": "2026-03-01T12:00:00",
        "cells": ["imports", "first-run"],
        "predictions": {"How many ...?": {"said": "8 MB", "outcome": "off"}}}},
     "exercises": {"10_ring_all_reduce": {
        "path": ..., "last": ...,
        "steps": {"step-one-check":
            {"of": 3, "best": 3.0, "last": 0.0, "attempts": 4, "hints": 1}}}},
     "notes": ["... was damaged ..."]}

Invariant: the file is whole at every moment; a writer holds the lock beside it, reads
the current entries, and replaces the file.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from distlab.files import write_whole

__all__ = ["Record", "record_path"]


def record_path() -> Path:
    """Return the file's path: in DISTLAB_HOME, else in the XDG data folder."""
    home = os.environ.get("DISTLAB_HOME")
    if not home:
        data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
        home = f"{data}/distlab"
    return Path(home).expanduser().absolute() / "progress.json"


class Record:
    """The contents of the file `path`, without entries if there is none."""

    def __init__(self, path: Path):
        self.path = path

    def read(self) -> dict:
        """Return the file's contents; a damaged file is renamed, and a note added.

        Raises: OSError.
        """
        with self._locked():
            return self._read()

    def update(self, change: Callable[[dict], None]) -> None:
        """Apply `change` to the file's current contents, and write them.

        Raises: OSError.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked():
            held = self._read()
            change(held)
            write_whole(self.path, json.dumps(held, indent=1))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock on a file beside the record, as the record is replaced."""
        if not self.path.parent.is_dir():
            yield
            return
        with open(self.path.with_suffix(".lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read(self):
        try:
            return _checked(json.loads(self.path.read_bytes()))
        except FileNotFoundError:
            return _checked({})
        except (ValueError, RecursionError):
            number = 1
            while (aside := self.path.with_suffix(f".damaged{number}.json")).exists():
                number += 1
            self.path.rename(aside)
            said = f"was damaged, and is now {aside.name}, beside a new one."
            fresh = _checked({"notes": [f"{self.path} {said}"]})
            write_whole(self.path, json.dumps(fresh, indent=1))
            return fresh


def _checked(held):
    """Return the contents, with missing fields filled in.

    Raises: ValueError if a field has the wrong type.
    """
    if not isinstance(held, dict):
        raise ValueError("not an object")
    for name in ("lessons", "exercises"):
        entries = held.setdefault(name, {})
        if not isinstance(entries, dict):
            raise ValueError(name)
        for entry in entries.values():
            _check_entry(entry)
    if not isinstance(held.setdefault("notes", []), list):
        raise ValueError("notes")
    return held


def _check_entry(entry):
    kinds = {
        "cells": list,
        "predictions": dict,
        "steps": dict,
        "path": str,
        "last": str,
    }
    for name, kind in kinds.items():
        if not isinstance(entry.setdefault(name, kind()), kind):
            raise ValueError(name)
    for name in ("predictions", "steps"):
        if not all(isinstance(each, dict) for each in entry[name].values()):
            raise ValueError(name)
    for step in entry["steps"].values():
        if not all(isinstance(number, int | float) for number in step.values()):
            raise ValueError("steps")
