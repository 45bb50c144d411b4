"""The flight recorder's dumps of a job of torch.distributed, explained.

    print(explain("dumps/"))         # who skipped what, where, and who waits for whom

Called by `distlab explain`. Nothing here loads torch.
"""

from pathlib import Path

from distlab.errors import InvalidArgument
from distlab.flight.matching import Fault, Job
from distlab.flight.page import page
from distlab.flight.reading import RankDump, files_of, read
from distlab.flight.telling import ranks_in_words, tell, verdict

__all__ = ["Explanation", "Fault", "explain"]

_DAY_NS = 24 * 3600 * 10**9


class Explanation:
    """What the dumps of a job tell: `faults`, the cause first; as text its words."""

    def __init__(self, job: Job, notes: list[str]):
        self.job = job
        self.faults = job.faults()
        self.notes = notes
        self.verdict = verdict(job, self.faults[0] if self.faults else None)

    def __str__(self):
        return tell(self.job, self.faults, self.notes)

    def html(self) -> str:
        """Return a page that needs nothing else: the words, and lanes at the fault."""
        return page(self.job, self.faults, str(self))


def explain(place: str | Path) -> Explanation:
    """Read the dumps in a folder, or of those in it that begin as "folder/prefix".

    Raises: InvalidArgument if there are none, or none that can be read.
    """
    dumps, unreadable = read(files_of(Path(place)))
    if not dumps:
        raise InvalidArgument(f"no dump can be read: {'; '.join(unreadable.values())}")
    job = Job(dumps, dumps.keys() | unreadable.keys())
    return Explanation(job, _notes(job, unreadable))


def _notes(job, unreadable):
    """Return, each in a sentence, what cannot be known from these dumps."""
    dumps: dict[int, RankDump] = job.dumps
    notes = [f"Of rank {rank}: its file {why}." for rank, why in unreadable.items()]
    if lost := [r for r in job.everyone if r not in dumps and r not in unreadable]:
        notes.append(f"There is no file of {ranks_in_words(lost)}.")
    versions = {dump.version for dump in dumps.values()}
    if other := sorted(v for v in versions if not v.startswith("2.")):
        notes.append(f"The format is {', '.join(other)}; it was read as 2.10.")
    newest = {r: dump.last.since_ns for r, dump in dumps.items() if dump.last}
    latest = max(newest.values(), default=0)
    if old := [rank for rank, at in newest.items() if latest - at > _DAY_NS]:
        notes.append(
            f"{ranks_in_words(old).capitalize()} stopped more than a day before the "
            "others: are these files of an earlier job?"
        )
    if not newest:
        notes.append("No rank recorded a call. TORCH_FR_BUFFER_SIZE=2000 records them.")
    for group in job.groups:
        if gone := [r for r in job.members(group) if job.forgotten(group, r)]:
            notes.append(
                f"{ranks_in_words(gone).capitalize()} overwrote all calls in group "
                f"{group.name}; a larger TORCH_FR_BUFFER_SIZE keeps more."
            )
    if any(dump.gloo for dump in dumps.values()):
        notes.append(
            "gloo's dumps have no sends and receives, don't list the members of "
            "subgroups (here: who used it), and show a call that failed as finished."
        )
    return notes
