"""Files are read line by line wherever they are cut, and written whole or not."""

import gzip
import os

import pytest

from distlab.dataflow import Context
from distlab.errors import InvalidArgument, TaskFailed
from distlab.faults import KillWorker

LINES = [f"line {n} {'x' * (n % 17)}" for n in range(300)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("partitions", [1, 2, 7, 40])
def test_every_line_is_read_once_wherever_the_cuts_are(sc, tmp_path, end, partitions):
    path = tmp_path / "lines.txt"
    path.write_bytes(end.join(LINES).encode())
    lines = sc.textFile(path, partitions)
    assert lines.getNumPartitions() == partitions
    assert lines.collect() == LINES
    path.write_bytes((end.join(LINES) + end).encode())
    assert sc.textFile(str(path), partitions).collect() == LINES


def test_empty_lines_marks_and_bytes_that_are_no_text(sc, tmp_path):
    path = tmp_path / "odd.txt"
    path.write_bytes(b"\xef\xbb\xbfone\n\n\ntw\xffo\nthree \r\n\n")
    assert sc.textFile(path, 1).collect() == ["one", "", "", "tw\ufffdo", "three ", ""]
    path.write_bytes(b"")
    assert sc.textFile(path).collect() == []


def test_folders_patterns_and_lists_of_files(sc, tmp_path):
    for name in ("b.txt", "a.txt", "_hidden", ".hidden"):
        (tmp_path / name).write_text(f"{name}\n")
    with gzip.open(tmp_path / "c.gz", "wt") as file:
        file.write("zipped\nlines\n")
    found = sc.textFile(tmp_path).collect()
    assert found == ["a.txt", "b.txt", "zipped", "lines"]
    assert sc.textFile(f"{tmp_path}/*.txt").collect() == ["a.txt", "b.txt"]
    both = sc.textFile(f"{tmp_path}/b.txt,{tmp_path}/a.txt")
    assert both.collect() == ["b.txt", "a.txt"]


def test_what_is_saved_is_there_as_part_files(sc, tmp_path):
    numbers = sc.parallelize([3, "four", b"five", (6, 7)], 2)
    numbers.saveAsTextFile(str(tmp_path / "out"))
    names = ["_SUCCESS", "part-00000", "part-00001"]
    assert sorted(os.listdir(tmp_path / "out")) == names
    assert sc.textFile(tmp_path / "out").collect() == ["3", "four", "five", "(6, 7)"]
    with pytest.raises(InvalidArgument, match="is there already"):
        numbers.saveAsTextFile(str(tmp_path / "out"))


def test_a_save_that_fails_leaves_nothing(sc, tmp_path):
    with pytest.raises(TaskFailed):
        sc.range(5).map(lambda n: 1 / (n - 4)).saveAsTextFile(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("task", [1, 2, 3])
def test_a_worker_killed_while_saving_leaves_the_same_files(tmp_path, task):
    with Context(2, faults=KillWorker(0, task)) as sc:
        sc.parallelize(LINES, 6).saveAsTextFile(tmp_path / "out")
    parts = sorted((tmp_path / "out").glob("part-*"))
    assert "".join(part.read_text() for part in parts).splitlines() == LINES
    assert len(list((tmp_path / "out").iterdir())) == 7


def test_a_checkpoint_cuts_the_lineage(tmp_path):
    with Context(2) as sc:
        sc.setCheckpointDir(tmp_path)
        source = sc.parallelize(range(10), 2).map(lambda n: (n % 3, n))
        sums = source.reduceByKey(max, 2)
        later = sums.mapValues(str)
        later.count()
        sums.checkpoint()
        assert not sums.isCheckpointed()
        expected = sums.collect()
        assert sums.isCheckpointed()
        assert len(sums.lineage().nodes) == 1
        assert sums.collect() == expected
        assert later.count() == 3 and len(sc.jobs[-1].stages) == 1
        sc.kill(0)
        sc.kill(1)
        assert dict(later.collect()) == {k: str(v) for k, v in expected}
