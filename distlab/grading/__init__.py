"""Checks for exercises: they judge behaviour, say what was seen, and give points.

    grade(3, [AllReduceSums(my_ring, 4, 10)])  ──▶  prints verdicts; 3.0 or 0.0

A verdict is pass, fail or inconclusive, and only a pass counts. Everything is printed
to the cell; the value is a plain float between 0 and the points, which is what
nbgrader reads.
"""

from distlab.grading.agreement.always_answers import AlwaysAnswers
from distlab.grading.agreement.classified import Classified
from distlab.grading.agreement.eight import EIGHT_HISTORIES
from distlab.grading.agreement.healed_cart import HealedCart
from distlab.grading.agreement.lanes import lanes
from distlab.grading.agreement.linearizable import (
    Linearizable,
    LinearizableWithUnknown,
)
from distlab.grading.agreement.never_wrong import NeverWrong
from distlab.grading.gradients.steps import (
    AccumulatedGradients,
    AveragedGradients,
    OverlappedGradients,
)
from distlab.grading.hinting import hint
from distlab.grading.jobs.inverted_index import InvertedIndex
from distlab.grading.jobs.mean_lengths import MeanLengths
from distlab.grading.jobs.sampled_lines import SampledLines
from distlab.grading.rdds.k_means import ClustersFound
from distlab.grading.rdds.reduced import JoinedInPlace, ReducedByKey
from distlab.grading.rdds.small_join import MapSideJoin
from distlab.grading.rings.all_gather import AllGatherInRounds
from distlab.grading.rings.all_reduce import (
    AllReduceSums,
    AllReduceTraffic,
    ReduceScatterSums,
)
from distlab.grading.rings.broadcast import BroadcastInRounds
from distlab.grading.turns.turns import PreparesAndSpeaks, SpeaksInOrder, SpeaksInRounds
from distlab.grading.verdict import Verdict, grade, grade_each
from distlab.grading.work.best_world_size import BestWorldSize
from distlab.grading.work.shared import BalancedWork, SharedWork
from distlab.grading.zero.layers import FreedLayers, ShardedLayers
from distlab.grading.zero.optimizer import ShardedOptimizer
from distlab.grading.zero.watch import memory_over_a_pass
from distlab.grading.zero.weighed import WeighedLayers

__all__ = [
    "EIGHT_HISTORIES",
    "AccumulatedGradients",
    "AllGatherInRounds",
    "AllReduceSums",
    "AllReduceTraffic",
    "AlwaysAnswers",
    "AveragedGradients",
    "BalancedWork",
    "BestWorldSize",
    "BroadcastInRounds",
    "Classified",
    "ClustersFound",
    "FreedLayers",
    "HealedCart",
    "InvertedIndex",
    "JoinedInPlace",
    "Linearizable",
    "LinearizableWithUnknown",
    "MapSideJoin",
    "MeanLengths",
    "NeverWrong",
    "OverlappedGradients",
    "PreparesAndSpeaks",
    "ReduceScatterSums",
    "ReducedByKey",
    "SampledLines",
    "ShardedLayers",
    "ShardedOptimizer",
    "SharedWork",
    "SpeaksInOrder",
    "SpeaksInRounds",
    "Verdict",
    "WeighedLayers",
    "grade",
    "grade_each",
    "hint",
    "lanes",
    "memory_over_a_pass",
]
