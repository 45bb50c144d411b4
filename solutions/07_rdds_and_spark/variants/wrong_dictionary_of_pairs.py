"""dict(small) keeps the last value of each key."""

POINTS = 7.0
HINT = "a dictionary of pairs keeps one"


def join_small(context, large, small):
    table = context.broadcast(dict(small))
    here = large.filter(lambda pair: pair[0] in table.value)
    return here.map(lambda pair: (pair[0], (pair[1], table.value[pair[0]])))
