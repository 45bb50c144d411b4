"""Scripts of one's own need few packages; what needs more names the extra."""

import subprocess
import sys

import pytest

LACKS = ("matplotlib", "PIL", "resvg_py", "greenlet", "numpy")
SCRIPT = """
import torch, torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(3))
else:
    dist.barrier()
"""
IN_A_SESSION = """
import torch

from distlab import ExtraMissing, run, show


def ping(comm):
    if comm.rank == 0:
        comm.send(torch.ones(3), 1)
        comm.send_object({"a": "b"}, 1)
        return None
    return comm.recv(torch.zeros(3), 0).tolist(), comm.recv_object(0)


def simulated():
    from distlab.simulated import Uniform


def collective():
    from distlab.collectives import ring_all_reduce


report = run(ping, 2, quiet=True)
print(report.results[1])
for more in (lambda: show.timeline(report.trace), simulated, collective):
    try:
        more()
    except ExtraMissing as error:
        print(error)
"""
SAID = """([1.0, 1.0, 1.0], {'a': 'b'})
a picture needs matplotlib: pip install "distlab[notebook]"
a world of simulated ranks needs numpy: pip install "distlab[notebook]"
distlab.collectives needs numpy: pip install "distlab[notebook]"
"""


@pytest.fixture
def small(tmp_path):
    """Return a function that runs Python where the packages of `LACKS` are missing."""
    block = f"import sys\nfor name in {LACKS}:\n    sys.modules[name] = None\n"
    (tmp_path / "sitecustomize.py").write_text(block)

    def python(*arguments):
        path = f"{tmp_path}:{':'.join(filter(None, sys.path))}"
        command = [sys.executable, *arguments]
        how = {"env": {"PYTHONPATH": path, "PATH": "/usr/bin:/bin"}, "cwd": tmp_path}
        return subprocess.run(command, capture_output=True, text=True, **how)

    return python


def test_a_mismatch_of_a_script_is_told_without_what_pictures_need(small, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = small("-m", "distlab", "launch", "train.py", "-n", "2")
    assert done.returncode, done.stdout
    said = done.stdout + done.stderr
    assert "rank 0 called all_reduce(float32[3], SUM), rank 1 called barrier()" in said


def test_ranks_exchange_messages_and_what_needs_more_names_the_extra(small):
    done = small("-c", IN_A_SESSION)
    assert done.stdout == SAID, done.stderr
