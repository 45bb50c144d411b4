"""`Disk`: what a node has written, in a journal that outlives its process.

    save │ append │ append │ synced │ truncate │ append │ torn

Each write is one record at the end of one file, whatever its name, so that an append to
a long list costs as much as one to a short list, and one fsync covers all. A process
that is killed loses no record, as the system has it; the last may be torn, and is cut
off. When the journal has grown to twice its size, one record replaces all.
"""

import os
import pickle
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle

from distlab.files import write_whole
from distlab.network.disk import MemoryDisk
from distlab.network.node import Append, Save, Truncate
from distlab.network.node_diagnosis import corrupt_disk

__all__ = ["Disk", "lose", "read_disk", "serialize"]

# Header of a record: its length, the same with all bits flipped, and its checksum. So a
# record that was cut off is distinguished from one that was changed afterwards.
_HEADER = struct.Struct("<III")
_ALL_BITS = 2**32 - 1
_KINDS = (Save, Append, Truncate)
_SYNCED, _WHOLE = 3, 4  # all before it is durable; the whole disk, which is durable
_LEAST_REPLACED = 2**24  # bytes


class Disk:
    """The disk of a node, in a folder.

    saved: name -> value. length: of the journal, in bytes, without the writes that
    `flush` has still to make.
    """

    def __init__(self, folder: str, node: int):
        self._folder = folder
        os.makedirs(folder, exist_ok=True)
        self._disk, self.length = _read(folder, node)
        self.saved, self._waiting = self._disk.values, []
        self._open()

    def _open(self):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(f"{self._folder}/journal", flags, 0o600)
        os.ftruncate(self._file, self.length)
        self._limit = max(_LEAST_REPLACED, 2 * self.length)

    def write(self, effect: Save | Append | Truncate) -> None:
        """Write a value, an item or a length; `flush` hands it to the system.

        Raises: InvalidArgument for an item of something that is no list.
        """
        self._disk.write(effect)
        self._disk.synced(self._disk.written)  # what is lost, `lose` finds in the file
        self._waiting.append(_record(_KINDS.index(type(effect)), *effect))

    def flush(self) -> None:
        """Hand all writes to the system: from now on a kill loses none of them."""
        if self.length > self._limit:
            return self._replace()
        data = b"".join(self._waiting)
        self._waiting.clear()
        self.length += len(data)
        while data:
            data = data[os.write(self._file, data) :]

    def sync(self) -> None:
        """Flush, and wait until the device has written everything."""
        self.flush()
        getattr(os, "fdatasync", os.fsync)(self._file)
        self._waiting.append(_record(_SYNCED))
        self.flush()

    def _replace(self):
        """Replace the journal by one record; its cost is that of as many writes."""
        os.close(self._file)
        self._waiting.clear()
        self.length = _write(self._folder, self.saved)
        self._open()
        os.fsync(self._file)


def _record(kind, name="", value=None):
    body = serialize((kind, name, value))
    size = len(body)
    return _HEADER.pack(size, size ^ _ALL_BITS, zlib.crc32(body)) + body


def _write(folder, values):
    """Replace the journal by one that has these values; return its length."""
    record = _record(_WHOLE, "", values)
    write_whole(Path(folder, "journal"), record)
    return len(record)


def _records(folder: str, node: int) -> Iterator[tuple[int, int, str, Any]]:
    """Yield the end and the parts of each record, without a last one that is torn.

    Raises: NodeFailed for one that was changed after it had been written.
    """
    path = Path(folder, "journal")
    data = memoryview(path.read_bytes() if path.exists() else b"")
    start, number = 0, 1
    while start + _HEADER.size <= len(data):
        size, flipped, checksum = _HEADER.unpack_from(data, start)
        begin, end = start + _HEADER.size, start + _HEADER.size + size
        sound = size == flipped ^ _ALL_BITS
        if sound and end > len(data):
            return
        if not sound or zlib.crc32(data[begin:end]) != checksum:
            raise corrupt_disk(node, str(path), number, start)
        yield end, *pickle.loads(data[begin:end])
        start, number = end, number + 1


def _read(folder, node):
    """Return (the disk in memory, the length of the journal without a torn record)."""
    disk, length = MemoryDisk(), 0
    for end, kind, name, value in _records(folder, node):
        length = end
        if kind == _WHOLE:
            disk.values = value
        elif kind == _SYNCED:
            disk.synced(disk.written)
        else:
            disk.write(_KINDS[kind](name, value))
    return disk, length


def read_disk(folder: str, node: int) -> dict[str, Any]:
    """Return name -> value.

    Raises: NodeFailed if the disk is corrupt.
    """
    return dict(sorted(_read(folder, node)[0].values.items()))


def lose(folder: str, node: int, what: str) -> None:
    """Lose what a dead node's disk loses: see `loses` of `distlab.faults.Crash`.

    SIGKILL takes nothing that the system has, so a power loss is made here.
    """
    if what:
        disk, _ = _read(folder, node)
        disk.lose(what)
        _write(folder, disk.values)


def serialize(thing: Any) -> bytes:
    """Return plain data as bytes, for a node, for the notebook, or for a disk.

    A class that was written in a notebook exists in every node, but a class of a
    script's own module may not; then its definition is serialized, too.
    """
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return cloudpickle.dumps(thing)
