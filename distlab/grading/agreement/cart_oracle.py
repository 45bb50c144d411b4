"""What has to be in a cart in the end, by its definition, and what must not be.

An add counts until a remove of its item that has seen it. What a remove can have seen
is what reached its node, by whichever messages: the trace knows these, though not what
is in them. What it has seen for sure is what was added at its own node, and an item
that a client had just read there, if only one add of it could be meant.
"""

from typing import NamedTuple

from distlab.network import Outcome

__all__ = ["Expected", "expected"]


class Add(NamedTuple):
    """One add: its number in the run, its item, and its node."""

    number: int
    item: str
    node: int


class Expected(NamedTuple):
    """What a cart has in the end. needed: item -> the kind of hint if it is missing.

    gone: items that must not be there, though they were added.
    """

    needed: dict[str, str]
    gone: set[str]
    added: set[str]


def expected(run: Outcome, nodes: int, until_s: float) -> Expected:
    """Return what all replicas should have after what was called before `until_s`."""
    story = _Story(run, nodes, until_s)
    needed, gone = {}, set()
    for item in {add.item for add in story.adds}:
        adds = [add for add in story.adds if add.item == item]
        removes = story.removes.get(item, [])
        free = [a for a in adds if not any(a in maybe for maybe, _ in removes)]
        if free:
            needed[item] = "concurrent" if removes else "lost"
        elif all(any(add in sure for _, sure in removes) for add in adds):
            gone.add(item)
    return Expected(needed, gone, {add.item for add in story.adds})


class _Story:
    """Which adds had reached which node when something was removed there.

    removes: item -> for each remove of it (the adds that it may have seen, those that
    it has seen for sure).
    """

    def __init__(self, run, nodes, until_s):
        self.adds, self.removes = [], {}
        self.known = [set() for _ in range(nodes)]
        self.shown = [{} for _ in range(nodes)]  # node -> item -> what it was, for sure
        calls = {(o.client, o.start): o for o in run.history if o.start < until_s}
        sent = {}
        for event in run.trace.events:
            node, peer = event.rank, event.peer
            if node >= nodes or peer is None:
                continue
            if peer >= nodes and event.kind == "recv":
                one = calls.get((peer - nodes, event.start))
                if one is not None:
                    self._called(one, node)
            elif event.kind == "send":
                sent[event.step] = frozenset(self.known[node])
            elif event.kind == "recv" and not sent[event.step] <= self.known[node]:
                self.known[node] |= sent[event.step]
                self.shown[node] = {}

    def _called(self, one, node):
        known = self.known[node]
        if one.op == "add":
            add = Add(len(self.adds), one.value, node)
            self.adds.append(add)
            known.add(add)
        elif one.op == "read":
            for item in one.result if isinstance(one.result, list) else ():
                meant = {a for a in known if a.item == item} - self._removed(item)
                self.shown[node][item] = meant if len(meant) == 1 else set()
        elif one.op == "remove":
            maybe = {add for add in known if add.item == one.value}
            sure = {add for add in maybe if add.node == node}
            sure |= self.shown[node].get(one.value, set())
            self.removes.setdefault(one.value, []).append((maybe, sure))

    def _removed(self, item):
        return {add for maybe, _ in self.removes.get(item, ()) for add in maybe}
