"""Traces made by hand, event by event."""

from distlab.trace import Event, Operation, Trace


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


def nodes(*events, size=3, clients=0):
    """Return a trace of `size` in all, the last ones clients."""
    flat = [e for some in events for e in (some if isinstance(some, list) else [some])]
    return Trace(size, flat, who="node", clients=clients)


WRITE = [
    sent(3, 0, 1, 0, 0, "write x 1"),
    sent(0, 1, 2, 0, 2, "store x 1"),
    sent(0, 2, 3, 0, 1, "store x 1"),
    sent(2, 0, 4, 1, 4, "stored x 1"),
    sent(1, 0, 5, 2, 3, "stored x 1"),
    sent(0, 3, 6, 3, 3, "ok"),
]
ONE_LOST = nodes(
    sent(3, 0, 1, 0, 0, "write x 1"),
    sent(0, 1, 2, 0, 1, "store x 1"),
    sent(0, 2, 3, 0, None, "store x 1"),
    sent(1, 0, 4, 1, 2, "stored x 1"),
    sent(0, 3, 5, 2, 2, "ok"),
    size=4,
    clients=1,
)
SPLIT = nodes(
    *WRITE,
    point(0, 5, "partition 0 | 1 2", "fault", 11),
    sent(3, 0, 7, 6, 6, "write x 2"),
    sent(0, 1, 8, 6, None, "store x 2"),
    sent(0, 2, 9, 6, None, "store x 2"),
    sent(4, 2, 10, 7, 7, "read x"),
    sent(2, 1, 11, 7, 8, "value of x"),
    sent(1, 2, 12, 8, 9, "x is 1"),
    sent(2, 4, 13, 9, 9, "1"),
    point(0, 12, "timer retry"),
    sent(0, 1, 14, 12, 13, "store x 2"),
    sent(0, 2, 15, 12, 14, "store x 2"),
    sent(1, 0, 16, 13, 15, "stored x 2"),
    sent(0, 3, 17, 15, 15, "ok"),
    size=5,
    clients=2,
)
CRASHED = nodes(
    *WRITE,
    point(1, 3.5, "crash", "fault"),
    point(1, 6, "restart", "fault"),
    point(1, 6, "follower of term 2"),
    sent(1, 0, 8, 6, 7, "what did I miss?"),
    sent(0, 1, 9, 7, 8, "x is 1"),
    sent(3, 0, 10, 9, 9, "write x 2"),
    [Event(0, 9, 9.5, "send", 1, 0, 11, "dropped: store x 2")],
    sent(0, 2, 12, 9, 10, "store x 2"),
    [Event(2, 11, 11, "recv", 0, 0, 12, "store x 2")],
    sent(2, 0, 13, 10, 12, "stored x 2"),
    sent(0, 3, 14, 12, 12, "ok"),
    size=4,
    clients=1,
)
STALE = nodes(
    sent(3, 0, 1, 0, 0, "write x 1"),
    sent(0, 1, 2, 0, 1, "store x 1"),
    sent(0, 2, 3, 0, None, "store x 1"),
    sent(1, 0, 4, 1, 2, "stored x 1"),
    sent(0, 3, 5, 2, 2, "ok"),
    sent(4, 2, 6, 3, 3, "read x"),
    sent(2, 4, 7, 3, 3, "None"),
    size=5,
    clients=2,
)
NODE_TRACES = {"one lost": ONE_LOST, "split": SPLIT, "crashed": CRASHED, "stale": STALE}


def operation(client, op, value, start, end, result=None, outcome="ok", key="x"):
    """Return an operation; one without an end has no answer."""
    outcome = "unknown" if end is None else outcome
    return Operation(client, op, key, value, start, end, outcome, result)


CUT_OFF = Trace(
    3,
    [
        event(0, 0, 2, "send", 1, 40),
        event(1, 1, 2, "recv", 0, 40),
        event(0, 3, None, "send", 1, 40, step=2),
        event(1, 5, None, "recv", 0, 40, step=2),
        event(2, 4, 4, "fault", label="kill"),
    ],
    cut_s=8,
)
