"""However a world ends, nothing of it stays."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading

import psutil
import pytest
import torch
from leaks import left_since, what_there_is
from soaks import nightly, repeats
from stores import is_gone, wait_until

from distlab import run
from distlab.processes.folders import new_folder


def exchange(comm, steps=6):
    n = comm.world_size
    sent, arrived = torch.ones(1000), torch.zeros(1000)
    for _ in range(steps):
        comm.sendrecv(sent, arrived, dst=(comm.rank + 1) % n, src=(comm.rank - 1) % n)
    return arrived.sum().item()


def held():
    """Return what this process holds: descriptors, processes, memory."""
    me = psutil.Process()
    return me.num_fds(), len(me.children(recursive=True)), me.memory_info().rss


def test_the_look_for_what_is_left_sees_processes_and_files_and_no_server():
    run(exchange, 2)
    before = what_there_is()
    assert not left_since(before)
    sleeper, folder = subprocess.Popen(["sleep", "1000"]), new_folder(in_memory=True)
    try:
        described = left_since(before)
        assert described == {f"process {sleeper.pid}": "sleep 1000", folder: ""}
    finally:
        sleeper.kill()
        sleeper.wait()
        os.rmdir(folder)
    assert not left_since(before)


MANY = [nightly(40)]
MANY += [pytest.param(500, marks=pytest.mark.soak)]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("count", [8, *MANY])
def test_many_runs_leave_no_descriptor_no_process_and_memory_flat(count):
    for _ in range(count // 2):
        run(exchange, 4)
    descriptors, processes, memory = held()
    for _ in range(count):
        assert run(exchange, 4).results == [1000.0] * 4
    assert held()[:2] == (descriptors, processes)
    assert held()[2] - memory < 8 * 2**20


def interrupt_after(seconds):
    """Return a timer; where it is started an interrupt has to be expected."""
    return threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))


@repeats(4, 50)
def test_interrupts_at_random_moments_leave_nothing(count):
    draw = random.Random(10)
    descriptors, processes, _ = held()
    for _ in range(count):
        timer = interrupt_after(draw.uniform(0, 0.25))
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            run(exchange, 4, args=(10**9,))
        timer.join()
    assert held()[:2] == (descriptors, processes)
    assert run(exchange, 4).results == [1000.0] * 4


def test_an_interrupt_finds_the_handler_that_was_there_before():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append("mine"))
    try:
        timer = interrupt_after(0.1)
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            run(exchange, 2, args=(10**9,))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == ["mine"]


KERNEL = """
import os
from distlab import run
def endless(comm):
    print(os.getpid(), flush=True)
    if comm.rank == 0:
        import subprocess
        print(subprocess.Popen(["sleep", "1000"]).pid, flush=True)
    while True:
        comm.barrier()
run(endless, 4)
"""


def test_when_the_kernel_is_killed_its_ranks_go():
    kernel = subprocess.Popen(
        [sys.executable, "-c", KERNEL], stdout=subprocess.PIPE, text=True
    )
    pids = [int(kernel.stdout.readline().split()[-1]) for _ in range(5)]
    tree = psutil.Process(kernel.pid).children(recursive=True)
    assert len(pids) == 5 and len(tree) >= 5
    kernel.kill()
    wait_until(lambda: not any(map(psutil.pid_exists, pids)))
    kernel.wait()
    kernel.stdout.close()
    wait_until(lambda: all(map(is_gone, tree)))


SERVER_KILLED = """
import psutil
from distlab import ProcessServerFailed, World, run
def rank_of(comm):
    return comm.rank
def kill_server():
    for process in psutil.Process().children():
        process.kill()
        process.wait()
run(rank_of, 2)
kill_server()
assert run(rank_of, 2).results == [0, 1]
world = World(2)
kill_server()
try:
    world.run(rank_of)
except ProcessServerFailed as error:
    print(error)
assert world.run(rank_of).results == [0, 1]
kill_server()
run(rank_of, 2)  # by a new server
world.close()
"""


def test_when_the_process_server_is_killed_the_next_call_starts_another():
    code = [sys.executable, "-c", SERVER_KILLED]
    done = subprocess.run(code, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "The next call starts a new one" in done.stdout


SPAWNED = """
from distlab.calls.printed_output import Console
from distlab.launch.ranks import Ranks
from distlab.calls.serialize import pack_task
from distlab.processes import Interrupts
def work(comm):
    import torch
    room = torch.zeros(1)
    other = 1 - comm.rank
    comm.sendrecv(torch.full((1,), float(comm.rank)), room, dst=other, src=other)
    return room.item()
ranks = Ranks(2, "gloo", persistent=False, start_method="spawn")
with Interrupts() as interrupts:
    ranks.wait_ready(interrupts)
    outcomes = ranks.call(
        [pack_task(work, (), ())],
        console=Console(2, True), timeout_s=60, faults=(), interrupts=interrupts,
    )
ranks.leave()
ranks.close()
print([outcome.value for outcome in outcomes])
"""


def test_ranks_can_be_spawned_where_forking_is_not_safe():
    code = [sys.executable, "-c", SPAWNED]
    done = subprocess.run(code, capture_output=True, text=True)
    assert done.stdout == "[1.0, 0.0]\n", done.stderr
    assert done.stderr == ""


def test_nothing_listens_beyond_loopback_while_a_world_runs():
    def listening(comm):
        comm.barrier()
        rows = _sockets()
        comm.barrier()
        return rows

    without = _open_to_all(_sockets())
    rows = run(listening, 4).results[0]
    assert any(state == "0A" for _, _, state in rows), "gloo should listen on loopback"
    assert _open_to_all(rows) <= without


def _sockets():
    """Return (table, local address, state) of every internet socket of this machine."""
    rows = []
    for name in ("tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/net/{name}") as file:
            rows += [(name, *_fields(line)) for line in list(file)[1:]]
    return rows


def _fields(line):
    return line.split()[1], line.split()[3]


def _open_to_all(rows):
    return {
        (name, place)
        for name, place, state in rows
        if state in ("0A", "07") and not _is_loopback(name, place.split(":")[0])
    }


def _is_loopback(name, address):
    packed = bytes.fromhex(address)
    if not name.endswith("6"):
        return packed[::-1][0] == 127
    words = b"".join(packed[i : i + 4][::-1] for i in range(0, 16, 4))
    text = socket.inet_ntop(socket.AF_INET6, words)
    return text == "::1" or text.startswith("::ffff:127.")


@pytest.mark.soak
def test_a_world_of_four_takes_less_than_600_megabytes_in_all():
    code = """
import psutil
from distlab import World
import torch
world = World(4)
world.run(lambda comm: torch.ones(10).sum().item())
me = psutil.Process()
print(sum(p.memory_full_info().pss for p in [me, *me.children(recursive=True)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert int(done.stdout) < 600 * 10**6
