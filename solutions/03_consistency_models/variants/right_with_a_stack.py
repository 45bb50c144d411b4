"""Keeps a list of places to go on from, and calls nothing again."""

POINTS = 10.0
HINT = ""


def linearizable(operations):
    todo = [(tuple(operations), None)]
    while todo:
        left, value = todo.pop()
        if not left:
            return True
        for one in left:
            if any(other.end < one.start for other in left):
                continue
            rest = tuple(other for other in left if other is not one)
            if one.op == "write":
                todo.append((rest, one.value))
            elif one.result == value:
                todo.append((rest, value))
    return False


def fast_linearizable(operations):
    kept = [one for one in operations if one.outcome == "ok"]
    lost = [one for one in operations if one.outcome == "unknown"]
    kept += [one for one in lost if one.op == "write"]
    everything = sum(1 << n for n, one in enumerate(kept) if one.outcome == "ok")
    todo, seen = [(0, None)], set()
    while todo:
        place = done, value = todo.pop()
        if done & everything == everything:
            return True
        if place in seen:
            continue
        seen.add(place)
        left = [n for n in range(len(kept)) if not done >> n & 1]
        first = min(kept[n].end for n in left if kept[n].outcome == "ok")
        for n in left:
            if kept[n].start <= first:
                if kept[n].op == "write":
                    todo.append((done | 1 << n, kept[n].value))
                elif kept[n].result == value:
                    todo.append((done | 1 << n, value))
    return False
