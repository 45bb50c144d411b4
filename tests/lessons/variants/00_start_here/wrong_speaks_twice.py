"""Rank 0 speaks in its branch, and again after it."""

POINTS = 0.0
HINT = "also past the end of an if"


def speak_in_order(comm, speak):
    if comm.rank == 0:
        speak()
    else:
        comm.recv_object(comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        comm.send_object("your turn", comm.rank + 1)


def speak_in_rounds(comm, speak, rounds):
    pass


def prepare_and_speak(comm, prepare, speak):
    pass
