"""Repeats the one round, and nobody tells rank 0 that it has ended."""

POINTS = 3.0
HINT = "Round 2 overtakes round 1"


def speak_in_order(comm, speak):
    if comm.rank > 0:
        comm.recv_object(comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        comm.send_object("your turn", comm.rank + 1)


def speak_in_rounds(comm, speak, rounds):
    for _ in range(rounds):
        speak_in_order(comm, speak)


def prepare_and_speak(comm, prepare, speak):
    pass
