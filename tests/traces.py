"""Traces made by hand, event by event."""

from distlab.trace import Event, Trace


def message(src, dst, start, end, size=8, step=1, label=""):
    return [
        Event(src, start, end, "send", dst, size, step, label),
        Event(dst, start, end, "recv", src, size, step, ""),
    ]


def point(rank, at, label, kind="mark", end=None):
    return Event(rank, at, at if end is None else end, kind, None, 0, 0, label)


def barrier(rank, start, end, step=1, kind="barrier", label=""):
    return Event(rank, start, end, kind, None, 0, step, label)


def event(rank, start, end, kind, peer=None, size=0, label="", step=1):
    return Event(rank, start, end, kind, peer, size, step, label)


def ring_trace(n, rounds, size=40):
    events = []
    for step in range(rounds):
        for rank in range(n):
            at = step + 0.5 * rank / n, step + 0.6
            label = f"lap, step {step + 1}"
            events.append(event(rank, at[0], at[0], "mark", label=label, step=step))
            for kind, peer in (("send", rank + 1), ("recv", rank - 1)):
                events.append(event(rank, *at, kind, peer % n, size, step=step + 1))
    return Trace(n, events)


def work(worker, start, end, label):
    return Event(worker, start, end, "work", None, 0, 1, label)


def kill(worker, at, label="kill"):
    return Event(worker, at, at, "fault", None, 0, 1, label)


def job(*events, workers=2):
    return Trace(workers, list(events), who="worker")


KILLED = job(
    work(0, 0, 2, "map 0, attempt 1"),
    work(1, 0, 1, "map 1, attempt 1"),
    work(1, 1, 2.5, "map 2, attempt 1, lost"),
    kill(1, 2.6),
    work(0, 2.7, 4, "map 1, attempt 2"),
    work(1, 2.7, 5, "map 2, attempt 2"),
    work(0, 5, 6, "reduce 0, attempt 1"),
)


def sent(src, dst, number, at, arrives, words):
    """Return a node's message; one that is lost has no arrival."""
    label = words if arrives is not None else f"dropped: {words}"
    events = [Event(src, at, at, "send", dst, 0, number, label)]
    if arrives is not None:
        events.append(Event(dst, arrives, arrives, "recv", src, 0, number, words))
    return events
