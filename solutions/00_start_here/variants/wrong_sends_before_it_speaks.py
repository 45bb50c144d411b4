"""Hands the turn on, and uses it afterwards."""

POINTS = 4.0
HINT = "Speak first, then send"


def speak_in_order(comm, speak):
    if comm.rank > 0:
        comm.recv_object(comm.rank - 1)
    if comm.rank < comm.world_size - 1:
        comm.send_object("your turn", comm.rank + 1)
    speak()
