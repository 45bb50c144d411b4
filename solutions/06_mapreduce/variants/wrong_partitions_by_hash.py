"""Sends a file to the reducer that hash() says, which every Python says otherwise."""

POINTS = 7.0
HINT = "another number in every new Python"


def make_partitioner(sizes, reducers):
    return lambda key, reducers: hash(key[0]) % reducers
