"""Dumps as NCCL leaves them, and dumps that are broken, explained."""

import json
import pickle
import re

import pytest

from distlab.diagnosis import ranks_in_words
from distlab.diagnosis.flight import explain
from distlab.errors import InvalidArgument

SECOND = 10**9
BEGAN = 1_700_000_000 * SECOND
FRAMES = [
    {"name": "all_reduce", "filename": "/x/site-packages/torch/c10d.py", "line": 1},
    {"name": "step", "filename": "/job/train.py", "line": 31},
]


def call(number, name="all_reduce", sizes=((4,),), state="completed", **more):
    """Return an entry as NCCL's recorder has it."""
    return {
        "frames": FRAMES,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "p2p_seq_id": 0,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": BEGAN + number * SECOND,
        "input_sizes": [list(size) for size in sizes],
        "input_dtypes": ["Float"] * len(sizes),
        "output_sizes": [list(size) for size in sizes],
        "output_dtypes": ["Float"] * len(sizes),
        "state": state,
        "retired": state == "completed",
        "is_p2p": False,
        "record_id": number - 1,
    } | more


def pair(number, name, **more):
    """Return the entry of a send or receive, "send 0->1" or "recv 1<-0"."""
    of_pair = {"p2p_seq_id": number, "is_p2p": True, "collective_seq_id": 0}
    return call(number, name, **of_pair, state="started", **more)


def dump(entries, groups=None, world=4, version="2.10"):
    """Return one rank's dump."""
    ranks = {"0": range(world)} | (groups or {})
    config = {
        name: {"desc": "tp" if name != "0" else "default_pg", "ranks": str(list(each))}
        for name, each in ranks.items()
    }
    return {"version": version, "pg_config": config, "entries": entries}


def leave(folder, dumps, name="nccl_trace_rank_"):
    """Write rank -> dump; return the folder."""
    for rank, each in dumps.items():
        data = each if isinstance(each, bytes) else pickle.dumps(each, protocol=2)
        (folder / f"{name}{rank}").write_bytes(data)
    return folder


def described(folder, calls, **more):
    """Return what is explained of rank -> entries."""
    return explain(leave(folder, {r: dump(each, **more) for r, each in calls.items()}))


def upto(last, state="started", **more):
    """Return the calls 1 to `last`, of which the last is still going on."""
    return [*(call(n) for n in range(1, last)), call(last, state=state, **more)]


def test_a_rank_that_skipped_a_collective_is_named_with_all_that_wait(tmp_path):
    calls = {rank: upto(7) for rank in range(4)} | {1: upto(6, "completed")}
    explained = described(tmp_path, calls)
    assert explained.verdict == (
        "rank 1 never called all_reduce(float32[4]), which ranks 0, 2 and 3 wait in"
    )
    text = str(explained)
    assert "It is collective 7, begun" in text and "train.py, line 31" in text
    assert "begun first by rank 0, at 2023-11-14 22:13:27 UTC" in text
    assert "site-packages" not in text and "c10d" not in text


def test_every_side_of_a_disagreement_is_named(tmp_path):
    sizes = {0: (4,), 1: (2, 2), 2: (6,), 3: (4,)}
    calls = {rank: upto(3, sizes=(size,)) for rank, size in sizes.items()}
    assert described(tmp_path, calls).verdict == (
        "ranks disagree about collective 3: rank 1 called "
        "all_reduce(float32[2, 2]), rank 2 called all_reduce(float32[6]), ranks 0 and "
        "3 called all_reduce(float32[4])"
    )


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["reduce", "broadcast"], "rank 1 skipped all_reduce(float32[4])."),
        (["barrier", "all_reduce"], "rank 1 made one call more."),
        (["reduce", "all_reduce"], "rank 1 called two in the other order."),
        (["scatter", "gather"], "Look for a branch"),
    ],
)
def test_a_disagreement_is_explained_by_the_calls_that_follow(tmp_path, names, said):
    """As NCCL shows them, whose ranks queue further calls without waiting."""

    def queued(*names):
        return [call(n, name, state="scheduled") for n, name in enumerate(names, 3)]

    calls = {rank: queued("all_reduce", "reduce", "broadcast") for rank in range(4)}
    assert said in " ".join(
        str(described(tmp_path, calls | {1: queued(*names)})).split()
    )


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("all_to_all", "input_sizes"),
        ("scatter", "input_sizes"),
        ("gather", "output_sizes"),
    ],
)
def test_sizes_that_may_differ_are_no_disagreement(tmp_path, name, more):
    root = call(1, name, **{more: [[2], [2]]})
    assert not described(tmp_path, {0: [root], 1: [call(1, name)]}, world=2).faults


