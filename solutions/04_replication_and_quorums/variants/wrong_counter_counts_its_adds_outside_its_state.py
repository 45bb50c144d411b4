"""Numbers its sums outside of its state, and from 1 again after a restart."""

POINTS = 7.0
HINT = "An update after the restart is lost"


class Counter(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state, self.adds = {}, 0

    def update(self, call):
        self.adds += 1
        total = self.state.get(self.me, (0, 0))[1]
        self.state[self.me] = (self.adds, total + call.value)

    def value(self):
        return sum(total for _, total in self.state.values())

    def merge(self, theirs):
        for node, numbered in theirs.items():
            self.state[node] = max(numbered, self.state.get(node, (0, 0)))
