"""From what a k-means did to the first nudge, the most specific observation first."""

import math

from distlab.grading.rdds.point_shapes import (
    Centres,
    lloyd,
    lloyd_by_halves,
    lloyd_by_parts,
)

__all__ = ["HINTS", "hint_for_centres", "hint_for_parsing"]

HINTS = {
    "no list": "Return the list of the new centres, in the order of the ones given.",
    "no point": "A centre is a tuple of numbers, as many as a point has.",
    "empty": "To a centre that is no point's nearest nothing belongs, so that there is "
    "no mean of its points. Such a centre stays where it is.",
    "unwritten": "Nothing of your own is written yet. Which RDD is the same in all "
    "steps, and what is new in each?",
    "changed": "The list belongs to who called you, and may be needed again. Put the "
    "new centres into a list of your own.",
    "kept twice": "Once the points are kept, who still reads the other one? It takes "
    "memory with each worker, and is of no use.",
    "many jobs": "Each of these jobs reads all points. In one job each point can be "
    "counted for the cluster it belongs to, whichever that is.",
    "one job": "Between two steps the centres have to be in the driver: a step is a "
    "job over all partitions, and the next one begins with what came of it.",
    "driver": "The points stay with the workers. What has to come to the driver in "
    "each step is a sum and a count for each cluster.",
    "shuffle": "Every point crosses the network. What can a partition do with its own "
    "points of a cluster before they are sent?",
    "order": "These are the right centres in another order: each new one has the place "
    "of the one that it replaces.",
    "killed": "It is right as long as no worker dies. A lost partition is computed "
    "again from its recipe, which has to give the same again.",
    "again": "Only what was kept on the lost worker has to be computed again.",
    "forgets": "A local checkpoint forgets how the points were made, and they were "
    "lost. cache() keeps them and remembers.",
    "own parse": "Make the points with the function parse that is given.",
    "nested": "Only the driver can use an RDD or the Context. The centres are a list, "
    "and travel with the function that uses them.",
}


_FORGOTTEN = (
    "What was kept has been forgotten in between, and had to be computed again. "
    "When is the last time that it is needed?"
)


def hint_for_centres(parts: list[Centres], case: dict, yours: Centres) -> str:
    """Return a nudge for centres that are wrong, by which mistake would give them."""
    centres, steps = case["centres"], case["steps"]
    if any(math.isnan(x) for centre in yours for x in centre):
        return HINTS["empty"]
    right = lloyd(parts, centres, steps)
    if _alike(sorted(yours), sorted(right)):
        return HINTS["order"]
    if _alike(yours, centres):
        return "The centres have not moved. What is returned, the old ones or the new?"
    if steps > 1 and _alike(yours, lloyd(parts, centres, 1)):
        return (
            "These are the centres after one step. With which ones does the next begin?"
        )
    if any(_alike(yours, lloyd(parts, centres, steps + more)) for more in (-1, 1)):
        return "These are the centres after another number of steps."
    for way in (lloyd_by_parts, lloyd_by_halves):
        if _alike(yours, way(parts, centres, steps)):
            return (
                "A mean of means is another number, unless all of them have equally "
                "many points. Which two things can be added up, in any order?"
            )
    if _rounded(yours, right):
        return (
            "These numbers are rounded. A centre is the mean as it is, and the next "
            "step begins with it; round when you print."
        )
    kept = [n for n, c in enumerate(centres) if _alike([c], [right[n]])]
    if any(not _alike([yours[n]], [right[n]]) for n in kept):
        return HINTS["empty"]
    return (
        "To the sum of a cluster's points belongs how many they are; and the nearest "
        "centre is the one with the smallest sum of squared differences."
    )


def hint_for_parsing(seen: dict, lines: int) -> str:
    """Return a nudge for lines that were not parsed once each.

    seen: what the jobs did. lines: how many there are.
    """
    kept = {row[0] for job in seen["jobs"] for row in job["kept"]}
    first = seen["jobs"][0]["kept"] if seen["jobs"] else []
    if seen["parsed"] == 0:
        return HINTS["own parse"]
    if any(job["action"] == "checkpoint" for job in seen["jobs"]):
        return (
            "A checkpoint is written to files by a job of its own, which begins with "
            "the lines again. What do workers keep while they compute it anyway?"
        )
    if not kept:
        return (
            "Nothing is kept, so each job follows the recipe from the beginning, and "
            "parses every line again."
        )
    once = all(row[2] == 0 for job in seen["jobs"][1:] for row in job["kept"])
    if first and any(not job["kept"] for job in seen["jobs"][1:]):
        return _FORGOTTEN
    if first and once and len(kept) == 1:
        return (
            "What is kept are not points yet: it is parsed again in each step. Which "
            "RDD is dear to make and the same in all steps?"
        )
    if not first:
        return (
            "The first job had nothing kept yet: an RDD is kept by the first action "
            "after cache(), not by those before."
        )
    if len(kept) > 1:
        return (
            "Another RDD is kept in each step, which was made in that step and is of "
            "no use in the next. Which one is the same in all steps?"
        )
    return _FORGOTTEN


def _rounded(yours, right):
    """Whether these are the right centres, about, with a few digits each."""
    pairs = [
        both
        for one, other in zip(yours, right, strict=True)
        for both in zip(one, other, strict=True)
    ]
    return any(
        all(a == round(a, n) and abs(a - b) < 10 ** (1 - n) for a, b in pairs)
        for n in range(1, 9)
    )


def _alike(some, others):
    if len(some) != len(others):
        return False
    points = zip(some, others, strict=True)
    pairs = [pair for one, other in points for pair in zip(one, other, strict=True)]
    return all(abs(a - b) <= 1e-9 * max(1.0, abs(b)) for a, b in pairs)
