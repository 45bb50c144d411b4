"""Figures of numbers draw the numbers that they are given, and say them in words."""

import itertools
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from artists import assert_legible, boxes, drawn, pixels, texts, words
from soaks import nightly

from distlab.errors import InvalidArgument
from distlab.show import (
    amdahl,
    compare,
    memory,
    pipeline,
    player,
    ratios,
    scaling,
    traffic,
)
from distlab.show.canvas.canvas import Canvas, write
from distlab.show.canvas.picture import Picture
from distlab.show.canvas.theme import INK, MUTED, PAPER, WARNING, rank_color
from distlab.show.reading.pipeline_cells import PipelineCells
from distlab.trace import Event, Trace
from distlab.train.pipeline import (
    dual_pipe_v,
    gpipe,
    interleaved,
    naive,
    one_f_one_b,
    timed,
    zero_bubble_h1,
    zero_bubble_h2,
)

HOSTILE = "cost $x_1$ &\n<b>\\frac{1}{2}</b> 日本 " + "w" * 300
GB = 1e9


# ---- what was drawn -------------------------------------------------------------


def wide(picture, gid):
    return [right - left for left, _, right, _ in boxes(picture, gid)]


def high(picture, gid):
    return [bottom - top for _, top, _, bottom in boxes(picture, gid)]


def line(picture, gid):
    """Return the ends (x0, y0), (x1, y1) of the one line called `gid`."""
    (artist,) = drawn(picture, gid)
    return artist.get_segments()[0]


# ---- what is given --------------------------------------------------------------


def forward(stages, microbatches):
    """Return the cells of a pipeline that only goes forward."""
    for stage, number in itertools.product(range(stages), range(microbatches)):
        yield stage, stage + number, stage + number + 1, "forward", number


def there_and_back(stages, microbatches):
    """Return the cells of GPipe, backward as long as forward."""
    turn = stages + microbatches - 1
    yield from forward(stages, microbatches)
    for stage, number in itertools.product(range(stages), range(microbatches)):
        start = turn + stages - 1 - stage + number
        yield stage, start, start + 1, "backward", number


def send(rank, peer, size, *, ended=True):
    return Event(rank, 0.0, 1.0 if ended else None, "send", peer, size, 1, "")


