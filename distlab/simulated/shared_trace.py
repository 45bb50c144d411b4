"""`SimulatedBoard`: a simulated run's records, for the diagnosis of a failure."""

from collections.abc import Mapping
from functools import cached_property

from distlab.recorder import IN, OUT, Now, any_words
from distlab.simulated.engine import AnyOp, Engine
from distlab.simulated.event_table import SimulatedTrace
from distlab.simulated.payloads import Box
from distlab.trace import Event, members_of

__all__ = ["SimulatedBoard"]


class SimulatedBoard:
    """A view of a simulated run with the methods of `distlab.recorder.SharedTrace`."""

    def __init__(self, engine: Engine):
        self.world_size = engine.world_size
        self._engine = engine
        self._names = engine.table.groups

    @cached_property
    def _moved(self):
        return self._engine.table.counts()

    @cached_property
    def _pending(self):
        """Each side without a partner: op, way, peer, number of the message, bytes."""
        found = []
        for way, sides in ((OUT, self._engine.sends), (IN, self._engine.recvs)):
            for pair, waiting in _by_pair(sides):
                for place, (op, thing) in enumerate(waiting, 1):
                    number = self._moved.get(pair, 0) + place
                    size = 0 if isinstance(thing, Box) else thing.nbytes
                    found.append((op, way, pair[way == OUT], number, size))
        return found

    def now(self, rank: int) -> Now:
        """Return the current state of `rank`."""
        engine, op = self._engine, self._beneath(rank, self._engine.current[rank])
        if op is None:
            return Now("running", "mark", *[-1] * 5, 0, 0, engine.steps[rank], "", 0.0)
        now_s, step = engine.clock.now, engine.steps[rank]
        if op.kind == "any":
            label, where = self._any_of(rank, op), [-1] * 5
            return Now("blocked", "any", *where, 0, 0, step, label, now_s)
        sides = {way: (n, size) for o, way, _, n, size in self._pending if o is op}
        number_out, bytes_out = sides.get(OUT, (0, 0))  # 0: it has been handed over
        number_in, bytes_in = sides.get(IN, (0, 0))
        group = self._names[op.group]
        call = self.calls(rank, group) if op.kind == "barrier" else -1
        return Now(
            "blocked", op.kind, op.to, number_out, op.source, number_in, call,
            bytes_out, bytes_in, step, "", now_s, group,
        )  # fmt: skip

    def _beneath(self, rank, op):
        """Return the operation of the started collective that `op` waits for, or it."""
        groups = set()
        while op is not None and op.kind == "start" and op.group not in groups:
            groups.add(op.group)  # a collective may wait for itself
            op = self._engine.current[self._engine.besides[rank, op.group]]
        return op

    def _any_of(self, rank, op):
        """Return the messages each of which would free a rank, as `any_words` does."""
        if isinstance(op, AnyOp):
            ops = [self._beneath(rank, each) for each in op.ops]
            waits = [
                (p, w, n, self._names[o.group])
                for o, w, p, n, _ in self._pending
                if o in ops
            ]
            return any_words("wait_any", waits)
        group = self._names[op.group]
        members = members_of(group, self.world_size)
        others = [peer for peer in members if peer != rank]
        posted = [self.posted(rank, peer, IN, group) for peer in others]
        waits = [(p, IN, n + 1, group) for p, n in zip(others, posted, strict=True)]
        return any_words("recv_any", waits)

    def posted(self, rank: int, peer: int, way: int, group: str = "") -> int:
        """Return the number of messages `rank` posted to (OUT) or from (IN) `peer`."""
        src, dst = (rank, peer) if way == OUT else (peer, rank)
        waiting = self._engine.sends if way == OUT else self._engine.recvs
        number = self._names.index(group)
        waiting = waiting[src].get((dst, number) if number else dst, ())
        return self._moved.get((src, dst, number), 0) + len(waiting)

    def groups(self, rank: int) -> dict[str, int]:
        """Return the groups of `rank`."""
        names = enumerate(self._names)
        return {g: n for n, g in names if rank in members_of(g, self.world_size)}

    def calls(self, rank: int, group: str = "") -> int:
        """Return the number of collectives of a group that `rank` has entered."""
        return len(self._engine.meetings[rank, self._names.index(group)])

    def call(self, rank: int, number: int, group: str = "") -> str:
        """Return the name of the `number`-th collective of `rank` in a group."""
        return self._engine.meetings[rank, self._names.index(group)][number - 1]

    def passes(self, rank: int) -> int:
        """Return 0: a simulated backward has collectives of Comm only."""
        return 0

    def flags(self, rank: int) -> int:
        """Return 0: a simulated rank has one thread and no process group."""
        return 0

    def trace(
        self, *, cut: bool = False, ended: Mapping[int, tuple] | None = None
    ) -> SimulatedTrace:
        """Return the trace, unfinished events included; see `SharedTrace.trace`."""
        engine = self._engine
        unfinished = [
            Event(op.rank, op.since, None, "send" if way == OUT else "recv", peer,
                  max(0, size), engine.steps[op.rank], "", self._names[op.group])
            for op, way, peer, _, size in self._pending
        ]  # fmt: skip
        for op in engine.in_meetings():
            where = (op.rank, op.since, None, "barrier", None, 0, engine.steps[op.rank])
            unfinished.append(Event(*where, "", self._names[op.group]))
        for rank, (_, how) in (ended or {}).items():
            if how != "died":  # its own fault is in the table
                now = engine.clock.now
                unfinished.append(Event(rank, now, now, "fault", None, 0, 0, how))
        return SimulatedTrace(
            engine.table, unfinished, engine.clock.now if cut else None
        )


def _by_pair(sides):
    """Yield ((src, dst, number of the group), list of the sides that wait there)."""
    for src, to in enumerate(sides):
        for at, waiting in to.items():
            dst, group = at if isinstance(at, tuple) else (at, 0)
            yield (src, dst, group), waiting
