"""Far more data than memory: the right result, and no worker over its limit."""

import os
import resource
import subprocess
import sys

import pytest

from distlab.dataflow import MapReduce
from distlab.units import MiB

MEMORY = 8 * MiB
SORT = """
import random, resource, sys
from distlab.dataflow import MapReduce

resource.setrlimit(resource.RLIMIT_AS, 2 * [int(sys.argv[1])])
job = MapReduce(
    lambda line: [(line, "")],
    lambda line, values: values,
    partitioner=lambda line, reducers: int(line[0], 16) * reducers // 16,
)
rng = random.Random(3)
lines = (f"{rng.getrandbits(64):x}"[:rng.randrange(3, 16)] for _ in range(150_000))
output = job.run(lines, memory_bytes=2**22, reducers=4)
assert output.counters.spilled_records > 100_000
for line, _ in output:
    print(line)
"""


def test_a_sort_under_a_real_limit_is_what_coreutils_sort_gives():
    command = [sys.executable, "-c", SORT, str(200 * MiB)]
    ours = subprocess.run(command, capture_output=True, check=True).stdout
    theirs = subprocess.run(
        ["sort"], input=ours, capture_output=True, env={**os.environ, "LC_ALL": "C"}
    ).stdout
    assert ours == theirs
    assert ours.count(b"\n") == 150_000


def many_keys(line):
    for number in range(2000):
        yield f"{line} {number}", "v"


def few_keys(line):
    for number in range(4000):
        yield number % 3, f"{line} value {number}"


def large_values(line):
    for number in range(3):
        yield number, f"{line} {number}" * 10_000


def tuples(line):
    for number in range(1000):
        yield (line, number), (number, [line, str(number)])


def cycles(line):
    for number in range(500):
        cycle = [f"{line} {number}" * 100]
        cycle.append(cycle)
        yield number % 3, 1


def twice(key, values):
    for value in values:
        yield value
        yield value


def count(key, values):
    return sum(1 for _ in values)


def peak_above_idle(job):
    """Return the largest resident memory of a job's only worker, less its idle one."""
    taken = []
    for lines in (["1"], map(str, range(80))):
        output = job.run(lines, workers=1, reducers=1, memory_bytes=MEMORY)
        taken.append(max(kib for _, kib in output) * 1024)
    return taken[1] - taken[0], output


@pytest.mark.parametrize("combiner", [None, twice], ids=["plain", "growing"])
@pytest.mark.parametrize("mapper", [many_keys, few_keys, large_values, tuples, cycles])
def test_a_workers_peak_is_below_its_memory(mapper, combiner):
    def peak(key, values):
        count(key, values)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    above, output = peak_above_idle(MapReduce(mapper, peak, combiner=combiner))
    assert mapper is cycles or output.counters.spilled_bytes > 0
    assert above < MEMORY
