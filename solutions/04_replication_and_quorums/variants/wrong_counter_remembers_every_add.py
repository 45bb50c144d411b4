"""Keeps all adds, so that a state grows without end."""

POINTS = 7.0
HINT = "leaves something behind"


class Counter(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = {}

    def update(self, call):
        self.state[self.me, len(self.state)] = call.value

    def value(self):
        return sum(self.state.values())

    def merge(self, theirs):
        self.state |= theirs
