"""A word count as a stream: guarantees, windows, back-pressure, bad input."""

import math
import subprocess
import sys

import pytest
from stream_jobs import lines, storm

from distlab import network
from distlab.agree.stream import truth, word_count_job
from distlab.agree.stream.channels import (
    Barrier,
    ChannelFrame,
    ChannelIn,
    ChannelOut,
    Rows,
)
from distlab.agree.stream.source import is_event_time
from distlab.errors import InvalidArgument, NodeFailed
from distlab.faults import ClockJump, Crash
from distlab.network import Save

FAST = {"every_s": 0.02}


def run(job, records, *, seed=0, faults=(), **how):
    clients = job.clients(records, **{"pause_s": 0.01, "batch": 5} | how)
    outcome = network.simulate(job, job.nodes, clients, faults=faults, seed=seed)
    assert all(op.outcome == "ok" for op in outcome.history)
    return job.result(outcome), outcome


def promised(guarantee, sink, seeds):
    """Run storms; return how many words were doubled and lost, in output and state."""
    total = [0, 0, 0, 0]
    for seed in seeds:
        job = word_count_job(guarantee=guarantee, sink=sink, **FAST)
        result, _ = storm(job, seed)
        more, less = (
            (one - other).total()
            for one, other in (
                (result.state, result.truth_so_far),
                (result.truth_so_far, result.state),
            )
        )
        counts = result.doubled, result.lost, more, less
        total = [a + b for a, b in zip(total, counts, strict=True)]
    return total


@pytest.mark.parametrize("sink", ["transactional", "idempotent"])
def test_effectively_once_neither_loses_nor_doubles(sink):
    assert promised("effectively once", sink, range(4)) == [0, 0, 0, 0]


def test_a_plain_sink_doubles_though_the_state_is_exact():
    doubled, lost, more, less = promised("effectively once", "plain", range(2))
    assert doubled and not lost and not more and not less


def test_at_least_once_doubles_and_never_loses():
    doubled, lost, _, less = promised("at least once", None, range(2))
    assert doubled and not lost and not less


def test_at_most_once_loses_and_never_doubles():
    doubled, lost, more, less = promised("at most once", None, range(2))
    assert lost and less and not doubled and not more


@pytest.mark.nightly
def test_the_guarantees_hold_in_hundreds_of_storms():
    for sink in ("transactional", "idempotent"):
        assert promised("effectively once", sink, range(300)) == [0, 0, 0, 0]
    assert promised("at least once", None, range(100))[1::2] == [0, 0]
    assert promised("at most once", None, range(100))[::2] == [0, 0]
    assert promised("at least once", None, range(100))[2]  # the state, too


def test_a_run_is_deterministic_and_the_truth_that_of_one_plain_loop():
    job, records = word_count_job(partitions=3, workers=3, **FAST), lines(60)
    clients, faults = job.clients(records, pause_s=0.01), [Crash(6, 0.05, 0.06)]
    outcome = network.simulate(job, job.nodes, clients, faults=faults, twice=True)
    words = " ".join(records).split()
    result = job.result(outcome)
    assert result.output == {word: words.count(word) for word in set(words)}
    assert truth([], flat_map=str.split) == {}


def test_a_batch_is_a_stream_that_ends():
    job = word_count_job(**FAST, input=tuple([lines(20)[p::2]] for p in range(2)))
    result, _ = run(job, [], seed=1)  # what waits has nothing to wait for
    outcome = network.simulate(job, job.nodes, until_s=0.3)
    assert job.result(outcome).output.total() == 80 and result.truth.total() == 80


# event time


def timed(job, *partitions, **how):
    """Run a windowed job on events for each partition."""
    return run(job, partitions, by_partition=True, **how)


EVENTS = [[1, "a"], [14, "a b"], [9, "a"], [31, "c"], [2, "late"], [40, "end"]]
OTHER = [[2, "b"], [5, "b"], [12, "b"], [30, "b"], [33, "b"], [41, "end"]]


def test_windows_are_put_out_as_the_watermark_passes_and_late_events_go_aside():
    job = word_count_job(window_s=10, workers=1, idle_s=9, **FAST)
    result, outcome = timed(job, EVENTS, OTHER, batch=1, pause_s=0.02)
    operator = outcome.nodes[4]
    assert operator.watermark == 40 and operator.late == {("late", 0): 1}
    assert result.output[("b", 0)] == 2 and result.output[("b", 10)] == 2
    assert result.output[("a", 0)] == 2 and result.output[("a", 10)] == 1
    open_ = {("end", 40): 2}  # the watermark has not passed its end
    assert result.truth - result.output == {("late", 0): 1, **open_}


def test_a_window_is_put_out_again_for_an_event_within_the_allowed_lateness():
    events = [[1, "a"], [15, "x"], [3, "a"], [26, "x"], [4, "a"], [60, "x"]]
    for lateness_s, counted in ((0, 1), (10, 2), (20, 3)):
        job = word_count_job(1, 1, window_s=10, lateness_s=lateness_s, **FAST)
        result, outcome = timed(job, events, batch=1, pause_s=0.02)
        late = outcome.nodes[3].late.get(("a", 0), 0)
        assert (result.output["a", 0], late) == (counted, 3 - counted)


def test_disorder_within_its_bound_makes_nothing_late():
    events = [[t + d, "a"] for t in range(0, 60, 3) for d in (4, 0, 2)]
    for disorder_s, some in ((6, False), (0, True)):
        job = word_count_job(1, 2, window_s=5, disorder_s=disorder_s, **FAST)
        _, outcome = timed(job, events, batch=2)
        assert any(outcome.nodes[n].late for n in job.operators) == some


