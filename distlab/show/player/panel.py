"""`PlayerPanel`: the bytes that each rank has sent, and its waiting."""

from collections import defaultdict

from distlab.show.player.svg import box, color_of, paths, rect, text
from distlab.units import readable_bytes

__all__ = ["BARS_LEFT", "BAR_WIDTH", "PAGE_WIDTH", "PANEL_LEFT", "PlayerPanel"]

PAGE_WIDTH, _LEFT = 1120, 640
PANEL_LEFT = _LEFT - 14
BAR_WIDTH, BARS_LEFT = 256, _LEFT + 84
_COUNTS = BARS_LEFT + BAR_WIDTH + 12
_FIRST_ROW, _LINE = 42, 17


class PlayerPanel:
    """An animation's panel. Scripts find bars by `data-bar`, words by `data-sent`.

    A group "stretch" is scaled to the width of the page. pitches: the heights of a row
    of bytes and of a row of waiting.
    """

    def __init__(self, animation):
        self.animation = animation
        rows, height = max(1, len(animation.rows)), animation.geometry.height
        self.pitches = (
            min(24, max(15, 0.46 * height / rows)),
            min(18, max(13, 0.23 * height / rows)),
        )
        self.legend = [
            each for each in animation.legend() if each[0] in animation.STATES
        ]
        lines = _LINE * len(self.legend)
        self.height = _FIRST_ROW + rows * sum(self.pitches) + 92 + lines

    def svg(self, number: int, clip: str) -> str:
        """Return the panel as a picture of its own, beside the canvas or below it."""
        box = f"{PANEL_LEFT} 0 {PAGE_WIDTH - PANEL_LEFT} {self.height:.0f}"
        drawn = self.drawn(number, clip)
        return f'<svg class="panel" viewBox="{box}" aria-hidden="true">{drawn}</svg>'

    def drawn(self, number: int, clip: str = "") -> str:
        """Return both parts at frame `number`.

        clip: the id of a clip path in front of the whole run's waiting, for a script.
        """
        return self._bars(self.animation.frames[number].sent) + self._waiting(
            number, clip
        )

    def _bars(self, sent):
        animation, pitch = self.animation, self.pitches[0]
        scale = BAR_WIDTH / animation.full_scale
        tall, size = min(16, 0.66 * pitch), min(12, 0.72 * pitch)
        drawn, bars = [text("ink strong", _LEFT, 22, animation.BARS, 14)], []
        for row, rank in enumerate(animation.rows):
            y = _FIRST_ROW + row * pitch
            wide, color = sent[rank] * scale, f"f{color_of(rank)}"
            words, line = animation.amount(sent[rank]), y + tall - 3
            drawn += [
                text("muted", _LEFT, line, animation.name(rank), size),
                text("mono ink", _COUNTS, line, words, size, extra=' data-sent=""'),
            ]
            bars += [
                box("track", BARS_LEFT, y, BAR_WIDTH, tall, 3),
                box(color, BARS_LEFT, y, wide, tall, 3, ' data-bar=""'),
            ]
        if animation.bound:
            x = BARS_LEFT + animation.bound[0] * scale
            bottom = _FIRST_ROW + len(animation.rows) * pitch + 4
            words = f"{animation.bound[1]}: {readable_bytes(animation.bound[0])}"
            bars.append(paths({"bound": [f"M{x:.1f} 34V{bottom:.1f}"]}))
            drawn.append(text("muted", _COUNTS, bottom + 16, words, 11, "end"))
        return "".join([*drawn, _stretched("".join(bars))])

    def _waiting(self, number, clip):
        """Draw the spans of each rank up to a frame, on the run's clock."""
        animation, pitch = self.animation, self.pitches[1]
        top = _FIRST_ROW + len(animation.rows) * self.pitches[0] + 56
        until_s = animation.end_s if clip else animation.frames[number].at_s
        bars = paths(self._spans(top + 14, until_s))
        if clip:
            bars = f'<g clip-path="url(#{clip})">{bars}</g>' + _clip(clip, top)
        size, bottom = min(11, 0.8 * pitch), top + 14 + len(animation.rows) * pitch + 16
        names = [
            text(
                "muted",
                _LEFT,
                top + 13 + (row + 0.66) * pitch,
                animation.name(rank),
                size,
            )
            for row, rank in enumerate(animation.rows)
        ]
        heading = text("ink strong", _LEFT, top, animation.LANES, 14)
        for line, (state, words) in enumerate(self.legend):
            y = bottom + 6 + _LINE * line
            names.append(_swatch(state, y))
            names.append(text("muted", _LEFT + 22, y, words, 11))
        return "".join([heading, *names, _stretched(bars)])

    def _spans(self, top, until_s):
        """Return the path data of each state's spans up to a time."""
        animation, pitch = self.animation, self.pitches[1]
        rows = {rank: row for row, rank in enumerate(animation.rows)}
        scale, groups = BAR_WIDTH / animation.lasts_s, defaultdict(list)
        for span in animation.spans:
            if span.rank not in rows or span.start >= until_s:
                continue
            x = BARS_LEFT + (span.start - animation.begin_s) * scale
            wide = max(0.3, (min(span.end, until_s) - span.start) * scale)
            moving = span.state == "moving"
            name = f"f{color_of(span.rank)}" if moving else span.state
            y, tall = top + rows[span.rank] * pitch, 0.66 * pitch
            if span.state == "working":
                y, tall = y + 0.76 * tall, 0.24 * tall
            groups[name].append(rect(x, y, wide, tall))
        return groups


def _stretched(drawn):
    return f'<g class="stretch">{drawn}</g>'


def _swatch(state, y):
    """Draw a sample of a state's look, beside its meaning."""
    name, thin = "f0" if state == "moving" else state, state == "working"
    tall = 3 if thin else 10
    return paths({name: [rect(_LEFT, y + 1 - tall, 14, tall)]})


def _clip(name, top):
    opening = f'x="{BARS_LEFT}" y="{top:.1f}" width="{BAR_WIDTH}" height="999"'
    return f'<clipPath id="{name}"><rect {opening}/></clipPath>'
