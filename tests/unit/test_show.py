"""Pictures say what their trace says, in their artists, pixels and words."""

import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest
from artists import assert_legible, boxes, drawn, pixels, texts, words
from soaks import nightly

from distlab.errors import InvalidArgument
from distlab.show import scaling, timeline
from distlab.show.canvas.mark_labels import place_marks
from distlab.show.canvas.theme import RANK_COLORS, WAITING, WARNING, rank_color
from distlab.trace import Event, Trace
from distlab.units import readable_seconds

MS = 1e-3


def event(rank, start_ms, end_ms, kind, peer=None, size=0, step=1, label=""):
    end = None if end_ms is None else end_ms * MS
    return Event(rank, start_ms * MS, end, kind, peer, size, step, label)


def mark(rank, at_ms, label, step=0):
    return event(rank, at_ms, at_ms, "mark", step=step, label=label)


def ring_trace(ranks=4, rounds=6, size=40):
    """Return a ring whose ranks start a step one after another, and end it together."""
    events = []
    for rank, step in itertools.product(range(ranks), range(1, rounds + 1)):
        half, begin = rounds // 2, (ranks + 10) * step
        start, end = begin + (0, 3, 1, 5)[rank % 4], begin + ranks + 5
        phase = "reduce-scatter" if step <= half else "all-gather"
        label = f"{phase}, step {(step - 1) % half + 1} of {half}"
        events.append(mark(rank, start, label, step - 1))
        for kind, peer in (("send", rank + 1), ("recv", rank - 1)):
            events.append(event(rank, start, end, kind, peer % ranks, size, step))
    return Trace(ranks, events)


def count_pixels(image, color):
    rgb = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    return int((abs(image - rgb).max(axis=2) <= 2).sum())


DEADLOCK = Trace(3, [event(r, r, None, "recv", (r + 1) % 3, 40) for r in range(3)])
KILLED = Trace(
    3,
    [
        event(0, 0, 2, "send", 1, 40),
        event(1, 1, 2, "recv", 0, 40),
        event(0, 3, None, "send", 1, 40, 2),
        event(1, 5, None, "recv", 0, 40, 2),
        event(2, 4, 4, "fault", label="kill"),
        event(0, 6, None, "barrier", step=3),
    ],
)
BACKWARDS = Trace(
    2,
    [
        event(0, 5, 2, "send", 1, 40),
        event(1, 4, 1, "recv", 0, 40),
        event(1, 9, -3, "barrier", step=2),
    ],
)
HOSTILE = "cost $x_1$ & <b>\\frac{1}{2}</b> 日本"
STRANGE = {
    "empty": Trace(4, []),
    "no ranks": Trace(0, []),
    "one rank": Trace(1, [event(0, 0, 1, "barrier")]),
    "64 ranks": ring_trace(64, 2),
    "200 ranks": ring_trace(200, 2),
    "many rounds": ring_trace(20, 40, 12345678),
    "deadlock": DEADLOCK,
    "killed": KILLED,
    "backwards": BACKWARDS,
    "no time": Trace(2, [event(0, 0, 0, "send", 1, 4), event(1, 0, 0, "recv", 0, 4)]),
    "strangers": Trace(2, [event(5, 0, 1, "send", 9, 4), event(0, 0, 1, "put")]),
    "hostile": Trace(
        2,
        [
            mark(0, 0, HOSTILE),
            mark(1, 0, "a\nb\t\ud800" + "w" * 500),
            event(0, 0, 9, "collective", label="all_reduce_$x$<i>"),
            event(1, 0, None, "collective", label="all_gather_$y$<i>"),
            event(0, 9.5, 9.5, "fault", label="h$a$ng"),
        ],
    ),
}


# ---- what pictures are ----------------------------------------------------------


def test_importing_show_loads_neither_matplotlib_nor_numpy():
    code = "import distlab.show, sys; print({'matplotlib', 'numpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


