"""Reads from its own copy once it has read it from a majority."""

POINTS = 7.0
HINT = "tells it nothing about later writes"
REPLACE = {
    "yield from self.ask(request, self.peers[: self.majority - 1])": (
        "if work.call.key in getattr(self, 'read', ()):\n"
        "            yield from self.answer(request, self.held[work.call.key].value)\n"
        "        else:\n"
        "            yield from self.ask(request, self.peers[: self.majority - 1])"
    ),
    "if len(work.copies) - len(stale) >= self.majority:": (
        "if len(work.copies) - len(stale) >= self.majority:\n"
        "            self.read = getattr(self, 'read', set()) | {work.call.key}"
    ),
}
