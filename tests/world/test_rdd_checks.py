"""Wrong answers to exercise 07 beyond its variants, and the hint that each meets."""

# ruff: noqa: B023 - what is made in a loop runs before the loop goes on

import contextlib
import gc
import itertools
import json
import math
import os
import random
import re
import sys
import tempfile
from collections import defaultdict
from functools import partial, reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest

from distlab.dataflow import RDD, Context
from distlab.grading import ClustersFound, JoinedInPlace, MapSideJoin, ReducedByKey
from distlab.grading.rdds import pair_shapes
from distlab.grading.rdds.point_shapes import lloyd, points_of, shape

EXERCISE = Path(__file__).parents[2] / "exercises/07_rdds_and_spark"


def visible(name):
    """Return the cases that a learner sees in a cell: these have to be enough."""
    cells = json.loads((EXERCISE / f"{EXERCISE.name}.ipynb").read_text())["cells"]
    source = "".join(next(cell["source"] for cell in cells if cell["id"] == name))
    names = {}
    exec(source.rpartition("grade(")[0], names)
    return names["cases"]


CASES = visible("step-one-check")
TABLES = visible("step-two-check")
POINTS = visible("step-three-check")


@pytest.fixture(autouse=True, scope="module")
def server():
    """Have the process server run that stays when a Context has ended."""
    Context(workers=1).stop()


def judged(check, function, names):
    """Return the verdict on the first case that does not pass, or on the last."""
    for name in names:
        verdict = check(function, name).judge()
        if verdict.outcome != "pass":
            break
    return verdict


def combining(function):
    def combine(pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table[key], value) if key in table else value
        return table.items()

    return combine


def right(rdd, function, partitions):
    combine = combining(function)
    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


class Same:
    """A value that says it equals everything."""

    def __eq__(self, other):
        return True

    __hash__ = None


class OddWord(str):
    """A word that does."""

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


def table_of(pairs):
    table = {}
    for key, value in pairs:
        table.setdefault(key, []).append(value)
    return table


def looked_up(table, pair):
    return [(pair[0], (pair[1], value)) for value in table.get(pair[0], [])]


def nearest(point, centres):
    return min(range(len(centres)), key=lambda n: math.dist(point, centres[n]))


def added(one, other):
    return tuple(map(add, one[0], other[0])), one[1] + other[1]


def moved(points, centres):
    mine = points.map(lambda point: (nearest(point, centres), (point, 1)))
    sums = mine.reduceByKey(added).collectAsMap()
    means = {n: tuple(x / count for x in total) for n, (total, count) in sums.items()}
    return [means.get(n, centre) for n, centre in enumerate(centres)]


def steps_of(points, centres, steps):
    for _ in range(steps):
        centres = moved(points, centres)
    return centres


# Step 1


def returns_nothing(rdd, function, partitions):
    right(rdd, function, partitions)


def from_the_driver(rdd, function, partitions):
    return rdd.context.parallelize([("a", 1)], partitions)


def from_another_context(rdd, function, partitions):
    with Context(workers=1) as other:
        return other.parallelize([("a", 1)], partitions)


def engines_own_way(rdd, function, partitions):
    return rdd.aggregateByKey(None, lambda _, b: b, function, partitions)


def by_its_inside(rdd, function, partitions):
    made = rdd.reduceByKey(function, partitions)
    made.operation = "mapPartitions"
    return made


def by_the_link(rdd, function, partitions):
    program = sys.modules["distlab.dataflow.trial.rdd_program"]
    made = rdd.reduceByKey(function, partitions)
    with contextlib.suppress(AttributeError):
        program._link.ask("method", made, "__setattr__", ["operation", "map"], {})
    return made


def one_partition(rdd, function, partitions):
    return rdd.coalesce(1).mapPartitions(combining(function))


def without_a_shuffle(rdd, function, partitions):
    return rdd.mapPartitions(combining(function), preservesPartitioning=True)


def only_keys(rdd, function, partitions):
    return right(rdd, function, partitions).mapPartitions(dict)