def test_no_picture_needs_pyplot_or_says_anything():
    code = "from distlab.show import timeline\nfrom distlab.trace import Trace\n"
    code += "import sys\ntimeline(Trace(2))._repr_mimebundle_()\n"
    code += "print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_a_picture_shows_itself_as_html_png_and_words():
    picture = timeline(ring_trace())
    picture.alt = 'a "quoted" <alt>'
    bundle = picture._repr_mimebundle_()
    assert bundle["text/plain"] == repr(picture) == picture.alt
    assert 'alt="a &quot;quoted&quot; &lt;alt&gt;"' in bundle["text/html"]
    assert bundle["image/png"] in bundle["text/html"]
    assert "max-width:100%" in bundle["text/html"]
    high, wide, _ = pixels(picture).shape
    assert wide == pytest.approx(192 * picture.figure.get_figwidth(), abs=1)
    assert high == pytest.approx(192 * picture.figure.get_figheight(), abs=1)


BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_a_picture_is_saved_by_suffix(tmp_path, kind):
    path = tmp_path / f"ring.{kind}"
    timeline(ring_trace(2, 2)).save(path)
    assert path.read_bytes().startswith(BEGINNINGS[kind])


def test_another_suffix_is_refused_and_writes_nothing(tmp_path):
    with pytest.raises(InvalidArgument, match="jpeg"):
        timeline(Trace(1)).save(tmp_path / "ring.jpeg")
    assert not list(tmp_path.iterdir())


def test_a_picture_takes_whatever_carries_a_trace():
    class Carrier:
        trace = ring_trace()

    assert timeline(Carrier()).alt == timeline(Carrier.trace).alt


@pytest.mark.parametrize("thing", [None, 3, [], np.zeros(3), "trace"])
def test_what_carries_no_trace_is_refused_with_its_kind(thing):
    with pytest.raises(InvalidArgument, match=type(thing).__name__):
        timeline(thing)


