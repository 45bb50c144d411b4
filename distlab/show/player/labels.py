"""Placement of the words on arrows: near the middle, clear of each other and lines."""

from collections import defaultdict

__all__ = ["Labels"]

_ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8)
_CELL = 50.0


class Labels:
    """A plane on which words are placed one after another. Boxes are (x0, y0, x1, y1).

    tall: of a line of words. lines: y of the lines that words should keep off.
    ends: least and largest x of the plane.
    """

    def __init__(self, tall: float, lines: list[float], ends: tuple[float, float]):
        self.tall, self.lines, self.ends = tall, lines, ends
        self.boxes, self.arrows = defaultdict(list), defaultdict(list)

    def avoid(self, box) -> None:
        """Keep all later words out of a box."""
        for cell in _cells(box):
            self.boxes[cell].append(box)

    def cross(self, arrow) -> None:
        """Add a cost to words that lie on an arrow (x0, y0, x1, y1)."""
        (x0, y0), (x1, y1) = sorted((arrow[:2], arrow[2:]))
        pieces = 1 + int((x1 - x0) // _CELL + abs(y1 - y0) // _CELL)
        dx, dy = (x1 - x0) / pieces, (y1 - y0) / pieces
        for k in range(pieces):
            low, high = sorted((y0 + k * dy, y0 + (k + 1) * dy))
            box = (x0 + k * dx - 4, low - 3, x0 + (k + 1) * dx + 4, high + 3)
            for cell in _cells(box):
                self.arrows[cell].append(arrow)

    def beside(self, arrow, wide: float) -> tuple[float, float] | None:
        """Return the middle of words laid beside an arrow, None if there is no room.

        arrow: as straight pieces, one after another.
        """
        places = []
        for part in _ALONG:
            number = min(int(part * len(arrow)), len(arrow) - 1)
            x0, y0, x1, y1 = arrow[number]
            slope = abs(y1 - y0) / max(abs(x1 - x0), 1e-6)
            over = slope * wide / 2 + self.tall / 2 + 1
            aside = self.tall / 2 / max(slope, 1e-6) + wide / 2 + 3
            shift = (0, over) if over < aside else (aside, 0)
            within = part * len(arrow) - number
            x, y = x0 + within * (x1 - x0), y0 + within * (y1 - y0)
            for sign in (-1, 1):
                at = x + sign * shift[0], y + sign * shift[1]
                places.append((abs(part - 0.5), at))
        return self._best(places, wide, arrow)

    def near(self, x: float, y: float, wide: float) -> tuple[float, float] | None:
        """Return the middle of words laid at a point on a line, or None."""
        up, side = self.tall / 2 + 6, wide / 2 - 4
        around = [(side, -up), (side, up), (-side, -up), (-side, up), (0, -up), (0, up)]
        around += [(side, -2 * up), (side, 2 * up)]
        places = [(0.1 * k, (x + dx, y + dy)) for k, (dx, dy) in enumerate(around)]
        return self._best(places, wide, ())

    def _best(self, places, wide, own):
        """Return the position of least cost, and keep later words out of it."""
        costs = []
        for cost, (x, y) in places:
            box = (x - wide / 2, y - self.tall / 2, x + wide / 2, y + self.tall / 2)
            if self.ends[0] <= box[0] and box[2] <= self.ends[1]:
                cost += 3 * sum(box[1] < line < box[3] for line in self.lines)
                costs.append((cost, (x, y), box))
        best = None
        for cost, at, box in sorted(costs):
            if best is not None and cost >= best[0]:
                break  # arrows that it crosses only add to its cost
            if not self._taken(box):
                cost += self._crossed(box, own)
                best = min(best or (cost, at, box), (cost, at, box))
        if best is None:
            return None
        self.avoid(best[2])
        return best[1]

    def _taken(self, box):
        wider = box[0] - 3, box[1], box[2] + 3, box[3]
        return any(
            box[0] < other[2] + 3 and other[0] < box[2] + 3
            and box[1] < other[3] and other[1] < box[3]
            for cell in _cells(wider)
            for other in self.boxes[cell]
        )  # fmt: skip

    def _crossed(self, box, own):
        x0, y0, x1, y1 = box
        wider = x0 - 4, y0 - 3, x1 + 4, y1 + 3
        near = {arrow for cell in _cells(box) for arrow in self.arrows[cell]}
        return sum(_meets(arrow, wider) for arrow in near.difference(own))


def _cells(box):
    """Return the squares of the plane that a box lies on."""
    x0, y0, x1, y1 = (int(edge // _CELL) for edge in box)
    return [(x, y) for x in range(x0, x1 + 1) for y in range(y0, y1 + 1)]


def _meets(arrow, box):
    """Return True if a straight line passes through a box."""
    x0, y0, x1, y1 = arrow
    if max(x0, x1) < box[0] or min(x0, x1) > box[2]:
        return False
    if max(y0, y1) < box[1] or min(y0, y1) > box[3]:
        return False
    first, last = 0.0, 1.0
    for begin, end, low, high in ((x0, x1, box[0], box[2]), (y0, y1, box[1], box[3])):
        if abs(end - begin) < 1e-9:
            if not low <= begin <= high:
                return False
            continue
        a, b = sorted(((low - begin) / (end - begin), (high - begin) / (end - begin)))
        first, last = max(first, a), min(last, b)
    return first <= last
