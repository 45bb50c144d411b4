"""No note that is replaced: each save has a note of its own, and the newest counts."""

import pickle

POINTS = 10.0
HINT = ""


def save(comm, disk, state):
    step = state["step"]
    name = f"{step:06d}-{comm.rank}"
    disk.write(name, pickle.dumps(state))
    disk.sync(name)
    comm.barrier()
    if comm.rank == 0:
        disk.write("draft", pickle.dumps(comm.world_size))
        disk.sync("draft")
        disk.rename("draft", f"done-{step:06d}")
        for old in disk.names():
            if f"{step:06d}" not in old:
                disk.remove(old)


def load(comm, disk, job):
    state = job.begin(comm)
    done = [name for name in disk.names() if name.startswith("done-")]
    if not done:
        return state
    step = max(done).removeprefix("done-")
    mine = comm.rank if pickle.loads(disk.read(max(done))) == comm.world_size else 0
    saved = pickle.loads(disk.read(f"{step}-{mine}"))
    if pickle.loads(disk.read(max(done))) != comm.world_size:
        saved["random"] = state["random"]
    return saved
