"""Has a remove end whatever adds of the item are there when it arrives."""

POINTS = 7.0
HINT = "The add wins"


class Cart(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.items = {}

    def on_start(self, saved):
        yield SetTimer("gossip", GOSSIP_S)

    def on_client(self, request, call):
        if call.op != "read":
            version, _ = self.items.get(call.value, ((0, 0), True))
            self.items[call.value] = (version[0] + 1, self.me), call.op == "remove"
        gone = [item for item, (_, gone) in self.items.items() if not gone]
        yield Reply(request, gone)

    def on_timer(self, name):
        yield SetTimer("gossip", GOSSIP_S)
        for peer in self.peers:
            yield Send(peer, self.items)

    def on_message(self, sender, items):
        for item, told in items.items():
            self.items[item] = max(told, self.items.get(item, told))
