"""A copy of notes on another machine: whatever ranks write, in pieces, it says it."""

import os
import random

import pytest

from distlab.processes import anonymous_file
from distlab.recorder import OUT, NotesReader, Recorder, SharedTrace
from distlab.recorder.layout import KEPT_EVENTS

RANKS = 3
MANY = 2 * KEPT_EVENTS + 10


@pytest.fixture
def noted():
    """Return recorders on a block, its reader, its own trace, and that of a copy."""
    blocks = [anonymous_file("notes") for _ in range(2)]
    here, copy = (SharedTrace(RANKS, block) for block in blocks)
    recorders = [Recorder(rank, RANKS, blocks[0]) for rank in range(RANKS)]
    yield recorders, NotesReader(blocks[0], RANKS), here, copy
    here.close()
    copy.close()
    for block in blocks:
        os.close(block)


def send_changes(reader, copy):
    sent = [piece for rank in range(RANKS) for piece in reader.changes(rank)]
    copy.write(sent)
    return sum(len(piece) for _, piece in sent)


def test_a_copy_tells_what_the_notes_tell_after_any_writes(noted):
    recorders, reader, here, copy = noted
    draw = random.Random(3)
    for _ in range(300):
        one = draw.choice(recorders)
        peer = (one.rank + 1) % RANKS
        label = f"label {draw.randrange(10**6)}"
        one.knows("0,1#1")
        number = one.offer(peer, OUT, 8, "float32", draw.choice(["", "0,1#1"]))
        one.enter_call(label)
        one.now("blocked", "send", send=(peer, number), label=label)
        one.event("send", 1.0, 2.0, peer, 8, label)
        if draw.random() < 0.2:
            send_changes(reader, copy)
    send_changes(reader, copy)
    for rank in range(RANKS):
        assert copy.now(rank) == here.now(rank)
        assert copy.groups(rank) == here.groups(rank)
        assert copy.calls(rank) == here.calls(rank)
        peer = (rank + 1) % RANKS
        for group in here.groups(rank):
            count = here.posted(rank, peer, OUT, group)
            assert copy.posted(rank, peer, OUT, group) == count
            assert copy.post(rank, peer, OUT, count, group) == here.post(
                rank, peer, OUT, count, group
            )


def test_a_copy_gets_every_event_of_a_ring_that_is_full_many_times(noted):
    recorders, reader, _, copy = noted
    for step in range(MANY):
        recorders[1].event("mark", step, step)
        if step % (KEPT_EVENTS // 2) == 0:
            send_changes(reader, copy)
    send_changes(reader, copy)
    assert [e.start for e in copy.trace().of(1)] == list(range(MANY))


def test_what_has_not_changed_is_not_sent_again(noted):
    recorders, reader, _, copy = noted
    recorders[0].event("mark", 1.0, 1.0, label="begun")
    assert 0 < send_changes(reader, copy) < 40_000
    send_changes(reader, copy)  # that the ring is empty
    assert send_changes(reader, copy) == 0


def test_events_are_moved_to_the_readers_clock(noted):
    recorders, reader, _, copy = noted
    recorders[2].event("mark", 100.0, 101.0)
    copy.offsets_s[2], copy.clock_error_s = -99.0, 0.25
    send_changes(reader, copy)
    trace = copy.trace()
    assert [(e.start, e.end) for e in trace.of(2)] == [(1.0, 2.0)]
    assert trace.clock_error_s == trace.among("").clock_error_s == 0.25


def test_a_cleared_region_is_another_processs(noted):
    recorders, reader, here, copy = noted
    recorders[1].event("mark", 1.0, 1.0, label="old")
    send_changes(reader, copy)
    for trace in (here, copy):
        trace.regroup([0, 1, 2], fresh=[1])
    reader.forget(1, fresh=True)
    other = Recorder(1, RANKS, beside=recorders[1])
    other.event("mark", 5.0, 5.0, label="new")
    send_changes(reader, copy)
    assert [e.label for e in copy.trace().of(1)] == ["new"]