def test_groups_that_are_queued_in_two_orders_deadlock(tmp_path):
    """Neither rank lacks a call; each device is in the call that the other has last."""
    group = {"process_group": ("1", "tp")}
    one, other = call(1, state="started"), call(1, state="scheduled", **group)
    two, another = call(1, state="started", **group), call(1, state="scheduled")
    calls = {0: [one, other], 1: [two, another]}
    assert described(tmp_path, calls, groups={"1": (0, 1)}, world=2).verdict == (
        "deadlock: rank 0 waits in all_reduce(float32[4]) for rank 1, which waits in "
        "all_reduce(float32[4]) among ranks 0 and 1 (group 1, tp) for rank 0"
    )


def test_what_holds_up_another_group_is_told_first(tmp_path):
    group = {"process_group": ("1", "tp")}
    waits = [call(1), call(1, state="started", **group)]
    calls = {0: upto(2), 1: waits, 2: [call(1)], 3: upto(2)}
    explained = described(tmp_path, calls, groups={"1": (1, 2)})
    assert [fault.ranks for fault in explained.faults] == [(2,), (2,)]
    assert "ranks 0 and 3 wait in" in str(explained)
    assert "among ranks 1 and 2 (group 1, tp), for rank 2" in str(explained)


def test_sends_that_nobody_receives_are_a_deadlock_or_a_missing_call(tmp_path):
    sends = {0: [pair(1, "send 0->1")], 1: [pair(1, "send 1->0")]}
    assert described(tmp_path, sends, world=2).verdict == (
        "deadlock: each waits for the next: rank 0 → rank 1 → rank 0"
    )
    assert described(tmp_path, sends | {1: []}, world=2).verdict == (
        "rank 0 waits in send(float32[4]) to rank 1, but rank 1 never called its other "
        "side"
    )
    met = sends | {1: [pair(1, "recv 1<-0")]}
    assert "the other side has called" in described(tmp_path, met, world=2).verdict


def test_dumps_of_torchcomms_are_compared_by_communicator(tmp_path):
    """As its recorder writes: one counter, the backend as description, no peers."""

    def recorded(*calls):
        return [
            call(
                number,
                state="scheduled",
                process_group=(group, "ncclx"),
                profiling_name=f"ncclx:{name}",
                retired=number < len(calls),
            )
            for number, (group, name) in enumerate(calls, 1)
        ]

    whole, pipe = ("main", "all_reduce"), ("pp", "send")
    calls = {
        0: recorded(whole, ("tp_0", "barrier"), pipe, whole, whole),
        1: recorded(whole, ("tp_0", "barrier"), ("pp", "recv"), whole),
        2: recorded(whole, whole, whole),
    }
    calls[1][-1]["retired"] = True
    groups = {"main": range(3), "tp_0": range(2), "pp": range(3)}
    dumps = {r: dump(each, groups, world=3) for r, each in calls.items()}
    for each in dumps.values():
        del each["pg_config"]["0"]
    explained = explain(leave(tmp_path, dumps, "comm_lib_trace_rank_"))
    assert explained.verdict == (
        "rank 1 never called all_reduce(float32[4]), which ranks 0 and 2 wait in"
    )
    assert "It is collective 3, begun first" in str(explained)
    assert "TorchComms names no peers" in str(explained)
    for entry in dumps[2]["entries"]:
        entry["record_id"] += 100
    dumps[2]["entries"][0]["process_group"] = ("tp_1", "ncclx")
    again = str(explain(leave(tmp_path, dumps, "comm_lib_trace_rank_")))
    assert "rank 2: its file comm_lib_trace_rank_2 is TorchComms', which" in again


