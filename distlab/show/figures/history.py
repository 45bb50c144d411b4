"""`history`: one lane per client, and in it its invocations and responses.

    client 0   █ write x 1 █        █ cas 1→2 ✓ █
    client 1        ░ read x → 1 ░        █ write x 3 ▷     unknown outcome

A verdict adds the order that explains the responses, as numbers, or the few operations
that no order explains.
"""

from distlab.show.canvas.canvas import MARGIN, Canvas, page_width, write
from distlab.show.canvas.client_lanes import ClientLanes
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.rows import clock_rows, ranked_rows
from distlab.show.canvas.styles import key_of
from distlab.show.canvas.text import wrapped
from distlab.show.canvas.theme import INK, MUTED, RIGHT, WARNING, rank_color
from distlab.show.canvas.time_axis import TimeAxis
from distlab.show.reading.alt_text import capital, plural
from distlab.show.reading.histories import Histories, answered_before
from distlab.show.reading.rounds import selected

__all__ = ["history"]

_MOST_LANES, _MOST_STRIPS, _TALLEST = 24, 6, 10.0
_FEW, _SHOWN_WHOLE, _MOST_TOLD = 24, 12, 8
_SAID, _LINE = 10, 0.21
_VERDICT = {"ok": RIGHT, "violated": WARNING, "inconclusive": INK}


def history(history_or_verdict, title: str = "", key=None) -> Picture:
    """Draw clients' operations on a store over time, with their results.

    history_or_verdict: a History, operations, an object that has them, such as an
    outcome, or a verdict: if it is ok, each bar has a linearization point for its
    operation, numbered in that order; if it is violated, only the few operations
    that contradict each other are drawn strongly.
    key: draw only the operations on this key.

    Raises: InvalidArgument if there are no operations in it, or none on that key.
    """
    read = Histories(history_or_verdict, key)
    return Picture(lambda: _History(read).canvas(title))


class _History:
    """The operations that are drawn, and their layout in rows of an axis."""

    def __init__(self, read):
        self.read, self.notes = read, []
        judged = read.judged
        self.strong = list(judged.smallest)
        self.drawn = read.operations
        if self.strong and len(self.drawn) > _SHOWN_WHOLE:
            self.drawn = sorted(self.strong, key=lambda one: one.start)
            rest = len(read.operations) - len(self.drawn)
            self.notes.append(f"{plural(rest, 'other operation')} left out.")
        clients = [c for c in read.clients if any(o.client == c for o in self.drawn)]
        self.clients, hidden = selected(clients, _MOST_LANES)
        if hidden:
            self.notes.append(f"{plural(len(hidden), 'client')} left out.")
        self.lanes = self._laid_out()
        total = len(self.lanes.drawn)
        if self.lanes.level is None and total:
            self.notes.append(
                f"Words are left out: {plural(total, 'operation')}. Draw one key with "
                "key=, or fewer operations."
            )
        elif self.lanes.wordless:
            self.notes.append(
                f"{plural(self.lanes.wordless, 'bar')} had no room for words."
            )

    def _laid_out(self):
        """Return the first layout in which enough of the words have room."""
        shown = set(self.clients)
        drawn = [one for one in self.drawn if one.client in shown]
        allowed = 0.2 * len(drawn) if len(drawn) > _FEW else 0
        best = None
        for rows_of_time, level in self._ways(drawn):
            lanes = ClientLanes(
                self.read, self.clients, drawn, rows_of_time, level, self.strong
            )
            if lanes.height > _TALLEST:
                continue
            if lanes.wordless <= allowed:
                return lanes
            best = min(best or lanes, lanes, key=lambda each: each.wordless)
        if best is not None and best.wordless <= 0.5 * len(drawn):
            return best
        rows_of_time = self._rows(drawn, 1)
        return ClientLanes(
            self.read, self.clients, drawn, rows_of_time, None, self.strong
        )

    def _ways(self, drawn):
        """Yield (rows of the axis, length of words), the preferred layout first."""
        levels = (0, 1) if len(self.read.keys) < 2 else (0,)
        few = len(drawn) <= _FEW
        counts = range(1, _MOST_STRIPS + 1)
        moments = self._moments(drawn)
        if len(drawn) > 600 or not drawn:
            return
        for some in (levels, (2,) if len(levels) > 1 else ()):
            for count in counts:
                for level in some:
                    yield self._rows(drawn, count), level
                for level in some if few and len(moments) > count else ():
                    yield ranked_rows(moments, count), level
        for count in counts if not few else ():
            yield ranked_rows(moments, count), 0

    def _moments(self, drawn):
        ends = [self.read.last_s if one.end is None else one.end for one in drawn]
        return {*ends, *(one.start for one in drawn)}

    def _rows(self, drawn, count):
        moments = self._moments(drawn) or {0.0}
        self.start_s, self.last_s, self.stuck = min(moments), max(moments), ()
        clock = TimeAxis(self)
        begin_s = clock.zero_s + clock.limits[0] * clock.unit_s
        end_s = clock.zero_s + clock.limits[1] * clock.unit_s
        return clock_rows(clock, count, begin_s, end_s)

    def canvas(self, title):
        """Return the canvas."""
        read, lanes = self.read, self.lanes
        subtitle = " ".join([f"{read.headline().capitalize()}.", *self.notes])
        how, why = self._verdict()
        room = 0.06 + _LINE * (bool(how) + len(why)) + lanes.height
        canvas = Canvas(room, title=title, subtitle=subtitle, key=self._key())
        y = canvas.top + 0.06
        if how:
            color = _VERDICT[read.judged.how]
            write(canvas.page, MARGIN, y, how, size=_SAID, bold=True, color=color)
            y += _LINE
        for line in why:
            write(canvas.page, MARGIN, y, line, size=_SAID)
            y += _LINE
        lanes.draw(canvas.page, y - 0.06)
        if not lanes.drawn:
            words = {"size": 10, "color": MUTED, "align": "center"}
            middle = page_width() / 2, y + lanes.height / 2
            write(canvas.page, *middle, "no operations were made", **words)
        said = [f"History of {read.headline()}.", *self.notes, *read.sentences()]
        said += [read.lane_words(client) for client in self.clients[:_MOST_TOLD]]
        more = len(read.clients) - _MOST_TOLD
        said += [f"And {plural(more, 'more client')}."] if more > 0 else []
        return canvas.described(said)

    def _verdict(self):
        """Return the verdict in a few words, and the lines of its reason."""
        judged = self.read.judged
        if not judged.how:
            return "", []
        how = f"{judged.model}: {judged.how}" if judged.model else judged.how
        width = page_width() - 2 * MARGIN
        return capital(how), wrapped(capital(judged.why), width, _SAID, most=4)

    def _key(self):
        """Return the entries of the legend for the bars that are drawn."""
        lanes, key = self.lanes, key_of(self.lanes.drawn, rank_color(0))
        judged = self.read.judged
        when = "a linearization point, in that order"
        if not (judged.witness and judged.real_time):
            when = "its place in an order that explains the responses"
        if lanes.moments:
            key.append((None, f"{'number' if lanes.numbered else 'tick'}: {when}"))
        arrows = judged.real_time and answered_before(self.strong)
        if arrows:
            key.append((None, "arrow: response before the other's invocation"))
        if self.strong and len(self.strong) < len(self.drawn):
            key.append((None, "pale: the other operations"))
        return key
