"""How often to save: closed forms against brute force, and against lives of jobs."""

import math
import statistics
from dataclasses import replace

import pytest

from distlab import InvalidArgument, show
from distlab.cost.failures import (
    LLAMA_3_INTERRUPTIONS,
    best_interval,
    daly,
    goodput,
    job_mtbf,
    young,
)
from distlab.cost.long_run import LongRun, simulate

HOUR, DAY = 3600, 86400
MTBF = 54 * DAY / 419
KINDS = {"compute", "save", "lost", "detect", "wait", "restart"}


def test_the_published_interruptions_add_up_to_one_every_three_hours():
    assert sum(LLAMA_3_INTERRUPTIONS.values()) == 419
    assert pytest.approx(3.093, abs=1e-3) == MTBF / HOUR
    gpu = ("faulty GPU", "GPU HBM3 memory", "GPU SRAM memory", "GPU system processor")
    gpu += ("silent data corruption", "GPU thermal interface and sensor")
    share = sum(LLAMA_3_INTERRUPTIONS[cause] for cause in gpu) / 419
    assert share == pytest.approx(0.64, abs=0.01)


@pytest.mark.parametrize("save_s", [1, 30, 120, 1800])
def test_the_best_interval_is_that_of_a_search_and_daly_is_close_to_it(save_s):
    tried = [MTBF * step / 100_000 for step in range(1, 100_000)]
    found = max(tried, key=lambda tau: goodput(tau, save_s, 600, MTBF))
    assert best_interval(save_s, MTBF) == pytest.approx(found, abs=2 * MTBF / 100_000)
    assert daly(save_s, MTBF) == pytest.approx(found, rel=0.005)


def test_youngs_interval_is_the_limit_for_short_saves_and_too_long_for_others():
    assert young(0.01, MTBF) == pytest.approx(best_interval(0.01, MTBF), rel=1e-3)
    assert young(1800, MTBF) > 1.15 * best_interval(1800, MTBF)
    assert daly(3 * MTBF, MTBF) == MTBF


def test_a_thousand_times_the_devices_fail_a_thousand_times_as_often():
    assert job_mtbf(16_384 * MTBF, 16_384) == MTBF


JOB = LongRun(MTBF, young(120, MTBF), 120, restart_s=600)


@pytest.mark.parametrize("factor", [0.3, 1, 3])
def test_lives_of_jobs_have_dalys_goodput_within_their_own_spread(factor):
    job = replace(JOB, interval_s=factor * JOB.interval_s)
    lives = [simulate(job, 180 * DAY, seed) for seed in range(12)]
    found = [life.goodput for life in lives]
    error = statistics.stdev(found) / math.sqrt(len(found))
    expected = goodput(job.interval_s, 120, 600, MTBF)
    assert abs(statistics.mean(found) - expected) < 4 * error
    assert error < 0.003
    failures = sum(life.failures for life in lives)
    assert failures == pytest.approx(12 * 180 * DAY / MTBF, rel=0.03)


def test_a_life_has_no_gaps_and_ends_in_time():
    life = simulate(replace(JOB, detect_s=60, spares=1, repair_s=DAY), 30 * DAY)
    assert life.spans[0].start == 0
    assert life.seconds == pytest.approx(30 * DAY)
    for before, after in zip(life.spans, life.spans[1:], strict=False):
        assert before.end == after.start
    assert {span.kind for span in life.spans} == KINDS
    assert sum(map(life.total, KINDS)) == pytest.approx(30 * DAY)


SLOW = replace(JOB, detect_s=600, spares=20, repair_s=3 * DAY)


@pytest.mark.parametrize(
    "better",
    [
        {"spares": 30},
        {"detect_s": 30},
        {"restart_s": 60},
        {"save_s": 5, "behind_s": 120},
        {"memory_interval_s": 60, "memory_s": 0.1, "memory_restart_s": 60},
    ],
)
def test_each_remedy_gains_when_the_same_failures_come(better):
    plain = SLOW if "spares" in better else replace(SLOW, spares=10_000)
    for seed in range(3):
        lives = [simulate(j, 60 * DAY, seed) for j in (plain, replace(plain, **better))]
        assert lives[1].goodput > lives[0].goodput


@pytest.mark.parametrize(
    ("save_s", "winners"), [(120, ["background", "peers"]), (3.24, ["noticed"])]
)
def test_with_each_at_its_best_interval_the_disk_decides_which_remedy_wins(
    save_s, winners
):
    job = LongRun(MTBF, 1800, save_s, detect_s=600, restart_s=600)
    copies = {"memory_interval_s": young(0.5, MTBF), "memory_s": 0.5, "wide": 0.1}
    copies["memory_restart_s"] = 600 - save_s  # no read of the disk
    behind = {"save_s": min(save_s, 5), "behind_s": save_s}
    remedies = {
        "noticed": replace(job, detect_s=30),
        "background": replace(job, **behind),
        "spare": replace(job, restart_s=120 + save_s),
        "peers": replace(job, **copies),
    }
    intervals = [300 * 2**k for k in range(6)]
    for seed in range(2):
        best = {
            name: max(
                simulate(replace(it, interval_s=s), 40 * DAY, seed).goodput
                for s in intervals
            )
            for name, it in remedies.items()
        }
        assert sorted(sorted(best, key=best.get)[-len(winners) :]) == winners


def test_a_save_in_the_background_does_not_count_at_once():
    background = replace(JOB, save_s=5, behind_s=600)
    at_once = replace(background, behind_s=0)
    late, early = (simulate(job, 365 * DAY) for job in (background, at_once))
    assert late.total("lost") - early.total("lost") > 0.7 * 600 * late.failures * 0.5


def test_failures_that_take_the_peers_cost_what_the_disk_has_not():
    memory = replace(JOB, memory_interval_s=60, memory_s=0.1, memory_restart_s=60)
    lost = [
        simulate(replace(memory, wide=wide), 100 * DAY).total("lost")
        for wide in (0, 0.1, 1)
    ]
    assert lost[0] < lost[1] < lost[2]
    assert lost[2] == pytest.approx(simulate(JOB, 100 * DAY).total("lost"), rel=0.1)


def test_bursts_of_failures_break_the_formula():
    bursts = simulate(replace(JOB, shape=0.5), 3 * 365 * DAY)
    assert abs(bursts.goodput - goodput(JOB.interval_s, 120, 600, MTBF)) > 0.01


def test_an_interval_of_zero_is_refused():
    with pytest.raises(InvalidArgument, match="interval_s=0"):
        simulate(replace(JOB, interval_s=0), DAY)


def test_a_lifeline_shows_every_kind_and_tells_the_goodput():
    life = simulate(SLOW, 3 * DAY)
    picture = show.goodput_timeline(
        {"20 spares": life, "no failures": simulate(JOB, 3 * HOUR)}
    )
    assert f"{life.goodput:.1%}" in picture.alt
    assert f"{life.failures} failures" in picture.alt
    with pytest.raises(InvalidArgument, match="a dict from a name to a Life"):
        show.goodput_timeline([])
