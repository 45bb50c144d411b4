"""What `to_perfetto` writes keeps the rules of the Trace Event Format.

Source: Google, "Trace Event Format": complete events (X), instants (i), metadata (M)
and flows (s, f); a flow binds to the slice of its thread that encloses it.
"""

import itertools
import json
from collections import Counter
from functools import cache

import pytest
import torch

from distlab import Deadlock, Event, Kill, RankDied, Trace, run
from distlab.collectives import naive_all_reduce, ring_all_reduce

LABEL = 'a "label" </script> \u2028'
NEEDED = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "i": {"name", "pid", "tid", "ts", "s"},
    "s": {"name", "cat", "id", "pid", "tid", "ts"},
    "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
}


def event(rank, start, end, kind, peer=None, size=0, label=""):
    return Event(rank, start, end, kind, peer, size, 1, label)


def ring(comm):
    ring_all_reduce(comm, torch.ones(8))


def star(comm):
    naive_all_reduce(comm, torch.ones(8))
    comm.barrier()
    comm.mark(LABEL)


def requests(comm):
    right, left = (comm.rank + 1) % 3, (comm.rank - 1) % 3
    receiving = comm.irecv(torch.empty(4), left)
    sending = comm.isend(torch.ones(4), right)
    receiving.wait()
    sending.wait()


def deadlock(comm):
    ring(comm)
    comm.recv(torch.ones(1), (comm.rank + 1) % 3)


LATE = [event(0, 5, 6, "send", 1, 8), event(1, 5, 6, "recv", 0, 8)]
LATE += [event(0, 7, None, "recv", 1, 8), event(1, 8, 9, "barrier")]
BACKWARDS = [event(0, 5, 2, "send", 1, 8), event(1, 4, 1, "recv", 0, 8)]
BACKWARDS += [event(0, 6, 7, "send", 1, 8), event(1, 0, 1.5, "recv", 0, 8)]
PAPER = {
    "empty": Trace(2),
    "never ended": Trace(2, LATE),
    "cut": Trace(2, LATE, cut_s=12),
    "clocks backwards": Trace(2, BACKWARDS),
    "half a message": Trace(2, LATE[:1]),
    "no time": Trace(2, [event(0, 0, 0, "send", 1, 4), event(1, 0, 0, "recv", 0, 4)]),
    "fault": Trace(2, [event(1, 3, 3, "fault", label="kill")]),
}


# name -> (function, ranks, how it fails, faults)
REAL = {
    "ring": (ring, 3, None, ()),
    "star": (star, 3, None, ()),
    "requests": (requests, 3, None, ()),
    "alone": (ring, 1, None, ()),
    "deadlock": (deadlock, 3, Deadlock, ()),
    "death": (ring, 3, RankDied, [Kill(1, 3)]),
}


@cache
def trace_of(name):
    """Return a trace on paper, or that of a real run, which is made once."""
    if name in PAPER:
        return PAPER[name]
    fn, n, failure, faults = REAL[name]
    if failure is None:
        return run(fn, n, quiet=True).trace
    with pytest.raises(failure) as raised:
        run(fn, n, quiet=True, faults=faults)
    return raised.value.trace


