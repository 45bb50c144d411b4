"""Storage of a learner's guesses and answers: in memory and in one JSON file.

Watchers of a key are called after each entry. For guesses the keys are the questions
(with the question's key, if it has one), for cards the cards' ids:

    guesses.json    {"How many MB does rank 0 send?": {"value": 8.0, "unit": "MB"}}
    cards.json      {"10-walk": {"answer": "Chunk 2 ...", "ticked": [], "fsrs": {}}}

Listeners hear of questions, guesses and measurements; the progress page is one.
"""

import json
import os
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from distlab.files import write_whole

__all__ = ["AnswerRecord", "kept_by_learner", "listeners", "tell"]


def kept_by_learner(what: str) -> "AnswerRecord":
    """Return the "guesses" or "cards" in the folder DISTLAB_HOME, or in ~/.distlab."""
    try:
        folder = Path(os.environ.get("DISTLAB_HOME") or "~/.distlab").expanduser()
    except RuntimeError:  # the home is unknown: entries stay in memory
        folder = Path(os.devnull)
    return _opened(folder.absolute() / f"{what}.json")


class AnswerRecord:
    """All entries of the file `path`, and those that are only in memory.

    problem: a sentence on why the file is not used, "" while it is.

    Invariant: a file that cannot be understood is never written to.
    """

    def __init__(self, path: Path):
        self.path = path
        self.problem = ""
        self._watchers = defaultdict(list)
        # The buttons of a notebook may be served by another thread than its cells.
        self._lock = threading.Lock()
        self._first = None  # the key whose entry created the file
        self._entries = {}
        with self._noting_problems("read"):
            self._entries = self._read()

    def get(self, key: str) -> object:
        """Return the entry stored for `key`, whatever it is, or None."""
        return self._entries.get(key)

    def names(self) -> list[str]:
        """Return every key that has an entry."""
        return list(self._entries)

    def put(self, key: str, entry: dict) -> None:
        """Store `entry`, and call the watchers of `key`."""
        with self._lock:
            self._entries[key] = entry
            self._write(key)
        for changed in list(self._watchers[key]):
            changed()

    def note(self, key: str) -> str:
        """Return the file's problem, or its path if `key` created it, as a sentence."""
        if self.problem or key != self._first:
            return self.problem
        return f"Your {self.path.stem} are kept in {self._readable_path()}."

    def watch(self, key: str, changed: Callable[[], None]) -> None:
        """Call `changed` after each entry that is kept for `key`."""
        self._watchers[key].append(changed)

    def _read(self):
        """Return the file's entries, {} without a file. Raises OSError, ValueError."""
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        if not isinstance(entries, dict):
            raise ValueError("not an object")
        return entries

    def _write(self, key):
        """Add an entry to the file's current ones: other notebooks write it, too."""
        with self._noting_problems("written"):
            merged = {**self._read(), key: self._entries[key]}
            there = self.path.exists()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _replace(self.path.resolve(), json.dumps(merged, indent=1))
            if not there:
                self._first = key

    @contextmanager
    def _noting_problems(self, what):
        """Turn a failure of the file into `problem`, and continue without the file."""
        why = ""
        try:
            yield
        except OSError as error:
            why = f"cannot be {what} ({error.strerror})"
        except (ValueError, RecursionError):
            why = "is damaged"
        self.problem = why and (
            f"{self._readable_path()} {why}, so {self.path.stem} are kept only until "
            "the kernel stops."
        )

    def _readable_path(self):
        try:
            return f"~/{self.path.relative_to(Path.home()).as_posix()}"
        except (ValueError, RuntimeError):
            return str(self.path)


_opened = cache(AnswerRecord)


def _replace(path, text):
    """Write the whole file, or leave it as it was; a read-only one stays as it is."""
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(13, "it is read-only")
    write_whole(path, text)


listeners: list[Callable] = []


def tell(guess, measured: object = None) -> None:
    """Notify every listener of a question, and of its measurement if that is known.

    Called by: code that asks, keeps a guess, or shows it beside a measurement.
    """
    for listener in listeners:
        listener(guess, measured)
