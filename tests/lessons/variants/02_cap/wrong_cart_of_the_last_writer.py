"""Has one side's whole cart replace the other's."""

POINTS = 7.0
HINT = "What one side added is lost"


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
            copy = Copy((copy.version[0] + 1, request), work.call.value)
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


class Cart(Answering):
    def on_client(self, request, call):
        copy = self.copies.get("cart", Copy((0, 0), ()))
        items = set(copy.value)
        if call.op == "add":
            items.add(call.value)
        elif call.op == "remove":
            items.discard(call.value)
        if call.op != "read":
            version = (copy.version[0] + 1, self.me)
            self.copies["cart"] = Copy(version, tuple(sorted(items)))
        yield Reply(request, list(copy.value))
