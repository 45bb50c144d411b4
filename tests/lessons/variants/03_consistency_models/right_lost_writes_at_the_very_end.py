"""Takes a lost write for one that is answered when all else is over."""

POINTS = 10.0
HINT = ""


def linearizable(operations):
    def search(left, value):
        if not left:
            return True
        first_end = min(one.end for one in left)
        for one in left:
            if one.start > first_end:
                break
            if one.op == "read" and one.result != value:
                continue
            rest = [other for other in left if other is not one]
            if search(rest, one.value if one.op == "write" else value):
                return True
        return False

    return search(operations, None)


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


answers = {name: ("", "", "") for name in EIGHT_HISTORIES}
answers["A"] = ("linearizable", "b c a d e", "")
answers["B"] = ("linearizable", "a c b d e", "")
answers["C"] = ("sequential", "a c b d", "a b c")
answers["D"] = ("sequential", "a d b c e", "a b c d")
answers["E"] = ("causal", {2: "a c b e", 3: "b d a f"}, "a b c d e f")
answers["F"] = ("causal", {0: "a c b e", 1: "b d a f"}, "a b c d")
answers["G"] = ("eventual", "", "a b c d e")
answers["H"] = ("none", "", "a b c e")
