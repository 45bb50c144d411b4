"""Has a method for what is enough, gossips what is asked for, logs the cart's calls."""

POINTS = 10.0
HINT = ""


class Refusing(Replica):
    def enough(self, work):
        return len(dict(work.answers)) >= (len(self.peers) + 1) // 2 + 1

    def on_answer(self, request, work):
        if not self.enough(work):
            return []
        if work.kept is not None:
            result = work.kept.value if work.call.op == "read" else None
            return self.answer(request, result)
        copies = [copy for _, copy in work.answers] + [
            self.copies.get(work.call.key, Copy())
        ]
        latest = newest(copies)
        if work.call.op == "read":
            return self.have_kept(request, latest)
        version = (latest.version[0] + 1, request)
        return self.have_kept(request, Copy(version, work.call.value))

    def on_silence(self, request, work):
        if work.kept is None:
            yield Refuse(request, "not now")
        elif work.call.op == "read":
            yield Refuse(request, "seen, but not kept by enough")


class Answering(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.values, self.clock = {}, 0

    def on_start(self, saved):
        yield SetTimer("gossip", GOSSIP_S)

    def on_client(self, request, call):
        if call.op == "write":
            self.clock += 1
            self.values[call.key] = (self.clock, self.me, call.value)
        yield Reply(request, self.values.get(call.key, (0, 0, None))[2])

    def on_timer(self, name):
        yield SetTimer("gossip", GOSSIP_S)
        for peer in self.peers:
            yield Send(peer, ("digest", {k: v[:2] for k, v in self.values.items()}))

    def on_message(self, sender, message):
        what, theirs = message
        if what == "digest":
            newer = {
                key: value
                for key, value in self.values.items()
                if key not in theirs or theirs[key] < value[:2]
            }
            if newer:
                yield Send(sender, ("news", newer))
            return
        for key, value in theirs.items():
            self.clock = max(self.clock, value[0])
            if key not in self.values or self.values[key][:2] < value[:2]:
                self.values[key] = value


class Cart(Node):
    def __init__(self, me, peers):
        super().__init__(me, peers)
        self.log = {}

    def on_start(self, saved):
        yield SetTimer("gossip", GOSSIP_S)

    def there(self):
        ended = set()
        for op, what in self.log.values():
            if op == "remove":
                ended |= set(what)
        return {
            tag: item
            for tag, (op, item) in self.log.items()
            if op == "add" and tag not in ended
        }

    def on_client(self, request, call):
        there = self.there()
        if call.op == "add":
            self.log[request] = ("add", call.value)
        if call.op == "remove":
            seen = tuple(tag for tag, item in there.items() if item == call.value)
            self.log[request] = ("remove", seen)
        yield Reply(request, list(dict.fromkeys(there.values())))

    def on_timer(self, name):
        yield SetTimer("gossip", GOSSIP_S)
        for peer in self.peers:
            yield Send(peer, self.log)

    def on_message(self, sender, log):
        self.log.update(log)
