"""Bytes and seconds in readable units.

Decimal and binary multiples are different units: a NIC of 10 Gb/s and a
gradient of 400 MB are decimal, a buffer of 1 MiB is binary.

    >>> readable_bytes(2_400_000_000)
    '2.4 GB'
    >>> readable_seconds(0.00213)
    '2.13 ms'
"""

__all__ = ["GB", "KB", "MB", "TB", "KiB", "MiB", "readable_bytes", "readable_seconds"]

KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
KiB, MiB = 2**10, 2**20


def readable_bytes(count: int) -> str:
    """Return `count` bytes in the largest decimal unit that keeps it above one."""
    for unit, size in (("TB", TB), ("GB", GB), ("MB", MB), ("kB", KB)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:g} B"


def readable_seconds(seconds: float) -> str:
    """Return a duration in s, ms or µs with three significant digits, or more."""
    if seconds >= 999.5:
        return f"{seconds:,.0f} s"
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= 0.9995 * size:  # what rounds up to 1000 of the next unit down
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
