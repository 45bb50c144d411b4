"""The scheduler's decisions alone, on a clock of the test's own."""

import random
import statistics

import pytest

from distlab.dataflow.mapreduce.task_states import Task, TaskStates


def test_reduces_wait_for_every_map():
    schedule = TaskStates(2, 1)
    first, second = schedule.next_for(0, 0.0), schedule.next_for(1, 0.0)
    assert [first.task, second.task] == [Task("map", 0), Task("map", 1)]
    schedule.done(first, 1.0)
    assert schedule.next_for(0, 1.0) is None
    schedule.done(second, 1.1)
    last = schedule.next_for(0, 1.2)
    assert last.task == Task("reduce", 0) and not schedule.finished
    schedule.done(last, 2.0)
    assert schedule.finished


def test_a_lost_worker_costs_its_maps_and_no_committed_reduce():
    schedule = TaskStates(3, 2)
    for number, worker in enumerate([0, 1, 0]):
        schedule.done(schedule.next_for(worker, number), number + 0.5)
    reduce = schedule.next_for(0, 3.0)
    schedule.done(reduce, 4.0)
    other = schedule.next_for(1, 4.0)
    assert schedule.lost(0) == [Task("map", 0), Task("map", 2)]
    assert reduce.task in schedule.completed and other in schedule.running
    assert schedule.next_for(0, 5.0).task == Task("map", 0)


def test_once_every_reduce_is_committed_a_death_costs_nothing():
    schedule = TaskStates(1, 1)
    for _ in range(2):
        schedule.done(schedule.next_for(0, 0.0), 0.5)
    assert schedule.lost(0) == [] and schedule.finished


def test_a_task_slower_than_the_others_gets_one_backup_and_the_first_counts():
    schedule = TaskStates(3, 1)
    slow, quick = schedule.next_for(0, 0.0), schedule.next_for(1, 0.0)
    schedule.done(quick, 1.0)
    third = schedule.next_for(1, 1.0)
    assert schedule.next_for(2, 1.2) is None, "nothing is late yet"
    backup = schedule.next_for(2, 1.6)
    assert (backup.task, backup.number) == (slow.task, 2)
    assert schedule.next_for(3, 1.7) is None, "one backup is enough"
    assert schedule.done(backup, 2.0) and not schedule.done(slow, 9.0)
    assert schedule.completed[slow.task] == backup
    assert schedule.attempts[third.task] == 1


def test_without_backups_a_late_task_is_waited_for():
    schedule = TaskStates(2, 1, backups=False)
    schedule.next_for(0, 0.0)
    schedule.done(schedule.next_for(1, 0.0), 1.0)
    assert schedule.next_for(1, 100.0) is None


class Twin:
    """The same decisions by looking at every task every time: an oracle."""

    def __init__(self, maps, reduces):
        self.maps = [Task("map", number) for number in range(maps)]
        self.reduces = [Task("reduce", number) for number in range(reduces)]
        self.completed, self.running, self.durations = {}, [], []

    def next_task(self, now_s):
        tasks = [task for task in self.maps if task not in self.completed]
        tasks = tasks or [task for task in self.reduces if task not in self.completed]
        busy = [attempt.task for attempt in self.running]
        waiting = [task for task in tasks if task not in busy]
        if waiting:
            return waiting[0]
        alone = [a for a in self.running if a.task in tasks and busy.count(a.task) == 1]
        usual = [
            lasted for kind, lasted in self.durations if tasks and kind == tasks[0].kind
        ]
        if not alone or not usual:
            return None
        late = now_s - alone[0].begun_s > max(0.1, 1.5 * statistics.median(usual))
        return alone[0].task if late else None

    def done(self, attempt, now_s):
        self.running.remove(attempt)
        self.durations.append((attempt.task.kind, now_s - attempt.begun_s))
        self.completed.setdefault(attempt.task, attempt)

    def lost(self, worker):
        self.running = [a for a in self.running if a.worker != worker]
        if not all(task in self.completed for task in self.reduces):
            for task in self.maps:
                if task in self.completed and self.completed[task].worker == worker:
                    del self.completed[task]


@pytest.mark.parametrize("seed", range(20))
def test_decisions_are_those_of_a_look_at_every_task(seed):
    rng = random.Random(seed)
    sizes = rng.randrange(9), rng.randrange(1, 6)
    schedule, twin = TaskStates(*sizes), Twin(*sizes)
    now_s = 0.0
    for _ in range(400):
        now_s += rng.choice([0.0, 0.01, 0.3, 2.0])
        busy = {attempt.worker: attempt for attempt in twin.running}
        idle = [worker for worker in range(5) if worker not in busy]
        if idle and rng.random() < 0.6:
            foretold = twin.next_task(now_s)
            attempt = schedule.next_for(idle[0], now_s)
            assert (attempt and attempt.task) == foretold
            if attempt:
                twin.running.append(attempt)
        elif busy:
            attempt = busy[rng.choice(sorted(busy))]
            what = rng.random()
            if what < 0.8:
                schedule.done(attempt, now_s)
                twin.done(attempt, now_s)
            elif what < 0.9:
                schedule.failed(attempt)
                twin.running.remove(attempt)
            else:
                schedule.lost(attempt.worker)
                twin.lost(attempt.worker)
        assert schedule.completed == twin.completed
        assert list(schedule.running) == twin.running
        assert schedule.finished == all(t in twin.completed for t in twin.reduces)
