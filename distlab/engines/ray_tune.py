"""Ray Tune: trials as actors of a Ray cluster, with the resources that each asks for.

    def trainable(config):
        for loss in train(**config):
            tune.report({"loss": loss})

    with ray_tune.cluster(2):
        search = ray_tune.run(trainable, {"lr": tune.loguniform(1e-4, 1)}, trials=9,
                              scheduler=ASHAScheduler(max_t=27, reduction_factor=3))

A trial gets its resources before it starts: a share of a CPU, several, or a **gang**: a
placement group of several bundles, all of them or none. Trials run on the cluster that
this process is connected to, so also in a `with ray_cluster(nodes=3):`.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from unittest.mock import patch

from distlab.errors import EngineMissing, InvalidArgument, TaskFailed
from distlab.tune import TuningAttempt, TuningRun

__all__ = ["RayTuneSearch", "cluster", "is_installed", "run"]

_PACKAGES = {"ray": "ray[tune]", "pyarrow": "ray[tune]"}
_QUIET = (
    os.environ,
    {
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # no files
        "TUNE_DISABLE_SIGINT_HANDLER": "1",  # Ctrl-C is the cell's own
    },
)


def is_installed() -> bool:
    """Return True if Ray is installed, with what its Tune needs."""
    return not _missing()


def _missing():
    return sorted({name for module, name in _PACKAGES.items() if not find_spec(module)})


def _require():
    if missing := _missing():
        raise EngineMissing.of("engines.ray_tune", missing, "ray")


@dataclass(frozen=True)
class RayTuneSearch(TuningRun):
    """The record of a search, and the configuration of each trial."""

    configs: Mapping[int, dict] = field(default_factory=dict)

    @property
    def best(self) -> dict:
        """The configuration of the smallest loss at the end of a trial."""
        return self.configs[self.improvements()[-1].trial]


def run(
    trainable: Callable,
    space: Mapping,
    *,
    trials: int = 8,
    scheduler: object = None,
    per_trial: float | Sequence[float] = 1,
) -> RayTuneSearch:
    """Run trials of `trainable(config)`, which reports "loss", on a Ray cluster.

    The cluster is the one that this process is connected to, as in a `with
    ray_tune.cluster(2):`.
    space: of configurations, as Ray Tune takes it. scheduler: Ray Tune's, for "loss",
    by default none.
    per_trial: the CPUs of a trial, or of each member of its gang: 0.5, or [1, 1].

    Raises: EngineMissing; InvalidArgument, also for a trial that the cluster has no
    room for; TaskFailed naming the trial that raised.
    """
    _require()
    import ray

    shares = list(per_trial) if isinstance(per_trial, list | tuple) else [per_trial]
    if not shares or not all(isinstance(s, int | float) and s > 0 for s in shares):
        raise InvalidArgument(
            "per_trial is a positive number of CPUs, or a list of some, and got "
            f"{per_trial!r}."
        )
    if not isinstance(trials, int) or trials < 1:
        raise InvalidArgument(f"trials is a number from 1, and got {trials!r}.")
    if not ray.is_initialized():
        raise InvalidArgument(
            "there is no Ray cluster. Run it in a block: with ray_tune.cluster(2): ..."
        )
    if sum(shares) > (cpus := ray.cluster_resources().get("CPU", 0)):
        raise InvalidArgument(
            f"a trial needs {sum(shares)} CPUs, and the cluster has {cpus:g}: it "
            "would wait for ever. Take a larger cluster, or less per_trial."
        )
    with tempfile.TemporaryDirectory(prefix="ray-") as folder, patch.dict(*_QUIET):
        return _fit(trainable, space, trials, scheduler, shares, folder)


@contextmanager
def cluster(cpus: int) -> Iterator[None]:
    """Run a Ray cluster of one node for a `with` block; nothing is left of it.

    cpus: they are counted, not measured.

    Raises: EngineMissing; EngineFailed if it does not start.
    """
    _require()
    import ray

    from distlab.engines.ray.local import LocalCluster, attach

    local = LocalCluster(1, cpus)
    try:
        attach(local.address)
        yield
    finally:
        ray.shutdown()
        local.close()


def _fit(trainable, space, trials, scheduler, shares, folder):
    from ray import tune

    noted = _callback()
    placed = tune.PlacementGroupFactory([{"CPU": share} for share in shares])
    tuner = tune.Tuner(
        tune.with_resources(trainable, placed),
        param_space=dict(space),
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=trials,
            scheduler=scheduler,
            reuse_actors=len(shares) == 1,
        ),
        run_config=tune.RunConfig(
            storage_path=folder,
            verbose=0,
            callbacks=[noted],
            failure_config=tune.FailureConfig(fail_fast=True),
        ),
    )
    for result in tuner.fit():
        if result.error is not None:
            last = str(result.error).strip().splitlines()[-1]
            raise TaskFailed(
                f"the trial with {result.config} raised {last}",
                task=str(result.config),
                worker=0,
                cause=result.error,
                trace=None,
            )
    return RayTuneSearch(noted.attempts, noted.lanes, configs=noted.configs)


def _callback():
    """Return a Tune callback that notes what each trial did, and when."""
    from ray import tune

    class TrialNotes(tune.Callback):
        def __init__(self):
            self.began, self.numbers = time.monotonic(), {}
            self.open, self.attempts, self.configs, self.lanes = {}, [], {}, 0

        def on_trial_start(self, iteration, trials, trial, **_):
            number = self.numbers.setdefault(trial.trial_id, len(self.numbers))
            taken = {lane for lane, _ in self.open.values()}
            lane = next(n for n in range(len(taken) + 1) if n not in taken)
            self.lanes = max(self.lanes, lane + 1)
            self.configs[number] = trial.config
            self.open[number] = lane, time.monotonic() - self.began

        def on_trial_complete(self, iteration, trials, trial, **_):
            number, last = self.numbers[trial.trial_id], trial.last_result
            lane, start = self.open.pop(number)
            end, steps = time.monotonic() - self.began, last["training_iteration"]
            found = lane, number, 0, 0, steps, start, end, last["loss"], "done"
            self.attempts.append(TuningAttempt(*found))

    return TrialNotes()
