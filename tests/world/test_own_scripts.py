"""`distlab launch`: scripts as torchrun runs them, and the words for how they end."""

import io
import json
import os
import signal
import subprocess
import sys

import pytest
from soaks import nightly

from distlab import Hang, InvalidArgument, Kill, Slow
from distlab.launch import script
from distlab.launch.script import Script, launch_script

TRAINS = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(module=torch.nn.Linear(10, 10))
for step in range(int(sys.argv[1]) - (rank == 1 and "fewer" in sys.argv)):
    model(torch.ones(4, 10)).sum().backward()
print(f"rank {rank} of {dist.get_world_size()}, local {os.environ['LOCAL_RANK']}")
dist.destroy_process_group()
"""


@pytest.fixture
def launched(tmp_path, capsys):
    """Run text as a script; return how it ended, and what was shown."""

    def launch(text, *args, ranks=2, **how):
        path = tmp_path / "job.py"
        path.write_text(text)
        run = launch_script(Script(str(path), args), ranks, **how)
        shown = capsys.readouterr()
        return run, (shown.out + shown.err).splitlines()

    return launch


def test_an_unchanged_script_runs_on_many_ranks_with_its_arguments(launched):
    faults = [Kill(1, 1000), Slow(0, 2.0)]
    run, shown = launched(TRAINS, "3", ranks=3, whole_trace=True, faults=faults)
    assert run.failure is None and not run.signal
    assert run.unmet[0].startswith("The kill of rank 1 at call 1000 did not happen: ")
    assert sorted(shown) == [
        f"[rank {rank}] rank {rank} of 3, local {rank}" for rank in range(3)
    ]
    assert "DDP's all_reduce of bias to weight" in run.trace.collectives()


DRAWS = """
import inspect, random, numpy, torch
assert "bucket_cap_mb" in inspect.signature(
    torch.nn.parallel.DistributedDataParallel).parameters
