"""The program of a node's process: the learner's object, and calls of its methods."""

import io
import pickle
import sys
from typing import Any

from distlab.calls.untrusted_data import read_untrusted
from distlab.cell_sources import learn
from distlab.errors import NodeFailed
from distlab.network.copies import SplitMix64, freeze, thaw
from distlab.network.describe import describe, shorten
from distlab.network.node_host import NodeHost, make_node
from distlab.network.watchdog import NeverReturned, Watchdog
from distlab.processes import Child
from distlab.sandbox.withheld import withhold

__all__ = ["OPAQUE", "main"]

OPAQUE = {"Send": 1, "SetTimer": 0, "CancelTimer": 0, "Save": 1}  # the field that is
_MOST_WORDS = 200


def main(child: Child) -> None:
    """Run the process of one node until the check ends it."""
    packed, cells, without, seed = pickle.loads(child.receive())
    learn(cells)
    withhold(without)
    with Watchdog() as watchdog:
        life = _Life(child.index, packed, seed, watchdog)
        while True:
            child.send(life.answer(*pickle.loads(child.receive())))


class _Life:
    """The node's object in its current state; in a search, also in every earlier one.

    states: the object's earlier states, frozen, by number. state: the number of `host`.
    """

    def __init__(self, me, packed, seed, watchdog):
        self.me, self.packed, self.seed, self.watchdog = me, packed, seed, watchdog
        self.make = self.host = self.state = None
        self.searching, self.states, self.numbers = False, [], {}

    def answer(self, what, *args):
        """Return the result of `new`, `do` or `result`, or its failure, as bytes."""
        self.watchdog.calls += 1
        try:
            return pickle.dumps(getattr(self, what)(*args))
        except (Exception, SystemExit, NeverReturned) as error:
            own = isinstance(error, NodeFailed)
            story = str(error) if own else f"{type(error).__name__}: {error}"
            cause = _plain_cause(error.cause if own else error)
            return pickle.dumps(("failed", story, cause))
        finally:
            self.watchdog.inside = False

    def new(self, nodes, searching):
        """Make the node's object; return its state, and no effects."""
        self.watchdog.inside = True
        if self.make is None:
            (self.make,) = pickle.loads(self.packed)
            _name_globals(self.make)
        node = make_node(self.make, self.me, nodes)
        how = {"seed": self.seed, "restarted": True, "generator": SplitMix64}
        self.searching = searching
        return self._kept(NodeHost(node, self.me, nodes, **how)), ()

    def do(self, state, method, *args):
        """Call a method of the node in a state; return its next state, and effects."""
        host = self.host if state == self.state else thaw(self.states[state])
        self.state, (*plain, last) = None, args
        if method == "start":
            last = {name: pickle.loads(value) for name, value in last.items()}
        elif method != "client":
            last = pickle.loads(last)
        self.watchdog.inside = True
        effects = getattr(host, method)(*plain, last)
        self.watchdog.inside = False
        return self._kept(host), [*map(_described, effects)]

    def result(self, state, method):
        """Return a state, and what a method of the learner's returns in it."""
        self.watchdog.inside = True
        host = thaw(freeze(self.host) if state == self.state else self.states[state])
        return state, getattr(host.node, method)()

    def _kept(self, host):
        self.host, self.state = host, 0
        if self.searching:
            frozen = freeze(host)
            self.state = self.numbers.setdefault(frozen, len(self.states))
            self.states += [frozen] * (self.state == len(self.states))
        return self.state


def _described(effect):
    """Return an effect as plain data; fields that only nodes read become bytes."""
    kind, fields = type(effect).__name__, list(effect)
    if (at := OPAQUE.get(kind)) is not None:
        words = shorten(describe(fields[at]), _MOST_WORDS)
        fields[at] = words, _packed(fields[at])
    return kind, *fields


def _name_globals(make):
    """Make the notebook's classes importable by name: a message then has data only."""
    for kind in getattr(make, "__mro__", ()):
        for function in vars(kind).values():
            if getattr(function, "__module__", "") == "__main__":
                found = getattr(function, "__globals__", {})
                vars(sys.modules["__main__"]).update(found)


def _packed(value: Any) -> bytes:
    file = io.BytesIO()
    pickler = pickle.Pickler(file)
    pickler.fast = True  # equal values are equal bytes
    pickler.dump(value)
    return file.getvalue()


def _plain_cause(cause):
    """Return an exception of Python's own as it is, and any other as words."""
    try:
        return read_untrusted(pickle.dumps(cause))
    except Exception:
        return f"{type(cause).__name__}: {cause}"
