"""Every operation gives what a naive twin on plain lists gives."""

import operator
import random
from collections import Counter, defaultdict
from functools import reduce
from itertools import product
from statistics import mean

import pytest

NUMBERS = [5, 3, 8, 1, 9, 2, 7, 3, 5, 0, 11, 4]
PAIRS = [(number * 7 % 11, number) for number in range(40)]
OTHERS = [*((number % 5, str(number)) for number in range(12)), (99, "alone")]
WORDS = ["the", "quick", "fox", "over", "the", "dog", "the"]


def grouped(pairs):
    groups = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return dict(groups)


def joined(here, there, keys, missing_here=(), missing_there=()):
    here, there = grouped(here), grouped(there)
    return sorted(
        (key, pair)
        for key in keys(here.keys(), there.keys())
        for pair in product(here.get(key, missing_here), there.get(key, missing_there))
    )


IN_ORDER = {
    "map": (lambda r: r.map(str), lambda x: [str(i) for i in x]),
    "flatMap": (lambda r: r.flatMap(range), lambda x: [j for i in x for j in range(i)]),
    "filter": (lambda r: r.filter(lambda i: i % 2), lambda x: [i for i in x if i % 2]),
    "keyBy": (lambda r: r.keyBy(str), lambda x: [(str(i), i) for i in x]),
    "union": (lambda r: r.union(r), lambda x: x + x),
    "+": (lambda r: r + r.map(str), lambda x: x + [str(i) for i in x]),
    "zip": (lambda r: r.zip(r.map(str)), lambda x: [(i, str(i)) for i in x]),
    "zipWithIndex": (
        lambda r: r.zipWithIndex(),
        lambda x: [(i, n) for n, i in enumerate(x)],
    ),
    "sortBy": (lambda r: r.sortBy(lambda i: -i), lambda x: sorted(x, key=lambda i: -i)),
    "coalesce": (lambda r: r.coalesce(2), lambda x: x),
    "mapPartitions": (lambda r: r.mapPartitions(lambda it: it), lambda x: x),
}


@pytest.mark.parametrize("partitions", [1, 20])
@pytest.mark.parametrize("name", IN_ORDER)
def test_records_come_in_the_order_of_the_list(sc, name, partitions):
    made, twin = IN_ORDER[name]
    assert made(sc.parallelize(NUMBERS, partitions)).collect() == twin(NUMBERS)


ANY_ORDER = {
    "distinct": (lambda r: r.distinct(), lambda x: set(x)),
    "repartition": (lambda r: r.repartition(5), lambda x: x),
    "cartesian": (
        lambda r: r.cartesian(r.map(str)),
        lambda x: [(i, str(j)) for i in x for j in x],
    ),
    "intersection": (
        lambda r: r.intersection(r.map(lambda i: i * 2)),
        lambda x: set(x) & {i * 2 for i in x},
    ),
    "subtract": (
        lambda r: r.subtract(r.filter(lambda i: i > 3)),
        lambda x: [i for i in x if i <= 3],
    ),
    "groupBy": (
        lambda r: r.groupBy(lambda i: i % 3).mapValues(sorted).mapValues(tuple),
        lambda x: [
            (k, tuple(sorted(i for i in x if i % 3 == k))) for k in {i % 3 for i in x}
        ],
    ),
}


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("name", ANY_ORDER)
def test_records_are_those_of_the_list(sc, name, partitions):
    made, twin = ANY_ORDER[name]
    found = made(sc.parallelize(NUMBERS, partitions)).collect()
    assert Counter(found) == Counter(list(twin(NUMBERS)))


def test_slices_cover_the_list_whatever_its_length(sc):
    for length in (0, 1, 2, 11, 100):
        for slices in (1, 2, 3, 16):
            made = sc.parallelize(list(range(length)), slices)
            assert made.getNumPartitions() == slices
            assert made.collect() == list(range(length))
            as_range = sc.parallelize(range(length), slices)
            assert as_range.glom().collect() == made.glom().collect()


