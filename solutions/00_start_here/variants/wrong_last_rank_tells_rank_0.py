"""The last rank sends to rank 0, which has returned."""

POINTS = 4.0
HINT = "Who has to know of the last turn?"
REPLACE = {
    "if comm.rank < comm.world_size - 1:": "if True:",
    'send_object("your turn", comm.rank + 1)': (
        'send_object("your turn", (comm.rank + 1) % comm.world_size)'
    ),
}
