"""Colours are told apart by every eye: what each eye sees is simulated and measured.

A colour is seen through a matrix in linear light, and two colours are as different as
they are far apart in CIE L*a*b*. The smallest distance that one notices is 2.3.
"""

import itertools

import numpy as np
import pytest

from distlab.show.canvas.styles import looks_of
from distlab.show.canvas.theme import (
    INK,
    KIND_COLORS,
    MUTED,
    PAPER,
    RANK_COLORS,
    RANK_MARKERS,
    TRACK,
    WAITING,
    WARNING,
    rank_color,
    rank_marker,
)

APART = 15.0  # six times what one notices
READABLE = 4.5  # WCAG 2.2, contrast of text, level AA

# Source: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of
# Color Vision Deficiency" (2009), severity 1.0, for linear RGB.
EYES = {
    "common": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Source: IEC 61966-2-1 (sRGB), linear RGB to XYZ under D65.
TO_XYZ = [
    [0.4124564, 0.3575761, 0.1804375],
    [0.2126729, 0.7151522, 0.0721750],
    [0.0193339, 0.1191920, 0.9503041],
]


def linear(color):
    """Return the light of "#RRGGBB", red, green and blue from 0 to 1."""
    rgb = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def seen(color, eye):
    """Return the L*, a*, b* of a colour as an eye sees it."""
    light = np.clip(np.array(EYES[eye]) @ linear(color), 0, 1)
    white = np.array(TO_XYZ) @ np.ones(3)
    xyz = np.array(TO_XYZ) @ light / white
    x, y, z = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, other, eye):
    return float(np.linalg.norm(seen(one, eye) - seen(other, eye)))


def too_close(pairs):
    """Return the pairs that some eye takes for one another, the worst first."""
    found = [
        (round(distance(one, other, eye), 1), eye, one, other)
        for eye in EYES
        for one, other in pairs
    ]
    return sorted(each for each in found if each[0] < APART)


def contrast(one, other):
    """Return the contrast of two colours as WCAG counts it, from 1 to 21."""
    light = sorted(float(np.array(TO_XYZ)[1] @ linear(c)) for c in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize(
    "color, lab", [("#FFFFFF", (100, 0, 0)), ("#000000", (0,) * 3)]
)
def test_white_and_black_stay_what_they_are_for_every_eye(color, lab):
    for eye in EYES:
        assert seen(color, eye) == pytest.approx(lab, abs=0.1)


def test_colours_are_measured_as_others_measure_them():
    assert seen("#FF0000", "common") == pytest.approx((53.24, 80.09, 67.2), abs=0.05)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)


def test_the_measure_would_notice_a_red_and_a_green_that_some_eyes_mix_up():
    pair = [("#D62728", "#2CA02C")]
    assert [each[1] for each in too_close(pair)] == ["deuteranopia"]
    assert distance(*pair[0], "common") > 100


def test_any_two_rank_colours_differ_for_every_eye():
    assert not too_close(itertools.combinations(RANK_COLORS, 2))


def test_ranks_of_one_colour_differ_in_their_marker():
    count = len(RANK_COLORS) * len(RANK_MARKERS)
    looks = {(rank_color(rank), rank_marker(rank)) for rank in range(count)}
    assert len(looks) == count == 42


def test_any_two_kind_colours_differ_for_every_eye():
    assert not too_close(itertools.combinations(KIND_COLORS, 2))


def test_no_kind_is_taken_for_a_rank_or_for_waiting():
    others = (*RANK_COLORS, WAITING, PAPER)
    assert not too_close(itertools.product(KIND_COLORS, others))


def test_waiting_is_taken_for_no_rank():
    assert not too_close(itertools.product(RANK_COLORS, [WAITING]))


MEMORY = ["parameters", "gradients", "optimizer state", "activations"]
WORK = ["forward", "backward", "weights"]


@pytest.mark.parametrize(
    "kinds", [MEMORY, WORK, [*MEMORY, "buckets"], [*WORK, "a", "b"]]
)
def test_the_kinds_of_one_picture_have_colours_of_their_own(kinds):
    assert len({look.color for look in looks_of(kinds).values()}) == len(kinds)


def test_kinds_of_one_colour_differ_in_their_hatching():
    kinds = [*MEMORY, *WORK, *(f"kind {number}" for number in range(26))]
    assert len(set(looks_of(kinds).values())) == len(kinds)


def test_a_usual_kind_looks_the_same_whatever_is_beside_it():
    for kind in (*MEMORY, *WORK):
        assert looks_of(["other", kind])[kind] == looks_of([kind.title()])[kind.title()]


@pytest.mark.parametrize("color", [INK, MUTED, WARNING])
def test_text_is_readable_on_paper(color):
    assert contrast(color, PAPER) >= READABLE


def test_text_is_readable_in_the_boxes_of_every_kind():
    looks = looks_of([*MEMORY, *WORK, *"abcdefgh"]).values()
    assert {look.color for look in looks} == {*KIND_COLORS}
    assert all(contrast(look.letters, look.color) >= READABLE for look in looks)


def test_ink_is_readable_on_bars_that_are_empty():
    assert contrast(INK, TRACK) >= READABLE
