"""The wait-for graph of ranks under way, from their notes; which are stuck forever.

Rank r waits for rank p if r is blocked in a message whose other side p has not posted,
or in a collective that p has not entered. A blocked rank needs all ranks it waits for,
so it is *stuck* if any of them is stuck, has returned, or is dead; one that waits for
any of several messages (`recv_any`, `wait_any`) if all of them are. The ranks that
remain without all that may still move are stuck forever: this needs no time-out.

Source: Chandy, Misra and Haas, "Distributed deadlock detection" (1983), AND-OR model.
"""

from collections.abc import Mapping
from typing import NamedTuple

from distlab.diagnosis.failure import RankOutcome
from distlab.diagnosis.graph import WaitForGraph
from distlab.diagnosis.words import ranks_in_words
from distlab.recorder import (
    IN,
    OUT,
    THREADED,
    Now,
    SharedTrace,
    agreed,
    phase_of,
    shown,
    unequal_splits,
)
from distlab.trace import members_of, mesh_dimension_of

__all__ = ["NotesGraph", "begun_in_vain", "call_in_words", "group_in_words"]
__all__ += ["passes_in_words", "stuck_ranks", "waits_for"]

_COMPARED = 60  # latest collectives of a group, of the 64 whose words are kept
_WAY = {"send": "to", "recv": "from"}


def waits_for(board: SharedTrace, rank: int, now: Now) -> set[int]:
    """Return the ranks without whose next call `rank` cannot continue.

    A rank in a call of kind "any" continues as soon as one of them makes it.
    """
    if now.state != "blocked":
        return set()
    if now.kind == "any":
        sides = now.any_of()
        there = any(board.posted(p, rank, 1 - way, g) >= n for p, way, n, g in sides)
        return set() if there else {peer for peer, *_ in sides}
    missing = set()
    for peer, way, number in (
        (now.send_to, IN, now.send_number),
        (now.recv_from, OUT, now.recv_number),
    ):
        if peer >= 0 and board.posted(peer, rank, way, now.group) < number:
            missing.add(peer)
    if now.call >= 0:
        members = members_of(now.group, board.world_size)
        missing |= {r for r in members if board.calls(r, now.group) < now.call}
    return missing


def stuck_ranks(board: SharedTrace, gone: set[int]) -> dict[int, set[int]]:
    """Return the ranks that can never continue, each with the ranks it waits for.

    `gone` are the ranks that have returned, raised or died. A rank with several threads
    may be freed by one of its own, so it never counts as stuck.
    """
    notes = [board.now(rank) for rank in range(board.world_size)]
    waiting = {rank: waits_for(board, rank, now) for rank, now in enumerate(notes)}
    candidates = {
        rank
        for rank, missing in waiting.items()
        if missing and rank not in gone and not board.flags(rank) & THREADED
    }
    while True:
        free = {
            rank
            for rank in candidates
            if _may_move(notes[rank], waiting[rank], candidates | gone)
        }
        if not free:
            return {rank: waiting[rank] for rank in sorted(candidates)}
        candidates -= free


def _may_move(now, missing, lost):
    """Return True if a rank may continue although the ranks in `lost` never do."""
    return bool(missing - lost) if now.kind == "any" else not missing & lost


def begun_in_vain(board: SharedTrace, rank: int, gone: set[int]) -> Now | None:
    """Return a note for a rank in a collective that can no longer end, or None.

    The rank itself notes nothing: it has begun the collective and continued, as with
    NCCL, or waits in C++. A member of its group has ended without entering it.
    """
    now = board.now(rank)
    for group in board.groups(rank) if now.state == "running" else ():
        for peer in gone.intersection(members_of(group, board.world_size)):
            number = board.calls(peer, group) + 1
            if number <= board.calls(rank, group):
                label = shown(board.call(rank, number, group))
                how = {"call": number, "group": group, "label": label}
                return now._replace(state="blocked", kind="collective", **how)
    return None


class _NotedCall(NamedTuple):
    """A call that a rank is in. peers: of a message, the ranks of its other sides."""

    group: str
    number: int
    call: str
    peers: tuple[int, ...]


