"""Ranks that a script starts itself, as the launcher finds them: in files of a folder.

    3-0.notes       what the first world of three ranks notes
    3-0-2.stacks    where its rank 2 writes its stacks
    3-0-2.end       how that rank ended

`self_started_rank` writes them.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from distlab.patience import patience
from distlab.processes import Ended, FrameReceived
from distlab.processes.child_processes import started_at
from distlab.processes.output import Stack, ask_for_stacks
from distlab.recorder import SharedTrace

__all__ = ["SelfStarted", "new_worlds"]

_GONE = "ended at once: it was killed, crashed, or called os._exit"


def new_worlds(folder: str, known: Iterable[str]) -> list["SelfStarted"]:
    """Return the worlds of which a rank has begun since."""
    found = {path.stem: path for path in Path(folder).glob("*.notes")}
    return [SelfStarted(found[name]) for name in sorted(found.keys() - set(known))]


class SelfStarted:
    """The ranks of one world, with what a call needs of `Processes`, and their notes.

    name: "3-0" for the first world of three ranks. alive: those that have not ended.
    """

    def __init__(self, notes: Path):
        self.name = notes.stem
        self._place = str(notes.with_suffix(""))
        world_size = int(self.name.partition("-")[0])
        file = os.open(notes, os.O_RDWR)
        self.board = SharedTrace(world_size, file)
        os.close(file)
        self.alive = set(range(world_size))

    def poll(self, timeout_s: float) -> list[FrameReceived | Ended]:
        """Return the ends of ranks since the last call, at once."""
        happened = []
        for rank in sorted(self.alive):
            pid = self.board.pid(rank)  # 0 until it is known
            gone = pid and not started_at(pid)
            end = Path(f"{self._place}-{rank}.end")
            if end.exists():
                happened.append(FrameReceived(rank, bytearray(end.read_bytes())))
            elif gone:
                happened.append(Ended(rank, 1, f"rank {rank} {_GONE}"))
            else:
                continue
            self.alive.discard(rank)
        return happened

    def flush(self, rank: int) -> str:
        """Return "": its output comes with that of the process that started it."""
        return ""

    def stacks(self, ranks: Iterable[int], wait_s: float = 0.2) -> dict[int, Stack]:
        """Return the main thread's stack of each rank, as `Processes` does."""
        pids = {rank: self.board.pid(rank) for rank in self.alive.intersection(ranks)}
        asked = {r: (p, f"{self._place}-{r}.stacks") for r, p in pids.items() if p}
        return ask_for_stacks(asked, patience(wait_s))
