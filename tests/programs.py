"""What small programs of RDDs, in tests/dataflow/beside_spark, may use by name."""

import gzip
import operator
import os
import pickle
import threading
from pathlib import Path

TEXT = "to be or\nnot to be\n\nthat is\nthe question\nwhether"


add, mul = operator.add, operator.mul
dumps = pickle.dumps


def names_of(sc, levels, folder):
    """Return all names of a program that runs on `sc`; its files are in `folder`."""
    own = {"sc": sc, "StorageLevel": levels, "tmp": folder, "P": sc.parallelize}
    own["pairs"] = lambda: sc.parallelize([(i % 5, i) for i in range(20)], 4)
    own["others"] = lambda: sc.parallelize([(i % 4 + 3, -i) for i in range(8)], 3)
    return globals() | own | {"__name__": "__main__"}


def append(items, item):
    items.append(item)
    return items


def extend(items, others):
    items.extend(others)
    return items


def parts(rdd):
    return rdd.glom().collect()


def shuffles(rdd):
    return rdd.toDebugString().decode().count("+-(")


def level(rdd):
    kept = rdd.getStorageLevel()
    return (
        kept.useDisk,
        kept.useMemory,
        kept.useOffHeap,
        kept.deserialized,
        kept.replication,
    )


def statistics(stats):
    kinds = "count mean sum min max variance stdev sampleVariance sampleStdev"
    return [getattr(stats, kind)() for kind in kinds.split()]


def double_all(items):
    for item in items:
        yield item * 2


class OwnError(Exception):
    """An exception that only this module has."""


def raises_own(x):
    raise OwnError(f"at {x}")


def lock():
    return threading.Lock()


def closure_over_lock(rdd):
    held = lock()
    return rdd.map(lambda x: held)


def nested(sc):
    inner = sc.parallelize([1], 1)
    return sc.parallelize([2], 1).map(lambda x: inner.count()).collect()


def same_zip(rdd):
    return parts(rdd.zip(rdd.map(lambda x: x * x)))


def print_nothing(x):
    return x


def hash_of_length(key):
    return len(key)


def seen_by_foreach(sc):
    total = sc.accumulator(0)
    sc.parallelize(range(10), 3).foreach(lambda x: total.add(x))
    return total.value


def seen_by_foreach_partition(sc):
    total = sc.accumulator(0)
    sc.parallelize(range(10), 3).foreachPartition(lambda it: total.add(sum(it)))
    return total.value


def cached_twice(rdd):
    calls = rdd.ctx.accumulator(0)

    def counted(x):
        calls.add(1)
        return x

    kept = rdd.map(counted).cache()
    first, second = kept.collect(), kept.collect()
    kept.unpersist()
    return first, second, kept.collect(), calls.value


def checkpointed(sc, folder):
    sc.setCheckpointDir(f"{folder}/checkpoints")
    rdd = sc.parallelize(range(5), 2).map(lambda x: x + 1)
    before = rdd.isCheckpointed()
    rdd.checkpoint()
    asked = rdd.isCheckpointed()
    found = rdd.collect(), rdd.collect()
    file = rdd.getCheckpointFile()
    return (
        before,
        asked,
        rdd.isCheckpointed(),
        found,
        Path(file.removeprefix("file:")).is_dir(),
    )


def no_checkpoint_dir(rdd):
    # Only the first of a context's programs finds it unset.
    return rdd.map(str).isCheckpointed()


def locally_checkpointed(rdd):
    kept = rdd.map(str)
    kept.localCheckpoint()
    before = kept.isLocallyCheckpointed()
    return before, kept.collect(), kept.isLocallyCheckpointed()


def broadcast_used(sc):
    table = sc.broadcast({i: i * i for i in range(5)})
    return sc.parallelize(range(5), 3).map(lambda x: table.value[x]).collect()


def broadcast_destroyed(sc):
    table = sc.broadcast([1])
    table.destroy()
    return sc.parallelize([0], 1).map(lambda x: table.value[x]).collect()


def broadcast_unpersisted(sc):
    table = sc.broadcast([1])
    rdd = sc.parallelize([0], 1).map(lambda x: table.value[x])
    before = rdd.collect()
    table.unpersist()
    return before, rdd.collect()


def accumulated(sc, start):
    total = sc.accumulator(start)

    def note(x):
        nonlocal total
        total += x
        return x

    found = sc.parallelize(range(6), 3).map(note).collect()
    return found, total.value


class Lists:
    """An AccumulatorParam of lists; both engines look for these two methods only."""

    def zero(self, value):
        return []

    def addInPlace(self, one, two):
        return one + (two if isinstance(two, list) else [two])


def accumulated_lists(sc):
    seen = sc.accumulator([], Lists())
    sc.parallelize(range(6), 3).foreach(lambda x: seen.add([x]))
    return sorted(seen.value)


def accumulated_iadd(sc):
    total = sc.accumulator(1)
    total += 5
    total.add(2)
    return total.value


def accumulated_many(sc):
    even, odd = sc.accumulator(0), sc.accumulator(0)
    sc.parallelize(range(9), 3).foreach(lambda x: (odd if x % 2 else even).add(x))
    return even.value, odd.value


def read_inside_a_task(sc):
    total = sc.accumulator(0)
    return sc.parallelize([1], 1).map(lambda x: total.value).collect()


def set_on_driver(sc):
    total = sc.accumulator(0)
    total.value = 9
    return total.value


