"""A trace in the format that Perfetto and chrome://tracing open.

Source: Google, "Trace Event Format", JSON object format; times are microseconds.
"""

__all__ = ["perfetto_rows"]


def perfetto_rows(trace) -> list[dict]:
    """Return the events of `traceEvents`: a lane per rank, an arrow per message."""
    rows = [_named("process_name", 0, "world")]
    for rank in range(trace.world_size):
        rows.append(_named("thread_name", rank, f"rank {rank}"))
        rows.append(_sorted(rank))
    rows += [_slice(event, trace.duration_s()) for event in trace.events]
    for number, (send, recv) in enumerate(trace.messages()):
        if send and recv and recv.end is not None:
            rows.append(_flow("s", number, send.rank, send.start))
            rows.append(_flow("f", number, recv.rank, recv.end))
    return rows


def _named(what, rank, name):
    return {"ph": "M", "name": what, "pid": 0, "tid": rank, "args": {"name": name}}


def _sorted(rank):
    args = {"sort_index": rank}
    return {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": rank, "args": args}


def _slice(event, duration_s):
    row = {
        "pid": 0,
        "tid": event.rank,
        "ts": event.start * 1e6,
        "cat": event.kind,
        "name": event.label or event.kind,
        "args": {"step": event.step},
    }
    if event.kind in ("mark", "fault"):
        return row | {"ph": "i", "s": "t"}
    if event.peer is not None:
        way = "to" if event.kind == "send" else "from"
        row["name"] = f"{event.kind} {way} {event.peer}"
        row["args"] |= {"peer": event.peer, "bytes": event.bytes}
    end = duration_s if event.end is None else event.end
    return row | {"ph": "X", "dur": max(0.0, end - event.start) * 1e6}


def _flow(phase, number, rank, time_s):
    row = {"ph": phase, "id": number, "pid": 0, "tid": rank, "ts": time_s * 1e6}
    row |= {"cat": "message", "name": "message"}
    return row | ({"bp": "e"} if phase == "f" else {})
