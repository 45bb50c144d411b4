"""Takes a lost write for one that is answered when all else is over."""

POINTS = 10.0
HINT = ""


def fast_linearizable(operations):
    kept = []
    for one in operations:
        if one.outcome == "unknown" and one.op == "write":
            one = one._replace(outcome="ok", end=float("inf"))
        if one.outcome == "ok":
            kept.append(one)
    dead = set()

    def search(left, value):
        if not left:
            return True
        if (left, value) in dead:
            return False
        first = min(kept[n].end for n in left)
        for n in left:
            if kept[n].start > first:
                continue
            if kept[n].op == "read" and kept[n].result != value:
                continue
            after = kept[n].value if kept[n].op == "write" else value
            if search(left - {n}, after):
                return True
        dead.add((left, value))
        return False

    return search(frozenset(range(len(kept))), None)
