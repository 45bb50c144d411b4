"""Repeats the one round, and does not tell rank 0 that it has ended."""

POINTS = 6.0
HINT = "A round starts before the last one has ended"


def speak_in_rounds(comm, speak, rounds):
    for _ in range(rounds):
        speak_in_order(comm, speak)
