"""Schedules of pipelines: what they hold, their bubbles, and those that cannot be."""

from itertools import accumulate, combinations, pairwise

import pytest

from distlab import InvalidArgument, InvalidSchedule, cost
from distlab.show.reading.pipeline_cells import PipelineCells
from distlab.train.pipeline import (
    Schedule,
    Times,
    Work,
    balanced,
    dual_pipe_v,
    gpipe,
    interleaved,
    naive,
    of_torch,
    one_f_one_b,
    timed,
    zero_bubble_h1,
    zero_bubble_h2,
    zero_bubble_search,
    zero_bubble_v,
)

SIZES = [(1, 1), (2, 1), (2, 5), (4, 4), (4, 8), (5, 3), (8, 24)]
sizes = pytest.mark.parametrize(("p", "m"), SIZES)


def test_a_step_that_waits_for_all_stages_has_the_bubble_of_the_picture():
    profiled = Times(forward=18.5, backward=18.1, weights=9.3, communication=0.6)
    for make in (gpipe, zero_bubble_h1, zero_bubble_h2, zero_bubble_v, dual_pipe_v):
        for times in (Times(), profiled):
            found = timed(make(4, 8), times)
            shown = PipelineCells.of(found.cells(), "slot").bubble
            assert found.bubble_to_end == pytest.approx(shown)
    h2 = timed(zero_bubble_h2(4, 8))
    assert h2.bubble == pytest.approx(0)
    assert h2.bubble_to_end == pytest.approx(3 / 27)


@sizes
def test_bubbles_are_the_closed_forms(p, m):
    fill = (p - 1) / (m + p - 1)
    assert timed(naive(p, m)).bubble == pytest.approx(1 - 1 / p)
    assert timed(gpipe(p, m)).bubble == pytest.approx(fill)
    assert timed(one_f_one_b(p, m)).bubble == pytest.approx(fill)
    if m % p == 0:
        shorter = (p - 1) / (2 * m + p - 1)
        assert timed(interleaved(p, m)).bubble == pytest.approx(shorter)
    if m >= 2 * p:
        left = (p - 1) / (3 * m + p - 1)  # (p - 1)(F + B - W) of it
        assert timed(zero_bubble_h1(p, m)).bubble == pytest.approx(left)
        assert timed(zero_bubble_h2(p, m)).bubble == pytest.approx(0, abs=1e-12)


@sizes
def test_stages_hold_as_many_activations_as_the_literature_says(p, m):
    def most(schedule):
        return [max(schedule.held(stage)) for stage in range(p)]

    assert most(naive(p, m)) == [1] * p
    assert most(gpipe(p, m)) == [m] * p
    assert most(one_f_one_b(p, m)) == [min(m, p - s) for s in range(p)]
    assert most(zero_bubble_h1(p, m)) == [min(m, p)] * p
    assert most(zero_bubble_h2(p, m)) == [min(m, 2 * p - 1)] * p


def test_with_profiled_times_the_bubbles_are_those_of_the_paper():
    """Qi et al. (2024): 1.5 B parameters, 8 stages, 24 microbatches, times in ms."""
    times = Times(18.522, 18.086, 9.337, communication=0.601)
    published = {one_f_one_b: 0.2431, zero_bubble_h1: 0.1585, zero_bubble_h2: 0.1083}
    for schedule, bubble in published.items():
        assert timed(schedule(8, 24), times).bubble == pytest.approx(bubble, abs=5e-4)


class FirstOfAGroupWaits(Schedule):
    """Interleaved, where the others wait for nothing between two chunks."""

    def needs(self, stage, work):
        first = work.microbatch % len(self.stages) == 0
        needs = super().needs(stage, work)
        return [each for each in needs if first or each[1].chunk == work.chunk]


@pytest.mark.parametrize(
    ("chunks", "times", "bubble"),
    [
        (3, Times(18.522, 18.086, 9.337, communication=0.601), 0.1055),
        (4, Times(29.718, 29.444, 19.927, communication=0.527), 0.0808),
    ],
)
def test_interleaved_is_the_papers_if_only_a_groups_first_microbatch_waits(
    chunks, times, bubble
):
    """Qi et al. (2024): 1.5 and 6.2 B, 8 stages, 24 microbatches, a chunk per layer.

    From one chunk to the next only the first microbatch of a group of 8 waits for its
    message in the authors' program (`get_interleave_schedule`, which they published).
    One other starts before its message has arrived, the last microbatch's backward on
    the last stage, and so the step is 8 communication times too short.
    """
    ours = interleaved(8, 24, chunks)
    theirs = timed(FirstOfAGroupWaits(ours.stages, 24, chunks), times)
    assert theirs.bubble == pytest.approx(bubble, abs=5e-5)
    assert timed(ours, times).end == pytest.approx(theirs.end + 8 * times.communication)


