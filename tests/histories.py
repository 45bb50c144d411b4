"""Random histories: of a store that does what its model says, and of broken ones."""

import random

from distlab import History, Operation

CALLS = {
    "Register": lambda r: r.choice([("read", None), ("write", r.randrange(3))]),
    "CasRegister": lambda r: r.choice(
        [
            ("read", None),
            ("write", r.randrange(4)),
            ("cas", (r.randrange(4), r.randrange(4))),
        ]
    ),
    "KeyValue": lambda r: r.choice(
        [("read", None), ("write", "b"), ("append", r.choice("abc"))]
    ),
    "Queue": lambda r: r.choice([("dequeue", None), ("enqueue", r.randrange(3))]),
    "Lock": lambda r: r.choice([("acquire", None), ("release", None)]),
    "Set": lambda r: r.choice(
        [(op, r.randrange(2)) for op in ("add", "remove", "contains")]
        + [("read", None)]
    ),
}


def answer(op, value, state):
    """Return (result, next state) of a store that does what it should."""
    if op == "read":
        return (frozenset(state) if isinstance(state, set) else state), state
    if op == "write":
        return None, value
    if op == "cas":
        return state == value[0], value[1] if state == value[0] else state
    if op == "append":
        return None, (state or "") + value
    if op == "enqueue":
        return None, [*state, value]
    if op == "dequeue":
        return (state[0], state[1:]) if state else (None, [])
    if op == "acquire":
        return not state, True
    if op == "release":
        return bool(state), False
    if op == "add":
        return value not in state, state | {value}
    if op == "remove":
        return value in state, state - {value}
    return value in state, state


FRESH = {"Queue": list, "Lock": bool, "Set": set}


def linearizable(
    chance, operations, clients, calls, fresh=lambda: None, unknown=0.0, keys=1
):
    """Return the history of a store in which every operation takes effect at a moment.

    The moments lie in random intervals; an unknown operation may have had none.
    """
    free = dict.fromkeys(range(clients), 0.0)
    planned = []
    for _ in range(operations):
        client = min(free, key=lambda c: free[c] + chance.random() * 0.5)
        start = free[client] + chance.random()
        moment = start + chance.expovariate(2)
        end = moment + chance.expovariate(2)
        lost = chance.random() < unknown
        if lost:
            moment = start + chance.choice([chance.random() * 20, float("inf")])
            end = start + 1
        free[client] = end
        op, value = calls(chance)
        planned.append(
            [moment, client, op, chance.randrange(keys), value, start, end, lost]
        )
    made, states = [], {}
    for moment, client, op, key, value, start, end, lost in sorted(planned):
        if moment < float("inf"):
            state = states[key] if key in states else fresh()
            result, states[key] = answer(op, value, state)
        ending = (None, "unknown", None) if lost else (end, "ok", result)
        made.append(Operation(client, op, f"k{key}", value, start, *ending))
    return History(made)


def corrupted(chance, history, results, changes=1):
    """Return the history with some answers replaced by other results."""
    operations = list(history)
    for _ in range(changes):
        asked = [
            i for i, o in enumerate(operations) if o.outcome == "ok" and o.op in results
        ]
        if asked:
            i = chance.choice(asked)
            result = chance.choice(results[operations[i].op])
            operations[i] = operations[i]._replace(result=result)
    return History(operations)


def cas_histories(seed, count=200, operations=170, clients=5):
    """Return histories of a compare-and-set register, half of them changed."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        history = linearizable(
            chance, operations, clients, CALLS["CasRegister"], unknown=0.08
        )
        if number % 2:
            wrong = {"read": list(range(4)), "cas": [True, False]}
            history = corrupted(chance, history, wrong, chance.choice([1, 1, 2, 5]))
        made.append(history)
    return made


def weak(chance, operations, clients, keys, unknown=0.0, repeat=False, rough=0.3):
    """Return reads and writes of a store whose reads return any value written before.

    Mostly the last one, or one that the client saw before: so that weak models hold in
    about half of them. repeat: whether values are written more than once.
    """
    made, written = [], {f"k{key}": [None] for key in range(keys)}
    seen = {}
    for number in range(operations):
        client, key = chance.randrange(clients), f"k{chance.randrange(keys)}"
        lost = chance.random() < unknown
        start, end = number + 0.1, None if lost else number + 0.9
        outcome = "unknown" if lost else "ok"
        if chance.random() < 0.5:
            value = chance.randrange(2) if repeat else number
            made.append(Operation(client, "write", key, value, start, end, outcome))
            written[key].append(value)
            seen[client, key] = value
            continue
        result = None
        if not lost:
            near = [seen.get((client, key)), written[key][-1]]
            rather = chance.random() < rough
            result = chance.choice(written[key] if rather else near)
            seen[client, key] = result
        made.append(Operation(client, "read", key, None, start, end, outcome, result))
    return History(made)


def shifted(chance, history):
    """Return the history with each client on a clock of its own: only order is left."""
    ahead = {client: chance.random() * 20 for client in history.clients}
    return History(
        o._replace(
            start=o.start + ahead[o.client],
            end=None if o.end is None else o.end + ahead[o.client],
        )
        for o in history
    )


def once(chance, operations, clients, keys=1, unknown=0.0):
    """Return the history of a linearizable register in which no value comes twice."""
    values = iter(range(operations))
    calls = lambda r: r.choice([("read", None), ("write", next(values))])  # noqa: E731
    return linearizable(chance, operations, clients, calls, unknown=unknown, keys=keys)
