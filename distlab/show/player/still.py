"""Still pictures of an animation: one frame, the key frames, or a gif.

Text is drawn with the fonts of matplotlib, so that pictures look the same on a machine
that has no fonts.
"""

import re
from functools import lru_cache
from html import escape
from importlib.resources import files

from distlab.errors import ExtraMissing
from distlab.show.canvas.text import wrapped
from distlab.show.canvas.theme import named_colors
from distlab.show.player.painter import Painter
from distlab.show.player.panel import PAGE_WIDTH, PlayerPanel
from distlab.show.player.spacetime_still import (
    spacetime_lines,
    spacetime_window,
    steps_wide,
)
from distlab.show.player.svg import circle, paths, rank_style, text
from distlab.show.reading.alt_text import plural

__all__ = ["frame_svg", "gif", "key_frame_row", "key_frames", "pair_row", "png"]

_STRIP_COLUMNS, _MOST_KEYS = 3, 6
_GIF_COLORS, _PNG_COLORS = 64, 128
_GIF_PARTS, _MOVES_MS, _STANDS_MS = 9, 83, 630  # of the way to a frame, and at it


def frame_svg(animation, number: int, part: float = 1.0) -> str:
    """Return frame `number` as an SVG of its own, `part` of the way to it."""
    painter, frame = Painter(animation), animation.frames[number]
    lines = wrapped(frame.text, 10.6, 9.75, most=2)
    top, shown = 136, number if part == 1 else number - 1
    body = [text("ink strong", 28, 38, animation.title or "The run", 18)]
    body.append(text("muted", 28, 60, animation.subtitle, 12.5))
    body.append(text("ink strong", 28, 92, frame.title, 15))
    for row, line in enumerate(lines):
        body.append(text("muted", 28, 114 + 18 * row, line, 13))
    if animation.spacetime is not None:
        until, seen = max(0, number - 1 + part), steps_wide(animation.spacetime)
        first = min(
            max(0, until - 0.6 * seen), max(0, animation.spacetime.count - seen)
        )
        view = spacetime_window(animation.spacetime, first, seen, until)
        body.append(f'<g transform="translate(14 {top})">{view}</g>')
        bottom = top + animation.spacetime.bottom
    else:
        stage, panel = painter.stage(number, part), PlayerPanel(animation)
        body.append(f'<g transform="translate(14 {top})">{stage}</g>')
        body.append(f'<g transform="translate(0 {top})">{panel.drawn(shown)}</g>')
        bottom = top + max(painter.height, panel.height)
    body.append(_ruler(animation, number, part, bottom + 14))
    return _svg(PAGE_WIDTH, bottom + 54, "".join(body), animation.alt())