V_SIZES = [(1, 2), (2, 4), (4, 8), (4, 11), (8, 24)]


@pytest.mark.parametrize(("p", "m"), V_SIZES)
def test_v_schedules_hold_and_idle_as_their_papers_say(p, m):
    """Qi et al. (2024), table of ZBV: no bubble, 1F1B's memory, if F = B = W.

    DeepSeek-V3 (2024), table 2, for PP = 2p parts: a bubble of (PP / 2 - 1)(F&B + B -
    3W) with the whole B, and PP + 1 parts held.
    """
    folded, dual = zero_bubble_v(p, m), dual_pipe_v(p, m)
    assert {max(folded.held(s)) for s in range(p)} == {2 * p}
    assert {max(dual.held(s)) for s in range(p)} == {2 * p + 1}
    assert timed(folded).bubble == pytest.approx(0, abs=1e-12)
    ranks = [folded.place(part)[0] for part in range(2 * p)]
    assert sum(a != b for a, b in pairwise(ranks)) == 2 * (p - 1)  # twice as many
    for part, both in ((1, 3), (2, 6), (2, 5), (2, 4.5), (2, 4)):  # F = B = W, F&B
        times = Times(2 * part, 2 * part, 2 * part, overlapped=2 * both)
        assert max(idles(timed(dual, times))) == pytest.approx(
            (p - 1) * (both + 2 * part - 3 * part)
        )


def idles(found):
    """Return for each stage the time until the common end in which it does nothing."""
    works = {(stage, start, end) for stage, _, start, end in found.rows}
    busy = [0.0] * len(found.schedule.stages)
    for stage, start, end in works:
        busy[stage] += end - start
    return [found.end - each for each in busy]


@pytest.mark.parametrize("p", [4, 7, 9])
@pytest.mark.parametrize("f_b_w", [(3, 3, 2), (2, 3, 1), (4, 4, 3), (2, 2, 1)])
def test_with_a_short_w_a_stage_more_costs_dual_pipe_what_its_paper_says(p, f_b_w):
    f, b, w = f_b_w
    times = Times(2 * f, 2 * b, 2 * w)
    one, more = (max(idles(timed(dual_pipe_v(n, 20), times))) for n in (p, p + 1))
    assert more - one == pytest.approx((f + b + w) + (b + w) - 3 * w)


def test_dual_pipe_pays_where_all_to_alls_are_long_and_costs_where_there_are_none():
    """In slots of two layers: compute 4 forward and 8 backward, half of it for W."""
    cases = (6, 14, 0.73, 570), (1, 12, 0.92, 436), (0, 12, 1.03, 420)
    for exposed, pair, ratio, interleaved_in_pairs in cases:
        times = Times(8 + 2 * exposed, 8 + 2 * exposed, 8, overlapped=2 * pair)
        ends = [timed(make(4, 16), times).end for make in (zero_bubble_v, dual_pipe_v)]
        assert ends[1] / ends[0] == pytest.approx(ratio, abs=0.005)
        found = timed(interleaved(4, 16, paired=True), times)
        assert found.end == pytest.approx(interleaved_in_pairs)


@pytest.mark.parametrize(
    ("p", "m", "chunks"), [(1, 2, 1), (2, 4, 3), (4, 8, 2), (4, 4, 1)]
)
def test_interleaved_in_pairs_runs_every_f_after_the_warm_up_beside_a_b(p, m, chunks):
    paired, alone = (interleaved(p, m, chunks, paired=on) for on in (True, False))
    for stage, (row, other) in enumerate(zip(paired.stages, alone.stages, strict=True)):
        warm = min(m * chunks, 2 * (p - stage - 1) + (chunks - 1) * p + 1)
        sizes = [1] * warm + [2] * (m * chunks - warm) + [1] * warm
        assert [*map(len, paired.groups[stage])] == sizes
        for kind in "FB":
            same = [[w for w in works if w.kind == kind] for works in (row, other)]
            assert same[0] == same[1]
        if warm < m * chunks:
            assert max(paired.held(stage)) == max(alone.held(stage)) + 1


