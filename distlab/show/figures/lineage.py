"""`lineage`: the dependencies of a data set, cut into stages, and their execution.

    ┌ stage 0 ─────┐      ┌ stage 1 ─────┐
    │ textFile     │      │ reduceByKey  │      ■ computed
    │  ■ ■ ■       │  ══▶ │  ■ ■         │      ▨ from a cache
    │  │ │ │       │      └──────────────┘      □ not needed
    │ map  ■ ■ ■   │
    └──────────────┘

Lines between squares are narrow dependencies, thick arrows wide ones. A join is one
box, though PySpark's and distlab's are made of six RDDs.
"""

from collections import Counter

from distlab.errors import InvalidArgument
from distlab.show.canvas.canvas import (
    MARGIN,
    Canvas,
    arrow,
    bars,
    is_narrow,
    page_width,
    pill,
    strokes,
    write,
)
from distlab.show.canvas.lineage_layout import StageLayout
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.text import fitted, literal
from distlab.show.canvas.theme import (
    GRID,
    INK,
    MUTED,
    PAPER,
    TRACK,
    WARNING,
    rank_color,
    tint,
)
from distlab.show.reading.alt_text import listed, plural
from distlab.trace import Lineage
from distlab.units import readable_seconds

__all__ = ["has_run", "headline", "lineage", "outcome", "sentences"]

_TOLD = 24
_IN_A_JOIN = ["union", "groupByKey", "groupByKey"]  # after one RDD for each side


def has_run(lineage) -> bool:
    """Return True if it is the lineage of an action, and not only of a plan."""
    return any(stage.attempts for stage in lineage.stages)


def headline(lineage) -> str:
    """Return data sets, stages and tasks in one line."""
    stages = lineage.stages
    parts = [plural(len(lineage.nodes), "RDD"), plural(len(stages), "stage")]
    if has_run(lineage):
        parts.append(f"{plural(sum(len(stage.ran) for stage in stages), 'task')} done")
        skipped = sum(stage.skipped for stage in stages)
        parts += [f"{plural(skipped, 'stage')} skipped"] if skipped else []
    return ", ".join(parts)


def outcome(stage, ran: bool) -> str:
    """Return the outcome of a stage: its tasks, attempts and time, or "skipped"."""
    if stage is None:
        return ""
    tasks, done = plural(stage.tasks, "task"), len(stage.ran)
    if not ran:
        return tasks
    if stage.skipped:
        return "skipped"
    words = f"{done} of {tasks}" if done < stage.tasks else tasks
    if stage.attempts > done:
        words += f", {plural(stage.attempts, 'attempt')}"
    return f"{words}, {readable_seconds(stage.seconds)}"


def sentences(lineage) -> list[str]:
    """Return a sentence on each data set's dependencies, and on each stage that ran."""
    said = [_node(node) for node in lineage.nodes[:_TOLD]]
    if len(lineage.nodes) > _TOLD:
        said.append(f"And {len(lineage.nodes) - _TOLD} more.")
    for stage in lineage.stages if has_run(lineage) else ():
        said.append(f"Stage {stage.id}: {outcome(stage, True)}.")
    return said


def _node(node):
    words = f"RDD {node.id}, {literal(node.name, 40)}"
    words += f" ({literal(node.label, 30)})" if node.label else ""
    parts = [f"{words}: {plural(node.partitions, 'partition')}"]
    if node.stages:
        numbers = " and ".join(map(str, node.stages))
        parts.append(f"stage{'s' * (len(node.stages) > 1)} {numbers}")
    if node.parents:
        parts.append(listed((f"{p.kind} from RDD {p.id}" for p in node.parents), 4))
    if node.cached:
        parts.append(f"cached in {node.cached}")
    ran = _which("computed", node.computed, node)
    return ", ".join(parts) + ran + _which("from a cache", node.reused, node) + "."


def _which(what, partitions, node):
    """Return words for the partitions of a data set that are `what`."""
    numbers = sorted(set(partitions))
    if not numbers:
        return ""
    if len(numbers) == node.partitions:
        return f"; {what}: all"
    noun = "partition" if len(numbers) == 1 else "partitions"
    return f"; {what}: {noun} {listed(numbers, 8)}"