def begins_with_0(rdd, function, partitions):
    def combine(pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table.get(key, 0), value)
        return table.items()

    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


def last_one_wins(rdd, function, partitions):
    placed = rdd.mapPartitions(combining(function)).partitionBy(partitions)
    return placed.mapPartitions(lambda pairs: dict(pairs).items(), True)


def sorts(rdd, function, partitions):
    def combine(pairs):
        ordered = sorted(pairs, key=lambda pair: pair[0])
        for key, own in itertools.groupby(ordered, key=lambda pair: pair[0]):
            yield key, reduce(function, (value for _, value in own))

    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


def only_neighbours(rdd, function, partitions):
    def combine(pairs):
        for key, own in itertools.groupby(pairs, key=lambda pair: pair[0]):
            yield key, reduce(function, (value for _, value in own))

    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combining(function), preservesPartitioning=True)


def walks_twice(rdd, function, partitions):
    def combine(pairs):
        keys = {key for key, _ in pairs}
        own = {key: [v for other, v in pairs if other == key] for key in keys}
        return [(key, reduce(function, values)) for key, values in own.items()]

    return rdd.mapPartitions(combine).partitionBy(partitions)


def other_number(rdd, function, partitions):
    return right(rdd, function, partitions + 1)


def two_shuffles(rdd, function, partitions):
    return right(right(rdd, function, partitions + 1), function, partitions)


def pretends(rdd, function, partitions):
    return right(rdd, function, partitions).mapPartitions(
        lambda pairs: [(key, Same()) for key, _ in pairs], preservesPartitioning=True
    )


def pretends_to_be_a_word(rdd, function, partitions):
    return right(rdd, function, partitions).mapValues(lambda v: OddWord(v))


def reads_the_checks(rdd, function, partitions):
    from distlab.grading.rdds.pair_shapes import reduced_pairs  # noqa: F401


def searches_memory(rdd, function, partitions):
    return gc.get_objects()


def patches_the_engine(rdd, function, partitions):
    RDD.getNumPartitions = lambda self: partitions
    RDD.lineage = lambda self: None
    return two_shuffles(rdd, function, partitions)


def patches_the_workers(rdd, function, partitions):
    def patched(pairs):
        from distlab.dataflow.rdd import executor, shuffle

        write = executor.write_pieces
        shuffle._Pieces.records = property(lambda self: [0] * 9)
        executor.write_pieces = lambda *how: write(*how)._replace(records=[0] * 9)
        return pairs

    placed = rdd.mapPartitions(patched).partitionBy(partitions)
    return placed.mapPartitions(combining(function), preservesPartitioning=True)


def hides_its_jobs(rdd, function, partitions):
    rdd.collect()
    rdd.context.jobs.clear()
    return right(rdd, function, partitions)


def hides_a_method(rdd, function, partitions):
    made = right(rdd, function, partitions)
    made.collect = list
    return made


def stops(rdd, function, partitions):
    rdd.context.stop()


def hands_out_a_dictionary(rdd, function, partitions):
    return rdd.mapPartitions(lambda pairs: dict(pairs)).partitionBy(partitions)


def counts_first(rdd, function, partitions):
    def combine(pairs):
        return combining(function)(pairs) if sum(1 for _ in pairs) else []

    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


def only_neighbours_after_the_shuffle(rdd, function, partitions):
    def combine(pairs):
        for key, own in itertools.groupby(pairs, key=lambda pair: pair[0]):
            yield key, reduce(function, (value for _, value in own))

    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


def on_the_way(rdd, function, partitions):
    def combine(pairs):
        table = {}
        for key, value in pairs:
            table[key] = function(table[key], value) if key in table else value
            yield key, table[key]

    placed = rdd.mapPartitions(combining(function)).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


def looks_whether_it_is_true(rdd, function, partitions):
    return right_but_for(
        rdd,
        partitions,
        lambda table, k, v: function(table[k], v) if table.get(k) else v,
    )


def looks_whether_it_is_none(rdd, function, partitions):
    return right_but_for(
        rdd,
        partitions,
        lambda table, k, v: v if table.get(k) is None else function(table[k], v),
    )


