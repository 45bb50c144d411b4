"""No word of a player is too small to read, at any width from a phone's up."""

import pytest
from artists import TEXTS, overlapping
from stores import wait_until
from traces import CRASHED, SPLIT, ring_trace

from distlab import follow
from distlab.collectives import ring_all_reduce
from distlab.show import compare, player
from distlab.trace import Event, Trace
from distlab.train.pipeline import (
    gpipe,
    interleaved,
    one_f_one_b,
    timed,
    zero_bubble_h1,
)

LEAST_PX = 11
SIZES = """root => [...root.querySelectorAll('text, i, b, span, button, .keys')]
    .filter(text => text.textContent.trim())
    .filter(text => text.checkVisibility({ visibilityProperty: true }))
    .map(text => {
        const scale = text.getScreenCTM ? text.getScreenCTM().a : 1;
        return [text.textContent, scale * parseFloat(getComputedStyle(text).fontSize)];
    })"""

# words that reach over the edge of their picture
CUT = """root => [...root.querySelectorAll('.run svg:not(.off) text')]
    .filter(text => text.textContent)
    .filter(text => text.checkVisibility({ visibilityProperty: true }))
    .filter(text => {
        const own = text.getBoundingClientRect();
        const all = text.ownerSVGElement.getBoundingClientRect();
        return own.left < all.left - 1 || own.right > all.right + 1;
    }).map(text => text.textContent)"""


# whether it has not been laid out anew yet for a page of this width
WIDER = """(root, width) => Math.abs(root.getBoundingClientRect().width
    - Math.min(width - 16, 1120)) > 20 || [...root.querySelectorAll('.lanes, .space')]
    .some(svg => svg.viewBox.baseVal.width > svg.parentElement.clientWidth + 1)"""


def job():
    work = [(0, 0, 2, "map 0, attempt 1"), (1, 0, 1, "map 1, attempt 1")]
    work += [(0, 2, 4, "map 2, attempt 1"), (1, 5, 6, "reduce 0, attempt 1")]
    events = [Event(w, a, b, "work", None, 0, 1, label) for w, a, b, label in work]
    return player(Trace(2, events, who="worker"), "A job")


def pair():
    ring = follow(ring_all_reduce, 4)
    return compare(ring, Trace(4, ring.trace.events[:-4], shares=ring.trace.shares))


# how high the player is, and whether its caption is cut or scrolls
HEIGHT = "root => Math.round(root.getBoundingClientRect().height)"
CLIPPED = """root => [...root.querySelectorAll('.said, .said *')]
    .filter(box => box.scrollHeight > box.clientHeight + 1 && box.clientHeight
        || box.getBoundingClientRect().bottom
            > box.closest('.said').getBoundingClientRect().bottom + 1)
    .map(box => box.textContent)"""
# labels of the slider: cut by its edge, or on each other
LABELS = """root => [...root.querySelectorAll('.scrub i')]
    .map(label => [label.textContent, label.getBoundingClientRect()])
    .map(([words, box]) => [words, box.left, box.top, box.right, box.bottom])"""


PLAYERS = {
    "shares": lambda: player(follow(ring_all_reduce, 4), "A ring", bound_bytes=240),
    "ring of 8": lambda: player(follow(ring_all_reduce, 8), "A ring"),
    "ring of 16": lambda: player(ring_trace(16, 30), "A ring"),
    "ring of 64": lambda: player(ring_trace(64, 10), "A ring"),
    "job": job,
    "pair": pair,
    "split": lambda: player(SPLIT, "A split"),
    "pipeline": lambda: player(timed(interleaved(4, 8)).cells(), "Interleaved"),
    "pipelines": lambda: compare(
        *(timed(make(16, 20)).cells() for make in (gpipe, zero_bubble_h1)), "Two"
    ),
    "crash": lambda: player(CRASHED, "A crash"),
}


def too_small(screen):
    return [each for each in screen.ask(SIZES) if each[1] < LEAST_PX - 0.01]