def test_a_call_that_all_made_and_none_ends_is_no_fault_of_the_code(tmp_path):
    calls = {rank: upto(3) for rank in range(3)} | {3: upto(3, "scheduled")}
    explained = described(tmp_path, calls)
    assert explained.verdict == (
        "all ranks called all_reduce(float32[4]), and ranks 0 to 3 did not end it"
    )
    assert (
        "rank 3 waits in all_reduce(float32[4]), collective 3, which has not started"
        in str(explained)
        and "has not started on its device" in str(explained)
    )


def test_a_batch_ends_when_its_last_call_does(tmp_path):
    batch = [
        call(1, "_allgather_base", state="scheduled"),
        call(1, "_allgather_base", state="scheduled"),
        call(1, "coalesced"),
    ]
    explained = described(tmp_path, {0: batch, 1: batch}, world=2)
    assert explained.verdict.startswith("no rank is behind")
    assert "all_gather_into_tensor(float32[4]) and all_gather_into" in str(explained)


def test_calls_that_were_overwritten_are_not_taken_for_skipped(tmp_path):
    group = {"process_group": ("1", "dp")}
    late = [call(n) for n in range(50, 60)]
    calls = {0: [*late, call(9, state="started", **group)], 1: late}
    explained = described(tmp_path, calls, groups={"1": (0, 1)}, world=2)
    assert "never called" not in explained.verdict
    assert "Rank 1 overwrote all calls in group 1" in str(explained)


def test_a_thousand_ranks_fit_a_screen_and_lose_no_number(tmp_path):
    calls = {rank: upto(2) for rank in range(1024)} | {512: [call(1)]}
    text = str(described(tmp_path, calls, world=1024))
    assert "ranks 0 to 511 and 513 to 1023 wait in" in text
    assert len(text.splitlines()) < 30
    assert max(map(len, text.splitlines())) < 160


def test_ranks_in_words_are_those_of_the_failure_story():
    assert ranks_in_words([3]) == "rank 3"
    assert ranks_in_words([2, 0, 1]) == "ranks 0, 1 and 2"
    assert ranks_in_words(range(4)) == "ranks 0 to 3"
    assert ranks_in_words(range(5, 1024, 8)) == "ranks 5, 13, … 1021"
    assert ranks_in_words({*range(0, 90, 2)} - {80}) == (
        "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16 and 35 more"
    )


class Harm:
    def __reduce__(self):
        return print, ("harm",)


