"""Histories in which an early choice is wrong, and no answer tells for many rounds.

    round 0             then reads begin               rounds 1 to 6          round 7
    a b c d at once ──▶ of b, under way to the end ──▶ some of a c d e f  ──▶ b again
                        of round 6; of a and c,        at once, in each
                        mostly for a round or two

The last write of round 0 has to be that of b, since nobody writes b again in time. Who
believes in another one finds no mistake before the end of round 6, and without a memory
tries all orders of the rounds up to there: 3! or 4! for each. The places where one can
be are few, since what is done of a round does not depend on its order. Up to three such
reads are under way at a time, about seven in a history, and whoever guesses has to
guess all of them. Nothing but the draw says which write is the last: it may start, end
and be read before or after the others.

In some a second value is missing as well, and a write that was never answered is there
to be read instead; it may not be used up before. In a history that is wrong this one
wrote something else.

Source: searches that find the same failure again and again thrash (Mackworth,
Consistency in Networks of Relations, 1977). For histories, a memory of places is the
remedy of Lowe, Testing for Linearizability, 2017.
"""

from distlab.trace import Operation

__all__ = ["thrashing"]

_ROUNDS, _SIZES, _VALUES = (15, 16), (3, 4), 15
_OPEN, _MISSING = 3, (6, 7)  # reads of missing values at a time; for so many rounds
_LONG_DECOYS, _CHECKED = 0.1, 0.3


def thrashing(draw, right: bool) -> list[Operation]:
    """Return a history of 65 to 100 operations that is linearizable, or is not.

    draw: a source of random numbers; no two histories have much in common.
    """
    plan = _Plan(draw, right)
    while len(plan.rounds) < plan.count:
        plan.add_round()
    operations = [*plan.timed()]
    if plan.rescued is not None:
        value = plan.rescued if right else draw.choice(plan.harmless)
        start = draw.choice(operations[: len(operations) // 4]).start
        operations.append(_write(value, start, None, "unknown"))
    return _with_clients(draw, operations)


class _Plan:
    """Who writes and reads what, by rounds, without moments.

    rounds: the values that are written at once. reads: (value, the round after which it
    begins, the round after which it ends). missing_until: value -> the last round in
    which nobody writes it. due: value -> the round that has to write it again, for the
    sake of a read. rescued: the value that is read of the unanswered write. harmless:
    values that are no substitute for it.
    """

    def __init__(self, draw, right):
        self.draw = draw
        self.values = draw.sample(range(1, 100), _VALUES)
        self.count = draw.choice(_ROUNDS)
        self.rounds, self.reads = [], []
        self.missing_until, self.due = {}, {}
        self.rescued, self.harmless = None, []
        rescues = not right or draw.random() < 0.5
        self._rescue_in = draw.randrange(2) if rescues else None

    def add_round(self):
        """Add writes, and the reads that begin after them."""
        draw, number = self.draw, len(self.rounds)
        written = self._values_of(number)
        self.rounds.append(written)
        last, *others = draw.sample(written, len(written))
        wait = [until for until in self.missing_until.values() if until > number]
        if number == self.count - 1:
            self.reads.append((last, number, number))
        elif len(wait) < _OPEN and number < self.count - 3:
            until = self._not_after(number + draw.choice(_MISSING))
            self._read_while_missing(last, until)
            if number == self._rescue_in:
                self.rescued = others.pop()
                self._read_while_missing(self.rescued, until)
                self.harmless = [v for v in self.values if v not in written]
            self._read_decoys(others[:2], until)
        else:
            if draw.random() < _CHECKED:
                self._read_while_missing(last, number + draw.choice((0, 0, 1)))
            self._read_decoys(others[: draw.choice((0, 1))])

    def _values_of(self, number):
        """Return what a round writes: what is due, what comes back, and others."""
        draw = self.draw
        able = [v for v in self.values if self.missing_until.get(v, -1) < number]
        written = [v for v, when in self.due.items() if when == number]
        size = max(draw.choice(_SIZES) if number else max(_SIZES), len(written))
        back = [v for v in able if v in self.missing_until and v not in written]
        if back and len(written) < size:
            written.append(draw.choice(back))
        rest = [v for v in able if v not in written]
        written += draw.sample(rest, size - len(written))
        for value in written:
            self.due.pop(value, None)
        draw.shuffle(written)
        return written

    def _read_while_missing(self, value, until):
        self.missing_until[value] = until
        self.reads.append((value, len(self.rounds) - 1, until))

    def _read_decoys(self, values, until=None):
        """Have values read that are soon written again: these reads decide nothing.

        until: the round after which some of these reads end, about.
        """
        draw, number = self.draw, len(self.rounds) - 1
        for value in values:
            when = self._not_after(number + draw.choice((1, 1, 2)))
            if list(self.due.values()).count(when) == min(_SIZES):
                continue
            self.due[value] = end = when
            if until and draw.random() < _LONG_DECOYS:
                end = self._not_after(until + draw.choice((-1, 0, 1)))
            self.reads.append((value, number, end))

    def _not_after(self, number):
        return min(number, self.count - 1)

    def timed(self):
        """Yield the operations by their starts, with moments, and without clients.

        In each round all writes start, then all end, then reads start, and then reads
        end; among those that do the same, moments may be the same.
        """
        draw, moment, started, ended = self.draw, 0, {}, {}
        for number, values in enumerate(self.rounds):
            writes = [(value, number) for value in values]
            begin = [read for read in self.reads if read[1] == number]
            over = [read for read in self.reads if read[2] == number]
            steps = (started, writes), (ended, writes), (started, begin), (ended, over)
            for moments, which in steps:
                moment += draw.choice((1, 1, 2, 5))
                for one in draw.sample(which, len(which)):
                    moment += draw.choice((0, 1, 1, 2))
                    moments[one] = float(moment)
        for one, start in started.items():
            if len(one) == 2:
                yield _write(one[0], start, ended[one], "ok")
            else:
                when = start, ended[one]
                yield Operation(None, "read", None, None, *when, "ok", one[0])


def _write(value, start, end, outcome):
    return Operation(None, "write", None, value, start, end, outcome)


def _with_clients(draw, operations):
    """Return operations by their starts, each of a client that is free then."""
    draw.shuffle(operations)
    operations.sort(key=lambda one: one.start)
    busy_until, clients = [], []
    for one in operations:
        free = [c for c, until in enumerate(busy_until) if until < one.start]
        client = draw.choice(free) if free else len(busy_until)
        busy_until[client : client + 1] = [one.start if one.end is None else one.end]
        clients.append(client)
    names = draw.sample(range(len(busy_until)), len(busy_until))
    return [
        one._replace(client=names[client])
        for one, client in zip(operations, clients, strict=True)
    ]
