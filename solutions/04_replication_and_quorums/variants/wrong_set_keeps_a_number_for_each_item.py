"""Keeps each replica's number of every item, of those that were removed, too."""

POINTS = 6.0
HINT = "leaves something behind"


class ORSet(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = {}  # item -> replica -> (number, 1 if its add is there)

    def update(self, call):
        mine = self.state.setdefault(call.value, {})
        last = mine.get(self.me, (0, 0))[0]
        mine |= {node: (number, 0) for node, (number, _) in mine.items()}
        if call.op == "add":
            mine[self.me] = (last + 1, 1)

    def value(self):
        return [i for i, adds in self.state.items() if any(a for _, a in adds.values())]

    def merge(self, theirs):
        for item, adds in theirs.items():
            mine = self.state.setdefault(item, {})
            for node, (number, there) in adds.items():
                known, here = mine.get(node, (0, 0))
                same = min(here, there) if number == known else 0
                mine[node] = max((known, here), (number, there))
                if number == known:
                    mine[node] = (number, same)