class NotesGraph(WaitForGraph):
    """The wait-for graph of ranks whose notes are on a board.

    lacking: rank -> the ranks that it waits for, of those that wait.
    outcomes: rank -> its outcome, for all that have ended.
    """

    def __init__(
        self,
        board: SharedTrace,
        lacking: Mapping[int, set[int]],
        outcomes: Mapping[int, RankOutcome],
    ):
        self.board, self.outcomes = board, outcomes
        self.everyone = range(board.world_size)
        self.groups = sorted({g for r in self.everyone for g in board.groups(r)})
        self.lacking = dict(lacking)
        self.waiting = {rank: self._noted(rank) for rank in lacking}

    def _noted(self, rank):
        now = self.board.now(rank)
        peers = () if now.call >= 0 else tuple(self.lacking[rank])
        return _NotedCall(now.group, now.call, call_in_words(self.board, rank), peers)

    def members(self, group):
        """Return the ranks of a group."""
        return tuple(members_of(group, self.board.world_size))

    def numbers(self, group):
        """Return the numbers of the collectives whose words are kept."""
        last = max(self.board.calls(rank, group) for rank in self.members(group))
        return range(max(1, last - _COMPARED), last + 1)

    def words(self, group: str, number: int) -> dict[int, str]:
        """Return rank -> the whole words of a collective, of those that entered it."""
        board = self.board
        entered = [r for r in self.members(group) if board.calls(r, group) >= number]
        return {rank: board.call(rank, number, group) for rank in entered}

    def sides(self, group, number):
        """Return (call in words, ranks that made it), the fewest ranks first."""
        words = self.words(group, number)
        sides: dict[str, list[int]] = {}
        for rank, call in words.items():
            sides.setdefault(agreed(call), []).append(rank)
        ordered = sorted(sides.values(), key=len)
        return [(shown(words[ranks[0]]), ranks) for ranks in ordered]

    def pieces(self, group, number):
        """Return (sender, receiver, elements sent, expected) if two ranks differ."""
        return unequal_splits(self.words(group, number), self.members(group))

    def missing(self, group, number):
        """Return the members that have not entered a collective."""
        board = self.board
        return {r for r in self.members(group) if board.calls(r, group) < number}

    def among(self, group):
        """Return the members of a group in words, "" for all ranks."""
        return group_in_words(group, self.board.world_size)

    def left(self, ranks):
        """Return the way in which ranks ended: "returned", or what one left by."""
        ends = [self.outcomes.get(rank) for rank in ranks]
        if not all(ends):
            return ""
        by = ends[0].details.get("left") if len(ends) == 1 else None
        return f"left by {by}" if by else "returned"

    def after(self, ranks, others=()):
        """Return " after 5 backward passes" of ranks that agree, and differ in it."""
        own = {self.board.passes(rank) for rank in ranks}
        apart = not others or len({self.board.passes(rank) for rank in others}) > 1
        return passes_in_words(min(own)) if apart and len(own) == 1 else ""

    def during(self, rank):
        """Return ", in backward pass 5" if a rank's collective is DDP's or FSDP's."""
        now = self.board.now(rank)
        words = self.board.call(rank, now.call, now.group) if now.call >= 0 else ""
        phase, passes = phase_of(words), self.board.passes(rank)
        return f", in {phase} pass {passes + (phase == 'forward')}" if phase else ""


def passes_in_words(passes: int) -> str:
    """Return " after 4 backward passes", "" where none had collectives."""
    noun = "pass" if passes == 1 else "passes"
    return f" after {passes} backward {noun}" if passes else ""


def call_in_words(board: SharedTrace, rank: int) -> str:
    """Return the call that a rank is blocked in, with its peers, in words."""
    now = board.now(rank)
    if now.call >= 0:
        return shown(board.call(rank, now.call, now.group))
    if now.kind == "sendrecv":
        return f"sendrecv (to rank {now.send_to}, from rank {now.recv_from})"
    if now.kind in _WAY:
        peer = now.send_to if now.kind == "send" else now.recv_from
        return f"{now.kind} {_WAY[now.kind]} rank {peer}"
    if now.kind == "any":
        return now.label.split()[0]
    return now.label or now.kind


def group_in_words(group: str, world_size: int) -> str:
    """Return the members of a group as " among ranks 0 and 1"; "" if all ranks."""
    members, dimension = members_of(group, world_size), mesh_dimension_of(group)
    if len(members) == world_size and not dimension:
        return ""
    return f" among {ranks_in_words(members)}" + f" ({dimension})" * bool(dimension)
