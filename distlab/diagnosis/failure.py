"""The end of a rank's call, and the reason why a call cannot finish."""

from dataclasses import dataclass, field

__all__ = ["Failure", "RankOutcome"]


@dataclass
class RankOutcome:
    """The end of one rank's call.

    how: "returned", "raised" or "died".
    time: seconds on the system's monotonic clock.
    value: its result, the exception it raised, or its exit status.
    details: further facts that the rank reported, for the diagnosis.
    """

    rank: int
    how: str
    time: float
    value: object = None
    details: dict = field(default_factory=dict)


@dataclass(eq=False)
class Failure(Exception):
    """The reason why a call cannot finish; the input of the diagnosis.

    kind: "raised", "died", "stuck", "disagreement", "timeout", "late start" or
        "interrupted".
    first: the outcome to report, if a rank raised or died.
    stuck: rank -> the ranks that it waits for, where ranks are stuck.
    outcomes: rank -> its outcome, for all that have ended.
    stacks: rank -> its main thread's stack, for all that have not.
    timeout_s: the limit that was exceeded, before `patience` multiplies it.
    """

    kind: str
    first: RankOutcome | None = None
    stuck: dict[int, set[int]] = field(default_factory=dict)
    outcomes: dict[int, RankOutcome] = field(default_factory=dict)
    stacks: dict[int, list] = field(default_factory=dict)
    timeout_s: float = 0.0
