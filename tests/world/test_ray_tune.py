"""Ray Tune on a cluster of this machine: trials, gangs, and no process left."""

import psutil
import pytest

from distlab import InvalidArgument, TaskFailed
from distlab.engines import ray_tune

if not ray_tune.is_installed():
    pytest.skip("Ray is not installed", allow_module_level=True)

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler

pytestmark = pytest.mark.timeout(600)  # its processes import for long
SPACE = {"x": tune.grid_search([0.1, 0.9])}


@pytest.fixture(scope="module")
def cluster():
    """Run the cluster that the tests share; afterwards look for what it has left."""
    mine = psutil.Process()
    before = set(mine.children(recursive=True))
    with ray_tune.cluster(1):
        yield
        children = set(mine.children(recursive=True)) - before
        server = "distlab.processes"  # stays; Ray is on its path
        started = [c for c in children if server not in " ".join(c.cmdline())]
        assert started
    _, alive = psutil.wait_procs(started, timeout=30)
    assert not alive and not ray.is_initialized()


def falls(config):
    for step in range(1, 10):
        tune.report({"loss": config["x"] + 1 / step})


def test_asha_stops_the_worse_trial_and_the_record_has_all_steps(cluster):
    asha = ASHAScheduler(max_t=9, grace_period=1, reduction_factor=2)
    search = ray_tune.run(falls, SPACE, trials=1, scheduler=asha, per_trial=1)
    steps = {search.configs[one.trial]["x"]: one.stop for one in search.attempts}
    assert steps == {0.1: 9, 0.9: 1} and search.steps_trained == 10
    assert search.best == {"x": 0.1}
    assert all(one.begun_s < one.end_s for one in search.attempts)


def test_a_trial_that_raises_is_named_by_its_configuration(cluster):
    def raises(config):
        return 1 / 0

    with pytest.raises(TaskFailed, match=r"'x': 0\.\d.* raised ZeroDivisionError"):
        ray_tune.run(raises, SPACE, trials=1)


@pytest.mark.nightly
def test_the_members_of_a_gang_run_at_once(cluster):
    def pair(config):
        import ray

        member = ray.remote(num_cpus=0.5)(lambda: config["x"])
        tune.report({"loss": ray.get(member.remote(), timeout=60)})

    search = ray_tune.run(pair, {"x": 0.5}, trials=2, per_trial=[0.5, 0.5])
    first, second = search.attempts
    assert first.loss == second.loss == 0.5 and first.end_s <= second.begun_s


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"per_trial": [1, 1]}, "needs 2 CPUs, and the cluster has 1"),
        ({"per_trial": []}, "per_trial is"),
        ({"per_trial": -1}, "per_trial is"),
        ({"trials": 0}, "trials is"),
    ],
)
def test_bad_input_is_named(cluster, wrong, named):
    with pytest.raises(InvalidArgument, match=named):
        ray_tune.run(falls, SPACE, **wrong)
