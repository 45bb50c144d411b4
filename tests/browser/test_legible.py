"""Players and figures in a page: legible at any width, in both themes, and safe."""

import pytest
from artists import CONTRASTS, TEXTS, overlapping
from pages import followed_ring
from stores import wait_until
from traces import CRASHED, CUT_OFF, KILLED, SPLIT, event, ring_trace

from distlab.show import (
    compare,
    models,
    pipeline,
    player,
    ratios,
    scaling,
    tasks,
    timeline,
)
from distlab.trace import Trace
from distlab.train.pipeline import (
    gpipe,
    interleaved,
    one_f_one_b,
    timed,
    zero_bubble_h1,
)

HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>"
HOSTILE += "\u2028'\"`${alert(3)}"


# ---- legible --------------------------------------------------------------------


@pytest.mark.parametrize("trace", ["ring", "killed"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_stands_out_from_what_is_behind_it(show, ring, scheme, trace):
    made = player(ring if trace == "ring" else CUT_OFF, "A title", bound_bytes=300)
    screen = show(made, color_scheme=scheme)
    assert screen.ask("root => getComputedStyle(root).colorScheme") == scheme
    screen.keys("Tab", "End")
    for view in "123":
        screen.keys(view)
        screen.picture(f"-{view}")
        found = screen.ask(CONTRASTS)
        assert len(found) > 20
        pale = [(n, words, r) for n, words, r in found if r < 4.5 and "num " not in n]
        assert not pale
        # the number on a node is drawn large and bold, and stands in the tables too
        assert all(r >= 3 for name, _, r in found if "num " in name)


def test_dark_and_light_differ_and_the_notebooks_own_theme_wins(show, ring):
    paper = "root => getComputedStyle(root).backgroundColor"
    screens = [show(player(ring), color_scheme=scheme) for scheme in ("light", "dark")]
    light, dark = (screen.ask(paper) for screen in screens)
    assert light != dark
    screens[1].ask("root => { document.body.dataset.jpThemeLight = 'true' }")
    screens[1].until("getComputedStyle(root).colorScheme === 'light'")
    assert screens[1].ask(paper) == light
    screens[0].ask("root => { document.body.dataset.vscodeThemeKind = 'vscode-dark' }")
    screens[0].until("getComputedStyle(root).colorScheme === 'dark'")
    assert screens[0].ask(paper) == dark


def test_with_reduced_motion_playing_goes_in_whole_steps(show, ring):
    screen = show(player(ring), reduced_motion="reduce")
    screen.ask(
        "root => { window.seen = []; new MutationObserver(() => "
        "seen.push(Number(root.dataset.position))).observe(root, "
        "{ attributes: true, attributeFilter: ['data-position'] }) }"
    )
    screen.keys("Tab", "ArrowUp", "ArrowUp", " ")
    screen.pass_s(1.2)
    assert screen.position == 3 and screen.playing
    screen.pass_s(1.2)
    assert screen.position == 6
    seen = screen.page.evaluate("seen")
    assert list(dict.fromkeys(seen)) == list(range(7))


# ---- narrow --------------------------------------------------------------------

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


def pair():
    trace = followed_ring().trace
    return compare(followed_ring(), Trace(4, trace.events[:-4], shares=trace.shares))


# how high the player is in each view after each key; captions that are cut or scroll
MOVES = """(root, keys) => {
    const press = key => root.dispatchEvent(new KeyboardEvent('keydown', { key }));
    const heights = new Set(), cut = [];
    for (const key of keys) {
        press(key);
        for (const view of '123') {
            press(view);
            heights.add(Math.round(root.getBoundingClientRect().height));
        }
        const end = box => box.getBoundingClientRect().bottom;
        cut.push(...[...root.querySelectorAll('.said, .said *')]
            .filter(box => box.scrollHeight > box.clientHeight + 1 && box.clientHeight
                || end(box) > end(box.closest('.said')) + 1)
            .map(box => box.textContent));
    }
    return [heights.size, cut];
}"""
# labels of the slider: cut by its edge, or on each other
LABELS = """root => [...root.querySelectorAll('.scrub i')]
    .map(label => [label.textContent, label.getBoundingClientRect()])
    .map(([words, box]) => [words, box.left, box.top, box.right, box.bottom])"""


# resolved after the observers that the page has: each frame serves them in order
OBSERVED = """() => new Promise(resolve => new ResizeObserver((_, observer) => {
    observer.disconnect(); resolve(); }).observe(document.body))"""


PLAYERS = {
    "shares": lambda: player(followed_ring(), "A ring", bound_bytes=240),
    "ring of 8": lambda: player(followed_ring(8), "A ring"),
    "ring of 16": lambda: player(ring_trace(16, 30), "A ring"),
    "ring of 64": lambda: player(ring_trace(64, 10), "A ring"),
    "job": lambda: player(KILLED, "A job"),
    "pair": pair,
    "split": lambda: player(SPLIT, "A split"),
    "pipeline": lambda: player(timed(interleaved(4, 8)).cells(), "Interleaved"),
    "pipelines": lambda: compare(
        *(timed(make(16, 20)).cells() for make in (gpipe, zero_bubble_h1)), "Two"
    ),
    "crash": lambda: player(CRASHED, "A crash"),
}


# one of each kind; the others are nightly
FEW = ("shares", "ring of 64", "job", "pair", "split", "pipeline")
EACH = [
    pytest.param(name, marks=() if name in FEW else pytest.mark.nightly)
    for name in PLAYERS
]


def widen(screen, width):
    """Make the page of this width, and wait until all is laid out anew."""
    screen.page.set_viewport_size({"width": width, "height": 900})
    wait_until(lambda: not screen.ask(WIDER, width))
    screen.page.evaluate(OBSERVED)


@pytest.mark.parametrize("name", EACH)
def test_no_word_is_below_eleven_pixels_at_any_width(show, name):
    screen = show(PLAYERS[name](), width=1120)
    screen.keys("Tab", "ArrowRight", "ArrowRight", "ArrowRight")
    wide = "() => document.documentElement.scrollWidth"
    every = f"r => [{SIZES}, {TEXTS}, {CUT}, {wide}].map(each => each(r))"
    for width in (360, 480, 700, 1280):
        widen(screen, width)
        for view in "123":
            screen.keys(view)
            screen.picture(f"-{width}-{view}")
            sizes, texts, cut, wide_px = screen.ask(every)
            small = [each for each in sizes if each[1] < LEAST_PX - 0.01]
            assert len(texts) > 5
            assert not [*small, *overlapping(texts), *cut], (width, view)
            assert wide_px <= width


@pytest.mark.parametrize("name", EACH)
def test_nothing_moves_when_the_view_or_the_step_changes(show, name):
    made = PLAYERS[name]()
    screen = show(made, width=360)
    keys = ["Home", *["ArrowRight"] * min(6, len(made.animation.frames)), "End"]
    for width in (360, 700, 1280):
        widen(screen, width)
        assert screen.ask(MOVES, keys) == [1, []], width


def test_the_slider_names_every_phase_in_full_and_its_steps(show):
    screen = show(PLAYERS["shares"](), width=360)
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
        widen(screen, width)
        wait_until(whole)  # labels follow a moment later


def test_what_was_dropped_is_drawn_in_the_lanes_and_told_below_them(show):
    screen = show(PLAYERS["split"]())
    screen.keys("Tab", "2", "End")
    crosses = "r => r.querySelectorAll('.lanes .small').length"
    dropped = player(SPLIT).animation.reading.trace.lost()
    assert dropped == 2 and screen.ask(crosses) == dropped + 1  # one in the legend
    described = screen.ask("r => r.querySelector('.lanes').textContent")
    assert "message, from its send to its receive" in described
    assert "message dropped by the network" in described
    whole = show(PLAYERS["ring of 8"]())
    whole.keys("Tab", "2", "End")
    assert whole.ask(crosses) == 0
    assert "dropped" not in whole.ask("r => r.querySelector('.lanes').textContent")


def test_the_panel_goes_below_the_graph_where_the_page_is_narrow(show):
    screen = show(PLAYERS["shares"](), width=1120)
    tops = "root => [...root.querySelectorAll('.run svg:not(.off)')]"
    tops += ".map(svg => svg.getBoundingClientRect().top)"
    stage, panel = screen.ask(tops)
    assert abs(stage - panel) < 60
    widen(screen, 480)
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
    screen.pass_s(2)
    assert screen.playing and screen.position > 1.5


# ---- figures ------------------------------------------------------------------

# A phone's cell, JupyterLab's on a narrow and a usual screen, and a wide one.
WIDTHS = (298, 660, 828, 1280)
WORDS = """() => [...document.querySelectorAll('.distlab-picture text')]
    .filter(text => text.getBoundingClientRect().width).map(text => {
        const box = text.getBoundingClientRect();
        const page = text.closest('.distlab-picture').getBoundingClientRect();
        return [text.textContent, box.left >= page.left && box.right <= page.right,
            text.getScreenCTM().a * parseFloat(getComputedStyle(text).fontSize)]})"""
COLOR = """([selector, name]) => getComputedStyle(document.querySelector(
    '.distlab-picture' + selector))[name]"""
FIGURES = {
    "ranks": lambda: timeline(ring_trace(4, 6)),
    "nodes": lambda: timeline(SPLIT),
    "tasks": lambda: tasks(KILLED),
    "ratios": lambda: ratios({"a": (100, 150), "b": (100, 90)}, unit="B"),
    "models": models,
    "pipelines": lambda: pipeline(
        *(timed(make(4, 16)).cells() for make in (gpipe, one_f_one_b)), memory=True
    ),
    "scaling": lambda: scaling(
        {f"an algorithm of {n} phases": ([2, 4, 8], [1, n, 2]) for n in range(5)},
        x_label="number of ranks",
        y_label="time, ms",
        title="Time of each algorithm on two, four and eight ranks",
    ),
}


@pytest.fixture
def opened(show):
    """Return a function that opens a figure; no player is on its page."""

    def figure(name, **options):
        html = FIGURES[name]()._repr_mimebundle_()["text/html"]
        return show(html=html, **options).page

    return figure


@pytest.mark.parametrize("name", FIGURES)
def test_no_word_of_a_figure_is_cut_or_below_eleven_pixels_at_any_width(opened, name):
    page = opened(name)
    for width in WIDTHS:
        page.set_viewport_size({"width": width + 16, "height": 800})
        words = page.evaluate(WORDS)
        assert len(words) > 5
        assert not [each for each in words if not each[1] or each[2] < 10.99], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width + 16
        box = page.locator(".distlab-picture")
        assert box.evaluate("box => box.scrollWidth <= box.clientWidth")


def test_a_figure_follows_the_notebooks_theme_and_else_the_systems(opened):
    dark, light = (opened("ranks", color_scheme=s) for s in ("dark", "light"))
    papers = [page.evaluate(COLOR, ["", "backgroundColor"]) for page in (dark, light)]
    inks = [page.evaluate(COLOR, [" text", "fill"]) for page in (dark, light)]
    assert papers == ["rgb(20, 24, 29)", "rgb(255, 255, 255)"]
    assert inks[0] != inks[1]
    dark.evaluate("document.body.dataset.jpThemeLight = 'true'")
    light.evaluate("document.body.dataset.jpThemeLight = 'false'")
    turned = [page.evaluate(COLOR, ["", "backgroundColor"]) for page in (dark, light)]
    assert turned == papers[::-1]


def test_words_on_a_bar_keep_the_colour_that_reads_on_it(opened):
    """In a dark theme ink turns light, but not on a light bar."""
    page = opened("tasks", color_scheme="dark")
    fills = page.evaluate(
        "() => [...document.querySelectorAll('.distlab-picture text')]"
        ".map(text => [text.textContent, getComputedStyle(text).fill])"
    )
    fills = dict(fills)
    assert fills["worker 0"] == "rgb(232, 236, 240)"
    assert fills["map 0"] == "rgb(31, 41, 51)"


def test_a_still_image_stands_in_where_only_images_are_kept(opened):
    page = opened("ranks")
    image = page.locator(".distlab-picture img")
    assert image.get_attribute("alt") and not image.is_visible()
    page.evaluate("document.querySelectorAll('style, svg').forEach(e => e.remove())")
    assert image.is_visible()


# ---- safe -----------------------------------------------------------------------


def test_words_that_look_like_code_are_shown_and_never_run(show):
    events = [event(0, 0, 0, "mark", label=HOSTILE)]
    events += [event(r, 1, 2, "collective", label=HOSTILE) for r in range(2)]
    events += [event(1, 3, 3, "fault", label=HOSTILE)]
    events += [event(0, 4, None, "collective", label=HOSTILE)]
    made = player(Trace(2, events), HOSTILE, bound_bytes=3, bound_label=HOSTILE)
    screen = show(made)
    screen.page.evaluate("() => { window.ran = 0; window.alert = () => window.ran++ }")
    screen.keys("Tab", "ArrowRight", "ArrowRight", "2", "3", "1")
    assert screen.text(".head b") == made.animation.title
    assert screen.text(".said span") == made.animation.frames[-1].text
    assert screen.page.evaluate("window.ran") == 0
    assert screen.ask("root => root.querySelectorAll('img, script').length") == 0


# ---- without scripts ------------------------------------------------------------


def test_without_scripts_the_last_frame_and_its_words_are_there(show, ring):
    made = player(ring, "A ring")
    screen = show(made, scripts=False)
    page, last = screen.page, made.animation.frames[-1]
    assert page.locator(".said b").inner_text() == last.title
    assert page.locator(".said span").inner_text() == last.text
    assert page.locator(".run svg").first.is_visible()
    assert page.locator(".run svg .pill").count() == 4
    assert not page.locator(".bar").is_visible()
    assert not page.locator(".views").is_visible()
    assert "Every rank sends 240 B" in page.locator(".stage").get_attribute(
        "aria-label"
    )


@pytest.mark.parametrize("scripts", [True, False])
def test_in_a_notebook_a_strip_stands_in_where_scripts_do_not_run(show, ring, scripts):
    html = player(ring)._repr_mimebundle_()["text/html"]
    screen = show(html=html, scripts=scripts)
    page = screen.page
    assert page.locator("img").count() == (0 if scripts else 1)
    assert page.locator(".run svg").first.is_visible() == scripts
    if not scripts:
        assert page.locator("img").bounding_box()["width"] > 500


# ---- large ----------------------------------------------------------------------


@pytest.mark.parametrize("n, rounds", [(8, 417), (200, 17)])
def test_ten_thousand_events_play_in_every_view(show, n, rounds):
    """How many frames a second it draws is measured by tests/bench/player.py."""
    trace = ring_trace(n, rounds)
    assert len(trace) >= 10_000
    screen = show(player(trace))
    screen.keys("Tab")
    for key, view in (("1", "graph"), ("2", "lanes"), ("3", "space")):
        screen.keys("Home", key, " ")
        screen.pass_s(0.3)
        assert screen.playing and screen.position > 0.1
        screen.keys(" ")
        screen.picture(f"-{view}")
