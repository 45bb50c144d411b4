"""A function of MPI's world under a real mpirun: right, told when wrong, and gone."""

import os
import random
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

import numpy as np
import psutil
import pytest
from soaks import nightly, repeats
from stores import is_gone, wait_until

from distlab import (
    EngineFailed,
    EngineMissing,
    InvalidArgument,
    NestedWorld,
    NotSerializable,
    RankDied,
    RankRaised,
    WorldTimeout,
    collectives,
    run,
)
from distlab.collectives.chunks import chunk_edges
from distlab.engines import mpi
from distlab.patience import limit_in_words

KINDS = ["int64", "float64", "float32"]
COUNT = 23  # no multiple of 2, 3 or 4


def share_of(rank, kind):
    draw = np.random.default_rng(rank)
    if kind == "int64":
        return draw.integers(-(2**40), 2**40, COUNT)
    return draw.standard_normal(COUNT).astype(kind)


def blocks_of(rank, world_size, kind):
    """Return what a rank has for each of the others."""
    return np.stack([share_of(rank * world_size + r, kind) for r in range(world_size)])


def by_distlab(comm, kind):
    share, n = share_of(comm.rank, kind), comm.world_size
    total, known = share.copy(), share.copy()
    collectives.ring_all_reduce(comm, total)
    collectives.tree_broadcast(comm, known, root=n - 1)
    return {
        "all-reduce": total,
        "broadcast": known,
        "all-gather": np.stack(collectives.ring_all_gather(comm, share)),
        "reduce-scatter": collectives.ring_reduce_scatter(comm, share.copy()),
        "all-to-all": np.stack(
            collectives.pairwise_all_to_all(comm, list(blocks_of(comm.rank, n, kind)))
        ),
    }


def by_mpi(world, kind):
    share, n = share_of(world.rank, kind), world.size
    total, known = np.empty_like(share), share.copy()
    world.Allreduce(share, total)
    world.Bcast(known, root=n - 1)
    gathered = np.empty((n, COUNT), share.dtype)
    world.Allgather(share, gathered)
    lengths = np.diff(chunk_edges(COUNT, n))
    chunk = np.empty(lengths[world.rank], share.dtype)
    world.Reduce_scatter(share, chunk, lengths)
    exchanged = np.empty((n, COUNT), share.dtype)
    world.Alltoall(blocks_of(world.rank, n, kind), exchanged)
    return {
        "all-reduce": total,
        "broadcast": known,
        "all-gather": gathered,
        "reduce-scatter": chunk,
        "all-to-all": exchanged,
    }


def all_kinds(world, function):
    return {kind: function(world, kind) for kind in KINDS}


@pytest.mark.parametrize("n", [4, *(nightly(n) for n in (1, 3))])
def test_collectives_of_mpi_give_what_ours_give(n):
    ours = run(all_kinds, n, args=(by_distlab,)).results
    theirs = mpi.run(all_kinds, n, args=(by_mpi,))
    for rank in range(n):
        for kind in KINDS:
            close = {"int64": 0, "float64": 1e-12, "float32": 1e-5}[kind]
            for name, expected in ours[rank][kind].items():
                got = theirs[rank][kind][name]
                assert got.dtype == expected.dtype == kind
                assert np.allclose(got, expected, rtol=0, atol=close), (name, kind)


def test_each_rank_gets_mpis_own_world_the_arguments_and_no_torch():
    def look(world, *args):
        from mpi4py import MPI

        return world.rank, args, world is MPI.COMM_WORLD, "torch" in sys.modules

    expected = [(rank, ("a", 2), True, False) for rank in range(4)]
    assert mpi.run(look, args=("a", 2)) == expected


CELL = """
import numpy as np
FACTOR = 3

def triple(x):
    return FACTOR * x

def cell(world):
    total = np.empty(1)
    world.Allreduce(np.ones(1) * triple(world.rank), total)
    return total.item()

results = mpi.run(cell, 3)
"""


def test_a_function_typed_in_a_cell_travels_with_what_it_uses():
    names = {"mpi": mpi, "__name__": "__main__"}
    exec(CELL, names)
    assert names["results"] == [9.0] * 3


