"""Small protocols, right ones and ones with a planted mistake, and a check for each."""

from distlab.network import Node, Refuse, Reply, Save, Send, SetTimer


class Echo(Node):
    """Answers every client with what it has asked for, and every message with it."""

    def on_client(self, request, call):
        return [Reply(request, call.value)]

    def on_message(self, sender, message):
        return [Send(sender, message)] if message else None


class Majority(Node):
    """A register on a majority: a write or read asks all, and needs half of the others.

    A read has what it returns stored before it returns it (Attiya, Bar-Noy, Dolev).
    """

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.copy = (0, me, None)  # counter, writer, value
        self.work = {}  # request -> [call, copy that is being stored, who has answered]

    def on_start(self, saved):
        self.copy = saved.get("copy", self.copy)

    def on_client(self, request, call):
        self.work[request] = [call, None, {self.me: self.copy}]
        return self.to_all("ask", request, None)

    def to_all(self, word, request, copy):
        return [Send(peer, (word, request, copy)) for peer in self.peers]

    def keep(self, copy):
        if copy[:2] <= self.copy[:2]:
            return []
        self.copy = copy
        return [Save("copy", copy)]

    def on_message(self, sender, message):
        word, request, copy = message
        if word == "ask":
            return [Send(sender, ("have", request, self.copy))]
        if word == "store":
            return [*self.keep(copy), Send(sender, ("stored", request, None))]
        work = self.work.get(request)
        phase = "have" if work and work[1] is None else "stored"
        if work is None or word != phase:
            return None
        work[2][sender] = copy
        enough = len(work[2]) > len(self.peers) / 2 + 0.5
        if not enough:
            return None
        return self.store(request) if phase == "have" else self.answer(request)

    def store(self, request):
        call, _, heard = self.work[request]
        newest = max(heard.values(), key=lambda copy: copy[:2])
        newest = max(newest, self.copy, key=lambda copy: copy[:2])
        if call.op == "write":
            newest = (newest[0] + 1, self.me, call.value)
        self.work[request] = [call, newest, {self.me: None}]
        return [*self.keep(newest), *self.to_all("store", request, newest)]

    def answer(self, request):
        call, copy, _ = self.work.pop(request)
        return [Reply(request, copy[2] if call.op == "read" else None)]


class ReadsOne(Majority):
    """Its reads ask nobody: they may be stale."""

    def on_client(self, request, call):
        if call.op == "read":
            return [Reply(request, self.copy[2])]
        return super().on_client(request, call)


class ForgetsToSave(Majority):
    """Keeps its copy in memory only: a crash loses what was acknowledged."""

    def keep(self, copy):
        return [effect for effect in super().keep(copy) if not isinstance(effect, Save)]


class BothSides(Node):
    """A lock that is given after a while also if the others do not answer."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.holder, self.asked = None, {}

    def on_client(self, request, call):
        if self.holder is not None:
            return [Refuse(request, f"node {self.holder} has it")]
        self.holder = self.me
        self.asked[request] = set()
        asks = [Send(peer, ("mine", request)) for peer in self.peers]
        return [*asks, SetTimer(request, 0.1)]

    def on_message(self, sender, message):
        word, request = message
        if word == "mine":
            if self.holder is None:
                self.holder = sender
            yours = self.holder == sender
            return [Send(sender, ("yours" if yours else "no", request))]
        if request not in self.asked:
            return None
        if word == "no":
            del self.asked[request]
            return [Refuse(request)]
        self.asked[request].add(sender)
        if len(self.asked[request]) < len(self.peers):
            return None
        del self.asked[request]
        return [Reply(request, True)]

    def on_timer(self, request):
        if self.asked.pop(request, None) is not None:
            return [Reply(request, True)]


class Counts(Node):
    """A counter whose copies add what they are sent, as often as it comes."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.total = 0

    def on_client(self, request, call):
        if call.op == "read":
            return [Reply(request, self.total)]
        self.total += call.value
        adds = [Send(peer, ("add", call.value)) for peer in self.peers]
        return [*adds, Reply(request)]

    def on_message(self, sender, message):
        self.total += message[1]


class LastToCome(Node):
    """A value whose copies take what came last for what was written last."""

    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.value = None

    def on_client(self, request, call):
        self.value = call.value
        sets = [Send(peer, ("set", call.value)) for peer in self.peers]
        return [*sets, Reply(request)]

    def on_message(self, sender, message):
        self.value = message[1]


class Gossip(Node):
    """Passes a number on to somebody, one higher, for ever."""

    def on_start(self, saved):
        self.heard = 0
        return [Send(self.random.choice(self.peers), ("heard", 1))]

    def on_message(self, sender, message):
        self.heard = max(self.heard, message[1])
        return [Send(self.random.choice(self.peers), ("heard", self.heard + 1))]


def nothing_stale(outcome):
    """Whether no read missed a write that was answered before the read began.

    And none returned what was overwritten before it began, or seen newer by another.
    Every write has its own value; writes are ordered by real time where they are.
    """
    done = [op for op in outcome.history if op.outcome == "ok"]
    writes = [op for op in outcome.history if op.op == "write"]
    reads = [op for op in done if op.op == "read"]
    seen = {op.value: op for op in writes}
    for read in reads:
        before = [w for w in writes if w.outcome == "ok" and w.end < read.start]
        before += [
            seen[other.result]
            for other in reads
            if other.end < read.start and other.result is not None
        ]
        if read.result is None and before:
            return False
        if read.result is not None:
            mine = seen[read.result]
            if any(mine.end is not None and mine.end < w.start for w in before):
                return False
    return True


def one_holder(outcome):
    """Whether at most one client was given the lock."""
    held = [op for op in outcome.history if op.outcome == "ok" and op.result]
    assert len(held) <= 1, f"{len(held)} hold the lock"


def counts_well(outcome):
    """Whether no copy has counted more than was asked for."""
    asked = sum(op.value for op in outcome.history if op.op == "add")
    return all(node is None or node.total <= asked for node in outcome.nodes)


def all_alike(outcome):
    """Whether all copies are the same."""
    return len({node.value for node in outcome.nodes}) == 1


def all_count_alike(outcome):
    """Whether all copies have counted the same."""
    return len({node.total for node in outcome.nodes}) == 1
