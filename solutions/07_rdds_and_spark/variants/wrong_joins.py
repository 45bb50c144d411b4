"""rdd.join, with a shuffle of both sides."""

POINTS = 7.0
HINT = "which pairs have to move at all"


def join_small(context, large, small):
    return large.join(context.parallelize(small))
