"""`EventLog`: the events of one process of a cluster; and one trace made of all logs.

    logs of the nodes:  send, recv, call, answer, note, cut
    log of the switch:  drop
    the kernel:         calls and answers of clients, crashes, restarts, partitions

Each event is one record, written before its effect, into a file in memory that outlives
the process, so that the last events of a killed node are there. The format of a record
is defined where it is written, in `node_process` and `switch`. Messages are logged as
they are, and put into words here, when somebody wants to see them. The times are all of
one clock, which every process of this machine shares. Messages get their numbers here,
in the order in which they were sent.
"""

import marshal
import mmap
import os
import pickle
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distlab.network.cluster.partitions import FaultRecord
from distlab.network.describe import (
    describe,
    describe_call,
    describe_response,
    shorten,
)
from distlab.trace import Event, Trace

__all__ = ["EventLog", "Logs", "logged", "merge_logs", "read_log"]

_MOST_BYTES, _FIRST_BYTES, _STEP_BYTES = 2**28, 2**16, 2**20
_LENGTH = struct.Struct("<I")
_MOST_LOGGED = 1000  # bytes of a message; for a longer one, words


class EventLog:
    """The log of the process called `name`, in a folder; opened to be appended to.

    A record is a length and as many bytes; a length of 0 follows the last. The length
    is written last, so that a record is there as a whole or not at all.
    After 256 MB, or when the folder is full, further records are discarded.
    """

    def __init__(self, folder: str, name: str):
        self._file = os.open(_path(folder, name), os.O_RDWR | os.O_CREAT, 0o600)
        self._size = os.fstat(self._file).st_size
        self._at = 0
        if self._size:
            self._map = mmap.mmap(self._file, self._size)
            self._at = sum(_LENGTH.size + len(body) for body in _records(self._map))
        self._full = not self._size and not self._grow()

    def _grow(self, least=0):
        """Make the file larger, by `least` bytes or more; False if it is full."""
        larger = self._size + max(least, min(self._size or _FIRST_BYTES, _STEP_BYTES))
        if larger > _MOST_BYTES:
            return False
        try:
            # Unlike ftruncate, this takes the room: writing to it cannot fail later.
            getattr(os, "posix_fallocate", _allocate)(self._file, 0, larger)
        except OSError:
            return False
        self._size, self._map = larger, mmap.mmap(self._file, larger)
        return True

    def note(self, *record) -> None:
        """Write one record: words, numbers, bytes."""
        if self._full:
            return
        body = marshal.dumps(record)
        begin = self._at + _LENGTH.size
        end = begin + len(body)
        missing = end + _LENGTH.size - self._size
        if missing > 0 and not self._grow(missing):
            self._full = True
            return
        self._map[begin:end] = body
        _LENGTH.pack_into(self._map, self._at, len(body))
        self._at = end


def _allocate(descriptor, _, size):
    os.ftruncate(descriptor, size)


def _records(data):
    """Yield the bytes of each record."""
    at = 0
    while at + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        if not length:
            return
        begin = at + _LENGTH.size
        at = begin + length
        yield data[begin:at]


def read_log(folder: str, name: str) -> list[tuple]:
    """Return the records of a log up to now."""
    try:
        data = Path(_path(folder, name)).read_bytes()
    except FileNotFoundError:
        return []
    return list(map(marshal.loads, _records(data)))


def logged(message: Any, body: bytes) -> bytes | str:
    """Return what is logged of a message: its pickle, in words if that is long."""
    return body if len(body) <= _MOST_LOGGED else shorten(describe(message))


def _in_words(entry, call=None):
    """Return words for what was logged of a message, or of the response to a call."""
    if isinstance(entry, str):
        return entry
    try:
        thing = pickle.loads(entry)
    except Exception:  # its class is gone from the notebook
        return f"{len(entry)} bytes"
    return shorten(describe_response(call, thing) if call else describe(thing))


def _path(folder, name):
    return os.path.join(folder, f"{name}.log")