def test_output_is_tagged_whole_and_never_on_stderr(capfd):
    def speak(world):
        print("héllo", world.rank)
        print("to stderr", file=sys.stderr)
        os.write(1, b"raw\n")
        print("no end", end="")

    mpi.run(speak, 3)
    shown = capfd.readouterr()
    assert shown.err == ""
    assert sorted(shown.out.splitlines()) == sorted(
        f"[rank {r}] {line}"
        for r in range(3)
        for line in ("héllo", "to stderr", "raw", "no end")
        for line in [f"{line} {r}" if line == "héllo" else line]
    )


def test_quiet_shows_nothing(capfd):
    mpi.run(lambda world: print("hello"), 2, quiet=True)
    assert capfd.readouterr() == ("", "")


def test_ranks_open_no_network_port():
    def listening(world):
        import psutil

        open_ports = psutil.Process().net_connections(kind="inet")
        return [port for port in open_ports if port.status == psutil.CONN_LISTEN]

    assert mpi.run(listening, 3) == [[]] * 3


def test_the_settings_of_an_mpirun_or_batch_system_above_are_not_taken(monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "7")
    monkeypatch.setenv("OMPI_MCA_btl", "none_such")
    monkeypatch.setenv("PMIX_SERVER_URI4", "above.0;tcp4://127.0.0.1:1")
    monkeypatch.setenv("SLURM_JOBID", "1")
    assert mpi.run(lambda world: world.rank, 2) == [0, 1]


def endless(world, then=None):
    a, b = np.ones(3), np.ones(3)
    while True:
        world.Allreduce(a, b)
        if then is not None and world.rank == 2:
            then()


def failed(kind, *args, **options):
    with pytest.raises(kind) as raised:
        mpi.run(*args, **options)
    return raised.value


def test_an_exception_arrives_itself_with_the_learners_frames_only():
    def fails_on_one(world):
        if world.rank == 1:
            world.Send(np.ones(1), dest=9)
        world.Barrier()

    error = failed(RankRaised, fails_on_one, 3)
    story = str(error)
    assert error.rank == 1 and "raised Exception: MPI_ERR_RANK" in story
    assert "world.Send(np.ones(1), dest=9)" in story and ", in fails_on_one" in story
    assert ".pyx" not in story and "outcome.py" not in story
    assert "Comm call" not in story and "player" not in story


def test_mpi_is_never_started_in_the_notebook_even_where_its_names_are_used():
    from mpi4py import MPI

    def greatest(world):
        total = np.empty(1)
        world.Allreduce(np.array([world.rank + 0.5]), total, op=MPI.MAX)
        return total.item(), MPI.SUM

    assert mpi.run(greatest, 3) == [(2.5, MPI.SUM)] * 3
    assert not MPI.Is_initialized()


@pytest.mark.parametrize(
    "number", [signal.SIGSEGV, nightly(signal.SIGKILL), nightly(signal.SIGTERM)]
)
def test_a_rank_that_is_killed_is_named(number, capfd):
    def die():
        os.kill(os.getpid(), number)

    error = failed(RankDied, endless, 4, args=(die,))
    assert error.rank == 2
    assert f"rank 2 was killed by {signal.Signals(number).name}" in str(error)
    for rank in (0, 1, 3):
        assert f"rank {rank} was running" in str(error)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("status", [0, nightly(7)])
def test_a_rank_that_leaves_is_told_with_its_exit_status(status):
    error = failed(RankDied, endless, 4, args=(lambda: os._exit(status),))
    assert error.rank == 2 and f"exit status {status}" in str(error)


def test_an_abort_is_told_as_the_end_of_the_rank_that_called_it():
    def abort():
        from mpi4py import MPI

        MPI.COMM_WORLD.Abort(7)

    error = failed(RankDied, endless, 4, args=(abort,))
    assert error.rank == 2 and "exit status 7" in str(error)


def test_a_rank_that_hangs_is_shown_where_it_hangs():
    def hangs(world):
        if world.rank:
            time.sleep(60)
        world.Barrier()

    error = failed(WorldTimeout, hangs, 3, timeout_s=1)
    limit = limit_in_words(1, "timeout_s")
    assert f"ranks 0, 1 and 2 did not return within {limit}" in str(error)
    for line in ("time.sleep(60)", "world.Barrier()"):
        assert line in str(error)


