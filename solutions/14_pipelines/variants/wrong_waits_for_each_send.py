"""Sends block: GPipe works, and 1F1B's neighbors send to each other at once."""

POINTS = 4.0
HINT = "Begin to send with isend"
REPLACE = {
    "sent.append(comm.isend(y, comm.rank + 1))": "comm.send(y, comm.rank + 1)",
    "sent.append(comm.isend(gradient, comm.rank - 1))": (
        "comm.send(gradient, comm.rank - 1)"
    ),
}
