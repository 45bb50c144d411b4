"""Simulated machines: where the end can be computed, it is; a real run is replayed."""

import bisect
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from distlab.dataflow import Machines, MapReduce, simulate
from distlab.errors import InvalidArgument
from distlab.faults import KillWorker

EVEN = {"startup_s": 0.0, "map_s": 10.0, "reduce_s": 10.0, "spread": 0, "slow_share": 0}


@dataclass(frozen=True)
class WithOneSlow(Machines):
    """Worker 0 is ten times slower than the others."""

    def factors(self, seed):
        return [10.0] + [1.0] * (self.workers - 1)


@pytest.mark.parametrize("workers", [1, 3, 7])
@pytest.mark.parametrize(("maps", "reduces"), [(0, 1), (5, 2), (21, 8)])
def test_equal_tasks_are_done_in_whole_waves(workers, maps, reduces):
    machines = Machines(workers, **{**EVEN, "startup_s": 3.0, "reduce_s": 7.0})
    done = simulate(maps, reduces, machines=machines)
    waves = 10 * math.ceil(maps / workers) + 7 * math.ceil(reduces / workers)
    assert done.elapsed_s == pytest.approx(3 + waves)
    assert Counter(ran.fate for ran in done.attempts) == {"done": maps + reduces}


def test_a_death_costs_what_was_on_the_disk_and_what_was_under_way():
    two = Machines(2, **EVEN)
    assert simulate(4, 2, machines=two).elapsed_s == 30
    # map 1 was done and map 3 half done: 1 again from 15 to 25, 3 from 20 to 30
    done = simulate(4, 2, machines=two, deaths=[(15.0, 1)])
    assert done.elapsed_s == 40
    assert [(when_s, str(task)) for when_s, task in done.undone] == [(15.0, "map 1")]
    again = [str(ran.attempt) for ran in done.attempts if ran.attempt.number > 1]
    assert again == ["map 1, attempt 2", "map 3, attempt 2"]


def test_a_death_while_others_fetch_costs_their_time_too_and_later_it_does_not():
    two = Machines(2, **EVEN)
    early = simulate(2, 2, machines=two, deaths=[(11.0, 1)])
    assert Counter(r.fate for r in early.attempts)["failed"] == 1
    assert early.elapsed_s == 31  # map 1 again, then both reduces
    late = simulate(2, 2, machines=two, deaths=[(15.0, 1)])
    assert Counter(r.fate for r in late.attempts)["failed"] == 0
    assert late.elapsed_s == 35  # map 1 and reduce 1 again


def test_backups_bound_what_a_slow_machine_costs():
    four = WithOneSlow(4, **EVEN)
    assert simulate(0, 4, machines=four, backups=False).elapsed_s == 100
    done = simulate(0, 4, machines=four)
    # late after 15, seen within 1, and 10 for the backup
    assert 25 < done.elapsed_s <= 26
    assert [r.fate for r in done.attempts if r.attempt.worker == 0] == ["given up"]


@pytest.mark.parametrize("seed", range(8))
def test_every_task_is_done_once_more_often_than_undone(seed):
    deaths = [(60.0 + 13 * n, n % 20) for n in range(40)]
    machines = Machines(20, slow_share=0.2)
    done = simulate(150, 40, machines=machines, deaths=deaths, seed=seed)
    counts = Counter(ran.attempt.task for ran in done.attempts if ran.fate == "done")
    counts.subtract(task for _, task in done.undone)
    reduces = [task for task in counts if task.kind == "reduce"]
    assert len(reduces) == 40 and all(counts[task] == 1 for task in reduces)
    assert all(count in (0, 1) for count in counts.values())
    assert done.undone
    by_worker = sorted((r.attempt.worker, r.attempt.begun_s, r) for r in done.attempts)
    for (one, _, before), (other, begun_s, _) in pairwise(by_worker):
        assert one != other or before.end_s <= begun_s, "one thing at a time"


