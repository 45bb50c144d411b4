"""Broadcasts are fetched once per worker; accumulators count each task once."""

import pytest

from distlab.dataflow import Context
from distlab.errors import TaskFailed
from distlab.faults import KillWorker


def fetched(sc):
    return sc.jobs[-1].counts["broadcasts_fetched"]


def test_a_worker_fetches_a_broadcast_once():
    with Context(1) as sc:
        table = sc.broadcast({n: n * n for n in range(100)})
        numbers = sc.parallelize(range(20), 5)
        assert numbers.map(lambda n: table.value[n]).sum() == 2470
        assert fetched(sc) == 1
        assert numbers.map(lambda n: table.value[n + 1]).sum() == 2870
        assert fetched(sc) == 0
        table.unpersist()
        assert numbers.map(lambda n: table.value[n]).sum() == 2470
        assert fetched(sc) == 1 and table.value[3] == 9


def test_an_accumulator_is_added_to_by_tasks_and_read_by_the_notebook(sc):
    total, parts = sc.accumulator(10), sc.accumulator(0.5)

    def add(n):
        nonlocal total
        total += n
        parts.add(0.25)

    sc.parallelize(range(10), 4).foreach(add)
    assert total.value == 55 and parts.value == 3.0
    with pytest.raises(TaskFailed, match="cannot be read in a task"):
        sc.range(2, numSlices=1).foreach(lambda n: total.value)
    with pytest.raises(TypeError, match="adds numbers"):
        sc.accumulator([])


@pytest.mark.parametrize("task", range(1, 5))
def test_an_attempt_that_came_to_nothing_does_not_count(task):
    with Context(2, faults=KillWorker(0, task)) as sc:
        seen = sc.accumulator(0)
        sc.parallelize(range(100), 8).foreach(lambda n: seen.add(1))
        assert seen.value == 100


def test_a_failed_task_adds_nothing(sc):
    seen = sc.accumulator(0)

    def fails(n):
        seen.add(1)
        return 1 / (n - 3)

    with pytest.raises(TaskFailed):
        sc.parallelize(range(6), 1).foreach(fails)
    assert seen.value == 0


def test_globals_are_taken_as_they_are_when_an_action_runs(sc):
    step = 0
    numbers = sc.parallelize([1, 2], 1)
    for step in range(3):
        numbers = numbers.map(lambda n: n * 10 + step)  # noqa: B023
    assert numbers.collect() == [1222, 2222]
    step = 7
    assert numbers.collect() == [1777, 2777]
    pairs = sc.parallelize([1], 1)
    for step in range(3):
        pairs = pairs.map(lambda n: (0, n * 10 + step)).reduceByKey(max)  # noqa: B023
        pairs = pairs.values()
    assert pairs.collect() == [1012], "a shuffle takes them when it is made"
