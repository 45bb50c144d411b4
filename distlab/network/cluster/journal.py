"""`Journal`: what one process of a cluster did, in a file that outlives it.

One line for each thing, written before its effect, so that what a killed node did last
is there. What a line holds is said where it is written, in `inside` and `switch`; what
all of them together mean, in `merge`.
"""

import json
import os

__all__ = ["Journal", "read_journal"]

_MOST_BYTES = 2**28


class Journal:
    """The journal of the process called `name`, in a folder; opened to be gone on with.

    A journal of 256 MB takes no more.
    """

    def __init__(self, folder: str, name: str):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(_path(folder, name), flags, 0o600)
        self._size = os.fstat(self._file).st_size

    def note(self, *line) -> None:
        """Write one line: words and numbers."""
        if self._size < _MOST_BYTES:
            self._size += os.write(self._file, json.dumps(line).encode() + b"\n")


def read_journal(folder: str, name: str) -> list[list]:
    """Return the lines of a journal up to now, without one that is being written."""
    try:
        with open(_path(folder, name), "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]


def _path(folder, name):
    return os.path.join(folder, f"{name}.jsonl")
