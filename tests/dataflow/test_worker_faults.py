"""Whatever dies, whenever: the same bytes, and only the necessary work done again."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from distlab.dataflow import MapReduce
from distlab.faults import KillWorker

LINES = [f"line {n} of many: the {n % 7} th {n * n}" for n in range(300)]
EXPECTED = Counter(word for line in LINES for word in line.split())


def mapper(line):
    for word in line.split():
        yield word, 1


def reducer(word, counts):
    return sum(counts)


def run(workdir, faults=(), mapper=mapper, **how):
    """Run without backups: on a busy machine any task may get one."""
    how = {"reducers": 3, "split_bytes": 2500, "workdir": workdir, **how}
    job = MapReduce(mapper, reducer, combiner=reducer)
    return job.run(LINES, faults=faults, backups=False, **how)


def bytes_of(output):
    return [Path(path).read_bytes() for path in output.paths]


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """The parts of a run without faults."""
    output = run(tmp_path_factory.mktemp("clean") / "job")
    assert dict(output) == EXPECTED
    assert output.counters.map_attempts == output.counters.map_tasks == 4
    return bytes_of(output)


@pytest.mark.parametrize("worker", [0, 1])
@pytest.mark.parametrize("task", range(1, 6))
def test_a_death_in_any_task_leaves_the_same_bytes(tmp_path, clean, worker, task):
    output = run(tmp_path / "job", KillWorker(worker, task))
    assert bytes_of(output) == clean
    kills = [e for e in output.trace.events if (e.kind, e.label) == ("fault", "kill")]
    tasks = [e for e in output.trace.events if (e.rank, e.step) == (worker, task)]
    assert len(kills) == (1 if tasks else 0)
    if task <= 2:
        assert kills and output.counters.map_attempts > 4
    assert [p.name for p in (tmp_path / "job").iterdir()] == ["output"]


def test_many_deaths_leave_the_same_bytes(tmp_path, clean):
    faults = [KillWorker(w, t) for w in (0, 1, 2) for t in (1, 3, 4)]
    output = run(tmp_path / "job", faults, workers=3)
    assert bytes_of(output) == clean
    assert output.trace.world_size == 3


def test_a_lost_workers_maps_run_again_and_its_reduces_do_not(tmp_path, clean):
    # One worker: four maps, then three reduces; it dies in the second of them.
    output = run(tmp_path / "job", KillWorker(0, 6), workers=1)
    assert bytes_of(output) == clean
    assert output.counters.map_attempts == 8
    done = [e.label for e in output.trace.events if e.kind == "work"]
    assert done.count("reduce 0, attempt 1") == 1 and "reduce 0, attempt 2" not in done
    assert "reduce 1, attempt 1, lost" in done and "reduce 1, attempt 2" in done


def test_workers_that_are_killed_in_the_middle_of_a_line_leave_the_same_bytes(
    tmp_path, clean
):
    crashed = tmp_path / "crashed"
    crashed.mkdir()

    def crashes(line):
        """Die at every 100th line, each of them once."""
        number = int(line.split()[1])
        mark = crashed / str(number)
        if number % 100 == 0 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return mapper(line)

    output = run(tmp_path / "job", mapper=crashes)
    assert bytes_of(output) == clean
    died = [e for e in output.trace.events if e.label == "died"]
    assert len(died) == len(list(crashed.iterdir())) == 3


def test_a_task_that_hangs_gets_a_backup_and_the_first_to_finish_counts(tmp_path):
    def hangs(line):
        """Hang in the first call of all."""
        try:
            (tmp_path / "hangs").touch(exist_ok=False)
        except FileExistsError:
            return mapper(line)
        time.sleep(1000)

    output = MapReduce(hangs, reducer).run(LINES, split_bytes=2500)
    assert dict(output) == EXPECTED
    attempts = [e.label for e in output.trace.events if e.kind == "work"]
    assert any("attempt 2" in label for label in attempts)
    assert any("attempt 1, given up" in label for label in attempts)
    assert output.counters.mapped_records == sum(EXPECTED.values())
