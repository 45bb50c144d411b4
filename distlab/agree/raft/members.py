"""`ReconfigurableRaft`: members are added and removed one by one while a Raft runs.

    client ─ add node 3 ─▶ leader ─ entries ─▶ node 3, without a vote
                           leader ◀─ replies ─ node 3 has caught up
                           leader ─ Members in the log ─▶ all: node 3 votes

Source: the dissertation of Ongaro (2014), sections 4.1 (one change at a time) and 4.2.1
(catching up).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from distlab.agree.raft.messages import AppendReply, Joining, Members
from distlab.agree.raft.raft import Raft
from distlab.network import Effect, Refuse
from distlab.trace import Call

__all__ = ["ReconfigurableRaft"]


class ReconfigurableRaft(Raft):
    """A `Raft` whose leader changes the members at a client's request.

    joining: the node that catches up before it is a member; None if there is none.
        Invariant: only a leader has one, and no change is in the log meanwhile that is
        not committed.
    """

    most_rounds = 10  # of catching up

    def __init__(self, me: int, peers: Sequence[int], **how: Any):
        super().__init__(me, peers, **how)
        self.joining: Joining | None = None

    def may_change(self) -> bool:
        """Return True if no other change of members is under way (section 4.1).

        Two at once could have majorities that do not intersect; so could one of this
        leader and one of an earlier leader, until an entry of this term is committed.
        """
        return max(self.members_at, self.first) <= self.commit

    def change(self, request: int, nodes: set[int]) -> Iterator[Effect]:
        """Change the members, by one; a new one catches up first."""
        new = nodes - {*self.members}
        if not nodes or not nodes <= {self.me, *self.peers}:
            yield Refuse(request, f"{sorted(nodes)} cannot be the members")
        elif len(nodes ^ {*self.members}) > 1:
            yield Refuse(request, f"{sorted(nodes)} is more than one change")
        elif self.joining or not self.may_change():
            yield Refuse(request, "another change of the members is under way")
        elif new:
            (node,) = new
            self.joining = Joining(request, node, self.log.last)
            for known in (self.next, self.match, self.flying):
                known.pop(node, None)  # of an earlier time as a member
            yield from self.replicate()
            yield from self.join()
        else:
            yield from self.propose(request, Members(tuple(sorted(nodes))))

    def has_caught_up(self) -> bool:
        """Return True if a new member's round was shorter than a time-out (4.2.1).

        With a vote before that, a majority may need its vote, and commit nothing until
        it has the whole log.
        """
        joining = self.joining
        return self.match.get(joining.node, 0) >= joining.goal and not joining.late

    def join(self) -> Iterator[Effect]:
        """Let a new member vote if it has caught up; begin a round after a late one."""
        joining = self.joining
        if self.has_caught_up():
            self.joining, nodes = None, sorted({*self.members, joining.node})
            yield from self.propose(joining.request, Members(tuple(nodes)))
        elif self.match.get(joining.node, 0) < joining.goal:
            return
        elif joining.round < self.most_rounds:
            goal, number = self.log.last, joining.round + 1
            self.joining = Joining(joining.request, joining.node, goal, number)
        else:
            why = f"node {joining.node} is behind after {joining.round} rounds"
            yield from self.stop_joining(f"{why}: it is no member")

    def check_joining(self) -> Iterator[Effect]:
        """Note that a round is late; give up on a node that has not replied in it."""
        joining = self.joining
        if joining.late and joining.node not in self.active:
            why = f"no reply of node {joining.node} for {self.timeout_s[1]:g} s"
            yield from self.stop_joining(f"{why}: it is no member")
        else:
            self.joining = joining._replace(late=True)

    def stop_joining(self, why: str) -> Iterator[Effect]:
        """Refuse the request for a new member."""
        joining, self.joining = self.joining, None
        yield Refuse(joining.request, why)

    def receivers(self) -> list[int]:
        """Return the other members, and a node that catches up."""
        return super().receivers() + ([self.joining.node] if self.joining else [])

    def on_client(self, request: int, call: Call) -> Iterator[Effect]:
        """Serve a client, unless it repeats a request for a node that catches up."""
        if not self.joining or self.joining.request != request:
            yield from super().on_client(request, call)

    def on_append_reply(self, sender: int, reply: AppendReply) -> Iterator[Effect]:
        """Note what a peer has; it may have caught up."""
        yield from super().on_append_reply(sender, reply)
        if self.joining and sender == self.joining.node:
            yield from self.join()

    def check_quorum(self) -> Iterator[Effect]:
        """Step down without a quorum; check on a node that catches up."""
        if self.joining:
            yield from self.check_joining()
        yield from super().check_quorum()

    def step_down(self, term: int) -> Iterator[Effect]:
        """Become a follower; the next leader may be asked for the new member."""
        if self.joining:
            yield from self.stop_joining(f"node {self.me} leads no more: ask again")
        yield from super().step_down(term)