print(torch.initial_seed(), torch.rand(1).item(), random.random(), numpy.random.rand())
"""


def test_each_rank_draws_numbers_of_its_own(launched):
    run, shown = launched(DRAWS, ranks=3)
    assert run.failure is None and len(shown) == 3
    columns = zip(*(line.split()[2:] for line in shown), strict=True)
    assert [len(set(column)) for column in columns] == [3] * 4


def test_a_batch_fewer_is_named_where_it_hangs(launched):
    run, _ = launched(TRAINS, "5", "fewer", ranks=3)
    described = str(run.failure)
    assert "rank 1 returned after 4 backward passes and never called DDP's" in described
    assert "job.py, line 7: model(torch.ones(4, 10)).sum().backward()" in described
    assert "--page out.html" in described


class EndsOnceTold(io.StringIO):
    """A stream that has this process asked to end once it is told who hangs."""

    def write(self, text):
        if "hung, as planned" in text:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


def test_who_hangs_is_told_while_all_others_wait(launched, monkeypatch):
    monkeypatch.setattr(script, "_SAY_S", 0.5)
    monkeypatch.setattr(sys, "stderr", EndsOnceTold())
    run, _ = launched(TRAINS, "5", faults=[Hang(1, 7)], ranks=3)
    assert "rank 1 hung, as planned, job.py, line 7" in sys.stderr.getvalue()
    assert "rank 1 hung, as planned" in str(run.failure)
    assert run.signal == signal.SIGTERM


ENDS = {
    "one leaves with status 3": (
        "import os, sys\nif os.environ['RANK'] == '1': sys.exit(3)",
        "rank 1 raised SystemExit, and so left with exit status 3",
    ),
    "one ends at once with 0": (
        "import os\nif os.environ['RANK'] == '1': os._exit(0)",
        None,
    ),
    "one ends at once with 2": (
        "import os\nif os.environ['RANK'] == '1': os._exit(2)",
        "rank 1 left with exit status 2",
    ),
    "twice": (
        "import torch.distributed as dist\nfor _ in range(2):\n"
        "    dist.init_process_group('gloo')",
        "has called init_process_group before",
    ),
    "again after it was destroyed": (
        "import torch.distributed as dist\nfor _ in range(2):\n"
        "    dist.init_process_group('gloo')\n    dist.barrier()\n"
        "    dist.destroy_process_group()",
        None,
    ),
    "one never joins": (
        "import os, torch.distributed as dist\nif os.environ['RANK'] == '0':\n"
        "    dist.init_process_group('gloo')",
        "rank 1 returned and never called init_process_group()",
    ),
    "forks itself, and a fork fails": (
        "import os\npid = os.fork()\n"
        "if pid:\n    assert not os.waitpid(pid, 0)[1]\n    pid = os.fork()\n"
        "    if not pid: raise ValueError\n    assert os.waitpid(pid, 0)[1] == 256",
        None,
    ),
    "asks for input": (
        "import os\nif os.environ['RANK'] == '1': input()",
        "Only rank 0 has the standard input",
    ),
    "NCCL without a GPU": (
        "import torch, torch.distributed as dist\n"
        "if torch.cuda.is_available(): raise OSError('no GPUs found')\n"
        "dist.init_process_group('nccl')",
        "init_process_group('gloo')",
    ),
    "a syntax error": ("def", "SyntaxError"),
}


@pytest.mark.parametrize("name", ENDS)
def test_however_it_ends(launched, name):
    text, described = ENDS[name]
    run, _ = launched(text)
    assert described is None or described in str(run.failure), run.failure
    assert (described is None) == (run.failure is None), run.failure


def test_what_is_to_be_done_at_exit_is_done(launched, tmp_path):
    text = 'import atexit, os\natexit.register(os.mkdir, f"{__file__}{os.getpid()}")'
    run, _ = launched(text)
    assert run.failure is None
    assert len(list(tmp_path.glob("job.py?*"))) == 2


def test_output_without_end_is_shown_to_its_last_line(launched):
    _, shown = launched("for i in range(20_000): print(i)")
    assert len(shown) == 40_000


def test_there_has_to_be_a_script():
    with pytest.raises(InvalidArgument, match=r"no script 'nowhere.py'"):
        launch_script(Script("nowhere.py"), 2)


# ---- from the command line ---------------------------------------------------------


def command(*args):
    return [sys.executable, "-m", "distlab", "launch", *args]


def test_the_command_writes_trace_and_page_and_gives_torchruns_status(tmp_path):
    (tmp_path / "job.py").write_text(TRAINS)
    to = ["--trace", "t.json", "--page", "p.html", "--kill", "1@8"]
    how = {"cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run(command("-m", "job", "-n", "2", *to, "--", "9"), **how)
    assert done.returncode == 1
    assert "rank 1 was killed, as planned by Kill(rank=1, step=8)" in done.stderr
    rows = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert any("DDP's all_reduce" in row["name"] for row in rows)
    assert "<svg" in (tmp_path / "p.html").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, nightly(signal.SIGTERM)])
def test_a_signal_reaches_the_script_and_ends_it(tmp_path, number):
    path = tmp_path / "job.py"
    path.write_text(
        "import signal, sys, time\n"
        "def leave(*_): print('saved', flush=True); sys.exit(0)\n"
        "for each in (signal.SIGTERM, signal.SIGINT): signal.signal(each, leave)\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    job = subprocess.Popen(command(str(path), "-n", "2"), **how)
    for _ in range(2):
        assert "ready" in job.stdout.readline()
    os.kill(job.pid, number)
    shown, _ = job.communicate(timeout=30)
    assert shown.count("saved") == 2 and job.returncode == 1


def test_a_signal_to_the_whole_job_as_of_slurm_tells_what_was_before_it(tmp_path):
    path = tmp_path / "job.py"
    path.write_text(
        "import time, torch.distributed as dist; dist.init_process_group('gloo')\n"
        "print('ready', flush=True)\n"
        "dist.barrier() if dist.get_rank() == 0 else time.sleep(60)\n"
    )
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    how["start_new_session"] = True
    job = subprocess.Popen(command(str(path), "-n", "2"), **how)
    for _ in range(2):
        assert "ready" in job.stdout.readline()
    os.killpg(job.pid, signal.SIGTERM)
    _, told = job.communicate(timeout=30)
    assert "At SIGTERM: rank" in told and "rank 1 was running" in told
    assert "killed" not in told
