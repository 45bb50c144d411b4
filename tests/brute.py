"""Brute force: whether any order explains a history, by trying every one of them.

Straight from the definitions, for histories of a few operations; nothing in here is
shared with the checkers but the classes of operations.
"""

from itertools import combinations, permutations, product


def right_answer(op, value, state, result, known):
    """Return (whether a store in `state` can answer so, its next state)."""
    if op == "read":
        if isinstance(state, frozenset):
            return not known or frozenset(result or ()) == state, state
        return not known or result == state, state
    if op == "write":
        return True, value
    if op == "append":
        return True, (state or "") + value
    if op == "cas":
        done = state == value[0]
        return not known or result == done, value[1] if done else state
    if op == "enqueue":
        return True, (*state, value)
    if op == "dequeue":
        first = state[0] if state else None
        return not known or result == first, state[1:]
    if op == "acquire":
        return not known or (result is False) == state, True
    if op == "release":
        return not known or (result is False) == (not state), False
    if op in ("add", "remove"):
        changes = (value in state) == (op == "remove")
        after = state | {value} if op == "add" else state - {value}
        return not known or result is None or result == changes, after
    assert op == "contains"
    return not known or result == (value in state), state


def choices(operations, optional=()):
    """Yield every set of operations that may have taken effect."""
    free = {id(o) for o in optional}
    certain = [o for o in operations if o.outcome == "ok" and id(o) not in free]
    maybe = [o for o in operations if o.outcome == "unknown" or id(o) in free]
    for taken in product([False, True], repeat=len(maybe)):
        yield certain + [o for o, take in zip(maybe, taken, strict=True) if take]


def some_order(operations, initial, before, optional=()):
    """Return whether any order that respects `before(a, b)` explains the operations."""
    return any(
        _completed(taken, {}, initial, before)
        for taken in choices(operations, optional)
    )


def _completed(rest, states, initial, before):
    if not rest:
        return True
    for o in rest:
        if any(before(other, o) for other in rest if other is not o):
            continue
        right, after = right_answer(
            o.op, o.value, states.get(o.key, initial), o.result, o.end is not None
        )
        others = [other for other in rest if other is not o]
        if right and _completed(others, {**states, o.key: after}, initial, before):
            return True
    return False


def is_linearizable(operations, initial, optional=()):
    """Return whether every operation can have its moment in its interval."""
    operations = list(operations)
    place = {id(o): i for i, o in enumerate(operations)}

    def before(a, b):
        if a.end is None:
            return False
        if a.client == b.client:
            return a.end <= b.start and place[id(a)] < place[id(b)]
        return a.end < b.start

    return some_order(operations, initial, before, optional)


def is_sequential(operations, initial, optional=()):
    """Return whether each client's calls can have come in its own order."""
    operations = list(operations)
    place = {id(o): i for i, o in enumerate(operations)}

    def before(a, b):
        answered = a.end is not None
        return a.client == b.client and answered and place[id(a)] < place[id(b)]

    return some_order(operations, initial, before, optional)


def _place(operations):
    return {id(o): i for i, o in enumerate(operations)}


def _follows(operations):
    """Return the function that says whether a comes before b in a client's order."""
    place = _place(operations)
    return lambda a, b: (
        a.client == b.client and a.end is not None and place[id(a)] < place[id(b)]
    )


def _sightings(taken, initial):
    """Yield every read -> the write that it can have seen, None for the beginning."""
    reads = [o for o in taken if o.op == "read" and o.end is not None]
    seen = []
    for read in reads:
        writes = [w for w in taken if w.op == "write" and w.key == read.key]
        sources = [w for w in writes if w.value == read.result]
        seen.append(sources + ([None] if read.result == initial else []))
    for chosen in product(*seen):
        yield {id(read): write for read, write in zip(reads, chosen, strict=True)}


def is_causal(operations, initial=None):
    """Return whether each client has a view: all writes, and its own reads.

    A view is an order of them that keeps every cause, and in which each read comes
    after the write that it saw, and before any later write to the key.
    """
    operations = list(operations)
    follows = _follows(operations)
    for taken in choices(operations):
        taken = [o for o in taken if o.end is not None or o.op == "write"]
        for saw in _sightings(taken, initial):
            causes = {
                (id(a), id(b))
                for a in taken
                for b in taken
                if follows(a, b) or saw.get(id(b)) is a
            }
            while (
                more := {(a, d) for a, b in causes for c, d in causes if b == c}
                - causes
            ):
                causes |= more
            if any((id(a), id(a)) in causes for a in taken):
                continue
            clients = {o.client for o in taken}
            views = (
                [o for o in taken if o.op == "write" or o.client == c] for c in clients
            )
            if all(_viewed(view, {}, saw, causes) for view in views):
                return True
    return False


