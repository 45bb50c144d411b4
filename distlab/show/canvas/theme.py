"""Colours and markers: one of each per rank, in every picture."""

__all__ = [
    "DARK",
    "GRID",
    "INK",
    "KIND_COLORS",
    "MUTED",
    "PAPER",
    "RANK_COLORS",
    "RANK_MARKERS",
    "RIGHT",
    "TRACK",
    "WAITING",
    "WARNING",
    "named_colors",
    "rank_color",
    "rank_marker",
    "tint",
]

# Source: Okabe and Ito, "Color Universal Design" (2008); distinguishable with any of
# the common colour deficiencies. Left out: yellow, too pale, and black, the ink.
RANK_COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
RANK_MARKERS = ("o", "s", "^", "D", "v", "P", "X")

INK, MUTED, GRID, PAPER = "#1F2933", "#5F6B78", "#D5DBE1", "#FFFFFF"
WAITING, TRACK, WARNING = "#CFD7DF", "#EEF2F6", "#B42318"

# As far apart in lightness as ink and paper allow; browns of no rank, also for an eye
# that mixes up red and green. See `kinds`.
KIND_COLORS = ("#2A271B", "#574E3F", "#886C38", "#B8A15A", "#EADCB0")
RIGHT = "#00734F"  # the words of a successful verdict

# These colours in a dark theme; the colours of ranks are the same in both.
DARK = {
    INK: "#E8ECF0",
    MUTED: "#A3AFBB",
    GRID: "#414C57",
    PAPER: "#14181D",
    TRACK: "#232B33",
    WAITING: "#4C5864",
    WARNING: "#FF8E7F",
    RIGHT: "#35C08F",
    KIND_COLORS[0]: "#464130",
}


def named_colors(dark: bool) -> dict[str, str]:
    """Return the colours of a page's style, by their use."""
    names = {"ink": INK, "muted": MUTED, "line": GRID, "paper": PAPER, "track": TRACK}
    names |= {"wait": WAITING, "warn": WARNING, "right": RIGHT}
    colors = {name: DARK[color] if dark else color for name, color in names.items()}
    return colors | {"focus": RANK_COLORS[4 if dark else 0]}


def rank_color(rank: int) -> str:
    """Return the colour of a rank; from rank 6 on they repeat, and markers differ."""
    return RANK_COLORS[rank % len(RANK_COLORS)]


def rank_marker(rank: int) -> str:
    """Return the marker of a rank; 42 ranks differ from each other in it or colour."""
    return RANK_MARKERS[rank % len(RANK_MARKERS)]


def tint(color: str, share: float) -> str:
    """Return `share` of a colour mixed into the paper: 1 is the colour, 0 is white."""
    channels = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(
        f"{round(255 - share * (255 - channel)):02X}" for channel in channels
    )
