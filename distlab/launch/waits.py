"""The wait-for graph, read from the ranks' notes; and its ranks that are stuck forever.

Rank r waits for rank p if r is blocked in a message whose other side p has not posted,
or in a collective that p has not entered. A blocked rank needs all ranks it waits for,
so it is *stuck* if any of them is stuck, has returned, or is dead; one that waits for
any of several messages (`recv_any`, `wait_any`) if all of them are. The ranks that
remain without all that may still move are stuck forever: this needs no time-out.

Source: Chandy, Misra and Haas, "Distributed deadlock detection" (1983), AND-OR model.
"""

from distlab.recorder import (
    IN,
    OUT,
    THREADED,
    Now,
    SharedTrace,
    agreed,
    shown,
    unequal_splits,
)
from distlab.trace import members_of

__all__ = ["begun_in_vain", "cycle_among", "disagreement", "stuck_ranks"]
__all__ += ["waits_for"]


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


def cycle_among(stuck: dict[int, set[int]]) -> list[int]:
    """Return a shortest cycle of ranks, each waiting for the next, or an empty list."""
    best = []
    for start in stuck:
        paths = [[start]]
        seen = {start}
        while paths:
            path = paths.pop(0)
            for nxt in sorted(stuck[path[-1]]):
                if nxt == start and (not best or len(path) < len(best)):
                    best = path
                elif nxt in stuck and nxt not in seen:
                    seen.add(nxt)
                    paths.append([*path, nxt])
    return best


def disagreement(board: SharedTrace) -> tuple[int, str, dict[int, str]] | None:
    """Return (number, group, calls) of the first collective that ranks disagree on.

    calls: rank -> name and signature of its call. None if all agree.
    """
    everyone = range(board.world_size)
    for group in sorted({group for rank in everyone for group in board.groups(rank)}):
        counts = {r: board.calls(r, group) for r in members_of(group, len(everyone))}
        last = max(counts.values())
        for number in range(max(1, last - 60), last + 1):
            entered = [rank for rank, count in counts.items() if count >= number]
            calls = {rank: board.call(rank, number, group) for rank in entered}
            if len(set(map(agreed, calls.values()))) > 1 or unequal_splits(
                calls, members_of(group, len(everyone))
            ):
                return number, group, calls
    return None
