"""SIGKILL from outside, at any moment: the same bytes, and nothing left behind."""

import os
import random
import signal
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

import psutil
import pytest
from soaks import repeats

from distlab.dataflow import MapReduce

LINES = [f"{n * n % 101} of many: the {n % 7} th {n}" for n in range(3000)]


def mapper(line):
    """Take about 0.1 ms for a line, so that there is something to kill."""
    until = time.perf_counter() + 0.0001
    while time.perf_counter() < until:
        pass
    number, *words = line.split()
    for word in words:
        yield word, int(number)


def in_order(word, values):
    """Return all values, so that it would show if they came in another order."""
    return list(values)


def run(folder, **how):
    """Return the names and bytes of the parts."""
    small = {"memory_bytes": 2**16, "split_bytes": 20_000}
    output = MapReduce(mapper, in_order).run(LINES, workdir=folder, **small, **how)
    return {Path(path).name: Path(path).read_bytes() for path in output.paths}


@cache
def undisturbed(reducers):
    """Return what a run gives in which nobody dies."""
    with tempfile.TemporaryDirectory() as folder:
        return run(folder, reducers=reducers)


class Killer(threading.Thread):
    """Kill random workers of this process, after these pauses."""

    def __init__(self, rng, pauses):
        super().__init__()
        self.killed = 0
        self._rng, self._pauses, self._over = rng, pauses, threading.Event()

    def run(self):
        """Wait, kill, and again, until the run is over."""
        for pause in self._pauses:
            if self._over.wait(pause):
                return
            me = psutil.Process()
            workers = [w for server in me.children() for w in server.children()]
            if workers:
                os.kill(self._rng.choice(workers).pid, signal.SIGKILL)
                self.killed += 1

    def end(self):
        """Return how many were killed."""
        self._over.set()
        self.join()
        return self.killed


@pytest.mark.timeout(600)
@repeats(4, 60)
def test_kills_at_random_moments_leave_the_same_bytes(tmp_path, monkeypatch, count):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    total = 0
    for seed in range(count):
        rng, folder = random.Random(seed), tmp_path / f"job-{seed}"
        reducers, workers = rng.randrange(1, 5), rng.randrange(1, 5)
        expected = undisturbed(reducers)
        most = rng.choice([1, 1, 2, 4])
        killer = Killer(rng, [rng.uniform(0, 0.5 / most) for _ in range(most)])
        killer.start()
        try:
            parts = run(folder, reducers=reducers, workers=workers)
        finally:
            total += killer.end()
        assert parts == expected, seed
        assert [path.name for path in folder.iterdir()] == ["output"]
        assert {path.name for path in folder.rglob("part*")} == set(expected)
        assert list(temporary.iterdir()) == []
    assert total
