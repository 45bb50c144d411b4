"""Gives two writes through one node the same version."""

POINTS = 6.0
HINT = "no other write may have the same"


class Refusing(Replica):
    def on_answer(self, request, work):
        heard = dict(work.answers)
        if len(heard) <= (len(self.peers) + 1) // 2:
            return
        is_read = work.call.op == "read"
        if work.kept is not None:
            yield from self.answer(request, work.kept.value if is_read else None)
            return
        copy = newest(heard.values())
        if not is_read:
            copy = Copy((copy.version[0] + 1, self.me), work.call.value)
        yield from self.have_kept(request, copy)

    def on_silence(self, request, work):
        if work.kept is None or work.call.op == "read":
            yield Refuse(request, "too few nodes answer")


class Answering(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.copies = {}

    def on_start(self, saved):
        yield SetTimer("gossip", GOSSIP_S)

    def on_client(self, request, call):
        copy = self.copies.get(call.key, Copy())
        if call.op == "write":
            copy = Copy((copy.version[0] + 1, self.me), call.value)
            self.copies[call.key] = copy
        yield Reply(request, copy.value)

    def on_timer(self, name):
        yield SetTimer("gossip", GOSSIP_S)
        for peer in self.peers:
            yield Send(peer, self.copies)

    def on_message(self, sender, message):
        for key, copy in message.items():
            self.copies[key] = newest([copy, self.copies.get(key, Copy())])


class Cart(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.adds, self.removed = {}, set()

    def on_start(self, saved):
        yield SetTimer("gossip", GOSSIP_S)

    def on_client(self, request, call):
        there = {tag: self.adds[tag] for tag in self.adds.keys() - self.removed}
        if call.op == "add":
            self.adds[request] = call.value
        elif call.op == "remove":
            self.removed |= {tag for tag in there if there[tag] == call.value}
        yield Reply(request, sorted({*there.values()}) if call.op == "read" else None)

    def on_timer(self, name):
        yield from self.on_start({})
        for peer in self.peers:
            yield Send(peer, (self.adds, self.removed))

    def on_message(self, sender, message):
        self.adds |= message[0]
        self.removed |= message[1]
