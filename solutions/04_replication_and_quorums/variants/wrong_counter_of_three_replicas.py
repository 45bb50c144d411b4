"""Has room for three replicas, whatever their number."""

POINTS = 7.0
HINT = "it names the line"


class Counter(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = [(0, 0)] * 3

    def update(self, call):
        number, total = self.state[self.me]
        self.state[self.me] = (number + 1, total + call.value)

    def value(self):
        return sum(total for _, total in self.state)

    def merge(self, theirs):
        self.state = [*map(max, self.state, theirs)]