_SIZE, _SMALL, _HEAD = 8.5, 8.25, 8.5
_SQUARE, _STEP = 0.13, 0.175  # of a partition, and from one to the next
_BOX, _GAP = 0.62, 0.24  # height of a data set, and between two of them
_TOP, _BOTTOM, _BETWEEN = 0.46, 0.14, 0.22  # of a stage around them, and between stages
_WIDEST, _APART, _INSET = 2.3, 0.5, 0.08
_RAN, _KEPT = rank_color(0), rank_color(2)
_STATES = {
    "computed": {"color": _RAN, "edge": INK},
    "twice": {"color": _RAN, "edge": WARNING, "hatch": "xxxx"},
    "reused": {"color": tint(_KEPT, 0.25), "edge": _KEPT, "hatch": "////"},
    "held": {"color": PAPER, "edge": _KEPT},
    "idle": {"color": PAPER, "edge": tint(MUTED, 0.6)},
}
_WORDS = {
    "computed": "partition, computed",
    "twice": "computed more than once",
    "reused": "taken from a cache",
    "held": "in a cache",
    "idle": "partition, not computed",
}


def lineage(data, title: str = "") -> Picture:
    """Draw data sets as boxes, their partitions as squares, stages as shaded regions.

    After an action it shows the execution: filled squares were computed, hatched ones
    taken from a cache, and a stage in dashes was skipped.

    data: a `Lineage`, or an object that has one: an RDD, or the report of an action.

    Raises: InvalidArgument if it has no lineage.
    """
    found = getattr(data, "lineage", data)
    found = found() if callable(found) else found
    if not isinstance(found, Lineage):
        raise InvalidArgument(
            "a lineage is drawn from an RDD or from the report of an action; this is "
            f"{type(data).__name__}. For example: lineage(rdd)"
        )
    if not found.nodes:
        raise InvalidArgument("this lineage is empty: there is nothing to draw.")
    return Picture(lambda: _Drawing(_joins_as_one(found)).canvas(title))


def _joins_as_one(lineage):
    """Return the lineage with each join as one node, its last, with both sides."""
    nodes = {node.id: node for node in lineage.nodes}
    for end in lineage.nodes:
        inner = [nodes[n] for n in range(end.id - 5, end.id) if n in nodes]
        if [node.name for node in inner] == [*[end.name] * 2, *_IN_A_JOIN]:
            here, there, union, grouped, _ = inner
            (shuffle,) = grouped.parents
            sides = [each.parents[0].id for each in (here, there)]
            aligned = zip(sides, union.parents, strict=True)
            narrow = [after._replace(id=side) for side, after in aligned]
            wide = [shuffle._replace(id=side) for side in sides]
            parents = tuple(dict.fromkeys(wide if shuffle.kind == "wide" else narrow))
            nodes[end.id] = end._replace(parents=parents)
            for node in inner:
                del nodes[node.id]
    return lineage._replace(nodes=tuple(nodes.values()))


