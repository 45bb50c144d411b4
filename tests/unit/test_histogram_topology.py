"""Histograms count what they are given, and topologies mix as powers of W say."""

import itertools
import math
import random
import re
import subprocess
import sys
import warnings

import matplotlib.colors
import numpy as np
import pytest
from artists import assert_legible, drawn, pixels, texts, words

from distlab.errors import InvalidArgument
from distlab.show import histogram, topology
from distlab.show.canvas.theme import INK, MUTED, rank_color

HOSTILE = "cost $x_1$ &\n<b>\\frac{1}{2}</b> 日本 " + "w" * 300


# ---- what was drawn, and what is given ------------------------------------------


def bars_of(picture, name):
    """Return (middle, width, height) of the bars of a series, in units of its axis."""
    ticks = [(t.get_position(), t.get_text().replace(",", "")) for t in texts(picture)]
    ticks = [(x, float(text)) for (x, _), text in ticks if re.match(r"-?[\d.]+$", text)]
    (x, low), (x_end, high) = min(ticks), max(ticks)
    unit = (x_end - x) / (high - low)
    (artist,) = drawn(picture, name)
    found = []
    for path in artist.get_paths():
        foot = path.vertices[0][1]
        for (left, y), (right, other) in itertools.pairwise(path.vertices):
            if y == other < foot and right - left > 1e-9:
                middle = low + ((left + right) / 2 - x) / unit
                found.append((middle, (right - left) / unit, foot - y))
    return found


def mixing(n, hears):
    """Return the matrix in which each rank weighs itself and whom it hears alike."""
    matrix = np.eye(n)
    for i in range(n):
        matrix[i, [*hears(i)]] = 1
    return matrix / matrix.sum(axis=1, keepdims=True)


def ring(n):
    return mixing(n, lambda i: [(i + 1) % n, i - 1])


def exponential(n):
    return mixing(n, lambda i: [i - 2**k for k in range(math.ceil(math.log2(n)))])


def cycles(n, degree, seed):
    draw, matrix = random.Random(seed), np.eye(n)
    for _ in range(degree):
        order = draw.sample(range(n), n)
        matrix[order, [*order[1:], order[0]]] += 1
    return matrix / (degree + 1)


