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
from distlab.grading.all_gather import AllGatherInRounds
from distlab.grading.all_reduce import (
    AllReduceSums,
    AllReduceTraffic,
    ReduceScatterSums,
)
from distlab.grading.best_world_size import BestWorldSize
from distlab.grading.broadcast import BroadcastInRounds
from distlab.grading.gradients import (
    AccumulatedGradients,
    AveragedGradients,
    OverlappedGradients,
)
from distlab.grading.inverted_index import InvertedIndex
from distlab.grading.k_means import ClustersFound
from distlab.grading.mean_lengths import MeanLengths
from distlab.grading.reduced import JoinedInPlace, ReducedByKey
from distlab.grading.sampled_lines import SampledLines
from distlab.grading.small_join import MapSideJoin
from distlab.grading.turns import PreparesAndSpeaks, SpeaksInOrder, SpeaksInRounds
from distlab.grading.verdict import Verdict, grade, grade_each
from distlab.grading.work import BalancedWork, SharedWork
from distlab.grading.zero_layers import FreedLayers, ShardedLayers
from distlab.grading.zero_optimizer import ShardedOptimizer
from distlab.grading.zero_watch import memory_over_a_pass

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
    "grade",
    "grade_each",
    "lanes",
    "memory_over_a_pass",
]
