"""Remembers all that was ever removed."""

POINTS = 6.0
HINT = "leaves something behind"


class ORSet(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = ({}, set(), {})

    def update(self, call):
        items, gone, seen = self.state
        if call.op == "add":
            seen[self.me] = seen.get(self.me, 0) + 1
            items[self.me, seen[self.me]] = call.value
        else:
            gone |= {dot for dot in items if items[dot] == call.value}

    def value(self):
        items, gone, _ = self.state
        return sorted({items[dot] for dot in items.keys() - gone})

    def merge(self, theirs):
        items, gone, seen = self.state
        items |= theirs[0]
        gone |= theirs[1]
        seen |= {n: max(k, seen.get(n, 0)) for n, k in theirs[2].items()}
