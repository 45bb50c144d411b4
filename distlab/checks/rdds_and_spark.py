"""Exercise 07: reduceByKey, a join without a shuffle, and k-means with a cache."""

from functools import reduce
from itertools import chain
from random import SystemRandom

import cloudpickle
import numpy as np

from distlab.checks.kit import (
    PUBLISHED,
    Contract,
    Hint,
    Inconclusive,
    Wrong,
    called,
    check,
    on_workers,
)
from distlab.checks.kit.tables import by_key
from distlab.dataflow import RDD
from distlab.dataflow.rdd import Context

NARROW = {"map", "flatMap", "filter", "mapPartitions", "mapPartitionsWithIndex"}
NARROW |= {"mapValues", "flatMapValues", "keyBy", "keys", "values", "glom"}
WORDS, ABC = np.__doc__.split(), "abcdefgh"
CONTRACT = Contract(
    values={
        "plain": "reduce_by_key gives pairs (key, value)",
        "counted": "reduce_by_key gives pairs (key, (value, count)), with the number "
        "of pairs that the value is made of",
    },
    unmatched={
        "left out": "join_small leaves out a pair of large whose key small has not",
        "None": "join_small gives a pair of large whose key small has not with None",
    },
    sides={
        "large first": "join_small gives (key, (value of large, value of small))",
        "small first": "join_small gives (key, (value of small, value of large))",
    },
    moves={
        "whole": "in a step a centre moves to the mean of its points",
        "half": "in a step a centre moves half of the way to the mean of its points",
    },
)
INTS, MANY, SIZES = range(1, 1000), range(10**7), [None, *range(9)]
KINDS = [0, 1, -1, 7, 2.5, None, "", "a", "0", (), (1, "b"), ("a", None)]
RULES = {
    "the total": lambda a, b: a + b,
    "the smaller": min,
    "max, or None": lambda a, b: None if None in (a, b) else max(a, b),
}
PAIRS = {  # name -> pairs in each partition, keys, values, rule, result's partitions
    "words of a manual": ([900, 1200, 600], WORDS, [1], "the total", 2),
    "two of five partitions are empty": ([30, 0, 5, 0, 40], ABC, INTS, "the total", 3),
    "keys of many kinds": ([50, 20, 30, 3], KINDS, [0, *range(40)], "the smaller", 3),
    "sizes, some of which are not known": ([30, 30, 9], ABC, SIZES, "max, or None", 2),
    "one key": ([400, 1, 600], ["self"], range(10**15), "the total", 3),
    "no pair at all": ([0, 0], ABC, INTS, "the total", 2),
}
SIDES = {  # name -> pairs in each partition, keys; rows of the table, keys; values
    "keys with several values": ([40, 0, 30], range(40), 30, range(30, 50), INTS),
    "a table of 600 rows": ([90, 80, 10, 60], range(700), 600, range(500), INTS),
    "values that are zero, empty or None": ([20, 20], range(14), 20, range(9), KINDS),
    "a table of 60,000 rows": ([60_000, 40], MANY, 60_000, MANY, INTS),
    "an empty table": ([9, 9], range(40), 0, [1], INTS),
}
POINTS = {  # name -> dimensions, clusters, steps, points in each partition
    "three clusters": (2, 3, 4, [450, 350]),
    "a centre far from all points": (2, 4, 3, [200, 0, 250, 150]),
    "a worker killed between two steps": (2, 3, 4, [200, 150, 250, 100]),
    "no step": (2, 3, 0, [20, 20]),
    "a centre far off and a worker killed": (3, 4, 6, [200, 100, 150, 300, 120, 80]),
}


@check("{}")
def reduce_by_key(function, name, contract=PUBLISHED):
    """Check that each key has one value, for one record per partition and key sent."""
    sizes, keys, values, rule, partitions = PAIRS[name]
    parts = _drawn(sizes, keys, values)
    seen = _recipe({*NARROW, "partitionBy"}, function, parts, rule, partitions)
    every = _grouped(chain(*parts)).items()
    made = [(repr(key), reduce(RULES[rule], own), len(own)) for key, own in every]
    counted = contract.get("values") == "counted"
    right = {key: [repr((one, count) if counted else one)] for key, one, count in made}
    yours = _grouped(chain(*seen["parts"]))
    if table := by_key(("key", "expected", "yours"), right, yours):
        doubled = any(len(own) > 1 for own in yours.values())
        falsy = not all(value for _, value in chain(*parts))
        raise Wrong(f"made one by: {rule}\n{table}", doubled=doubled, falsy=falsy)
    sizes, keys = [*map(len, seen["parts"])], [len(_grouped(part)) for part in parts]
    if len(sizes) != partitions or max(sizes) == sum(sizes) > 8:
        found = f"The result is right, in partitions with {sizes} keys; {partitions} "
        raise Wrong(f"{found}partitions were asked for.", misplaced=True)
    if seen["stages"] != 2 or any(map(int.__gt__, seen["sent"], keys)):
        found = f"The result is right. It took {seen['stages']} stages; 2 are enough.\n"
        found += f"partition by partition\npairs   {[*map(len, parts)]}\n"
        raise Wrong(f"{found}keys    {keys}\nsent    {seen['sent']}", sent=True)
    return seen


