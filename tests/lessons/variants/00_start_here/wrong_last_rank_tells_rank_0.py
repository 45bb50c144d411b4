"""The last rank sends to rank 0, which has returned."""

POINTS = 0.0
HINT = "Who has to know of the last turn?"


def speak_in_order(comm, speak):
    if comm.rank > 0:
        comm.recv_object(comm.rank - 1)
    speak()
    comm.send_object("your turn", (comm.rank + 1) % comm.world_size)


def speak_in_rounds(comm, speak, rounds):
    pass


def prepare_and_speak(comm, prepare, speak):
    pass
