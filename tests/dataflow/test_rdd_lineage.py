"""A lineage says what is made from what; nothing runs before an action, or twice."""

import operator
import os
import signal
import subprocess
import sys

import psutil
import pytest
from stores import wait_until

from distlab.dataflow import Context

PROGRAM = """
import sys
from distlab.dataflow import Context
sc = Context(2)
kept = sc.parallelize(range(10), 2).cache()
print(kept.sum(), *sc.cluster.pool._processes.pids, sc.cluster.folder, flush=True)
{end}
"""


def test_nothing_runs_before_an_action(sc):
    seen = sc.accumulator(0)
    before = len(sc.jobs)
    lazy = sc.parallelize(range(10), 2).map(lambda n: seen.add(1) or n)
    counts = lazy.keyBy(lambda n: n % 2).reduceByKey(max).filter(bool).distinct()
    joined = counts.join(counts.mapValues(str)).cache()
    assert len(sc.jobs) == before and seen.value == 0
    joined.count()
    assert len(sc.jobs) == before + 1 and seen.value == 10


def test_a_lineage_has_a_node_for_each_data_set_and_a_stage_for_each_shuffle(sc):
    source = sc.parallelize(range(20), 4)
    pairs = source.map(lambda n: (n % 3, n)).setName("by rest").cache()
    sums = pairs.reduceByKey(operator.add, 2)
    both = sums.union(sc.parallelize([(1, 1)], 1))
    lineage = both.lineage()
    nodes = {node.id: node for node in lineage.nodes}
    assert [node.name for node in lineage.nodes] == [
        "parallelize",
        "map",
        "reduceByKey",
        "parallelize",
        "union",
    ]
    kept = nodes[pairs.id()]
    assert (kept.label, kept.cached, kept.partitions) == ("by rest", "memory", 4)
    (narrow,) = kept.parents
    assert (narrow.kind, narrow.id) == ("narrow", source.id())
    assert narrow.needs == ((0,), (1,), (2,), (3,))
    (wide,) = nodes[sums.id()].parents
    assert (wide.kind, wide.id) == ("wide", pairs.id())
    left, right = nodes[both.id()].parents
    assert left.needs == ((0,), (1,), ()) and right.needs == ((), (), (0,))
    first, last = lineage.stages
    assert (first.node, first.shuffle, first.tasks) == (pairs.id(), wide.shuffle, 4)
    assert (last.node, last.shuffle, last.parents) == (both.id(), None, (first.id,))
    assert nodes[sums.id()].stages == (last.id,)
    assert both.toDebugString().decode().count("+-(4)") == 1


def test_a_report_says_what_an_action_did(sc):
    pairs = sc.parallelize(range(20), 4).map(lambda n: (n % 3, n))
    pairs.reduceByKey(operator.add, 2).collect()
    job = sc.jobs[-1]
    text, page = repr(job), job._repr_html_()
    assert text.startswith("collect: 2 stages on 2 workers, ")
    assert "ends with" in text and "10 partitions computed." in text
    assert page.count("<tr>") == 3 and "reduceByKey" in page
    nodes = {node.name: node for node in job.lineage.nodes}
    assert sorted(nodes["map"].computed) == [0, 1, 2, 3]
    assert sorted(nodes["reduceByKey"].computed) == [0, 1]
    labels = [event.label for event in job.trace.events]
    first = job.stages[0].id
    assert sorted(labels)[:4] == [f"stage {first}, partition {p}" for p in range(4)]


def test_take_computes_no_more_partitions_than_it_needs(sc):
    numbers = sc.parallelize(range(100), 10)
    assert numbers.take(5) == [0, 1, 2, 3, 4]
    assert sc.jobs[-1].computed == [(numbers.id(), 0)]


def test_a_long_lineage_is_no_deep_recursion(sc):
    numbers = sc.parallelize(range(10), 1)
    for _ in range(300):
        numbers = numbers.map(lambda n: n + 1)
    assert numbers.sum() == 3045
    pairs = sc.parallelize([(0, 1)], 1)
    for step in range(60):
        pairs = pairs.partitionBy(1, lambda key, step=step: step)
    assert pairs.collect() == [(0, 1)] and len(sc.jobs[-1].stages) == 61


@pytest.mark.parametrize("end", ["", "import time; time.sleep(60)"])
def test_forgotten_workers_end_with_the_notebooks_process(end):
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(end=end)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with program:
        total, *pids, folder = program.stdout.readline().split()
        assert total == "45" and len(pids) == 2
        if end:
            program.send_signal(signal.SIGKILL)
        program.wait(20)
    wait_until(lambda: not any(psutil.pid_exists(int(pid)) for pid in pids))
    wait_until(lambda: not os.path.exists(folder))


def test_a_context_that_nobody_refers_to_any_more_ends():
    sc = Context(1)
    assert sc.range(3).sum() == 3
    del sc
