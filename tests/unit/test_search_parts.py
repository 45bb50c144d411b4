"""Parts of a search, and the pictures of searches."""

import math
import random
import sqlite3
import statistics

import pytest

from distlab import InvalidArgument, show, tune
from distlab.tune.tuning_run import TuningAttempt, TuningRun


def test_log_uniform_has_as_many_numbers_in_each_decade():
    draw = random.Random(0)
    drawn = [tune.log_uniform(draw, 1e-4, 1) for _ in range(8000)]
    counts = [sum(10.0**k <= n < 10.0 ** (k + 1) for n in drawn) for k in range(-4, 0)]
    assert sum(counts) == 8000 and statistics.pstdev(counts) < 0.03 * 8000


def test_a_grid_has_every_combination_once():
    found = tune.grid({"a": [1, 2, 3], "b": "xy", "c": [None]})
    assert len(found) == 6 == len({tuple(each.values()) for each in found})
    assert {"a": 2, "b": "y", "c": None} in found and tune.grid({}) == [{}]


def test_near_duplicates_are_close_in_every_coordinate():
    points = [(0, 0), (0.04, 0.5), (0.04, 0.04), (0.04, 0.04), (0.2, 0.2)]
    assert tune.near_duplicates(points, 0.05) == 2
    assert tune.near_duplicates(points, 0.04) == 1


@pytest.mark.parametrize("trials", [27, 80, 100])
@pytest.mark.parametrize("rungs", [[1, 3, 9, 27], [5], [2, 3, 100]])
def test_the_steps_of_halving_are_those_that_a_search_trains(trials, rungs):
    rule = tune.SynchronousHalving(trials, rungs)
    curves = tune.draw_curves(trials)
    run = tune.simulate_tuning(rule, tune.loss_after, curves, tune.TuningCluster(1))
    assert tune.halving_steps(trials, rungs, 3) == run.steps_trained


def failing(times, error):
    calls = []

    def operation():
        calls.append(len(calls))
        if len(calls) <= times:
            raise error
        return calls

    return operation, calls


def busy(code=sqlite3.SQLITE_BUSY):
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = code
    return error


def test_a_retry_ends_with_the_first_success_or_with_the_last_error():
    locked = busy(sqlite3.SQLITE_BUSY_SNAPSHOT)  # busy, with a reason
    operation, calls = failing(3, locked)
    assert tune.retry(operation, 4, first_wait_s=1e-5) is calls
    operation, calls = failing(9, locked)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        tune.retry(operation, 4, first_wait_s=1e-5)
    assert len(calls) == 4


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError(), busy(sqlite3.SQLITE_FULL), sqlite3.OperationalError()],
)
def test_no_other_error_than_a_lock_is_retried(error):
    operation, calls = failing(1, error)
    with pytest.raises(type(error)):
        tune.retry(operation, 4)
    assert len(calls) == 1


def test_a_lock_of_sqlite_is_retried_and_a_missing_table_is_not(tmp_path):
    holder, writer = (
        sqlite3.connect(tmp_path / "a.db", timeout=0, isolation_level=None)
        for _ in range(2)
    )
    holder.execute("create table losses (loss)")
    holder.execute("begin exclusive")
    tried = []

    def write(table="losses"):
        tried.append(table)
        if len(tried) == 3:
            holder.execute("commit")
        writer.execute(f"insert into {table} values (1)")

    tune.retry(write, first_wait_s=1e-5)
    assert len(tried) == 3
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        tune.retry(lambda: write("missing"), first_wait_s=1e-5)
    assert tried.count("missing") == 1
    holder.close(), writer.close()


def test_the_waits_of_a_retry_double_and_are_random_by_half(monkeypatch):
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    for _ in range(50):
        tune.retry(failing(3, busy())[0], 4, first_wait_s=1)
    for at, longest in enumerate((1, 2, 4)):
        own = waits[at::3]
        assert longest / 2 <= min(own) < max(own) <= longest
        assert max(own) - min(own) > 0.3 * longest


# ---- pictures -------------------------------------------------------------------


def report(trial, rung, end_s, loss, outcome="done"):
    steps = (0, 1, 3)
    what = steps[rung], steps[rung + 1], end_s - 1, end_s, loss, outcome
    return TuningAttempt(0, trial, rung, *what)


def test_rungs_are_described_by_their_reports_and_promotions():
    attempts = [report(0, 0, 1, 0.5), report(1, 0, 2, math.nan), report(2, 0, 3, 0.4)]
    attempts += [report(2, 1, 5, 0.25), report(0, 1, 6, None, "lost")]
    alt = show.rungs(TuningRun(attempts, 1), "Mine").alt
    assert "After 1 step: 3 reports, 1 promoted." in alt
    assert "After 3 steps: 1 report, 0 promoted." in alt
    assert "Trial 2 is best, with loss 0.25." in alt
    assert "1 attempt lost" in alt


def test_a_promotion_is_a_line_from_a_report_to_the_next_of_its_trial():
    attempts = [report(0, 0, 1, 0.5), report(2, 0, 3, 0.4), report(2, 1, 5, 0.25)]
    canvas = show.rungs(TuningRun(attempts, 1))._canvas
    marks = [mark for mark in canvas.page.marks if mark.gid == "promotion"]
    [line] = [line for mark in marks for line in mark.at]
    spots = [mark.at for mark in canvas.page.marks if mark.gid == "report"]
    spots = {spot for xs, ys in spots for spot in zip(xs, ys, strict=True)}
    assert {line[:2], line[2:]} <= spots and len(spots) == 3
    assert line[0] < line[2] and line[1] > line[3]


@pytest.mark.parametrize("wrong", [None, TuningRun([], 1)])
def test_rungs_of_nothing_are_refused(wrong):
    with pytest.raises(InvalidArgument, match="a trial has reported"):
        show.rungs(wrong)


AXES = {"x_label": "steps", "y_label": "loss"}


def test_a_spread_lies_around_its_curve_and_is_described():
    series, spread = {"a": ([1, 2], [5, 6])}, {"a": ([4, 5], [7, 9])}
    picture = show.scaling(series, spread=spread, **AXES)
    assert "a ends between 5 and 9." in picture.alt
    marks = [mark for panel in picture._canvas.panels for mark in panel.marks]
    [band] = [mark.at for mark in marks if mark.gid == "spread"]
    assert [tuple(corner) for corner in band[0]] == [(1, 4), (2, 5), (2, 9), (1, 7)]


@pytest.mark.parametrize(
    "spread", [{"b": ([4, 5], [7, 9])}, {"a": ([4, 5],)}, {"a": ([4], [7, 9])}]
)
def test_a_spread_of_no_series_is_refused(spread):
    with pytest.raises(InvalidArgument, match="spread"):
        show.scaling({"a": ([1, 2], [5, 6])}, spread=spread, **AXES)
