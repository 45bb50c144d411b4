"""Numbers each replica's sums, and keeps the dots by item."""

POINTS = 10.0
HINT = ""


class Counter(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = {node: (0, 0) for node in (me, *peers)}

    def update(self, call):
        number, total = self.state[self.me]
        self.state[self.me] = (number + 1, total + call.value)

    def value(self):
        return sum(total for _, total in self.state.values())

    def merge(self, theirs):
        mine = self.state
        self.state = {node: max(theirs[node], mine[node]) for node in mine}


class ORSet(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = {"dots": {}, "seen": dict.fromkeys(sorted([me, *peers]), 0)}

    def update(self, call):
        self.state["dots"].pop(call.value, None)
        if call.op == "add":
            self.state["seen"][self.me] += 1
            dot = (self.me, self.state["seen"][self.me])
            self.state["dots"][call.value] = {dot}

    def value(self):
        return list(self.state["dots"])

    def merge(self, theirs):
        mine, seen = self.state["dots"], self.state["seen"]
        for item in sorted(mine.keys() | theirs["dots"].keys()):
            here, there = mine.get(item, set()), theirs["dots"].get(item, set())
            left = here & there
            left |= {(n, k) for n, k in here - there if k > theirs["seen"][n]}
            left |= {(n, k) for n, k in there - here if k > seen[n]}
            mine[item] = left
            if not left:
                del mine[item]
        for node, number in theirs["seen"].items():
            seen[node] = max(seen[node], number)