@pytest.mark.parametrize(
    "name", [nightly(n) if n in ("200 ranks", "many rounds") else n for n in STRANGE]
)
def test_strange_traces_are_drawn_legibly_and_silently(name, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = timeline(STRANGE[name], HOSTILE)
        assert pixels(picture).shape[1] > 1000
    assert capfd.readouterr() == ("", "")
    assert_legible(picture)


def test_a_ring_is_legible_and_the_settings_of_the_learner_change_nothing():
    import matplotlib

    picture = timeline(ring_trace(), "Ring all-reduce")
    assert_legible(picture)
    plain = pixels(picture)
    loud = {"font.size": 20, "axes.facecolor": "black", "text.color": "red"}
    loud |= {"figure.facecolor": "black", "lines.linewidth": 9, "lines.marker": "x"}
    loud |= {"figure.autolayout": True, "axes.grid": True, "axes.xmargin": 0.3}
    with matplotlib.rc_context(loud):
        assert (pixels(timeline(ring_trace(), "Ring all-reduce")) == plain).all()


# ---- timeline -------------------------------------------------------------------


def test_timeline_draws_one_arrow_per_message_in_the_senders_colour():
    from matplotlib.colors import to_hex

    trace = ring_trace()
    arrows = drawn(timeline(trace), "arrow")
    assert len(arrows) == len(trace.messages()) == 24
    colors = [to_hex(arrow.get_edgecolor()).upper() for arrow in arrows]
    assert all(colors.count(rank_color(rank)) == 6 for rank in range(4))


def test_grey_adds_up_to_what_each_rank_waited():
    trace = ring_trace()
    lanes = [0.0] * 4
    for left, low, right, high in boxes(timeline(trace), "waiting"):
        lanes[int((low + high) / 2 // 0.56)] += (right - left) * MS
    assert lanes == pytest.approx([trace.waited_s(rank) for rank in range(4)])


def test_colour_and_grey_fill_the_calls_of_a_rank_and_never_overlap():
    picture = timeline(ring_trace())
    bars = sorted(boxes(picture, "waiting") + boxes(picture, "moving"))
    first = [(left, right) for left, low, right, _ in bars if low < 0.56]
    calls = [(14 * step, 14 * step + 9) for step in range(1, 7)]
    assert sum(right - left for left, right in first) == pytest.approx(6 * 9)
    assert first[0][0] == pytest.approx(calls[0][0])
    assert first[-1][1] == pytest.approx(calls[-1][1])
    for (_, end), (start, _) in itertools.pairwise(first):
        assert end <= start + 1e-9


def test_pixels_of_every_rank_and_of_waiting_are_there():
    image = pixels(timeline(ring_trace()))
    for color in (*RANK_COLORS[:4], WAITING):
        assert count_pixels(image, color) > 2000
    assert count_pixels(image, RANK_COLORS[5]) == 0
    assert count_pixels(image[:20], "#FFFFFF") == 20 * image.shape[1]


def test_timeline_says_its_numbers():
    trace = ring_trace()
    alt = timeline(trace).alt
    assert "4 ranks, 24 messages, 960 B sent in 6 rounds, 79 ms" in alt
    assert trace.rounds() == 6 and trace.bytes_sent(2) == 240
    assert "240 B by each rank" in alt
    longest = max(range(4), key=trace.waited_s)
    waited = f"{trace.waited_s(longest) / MS:.3g} ms"
    assert f"Rank {longest} waited longest for its peers, {waited}" in alt


def test_a_part_of_a_timeline_lies_between_two_marks_and_has_the_totals_of_all():
    trace, phase = ring_trace(), "reduce-scatter, step"
    picture = timeline(trace, between=(f"{phase} 2 of 3", f"{phase} 3 of 3"))
    assert not drawn(picture, "arrow")
    ends = [edge for a, _, b, _ in boxes(picture, "moving") for edge in (a, b)]
    assert (min(ends), max(ends)) == pytest.approx((3, 19))  # 31 to 47 ms, from 28
    totals = [f"waited {readable_seconds(trace.waited_s(r))}" for r in range(4)]
    least = totals[min(range(4), key=trace.waited_s)]
    written = [text for text in texts(picture) if text.get_text() in totals]
    assert sorted(text.get_text() for text in written) == sorted(totals)
    bold = [text for text in written if text.get_fontweight() == "bold"]
    assert [text.get_text() for text in bold] == [least]
    second, third = f"{phase} 2 of 3", f"{phase} 3 of 3"
    for wrong in (("nothing", second), (third, second)):
        with pytest.raises(InvalidArgument, match="mark"):
            timeline(trace, between=wrong)


def test_a_timeline_of_some_ranks_has_their_lanes_only():
    picture = timeline(ring_trace(), ranks=range(2))
    written = [text for text in words(picture) if text.startswith("rank ")]
    assert written == ["rank 0", "rank 1"]
    assert "Drawn: 2 ranks of 4." in picture.alt


def test_what_never_ended_reaches_the_edge_dashed_and_in_words():
    picture = timeline(DEADLOCK)
    bars = drawn(picture, "stuck")
    ends = {right for _, _, right, _ in boxes(picture, "stuck")}
    assert len(boxes(picture, "stuck")) == 3 and len(ends) == 1
    assert ends == {bars[0].axes.get_xlim()[1]}
    assert all(bar.get_linestyle()[0][1] is not None for bar in bars)
    assert words(picture).count("never ended") == 3
    assert "Never ended: rank 0 in recv from 1; rank 1 in recv from 2" in picture.alt
    assert "no messages were sent" in picture.alt


def test_a_trace_of_collective_calls_is_headed_by_their_number():
    calls = [Event(r, 0.0, 1.0, "collective", None, 8, 1, "all_reduce") for r in (0, 1)]
    assert "2 ranks, 2 collective calls, 1 s" in timeline(Trace(2, calls)).alt


def test_a_fault_is_a_cross_with_its_word():
    picture = timeline(KILLED)
    lines = picture.figure.findobj(sys.modules["matplotlib.lines"].Line2D)
    crosses = [line for line in lines if line.get_markerfacecolor() == WARNING]
    assert [float(line.get_xdata()[0]) for line in crosses] == pytest.approx([4])
    assert words(picture).count("kill") == 1
    assert "Faults: kill on rank 2 at 4 ms" in picture.alt


def test_a_message_moves_from_when_both_have_joined_until_one_has_left():
    events = [event(0, 0, 9, "send", 1, 40), event(1, 4, 7, "recv", 0, 40)]
    picture = timeline(Trace(2, events))
    moving = [(left, right) for left, _, right, _ in boxes(picture, "moving")]
    waiting = [(left, right) for left, _, right, _ in boxes(picture, "waiting")]
    assert moving == [pytest.approx((4, 7))] * 2
    assert waiting == [pytest.approx((0, 4)), pytest.approx((7, 9))]


def test_every_mark_is_a_tick_and_every_label_written_once():
    picture = timeline(ring_trace())
    (ticks,) = drawn(picture, "marks")
    assert len(ticks.get_segments()) == 24
    assert words(picture).count("reduce-scatter") == 1
    assert words(picture).count("all-gather") == 1
    assert words(picture).count("step 2 of 3") == 2


def test_a_mark_without_words_is_a_tick_on_its_lane_and_no_label():
    trace = Trace(2, [mark(0, 1, ""), mark(1, 2, ""), mark(0, 3, "here")])
    (ticks,) = drawn(timeline(trace), "marks")
    assert len(ticks.get_segments()) == 3
    labels, skipped = place_marks(trace, [0, 1], lambda time_s: time_s / MS, 9)
    assert [label.words for label in labels] == ["here"] and not skipped


def test_labels_without_room_are_skipped_and_counted():
    marks = [mark(0, at, f"label number {at}") for at in range(99)]
    picture = timeline(Trace(1, marks))
    shown = sum(text.startswith("label number") for text in words(picture))
    assert 3 < shown < 20
    assert f"{99 - shown} labels of marks left out" in picture.alt
    assert_legible(picture)


def test_ten_thousand_events_keep_their_bars_and_lose_their_arrows():
    trace = ring_trace(8, 424)
    assert len(trace) > 10_000
    picture = timeline(trace)
    assert not drawn(picture, "arrow")
    assert "Arrows are left out: 3,392 messages." in picture.alt
    assert len(boxes(picture, "moving")) == 3392


def test_labels_are_literal():
    picture = timeline(STRANGE["hostile"], HOSTILE)
    assert words(picture).count(HOSTILE) == 2
    assert "all_reduce_$x$<i>" in words(picture)
    assert not any(text.get_parse_math() for text in texts(picture))
    assert "<i>" not in picture._repr_mimebundle_()["text/html"]


# ---- scaling --------------------------------------------------------------------

RANKS = [2, 4, 8, 16]
MEASURED = {
    "naive": (RANKS, [3.1, 8.9, 21.5, 44]),
    "ring": (RANKS, np.array([2.2, 3.1, 3.6, 4.4])),
}
FORETOLD = {"ring": (RANKS, [2, 3, 3.5, 4]), "tree $t_1$": (RANKS, [3, 4, 5, 4.1])}
LABELS = {"x_label": "ranks", "y_label": "time, ms"}


@pytest.mark.parametrize("log", [False, True])
def test_scaling_draws_points_measured_and_lines_predicted(log):
    picture = scaling(MEASURED, predicted=FORETOLD, log_x=log, log_y=log, **LABELS)
    assert [line.get_ydata()[-1] for line in drawn(picture, "measured")] == [44, 4.4]
    assert [line.get_ydata()[-1] for line in drawn(picture, "predicted")] == [4, 4.1]
    assert {"naive", "ring", "tree $t_1$, predicted", "16"} <= {*words(picture)}
    assert "naive, measured: 3.1 at 2 to 44 at 16." in picture.alt
    assert "time, ms against ranks" in picture.alt
    assert "At 16, ring is 1.1 times what was predicted." in picture.alt
    assert_legible(picture)


def test_names_of_curves_that_end_together_are_moved_apart():
    series = {f"series {k}": ([1, 2], [1, 1 + k / 1000]) for k in range(12)}
    assert_legible(scaling(series, **LABELS))


def test_points_of_a_curve_lie_where_the_axis_says():
    picture = scaling(
        {"ring": ([1, 10, 100], [1, 10, 100])}, log_x=True, log_y=True, **LABELS
    )
    (line,) = drawn(picture, "measured")
    at = line.axes.transData.transform(line.get_xydata())
    tick = next(text for text in texts(picture) if text.get_text() == "10")
    place = tick.get_transform().transform(tick.get_position())
    assert at[1][0] - at[0][0] == pytest.approx(at[2][0] - at[1][0])
    assert min(abs(place - at[1])) < 1


@pytest.mark.parametrize(
    "series, message",
    [
        ({}, "nothing to draw"),
        ([1, 2], "dict"),
        ({"a": ([1, 2], [1])}, "'a'.*same length"),
        ({"a": ([], [])}, "'a'.*no points"),
        ({"a": ([1], [float("nan")])}, "'a'.*no number"),
        ({"a": ([1], [None])}, "'a'"),
        ({"a": ([0], [1])}, "'a'.*logarithmic"),
    ],
)
def test_series_that_cannot_be_drawn_are_refused_by_name(series, message):
    with pytest.raises(InvalidArgument, match=message):
        scaling(series, log_x=True, **LABELS)
