"""Properties of an atomic commit, as invariants for a search."""

from collections.abc import Iterator
from typing import NamedTuple

from distlab.agree.commit.two_phase import ABORTED, COMMITTED, TwoPhaseCommit

__all__ = ["atomic", "never_blocks"]


class CommitVerdict(NamedTuple):
    """The result of a check; `why` names the transaction and the nodes."""

    violated: bool
    why: str


def atomic(nodes: list[TwoPhaseCommit | None]) -> CommitVerdict:
    """Check three properties of the nodes, of which dead ones are None.

    No two nodes decide differently. Of a committed transaction, every participant has
    its vote in its log. Money is conserved: once all are up and no account is locked.
    """
    why = next(_violations([node for node in nodes if node], len(nodes)), "")
    return CommitVerdict(bool(why), why)


def never_blocks(nodes: list[TwoPhaseCommit | None]) -> CommitVerdict:
    """Check that no participant is blocked while the coordinator is dead."""
    blocked = [node for node in nodes if node and node.blocked and not nodes[0]]
    held = (f"{node.locked_by} keeps node {node.me} locked" for node in blocked)
    return CommitVerdict(bool(blocked), f"no coordinator: {', '.join(held)}")


def _violations(alive, count) -> Iterator[str]:
    for txn in {txn: None for node in alive for txn in node.log}:
        records = {node.me: node.log[txn] for node in alive if txn in node.log}
        in_state = {COMMITTED: [], ABORTED: []}
        for me, record in records.items():
            in_state.get(record.state, []).append(me)
        committed, aborted = in_state.values()
        if committed and aborted:
            yield f"{txn} is committed at {committed} and aborted at {aborted}"
        needed = {me for record in records.values() for me in record.others}
        for node in alive:
            if committed and node.me in needed and node.me not in records:
                yield f"{txn} is committed without a vote in the log of node {node.me}"
    if len(alive) == count and all(node.locked_by is None for node in alive):
        total, opening = (sum(n.balance for n in alive), sum(n.opening for n in alive))
        if total != opening:
            yield f"money is not conserved: the accounts held {opening}, now {total}"