def begins_with_none(rdd, function, partitions):
    return right_but_for(rdd, partitions, lambda table, k, v: function(table.get(k), v))


def begins_with_nothing(rdd, function, partitions):
    return right_but_for(rdd, partitions, lambda table, k, v: function(table[k], v))


def asks_for_another_job(rdd, function, partitions):
    rdd.context.parallelize([1]).count()
    return right(rdd, function, partitions)


def right_but_for(rdd, partitions, value_of):
    def combine(pairs):
        table = {}
        for key, value in pairs:
            table[key] = value_of(table, key, value)
        return table.items()

    placed = rdd.mapPartitions(combine).partitionBy(partitions)
    return placed.mapPartitions(combine, preservesPartitioning=True)


def all_in_one_place(rdd, function, partitions):
    combine = combining(function)
    placed = rdd.mapPartitions(combine).partitionBy(partitions, lambda key: 0)
    return placed.mapPartitions(combine, preservesPartitioning=True)


WRONG_SUMS = {
    hands_out_a_dictionary: "gets only its keys",
    counts_first: "Nothing comes out at all",
    only_neighbours_after_the_shuffle: "with other keys between them",
    on_the_way: "When is the value of a key complete",
    looks_whether_it_is_true: "and not whether its value is true",
    looks_whether_it_is_none: "None is a value like others",
    begins_with_none: "first value is what it has so far",
    begins_with_nothing: "met for the first time once",
    asks_for_another_job: "which somebody else will call",
    all_in_one_place: "place a key if nobody tells it",
    returns_nothing: "Return the RDD itself",
    from_the_driver: "Only the given RDD holds the data",
    from_another_context: "is there on one machine",
    engines_own_way: "What the engine does in an operation like this",
    by_its_inside: "The engine is given",
    by_the_link: "What the engine does in an operation like this",
    one_partition: "What the engine does in an operation like this",
    without_a_shuffle: "where is the shuffle?",
    only_keys: "it has the pairs as .items()",
    begins_with_0: "A key's first value is what there is to begin with",
    last_one_wins: "Later ones replace it",
    sorts: "Keys need not have an order",
    only_neighbours: "pairs of one key may be far apart",
    walks_twice: "can be walked through only once",
    other_number: "partitionBy takes how many partitions",
    two_shuffles: "One shuffle is enough",
    pretends: "Is every value of the key in it",
    pretends_to_be_a_word: "Is every value of the key in it",
    reads_the_checks: "are locked where your functions run",
    searches_memory: "is there on one machine",
    patches_the_engine: "One shuffle is enough",
    patches_the_workers: "Every pair crosses the network as it is",
    hides_its_jobs: "A transformation only adds to the recipe",
    hides_a_method: "The engine is given",
    stops: "The engine is given",
}


@pytest.mark.parametrize("function", WRONG_SUMS, ids=lambda each: each.__name__)
def test_a_wrong_reduce_by_key_meets_its_hint(function):
    verdict = judged(ReducedByKey, function, CASES)
    assert verdict.outcome == "fail", verdict
    assert WRONG_SUMS[function] in verdict.hint, verdict


def test_values_of_some_neighbours_are_not_a_whole_keys(monkeypatch):
    monkeypatch.setattr(pair_shapes, "salted", random.Random)  # in this draw they meet
    function = only_neighbours_after_the_shuffle
    hint = judged(ReducedByKey, function, ["two of five partitions are empty"]).hint
    assert "Do you see all of them" in hint


def test_values_that_are_all_sent_are_noticed_by_their_bytes():
    def lists(rdd, function, partitions):
        def together(pairs):
            return table_of(pairs).items()

        def apart(pairs):
            for key, lists in table_of(pairs).items():
                yield key, reduce(function, itertools.chain.from_iterable(lists))

        placed = rdd.mapPartitions(together).partitionBy(partitions)
        return placed.mapPartitions(apart, preservesPartitioning=True)

    verdict = judged(ReducedByKey, lists, ["values that are lists", "one key"])
    assert "Apply function before the shuffle" in verdict.hint, verdict


