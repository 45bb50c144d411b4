"""Real dumps of real jobs that hang, explained, beside torch's own analyzer."""

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from hanging import JOBS, SUBGROUPS

from distlab.diagnosis.flight import explain

SCRIPT = Path(__file__).parents[1] / "hanging.py"
WHAT = {
    "COLLECTIVE_TYPE_MISMATCH": "The call differs",
    "SIZE_OR_SYNTAX_MISMATCH": "The shape differs",
    "COLLECTIVE_DTYPE_MISMATCH": "The type differs",
}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory):
    """Return the folder in which every job has left its dumps."""
    folder = tmp_path_factory.mktemp("dumps")
    subprocess.run([sys.executable, SCRIPT, folder], check=True, capture_output=True)
    return folder


def analyzed(folder):
    """Return what torch's analyzer finds: group name -> its first faulty collective.

    It cannot read gloo's dumps as they are, which don't name the groups' members.
    """
    from torch.distributed.flight_recorder.components.builder import build_db
    from torch.distributed.flight_recorder.components.loader import read_dump

    groups = {"0": (0, 1, 2)} | SUBGROUPS
    details = {}
    for rank in range(3):
        details[rank] = read_dump("rank_", str(folder / f"rank_{rank}"))
        details[rank]["pg_config"] = {
            name: {"name": name, "desc": "", "ranks": str(list(ranks))}
            for name, ranks in groups.items()
            if rank in ranks
        }
    arguments = Namespace(
        verbose=False,
        just_print_entries=False,
        allow_incomplete_ranks=False,
        mismatch_cap=10,
    )
    found = {}
    for each in build_db(details, arguments, details[0]["version"]).collectives:
        if each.missing_ranks or not each.pass_check:
            found.setdefault(each.group_id, each)
    return found


@pytest.mark.parametrize("job", JOBS)
def test_the_analyzer_of_torch_finds_the_same(dumps, job):
    explained, theirs = explain(dumps / job), analyzed(dumps / job)
    first = explained.faults[0] if explained.faults else None
    if first is None:
        assert not theirs
    elif first.kind == "deadlock":  # which it tells as three collectives, unrelated
        ours = explained.job
        assert {group: each.missing_ranks for group, each in theirs.items()} == {
            at.group.name: ours.lacking[rank] for rank, at in ours.waiting.items()
        }
    else:
        (group, each), *_ = theirs.items()
        assert (group, each.collective_seq_id) == (first.group.name, first.number)
        assert each.missing_ranks == (
            set(first.ranks) if first.kind == "missing" else None
        )
        kinds = (each.mismatch_collectives or {}).values()
        for kind in {other.type_of_mismatch.state.name for other in kinds}:
            assert WHAT[kind] in str(explained)


VERDICTS = {
    "skipped": "rank 1 never called all_reduce(float32[4])"
    ", which ranks 0 and 2 wait in",
    "order": "ranks disagree about collective 1: rank 0 called "
    "broadcast(float32[4]), ranks 1 and 2 called all_reduce(float32[9])",
    "shapes": "ranks disagree about collective 1: rank 0 called "
    "all_reduce(float32[4]), rank 1 called all_reduce(float32[104]), rank 2 called "
    "all_reduce(float32[204])",
    "types": "ranks disagree about collective 1: rank 0 called "
    "all_reduce(uint8[4]), rank 1 called all_reduce(float32[4]), rank 2 called "
    "all_reduce(float64[4])",
    "crossed": "deadlock: rank 0 waits in all_reduce(float32[4]) among ranks 0 and 1 "
    "(group 1) for rank 1, which waits in all_reduce(float32[4]) among ranks 1 and 2 "
    "(group 2) for rank 2, which waits in all_reduce(float32[4]) among ranks 0 and 2 "
    "(group 3) for rank 0",
    "barrier": "ranks disagree about collective 1: rank 0 called "
    "barrier(), ranks 1 and 2 called all_reduce(float32[4])",
    "returned": "rank 1 never called all_gather(float32[4] → float32[3, 4]), "
    "which ranks 0 and 2 wait in",
    "busy": "rank 1 never called all_reduce(float32[4]), which ranks 0 and 2 wait in",
    "healthy": "no rank is behind: as far as the dumps tell, nothing hangs",
}


@pytest.mark.parametrize("job", VERDICTS)
def test_the_first_line_says_what_hangs(dumps, job):
    assert explain(dumps / job).verdict == VERDICTS[job]


def test_lines_of_the_job_are_shown_and_none_of_torch(dumps):
    described = str(explain(dumps / "barrier"))
    assert "rank 0, hanging.py, line" in described and ": dist.barrier()" in described
    assert "distributed_c10d" not in described
    # All calls look the same, and rank 1 lacks one only in the end.
    described = str(explain(dumps / "skipped"))
    assert "Collective 4 they called from different lines" in described


def test_a_rank_without_a_dump_is_named_and_the_others_are_told(dumps, tmp_path):
    for rank in (0, 2):
        dump = dumps / "busy" / f"rank_{rank}"
        (tmp_path / dump.name).write_bytes(dump.read_bytes())
    explained = explain(tmp_path)
    assert explained.verdict == (
        "rank 1 left no dump, and ranks 0 and 2 wait in all_reduce(float32[4])"
    )
    assert "There is no file of rank 1." in str(explained)
