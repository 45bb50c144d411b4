"""Answers with what it has heard when the time is over."""

POINTS = 7.0
HINT = "An earlier read returned a value that too few nodes"
REPLACE = {
    "work.repaired.clear()\n"
    "        yield from self.ask(request, set(self.peers) - work.copies.keys())\n"
    "        yield from self.on_copy(request, work)": (
        "yield from self.answer(request, max(work.copies.values()).value)"
    )
}
