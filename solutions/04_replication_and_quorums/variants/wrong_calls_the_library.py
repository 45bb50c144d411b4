"""Has the library merge, which the processes of the check lack."""

POINTS = 7.0
HINT = "the protocol itself"


class Counter(Replica):
    def __init__(self, me, peers):
        from distlab.agree import Quorum

        super().__init__(me, peers)
        self.state = Quorum(me, peers)

    def update(self, call):
        self.state.update(call)

    def value(self):
        return self.state.value()

    def merge(self, theirs):
        self.state.merge(theirs)
