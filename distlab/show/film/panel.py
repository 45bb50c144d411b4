"""`Panel`: beside the stage, the bytes that each rank has sent, and who waited."""

from collections import defaultdict

from distlab.show.film.svg import box, color_of, paths, rect, text
from distlab.units import readable_bytes

__all__ = ["BAR_WIDTH", "PAGE_WIDTH", "Panel"]

PAGE_WIDTH, _LEFT = 1120, 640
BAR_WIDTH = 256
_BARS, _COUNTS = _LEFT + 84, _LEFT + 84 + BAR_WIDTH + 12
_FIRST_ROW, _LINE = 42, 17


class Panel:
    """The panel of one film. Scripts find its bars by `data-bar`, words by `data-sent`.

    pitches: the heights of a row of bytes and of a row of waiting.
    """

    def __init__(self, film):
        self.film = film
        rows, height = max(1, len(film.rows)), film.geometry.height
        self.pitches = min(30, 0.46 * height / rows), min(18, 0.23 * height / rows)

    def svg(self, number: int, clip: str) -> str:
        """Return the panel as a picture of its own, beside the stage or below it."""
        rows, (bars, waits) = max(1, len(self.film.rows)), self.pitches
        bottom = _FIRST_ROW + rows * (bars + waits) + 56 + 14 + 16 + 3 * _LINE
        box = f"{_LEFT - 14} 0 {PAGE_WIDTH - _LEFT + 14} {bottom:.0f}"
        drawn = self.drawn(number, clip)
        return f'<svg class="panel" viewBox="{box}" aria-hidden="true">{drawn}</svg>'

    def drawn(self, number: int, clip: str = "") -> str:
        """Return both parts as they stand at frame `number`.

        clip: the id of a clip path to draw all of the waiting behind, for a script.
        """
        return self._bars(self.film.frames[number].sent) + self._waiting(number, clip)

    def _bars(self, sent):
        film, pitch = self.film, self.pitches[0]
        scale = BAR_WIDTH / film.full_scale
        tall, size = min(16, 0.66 * pitch), min(12, 0.72 * pitch)
        drawn = [text("ink strong", _LEFT, 22, film.BARS, 14)]
        for row, rank in enumerate(film.rows):
            y = _FIRST_ROW + row * pitch
            wide, color = sent[rank] * scale, f"f{color_of(rank)}"
            words, line = film.amount(sent[rank]), y + tall - 3
            drawn += [
                text("muted", _LEFT, line, film.name(rank), size),
                box("track", _BARS, y, BAR_WIDTH, tall, 3),
                box(color, _BARS, y, wide, tall, 3, ' data-bar=""'),
                text("mono ink", _COUNTS, line, words, size, extra=' data-sent=""'),
            ]
        if film.bound:
            x = _BARS + film.bound[0] * scale
            bottom = _FIRST_ROW + len(film.rows) * pitch + 4
            words = f"{film.bound[1]}: {readable_bytes(film.bound[0])}"
            drawn.append(paths({"bound": [f"M{x:.1f} 34V{bottom:.1f}"]}))
            at = min(x, _BARS + BAR_WIDTH)
            drawn.append(text("muted", at, bottom + 16, words, 11, "middle"))
        return "".join(drawn)

    def _waiting(self, number, clip):
        """Draw who moved and who waited until a frame, on the run's clock."""
        film, pitch = self.film, self.pitches[1]
        top = _FIRST_ROW + len(film.rows) * self.pitches[0] + 56
        until_s = film.end_s if clip else film.frames[number].at_s
        bars = paths(self._spans(top + 14, until_s))
        if clip:
            bars = f'<g clip-path="url(#{clip})">{bars}</g>' + _clip(clip, top)
        size, bottom = min(11, 0.8 * pitch), top + 14 + len(film.rows) * pitch + 16
        names = [
            text("muted", _LEFT, top + 13 + (row + 0.66) * pitch, film.name(rank), size)
            for row, rank in enumerate(film.rows)
        ]
        return "".join(
            [
                text("ink strong", _LEFT, top, film.LANES, 14),
                *names,
                bars,
                *(
                    text("muted", _BARS, bottom + _LINE * line, words, 11)
                    for line, words in enumerate([*film.COLORS, self._more_colors()])
                ),
            ]
        )

    def _more_colors(self):
        """Say what the other colours mean that are there."""
        states = {span.state for span in self.film.spans}
        return " · ".join(told for state, told in self.film.MORE if state in states)

    def _spans(self, top, until_s):
        """Return the path data of each state's spans up to a moment."""
        film, pitch = self.film, self.pitches[1]
        rows = {rank: row for row, rank in enumerate(film.rows)}
        scale, groups = BAR_WIDTH / film.lasts_s, defaultdict(list)
        for span in film.spans:
            if span.rank not in rows or span.start >= until_s:
                continue
            x = _BARS + (span.start - film.begin_s) * scale
            wide = max(0.3, (min(span.end, until_s) - span.start) * scale)
            moving = span.state == "moving"
            name = f"f{color_of(span.rank)}" if moving else span.state
            y, tall = top + rows[span.rank] * pitch, 0.66 * pitch
            if span.state == "working":
                y, tall = y + 0.76 * tall, 0.24 * tall
            groups[name].append(rect(x, y, wide, tall))
        return groups


def _clip(name, top):
    opening = f'x="{_BARS}" y="{top:.1f}" width="{BAR_WIDTH}" height="999"'
    return f'<clipPath id="{name}"><rect {opening}/></clipPath>'
