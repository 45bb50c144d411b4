"""`EventLog`: the events of one process of a cluster; and one trace made of all logs.

    logs of the nodes:  send, recv, call, answer, note, cut
    log of the switch:  drop
    the kernel:         calls and answers of clients, crashes, restarts, partitions

Each event is one line, written before its effect, into a file that outlives the
process, so that the last events of a killed node are there. The format of a line is
defined where it is written, in `node_process` and `switch`. The times are all of one
clock, which every process of this machine shares. Messages get their numbers here, in
the order in which they were sent.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from distlab.network.cluster.partitions import FaultRecord
from distlab.network.describe import describe_call, shorten
from distlab.trace import Event, Trace

__all__ = ["EventLog", "Logs", "merge_logs", "read_log"]

_MOST_BYTES = 2**28


class EventLog:
    """The log of the process called `name`, in a folder; opened to be appended to.

    After 256 MB further lines are discarded.
    """

    def __init__(self, folder: str, name: str):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(_path(folder, name), flags, 0o600)
        self._size = os.fstat(self._file).st_size

    def note(self, *line) -> None:
        """Write one line: words and numbers."""
        if self._size < _MOST_BYTES:
            self._size += os.write(self._file, json.dumps(line).encode() + b"\n")


def read_log(folder: str, name: str) -> list[list]:
    """Return the lines of a log up to now, without one that is being written."""
    try:
        text = Path(_path(folder, name)).read_bytes()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]


def _path(folder, name):
    return os.path.join(folder, f"{name}.jsonl")


@dataclass
class Logs:
    """The logs of all processes of a cluster.

    nodes: the lines of each node's log. switch: those of the switch's. clients: their
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
    messages, lane_of = {}, {}
    lanes = {name: len(logs.nodes) + at for at, name in enumerate(logs.clients)}
    for what, at, request, *rest in logs.asked:
        if what == "call":
            name, node, call = rest
            lane = lane_of[request] = lanes[name]
            words = shorten(describe_call(call))
            messages["call", request] = _LoggedMessage(lane, node, at, 0, words)
    for node, lines in enumerate(logs.nodes):
        for kind, at, *rest in lines:
            if kind == "send":
                dst, number, size, words = rest
                messages[node, number] = _LoggedMessage(node, dst, at, size, words)
            elif kind == "answer" and rest[0] in lane_of:
                request, size, words = rest
                lane = lane_of[request]
                messages["answer", request] = _LoggedMessage(
                    node, lane, at, size, words
                )
    return messages


def _note_arrivals(logs, messages):
    for lines in logs.nodes:
        for kind, at, *rest in lines:
            if kind == "recv" and (one := messages.get((rest[0], rest[1]))):
                one.arrived.append(at)
            elif kind == "call" and (one := messages.get(("call", rest[0]))):
                one.arrived.append(at)
                one.size = rest[1]
    for what, at, request, *_ in logs.asked:
        if what == "answer" and (one := messages.get(("answer", request))):
            one.arrived.append(at)


def _note_drops(logs, messages):
    """Mark messages dropped by the switch, by a cut link, or by a crashed receiver."""
    lines = [line for own in (logs.switch, *logs.nodes) for line in own]
    for kind, _, src, number, *_ in (line for line in lines if len(line) > 3):
        if kind in ("drop", "cut") and (one := messages.get((src, number))):
            one.dropped = True
    crashes = [(f.node, f.start_s) for f in logs.faults if f.label == "crash"]
    for one in messages.values():
        one.dropped |= max(one.src, one.dst) >= len(logs.nodes)
        one.dropped |= any(one.dst == n and one.sent_s < at for n, at in crashes)