@check("{}")
def joined_in_place(function, name, contract=PUBLISHED):
    """Check that a join with an equally partitioned RDD needs no shuffle."""
    if more := reduce_by_key(function, name, contract)["join"] - 3:
        raise Wrong(f"The join has {more} more shuffle; it needs none.", forgotten=True)


@check("{}")
def join_small(function, name, contract=PUBLISHED):
    """Check the pairs of `join` without a shuffle; a worker fetches the table once."""
    sizes, keys, rows, some, values = SIDES[name]
    parts, (small,) = _drawn(sizes, keys, values), _drawn([rows], some, values)
    seen, table = _recipe(NARROW, function, parts, None, 0, small), _grouped(small)
    other = [None] if contract.get("unmatched") == "None" else []
    right = [(k, (v, row)) for k, v in chain(*parts) for row in table.get(k, other)]
    if contract.get("sides") == "small first":
        right = [(key, both[::-1]) for key, both in right]
    right = _grouped(sorted((repr(k), repr(both)) for k, both in right))
    yours = _grouped(sorted(chain(*seen["parts"])))
    if found := by_key(("key", "expected", "yours"), right, yours):
        raise Wrong(found, pairs=True)
    read, fetched, size = seen["read"], seen["fetched"], len(cloudpickle.dumps(small))
    if fetched > 2 or (right and not fetched) or (rows > 99 and read > size / 2):
        found = f"The pairs are right. The table takes {size:,} bytes; each task reads "
        found += f"{read:,} at its start.\n2 workers fetched {fetched} broadcasts."
        raise Wrong(found, travels=True)


@check("{}")
def k_means(function, name, contract=PUBLISHED):
    """Check the centres; each line is parsed once, and only lost partitions again."""
    (wide, clusters, steps, sizes), draw = POINTS[name], np.random.default_rng()
    middles, centres = draw.uniform(-9, 9, (2, clusters, wide))
    centres[1] = 1000.0 if "far" in name else centres[1]
    parts = [draw.normal(middles[draw.integers(clusters, size=n)], 3) for n in sizes]
    lines = [[" ".join(map(repr, p)) for p in part.tolist()] for part in parts]
    given, kill = [*map(tuple, centres.tolist())], 2 * ("killed" in name)
    seen = on_workers(_cluster, function, lines, given, steps, kill)
    share = 0.5 if contract.get("moves") == "half" else 1
    yours, right = seen["centres"], _lloyd(np.concatenate(parts), centres, steps, share)
    if seen["changed"]:
        raise Wrong("Your function changed the list of centres that it was given.")
    if np.shape(yours) != (clusters, wide):
        raise Wrong(f"Not {clusters} centres: shape {np.shape(yours)}.", gone=True)
    far = ~np.isclose(right, yours, 1e-9, 1e-9).all(axis=1)
    if far.any():
        first = far.argmax()
        sides = [[*right[:first], *side[first:]] for side in (right, yours)]
        sides = [{n: [f"{x:.9g}" for x in c] for n, c in enumerate(s)} for s in sides]
        stays = np.array_equal(right[first], centres[first]) or np.isnan(yours).any()
        raise Wrong(by_key(("centre", "expected", "yours"), *sides), gone=stays)
    if kill and not seen["lost"]:
        raise Inconclusive("No worker was killed that had kept a partition.")
    if steps:
        _cheap_steps(seen, sizes, clusters * len(sizes), steps)


