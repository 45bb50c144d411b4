"""Remembers the items that were removed, and not their adds."""

POINTS = 7.0
HINT = "not the item for ever"


class Cart(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.adds, self.removed = {}, set()

    def on_start(self, saved):
        yield SetTimer("gossip", GOSSIP_S)

    def on_client(self, request, call):
        there = {t: i for t, i in self.adds.items() if i not in self.removed}
        if call.op == "add":
            self.adds[request] = call.value
        elif call.op == "remove":
            self.removed |= {call.value}
        yield Reply(request, sorted({*there.values()}) if call.op == "read" else None)

    def on_timer(self, name):
        yield from self.on_start({})
        for peer in self.peers:
            yield Send(peer, (self.adds, self.removed))

    def on_message(self, sender, message):
        self.adds |= message[0]
        self.removed |= message[1]
