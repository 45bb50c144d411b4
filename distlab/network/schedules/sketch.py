"""What a state looks like to a check: an `Outcome`, made only as far as needed."""

from functools import cached_property

from distlab.history import History
from distlab.network.outcome import Outcome
from distlab.network.schedules.states import Lives, State
from distlab.trace import Operation, Trace

__all__ = ["Sketch", "nodes_of"]


class Sketch(Outcome):
    """The outcome of a state in a search; its trace comes from playing its schedule.

    looked: whether anybody has asked for more than the history.
    """

    def __init__(self, lives: Lives, state: State, play):
        self._lives, self._state, self._play = lives, state, play
        self.looked = False

    @cached_property
    def history(self) -> History:
        """What the clients asked and were told; the time is the place in the order."""
        return history_of(self._lives, self._state)

    @cached_property
    def nodes(self) -> list:
        """The nodes' objects, copies."""
        self.looked = True
        return nodes_of(self._lives, self._state)

    @cached_property
    def saved(self) -> list[dict]:
        """What the nodes have saved."""
        self.looked = True
        shelf = self._lives.shelf
        return [{name: shelf[n] for name, n in disk} for disk in self._state.disks]

    @cached_property
    def trace(self) -> Trace:
        """What happened, played again on real nodes."""
        self.looked = True
        return self._play().trace

    @property
    def elapsed_s(self) -> float:
        """How many things the clients did and were told."""
        return float(len(self._state.past))


def nodes_of(lives: Lives, state: State) -> list:
    """Return the nodes' objects, None for one that is dead."""
    return [lives.shelf[memory].node if memory else None for memory in state.nodes]


def history_of(lives: Lives, state: State) -> History:
    """Return the history in a state's past."""
    operations, waiting = [], {}
    clients = [(0, ()) for _ in state.clients]

    def end(number, at, outcome, result):
        index, results = clients[number]
        call, start = waiting.pop(number)
        answer = lives.shelf[result] if outcome == "ok" else None
        what = (*call, start, at, outcome, answer)
        operations.append(Operation(number, *what))
        told = lives.told(number, results, result if outcome == "ok" else 0)
        clients[number] = (index + 1, told)

    for at, (answered, number, *about) in enumerate(state.past):
        if answered:
            end(number, float(at), *about)
            continue
        if number in waiting:  # it has given up
            end(number, None, "unknown", 0)
        call = lives.shelf[lives.call(number, *clients[number])]
        waiting[number] = call, float(at)
    for number in list(waiting):
        end(number, None, "unknown", 0)
    return History(operations)
