"""`EventLog`: the events of one process of a cluster; and one trace made of all logs.

    logs of the nodes:  send, recv, call, answer, note, drop
    log of the switch:  drop
    the kernel:         asked, answered; crashes, restarts, partitions

The events of a round are written before its effects, into a file that outlives the
process, so that the log of a killed node has all that others can have seen of it. The
format of an event is defined where it is noted, in `node_process` and `switch`.
Messages are logged as they are, and put into words here. The times are all of one
clock, which every process of this machine shares. Messages get their numbers here, in
the order in which they were sent.
"""

import marshal
import os
import pickle
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distlab.network.cluster.partitions import FaultRecord
from distlab.network.describe import (
    describe,
    describe_call,
    describe_response,
    shorten,
)
from distlab.processes.wire import LENGTH
from distlab.trace import Event, Trace

__all__ = ["EventLog", "Logs", "logged", "merge_logs", "read_log"]

_MOST_BYTES = 2**28
_MOST_LOGGED = 1000  # bytes of a message; for a longer one, words


class EventLog:
    """The log of the process called `name`, in a folder; opened to be appended to.

    After 256 MB, or when the folder is full, further events are discarded.
    """

    def __init__(self, folder: str, name: str):
        _, size = _read(folder, name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(_path(folder, name), flags, 0o600)
        os.ftruncate(self._file, size)
        self._room, self._noted = _MOST_BYTES - size, []

    def note(self, *event) -> None:
        """Note one event, in words, numbers and bytes; `flush` writes it."""
        self._noted.append(event)

    def flush(self) -> None:
        """Write the events of this round."""
        if self._noted and self._room > 0:
            data = marshal.dumps(self._noted)
            data = LENGTH.pack(len(data)) + data
            with suppress(OSError):
                self._room -= len(data)
                if os.write(self._file, data) < len(data):
                    self._room = 0
        self._noted.clear()


def read_log(folder: str, name: str) -> list[tuple]:
    """Return the events of a log up to now, without some that are being written."""
    return _read(folder, name)[0]


def _read(folder, name):
    """Return (events, size), without a last part that a kill cut off."""
    try:
        data = Path(_path(folder, name)).read_bytes()
    except FileNotFoundError:
        return [], 0
    events, size = [], 0
    while (begin := size + LENGTH.size) <= len(data):
        end = begin + LENGTH.unpack_from(data, size)[0]
        if end > len(data):
            break
        events += marshal.loads(data[begin:end])
        size = end
    return events, size


def logged(message: Any, body: bytes) -> bytes | str:
    """Return a message as it is logged: its pickle, or words if that is long."""
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


def merge_logs(logs: Logs) -> Trace:
    """Return the trace; clients have the lanes after the nodes'."""
    return _Merging(logs).trace()


class _Merging:
    """The events of all logs, as they become one trace; a method for each kind.

    messages: (sender, its number there) -> [lane, peer, time, bytes, words]; of a
    client's ("call", request, attempt). arrivals: the same -> its times of arrival.
    dropped: those that the switch, or a cut link, has dropped.
    """

    def __init__(self, logs):
        self.logs, self.nodes, self.marks = logs, len(logs.nodes), []
        self.messages, self.arrivals, self.dropped = {}, defaultdict(list), set()
        self.calls = {}  # request -> (lane of its client, call)
        self.lanes = {name: self.nodes + at for at, name in enumerate(logs.clients)}
        for node, events in enumerate([logs.asked, logs.switch, *logs.nodes], -2):
            for kind, *event in events:
                getattr(self, kind)(node, *event)

    def asked(self, _, at, request, attempt, name, node, call):
        lane = self.lanes[name]
        self.calls[request] = lane, call
        words = shorten(describe_call(call))
        self.messages["call", request, attempt] = [lane, node, at, 0, words]

    def answered(self, _, at, node, number):
        self.arrivals[node, number].append(at)

    def send(self, node, at, dst, number, size, entry):
        self.messages[node, number] = [node, dst, at, size, _in_words(entry)]

    def recv(self, _, at, src, number):
        self.arrivals[src, number].append(at)

    def drop(self, _, at, src, number):
        self.dropped.add((src, number))

    def call(self, _, at, request, attempt, size):
        self.arrivals["call", request, attempt].append(at)
        self.messages["call", request, attempt][3] = size

    def answer(self, node, at, number, request, size, entry):
        if request in self.calls:
            lane, call = self.calls[request]
            words = _in_words(entry, call)
            self.messages[node, number] = [node, lane, at, size, words]

    def note(self, node, at, words):
        self.marks.append(Event(node, at, at, "mark", None, 0, 0, words))

    def trace(self):
        events = self.marks
        for node, start_s, end_s, label, kind in self.logs.faults:
            events.append(Event(node or 0, start_s, end_s, kind, None, 0, 0, label))
        in_order = sorted(self.messages.items(), key=lambda item: item[1][2])
        for number, (key, (src, dst, at, size, words)) in enumerate(in_order, 1):
            arrivals = self.arrivals[key]
            label = words if arrivals or not self._is_lost(key) else f"dropped: {words}"
            events.append(Event(src, at, at, "send", dst, size, number, label))
            for then in arrivals:
                events.append(Event(dst, then, then, "recv", src, size, number, words))
        clients = len(self.logs.clients)
        return Trace(self.nodes + clients, events, who="node", clients=clients)

    def _is_lost(self, key):
        """Return True if a message that has not arrived will not."""
        src, dst, at, *_ = self.messages[key]
        crashed = any(
            fault.label == "crash" and fault.node == dst and at < fault.start_s
            for fault in self.logs.faults
        )
        return crashed or key in self.dropped or max(src, dst) >= self.nodes
