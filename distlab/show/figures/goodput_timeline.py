"""`goodput_timeline`: the time of a long job by activity, and its goodput.

20 spares    ████▏████▏██░░✗▒▒▒████▏████▏...     80.1 %
200 spares   ████▏████▏██░░✗▒████▏████▏███...    84.0 %
"""

from distlab.cost.long_run import Life
from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    is_narrow,
    page_width,
    strokes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import Ruler, Scale, readable_number
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import INK, MUTED, RANK_COLORS, WAITING, WARNING, tint
from distlab.units import readable_seconds

__all__ = ["goodput_timeline"]

_NAME, _SIZE, _WIDEST_NAME = 8.5, 8.25, 2.3
_PITCH, _HEAD, _FOOT = 0.62, 0.36, 0.36
_LOOKS = {
    "compute": ("work that was kept", RANK_COLORS[2]),
    "save": ("save", INK),
    "lost": ("lost", tint(WARNING, 0.55)),
    "detect": ("failed, not noticed yet", RANK_COLORS[1]),
    "wait": ("waits for a spare", WAITING),
    "restart": ("restart", RANK_COLORS[4]),
}


def goodput_timeline(lives, title: str = "") -> Picture:
    """Draw lives of jobs below each other on one axis of time, and their goodput.

    lives: name -> `Life`, as `simulate` returns it; up to 8.

    Raises: InvalidArgument for anything else.
    """
    if not hasattr(lives, "items") or not 0 < len(lives) <= 8:
        lives = {None: None}
    if not all(isinstance(life, Life) for life in lives.values()):
        raise InvalidArgument(
            "lives is a dict from a name to a Life, at most 8. For example: "
            'goodput_timeline({"sync": simulate(LongRun(mtbf_s=11000, interval_s=1600, '
            "save_s=120), 86400)})"
        )
    lives = {literal(name): life for name, life in lives.items()}
    return Picture(lambda: _drawn(lives, title))


def _drawn(lives, title):
    names = {name: fitted(name, _WIDEST_NAME, _NAME) for name in lives}
    left = MARGIN + max(width_of(name, _NAME) for name in names.values()) + 0.2
    right = page_width() - MARGIN - width_of("goodput", _SIZE) - 0.25
    above = 0.16 if is_narrow() else 0.0  # names and goodput stand above the bars
    if above:
        left, right = MARGIN, page_width() - MARGIN
    hours = max(life.seconds for life in lives.values()) / 3600
    scale = Scale([0.0, hours], log=False, from_zero=True)
    ruler = Ruler(scale, (left, right), readable_number)
    kinds = {span.kind for life in lives.values() for span in life.spans}
    looks = {kind: look for kind, look in _LOOKS.items() if kind in kinds}
    key = [({"color": color}, words) for words, color in looks.values()]
    canvas = Canvas(_HEAD + _PITCH * len(lives) + _FOOT, title=title, key=key)
    page, top = canvas.page, canvas.top + _HEAD
    write(
        page, page_width() - MARGIN, top - 0.16, "goodput", color=MUTED, align="right"
    )
    write(page, left, top - 0.16, "time, h", color=MUTED)
    strokes(page, [(MARGIN, top, page_width() - MARGIN, top)])
    ruler.draw(page, top, top + _PITCH * len(lives))
    for number, (name, life) in enumerate(lives.items()):
        y = top + (number + 0.5) * _PITCH
        write(page, MARGIN, y - above, names[name], size=_NAME)
        for kind, (_, color) in looks.items():
            spans = [span[1:] for span in life.spans if span.kind == kind]
            ends = [[ruler.inch(second / 3600) for second in span] for span in spans]
            boxes = [
                (begin, y - 0.16 + above, end, y + 0.16 + above / 2)
                for begin, end in ends
            ]
            if boxes:
                bars(page, boxes, color, gid=kind)
        words = f"{life.goodput:.1%}"
        how = {"mono": True, "bold": True, "align": "right"}
        write(page, page_width() - MARGIN, y - above, words, **how)
    return canvas.described(map(_described, lives, lives.values()))


def _described(name, life):
    parts = [
        f"{life.total(kind) / life.seconds:.1%} {words}"
        for kind, (words, _) in _LOOKS.items()
        if life.total(kind)
    ]
    return (
        f"{name}: {readable_seconds(life.seconds)}, {life.failures} failures, goodput "
        f"{life.goodput:.1%}; {', '.join(parts)}."
    )