def test_none_is_a_value():
    def combine(function, pairs):
        table = {}
        for key, value in pairs:
            before = table.get(key)
            table[key] = value if before is None else function(before, value)
        return table.items()

    def loses_none(rdd, function, partitions):
        here = partial(combine, function)
        placed = rdd.mapPartitions(here).partitionBy(partitions)
        return placed.mapPartitions(here, preservesPartitioning=True)

    names = ["keys of many kinds", "sizes, some of which are not known"]
    verdict = judged(ReducedByKey, loses_none, names)
    assert "None is a value like others" in verdict.hint, verdict


def test_another_partition_function_is_another_partitioner():
    def elsewhere(rdd, function, partitions):
        combine = combining(function)
        choose = lambda key: hash(repr(key))  # noqa: E731
        placed = rdd.mapPartitions(combine).partitionBy(partitions, choose)
        return placed.mapPartitions(combine, preservesPartitioning=True)

    assert judged(ReducedByKey, elsewhere, CASES).outcome == "pass"
    hint = judged(JoinedInPlace, elsewhere, CASES).hint
    assert "the same function of the key" in hint


def test_a_partitioner_that_is_a_lie_is_noticed():
    def forges(rdd, function, partitions):
        combine = combining(function)
        named = rdd.mapPartitions(combine).map(lambda pair: (repr(pair[0]), pair))
        placed = named.partitionBy(partitions)
        here = placed.map(lambda pair: pair[1], preservesPartitioning=True)
        return here.mapPartitions(combine, preservesPartitioning=True)

    assert "and they are not" in judged(JoinedInPlace, forges, CASES).hint


def test_a_class_of_the_notebook_may_be_used():
    class Held:
        def __init__(self, value):
            self.value = value

    def holds(rdd, function, partitions):
        def combine(pairs):
            table = {}
            for key, value in pairs:
                held = table.setdefault(key, Held(value))
                if held.value is not value:
                    held.value = function(held.value, value)
            return [(key, held.value) for key, held in table.items()]

        return right(rdd, function, partitions).mapPartitions(combine, True)

    assert judged(JoinedInPlace, holds, CASES).outcome == "pass"


# Step 2


def broadcast(use):
    """Return a join that broadcasts table_of(small) and maps each pair by `use`."""

    def join_small(context, large, small):
        sent = context.broadcast(table_of(small))
        return large.flatMap(lambda pair: use(sent.value, pair))

    return join_small


def left_join(table, pair):
    return [(pair[0], (pair[1], value)) for value in table.get(pair[0], [None])]


def key_error(table, pair):
    return [(pair[0], (pair[1], value)) for value in table[pair[0]]]


def turned(table, pair):
    return [(key, (b, a)) for key, (a, b) in looked_up(table, pair)]


def flat(table, pair):
    return [(key, a, b) for key, (a, b) in looked_up(table, pair)]


def whole_list(table, pair):
    return [(pair[0], (pair[1], table[pair[0]]))] if pair[0] in table else []


def handle_as_a_table(context, large, small):
    sent = context.broadcast(table_of(small))
    return large.flatMap(lambda pair: looked_up(sent, pair))


def handle_in_brackets(context, large, small):
    sent = context.broadcast(table_of(small))
    return large.map(lambda pair: sent[pair[0]])


def table_by_a_job(context, large, small):
    table = context.parallelize(small).groupByKey().mapValues(list).collectAsMap()
    sent = context.broadcast(table)
    return large.flatMap(lambda pair: looked_up(sent.value, pair))


def unwritten_join(context, large, small):
    raise NotImplementedError


def only_true(table, pair):
    return [(key, both) for key, both in looked_up(table, pair) if both[1]]


def destroyed(context, large, small):
    sent = context.broadcast(table_of(small))
    made = large.flatMap(lambda pair: looked_up(sent.value, pair))
    sent.destroy()
    return made


def in_each_task(context, large, small):
    table = table_of(small)
    return large.flatMap(lambda pair: looked_up(table, pair))


