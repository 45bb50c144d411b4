"""The player's page, opened from disk in a real browser, does what its keys say."""

import pytest
from traces import ring_trace

from distlab import follow
from distlab.collectives import ring_all_reduce
from distlab.show import player

SHARES = """root => [...root.querySelectorAll('.graph svg:first-of-type path')]
    .filter(path => !path.closest('[clip-path]'))
    .filter(path => /^f\\d$/.test(path.getAttribute('class')))
    .map(path => path.getAttribute('d').split(/h[\\d.]+v/).length - 1)
    .reduce((sum, boxes) => sum + boxes, 0)"""
PILLS = "root => root.querySelectorAll('.run svg .pill').length"


@pytest.fixture(scope="module")
def ring():
    return follow(ring_all_reduce, 4)


# ---- keys -----------------------------------------------------------------------


def test_the_keyboard_alone_reaches_the_player_and_steps_through_it(show, ring):
    film = player(ring).film
    screen = show(player(ring, "Ring all-reduce"))
    screen.keys("Tab")
    assert screen.ask("root => document.activeElement === root")
    for number in range(1, len(film.frames)):
        screen.keys("ArrowRight")
        assert screen.position == number
    screen.keys("ArrowRight")
    assert screen.position == len(film.frames) - 1
    screen.keys("ArrowLeft", "ArrowLeft")
    assert screen.position == len(film.frames) - 3
    screen.keys("Home")
    assert screen.position == 0
    screen.keys("ArrowLeft")
    assert screen.position == 0
    screen.keys("End")
    assert screen.position == len(film.frames) - 1


def test_at_every_stop_the_page_shows_what_the_film_says(show, ring):
    film = player(ring).film
    screen = show(player(ring))
    screen.keys("Tab")
    for number, frame in enumerate(film.frames):
        assert screen.text(".said b") == frame.title
        assert screen.text(".said span") == frame.text
        assert screen.text(".count") == f"{number} of {len(film.frames) - 1}"
        assert frame.title in screen.ask("r => r.querySelector('input').ariaValueText")
        assert screen.ask(PILLS) == len(frame.moves)
        shares = sum(sum(map(bool, counts)) for counts in frame.tables.values())
        assert screen.ask(SHARES) == shares
        words = "r => [...r.querySelectorAll('[data-sent]')].map(e => e.textContent)"
        assert screen.ask(words) == [f"{count} B" for count in frame.sent]
        screen.picture(f"-{number}")
        screen.keys("ArrowRight")


def test_back_and_forth_ends_in_the_same_picture(show, ring):
    screen = show(player(ring))
    stage = "root => root.querySelector('.run svg').innerHTML"
    screen.keys("Tab", "ArrowRight", "ArrowRight")
    second = screen.ask(stage)
    screen.keys("End", "ArrowLeft", "Home", "ArrowRight")
    assert screen.ask(stage) != second
    screen.keys("ArrowRight")
    assert screen.ask(stage) == second


def test_space_plays_and_pauses_and_plays_on(show, ring):
    screen = show(player(ring))
    screen.keys("Tab", "ArrowUp", "ArrowUp", " ")
    assert screen.playing
    screen.until("p > 0.3")
    screen.keys(" ")
    assert not screen.playing
    paused = screen.position
    assert 0.3 < paused < 4 and paused != round(paused)
    screen.page.wait_for_timeout(150)
    assert screen.position == paused
    screen.keys("ArrowLeft")
    assert screen.position == int(paused)
    screen.keys(" ")
    screen.until("p === 6")
    assert not screen.playing
    screen.keys(" ")  # from the end it begins again
    screen.until("p > 0 && p < 4")


def test_it_plays_from_the_start_though_a_frame_began_before_the_key(show, ring):
    """The time of a frame is when it began, which may be before the key was pressed."""
    screen = show(player(ring))
    screen.page.evaluate(
        "() => { const ask = requestAnimationFrame; let early = 50; "
        "window.requestAnimationFrame = f => ask(t => { f(t - early); early = 0 }) }"
    )
    screen.keys("Tab", " ")
    screen.until("p > 0.1")
    assert screen.playing


def test_messages_travel_and_arrive_while_it_plays(show, ring):
    screen = show(player(ring))
    places = "root => [...root.querySelectorAll('.pill')].map(e => e.getAttribute('x'))"
    seek = "(root, p) => { const i = root.querySelector('input'); i.value = p; "
    seek += "i.dispatchEvent(new Event('input')) }"
    seen = []
    for share in (0.1, 0.4, 0.6):
        screen.ask(seek, share)
        seen.append((tuple(screen.ask(places)), screen.ask(SHARES)))
    assert len({where for where, _ in seen}) == 3
    assert {shares for _, shares in seen} == {16}  # nothing has arrived yet
    screen.ask(seek, 0.9)
    assert screen.ask(SHARES) == 20


