"""Far more data than memory: the right result, and no worker over its limit."""

import os
import resource
import subprocess
import sys

import pytest

from distlab.dataflow import MapReduce
from distlab.units import MiB

MEMORY = 8 * MiB
LARGEST = 160_000  # bytes of a record of `mixed_sizes`, nearly
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
    for number in range(1000):
        yield f"{line} {number}", "v"


def large_values(line):
    for number in range(3):
        yield number, f"{line} {number}" * 10_000


def cycles(line):
    for number in range(500):
        cycle = [f"{line} {number}" * 100]
        cycle.append(cycle)
        yield number % 3, 1


def mixed_sizes(line):
    for number in range(2000):
        large = (7 * number + int(line)) % 499 == 0
        yield number, f"{line} {number}" * (20_000 if large else 1)


def twice(key, values):
    for value in values:
        yield value
        yield value


def count(key, values):
    return sum(1 for _ in values)


def peak_above_idle(job, lines):
    """Return the largest resident memory of a job's only worker, less its idle one."""
    taken = []
    for given in (["1"], lines):
        output = job.run(given, workers=1, reducers=1, memory_bytes=MEMORY)
        taken.append(max(kib for _, kib in output) * 1024)
    return taken[1] - taken[0], output


MAPPERS = [many_keys, large_values, cycles, mixed_sizes]


def peak(key, values):
    """Return the largest resident memory up to now."""
    count(key, values)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize(
    ("mapper", "combiner"), [*((each, None) for each in MAPPERS), (many_keys, twice)]
)
def test_a_workers_peak_is_below_its_memory(mapper, combiner):
    job = MapReduce(mapper, peak, combiner=combiner)
    above, output = peak_above_idle(job, map(str, range(80)))
    assert mapper is cycles or output.counters.spilled_bytes > 0
    # What a record is made of is there beside it; 0.6 MB more on a busy machine.
    assert above < MEMORY + 6 * LARGEST


def test_lines_near_the_limit_take_a_few_times_the_memory():
    lines = [str(number) * (MEMORY // 17) for number in range(10, 30)]
    job = MapReduce(lambda line: [(line[:2], line)], peak)
    above, _ = peak_above_idle(job, ["1", *lines])
    assert above < 3 * MEMORY
