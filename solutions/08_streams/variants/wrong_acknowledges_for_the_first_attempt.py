"""Acknowledges in the name of the first attempt."""

POINTS = 4.0
HINT = "The job stands still"
REPLACE = {
    "yield Send(COORDINATOR, Ack(*token))": (
        "yield Send(COORDINATOR, Ack(1, token[1]))"
    ),
}