def test_one_two_three_are_the_views(show, ring):
    screen = show(player(ring))
    seen = (
        "root => [...root.querySelectorAll('.graph>svg:first-child, .lanes, .space, "
        ".panel')].map(e => e.checkVisibility({ visibilityProperty: true }))"
    )
    screen.keys("Tab", "ArrowRight", "ArrowRight")
    for key, name in (("2", "lanes"), ("3", "space"), ("1", "graph")):
        screen.keys(key)
        assert screen.ask("root => root.dataset.view") == name
        panel = name == "graph"
        assert screen.ask(seen) == [panel, panel, name == "lanes", name == "space"]
        assert (
            screen.ask("r => r.querySelector('[aria-selected=true]').dataset.view")
            == name
        )
        zoom = "root => root.querySelector('.zoom').checkVisibility("
        zoom += "{ visibilityProperty: true })"
        assert screen.ask(zoom) == (name == "lanes")
        screen.picture(f"-{name}")
        drawn = f"r => r.querySelector('.{name}').innerHTML"
        before = screen.ask(drawn)
        screen.keys("ArrowRight")
        after = screen.ask(drawn)
        assert before != after


def test_plus_and_minus_zoom_the_lanes_around_now(show):
    screen = show(player(ring_trace(4, 40)))
    ticks = "root => [...root.querySelectorAll('.lanes text')]"
    ticks += ".map(e => Number(e.textContent)).filter(x => !isNaN(x))"
    screen.keys("Tab", "2", *["ArrowRight"] * 20)
    whole = screen.ask(ticks)
    screen.keys("+", "+", "+")
    near = screen.ask(ticks)
    assert max(near) - min(near) < (max(whole) - min(whole)) / 5
    assert min(near) < 20 < max(near)
    now = "root => root.querySelector('.lanes .now').getBBox().x"
    assert 76 <= screen.ask(now) <= 1104
    screen.keys("-", "-", "-", "-", "-")
    assert screen.ask(ticks) == whole


def test_up_and_down_change_the_speed_between_its_ends(show, ring):
    screen = show(player(ring))
    screen.keys("Tab")
    shown = []
    for key in ["ArrowUp"] * 3 + ["ArrowDown"] * 5:
        screen.keys(key)
        shown.append(screen.text(".speed"))
    assert shown == ["2×", "4×", "4×", "2×", "1×", "0.5×", "0.25×", "0.25×"]


def test_keys_with_control_stay_the_browsers_and_letters_do_nothing(show, ring):
    screen = show(player(ring))
    screen.keys("Tab", "ArrowRight", "Control+ArrowRight", "Alt+2", "x", "Escape")
    assert screen.position == 1 and screen.ask("r => r.dataset.view") == "graph"


# ---- mouse ----------------------------------------------------------------------


def test_dragging_the_slider_moves_the_film(show, ring):
    screen = show(player(ring))
    box = screen.page.locator(".scrub input").bounding_box()
    middle = box["y"] + box["height"] / 2
    mouse = screen.page.mouse
    mouse.move(box["x"] + 9, middle)
    mouse.down()
    seen = []
    for part in (0.25, 0.5, 0.75, 0.5):
        mouse.move(box["x"] + part * box["width"], middle, steps=4)
        seen.append(screen.position)
    mouse.up()
    assert seen == pytest.approx([1.5, 3, 4.5, 3], abs=0.15)
    assert not screen.playing


def test_the_slider_takes_keys_as_the_player_does(show, ring):
    screen = show(player(ring))
    screen.page.locator(".scrub input").focus()
    screen.keys("ArrowRight", "ArrowRight")
    assert (
        screen.position == 2
        and screen.ask("r => r.querySelector('input').value") == "2"
    )
    screen.keys("End")
    assert screen.position == 6


def test_every_button_does_what_its_label_says(show, ring):
    screen = show(player(ring))
    for name, at in (("end", 6), ("back", 5), ("start", 0), ("next", 1)):
        screen.page.locator(f"button.{name}").click()
        assert screen.position == at
    screen.page.get_by_label("play", exact=True).click()
    assert screen.playing
    screen.keys(" ")  # the button has the focus: it is pressed once, not twice
    assert not screen.playing
    screen.page.locator("button.start").focus()
    screen.keys(" ")  # and another button is pressed, which plays nothing
    assert screen.position == 0 and not screen.playing
    screen.page.get_by_role("tab", name="lanes").click()
    assert screen.ask("root => root.dataset.view") == "lanes"
    screen.page.get_by_label("zoom in").click()
    screen.page.get_by_label("speed").click()
    assert screen.text(".speed") == "2×"


def test_a_click_into_the_lanes_goes_to_that_moment(show):
    screen = show(player(ring_trace(4, 10)))
    screen.keys("Tab", "2")
    svg = screen.page.locator(".lanes").bounding_box()
    x = svg["x"] + (76 + 0.5 * (1104 - 76)) / 1120 * svg["width"]
    screen.page.mouse.click(x, svg["y"] + 60)
    assert screen.position == pytest.approx(5, abs=0.7)
