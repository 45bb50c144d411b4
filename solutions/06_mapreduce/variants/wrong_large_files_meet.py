"""Places files by a hash that is the same everywhere."""

POINTS = 7.0
HINT = "Large files meet in one reducer"


def make_partitioner(sizes, reducers):
    return lambda key, reducers: zlib.crc32(key[0].encode()) % reducers
