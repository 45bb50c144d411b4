"""The space-time diagram of nodes: a lifeline for each, a slanted arrow per message.

    client 0  ──●─────────────────────●──     x is the order of events, step by step;
    node 0    ───●╲──────────●───────●───     the lanes have the clock
    ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒╳▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒     a partition: dropped messages end here
    node 1    ──────────────────────────

The script of the page and the still pictures draw from these same numbers: x counts
steps, y is in units of the page.
"""

import math
from itertools import pairwise
from typing import NamedTuple

from distlab.show.canvas.text import literal
from distlab.show.player.labels import Labels
from distlab.show.player.svg import point
from distlab.trace import is_lost, words_of

__all__ = [
    "ARRIVED",
    "LEFT",
    "LOST",
    "RIGHT",
    "UNDER_WAY",
    "Spacetime",
    "Strand",
    "bent",
]

LEFT, RIGHT = 84, 1074
_NARROWEST, _WIDEST = 60.0, 170.0
_LETTER, _TALL = 6.65, 14.0  # of words at 11 units, in the fixed-width font
_WORDS, _MOST_STRANDS = 26, 3000
_SEEN_UNDER_WAY = 6.0  # steps: length of the arrow of a message that never arrives
ARRIVED, LOST, UNDER_WAY = 0, 1, 2


