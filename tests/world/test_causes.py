"""Causes that a script's own handlers, exits and threads would hide from its ranks."""

from pathlib import Path

import pytest
from soaks import nightly

from distlab.launch.script import Script, launch_script

HANGS = Path(__file__).parents[2] / "docs" / "hangs"
BEGIN = """import os, sys, signal, threading, time, torch, torch.distributed as dist
from datetime import timedelta
dist.init_process_group("gloo", timeout=timedelta(seconds=LIMIT))
rank = dist.get_rank()
"""
# name -> (script after BEGIN, what its first line says, and what else it says)
CAUSES = {
    "a mismatch that is caught": (
        """
for step in range(4):
    try:
        dist.all_reduce(torch.ones(3 if rank == 1 and step == 1 else 4))
    except Exception:
        pass
""",
        "ranks disagree about collective 2: rank 0 called all_reduce(float32[4], SUM)",
        "The exception that this raises here was caught.",
    ),
    "a collective of objects beside DDP's": (
        """
if rank == 0:
    dist.all_gather_object([None, None], "saved")
torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
""",
        "rank 0 called all_gather_object's all_gather(int64[1], object)",
        "rank 1 called DDP's all_gather(int64[1])",
    ),
    "pieces of an all-to-all": (
        """
out, into = torch.ones(4, 2), torch.empty(5 - rank, 2)
dist.all_to_all_single(into, out, [2, 3 - rank], [2, 2])
""",
        "rank 0 expects 6 elements from rank 1, which sends 4, in all_to_all_single()",
        "exchange the sizes",
    ),
    "a message fewer than its receiver expects": (
        """
if rank == 1:
    dist.recv(torch.zeros(1), 0)
dist.all_reduce(torch.ones(1))
""",
        "rank 0 waits in all_reduce(float32[1], SUM) for rank 1, which waits in recv "
        "from rank 0",
        "line 7: dist.all_reduce(torch.ones(1))\n\n    Count the sends and receives",
    ),
    "a thread that shares the group": (
        """
if rank == 1:
    threading.Thread(target=dist.all_gather_object, args=([0, 0], 1)).start()
    time.sleep(0.5)
dist.barrier()
if rank == 0:
    dist.all_gather_object([0, 0], 1)
""",
        "ranks disagree about collective 1: rank 0 called barrier(), rank 1 called ",
        "\n    Threads of one rank call collectives of the same group, in no fixed",
    ),
    "a message of several lines": (
        """
if rank == 1:
    raise ValueError("first\\nsecond")
dist.barrier()
""",
        "rank 1 raised ValueError: first",
        'raise ValueError("first\\nsecond")\n    second\n',
    ),
    "os._exit": (
        """
dist.all_reduce(torch.ones(1))
if rank == 1:
    os._exit(0)
dist.all_reduce(torch.ones(1))
""",
        "rank 1 left by os._exit(0), before its script's end, and the others lost",
        "rank 0 lost its connection",
    ),
    "a time-out that is too short": (
        """
if rank == 1:
    time.sleep(100)
dist.all_reduce(torch.ones(1))
""",
        "rank 1 did not reach all_reduce(float32[1], SUM), in which rank 0 waited, "
        "within 1 s",
        "line 6: time.sleep(100)",
    ),
}
PUBLIC = {
    "01_uneven_batches": "rank 1 called barrier() after 4 backward passes, ",
    "02_a_skipped_batch": "rank 1 called all_reduce(float32[1], SUM) after 4 backward",
    "03_a_local_decision": "rank 0 called DTensor's all_gather_into_tensor",
    "04_a_collective_in_finally": "rank 1 was handling ValueError: bad sample 17 in",
    "05_rank_0_fails_to_write": "rank 0 raised SystemExit, and so left with exit",
    "06_who_missed_the_barrier": "rank 1 did not reach monitored_barrier(), in which",
    "07_a_signal_handler_that_exits": "rank 0 left by sys.exit(0) at line 7, in its "
    "handler of SIGTERM, while at line ",
    "08_other_keys": "rank 2 called broadcast(float32[100], 0), ranks 0 and 1 called",
    "09_gradients_that_are_none": "rank 0 called all_reduce(float32[2, 4], SUM), ",
    "10_batched_receives": "each waits for the next: rank 0 → rank 1 → rank 2 → rank 0",
}
DAILY = {"04_a_collective_in_finally", "07_a_signal_handler_that_exits"}


@pytest.mark.parametrize("name", CAUSES)
def test_a_hidden_cause_is_told_first(name, tmp_path):
    text, first, also = CAUSES[name]
    script = tmp_path / "job.py"
    limit = "1" if "short" in name else "60"
    script.write_text(BEGIN.replace("LIMIT", limit) + text.lstrip())
    failure = launch_script(Script(str(script)), 2).failure
    said = str(failure)
    assert first in said.partition("\n")[0], said
    assert also in said, said


@pytest.mark.parametrize(
    "name", [name if name in DAILY else nightly(name) for name in PUBLIC]
)
def test_a_public_hang_is_named_as_the_page_says(name):
    failure = launch_script(Script(str(HANGS / f"{name}.py")), 3).failure
    first = str(failure).partition("\n")[0]
    assert PUBLIC[name] in first, str(failure)


def test_ports_that_differ_are_named_as_torchrun_would_hang(tmp_path, capsys):
    script = tmp_path / "job.py"
    port = 'os.environ["MASTER_PORT"] = str(29500 + int(os.environ["RANK"]))\n'
    script.write_text("import os\n" + port + BEGIN.replace("LIMIT", "60"))
    assert launch_script(Script(str(script)), 2).failure is None
    assert "under torchrun they would not meet" in capsys.readouterr().out


def test_a_thread_that_keeps_a_rank_alive_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("distlab.launch.script._SAY_S", 1.0)
    script = tmp_path / "job.py"
    script.write_text(
        BEGIN.replace("LIMIT", "4")
        + "threading.Thread(target=time.sleep, args=(6,), name='prefetch').start()\n"
        "if rank == 0: dist.barrier()\n"
    )
    launch_script(Script(str(script)), 2)
    told = capsys.readouterr().err
    assert told.count("has not called barrier()") == 1
    assert "rank 1 had reached its end, and waited for its thread prefetch" in told
