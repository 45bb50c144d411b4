"""Pictures of a log with its readers, and of windows with a watermark."""

import math

import pytest
from artists import assert_legible, drawn, words

from distlab.agree.stream.channels import (
    Acked,
    Barrier,
    ChannelFrame,
    EndTransaction,
    Fetched,
    Produce,
    Rows,
    Trigger,
)
from distlab.errors import InvalidArgument
from distlab.show import event_time, partition_log

LOGS = {"in": ["the cat", "the dog", "a cat"], "out": []}
EVENTS, MARKS = [3, 12, 8, 15, 9, 21], [0, 9, 9, 12, 12, 18]


def test_a_log_shows_each_record_and_where_each_group_reads():
    picture = partition_log(LOGS, {"a": {"in": 1, "out": 0}, "b": {"in": 3}}, title="L")
    assert len(drawn(picture, "record")) == 3 and len(drawn(picture, "offset")) == 3
    assert {"0", "1", "2"} <= {*words(picture)}
    assert "a: next offset 1, of in." in picture.alt
    assert (
        "b: next offset 3, of in." in picture.alt and "out: 0 records." in picture.alt
    )
    assert_legible(picture)


@pytest.mark.parametrize(
    "logs, offsets",
    [
        ({}, {}),
        ({0: ["a"] * 25}, {}),
        (LOGS, {"a": {"in": 4}}),
        (LOGS, {"a": {"in": -1}}),
        (LOGS, {"a": {"elsewhere": 0}}),
    ],
)
def test_a_log_that_cannot_be_drawn_is_refused(logs, offsets):
    with pytest.raises(InvalidArgument, match="partition_log"):
        partition_log(logs, offsets)


def test_an_event_is_late_once_the_watermark_before_it_has_closed_its_window():
    picture = event_time(EVENTS, MARKS, window_s=10, title="Events")
    assert "Late: 9." in picture.alt  # 8 came while the watermark was 9
    assert len(drawn(picture, "window")) == 3 and drawn(picture, "watermark")
    [late], [event] = drawn(picture, "late"), drawn(picture, "event")
    assert len(late.get_xdata()) == 1 and len(event.get_xdata()) == 5
    assert {"[0, 10)", "[10, 20)", "[20, 30)"} <= {*words(picture)}
    assert_legible(picture)


@pytest.mark.parametrize(
    "events, marks, window_s",
    [
        ([], [], 10),
        (EVENTS, MARKS[1:], 10),
        (EVENTS, MARKS, 0),
        (EVENTS, MARKS, 1),
        ([math.nan], [0], 10),
        ([1], [-math.inf], 10),
    ],
)
def test_events_that_cannot_be_drawn_are_refused(events, marks, window_s):
    with pytest.raises(InvalidArgument, match="event_time"):
        event_time(events, marks, window_s=window_s)


def test_messages_in_a_picture_have_few_words():
    rows = Rows(0, 0, ("a", "b"), (2, 1), 0.0)
    items = [Barrier(3), rows, Produce(1, b'[["a",1]]', 1), EndTransaction(3, {})]
    said = [ChannelFrame(1, 0, item).in_picture for item in items]
    assert said[:2] == ["barrier 3", "rows a 2, b 1"]
    assert said[2:] == ['write [["a",1]]', "commit transaction 3"]
    others = Fetched(1, 4, ("x",)), Trigger(1, 3), Acked(1, 3, False, None)
    said = [each.in_picture for each in others]
    assert said == ["1 batch from 4", "trigger 3", "snapshot 3"]
