"""The scheduler's decisions alone, on a clock of the test's own."""

from distlab.dataflow.schedule import Schedule, Task


def test_reduces_wait_for_every_map():
    schedule = Schedule(2, 1)
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
    schedule = Schedule(3, 2)
    for number, worker in enumerate([0, 1, 0]):
        schedule.done(schedule.next_for(worker, number), number + 0.5)
    reduce = schedule.next_for(0, 3.0)
    schedule.done(reduce, 4.0)
    other = schedule.next_for(1, 4.0)
    assert schedule.lost(0) == [Task("map", 0), Task("map", 2)]
    assert reduce.task in schedule.completed and other in schedule.running
    assert schedule.next_for(0, 5.0).task == Task("map", 0)


def test_once_every_reduce_is_committed_a_death_costs_nothing():
    schedule = Schedule(1, 1)
    for _ in range(2):
        schedule.done(schedule.next_for(0, 0.0), 0.5)
    assert schedule.lost(0) == [] and schedule.finished


def test_a_task_slower_than_the_others_gets_one_backup_and_the_first_counts():
    schedule = Schedule(3, 1)
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
    schedule = Schedule(2, 1, backups=False)
    schedule.next_for(0, 0.0)
    schedule.done(schedule.next_for(1, 0.0), 1.0)
    assert schedule.next_for(1, 100.0) is None
