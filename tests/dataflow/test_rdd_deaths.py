"""Whatever dies, whenever: the same result, and only what is gone computed again."""

import operator
import os
import random
import signal
import threading
import time
from collections import Counter

import pytest
from soaks import repeats

from distlab.dataflow import Context
from distlab.errors import InvalidArgument, TaskFailed
from distlab.faults import KillWorker, SlowWorker

WORDS = [f"word {n % 13} of line {n}" for n in range(200)]


def count_words(sc):
    words = sc.parallelize(WORDS, 4).flatMap(str.split).map(lambda word: (word, 1))
    return words.reduceByKey(operator.add, 3).collect()


def shuffle_twice(sc):
    numbers = sc.parallelize(range(100), 3).map(lambda n: (n % 10, n))
    sums = numbers.reduceByKey(operator.add, 2).map(lambda kv: (kv[1] % 3, kv[0]))
    return sums.groupByKey(3).mapValues(list).collect()


def join_and_sort(sc):
    here = sc.parallelize([(n % 5, n) for n in range(30)], 3)
    there = sc.parallelize([(n, str(n)) for n in range(5)], 2)
    return here.join(there, 3).sortByKey(numPartitions=2).collect()


def use_a_cache_twice(sc):
    squares = sc.parallelize(range(60), 4).map(lambda n: n * n).cache()
    return squares.sum(), squares.collect(), squares.max()


PROGRAMS = [count_words, shuffle_twice, join_and_sort, use_a_cache_twice]


@pytest.fixture(scope="module")
def clean():
    """The result of each program where nobody dies."""
    with Context(2) as sc:
        return {program: program(sc) for program in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_death_in_any_task_leaves_the_same_result(program, clean):
    died = 0
    for task in range(1, 7):
        with Context(2, faults=KillWorker(task % 2, task)) as sc:
            assert program(sc) == clean[program]
            died += sum(
                event.label == "kill" for job in sc.jobs for event in job.trace.events
            )
    assert died >= 2


@repeats(10, 200)
def test_deaths_at_random_moments_leave_the_same_result(clean, count):
    chance = random.Random(0)
    with Context(3) as sc:
        for _ in range(count):
            program = chance.choice(PROGRAMS)
            after_s, victim = chance.random() * 0.05, chance.randrange(3)
            timer = threading.Timer(after_s, sc.kill, [victim])
            timer.start()
            assert program(sc) == clean[program]
            timer.join()


def lost_with(job, worker):
    """Return which map tasks a worker did, of an action's first stage."""
    first = f"stage {job.stages[0].id}, partition "
    labels = [e.label for e in job.trace.events if e.rank == worker]
    return sorted(int(x.removeprefix(first)) for x in labels if x.startswith(first))


@pytest.mark.parametrize("victim", [0, 1])
def test_only_the_lost_map_tasks_run_again(victim):
    with Context(2) as sc:
        pairs = sc.parallelize(range(40), 6).map(lambda n: (n % 4, n))
        sums = pairs.reduceByKey(operator.add, 3)
        expected = sums.collect()
        lost = lost_with(sc.jobs[-1], victim)
        sc.kill(victim)
        assert sums.collect() == expected
        again, result = sc.jobs[-1].stages
        assert sorted(again.ran) == lost and again.attempts == len(lost)
        assert len(result.ran) == 3
        ids = {node.name: node.id for node in sc.jobs[-1].lineage.nodes}
        computed = Counter(sc.jobs[-1].computed)
        assert computed == Counter(
            [(ids[name], p) for name in ("parallelize", "map") for p in lost]
            + [(ids["reduceByKey"], p) for p in range(3)]
        )
        sums.collect()
        assert sc.jobs[-1].stages[0].skipped and sc.jobs[-1].stages[0].attempts == 0


@pytest.mark.parametrize("victim", [0, 1])
def test_only_the_lost_partitions_of_a_cache_are_computed_again(victim):
    with Context(2) as sc:
        source = sc.parallelize(range(40), 6).map(lambda n: n + 1)
        kept = source.cache()
        expected = kept.collect()
        held = dict(kept.lineage().nodes[-1].held)
        assert sorted(held) == list(range(6))
        sc.kill(victim)
        assert kept.collect() == expected
        lost = sorted(p for p, worker in held.items() if worker == victim)
        job = sc.jobs[-1]
        assert sorted(p for n, p in job.computed if n == kept.id()) == lost
        assert sorted(p for _, p in job.reused) == sorted(set(held) - set(lost))
        kept.collect()
        assert sc.jobs[-1].computed == [] and len(sc.jobs[-1].reused) == 6


def test_what_is_not_needed_is_not_computed_again():
    with Context(2) as sc:
        pairs = sc.parallelize(range(40), 6).map(lambda n: (n % 4, n))
        sums = pairs.reduceByKey(operator.add, 3).cache()
        first, *_ = sums.glom().collect()
        for victim in (0, 1):
            sc.kill(victim)
        assert sums.take(len(first)) == first
        assert [p for n, p in sc.jobs[-1].computed if n == sums.id()] == [0]
        assert sums.take(len(first)) == first
        assert sc.jobs[-1].computed == [] and sc.jobs[-1].reused == [(sums.id(), 0)]


def test_a_killed_worker_can_be_killed_again_and_again():
    with Context(2) as sc:
        sc.kill(1)  # before it has begun
        kept = sc.parallelize(range(10), 2).cache()
        for _ in range(4):
            assert kept.sum() == 45
            sc.kill(0)
            sc.kill(1)
        with pytest.raises(InvalidArgument, match="from 0 to 1"):
            sc.kill(2)


def test_a_task_that_kills_its_worker_three_times_is_given_up():
    def ends_its_worker(n):
        if n == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    with Context(2) as sc:
        described = "killed by SIGKILL, 3 times. Where memory runs out"
        with pytest.raises(TaskFailed, match=described):
            sc.parallelize(range(6), 3).map(ends_its_worker).collect()
        assert sc.parallelize(range(6), 3).sum() == 15


def exits_at_seven(*numbers):
    if 7 in numbers:
        os._exit(3)
    return numbers[0]


def odd(number):
    return number % 2


@pytest.mark.parametrize(
    "job, named",
    [
        (lambda rdd: rdd.filter(exits_at_seven).count(), r"was 7, in filter \(RDD 1\)"),
        (lambda rdd: rdd.foreach(exits_at_seven), "was 7, in an action"),
        (
            lambda rdd: rdd.keyBy(odd).reduceByKey(exits_at_seven).count(),
            r"was \(1, 9\), in a shuffle",
        ),
        (
            lambda rdd: rdd.keyBy(odd).combineByKey(int, min, exits_at_seven).count(),
            r"key .* was 1, in combineByKey",
        ),
    ],
    ids=["transformation", "action", "map side", "reduce side"],
)
def test_what_ends_its_workers_is_told_with_its_record(job, named):
    with Context(2) as sc, pytest.raises(TaskFailed, match=named):
        job(sc.parallelize(range(12), 2))


def test_a_slow_worker_is_given_fewer_tasks():
    def busy(n):
        until = time.process_time() + 0.01
        while time.process_time() < until:
            pass
        return n

    with Context(2, faults=SlowWorker(1, factor=30)) as sc:
        assert sc.parallelize(range(40), 40).map(busy).sum() == 780
        labels = Counter(event.rank for event in sc.jobs[-1].trace.events)
        assert labels[0] > labels[1]