NORMAL = [random.Random(seed).gauss(0, 0.01) for seed in range(500)]
PICTURES = {
    "values": lambda: histogram({"gradient": NORMAL}, x_label="element", log_y=True),
    "8 series": lambda: histogram({k: [k, 2 * k] for k in range(8)}, x_label="age"),
    "zeros": lambda: histogram({"a": [0, 0.0, -0.0]}, x_label="", title="a"),
    "alike": lambda: histogram({"a": [0.3] * 9, "b": [0.3]}, x_label="x"),
    "far apart": lambda: histogram({"a": [-9e59, 1, 9e59]}, x_label="x"),
    "far away": lambda: histogram({"a": [1e17, 1e17 + 64]}, x_label="x"),
    "tiny": lambda: histogram({"a": [5e-324, 0], "b": [1e-300]}, x_label="x"),
    "hostile": lambda: histogram({HOSTILE: [1], "": [0.5]}, x_label=HOSTILE),
    "ring": lambda: topology({"ring": ring(16)}),
    "6 graphs": lambda: topology({n: exponential(n) for n in (2, 3, 8, 9, 16, 32)}),
    "arrows": lambda: topology({"a": cycles(16, 2, 0), "b": cycles(64, 2, 0)}),
    "256 ranks": lambda: topology({"ring": ring(256)}, title="my"),
    "no heads": lambda: topology({"exponential": exponential(64)}),
    "apart": lambda: topology({HOSTILE: np.eye(4), "": np.eye(2)}, title=HOSTILE),
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_legible_silent_and_on_white(name, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = PICTURES[name]()
        image = pixels(picture)
    assert capfd.readouterr() == ("", "")
    assert_legible(picture)
    edges = (image[0], image[-1], image[:, 0], image[:, -1])
    assert all((edge == 255).all() for edge in edges)
    assert not any(text.get_parse_math() for text in texts(picture))
    assert "\n" not in picture.alt
    assert {text.get_color() for text in texts(picture)} <= {INK, MUTED}


def test_titles_are_drawn_and_said():
    for picture in (
        histogram({"a": [1]}, x_label="age", title="My $title$"),
        topology({"a": ring(3)}, title="My $title$"),
    ):
        assert "My $title$" in words(picture)
        assert picture.alt.startswith("My $title$: ")


def test_the_settings_of_the_learner_change_nothing():
    loud = {"font.size": 20, "axes.facecolor": "black", "text.color": "red"}
    loud |= {"lines.linewidth": 9, "patch.linewidth": 9, "lines.linestyle": "--"}
    for name in ("values", "arrows"):
        plain = pixels(PICTURES[name]())
        with matplotlib.rc_context(loud):
            assert (pixels(PICTURES[name]()) == plain).all()


def test_matplotlib_and_numpy_load_only_when_drawn():
    code = "from distlab.show import histogram, topology\n"
    code += "import sys; print({'matplotlib', 'numpy', 'torch'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


# ---- histogram ------------------------------------------------------------------


@pytest.mark.parametrize(("first", "last"), [(0, 12), (-3, 3), (0, 300), (150, 749)])
def test_each_integer_has_one_bar_centred_on_its_tick(first, last):
    ages = {age: 1 + (age * 7) % 5 for age in range(first, last + 1) if age % 11 != 5}
    given = [age for age, times in ages.items() for _ in range(times)]
    picture = histogram({"ages": np.array(given)}, x_label="age")
    found = bars_of(picture, "ages")
    assert [middle for middle, _, _ in found] == pytest.approx([*ages], abs=1e-6)
    tallest = max(height for _, _, height in found)
    heights = [height / tallest for _, _, height in found]
    assert heights == pytest.approx([times / 5 for times in ages.values()])
    assert all(width < 1.001 for _, width, _ in found)
    assert "each bar: one integer" in words(picture)


def test_few_integers_stand_apart_and_many_touch_without_stripes():
    few = bars_of(histogram({"a": range(13)}, x_label="age"), "a")
    assert all(width == pytest.approx(0.8) for _, width, _ in few)
    picture = histogram({"a": range(301)}, x_label="age")
    assert len(drawn(picture, "a")[0].get_paths()) == 1
    blue = [int(rank_color(0)[at : at + 2], 16) for at in (1, 3, 5)]
    block = (pixels(picture) == blue).all(axis=2)
    rows = block[block.any(axis=1)]
    inside = rows[len(rows) // 2]
    first, last = np.flatnonzero(inside)[[0, -1]]
    assert last - first > 500
    assert inside[first : last + 1].all()


def test_beyond_600_integers_each_bar_has_equally_many():
    picture = histogram({"a": range(3001)}, x_label="age")
    (key,) = [text for text in words(picture) if text.startswith("each bar")]
    each = int(key.split()[2])
    inner = bars_of(picture, "a")[1:-1]
    assert each % 2 == 1
    assert 100 < len(inner) < 600
    assert all(width == pytest.approx(each) for _, width, _ in inner)
    assert max(height for *_, height in inner) == min(height for *_, height in inner)


def test_values_are_counted_in_bins_of_which_one_is_centred_on_zero():
    kept = [0] * 7 + [0.45, -3.7, 3.9, 3.9]
    for log_y, high in ((False, 2 / 7), (True, math.log(3) / math.log(8))):
        picture = histogram({"top-k": kept}, x_label="element", log_y=log_y)
        found = bars_of(picture, "top-k")
        width = found[0][1]
        assert width == pytest.approx((3.9 + 3.7) / 61)
        for (middle, *_), value in zip(found, (-3.7, 0, 0.45, 3.9), strict=True):
            assert abs(middle - value) <= width / 2
        assert found[1][0] == pytest.approx(0, abs=1e-9)
        assert found[3][2] / found[1][2] == pytest.approx(high)
        (key,) = [text for text in words(picture) if text.startswith("height")]
        assert ("logarithm" in key) is log_y


def test_equal_values_have_one_bar_that_is_seen():
    for value in (0, 7, -2.5):
        picture = histogram({"a": [value] * 9}, x_label="element")
        ((middle, _, _),) = bars_of(picture, "a")
        assert middle == pytest.approx(value)
        assert np.ptp(drawn(picture, "a")[0].get_paths()[0].vertices[:, 0]) > 0.3


def test_a_histogram_says_its_numbers():
    ages = {"worker 1": [0, 1, 1, 2], "worker 2": [3]}
    said = histogram(ages, x_label="age, updates").alt
    assert said == (
        "Histogram of age, updates. worker 1: 4 values, mean 1, at most 2, "
        "from 0 to 2, most often 1 (2 times). "
        "worker 2: 1 value, mean 3, at most 3, from 3 to 3, most often 3 (1 time)."
    )
    picture = histogram({"top-k": [0, 0, 0, 0.5, -0.25]}, x_label="element")
    assert "5 values, 3 different, 3 zeros" in words(picture)
    assert "from -0.25 to 0.5, most often about 0 (3 times)" in picture.alt


def test_series_whose_names_print_alike_are_both_drawn():
    picture = histogram({"a": [1], "a ": [2], 1: [3]}, x_label="age")
    assert [text for text in words(picture) if text == "a"] == ["a", "a"]
    assert len(drawn(picture, "a")) == 2


@pytest.mark.parametrize(
    "series",
    [
        {},
        [1, 2],
        None,
        {"a": []},
        {"a": 3},
        {"a": "12"},
        {"a": ["1"]},
        {"a": [1, None]},
        {"a": [1j]},
        {"a": [math.nan]},
        {"a": [1, math.inf]},
        {"a": [10**400]},
        {"a": [1e60]},
        {"a": np.zeros((2, 2))},
        {"a": np.array(1.0)},
        {k: [k] for k in range(9)},
    ],
)
def test_series_that_cannot_be_drawn_are_refused(series):
    with pytest.raises(InvalidArgument, match="a dict from a name to finite numbers"):
        histogram(series, x_label="age")


# ---- topology -------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 5, 16, 64])
def test_a_ring_mixes_as_its_eigenvalues_say(n):
    second = max(abs(1 + 2 * math.cos(math.tau * k / n)) / 3 for k in range(1, n))
    times = math.ceil(math.log(0.01) / math.log(second))
    picture = topology({"ring": ring(n)})
    assert f"spectral gap {float(f'{1 - second:.2g}')};" in picture.alt
    assert f"each hears 2; spectral gap {float(f'{1 - second:.2g}')}" in words(picture)
    assert f"distance at most 1 % after {times:,} averages" in words(picture)
    assert picture.alt.startswith(f"ring: {n} ranks; each hears 2; ")


@pytest.mark.parametrize("seed", range(6))
def test_averages_are_the_first_power_that_leaves_one_percent(seed):
    matrix = cycles(11, 2 + seed % 2, seed)
    assert not np.allclose(matrix @ matrix.T, matrix.T @ matrix), "want the hard case"
    rest, left, times = matrix - 1 / 11, np.eye(11), 0
    while times == 0 or np.linalg.svd(left, compute_uv=False)[0] > 0.01:
        left, times = left @ rest, times + 1
    assert f"after {times} averages" in topology({"random": matrix}).alt


def test_what_mixes_at_once_or_never_is_said():
    assert "gap 1; distance at most 1 % after 1 average." in (
        topology({"complete": np.full((5, 5), 0.2)}).alt
    )
    swap, apart = np.eye(2)[::-1], np.kron(np.eye(2), np.full((3, 3), 1 / 3))
    for matrix in (swap, apart, np.eye(3)):
        said = topology({"a": matrix}).alt
        assert "gap 0; distance over 1 % after a million averages." in said


def test_ranks_that_hear_each_other_get_lines_and_others_arrows_in_colour():
    matrix = mixing(4, lambda i: [i - 1])  # each hears the one before
    matrix = (matrix + np.eye(4)[[2, 1, 0, 3]]) / 2  # 0 and 2 each other
    picture = topology({"a": matrix})
    places = [(*dot.get_xdata(), *dot.get_ydata()) for dot in drawn(picture, "rank")]
    (line,) = drawn(picture, "line")[0].get_segments()
    assert line == pytest.approx(np.array([places[2], places[0]]))
    arrows = drawn(picture, "arrow")
    assert len(arrows) == 4
    for artist in arrows:
        begin, end = artist._posA_posB
        heard = min(range(4), key=lambda k: math.dist(places[k], begin))
        hears = min(range(4), key=lambda k: math.dist(places[k], end))
        assert hears == (heard + 1) % 4
        assert 0 < math.dist(places[hears], end) < 0.1
        assert matplotlib.colors.same_color(artist.get_edgecolor(), rank_color(heard))
    assert "each hears 1 to 2" in picture.alt


def test_many_arrows_lose_their_heads_and_keep_their_colour():
    picture = topology({"exponential": exponential(64)})
    (artist,) = drawn(picture, "arrow")
    assert len(artist.get_segments()) == 64 * 5  # the sixth, half way, is mutual
    assert len(drawn(picture, "line")[0].get_segments()) == 32
    assert any("without heads" in text for text in words(picture))
    assert not any("arrow" in text for text in words(topology({"ring": ring(64)})))


def test_graphs_stand_in_rows_of_three():
    picture = topology({f"graph {k}": ring(3 + k) for k in range(5)})
    names = {t.get_text(): t.get_position() for t in texts(picture)}
    spots = [names[f"graph {k}"] for k in range(5)]
    assert spots[0][1] == spots[1][1] == spots[2][1] < spots[3][1] == spots[4][1]
    assert spots[0][0] == spots[3][0] < spots[1][0] == spots[4][0] < spots[2][0]


@pytest.mark.parametrize(
    "matrix",
    [
        None,
        "ring",
        3,
        [[1.0]],
        [[1, 0, 0], [0, 1, 0]],
        [[0.5, 0.4], [0.5, 0.6]],
        [[1, 0], [1, 0]],
        [[1.5, -0.5], [-0.5, 1.5]],
        [[math.nan, 1], [1, 0]],
        np.zeros((2, 2, 2)),
        np.eye(257),
    ],
)
def test_what_is_no_mixing_matrix_is_refused_by_name(matrix):
    with pytest.raises(InvalidArgument, match=r"graphs\['bad'\] is a square matrix"):
        topology({"ring": ring(3), "bad": matrix})


@pytest.mark.parametrize("graphs", [{}, None, [ring(3)], dict.fromkeys(range(7))])
def test_graphs_come_by_name_and_at_most_six(graphs):
    with pytest.raises(InvalidArgument, match="a dict from a name to a matrix"):
        topology(graphs)
