"""`quorums`: a write quorum and a read quorum of the same replicas, and their overlap.

write quorum ╭──────────────────╮
             │  0     1  ╭──────┼───────╮
             ╰───────────┼──────╯   2   │  read quorum
                         ╰──────────────╯
"""

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import MARGIN, Canvas, page_width, pill, points, write
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.theme import INK, PAPER, rank_color, tint
from distlab.show.reading.alt_text import listed, plural

__all__ = ["quorums"]

_MOST, _SIZE, _PITCH, _ROOM = 9, 11, 0.85, 1.95
_WRITE, _READ = rank_color(0), rank_color(5)


def quorums(replicas: int, *, writes: int, reads: int, title: str = "") -> Picture:
    """Draw the write quorum and the read quorum that share the fewest replicas.

    replicas: their number, N. writes, reads: the sizes of the quorums, W and R.

    Raises: InvalidArgument for more than 9 replicas, or quorums outside 1 to N.
    """
    if replicas not in range(1, _MOST + 1):
        raise InvalidArgument(f"replicas is 1 to {_MOST}, and got {replicas!r}.")
    for name, size in (("writes", writes), ("reads", reads)):
        if size not in range(1, replicas + 1):
            raise InvalidArgument(
                f"{name}={size!r}: of {replicas} replicas a quorum is 1 to {replicas}. "
                "For example: quorums(3, writes=2, reads=2)"
            )
    return Picture(lambda: _drawn(replicas, writes, reads, title))


def _drawn(replicas, writes, reads, title):
    both = list(range(replicas - reads, writes))
    verdict = f"R + W = {reads} + {writes} = {reads + writes}"
    if both:
        verdict += f" > N = {replicas}: every read quorum shares at least "
        verdict += plural(len(both), "replica") + " with every write quorum."
    else:
        verdict += f" is not more than N = {replicas}: a read quorum can miss a write."
    canvas = Canvas(_ROOM, title=title, subtitle=verdict)
    page, top = canvas.page, canvas.top + 0.2
    pitch = min(_PITCH, (page_width() - 2 * MARGIN) / replicas)
    left = (page_width() - pitch * replicas) / 2
    _surround(page, (left, top + 0.28), pitch, (0, writes), _WRITE)
    _surround(page, (left, top + 0.4), pitch, (replicas - reads, replicas), _READ)
    name = {"size": _SIZE, "bold": True}
    write(page, left, top + 0.1, f"write quorum, W = {writes}", color=_WRITE, **name)
    below = {"color": _READ, "align": "right", **name}
    right = page_width() - left
    write(page, right, top + 1.35, f"read quorum, R = {reads}", **below)
    for number in range(replicas):
        x, color = left + (number + 0.5) * pitch, INK if number in both else PAPER
        look = {
            "size": min(24, 50 * pitch),
            "marker": "o",
            "color": color,
            "gid": "replica",
        }
        points(page, [x], [top + 0.72], 0, **look)
        color = PAPER if number in both else INK
        words = {"size": _SIZE, "color": color, "align": "center", "bold": True}
        write(page, x, top + 0.72, str(number), **words)
    write(page, left, top + 1.6, f"replicas, N = {replicas}", size=_SIZE)
    said = (
        f"{plural(replicas, 'replica')}. Write quorum: {listed(range(writes), _MOST)}. "
        f"Read quorum: {listed(range(replicas - reads, replicas), _MOST)}. "
        f"In both: {listed(both, _MOST) or 'none'}. {verdict}"
    )
    return canvas.described([said])


def _surround(page, corner, pitch, replicas, color):
    """Draw a box around replicas, from a first up to another."""
    (left, top), (first, end) = corner, replicas
    box = (left + first * pitch + 0.06, top, left + end * pitch - 0.06, top + 0.75)
    pill(page, box, color, fill=tint(color, 0.22), alpha=0.75)
