"""One trace of what every process of a cluster wrote down.

    journals of the nodes: send, recv, call, answer, note, cut
    journal of the switch: drop
    the kernel:            calls and answers of clients, crashes, restarts, splits

The times are all of one clock, which every process of this machine shares. Messages get
their numbers here, in the order in which they were sent.
"""

from dataclasses import dataclass
from typing import Any

from distlab.network.cluster.links import Mishap
from distlab.network.words import call_in_words, shortened
from distlab.trace import Event, Trace

__all__ = ["Record", "merged"]


@dataclass
class Record:
    """What has been written down.

    nodes: the lines of each node's journal. switch: those of the switch's, by the
    machine's clock, on which all nodes were up at `began`. clients: their names, in the
    order of their lanes. asked: the driver's notes.
    """

    nodes: list[list]
    switch: list[list]
    began: float
    clients: list
    asked: list[tuple]
    mishaps: list[Mishap]


class _Letter:
    """A message from one lane to another, and how often it arrived."""

    def __init__(self, src, dst, at, size, words):
        self.src, self.dst, self.at = src, dst, at
        self.size, self.words = size, words
        self.arrived, self.lost = [], False


def merged(record: Record) -> Trace:
    """Return the trace; clients have the lanes after the nodes'."""
    letters, events = _sent(record), []
    _arrived(record, letters)
    _lost(record, letters)
    in_order = sorted(letters.values(), key=lambda letter: letter.at)
    for number, letter in enumerate(in_order, 1):
        label = letter.words
        if letter.lost and not letter.arrived:
            label = f"dropped: {label}"
        src, dst, size = letter.src, letter.dst, letter.size
        events.append(
            Event(src, letter.at, letter.at, "send", dst, size, number, label)
        )
        for at in letter.arrived:
            said = Event(dst, at, at, "recv", src, size, number, letter.words)
            events.append(said)
    for node, lines in enumerate(record.nodes):
        for kind, at, *rest in lines:
            if kind == "note":
                events.append(Event(node, at, at, "mark", None, 0, 0, rest[0]))
    for mishap in record.mishaps:
        node, start, end, label, kind = mishap
        events.append(Event(node or 0, start, end, kind, None, 0, 0, label))
    lanes = len(record.nodes) + len(record.clients)
    return Trace(lanes, events, who="node", clients=len(record.clients))


def _sent(record) -> dict[Any, _Letter]:
    """Return every message, by whom it is from and its number there."""
    letters, lanes = {}, _lanes(record)
    client_of = {}
    for what, at, request, *rest in record.asked:
        if what == "call":
            name, node, call = rest
            words = shortened(call_in_words(call))
            client_of[request] = lanes[name]
            letters["call", request] = _Letter(lanes[name], node, at, 0, words)
    for node, lines in enumerate(record.nodes):
        for kind, at, *rest in lines:
            if kind == "send":
                dst, number, size, words = rest
                letters[node, number] = _Letter(node, dst, at, size, words)
            elif kind == "answer" and rest[0] in client_of:
                request, size, words = rest
                lane = client_of[request]
                letters["answer", request] = _Letter(node, lane, at, size, words)
    return letters


def _lanes(record):
    return {name: len(record.nodes) + at for at, name in enumerate(record.clients)}


def _arrived(record, letters):
    for lines in record.nodes:
        for kind, at, *rest in lines:
            if kind == "recv" and (letter := letters.get((rest[0], rest[1]))):
                letter.arrived.append(at)
            elif kind == "call" and (letter := letters.get(("call", rest[0]))):
                letter.arrived.append(at)
                letter.size = rest[1]
    for what, at, request, *_ in record.asked:
        if what == "answer" and (letter := letters.get(("answer", request))):
            letter.arrived.append(at)


def _lost(record, letters):
    """Mark what the switch dropped, what a cut made void, and what met the dead."""
    for kind, _, *rest in record.switch:
        if kind == "drop" and (letter := letters.get((rest[0], rest[2]))):
            letter.lost = True
    for lines in record.nodes:
        for kind, _, *rest in lines:
            if kind == "cut" and (letter := letters.get((rest[0], rest[1]))):
                letter.lost = True
    crashes = [(m.node, m.start_s) for m in record.mishaps if m.label == "crash"]
    for letter in letters.values():
        letter.lost = letter.lost or letter.src >= len(record.nodes)
        letter.lost = letter.lost or letter.dst >= len(record.nodes)
        for node, at in crashes:
            letter.lost = letter.lost or (letter.dst == node and letter.at < at)
