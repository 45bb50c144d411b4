"""The engine's groupByKey, and then function on each list."""

from functools import reduce

POINTS = 6.0
HINT = "groupByKey sends every value as it is"


def reduce_by_key(rdd, function, partitions):
    return rdd.groupByKey(partitions).mapValues(lambda values: reduce(function, values))
