"""`LogAnimation`: a replicated log per node, as a view of its own beside space-time.

node 0   leader, term 3     │1│1│3┊          filled: committed; dashed: not yet;
node 1   follower, term 3   │1│1│            the number is the entry's term
"""

from collections.abc import Sequence
from typing import NamedTuple

from distlab.show.player.node_animation import NodeAnimation
from distlab.show.player.svg import box, color_of, text
from distlab.show.reading.alt_text import plural

__all__ = ["LogAnimation", "NodeLog"]

_LEFT, _CELL, _ROW, _TOP = 225, 34, 44, 22
_MOST_DRAWN = 22


class NodeLog(NamedTuple):
    """The log of one node at one time.

    role: as the node has it, such as "leader". term: the node's own. terms: of its
    entries. base: the number of entries before these that a snapshot has replaced.
    commit: the highest index that the node knows to be committed.
    """

    role: str
    term: int
    terms: Sequence[int]
    base: int
    commit: int

    def words(self) -> str:
        """Return role and term, entries and commit index in one line."""
        entries = " ".join(map(str, self.terms)) or "none"
        return (
            f"{self.role} of term {self.term}, entries of terms {entries} from index "
            f"{self.base + 1} on, commit index {self.commit}"
        )


class LogAnimation(NodeAnimation):
    """The animation of a replay, with the nodes' logs after each of its steps.

    states: the logs of all nodes at the start, and after each step of the schedule;
        None for a node that is dead. The n-th step was played at the n-th second.
    logs: the same, for each frame.
    """

    VIEWS, OPENS = ("logs", "space"), "logs"

    def __init__(self, trace, title, states: Sequence[Sequence[NodeLog | None]]):
        super().__init__(trace, title)
        steps = plural(len(states) - 1, "step")  # a second each, which mean nothing
        self.subtitle = ", ".join([*self.subtitle.split(", ")[:-1], steps])
        taken = (0, *(int(frame.at_s) + 1 for frame in self.frames[1:-1]))
        self.logs = [states[number] for number in taken][: len(self.frames) - 1]
        self.logs.append(states[-1])

    def still(self, y: float) -> tuple[str, float]:
        """Return the logs at the end, drawn from `y` on, and the y below them."""
        drawn = [text("muted", 24, y, "The logs at the end", 13)]
        first = max(0, *(len(log.terms) + log.base for log in self.logs[-1] if log), 0)
        first = max(0, first - _MOST_DRAWN)
        for node, log in enumerate(self.logs[-1]):
            top = y + _TOP + node * _ROW
            leads = log is not None and log.role == "leader"
            look = "ink strong" if leads else "ink"
            words = f"{log.role}, term {log.term}" if log else "crashed"
            drawn.append(text(look, 24, top + 20, f"node {node}: {words}", 12))
            drawn += _cells(log, top, first) if log else []
        return "".join(drawn), y + _TOP + len(self.logs[-1]) * _ROW

    def first_shown(self) -> int:
        """Return the last step, where the logs are complete."""
        return len(self.frames) - 1

    def alt(self):
        """Return the text alternative of the animation."""
        ends = (
            f"Node {node} at the end: {log.words() if log else 'crashed'}."
            for node, log in enumerate(self.logs[-1])
        )
        return " ".join([super().alt(), *ends])


def _cells(log, top, first):
    """Return a cell with its term for each entry after index `first`."""
    cells = []
    for index, term in enumerate(log.terms, log.base + 1):
        x, color = _LEFT + (index - 1 - first) * _CELL, color_of(term)
        done = index <= log.commit
        if x >= _LEFT:
            look = f"f{color}" if done else f"pill s{color} late"
            cells.append(box(look, x + 2, top, _CELL - 4, 30, 4))
            number = f"num n{color}" if done else "ink"
            middle = x + _CELL / 2, top + 20, str(term)
            cells.append(text(number, *middle, 13, "middle"))
    return cells
