"""Data of an animation: the numbers that the page's script plays.

Times are shares of the run, 0 at its start and 1 at its end; positions count steps.
"""

import math
import re
from collections import defaultdict

from distlab.show.canvas.text import literal
from distlab.show.player.painter import MOST_PILLS, Painter
from distlab.show.player.panel import BAR_WIDTH, BARS_LEFT, PANEL_LEFT
from distlab.show.player.spacetime import LEFT
from distlab.show.player.svg import color_of
from distlab.trace import is_lost

__all__ = ["player_data"]

_FATES = {"arrived": 0, "dropped": 1, "waiting": 2, "awaited": 2}
_MOST_WORDS, _MOST_EVENTS = 4000, 200
_RESIZED = re.compile(r"rank \d+ of (\d+)")
_MOST_SPANS, _MOST_ARROWS, _FINEST = 10_000, 10_000, 1 / 4000


def player_data(animation) -> dict:
    """Return the argument of `mount` in web/controls.js: lists and plain values."""
    g, lanes, notes = animation.geometry, *_lanes(animation)
    arrows, more = _arrows(animation)
    painter = Painter(animation)
    return {
        "n": animation.world_size,
        "frames": [_frame(animation, painter, frame) for frame in animation.frames],
        "sent": [frame.sent for frame in animation.frames],
        "start": [
            _cell(key, counts) for key, counts in animation.frames[0].tables.items()
        ],
        "nodes": [[round(x, 1), round(y, 1)] for x, y in g.nodes],
        "tables": [[round(x, 1), round(y, 1)] for x, y in g.tables],
        "ways": {
            f"{a},{b}": [round(x, 1) for x in way] for (a, b), way in g.ways.items()
        },
        "cell": [round(side, 2) for side in g.cell],
        "radius": g.radius,
        "shown": painter.shown,
        "pills": MOST_PILLS,
        "bar": BAR_WIDTH,
        "panel": [PANEL_LEFT, BARS_LEFT],
        "full": animation.full_scale,
        "rows": animation.rows,
        "names": [animation.name(rank) for rank in animation.rows],
        "opens": animation.OPENS,
        "spacetime": _spacetime(animation),
        "logs": animation.logs,
        "bytes": int(animation.who == "rank"),
        "words": _words(animation),
        "unit": animation.unit,
        "looks": animation.looks,
        "key": animation.key or animation.legend(),
        "held": _held(animation),
        "most": animation.most,
        "over": [_share(animation, time) for time in animation.over],
        "whole": int(animation.WHOLE),
        "stuck": animation.stuck,
        "gone": animation.gone,
        "begin": animation.begin_s,
        "lasts": animation.lasts_s,
        "lanes": lanes,
        "arrows": arrows,
        "marks": _marks(animation),
        "events": _events(animation),
        "faults": [_fault(animation, event) for event in animation.faults],
        "notes": [*animation.notes, *notes, *more],
    }


def _held(animation):
    """Return, for each row of a pipeline, what it holds: (start, end, count)."""
    return [
        [[_share(animation, start), _share(animation, end), n] for start, end, n in row]
        for row in animation.held
    ]


def _frame(animation, painter, frame):
    moves = [[m.src, m.dst, painter.words(m), _FATES[m.fate]] for m in frame.moves]
    return {
        "t": frame.title,
        "s": frame.short,
        "x": frame.text,
        "m": moves,
        "k": [_cell(key, frame.tables[key]) for key in frame.changed],
        "at": _share(animation, frame.at_s),
        "r": frame.ranks,
        "b": int(frame.broken),
        "d": frame.dead,
        "c": frame.cuts,
        "g": painter.bands(frame),
    }


def _spacetime(animation):
    """Return the space-time diagram of nodes, with rounded coordinates."""
    spacetime = animation.spacetime
    if spacetime is None:
        return None
    trace, clients = spacetime.all.trace, spacetime.all.is_client
    return {
        "left": LEFT,
        "top": spacetime.top,
        "bottom": spacetime.bottom,
        "height": spacetime.height,
        "unit": spacetime.unit,
        "names": [
            [spacetime.y[r], trace.name(r), color_of(r), int(clients(r))]
            for r in spacetime.rows
        ],
        "lives": spacetime.lives,
        "walls": spacetime.walls,
        "sides": spacetime.sides,
        "strands": [
            [
                *_rounded(s[:4]),
                color_of(s.rank),
                s.fate,
                s.words,
                *_rounded(s.at),
                s.bow,
            ]
            for s in spacetime.strands
        ],
        "signs": [
            [*_rounded(s[:2]), s.kind, color_of(s.rank), s.words, *_rounded(s.at)]
            for s in spacetime.signs
        ],
    }


