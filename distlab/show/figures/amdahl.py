"""`amdahl`: the time of a job on 1, 2, 4, 8 workers, as Amdahl's law has it.

1 worker   ███░░░░░░░░░░░░░░░░░░   1.000   speed-up 1.00
2 workers  ███░░░░░░░░░░           0.625            1.60
4 workers  ███░░░░░                0.438            2.29
           serial, parallel
"""

from collections.abc import Sequence

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
from distlab.show.canvas.scale import readable_number
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import MUTED, rank_color, tint
from distlab.show.reading.alt_text import plural

__all__ = ["amdahl"]

_SIZE, _PITCH, _HALF, _HEAD = 10, 0.4, 0.12, 0.3
_MOST = 12


def amdahl(
    serial: float, workers: Sequence[int] = (1, 2, 4, 8), *, title: str = ""
) -> Picture:
    """Draw one bar per number of workers: the serial part stays, the rest shrinks.

    serial: the fraction of one worker's time that does not parallelize.

    Raises: InvalidArgument for a fraction outside 0 to 1, or numbers below 1.
    """
    if not 0 <= serial <= 1:
        raise InvalidArgument(f"a serial fraction is from 0 to 1, and got {serial!r}.")
    if not 0 < len(workers) <= _MOST or min(workers) < 1:
        raise InvalidArgument(
            f"workers is 1 to {_MOST} numbers from 1 on, and got {workers!r}. "
            "For example: amdahl(0.25, [1, 2, 4, 8])"
        )
    return Picture(lambda: _drawn(serial, workers, title))


def _drawn(serial, workers, title):
    dark, light = {"color": rank_color(0)}, {"color": tint(rank_color(0), 0.35)}
    key = [(dark, "serial"), (light, "parallel, shared by the workers")]
    above = 0.24 if is_narrow() else 0.0  # words stand above the bars
    pitch = _PITCH + above
    canvas = Canvas(_HEAD + pitch * len(workers), title=title, key=key)
    page, top = canvas.page, canvas.top + _HEAD
    names = [plural(n, "worker") for n in workers]
    left = MARGIN + max(width_of(name, _SIZE) for name in names) + 0.2
    speed_at = page_width() - MARGIN
    time_at = speed_at - width_of("speed-up", _SIZE) - 0.35
    right = time_at - width_of("0.000", _SIZE) - 0.35
    if above:
        left, right = MARGIN, speed_at
    write(page, time_at, top - 0.2, "time", size=_SIZE, color=MUTED, align="right")
    write(page, speed_at, top - 0.2, "speed-up", size=_SIZE, color=MUTED, align="right")
    serial_end, parallel, described = left + serial * (right - left), [], []
    for number, (n, name) in enumerate(zip(workers, names, strict=True)):
        y, time = top + (number + 1) * pitch - _PITCH / 2, serial + (1 - serial) / n
        write(page, MARGIN, y - above, name, size=_SIZE)
        end = left + time * (right - left)
        parallel.append((serial_end, y - _HALF, end, y + _HALF))
        row = f"{time:.3f}", f"{1 / time:.2f}"
        for x, words in zip((time_at, speed_at), row, strict=True):
            write(page, x, y - above, words, size=_SIZE, align="right")
        described.append(f"{name}: time {row[0]}, speed-up {row[1]}")
    bars(
        page,
        [(left, a, serial_end, b) for _, a, _, b in parallel],
        gid="serial",
        **dark,
    )
    bars(page, parallel, gid="parallel", **light)
    line = (serial_end, top - 0.05, serial_end, top + pitch * len(workers))
    strokes(page, [line], MUTED, dashed=True, zorder=6, gid="serial part")
    said = f"Serial fraction {readable_number(serial)}; one worker takes 1."
    return canvas.described([said, "; ".join(described) + "."])
