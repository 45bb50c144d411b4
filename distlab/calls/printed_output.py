"""The output of ranks, or workers: shown line by line as it arrives, and kept."""

import sys
from collections.abc import Sequence

from distlab.calls.progress import Progress

__all__ = ["Console"]

_SHOWN_LINES = 500
_KEPT_CHARACTERS = 2**26


class Console:
    """The ranks' printed lines; unless `quiet`, the first of them appear in the cell.

    A cell that has to show a million lines freezes the browser, so only the first 500
    are shown; up to 64 million characters per rank are kept.

    who: the name of the printing processes, such as "rank".
    where: the name of each one's node, if they run on several.
    """

    def __init__(
        self,
        world_size: int,
        quiet: bool,
        who: str = "rank",
        where: Sequence[str] = (),
    ):
        self._quiet = quiet
        on = [f" on {node}" for node in where] or [""] * world_size
        self._names = [f"{who} {rank}{on[rank]}" for rank in range(world_size)]
        self._kept = [[] for _ in range(world_size)]
        self._size = [0] * world_size
        self._shown = self._hidden = 0

    def add(self, rank: int, text: str) -> None:
        """Add whole lines that `rank` printed."""
        room = _KEPT_CHARACTERS - self._size[rank]
        if room > 0:
            self._kept[rank].append(text[:room])
            if len(text) >= room:
                self._kept[rank].append("\n(more was printed than is kept)\n")
        self._size[rank] += len(text)
        if not self._quiet:
            self._show(rank, text)

    def _show(self, rank, text):
        lines = text.split("\n")[:-1]
        visible = lines[: _SHOWN_LINES - self._shown]
        self._shown += len(visible)
        self._hidden += len(lines) - len(visible)
        if visible:
            Progress.make_room()
            sys.stdout.write(
                "".join(f"[{self._names[rank]}] {line}\n" for line in visible)
            )
            sys.stdout.flush()

    def close(self) -> None:
        """Print the number of lines that were not shown, if any."""
        if self._hidden:
            print(f"(and {self._hidden:,} more lines, kept in the report's output)")

    def output(self) -> list[str]:
        """Return the output of each rank, one string per rank."""
        return ["".join(pieces) for pieces in self._kept]
