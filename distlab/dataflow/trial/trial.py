"""`Trial`: have jobs run by a Python of their own, and read what it saw."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from distlab.calls.travel import pack_functions
from distlab.cells import in_cells
from distlab.dataflow.trial.plain import value_of
from distlab.processes.apart import ask

__all__ = ["Failed", "Plan", "Trial", "Tried"]

_OWNER = "distlab.dataflow.trial.owner"


@dataclass(frozen=True)
class Plan:
    """One job of a trial.

    combiner, partitioner: whether the job is given them. regrouped: whether the
    combiner is called on small groups, and then on what came of them.
    kills: (worker, task). trouble: (kind, name, line), see `guard.Trouble`.
    """

    workers: int = 2
    reducers: int = 2
    split_bytes: int = 1000
    combiner: bool = False
    regrouped: bool = False
    partitioner: bool = False
    kills: tuple = ()
    trouble: tuple = ()


class Tried(NamedTuple):
    """What was seen of one job.

    parts: (key, value) pairs by partition. shuffled: bytes from each map task to each
    reducer. events: (kind, worker, label) of the trace, in order.
    """

    parts: list
    shuffled: list
    shuffled_records: int
    mapped_records: int
    skipped_records: int
    map_tasks: int
    events: list

    @property
    def pairs(self) -> list:
        """All pairs, partition by partition."""
        return [pair for part in self.parts for pair in part]

    def labels(self, kind: str) -> list[str]:
        """Return the labels of the trace's events of one kind."""
        return [label for of, _, label in self.events if of == kind]


class Failed(NamedTuple):
    """A job that failed, in words, and what raised: the kind and words of it.

    task: such as "map 3", "fitting" or "partitioning". plan: which plan's job it was.
    """

    story: str
    task: str
    kind: str
    said: str
    plan: int


@dataclass
class Trial:
    """Functions and files for some jobs.

    functions: (mapper, reducer, combiner, partitioner), of which the last two may be
    None. partitioning: if there is one, the last function is called with these
    arguments, once, and returns the partitioner.
    files: name -> content.

    Raises: CannotTravel.
    """

    functions: Sequence[Callable | None]
    files: dict[str, bytes]
    partitioning: tuple | None = None
    timeout_s: float = 20.0
    packed: bytes = field(init=False)

    def __post_init__(self):
        self.packed = pack_functions(tuple(self.functions), "a worker")

    def run(
        self, plans: Sequence[Plan], seed: int | None = None
    ) -> tuple[list[Tried], Failed]:
        """Run jobs one after another. seed: of hashes of strings in the functions.

        0 is the seed that all processes have.
        A partitioner is made for the first job that has one, and stays the same.
        Returns what was seen of each, up to one that failed, and how that failed.

        Raises: TrialTimeout; RuntimeError if the Python itself fails.
        """
        task = {
            "packed": self.packed,
            "partitioning": self.partitioning,
            "files": self.files,
            "plans": [asdict(plan) for plan in plans],
            "seed": seed,
        }
        answer = ask(_OWNER, task, timeout_s=self.timeout_s)
        tried = [_tried(each) for each in answer["tried"]]
        if answer["packed"] is not None:
            self.packed, self.partitioning = bytes.fromhex(answer["packed"]), None
        failed = answer["failed"]
        if failed is not None:
            failed["story"] = in_cells(failed["story"])
            failed = Failed(**failed, plan=len(tried))
        return tried, failed


def _tried(told):
    parts = [
        [(value_of(key), value_of(value)) for key, value in part]
        for part in told["parts"]
    ]
    return Tried(**(told | {"parts": parts}))
