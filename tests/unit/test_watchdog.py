"""Logs of NCCL's watchdog: who is behind, by how much, and how sure that is."""

import io

import pytest

from distlab.diagnosis.flight.watchdog import has_watchdog, read_logs
from distlab.errors import InvalidArgument

WORK = (
    "[Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, "
    "OpType={2}, NumelIn={3}, NumelOut=9, Timeout(ms)=600000) ran for 600010 "
    "milliseconds before timing out."
)
OLD = (
    "[E ProcessGroupNCCL.cpp:458] [Rank {}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={}, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for "
    "1800487 milliseconds before timing out."
)
PREFIX = "[rank{}]:[E607 23:46:59.257 ProcessGroupNCCL.cpp:689] "
STATUS = (
    "[PG ID 2 PG GUID 9(tp) Rank 1]  failure detected by watchdog at work sequence "
    "id: {1} PG status: last enqueued work: {2}, last completed work: {3}"
)
NEWER = (
    "[PG ID 0 PG GUID 0(default_pg) Rank {0}] Exception (either an error or timeout) "
    "detected by watchdog at work: {1}, last enqueued NCCL work: {2}, last completed "
    "NCCL work: {3}."
)


def timeout(rank, number, op="ALLREDUCE", size=1024, group_rank=None):
    group_rank = rank if group_rank is None else group_rank
    return PREFIX.format(rank) + WORK.format(group_rank, number, op, size)


def status(rank, number, enqueued, text=NEWER):
    return PREFIX.format(rank) + text.format(rank, number, enqueued, number - 1)


def told(*lines):
    text = "\n".join(["step 1, loss 3.2", *lines, "srun: error: killed"])
    return str(read_logs([("slurm-7.out", io.BytesIO(text.encode()))]))


def test_the_rank_behind_is_named_with_its_distance_and_its_line():
    said = told(OLD.format(0, 9120), OLD.format(3, 6088))
    first, where, sure = said.split("\n")[:3]
    assert first == (
        "rank 3 is behind by 3,032 collectives: in all_reduce(), number 6,088, where "
        "rank 0 waits in all_reduce(), number 9,120"
    )
    assert where == "    slurm-7.out, line 3, and slurm-7.out, line 2"
    assert "a proof: ranks 1 and 2 wrote nothing" in sure
    assert "TORCH_FR_BUFFER_SIZE" in said


def test_colors_progress_bars_and_messages_in_one_line_are_read():
    colored = f"\x1b[33m1: 2026-06-07 \x1b[0m{timeout(1, 397, 'BROADCAST')}"
    bar = f"\r 40%|####  | 4/10{timeout(0, 412)}{status(0, 412, 415)}"
    said = told(bar, colored, status(1, 397, 397))
    assert said.startswith(
        "rank 1 is behind by 15 collectives: in broadcast(1,024 elements), number 397, "
        "where rank 0 waits in all_reduce(1,024 elements), number 412"
    )
    assert (
        "rank 0: all_reduce(1,024 elements), number 412, for 600 s, 3 more en" in said
    )


def test_a_rank_that_only_wrote_its_state_counts_and_so_does_its_first_time_out():
    states = status(0, 340, 340), status(1, 346, 346)
    assert told(timeout(1, 346), *states).startswith(
        "rank 0 is behind by 6 collectives"
    )
    late = [timeout(0, 120), timeout(0, 117), timeout(0, 125), timeout(7, 88)]
    assert told(*late).startswith("rank 7 is behind by 29 collectives")


def test_a_time_out_belongs_to_the_group_of_the_lines_after_it_and_the_worlds_rank():
    lines = [
        timeout(5, 30, group_rank=1),
        status(5, 30, 31, STATUS.replace("{0}", "9")),
    ]
    lines += [timeout(4, 33, group_rank=0)]
    lines += [status(4, 33, 33, STATUS.replace("{0}", "9"))]
    lines = [line.replace("{1}", "1") for line in lines]
    said = told(*lines, timeout(0, 512), status(0, 512, 512))
    assert said.startswith("rank 5 is behind by 3 collectives: in all_reduce(1,024 ")
    assert "of group 9 (tp), number 30, where rank 4 waits" in said


def test_ranks_in_the_same_collective_blame_the_silent_one_or_none():
    said = told(OLD.format(0, 167), OLD.format(2, 167))
    assert said.startswith(
        "rank 1 wrote nothing, and ranks 0 and 2 wait in all_reduce()"
    )
    said = told(OLD.format(0, 167), OLD.format(1, 167))
    assert said.startswith("all ranks called all_reduce(), and ranks 0 and 1 did not")
    assert "Not sure" in said.split("\n")[2]


def test_two_sizes_in_one_collective_are_a_disagreement():
    said = told(timeout(0, 5, size=200), timeout(1, 5), timeout(2, 5))
    assert said.startswith(
        "ranks disagree about collective 5: rank 0 called all_reduce(200 elements), "
        "ranks 1 and 2 called all_reduce(1,024 elements)"
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried 4 GiB.",
            "rank 5 raised torch.OutOfMemoryError: CUDA out of memory. Tried 4 GiB., ",
        ),
        (
            "E1026 api.py:882] failed (exitcode: -9) local_rank: 3 (pid: 71) of binary",
            "rank 3 was killed by signal 9, ",
        ),
    ],
)
def test_what_ended_a_rank_before_the_first_time_out_is_told_first(line, said):
    told_first = told(line, timeout(0, 12), timeout(1, 12))
    assert told_first.startswith(f"{said}before any time-out\n    slurm-7.out, line 2")
    assert told(timeout(0, 12), timeout(1, 12), line).startswith("all ranks called")


def test_sends_and_receives_blame_nobody():
    said = told(timeout(0, 12, "SEND"), timeout(3, 40, "RECV"))
    assert said.startswith("ranks 0 and 3 timed out in sends or receives")


def test_a_log_without_the_watchdog_is_refused(tmp_path):
    (tmp_path / "a.log").write_text("all is well")
    assert not has_watchdog(tmp_path / "a.log")
    with pytest.raises(InvalidArgument, match="no line of NCCL's watchdog"):
        read_logs([("a.log", [b"all is well"])])
