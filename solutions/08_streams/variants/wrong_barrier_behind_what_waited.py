"""Forwards the barrier after what had waited."""

POINTS = 0.0
HINT = "Which results belong before it"
REPLACE = {
    "yield Send(COORDINATOR, Barrier(self.attempt, checkpoint))": (
        "forward = Send(COORDINATOR, Barrier(self.attempt, checkpoint))"
    ),
    "yield from self.on_input(source, message)": (
        "yield from self.on_input(source, message)\n        yield forward"
    ),
}
