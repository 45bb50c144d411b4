"""Plans of training clusters: memory, time, traffic, failures, days and cost.

llama = TransformerShape(126, 16384, 128, 128_256, key_value_heads=8,
                         mlp_width=53_248, gated=True, tied=False)
cluster = GpuCluster("H100 80GB", 16_384)
run = TrainingRun(batch=2048, length=8192, tokens=15.6e12)
plan(llama, cluster, Layout(tp=8, pp=16, dp=128), run)
search(llama, cluster, run).best
"""

from distlab.plan.cluster import GPUS, Gpu, GpuCluster
from distlab.plan.formulas import FORMULAS
from distlab.plan.gang import (
    ClusterJob,
    JobSchedule,
    place_all_or_none,
    place_one,
    schedule,
)
from distlab.plan.job_files import JobFiles
from distlab.plan.layout import PRECISIONS, Layout, Precision, TrainingRun
from distlab.plan.plan import Plan, plan
from distlab.plan.published import published_models, published_rows
from distlab.plan.search import LayoutSearch, pareto, search

__all__ = [
    "FORMULAS",
    "GPUS",
    "PRECISIONS",
    "ClusterJob",
    "Gpu",
    "GpuCluster",
    "JobFiles",
    "JobSchedule",
    "Layout",
    "LayoutSearch",
    "Plan",
    "Precision",
    "TrainingRun",
    "pareto",
    "place_all_or_none",
    "place_one",
    "plan",
    "published_models",
    "published_rows",
    "schedule",
    "search",
]