def key_frame_row(animation) -> str:
    """Return the key frames side by side as one SVG: three to a row, six at most.

    Of nodes it is their space-time diagram, step after step.
    """
    if animation.spacetime is not None:
        return _woven(animation)
    painter, keys = Painter(animation), key_frames(animation)
    columns = min(_STRIP_COLUMNS, len(keys))
    wide, tall = 620, painter.height + 86
    body = [text("ink strong", 24, 40, animation.title or "The run", 24)]
    body.append(text("muted", 24, 68, animation.subtitle, 17))
    for place, number in enumerate(keys):
        x, y = place % columns * wide, 92 + place // columns * tall
        words = animation.frames[number].title
        inside = text("ink strong", 24, 30, f"{number} · {words}", 18)
        inside += f'<g transform="translate(10 52)">{painter.stage(number)}</g>'
        body.append(f'<g transform="translate({x} {y})">{inside}</g>')
    rows = -(-len(keys) // columns)
    return _svg(wide * columns, 100 + rows * tall, "".join(body), animation.alt())


def _woven(animation):
    """Return the space-time diagram of nodes, in as many lines as it takes."""
    lines, shown = spacetime_lines(animation.spacetime)
    body = [text("ink strong", 24, 36, animation.title or "The run", 20)]
    body.append(text("muted", 24, 60, animation.subtitle, 13))
    y = 76
    for line in lines:
        body.append(f'<g transform="translate(14 {y})">{line}</g>')
        y += animation.spacetime.bottom + 14
    if animation.logs:
        drawn, y = animation.still(y + 24)
        body.append(drawn)
    hidden = animation.spacetime.count - shown
    if hidden > 0:
        words = f"and {plural(hidden, 'more frame')}, which the player shows"
        body.append(text("muted", 24, y + 10, words, 13))
        y += 20
    return _svg(PAGE_WIDTH, y + 12, "".join(body), animation.alt())


def pair_row(animations, names, number: int, verdict: str) -> str:
    """Return two animations side by side at a frame, or at their last, as one SVG."""
    tall = max(Painter(animation).height for animation in animations)
    lines = wrapped(verdict, 11, 12, most=3)
    body = [text("ink strong", 24, 36, animations[0].title or "Side by side", 20)]
    for row, line in enumerate(lines):
        body.append(text("ink", 24, 64 + 21 * row, line, 15))
    top = 76 + 21 * len(lines)
    for place, (animation, name) in enumerate(zip(animations, names, strict=True)):
        at = min(number, len(animation.frames) - 1)
        words = f"{name} · {at} · {animation.frames[at].title}"
        inside = text("ink strong", 24, 28, words, 16)
        inside += f'<g transform="translate(10 46)">{Painter(animation).stage(at)}</g>'
        body.append(f'<g transform="translate({620 * place} {top})">{inside}</g>')
    return _svg(1240, top + tall + 60, "".join(body), verdict)


def key_frames(animation) -> list[int]:
    """Return the numbers of the key frames: start, end, deaths, changes of phase."""
    last = len(animation.frames) - 1
    if last < _MOST_KEYS:
        return list(range(last + 1))
    titles = [frame.title.partition(",")[0] for frame in animation.frames]
    phases = [title.lstrip("0123456789 ") for title in titles]  # "3 of 10 maps done"
    node_steps = [k for k in range(2, last) if animation.frames[k].dead]
    node_steps += [k for k in range(2, last) if phases[k] != phases[k + 1]]
    chosen = dict.fromkeys([0, 1, last, *node_steps[:3]])
    even = [round(k * last / (_MOST_KEYS - 1)) for k in range(_MOST_KEYS)]
    for number in even:
        if len(chosen) < _MOST_KEYS:
            chosen.setdefault(number)
    return sorted(chosen)


def png(svg: str, zoom: float = 2.0) -> bytes:
    """Return an SVG as a PNG of few colours, `zoom` pixels to a unit."""
    from io import BytesIO

    target = BytesIO()
    picture = _raster(svg, zoom).quantize(_PNG_COLORS, method=2)  # the fast one
    picture.save(target, "PNG", compress_level=6)
    return target.getvalue()


def _raster(svg, zoom):
    from io import BytesIO

    with ExtraMissing.named("an image of a player"):
        import resvg_py
        from PIL import Image

    drawn = resvg_py.svg_to_bytes(
        svg_string=svg, zoom=zoom, font_files=_fonts(), skip_system_fonts=True
    )
    return Image.open(BytesIO(bytes(drawn))).convert("RGB")


def gif(animation) -> bytes:
    """Return the animation as a gif in a loop: each step moves, then stands still."""
    from io import BytesIO

    from PIL import Image

    images, waits, palette = [], [], None
    for number in range(len(animation.frames)):
        parts = [k / _GIF_PARTS for k in range(1, _GIF_PARTS)] if number else []
        for part in [*parts, 1.0]:
            picture = _raster(frame_svg(animation, number, part), 0.8)
            palette = palette or picture.quantize(_GIF_COLORS)
            images.append(picture.quantize(palette=palette, dither=Image.Dither.NONE))
            waits.append(_STANDS_MS if part == 1.0 else _MOVES_MS)
    waits[-1] *= 4
    target = BytesIO()
    images[0].save(
        target, "GIF", save_all=True, append_images=images[1:], duration=waits, loop=0
    )
    return target.getvalue()


@lru_cache(maxsize=1)
def _fonts():
    from matplotlib import get_data_path

    names = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono")
    return [f"{get_data_path()}/fonts/ttf/{name}.ttf" for name in names]


@lru_cache(maxsize=1)
def light_style() -> str:
    """Return the canvas's CSS with the colours of the light theme filled in."""
    style = files("distlab.show.player").joinpath("web", "stage.css").read_text("utf-8")
    colors = named_colors(dark=False)
    return re.sub(r"var\(--(\w+)\)", lambda m: colors[m[1]], style) + rank_style()


def _svg(wide, tall, body, alt):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {tall:g}" '
        f'width="{wide:g}" height="{tall:g}" role="img"><title>{escape(alt)}</title>'
        f"<style>{light_style()}</style>"
        f'<rect class="paper" width="{wide:g}" height="{tall:g}"/>{body}</svg>'
    )


def _ruler(animation, number, part, y):
    """Draw a progress bar with the position of a frame."""
    left, right, count = 28, 980, len(animation.frames) - 1
    at = left + (right - left) * max(0, number - 1 + part) / max(1, count)
    drawn = {"way": [f"M{left} {y:g}H{right}"], "done": [f"M{left} {y:g}H{at:.1f}"]}
    words = text("mono ink", right + 22, y + 5, f"{number} of {count}", 12)
    return paths(drawn) + circle("ink", at, y, 7) + words
