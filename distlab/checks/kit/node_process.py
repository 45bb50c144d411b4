"""The program of a node's process: the learner's object, and calls of its methods."""

import io
import pickle
import sys
from typing import Any

from distlab.calls.untrusted_data import read_untrusted
from distlab.cell_sources import learn
from distlab.errors import NodeFailed
from distlab.network import Monitor, Outcome, fuzz
from distlab.network.copies import SplitMix64, freeze, thaw
from distlab.network.describe import describe, shorten
from distlab.network.node_host import NodeHost, make_node
from distlab.network.watchdog import NeverReturned, Watchdog
from distlab.processes import Child
from distlab.sandbox.withheld import withhold

__all__ = ["OPAQUE", "main"]

OPAQUE = {"Send": 1, "SetTimer": 0, "CancelTimer": 0, "Save": 1}  # the field that is
OPAQUE |= {"Append": 1, "Sync": 0}
_MOST_WORDS = 200


def main(child: Child) -> None:
    """Run the process of one node until the check ends it."""
    packed, cells, without, shows = pickle.loads(child.receive())
    learn(cells)
    withhold(without)
    with Watchdog() as watchdog:
        life = _Life(child.index, packed, shows, watchdog)
        while True:
            child.send(life.answer(*pickle.loads(child.receive())))


class _Life:
    """The node's object in its current state; in a search, also in every earlier one.

    states: the object's earlier states, frozen, by number. state: the number of `host`.
    """

    def __init__(self, me, packed, shows, watchdog):
        self.me, self.packed, self.shows, self.watchdog = me, packed, shows, watchdog
        self.make = self.host = self.state = None
        self.searching, self.states, self.numbers = False, [], {}

    def answer(self, what, *args):
        """Return the result of another method, or its failure, as bytes."""
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
        node = make_node(self._made(), self.me, nodes)
        how = {"restarted": True, "generator": SplitMix64}
        self.searching = searching
        return self._kept(NodeHost(node, self.me, nodes, **how)), ()

    def _made(self):
        if self.make is None:
            (self.make,) = pickle.loads(self.packed)
            _name_globals(self.make)
        return self.make

    def do(self, state, clock_s, method, *args):
        """Call a method of the node in a state.

        Returns: its next state, the effects, and the attributes that it shows.
        """
        host = self.host if state == self.state else thaw(self.states[state])
        self.state, (*plain, last) = None, args
        host.node.clock_s = clock_s
        if method == "start":
            host.node.random.setstate(plain.pop())
            last = {name: _unpacked(value) for name, value in last.items()}
        elif method != "client":
            last = pickle.loads(last)
        self.watchdog.inside = True
        effects = getattr(host, method)(*plain, last)
        self.watchdog.inside = False
        shown = _shown(host.node, self.shows)
        return self._kept(host), [*map(_described, effects)], shown

    def fuzz(self, seeds, how, *args):
        """Run all nodes in this process, once with each seed.

        Returns: of each run (seed, whether a node has failed, the clients' operations,
        changes): a change is (node, what has changed of the attributes that it shows),
        or (node, None) when it has crashed.
        """
        runs, make = [], self._made()
        for seed in seeds:
            _Changes.names, _Changes.last, _Changes.all = self.shows, {}, []
            operations = []

            def keep(run: Outcome, operations=operations) -> bool:
                operations += map(tuple, run.history)
                return True

            more = {"monitors": _Changes, "seed": seed, "runs": 1, "within_s": 60}
            failed = bool(fuzz(make, *args, keep, **more, **how))
            runs.append((seed, failed, operations, _Changes.all))
        return runs

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


class _Changes(Monitor):
    """The changes of the attributes that nodes show, in the run under way."""

    names, last, all = (), {}, []  # the class's: a run has a new object

    def observe(self, nodes, node):
        """Keep what has changed in a node."""
        before = self.last.get(node, {})
        if nodes[node] is None:
            self.last[node], changed = {}, None
        else:
            shown = _shown(nodes[node], self.names)
            now = self.last[node] = dict(zip(self.names, shown, strict=True))
            changed = {name: now[name] for name in now if now[name] != before.get(name)}
        if changed != {}:
            self.all.append((node, changed))


def _shown(node, names):
    return tuple(_as_tuple(getattr(node, name, None)) for name in names)


def _as_tuple(value):
    """Return a list or named tuple as a tuple, so that it is plain data."""
    many = isinstance(value, list | tuple)
    return tuple(map(_as_tuple, value)) if many else value


def _unpacked(value):
    return [*map(pickle.loads, value)] if type(value) is list else pickle.loads(value)


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
