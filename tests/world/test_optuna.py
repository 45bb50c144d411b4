"""Optuna over worker processes: what a killed worker leaves in which storage."""

import math
import os
import sqlite3
from contextlib import closing

import optuna
import pytest
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages.journal import JournalFileBackend
from soaks import nightly

from distlab import EngineFailed, InvalidArgument, KillWorker, TaskFailed
from distlab.engines import postgres
from distlab.engines.optuna import optimize

KILLS = [KillWorker(1, 1), KillWorker(3, 1)]  # the first task of each is given at once


def square(trial):
    x = trial.suggest_float("x", -1, 1)
    for step in (1, 2, 3):
        trial.report(x * x + 1 / step, step)
    return x * x


def with_heartbeats(url, **options):
    def storage():
        again = RetryHeartbeatStaleTrialCallback(max_retry=3)
        how = {"grace_period": 2, "heartbeat_stale_trial_callback": again}
        return RDBStorage(url, heartbeat_interval=1, **how, **options)

    return storage


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/trials.db"


def test_a_journal_leaves_a_killed_workers_trial_running_for_ever(tmp_path):
    def journal():
        file = JournalFileBackend(f"{tmp_path}/journal.log")
        return optuna.storages.JournalStorage(file)

    search = optimize(square, journal, trials=8, faults=KILLS)
    assert search.states == {"RUNNING": 2, "COMPLETE": 6} and not search.retried
    lost = [one for one in search.attempts if one.outcome == "lost"]
    assert sorted(one.worker for one in lost) == [1, 3]
    running = {t.number for t in search.trials if t.state.name == "RUNNING"}
    assert {one.trial for one in lost} == running
    assert [(one.stop, one.loss) for one in lost] == [(1, None)] * 2


def completed(connection):
    """Return how often each configuration is complete, as the database has it."""
    rows = connection.execute(
        "select param_value, sum(case when state = 'COMPLETE' then 1 else 0 end) "
        "from trials join trial_params on trials.trial_id = trial_params.trial_id "
        "group by param_value"
    )
    return [count for _, count in rows.fetchall()]


KILLED_OFTEN = [KillWorker(k % 4, 5 * k) for k in range(1, 10)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("trials", "kills"), [(8, KILLS), nightly(200, KILLED_OFTEN)], ids=["few", "many"]
)
def test_with_heartbeats_every_configuration_is_complete_once(url, trials, kills):
    search = optimize(square, with_heartbeats(url), trials=trials, faults=kills)
    lost = [one for one in search.attempts if one.outcome == "lost"]
    # A busy machine keeps a heartbeat back, and that trial is retried, too.
    assert len(kills) - 2 <= len(lost) <= len(search.retried)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        assert completed(connection) == [1] * trials
    assert search.best.value == min(one.loss for one in search.attempts if one.loss)


@pytest.mark.nightly
@pytest.mark.skipif(not postgres.is_installed(), reason="PostgreSQL is not installed")
def test_postgres_completes_every_configuration_once():
    with postgres.server() as server:
        search = optimize(square, with_heartbeats(server.url), trials=8, faults=KILLS)
        with server.connect() as connection:
            assert completed(connection) == [1] * 8
    assert len(search.retried) == 2


def test_a_nan_is_a_failed_trial_and_the_others_go_on(url):
    def objective(trial):
        return math.nan if trial.number == 1 else square(trial)

    search = optimize(objective, lambda: RDBStorage(url), trials=4, workers=2)
    assert search.states == {"COMPLETE": 3, "FAIL": 1}
    assert [one.trial for one in search.attempts if one.outcome == "failed"] == [1]


def test_an_objective_that_raises_names_the_trial_and_its_parameters(url):
    def objective(trial):
        return 1 / (0 * trial.suggest_int("width", 8, 8))

    with pytest.raises(TaskFailed, match=r"trial \d \(width=8\) raised Zero") as raised:
        optimize(objective, lambda: RDBStorage(url), trials=4, workers=2)
    assert isinstance(raised.value.cause, ZeroDivisionError)
    assert "test_optuna.py, line" in str(raised.value)


def test_a_locked_storage_is_named_as_such(url):
    impatient = {"connect_args": {"timeout": 0.1}}

    def objective(trial):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as holder:
            holder.execute("begin exclusive")
            trial.report(1.0, 1)

    def storage():
        return RDBStorage(url, engine_kwargs=impatient)

    with pytest.raises(
        EngineFailed, match=r"(?s)worker 0 cannot use the storage.*lock"
    ):
        optimize(objective, storage, trials=1, workers=1)


def test_a_storage_that_is_not_there_is_named_before_a_worker_starts():
    with pytest.raises(EngineFailed, match="this process cannot use the storage"):
        optimize(square, lambda: RDBStorage("sqlite:////not/there.db"), trials=1)


def test_workers_that_all_die_end_the_search(url):
    with pytest.raises(TaskFailed, match=r"5 workers in a row ended .* exit status 3"):
        optimize(lambda trial: os._exit(3), with_heartbeats(url), trials=9, workers=2)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"trials": 0}, "trials"), ({"workers": 1.5}, "workers"), ({}, "storage")],
)
def test_bad_input_is_named(wrong, named):
    with pytest.raises(InvalidArgument, match=f"^{named} is"):
        optimize(square, storage=len if wrong else None, **wrong)


def test_a_worker_whose_trial_was_failed_while_it_paused_goes_on(url):
    def objective(trial):
        trial.suggest_float("x", 0, 1)
        failed = optuna.trial.TrialState.FAIL
        RDBStorage(url).set_trial_state_values(trial._trial_id, failed)
        return 3.0

    search = optimize(objective, lambda: RDBStorage(url), trials=2, workers=1)
    assert [one.outcome for one in search.attempts] == ["late", "late"]
    assert search.states == {"FAIL": 2}


def test_a_trial_that_ended_elsewhere_is_late_and_keeps_its_first_value(url):
    def objective(trial):
        square(trial)
        complete = optuna.trial.TrialState.COMPLETE
        RDBStorage(url).set_trial_state_values(trial._trial_id, complete, [7.0])
        return 1.0

    search = optimize(objective, lambda: RDBStorage(url), trials=2, workers=1)
    assert [one.outcome for one in search.attempts] == ["late", "late"]
    assert [trial.value for trial in search.trials] == [7.0, 7.0]
