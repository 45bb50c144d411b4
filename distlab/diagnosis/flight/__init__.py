"""The flight recorder's dumps of a job of torch.distributed, explained.

    print(explain("dumps/"))     # the skipped call, its place in the code, the waits

Called by `distlab explain`. Nothing here loads torch.
"""

from collections import Counter
from pathlib import Path

from distlab.diagnosis.flight.dumps import DumpsGraph
from distlab.diagnosis.flight.page import page
from distlab.diagnosis.flight.reading import RankDump, files_of, read
from distlab.diagnosis.flight.telling import first_line, tell
from distlab.diagnosis.graph import Fault
from distlab.diagnosis.words import ranks_in_words
from distlab.errors import InvalidArgument

__all__ = ["Explanation", "Fault", "explain"]

_HOUR_NS = 3600 * 10**9


class Explanation:
    """The diagnosis of a job from its dumps. faults: the cause first."""

    def __init__(self, job: DumpsGraph, notes: list[str]):
        self.job = job
        self.faults = job.faults()
        self.notes = notes
        self.verdict = first_line(job, self.faults[0] if self.faults else None)

    def __str__(self):
        return tell(self.job, self.faults, self.notes)

    def html(self) -> str:
        """Return a self-contained HTML page: the text, and lanes at the fault."""
        return page(self.job, self.faults, str(self))


def explain(place: str | Path) -> Explanation:
    """Explain the dumps in a folder, or those with a name prefix: "folder/prefix".

    Raises: InvalidArgument if there are none, or none that can be read.
    """
    files = files_of(Path(place))
    dumps, unreadable = read(files)
    worlds = Counter(dump.everyone for dump in dumps.values() if dump.everyone)
    for rank, dump in list(dumps.items()):
        if dump.everyone and dump.everyone != worlds.most_common(1)[0][0]:
            unreadable[rank] = f"{files[rank].name} is of a job with other ranks"
            del dumps[rank]
    if not dumps:
        raise InvalidArgument(f"no dump can be read: {'; '.join(unreadable.values())}")
    cut = frozenset(rank for rank, why in unreadable.items() if "is cut off" in why)
    job = DumpsGraph(dumps, dumps.keys() | unreadable.keys(), cut)
    return Explanation(job, _notes(job, unreadable))


def _notes(job, unreadable):
    """Return the gaps and doubts of these dumps, a sentence each."""
    dumps: dict[int, RankDump] = job.dumps
    notes = [f"Of rank {rank}: its file {why}." for rank, why in unreadable.items()]
    if lost := [r for r in job.everyone if r not in dumps and r not in unreadable]:
        notes.append(f"There is no file of {ranks_in_words(lost)}.")
    newest = {r: dump.last.since_ns for r, dump in dumps.items() if dump.last}
    latest = max(newest.values(), default=0)
    if old := [rank for rank, at in newest.items() if latest - at > _HOUR_NS]:
        notes.append(
            f"{ranks_in_words(old).capitalize()} called nothing in the last hour of "
            "the others: are these files of an earlier job?"
        )
    if not newest:
        notes.append("No rank recorded a call. TORCH_FR_BUFFER_SIZE=2000 records them.")
    stacks = {dump.last.entry.stack for dump in dumps.values() if dump.last}
    files = {Path(file) for stack in stacks for file, *_ in stack}
    files = {file for file in files if file.is_file()}
    if new := sorted(f.name for f in files if f.stat().st_mtime_ns > latest):
        said = f"{', '.join(new)} changed after the last call"
        notes.append(f"{said}: the lines of source are today's.")
    for group in job.groups:
        if gone := [r for r in job.members(group) if job.forgotten(group, r)]:
            notes.append(
                f"{ranks_in_words(gone).capitalize()} overwrote all calls in group "
                f"{group.name}; a larger TORCH_FR_BUFFER_SIZE keeps more."
            )
    if any(dump.unpaired for dump in dumps.values()):
        notes.append(
            "TorchComms names no peers of sends and receives: they are left out."
        )
    if any(dump.gloo and not dump.torchcomms for dump in dumps.values()):
        notes.append(
            "gloo's dumps have no sends and receives, don't list the members of "
            "subgroups (here: who used it), and show a call that failed as finished."
        )
    return notes