class Strand(NamedTuple):
    """An arrow: from (x0, y0) to (x1, y1), in `rank`'s colour.

    bow: its bend, in steps, to the left of a straight line, so that one to a node
    farther off does not lie on one to a nearer node.
    fate: ARRIVED, LOST or UNDER_WAY. words, at: its text, "" for none, and its middle.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    rank: int
    fate: int
    bow: float
    words: str
    at: tuple[float, float]


class LifelineMark(NamedTuple):
    """A mark on a lifeline. kind: "note", "timer", "crash", "restart", "dot"."""

    x: float
    y: float
    kind: str
    rank: int
    words: str
    at: tuple[float, float]


class Spacetime:
    """Coordinates of a space-time diagram. rows: ranks from the top down.

    unit: the width of a step. line: the steps in a line of a still picture. top,
    bottom: of the rows. height: of the diagram. strands, signs: arrows and marks.
    lives: (y, from, to, dead). walls: (from, to, y). sides: (from, to, words) of each
    partition. wordless: the number of words that had no room.
    """

    def __init__(self, happenings):
        self.all = happenings
        self.count = len(happenings.shown_steps)
        self.rows = self._ordered()
        self.pitch = min(76.0, max(28.0, 460 / max(1, len(self.rows))))
        self.top = 50.0 if happenings.splits else 28.0
        self.y = {
            rank: self.top + (row + 0.5) * self.pitch
            for row, rank in enumerate(self.rows)
        }
        self.bottom = self.top + len(self.rows) * self.pitch
        self.height = self.bottom + 34
        room = (RIGHT - LEFT) / max(1, self.count)
        self.unit = min(_WIDEST, max(_NARROWEST, room))
        most = max(1, int((RIGHT - LEFT) / self.unit + 1e-6))
        lines = max(1, math.ceil(self.count / most))
        self.line = max(1, math.ceil(self.count / lines))
        self.walls, self.sides = self._walls()
        self.lives, self.dead = self._lives()
        self._lost_late = {
            id(node_step.lost): node_step.x
            for stop in happenings.shown_steps
            for node_step in stop.node_steps
            if node_step.lost is not None
        }
        self.wordless, self._strand_of = 0, {}
        self.signs, self.strands = self._drawn()

    def _ordered(self):
        """Return the rows: sides of the first partition together, clients by nodes."""
        nodes, homes = list(range(self.all.nodes)), self.all.homes
        if self.all.splits:
            split = self.all.splits[0]
            sides = [split.side(node) for node in nodes]
            nodes.sort(key=lambda node: (sides.index(split.side(node)), node))
        rows = []
        for place, node in enumerate(nodes):
            own = [client for client in homes if homes[client] == node]
            above = place < (len(nodes) + 1) // 2
            rows += [*own, node] if above else [node, *own]
        rest = [client for client in homes if client not in rows]
        return rows + rest

    def strand_of(self, message) -> Strand:
        """Return the arrow of a message between two rows."""
        return self._strand_of[id(message)]

    def node_of(self, rank: int) -> int:
        """Return the node that a rank is, or that a client calls."""
        return self.all.homes.get(rank, rank)

    def _walls(self):
        walls, sides = [], []
        for split in self.all.splits:
            ends = split.begin_x, split.end_x
            for above, below in pairwise(self.rows):
                if split.parts(self.node_of(above), self.node_of(below)):
                    walls.append((*ends, self.y[above] + self.pitch / 2))
            described = " | ".join(" ".join(map(str, side)) for side in split.sides)
            sides.append((*ends, f"partition: {described}"))
        return walls, sides

    def _lives(self):
        """Return the lifelines, and rank -> [(begin, end)] in which it is dead."""
        lives, dead = [], {rank: [] for rank in self.rows}
        for rank in self.rows:
            since, gone = 0.0, False
            faults = [
                each for stop in self.all.shown_steps for each in stop.node_steps
                if each.rank == rank and each.cause and each.cause.kind == "fault"
            ]  # fmt: skip
            for node_step in faults:
                lives.append((self.y[rank], since, node_step.x, gone))
                if gone:
                    dead[rank].append((since, node_step.x))
                since, gone = node_step.x, node_step.cause.label != "restart"
            lives.append((self.y[rank], since, float(self.count), gone))
            if gone:
                dead[rank].append((since, float(self.count)))
        return lives, dead

    def _drawn(self):
        """Return signs and strands, with their words laid out together."""
        labels = Labels(_TALL, list(self.y.values()), (0, self.count * self.unit))
        for cut in range(self.line, self.count, self.line):
            edge = cut * self.unit  # words are whole in the line that they begin in
            labels.avoid((edge - 1, 0, edge + 1, self.bottom))
        arrows = [self._arrow(message) for message in self.all.messages]
        arrows = [arrow for arrow in arrows if arrow is not None][:_MOST_STRANDS]
        for _, _, y in self.walls:
            labels.lines.append(y)
        for place, _, fate in arrows:
            for part in self._parts(place, self._bow(place, fate)):
                labels.cross(part)
        signs = self._signs(labels)
        strands, seen, described = [], set(), set()
        for place, message, fate in arrows:
            bow = self._bow(place, fate)
            words = _shown(words_of(message))
            if message.send is not None and id(message.send) in seen:
                words = "again"
            alike = (place[:2], words)
            if fate == LOST and alike in described:
                words = ""  # one for all that are dropped together
            described.add(alike)
            seen.add(id(message.send))
            at = None
            if words and self.pitch > 40:
                parts = self._parts(place, bow)
                at = labels.beside(parts, _LETTER * len(words))
                self.wordless += at is None
            rank = message.send.rank if message.send else message.recv.peer
            middle = (at[0] / self.unit, at[1]) if at else (0.0, 0.0)
            strand = Strand(*place, rank, fate, bow, words if at else "", middle)
            self._strand_of[id(message)] = strand
            strands.append(strand)
        return signs, strands

    def _bow(self, place, fate):
        """Return the bend of an arrow: 0 if it is dropped, or goes to the next row."""
        far = abs(place[3] - place[1]) > 1.2 * self.pitch
        return 0.55 if far and fate == ARRIVED else 0.0

    def _parts(self, place, bow):
        """Return an arrow as straight pieces, in units of the page."""
        x0, y0, x1, y1 = place
        way = bent(x0 * self.unit, y0, x1 * self.unit, y1, bow * self.unit)
        straight = not bow and y0 != y1
        knots = (
            [way[:2], way[4:]] if straight else [point(way, t / 6) for t in range(7)]
        )
        return [(*a, *b) for a, b in pairwise(knots)]

    def _signs(self, labels):
        signs = []
        for stop in self.all.shown_steps:
            for node_step in stop.node_steps:
                if node_step.lost is not None or node_step.rank not in self.y:
                    continue
                x, y, kind = node_step.x, self.y[node_step.rank], "dot"
                cause, words = node_step.cause, ""
                if cause is not None and cause.kind == "fault":
                    kind = "restart" if cause.label == "restart" else "crash"
                    words = _shown(cause.label)
                elif cause is not None and cause.kind == "mark":
                    kind, words = "timer", _shown(cause.label)
                reach = 8 if kind == "crash" else 5
                middle = x * self.unit
                labels.avoid((middle - reach, y - reach, middle + reach, y + reach))
                signs.append(self._sign(labels, (x, y), kind, node_step.rank, words))
                notes = [_shown(note.label) for note in node_step.notes]
                for words in notes[:2]:
                    signs.append(
                        self._sign(labels, (x, y), "note", node_step.rank, words)
                    )
        return signs

    def _sign(self, labels, place, kind, rank, words):
        x, y = place
        at = labels.near(x * self.unit, y, _LETTER * len(words)) if words else None
        self.wordless += bool(words) and at is None
        middle = (at[0] / self.unit, at[1]) if at else (0.0, 0.0)
        return LifelineMark(x, y, kind, rank, words if at else "", middle)

    def _arrow(self, message):
        """Return (x0, y0, x1, y1), the message, and its fate."""
        send, recv = message
        src, dst = (send.rank, send.peer) if send else (recv.peer, recv.rank)
        if src not in self.y or dst not in self.y:
            return None
        y0, y1 = self.y[src], self.y[dst]
        if recv is not None:
            x1 = self.all.node_step_of[id(recv)].x
            x0 = self.all.node_step_of[id(send)].x if send else max(0.0, x1 - 0.5)
            return (x0, y0, max(x1, x0 + 0.02), y1), message, ARRIVED
        x0 = self.all.node_step_of[id(send)].x
        if not is_lost(send):
            x1 = max(x0 + 0.1, min(x0 + _SEEN_UNDER_WAY, self.count - 0.1))
            return (x0, y0, x1, self._short_of(y0, y1)), message, UNDER_WAY
        late_x = self._lost_late.get(id(message))
        y = self._lost_y(message, late_x or x0)
        room = math.ceil(x0 + 1e-9) - 0.06 - x0
        x1 = late_x or x0 + room * (abs((y - y0) / (y1 - y0)) if y1 != y0 else 1)
        return (x0, y0, max(x1, x0 + 0.02), y), message, LOST

    def _lost_y(self, message, x):
        """Return the y of a dropped message's end: at a wall, dead node or between."""
        src, dst = message.send.rank, message.send.peer
        y0, y1 = self.y[src], self.y[dst]
        low, high = sorted((y0, y1))
        at_wall = [
            y for begin, end, y in self.walls if begin <= x <= end and low < y < high
        ]
        split = any(
            s.begin_x <= x <= s.end_x and s.parts(self.node_of(src), self.node_of(dst))
            for s in self.all.splits
        )
        if split and at_wall:
            return min(at_wall, key=lambda y: abs(y - y0))
        if any(begin <= x <= end for begin, end in self.dead[dst]):
            return y1
        return self._short_of(y0, y1)

    def _short_of(self, y0, y1):
        """Return the y at which an undelivered arrow ends, clear of every lifeline."""
        return y1 + (0.5 if y1 < y0 else -0.5) * self.pitch


def bent(x0, y0, x1, y1, bow) -> tuple:
    """Return an arrow as a quadratic curve; one back to its sender goes round below."""
    dip = 26 if y0 == y1 else 0
    return x0, y0, (x0 + x1) / 2 - bow, (y0 + y1) / 2 + dip, x1, y1


def _shown(words):
    return literal(words, _WORDS)
