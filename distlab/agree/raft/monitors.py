"""Monitors of Raft: its safety properties, over a whole run, for any implementation.

    ElectionSafety         one node leads a term, at most
    LogMatching            equal index and term: the same entry, and the same before it
    LeaderCompleteness     what is committed is in the log of every later leader
    StateMachineSafety     no two nodes commit, or apply, different entries at an index

Each remembers the whole run, also what a crash has erased. They read a node through a
function that returns its `RaftView`; `raft_view` does so for `Raft`, and a function of
your own for another implementation: `LogMatching(view=my_view)`.

Source: Ongaro and Ousterhout (2014), figure 3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from distlab.agree.checkers.history_verdict import HistoryVerdict
from distlab.agree.checkers.linearizable import check_linearizable
from distlab.agree.raft.election import LEADER
from distlab.agree.sequential_specifications import KeyValue
from distlab.errors import HistoryError
from distlab.history import History
from distlab.network import Monitor, Node, Outcome

__all__ = [
    "ElectionSafety",
    "LeaderCompleteness",
    "LogMatching",
    "RaftView",
    "StateMachineSafety",
    "clients_linearizable",
    "raft_monitors",
    "raft_view",
]


class RaftView(NamedTuple):
    """The parts of a node's state that the monitors read.

    term: its current term. leads: whether it is the leader of that term.
    entries: of its log; each is a tuple that begins with the entry's term. base: the
    index before the first of them, 0 if no snapshot has replaced any.
    commit: the highest index that it knows to be committed. applied: the highest that
    its state machine has applied.
    """

    term: int
    leads: bool
    entries: Sequence[tuple]
    base: int
    commit: int
    applied: int


def raft_view(node: Node) -> RaftView:
    """Return the view of a node of `Raft`."""
    log, leads = node.log, node.role == LEADER
    return RaftView(node.term, leads, log.entries, log.base, node.commit, node.applied)


@dataclass
class RaftMonitor(Monitor):
    """A monitor of nodes that have a `RaftView`."""

    view: Callable[[Node], RaftView] = raft_view

    def observe(self, nodes: Sequence[Node | None], node: int) -> None:
        """Look at the node that has acted, unless it is dead.

        Raises: AssertionError that names the property, and what broke it.
        """
        if nodes[node] is not None:
            self.look(node, self.view(nodes[node]))

    def look(self, node: int, view: RaftView) -> None:
        """Check the property, and remember what later checks need."""
        raise NotImplementedError


@dataclass
class ElectionSafety(RaftMonitor):
    """At most one node leads a term. leader_of: term -> the node that has led it."""

    leader_of: dict[int, int] = field(default_factory=dict)

    def look(self, node: int, view: RaftView) -> None:
        """Compare a leader with the one that has led the same term."""
        if view.leads:
            first = self.leader_of.setdefault(view.term, node)
            assert first == node, (
                f"election safety: nodes {first} and {node} have both led term "
                f"{view.term}"
            )


@dataclass
class LogMatching(RaftMonitor):
    """Entries of equal index and term are the same, and so are all before them.

    By induction: the entry before has the same term each time.
    known: (index, term) -> (entry, term of the one before, None if not known).
    logs: node -> its entries.
    """

    known: dict[tuple[int, int], tuple[tuple, int | None]] = field(default_factory=dict)
    logs: dict[int, Sequence] = field(default_factory=dict)

    def look(self, node: int, view: RaftView) -> None:
        """Compare the entries of a log that has changed."""
        if self.logs.get(node) == view.entries:
            return
        entries = self.logs[node] = view.entries[:]
        before = None if view.base else 0
        for index, entry in enumerate(entries, view.base + 1):
            place = f"index {index} and term {entry[0]}"
            known, its = self.known.setdefault((index, entry[0]), (entry, before))
            assert known == entry, (
                f"log matching: two entries of {place} differ: {known} and, at node "
                f"{node}, {entry}"
            )
            if its is None:
                self.known[index, entry[0]] = entry, before
            assert before in (its, None) or its is None, (
                f"log matching: before the entry of {place} comes one of term {its}, "
                f"and at node {node} one of term {before}"
            )
            before = entry[0]


@dataclass
class LeaderCompleteness(RaftMonitor):
    """An entry that is committed in a term is in the log of each later leader.

    committed: index -> (term of the node that knew it first, entry).
    led: term -> (node, base, entries) with which its leader began.
    """

    committed: dict[int, tuple[int, tuple]] = field(default_factory=dict)
    led: dict[int, tuple[int, int, Sequence]] = field(default_factory=dict)
    looked: dict[int, int] = field(default_factory=dict)

    def look(self, node: int, view: RaftView) -> None:
        """Compare new commits with later leaders, and a new leader with all commits."""
        first = max(self.looked.get(node, 0), view.base) + 1
        self.looked[node] = view.commit
        new = range(first, min(view.commit, view.base + len(view.entries)) + 1)
        for index in new:
            entry = view.entries[index - view.base - 1]
            if self.committed.setdefault(index, (view.term, entry))[0] == view.term:
                for term in self.led:
                    self._compare(term, index)
        if view.leads and view.term not in self.led:
            self.led[view.term] = node, view.base, view.entries[:]
            for index in self.committed:
                self._compare(view.term, index)

    def _compare(self, term, index):
        (since, entry), (leader, base, entries) = self.committed[index], self.led[term]
        if since >= term or index <= base:
            return
        has = entries[index - base - 1] if index - base <= len(entries) else None
        assert has == entry, (
            f"leader completeness: the entry of index {index} and term {entry[0]} was "
            f"committed in term {since}, and node {leader}, the leader of term {term}, "
            + (f"has one of term {has[0]}" if has else "lacks it")
        )


@dataclass
class StateMachineSafety(RaftMonitor):
    """No two nodes commit, or apply, different entries at one index.

    committed: index -> (entry, the node that committed it first).
    compared: node -> the index up to which its entries were compared.
    """

    committed: dict[int, tuple[tuple, int]] = field(default_factory=dict)
    compared: dict[int, int] = field(default_factory=dict)

    def look(self, node: int, view: RaftView) -> None:
        """Compare what the node has committed with what others have."""
        last = view.base + len(view.entries)
        assert view.applied <= view.commit <= last, (
            f"state machine safety: node {node} has applied {view.applied} entries and "
            f"knows {view.commit} to be committed, and its log ends at {last}"
        )
        # The last one again: if it has been replaced, so has something before.
        first = min(self.compared.get(node, 1), view.commit)
        for index in range(max(first, view.base + 1), view.commit + 1):
            entry = view.entries[index - view.base - 1]
            known, other = self.committed.setdefault(index, (entry, node))
            assert known == entry, (
                f"state machine safety: at index {index} node {other} has committed "
                f"{known}, and node {node} {entry}"
            )
        self.compared[node] = view.commit


def raft_monitors(view: Callable[[Node], RaftView] = raft_view) -> list[RaftMonitor]:
    """Return the four monitors, for nodes that `view` can read."""
    kinds = ElectionSafety, LogMatching, LeaderCompleteness, StateMachineSafety
    return [kind(view) for kind in kinds]


def clients_linearizable(outcome: Outcome) -> HistoryVerdict:
    """Return the verdict on what clients of a `RaftStore` have seen of its keys.

    Raises: AssertionError if a client got a result that its call cannot have.
    """
    calls = [op for op in outcome.history if op.op in KeyValue.operations]
    try:
        return check_linearizable(History(calls), KeyValue())
    except HistoryError as error:
        raise AssertionError(str(error)) from None
