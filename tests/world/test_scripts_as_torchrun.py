"""`distlab launch` runs scripts as torchrun does; where it cannot, it says so."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading

import pytest
from soaks import nightly

from distlab.launch import script
from distlab.launch.script import Script, launch_script

INIT = "import os, sys, time, torch, torch.distributed as dist\n"
INIT += "dist.init_process_group('gloo')\nrank = dist.get_rank()\n"


@pytest.fixture
def launched(tmp_path, capsys):
    """Run text as a script; return its failure in words, and what was shown."""

    def launch(text, *args, ranks=2, **how):
        path = tmp_path / "job.py"
        path.write_text(text)
        run = launch_script(Script(str(path), args), ranks, **how)
        shown = capsys.readouterr()
        return f"{run.failure or ''}", shown.out + shown.err + "\n".join(run.unmet)

    return launch


# ---- what a script is given --------------------------------------------------------

GIVEN = """
import inspect, json, os, sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.distributed.device_mesh import init_device_mesh
calls = [DDP.__init__, init_device_mesh, torch.Generator.manual_seed]
for name in sorted(dist.__all__ if hasattr(dist, "__all__") else dir(dist)):
    calls.append(getattr(dist, name, None))
calls = [c for c in calls if inspect.isfunction(c)]
print(json.dumps({
    "file": __file__, "argv": sys.argv, "path": sys.path[0], "main": sorted(
        name for name in vars(sys.modules["__main__"]) if name.startswith("__")),
    "environment": sorted(n for n in os.environ if n.startswith("TORCHELASTIC_")),
    "signatures": [(c.__module__, c.__qualname__, str(inspect.signature(c)), c.__doc__)
        for c in calls],
}))
"""
# Of torchrun's agent; nothing here answers them.
AGENTS = {"TORCHELASTIC_ERROR_FILE", "TORCHELASTIC_SIGNALS_TO_HANDLE"}


def test_a_script_finds_what_torchrun_gives_it(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "job.py").write_text(GIVEN)
    found = []
    for how in (
        ["torch.distributed.run", "--standalone", "--nproc-per-node", "1"],
        ["distlab", "launch", "--standalone", "--nproc_per_node=1"],
    ):
        command = [sys.executable, "-m", *how, "sub/job.py", "--lr", "3", "-n", "2"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        found.append(json.loads(done.stdout[done.stdout.index("{") :]))
    theirs, ours = found
    theirs["environment"] = sorted(set(theirs["environment"]) - AGENTS)
    assert ours == theirs


# ---- ranks of its own --------------------------------------------------------------

OWN = """
import os, sys, time, torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, world, how):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", sys.argv[3]
    dist.init_process_group("gloo", rank=rank, world_size=world)
    total = torch.ones(1)
    dist.all_reduce(total)
    print(f"{rank} of {dist.get_world_size()}: {total.item()}", flush=True)
    if rank == 1 and how == "skip": dist.barrier()
    if rank == 1 and how == "raise": raise ValueError("bad sample 17")
    if rank == 1 and how == "kill": os.kill(os.getpid(), 9)
    dist.all_reduce(total)
if __name__ == "__main__":
    if sys.argv[1] == "mp.spawn": mp.spawn(work, args=(3, sys.argv[2]), nprocs=3)
    else:
        made = mp.get_context(sys.argv[1]).Process
        ranks = [made(target=work, args=(r, 3, sys.argv[2])) for r in range(3)]
        for rank in ranks: rank.start()
        for rank in ranks: rank.join()
    print("over")
