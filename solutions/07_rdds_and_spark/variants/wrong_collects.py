"""Combines in the driver, and hands the result out again."""

POINTS = 6.0
HINT = "Leave the work to the workers"


def reduce_by_key(rdd, function, partitions):
    table = {}
    for key, value in rdd.collect():
        table[key] = function(table[key], value) if key in table else value
    return rdd.context.parallelize(list(table.items()), partitions)
