"""Pictures of data jobs say what their trace, matrix or lineage says."""

import pytest
from artists import assert_legible, boxes, drawn, pixels, texts, words
from soaks import nightly
from traces import KILLED, job, kill, work

from distlab.errors import InvalidArgument
from distlab.show import dataflow, experts, lineage, rates, shuffle, tasks, timeline
from distlab.trace import Lineage, LineageNode, Parent, StageRun

HOSTILE = "cost $x_1$ & <b>\\frac{1}{2}</b> 日本"


BACKUP = job(
    work(0, 0, 9, "map 0, attempt 1"),
    work(1, 0, 1, "map 1, attempt 1"),
    work(1, 3, 4, "map 0, attempt 2"),
    work(1, 4, 5, "reduce 0, attempt 1"),
    work(1, 5, 6, "reduce 1, attempt 1"),
    work(1, 6, 7, "reduce 1, attempt 2"),
    work(1, 7, 9, "reduce 2, attempt 1, given up"),
)
MANY = job(
    *(work(n % 90, n // 90, n // 90 + 0.9, f"map {n}") for n in range(900)), workers=90
)


# ---- tasks ----------------------------------------------------------------------


def test_what_came_of_every_attempt_shows_in_its_look():
    picture = tasks(KILLED)
    assert {gid: len(boxes(picture, f"task: {gid}")) for gid in ("done", "lost")} == {
        "done": 4,
        "lost": 1,
    }
    (undone,) = boxes(picture, "task: undone")
    (begin, *_), axes = undone, drawn(picture, "task: undone")[0]
    assert axes.get_hatch() and len(drawn(picture, "kill")) == 1
    lost = drawn(picture, "task: lost")[0]
    assert lost.get_linestyle()[0][1] is not None, "dashed"
    assert "map 1 ·2" in words(picture) and begin < boxes(picture, "task: lost")[0][0]


def test_tasks_tell_a_death_and_what_it_undid():
    alt = tasks(KILLED).alt
    assert "2 workers, 3 maps, 1 reduce, 6 attempts, 6 s" in alt
    described = (
        "worker 1 was killed during map 2; map 1, which it had finished, waits again"
    )
    assert described in alt
    assert "Worker 1: map 1 (undone), map 2 (lost), map 2 (attempt 2)." in alt


def test_a_backup_a_failure_and_what_was_given_up_are_told_apart():
    picture = tasks(BACKUP)
    for fate in ("late", "failed", "given up"):
        assert len(boxes(picture, f"task: {fate}")) == 1
    assert "Worker 0: map 0 (late)." in picture.alt
    assert "map 0 (attempt 2, backup)" in picture.alt
    assert "hatched: a backup was first" in words(picture)


TRACES = [KILLED, BACKUP, job(), job(kill(0, 1)), job(workers=0)]


@pytest.mark.parametrize("trace", [*TRACES, MANY])
@pytest.mark.parametrize("draw", [tasks, timeline])
def test_tasks_are_legible_and_nobody_is_a_rank(draw, trace):
    picture = draw(trace, HOSTILE)
    assert_legible(picture)
    assert not any("rank" in text for text in [*words(picture), picture.alt])


@pytest.mark.parametrize("trace", [*TRACES, nightly(MANY)])
@pytest.mark.parametrize("draw", [tasks, timeline])
def test_tasks_have_a_thousand_pixels(draw, trace):
    assert pixels(draw(trace)).shape[1] > 1000


def test_tasks_of_stages_are_named_by_stage_and_partition():
    trace = job(
        work(0, 0, 1, "stage 0, partition 0"), work(1, 0, 1, "stage 1, partition 0")
    )
    picture = tasks(trace)
    assert "1 task of stage 0, 1 task of stage 1" in picture.alt
    assert words(picture).count("partition 0") == 2


# ---- shuffle --------------------------------------------------------------------

SKEWED = [[100, 2000, 0], [150, 2500, 50]]


def test_a_shuffle_prints_its_bytes_and_names_the_skew():
    picture = shuffle(SKEWED, HOSTILE)
    assert {"100 B", "2 kB", "2.5 kB", "50 B", "0 B"} <= {*words(picture)}
    assert "4.5 kB, 2.81 x the mean" in words(picture)
    assert "Reduce 1 gets the most, 4.5 kB, 2.81 x the mean; reduce 2" in picture.alt
    assert_legible(picture)


def test_the_sums_of_a_shuffle_are_to_scale():
    picture = shuffle(SKEWED)
    high = [bottom - top for _, top, _, bottom in boxes(picture, "received")]
    assert [h / high[1] for h in high] == pytest.approx([250 / 4500, 1, 50 / 4500])
    long = [right - left for left, _, right, _ in boxes(picture, "sent")]
    assert long[0] / long[1] == pytest.approx(2100 / 2700)
    assert len(boxes(picture, "cell")) == 6


@pytest.mark.parametrize("size", [(1, 1), (2, 60), (100, 2), (130, 200)])
def test_a_shuffle_of_any_size_is_legible_and_keeps_every_byte(size):
    rows, columns = size
    matrix = [[(r * c) % 7 * 1000 + 1 for c in range(columns)] for r in range(rows)]
    picture = shuffle(matrix)
    assert_legible(picture)
    assert len(boxes(picture, "cell")) <= 64 * 64
    pooled = "Each row is 3 maps." in picture.alt
    assert pooled == (rows > 128)


@pytest.mark.parametrize("wrong", [None, [], [[]], [[1], [1, 2]], [[-1]], [["x"]], 3])
def test_what_is_no_matrix_of_bytes_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        shuffle(wrong)


def test_an_empty_shuffle_says_so():
    picture = shuffle([[0, 0]])
    assert "Nothing is moved." in picture.alt
    assert_legible(picture)


# ---- dataflow -------------------------------------------------------------------

RUNS = [[[("cat", 1), ("the", 1)], []], [[("the", 1)], [("dog", 1)]]]
PARTS = [[("cat", 1), ("the", 2)], [("dog", 1)]]


def test_a_dataflow_groups_what_each_reduce_gets_and_draws_what_is_sent():
    picture = dataflow(["the cat", "the dog"], RUNS, PARTS, HOSTILE)
    assert {"cat [1]", "the [1, 1]", "dog [1]", "the 2"} <= {*words(picture)}
    assert "Map 0 reads 'the cat' and leaves cat 1, the 1 for reduce 0" in picture.alt
    assert "Reduce 1 gets dog [1] and writes dog 1." in picture.alt
    assert len(drawn(picture, "box")) == 2 + 4 + 2 + 2
    assert len(drawn(picture, "arrow")) == 2 + 3 + 2, "none for the empty run"
    assert_legible(picture)


@pytest.mark.parametrize("size", [(1, 1), (5, 4), (2, 7)])
def test_a_dataflow_of_any_size_is_legible(size):
    maps, reduces = size
    runs = [[[(f"word{r}", m)] * 15 for r in range(reduces)] for m in range(maps)]
    picture = dataflow(["word " * 30] * maps, runs, [run for run in runs[0]])
    assert_legible(picture)
    assert words(picture).count("and 5 more") == maps * reduces + reduces


@pytest.mark.parametrize("wrong", [([], [], []), (["a"], [], []), (["a"], [[1]], [[]])])
def test_what_is_no_dataflow_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        dataflow(*wrong)


# ---- experts --------------------------------------------------------------------

FULL = {"routed": [[6, 2, 0], [5, 4, 0]], "capacity": 8}


def test_bands_loads_and_drops_of_experts_are_to_scale():
    picture = experts([[4, 2, 0], [3, 4, 0]], [0, 0, 1], **FULL, title=HOSTILE)
    assert_legible(picture)
    assert all(text.get_fontsize() * 96 / 72 >= 11 for text in texts(picture))
    high = [c[3] - c[1] for c in boxes(picture, "rank")]
    assert high[0] / high[1] == pytest.approx(6 / 7)
    assert len(boxes(picture, "band")) == 4, "nothing goes to expert 2"
    long = [c[2] - c[0] for c in boxes(picture, "load") + boxes(picture, "dropped")]
    assert [one / long[0] for one in long] == pytest.approx([1, 3 / 4, 2 / 4, 1, 4 / 4])
    (dropped,) = boxes(picture, "dropped")
    [line] = drawn(picture, "capacity")
    at = line.get_segments()[0][0][0]
    begin = boxes(picture, "load")[0][0]
    assert (dropped[2] - begin) / (at - begin) == pytest.approx(11 / 8)
    assert "Choices of 3 experts: 13 kept, 4 dropped" in picture.alt
    assert "expert 0 on rank 0: 7 and 4 dropped" in picture.alt
    assert "expert 2 on rank 1: 0." in picture.alt


@pytest.mark.parametrize("size", [(1, 1), (16, 32), (3, 4)])
def test_experts_of_any_number_are_legible(size):
    ranks, many = size
    kept = [[(r * e) % 7 * 1000 for e in range(many)] for r in range(ranks)]
    assert_legible(experts(kept, [e * ranks // many for e in range(many)]))


@pytest.mark.parametrize("owners", [[0], [0, 3], None, [0, "x"]])
def test_owners_that_are_no_ranks_are_refused(owners):
    with pytest.raises(InvalidArgument):
        experts([[1, 2], [3, 4]], owners)


# ---- lineage --------------------------------------------------------------------


def node(number, name, stages, parents=(), partitions=4, **more):
    label, cached = more.pop("label", ""), more.pop("cached", "")
    parents = tuple(parents)
    return LineageNode(number, name, label, partitions, stages, cached, parents, **more)


def narrow(number, partitions=4):
    return Parent(number, "narrow", tuple((p,) for p in range(partitions)))


def counted(*, ran=True):
    """Return a word count of which a cached partition is made again."""
    some = {"computed": (1,), "reused": (0, 2, 3)} if ran else {}
    return Lineage(
        (
            node(0, "textFile", (0,), computed=(1,) if ran else ()),
            node(1, "map", (0,), [narrow(0)], label="pairs", cached="memory", **some),
            node(2, "reduceByKey", (1,), [Parent(1, "wide", (), 0)], 2),
        ),
        (
            StageRun(0, 1, 0, (), 4, 4 * ran, (0, 1, 2, 3)[: 4 * ran], False, 0.1),
            StageRun(1, 2, None, (0,), 2, 0, (), True),
        ),
    )


def test_a_lineage_fills_the_partitions_that_ran():
    picture = lineage(counted())
    assert len(boxes(picture, "partition: computed")) == 2
    assert len(boxes(picture, "partition: reused")) == 3
    assert len(boxes(picture, "partition: idle")) == 5
    assert drawn(picture, "partition: reused")[0].get_hatch()
    assert {"textFile", "RDD 1 · pairs · cached: memory", "skipped"} <= {
        *words(picture)
    }
    assert "RDD 1, map (pairs): 4 partitions, stage 0, narrow from RDD 0" in picture.alt
    assert "computed: partition 1; from a cache: partitions 0, 2, 3." in picture.alt
    assert "Stage 1: skipped." in picture.alt
    assert_legible(picture)


def test_before_an_action_nothing_is_filled_and_no_stage_skipped():
    picture = lineage(counted(ran=False))
    assert not boxes(picture, "partition: computed")
    assert "skipped" not in picture.alt and "4 tasks" in words(picture)


def test_narrow_lines_join_the_partitions_and_one_arrow_is_a_shuffle():
    picture = lineage(counted())
    (lines,) = drawn(picture, "narrow")
    assert len(lines.get_segments()) == 4
    assert len(drawn(picture, "wide")) == 1


def test_a_stage_stands_right_of_those_it_reads():
    picture = lineage(counted())
    left, right = (stage.get_bbox().x0 for stage in drawn(picture, "stage"))
    assert left < right


def joined(chains, length):
    """Return `chains` chains of RDDs, each its own stage, cogrouped in one more."""
    nodes, number = [], 0
    for stage in range(chains):
        for at in range(length):
            parents = [narrow(number - 1)] if at else []
            nodes.append(node(number, f"mapPartitions{at}", (stage,), parents))
            number += 1
    parents = [Parent(s * length + length - 1, "wide", (), s) for s in range(chains)]
    nodes.append(node(number, "cogroup", (chains,), parents, 300))
    stages = [StageRun(s, s * length + length - 1, s, (), 4) for s in range(chains)]
    stages.append(StageRun(chains, number, None, tuple(range(chains)), 300))
    return Lineage(tuple(nodes), tuple(stages))


@pytest.mark.parametrize("shape", [(1, 2), (2, 3), (3, 5), (1, 14), (7, 2)])
def test_lineages_of_three_to_fifteen_are_legible(shape):
    picture = lineage(joined(*shape), HOSTILE)
    assert_legible(picture)
    assert len(drawn(picture, "node")) == shape[0] * shape[1] + 1
    assert len(drawn(picture, "wide")) == shape[0]


def test_of_many_stages_the_last_are_shown_and_the_others_counted():
    nodes = [node(0, "parallelize", (0,))]
    nodes += [
        node(n, "sortBy", (n,), [Parent(n - 1, "wide", (), n - 1)])
        for n in range(1, 12)
    ]
    stages = [StageRun(n, n, n, (n - 1,) if n else (), 4) for n in range(12)]
    picture = lineage(Lineage(tuple(nodes), tuple(stages)))
    assert "6 RDDs left out." in picture.alt and len(drawn(picture, "node")) == 6
    assert_legible(picture)


def test_an_rdd_in_two_stages_stands_in_both():
    nodes = (
        node(0, "parallelize", (0, 1)),
        node(1, "map", (0,), [narrow(0)]),
        node(2, "filter", (1,), [narrow(0)]),
    )
    stages = (StageRun(0, 1, 0, (), 4), StageRun(1, 2, None, (), 4))
    picture = lineage(Lineage(nodes, stages))
    assert words(picture).count("parallelize") == 2


def inside_a_join(kind):
    """Return two data sets in stages of their own, and the six RDDs of their join."""
    shuffled = [Parent(4, "wide", (), 2)] if kind == "wide" else [narrow(4)]
    last = (3,) if kind == "wide" else (2,)
    nodes = (
        node(0, "map", (2,), [Parent(8, "wide", (), 0)]),
        node(1, "reduceByKey", (2,), [Parent(9, "wide", (), 1)]),
        node(2, "join", (2,), [narrow(0)]),
        node(3, "join", (2,), [narrow(1)]),
        node(4, "union", (2,), [narrow(2), narrow(3)]),
        node(5, "groupByKey", last, shuffled),
        node(6, "groupByKey", last, [narrow(5)]),
        node(7, "join", last, [narrow(6)]),
    )
    ends = [StageRun(2, 4, 2, (), 4), StageRun(3, 7, None, (2,), 4)]
    return Lineage(
        nodes, tuple(ends if kind == "wide" else [StageRun(2, 7, None, (), 4)])
    )


@pytest.mark.parametrize("kind", ["narrow", "wide"])
def test_a_join_is_one_box_that_needs_both_sides(kind):
    picture = lineage(inside_a_join(kind))
    assert len(drawn(picture, "node")) == 3
    assert f"stage {2 + (kind == 'wide')}, {kind} from RDD 0, {kind} from RDD 1." in (
        picture.alt
    )
    assert len(drawn(picture, "wide")) == 2 * (kind == "wide")
    assert_legible(picture)


@pytest.mark.parametrize("wrong", [None, 3, "rdd", Lineage((), ())])
def test_what_has_no_lineage_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        lineage(wrong)


# ---- rates ----------------------------------------------------------------------


def curve(scale, count=10):
    return [(n + 0.5, scale * (n % 3 - (n == 4))) for n in range(count)]


def test_rates_share_their_scales_and_say_where_each_run_ends():
    runs = {
        "normal": {"input": curve(1e9), "output": curve(2e9)},
        "worse": {"input": curve(2e9, 20), "output": curve(1e9, 20)},
    }
    picture = rates(runs, HOSTILE)
    assert_legible(picture)
    high = [bottom - top for _, top, _, bottom in boxes(picture, "rate: input")]
    assert max(high[5:]) == pytest.approx(2 * max(high[:5]))
    assert len(drawn(picture, "end")) == 2
    assert "worse: ends at 19.5 s, 2.05 x the first" in picture.alt


def test_what_counts_below_zero_is_drawn_below_it():
    picture = rates({"one": {"maps": [(0, 2.0), (1, -1.0)]}}, unit="maps")
    (_, _, _, zero), (_, top, _, bottom) = boxes(picture, "rate: maps")
    assert top == pytest.approx(zero) and bottom > zero
    ends = {
        end for _, low, _, high in boxes(picture, "rate: maps") for end in (low, high)
    }
    assert max(ends) - min(ends) < 1.15, "within the panel"
    assert "falls to −1 maps/s at 1 s" in picture.alt


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        {"a": 3},
        {"a": {}},
        {"a": {"x": []}},
        {"a": {"x": [(1, "y")]}},
        {"a": {"x": [(0, 1)]}, "b": {"y": [(0, 1)]}},
        {str(n): {"x": [(0, 1)]} for n in range(5)},
    ],
)
def test_what_are_no_runs_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        rates(wrong)