@dataclass
class Logs:
    """The logs of all processes of a cluster.

    nodes: the records of each node's log. switch: those of the switch's. clients: their
    names, in the order of their lanes. asked: the clients' notes. faults: those of
    nodes and network.
    """

    nodes: list[list]
    switch: list[list]
    clients: list
    asked: list[tuple]
    faults: list[FaultRecord]


@dataclass
class _LoggedMessage:
    """A message from one lane to another, and its times of arrival."""

    src: int
    dst: int
    sent_s: float
    size: int
    words: str
    arrived: list[float] = field(default_factory=list)
    dropped: bool = False


def merge_logs(logs: Logs) -> Trace:
    """Return the trace; clients have the lanes after the nodes'."""
    messages, events = _sent(logs), []
    _note_arrivals(logs, messages)
    _note_drops(logs, messages)
    in_order = sorted(messages.values(), key=lambda message: message.sent_s)
    for number, one in enumerate(in_order, 1):
        label = "dropped: " if one.dropped and not one.arrived else ""
        what = one.size, number, label + one.words
        events.append(Event(one.src, one.sent_s, one.sent_s, "send", one.dst, *what))
        for at in one.arrived:
            what = one.size, number, one.words
            events.append(Event(one.dst, at, at, "recv", one.src, *what))
    for node, lines in enumerate(logs.nodes):
        for kind, at, *rest in lines:
            if kind == "note":
                events.append(Event(node, at, at, "mark", None, 0, 0, rest[0]))
    for node, start_s, end_s, label, kind in logs.faults:
        events.append(Event(node or 0, start_s, end_s, kind, None, 0, 0, label))
    lanes = len(logs.nodes) + len(logs.clients)
    return Trace(lanes, events, who="node", clients=len(logs.clients))


def _sent(logs) -> dict[Any, _LoggedMessage]:
    """Return (sender, its number there) -> message."""
    messages, calls = {}, {}
    lanes = {name: len(logs.nodes) + at for at, name in enumerate(logs.clients)}
    for what, at, *rest in logs.asked:
        if what == "call":
            request, attempt, name, node, call = rest
            calls[request] = lanes[name], call
            words = shorten(describe_call(call))
            messages["call", request, attempt] = _LoggedMessage(
                lanes[name], node, at, 0, words
            )
    for node, lines in enumerate(logs.nodes):
        for kind, at, *rest in lines:
            if kind == "send":
                dst, number, size, entry = rest
                words = _in_words(entry)
                messages[node, number] = _LoggedMessage(node, dst, at, size, words)
            elif kind == "answer" and rest[1] in calls:
                number, request, size, entry = rest
                lane, call = calls[request]
                words = _in_words(entry, call)
                messages[node, number] = _LoggedMessage(node, lane, at, size, words)
    return messages


def _note_arrivals(logs, messages):
    for lines in logs.nodes:
        for kind, at, *rest in lines:
            if kind == "recv" and (one := messages.get((rest[0], rest[1]))):
                one.arrived.append(at)
            elif kind == "call" and (one := messages.get(("call", *rest[:2]))):
                one.arrived.append(at)
                one.size = rest[2]
    for what, at, *rest in logs.asked:
        if what == "answer" and (one := messages.get(tuple(rest))):
            one.arrived.append(at)


def _note_drops(logs, messages):
    """Mark messages dropped by the switch, by a cut link, or by a crash."""
    lines = [line for own in (logs.switch, *logs.nodes) for line in own]
    for kind, _, *rest in lines:
        if kind in ("drop", "cut") and (one := messages.get(tuple(rest))):
            one.dropped = True
    crashes = [(f.node, f.start_s) for f in logs.faults if f.label == "crash"]
    for one in messages.values():
        ends = one.src, one.dst
        one.dropped |= max(ends) >= len(logs.nodes)
        one.dropped |= any(node in ends and one.sent_s < at for node, at in crashes)
