"""torch.profiler: PyTorch's own training, as events in the lanes of a timeline.

    def one_step(comm):
        model = DistributedDataParallel(...)
        with profiled(comm) as profile:
            loss_of(model(x)).backward()
        return profile

    timeline(trace_of_profiles(run(one_step, 4)))

DDP and FSDP2 use the process group without `Comm`, so a run's own trace has no events
of theirs. PyTorch's profiler does: it records each operation that autograd evaluates,
on the rank's thread, and each collective that gloo runs, on threads of its own.

    rank 0   forward     ▒ all_reduce ▒     ▒▒▒ all_reduce ▒▒▒     gloo
                     ▬▬▬▬▬▬▬▬ backward ▬▬▬▬▬▬▬▬                    autograd

Here backward lasts from its first operation to its last. A call of `backward()` on DDP
lasts longer: it returns once the last bucket has arrived.
"""

import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function

from distlab.trace import Event, Trace
from distlab.units import readable_bytes

__all__ = ["Profile", "profiled", "trace_of_profiles"]

_CLOCK = "distlab.clock"
_EVALUATES = "autograd::engine::evaluate_function: "
_STEPS = "Optimizer.step#"
_DDP_FORWARD = "DistributedDataParallel.forward"
_ITEM_BYTES = {"float": 4, "double": 8, "c10::BFloat16": 2, "c10::Half": 2}


@dataclass
class Profile:
    """Events of one rank from PyTorch's profiler, in seconds of its monotonic clock."""

    events: list[Event] = field(default_factory=list)


@contextmanager
def profiled(comm) -> Iterator[Profile]:
    """Profile the body, which all ranks begin together; fill the yielded Profile after.

    It has "collective" events, with the bytes of their tensor, and "work" events: each
    backward, DDP's forward, the steps of optimizers, and the blocks that the body names
    with `torch.profiler.record_function`.
    """
    found, moments = Profile(), []
    record = profile(activities=[ProfilerActivity.CPU], record_shapes=True)
    with _stderr_closed():
        record.start()
    try:
        dist.group.WORLD.barrier().wait()
        yield found
        for _ in range(10):
            with record_function(_CLOCK):
                moments.append(time.monotonic_ns())
    finally:
        with _stderr_closed():
            record.stop()
    noted = sorted(record.profiler.kineto_results.events(), key=lambda e: e.start_ns())
    ahead_ns = _ahead_ns([e for e in noted if e.name() == _CLOCK], moments)
    for kind, label, *times_ns in [*_named(noted), *_backwards(noted)]:
        times = ((time_ns - ahead_ns) / 1e9 for time_ns in times_ns)
        found.events.append(Event(comm.rank, *times, kind, None, 0, 0, label))


def trace_of_profiles(report) -> Trace:
    """Return the trace of a run in which every rank returned its `Profile`.

    Its clock starts with the first event. report: the run's, or the list of profiles in
    the order of ranks.
    """
    profiles: Sequence[Profile] = getattr(report, "results", report)
    events = [event for each in profiles for event in each.events]
    first = min((event.start for event in events), default=0.0)
    moved = [e._replace(start=e.start - first, end=e.end - first) for e in events]
    return Trace(len(profiles), moved)


@contextmanager
def _stderr_closed() -> Iterator[None]:
    """Redirect stderr to /dev/null: the profiler logs a line at its start and its end.

    It does so in C++, whatever level its logger is set to.
    """
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _ahead_ns(noted, moments):
    """Return the lead of the profiler's clock over the monotonic one, in ns.

    Each moment was read during one of the noted events; the shortest one is used.
    """
    pairs = zip(noted, moments, strict=True)
    event, moment = min(pairs, key=lambda pair: pair[0].duration_ns())
    return event.start_ns() + event.duration_ns() // 2 - moment


def _named(noted):
    """Return (kind, label, start ns, end ns) of collectives and of named work."""
    found = []
    for event in noted:
        name, times = event.name(), (event.start_ns(), event.end_ns())
        if not event.is_user_annotation() or name in (_CLOCK, "gloo:barrier"):
            continue
        if name.startswith("gloo:"):
            label = f"{name.removeprefix('gloo:')} {_size(event)}".strip()
            found.append(("collective", label, *times))
        elif name.startswith(_STEPS):
            found.append(("work", "step", *times))
        elif name == _DDP_FORWARD:
            found.append(("work", "forward", *times))
        elif not any(sign in name for sign in ":#"):  # those are PyTorch's own
            found.append(("work", name, *times))
    return found


def _size(event):
    """Return the bytes of a collective's tensors, in words, if their type is known."""
    shapes, types = event.shapes(), event.dtypes()
    if not shapes or not set(types) <= _ITEM_BYTES.keys():
        return ""
    pairs = zip(shapes, types, strict=True)
    return readable_bytes(sum(math.prod(s) * _ITEM_BYTES[t] for s, t in pairs))


def _backwards(noted):
    """Return (kind, label, start ns, end ns) of each backward.

    Autograd's engine evaluates one node after another, and DDP's hooks run as part of
    that, after the node itself. Any event outside of an evaluation ends a backward.
    """
    found, node, until, running = [], "", 0, False
    threads = {e.start_thread_id() for e in noted if e.name() == _CLOCK}
    for event in noted:
        name, start = event.name(), event.start_ns()
        if event.start_thread_id() not in threads:
            continue
        if name.startswith(_EVALUATES):
            if not running:
                found.append(["work", "backward", start, start])
            node, until, running = name.removeprefix(_EVALUATES), event.end_ns(), True
        elif start >= until:
            running = False
        elif name == node:
            found[-1][-1] = event.end_ns()
    return found
