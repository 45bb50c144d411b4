"""The last rank sends to rank 0, which has returned."""

POINTS = 4.0
HINT = "whom must the last one tell"
REPLACE = {
    "if comm.rank < comm.world_size - 1:": "if True:",
    'send_object("your turn", comm.rank + 1)': (
        'send_object("your turn", (comm.rank + 1) % comm.world_size)'
    ),
}
