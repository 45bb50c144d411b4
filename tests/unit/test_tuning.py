"""Successive halving, ASHA, and tuning runs on a virtual clock."""

import math
import random
import subprocess
import sys
from functools import cache
from itertools import pairwise
from statistics import median

import pytest

from distlab.errors import InvalidArgument
from distlab.faults import Crash, Kill, Pause
from distlab.tune import (
    Asha,
    SynchronousHalving,
    TuningAttempt,
    TuningCluster,
    TuningRun,
    draw_curves,
    loss_after,
    promote,
    random_search,
    rung_steps,
    simulate_tuning,
    straggling,
)

NAN = math.nan
SEEDS = range(5)


def flat(loss, steps):
    """A curve that never changes: a configuration is its loss."""
    return loss


@pytest.mark.parametrize("eta", [2, 3, 4, 10])
def test_a_rung_has_eta_times_the_steps_of_the_one_below_and_the_last_fits(eta):
    for least in (1, 3, 7):
        for most in (least, *(least * eta**k for k in range(1, 5)), least * eta**3 - 1):
            rungs = rung_steps(least, most, eta)
            assert rungs[0] == least and rungs[-1] <= most < rungs[-1] * eta
            assert all(b == a * eta for a, b in pairwise(rungs))


@pytest.mark.parametrize("seed", range(50))
def test_promoted_are_those_with_fewer_better_ones_than_one_in_eta(seed):
    draw = random.Random(seed)
    eta, trials = draw.choice([2, 3, 4]), draw.sample(range(40), draw.randrange(20))
    losses = {t: draw.choice([NAN, 0.1, 0.2, 0.3, 0.4]) for t in trials}
    good = {}
    for trial, loss in losses.items():
        better = sum(
            other < loss or (other == loss and rival < trial)
            for rival, other in losses.items()
        )
        if loss == loss and better < len(losses) // eta:
            good[better] = trial
    assert promote(losses, eta) == [good[place] for place in sorted(good)]


def reported(scheduler, losses, calls):
    """Return the jobs of one worker, each of which reports at once."""
    jobs = []
    for _ in range(calls):
        if (job := scheduler.next_job()) is None:
            break
        jobs.append((job.trial, job.rung, job.start, job.stop))
        scheduler.on_report(job.trial, job.rung, losses[job.trial])
    return jobs


def test_asha_with_one_worker_gives_out_the_jobs_of_algorithm_2_worked_by_hand():
    losses = [0.9, 0.7, 0.8, 0.75, 0.95, 0.6, 0.65, 0.5, 0.99]
    jobs = reported(Asha(9, [1, 3, 9]), losses, 99)
    new = [(trial, 0, 0, 1) for trial in range(9)]
    promoted = [(trial, 1, 1, 3) for trial in (1, 5, 6, 7)]
    third = [(5, 2, 3, 9)]  # 1, 5, 6: the top third is 5; with 7 it is 7
    expected = [*new[:3], promoted[0], *new[3:6], promoted[1], new[6], promoted[2]]
    assert jobs == [*expected, *third, new[7], promoted[3], (7, 2, 3, 9), new[8]]


def test_asha_takes_the_highest_rung_that_has_a_promotable_trial():
    scheduler = Asha(5, [1, 2, 4], eta=2)
    for _ in range(4):
        scheduler.next_job()
    for trial, loss in ((1, 0.1), (0, 0.2), (2, 0.4), (3, 0.3)):
        scheduler.on_report(trial, 0, loss)
    assert [scheduler.next_job()[:2] for _ in range(2)] == [(1, 1), (0, 1)]
    scheduler.on_report(1, 1, 0.6)
    scheduler.on_report(0, 1, 0.5)
    scheduler.on_report(4, 0, 0.0)  # in the top of rung 0, too
    assert [scheduler.next_job()[:2] for _ in range(2)] == [(0, 2), (4, 1)]


