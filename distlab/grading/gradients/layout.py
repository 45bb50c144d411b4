"""Which parameters belong into which bucket, and what is wrong with another answer.

    registered   w1  b1  w2  b2  w3  b3
    buckets      [b3 w3] [b2] [w2 b1] [w1]     each with room for so many bytes

A parameter goes into the bucket that was opened last, if that is of its dtype and has
room; if not, it opens the next. The first bucket has a limit of its own.
"""

import operator
from collections import Counter
from itertools import chain, zip_longest
from typing import NamedTuple

__all__ = ["Row", "hint_for_layout", "just_reached", "laid_out", "layout_told"]


class Row(NamedTuple):
    """One parameter: its name, dtype, how many numbers, bytes, and whether frozen."""

    name: str
    dtype: str
    numbers: int
    bytes: int
    frozen: bool


def laid_out(rows: list[Row], first_bytes: int, bucket_bytes: int) -> list[list[str]]:
    """Return the names in each bucket, as the exercise asks for it."""
    return _filled(rows[::-1], first_bytes, bucket_bytes, "bytes")


def just_reached(
    rows: list[Row], first_bytes: int, bucket_bytes: int
) -> tuple[int, int]:
    """Return limits that the first two buckets meet exactly, laid out as before."""
    size_of = {row.name: row.bytes for row in rows}
    one, other, *_ = laid_out(rows, first_bytes, bucket_bytes)
    return sum(size_of[name] for name in one), sum(size_of[name] for name in other)


def _filled(rows, first, most, unit, fits=operator.le):
    """Return names in buckets. fits(size, room): whether one more may join."""
    buckets, room = [], 0
    for row in rows:
        if row.frozen:
            continue
        size = getattr(row, unit)
        if not buckets or buckets[-1][-1].dtype != row.dtype or not fits(size, room):
            room = most if buckets else first
            buckets.append([])
        buckets[-1].append(row)
        room -= size
    return [[row.name for row in bucket] for bucket in buckets]


def layout_told(
    rows: list[Row], limits: tuple[int, int], yours: list[list[str]]
) -> list[str]:
    """Return a table, bucket by bucket, with the first difference marked."""
    size_of = {row.name: row.bytes for row in rows}
    pairs = list(zip_longest(laid_out(rows, *limits), yours))
    words = [
        ["-" if b is None else _named(b, size_of) for b in buckets] for buckets in pairs
    ]
    wide = max([8, *(len(right) for right, _ in words)])
    first = next(k for k, (right, own) in enumerate(pairs) if right != own)
    lines = [f"first_bytes={limits[0]}, bucket_bytes={limits[1]}; name:bytes"]
    lines.append(f"{'bucket':>8}  {'expected':{wide}}  yours")
    for number, (right, own) in enumerate(words):
        mark = "  ← first difference" if number == first else ""
        lines.append(f"{number:>8}  {right:{wide}}  {own}{mark}")
    return lines


def _named(names, size_of):
    return " ".join(f"{name}:{size_of[name]}" for name in names) or "(empty)"


def hint_for_layout(
    rows: list[Row], limits: tuple[int, int], yours: list[list[str]]
) -> str:
    """Return a nudge for names in buckets that are not as the rule has them."""
    first, most = limits
    back, held = rows[::-1], Counter(chain(*yours))
    row_of = {row.name: row for row in rows}
    if any(row_of[name].frozen for name in held):
        return (
            "A frozen parameter has requires_grad=False and never gets a gradient. "
            "What would travel for it?"
        )
    twice = [name for name, times in held.items() if times > 1]
    if twice:
        return f"{twice[0]} is in more than one place: its gradient would travel twice."
    lost = [r.name for r in back if not r.frozen and r.name not in held]
    if lost:
        return f"{lost[0]} is in no bucket, so its gradient never travels."
    if any(not bucket for bucket in yours):
        return "A bucket is empty. Open one only when there is a parameter for it."
    if any(len({row_of[name].dtype for name in b}) > 1 for b in yours):
        return "A buffer has one dtype: a parameter of another one begins a new bucket."
    if list(chain(*yours)) == [row.name for row in rows if not row.frozen]:
        return (
            "This is the order of registration. Which gradients does backward finish "
            "first, those of the first layer or those of the last?"
        )
    return _hint_for_sizes(back, first, most, yours, row_of)


def _hint_for_sizes(back, first, most, yours, row_of):
    """Return a nudge where every parameter is in one bucket, of one type."""
    if yours == _filled(back, first, most, "bytes", fits=lambda _, room: room > 0):
        return (
            "Your bucket ends once it has reached its limit, and so it is larger. Look "
            "whether the next parameter fits before you put it in."
        )
    if yours == _filled(back, first, most, "bytes", fits=operator.lt):
        return (
            "A bucket may be filled up to its limit: a parameter joins it also if it "
            "has exactly as many bytes as are left."
        )
    if yours == _filled(back, first, first, "bytes"):
        return (
            "Only the first bucket has the small limit; all others have bucket_bytes."
        )
    if yours == _filled(back, most, most, "bytes"):
        return "The first bucket has a limit of its own, first_bytes."
    if all(len(bucket) == 1 for bucket in yours):
        return (
            "Each parameter has a bucket of its own, which makes an all-reduce for "
            "each. When does a parameter join the bucket that is open?"
        )
    if yours == _filled(back, first, most, "numbers"):
        return "The limits are in bytes. A parameter has p.numel() numbers of how many?"
    limits = [first] + [most] * len(yours)
    for bucket, limit in zip(yours, limits, strict=False):
        size = sum(row_of[name].bytes for name in bucket)
        if size > limit and len(bucket) > 1:
            return "A bucket holds more bytes than it has room for."
    return (
        "Go through the parameters from the last to the first, and ask of each: is the "
        "open bucket of its dtype, and are there as many bytes left?"
    )