def test_keys_go_where_their_hash_says_and_stay_in_the_order_they_came(sc):
    parts = sc.parallelize(PAIRS, 4).partitionBy(3).glom().collect()
    assert parts == [[p for p in PAIRS if p[0] % 3 == n] for n in range(3)]
    chosen = sc.parallelize(PAIRS, 4).partitionBy(2, lambda key: key // 6)
    assert chosen.glom().collect() == [
        [p for p in PAIRS if p[0] // 6 % 2 == n] for n in range(2)
    ]


BY_KEY = {
    "reduceByKey": (
        lambda r: r.reduceByKey(operator.sub),
        lambda v: reduce(operator.sub, v),
    ),
    "groupByKey": (lambda r: r.groupByKey().mapValues(list), lambda v: v),
    "aggregateByKey": (
        lambda r: r.aggregateByKey([], lambda a, v: [*a, v], operator.add),
        lambda v: v,
    ),
    "foldByKey": (lambda r: r.foldByKey(0, operator.add), sum),
    "combineByKey": (
        lambda r: r.combineByKey(str, lambda c, v: f"{c},{v}", lambda a, b: f"{a},{b}"),
        lambda v: ",".join(map(str, v)),
    ),
}


@pytest.mark.parametrize("name", BY_KEY)
def test_values_of_a_key_are_combined_in_order(sc, name):
    made, twin = BY_KEY[name]
    expected = {key: twin(values) for key, values in grouped(PAIRS).items()}
    # One partition, so that even what is not associative has one result.
    assert made(sc.parallelize(PAIRS, 1)).collectAsMap() == expected
    in_place = made(sc.parallelize(PAIRS, 1).partitionBy(3)).collectAsMap()
    assert in_place == expected
    if name != "reduceByKey":
        assert made(sc.parallelize(PAIRS, 4)).collectAsMap() == expected


JOINS = {
    "join": (set.intersection, (), ()),
    "leftOuterJoin": (lambda a, b: a, (), (None,)),
    "rightOuterJoin": (lambda a, b: b, (None,), ()),
    "fullOuterJoin": (set.union, (None,), (None,)),
}


@pytest.mark.parametrize("name", JOINS)
def test_a_join_pairs_every_value_with_every_value(sc, name):
    keys, missing_here, missing_there = JOINS[name]
    here, there = sc.parallelize(PAIRS, 3), sc.parallelize(OTHERS, 2)
    found = getattr(here, name)(there).collect()
    expected = joined(
        PAIRS, OTHERS, lambda a, b: keys(set(a), set(b)), missing_here, missing_there
    )
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_cogroup_and_subtract_by_key(sc):
    here, there = sc.parallelize(PAIRS, 3), sc.parallelize(OTHERS, 2)
    found = {k: tuple(map(list, v)) for k, v in here.cogroup(there).collect()}
    mine, theirs = grouped(PAIRS), grouped(OTHERS)
    assert found == {
        key: (mine.get(key, []), theirs.get(key, [])) for key in mine | theirs
    }
    left = here.subtractByKey(there).collect()
    assert Counter(left) == Counter(p for p in PAIRS if p[0] not in theirs)


@pytest.mark.parametrize("partitions", [1, 2, 5])
@pytest.mark.parametrize("ascending", [True, False])
def test_sorting_is_total_and_stable(sc, partitions, ascending):
    pairs = [(random.Random(i).randrange(20), i) for i in range(300)]
    found = sc.parallelize(pairs, 4).sortByKey(ascending, partitions)
    expected = sorted(pairs, key=lambda p: p[0], reverse=not ascending)
    assert found.collect() == expected
    assert found.getNumPartitions() == partitions


ACTIONS = {
    "count": (lambda r: r.count(), len),
    "sum": (lambda r: r.sum(), sum),
    "max": (lambda r: r.max(), max),
    "min by key": (lambda r: r.min(lambda i: -i), max),
    "reduce": (lambda r: r.reduce(operator.mul), lambda x: reduce(operator.mul, x)),
    "fold": (lambda r: r.fold(0, operator.add), sum),
    "aggregate": (lambda r: r.aggregate([], lambda a, i: [*a, i], operator.add), list),
    "take": (lambda r: r.take(5), lambda x: x[:5]),
    "take of few": (
        lambda r: r.filter(lambda i: i > 8).take(9),
        lambda x: [i for i in x if i > 8],
    ),
    "first": (lambda r: r.first(), lambda x: x[0]),
    "top": (lambda r: r.top(3), lambda x: sorted(x)[:-4:-1]),
    "takeOrdered": (lambda r: r.takeOrdered(4, str), lambda x: sorted(x, key=str)[:4]),
    "countByValue": (lambda r: r.countByValue(), Counter),
    "glom": (lambda r: [i for part in r.glom().collect() for i in part], list),
    "isEmpty": (lambda r: r.isEmpty(), lambda x: False),
    "mean": (lambda r: r.mean(), mean),
}


@pytest.mark.parametrize("partitions", [1, 20])
@pytest.mark.parametrize("name", ACTIONS)
def test_an_action_answers_as_the_list_does(sc, name, partitions):
    action, twin = ACTIONS[name]
    assert action(sc.parallelize(NUMBERS, partitions)) == twin(NUMBERS)


def test_pair_actions(sc):
    words = sc.parallelize([(word, 1) for word in WORDS], 3)
    assert words.countByKey() == Counter(WORDS)
    assert words.reduceByKey(operator.add).lookup("the") == [3]
    assert words.lookup("the") == [1, 1, 1] and words.lookup("cat") == []


def test_an_empty_data_set_is_no_special_case(sc):
    for empty in (sc.parallelize([], 3), sc.range(9).map(str).filter(str.isalpha)):
        assert empty.collect() == [] and empty.count() == 0 and empty.sum() == 0
        assert empty.isEmpty() and empty.take(3) == [] and empty.fold(7, max) == 7
        assert empty.groupByKey().collect() == empty.sortBy(abs).collect() == []
        assert empty.join(empty).collect() == empty.distinct().collect() == []
        for needs_one in (empty.first, empty.max, empty.mean):
            with pytest.raises(ValueError, match="empty"):
                needs_one()


def test_a_seed_chooses_the_same_records_every_time(sc):
    numbers = sc.parallelize(range(1000), 4)
    for replace, fraction in ((False, 0.3), (True, 1.5)):
        one = numbers.sample(replace, fraction, 7).collect()
        assert one == numbers.sample(replace, fraction, 7).collect()
        assert one != numbers.sample(replace, fraction, 8).collect()
        assert abs(len(one) - 1000 * fraction) < 150
        assert replace == (len(set(one)) < len(one))


def test_user_classes_and_functions_of_the_notebook_travel(sc):
    class Point:
        def __init__(self, x):
            self.x = x

        def __eq__(self, other):
            return self.x == other.x

        def __hash__(self):
            return hash(self.x)

    offset = 3
    points = sc.parallelize([Point(n % 4) for n in range(20)], 3)
    counts = points.map(lambda p: (p, offset)).reduceByKey(operator.add).collect()
    assert {p.x: count for p, count in counts} == dict.fromkeys(range(4), 15)
    assert all(isinstance(p, Point) for p, _ in counts)


def test_a_partitioner_says_in_which_partition_a_key_is(sc):
    kept = sc.parallelize([(n, n) for n in range(20)], 2).partitionBy(3)
    found = [[key for key, _ in pairs] for pairs in kept.glom().collect()]
    assert found == [
        [key for key in range(20) if kept.partitioner(key) == index]
        for index in range(3)
    ]