@pytest.mark.parametrize("f_b_w", [(1, 1, 1), (3, 3, 2), (4, 4, 3)])
def test_h1_idles_as_the_published_table_says(f_b_w):
    """DeepSeek-V3 (2024), table 2, ZB1P: (PP - 1)(F + B - 2W), B with its W."""
    f, b, w = f_b_w
    left = timed(zero_bubble_h1(6, 24), Times(f, b, w)).end - 24 * (f + b + w)
    assert left == pytest.approx(5 * (f + (b + w) - 2 * w))


def test_for_a_fixed_batch_stages_hardly_change_the_bubble_and_chunks_do():
    for p in (2, 8, 16):  # nodes for 4 sequences each: m = 4p
        assert timed(one_f_one_b(p, 4 * p)).bubble == pytest.approx(
            (p - 1) / (5 * p - 1)
        )
        held = [max(interleaved(p, 4 * p, v).held(0)) / v for v in (2, 4)]
        assert held == pytest.approx([p + (p - 1) / v for v in (2, 4)])


def test_a_csv_of_torchs_is_read_with_what_overlaps(tmp_path):
    path = tmp_path / "schedule.csv"
    path.write_text(
        "0F0,,0F1,3F0,,(3F1;3B0)OVERLAP_F_B,0B0,3I1,3W1,0I1,0W1\n1F0,1F1,"
        "2F0,2SEND_F0,2F1,2B0,1B0,2I1,2W1,1I1,1W1,1UNSHARD\n"
    )
    found = of_torch(path)
    assert (found.v_shaped, found.chunks, found.microbatches) == (True, 2, 2)
    assert found.overlapped == {(0, Work("F", 1, 1))}
    assert str(found).splitlines()[0] == (
        "stage 0   F0 F1 F0' F1' B0' W0' B0 W0 B1' W1' B1 W1"
    )
    path.write_text("0F0,0B0,2F0,2B0\n1F0,1B0,hello\n")
    with pytest.raises(InvalidArgument, match=r"'hello' is no action of torch"):
        of_torch(str(path))
    path.write_text("0F0,0B0\n0F0,0B0\n")
    with pytest.raises(
        InvalidArgument, match="rank 1 has stage 0 of 2 ranks; of_torch"
    ):
        of_torch(path)


@pytest.mark.parametrize(
    ("row", "overlapped", "words"),
    [
        ("F0 B0 F1 B1", [(0, ("F", 2))], "overlapped has stage 0's forward of micro"),
        ("F0 B0 F1 B1", [(0, ("B", 0))], "overlapped has stage 0's backward of micro"),
        ("F0 F1 B0 B1", [(0, ("F", 0))], "overlaps the forward of microbatch 0, and"),
        ("F0 B0 F1 B1", [(0, ("F", 1))], "overlaps the forward of microbatch 1, and"),
        ("F0 F1 B0 B1 W0 W1", [(0, ("F", 1))], "overlaps the forward of microbatch 1"),
    ],
)
def test_only_another_microbatchs_whole_backward_overlaps(row, overlapped, words):
    rows = [[(word[0], int(word[1:])) for word in row.split()]]
    with pytest.raises(InvalidSchedule, match=words):
        Schedule(rows, 2, overlapped=overlapped)


def test_works_side_by_side_wait_for_the_inputs_of_both():
    both = [[F(0), F(1), F(2), B(0), B(1), B(2)], [F(0), B(0), F(1), B(1), F(2), B(2)]]
    found = timed(Schedule(both, 3, overlapped={(0, F(2))}), Times(1, 1, 0))
    spans = {(stage, str(work)): span for stage, work, *span in found.rows}
    assert spans[0, "F2"] == spans[0, "B0"] == [3, 5]  # B0 of stage 1 ends at 3
    assert spans[1, "F2"] == [5, 6]
    both = [[F(0), F(1), B(0), B(1)], [F(0), F(1), B(0), B(1)]]
    with pytest.raises(
        InvalidSchedule, match="stage 0, at the forward of microbatch 1"
    ):
        Schedule(both, 2, overlapped={(0, F(1))})


def test_search_finds_a_schedule_without_a_bubble_within_its_memory():
    found = zero_bubble_search(8, 24, Times(), most_held=16, kept_for_weights=1)
    found.check(most_held=16)
    assert timed(found).bubble < 0.05
    times = Times(18.522, 18.086, 9.337, communication=0.601)
    for most_held, beside in ((8, zero_bubble_h1), (16, zero_bubble_h2)):
        how = {"most_held": most_held, "kept_for_weights": 1}
        found = zero_bubble_search(8, 24, times, **how)
        found.check(most_held=most_held)
        assert timed(found, times).bubble <= timed(beside(8, 24), times).bubble + 1e-9


