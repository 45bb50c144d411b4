"""A keyed count of a stream: our nodes beside Spark Structured Streaming.

    python tests/bench/stream.py [records]

Both read the same words and count them by word, on two workers, and are done when the
last count is committed. Ours goes all the way: clients append batches to the log, each
with its fsync; sources read them; operators count; the sink's transactions are
committed with a checkpoint each half second. Spark reads files, and commits one
micro-batch after another to its checkpoint; it has no log to write. Starting either is
not counted. The sources count the words of a batch before they partition it, as a
combiner does; so does Spark, in its partial aggregation.

CPU seconds are of all processes of either side; on a busy machine they say more than
the clock, as ours are eight processes that wait for each other at each batch. Of 2.2
CPU seconds for two million records, 0.9 are the sources' (JSON, split, count), 0.9 the
clients' and the broker's (to serialize a record twice, copy, fsync), 0.3 those of the
operators, 0.1 the switch's. So the log costs as much as the count; Spark, which has
none, takes 2.5. With batches of 20,000 records it is 2.9: a row for each different word
of a batch goes through four processes.

Measured on two cores beside other work, of load average 15 to 25: 222,000 to 393,000
records a second, Spark 268,000 to 354,000: ratios of 0.82, 1.11 and 0.84; at a load of
25 to 45, 0.55 to 1.34.
"""

import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from distlab.agree.stream import COORDINATOR, word_count_job
from distlab.engines import spark
from distlab.network import Cluster, Delivery

RECORDS, WORDS, BATCH, FILES, TURNS = 2_000_000, 5000, 100_000, 20, 4


def write_words(folder, records):
    """Write files of one word a line, of a Zipf distribution."""
    weights = [1 / (rank + 1) for rank in range(WORDS)]
    vocabulary = [f"word{rank}" for rank in range(WORDS)]
    words = random.Random(8).choices(vocabulary, weights, k=records)
    for number in range(FILES):
        text = "\n".join(words[number::FILES]) + "\n"
        Path(folder, f"{number:03}.txt").write_text(text)


def our_count(folder):
    """Return (counts, seconds, CPU seconds) of our job, with the words of a folder."""
    words = [w for path in sorted(Path(folder).iterdir()) for w in path.open()]
    words = [word.rstrip("\n") for word in words]
    job = word_count_job(every_s=0.5, flat_map=str.split)
    clients = job.clients(words, batch=BATCH, wait=False, timeout_s=60.0)
    ends = {p: len(words[p :: job.partitions]) for p in range(job.partitions)}
    with Cluster(job, job.nodes, delivery=Delivery((0.0, 0.0))) as cluster:
        cpu_s, began = cpu_seconds(), time.perf_counter()
        cluster.start(clients)
        wait = cluster.call(COORDINATOR, "wait", None, ends, timeout_s=600)
        seconds, cpu_s = time.perf_counter() - began, cpu_seconds() - cpu_s
        assert wait.outcome == "ok"
    return job.result(cluster.outcome()).output, seconds, cpu_s


def cpu_seconds():
    """Return the CPU seconds of this process and all below it."""
    here = psutil.Process()
    times = [each.cpu_times() for each in (here, *here.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def spark_session():
    """Return the session of this process, with two executor threads."""
    return spark.session("local[2]", {"spark.sql.shuffle.partitions": 2})


def structured_streaming_count(folder):
    """Return (counts, seconds, CPU seconds) of Structured Streaming over a folder."""
    session = spark_session()
    lines = session.readStream.option("maxFilesPerTrigger", FILES // 4).text(folder)
    counts, number = lines.groupBy("value").count(), time.monotonic_ns()
    with tempfile.TemporaryDirectory() as checkpoint:
        query = counts.writeStream.outputMode("complete").format("memory")
        query = query.queryName(f"counts{number}").trigger(availableNow=True)
        cpu_s, began = cpu_seconds(), time.perf_counter()
        query.option("checkpointLocation", checkpoint).start().awaitTermination()
        seconds, cpu_s = time.perf_counter() - began, cpu_seconds() - cpu_s
    rows = session.sql(f"SELECT * FROM counts{number}").collect()
    return Counter({row["value"]: row["count"] for row in rows}), seconds, cpu_s


def main(records):
    peer = spark.is_installed()
    with tempfile.TemporaryDirectory() as folder:
        write_words(folder, records)
        print(f"{records:,} records, load {os.getloadavg()[0]:.1f}; records a second")
        print(f"{'ours':>10}{'CPU s':>8}{'Structured Streaming':>23}", end="")
        print(f"{'CPU s':>8}{'ratio':>8}")
        for turn in range(TURNS):
            counts, seconds, cpu_s = our_count(folder)
            ours = f"{records / seconds:10,.0f}{cpu_s:8.1f}"
            if not peer:
                print(ours, "         is not installed")
                continue
            theirs, its_s, its_cpu_s = structured_streaming_count(folder)
            assert theirs == counts, "the counts differ"
            warm = "" if turn else "  (warming up)"
            its = f"{records / its_s:23,.0f}{its_cpu_s:8.1f}"
            print(f"{ours}{its}{its_s / seconds:8.2f}{warm}")
    if peer:
        spark_session().stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
