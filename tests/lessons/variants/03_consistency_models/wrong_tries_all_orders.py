"""The ten lines of the lesson."""

from itertools import permutations

POINTS = 6.0
HINT = "14 operations have 87 billion orders"


def explained(order):
    value, latest = None, float("-inf")
    for one in order:
        if one.end < latest or (one.op == "read" and one.result != value):
            return False
        latest = max(latest, one.start)
        value = one.value if one.op == "write" else value
    return True


def linearizable(operations):
    return any(explained(order) for order in permutations(operations))


def fast_linearizable(operations):
    lost = [one for one in operations if one.outcome == "unknown"]
    kept = [one for one in operations if one.outcome == "ok"]
    kept += [one for one in lost if one.op == "write"]
    tried = set()

    def search(done, value):
        if (done, value) in tried:
            return False
        tried.add((done, value))
        left = [number for number in range(len(kept)) if number not in done]
        ends = [kept[number].end for number in left if kept[number].outcome == "ok"]
        if not ends:
            return True
        first_end = min(ends)
        for number in left:
            one = kept[number]
            if one.start > first_end or (one.op == "read" and one.result != value):
                continue
            if search(done | {number}, one.value if one.op == "write" else value):
                return True
        return False

    return search(frozenset(), None)


answers = {name: ("", "", "") for name in EIGHT_HISTORIES}
answers["A"] = ("linearizable", "b c a d e", "")
answers["B"] = ("linearizable", "a c b d e", "")
answers["C"] = ("sequential", "a c b d", "a b c")
answers["D"] = ("sequential", "a d b c e", "a b c d")
answers["E"] = ("causal", {2: "a c b e", 3: "b d a f"}, "a b c d e f")
answers["F"] = ("causal", {0: "a c b e", 1: "b d a f"}, "a b c d")
answers["G"] = ("eventual", "", "a b c d e")
answers["H"] = ("none", "", "a b c e")
