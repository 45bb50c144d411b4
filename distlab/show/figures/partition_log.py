"""`partition_log`: the records of a log by offset, and where its readers are.

words    │ 0 the cat │ 1 the dog │ 2 a cat │
                     ▲ counter               ▲ archive
"""

from collections.abc import Mapping, Sequence
from typing import Any

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import MARGIN, Canvas, bars, page_width, points, write
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import fitted, literal, width_of
from distlab.show.canvas.theme import INK, MUTED, TRACK, WAITING, rank_color
from distlab.show.reading.alt_text import plural

__all__ = ["partition_log"]

_SIZE, _WIDEST, _MOST = 8.25, 1.5, 24
_HEAD, _BOX, _READER, _GAP = 0.34, 0.44, 0.21, 0.22


def partition_log(
    logs: Mapping[Any, Sequence],
    offsets: Mapping[str, Mapping[Any, int]],
    *,
    title: str = "",
) -> Picture:
    """Draw the partitions of a log, and the next offset of each consumer group.

    logs: partition -> its records from offset 0, at most 24.
    offsets: group -> {partition: the next offset that it reads}.

    Raises: InvalidArgument for more, or for an offset beyond the end of its partition.
    """
    fits = logs and all(len(records) <= _MOST for records in logs.values())
    at = [(p, next_) for of in offsets.values() for p, next_ in of.items()]
    if not fits or not all(p in logs and 0 <= n <= len(logs[p]) for p, n in at):
        raise InvalidArgument(
            f"partition_log draws partitions of up to {_MOST} records, and offsets in "
            'them. For example: partition_log({0: ["a", "b"]}, {"group": {0: 1}})'
        )
    return Picture(lambda: _drawn(logs, offsets, title))


def _drawn(logs, offsets, title):
    readers = {p: [(g, of[p]) for g, of in offsets.items() if p in of] for p in logs}
    room = sum(_HEAD + _BOX + _READER * len(of) + _GAP for of in readers.values())
    canvas = Canvas(room, title=title)
    page, y, said = canvas.page, canvas.top, []
    longest = max(map(len, logs.values()))
    width = min(_WIDEST, (page_width() - 2 * MARGIN) / max(1, longest))
    for partition, records in logs.items():
        words = literal(f"{partition}: {plural(len(records), 'record')}")
        write(page, MARGIN, y + 0.16, words, bold=True)
        y += _HEAD
        _draw_records(page, y, width, records)
        said.append(f"{words}.")
        y += _BOX
        for group, next_ in readers[partition]:
            number = [*offsets].index(group)
            x, color = MARGIN + next_ * width, rank_color(number)
            points(page, [x], [y + 0.1], number, size=6, marker="^", gid="offset")
            words = literal(f"{group}: next offset {next_}")
            right = x + 0.12 + width_of(words, _SIZE) > page_width() - MARGIN
            at, align = (x - 0.12, "right") if right else (x + 0.12, "left")
            write(page, at, y + 0.12, words, size=_SIZE, color=color, align=align)
            said.append(f"{words}, of {partition}.")
            y += _READER
        y += _GAP
    return canvas.described(said)


def _draw_records(page, y, width, records):
    for offset, record in enumerate(records):
        x = MARGIN + offset * width
        box = (x + 0.02, y, x + width - 0.02, y + _BOX)
        bars(page, [box], TRACK, edge=WAITING, gid="record")
        how = {"align": "center", "on": None}
        write(page, x + width / 2, y + 0.12, str(offset), color=MUTED, **how)
        words = fitted(literal(record), width - 0.1, _SIZE)
        write(page, x + width / 2, y + 0.31, words, size=_SIZE, color=INK, **how)
