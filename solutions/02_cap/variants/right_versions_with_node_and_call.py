"""Counts in a set, gossips to one node by chance, and keeps items with their tags."""

POINTS = 10.0
HINT = ""


class Refusing(Replica):
    def on_answer(self, request, work):
        nodes = {node for node, _ in work.answers}
        if 2 * len(nodes) <= 1 + len(self.peers):
            return
        if work.kept is None:
            _, copies = zip(*work.answers, strict=True)
            copy = newest(copies)
            if work.call.op == "write":
                counter = copy.version[0] + 1
                copy = Copy((counter, self.me, request), work.call.value)
            yield from self.have_kept(request, copy)
        elif work.call.op == "write":
            yield from self.answer(request)
        else:
            yield from self.answer(request, work.kept.value)

    def on_silence(self, request, work):
        may_be_done = work.call.op == "write" and work.kept is not None
        return [] if may_be_done else [Refuse(request)]


class Answering(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.copies = {}

    def on_start(self, saved):
        yield SetTimer("gossip", GOSSIP_S)

    def on_client(self, request, call):
        version, value = self.copies.get(call.key, ((0, 0), None))
        if call.op == "read":
            yield Reply(request, value)
            return
        self.copies[call.key] = ((version[0] + 1, self.me), call.value)
        yield Reply(request)
        for peer in self.peers:
            yield Send(peer, list(self.copies.items()))

    def on_timer(self, name):
        yield SetTimer("gossip", GOSSIP_S)
        if self.copies:
            yield Send(self.random.choice(self.peers), list(self.copies.items()))

    def on_message(self, sender, pairs):
        for key, copy in pairs:
            if key not in self.copies or self.copies[key][0] < copy[0]:
                self.copies[key] = copy


class Cart(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.count, self.there, self.gone = 0, set(), set()

    def on_start(self, saved):
        yield SetTimer("gossip", GOSSIP_S)

    def on_client(self, request, call):
        if call.op == "add":
            self.count += 1
            self.there.add((call.value, self.me, self.count))
        elif call.op == "remove":
            seen = {one for one in self.there if one[0] == call.value}
            self.there -= seen
            self.gone |= seen
        else:
            yield Reply(request, list({item for item, _, _ in self.there}))
            return
        yield Reply(request)

    def on_timer(self, name):
        yield SetTimer("gossip", GOSSIP_S)
        for peer in self.peers:
            yield Send(peer, (self.there, self.gone))

    def on_message(self, sender, message):
        there, gone = message
        self.gone |= gone
        self.there = (self.there | there) - self.gone