def test_synchronous_halving_promotes_a_complete_rung_and_waits_until_then():
    scheduler = SynchronousHalving(9, [1, 3, 9])
    first = [scheduler.next_job() for _ in range(10)]
    assert [job.trial for job in first[:9]] == list(range(9)) and first[9] is None
    for trial in range(8):
        scheduler.on_report(trial, 0, trial / 10)
    assert scheduler.next_job() is None
    scheduler.on_report(8, 0, -1.0)
    assert [scheduler.next_job().trial for _ in range(3)] == [8, 0, 1]


def test_the_first_report_counts_and_what_was_lost_goes_first_unless_it_reports():
    scheduler = Asha(9, [1, 3, 9])
    for _ in range(4):
        scheduler.next_job()
    for trial in (2, 0, 0, 1):  # a duplicate
        scheduler.on_lost(trial, 0)
    scheduler.on_report(0, 0, 0.5)  # its worker was alive
    scheduler.on_report(0, 0, 0.1)
    scheduler.on_lost(0, 0)
    assert scheduler.losses[0] == {0: 0.5}
    assert [scheduler.next_job()[:2] for _ in range(3)] == [(2, 0), (1, 0), (4, 0)]


def test_a_job_that_is_lost_too_often_is_given_up_as_the_worst():
    scheduler = SynchronousHalving(3, [1, 3], tries=2)
    jobs = [scheduler.next_job() for _ in range(3)]
    scheduler.on_lost(0, 0)
    assert scheduler.next_job() == jobs[0]
    scheduler.on_lost(0, 0)
    assert math.isnan(scheduler.losses[0][0]) and not scheduler.wanted(0, 0)
    scheduler.on_report(1, 0, 0.9)
    scheduler.on_report(2, 0, 0.8)
    assert scheduler.next_job()[:2] == (2, 1)


def test_a_job_begins_at_the_newest_checkpoint():
    scheduler = Asha(3, [10, 100], eta=2)
    reported(scheduler, [0.1, 0.2, 0.3], 2)
    assert scheduler.next_job() == (0, 1, 10, 100)
    for step in (70, 40):
        scheduler.on_saved(0, step)
    scheduler.on_lost(0, 1)
    assert scheduler.next_job() == (0, 1, 70, 100)


# ---- simulated runs ------------------------------------------------------------------


