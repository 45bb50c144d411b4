"""Schedules: the steps of nodes and clients, one after another, in words.

    1. client 0 asks node 0: write x 1
    2. node 1 gets 'store x 1' from node 0
    3. node 1 crashes

A step has no time. A schedule is written as a list of these sentences and read from it,
so it can be pasted into a cell, or kept in a file, and replayed on a corrected node.
"""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from distlab.errors import InvalidArgument

__all__ = ["LIMITED", "EventSchedule", "FaultLimits", "ScheduleStep"]

_SENTENCES = {
    "call": "client {a} asks node {b}: {words}",
    "deliver": "node {b} gets '{words}' from node {a}",
    "duplicate": "node {b} gets a duplicate of '{words}' from node {a}",
    "drop": "'{words}' from node {a} to node {b} is dropped",
    "timer": "the timer '{words}' of node {a} runs out",
    "synced": "node {a} has synced '{words}'",
    "time_out": "client {a} times out",
    "crash": "node {a} crashes",
    "power_loss": "node {a} loses power",
    "disk_loss": "node {a} crashes and loses its disk",
    "restart": "node {a} starts again",
    "split": "the network is partitioned into {words}",
    "heal": "the network is whole again",
    "cut": "the link from node {a} to node {b} is cut",
    "mend": "the link from node {a} to node {b} is whole again",
    "clock": "the clock of node {a} reads {words}",
}


# Step -> its limit in `FaultLimits`, in the order of its fields.
LIMITED = {
    "crash": "crashes",
    "power_loss": "power_losses",
    "disk_loss": "disk_losses",
    "drop": "drops",
    "duplicate": "duplicates",
    "split": "splits",
    "cut": "cuts",
    "clock": "clock_jumps",
    "timer": "timers",
}


def _pattern(sentence):
    """Return a regular expression for the numbers and words of a sentence."""
    text = re.escape(sentence).replace(r"\{", "{").replace(r"\}", "}")
    return re.compile(
        text.format(a=r"(?P<a>\d+)", b=r"(?P<b>\d+)", words="(?P<words>.*)"), re.DOTALL
    )


_PATTERNS = {kind: _pattern(sentence) for kind, sentence in _SENTENCES.items()}


class ScheduleStep(NamedTuple):
    """One event of a schedule.

    kind: "call", "deliver" (a message arrives), "duplicate" (it does, and will do so
        again), "drop", "timer", "synced", "time_out" (of a client), "crash",
        "power_loss", "disk_loss", "restart", "split", "heal", "cut", "mend" or "clock".
    a, b: the client and its node, or the sender and the receiver.
    words: of the call, message, timer or sync; the sides of a partition, such as
        "0 | 1 2"; what a clock reads, in seconds.
    """

    kind: str
    a: int = 0
    b: int = 0
    words: str = ""

    def __str__(self):
        return _SENTENCES[self.kind].format(a=self.a, b=self.b, words=self.words)

    @classmethod
    def read(cls, sentence: str) -> "ScheduleStep":
        """Return the step that a sentence describes.

        Raises: InvalidArgument for a sentence that describes none.
        """
        for kind, pattern in _PATTERNS.items():
            found = pattern.fullmatch(sentence) if isinstance(sentence, str) else None
            if found:
                parts = found.groupdict()
                numbers = (int(parts.get("a", 0)), int(parts.get("b", 0)))
                return cls(kind, *numbers, parts.get("words", ""))
        known = "\n".join(f"    {known}" for known in _SENTENCES.values())
        raise InvalidArgument(f"{sentence!r} is no step. The steps are:\n{known}")


class FaultLimits(NamedTuple):
    """Limits of the faults in one schedule.

    crashes to clock_jumps: how often each may happen. ways: how the network may split,
    each as every node's side. timers: how many may run out. steps: the maximal length
    of a schedule.
    """

    crashes: int = 0
    power_losses: int = 0
    disk_losses: int = 0
    drops: int = 0
    duplicates: int = 0
    splits: int = 0
    cuts: int = 0
    clock_jumps: int = 0
    timers: int = 0
    steps: int = 0
    ways: tuple = ()


class EventSchedule(tuple):
    """A tuple of steps, in order, made of steps or of their sentences."""

    def __new__(cls, steps: "str | Iterable"):
        """Read the steps."""
        if isinstance(steps, str):
            try:
                steps = json.loads(steps)
            except ValueError:
                steps = [steps]
        if not isinstance(steps, Iterable):
            raise InvalidArgument(f"a schedule is a list of sentences, not {steps!r}.")
        read = (
            step if isinstance(step, ScheduleStep) else ScheduleStep.read(step)
            for step in steps
        )
        return super().__new__(cls, read)

    def __repr__(self):
        width = len(str(len(self)))
        return "\n".join(f"{n:{width}}. {step}" for n, step in enumerate(self, 1))

    def to_json(self) -> list[str]:
        """Return the steps as a list of sentences, for `EventSchedule` to read."""
        return [str(step) for step in self]
