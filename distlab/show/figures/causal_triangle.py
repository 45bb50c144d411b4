"""`causal_triangle`: blocks of causal attention, coloured by the rank that has them.

contiguous              zigzag
0 ◣                     0 ◣                 a row: the queries of a chunk
0 ■◣                    1 ■◣                a column: the keys of a chunk
1 ■■◣                   1 ■■◣               a number in a block: the step of the
1 ■■■◣                  0 ■■■◣              ring in which its rank computes it
"""

from collections.abc import Callable

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    bars,
    is_narrow,
    page_width,
    shapes,
    write,
)
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.scale import readable_number
from distlab.show.canvas.text import literal
from distlab.show.canvas.theme import MUTED, PAPER, rank_color, tint

__all__ = ["causal_triangle"]

_NAME, _SMALL = 9.5, 8.25
_HEAD, _LABEL, _FOOT, _GAP, _TALL = 0.32, 0.25, 0.28, 0.4, 3.0  # inches
_EXAMPLE = 'causal_triangle({"in turn": lambda n, rank: (2 * rank, 2 * rank + 1)}, 4)'


def causal_triangle(layouts: dict[str, Callable], ranks: int, *, title="") -> Picture:
    """Draw for each layout the blocks of a causal mask by their rank and ring step.

    layouts: name -> a function of world size and rank that returns the rank's two of
        2n chunks of the sequence.
    Raises: InvalidArgument for chunks that are not each one rank's, or over 8 ranks.
    """
    if not layouts or type(ranks) is not int or not 0 < ranks <= 8:
        raise InvalidArgument(f"a layout is drawn for 1 to 8 ranks. {_EXAMPLE}")
    owners = {
        literal(name): _owners(name, layout, ranks) for name, layout in layouts.items()
    }
    return Picture(lambda: _drawn(owners, ranks, title))


def _owners(name, layout, ranks):
    """Return the rank of each chunk."""
    held = {chunk: rank for rank in range(ranks) for chunk in layout(ranks, rank)}
    if sorted(held) != [*range(2 * ranks)]:
        raise InvalidArgument(
            f"{name!r} gives the chunks {sorted(held)} to {ranks} ranks; each of 0 to "
            f"{2 * ranks - 1} belongs to one. For example: {_EXAMPLE}"
        )
    return [held[chunk] for chunk in range(2 * ranks)]


def _drawn(layouts, ranks, title):
    across = 1 if is_narrow() else min(2, len(layouts))
    room = (page_width() - 2 * MARGIN - _GAP * (across - 1)) / across
    side = min(room - _LABEL, _TALL) / (2 * ranks)
    tall = _HEAD + 2 * ranks * side + _FOOT
    lines = -(-len(layouts) // across)
    head = "Row: a chunk of queries, with its rank. Column: keys. Number: ring step."
    canvas, said = Canvas(tall * lines, title=title, subtitle=head), [head]
    for number, (name, owners) in enumerate(layouts.items()):
        left = MARGIN + _LABEL + number % across * (room + _GAP)
        top = canvas.top + number // across * tall + _HEAD
        write(canvas.page, left, top - 0.16, name, size=_NAME, bold=True)
        for query, rank in enumerate(owners):
            at = left - 0.12, top + (query + 0.5) * side
            write(canvas.page, *at, str(rank), size=_SMALL, color=MUTED, align="center")
            for key in range(query + 1):
                step = (rank - owners[key]) % ranks + 1
                corner = left + key * side, top + query * side
                _draw_block(canvas.page, corner, side, rank, step, whole=key < query)
        words = f"blocks by rank: {', '.join(_work(owners, ranks))}"
        at = left - 0.12, top + 2 * ranks * side + 0.13
        write(canvas.page, *at, words, size=_SMALL, color=MUTED)
        said.append(f"{name}: chunks of ranks {owners}; {words}.")
    return canvas.described(said)


def _draw_block(page, corner, side, rank, step, *, whole):
    """Draw a block of one chunk's queries by one chunk's keys; half on the diagonal."""
    x, y = corner
    color = tint(rank_color(rank), 0.75)
    if whole:
        box = (x, y, x + side, y + side)
        bars(page, [box], color, edge=PAPER, gid=f"rank {rank}")
        at, on = (x + side / 2, y + side / 2), rank_color(rank)
        write(page, *at, str(step), size=_SMALL, align="center", on=on)
    else:
        half = (x, y), (x + side, y + side), (x, y + side)
        shapes(page, [half], color, gid=f"rank {rank}")


def _work(owners, ranks):
    """Return each rank's blocks in words; one on the diagonal is a half."""
    work = [0.0] * ranks
    for query, rank in enumerate(owners):
        work[rank] += query + 0.5
    return [readable_number(each) for each in work]