def test_an_mpirun_that_is_killed_is_told_as_such():
    def kill_it():
        import time

        import psutil

        psutil.Process().parent().parent().kill()
        time.sleep(60)  # who is there in its place is not to be killed

    error = failed(EngineFailed, endless, 4, args=(kill_it,))
    assert "mpirun ended" in str(error) and "killed by SIGKILL" in str(error)


def test_an_mpirun_that_refuses_is_told_with_its_own_words(tmp_path, monkeypatch):
    fake = tmp_path / "mpirun"
    fake.write_text("#!/bin/sh\necho not enough slots >&2\nexit 213\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    error = failed(EngineFailed, endless, 4)
    assert "exit status 213" in str(error) and "not enough slots" in str(error)


def test_what_is_not_installed_is_told_in_one_line_with_its_remedy(monkeypatch):
    assert mpi.is_installed()
    monkeypatch.setitem(sys.modules, "mpi4py", None)  # no import of it succeeds
    assert not mpi.is_installed()
    error = failed(EngineMissing, endless, 4)
    assert str(error) == 'mpi.run needs mpi4py: pip install "distlab[mpi]"'
    monkeypatch.setattr(sysconfig, "get_path", lambda name: "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    error = failed(EngineMissing, endless, 4)
    assert "needs mpi4py and mpirun: pip" in str(error)


def test_what_cannot_be_run_is_refused_before_anything_starts():
    with pytest.raises(InvalidArgument, match=r"def hello\(world"):
        mpi.run(hello)
    with pytest.raises(InvalidArgument, match="world_size"):
        mpi.run(endless, 0)
    with pytest.raises(InvalidArgument, match="timeout_s"):
        mpi.run(endless, timeout_s=-1)
    with pytest.raises(NotSerializable, match=r"args\[0\] is a lock"):
        mpi.run(endless, args=(threading.Lock(),))
    with pytest.raises(RankRaised, match=r"mpi\.run was called inside rank") as raised:
        run(lambda comm: mpi.run(endless), 1)
    assert isinstance(raised.value.cause, NestedWorld)


def hello():
    return None


def test_a_result_that_cannot_travel_is_named():
    with pytest.raises(RankRaised, match=r"result\['x'\]\[1\] is a generator"):
        mpi.run(lambda world: {"x": [0, (i for i in range(3))]}, 2)


@repeats(1, 30)
def test_interrupts_at_random_moments_leave_nothing(tmp_path, monkeypatch, count):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(psutil.Process().children(recursive=True))

    def left():
        return {*os.listdir(tmp_path), *psutil.Process().children(True)} - before

    draw = random.Random(9)
    for _ in range(count):
        timer = threading.Timer(
            draw.uniform(0, 1.5), os.kill, (os.getpid(), signal.SIGINT)
        )
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            mpi.run(endless)
        timer.join()
        wait_until(lambda: not left())
    assert mpi.run(lambda world: world.rank, 2) == [0, 1]


KERNEL = """
import os, subprocess
import numpy as np
from distlab.engines import mpi
def endless(world):
    print(os.getpid(), flush=True)
    if world.rank == 0:
        print(subprocess.Popen(["sleep", "1000"]).pid, flush=True)
    a, b = np.ones(3), np.ones(3)
    while True:
        world.Allreduce(a, b)
mpi.run(endless, 4)
"""


@pytest.mark.parametrize(
    "kill", [os.killpg, pytest.param(os.kill, marks=pytest.mark.soak)]
)
def test_when_the_kernel_is_killed_all_of_mpi_goes(kill):
    kernel = subprocess.Popen(
        [sys.executable, "-c", KERNEL],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    pids = {int(kernel.stdout.readline().split()[-1]) for _ in range(5)}
    tree = psutil.Process(kernel.pid).children(recursive=True)
    assert pids < {process.pid for process in tree}
    assert "prterun" in {process.name() for process in tree}
    kill(kernel.pid, signal.SIGKILL)
    wait_until(lambda: all(map(is_gone, tree)))
    kernel.wait()
    kernel.stdout.close()