def test_the_same_seed_gives_the_same_run_and_another_one_does_not():
    runs = [simulate(200, 50, machines=Machines(30), seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_curves_end_where_the_job_does_and_add_up():
    done = simulate(200, 50, machines=Machines(30), deaths=[(120.0, 3)])
    assert max(ran.end_s for ran in done.attempts) == done.elapsed_s
    rates = done.rates(5.0)
    taken = [r for r in done.attempts if r.attempt.task.kind == "map"]
    read = sum((r.end_s - r.attempt.begun_s) / r.takes_s for r in taken)
    total = sum(rate * 5.0 for _, rate in rates["input"])
    assert total == pytest.approx(done.machines.split_bytes * (read - len(done.undone)))


def test_the_sort_of_the_paper_has_the_papers_shape():
    normal, without = simulate(), simulate(backups=False)
    killed = simulate(deaths=[(300.0, worker) for worker in range(200)])
    assert normal.elapsed_s == pytest.approx(891, rel=0.06)
    assert without.elapsed_s > 1.25 * normal.elapsed_s
    assert 1.0 < killed.elapsed_s / normal.elapsed_s < 1.1
    late = [ran for ran in without.attempts if ran.end_s > 960]
    assert 0 < len(late) < 20, "a handful of tasks is what all wait for"
    assert min(rate for _, rate in killed.rates()["input"]) < 0


@dataclass(frozen=True)
class Recorded(Machines):
    """A machines on which every attempt ends when it ended in a recorded run."""

    ends: dict = field(default_factory=dict)

    def attempt_s(self, attempt, seed):
        return self.ends[str(attempt)] - attempt.begun_s


def run_with_a_death_in_a_map():
    """Return a real run, without backups, in which a worker dies in a map task."""
    lines = [f"{n} {n % 7} {n * n}" for n in range(4000)]
    job = MapReduce(lambda line: [(word, 1) for word in line.split()], sum_of)
    how = {"workers": 3, "reducers": 4, "split_bytes": 4000, "backups": False}
    for _ in range(10):
        output = job.run(lines, faults=KillWorker(1, 3), **how)
        lost = [e.label for e in output.trace.events if ", lost" in e.label]
        if lost and lost[0].startswith("map"):
            return output
    raise AssertionError("worker 1 was given no third map in any run")


def sum_of(word, counts):
    return sum(counts)


def handed_out(trace):
    work = [event for event in trace.events if event.kind == "work"]
    return [(e.rank, e.label) for e in sorted(work, key=lambda e: (e.start, e.rank))]


def test_a_real_run_replayed_makes_the_same_decisions():
    output = run_with_a_death_in_a_map()
    work = [e for e in output.trace.events if e.kind == "work"]
    begins = sorted(e.start for e in work)

    def seen(when_s):
        """Return when the owner, who reads all that has come, decided after that."""
        at = bisect.bisect_left(begins, when_s)
        return begins[at] if at < len(begins) else when_s

    ends = {
        e.label.removesuffix(", lost"): math.inf if "lost" in e.label else seen(e.end)
        for e in work
    }
    deaths = [(seen(e.start), e.rank) for e in output.trace.events if e.kind == "fault"]
    assert len(deaths) == 1
    replayed = simulate(
        output.counters.map_tasks,
        output.counters.reduce_tasks,
        machines=Recorded(3, startup_s=begins[0], slow_share=0, ends=ends),
        deaths=deaths,
        backups=False,
    )
    assert handed_out(replayed.trace) == handed_out(output.trace)
    assert replayed.elapsed_s == max(end_s for end_s in ends.values() if end_s < 9e9)


@pytest.mark.parametrize(
    "wrong",
    [{"maps": -1}, {"reduces": 0}, {"deaths": [(1.0, 9)]}, {"deaths": [(-1.0, 0)]}],
)
def test_what_cannot_be_simulated_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        simulate(**{"maps": 2, "reduces": 2, **wrong}, machines=Machines(3))
