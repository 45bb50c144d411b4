"""The lanes of a history: bars with words over them, and a verdict's additions.

write x 1            a word over each bar, as long as there is room
███①███████          a linearization point of the operation
"""

from collections import defaultdict
from functools import cached_property
from itertools import pairwise

from distlab.show.canvas.canvas import (
    MARGIN,
    arrow,
    page_width,
    points,
    shapes,
    strokes,
    underlay,
    write,
)
from distlab.show.canvas.styles import kinds_of, look_of
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import GRID, INK, PAPER, WARNING, rank_color
from distlab.show.reading.histories import answered_before, effects

__all__ = ["ClientLanes"]

_SIZE, _NAME, _GAP, _NUMBER = 8.25, 8.5, 0.1, 8.25
_BAR, _WORDS, _BETWEEN, _FOOT, _HEAD = 0.17, 0.19, 0.1, 0.42, 0.06
_DOT = 0.17  # inches: the least distance of two numbers


class ClientLanes:
    """One lane per client in each of `rows_of_time`, from the top.

    level: index of the name that an operation gets, None for none. height: of all rows.
    wordless: the number of bars without words.
    """

    def __init__(self, read, clients, drawn, rows_of_time, level, strong):
        self.read, self.drawn, self.level = read, drawn, level
        self.rows_of_time = rows_of_time
        self.lane = {client: number for number, client in enumerate(clients)}
        self.strong = {_known(one) for one in strong}
        self.order = answered_before(strong) if read.judged.real_time else []
        count = max(1, len(clients))
        words = _WORDS * (level is not None)
        least = min(0.3, max(0.16, 6.0 / count))
        self.pitch = (_BAR + words + _BETWEEN) if words else least
        self.half = _BAR / 2 if words else 0.34 * self.pitch
        self.below = (_BETWEEN / 2 + self.half) if words else self.pitch / 2
        self.each = _HEAD + count * self.pitch + _FOOT
        self.height = self.each * len(rows_of_time) - 0.14 * (len(rows_of_time) - 1)
        names = [width_of(read.name(client), _NAME) for client in clients]
        left = MARGIN + 0.2 + max(names, default=0.0) + 0.15
        right = page_width() - MARGIN - 0.1
        for overhang in (0.0, None):  # the second pass knows what sticks out
            overhang = self._overhang() if overhang is None else overhang
            for strip in rows_of_time:
                strip.spread(left, right - overhang)
        self.until = self._until()
        self.words, self.wordless = self._placed()

    @property
    def moments(self) -> dict:
        """The operations' linearization points, as far as a verdict has them."""
        return self._taking_effect[0]

    @cached_property
    def numbered(self) -> bool:
        """True if there is room for the numbers of that order."""
        return bool(self.moments) and self._apart()

    def _overhang(self):
        """Return the inches by which the last bars' words stick out to the right."""
        if self.level is None:
            return 0.0
        last = {(self._row_of(one.start), one.client): one for one in self.drawn}
        out = [0.0]
        for (at, _), one in last.items():
            names, strip = self.read.names(one), self.rows_of_time[at]
            wide = width_of(names[min(self.level, len(names) - 1)], _SIZE)
            out.append(strip.inch(one.start) + wide - (page_width() - MARGIN))
        return min(0.9, max(out))

    def _until(self):
        """Return the end of each bar: an open one ends at its client's next start."""
        until, following = {}, {}
        for one in reversed(self.drawn):
            open_until = following.get(one.client, self.read.last_s)
            until[_known(one)] = open_until if one.end is None else one.end
            following[one.client] = one.start
        return until

    def _placed(self):
        """Return (strip, lane, x, words) for each bar whose words have room."""
        placed, wordless, free = [], 0, defaultdict(float)
        for one in self.drawn:
            if self.level is None or (self.strong and _known(one) not in self.strong):
                continue
            at, lane = self._row_of(one.start), self.lane[one.client]
            found = self._room_for(one, self.rows_of_time[at], free[at, lane])
            if found is None:
                wordless += 1
                continue
            x, words = found
            free[at, lane] = x + width_of(words, _SIZE) + _GAP
            placed.append((at, lane, x, words))
        return placed, wordless

    def _room_for(self, one, strip, free):
        """Return the x of a bar's words, and the longest words that have room.

        They may be longer than the bar, and begin later than it does, but not both.
        """
        names = self.read.names(one)
        several = len(self.read.keys) > 1  # then only the longest name has the key
        allowed = names[:1] if several else names[self.level :] or names[-1:]
        begin = max(strip.left, strip.inch(one.start))
        end = strip.inch(min(self.until[_known(one)], strip.end_s))
        for words in allowed:
            wide = width_of(words, _SIZE)
            x = min(max(begin, free), page_width() - MARGIN - wide)
            within = x + wide <= max(begin + wide, end) + 1e-9
            if within and x >= max(strip.left, free):
                return x, words
        return None

    def _row_of(self, time_s):
        ends = [strip.end_s for strip in self.rows_of_time]
        return next((at for at, end in enumerate(ends) if time_s < end), len(ends) - 1)

    @cached_property
    def _taking_effect(self):
        """Return two dicts: operation -> linearization point, and -> its number."""
        judged = self.read.judged
        orders = [judged.witness] if judged.witness else judged.orders
        drawn = {_known(one) for one in self.drawn}
        orders = [[one for one in some if _known(one) in drawn] for some in orders]
        numbers = {_known(o): n for some in orders for n, o in enumerate(some, 1)}
        moments = {k: (k[1] + self.until[k]) / 2 for k in numbers}
        if judged.witness and judged.real_time:
            exact = effects(orders[0], self.rows_of_time[-1].end_s)
            moments = dict(zip(numbers, exact, strict=True)) if exact else moments
        return moments, numbers

    def _apart(self):
        """Return True if the numbers in each lane do not overlap."""
        if len(self.moments) > 200 or self.level is None:
            return False
        places = defaultdict(list)
        for one in self.drawn:
            if _known(one) in self.moments:
                moment = self.moments[_known(one)]
                at = self._row_of(moment)
                places[at, one.client].append(self.rows_of_time[at].inch(moment))
        gaps = [
            b - a for some in map(sorted, places.values()) for a, b in pairwise(some)
        ]
        return min(gaps, default=1.0) >= _DOT

    def draw(self, page, top: float) -> None:
        """Draw all rows of the axis, the first with its upper edge at `top`."""
        self.page = page
        self.tops = [
            top + _HEAD + number * (self.each - 0.14)
            for number in range(len(self.rows_of_time))
        ]
        for strip, at in zip(self.rows_of_time, self.tops, strict=True):
            if self.drawn:
                strip.draw(page, at, len(self.lane) * self.pitch)
            self._name_lanes(strip, at)
        self._draw_bars()
        for at, lane, x, words in self.words:
            y = self._middle(at, lane) - self.half - 0.09
            underlay(write(page, x, y, words, size=_SIZE))
        self._draw_effects()
        self._draw_order()

    def _middle(self, strip, lane):
        return self.tops[strip] + (lane + 1) * self.pitch - self.below

    def _name_lanes(self, strip, top):
        number = self.tops.index(top)
        for client, lane in self.lane.items():
            y = self._middle(number, lane)
            place = self.read.clients.index(client)
            points(self.page, [MARGIN + 0.07], [y], place, size=6)
            name, size = self.read.name(client), _NAME if self.pitch > 0.2 else _SIZE
            write(self.page, MARGIN + 0.2, y, name, size=size)
            line = (strip.left, y, strip.right, y)
            strokes(self.page, [line], GRID, width=0.6, zorder=0)

    def _draw_bars(self):
        """Draw the bars, one artist for each look, the pale ones first."""
        looks, crosses, rims = defaultdict(list), [], []
        for one in self.drawn:
            pale = bool(self.strong) and _known(one) not in self.strong
            for at, strip in enumerate(self.rows_of_time):
                if one.start > strip.end_s or self.until[_known(one)] < strip.begin_s:
                    continue
                shape = self._shape(one, at)
                looks[one.client, kinds_of(one)[-1], pale].append(shape)
                if one.outcome == "failed":
                    crosses.append(((shape[0][0] + shape[1][0]) / 2, shape))
                if self.strong and not pale:
                    rims.append(shape)
        for (client, kind, pale), some in sorted(
            looks.items(), key=lambda x: not x[0][2]
        ):
            color = rank_color(self.read.clients.index(client))
            look = look_of(kind, color)
            if self.level is None and kind in ("read", "other"):
                look |= {"edge": None, "hatch": None}
            if pale:
                look |= {"color": PAPER, "edge": GRID, "hatch": None}
            shapes(self.page, some, gid=f"operation: {kind}", **look)
        if rims:
            shapes(self.page, rims, "none", edge=INK, gid="contradicts", zorder=4)
        size = 0.7 * self.half
        lines = []
        for x, shape in crosses:
            y = (shape[0][1] + shape[2][1]) / 2
            lines += [(x - size, y - size, x + size, y + size)]
            lines += [(x - size, y + size, x + size, y - size)]
        width = 0.8 if self.level is None else 1.4
        strokes(self.page, lines, WARNING, width=width, gid="refused", zorder=6)

    def _shape(self, one, at):
        """Return the corners of a bar in a row; an open one ends in a point."""
        strip, y = self.rows_of_time[at], self._middle(at, self.lane[one.client])
        end_s = self.until[_known(one)]
        left = strip.inch(max(one.start, strip.begin_s))
        right = strip.inch(min(end_s, strip.end_s))
        right = max(right, left + 0.05)
        top, bottom = y - self.half, y + self.half
        if one.end is not None or end_s > strip.end_s:
            return [(left, top), (right, top), (right, bottom), (left, bottom)]
        tip = min(self.half, (right - left) / 2)
        point = [(right - tip, top), (right, y), (right - tip, bottom)]
        return [(left, top), *point, (left, bottom)]

    def _draw_effects(self):
        ticks = []
        for one in self.drawn:
            if _known(one) not in self.moments:
                continue
            moment = self.moments[_known(one)]
            at = self._row_of(moment)
            x = self.rows_of_time[at].inch(moment)
            y = self._middle(at, self.lane[one.client])
            if not self.numbered:
                tall = 1.3 * self.half
                ticks.append((x, y - tall, x, y + tall))
                continue
            dot = {"size": 11, "marker": "o", "color": INK, "gid": "effect"}
            points(self.page, [x], [y], 0, **dot)
            words = {"size": _NUMBER, "color": PAPER, "align": "center", "bold": True}
            write(self.page, x, y, str(self._taking_effect[1][_known(one)]), **words)
        if ticks:
            strokes(self.page, ticks, INK, width=1.2, gid="effect", zorder=6)

    def _draw_order(self):
        """Draw an arrow from each response to an invocation after it."""
        places = self.lane
        for one, other in self.order:
            at, to = self._row_of(one.end), self._row_of(other.start)
            if at != to or one.client not in places or other.client not in places:
                continue
            strip = self.rows_of_time[at]
            begin = strip.inch(one.end), self._middle(at, places[one.client])
            end = strip.inch(other.start), self._middle(at, places[other.client])
            arrow(self.page, begin, end, INK, width=1.3, gid="before")


def _known(one):
    return one.client, one.start, one.op, one.end