GOOD = pickle.dumps(dump(upto(2)), protocol=2)
BAD = {
    b"": "is empty",
    GOOD[: len(GOOD) // 2]: "is cut off after",
    b"step 1 loss 0.3\n": "is not what torch writes (UnpicklingError",
    pickle.dumps([1, 2]): "is not what torch writes (TypeError",
    pickle.dumps(dump([{"seq_id": 3}])): "is too old: it has no collective_seq_id",
    pickle.dumps(dump([], version="1.5")): "is in version 1.5 of the format",
    pickle.dumps(Harm()): "is refused: it names the code builtins.print",
    json.dumps(dump(upto(2)))[:99].encode(): "is not what torch writes (JSONDecode",
}


@pytest.mark.parametrize("data", BAD, ids=BAD.values())
def test_a_broken_dump_is_named_and_the_others_are_told(tmp_path, capsys, data):
    dumps = {rank: dump(upto(2)) for rank in range(4)} | {3: data}
    explained = explain(leave(tmp_path, dumps))
    left = "a dump that is cut off" if "cut off" in BAD[data] else "no dump"
    assert explained.verdict == (
        f"rank 3 left {left}, and ranks 0, 1 and 2 wait in all_reduce(float32[4])"
    )
    words = " ".join(str(explained).split())
    assert f"Of rank 3: its file nccl_trace_rank_3 {BAD[data]}" in words
    assert capsys.readouterr().out == ""


def test_dumps_named_by_host_are_one_jobs_and_a_log_beside_them_is_none(tmp_path):
    for rank, host in enumerate(("node02", "node07")):
        place = tmp_path / f"nccl_trace_rank_container-{host}_{rank}"
        place.write_bytes(pickle.dumps(dump(upto(2 - rank), world=2)))
    (tmp_path / "slurm-1234.out").write_text("step 1 loss 0.3\n")
    verdict = explain(tmp_path).verdict
    assert verdict.startswith("rank 1 is behind by 1 collective: in all_reduce(")


def test_a_folder_without_a_dump_says_what_it_needs(tmp_path):
    with pytest.raises(InvalidArgument, match="one file per rank, such as nccl_trace"):
        explain(tmp_path)
    with pytest.raises(InvalidArgument, match="nccl_trace_rank_0 is empty"):
        explain(leave(tmp_path, {0: b""}))


def test_files_of_two_jobs_are_told_apart_by_how_they_begin(tmp_path):
    leave(leave(tmp_path, {0: GOOD}), {0: GOOD}, "old_rank_")
    with pytest.raises(
        InvalidArgument, match=re.escape("nccl_trace_rank_N, old_rank_N")
    ):
        explain(tmp_path)
    assert explain(tmp_path / "old").job.dumps.keys() == {0}


def test_files_of_an_earlier_run_are_noticed(tmp_path):
    old = [call(1, time_created_ns=BEGAN - 2 * 3600 * SECOND)]
    calls = {0: upto(2), 1: upto(2), 2: upto(2), 3: old}
    dumps = {rank: dump(each) for rank, each in calls.items()}
    wider = dump([call(1)], world=8)
    text = str(explain(leave(tmp_path, dumps | {7: wider})))
    assert text.startswith("rank 3 never called")
    assert "Rank 3 called nothing in the last hour of the others" in text
    assert "Of rank 7: its file nccl_trace_rank_7 is of a job with other ranks." in text


def test_dumps_without_a_call_tell_nothing(tmp_path):
    text = str(described(tmp_path, {0: [], 1: []}))
    assert text.startswith("no rank has recorded a call, so nothing can be told")
    assert "TORCH_FR_BUFFER_SIZE=2000" in text


def test_json_is_read_though_it_has_no_stacks(tmp_path):
    for rank in range(2):
        entries = [{k: v for k, v in each.items() if k != "frames"} for each in upto(2)]
        text = json.dumps(dump(entries[: 2 - rank], world=2))
        (tmp_path / f"trace_{rank}.json").write_text(text)
    assert str(explain(tmp_path)).startswith("rank 1 never called all_reduce")


@pytest.mark.parametrize("name", ["secret.txt", "train.py"])
def test_only_lines_of_python_files_are_shown_and_those_of_today_said(tmp_path, name):
    (tmp_path / name).write_text("password\n")
    frames = [{"name": "f", "filename": str(tmp_path / name), "line": 1}]
    text = str(described(tmp_path, {0: upto(2, frames=frames), 1: [call(1)]}, world=2))
    assert ("password" in text) == (name == "train.py")
    assert ("train.py changed after the last call" in text) == (name == "train.py")


def test_the_page_needs_nothing_else_and_marks_who_never_called(tmp_path):
    frames = [{"name": "f", "filename": "/job/<script>.py", "line": 1}]
    calls = {rank: upto(12, frames=frames) for rank in range(4)} | {2: upto(11)}
    page = described(tmp_path, calls).html()
    assert not re.search("https?:|<script|<link|<img", page)
    assert "<th>ranks 0, 1 and 3</th>" in page and "✗ never called" in page
    assert "waits for rank 2" in page and "prefers-color-scheme: dark" in page
