"""`shards`: the shards of parameters, gradients and optimizer state of each rank.

              parameters  gradients   optimizer state
stage 1   0   ▓▓▓▓▓▓▓▓▓   ▓▓▓▓▓▓▓▓▓   ▓▓▓·········        a rank's row is filled
          1   ▓▓▓▓▓▓▓▓▓   ▓▓▓▓▓▓▓▓▓   ···▓▓▓······        where it holds something

Source: the shape is that of figure 1 in Rajbhandari et al., "ZeRO" (2020).
"""

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    is_narrow,
    page_width,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import readable_number
from distlab.show.canvas.text import literal, width_of, wrapped
from distlab.show.canvas.theme import MUTED, PAPER, TRACK, rank_color

__all__ = ["shards"]

_NAME, _SIZE = 9, 8.25
_ROW, _APART, _BETWEEN, _HEAD = 0.13, 0.2, 0.25, 0.3  # inches
_EXAMPLE = 'shards({"ZeRO 1": ["state"]}, {"parameters": 4, "state": 8}, ranks=4)'


def shards(layouts, kinds, *, ranks: int = 4, title: str = "", unit="B") -> Picture:
    """Draw for each layout the shards that every rank holds, kind by kind, to scale.

    layouts: name -> the kinds that are sharded, of which rank r holds the r-th shard;
        of the others every rank holds all. kinds: name -> its size, such as the bytes
        for each parameter. unit: of sizes, which stand at the right for one rank.

    Raises: InvalidArgument for a kind without a size, or more than 8 ranks.
    """
    sizes = {literal(name): float(size) for name, size in dict(kinds).items()}
    cut = {literal(k): [literal(kind) for kind in v] for k, v in dict(layouts).items()}
    unknown = [kind for own in cut.values() for kind in own if kind not in sizes]
    if not cut or unknown or not 0 < ranks <= 8 or min(sizes.values(), default=0) <= 0:
        what = f"{unknown[0]!r} has no size" if unknown else "there is nothing to draw"
        raise InvalidArgument(f"{what}. For example: {_EXAMPLE}")
    return Picture(lambda: _drawn(cut, sizes, ranks, title, unit))


def _drawn(cut, sizes, ranks, title, unit):
    left = MARGIN + max(width_of(name, _NAME) for name in cut) + 0.4
    end, muted = page_width() - MARGIN, {"size": _SIZE, "color": MUTED}
    right, above = end - 1.05, 0.2 if is_narrow() else 0.0  # words above the rows
    if above:
        left, right = MARGIN + 0.25, end
    scale = (right - left - _BETWEEN * (len(sizes) - 1)) / sum(sizes.values())
    names = {kind: f"{kind}, {size:g}" for kind, size in sizes.items()}
    beside = all(
        width_of(names[kind], _SIZE) < size * scale + _BETWEEN - 0.05
        for kind, size in sizes.items()
    )
    listed = [] if beside else wrapped(_from_left(names), end - MARGIN, _SIZE)
    tall, head = ranks * _ROW + _APART + above, _HEAD + 0.17 * len(listed)
    canvas = Canvas(head + tall * len(cut), title=title)
    page, said = canvas.page, []
    write(page, end, canvas.top + 0.12, f"{unit} on a rank", **muted, align="right")
    for line, words in enumerate(listed):
        write(page, MARGIN, canvas.top + 0.3 + 0.17 * line, words, **muted)
    for number, (name, own) in enumerate(cut.items()):
        top, x = canvas.top + head + number * tall + above, left
        middle = top - 0.12 if above else top + ranks * _ROW / 2
        write(page, MARGIN, middle, name, size=_NAME)
        for rank in range(ranks):
            at = left - 0.14, top + (rank + 0.5) * _ROW
            write(page, *at, str(rank), **muted, align="center")
        for kind, size in sizes.items():
            box = (x, top, x + size * scale, top + ranks * _ROW)
            _draw(page, box, ranks, kind in own)
            if beside and not number:
                write(page, x, canvas.top + 0.12, names[kind], **muted)
            x += size * scale + _BETWEEN
        held = sum(size / ranks if k in own else size for k, size in sizes.items())
        words = readable_number(held)
        write(page, end, middle, words, size=_NAME, mono=True, align="right")
        parts = f"{' and '.join(own) or 'nothing'} sharded"
        said.append(f"{name}: {parts}, a rank holds {words} {unit}.")
    return canvas.described([f"On {ranks} ranks.", *said])


def _from_left(names):
    return f"from left: {'; '.join(names.values())}"


def _draw(page, box, ranks, sharded):
    """Draw a row for each rank; all of it is filled, or the rank's own shard."""
    left, top, right, bottom = box
    row, part = (bottom - top) / ranks, (right - left) / ranks
    for rank in range(ranks):
        y = top + rank * row
        bars(page, [(left, y, right, y + row)], TRACK, edge=PAPER, gid="row")
        begin = left + rank * part if sharded else left
        end = begin + part if sharded else right
        mine = (begin, y, end, y + row)
        bars(page, [mine], rank_color(rank), edge=PAPER, gid=f"rank {rank}")
