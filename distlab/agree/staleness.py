"""Staleness of reads: the ages of the values they returned, from the history alone."""

import bisect
import math
from collections import defaultdict
from itertools import accumulate
from typing import Any

from distlab.history import History

__all__ = ["siblings", "staleness"]


def staleness(history: History) -> list[float]:
    """Return the age in seconds of each completed read's value, in the order of starts.

    A value is stale from the completion of a write that was invoked after the value's
    own write had completed: whatever order the store gives to writes that overlap,
    this one is later. So the age is a lower bound; 0 is not proven fresh.
    A read that returns siblings, a tuple of values, is as old as the youngest of them.
    Values must be written once at most, and be no tuples.
    """
    written, writes = {}, defaultdict(list)
    for each in history:
        if each.op == "write" and each.outcome != "failed":
            unknown = each.end is None
            written[each.key, each.value] = math.inf if unknown else each.end
            if not unknown:
                writes[each.key].append((each.start, each.end))
    replaced = {key: _first_end_after(spans) for key, spans in writes.items()}
    ages = []
    for each in history:
        if each.op == "read" and each.outcome == "ok":
            values = siblings(each.result) or [each.result]
            ends = [written.get((each.key, value), -math.inf) for value in values]
            old = replaced[each.key](max(ends)) if each.key in replaced else math.inf
            ages.append(max(0.0, each.start - old))
    return ages


def siblings(result: Any) -> tuple:
    """Return the siblings that a read found; an empty tuple if it found one value."""
    return result if type(result) is tuple and len(result) > 1 else ()


def _first_end_after(spans):
    """Return the function from a time to the first end of a span begun after it."""
    spans.sort()
    starts = [start for start, _ in spans]
    firsts = list(accumulate((end for _, end in reversed(spans)), min))[::-1]
    firsts.append(math.inf)
    return lambda time: firsts[bisect.bisect_right(starts, time)]
