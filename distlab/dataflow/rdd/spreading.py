"""Where `repartition` begins to deal out a partition: by a cheap random number.

It is the number that Spark takes, so that records land in the same partitions as there:
the first draw of a generator by shifts, whose seed is a hash of the partition's number.

Source: Marsaglia, "Xorshift RNGs" (2003); Appleby, MurmurHash3, as in Scala's library.
"""

__all__ = ["spread_start"]

_LOW, _ALL = 2**32 - 1, 2**64 - 1
_ARRAY_SEED = 0x3C074A61


def spread_start(seed: int, bound: int) -> int:
    """Return a number from 0 to before `bound` that follows from `seed`."""
    state = _scrambled(seed)
    while True:
        state ^= (state << 21) & _ALL
        state ^= state >> 35
        state ^= (state << 4) & _ALL
        drawn = state & 0x7FFFFFFF
        if bound & (bound - 1) == 0:
            return bound * drawn >> 31
        if drawn - drawn % bound + bound - 1 < 2**31:
            return drawn % bound


def _scrambled(seed):
    data = (seed & _ALL).to_bytes(8, "big")
    low = _murmur(data, _ARRAY_SEED)
    high = _murmur(data, low)
    return high << 32 | low


def _murmur(data, seed):
    """MurmurHash3, 32 bits, of whole words."""
    mixed = seed
    for at in range(0, len(data), 4):
        word = int.from_bytes(data[at : at + 4], "little")
        word = _rotated(word * 0xCC9E2D51 & _LOW, 15) * 0x1B873593 & _LOW
        mixed = (_rotated(mixed ^ word, 13) * 5 + 0xE6546B64) & _LOW
    mixed ^= len(data)
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _LOW
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _LOW
    return mixed ^ mixed >> 16


def _rotated(word, by):
    return (word << by | word >> 32 - by) & _LOW
