"""The log of a stream: offsets, segments, damage; producers, transactions, groups."""

import pytest
from stream_jobs import of_broker, produce, read

from distlab import Call, network
from distlab.agree.stream import Broker, PartitionLog
from distlab.agree.stream.log import decode, encode
from distlab.errors import CorruptLog, InvalidArgument
from distlab.faults import Crash
from distlab.network import Append, Client, Save, Truncate
from distlab.network.disk import MemoryDisk

# the log on a disk


class Short(PartitionLog):
    segment_batches = 2


def filled(*batches, kind=Short):
    """Return (a log with these batches, the disk that has them)."""
    log, disk = kind(0), MemoryDisk()
    for number, records in enumerate(batches):
        body = encode(records)
        disk.write(log.append(body, len(records), ("p", 0, number)))
    log.durable = log.end
    return log, disk


def records(log, offset=0):
    return [r for b in log.read(offset, most=99) for r in decode(b.body)]


def test_offsets_count_records_and_segments_hold_batches():
    log, disk = filled(["a", "b"], ["c"], ["d"], ["e", "f"])
    assert log.end == 6 and records(log, 3) == ["d", "e", "f"]
    assert records(log, 1) == ["a", "b", "c", "d", "e", "f"]  # its batch, whole
    assert sorted(disk.values) == [f"log 0 {0:020}", f"log 0 {3:020}"]
    again, cuts = Short.load(0, disk.values)
    assert not cuts and again.batches == log.batches and again.end == 6
    disk.write(again.append(b'["g"]', 1, ("p", 0, 4)))
    assert Short.load(0, disk.values)[0].batches == again.batches


def test_retention_drops_whole_segments_and_names_what_it_still_has():
    log, disk = filled(["a", "b"], ["c"], ["d"], ["e", "f"], ["g"])
    for effect in log.drop_before(5):
        assert type(effect) is Save
        disk.write(effect)
    assert log.start == 3 and records(log, 3) == ["d", "e", "f", "g"]
    again, _ = Short.load(0, disk.values)
    assert again.start == 3 and again.batches == log.batches
    with pytest.raises(InvalidArgument, match="from 3 to 6, and was asked for 0"):
        log.read(0)
    with pytest.raises(InvalidArgument, match="asked for 8"):
        log.read(8)
    assert log.read(7) == []  # the next record, when there is one


def test_a_torn_end_is_cut_off_and_a_changed_byte_is_named():
    log, disk = filled(["a", "b"], ["c"], ["d"])
    (name, kept) = sorted(disk.values.items())[-1]
    torn = {**disk.values, name: [kept[0]._replace(body=kept[0].body[:3])]}
    again, cuts = Short.load(0, torn)
    assert cuts == [Truncate(name, 0)] and records(again) == ["a", "b", "c"]
    first = sorted(disk.values)[0]
    whole = disk.values[first]
    for damaged in (
        [whole[0]._replace(body=b'["a","X"]'), whole[1]],
        [whole[0]._replace(body=whole[0].body[:4]), whole[1]],  # torn, and not the last
        [whole[0], whole[1]._replace(write_id="other")],
        [whole[0], whole[1]._replace(producer=("p", 1, 1))],
    ):
        with pytest.raises(CorruptLog, match=f"partition 0: .* segment '{first}'"):
            Short.load(0, {**disk.values, first: damaged})
    assert log.end == 4


def test_what_is_no_record_is_refused():
    with pytest.raises(InvalidArgument, match="strings, numbers"):
        encode([object()])


# producers


def test_what_a_producer_sends_again_is_written_once_and_a_gap_is_refused():
    calls = [produce(0, "p", 0, n, r) for n, r in [(0, "a"), (1, "b"), (1, "b")]]
    results, outcome = of_broker([*calls, produce(0, "p", 0, 3, "d"), read(0)])
    assert results[-1] == (2, ["a", "b"])
    assert [op.outcome for op in outcome.history] == ["ok"] * 3 + ["failed", "ok"]


def test_a_zombie_is_fenced_by_its_epoch():
    calls = [Call("open", "p"), produce(0, "p", 1, 1, "old"), Call("open", "p")]
    calls += [produce(0, "p", 1, 2, "zombie"), produce(0, "p", 2, 1, "new"), read(0)]
    results, _ = of_broker(calls)
    assert results[0] == 1 and results[2] == 2 and results[3] is None
    assert results[-1] == (2, ["old", "new"])


def test_producers_are_known_after_a_power_loss_and_so_is_all_that_was_acknowledged():
    calls = [Call("open", "p")] + [produce(0, "p", 1, n + 1, n) for n in range(60)]
    faults = [Crash(0, at, at + 0.01, "unsynced") for at in (0.0102, 0.031, 0.0505)]
    again = [produce(0, "p", 1, 60, "again"), read(0), read(0, 16), read(0, 32)]
    results, outcome = of_broker([*calls, *again, read(0, 48)], faults=faults)
    got = [r for _, some in results[-4:] for r in some]
    assert got == list(range(60))
    assert {op.outcome for op in outcome.history} == {"ok"}


class AcksBeforeDurable(Broker):
    def when_durable(self, *effects):
        yield from effects
        yield from super().when_durable()


def test_a_broker_that_acknowledges_too_early_would_lose_records():
    def kept(kind):
        client = Client(0, [produce(0, "p", 0, 0, "a")], timeout_s=0.01, retries=9)
        faults = [Crash(0, 0.0005, 0.002, "unsynced")]
        outcome = network.simulate(kind, 1, client, faults=faults, until_s=0.1)
        assert outcome.history.operations[0].outcome == "ok"
        log, _ = PartitionLog.load(0, outcome.saved[0])
        return [record for batch in log.batches for record in decode(batch.body)]

    assert kept(Broker) == ["a"] and kept(AcksBeforeDurable) == []


