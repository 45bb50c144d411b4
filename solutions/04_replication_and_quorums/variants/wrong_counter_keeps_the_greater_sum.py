"""Keeps one sum per replica, and of two the greater, which need not be the newer."""

POINTS = 7.0
HINT = "can go down"


class Counter(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = {}

    def update(self, call):
        self.state[self.me] = self.state.get(self.me, 0) + call.value

    def value(self):
        return sum(self.state.values())

    def merge(self, theirs):
        for node, total in theirs.items():
            self.state[node] = max(total, self.state.get(node, total))
