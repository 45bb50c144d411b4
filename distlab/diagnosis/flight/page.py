"""An HTML page of lanes around the fault: the calls of ranks, and the ranks they await.

A lane is a set of ranks with the same calls. Its cells are the collectives up to the
fault, by group and number; marks and words repeat the meaning of the colours.
"""

from collections import Counter, defaultdict
from html import escape

from distlab.diagnosis.flight.dumps import DumpsGraph
from distlab.diagnosis.graph import Fault
from distlab.diagnosis.words import ranks_in_words
from distlab.show.assets import document, style

__all__ = ["page"]

_LANES, _GROUPS, _BEFORE = 24, 4, 6
_MARKS = {"done": "✓", "waits": "…", "odd": "≠", "never": "✗", "unknown": "?", "": ""}
_STYLE = """
h1 { font-size: 18px; } pre { white-space: pre-wrap; }
.lanes { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 4px; }
th { font-weight: 400; color: var(--muted); text-align: left; white-space: nowrap; }
tbody th { color: var(--ink); font-weight: 600; }
tbody th:first-child { white-space: normal; max-width: 200px; }
td { padding: 3px 8px; border-radius: 4px; font-size: 12px; max-width: 150px; }
.done { background: var(--track); color: var(--muted); }
.waits { border: 2px dashed var(--ink); }
.odd { border: 3px solid var(--warn); color: var(--warn); font-weight: 600; }
.never { border: 3px dotted var(--warn); color: var(--warn); }
.unknown { color: var(--muted); }
"""


def page(job: DumpsGraph, faults: list[Fault], text: str) -> str:
    """Return the page as self-contained HTML; text: the explanation."""
    verdict, _, rest = text.partition("\n")
    lanes = _lanes(job, faults[0]) if faults else ""
    body = f"<h1>{escape(verdict)}</h1>{lanes}<pre>{escape(rest)}</pre>"
    return document(style(_STYLE) + body, "distlab: what hangs") + "\n"


def _lanes(job, fault):
    columns = _columns(job, fault)
    common = {at: _most(dict(job.sides(*at))) for at in columns}
    lanes = defaultdict(list)
    for rank in job.everyone:
        cells = "".join(_cell(job, rank, *at, common[at]) for at in columns)
        whom = job.lacking.get(rank)
        waits = f"waits for {ranks_in_words(whom)}" if whom else ""
        lanes[f"{cells}<th>{waits}</th>"].append(rank)
    near, concerned = set(fault.ranks), {*fault.inside, *job.members(fault.group)}
    order = sorted(
        lanes.items(),
        key=lambda lane: (near.isdisjoint(lane[1]), concerned.isdisjoint(lane[1])),
    )
    over = "".join(
        f"<th colspan={count}>{escape(job.among(group) or 'all ranks')}</th>"
        for group, count in Counter(group for group, _ in columns).items()
    )
    heads = "".join(f"<th>{number}</th>" for _, number in columns)
    rows = "".join(
        f"<tr><th>{ranks_in_words(ranks)}</th>{cells}</tr>"
        for cells, ranks in order[:_LANES]
    )
    left = f"{len(order) - _LANES} more lanes are left out. " if order[_LANES:] else ""
    return (
        f"<div class=lanes><table><thead><tr><th></th>{over}</tr><tr><th>collective"
        f"</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div><p>{left}"
        "✓ finished, … waits, ≠ another call than most, ✗ never called, "
        "? not in the dump</p>"
    )


def _columns(job, fault):
    """Return (group, number) of the cells, up to the present calls of fault's ranks."""
    last = {fault.group: fault.number} if fault.kind == "disagree" else {}
    for rank in (*fault.inside, *fault.ranks):
        at = job.waiting.get(rank)
        if at and not at.peers and len(last) < _GROUPS:
            last.setdefault(at.group, at.number)
    before = _BEFORE if len(last) == 1 else 1
    return [
        (group, number)
        for group, end in last.items()
        for number in range(max(1, end - before), end + 1)
    ]


def _most(calls):
    """Return the call that most ranks made, or None for no call or a tie."""
    *others, call = calls or [None]
    tied = others and len(calls[others[-1]]) == len(calls[call])
    return None if tied else call


def _cell(job, rank, group, number, common):
    entry = job.entries(group, rank).get(number)
    if rank not in job.members(group):
        kind, words = "", ""
    elif entry:
        kind = "done" if entry.state == "done" else "waits"
        kind, words = "odd" if entry.call != common else kind, entry.call
    else:
        never = rank in job.missing(group, number) and rank in job.dumps
        kind, words = ("never", "never called") if never else ("unknown", "")
    words = escape(words).replace("(", "<br>(", 1)
    return f'<td class="{kind}">{_MARKS[kind]}&nbsp;{words}</td>'
