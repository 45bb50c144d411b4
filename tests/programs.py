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


def cached_twice(rdd):
    calls = rdd.ctx.accumulator(0)

    def counted(x):
        calls.add(1)
        return x

    kept = rdd.map(counted).cache()
    first, second = kept.collect(), kept.collect()
    kept.unpersist()
    return first, second, kept.collect(), calls.value


def broadcast_used(sc):
    table = sc.broadcast({i: i * i for i in range(5)})
    return sc.parallelize(range(5), 3).map(lambda x: table.value[x]).collect()


def accumulated(sc, start):
    total = sc.accumulator(start)

    def note(x):
        nonlocal total
        total += x
        return x

    found = sc.parallelize(range(6), 3).map(note).collect()
    return found, total.value


def read_inside_a_task(sc):
    total = sc.accumulator(0)
    return sc.parallelize([1], 1).map(lambda x: total.value).collect()


def saved(rdd, folder):
    rdd.saveAsTextFile(f"{folder}/out")
    files = Path(folder, "out").iterdir()
    return {f.name: f.read_bytes() for f in files if not f.name.startswith(".")}


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