def _rounded(numbers):
    return [round(number, 3) for number in numbers]


def _cell(key, counts):
    """Return rank, chunk, and a digit per contribution: its count in the chunk."""
    return [*key, None if counts is None else "".join(map(str, counts))]


def _share(animation, time_s):
    share = (time_s - animation.begin_s) / animation.lasts_s
    return round(min(1.0, max(0.0, share)), 6)


def _position(animation, time_s):
    """Return the position, in steps, of a time in the run."""
    frames = animation.frames
    for number in range(1, len(frames)):
        before, after = frames[number - 1].at_s, frames[number].at_s
        if time_s < after:
            part = (time_s - before) / (after - before)
            return round(number - 1 + max(0.0, part), 3)
    return len(frames) - 1


def _lanes(animation):
    """Return state -> [start, end, start, ...] for each row; fused if they are many."""
    rows = {rank: defaultdict(list) for rank in animation.rows}
    spans = [span for span in animation.spans if span.rank in rows]
    fused = len(spans) > _MOST_SPANS
    for span in sorted(spans, key=lambda span: span.start):
        start, end = _share(animation, span.start), _share(animation, span.end)
        lane = rows[span.rank][span.state]
        if fused and lane and start - lane[-1] < _FINEST:
            lane[-1] = max(lane[-1], end)
        else:
            lane += [start, end]
    notes = []
    if fused:
        notes.append(
            f"{len(spans):,} stretches of time are drawn to 1/4000 of the run: nearer "
            "ones of one kind are one."
        )
    return [rows[rank] for rank in animation.rows], notes


def _words(animation):
    """Return [row, start, end, words, state] of the texts in lanes, [] if too many."""
    rows = {rank: row for row, rank in enumerate(animation.rows)}
    if animation.who == "rank" or len(animation.spans) > _MOST_WORDS:
        return []
    return [
        [
            rows[s.rank],
            _share(animation, s.start),
            _share(animation, s.end),
            s.label,
            s.state,
        ]
        for s in animation.spans
        if s.rank in rows
    ]


def _arrows(animation):
    """Return [from, to, sent, ended, dropped] of messages, [] if many, and notes."""
    rows, arrows = set(animation.rows), []
    for send, recv in animation.reading.messages:
        if send is None or not {send.rank, send.peer} <= rows:
            continue
        dropped = is_lost(send)
        end_s = send.end if dropped else recv and recv.end
        if end_s is not None:
            times = _share(animation, send.start), _share(animation, end_s)
            arrows.append([send.rank, send.peer, *times, int(dropped)])
    if len(arrows) > _MOST_ARROWS:
        return [], [f"The lanes leave out the arrows of {len(arrows):,} messages."]
    return arrows, []


def _marks(animation):
    """Return [time, words] of each mark, once for all ranks that wrote it."""
    seen, marks = set(), []
    nth = defaultdict(int)
    for event in animation.reading.trace.events:
        if event.kind == "mark" and len(marks) < 2000:
            nth[event.rank, event.label] += 1
            key = event.label, nth[event.rank, event.label]
            if key not in seen:
                seen.add(key)
                marks.append([_share(animation, event.start), literal(event.label, 60)])
    return marks


def _events(animation):
    """Return [step, words, 1 for a fault] of what the slider marks, in order.

    These are faults, ends of partitions, new sizes of an elastic world, and the end of
    a run that failed.
    """
    trace, found, sizes = animation.reading.trace, [], []

    def note(at_s, words, bad):
        found.append([math.ceil(_position(animation, at_s)), words, bad])

    for event in trace.events:
        label = literal(event.label, 40)
        resized = event.kind == "mark" and _RESIZED.fullmatch(label)
        if resized and resized[1] not in sizes[-1:]:
            sizes.append(resized[1])
            if sizes[1:]:
                note(event.start, f"a world of {resized[1]} ranks", 0)
        if event.kind != "fault":
            continue
        network = label.startswith("partition")
        words = label if network else f"{label}: {trace.name(event.rank)}"
        note(event.start, words, int(label != "restart"))
        if network and event.end is not None:
            note(event.end, "the partition ends", 0)
    if failed := animation.failed_step():
        found.append([failed, animation.frames[failed].title, 1])
    return sorted(found)[:_MOST_EVENTS]


def _fault(animation, event):
    end_s = animation.end_s if event.end is None else event.end
    return [
        event.rank,
        _share(animation, event.start),
        literal(event.label, 40),
        _share(animation, end_s),
        _position(animation, event.start),
        _position(animation, end_s),
    ]