"""
TOLD = {
    "well": "",
    "skip": "rank 1 called barrier(), ranks 0 and 2 called all_reduce(float32[1], SUM)",
    "raise": "rank 1 raised ValueError: bad sample 17\n\n    job.py, line 10, in work",
    "kill": "rank 1 ended at once: it was killed, crashed, or called os._exit",
}
WAYS = [("fork", how) for how in TOLD] + [("fork", "again")]
WAYS += [nightly(way, how) for way in ("mp.spawn", "forkserver") for how in TOLD]


@pytest.mark.parametrize("way, how", WAYS)
def test_ranks_that_a_script_starts_are_followed(launched, way, how):
    text, port = OWN, str(script._free_port())
    if how == "again":
        head, main = OWN.split('if __name__ == "__main__":\n')
        text = f'{head}for how in "well", "skip":\n{main}'.replace("sys.argv[2]", "how")
    failure, shown = launched(text, way, how, port, ranks=1)
    assert TOLD.get(how, TOLD["skip"]) in failure, failure
    assert bool(failure) == (how != "well")
    assert "of 3: 3.0" in shown and ("over" in shown) == (how in ("well", "again"))


def test_ranks_of_several_ranks_are_not_watched_and_it_is_said(launched):
    text = OWN.replace("sys.argv[3]", "str(int(sys.argv[3]) + int(os.environ['RANK']))")
    failure, shown = launched(text, "fork", "well", str(script._free_port()))
    assert not failure and shown.count("distlab launch -n 1") == 2


# ---- arguments of init_process_group, groups of some, forks ------------------------

STORE = "dist.TCPStore('localhost', int(sys.argv[1]), 2, rank == 0)"
CALLS = {
    "backend='gloo', rank=rank, world_size=2": "",
    "'gloo', 'env://', None, 2, rank": "",
    f"'gloo', rank=rank, world_size=2, store={STORE}": "",
    "'gloo', f'tcp://localhost:{sys.argv[1]}', rank=rank, world_size=2": "",
    "'gloo', f'file://{sys.argv[0]}.meet', rank=rank, world_size=2": "",
    "'gloo', world_size=4, rank=rank": "world_size=4), but distlab launch started 2 "
    "ranks; -n 4 starts as many",
    "'gloo', rank=1 - rank": "take rank=int(os.environ['RANK'])",
}


@pytest.mark.parametrize("arguments", CALLS)
def test_the_arguments_of_init_process_group_count(launched, arguments):
    text = "import os, sys, torch, torch.distributed as dist\n"
    text += "rank = int(os.environ['RANK'])\n"
    text += f"dist.init_process_group({arguments})\nt = torch.ones(1)\n"
    text += "dist.all_reduce(t)\nassert t == 2 and dist.get_rank() == rank\n"
    failure, _ = launched(text, str(script._free_port()))
    assert CALLS[arguments] in failure and bool(failure) == bool(CALLS[arguments])


def test_a_group_that_only_its_members_make_is_warned_of(launched):
    text = INIT + "if rank < 2: g = dist.new_group([0, 1]); dist.barrier(g)\n"
    failure, shown = launched(text + "dist.barrier()\nprint('over')", ranks=3)
    assert not failure and shown.count("over") == 3
    assert "rank 2 never called new_group([0, 1]), job.py, line 4: if rank < 2" in shown


def test_groups_that_would_meet_in_one_place_are_refused(launched):
    text = INIT + "dist.new_group([0, 1] if rank < 2 else [2, 3])\ndist.barrier()\n"
    failure, _ = launched(text, ranks=4)
    assert (
        "called new_group([0, 1])" in failure and "called new_group([2, 3])" in failure
    )


def test_a_fork_that_uses_the_group_is_named(launched, monkeypatch):
    monkeypatch.setattr(script, "_SAY_S", 1.0)
    monkeypatch.setattr(script, "progress", end_once(script.progress))
    text = INIT + "pid = os.fork() if rank == 0 else 1\n"
    text += "if not pid: dist.all_reduce(torch.ones(1))\n"
    text += "if rank == 0: os.waitpid(pid, 0)\ndist.all_reduce(torch.ones(1))\n"
    _, shown = launched(text)
    assert "A fork of rank 0 called all_reduce() on a process group" in shown
    assert "job.py, line 5: if not pid" in shown
    assert "rank 0 was running, job.py, line 6: if rank == 0: os.waitpid" in shown


# ---- silence, signals --------------------------------------------------------------


def end_once(progress):
    def told(*args):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return progress(*args)

    return told


SILENT = {
    "time.sleep(1000)": "No rank has computed for 10 s:",
    "dist.barrier() if rank else dist.distributed_c10d._get_default_store().get('x')": (
        "Rank 0 has not called barrier(), which rank 1 waits in:"
    ),
    "import threading; t = threading.Thread(target=dist.barrier); t.start(); t.join()\n"
    "dist.recv(torch.ones(1), 1 - rank)": "Each waits for the next: rank 0 → rank 1",
}


@pytest.mark.parametrize("text", SILENT)
def test_no_hang_is_silent(launched, monkeypatch, text):
    monkeypatch.setattr(script, "_SAY_S", 1.0)
    monkeypatch.setattr(script, "progress", end_once(script.progress))
    _, shown = launched(INIT + text)
    assert SILENT[text] in shown and ", job.py, line " in shown


STUBBORN = """
import signal, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
for each in (signal.SIGTERM, signal.SIGINT): signal.signal(each, signal.SIG_IGN)
print("ready", flush=True)
while True: pass
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, nightly(signal.SIGINT)])
def test_a_signal_tells_at_once_and_the_second_kills(tmp_path, number):
    (tmp_path / "job.py").write_text(STUBBORN)
    command = [sys.executable, "-m", "distlab", "launch", "--json", "r.json", "job.py"]
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    job = subprocess.Popen(command, cwd=tmp_path, text=True, **pipes)
    for _ in range(2):
        assert "ready" in job.stdout.readline()
    os.kill(job.pid, number)
    told = [job.stderr.readline() for _ in range(6)]  # the ranks are alive
    assert told[1].startswith(f"At {number.name}: ranks 0 and 1 have not returned")
    assert "line 7: while True: pass" in told[4]
    os.kill(job.pid, number)
    assert job.wait(timeout=30) == 1
    facts = json.loads((tmp_path / "r.json").read_text())
    assert facts["signal"] == number.name
    assert [rank["doing"][:18] for rank in facts["ranks"]] == [
        f"rank {rank} was running" for rank in range(2)
    ]


