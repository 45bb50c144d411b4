"""`Disk`: what a node has written, in a journal that outlives its process.

    journal   │ save │ append │ append │ truncate │ append │ torn
    synced    ────────────────▲ up to here a finished sync covers it

Each write is one record at the end of one file, whatever its name, so that an append to
a long list costs as much as one to a short list, and one fsync covers all. A process
that is killed loses no record, as the system has it; the last may be torn, and is cut
off. A power loss is simulated by cutting the file of a dead node. Once the journal has
twice the size of what is left of it, a new one replaces it, with one record.
"""

import os
import pickle
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle

from distlab.files import write_whole
from distlab.network.disk import check_list
from distlab.network.node import Append, Save, Truncate
from distlab.network.node_diagnosis import corrupt_disk

__all__ = ["Disk", "lose", "read_disk", "serialize"]

# Header of a record: its length, the same with all bits flipped, and its checksum. So a
# record that was cut off is distinguished from one that was changed afterwards.
_HEADER = struct.Struct("<III")
_SYNCED = struct.Struct("<Q")
_ALL_BITS = 2**32 - 1
_KINDS = {Save: 0, Append: 1, Truncate: 2}
_SAVE, _APPEND, _TRUNCATE, _BASE = range(4)
_LEAST_REPLACED = 2**24  # bytes


class _Record(NamedTuple):
    """A record, its place in the file, and its end."""

    start: int
    end: int
    kind: int
    name: str
    value: Any


class Disk:
    """The disk of a node, in a folder.

    saved: its values as the node's process started. length: of the journal, in bytes,
    without the writes that `flush` has still to make.
    """

    def __init__(self, folder: str, node: int):
        self._folder, self._node = folder, node
        os.makedirs(folder, exist_ok=True)
        self.saved, self.length = read_disk(folder, node)
        self._no_lists = {}  # name -> value, of what cannot be appended to
        for name, value in self.saved.items():
            self._keep(name, value)
        self._waiting, self._limit = [], max(_LEAST_REPLACED, 2 * self.length)
        self._synced = os.open(f"{folder}/synced", os.O_RDWR | os.O_CREAT, 0o600)
        self._open()
        self._mark(min(_synced_in(folder), self.length))

    def _keep(self, name, value):
        self._no_lists.pop(name, None)
        if not isinstance(value, list):
            self._no_lists[name] = value

    def _open(self):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(f"{self._folder}/journal", flags, 0o600)
        os.ftruncate(self._file, self.length)

    def write(self, effect: Save | Append | Truncate) -> None:
        """Write a value, an item or a length; `flush` hands it to the system.

        Raises: InvalidArgument for an item of something that is no list.
        """
        kind, (name, value) = type(effect), effect
        if kind is Save:
            self._keep(name, value)
        else:
            check_list(self._no_lists.get(name, []), effect)
        self._waiting.append(_record(_KINDS[kind], name, value))

    def flush(self) -> None:
        """Hand all writes to the system: from now on a kill loses none of them."""
        if self._waiting:
            if self.length > self._limit:
                self._replace()
            data = b"".join(self._waiting)
            self._waiting.clear()
            self.length += len(data)
            while data:
                data = data[os.write(self._file, data) :]

    def sync(self) -> None:
        """Flush, and wait until the device has written everything."""
        self.flush()
        getattr(os, "fdatasync", os.fsync)(self._file)
        self._mark(self.length)

    def _mark(self, length):
        os.pwrite(self._synced, _SYNCED.pack(length), 0)

    def _replace(self):
        """Replace the journal by one record; its cost is that of as many writes."""
        base = _record(_BASE, "", read_disk(self._folder, self._node)[0])
        write_whole(Path(self._folder, "journal"), base)
        os.close(self._file)
        self.length, self._limit = len(base), max(_LEAST_REPLACED, 2 * len(base))
        self._open()
        os.fsync(self._file)
        self._mark(self.length)


def _record(kind, name, value):
    body = serialize((kind, name, value))
    size = len(body)
    return _HEADER.pack(size, size ^ _ALL_BITS, zlib.crc32(body)) + body


def _records(folder: str, node: int) -> Iterator[_Record]:
    """Yield the records of a journal, without a last one that is torn.

    Raises: NodeFailed for one that was changed after it had been written.
    """
    path = Path(folder, "journal")
    data = memoryview(path.read_bytes() if path.exists() else b"")
    start, number = 0, 1
    while start + _HEADER.size <= len(data):
        size, flipped, checksum = _HEADER.unpack_from(data, start)
        body = data[start + _HEADER.size :][:size]
        sound = size == flipped ^ _ALL_BITS
        if sound and len(body) < size:
            return
        if not sound or zlib.crc32(body) != checksum:
            raise corrupt_disk(node, str(path), number, start)
        end = start + _HEADER.size + size
        yield _Record(start, end, *pickle.loads(body))
        start, number = end, number + 1


def read_disk(folder: str, node: int) -> tuple[dict[str, Any], int]:
    """Return (name -> value, the length of the journal without a torn record).

    Raises: NodeFailed if it is corrupt.
    """
    values, length = {}, 0
    for _, end, kind, name, value in _records(folder, node):
        length = end
        if kind == _SAVE:
            values[name] = value
        elif kind == _APPEND:
            values.setdefault(name, []).append(value)
        elif kind == _TRUNCATE:
            del values.get(name, [])[value:]
        else:
            values = value
    return dict(sorted(values.items())), length


def _synced_in(folder):
    """Return the length of the journal that a finished sync covers."""
    path = Path(folder, "synced")
    data = path.read_bytes() if path.exists() else b""
    return _SYNCED.unpack(data)[0] if data else 0


def lose(folder: str, node: int, what: str) -> None:
    """Lose what a dead node's disk loses: see `loses` of `distlab.faults.Crash`."""
    path = Path(folder, "journal")
    if what == "disk":
        shutil.rmtree(folder, ignore_errors=True)
    elif what and path.exists():
        kept = _synced_in(folder)
        if what == "last write":
            kept = 0
            for record in _records(folder, node):
                kept = record.end if record.kind == _BASE else record.start
        os.truncate(path, min(kept, path.stat().st_size))


def serialize(thing: Any) -> bytes:
    """Return plain data as bytes, for a node, for the notebook, or for a disk.

    A class that was written in a notebook exists in every node, but a class of a
    script's own module may not; then its definition is serialized, too.
    """
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return cloudpickle.dumps(thing)
