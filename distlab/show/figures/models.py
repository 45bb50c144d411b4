"""`models`: consistency models from strong to weak, and their availability.

              strict serializable
              ╱                 ╲
       linearizable         serializable
            │                    │              unavailable
       sequential        snapshot isolation  ─────────────────
            │                    │              available
          causal          read committed

Source: Bailis et al., "Highly Available Transactions: Virtues and Limitations", VLDB
2013, figure 2 and table 3; the single-object part as in Jepsen's map.
"""

from distlab.show.canvas.canvas import Canvas, inside, page_width, pill, strokes, write
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import width_of
from distlab.show.canvas.theme import INK, MUTED, rank_color, tint
from distlab.show.reading.alt_text import capital

__all__ = ["models"]

# model: centre in shares of the page, row, availability in a partition
_PLACES = {
    "strict serializable": (0.5, 0, "unavailable"),
    "linearizable": (0.27, 1, "unavailable"),
    "serializable": (0.82, 1, "unavailable"),
    "sequential": (0.27, 2, "unavailable"),
    "snapshot isolation": (0.82, 2, "unavailable"),
    "causal": (0.27, 3, "sticky"),
    "read committed": (0.82, 3, "available"),
    "read your writes": (0.1, 4, "sticky"),
    "monotonic reads": (0.29, 4, "available"),
    "monotonic writes": (0.485, 4, "available"),
    "writes follow reads": (0.695, 4, "available"),
    "convergence": (0.9, 4, "available"),
}
_IMPLIES = {
    "strict serializable": ["linearizable", "serializable"],
    "linearizable": ["sequential"],
    "serializable": ["snapshot isolation"],
    "sequential": ["causal"],
    "snapshot isolation": ["read committed"],
    "causal": [
        "read your writes",
        "monotonic reads",
        "monotonic writes",
        "writes follow reads",
    ],
}
_MEANS = {
    "unavailable": "unavailable: some calls wait or fail in a partition",
    "sticky": "sticky available: if a client stays with its replica",
    "available": "totally available",
}
_COLOR = {
    "unavailable": rank_color(5),
    "sticky": rank_color(1),
    "available": rank_color(2),
}
_SIZE, _ROW, _HALF, _TOP = 10.5, 0.72, 0.17, 0.3
_WIDE, _BELOW = 8.0, 0.42
_LOWEST = [name for name, (_, row, _) in _PLACES.items() if row == 4]


def models(*, title: str = "") -> Picture:
    """Draw the implications between consistency models, and their availability."""
    return Picture(lambda: _drawn(title))


def _drawn(title):
    key = [
        ({"color": tint(_COLOR[how], 0.25), "edge": _COLOR[how]}, words)
        for how, words in _MEANS.items()
    ]
    narrow = page_width() < _WIDE
    size, high = (8.5, _BELOW * 4) if narrow else (_SIZE, 0)
    canvas = Canvas(4 * _ROW + high + 2 * _TOP, title=title, key=key)
    page, lines = canvas.page, []

    def place(name):
        x, row, _ = _PLACES[name]
        y = canvas.top + _TOP + row * _ROW
        if narrow and row == 4:  # in a column, not in a row
            return 0.3 * page_width(), y + _BELOW * _LOWEST.index(name)
        return (0.3 if narrow and x < 0.5 else x) * page_width(), y

    for name, weaker in _IMPLIES.items():
        for other in weaker:
            (x, y), (u, v) = place(name), place(other)
            if narrow and other in _LOWEST:  # past those above it
                side, half = x - 0.78, width_of(name, size) / 2 + 0.1
                lines += [(x - half, y, side, y), (side, y, side, v), (side, v, u, v)]
            else:
                lines.append((x, y + _HALF, u, v - _HALF))
    strokes(page, lines, MUTED, width=1.2, gid="implies")
    for name, (_, _, how) in _PLACES.items():
        (x, y), half = place(name), width_of(name, size) / 2 + 0.1
        x = inside(x, half)
        box = (x - half, y - _HALF, x + half, y + _HALF)
        pill(page, box, _COLOR[how], fill=tint(_COLOR[how], 0.25))
        on = tint(_COLOR[how], 0.25)
        write(page, x, y, name, size=size, color=INK, align="center", on=on)
    said = [f"{a} implies {', '.join(b)}." for a, b in _IMPLIES.items()]
    for how, words in _MEANS.items():
        own = [name for name, (_, _, each) in _PLACES.items() if each == how]
        said.append(f"{capital(words)}: {', '.join(own)}.")
    return canvas.described(said)
