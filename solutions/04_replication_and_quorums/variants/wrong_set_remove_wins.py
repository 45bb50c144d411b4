"""Never has an item again that was removed once."""

POINTS = 6.0
HINT = "not the item for ever"


class ORSet(Replica):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.state = (set(), set())

    def update(self, call):
        self.state[call.op == "remove"].add(call.value)

    def value(self):
        return sorted(self.state[0] - self.state[1])

    def merge(self, theirs):
        for mine, other in zip(self.state, theirs, strict=True):
            mine |= other
