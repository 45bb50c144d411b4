"""It begins at the beginning each time."""

POINTS = 3.0
HINT = "More work was lost than one interval"
REPLACE = {"            save(comm, disk, state)\n": "            pass\n"}
