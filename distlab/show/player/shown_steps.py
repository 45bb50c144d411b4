"""Steps of a run (`ShownStep`): a trace, cut at the points where a learner would pause.

    start ─▶ round 1 ─▶ round 2 ─▶ barrier ─▶ round 3 ─▶ unfinished calls
             moves      moves      meeting    moves      broken

A step is one round of messages, or one barrier or collective. The tables of chunks of
a step are those after the calls that ended with it. If a call never ended, or a fault
was injected, the last step shows it.
"""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from distlab.show.canvas.text import literal
from distlab.show.reading.rounds import rounds_of
from distlab.trace import mesh_dimension_of

__all__ = ["Move", "ShownStep", "gone_ranks", "shown_steps_of", "tables_at_start"]

MOST_STEPS = 2000
_MEETINGS = ("barrier", "collective")


class Move(NamedTuple):
    """A message, or `count` messages of one pair of ranks, in a step.

    bytes: as the receiver or the sender has it. sent: the part that was handed over.
    chunks, counts: as in `Contributions`, of one message; empty if not known.
    fate: "arrived" or "dropped"; "waiting" for one that never ended, "awaited" if only
        its receiver ever posted it.
    label: the text on it, if not its bytes. group: as in `Event`.
    """

    src: int
    dst: int
    bytes: int
    sent: int
    count: int
    chunks: tuple
    counts: tuple
    fate: str
    label: str = ""
    group: str = ""


@dataclass
class ShownStep:
    """One step of a run: its messages, and the state after it.

    rounds: the first and last round of messages in it, or (0, 0).
    phase, step: the words of the ranks' marks. at_s: the time at which it ended.
    steps: the last step of each rank in it. tables: (rank, chunk) -> counts, where they
    changed. meeting: the name of a barrier or collective, entered by `ranks`.
    groups: those that it is in, as in `Event`. last: True at the end of the trace.
    broken: True for the step of faults and of unfinished calls.
    """

    rounds: tuple[int, int]
    phase: str
    step: str
    at_s: float
    moves: list[Move] = field(default_factory=list)
    steps: dict[int, int] = field(default_factory=dict)
    tables: dict = field(default_factory=dict)
    meeting: str = ""
    ranks: list[int] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    last: bool = False
    broken: bool = False


def tables_at_start(shares, world_size: int) -> dict:
    """Return (rank, chunk) -> counts of the ranks' inputs; empty without shares."""
    if shares is None:
        return {}
    return {
        (rank, chunk): counts
        for rank in range(world_size)
        for chunk, counts in enumerate(shares.held[rank][0][1])
    }


def shown_steps_of(reading) -> list[ShownStep]:
    """Return the steps of a trace, in order; neighbours together if they are many."""
    shown_steps = [*_rounds(reading), *_meetings(reading.trace)]
    shown_steps.sort(key=lambda stop: stop.at_s)
    if len(shown_steps) > MOST_STEPS:
        shown_steps = _merged(shown_steps)
    broken = _broken(reading)
    if broken:
        shown_steps.append(broken)
    if reading.trace.shares is not None:
        _add_tables(reading.trace, shown_steps)
    if shown_steps:
        shown_steps[-1].last = True
    return shown_steps


def _rounds(reading):
    """Return a step for each round of messages."""
    shares, nth, taken = reading.trace.shares, {}, Counter()
    for message in reading.messages:
        pair = _pair(message)
        nth[id(message.send or message.recv)] = taken[pair]
        taken[pair] += 1
    moves, steps, ends = defaultdict(list), defaultdict(dict), defaultdict(list)
    for message, number in reading.numbered:
        if not set(_pair(message)) <= set(range(reading.trace.world_size)):
            continue
        sent = shares.sent.get(_pair(message), []) if shares else []
        k = nth[id(message.send or message.recv)]
        moves[number].append(_move(message, sent[k] if k < len(sent) else ((), ())))
        for event in message:
            if event is not None:
                step = max(event.step, steps[number].get(event.rank, 0))
                steps[number][event.rank] = step
                ends[number].append(event.start if event.end is None else event.end)
    shown_steps, reached = [], 0.0
    for number, phase, step in rounds_of(reading):
        reached = max([reached, *ends[number]])
        there = sorted(moves[number], key=lambda move: move[:2])
        rounds, taken = (number, number), steps[number]
        stop = ShownStep(rounds, phase, step, reached, there, taken)
        stop.groups = sorted({move.group for move in there})
        shown_steps.append(stop)
    return shown_steps


