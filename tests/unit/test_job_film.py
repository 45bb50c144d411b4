"""The film of a job says what its workers' trace says, in workers' words."""

import json
import random
import re
from collections import Counter

import pytest
from traces import KILLED, job, kill, work

from distlab.errors import InvalidArgument
from distlab.show import compare, player
from distlab.show.player.data import player_data
from distlab.show.reading.attempts import Attempts


def random_job(seed):
    """Return workers that do tasks, fail, die and do them again, one at a time."""
    dice = random.Random(seed)
    workers, tasks = dice.randint(1, 7), dice.randint(1, 30)
    clocks, waiting, events, tries = [0.0] * workers, list(range(tasks)), [], Counter()
    held = {worker: [] for worker in range(workers)}
    while waiting:
        worker = min(range(workers), key=clocks.__getitem__)
        task, start = waiting.pop(0), clocks[worker] + 0.01
        clocks[worker] = end = start + dice.random()
        tries[task] += 1
        label = f"map {task}, attempt {tries[task]}"
        if dice.random() < 0.1 and tries[task] < 4:
            clocks[worker] = end + 0.02
            events += [work(worker, start, end, f"{label}, lost"), kill(worker, end)]
            waiting += [task, *held.pop(worker, [])]
            held[worker] = []
        else:
            events.append(work(worker, start, end, label))
            held[worker].append(task)
    return job(*events, workers=workers)


TRACES = {f"random {seed}": random_job(seed) for seed in range(30)}
TRACES |= {"killed": KILLED, "empty": job(), "one worker": random_job(3)}
TRACES["many"] = job(
    *(work(n % 40, n // 40, n // 40 + 0.9, f"map {n}") for n in range(4000)), workers=40
)


@pytest.mark.parametrize("name", TRACES)
def test_bars_end_at_the_tasks_that_each_worker_did(name):
    animation = player(TRACES[name]).animation
    did = Counter(
        e.worker for e in Attempts(TRACES[name]).tries if e.fate in ("done", "undone")
    )
    assert animation.frames[-1].sent[1:] == [
        did[w] for w in range(TRACES[name].world_size)
    ]


@pytest.mark.parametrize("name", TRACES)
def test_in_the_end_every_task_is_done_once_and_by_whom_the_table_says(name):
    animation, attempts = player(TRACES[name]).animation, Attempts(TRACES[name])
    done = {e.task: e.worker for e in attempts.tries if e.fate == "done"}
    assert len(done) == sum(attempts.tasks.values())
    for chunk, task in enumerate(animation.tasks[: animation.chunks]):
        counts = animation.frames[-1].tables[0, chunk]
        assert counts.index(1) == done[task] + 1 and sum(counts) == 1


@pytest.mark.parametrize("name", TRACES)
def test_every_attempt_is_handed_out_once_and_every_death_is_a_stop(name):
    animation, attempts = player(TRACES[name]).animation, Attempts(TRACES[name])
    given = Counter(m.dst - 1 for f in animation.frames for m in f.moves if m.src == 0)
    assert given == Counter(each.worker for each in attempts.tries)
    dead = [rank - 1 for frame in animation.frames for rank in frame.dead]
    assert dead == [each.worker for each in attempts.kills]
    times = [frame.at_s for frame in animation.frames]
    assert times == sorted(times)


@pytest.mark.parametrize("name", TRACES)
def test_nobody_is_a_rank_and_the_data_is_plain(name):
    played = player(TRACES[name], "A job")
    ours = r"<(script|style) data-once>.*?</\1>"
    assert "rank" not in re.sub(ours, "", played.html(), flags=re.DOTALL)
    assert "rank" not in played.alt
    json.dumps(player_data(played.animation), allow_nan=False)
    assert len(played.animation.frames) < 900


def test_a_death_is_told_with_what_it_undid():
    animation = player(KILLED).animation
    (dead,) = (frame for frame in animation.frames if frame.dead)
    assert dead.title == "Worker 1 was killed" and dead.short == "kill"
    assert dead.text == (
        "Worker 1 was killed during map 2; map 1, which it had finished, waits again. "
        "Another process takes its place. Worker 0 takes map 1 again. "
        "Worker 1 takes map 2 again."
    )
    chunk = animation.tasks.index("map 1")
    before = animation.frames[animation.frames.index(dead) - 1]
    assert sum(before.tables[0, chunk]) == sum(before.tables[2, chunk]) == 1
    assert sum(dead.tables[0, chunk]) == sum(dead.tables[2, chunk]) == 0


def test_a_backup_is_told_with_whom_it_is_for():
    trace = job(
        work(0, 0, 3, "map 0, attempt 1"),
        work(1, 0, 1, "map 1, attempt 1"),
        work(1, 1.5, 2, "map 0, attempt 2"),
    )
    texts = [frame.text for frame in player(trace).animation.frames]
    said = "takes map 0 as a backup: worker 0 has been at it for 1.5 s."
    assert texts[2] == f"Worker 1 finishes map 1 and {said}"
    assert "Worker 0 finishes map 0, too late: another was first." in texts[-1]


def test_reduce_output_is_on_no_workers_disk():
    animation = player(KILLED).animation
    last = animation.frames[-1].tables
    chunk = animation.tasks.index("reduce 0")
    assert sum(last[0, chunk]) == 1 and sum(last[1, chunk]) == 0


def test_an_empty_job_says_that_there_is_nothing_to_play():
    animation = player(job()).animation
    assert len(animation.frames) == 1 and "nothing to play" in animation.frames[0].text


def test_runs_of_workers_are_not_compared_step_by_step():
    with pytest.raises(InvalidArgument, match="workers"):
        compare(KILLED, KILLED)