@pytest.mark.parametrize("name", PLAYERS)
def test_no_word_is_below_eleven_pixels_at_any_width(show, name):
    screen = show(PLAYERS[name](), viewport={"width": 1120, "height": 900})
    screen.keys("Tab", "ArrowRight", "ArrowRight", "ArrowRight")
    for width in (360, 480, 700, 1280):
        screen.page.set_viewport_size({"width": width, "height": 900})
        for view in "123":
            screen.keys(view)
            wait_until(lambda: not too_small(screen))
            screen.picture(f"-{width}-{view}")
            assert not too_small(screen), (width, view)
            assert not overlapping(screen.ask(TEXTS)), (width, view)
            assert not screen.ask(CUT), (width, view)
            assert screen.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", PLAYERS)
def test_nothing_moves_when_the_view_or_the_step_changes(show, name):
    made = PLAYERS[name]()
    screen = show(made, viewport={"width": 360, "height": 900})
    screen.keys("Tab")
    for width in (360, 700, 1280):
        screen.page.set_viewport_size({"width": width, "height": 900})
        wait_until(lambda width=width: not screen.ask(WIDER, width))
        seen = set()
        for key in ("Home", *["ArrowRight"] * min(6, len(made.film.frames)), "End"):
            screen.keys(key)
            for view in "123":
                screen.keys(view)
                seen.add(screen.ask(HEIGHT))
            assert not screen.ask(CLIPPED)
        assert len(seen) == 1, (width, seen)


def test_the_slider_names_every_phase_in_full_and_its_steps(show):
    screen = show(PLAYERS["shares"](), viewport={"width": 360, "height": 900})
    ends = "r => r.querySelector('.scrub').getBoundingClientRect()"
    every = sorted(["reduce-scatter", "all-gather", *"0123", *"123"])

    def whole():
        labels, box = screen.ask(LABELS), screen.ask(ends)
        inside = all(
            box["left"] - 1 <= left and right <= box["right"] + 1
            for _, left, _, right, _ in labels
        )
        names = sorted(words for words, *_ in labels)
        return inside and names == every and not overlapping(labels)

    for width in (360, 700, 1280):
        screen.page.set_viewport_size({"width": width, "height": 900})
        wait_until(lambda width=width: not screen.ask(WIDER, width))
        wait_until(whole)  # labels follow a moment later


def test_what_was_dropped_is_drawn_in_the_lanes_and_told_below_them(show):
    screen = show(PLAYERS["split"]())
    screen.keys("Tab", "2", "End")
    crosses = "r => r.querySelectorAll('.lanes .small').length"
    dropped = player(SPLIT).film.reading.trace.lost()
    assert dropped == 2 and screen.ask(crosses) == dropped + 1  # one in the legend
    told = screen.ask("r => r.querySelector('.lanes').textContent")
    assert "message, from its send to its receive" in told
    assert "message dropped by the network" in told
    whole = show(PLAYERS["ring of 8"]())
    whole.keys("Tab", "2", "End")
    assert whole.ask(crosses) == 0
    assert "dropped" not in whole.ask("r => r.querySelector('.lanes').textContent")


def test_the_panel_goes_below_the_graph_where_the_page_is_narrow(show):
    screen = show(PLAYERS["shares"](), viewport={"width": 1120, "height": 900})
    tops = "root => [...root.querySelectorAll('.run svg:not(.off)')]"
    tops += ".map(svg => svg.getBoundingClientRect().top)"
    stage, panel = screen.ask(tops)
    assert abs(stage - panel) < 60
    screen.page.set_viewport_size({"width": 480, "height": 900})
    stage, panel = screen.ask(tops)
    assert panel > stage + 200


def test_a_pipeline_lights_what_stages_do_now_and_counts_what_they_hold(show):
    screen = show(player(timed(one_f_one_b(4, 8)).cells(), "1F1B"))
    seen = "root => [...root.querySelectorAll('{}')].map(text => text.textContent)"
    screen.keys("Tab", "ArrowRight", "ArrowRight", "ArrowRight")
    assert screen.ask(seen.format(".lit text")) == ["F3", "F2", "F1", "F0"]
    assert screen.ask(seen.format("svg > text")) == [f"holds {n}" for n in (4, 3, 2, 1)]
    screen.keys("End")
    assert screen.ask(seen.format(".lit text")) == []
    assert screen.ask(seen.format("svg > text")) == ["holds 0"] * 4
    screen.keys("Home", "ArrowUp", "ArrowUp", " ")
    screen.until("p > 1.5")
    assert screen.playing
