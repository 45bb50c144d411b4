"""Histories of one register to try a checker on: short ones, long ones, nasty ones.

Each is made by a register that is right: every operation takes effect at a moment of
its own between its start and its end. Most are spoiled afterwards, in one answer or in
two. Times are small whole numbers, so that many are the same.
"""

from distlab.grading.salt import salted
from distlab.trace import Operation

__all__ = ["long", "nasty", "short"]

_LENGTHS = 1, 2, 3, 5, 8
_READS, _AGAIN, _SPOILED = 0.55, 0.25, 0.7


def short(seed: object, count: int, unknown: float) -> list[list[Operation]]:
    """Return histories of up to 6 operations by up to 4 clients, the shortest first.

    unknown: the share of calls that were never answered.
    """
    draw = salted("histories", seed)
    histories = [[]]
    while len(histories) < count:
        size, clients = draw.choice((2, 3, 4, 4, 5, 5, 6)), draw.choice((1, 2, 3, 3, 4))
        histories.append(_history(draw, size, clients, unknown))
    return sorted(histories, key=len)


def long(
    seed: object, count: int, size: int, clients: int, unknown: float
) -> list[list[Operation]]:
    """Return histories of many operations."""
    draw = salted("histories", seed)
    return [_history(draw, size, clients, unknown) for _ in range(count)]


def nasty(
    rounds: int, clients: int, lost: int = 0, right: bool = False
) -> list[Operation]:
    """Return a history in which only the last answer is wrong, or hard to explain.

    In each round all clients write at once, and then one reads what one of them wrote:
    before the last answer is tried there are ((clients - 1)!) ** rounds orders.
    lost: how many writes at the beginning were never answered. right: two operations
    overlap all others, a write that takes effect last and a read that does so early; a
    search that puts the write first, or the read last, finds out only at the end.
    """
    operations = [
        Operation(clients, "write", None, -number, -number, None, "unknown")
        for number in range(lost, 0, -1)
    ]
    for number in range(rounds):
        start = 10.0 * number
        values = [number * clients + client + 1 for client in range(clients)]
        for client, value in enumerate(values):
            when = start + client / 10, start + 5 + client / 10
            operations.append(Operation(client, "write", None, value, *when, "ok"))
        read = values[(number + 2) % clients]
        when = start + 7, start + 8
        operations.append(Operation(0, "read", None, None, *when, "ok", read))
    last, late = 10.0 * rounds, 1
    if right:
        late = 1000
        always = -1.0, last - 0.5
        seen = operations[clients].result
        operations = [
            Operation("w", "write", None, late, *always, "ok"),
            *operations,
            Operation("r", "read", None, None, *always, "ok", seen),
        ]
    operations.append(Operation(1, "read", None, None, last, last + 1, "ok", late))
    return sorted(operations, key=lambda one: one.start)


def _history(draw, size, clients, unknown):
    """Return what clients saw of a register, and mostly also what they did not see."""
    free = [draw.choice((0, 0, 1, 2, 3)) for _ in range(clients)]
    written, moments = [], []
    for _ in range(size):
        client = draw.randrange(clients)
        start = float(free[client])
        end = start + draw.choice(_LENGTHS)
        free[client] = end + draw.choice((1, 1, 2))
        one = _operation(draw, client, written, (start, end))
        outcome = _outcome(draw, unknown)
        if outcome == "unknown":
            one = one._replace(end=None)
            end = start + draw.choice((1, 3, 9, 30))
        one = one._replace(outcome=outcome)
        moments.append((draw.choice((start, end, draw.uniform(start, end))), one))
    draw.shuffle(moments)
    moments.sort(key=lambda moment: moment[0])
    operations = list(_seen(draw, [one for _, one in moments]))
    for _ in range(draw.choice((1, 1, 2)) if draw.random() < _SPOILED else 0):
        _spoil(draw, operations, written)
    draw.shuffle(operations)
    return sorted(operations, key=lambda one: one.start)


def _operation(draw, client, written, when):
    if draw.random() < _READS:
        return Operation(client, "read", None, None, *when, "ok")
    value = len(written) + 1
    if written and draw.random() < _AGAIN:
        value = draw.choice(written)
    written.append(value)
    return Operation(client, "write", None, value, *when, "ok")


def _outcome(draw, unknown):
    chance = draw.random()
    if chance < unknown:
        return "unknown"
    return "failed" if chance < 1.5 * unknown else "ok"


def _seen(draw, order):
    """Yield the operations in the order of their moments, with what reads return."""
    value = None
    for one in order:
        if one.outcome == "failed" or (
            one.outcome == "unknown" and draw.random() < 0.4
        ):
            yield one
        elif one.op == "write":
            value = one.value
            yield one
        else:
            yield one._replace(result=value if one.outcome == "ok" else None)


def _spoil(draw, operations, written):
    """Give one read another answer."""
    reads = [place for place, one in enumerate(operations) if _answered_read(one)]
    if reads:
        place = draw.choice(reads)
        value = draw.choice([None, *written, len(written) + 1])
        operations[place] = operations[place]._replace(result=value)


def _answered_read(one):
    return one.op == "read" and one.outcome == "ok"
