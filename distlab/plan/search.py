"""A search over all layouts of a cluster: the best, the runner-up, the rejected.

found = search(llama, GpuCluster("H100 80GB", 4096), run)
found.best, found.runner_up, found.rejected
"""

from collections import Counter
from dataclasses import dataclass
from itertools import product

from distlab.cost import TransformerShape
from distlab.errors import InvalidArgument
from distlab.plan.cluster import GpuCluster
from distlab.plan.layout import Layout, TrainingRun
from distlab.plan.plan import Plan, plan

__all__ = ["LayoutSearch", "search"]


@dataclass(frozen=True)
class LayoutSearch:
    """The result of a search.

    best: None if no layout fits. runner_up: the next of another mesh.
    rejected: reason -> number of layouts. nearest_miss: the layout that needs least
    memory, where none fits.
    """

    best: Plan | None
    runner_up: Plan | None
    rejected: Counter
    nearest_miss: Plan | None = None


def search(
    model: TransformerShape,
    cluster: GpuCluster,
    run: TrainingRun,
    *,
    by: str = "step_s",
    **fixed,
) -> LayoutSearch:
    """Return the layout with the smallest number `by`, among those that fit.

    fixed: fields of `Layout` that are given, such as tp=8.

    Raises: InvalidArgument.
    """
    found, rejected = [], Counter()
    nearest = None
    for layout in layouts(cluster.gpus, **fixed):
        try:
            one = plan(model, cluster, layout, run)
        except InvalidArgument:
            rejected["does not divide"] += 1
            continue
        if one.fits:
            found.append(one)
        else:
            rejected["memory"] += 1
            if nearest is None or one.memory_bytes < nearest.memory_bytes:
                nearest = one
    found.sort(key=lambda one: getattr(one, by))
    best, second = (*found[:2], None, None)[:2]
    return LayoutSearch(best, second, rejected, None if found else nearest)


def layouts(gpus: int, **fixed):
    """Yield all layouts of `gpus` GPUs."""
    sizes = [2**k for k in range(gpus.bit_length())]
    choices = {
        "tp": [n for n in sizes if n <= 8],
        "pp": [n for n in sizes if n <= 16],
        "zero": (1, 3),
        "microbatch": (1, 2, 4),
        "recompute": ("none", "selective", "full"),
    } | {name: (value,) for name, value in fixed.items()}
    for chosen in product(*choices.values()):
        sized = dict(zip(choices, chosen, strict=True))
        dp, left = divmod(gpus, sized["tp"] * sized["pp"] * sized.get("cp", 1))
        if not left:
            yield Layout(**{"dp": dp} | sized)
