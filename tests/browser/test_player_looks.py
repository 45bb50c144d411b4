"""The player's page is legible and safe, with and without scripts."""

import pytest
from artists import CONTRASTS
from traces import event, ring_trace

from distlab import follow
from distlab.collectives import ring_all_reduce
from distlab.show import player
from distlab.trace import Trace

KILLED = Trace(
    3,
    [
        event(0, 0, 2, "send", 1, 40),
        event(1, 1, 2, "recv", 0, 40),
        event(0, 3, None, "send", 1, 40, step=2),
        event(1, 5, None, "recv", 0, 40, step=2),
        event(2, 4, 4, "fault", label="kill"),
    ],
    cut_s=8,
)
HOSTILE = "</script><img src=x onerror=alert(1)><script>alert(2)</script>"
HOSTILE += "\u2028'\"`${alert(3)}"


@pytest.fixture(scope="module")
def ring():
    return follow(ring_all_reduce, 4)


# ---- legible --------------------------------------------------------------------


@pytest.mark.parametrize("trace", ["ring", "killed"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_stands_out_from_what_is_behind_it(show, ring, scheme, trace):
    made = player(ring if trace == "ring" else KILLED, "A title", bound_bytes=300)
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


@pytest.mark.parametrize("width", [420, 800, 1400])
def test_nothing_sticks_out_of_a_page_of_any_width(show, ring, width):
    screen = show(player(ring), viewport={"width": width, "height": 800})
    for view in "123":
        screen.keys("Tab", view)
        wide = screen.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
        screen.picture(f"-{view}")


def test_with_reduced_motion_playing_goes_in_whole_steps(show, ring):
    screen = show(player(ring), reduced_motion="reduce")
    screen.ask(
        "root => { window.seen = []; new MutationObserver(() => "
        "seen.push(Number(root.dataset.position))).observe(root, "
        "{ attributes: true, attributeFilter: ['data-position'] }) }"
    )
    screen.keys("Tab", "ArrowUp", "ArrowUp", " ")
    screen.until("p >= 3")
    assert screen.playing
    screen.until("p === 6")
    seen = screen.page.evaluate("seen")
    assert list(dict.fromkeys(seen)) == list(range(7))


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
    assert screen.text(".head b") == made.film.title
    assert screen.text(".said span") == made.film.frames[-1].text
    assert screen.page.evaluate("window.ran") == 0
    assert screen.ask("root => root.querySelectorAll('img, script').length") == 0


# ---- without scripts ------------------------------------------------------------


def test_without_scripts_the_last_frame_and_its_words_are_there(show, ring):
    made = player(ring, "A ring")
    screen = show(made, java_script_enabled=False)
    page, last = screen.page, made.film.frames[-1]
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
    screen = show(html=html, java_script_enabled=scripts)
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
        screen.until("p > 0.1")
        screen.keys(" ")
        screen.picture(f"-{view}")
