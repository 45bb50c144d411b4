"""Export of a trace to the format of Perfetto and chrome://tracing.

Source: Google, "Trace Event Format", JSON object format; times are microseconds.
"""

__all__ = ["perfetto_rows"]


def perfetto_rows(trace) -> list[dict]:
    """Return the events of `traceEvents`: a lane per rank, an arrow per message.

    An unfinished event lasts until the trace's end. Slices of one lane must nest, so an
    event that overlaps without nesting, such as a concurrent message, gets a new lane.
    """
    ended = [event.start if event.end is None else event.end for event in trace.events]
    end_s = max([trace.cut_s or 0.0, *ended])
    lanes, rows = _lanes(trace, end_s), [_named("process_name", 0, "world")]
    first = [(rank, rank, trace.name(rank)) for rank in range(trace.world_size)]
    for lane, rank, name in sorted({*lanes.values(), *first}):
        rows.append(_named("thread_name", lane, name))
        rows.append(_sorted(lane, rank))
    rows += [_slice(trace, e, lanes[id(e)][0], end_s) for e in trace.events]
    for number, (send, recv) in enumerate(trace.messages()):
        if send and recv and recv.end is not None and send.start <= recv.end:
            rows.append(_flow("s", number, lanes[id(send)][0], send.start))
            rows.append(_flow("f", number, lanes[id(recv)][0], recv.end))
    return rows


def _lanes(trace, end_s):
    """Return (lane, rank, name) for each event, by its id."""
    lanes, busy = {}, {}

    def lasts(event):
        end = end_s if event.end is None else event.end
        return event.start, -max(event.start, end)

    for event in sorted(trace.events, key=lasts):
        start, end = event.start, -lasts(event)[1]
        stacks = busy.setdefault(event.rank, [])
        number = _free_lane(stacks, start, end)
        if event.kind in ("mark", "fault"):
            number = 0
        else:
            stacks[number].append(end)
        name = trace.name(event.rank) + (f" (lane {number + 1})" if number else "")
        lane = event.rank + number * trace.world_size
        lanes[id(event)] = lane, event.rank, name
    return lanes


def _free_lane(stacks, start, end):
    """Return the first lane in which a slice nests; open a new one if there is none."""
    for number, open_ends in enumerate(stacks):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if not open_ends or end <= open_ends[-1]:
            return number
    stacks.append([])
    return len(stacks) - 1


def _named(what, lane, name):
    return {"ph": "M", "name": what, "pid": 0, "tid": lane, "args": {"name": name}}


def _sorted(lane, rank):
    args = {"sort_index": rank}
    return {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": lane, "args": args}


def _slice(trace, event, lane, end_s):
    row = {
        "pid": 0,
        "tid": lane,
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
        if trace.who == "node":
            row["name"] = f"{event.label or event.kind} {way} {trace.name(event.peer)}"
        row["args"] |= {"peer": event.peer, "bytes": event.bytes}
    end = end_s if event.end is None else event.end
    return row | {"ph": "X", "dur": max(0.0, end - event.start) * 1e6}


def _flow(phase, number, lane, time_s):
    row = {"ph": phase, "id": number, "pid": 0, "tid": lane, "ts": time_s * 1e6}
    row |= {"cat": "message", "name": "message"}
    return row | ({"bp": "e"} if phase == "f" else {})
