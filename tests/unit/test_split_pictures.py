"""Pictures of a split layer: of its matrices, and of the groups and bytes of a mesh."""

import numpy as np
import pytest
from artists import assert_legible, boxes, drawn

from distlab import InvalidArgument, Mesh, run, show
from distlab.collectives import ring_all_reduce
from distlab.links import LINKS
from distlab.simulated import Uniform

FABRIC = Uniform(LINKS["NVLink 4"])


def sums(comm, **sizes):
    grid = Mesh(comm, **sizes)
    ring_all_reduce(grid.tp, np.ones(100, np.float32))
    ring_all_reduce(grid.dp, np.ones(10, np.float32))


@pytest.fixture(scope="module")
def report():
    return run(lambda comm: sums(comm, pp=2, dp=2, tp=2), 8, fabric=FABRIC)


def test_each_dimension_has_its_groups_and_what_a_rank_sent_along_it(report):
    picture = show.mesh(report, pp=2, dp=2, tp=2)
    assert_legible(picture)
    assert "tp: 4 groups of 2 ranks, 400 B sent by each rank." in picture.alt
    assert "dp: 4 groups of 2 ranks, 40 B" in picture.alt
    assert "pp: 4 groups of 2 ranks, nothing sent." in picture.alt
    assert [len(lines.get_segments()) for lines in drawn(picture, "group")] == [4] * 3
    wide = [c - a for a, _, c, _ in boxes(picture, "sent")]
    (full,) = {round(c - a, 6) for a, _, c, _ in boxes(picture, "track")}
    assert wide == pytest.approx([0.1 * full, full])


def test_wrong_sizes_and_runs_without_a_mesh_are_named(report):
    with pytest.raises(InvalidArgument, match="the 8 ranks of this run, and got dp=3"):
        show.mesh(report, dp=3)
    with pytest.raises(
        InvalidArgument, match=r"no mesh with the dimensions cp, but dp, "
    ):
        show.mesh(report, cp=8)
    with pytest.raises(InvalidArgument, match="up to 64 ranks in 3 dimensions"):
        show.mesh(report, a=2, b=2, c=2, tp=1)


def test_the_player_names_the_dimension_and_draws_a_band_around_its_groups(report):
    animation = show.player(report).animation
    along = {frame.text.split(":")[0]: frame.groups for frame in animation.frames[1:]}
    assert along["Along tp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert along["Along dp"] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert 'class="among"' in show.player(report).strip()


MLP = [
    ("x", 64, 32, ""), "·", ("W1", 32, 128, "columns"), "GELU",
    ("h", 64, 128, "columns"), "·", ("W2", 128, 32, "rows"), "=",
    ("partial", 64, 32, "sums"), "g\n12 kB a rank", ("y", 64, 32, ""),
]  # fmt: skip


def test_a_cut_matrix_has_a_part_for_each_rank_and_a_partial_sum_a_sheet():
    picture = show.matrices(MLP, 4, title="An MLP")
    assert_legible(picture)
    assert len(boxes(picture, "part")) == 4 * 4
    assert len(boxes(picture, "whole")) == 2
    assert (
        "W2 of 128 by 32, rows cut; =; partial of 64 by 32, a partial sum"
        in picture.alt
    )
    columns = boxes(picture, "part")[:4]
    wide = {round(c - a, 6) for a, _, c, _ in columns}
    (a, top, *_), (_, _, right, bottom) = columns[0], columns[-1]
    assert len(wide) == 1 and (right - a) / (bottom - top) == pytest.approx(128 / 32)


@pytest.mark.parametrize("steps", [[], [("x", 64, 32, "half")], [("x", 0, 2, "")], [3]])
def test_what_is_no_matrix_is_named(steps):
    with pytest.raises(InvalidArgument, match="For example: matrices"):
        show.matrices(steps, 4)


def zigzag(n, rank):
    return rank, 2 * n - 1 - rank


def test_a_causal_triangle_has_a_block_for_each_pair_that_is_not_masked():
    layouts = {"in turn": lambda n, rank: (2 * rank, 2 * rank + 1), "zigzag": zigzag}
    picture = show.causal_triangle(layouts, 4, title="Causal attention")
    assert_legible(picture)
    # By hand: the queries of chunk c see c + 1 chunks; rank 3 has 6 and 7, or 3 and 4.
    assert len(boxes(picture, "rank 3")) == (7 + 8) + (4 + 5)
    assert "blocks by rank: 2, 6, 10, 14." in picture.alt
    assert "blocks by rank: 8, 8, 8, 8." in picture.alt


def test_a_layout_that_leaves_a_chunk_out_is_named():
    with pytest.raises(InvalidArgument, match=r"'mine' gives the chunks \[0, 1, 2\]"):
        show.causal_triangle({"mine": lambda n, rank: (rank, rank + 1)}, 2)
