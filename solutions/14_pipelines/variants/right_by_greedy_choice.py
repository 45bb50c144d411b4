"""1F1B decided slot by slot: B if it can run, else F if there is room for it."""

POINTS = 10.0
HINT = ""


def one_f_one_b(stages, microbatches):
    rows, done, free, slot = [[] for _ in range(stages)], {}, [0] * stages, 0
    while any(len(row) < 2 * microbatches for row in rows):
        for s, row in enumerate(rows):
            forward, backward = (sum(k == kind for k, _ in row) for kind in "FB")
            asked = {"B": ("B", s + 1, backward), "F": ("F", s - 1, forward)}
            room = {"B": backward < forward, "F": forward - backward < stages - s}
            for kind, m in (("B", backward), ("F", forward)):
                end = (s == stages - 1) if kind == "B" else s == 0
                there = end or done.get(asked[kind], slot + 1) <= slot
                if free[s] <= slot and there and room[kind] and m < microbatches:
                    row.append((kind, m))
                    free[s] = done[kind, s, m] = slot + (2 if kind == "B" else 1)
        slot += 1
    return rows