def in_pieces(context, large, small):
    rows = {key: context.broadcast(own) for key, own in table_of(small).items()}
    return large.flatMap(
        lambda pair: [
            (pair[0], (pair[1], value))
            for value in (rows[pair[0]].value if pair[0] in rows else ())
        ]
    )


def searches(context, large, small):
    rows = context.broadcast(small)
    return large.flatMap(
        lambda pair: [(k, (pair[1], v)) for k, v in rows.value if k == pair[0]]
    )


def crosses(context, large, small):
    every = large.cartesian(context.parallelize(small, 1))
    return every.filter(lambda both: both[0][0] == both[1][0]).map(
        lambda both: (both[0][0], (both[0][1], both[1][1]))
    )


def collects(context, large, small):
    table = table_of(small)
    pairs = [looked_up(table, pair) for pair in large.collect()]
    return context.parallelize(pairs).flatMap(list)


def keeps_sets(context, large, small):
    table = defaultdict(set)
    for key, value in small:
        table[key].add(value)
    sent = context.broadcast(dict(table))
    return large.flatMap(lambda pair: looked_up(sent.value, pair))


def asks_an_rdd(context, large, small):
    other = context.parallelize(small)
    return large.flatMap(lambda pair: [(pair[0], (pair[1], other.lookup(pair[0])))])


def writes_a_file(context, large, small):
    with open(os.path.join(tempfile.gettempdir(), "table"), "w") as file:
        file.write(repr(small))


WRONG_JOINS = {
    handle_as_a_table: "the table is its .value",
    handle_in_brackets: "What travels is a handle",
    table_by_a_job: "is made there, without a job",
    unwritten_join: "Which of the two sides has to travel",
    broadcast(only_true): "0, None and an empty word are values",
    broadcast(left_join): "only for a key that is on both sides",
    broadcast(key_error): "need not be in the table",
    broadcast(turned): "comes first in each pair",
    broadcast(flat): "as rdd.join gives them",
    broadcast(whole_list): "gives a pair for each of them",
    destroyed: "nothing has run yet",
    in_each_task: "hands it to each worker once",
    in_pieces: "One table needs one broadcast",
    searches: "Which structure finds a key in one step",
    crosses: "is no RDD",
    collects: "The large side stays where it is",
    keeps_sets: "stands twice in the small table",
    asks_an_rdd: "Only the driver can use an RDD",
    writes_a_file: "is there on one machine",
}


@pytest.mark.parametrize("hint", WRONG_JOINS.values())
def test_a_wrong_join_meets_its_hint(hint):
    function = next(each for each, own in WRONG_JOINS.items() if own == hint)
    verdict = judged(MapSideJoin, function, TABLES)
    assert verdict.outcome == "fail", verdict
    assert hint in verdict.hint, verdict


def searches_and_hides_it(context, large, small):
    rows = context.broadcast(small)

    def found(pair):
        pairs = [(k, (pair[1], v)) for k, v in rows.value if k == pair[0]]
        counting = sys.modules["distlab.dataflow.trial.rdd_functions"]
        counting._looked = 0
        return pairs

    return large.flatMap(found)


def test_a_search_whose_count_is_taken_back_does_not_end_in_time():
    verdict = judged(MapSideJoin, searches_and_hides_it, TABLES)
    assert verdict.title == "a table of 60,000 rows", verdict
    assert verdict.outcome == "fail" and "finds a key in one step" in verdict.hint


def test_the_notebooks_own_context_cannot_be_used():
    with Context(workers=1) as mine:
        verdict = judged(MapSideJoin, lambda *given: mine.emptyRDD(), TABLES)
    assert "with a Context of its own" in verdict.hint, verdict
    assert "uses `mine`" in verdict.found and "Lock" not in verdict.found


def test_pairs_that_look_alike_when_they_are_cut_are_shown_whole():
    def cuts(table, pair):
        return [(k, (a, b[:-1])) for k, (a, b) in looked_up(table, pair)]

    found = judged(MapSideJoin, broadcast(cuts), ["a table of 600 rows"]).found
    row = next(line for line in found.splitlines() if "first difference" in line)
    expected, yours = re.findall(r"\(\d+, '[^']*'\)", row)[:2]
    assert expected != yours and expected.startswith(yours[:-2])


