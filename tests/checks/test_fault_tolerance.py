"""Exercise 17: a hint that no variant of it meets, and the simulated disk's manners."""

import pickle

from distlab.checks import fault_tolerance as checks
from distlab.checks.kit.grading import judge


def each_for_itself(comm, disk, job):
    """Every rank goes on from its own newest file, of whatever step."""
    state, name = job.begin(comm), f"rank-{comm.rank}"
    if name in disk.names():
        state = pickle.loads(disk.read(name))
    while state["step"] < job.steps:
        job.step(comm, state)
        if state["step"] % job.every == 0:
            disk.write(f"{name}.part", pickle.dumps(state))
            disk.sync(f"{name}.part")
            disk.rename(f"{name}.part", name)
    return state


def test_ranks_that_go_on_from_different_steps_are_told():
    verdict = judge(checks.robust, each_for_itself, (3, 6, 2, 2))
    assert "wait for each other" in str(verdict) or "different saves" in str(verdict)


def test_what_was_not_forced_to_the_disk_is_there_by_half():
    platter = checks.Platter()
    platter.files = {"a": b"12345678", "b": b"1234"}
    platter.safe = {"b": b"1234"}
    platter.restart()
    assert platter.files == {"a": b"1234", "b": b"1234"}
