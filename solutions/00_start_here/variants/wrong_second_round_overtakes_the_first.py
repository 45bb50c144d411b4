"""Repeats the one round, and nobody tells rank 0 that it has ended."""

POINTS = 6.0
HINT = "Round 2 overtakes round 1"


def speak_in_rounds(comm, speak, rounds):
    for _ in range(rounds):
        speak_in_order(comm, speak)