def test_a_run_with_a_death_and_a_pause_is_the_one_worked_by_hand():
    faults = [Crash(0, 4, 6), Pause(1, 5, 20)]
    cluster = TuningCluster(2, 1.0, faults, detect_s=3, save_every=2)
    run = simulate_tuning(random_search(3, 8), flat, [0.3, 0.2, 0.1], cluster)
    assert [tuple(one) for one in run.attempts] == [
        (0, 0, 0, 0, 4, 0.0, 4.0, None, "lost"),  # as it saves its second checkpoint
        (0, 2, 0, 0, 8, 6.0, 14.0, 0.1, "done"),  # trial 0 is not known to be lost
        (0, 0, 0, 2, 8, 14.0, 20.0, 0.3, "done"),
        (1, 1, 0, 0, 8, 0.0, 23.0, 0.2, "done"),  # taken for dead at 8 s
        (0, 1, 0, 4, 8, 20.0, 24.0, 0.2, "late"),
    ]
    assert run.steps_trained == 30
    assert run.deaths == [(4, 0)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", [Asha, SynchronousHalving])
def test_workers_that_die_and_pause_lose_no_trial_and_repeat_no_saved_step(kind, seed):
    draw, rungs, curves = random.Random(seed), [3, 9, 27], draw_curves(27, seed)
    faults = []
    for worker in range(4):
        at_s = draw.uniform(5, 40)
        faults.append(Crash(worker, at_s, at_s + draw.uniform(1, 20)))
        faults.append(Pause(worker, at_s + 30, at_s + draw.uniform(31, 60)))
    cluster = TuningCluster(4, straggling(1.0, 1.0, seed), faults, 5, save_every=2)
    run = simulate_tuning(kind(27, rungs, tries=9), loss_after, curves, cluster)
    done = [(one.trial, one.rung) for one in run.attempts if one.outcome == "done"]
    assert len(done) == len(set(done))
    assert {trial for trial, rung in done if rung == 0} == set(range(27))
    assert sum(rung == 1 for _, rung in done) >= 9
    assert sum(rung == 2 for _, rung in done) >= 3
    for worker in range(4):
        own = sorted(
            (one.begun_s, one.end_s) for one in run.attempts if one.worker == worker
        )
        assert all(end <= begin for (_, end), (begin, _) in pairwise(own))
    for one in run.attempts:
        below = rungs[one.rung - 1] if one.rung else 0
        assert one.start >= max([below, *saved_before(run, one)])


def saved_before(run, attempt):
    """Yield the last checkpoint of each attempt at this trial that had ended."""
    for one in run.attempts:
        if one.trial == attempt.trial and one.end_s <= attempt.begun_s:
            yield one.stop if one.loss is not None else one.stop // 2 * 2


@pytest.mark.parametrize("kind", [bool, int])
def test_a_slow_worker_stops_at_its_next_checkpoint_when_another_has_reported(kind):
    scheduler = random_search(1, 20)
    wanted = scheduler.wanted
    scheduler.wanted = lambda *job: kind(wanted(*job))
    cluster = TuningCluster(
        2, lambda worker, trial: 2 - worker, [Pause(0, 5, 10)], detect_s=3, save_every=2
    )
    run = simulate_tuning(scheduler, flat, [0.1], cluster)
    assert [tuple(one) for one in run.attempts] == [
        (1, 0, 0, 2, 20, 8.0, 26.0, 0.1, "done"),
        (0, 0, 0, 0, 12, 0.0, 29.0, None, "given up"),
    ]


def test_a_pause_that_is_shorter_than_the_time_out_costs_no_second_attempt():
    cluster = TuningCluster(2, faults=[Pause(0, 1, 3)], detect_s=3)
    run = simulate_tuning(random_search(1, 9), flat, [0.1], cluster)
    assert [one.end_s for one in run.attempts] == [11.0]


def test_a_worker_that_dies_in_a_pause_is_down_until_both_are_over():
    faults = [Pause(0, 1, 4), Crash(0, 2, 9)]
    cluster = TuningCluster(1, 1.0, faults, detect_s=1)
    run = simulate_tuning(random_search(1, 3), flat, [0.1], cluster)
    assert [tuple(one) for one in run.attempts] == [
        (0, 0, 0, 0, 1, 0.0, 2.0, None, "lost"),
        (0, 0, 0, 0, 3, 9.0, 12.0, 0.1, "done"),
    ]


def test_a_run_that_is_ended_gives_up_what_is_under_way_with_the_steps_trained():
    run = simulate_tuning(random_search(2, 9), flat, [0.1, 0.2], until_s=4.5)
    assert {one.outcome for one in run.attempts} == {"given up"}
    assert run.steps_trained == 8 and run.improvements() == []


def test_the_best_loss_and_the_steps_until_it_are_those_of_the_attempts():
    attempts = [
        TuningAttempt(0, 0, 0, 0, 4, 0.0, 4.0, 0.5, "done"),
        TuningAttempt(1, 1, 0, 0, 8, 0.0, 8.0, NAN, "done"),
        TuningAttempt(0, 2, 0, 0, 2, 4.0, 8.0, None, "lost"),
        TuningAttempt(0, 3, 0, 0, 4, 8.0, 12.0, 0.4, "done"),
        TuningAttempt(1, 4, 0, 0, 5, 8.0, 13.0, 0.4, "done"),
    ]
    run = TuningRun(attempts, 2)
    assert run.steps_trained == 23
    assert run.best_over_time() == [(4.0, 0.5), (12.0, 0.4)]
    assert run.best_over_steps() == [(8.0, 0.5), (22.0, 0.4)]
    assert (run.steps_to(0.45), run.seconds_to(0.5)) == (22.0, 4.0)
    assert run.steps_to(0.1) == run.seconds_to(0.1) == math.inf


@cache
def runs_on(seed, slow_starters=0, least=1):
    """Return the runs of random search, synchronous halving and ASHA, and the best."""
    curves = draw_curves(256, seed, slow_starters)
    rungs = rung_steps(least, 256, 4)
    makers = (
        random_search(256, 256),
        SynchronousHalving(256, rungs, 4),
        Asha(256, rungs, 4),
    )
    cluster = TuningCluster(8, straggling(1.0, 0.5, seed))
    runs = [simulate_tuning(each, loss_after, curves, cluster) for each in makers]
    return runs, sorted(loss_after(curve, 256) for curve in curves)


def test_asha_trains_three_times_fewer_steps_than_random_search_to_a_good_loss():
    ratios, times = [], []
    for seed in SEEDS:
        (drawn, halving, asha), losses = runs_on(seed)
        ratios.append(drawn.steps_to(losses[2]) / asha.steps_to(losses[2]))
        times.append(halving.seconds_to(losses[2]) / asha.seconds_to(losses[2]))
    assert median(ratios) > 3, ratios
    assert median(times) > 1, times  # stragglers hold up a rung, and no free worker


def test_halving_finds_the_best_curve_if_curves_never_cross():
    for seed in SEEDS:
        (_, halving, asha), losses = runs_on(seed)
        assert halving.best_over_time()[-1][1] == losses[0]
        assert asha.best_over_time()[-1][1] == losses[0]


def test_a_slow_starter_that_would_have_won_is_lost_by_a_low_first_rung():
    for seed in range(3):
        (drawn, _, asha), losses = runs_on(seed, slow_starters=6)
        assert drawn.best_over_time()[-1][1] == losses[0]
        assert asha.best_over_time()[-1][1] > losses[5]  # all six are stopped
        late = runs_on(seed, slow_starters=6, least=64)[0][2]
        assert late.best_over_time()[-1][1] <= losses[5]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rung_steps(0, 9), "least=0"),
        (lambda: rung_steps(4, 3), "most=3"),
        (lambda: rung_steps(1, 9, 1), "eta=1"),
        (lambda: rung_steps(1, 9.0), "most=9.0"),
        (lambda: promote({}, 1.5), "eta=1.5"),
        (lambda: Asha(0, [1]), "trials=0"),
        (lambda: Asha(9, []), "rungs is empty"),
        (lambda: Asha(9, [3, 3]), "rungs=3"),
        (
            lambda: SynchronousHalving(8, [1, 3, 9, 27]),
            "8 trials with eta=3 leave none for rung 2: begin with at least 27",
        ),
        (lambda: Asha(3, [1, 2, 4], 2), "none for rung 2: begin with at least 4"),
        (lambda: Asha(9, [1], tries=0), "tries=0"),
        (lambda: draw_curves(0), "count=0"),
        (
            lambda: draw_curves(3, slow_starters=4),
            "count=3: give a whole number, at least 4",
        ),
        (lambda: draw_curves(3, slow_starters=-1), "slow_starters=-1"),
        (lambda: TuningCluster(0), "workers=0"),
        (lambda: TuningCluster(2, save_every=0), "save_every=0"),
        (lambda: TuningCluster(2, detect_s=0), "detect_s=0"),
        (lambda: TuningCluster(2, faults=[Crash(2, 1)]), "node 2"),
        (lambda: TuningCluster(2, faults=[Kill(0, 1)]), "Crash and Pause"),
        (lambda: simulate_tuning(Asha(2, [1]), flat, [0.1]), "a trial from 0 to 0"),
        (lambda: simulate_tuning(Asha(1, [3]), flat, [None]), "trial 0 after 3 steps"),
        (
            lambda: simulate_tuning(
                Asha(1, [1]), flat, [0.1], TuningCluster(1, lambda worker, trial: 0)
            ),
            "worker 0 and trial 0",
        ),
    ],
)
def test_bad_input_is_named_with_what_to_give(call, words):
    with pytest.raises(InvalidArgument) as refused:
        call()
    assert words in str(refused.value)


def test_tuning_loads_neither_numpy_nor_torch():
    code = "import distlab.tune, sys; print({'numpy', 'torch'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