def _cheap_steps(seen, sizes, records, steps):
    jobs, kept, read, most = seen["jobs"], set(), 0, 1000 + 400 * records
    table = "\njob, bytes to the driver, records shuffled, kept: computed + from cache"
    for action, got, sent, held in jobs:
        kept |= {label for label, *_ in held}
        read += any(computed + reused for _, computed, reused in held)
        words = [f"{label} {computed}+{reused}" for label, computed, reused in held]
        table += f"\n{action:<14}{got:>7,} {sent:>6,}  {', '.join(words) or 'nothing'}"
    enough = sum(sizes) + sum(sizes[partition] for partition in seen["lost"])
    if any(got > most or sent > records for _, got, sent, _ in jobs):
        found = f"The centres are right. A job needs {records} records in its shuffle, "
        raise Wrong(f"{found}and {most:,} bytes for the driver.{table}", moved=True)
    if seen["parsed"] != enough:
        found = f"The centres are right. parse was called {seen['parsed']:,} times; "
        raise Wrong(f"{found}{enough:,} are enough.{table}", kept=kept)
    if len(kept) > 1 or not min(steps, 2) <= read <= steps + 1:  # one more to keep them
        found = f"The centres are right. In {steps} steps {read} jobs read points."
        raise Wrong(found + table, kept=kept)


def _lloyd(points, centres, steps, share=1):
    for _ in range(steps):
        near = np.linalg.norm(points[:, None] - centres, axis=2).argmin(axis=1)
        own = [points[near == n] for n in range(len(centres))]
        both = zip(own, centres, strict=True)
        means = np.array([some.mean(axis=0) if len(some) else c for some, c in both])
        centres = centres + share * (means - centres)
    return centres


def _drawn(sizes, keys, values):
    draw = SystemRandom().choices
    return [[*zip(draw(keys, k=n), draw(values, k=n), strict=True)] for n in sizes]


def _grouped(pairs):
    values = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def _recipe(allowed, *case):
    """Return the facts about a function that makes an RDD; raise if it makes none."""
    seen = on_workers(_transform, *case)
    if "names" not in seen:
        ran = " and ".join(seen["jobs"]) or "no action"
        raise Wrong(f"It ran {ran}, and returned {seen['returned']}", early=True)
    if others := [name for name in seen["names"] if name not in allowed]:
        found = f"In the lineage of what came back is {others[-1]}."
        raise Wrong(found, operation=others[-1], by_key="partitionBy" in allowed)
    return seen


def _transform(function, parts, rule, partitions, small=()):
    """Make an RDD in a process with workers, run a job, and return the facts."""
    with Context(workers=2) as context:
        given = context.parallelize(parts, len(parts)).flatMap(list)
        args = (given, RULES[rule], partitions) if rule else (context, given, small)
        made = called(function, *args)
        seen = {"returned": repr(made)[:60], "jobs": [j.action for j in context.jobs]}
        nodes = made.lineage().nodes if type(made) is RDD else ()
        if seen["jobs"] or given.id() not in [node.id for node in nodes]:
            return seen
        seen["names"] = [node.name for node in nodes if node.id > given.id()]
        seen["parts"] = made.map(_in_words).glom().collect()
        job = context.lastJob
        seen |= {"stages": len(job.stages), "fetched": job.counts["broadcasts_fetched"]}
        seen["sent"] = [sum(row) for table in job.records.values() for row in table]
        seen["read"] = len(made.program(b"")) - len(given.program(b""))
        if rule:
            made.join(given.partitionBy(partitions)).count()
            seen["join"] = len(context.lastJob.stages)
        return seen


def _in_words(record):
    pair = isinstance(record, tuple) and len(record) == 2
    return (repr(record[0]), repr(record[1])) if pair else (repr(record), "no pair")


class _Watched(Context):
    """A Context that records bytes to the driver, and kills a worker after a job."""

    kill_after, lost = 0, ()

    def run(self, *args, **how):
        results = super().run(*args, **how)
        self.lastJob.counts["got"] = len(cloudpickle.dumps(results))
        if len(self.jobs) == self.kill_after:
            held = [pair for node in self.lastJob.lineage.nodes for pair in node.held]
            victim = held[0][1] if held else 0
            self.lost = [partition for partition, worker in held if worker == victim]
            self.kill(victim)
        return results


def _cluster(function, parts, centres, steps, kill):
    """Find centres in a process with workers; return them, and facts of the jobs."""
    with _Watched(workers=2) as context:
        context.kill_after, calls, given = kill, context.accumulator(0), [*centres]
        lines = context.parallelize(parts, len(parts)).flatMap(list).setName("lines")

        def parse(line):
            calls.add(1)
            return tuple(map(float, line.split()))

        made = called(function, lines, parse, given, steps)
        seen = {"centres": np.array(made, float).tolist(), "lost": context.lost}
        seen["changed"] = [*map(id, given)] != [*map(id, centres)]
        return seen | {"parsed": calls.value, "jobs": [*map(_job, context.jobs)]}