# Step 3


def one_step_again_and_again(lines, parse, centres, steps):
    points = lines.map(parse).cache()
    return [moved(points, centres) for _ in range(steps)][-1]


def one_step_more(lines, parse, centres, steps):
    return steps_of(lines.map(parse).cache(), centres, steps + 1)


def stays(lines, parse, centres, steps):
    steps_of(lines.map(parse).cache(), centres, steps)
    return centres


def sorts_centres(lines, parse, centres, steps):
    return sorted(steps_of(lines.map(parse).cache(), centres, steps), reverse=True)


def centres_by_number(lines, parse, centres, steps):
    return dict(enumerate(steps_of(lines.map(parse).cache(), centres, steps)))


def centres_as_text(lines, parse, centres, steps):
    return list(map(str, steps_of(lines.map(parse).cache(), centres, steps)))


def means_of_partitions(lines, parse, centres, steps):
    points = lines.map(parse).cache()
    for _ in range(steps):

        def means(own):
            table = table_of((nearest(point, centres), point) for point in own)
            return [(n, (tuple(np.mean(ps, axis=0)), 1)) for n, ps in table.items()]

        sums = points.mapPartitions(means).reduceByKey(added).collectAsMap()
        table = {n: tuple(x / k for x in total) for n, (total, k) in sums.items()}
        centres = [table.get(n, centre) for n, centre in enumerate(centres)]
    return centres


def divides_by_nothing(lines, parse, centres, steps):
    points = lines.map(parse).cache()
    for _ in range(steps):
        zero = [((0.0,) * len(centres[0]), 0)] * len(centres)

        def plus(sums, point):
            number = nearest(point, centres)
            sums[number] = added(sums[number], (point, 1))
            return sums

        sums = points.aggregate(zero, plus, lambda a, b: list(map(added, a, b)))
        centres = [tuple(x / count for x in total) for total, count in sums]
    return centres


def groups_points(lines, parse, centres, steps):
    points = lines.map(parse).cache()
    for _ in range(steps):
        mine = points.map(lambda point: (nearest(point, centres), point)).groupByKey()
        mean = mine.mapValues(lambda own: tuple(map(float, np.mean(list(own), axis=0))))
        table = mean.collectAsMap()
        centres = [table.get(n, centre) for n, centre in enumerate(centres)]
    return centres


def alone(points, centres, steps):
    for _ in range(steps):
        table = table_of((nearest(point, centres), point) for point in points)
        means = {n: tuple(map(float, np.mean(ps, axis=0))) for n, ps in table.items()}
        centres = [means.get(n, centre) for n, centre in enumerate(centres)]
    return centres


def collects_points(lines, parse, centres, steps):
    return alone(lines.map(parse).cache().collect(), centres, steps)


def parses_in_the_driver(lines, parse, centres, steps):
    return alone(list(map(parse, lines.collect())), centres, steps)


def parses_its_own_way(lines, parse, centres, steps):
    points = lines.map(lambda line: tuple(map(float, line.split()))).cache()
    return steps_of(points, centres, steps)


def keeps_after_the_first_job(lines, parse, centres, steps):
    points = lines.map(parse)
    points.count()
    return steps_of(points.cache(), centres, steps)


def forgets_in_each_step(lines, parse, centres, steps):
    points = lines.map(parse)
    for _ in range(steps):
        centres = moved(points.cache(), centres)
        points.unpersist()
    return centres


def keeps_something_else(lines, parse, centres, steps):
    return steps_of(lines.map(str.strip).cache().map(parse), centres, steps)


def forgets_the_recipe(lines, parse, centres, steps):
    points = lines.map(parse)
    points.localCheckpoint()
    return steps_of(points, centres, steps)


def mean_of(sums):
    return {n: tuple(x / count for x in total) for n, (total, count) in sums}


