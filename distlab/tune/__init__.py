"""Tuning: rules of successive halving, and tuning runs on a virtual clock.

    scheduler ── next_job() ──▶ worker: trains a trial up to its rung
        ▲ on_report, on_saved, on_lost ──┘

Pure Python: neither numpy nor torch is loaded.
"""

from distlab.tune.halving import (
    Asha,
    SynchronousHalving,
    TrialScheduler,
    promote,
    random_search,
    rung_steps,
)
from distlab.tune.learning_curves import CurveShape, draw_curves, loss_after
from distlab.tune.search_parts import (
    grid,
    halving_steps,
    log_uniform,
    near_duplicates,
    retry,
)
from distlab.tune.simulated_tuning import TuningCluster, simulate_tuning, straggling
from distlab.tune.tuning_run import TuningAttempt, TuningJob, TuningRun

__all__ = [
    "Asha",
    "CurveShape",
    "SynchronousHalving",
    "TrialScheduler",
    "TuningAttempt",
    "TuningCluster",
    "TuningJob",
    "TuningRun",
    "draw_curves",
    "grid",
    "halving_steps",
    "log_uniform",
    "loss_after",
    "near_duplicates",
    "promote",
    "random_search",
    "retry",
    "rung_steps",
    "simulate_tuning",
    "straggling",
]