def _job(job):
    kept = [node for node in job.lineage.nodes if node.cached]
    kept = [(n.label or n.name, len(n.computed), len(n.reused)) for n in kept]
    sent = [sum(map(sum, table)) for table in job.records.values()]
    return job.action, job.counts["got"], max(sent, default=0), kept


# fmt: off
HINTS = [
    Hint(lambda f: f["early"], [
        "A transformation only adds to the lineage, and runs nothing. An action of the "
        "caller starts the work. For what did you need a result before that?",
        "Search your function for collect, count, first, take and the other actions. "
        "What did you need the result for, and could a function inside of "
        "mapPartitions or flatMap know it?"]),
    Hint(lambda f: f["operation"] and f["by_key"], [
        "groupByKey sends every value as it is, and the engine's other ways by key are "
        "the exercise. Which part of the work can be done before the shuffle?",
        "Of a hundred pairs of one key in a partition, how many records are enough?"]),
    Hint(lambda f: f["operation"], [
        "If each worker has the whole table, which pairs have to move at all?",
        "Look for join, groupByKey or partitionBy in your function. With the table "
        "at hand, one record of the large side gives a list of results: which "
        "transformation makes several records of one?"]),
    Hint(lambda f: f["doubled"], [
        "All values of a key have to meet in one partition, by a shuffle. Pairs of one "
        "key from several map tasks have met then, and have not become one.",
        "What did you do before the shuffle that has to be done once more after it?"]),
    Hint(lambda f: f["falsy"], [
        "0, an empty word and None are values, too. Ask whether the key is in the "
        "dictionary, and not whether its value is true.",
        "What does your question answer for a key that was met, with the value 0?"]),
    Hint(lambda f: "falsy" in f, [
        "A key starts with its first value, and function adds each other value once. "
        "An iterator over a partition can be read only once.",
        "Which pairs went into what the table shows as yours, and which did not?"]),
    Hint(lambda f: f["sent"], [
        "Every pair crosses the network as it is, or twice. What can a partition do "
        "with its own pairs of one key before they are sent?",
        "a 1, b 2, a 3: which single pair of a says all that the other side needs?"]),
    Hint(lambda f: f["forgotten"], [
        "Each key is where it belongs, but the engine cannot know what mapPartitions "
        "does to keys. You know it: what else can mapPartitions be told?",
        "Look at your last mapPartitions, after partitionBy. It leaves each key "
        "where it is: look up the keyword arguments of mapPartitions."]),
    Hint(lambda f: f["pairs"], [
        "A key may have several values on the small side, or none, and a dictionary of "
        "pairs keeps one. What should it hold for a key?",
        "The rows (k, 1) and (k, 0) go into the table. What should be there for k?"]),
    Hint(lambda f: f.get("travels") or "Broadcast' object" in str(f["failure"]), [
        "What a function uses from outside is sent with it to every task. A broadcast "
        "is a handle, whose value a worker fetches once. Where must .value be read?",
        "Is .value read while the lineage is written, or when a record is at hand?"]),
    Hint(lambda f: f["gone"], [
        "A centre without points has no mean. Such a centre stays where it is.",
        "If sums came back for the clusters 0 and 2, what is in place 1 of yours?"]),
    Hint(lambda f: "gone" in f, [
        "A mean of means is another number, unless all have equally many points. Which "
        "two things can be added up, in any order?",
        "Do a step by hand, with three points. Does the next begin with its centres?"]),
    Hint(lambda f: f["moved"], [
        "The points stay with the workers. For each cluster of a partition a sum and a "
        "count are enough, in the shuffle and for the driver.",
        "Look at what you collect. If it grows with the number of points, it is too "
        "much: map each point to (cluster, (point, 1)), and add those up by key "
        "before anything leaves a worker."]),
    Hint(lambda f: not f["kept"], [
        "Nothing is kept, so each job follows the lineage from the beginning, and "
        "parses every line again. Which RDD does every step need, unchanged?",
        "Look at the first line of your loop. Which RDD does it begin from, and was "
        "cache() called on exactly that one, before the loop?"]),
    Hint(lambda f: f["kept"], [
        "What is kept are not points yet, or not the points alone, or they are read "
        "twice in a step. Which RDD is expensive to make and the same in all steps?",
        "Cache it before the first action. Who still reads what else is kept?"]),
]