def test_with_the_papers_memory_the_search_finds_what_its_own_search_found():
    """Qi et al. (2024): 1.5 B parameters, ZB-1p 15.85 %, ZB-2p 4.33 %."""
    times = Times(18.522, 18.086, 9.337, communication=0.601)
    kept = cost.kept_for_weights(1024, 2304, 24)
    assert kept == pytest.approx(73728 / 201216)  # 32 h of 34 h + 5 a s, by hand
    for most_held, bubble in ((8, 0.1585), (16, 0.0433)):
        how = {"most_held": most_held, "kept_for_weights": kept}
        found = zero_bubble_search(8, 24, times, **how)
        for stage in range(8):
            assert max(found.held(stage, kept)) <= most_held + 1e-9
        assert timed(found, times).bubble == pytest.approx(bubble, abs=0.0015)


def test_a_search_needs_the_fraction_that_is_kept_for_weights():
    for kept in (-0.1, 1.5, float("nan")):
        with pytest.raises(InvalidArgument, match=r"cost\.kept_for_weights\(length"):
            zero_bubble_search(2, 4, Times(), most_held=2, kept_for_weights=kept)
    with pytest.raises(InvalidArgument, match="heads is a number from 1 on"):
        cost.kept_for_weights(1024, 2304, 0)


def test_an_even_cut_makes_the_slowest_stage_as_fast_as_can_be():
    layers = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    for stages in (1, 2, 3, 5, 10):
        counts = balanced(layers, stages)
        cuts = combinations(range(1, len(layers)), stages - 1)
        every = [[0, *cut, len(layers)] for cut in cuts]
        best = min(max(sum(layers[a:b]) for a, b in pairwise(cut)) for cut in every)
        ends = [0, *accumulate(counts)]
        assert max(sum(layers[a:b]) for a, b in pairwise(ends)) == best
        assert len(counts) == stages and ends[-1] == len(layers)
    with pytest.raises(InvalidArgument, match="2 layers do not make 3 stages"):
        balanced([1, 2], 3)


def test_uneven_stages_wait_for_the_slowest():
    times = Times([1, 1, 3, 1], [1, 1, 3, 1], [1, 1, 3, 1])
    found = timed(gpipe(4, 6), times)
    # To stage 2; its forwards; there and back; its backwards; to stage 0.
    assert found.end == 2 + 6 * 3 + (1 + 2) + 6 * 6 + (2 + 2)


F, B, W = (lambda m, kind=kind: Work(kind, m) for kind in "FBW")


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        ([[F(0), F(1), B(0)]], "lacks the backward of microbatch 1"),
        ([[F(0), F(0), F(1), B(0), B(1)]], "has the forward of microbatch 0 twice"),
        ([[F(0), B(0), B(1), F(1)]], "backward of microbatch 1 before the forward"),
        ([[F(0), F(1), B(0), B(1), B(2)]], "backward of microbatch 2, .* 0 to 1.$"),
        (
            [[F(0), F(1), W(0), B(0), B(1), W(1)]],
            "weight gradient of microbatch 0 before the back",
        ),
        (
            [[F(0), B(0), F(1), B(1)], [F(1), B(1), F(0), B(0)]],
            "stage 0, at the backward of microbatch 0, waits for stage 1's backward "
            "of microbatch 0; stage 1, at the forward of microbatch 1, waits for stage",
        ),
        ([], "a stage and a microbatch at least"),
    ],
)
def test_a_schedule_that_cannot_be_played_says_why(stages, words):
    with pytest.raises(InvalidSchedule, match=words):
        Schedule(stages, 2)


def test_a_limit_of_memory_names_the_first_work_beyond_it():
    one_f_one_b(4, 8).check(most_held=4)
    with pytest.raises(
        InvalidSchedule, match=r"stage 0 holds .* of 5 .* forward of microbatch 4, and"
    ):
        gpipe(4, 8).check(most_held=4)


def test_what_does_not_divide_is_refused():
    with pytest.raises(InvalidArgument, match="groups of 4"):
        interleaved(4, 6)
    with pytest.raises(InvalidArgument, match="4 stages, and times for 3"):
        timed(gpipe(4, 4), Times(forward=[1, 2, 3]))


def test_a_schedule_reads_as_in_the_literature():
    assert str(one_f_one_b(2, 3)).splitlines() == [
        "stage 0   F0 F1 B0 F2 B1 B2",
        "stage 1   F0 B0 F1 B1 F2 B2",
    ]
