"""Records of each rank's activity, in shared memory that outlives the rank.

    rank 0 ─ Recorder ─▶ ┌────────────── one shared block ──────────────┐
    rank 1 ─ Recorder ─▶ │ for each rank: now, posts, events and words  │
    rank 2 ─ Recorder ─▶ └──────────────────────────────────────────────┘
                                   ▲ read by the kernel's SharedTrace

A rank writes a note with one memory copy and no system call; the kernel reads it
whenever it likes, also after the rank was killed. Each rank writes only its own
region, so there are no locks. Four kinds of note:

- *now*: the rank's state: running, blocked (in a call, on a peer) or done;
- *calls*: per process group the number of collectives it has entered, and their words;
- *posts*: per peer the number of sends and of receives it has posted, and the size and
  type of the latest. Message k is matched when both sides have posted k, so comparing
  two counters distinguishes a message in flight from one that will never arrive;
- *events*: finished events, in a ring that the kernel empties during the run.
"""

from distlab.recorder.changes import NotesReader
from distlab.recorder.layout import (
    DESTROYED,
    DISAGREED,
    ENDING,
    IN,
    MOST_GROUPS,
    OUT,
    THREADED,
    UNKNOWN_SIZE,
    BlockLayout,
    Now,
    Post,
    agreed,
    any_words,
    handled,
    phase_of,
    region_alone,
    region_of,
    shown,
    unequal_splits,
    with_extra,
)
from distlab.recorder.recorder import Recorder
from distlab.recorder.shared_trace import SharedTrace

__all__ = [
    "DESTROYED",
    "DISAGREED",
    "ENDING",
    "IN",
    "MOST_GROUPS",
    "OUT",
    "THREADED",
    "UNKNOWN_SIZE",
    "BlockLayout",
    "NotesReader",
    "Now",
    "Post",
    "Recorder",
    "SharedTrace",
    "agreed",
    "any_words",
    "handled",
    "phase_of",
    "region_alone",
    "region_of",
    "shown",
    "unequal_splits",
    "with_extra",
]
