"""A trace counts exactly, orders rounds by who waited, and exports to Perfetto."""

import json

import pytest

from distlab import Event, InvalidArgument, Trace


def message(src, dst, start, end, size=8):
    return [
        Event(src, start, end, "send", dst, size, 1, ""),
        Event(dst, start, end, "recv", src, size, 1, ""),
    ]


RELAY = Trace(3, message(0, 1, 0.0, 1.0, 10) + message(1, 2, 1.0, 2.0, 20))


def test_counts_bytes_and_messages_per_rank():
    assert [RELAY.bytes_sent(rank) for rank in range(3)] == [10, 20, 0]
    assert [RELAY.bytes_received(rank) for rank in range(3)] == [0, 10, 20]
    assert [RELAY.messages_sent(rank) for rank in range(3)] == [1, 1, 0]


def test_bytes_that_never_came_are_not_received():
    send, recv = message(0, 1, 0.0, None, 10)
    assert Trace(2, [send, recv]).bytes_received(1) == 0
    assert Trace(2, [send, recv]).bytes_sent(0) == 0


def test_a_rank_outside_the_world_is_an_error():
    with pytest.raises(IndexError, match="rank 3 of a world of 3"):
        RELAY.bytes_sent(3)


def test_a_message_after_another_is_a_later_round():
    assert RELAY.rounds() == 2


def test_messages_at_the_same_time_share_a_round():
    shift = [e for r in range(4) for e in message(r, (r + 1) % 4, 0.0, 1.0)]
    assert Trace(4, shift).rounds() == 1


def test_a_send_that_ended_before_its_receive_began_still_orders_rounds():
    events = [
        Event(0, 0.0, 0.1, "send", 1, 8, 1, ""),  # buffered: ends at once
        Event(1, 5.0, 5.1, "recv", 0, 8, 1, ""),
        *message(1, 2, 5.2, 5.3),
        *message(2, 0, 5.4, 5.5),
    ]
    assert Trace(3, events).rounds() == 3


def test_the_kth_send_meets_the_kth_receive():
    events = message(0, 1, 0.0, 1.0, 3) + message(0, 1, 1.0, 2.0, 4)
    sizes = [(m.send.bytes, m.recv.bytes) for m in Trace(2, events).messages()]
    assert sizes == [(3, 3), (4, 4)]


def test_a_message_that_never_ended_is_not_counted():
    cut_off = Trace(2, [Event(0, 0.0, None, "send", 1, 8, 1, "")])
    assert cut_off.bytes_sent(0) == cut_off.messages_sent(0) == cut_off.rounds() == 0


def test_waiting_is_the_time_before_the_partner_joins():
    events = [
        Event(0, 0.0, 3.0, "recv", 1, 8, 1, ""),
        Event(1, 2.0, 3.0, "send", 0, 8, 1, ""),
    ]
    trace = Trace(2, events)
    assert trace.waited_s(0) == 2.0
    assert trace.waited_s(1) == 0.0


def test_a_call_that_waits_for_its_other_half_waits():
    """Rank 0 sends and receives at once: taken at 1, given at 3."""
    both = [
        Event(0, 0.0, 4.0, "send", 1, 8, 1, ""),
        Event(0, 0.0, 4.0, "recv", 2, 8, 1, ""),
        Event(1, 0.0, 1.0, "recv", 0, 8, 1, ""),
        Event(2, 3.0, 4.0, "send", 0, 8, 1, ""),
    ]
    assert Trace(3, both).waited_s(0) == 2.0


def test_an_empty_trace_counts_nothing():
    trace = Trace(2)
    assert (trace.rounds(), trace.duration_s(), trace.bytes_sent(1)) == (0, 0.0, 0)


def test_clocks_that_run_backwards_raise_nothing(tmp_path):
    backwards = Trace(2, message(0, 1, 2.0, 1.0))
    assert backwards.rounds() == 1
    backwards.to_perfetto(tmp_path / "trace.json")


def test_perfetto_file_follows_the_trace_event_format(tmp_path):
    marked = [*RELAY.events, Event(0, 0.5, 0.5, "mark", None, 0, 1, "step <1>")]
    path = tmp_path / "trace.json"
    Trace(3, marked).to_perfetto(path)
    rows = json.loads(path.read_text())["traceEvents"]
    for row in rows:
        assert row["ph"] in ("X", "M", "i", "s", "f")
        assert isinstance(row["pid"], int) and isinstance(row["tid"], int)
        assert row["ph"] == "M" or isinstance(row["ts"], float)
        if row["ph"] == "X":
            assert row["dur"] >= 0
    lanes = [row["args"]["name"] for row in rows if row["name"] == "thread_name"]
    assert lanes == ["rank 0", "rank 1", "rank 2"]
    assert [row["name"] for row in rows if row["ph"] == "i"] == ["step <1>"]


def test_perfetto_flows_lead_from_each_send_to_its_receive(tmp_path):
    path = tmp_path / "trace.json"
    RELAY.to_perfetto(path)
    rows = json.loads(path.read_text())["traceEvents"]
    begins = {row["id"]: row for row in rows if row["ph"] == "s"}
    ends = {row["id"]: row for row in rows if row["ph"] == "f"}
    assert begins.keys() == ends.keys() and len(begins) == 2
    assert {(begins[k]["tid"], ends[k]["tid"]) for k in begins} == {(0, 1), (1, 2)}
    for number, end in ends.items():
        assert begins[number]["ts"] <= end["ts"] and end["bp"] == "e"


def test_since_a_mark_is_what_each_rank_did_from_its_last_one_on():
    def marks(start):
        return [
            Event(r, start + r, start + r, "mark", None, 0, 0, "go") for r in (0, 1)
        ]

    before, after = message(0, 1, 0.0, 1.0, 3), message(1, 0, 12.0, 13.0, 4)
    since = Trace(2, [*before, *marks(2.0), *marks(10.0), *after]).since("go")
    assert [event.start for event in since.events] == [10.0, 11.0, 12.0, 12.0]
    assert [since.bytes_sent(rank) for rank in (0, 1)] == [0, 4]


def test_since_names_the_rank_that_has_not_set_the_mark():
    only_rank_0 = Trace(2, [Event(0, 0.0, 0.0, "mark", None, 0, 0, "go")])
    with pytest.raises(InvalidArgument, match="rank 1 has set no mark 'go'"):
        only_rank_0.since("go")