def _pair(message):
    send, recv = message
    return (send.rank, send.peer) if send else (recv.peer, recv.rank)


def _move(message, payload):
    send = message.send
    over = any(event is not None and event.end is not None for event in message)
    sent = send.bytes if send and over else 0
    dropped = bool(send) and send.label == "dropped"
    fate = "dropped" if dropped else "arrived"
    group = _group_of(message)
    return Move(*_pair(message), _size_of(message), sent, 1, *payload, fate, "", group)


def _meetings(trace):
    """Return a step for each barrier or collective that any rank left.

    Those of groups along one dimension of a mesh are together. Splits are left out.
    """
    together, entered = defaultdict(list), Counter()
    for event in trace.events:
        split = event.kind == "barrier" and event.label == "split"
        if event.kind in _MEETINGS and event.end is not None and not split:
            entered[event.rank, event.group] += 1
            groups = mesh_dimension_of(event.group) or event.group
            together[groups, entered[event.rank, event.group]].append(event)
    shown_steps = []
    for events in together.values():
        names = Counter(literal(e.label or e.kind, 40) for e in events)
        name = names.most_common(1)[0][0]
        ranks = sorted(event.rank for event in events)
        all_there = max(event.start for event in events)
        steps = {event.rank: event.step for event in events}
        stop = ShownStep(
            (0, 0), name, "", all_there, steps=steps, meeting=name, ranks=ranks
        )
        stop.groups = sorted({event.group for event in events})
        shown_steps.append(stop)
    return shown_steps


def _broken(reading):
    """Return the step of unfinished calls and of faults, or None."""
    ranks = set(range(reading.trace.world_size))
    moves = [
        _stuck(message)
        for message in reading.messages
        if all(event is None or event.end is None for event in message)
        and set(_pair(message)) <= ranks
    ]
    if not reading.stuck and not gone_ranks(reading.trace):
        return None
    end = reading.trace.cut_s or reading.last_s
    stop = ShownStep((0, 0), "How it ended", "", max(end, reading.last_s), moves)
    stop.groups, stop.broken = sorted({move.group for move in moves}), True
    return stop


def _stuck(message):
    fate = "waiting" if message.send else "awaited"
    size, group = _size_of(message), _group_of(message)
    return Move(*_pair(message), size, 0, 1, (), (), fate, "", group)


def _group_of(message):
    return (message.send or message.recv).group


def gone_ranks(trace, until_s: float = math.inf) -> set[int]:
    """Return the ranks that a fault ended, and that did not come back."""
    gone = set()
    for event in trace.events:
        if event.start > until_s:
            break
        stays = event.label == "corrupt" or event.label.startswith("partition")
        if event.kind == "fault" and not stays:
            (gone.discard if event.label == "restart" else gone.add)(event.rank)
    return gone


def _size_of(message):
    return max(event.bytes for event in message if event is not None)


def _merged(shown_steps):
    """Return at most MOST_STEPS steps, each of several neighbours."""
    size = -(-len(shown_steps) // MOST_STEPS)
    merged = []
    for first in range(0, len(shown_steps), size):
        part = shown_steps[first : first + size]
        numbers = [number for stop in part for number in stop.rounds if number]
        rounds = (min(numbers), max(numbers)) if numbers else (0, 0)
        moves = defaultdict(list)
        for move in (move for stop in part for move in stop.moves):
            moves[move.src, move.dst, move.fate].append(move)
        last = part[-1]
        together = [_together(key, some) for key, some in moves.items()]
        stop = ShownStep(rounds, last.phase, last.step, last.at_s, together)
        for one in part:
            stop.steps |= one.steps
        stop.meeting, stop.ranks = "" if numbers else last.meeting, last.ranks
        merged.append(stop)
    return merged


def _together(key, moves):
    src, dst, fate = key
    size, sent = sum(m.bytes for m in moves), sum(m.sent for m in moves)
    return Move(src, dst, size, sent, len(moves), (), (), fate)


def _add_tables(trace, shown_steps):
    """Add to each step the chunks whose counts changed in it."""
    now = tables_at_start(trace.shares, trace.world_size)
    for stop in shown_steps:
        final = stop is shown_steps[-1]
        for rank in range(trace.world_size):
            if final:
                table = trace.shares.held[rank][-1][1]
            elif rank in stop.steps:
                table = trace.shares.after(rank, stop.steps[rank])
            else:
                continue
            for chunk, counts in enumerate(table):
                if now[rank, chunk] != counts:
                    now[rank, chunk] = stop.tables[rank, chunk] = counts
