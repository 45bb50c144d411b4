"""Keeps two dicts in the counter, and dots with their items in a set."""

POINTS = 10.0
HINT = ""


class Counter(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = ({}, {})

    def update(self, call):
        side = self.state[call.value < 0]
        side[self.me] = side.get(self.me, 0) + abs(call.value)

    def value(self):
        ups, downs = self.state
        return sum(ups.values()) - sum(downs.values())

    def merge(self, theirs):
        for mine, other in zip(self.state, theirs, strict=True):
            for node in other:
                mine[node] = max(mine.get(node, 0), other[node])


class ORSet(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = [set(), {}]

    def update(self, call):
        dots, seen = self.state
        dots -= {dot for dot in dots if dot[2] == call.value}
        if call.op == "add":
            seen[self.me] = seen.get(self.me, 0) + 1
            dots.add((self.me, seen[self.me], call.value))

    def value(self):
        return tuple({item for _, _, item in self.state[0]})

    def merge(self, theirs):
        (mine, seen), (other, known) = self.state, theirs
        gone = {dot for dot in mine - other if dot[1] <= known.get(dot[0], 0)}
        new = {dot for dot in other - mine if dot[1] > seen.get(dot[0], 0)}
        seen |= {n: max(k, seen.get(n, 0)) for n, k in known.items()}
        self.state = [(mine - gone) | new, seen]