def test_ctrl_c_at_a_terminal_tells_before_the_ranks_get_it(tmp_path):
    (tmp_path / "job.py").write_text(INIT + "dist.barrier()\n"
        "print('ready') if not rank else (print('ready'), time.sleep(1000))\n"
        "dist.barrier()\n")  # fmt: skip
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        command = [sys.executable, "-m", "distlab", "launch", "job.py"]
        os.execvp(sys.executable, command)
    shown = ""
    while shown.count("ready") < 2:
        shown += os.read(terminal, 65536).decode()
    os.write(terminal, b"\x03")
    try:
        while more := os.read(terminal, 65536):
            shown += more.decode()
    except OSError:  # the terminal's other end is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert "At SIGINT: rank 1 has not returned, and rank 0 waits for it" in shown
    assert "line 5: print('ready') if not rank" in shown and "Traceback" not in shown


# ---- the command line --------------------------------------------------------------

LINES = {
    "--nproc-per-node 2 --standalone job.py --lr 3 -n 5": ["--lr", "3", "-n", "5"],
    "--nproc_per_node=2 --nnodes 1 --rdzv-backend c10d -m job -x": ["-x"],
    "job.py -n 2 --lr 3": ["--lr", "3"],
    "job.py -n2 -- -n 4": ["-n", "4"],
    "-m job -n 2 a": ["a"],
    "--nnodes=2 job.py": "--nnodes 2: distlab launch runs the ranks of one machine",
    "--no-python job.py": "--no-python: the target is a Python file",
    "--tee 1 job.py": "--log-dir DIR",
    "--banana 1 job.py": "--banana 1: not an option",
}


@pytest.mark.parametrize("line", LINES)
def test_torchruns_command_line(line, monkeypatch, capsys):
    from typer.testing import CliRunner

    from distlab.__main__ import app
    from distlab.commands import launch

    asked = []

    def noted(script, ranks, **how):
        asked.append((script, ranks))
        return launch.ScriptRun(trace=None)

    monkeypatch.setattr(launch, "launch_script", noted)
    monkeypatch.setattr(launch, "_write", lambda *_: None)
    done = CliRunner().invoke(app("launch"), ["launch", *line.split()])
    if isinstance(LINES[line], str):
        assert LINES[line] in done.output and done.exit_code == 1 and not asked
    else:
        assert asked[0][0].args == LINES[line] and asked[0][1] == 2


def test_the_output_is_kept_by_rank(launched, tmp_path):
    text = "import os\nfor i in range(30): print(i, os.environ['RANK'])"
    launched(text, log_dir=tmp_path / "logs")
    for rank in range(2):
        kept = (tmp_path / "logs" / f"rank_{rank}.log").read_text()
        assert kept == "".join(f"{i} {rank}\n" for i in range(30))