def written(name, path):
    trace_of(name).to_perfetto(path / "trace.json")
    text = (path / "trace.json").read_text("utf-8")
    file = json.loads(text, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
    assert set(file) == {"traceEvents", "displayTimeUnit"}
    assert file["displayTimeUnit"] in ("ms", "ns")
    return file["traceEvents"]


def of(rows, *phases):
    return [row for row in rows if row["ph"] in phases]


every = pytest.mark.parametrize("name", [*PAPER, *REAL])


@every
def test_every_row_has_the_keys_of_its_phase(name, tmp_path):
    for row in written(name, tmp_path):
        assert NEEDED[row["ph"]] <= set(row)
        assert row["pid"] == 0 and isinstance(row["tid"], int)
        assert isinstance(row["name"], str) and row["name"]
        for key in {"ts", "dur"} & set(row):
            assert isinstance(row[key], float | int) and row[key] >= 0
        assert row.get("s") in (None, "t", "p", "g")
        assert row.get("bp") in (None, "e")


def ranks_of(rows):
    """Return the rank of each thread; what overlaps may have one more of its own."""
    names = {r["tid"]: r["args"]["name"] for r in rows if r["name"] == "thread_name"}
    return {tid: int(name.split()[1]) for tid, name in names.items()}


@every
def test_every_rank_has_a_named_thread_and_its_place_in_order(name, tmp_path):
    rows, n = of(written(name, tmp_path), "M"), trace_of(name).world_size
    ranks = ranks_of(rows)
    assert [ranks[rank] for rank in range(n)] == list(range(n))
    order = [row for row in rows if row["name"] == "thread_sort_index"]
    assert {row["tid"] for row in order} == set(ranks)
    order.sort(key=lambda row: row["args"]["sort_index"])
    in_order = [ranks[row["tid"]] for row in order]
    assert in_order == sorted(in_order)


@every
def test_every_event_is_one_slice_or_instant_where_and_when_it_was(name, tmp_path):
    rows, trace = written(name, tmp_path), trace_of(name)
    points = [e for e in trace.events if e.kind in ("mark", "fault")]
    assert len(of(rows, "i")) == len(points)
    assert len(of(rows, "X")) == len(trace) - len(points)
    ranks = ranks_of(rows)
    found = Counter((ranks[row["tid"]], round(row["ts"])) for row in of(rows, "X", "i"))
    assert found == Counter((e.rank, round(e.start * 1e6)) for e in trace.events)


@every
def test_every_arrow_begins_once_and_ends_once_not_before(name, tmp_path):
    rows, trace = written(name, tmp_path), trace_of(name)
    begins = {row["id"]: row for row in of(rows, "s")}
    ends = {row["id"]: row for row in of(rows, "f")}
    assert len(begins) == len(of(rows, "s")) and len(ends) == len(of(rows, "f"))
    assert set(begins) == set(ends)
    assert all(begins[key]["ts"] <= ends[key]["ts"] for key in begins)
    if trace in (trace_of("ring"), trace_of("star"), trace_of("requests")):
        assert len(begins) == len(trace.messages())


@every
def test_every_end_of_an_arrow_lies_within_a_slice_of_its_thread(name, tmp_path):
    rows = written(name, tmp_path)
    for row in of(rows, "s", "f"):
        kind = "send" if row["ph"] == "s" else "recv"
        assert any(
            s["ts"] - 1e-3 <= row["ts"] <= s["ts"] + s["dur"] + 1e-3
            for s in of(rows, "X")
            if s["tid"] == row["tid"] and s["cat"] == kind
        )


@every
def test_slices_of_a_thread_nest_or_lie_apart(name, tmp_path):
    """Source: Perfetto's FAQ, "overlapping events in JSON traces"."""
    slices = of(written(name, tmp_path), "X")
    for one, other in itertools.permutations(slices, 2):
        if one["tid"] == other["tid"] and one["ts"] < other["ts"]:
            ends = one["ts"] + one["dur"], other["ts"] + other["dur"]
            assert ends[0] <= other["ts"] + 1e-3 or ends[1] <= ends[0] + 1e-3


@pytest.mark.parametrize("name, end_s", [("never ended", 9), ("cut", 12)])
def test_what_never_ended_lasts_until_the_end_of_the_run(name, end_s, tmp_path):
    (stuck,) = [r for r in of(written(name, tmp_path), "X") if r["ts"] == 7e6]
    assert stuck["ts"] + stuck["dur"] == pytest.approx(end_s * 1e6)


def test_a_label_arrives_as_it_was_written(tmp_path):
    names = {row["name"] for row in of(written("star", tmp_path), "i")}
    assert LABEL in names
