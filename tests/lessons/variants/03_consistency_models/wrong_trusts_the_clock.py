"""Takes C, D, E and F for models of one size smaller or larger."""

POINTS = 8.0
HINT = "real time counts"


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
answers["D"] = ("linearizable", "a d b c e", "")
answers["E"] = ("sequential", "a c b d e f", "a b c d e f")
answers["F"] = ("causal", {0: "a c b e", 1: "b d a f"}, "a b c d")
answers["G"] = ("none", "", "a b c d e")
answers["H"] = ("causal", {1: "a b c e", 2: "a b d"}, "a b c e")
