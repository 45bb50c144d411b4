"""Rank 0 calls the others one by one, and each of them reports back."""

POINTS = 3.0
HINT = "Each message begins or ends at rank 0"


def speak_in_order(comm, speak):
    if comm.rank > 0:
        comm.recv_object(comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        comm.send_object("your turn", comm.rank + 1)


def speak_in_rounds(comm, speak, rounds):
    for _ in range(rounds):
        if comm.rank > 0:
            comm.recv_object(0)
            speak()
            comm.send_object("done", 0)
            continue
        speak()
        for other in range(1, comm.world_size):
            comm.send_object("go", other)
            comm.recv_object(other)


def prepare_and_speak(comm, prepare, speak):
    pass