def _viewed(rest, latest, saw, causes):
    if not rest:
        return True
    for o in rest:
        if any((id(other), id(o)) in causes for other in rest):
            continue
        others = [other for other in rest if other is not o]
        if o.op == "read":
            fits = latest.get(o.key) is saw[id(o)]
            if fits and _viewed(others, latest, saw, causes):
                return True
        elif _viewed(others, {**latest, o.key: o}, saw, causes):
            return True
    return False


def is_causal_by_axioms(operations, initial=None):
    """Return whether some causal order exists, as Bouajjani et al. define CM.

    There is a partial order that contains the clients' orders, and for each operation o
    an order of what is before it, and itself, that explains the reads of o's client up
    to o.
    """
    operations = list(operations)
    follows = _follows(operations)
    for taken in choices(operations):
        taken = [o for o in taken if o.end is not None or o.op == "write"]
        if any(
            all(_explains_past(o, taken, order, follows, initial) for o in taken)
            for order in _partial_orders(taken, follows)
        ):
            return True
    return False


def _partial_orders(things, follows):
    """Yield every transitive set of pairs that contains what `follows` says."""
    n = len(things)
    pairs = list(combinations(range(n), 2))
    ways = []
    for i, j in pairs:
        if follows(things[i], things[j]):
            ways.append([(i, j)])
        elif follows(things[j], things[i]):
            ways.append([(j, i)])
        else:
            ways.append([(i, j), (j, i), None])
    for chosen in product(*ways):
        order = {pair for pair in chosen if pair}
        if all((a, d) in order for a, b in order for c, d in order if b == c):
            yield {(id(things[i]), id(things[j])) for i, j in order}


def _explains_past(o, taken, order, follows, initial):
    past = [p for p in taken if p is o or (id(p), id(o)) in order]
    shown = {id(p) for p in past if p is o or follows(p, o)}
    return _linear(past, {}, order, shown, initial)


def _linear(rest, values, order, shown, initial):
    if not rest:
        return True
    for o in rest:
        if any((id(other), id(o)) in order for other in rest):
            continue
        others = [other for other in rest if other is not o]
        if o.op == "write":
            if _linear(others, {**values, o.key: o.value}, order, shown, initial):
                return True
        else:
            fits = id(o) not in shown or values.get(o.key, initial) == o.result
            if fits and _linear(others, values, order, shown, initial):
                return True
    return False


def has_versions(guarantee, operations, initial=None):
    """Return whether any order of each key's writes meets a session guarantee."""
    operations = list(operations)
    place, follows = _place(operations), _follows(operations)
    for taken in choices(operations):
        taken = sorted(taken, key=lambda o: place[id(o)])
        taken = [o for o in taken if o.end is not None or o.op == "write"]
        for saw in _sightings(taken, initial):
            seen = {id(w) for w in saw.values() if w is not None}
            if any(o.end is None and id(o) not in seen for o in taken):
                continue
            keys = list(dict.fromkeys(o.key for o in taken))
            writes = [
                [o for o in taken if o.op == "write" and o.key == key] for key in keys
            ]
            for orders in product(*map(permutations, writes)):
                version = {id(None): -1}
                for order in orders:
                    version |= {id(w): n for n, w in enumerate(order)}
                if _meets(guarantee, taken, saw, follows, version):
                    return True
    return False


def _meets(guarantee, taken, saw, follows, number):
    def version(write):
        return number[id(write)]

    reads = [o for o in taken if o.op == "read"]
    writes = [o for o in taken if o.op == "write"]
    if guarantee == "read your writes":
        return all(
            version(saw[id(r)]) >= version(w)
            for w in writes
            for r in reads
            if follows(w, r) and w.key == r.key
        )
    if guarantee == "monotonic reads":
        return all(
            version(saw[id(r2)]) >= version(saw[id(r1)])
            for r1 in reads
            for r2 in reads
            if follows(r1, r2) and r1.key == r2.key
        )
    if guarantee == "monotonic writes":
        after = [(w1, w2) for w1 in writes for w2 in writes if follows(w1, w2)]
    else:
        after = [
            (saw[id(r)], w)
            for r in reads
            for w in writes
            if follows(r, w) and saw[id(r)] is not None
        ]
    for w1, w2 in after:
        if w1.key == w2.key and not version(w1) < version(w2):
            return False
        for r1 in reads:
            if saw[id(r1)] is not w2:
                continue
            for r2 in reads:
                if follows(r1, r2) and r2.key == w1.key:
                    found = version(saw[id(r2)])
                    if found < version(w1) or (
                        w1.key == w2.key and found == version(w1)
                    ):
                        return False
    return True
