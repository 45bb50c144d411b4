"""One wrong bit: where it goes, and who notices."""

import pytest
import torch

from distlab import Corrupt, InvalidArgument, run
from distlab.collectives import ring_all_reduce
from distlab.links import LINKS
from distlab.simulated import Uniform

FABRICS = [None, Uniform(LINKS["NVLink 4"])]


def summed(comm, dtype=torch.float32):
    x = torch.arange(1, 9, dtype=dtype) + comm.rank
    before = x.clone()
    ring_all_reduce(comm, x)
    return x.tolist(), before.tolist() == (torch.arange(1, 9) + comm.rank).tolist()


RIGHT = [4.0 * k + 6 for k in range(1, 9)]


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("step, equal", [(1, True), (3, True), (4, False), (6, False)])
def test_in_the_reduce_scatter_all_ranks_are_wrong_alike_and_later_they_differ(
    step, equal, fabric
):
    report = run(summed, 4, faults=Corrupt(2, step), fabric=fabric)
    sums = [result for result, _ in report.results]
    wrong = {i for each in sums for i in range(8) if each[i] != RIGHT[i]}
    assert len(wrong) == 1
    assert (len(set(map(tuple, sums))) == 1) == equal
    assert [e.label for e in report.trace.of(2, "fault")] == ["corrupt"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64])
def test_any_type_can_be_hit_and_only_the_message_is(dtype):
    report = run(summed, 2, args=[dtype], faults=Corrupt(0, 1))
    clean = run(summed, 2, args=[dtype])
    assert report.results[0][0] != clean.results[0][0]
    assert all(kept for _, kept in report.results)


def test_a_rank_that_is_not_there_is_refused():
    with pytest.raises(InvalidArgument, match="ranks 0 to 3"):
        run(summed, 4, faults=Corrupt(4, 1))
