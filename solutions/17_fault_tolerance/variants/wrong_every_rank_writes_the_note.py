"""Every rank writes the note, where another may just have synced it."""

POINTS = 0.0
HINT = "Which rank writes what all have in common?"
REPLACE = {"if comm.rank == 0:": "if True:"}
