"""A mistake is told once, with its operation and its record; the Context lives on."""

import os
import resource
import signal
import threading
import time

import pytest

from distlab.dataflow import Context
from distlab.errors import (
    ContextStopped,
    InvalidArgument,
    NestedRDD,
    NotSerializable,
    TaskFailed,
    WorkdirError,
)

LOCK = threading.Lock()


def failure(action):
    with pytest.raises(TaskFailed) as caught:
        action()
    return caught.value


def test_a_function_that_raises_is_told_with_its_record_and_lines(sc):
    def invert(n):
        return 1 / n

    error = failure(sc.parallelize([2, 1, 0, 3], 2).map(invert).filter(bool).collect)
    story = str(error)
    assert "partition 1, on worker" in story
    assert "raised ZeroDivisionError: division by zero" in story
    assert "test_rdd_mistakes.py, line" in story and "return 1 / n" in story
    assert "It was map (RDD" in story and "called with 0." in story
    assert "/distlab/dataflow/" not in story
    assert isinstance(error.cause, ZeroDivisionError) and len(error.trace) > 0


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda r: r.filter(lambda n: n.upper()), "It was filter"),
        (lambda r: r.flatMap(lambda n: n), "'int' object is not iterable"),
        (lambda r: r.keyBy(lambda n: 1 / (n - 4)), "It was keyBy"),
        (lambda r: r.keyBy(str).mapValues(lambda v: v["a"]), "It was mapValues"),
        (lambda r: r.keyBy(bool).reduceByKey(lambda a, b: a.x), "called with 1, 2."),
        (lambda r: r.mapPartitions(lambda it: 3), "mapPartitions returned 3"),
        (lambda r: r.mapPartitions(lambda it: sum(it).x), "It was mapPartitions"),
        (lambda r: r.map(lambda n: next(iter([]))), "raised StopIteration"),
        (lambda r: r.reduceByKey(max), "the record 1 is no (key, value) pair"),
        (lambda r: r.groupByKey(), "the record 1 is no (key, value) pair"),
        (lambda r: r.partitionBy(2), "the record 1 is no (key, value) pair"),
        (lambda r: r.map(lambda n: ([n], 1)).reduceByKey(max), "the key [1] is a list"),
        (lambda r: r.map(lambda n: ([n], 1)).groupByKey(), "the key [1] is a list"),
        (lambda r: r.map(lambda n: ({n}, 1)).partitionBy(2), "the key {1} is a set"),
        (lambda r: r.map(lambda n: (object(), 1)).partitionBy(2), "hashed by where"),
        (lambda r: r.keyBy(abs).partitionBy(2, str), "the partition function returned"),
        (lambda r: r.zip(r.filter(lambda n: n > 1)), "zip needs equally many"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(sc, make, said):
    made = make(sc.parallelize(range(1, 9), 1))
    assert said in str(failure(made.collect))
    assert sc.range(5).sum() == 10


def test_a_result_that_cannot_travel_is_named(sc):
    error = failure(sc.range(3, numSlices=1).map(lambda n: threading.Lock()).collect)
    assert "is a lock, which cannot be sent from a worker" in str(error)


def test_keys_that_cannot_be_ordered_are_named(sc):
    mixed = sc.parallelize([(1, "a"), ("b", 2)] * 10, 2)
    with pytest.raises(TypeError, match=r"and ('b'|1) cannot be"):
        mixed.sortByKey()
    assert "cannot be" in str(failure(mixed.sortByKey(numPartitions=1).collect))


def test_what_cannot_travel_is_named_before_anything_starts(sc):
    before = len(sc.jobs)
    pairs = sc.parallelize([(1, 2)], 1)
    for action in (
        lambda: pairs.map(lambda x: LOCK).collect(),
        lambda: pairs.map(lambda x: LOCK).count(),
        lambda: pairs.reduceByKey(lambda a, b: LOCK),
        lambda: pairs.foreach(lambda x: LOCK),
        lambda: pairs.map(lambda x: LOCK).cache(),
    ):
        with pytest.raises(NotSerializable, match=r"LOCK.*is a lock.*to a worker"):
            action()
    with pytest.raises(NotSerializable, match="parallelize"):
        sc.parallelize([LOCK])
    assert all(not job.stages[-1].attempts for job in sc.jobs[before:])


def test_an_rdd_or_context_inside_a_function_is_refused(sc):
    numbers = sc.range(3)
    for use in (
        lambda: numbers.map(lambda n: numbers.count()).collect(),
        lambda: numbers.map(lambda n: (n, numbers)).reduceByKey(max),
        lambda: numbers.foreach(lambda n: sc.range(n)),
        lambda: sc.broadcast(numbers),
        lambda: sc.parallelize([numbers]),
    ):
        with pytest.raises(NestedRDD, match="runs on workers"):
            use()


def test_rdds_of_two_contexts_do_not_meet(sc):
    with Context(1) as other:
        for use in (sc.range(3).union, sc.range(3).zip, sc.range(3).cartesian):
            with pytest.raises(InvalidArgument, match="different Contexts"):
                use(other.range(3))
        with pytest.raises(InvalidArgument, match="different Contexts"):
            sc.range(3).keyBy(abs).join(other.range(3).keyBy(abs))


def test_a_context_that_was_stopped_says_so():
    with Context(1) as sc:
        numbers = sc.range(3)
    for use in (numbers.count, lambda: sc.parallelize([1]), numbers.cache):
        with pytest.raises(ContextStopped, match="has been stopped"):
            use()
    sc.stop()
    assert repr(sc) == "<Context, stopped>"


def test_arguments_that_cannot_be_are_refused(sc, tmp_path):
    numbers = sc.range(3)
    for use in (
        lambda: sc.parallelize([1], 0),
        lambda: sc.textFile(tmp_path / "missing"),
        lambda: numbers.coalesce(0),
        lambda: numbers.keyBy(abs).partitionBy(0),
        lambda: numbers.sample(False, -1.0),
        lambda: numbers.zip(sc.range(3, numSlices=3)),
        lambda: numbers.checkpoint(),
        lambda: Context(0),
        lambda: Context(2, memory_bytes=10),
        lambda: Context(2, workdir="/dev/null/x"),
    ):
        with pytest.raises((ValueError, WorkdirError)):
            use()
    for use in (lambda: sc.parallelize(3), lambda: numbers + 3):
        with pytest.raises(TypeError):
            use()


def test_a_failed_action_ends_its_other_tasks(sc):
    def one_fails(n):
        if n == 0:
            raise KeyError(n)
        time.sleep(1000)  # longer than a test may take

    with Context(2) as own:
        failure(own.parallelize(range(2), 2).map(one_fails).collect)
        assert own.range(4).sum() == 6


def test_after_ctrl_c_the_context_can_be_used_on():
    with Context(2) as sc:
        kept = sc.parallelize(range(10), 2).cache()
        assert kept.sum() == 45
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            sc.parallelize(range(2), 2).foreach(lambda n: time.sleep(60))
        timer.join()
        assert kept.sum() == 45
        assert not list(p for p in os.listdir(sc.cluster.folder) if "program" in p)


def test_a_full_disk_is_told_with_the_folder(tmp_path):
    def limit(_):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    with Context(1, workdir=tmp_path) as sc:
        sc.range(1, numSlices=1).foreach(limit)
        big = sc.range(20_000, numSlices=1).map(lambda n: (n, str(n) * 20))
        with pytest.raises(WorkdirError, match="give Context a workdir"):
            big.partitionBy(2).count()
    assert list(tmp_path.iterdir()) == []
