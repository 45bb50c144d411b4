"""Where each rank notes what it does, in memory that outlives it.

    rank 0 ─ Recorder ─▶ ┌────────────── one shared block ──────────────┐
    rank 1 ─ Recorder ─▶ │ for each rank: now, posts, events and words  │
    rank 2 ─ Recorder ─▶ └──────────────────────────────────────────────┘
                                   ▲ read by the kernel's Blackboard

A rank writes a note with one memory copy and no system call; the kernel reads it
whenever it likes, also after the rank was killed. Each rank writes only its own
region, so there are no locks. Four kinds of note:

- *now*: whether the rank is running, blocked (in what, waiting for whom) or done;
- *calls*: for each process group how many collectives it has entered, and their words;
- *posts*: for each peer how many messages it has offered and asked for, and the size
  and type of the latest. Message k meets its partner when both sides have posted k,
  so comparing two counters tells a message in flight from one that will never come;
- *events*: finished events, in a ring that the kernel empties as the run goes on.
"""

from distlab.recorder.blackboard import Blackboard
from distlab.recorder.layout import (
    DESTROYED,
    IN,
    MOST_GROUPS,
    OUT,
    THREADED,
    UNKNOWN_SIZE,
    Now,
    Post,
    agreed,
    any_words,
    phase_of,
    shown,
)
from distlab.recorder.recorder import Recorder

__all__ = [
    "DESTROYED",
    "IN",
    "MOST_GROUPS",
    "OUT",
    "THREADED",
    "UNKNOWN_SIZE",
    "Blackboard",
    "Now",
    "Post",
    "Recorder",
    "agreed",
    "any_words",
    "phase_of",
    "shown",
]
