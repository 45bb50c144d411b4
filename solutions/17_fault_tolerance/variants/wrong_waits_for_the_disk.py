"""Each save is waited for at once."""

POINTS = 7.0
HINT = "Training waits for the disk"
REPLACE = {
    "saving = comm.start(save, disk, copy.deepcopy(state))": (
        "comm.start(save, disk, copy.deepcopy(state)).wait()"
    ),
}
