"""Acknowledges a checkpoint as it begins to write it."""

POINTS = 4.0
HINT = "in which method do you know that"
REPLACE = {
    "yield Sync((self.attempt, checkpoint))": (
        "yield Sync(0)\n        yield Send(COORDINATOR, Ack(self.attempt, checkpoint))"
    ),
    "yield Send(COORDINATOR, Ack(*token))": "yield from ()",
}
