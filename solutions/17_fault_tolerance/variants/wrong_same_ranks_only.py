"""Another number of ranks finds no file of its own."""

POINTS = 7.0
HINT = "a rank may find no file of its own"
REPLACE = {"if world_size == comm.world_size:": "if True:"}
