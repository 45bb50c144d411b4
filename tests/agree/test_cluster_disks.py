"""What nodes have written: in files, after kills, losses and changed bytes."""

import random
from copy import deepcopy
from itertools import pairwise

import pytest
from clusters import DurableLog, described, patient, until

from distlab import Call, network
from distlab.errors import InvalidArgument, NodeFailed
from distlab.network import Append, Node, Save, Truncate
from distlab.network.cluster import disk as disk_module
from distlab.network.cluster.disk import Disk, lose, read_disk
from distlab.network.cluster.event_log import EventLog, read_log


def replayed(writes):
    """Return the values that these writes leave, one after another."""
    values = {}
    for write in writes:
        if isinstance(write, Save):
            values[write.name] = write.value
        elif isinstance(write, Append):
            values[write.name] = [*values.get(write.name, []), write.item]
        elif write.name in values:
            values[write.name] = values[write.name][: write.length]
    return values


def some_write(draw):
    name = draw.choice(("log", "votes"))
    if draw.random() < 0.6:
        return Append(name, ("entry", draw.randrange(9)))
    if draw.random() < 0.7:
        return Truncate(name, draw.randrange(6))
    return draw.choice((Save(name, []), Save("term", draw.randrange(99))))


@pytest.mark.parametrize("replaced_at", [200, 2**24])
def test_a_disk_keeps_what_its_losses_leave(tmp_path, monkeypatch, replaced_at):
    monkeypatch.setattr(disk_module, "_LEAST_REPLACED", replaced_at)
    draw = random.Random(5)
    for number in range(15):
        folder = str(tmp_path / str(number))
        disk, writes, synced = Disk(folder, 0), [], 0
        for _ in range(40):
            writes.append(some_write(draw))
            disk.write(deepcopy(writes[-1]))
            if draw.random() < 0.3:
                disk.sync()
                synced = len(writes)
            elif replaced_at == 2**24 and draw.random() < 0.2:
                disk.flush()
                loses = draw.choice(("", "unsynced", "last write", "disk"))
                kept = {"unsynced": synced, "last write": len(writes) - 1, "disk": 0}
                del writes[kept.get(loses, len(writes)) :]
                synced = min(synced, len(writes))
                lose(folder, 0, loses)
                disk = Disk(folder, 0)
                assert disk.saved == replayed(writes), loses
        disk.flush()
        assert read_disk(folder, 0) == replayed(writes)
        assert disk.length < max(2500, 3 * replaced_at)


def written(folder):
    """Write five records; return the journal, and the values after each of them."""
    writes = [Append("log", number) for number in range(5)]
    disk, ends = Disk(str(folder), 3), []
    for write in writes:
        disk.write(write)
        disk.flush()
        ends.append(disk.length)
    values = {end: replayed(writes[:n]) for n, end in enumerate([0, *ends])}
    return folder / "journal", values


def test_a_record_that_a_kill_tore_is_cut_off_and_the_next_one_replaces_it(tmp_path):
    journal, values = written(tmp_path)
    whole = journal.read_bytes()
    for length in range(len(whole)):
        journal.write_bytes(whole[:length])
        before = values[max(end for end in values if end <= length)]
        disk = Disk(str(tmp_path), 3)
        assert disk.saved == before
        disk.write(Append("log", "after"))
        disk.flush()
        assert read_disk(str(tmp_path), 3)["log"] == [
            *before.get("log", []),
            "after",
        ]


def test_a_log_that_a_kill_tore_goes_on_after_its_last_whole_part(tmp_path):
    for number in range(3):
        log = EventLog(str(tmp_path), "node0")
        log.note("note", 0.5, f"whole {number}")
        log.flush()
        log.note("note", 0.5, "torn")
        log.flush()
        path = tmp_path / "node0.log"
        path.write_bytes(path.read_bytes()[: -1 - 7 * number])
    words = [event[2] for event in read_log(str(tmp_path), "node0")]
    assert words == ["whole 0", "whole 1", "whole 2"]


