"""A fault in one line: the same words for a cell, a script, a watched job and dumps."""

from itertools import pairwise

from distlab.diagnosis.graph import Fault, WaitForGraph
from distlab.diagnosis.words import agreeing, ranks_in_words

__all__ = ["verdict"]

_SIDES, _STEPS = 6, 4  # the most that are said of a disagreement, and of a cycle


def verdict(graph: WaitForGraph, fault: Fault) -> str:
    """Return the cause in one line: which ranks, which call, and who waits in it."""
    return {
        "disagree": _disagree,
        "pieces": _pieces,
        "deadlock": _deadlock,
        "stalled": _stalled,
        "missing": _missing,
    }[fault.kind](graph, fault)


def _disagree(graph, fault):
    sides = graph.sides(fault.group, fault.number)
    everyone = [rank for _, ranks in sides for rank in ranks]
    said = [
        f"{ranks_in_words(ranks)} called {call}{graph.after(ranks, everyone)}"
        for call, ranks in sides
    ]
    if len(said) > _SIDES:
        said = [*said[:_SIDES], f"and {len(said) - _SIDES} more calls"]
    where = f"collective {fault.number}{graph.among(fault.group)}"
    return f"ranks disagree about {where}: {', '.join(said)}"


def _pieces(graph, fault):
    sender, receiver, sent, expected = graph.pieces(fault.group, fault.number)
    call = graph.sides(fault.group, fault.number)[0][0]
    return (
        f"rank {receiver} expects {expected} elements from rank {sender}, which "
        f"sends {sent}, in {call}"
    )


def _deadlock(graph, fault):
    around = [*fault.ranks, fault.ranks[0]]
    waits = [graph.waiting[rank] for rank in fault.ranks]
    if all(at.peers and at.group == waits[0].group for at in waits):
        chain = " → ".join(f"rank {rank}" for rank in around)
        return f"each waits for the next: {chain}"
    calls = [(_call(graph, rank), f"rank {after}") for rank, after in pairwise(around)]
    steps = [
        f"waits in {call}" + f" for {after}" * (not call.endswith(after))
        for call, after in calls
    ]
    rest = f", and so on, back to rank {around[0]}" if steps[_STEPS:] else ""
    return f"rank {around[0]} {', which '.join(steps[:_STEPS])}{rest}"


def _stalled(graph, fault):
    rank = fault.inside[0]
    at, who = graph.waiting[rank], ranks_in_words(fault.ranks)
    if at.peers:
        waits = agreeing(f"{who} {{wait}} in", fault.ranks)
        return (
            f"{waits} {_call(graph, rank)}, which the other side has called, and it "
            "does not end"
        )
    ahead = [r for r, other in graph.waiting.items() if _is_ahead(other, at)]
    if ahead:
        most = max(ahead, key=lambda r: graph.waiting[r].number)
        further = graph.waiting[most]
        noun = "collective" if further.number - at.number == 1 else "collectives"
        rest = [r for r in ahead if graph.waiting[r].number == further.number]
        return (
            f"{agreeing(f'{who} {{are}}', fault.ranks)} behind by "
            f"{further.number - at.number:,} {noun}: in {_call(graph, rank)}, number "
            f"{at.number:,}, where {ranks_in_words(rest)} "
            f"{agreeing('{wait}', rest)} in {further.call}, number {further.number:,}"
        )
    return f"all ranks called {_call(graph, rank)}, and {who} did not end it"


def _is_ahead(other, at):
    return other.group == at.group and other.number > at.number and not other.peers


def _missing(graph, fault):
    rank, absent = fault.inside[0], fault.ranks
    call = _call(graph, rank)
    waits = agreeing(f"{ranks_in_words(fault.inside)} {{wait}} in", fault.inside)
    untold = [r for r in absent if graph.untold([r])]
    known = [r for r in absent if r not in untold]
    gap = f"{ranks_in_words(untold)} {graph.untold(untold)}" if untold else ""
    if not known:
        return f"{gap}, and {waits} {call}"
    who, left = ranks_in_words(known), graph.left(known)
    more = f"; {gap}" if gap else ""
    called = "never called" if graph.over or left else "{have} not called"
    if graph.waiting[rank].peers:
        how = f"{{have}} {left}" if left else f"{called} its other side"
        return f"{waits} {call}, but {who} {agreeing(how, known)}{more}"
    how = f"{left}{graph.after(known)}{',' * (',' in left)} and " if left else ""
    during = graph.during(rank)
    return f"{who} {how}{agreeing(called, known)} {call}, which {waits}{during}{more}"


def _call(graph, rank):
    at = graph.waiting[rank]
    return f"{at.call}{graph.among(at.group)}"
