"""Properties that a search checks in the states that it reaches, and their outcomes.

check        gets a `StateOutcome`: an `Outcome`, made only as far as it is used
invariant    gets the nodes' objects
"""

from collections.abc import Callable, Iterable
from functools import cached_property

from distlab.errors import InvalidArgument
from distlab.history import History
from distlab.network.outcome import Outcome
from distlab.network.schedules.monitors import new_monitors, violation
from distlab.network.schedules.state import NodeMemo, State
from distlab.trace import Operation, Trace

__all__ = ["Property", "StateOutcome", "UntracedOutcome", "history_of", "nodes_of"]


class Property:
    """A property that should hold; a search looks for a violation.

    check: called with an outcome, at the end of a schedule. It returns an object with
        `violated`, such as a verdict, or a truth value, or it raises AssertionError.
    invariant: called with the nodes' objects after every step; the same.
    monitors: see `Monitor`.
    """

    def __init__(
        self,
        check: Callable | None,
        invariant: Callable | None,
        monitors: Iterable = (),
        needed: bool = True,
    ):
        self.check, self.invariant = check, invariant
        for name in ("check", "invariant"):
            if not callable(getattr(self, name) or len):
                raise InvalidArgument(
                    f"{name} is a function, and not {getattr(self, name)!r}."
                )
        self.monitors = new_monitors(monitors)
        if needed and not (check or invariant or self.monitors):
            raise InvalidArgument(
                "a search looks for an outcome that its check does not pass, or for "
                "nodes that its invariant or a monitor does not; give one of these."
            )

    def of_outcome(self, outcome: Outcome) -> str:
        """Return the violation by an outcome, in words; "" if there is none."""
        return violation(self.check, outcome) if self.check else ""

    def of_nodes(self, nodes: list) -> str:
        """Return the violation by the nodes, in words; "" if there is none."""
        return violation(self.invariant, nodes) if self.invariant else ""


class UntracedOutcome(Outcome):
    """An outcome whose trace is not made before it is known to be wrong."""

    def __init__(self, history: History, nodes: list, saved: list, elapsed_s: float):
        self.history, self.nodes, self.saved = history, nodes, saved
        self.elapsed_s = elapsed_s

    @property
    def trace(self) -> Trace:
        """Not available: a replay of the schedule that is found has it."""
        raise InvalidArgument(
            "an outcome has no trace until one that is wrong is found; judge its "
            "history, its nodes or what they have saved."
        )


class StateOutcome(UntracedOutcome):
    """The outcome of a state in a search, which has no trace.

    looked: whether the check has read more than the history.
    """

    def __init__(self, memo: NodeMemo, state: State):
        self._memo, self._state = memo, state
        self.looked = False

    @cached_property
    def history(self) -> History:
        """The clients' operations; their times are positions in the order of events."""
        times = range(len(self._state.past))
        return history_of(self._memo, self._state, times)

    @cached_property
    def nodes(self) -> list:
        """Copies of the nodes' objects."""
        self.looked = True
        return nodes_of(self._memo, self._state)

    @cached_property
    def saved(self) -> list[dict]:
        """The saved values of each node, name -> value."""
        self.looked = True
        values = self._memo.values
        disks = self._state.disks
        return [{name: values[n] for name, n in files} for files, _ in disks]

    @property
    def elapsed_s(self) -> float:
        """The number of invocations and responses so far."""
        return float(len(self._state.past))


def nodes_of(memo: NodeMemo, state: State) -> list:
    """Return the nodes' objects, None for one that is dead."""
    return [memo.host(memory).node if memory else None for memory in state.nodes]


def history_of(memo: NodeMemo, state: State, times: Iterable[float]) -> History:
    """Return the history in a state's past, whose entries have these times."""
    operations, open_ = [], {}

    def end(client, end_s, outcome, result):
        call, start_s = open_.pop(client)
        what = (*call, start_s, end_s, outcome, result)
        operations.append(Operation(client, *what))

    for at_s, (answered, client, *about) in zip(times, state.past, strict=True):
        if answered:
            outcome, number = about
            result = memo.values[number] if outcome == "ok" else None
            end(client, float(at_s), outcome, result)
            continue
        if client in open_:  # it has timed out
            end(client, None, "unknown", None)
        open_[client] = memo.values[about[0]], float(at_s)
    for client in list(open_):
        end(client, None, "unknown", None)
    return History(operations)
