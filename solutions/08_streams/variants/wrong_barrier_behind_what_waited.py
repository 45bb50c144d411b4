"""Forwards the barrier after what had waited."""

POINTS = 0.0
HINT = "Which results belong before it"
REPLACE = {
    "yield Send(COORDINATOR, Barrier(self.attempt, checkpoint))\n        yield from self.save": (
        "yield from self.save"
    ),
    "for source, message in held:\n            yield from self.on_input(source, message)": (
        "for source, message in held:\n"
        "            yield from self.on_input(source, message)\n"
        "        yield Send(COORDINATOR, Barrier(self.attempt, checkpoint))"
    ),
}
