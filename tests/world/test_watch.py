"""Watched jobs: ranks that something else started, and what their folders tell."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from stores import wait_until

from distlab.errors import InvalidArgument
from distlab.launch.watched import WatchedJob, find_ranks
from distlab.recorder import Recorder, SharedTrace, region_of

TRAINS = """
import distlab.watch
import sys, threading, torch, torch.distributed as dist
rank, world_size, meeting, what = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
how = {"init_method": f"file://{meeting}", "rank": rank, "world_size": world_size}
dist.init_process_group("gloo", **how)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
for step in range(5):
    if rank == 1 and step == 3 and what == "hang":
        threading.Event().wait()
    if rank == 1 and step == 3 and what == "raise":
        raise ValueError("bad sample 17")
    model(torch.rand(2, 4)).sum().backward()
print("done", flush=True)
"""
IN_OTHER_TIME = ["unshare", "--time", "--monotonic", "1000", "--fork", "--kill-child"]


def _can_have_other_clocks():
    try:
        asked = subprocess.run([*IN_OTHER_TIME, "true"], capture_output=True)
    except OSError:
        return False
    return asked.returncode == 0


@pytest.fixture
def job(tmp_path):
    """Return a function that starts a job of two ranks, each on a node of its own."""
    script = tmp_path / "train.py"
    script.write_text(TRAINS)

    @contextmanager
    def started(what, wrap=()):
        started = []
        for rank in range(2):
            folder = tmp_path / f"node-{rank}"
            names = {"RANK": f"{rank}", "WORLD_SIZE": "2", "SLURM_JOB_ID": "7"}
            names |= {"DISTLAB_WATCH": str(folder), "OMP_NUM_THREADS": "1"}
            args = [script, str(rank), "2", tmp_path / f"meeting-{what}", what]
            started.append(
                subprocess.Popen(
                    [*(wrap if rank else ()), sys.executable, *args],
                    env=os.environ | names,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        try:
            yield started
        finally:
            for process in started:
                process.kill()
                process.communicate()

    return started


def _ranks(tmp_path):
    return find_ranks(sorted(tmp_path.glob("node-*")))


def _told(tmp_path, **how):
    return WatchedJob(_ranks(tmp_path)).explain(**how)


def test_a_watched_hang_of_two_nodes_is_told_alive_and_dead(job, tmp_path):
    wrap = IN_OTHER_TIME if _can_have_other_clocks() else ()

    def waits():
        ranks = _ranks(tmp_path)
        return len(ranks) == 2 and WatchedJob(ranks).board.calls(0) == 9

    with job("hang", wrap):
        wait_until(waits)
        text, _ = _told(tmp_path, stacks=True)
        line = TRAINS.splitlines().index("        threading.Event().wait()") + 1
        assert f'train.py", line {line}' in text or wrap
        offset_s, error_s = WatchedJob(_ranks(tmp_path)).clocks.get(1, (-1000, 0))
        assert abs(offset_s + 1000) <= error_s + 0.01
    for file in tmp_path.rglob("rank-*.json"):
        os.utime(file, (0, 0))  # a node of another machine gives no sign any more
    text, found = _told(tmp_path)
    assert found and "No process of this job is left" in text
    assert "rank 0 waited in DDP's all_reduce(float32[20], SUM)" in text
    assert "for rank 1, in backward pass 4" in text


def test_a_watched_exception_is_the_cause_and_the_exit_status_stays(job, tmp_path):
    with job("raise") as (zero, one):
        said = one.communicate()[1]
        assert one.returncode == 1 and "ValueError: bad sample 17" in said
        assert "distlab" not in said
        zero.wait()
        text, found = _told(tmp_path)
    assert found and text.startswith("rank 1 raised ValueError: bad sample 17")


def test_a_watched_job_that_works_behaves_as_unwatched(job, tmp_path):
    with job("work") as processes:
        for process in processes:
            assert process.communicate() == ("done\n", "")
            assert process.returncode == 0
    text, found = _told(tmp_path)
    assert not found and text == "All 2 ranks have ended without an exception."


def test_a_folder_that_cannot_be_written_costs_a_line(tmp_path):
    (tmp_path / "file").write_text("")
    names = {"RANK": "0", "WORLD_SIZE": "1", "DISTLAB_WATCH": str(tmp_path / "file")}
    code = "import distlab.watch; print('goes on')"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | names,
        capture_output=True,
        text=True,
    )
    assert ran.stdout == "goes on\n" and ran.returncode == 0
    assert ran.stderr.startswith("distlab.watch: no notes of rank 0: ")
    assert ran.stderr.count("\n") == 1


def test_notes_of_another_version_are_refused(tmp_path):
    (tmp_path / "rank-0.json").write_text(json.dumps({"distlab_watch": 99}))
    with pytest.raises(InvalidArgument, match="another version"):
        find_ranks([tmp_path])
    (tmp_path / "rank-0.json").write_text("torn {")
    assert find_ranks([tmp_path]) == []


def test_a_ring_without_a_reader_keeps_the_latest_events(tmp_path):
    layout = region_of(1)
    with open(tmp_path / "notes", "w+b") as file:
        os.ftruncate(file.fileno(), layout.total)
        how = {"layout": layout, "overwrite": True}
        recorder = Recorder(0, 1, file.fileno(), **how)
        for step in range(2 * layout.kept_events + 5):
            recorder.event("mark", step, step, label="m", step=step)
        board = SharedTrace(1, file.fileno(), layout)
        steps = [event.step for event in board.trace().events]
    assert steps[-1] == 2 * layout.kept_events + 4
    assert len(steps) == layout.kept_events
    assert layout.total < 2_000_000
