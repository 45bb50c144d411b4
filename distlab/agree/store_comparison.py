"""A comparison of stores: the consistency, latency and availability of each."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from distlab.agree.store_measurement import measured
from distlab.agree.stores import (
    Causal,
    LastWriterWins,
    PrimaryCopy,
    Quorum,
    VersionVectors,
)
from distlab.calls.progress import Progress
from distlab.network import Node, simulate
from distlab.show.table import html_report, text_report

__all__ = ["STORES", "Survey", "survey"]

STORES = {
    "primary, synchronous": PrimaryCopy,
    "primary, asynchronous": partial(PrimaryCopy, synchronous=False),
    "primary, asynchronous, read any": partial(
        PrimaryCopy, synchronous=False, read_at="any"
    ),
    "primary, synchronous, read any": partial(PrimaryCopy, read_at="any"),
    "majority": Quorum,
    "majority, read one": partial(Quorum, reads=1, write_back=False),
    "any replica, causal order": Causal,
    "any replica, last writer wins": LastWriterWins,
    "any replica, version vectors": VersionVectors,
}

_GROUPS = (
    ("", 2),
    ("latency without a partition", 2),
    ("latency in the partition", 2),
    ("answered in the partition", 3),
    ("stale reads", 1),
)
_HEAD = ("store", "consistency found", "read", "write", "read", "write")
_HEAD += ("majority", "minority", "all", "how old")


class Survey(tuple):
    """A `Measured` for each store; in a notebook a table with a row for each."""

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's cells as text, a row for each store."""
        return [_cells(each) for each in self]

    def tradeoff(self) -> dict[str, tuple[float, float, str]]:
        """Return "name: reads" and "name: writes" -> (latency in s without a partition,
        minority's availability in one, consistency), as `show.tradeoff` draws them.
        """
        return {
            f"{one.name}: {op}s": (one.median_s(op) or 0.0, share, _found(one))
            for one in self
            for op, share in one.availability_of(one.sides[1]).items()
        }

    def __repr__(self):
        title = "Latency without a partition, and in it; answered in it; stale reads"
        rows = [_HEAD, *self.rows()]
        return text_report(title, rows, "<" * len(_HEAD), self._notes())

    def _repr_html_(self):
        rows = [_HEAD, *self.rows()]
        sides = "<" * len(_HEAD)
        return html_report("", rows, sides, self._notes(), groups=_GROUPS)

    def _notes(self):
        if not self:
            return []
        one = self[0]
        together, alone = (" and ".join(map(str, side)) for side in one.sides)
        return [
            f"Latency: how many messages a call waits for, one after another, and the "
            f"median time; a message takes {one.one_way_s * 1000:g} ms. The partition "
            f"is between nodes {together} and node {alone}; in it all clients, and "
            "reads and writes, count the same.",
            f"Consistency: the strongest model that none of {one.ladder.judged} runs "
            "violated, among them such with dropped, duplicated and late messages, a "
            "partition and a crash. It is no proof.",
            "A read is stale if another write began after the one it saw was "
            "acknowledged, and was acknowledged before the read began.",
        ]


def _cells(one):
    majority, minority = one.sides
    latencies = [
        _latency(one, op, split) for split in (False, True) for op in ("read", "write")
    ]
    shares = [_share(one, nodes) for nodes in (majority, minority, majority + minority)]
    return (one.name, _found(one), *latencies, *shares, _stale(one.stale_s))


def _found(one):
    undecided = one.ladder.undecided.get(one.consistency, 0)
    described = (
        f" ({undecided} of {one.ladder.judged} runs undecided)" if undecided else ""
    )
    return one.consistency + described


def _latency(one, op, split):
    """Return the least and most delays and the median time, such as "2 · 20 ms"."""
    counts = one.delays(op, split=split)
    if not counts:
        return "none answered"
    least, most = counts[0], counts[-1]
    span = f"{most}" if least == most else f"{least}–{most}"
    return f"{span} · {1000 * one.median_s(op, split=split):.0f} ms"


def _share(one, nodes):
    """Return the share of completed calls, marked if only reads or only writes did."""
    of = one.availability_of(nodes)
    only = [op for op in of if of[op] > 0]
    said = f"{statistics.fmean(of.values()):.0%}"
    return f"{said}, {only[0]}s only" if len(only) == 1 else said


def _stale(ages):
    if not ages:
        return "none answered"
    old = [age for age in ages if age > 0]
    share = len(old) / len(ages)
    return f"{share:.0%}, to {max(old) * 1000:.0f} ms" if old else "0%"


def survey(
    stores: Mapping[str, Callable[[int, Sequence[int]], Node]] = STORES,
    *,
    seeds: int = 12,
) -> Survey:
    """Measure several stores of three nodes, each under its name (see `measure`)."""
    with Progress() as progress:
        return Survey(
            measured(make, name, 3, seeds, simulate, progress)
            for name, make in stores.items()
        )