def saved(rdd, folder):
    rdd.saveAsTextFile(f"{folder}/out")
    files = Path(folder, "out").iterdir()
    return {f.name: f.read_bytes() for f in files if not f.name.startswith(".")}


def saved_at(rdd, folder):
    rdd.saveAsTextFile(f"{folder}/out")
    return f"{folder}/out"


def saved_twice(rdd, folder):
    rdd.saveAsTextFile(f"{folder}/out")
    rdd.saveAsTextFile(f"{folder}/out")


def saved_partly(rdd, folder):
    rdd.map(lambda x: x.upper()).saveAsTextFile(f"{folder}/out")


def pickled(rdd, folder, *size):
    rdd.saveAsPickleFile(f"{folder}/pickled", *size)
    return f"{folder}/pickled"


def written(folder, data, name="file.txt"):
    Path(folder, name).write_bytes(data)
    return f"{folder}/{name}"


def lines(folder):
    return written(folder, TEXT.encode(), "lines.txt")


def folder(where):
    inside = Path(where, "texts")
    inside.mkdir()
    for name, text in (("a.txt", "one\ntwo\n"), ("b.txt", "three"), ("c.md", "four\n")):
        (inside / name).write_text(text)
    (inside / "_hidden").write_text("not read\n")
    (inside / ".hidden").write_text("not read\n")
    return str(inside)


def zipped(folder):
    return written(folder, gzip.compress(TEXT.encode()), "lines.gz")


def base(name):
    return os.path.basename(name)


def word_count(sc, folder):
    words = sc.textFile(lines(folder), 3).flatMap(str.split)
    counts = words.map(lambda word: (word, 1)).reduceByKey(add)
    return counts.sortBy(lambda kv: (-kv[1], kv[0])).collect()


def mean_by_key(sc):
    pairs = sc.parallelize([(i % 3, float(i)) for i in range(30)], 4)
    sums = pairs.mapValues(lambda v: (v, 1)).reduceByKey(
        lambda a, b: (a[0] + b[0], a[1] + b[1])
    )
    return sums.mapValues(lambda s: s[0] / s[1]).collectAsMap()


def page_rank(sc):
    links = [(1, 2), (1, 3), (2, 3), (3, 1), (4, 3)]
    edges = sc.parallelize(links, 2).groupByKey(2).cache()
    ranks = edges.mapValues(lambda _: 1.0)
    for _ in range(3):
        given = edges.join(ranks, 2).flatMap(
            lambda kv: [(page, kv[1][1] / len(kv[1][0])) for page in kv[1][0]]
        )
        ranks = given.reduceByKey(add, 2).mapValues(lambda r: 0.15 + 0.85 * r)
    return sorted(ranks.collect())


def k_means(sc):
    points = sc.parallelize([(x * 37 % 100) / 10 for x in range(60)], 3).cache()
    centres = [1.0, 5.0]
    for _ in range(3):
        now = sc.broadcast(list(centres))
        nearest = points.map(
            lambda p, now=now: (
                min((abs(p - c), i) for i, c in enumerate(now.value)),
                p,
            )
        )
        sums = nearest.map(lambda kv: (kv[0][1], (kv[1], 1))).reduceByKey(
            lambda a, b: (a[0] + b[0], a[1] + b[1]), 2
        )
        for i, (total, count) in sums.collect():
            centres[i] = total / count
    return centres


def inverted_index(sc):
    texts = sc.parallelize(list(enumerate(TEXT.split("\n"))), 3)
    postings = texts.flatMap(lambda kv: [(word, kv[0]) for word in kv[1].split()])
    return sorted(postings.distinct().groupByKey().mapValues(sorted).collect())


def secondary_sort(sc):
    pairs = sc.parallelize([((i % 3, -i), i) for i in range(12)], 4)
    return parts(pairs.repartitionAndSortWithinPartitions(2, lambda key: key[0]))


def triangles(sc):
    edges = sc.parallelize([(a, b) for a in range(6) for b in range(a) if a * b % 3], 3)
    forward = edges.map(lambda e: (min(e), max(e))).cache()
    wedges = forward.join(forward, 3).filter(lambda kv: kv[1][0] < kv[1][1])
    closing = wedges.map(lambda kv: (kv[1], kv[0])).join(
        forward.map(lambda e: (e, 0)), 3
    )
    return closing.count()


def moving_average(sc):
    numbered = sc.parallelize(range(20), 4).zipWithIndex().map(lambda kv: kv[::-1])
    shifted = [numbered.map(lambda kv, d=d: (kv[0] + d, kv[1])) for d in range(3)]
    sums = sc.union(shifted).reduceByKey(add, 3)
    return sums.sortByKey(True, 3).mapValues(lambda s: s / 3).collect()


def matrix_product(sc):
    left = sc.parallelize([((i, k), i + k) for i in range(3) for k in range(3)], 2)
    right = sc.parallelize([((k, j), k * j) for k in range(3) for j in range(3)], 2)
    by_k = left.map(lambda e: (e[0][1], (e[0][0], e[1])))
    joined = by_k.join(right.map(lambda e: (e[0][0], (e[0][1], e[1]))), 3)
    terms = joined.map(
        lambda kv: ((kv[1][0][0], kv[1][1][0]), kv[1][0][1] * kv[1][1][1])
    )
    return parts(terms.reduceByKey(add, 3))


def top_by_group(sc):
    pairs = sc.parallelize([(i % 4, i * 7 % 20) for i in range(20)], 3)
    best = pairs.aggregateByKey([], append, extend, 2)
    return parts(best.mapValues(lambda v: sorted(v, reverse=True)[:2]))
