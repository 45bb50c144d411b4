"""The token comes back to rank 0 after every round, also after the last."""

POINTS = 10.0
HINT = ""


def speak_in_order(comm, speak):
    for listener in range(comm.rank):
        assert comm.recv_object(listener) == listener
    speak()
    for later in range(comm.rank + 1, comm.world_size):
        comm.send_object(comm.rank, later)


def speak_in_rounds(comm, speak, rounds):
    left, right = comm.rank - 1, (comm.rank + 1) % comm.world_size
    if comm.world_size == 1:
        for _ in range(rounds):
            speak()
        return
    for number in range(rounds):
        if comm.rank == 0:
            speak()
            comm.send_object({"round": number}, right)
            comm.recv_object(comm.world_size - 1)
        else:
            token = comm.recv_object(left)
            speak()
            comm.send_object(token, right)


def prepare_and_speak(comm, prepare, speak):
    prepare()
    if comm.rank > 0:
        comm.recv_object(comm.rank - 1)
    speak()
    if comm.rank < comm.world_size - 1:
        comm.send_object(None, comm.rank + 1)
