"""Two places for saves, A and B: the one that does not count is written."""

import pickle

POINTS = 10.0
HINT = ""


def save(comm, disk, state):
    comm.barrier()
    place = "A"
    if "newest" in disk.names() and disk.read("newest")[:1] == b"A":
        place = "B"
    mine = f"{place}/{comm.rank}"
    disk.write(mine, pickle.dumps(state))
    disk.sync(mine)
    comm.barrier()
    if comm.rank == 0:
        disk.write("draft", place.encode() + bytes([comm.world_size]))
        disk.sync("draft")
        disk.rename("draft", "newest")
    comm.barrier()


def load(comm, disk, job):
    state = job.begin(comm)
    if "newest" in disk.names():
        place, world_size = disk.read("newest")
        same = world_size == comm.world_size
        rank = comm.rank if same else 0
        saved = pickle.loads(disk.read(f"{chr(place)}/{rank}"))
        state = saved if same else saved | {"random": state["random"]}
    return state
