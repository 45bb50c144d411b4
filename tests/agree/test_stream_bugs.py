"""A job without one of its rules: a run is found that breaks a property."""

import pytest
from stream_jobs import WRONG, wrong_job

from distlab.agree.stream import BUGS, fuzz_job, hunt, stream_monitors, word_count_job
from distlab.agree.stream.bugs import RIGHT
from distlab.errors import InvalidArgument
from distlab.network import Delivery, search

SEEDS = {"idle partition": 5, "flush before snapshot": 5}  # with which it is found soon


@pytest.mark.parametrize("name", BUGS)
def test_each_bug_is_found_and_its_run_shrunk(name):
    found = hunt(name, SEEDS.get(name, 0))
    assert BUGS[name].words in found.why and len(found.schedule) <= 50
    assert found.replay().trace.events


@pytest.mark.parametrize("name", BUGS)
def test_with_the_rule_in_its_place_nothing_is_found(name):
    assert not hunt(name, 1, kind=RIGHT[BUGS[name].role], runs=8)


@pytest.mark.nightly
@pytest.mark.parametrize("name", BUGS)
@pytest.mark.parametrize("seed", range(1, 5))
def test_with_other_seeds_it_is_found_as_well(name, seed):
    assert hunt(name, seed)


QUICK = {"AcksUnflushed"}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(k, marks=[pytest.mark.nightly] * (k.__name__ not in QUICK))
        for k in WRONG
    ],
)
def test_other_wrong_implementations_are_found(kind):
    job, faults = wrong_job(kind)
    found = fuzz_job(job, 1, **faults)
    assert found and "exact" in found.why


@pytest.mark.nightly
def test_a_snapshot_that_is_acknowledged_too_early_is_found_by_a_search():
    from stream_jobs import AcksUnsynced

    how = {"partitions": 1, "workers": 1, "input": ((["a"],),)}
    for kind, breaks in ((AcksUnsynced, True), (RIGHT["operator"], False)):
        job = word_count_job(**how, operator=kind)
        watch = {"monitors": stream_monitors(job), "power_losses": 1, "timers": 1}
        found = search(job, job.nodes, **watch, steps=60, within_s=60.0)
        assert bool(found) == breaks
        assert not breaks or "no snapshot of it" in found.why


ALL = {"crashes": 3, "power_losses": 2, "duplicates": 0.2, "loss": 0.2, "splits": 1}
ALL |= {"pauses": 2, "cuts": 1, "clock_jumps": 2}
COUNT = {"input": ((["a b"], ["a"]), (["b"], ["c"])), "workers": 1, "every_s": 0.006}
TIMED = {"input": (([[1, "a"], [25, "a b"]],), ([[2, "b"]],)), "workers": 1}
TIMED |= {"window_s": 10, "idle_s": 0.02, "every_s": 0.01}
JOBS = {
    "transactional": COUNT,
    "idempotent": COUNT | {"sink": "idempotent"},
    "plain": COUNT | {"sink": "plain"},
    "two workers": COUNT | {"workers": 2, "every_s": 0.002},
    "at least once": COUNT | {"guarantee": "at least once"},
    "at most once": COUNT | {"guarantee": "at most once"},
    "windows": TIMED,
}


def stands(name, runs, **how):
    nothing = fuzz_job(word_count_job(**JOBS[name]), 7, runs=runs, **ALL | how)
    assert not nothing and nothing.explored.runs == runs


@pytest.mark.parametrize("name", JOBS)
def test_each_kind_of_job_stands_random_runs(name):
    stands(name, 10)


@pytest.mark.nightly
@pytest.mark.parametrize("name", JOBS)
def test_each_kind_of_job_stands_hundreds_of_random_runs(name):
    stands(name, 400, within_s=900.0)
    stands(name, 400, within_s=900.0, delivery=Delivery((0.0001, 0.02)))


def test_a_bug_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(InvalidArgument, match="unaligned barrier, offset before"):
        hunt("off by one")