def test_every_changed_byte_is_noticed_with_node_file_and_record(tmp_path):
    journal, values = written(tmp_path)
    whole, ends = journal.read_bytes(), sorted(values)
    for at in range(len(whole)):
        journal.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(NodeFailed) as caught:
            Disk(str(tmp_path), 3)
        number = sum(end <= at for end in ends)
        assert caught.value.node == 3
        assert f"record {number} of its disk is corrupt" in str(caught.value)
        assert str(journal) in str(caught.value)


def test_an_append_costs_as_much_on_a_long_list_as_on_a_short_one(tmp_path):
    disk, lengths = Disk(str(tmp_path), 0), []
    for _ in range(2000):
        disk.write(Append("log", ("entry", 7)))
        disk.flush()
        lengths.append(disk.length)
    assert {b - a for a, b in pairwise(lengths)} == {lengths[0]}


def test_an_item_for_what_is_no_list_is_refused_by_name():
    class Confused(Node):
        def on_client(self, request, call):
            return [Save("term", 3), Append("term", 4)]

    with pytest.raises(InvalidArgument, match="saved as 'term' is 3, and no list"):
        network.run(Confused, 1, patient(0, [Call("go")]))


def test_a_disk_that_was_changed_is_named_as_its_node_starts_again():
    with pytest.raises(NodeFailed), network.Cluster(DurableLog, 2) as cluster:
        for number in range(3):
            cluster.call(1, "append", None, number, timeout_s=30)
        cluster.kill(1)
        journal = f"{cluster._supervisor._disk(1)}/journal"
        with open(journal, "r+b") as file:
            file.seek(20)
            file.write(b"~")
        with pytest.raises(NodeFailed, match="node 1: record 1 of its disk") as caught:
            cluster.restart(1)
        assert journal in str(caught.value)


@pytest.mark.parametrize(
    ("loses", "kept"),
    [
        ("", ["a", "b", "c", "d"]),
        ("unsynced", ["a", "b"]),
        ("last write", ["a", "b", "c"]),
        ("disk", []),
    ],
)
def test_a_node_starts_again_from_what_its_disk_has_not_lost(loses, kept):
    def client():
        yield Call("append", None, "a")
        yield Call("append", None, "b")
        yield Call("append without sync", None, "c")
        yield Call("append without sync", None, "d")

    with network.Cluster(DurableLog, 2) as cluster:
        cluster.start(patient(1, client))
        until(lambda: len(cluster.history) == 4 and cluster.history[-1].end)
        cluster.kill(1, loses=loses)
        assert cluster.outcome().saved[1].get("log", []) == kept
        cluster.restart(1)
        assert described(cluster, 1) == kept
    lane = [e for e in cluster.outcome().trace.events if e.rank == 1]
    assert [e.label for e in lane if e.kind == "fault"] == ["crash", "restart"]
    assert [e for e in lane if e.label.startswith("disk loses")] or not loses


def test_no_power_loss_at_any_moment_takes_what_a_sync_had_covered():
    def appends():
        number = 0
        while True:
            yield Call("append", None, (number := number + 1))

    draw, acknowledged = random.Random(3), 0
    with network.Cluster(DurableLog, 1) as cluster:
        for _ in range(5):
            enough = len(cluster.history) + draw.randrange(10, 60)
            cluster.start([patient(0, appends) for _ in range(3)])
            until(lambda n=enough: len(cluster.history) > n)
            cluster.kill(0, loses="unsynced")
            cluster.stop_clients()
            cluster.restart(0)
            kept = len(described(cluster, 0))
            done = [one for one in cluster.history if one.op == "append"]
            acknowledged = sum(one.outcome == "ok" for one in done)
            assert acknowledged <= kept <= len(done)
    assert acknowledged > 100


def test_each_sync_is_reported_once_and_in_order():
    calls = [Call("append", None, number) for number in range(50)]
    outcome = network.run(DurableLog, 1, [patient(0, calls) for _ in range(6)])
    assert {one.outcome for one in outcome.history} == {"ok"}
    assert outcome.nodes[0].tokens == list(range(1, 301))
    assert len(outcome.saved[0]["log"]) == 300