def test_a_silent_partition_stops_time_until_it_is_idle():
    lists = [[t, "a"] for t in range(0, 80, 10)], [[1, "b"]]
    for idle_s, fired in ((0.03, 70), (9, 1)):
        job = word_count_job(2, 1, window_s=10, idle_s=idle_s, **FAST)
        _, outcome = run(job, lists, by_partition=True, batch=1, pause_s=0.02)
        assert outcome.nodes[4].watermark == fired


def test_records_that_are_no_text_are_counted_and_go_no_further():
    job = word_count_job(1, 1, **FAST)
    result, outcome = run(job, ["a b", None, 7, ["x"], "b", {"y": 1}])
    assert result.output == result.truth == {"a": 1, "b": 2}
    assert outcome.nodes[2].malformed == 4


BAD = [None, math.nan, math.inf, -math.inf, -1, 9e18, 10**30, True, "noon", [1], {}]


@pytest.mark.parametrize("time", BAD)
def test_what_is_no_event_time_is_refused(time):
    assert not is_event_time(time)


def test_events_out_of_all_bounds_are_counted_and_move_no_watermark():
    good = [[t, "a"] for t in (1, 5, 12, 25, 31)]
    bad = [[t, "x"] for t in BAD] + ["no pair", 7, None, [1, "a", "b"], [], [1, 2]]
    events = [e for pair in zip(bad, (good * 4)[: len(bad)], strict=True) for e in pair]
    job = word_count_job(1, 1, window_s=10, disorder_s=99, idle_s=9, **FAST)
    result, outcome = timed(job, events, batch=3)
    source, operator = outcome.nodes[2:]
    assert source.malformed == len(bad) and operator.watermark == 31 - 99
    assert not operator.late and {key[0] for key in operator.counts} == {"a"}
    assert result.truth.total() == len(bad)


def test_clocks_that_jump_change_nothing_but_measured_times():
    jumps = [ClockJump(n, 0.02 * n, by) for n, by in ((2, 9e5), (4, -9e5), (5, 3600))]
    job = word_count_job(**FAST)
    result, outcome = run(job, lines(80), faults=jumps)
    assert result.output == result.truth
    for node in job.operators:
        assert all(s >= 0 for s in outcome.nodes[node].blocked_s.values())


# channels and barriers


def test_a_channel_delivers_each_item_once_and_in_order():
    out, into = ChannelOut(1, 1, capacity=2), ChannelIn()
    frames = [out.put(item).message for item in "abcd"]
    assert not out.has_room
    for at in (2, 0, 0, 3, 2, 1, 3):
        into.accept(frames[at].number, frames[at].item)
    assert into.queue == list("abcd") and [into.take(), into.take()] == ["a", "b"]
    into.accept(1, "b")
    assert into.queue == ["c", "d"]
    out.credit(3)
    assert not list(out.resend()) and out.has_room  # it has not waited for long
    assert [effect.message.item for effect in out.resend()] == ["d"]
    out.credit(1)
    assert out.first == 3


def test_a_slow_operator_stops_the_source_and_no_queue_grows():
    records = lines(800)
    for capacity in (2, 6):
        job = word_count_job(
            2,
            1,
            capacity=capacity,
            work_s=0.01,
            every_s=0.1,
            input=tuple([[r] for r in records[p::2]] for p in range(2)),
        )
        outcome = network.simulate(job, job.nodes, until_s=0.5)
        operator, sources = outcome.nodes[4], [outcome.nodes[n] for n in job.sources]
        longest = max(length for _, length in operator.queued)
        assert capacity <= longest <= 2 * (capacity + 2)  # and barriers
        assert all(source.offset < 60 for source in sources)


def rows(key, offset=0):
    return Rows(0, offset, (key,), (1,), -math.inf)


def test_an_input_is_blocked_until_the_slowest_barrier_and_no_longer():
    job = word_count_job(2, 1)
    operator = job(4, (0, 1, 2, 3))
    operator.attempt = 1
    list(operator.on_synced(("deploy", 1)))
    items = {2: iter(range(9)), 3: iter(range(9))}

    def take(at_s, source, item):
        operator.clock_s = at_s
        return list(
            operator.on_message(source, ChannelFrame(1, next(items[source]), item))
        )

    take(1, 2, rows("a"))
    take(2, 2, Barrier(1))
    assert not take(3, 2, rows("b", 1)) and operator.counts == {"a": 1}
    take(5, 3, rows("c"))  # its barrier has not come
    assert operator.counts == {"a": 1, "c": 1}
    saved = [e for e in take(8, 3, Barrier(1)) if type(e) is Save]
    assert saved[0].value.state["counts"] == {"a": 1, "c": 1}
    assert operator.counts == {"a": 1, "c": 1, "b": 1}  # what had waited
    assert operator.blocked_s == {2: 6.0, 3: 0.0}


# damage and mistakes


def test_a_task_whose_disk_is_lost_says_that_the_job_cannot_go_on():
    job = word_count_job(**FAST)
    faults = [Crash(4, 0.08, 0.09, "disk")]
    with pytest.raises(NodeFailed, match="node 4 has no snapshot of it: its disk was"):
        run(job, lines(200), faults=faults)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"guarantee": "exactly once"}, "at most once"),
        ({"sink": "kafka"}, "transactional"),
        ({"partitions": 0}, "from 1 to 30"),
        ({"workers": True}, "from 1 to 30"),
        ({"windows": 10}, "windows"),
    ],
)
def test_arguments_that_make_no_sense_are_named(wrong, words):
    with pytest.raises(InvalidArgument, match=words):
        word_count_job(**wrong)


def test_streams_import_neither_numpy_nor_torch_nor_matplotlib():
    code = "import sys, distlab.agree.stream; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not {"numpy", "torch", "matplotlib"} & {*done.stdout.split()}
    assert "distlab.agree.stream.job" in done.stdout