def summed(points, centres):
    mine = points.map(lambda point: (nearest(point, centres), (point, 1)))
    return mean_of(mine.reduceByKey(added).collect())


def with_each(step):
    """Return a k-means that makes new centres by step(points, centres)."""

    def kmeans(lines, parse, centres, steps):
        points = lines.map(parse).cache()
        for _ in range(steps):
            centres = step(points, centres)
        return centres

    kmeans.__name__ = step.__name__
    return kmeans


def drops_a_centre(points, centres):
    table = summed(points, centres)
    return [table[n] for n in sorted(table)]


def asks_for_every_centre(points, centres):
    table = summed(points, centres)
    return [table[n] for n in range(len(centres))]


def puts_it_at_zero(points, centres):
    table = summed(points, centres)
    return [table.get(n, (0.0, 0.0)) for n in range(len(centres))]


def in_the_order_of_arrival(points, centres):
    return list(summed(points, centres).values())


def rounds(points, centres):
    return [tuple(round(x, 3) for x in centre) for centre in moved(points, centres)]


def one_job_for_each_centre(points, centres):
    made = []
    for n, centre in enumerate(centres):
        own = points.filter(lambda point: nearest(point, centres) == n)
        total, count = own.map(lambda point: (point, 1)).fold(
            ((0.0,) * len(centre), 0), added
        )
        made.append(tuple(x / count for x in total) if count else centre)
    return made


def overwrites_what_it_was_given(lines, parse, centres, steps):
    points = lines.map(parse).cache()
    for _ in range(steps):
        for n, centre in summed(points, list(centres)).items():
            centres[n] = centre
    return centres


def keeps_the_lines_too(lines, parse, centres, steps):
    return steps_of(lines.cache().map(parse).cache(), centres, steps)


def forgets_after_the_first_step(lines, parse, centres, steps):
    points = lines.map(parse).cache()
    for _ in range(steps):
        centres = moved(points, centres)
        points.unpersist()
    return centres


def writes_a_checkpoint(lines, parse, centres, steps):
    folder = os.path.join(tempfile.gettempdir(), "checkpoints")
    lines.context.setCheckpointDir(folder)
    points = lines.map(parse)
    points.checkpoint()
    return steps_of(points, centres, steps)


def all_steps_in_one_job(lines, parse, centres, steps):
    def whole(points):
        return alone(list(points), centres, steps)

    return lines.map(parse).cache().coalesce(1).mapPartitions(whole).collect()


def unwritten_means(lines, parse, centres, steps):
    raise NotImplementedError


WRONG_MEANS = {
    with_each(drops_a_centre): "Such a centre stays where it is",
    with_each(asks_for_every_centre): "Such a centre stays where it is",
    with_each(puts_it_at_zero): "Such a centre stays where it is",
    with_each(in_the_order_of_arrival): "in another order",
    with_each(rounds): "These numbers are rounded",
    with_each(one_job_for_each_centre): "Each of these jobs reads all points",
    overwrites_what_it_was_given: "Put the new centres into a list of your own",
    keeps_the_lines_too: "who still reads the other one",
    forgets_after_the_first_step: "has been forgotten in between",
    writes_a_checkpoint: "A checkpoint is written to files",
    all_steps_in_one_job: "Between two steps the centres have to be in the driver",
    unwritten_means: "Which RDD is the same in all steps",
    one_step_again_and_again: "With which ones does the next begin",
    one_step_more: "another number of steps",
    stays: "The centres have not moved",
    sorts_centres: "in another order",
    centres_by_number: "Return the list of the new centres",
    centres_as_text: "A centre is a tuple of numbers",
    means_of_partitions: "A mean of means",
    divides_by_nothing: "Such a centre stays where it is",
    groups_points: "Every point crosses the network",
    collects_points: "The points stay with the workers",
    parses_in_the_driver: "The points stay with the workers",
    parses_its_own_way: "with the function parse that is given",
    keeps_after_the_first_job: "The first job had nothing kept yet",
    forgets_in_each_step: "has been forgotten in between",
    keeps_something_else: "What is kept are not points yet",
    forgets_the_recipe: "A local checkpoint forgets",
}