FULL = {"parameters": 14 * GB, "gradients": 14 * GB, "optimizer state": 84 * GB}
SHARDED = {**FULL, "optimizer state": 21 * GB}
PICTURES = {
    "amdahl": lambda: amdahl(0.25),
    "amdahl, ends": lambda: amdahl(1, [1, 10**6], title=HOSTILE),
    "amdahl, all parallel": lambda: amdahl(0, range(1, 13)),
    "ratios": lambda: ratios({"ring": (96, 100), "tree": (9, None)}, unit="B"),
    "ratios, many": lambda: ratios({k: (k, 10**k) for k in range(60)}, unit="rounds"),
    "ratios, zeros": lambda: ratios({"a": (0, 0), "b": (0, 3)}, unit="s"),
    "ratios, huge": lambda: ratios({"a": (1e-50, 1e50), "b": (0, 7)}, unit=HOSTILE),
    "ratios, hostile": lambda: ratios({HOSTILE: (1, 2), "": (1, 3)}, unit="s"),
    "traffic": lambda: traffic({"a": [720, 240], "b": [240] * 2}, bound_bytes=240),
    "traffic, one rank": lambda: traffic({"a": [1]}, bound_bytes=10**9),
    "traffic, 100 ranks": lambda: traffic(
        {f"run {k}": range(k, 100 + k) for k in range(12)}, bound_bytes=40
    ),
    "traffic, zeros": lambda: traffic({"a": [0, 0], "b": [0]}, bound_bytes=0),
    "traffic, huge": lambda: traffic({"a": [1e50, 1], "b": [3]}, bound_bytes=1e-9),
    "traffic, hostile": lambda: traffic(
        {HOSTILE: [3, 4], f"other {HOSTILE}": [5], "": [2]},
        bound_bytes=3.95,
        bound_label=HOSTILE,
    ),
    "memory": lambda: memory([FULL, SHARDED], limit_bytes=80 * GB),
    "memory, one rank": lambda: memory([{"parameters": 1}]),
    "memory, 100 ranks": lambda: memory([{"a": r} for r in range(100)], limit_bytes=9),
    "memory, nothing": lambda: memory([{}, {"a": 0}], limit_bytes=0),
    "memory, huge": lambda: memory([{"a": 1e50}, {"b": 1}], limit_bytes=1e-9),
    "memory, hostile": lambda: memory(
        {HOSTILE: {HOSTILE: 1, "": 2}, "b": {f"kind {k}": k for k in range(50)}},
        limit_bytes=2,
    ),
    "pipeline": lambda: pipeline(there_and_back(4, 4)),
    "pipeline, one stage": lambda: pipeline([(7, -3.5, 1e5, "forward", None)]),
    "pipeline, 100 stages": lambda: pipeline(there_and_back(100, 3)),
    "pipeline, 200 columns": lambda: pipeline(forward(8, 200)),
    "pipeline, huge": lambda: pipeline([(0, 0, 1e50, "x", 10**30)], unit="ms"),
    "pipeline, hostile": lambda: pipeline(
        [(0, 0, 1, HOSTILE, HOSTILE), (1, 0, 1, "", "$x$")], unit=HOSTILE
    ),
    "pipeline, both": lambda: pipeline(
        *(timed(make(4, 8)).cells() for make in (gpipe, zero_bubble_h1)), memory=True
    ),
    "pipeline, chunks": lambda: pipeline(timed(interleaved(4, 8)).cells(), memory=True),
    "pipeline, kinds": lambda: pipeline(
        [(0, k, k + 1, f"kind {k}", k) for k in range(50)], unit="s"
    ),
}


# ---- all of them ----------------------------------------------------------------


@pytest.mark.parametrize("name", PICTURES)
def test_figures_are_legible_and_their_words_are_words(name):
    picture = PICTURES[name]()
    assert_legible(picture)
    assert not any(text.get_parse_math() for text in texts(picture))
    assert "\n" not in picture.alt
    readable = {INK, MUTED, WARNING} | ({PAPER} if "pipeline" in name else set())
    assert {text.get_color() for text in texts(picture)} <= readable


