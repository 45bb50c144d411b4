"""What the proof of exercise 07 does not show: unusual answers, verdicts as text."""

import math
from operator import add

import numpy as np
import pytest

from distlab import Context
from distlab.checks import rdds_and_spark as checks
from distlab.checks.kit.grading import judge

KILLED = ("a worker killed between two steps",)
SUMS = checks.reduce_by_key


def with_a_class(lines, parse, centres, steps):
    class Sum:
        def __init__(self, point, count=1):
            self.point, self.count = np.array(point), count

        def __add__(self, other):
            return Sum(self.point + other.point, self.count + other.count)

    def nearest(point):
        return min(range(len(centres)), key=lambda n: math.dist(point, centres[n]))

    points = lines.map(parse).cache()
    points.count()
    for _ in range(steps):
        sums = points.keyBy(nearest).mapValues(Sum).reduceByKey(add).collectAsMap()
        means = {n: tuple(own.point / own.count) for n, own in sums.items()}
        centres = [means.get(n, centre) for n, centre in enumerate(centres)]
    return centres


def collects(lines, parse, centres, steps):
    points = lines.map(parse).cache().collect()
    return checks._lloyd(np.array(points), np.array(centres), steps)


def keeps_late(lines, *rest):
    for _ in range(2):
        lines.count()
    return with_a_class(lines, *rest)


def drops_zero(context, large, small):
    table = context.broadcast({key: value for key, value in small if value})
    found = large.filter(lambda pair: pair[0] in table.value)
    return found.map(lambda pair: (pair[0], (pair[1], table.value[pair[0]])))


def last_one(rdd, function, partitions):
    return rdd.partitionBy(partitions).mapPartitions(lambda own: dict(own).items())


def test_sums_may_be_of_a_class_of_the_notebook():
    verdict = judge(checks.k_means, with_a_class, KILLED)
    assert verdict.outcome == "pass", verdict


def test_a_worker_killed_before_anything_is_kept_shows_nothing():
    assert judge(checks.k_means, keeps_late, KILLED).outcome == "inconclusive"


def test_the_notebooks_own_context_does_not_travel():
    mine = object.__new__(Context)
    verdict = judge(checks.join_small, lambda *_: mine.emptyRDD(), ("an empty table",))
    assert verdict.outcome == "fail" and "Context is used inside" in verdict.found


@pytest.mark.parametrize(
    ("check", "answer", "case", "words"),
    [
        (SUMS, lambda rdd, *_: rdd.collect(), "one key", "An action of the caller"),
        (SUMS, last_one, "one key", "starts with its first value"),
        (SUMS, lambda r, f, n: r.partitionBy(n), "one key", "have met"),
        (checks.join_small, drops_zero, "a table of 600 rows", "first difference"),
        (checks.k_means, collects, "three clusters", "The points stay with the"),
    ],
)  # fmt: skip
def test_a_wrong_answer_meets_its_hint(check, answer, case, words):
    verdict = judge(check, answer, (case,))
    assert verdict.outcome == "fail" and words in " ".join(str(verdict).split())
