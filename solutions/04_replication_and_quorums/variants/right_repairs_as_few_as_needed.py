"""Asks the last nodes, and repairs only as many as a majority lacks."""

POINTS = 10.0
HINT = ""


class ReadRepair(Coordinator):
    def on_read(self, request, work):
        yield from self.ask(request, self.peers[len(self.peers) + 1 - self.majority :])

    def on_copy(self, request, work):
        newest = max(work.copies.values())
        stale = [n for n in work.copies if work.copies[n] != newest]
        missing = self.majority - (len(work.copies) - len(stale))
        if missing <= 0:
            yield from self.answer(request, newest.value)
        elif missing <= len(stale) and not work.repaired:
            yield from self.repair(request, stale[:missing], newest)

    def on_silence(self, request, work):
        stale = [n for n in work.copies if work.copies[n] != max(work.copies.values())]
        yield from self.repair(request, stale, max(work.copies.values()))
        yield from self.ask(request, [n for n in self.peers if n not in work.copies])
