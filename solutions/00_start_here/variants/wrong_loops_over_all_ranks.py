"""Writes what the whole world does, and forgets that each rank does all of it."""

POINTS = 4.0
HINT = "Every rank runs the whole of your function"


def speak_in_order(comm, speak):
    for _ in range(comm.world_size):
        speak()