class _Drawing:
    """One lineage on the page. Coordinates are inches."""

    def __init__(self, lineage):
        self.lineage, self.layout = lineage, StageLayout(lineage)
        self.stages = {stage.id: stage for stage in lineage.stages}
        members = self.layout.members
        self.shown = [(stage, node) for stage in members for node in members[stage]]
        self.ran = has_run(lineage)
        self.columns = self.layout.columns
        self.stacked = is_narrow() and len(self.columns) > 1
        if self.stacked:  # below each other; arrows between stages at the right
            self.columns = [[stage for column in self.columns for stage in column]]
        count = len(self.columns)
        room = page_width() - 2 * MARGIN - (0.4 if self.stacked else 0)
        self.apart = min(_APART, 0.2 * room / count)
        self.wide = min(_WIDEST, (room - self.apart * (count - 1)) / count)
        self.states = {node.id: _states(node, self.ran) for _, node in self.shown}

    def canvas(self, title):
        notes = []
        if self.layout.hidden:
            notes.append(f"{plural(self.layout.hidden, 'RDD')} left out.")
        tall = max(map(self._column_height, self.columns))
        subtitle = " ".join([f"{headline(self.lineage)}.", *notes])
        canvas = Canvas(tall + 0.3, title=title, subtitle=subtitle, key=self._key())
        self.page, self.top = canvas.page, canvas.top + 0.12
        self.boxes = {}  # (stage, id) -> (left, top, right, bottom)
        for column, numbers in enumerate(self.columns):
            y = self.top
            for number in numbers:
                self._draw_stage(column, number, y)
                y += self._stage_height(number) + _BETWEEN
        for stage, node in self.shown:
            self._draw_node(node, self.boxes[stage, node.id])
        for stage, node in self.shown:
            for parent in node.parents:
                self._join(stage, node, parent)
        said = [f"Lineage of {headline(self.lineage)}.", *notes]
        return canvas.described([*said, *sentences(self.lineage)])

    def _key(self):
        states = {state for some in self.states.values() for state in some}
        words = _WORDS if self.ran else _WORDS | {"idle": "partition"}
        key = [(_STATES[state], words[state]) for state in _STATES if state in states]
        kinds = {parent.kind for _, node in self.shown for parent in node.parents}
        if "narrow" in kinds:
            key.append(({"color": MUTED}, "thin: narrow"))
        if "wide" in kinds:
            key.append(({"color": INK}, "thick arrow: wide, a shuffle"))
        if any(node.cached for _, node in self.shown):
            key.append(({"color": PAPER, "edge": _KEPT}, "rim: cached"))
        if self.ran and any(stage.skipped for stage in self.lineage.stages):
            skipped = {"color": PAPER, "edge": MUTED, "dashed": True}
            key.append((skipped, "stage skipped: its output is there"))
        return key

    def _stage_height(self, number):
        count = len(self.layout.members[number])
        return _TOP + count * _BOX + max(0, count - 1) * _GAP + _BOTTOM

    def _column_height(self, numbers):
        heights = [self._stage_height(number) for number in numbers]
        return sum(heights) + _BETWEEN * max(0, len(heights) - 1)

    def _draw_stage(self, column, number, top):
        left = MARGIN + column * (self.wide + self.apart)
        right, bottom = left + self.wide, top + self._stage_height(number)
        stage = self.stages.get(number)
        skipped = self.ran and stage is not None and stage.skipped
        look = {"fill": PAPER, "dashed": True} if skipped else {"fill": TRACK}
        box, edge = (left, top, right, bottom), MUTED if skipped else GRID
        pill(self.page, box, edge, zorder=1, gid="stage", **look)
        name = f"stage {number}" if stage else "no stage yet"
        write(self.page, left + _INSET, top + 0.15, name, size=_HEAD, bold=True)
        words = fitted(outcome(stage, self.ran), self.wide - 2 * _INSET, _SMALL)
        write(self.page, left + _INSET, top + 0.31, words, size=_SMALL, color=MUTED)
        y = top + _TOP
        for node in self.layout.members[number]:
            box = left + _INSET, y, right - _INSET, y + _BOX
            self.boxes[number, node.id] = box
            y += _BOX + _GAP

    def _draw_node(self, node, box):
        left, top, right, _ = box
        edge = _KEPT if node.cached else tint(MUTED, 0.6)
        width = 1.8 if node.cached else 0.9
        pill(self.page, box, edge, width=width, zorder=2, gid="node")
        room = right - left - 2 * _INSET
        name = fitted(literal(node.name, 40), room, _SIZE, bold=True)
        write(self.page, left + _INSET, top + 0.14, name, size=_SIZE, bold=True)
        words = [f"RDD {node.id}"]
        words += [literal(node.label, 30)] if node.label else []
        words += [f"cached: {literal(node.cached, 30)}"] if node.cached else []
        line = fitted(" · ".join(words), room, _SMALL)
        write(self.page, left + _INSET, top + 0.3, line, size=_SMALL, color=MUTED)
        self._draw_squares(node, box)

    def _squares(self, node, box):
        """Return (x, y) of a data set's first square, and the number of squares."""
        left, top, right, _ = box
        most = int((right - left - 2 * _INSET + _STEP - _SQUARE) / _STEP)
        count = node.partitions if node.partitions <= most else max(0, most - 3)
        return left + _INSET, top + 0.41, count

    def _draw_squares(self, node, box):
        x, y, count = self._squares(node, box)
        states = self.states[node.id]
        for state, look in _STATES.items():
            boxes = [
                (x + at * _STEP, y, x + at * _STEP + _SQUARE, y + _SQUARE)
                for at in range(count)
                if states[at] == state
            ]
            if boxes:
                bars(self.page, boxes, gid=f"partition: {state}", zorder=4, **look)
        if count < node.partitions:
            words, x = f"of {node.partitions}", x + count * _STEP + 0.04
            write(self.page, x, y + _SQUARE / 2, words, size=_SMALL, color=MUTED)

    def _join(self, stage, node, parent):
        """Draw a dependency, if both ends are there."""
        wide = parent.kind == "wide"
        source = (self.layout.writer(parent) if wide else stage), parent.id
        target = stage, node.id
        if source not in self.boxes:
            return
        if wide:
            self._across(self.boxes[source], self.boxes[target], node, parent)
            return
        column = [each.id for each in self.layout.members[stage]]
        if column.index(node.id) != column.index(parent.id) + 1:
            self._around(self.boxes[source], self.boxes[target])
        elif not self._between_squares(stage, node, parent):
            left, _, right, low = self.boxes[source]
            x, high = (left + right) / 2, self.boxes[target][1]
            arrow(self.page, (x, low), (x, high), MUTED, gid="narrow")

    def _between_squares(self, stage, node, parent):
        """Draw lines between partitions; return False if not all have a square."""
        members = self.layout.members[stage]
        above = next(each for each in members if each.id == parent.id)
        box = self.boxes[stage, node.id]
        x0, y0, count0 = self._squares(above, self.boxes[stage, above.id])
        x1, _, count1 = self._squares(node, box)
        if (count0, count1) != (above.partitions, node.partitions):
            return False
        half = _SQUARE / 2
        lines = [
            (x0 + at * _STEP + half, y0 + _SQUARE, x1 + own * _STEP + half, box[1])
            for own, needed in enumerate(parent.needs)
            for at in needed
        ]
        strokes(self.page, lines, MUTED, width=0.9, gid="narrow", zorder=3)
        return True

    def _across(self, source, target, node, parent):
        """Draw a thick arrow to another column, at a height of its own on the box."""
        others = [each for each in node.parents if each.kind == "wide"]
        share = (others.index(parent) + 1) / (len(others) + 1)
        begin = source[2], source[1] + 0.5 * _BOX
        end = target[0], target[1] + share * _BOX
        if self.stacked:
            x0, y0, end = *begin, (target[2], end[1])
            begin = x0 + 0.18 + 0.1 * share, end[1]
            bend = [(x0, y0, begin[0], y0), (begin[0], y0, *begin)]
            strokes(self.page, bend, INK, width=2.2, gid="wide", zorder=4)
        arrow(self.page, begin, end, INK, width=2.2, gid="wide")

    def _around(self, source, target):
        """Draw a narrow dependency past the boxes between, at their left edge."""
        x, y0, y1 = source[0], source[1] + 0.5 * _BOX, target[1] + 0.5 * _BOX
        out = x - 0.04
        strokes(self.page, [(x, y0, out, y0), (out, y0, out, y1)], MUTED, gid="narrow")
        arrow(self.page, (out, y1), (x + 0.02, y1), MUTED, gid="narrow")


def _states(node, ran):
    """Return the state of each partition."""
    computed = Counter(node.computed)
    reused, held = set(node.reused), {partition for partition, _ in node.held}
    states = []
    for partition in range(node.partitions):
        if ran and computed[partition]:
            states.append("computed" if computed[partition] == 1 else "twice")
        elif ran and partition in reused:
            states.append("reused")
        else:
            states.append("held" if partition in held else "idle")
    return states
