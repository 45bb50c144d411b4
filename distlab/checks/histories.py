"""Histories to judge: eight to be told apart by hand, random ones, and hard ones."""

from random import SystemRandom

from distlab.trace import Operation

__all__ = ["EIGHT_HISTORIES", "drawn", "hard", "operation"]

random = SystemRandom()


def operation(client, op, key, said, start, end):
    """Return one with a response; said: what was written, or what was read."""
    value, result = (said, None) if op == "write" else (None, said)
    return Operation(
        int(client), op, key, value, float(start), float(end), "ok", result
    )


def _history(line):
    words = [one.split() for one in line.split(", ")]
    read = [[*w[:3], None if w[3] == "None" else int(w[3]), *w[4:]] for w in words]
    return tuple(sorted((operation(*w) for w in read), key=lambda one: one.start))


EIGHT_HISTORIES = {
    "A": "0 write x 1 0 9, 2 write x 2 1 8, 1 read x 2 2 3, 1 read x 1 4 5, "
    "2 read x 1 10 11",
    "B": "0 write x 1 0 1, 0 write x 2 2 9, 2 read x 1 3 6, 1 read x 2 4 5, "
    "1 read x 2 7 8",
    "C": "0 write x 1 0 1, 0 write x 2 2 3, 1 read x 1 4 5, 1 read x 2 6 7",
    "D": "0 write x 1 0 1, 0 write x 2 2 9, 1 read x 2 3 4, 2 read x 1 5 6, "
    "2 read x 2 7 8",
    "E": "0 write x 1 0 2, 1 write x 2 1 3, 2 read x 1 4 6, 3 read x 2 5 7, "
    "2 read x 2 8 10, 3 read x 1 9 11",
    "F": "0 write x 1 0 2, 1 write y 1 1 3, 0 read y None 4 6, 1 read x None 5 7, "
    "0 read y 1 8 10, 1 read x 1 9 11",
    "G": "0 write x 1 0 1, 1 read x 1 2 3, 1 write y 2 4 5, 2 read y 2 6 7, "
    "2 read x None 8 9, 2 read x 1 10 11",
    "H": "0 write x 1 0 1, 0 write x 2 2 3, 1 read x 2 4 5, 2 read x 2 4 7, "
    "1 read x 1 6 8",
}
EIGHT_HISTORIES = {name: _history(line) for name, line in EIGHT_HISTORIES.items()}


def drawn(most, unknown):
    """Draw a history of one register; in most of them one read returns another value.

    Times are small whole numbers, so that many are equal.
    """
    free, effects = [0] * random.choice((1, 2, 3, 4, 5)), []
    for _ in range(most - random.randrange(5)):
        client, op = random.randrange(len(free)), random.choice(("read", "write"))
        start = free[client] + random.randrange(3)
        end = late = start + random.choice((1, 2, 3, 5, 8))
        free[client] = end + 1
        one = operation(client, op, None, random.randint(1, most), start, end)
        if random.random() < 1.5 * unknown:
            one = one._replace(outcome=random.choice(("failed", "unknown", "unknown")))
        if one.outcome == "unknown":
            one, late = one._replace(end=None), start + random.choice((1, 3, 9, 30))
        point = random.choice((start, late, random.uniform(start, late)))
        effects.append((point, random.random(), one))
    operations, value = [], None
    for *_, one in sorted(effects):
        if one.op == "read":
            one = one._replace(result=value if one.outcome == "ok" else None)
        elif one.outcome == "ok" or (one.end is None and random.random() < 0.6):
            value = one.value
        operations.append(one)
    reads = [n for n, o in enumerate(operations) if (o.op, o.outcome) == ("read", "ok")]
    if reads and random.random() < 0.7:
        n, values = random.choice(reads), [None, *{one.value for one in operations}]
        operations[n] = operations[n]._replace(result=random.choice(values))
    return sorted(operations, key=lambda one: one.start)


def hard(right):
    """Return a history in which an early choice can be wrong and shows at the very end.

    In each of nine rounds five clients write at once, and then one reads. A read of the
    first round's value and a write, read at the end if it is right, overlap them all.
    """
    history = [operation(5, "write", None, 99, -1, 89)]
    history.append(operation(6, "read", None, 2, -1, 89))
    for first, at in zip(range(0, 45, 5), range(0, 90, 10), strict=True):
        for client in random.sample(range(5), 5):
            history.append(operation(client, "write", None, first + client, at, at + 5))
        history.append(operation(0, "read", None, first + 2, at + 6, at + 7))
    return [*history, operation(0, "read", None, 99 if right else 0, 90, 91)]