@pytest.mark.parametrize(
    "name", [nightly(n) if re.search("many|00|kinds|both", n) else n for n in PICTURES]
)
def test_figures_are_drawn_silently_and_on_white(name, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = PICTURES[name]()
        image = pixels(picture)
    assert capfd.readouterr() == ("", "")
    edges = (image[0], image[-1], image[:, 0], image[:, -1])
    assert all((edge == 255).all() for edge in edges)
    assert "background:var(--dFFFFFF)" in picture._repr_mimebundle_()["text/html"]


def test_the_test_of_legibility_would_notice_words_on_words():
    def draw():
        canvas = Canvas(1.0)
        write(canvas.page, 1, 0.5, "one")
        write(canvas.page, 1.1, 0.5, "other")
        return canvas

    with pytest.raises(AssertionError, match="lies on"):
        assert_legible(Picture(draw))


def test_titles_are_drawn_and_said():
    for draw, given in (
        (ratios, {"rows": {"a": (1, 1)}, "unit": "B"}),
        (traffic, {"runs": {"a": [1]}, "bound_bytes": 1}),
        (memory, {"ranks": [{"a": 1}]}),
        (pipeline, {"cells": [(0, 0, 1, "forward", 0)]}),
    ):
        picture = draw(**given, title="My $title$")
        assert "My $title$" in words(picture)
        assert picture.alt.startswith("My $title$: ")


def test_the_settings_of_the_learner_change_nothing():
    import matplotlib

    loud = {"font.size": 20, "axes.facecolor": "black", "text.color": "red"}
    loud |= {"figure.facecolor": "black", "lines.linewidth": 9, "axes.grid": True}
    for name in ("ratios", "traffic", "memory", "pipeline"):
        plain = pixels(PICTURES[name]())
        with matplotlib.rc_context(loud):
            assert (pixels(PICTURES[name]()) == plain).all()


def test_figures_load_matplotlib_only_when_drawn():
    code = "from distlab.show import memory, pipeline, ratios, traffic\n"
    code += "import sys; print({'matplotlib', 'numpy', 'torch'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


# ---- ratios ---------------------------------------------------------------------


def test_ratios_draws_both_amounts_to_one_scale_and_writes_the_ratio():
    picture = ratios({"ring": (96_000, 100_000), "tree": (50_000, 25_000)}, unit="B")
    assert len(wide(picture, "predicted")) == len(wide(picture, "measured")) == 2
    amounts = wide(picture, "predicted") + wide(picture, "measured")
    inch = amounts[0] / 96
    assert amounts == pytest.approx([96 * inch, 50 * inch, 100 * inch, 25 * inch])
    assert {"1.04 x", "0.500 x", "96 kB", "100 kB"} <= {*words(picture)}
    assert "ring: 96 kB predicted, 100 kB measured, 1.04 x." in picture.alt
    assert "Furthest from its prediction: tree, 0.500 x." in picture.alt


def test_predicted_is_hollow_and_dashed_and_measured_is_filled():
    from matplotlib.colors import to_hex

    picture = ratios({"ring": (1, 2)}, unit="s")
    ((hollow,), (filled,)) = drawn(picture, "predicted"), drawn(picture, "measured")
    assert to_hex(hollow.get_facecolor()[0]).upper() == PAPER
    assert hollow.get_linestyle()[0][1] is not None
    assert filled.get_linestyle()[0][1] is None
    assert to_hex(filled.get_facecolor()[0]).upper() != PAPER


def test_amounts_far_apart_get_a_logarithmic_axis_that_says_so():
    near = ratios({"a": (1, 50)}, unit="rounds")
    far = ratios({"a": (1, 10), "b": (100, 1000)}, unit="rounds")
    said = "logarithmic axis: bars do not begin at zero"
    assert said in words(far) and said not in words(near)
    one, hundred = wide(far, "predicted")
    ten, thousand = wide(far, "measured")
    assert ten - one == pytest.approx(thousand - hundred)
    assert ten - one == pytest.approx((hundred - one) / 2)


def test_what_was_not_measured_has_no_bar_and_no_ratio():
    picture = ratios({"ring": (96, None), "tree": (9, 9)}, unit="B")
    assert len(boxes(picture, "predicted")) == 2
    assert len(boxes(picture, "measured")) == 1
    assert words(picture).count("not measured") == 1 and "–" in words(picture)
    assert "ring: 96 B predicted, not measured." in picture.alt


@pytest.mark.parametrize(
    "pair, verdict", [((0, 3), "no ratio"), ((0, 0), "both 0"), ((3, 0), "0 x")]
)
def test_zeros_get_no_bar_and_no_ratio_that_is_none(pair, verdict):
    picture = ratios({"a": pair}, unit="B")
    bars = boxes(picture, "predicted") + boxes(picture, "measured")
    assert len(bars) == sum(map(bool, pair))
    assert verdict in words(picture) and verdict in picture.alt


@pytest.mark.parametrize("measured, shown", [(1.2e9, "1.2×10⁹ x"), (1e-4, "10⁻⁴ x")])
def test_ratios_far_from_one_are_written_shortly(measured, shown):
    assert shown in words(ratios({"a": (1, measured)}, unit="s"))


def test_other_units_stand_above_the_bars_and_behind_each_number_in_words():
    picture = ratios({"a": (6, 7)}, unit="rounds")
    assert {"rounds", "6", "7"} <= {*words(picture)}
    assert "a: 6 rounds predicted, 7 rounds measured" in picture.alt


@pytest.mark.parametrize(
    "rows, message",
    [
        ({}, "empty"),
        ([1], "list"),
        ({"a": 3}, "'a'.*pair"),
        ({"a": (1, 2, 3)}, "'a'.*pair"),
        ({"a": (None, 2)}, "predicted of .*'a'.*None"),
        ({"a": (1, "2 kB")}, "measured of .*'a'.*2 kB"),
        ({"a": (-1, 2)}, "zero up.*-1"),
        ({"a": (1, float("nan"))}, "nan"),
        ({"a": (True, 1)}, "True"),
        ({"a": (10**400, 1)}, "number"),
    ],
)
def test_rows_that_cannot_be_drawn_are_refused_by_name(rows, message):
    with pytest.raises(InvalidArgument, match=f"(?s){message}.*For example: ratios"):
        ratios(rows, unit="B")


# ---- amdahl ---------------------------------------------------------------------


def test_amdahls_serial_part_stays_and_the_parallel_part_is_divided():
    picture = amdahl(0.25, [1, 2, 4, 8])
    inch = wide(picture, "serial")[0] / 0.25
    assert wide(picture, "serial") == pytest.approx([0.25 * inch] * 4)
    shares = [0.75 * inch / n for n in (1, 2, 4, 8)]
    assert wide(picture, "parallel") == pytest.approx(shares)
    assert {"0.344", "2.91"} <= {*words(picture)}
    assert "8 workers: time 0.344, speed-up 2.91" in picture.alt


@pytest.mark.parametrize(("serial", "workers"), [(1.1, [1]), (0.5, []), (0.5, [0])])
def test_amdahl_without_a_fraction_or_workers_is_refused(serial, workers):
    with pytest.raises(InvalidArgument, match="got"):
        amdahl(serial, workers)


# ---- traffic --------------------------------------------------------------------


def test_traffic_draws_bytes_and_bound_to_one_scale_in_rank_colours():
    from matplotlib.colors import to_hex

    picture = traffic({"naive": [720, 240, 0], "ring": [240] * 3}, bound_bytes=240)
    inch = high(picture, "sent")[0] / 720
    assert high(picture, "sent") == pytest.approx([720 * inch, *[240 * inch] * 4])
    colors = [to_hex(bar.get_facecolor()[0]).upper() for bar in drawn(picture, "sent")]
    assert colors == [rank_color(rank) for rank in (0, 1, 0, 1, 2)]
    (_, y), _ = line(picture, "bound")
    assert boxes(picture, "sent")[0][3] - y == pytest.approx(240 * inch)
    assert {"3.00 x the bound", "1.00 x the bound", "naive", "ring"} <= {
        *words(picture)
    }
    said = "naive: 720 B by rank 0, 240 B by rank 1, 0 B by rank 2; busiest 3.00 x"
    assert said in picture.alt
    assert "ring: 240 B by each of 3 ranks; busiest 1.00 x the bound." in picture.alt


def test_traffic_counts_a_trace_as_the_trace_does():
    class Report:
        trace = Trace(3, [send(0, 1, 300), send(0, 1, 60), send(1, 2, 120)])

    Report.trace.events.append(send(2, 0, 999, ended=False))
    picture = traffic(Report(), bound_bytes=100, bound_label="bound $S$")
    sent = [Report.trace.bytes_sent(rank) for rank in range(3)]
    assert sent == [360, 120, 0]
    inch = high(picture, "sent")[0] / 360
    assert high(picture, "sent") == pytest.approx([360 * inch, 120 * inch])
    assert "Sent: 360 B by rank 0, 120 B by rank 1, 0 B by rank 2" in picture.alt
    assert "bound $S$: 100 B a rank." in picture.alt
    assert traffic({"": Report.trace}, bound_bytes=100).alt.count("360 B") == 1


def test_the_factor_stands_over_the_busiest_rank():
    picture = traffic({"a": [1, 1, 9, 1]}, bound_bytes=3)
    (factor,) = [text for text in texts(picture) if "the bound" in text.get_text()]
    left, top, right, _ = boxes(picture, "sent")[2]
    assert left < factor.get_position()[0] < right
    assert top - 0.2 < factor.get_position()[1] < top


def test_of_many_ranks_some_are_left_out_and_never_the_busiest():
    sent = [5] * 100
    sent[60] = 50
    picture = traffic({"a": sent}, bound_bytes=5)
    assert len(boxes(picture, "sent")) == 16
    assert {"13", "60", "99", "…"} <= {*words(picture)} and "14" not in words(picture)
    assert "84 of 100 ranks are left out; none of them sent more." in picture.alt
    assert "from 5 B by rank 0 to 50 B by rank 60; busiest 10.0 x" in picture.alt
    factor = next(text for text in texts(picture) if "10.0 x" in text.get_text())
    assert max(high(picture, "sent")) == pytest.approx(10 * min(high(picture, "sent")))
    assert factor.get_position()[0] > boxes(picture, "sent")[13][2]


def test_runs_of_unlike_sizes_are_each_told():
    picture = traffic({"a": [1] * 20, "b": [1] * 4}, bound_bytes=1)
    assert "4 of 20 ranks of a are left out" in picture.alt
    assert "b: 1 B by each of 4 ranks" in picture.alt


@pytest.mark.parametrize(
    "runs, message",
    [
        ({}, "no runs"),
        (3, "int"),
        ({"a": []}, "'a'.*no ranks"),
        ({"a": None}, "'a'.*NoneType"),
        ({"a": "12"}, "'a'.*str"),
        ({"a": [1, -2]}, "'a'.*-2"),
        ({"a": [1, None]}, "'a'.*None"),
        (Trace(0), "no ranks"),
    ],
)
def test_runs_that_cannot_be_drawn_are_refused_by_name(runs, message):
    with pytest.raises(InvalidArgument, match=message):
        traffic(runs, bound_bytes=1)


@pytest.mark.parametrize("bound", [None, "96 kB", -1, float("inf"), True])
def test_a_bound_that_is_no_number_is_refused(bound):
    with pytest.raises(InvalidArgument, match="bound_bytes"):
        traffic({"a": [1]}, bound_bytes=bound)


def test_arrays_are_lists_of_bytes_though_they_have_a_method_called_trace():
    assert "2.00 x" in traffic({"a": np.array([1, 2])}, bound_bytes=1).alt


# ---- memory ---------------------------------------------------------------------


def test_memory_stacks_kinds_in_order_and_to_scale():
    picture = memory([FULL, SHARDED], limit_bytes=80 * GB)
    stacks = [boxes(picture, f"memory: {kind}") for kind in FULL]
    inch = (stacks[0][0][2] - stacks[0][0][0]) / 14
    for number, ranks in enumerate(zip(*stacks, strict=True)):
        gigabytes = (14, 14, (84, 21)[number])
        widths = [right - left for left, _, right, _ in ranks]
        assert widths == pytest.approx([inch * size for size in gigabytes])
        for one, other in itertools.pairwise(ranks):
            assert one[2] == pytest.approx(other[0])
    (limit, _), _ = line(picture, "limit")
    assert limit - stacks[0][0][0] == pytest.approx(80 * inch)
    places = [words(picture).index(kind) for kind in FULL]
    assert places == sorted(places)


def test_memory_over_the_limit_is_flagged_in_words():
    picture = memory({"DDP": FULL, "ZeRO-1": SHARDED}, limit_bytes=80 * GB)
    assert {"112 GB", "49 GB", "over by 32 GB", "limit: 80 GB"} <= {*words(picture)}
    assert sum(word.startswith("over by") for word in words(picture)) == 1
    assert "1 of 2 is over the limit of 80 GB: DDP by 32 GB." in picture.alt
    parts = "parameters 14 GB, gradients 14 GB, optimizer state 84 GB"
    assert f"DDP: 112 GB, of which {parts}; ZeRO-1: 49 GB" in picture.alt
    within = memory([SHARDED] * 4, limit_bytes=80 * GB)
    assert "All within the limit of 80 GB." in within.alt
    assert "Each of 4 ranks: 49 GB, of which parameters 14 GB" in within.alt


def test_of_many_ranks_the_fullest_is_shown():
    ranks = [{"a": 1}] * 100
    ranks[70] = {"a": 7}
    picture = memory(ranks, limit_bytes=5)
    assert "rank 70" in words(picture) and "rank 50" not in words(picture)
    assert len(boxes(picture, "memory: a")) == 24
    assert "76 of 100 bars are left out; none of them is longer." in picture.alt


def test_a_kind_that_a_rank_lacks_takes_no_room():
    picture = memory([{"a": 1, "b": 2}, {"b": 2}])
    assert len(boxes(picture, "memory: a")) == 1
    one, other = boxes(picture, "memory: b")
    assert one[0] > other[0] and one[2] - one[0] == pytest.approx(other[2] - other[0])


def test_kinds_that_print_alike_are_added_and_not_lost():
    picture = memory([{"a b": 1, "a\nb": 2}])
    assert "3 B, of which a b 3 B" in picture.alt


@pytest.mark.parametrize(
    "ranks, message",
    [
        ([], r"\[\]"),
        ({}, "{}"),
        (3, "3"),
        ([3], "what rank 0 holds"),
        ({"DDP": [1]}, "what DDP holds"),
        ([{"parameters": "2 GB"}], "'parameters' of rank 0.*2 GB"),
        ([{"parameters": None}], "'parameters' of rank 0"),
        ([{"parameters": -1}], "zero up"),
    ],
)
def test_ranks_that_cannot_be_drawn_are_refused_by_name(ranks, message):
    with pytest.raises(InvalidArgument, match=f"(?s){message}.*For example: memory"):
        memory(ranks)


def test_a_limit_that_is_no_number_is_refused():
    with pytest.raises(InvalidArgument, match=r"limit_bytes.*80 GB"):
        memory([FULL], limit_bytes="80 GB")


# ---- pipeline -------------------------------------------------------------------


def test_pipeline_draws_each_cell_where_and_as_long_as_it_is():
    picture = pipeline(there_and_back(3, 2))
    for kind in ("forward", "backward"):
        found = sorted(
            boxes(picture, f"cell: {kind}"), key=lambda box: (box[1], box[0])
        )
        cells = sorted(c for c in there_and_back(3, 2) if c[3] == kind)
        origin = min(box[0] for box in boxes(picture, "cell: forward"))
        slot = wide(picture, "cell: forward")[0]
        assert len(found) == len(cells) == 6
        for box, (_, start, end, _, _) in zip(found, cells, strict=True):
            assert (box[0] - origin) / slot == pytest.approx(start)
            assert (box[2] - origin) / slot == pytest.approx(end)
    assert words(picture).count("F0") == 3 and words(picture).count("B1") == 3
    assert {"F: forward", "B: backward", "stage 2"} <= {*words(picture)}


@pytest.mark.parametrize("stages, count", [(2, 1), (4, 8), (4, 4), (8, 32)])
def test_the_bubble_is_what_the_formula_says(stages, count):
    picture = pipeline(forward(stages, count))
    share = (stages - 1) / (count + stages - 1)
    slots = count + stages - 1
    said = f"bubble {100 * share:.0f} % of {stages} stages x {slots} slots"
    assert said in picture.alt and any(said in text for text in words(picture))
    work, idle = wide(picture, "cell: forward"), wide(picture, "bubble")
    assert sum(idle) / (sum(work) + sum(idle)) == pytest.approx(share)


def test_idle_cells_are_bubble_and_a_full_pipeline_has_none():
    cells = [(0, 0, 2, "forward", 0), (1, 0, 1, "idle", None), (1, 1, 2, "forward", 0)]
    picture = pipeline(cells, unit="ms")
    assert "bubble 25 % of 2 stages x 2 ms" in picture.alt
    assert len(boxes(picture, "bubble")) == 1 and not drawn(picture, "cell: idle")
    full = pipeline([(0, 0, 2, "forward", 0), (1, 0, 2, "forward", 1)])
    assert "bubble 0 % of 2 stages" in full.alt and not drawn(full, "bubble")


def test_pipeline_tells_what_each_stage_does_in_order():
    alt = pipeline(there_and_back(2, 2)).alt
    assert "2 microbatches; bubble 33 % of 2 stages x 6 slots" in alt
    assert "Stage 0: forward 0, 1; backward 0, 1; idle 2 slots." in alt


def test_times_that_meet_up_to_rounding_are_neither_overlap_nor_bubble():
    cells = [(0, 0.1 * k, 0.1 * (k + 1), "forward", k) for k in range(30)]
    picture = pipeline(cells, unit="s")
    assert "bubble 0 % of 1 stage x 3 s" in picture.alt
    assert not drawn(picture, "bubble")


def test_numbers_are_written_only_where_they_fit():
    shown = words(pipeline([(0, 0, 1, "forward", 7), (0, 1, 200, "backward", 8)]))
    assert "8" in shown and "7" not in shown
    assert "backward" in shown  # letters are for all boxes or for none
    shown = words(pipeline(forward(2, 300)))
    assert not {"F0", "F299", "299"} & {*shown}


def test_kinds_that_begin_alike_get_letters_of_their_own():
    cells = [(0, 0, 1, "send", 0), (0, 1, 2, "sum", 0), (0, 2, 3, "s", 0)]
    assert {"S0", "U0", "S: send"} <= {*words(pipeline(cells[:2]))}
    assert {"0", "send", "s"} <= {*words(pipeline(cells))}


@pytest.mark.parametrize(
    "cells, message",
    [
        ([], "tuples"),
        (3, "tuples.*3"),
        ([3], "tuples"),
        ([(0, 1, 2)], "cell 0 is"),
        ([(0, 0, 1, "f", 0), (0, 2, 1, "f", 1)], "cell 1 ends at 1, before"),
        ([(0, 0, 2, "f", 0), (0, 1, 3, "b", 1)], "f 0 from 0 to 2 and b 1 from 1 to 3"),
        ([(0, 0, "1", "f", 0)], "end of cell 0.*'1'"),
        ([(0, None, 1, "f", 0)], "start of cell 0.*None"),
        ([(0, 0, float("inf"), "f", 0)], "end of cell 0"),
        ([("a", 0, 1, "f", 0)], "stage of cell 0"),
        ([(0.5, 0, 1, "f", 0)], "stage of cell 0.*0.5"),
        ([(0, 1, 1, "f", 0)], "no time"),
    ],
)
def test_cells_that_cannot_be_drawn_are_refused_by_number(cells, message):
    with pytest.raises(InvalidArgument, match=f"(?s){message}"):
        pipeline(cells)


def test_chunks_are_told_apart_by_hatching_and_by_a_prime():
    cells = [(0, 0, 1, "forward", 0), (0, 1, 2, "forward, chunk 1", 0)]
    picture = pipeline(cells)
    assert {"F0", "F0'", "F': forward, chunk 1"} <= {*words(picture)}
    assert len(boxes(picture, "cell: forward")) == 1
    assert "Stage 0: forward 0; forward 0 (chunk 1); idle" in picture.alt
    crowded = words(pipeline(timed(interleaved(4, 8)).cells()))
    assert all(crowded.count(f"{microbatch}") == 4 * 4 for microbatch in range(1, 8))


def test_memory_is_what_the_schedule_holds():
    schedule = zero_bubble_h1(4, 8)
    cells = timed(schedule).cells()
    picture = pipeline(cells, memory=True)
    assert {"holds 4"} <= {*words(picture)}
    assert "held at most, from stage 0: 4, 4, 4, 4." in picture.alt
    for make in (gpipe, one_f_one_b, interleaved, zero_bubble_h2):
        schedule = make(4, 8)
        drawn_ = PipelineCells(timed(schedule).cells(), "slot")
        for stage in range(4):
            assert drawn_.most_held(stage) == max(schedule.held(stage))


def test_two_schedules_share_a_clock_and_their_first_difference_is_framed():
    both = [timed(make(4, 8)).cells() for make in (gpipe, one_f_one_b)]
    picture = pipeline(*both, names=("GPipe", "1F1B"))
    assert "on stage 0: forward 4 above, backward 0 below." in picture.alt
    assert "GPipe: 8 microbatches" in picture.alt and "1F1B: 8" in picture.alt
    above, below = boxes(picture, "difference")
    slot = min(wide(picture, "cell: forward"))
    assert (below[0] - above[0]) / slot == pytest.approx(10 - 4)
    same = pipeline(both[0], both[0])
    assert "Every stage does the same" in same.alt and not drawn(same, "difference")
    longer = pipeline(both[0], [*both[0], (4, 0, 1, "forward", 0)])
    assert "on stage 4: nothing above, forward 0 below." in longer.alt


def test_two_schedules_share_a_scale_of_what_is_held():
    both = [timed(make(4, 8)).cells() for make in (gpipe, one_f_one_b)]
    tall = [b - a for _, a, _, b in boxes(pipeline(*both, memory=True), "held")]
    assert [t / tall[0] for t in tall] == pytest.approx(
        [1] * 4 + [0.5, 0.375, 0.25, 0.125]
    )


def test_works_side_by_side_share_the_height_of_their_row():
    cells = timed(dual_pipe_v(2, 4)).cells()
    picture = pipeline(cells, memory=True)
    tall = {
        kind: {round(100 * (d - b)) for _, b, _, d in boxes(picture, f"cell: {kind}")}
        for kind in ("forward", "weights")
    }
    low, high = sorted(tall["forward"])
    assert tall["weights"] == {high} and high == pytest.approx(2 * low, abs=1)
    assert "held at most, from stage 0: 5, 5." in picture.alt
    said = [frame.text for frame in player(cells).animation.frames]
    assert any("+B" in text for text in said)
    with pytest.raises(InvalidArgument, match="or start and end together"):
        pipeline([(0, 0, 2, "forward", 0), (0, 0, 1, "backward", 0)])


def test_rows_have_the_names_that_are_given():
    cells = [(0, 0, 1, "experts", 7), (1, 1, 2, "dispatch", 7)]
    picture = pipeline(cells, rows=("compute", "network"))
    assert {"compute", "network", "idle"} <= {*words(picture)}
    assert "idle 50 % of 2 rows x 2 slots" in picture.alt
    assert "stage" not in picture.alt


def test_a_pipeline_plays_and_says_what_stages_do_and_hold():
    made = player(timed(one_f_one_b(4, 8)).cells(), "1F1B")
    frames = {frame.at_s: frame for frame in made.animation.frames}
    said = frames[13.0].text
    assert "0: B1, 1: F4, 2: B2, 3: B3" in said and "hold 4, 3, 2, 1 micro" in said
    assert frames[0.0].text.startswith("Stages do 0: F0, 1: idle, 2: idle, 3: idle.")
    drawn_ = made._repr_mimebundle_()
    assert "image/png" in drawn_ and "F: forward" in drawn_["text/html"]
    many = player(timed(one_f_one_b(20, 20)).cells(), unit="ms").animation.frames[3]
    assert many.title == "At 3 ms"
    assert many.text == "4 of 20 stages work. They hold 0 to 4 microbatches."


def test_two_pipelines_play_on_one_clock_up_to_the_first_work_that_differs():
    short, long = (timed(make(4, 4)).cells() for make in (zero_bubble_h1, naive))
    made = compare(short, long, names=("H1", "naive"))
    one, other = made.animations
    assert [f.at_s for f in one.frames] == [f.at_s for f in other.frames]
    assert one.lasts_s == other.lasts_s and one.over[1] < other.over[1]
    assert one.frames[made.stop].at_s == 1 and "forward 1 above" in made.difference
    assert "naive: 4 microbatches" in made.html()
    assert not compare(short, short).stop
    with pytest.raises(InvalidArgument, match="a pipeline that plays is saved"):
        made.save("pipeline.gif")


def test_computed_points_are_nowhere_called_measured():
    curve = {"ring": ([1, 2], [3, 4])}
    picture = scaling(curve, x_label="n", y_label="s", points="computed")
    said = f"{picture.alt} {words(picture)}"
    assert "points: computed" in said and "measured" not in said
