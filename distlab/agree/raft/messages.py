"""Entries, snapshots and messages of Raft, as plain data.

    RequestVote ─▶ Vote                               elections, and pre-votes
    AppendEntries, InstallSnapshot ─▶ AppendReply     replication, heartbeats, reads
    TimeoutNow ─▶                                     leadership transfer

Every message carries its sender's term.
"""

from typing import Any, NamedTuple


class RaftEntry(NamedTuple):
    """One entry of the log; term and index together identify it.

    request: of the client, 0 of none. command: a `Call`, `Members`, or None of the
    entry with which each leader begins its term.
    """

    term: int
    index: int
    request: int
    command: Any


class Members(NamedTuple):
    """A command that changes the members; a node follows it once it is in its log."""

    nodes: tuple[int, ...]


class Joining(NamedTuple):
    """A leader's knowledge of a node that catches up, before it is a member.

    request: of the client that adds it. goal: the leader's last index when this round
    began. round: its number. late: whether it has taken an election time-out.
    """

    request: int
    node: int
    goal: int
    round: int = 1
    late: bool = False


class RaftSnapshot(NamedTuple):
    """The state after all entries up to `index`, which it replaces.

    term, members: at that index. state: plain data.
    """

    index: int
    term: int
    members: tuple[int, ...]
    state: Any = None


class RequestVote(NamedTuple):
    """A candidate's request, with index and term of its last entry.

    pre: whether it only asks if it would be elected. Its term is then the current one;
    a pre-vote of the dissertation (section 9.6) or of etcd is for the next.
    transfer: whether the leader has asked it to stand.
    """

    term: int
    last: int
    last_term: int
    pre: bool = False
    transfer: bool = False


class Vote(NamedTuple):
    """The response to a `RequestVote`."""

    term: int
    granted: bool
    pre: bool = False


class AppendEntries(NamedTuple):
    """Entries of the leader; none in a heartbeat.

    previous, previous_term: of the entry before them. commit: the leader's commit
    index. round: a number that rises, and that the response repeats.
    """

    term: int
    previous: int
    previous_term: int
    entries: tuple[RaftEntry, ...]
    commit: int
    round: int

    @property
    def in_picture(self) -> str:
        """The entries by index and term, which are what a picture has room for."""
        entries = ", ".join(f"{each.index} of {each.term}" for each in self.entries)
        return f"AppendEntries term={self.term}: {entries or 'no entry'}"


class InstallSnapshot(NamedTuple):
    """A snapshot, for a follower that lacks entries which the leader has no more."""

    term: int
    snapshot: RaftSnapshot
    round: int


class AppendReply(NamedTuple):
    """The response to entries or a snapshot.

    last: if `fits`, the log agrees with the leader's up to this index, and is durable;
    else it may agree up to this index at most. round: of the request; -1 if that is of
    an old term, as its sender may lead again, and count its rounds from 0 again.
    """

    term: int
    fits: bool
    last: int
    round: int


class TimeoutNow(NamedTuple):
    """The leader's request to stand for election at once."""

    term: int