@pytest.mark.parametrize("function", WRONG_MEANS, ids=lambda each: each.__name__)
def test_a_wrong_k_means_meets_its_hint(function):
    verdict = judged(ClustersFound, function, POINTS)
    assert verdict.outcome == "fail", verdict
    assert WRONG_MEANS[function] in verdict.hint, verdict


def test_centres_that_look_alike_are_shown_with_more_digits():
    def rounds_in_the_end(lines, parse, centres, steps):
        made = steps_of(lines.map(parse).cache(), centres, steps)
        return [tuple(round(x, 7) for x in centre) for centre in made]

    verdict = judged(ClustersFound, rounds_in_the_end, POINTS)
    assert "These numbers are rounded" in verdict.hint
    row = next(row for row in verdict.found.splitlines() if "first difference" in row)
    expected, yours = re.findall(r"\(.*?\)", row)
    assert expected != yours


def test_a_second_job_in_a_step_may_read_what_is_not_the_points():
    def ordered(points, centres):
        mine = points.map(lambda point: (nearest(point, centres), (point, 1)))
        table = mean_of(mine.reduceByKey(added).sortByKey().collect())
        return [table.get(n, centre) for n, centre in enumerate(centres)]

    assert judged(ClustersFound, with_each(ordered), POINTS[:2]).outcome == "pass"


def test_what_survives_only_by_remembering_on_a_worker_is_no_cache():
    def remembers(number, lines, parse):
        own = sys.modules.setdefault("remembered", type(sys)("remembered")).__dict__
        return own.setdefault(number, [parse(line) for line in lines])

    def kmeans(lines, parse, centres, steps):
        points = lines.mapPartitionsWithIndex(lambda n, own: remembers(n, own, parse))
        return steps_of(points, centres, steps)

    assert "Nothing is kept" in judged(ClustersFound, kmeans, POINTS).hint


def test_the_engine_kills_a_worker_and_the_learner_nobody():
    def right(lines, parse, centres, steps):
        return steps_of(lines.map(parse).cache(), centres, steps)

    def signals(lines, parse, centres, steps):
        os.kill(os.getpid(), 0)
        return right(lines, parse, centres, steps)

    assert judged(ClustersFound, right, POINTS[-1:]).outcome == "pass"
    assert "it uses os.kill" in judged(ClustersFound, signals, POINTS[:1]).found


def seen_of(case):
    """Return what is seen of a k-means without a mistake."""
    found = lloyd(points_of(case["parts"]), case["centres"], case["steps"])
    lines = sum(map(len, case["parts"]))
    seen = {"centres": list(map(list, found)), "parsed": lines, "ran": [1] * 4}
    job = {"action": "collect", "bytes": 0, "sent_bytes": 0, "records": 0, "kept": []}
    jobs = [job] * 4
    return seen | {"jobs": jobs, "fired": 0, "changed": False}


@pytest.mark.parametrize(("fired", "lost"), [(0, []), (1, []), (2, [1])])
def test_a_worker_that_was_not_killed_proves_nothing(fired, lost):
    case = shape(POINTS[-1])
    clean = seen_of(case)
    seen = {"clean": clean, "killed": clean | {"fired": fired, "lost": lost}}
    verdict = ClustersFound(None, POINTS[-1])._wrong(case, seen)
    assert verdict.outcome == "inconclusive"


def test_more_than_what_was_lost_is_too_much():
    case = shape(POINTS[-1])
    clean, sizes = seen_of(case), list(map(len, case["parts"]))
    killed = clean | {"fired": 1, "lost": [1, 3], "ran": [1, 2, 1, 2]}
    killed["parsed"] += sizes[1] + sizes[3]
    seen = {"clean": clean, "killed": killed}
    check = ClustersFound(None, POINTS[-1])
    assert check._wrong(case, seen) is None
    killed |= {"ran": [2, 2, 2, 2], "parsed": 2 * sum(sizes)}
    verdict = check._wrong(case, seen)
    assert "Only what was kept on the lost worker" in verdict.hint
