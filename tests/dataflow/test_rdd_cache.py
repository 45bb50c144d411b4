"""What is kept is used, costs no more than it may, and cannot be changed."""

import pytest

from distlab.dataflow import Context, StorageLevel
from distlab.errors import InvalidArgument

KB = "x" * 1000


def computed(sc, rdd):
    """Return which partitions of `rdd` the last action computed."""
    return sorted(p for number, p in sc.jobs[-1].computed if number == rdd.id())


@pytest.mark.parametrize("level", ["MEMORY_ONLY", "DISK_ONLY"])
def test_what_is_kept_is_computed_once(sc, level):
    kept = sc.parallelize(range(100), 4).map(lambda n: n + 1)
    kept.persist(getattr(StorageLevel, level))
    doubled = kept.map(lambda n: 2 * n)
    assert doubled.sum() == 10100 and computed(sc, kept) == [0, 1, 2, 3]
    assert doubled.count() == 100 and computed(sc, kept) == []
    assert sorted(sc.jobs[-1].reused) == [(kept.id(), p) for p in range(4)]
    assert kept.is_cached and kept.getStorageLevel() == getattr(StorageLevel, level)
    kept.unpersist()
    assert doubled.count() == 100 and computed(sc, kept) == [0, 1, 2, 3]
    assert not kept.is_cached and kept.getStorageLevel() == StorageLevel.NONE


def test_one_that_is_kept_later_is_used_by_those_made_before(sc):
    first = sc.parallelize(range(10), 2).map(lambda n: n + 1)
    second = first.map(lambda n: n * 2)
    assert second.collect() == second.collect()
    first.cache()
    assert second.sum() == 110 and computed(sc, first) == [0, 1]
    assert second.sum() == 110 and computed(sc, first) == []


def test_a_function_that_changes_its_records_changes_copies(sc):
    kept = sc.parallelize([[1], [2]], 2).cache()

    def spoil(record):
        record.append(0)
        return record

    for _ in range(2):
        assert kept.map(spoil).collect() == [[1, 0], [2, 0]]
    assert kept.collect() == [[1], [2]]


def test_what_was_used_longest_ago_goes_when_memory_is_full():
    with Context(1, memory_bytes=500_000) as sc:
        # Each takes about 100 kB of the 250 kB that may be kept.
        one, two, three = (
            sc.parallelize([f"{name}{n}{KB}" for n in range(100)], 1).cache()
            for name in "abc"
        )
        for kept in (one, two, one, three):
            kept.count()
        for kept, expected in ((one, []), (three, []), (two, [0])):
            assert kept.count() == 100
            assert computed(sc, kept) == expected
        held = [node.held for node in one.union(two).union(three).lineage().nodes]
        assert sum(map(len, held)) == 2


def test_partitions_of_one_data_set_do_not_push_each_other_out():
    with Context(1, memory_bytes=500_000) as sc:
        kept = sc.range(400, numSlices=4).map(lambda n: f"{n}{KB}").cache()
        for _ in range(3):
            assert kept.count() == 400
        assert computed(sc, kept) == [2, 3] and len(sc.jobs[-1].reused) == 2


@pytest.mark.parametrize("level", ["MEMORY_AND_DISK", "DISK_ONLY"])
def test_what_does_not_fit_is_kept_on_disk(level):
    with Context(1, memory_bytes=500_000) as sc:
        kept = sc.range(800, numSlices=4).map(lambda n: f"{n}{KB}")
        kept.persist(getattr(StorageLevel, level))
        other = sc.range(800, numSlices=4).map(lambda n: f"{n}{KB}")
        other.persist(getattr(StorageLevel, level))
        for rdd in (kept, other):
            expected = rdd.collect()
            assert rdd.collect() == expected and computed(sc, rdd) == []
        assert kept.collect() == expected and computed(sc, kept) == []


def test_a_level_is_changed_only_after_unpersist(sc):
    kept = sc.range(5).cache()
    assert kept.cache() is kept
    with pytest.raises(InvalidArgument, match="unpersist"):
        kept.persist(StorageLevel.DISK_ONLY)
    with pytest.raises(TypeError, match="storageLevel"):
        sc.range(5).persist("MEMORY_ONLY")
    assert kept.unpersist().persist(StorageLevel.DISK_ONLY).sum() == 10


def test_what_nobody_refers_to_any_more_is_not_kept(sc):
    kept = sc.range(10, numSlices=2).map(lambda n: (n % 2, n)).cache()
    sums = kept.reduceByKey(max)
    sums.collect()
    locations = sc.cluster.locations
    assert len(locations.kept) == 2 and len(locations.outputs) >= 1
    before = len(locations.outputs)
    del kept, sums
    sc.range(1).count()
    assert not locations.kept and len(locations.outputs) == before - 1


def test_co_partitioned_data_sets_need_no_second_shuffle(sc):
    pairs = sc.parallelize([(n % 7, n) for n in range(50)], 3)
    here = pairs.partitionBy(4).cache()
    sums = here.reduceByKey(max)
    there = here.mapValues(str)
    assert sums.partitioner == there.partitioner == here.partitioner
    joined = sums.join(there)
    assert joined.getNumPartitions() == 4
    assert len(joined.lineage().stages) == 2
    assert joined.count() == 50
    assert pairs.map(lambda x: x).partitioner is None
    apart = sums.join(there.map(lambda pair: pair))
    assert len(apart.lineage().stages) == 3 and apart.count() == 50


def test_shuffle_files_are_used_again(sc):
    sums = sc.parallelize(range(20), 4).map(lambda n: (n % 3, n)).reduceByKey(max)
    sums.collect()
    wrote = sc.jobs[-1]
    assert [stage.skipped for stage in wrote.stages] == [False, False]
    sums.mapValues(str).count()
    again = sc.jobs[-1]
    assert [stage.skipped for stage in again.stages] == [True, False]
    assert again.shuffled == wrote.shuffled
    (matrix,) = wrote.records.values()
    assert len(matrix) == 4 and all(len(row) == 4 for row in matrix)
    assert sum(map(sum, matrix)) == 12  # three keys from each of four map tasks


def test_map_side_combining_is_what_group_by_key_lacks(sc):
    pairs = sc.parallelize(range(1000), 4).map(lambda n: (n % 3, n))
    pairs.reduceByKey(max, 2).collect()
    (few,) = sc.jobs[-1].records.values()
    pairs.groupByKey(2).collect()
    (all_of_them,) = sc.jobs[-1].records.values()
    assert sum(map(sum, few)) == 12 and sum(map(sum, all_of_them)) == 1000


def test_what_two_workers_keep_is_brought_together():
    with Context(2) as sc:
        one = sc.range(20, numSlices=1).keyBy(abs).reduceByKey(max, 1).cache()
        two = sc.range(40, numSlices=4).keyBy(abs).reduceByKey(max, 2).cache()
        expected = one.count() * two.count()
        for victim in (None, 0, 1):
            if victim is not None:
                sc.kill(victim)
            assert one.cartesian(two).count() == expected
            assert one.cartesian(two).count() == expected
