"""Tells the others of a write when it is made, and never again."""

POINTS = 7.0
HINT = "After the partition no node sends"


class Answering(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.copies = {}

    def on_start(self, saved):
        return []

    def on_client(self, request, call):
        copy = self.copies.get(call.key, Copy())
        if call.op == "write":
            copy = Copy((copy.version[0] + 1, self.me), call.value)
            self.copies[call.key] = copy
        yield Reply(request, copy.value)
        if call.op == "write":
            for peer in self.peers:
                yield Send(peer, {call.key: copy})

    def on_timer(self, name):
        yield SetTimer("gossip", GOSSIP_S)
        for peer in self.peers:
            yield Send(peer, self.copies)

    def on_message(self, sender, message):
        for key, copy in message.items():
            self.copies[key] = newest([copy, self.copies.get(key, Copy())])
