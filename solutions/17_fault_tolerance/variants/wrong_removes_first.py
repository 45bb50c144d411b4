"""The older save goes before the new one counts."""

POINTS = 4.0
HINT = "A file is asked for that was removed"
REPLACE = {
    "    disk.write(mine, pickle.dumps(state))\n": (
        "    for name in disk.names() if comm.rank == 0 else []:\n"
        '        if name != "newest":\n'
        "            disk.remove(name)\n"
        "    comm.barrier()\n"
        "    disk.write(mine, pickle.dumps(state))\n"
    ),
}