def test_what_a_crash_has_left_is_read_only_after_a_sync():
    first, again = Broker(0, ()), Broker(0, ())
    disk = MemoryDisk()
    for effect in first.on_client(1, produce(0, "p", 0, 0, "a")):
        if type(effect) is Append:
            disk.write(effect)
    (sync,) = again.on_start(disk.values)  # a power loss could still take "a"
    (reply,) = again.on_client(2, read(0))
    assert reply.result == (0, [])
    list(again.on_synced(sync.token))
    (reply,) = again.on_client(3, read(0))
    assert reply.result == (1, ["a"])


def test_a_full_disk_refuses_and_keeps_what_it_has_acknowledged():
    calls = [produce(n % 2, f"p{n % 2}", 0, n // 2, "x" * 20) for n in range(10)]
    results, outcome = of_broker([*calls, read(0), read(1)], capacity_bytes=100)
    done = [op.outcome for op in outcome.history]
    assert done == ["ok"] * 4 + ["failed"] * 6 + ["ok"] * 2
    assert results[-2] == results[-1] == (2, ["x" * 20] * 2)
    told = {e.label for e in outcome.trace.events if "disk is full" in e.label}
    assert len(told) == 1 and "96 of 100 by" in told.pop()


@pytest.mark.parametrize(
    "call",
    [
        produce(7, "p", 0, 0, "a"),
        produce(-1, "p", 0, 0, "a"),
        Call("produce", 0, "nonsense"),
        Call("produce", 0, None),
        read(0, 99),
        read(0, -1),
        read(9),
        Call("read", None, (0, True)),
        Call("end", "p", 1),
        Call("commit", "g", None),
        Call("flush", 0),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(call):
    results, outcome = of_broker([call, produce(0, "p", 0, 0, "a"), read(0)])
    assert results[0] is None and results[-1] == (1, ["a"])
    assert outcome.history.operations[0].outcome == "failed"


# transactions


def test_a_transaction_is_seen_in_all_partitions_with_its_offsets_or_in_none():
    begin = [Call("open", "p"), produce(0, "p", 1, 1, "a", txn=1)]
    begin += [produce(1, "p", 1, 2, "b", txn=1), produce(1, "q", 0, 0, "free")]
    seen = [read(0), read(1), Call("committed", "g")]
    end = Call("end", "p", (1, 3, 1, True, {"g": {0: 7}}))
    results, _ = of_broker([*begin, *seen, end, *seen])
    # "free" is behind the open transaction, whose outcome is not known yet
    assert results[4:7] == [(0, []), (0, []), {}]
    assert results[8:] == [(1, ["a"]), (2, ["b", "free"]), {0: 7}]
    aborts = Call("end", "p", (1, 3, 1, False, {"g": {0: 7}}))
    for stop in (aborts, Call("open", "p")):  # or a new producer aborts it
        results, _ = of_broker([*begin, stop, *seen, read(1, 0, committed=False)])
        assert results[5:8] == [(1, []), (2, ["free"]), {}]
        assert results[8] == (2, ["b", "free"])


def test_a_decision_outlives_a_power_loss():
    calls = [Call("open", "p"), produce(0, "p", 1, 1, "a", txn=1)]
    calls += [Call("end", "p", (1, 2, 1, True, {"g": {0: 7}}))]
    faults = [Crash(0, 0.0035, 0.01, "unsynced")]  # three syncs of a millisecond
    results, _ = of_broker([*calls, *[read(0)] * 3, Call("committed", "g")])
    again, _ = of_broker(
        [*calls, *[read(0)] * 3, Call("committed", "g")], faults=faults
    )
    assert results == again and again[-2:] == [(1, ["a"]), {0: 7}]


# consumer groups


def test_partitions_are_dealt_anew_in_each_generation_and_an_old_one_commits_nothing():
    calls = [Call("join", "g", "a"), Call("commit", "g", ("a", 1, {0: 5}))]
    calls += [Call("join", "g", "b"), Call("commit", "g", ("a", 1, {0: 6}))]
    calls += [Call("heartbeat", "g", "a"), Call("commit", "g", ("a", 2, {0: 7}))]
    calls += [Call("committed", "g"), Call("leave", "g", "a")]
    calls += [Call("heartbeat", "g", "a"), Call("heartbeat", "g", "b")]
    results, outcome = of_broker(calls)
    assert results[0] == (1, [0, 1]) and results[2] == (2, [1])
    assert results[4] == (2, [0]) and results[6] == {0: 7}
    assert results[8] is None and results[9] == (3, [0, 1])
    refused = [k for k, op in enumerate(outcome.history) if op.outcome == "failed"]
    assert refused == [3, 8]


def test_a_member_that_is_silent_for_a_session_is_removed():
    def calls():
        results.append((yield Call("join", "g", "a")))
        results.append((yield Call("join", "g", "b")))
        for _ in range(4):
            results.append((yield Call("heartbeat", "g", "b")))

    results = []
    client = Client(0, calls, pause_s=0.2)
    network.simulate(lambda me, peers: Broker(me, peers, inputs=3), 1, client)
    assert results[:3] == [(1, [0, 1, 2]), (2, [1]), (2, [1])]
    assert results[-1] == (3, [0, 1, 2])


def test_an_append_is_one_write_whatever_the_length_of_the_log():
    log, _ = filled(*[["a"]] * 50, kind=PartitionLog)
    assert type(log.append(b'["b"]', 1, ("p", 0, 50))) is Append
