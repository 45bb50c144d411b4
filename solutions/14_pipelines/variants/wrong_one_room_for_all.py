"""Every message arrives in one tensor, ahead of the work that needs it."""

POINTS = 0.0
HINT = "each message needs room of its own"


def play(comm, works, stage):
    room, arriving, sent = stage.room(), [], []
    if comm.rank:
        arriving = [comm.irecv(room, comm.rank - 1) for kind, _ in works if kind == "F"]
        for request in arriving:
            request.wait()
    for kind, m in works:
        if kind == "F":
            y = stage.forward(m, room if comm.rank else None)
            if comm.rank < comm.world_size - 1:
                sent.append(comm.isend(y, comm.rank + 1))
        else:
            last = comm.rank == comm.world_size - 1
            gradient = None if last else comm.recv(stage.room(), comm.rank + 1)
            gradient = stage.backward(m, gradient)
            if comm.rank:
                sent.append(comm.isend(gradient, comm.rank - 1))
    for request in sent:
        request.wait()
