"""Logs of NCCL's watchdog: who is behind, by how much, and how sure that is."""

import pytest

from distlab.diagnosis.flight.watchdog import has_watchdog, read_logs
from distlab.errors import InvalidArgument

OLD = (
    "[E ProcessGroupNCCL.cpp:458] [Rank {}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={}, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for "
    "1800487 milliseconds before timing out."
)
NEW = (
    "\x1b[33m{0}: 2026-06-07 23:46:59 \x1b[0m[rank{0}]:[E607 23:46:59.257 "
    "ProcessGroupNCCL.cpp:689] [PG ID 2 PG GUID 3(tp) Rank {0}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum={1}, OpType={2}, NumelIn=1024, "
    "NumelOut=1024, Timeout(ms)=600000) ran for 600010 milliseconds before timing out."
)
STATUS = (
    "[rank{0}]:[E607 23:46:59.259 ProcessGroupNCCL.cpp:2303] [PG ID 2 PG GUID 3(tp) "
    "Rank {0}]  failure detected by watchdog at work sequence id: {1} PG status: last "
    "enqueued work: {2}, last completed work: {3}"
)


def told(tmp_path, *lines):
    log = tmp_path / "slurm-7.out"
    log.write_text("\n".join(["step 1, loss 3.2", *lines, "srun: error: killed"]))
    assert has_watchdog(log)
    found = read_logs([log])
    return str(found), found.faults


def test_the_rank_behind_is_named_with_its_distance_and_its_line(tmp_path):
    said, late = told(tmp_path, OLD.format(0, 9120), OLD.format(3, 6088))
    assert late == [3]
    first, where, _ = said.split("\n")[:3]
    assert first.startswith("rank 3 is behind by 3,032 collectives: it waited in ")
    assert where == "    slurm-7.out, line 3"
    assert "ranks 1, 2 wrote nothing" in said and "TORCH_FR_BUFFER_SIZE" in said


def test_colors_prefixes_and_groups_are_read(tmp_path):
    lines = [NEW.format(0, 412, "ALLREDUCE"), STATUS.format(0, 412, 415, 411)]
    lines += [NEW.format(1, 397, "BROADCAST"), STATUS.format(1, 397, 397, 396)]
    said, late = told(tmp_path, *lines)
    assert late == [1] and said.startswith("rank 1 is behind by 15 collectives: it ")
    assert "broadcast(1,024 elements) (number 397)" in said
    assert "rank 0: all_reduce(1,024 elements), number 412, for 600 s, 3 more" in said


def test_ranks_in_the_same_collective_blame_none_of_them(tmp_path):
    said, late = told(tmp_path, OLD.format(0, 167), OLD.format(2, 167))
    assert late == [] and said.startswith("ranks 0, 2 timed out in the same collective")
    assert "rank 1 wrote nothing, and may be what the others wait for" in said


def test_a_log_without_the_watchdog_is_refused(tmp_path):
    (tmp_path / "a.log").write_text("all is well")
    assert not has_watchdog(tmp_path / "a.log")
    with pytest.raises(InvalidArgument, match="no line of NCCL's watchdog"):
        read_logs([tmp_path / "a.log"])
