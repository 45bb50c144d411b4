"""Asks other nodes each time, and resends repairs to all of them in the end."""

POINTS = 10.0
HINT = ""


class ReadRepair(Coordinator):
    def on_read(self, request, work):
        return self.ask(request, self.random.sample(self.peers, self.majority - 1))

    def on_copy(self, request, work):
        if len(work.copies) < self.majority:
            return
        newest = max(work.copies.values(), key=lambda copy: copy.version)
        have = [n for n, copy in work.copies.items() if copy == newest]
        if len(have) >= self.majority:
            yield from self.answer(request, newest.value)
            return
        for node in work.copies:
            if node not in have and node not in work.repaired:
                yield from self.repair(request, [node], newest)

    def on_silence(self, request, work):
        yield from self.ask(request, self.peers)
        if len(work.copies) >= self.majority:
            yield from self.repair(request, self.peers, max(work.copies.values()))
