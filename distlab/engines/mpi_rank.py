"""The inside of a rank of MPI: start MPI, run the kernel's function, finalize MPI.

The kernel's end of the connection is in `distlab.launch.ranks`.
"""

import json
import os

from distlab.calls.serialize import unpack
from distlab.launch.outcome import outcome_of
from distlab.processes import Child
from distlab.recorder import Recorder

__all__ = ["main"]


def main(child: Child) -> None:
    """Run one rank of `MPI.COMM_WORLD`, from MPI's start to its end."""
    settings = json.loads(child.receive())
    os.environ["OMP_NUM_THREADS"] = str(settings["threads"])  # for numpy, once imported
    from mpi4py import MPI  # this starts MPI

    recorder = Recorder(child.index, settings["world_size"], child.shared[0])
    child.send(json.dumps({"outcome": "ready"}).encode())
    request = memoryview(child.receive())

    def work():
        fn, args, _ = unpack(request[1:])
        return fn(MPI.COMM_WORLD, *args)

    child.send(outcome_of(work, recorder))
    child.receive()  # the end: by now every rank has returned
    MPI.Finalize()
