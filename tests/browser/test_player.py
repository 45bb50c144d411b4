"""The player, opened from disk in a real browser, does what its keys say.

One run, two runs side by side, a job of workers, nodes that agree.
"""

import re

import pytest
from artists import CONTRASTS, TEXTS, overlapping
from pages import FABRIC
from stores import wait_until
from traces import CRASHED, CUT_OFF, KILLED, SPLIT, event, ring_trace

from distlab import follow
from distlab.collectives import ring_all_reduce
from distlab.show import Player, compare, player
from distlab.show.player import LogAnimation, NodeLog
from distlab.trace import Trace

SHARES = """root => [...root.querySelectorAll('.graph svg:first-of-type path')]
    .filter(path => !path.closest('[clip-path]'))
    .filter(path => /^f\\d$/.test(path.getAttribute('class')))
    .map(path => path.getAttribute('d').split(/h[\\d.]+v/).length - 1)
    .reduce((sum, boxes) => sum + boxes, 0)"""
SENT = "r => [...r.querySelectorAll('[data-sent]')].map(e => e.textContent)"
COUNT = "(root, s) => root.querySelectorAll('.run svg:not(.off) ' + s).length"
PILLS = "root => root.querySelectorAll('.run svg .pill').length"


# ---- keys -----------------------------------------------------------------------


def test_the_keyboard_alone_reaches_the_player_and_steps_through_it(show, ring):
    animation = player(ring).animation
    screen = show(player(ring, "Ring all-reduce"))
    screen.keys("Tab")
    assert screen.ask("root => document.activeElement === root")
    for number in range(1, len(animation.frames)):
        screen.keys("ArrowRight")
        assert screen.position == number
    screen.keys("ArrowRight")
    assert screen.position == len(animation.frames) - 1
    screen.keys("ArrowLeft", "ArrowLeft")
    assert screen.position == len(animation.frames) - 3
    screen.keys("Home")
    assert screen.position == 0
    screen.keys("ArrowLeft")
    assert screen.position == 0
    screen.keys("End")
    assert screen.position == len(animation.frames) - 1


def test_at_every_stop_the_page_shows_what_the_film_says(show, ring):
    animation = player(ring).animation
    screen = show(player(ring))
    screen.keys("Tab")
    for number, frame in enumerate(animation.frames):
        assert screen.text(".said b") == frame.title
        assert screen.text(".said span") == frame.text
        assert screen.text(".count") == f"{number} of {len(animation.frames) - 1}"
        assert frame.title in screen.ask("r => r.querySelector('input').ariaValueText")
        assert screen.ask(PILLS) == len(frame.moves)
        shares = sum(sum(map(bool, counts)) for counts in frame.tables.values())
        assert screen.ask(SHARES) == shares
        assert screen.ask(SENT) == [f"{count} B" for count in frame.sent]
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
    screen.pass_s(0.5)
    screen.keys(" ")
    assert not screen.playing
    paused = screen.position
    assert paused == pytest.approx(4 * 0.5 / 1.4, abs=0.1)
    screen.pass_s(0.5)
    assert screen.position == paused
    screen.keys("ArrowLeft")
    assert screen.position == int(paused)
    screen.keys(" ")
    screen.pass_s(2)
    assert screen.position == 6 and not screen.playing
    screen.keys(" ")  # from the end it begins again
    screen.pass_s(0.5)
    assert 0 < screen.position < 2


def test_it_plays_from_the_start_though_a_frame_began_before_the_key(show, ring):
    """The time of a frame is when it began, which may be before the key was pressed."""
    screen = show(player(ring))
    screen.page.evaluate(
        "() => { const ask = requestAnimationFrame; let early = 50; "
        "window.requestAnimationFrame = f => ask(t => { f(t - early); early = 0 }) }"
    )
    screen.keys("Tab", " ")
    screen.pass_s(0.2)
    assert 0 < screen.position < 0.2 and screen.playing


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


# ---- two on a page, two in step --------------------------------------------------


def test_a_run_that_failed_opens_at_its_failure_and_plays_from_the_start(show):
    screen = show(player(CUT_OFF))
    last = len(player(CUT_OFF).animation.frames) - 1
    assert screen.position == last
    assert screen.text(".said b") == "How it ended"
    screen.keys("Tab", " ")
    screen.pass_s(0.3)
    assert 0 < screen.position < 1


def test_n_goes_to_the_next_event_and_each_has_a_mark_on_the_slider(show):
    screen = show(player(SPLIT))
    marks = "r => [...r.querySelectorAll('.event')].map(e => [e.title, +e.dataset.at])"
    marked = screen.ask(marks)
    titles = [frame.title for frame in player(SPLIT).animation.frames]
    begins = titles.index("Network partition: 0 | 1 2")
    assert [words for words, _ in marked] == ["partition 0 | 1 2", "the partition ends"]
    assert marked[0][1] == begins
    screen.keys("Tab")
    for at in (*(at for _, at in marked), begins):  # and the first again
        screen.keys("n")
        assert screen.position == at
    screen.page.locator(".event").last.click()
    assert screen.position == marked[1][1]


def test_a_phase_is_named_once_and_numbers_that_jump_about_are_left_out(show):
    events = [
        each
        for k, step in enumerate([0, 2, 1, 3])
        for each in (
            event(0, 2 * k, 2 * k, "mark", label=f"sum, step {step}"),
            event(1, 2 * k, 2 * k, "mark", label=f"sum, step {step}"),
            event(0, 2 * k + 1, 2 * k + 2, "send", 1, 8, step=k + 1),
            event(1, 2 * k + 1, 2 * k + 2, "recv", 0, 8, step=k + 1),
        )
    ]
    made = player(Trace(2, events))
    shorts = [frame.short for frame in made.animation.frames]
    assert shorts == ["start", "sum 0", "2", "1", "3"]
    screen = show(made)
    said = "r => [...r.querySelectorAll('.scrub i')].map(e => e.textContent)"
    wait_until(lambda: sorted(screen.ask(said)) == ["0", "sum"])


def test_two_players_of_one_page_work_apart(show, ring):
    screen = show(player(ring), player(ring_trace(3, 4)))
    where = "() => [...document.querySelectorAll('.distlab-player')]"
    where += ".map(root => [root.dataset.position, root.dataset.view])"
    screen.keys("Tab", "ArrowRight", "ArrowRight", "2")
    assert screen.page.evaluate(where) == [["2", "lanes"], ["0", "graph"]]
    screen.page.locator(".distlab-player").nth(1).focus()
    screen.keys("ArrowRight", "3")
    assert screen.page.evaluate(where) == [["2", "lanes"], ["1", "space"]]


def test_two_runs_play_in_step_and_stop_where_they_part(show, ring):
    def late(comm, tensor):
        ring_all_reduce(comm, tensor)
        if comm.rank == 0:
            comm.send(tensor, 1)
        if comm.rank == 1:
            comm.recv(tensor, 0)

    wrong = follow(late, 4, fabric=FABRIC)
    events = [e._replace(bytes=48) if e.step == 4 else e for e in ring.trace.events]
    parts = compare(Trace(4, events, shares=ring.trace.shares), wrong, "A comparison")
    assert parts.stop == 4
    screen = show(parts)
    assert screen.text(".differs").startswith("First difference at step 4")
    screen.keys("Tab", "ArrowUp", "ArrowUp", " ")
    screen.pass_s(4)
    assert screen.position == 4 and not screen.playing
    titles = "root => [...root.querySelectorAll('.said b')].map(e => e.textContent)"
    assert screen.ask(titles) == [
        parts.animation.frames[4].title,
        parts.ideal.frames[4].title,
    ]
    screen.keys("Home", "d")
    assert screen.position == 4
    screen.keys("End")
    assert screen.position == 7
    assert screen.ask(titles)[0] == "It has ended after step 6"
    for view in "231":
        screen.keys(view)
        screen.picture(f"-{view}")


def test_runs_that_agree_play_to_the_end_and_have_nowhere_to_go(show, ring):
    screen = show(compare(ring, ring))
    assert screen.ask("root => !root.querySelector('.differs button')")
    screen.keys("Tab", "ArrowUp", "ArrowUp", "d")
    assert screen.position == 0
    screen.keys("ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", " ")
    screen.pass_s(2)
    assert screen.position == 6


# ---- a job of workers ----------------------------------------------------------

CROSSES = "root => root.querySelectorAll('.graph svg:first-of-type .cross').length"
LANES = "r => [...r.querySelectorAll('svg')].find(s => !s.closest('button') && " + (
    "s.matches('.lanes')).textContent"
)


def test_at_every_stop_of_a_job_the_page_shows_what_the_film_says(show):
    killed = player(KILLED, "A job")
    screen = show(killed)
    screen.keys("Tab")
    for number, frame in enumerate(killed.animation.frames):
        assert screen.text(".said span") == frame.text
        filled = sum(sum(counts) for counts in frame.tables.values())
        assert screen.ask(SHARES) == filled
        assert screen.ask(CROSSES) == len(frame.dead)
        assert screen.ask(SENT) == [str(count) for count in frame.sent[1:]]
        screen.picture(f"-{number}")
        screen.keys("ArrowRight")


def test_lanes_name_workers_and_tasks_and_there_is_no_third_view(show):
    screen = show(player(KILLED, "A job"))
    screen.keys("Tab", "2")
    described = screen.ask(LANES)
    assert (
        "worker 0" in described and "map 1 ·2" in described and "rank" not in described
    )
    screen.keys("3")
    assert screen.ask("root => root.dataset.view") == "lanes"


# ---- nodes that agree ----------------------------------------------------------


@pytest.mark.parametrize(("width", "scheme"), [(600, "dark"), (1200, "light")])
def test_the_space_time_view_opens_and_follows_the_film(show, scheme, width):
    made = player(SPLIT, "A split")
    screen = show(made, color_scheme=scheme, width=width)
    assert screen.ask("root => root.dataset.view") == "space"
    screen.keys("Tab")
    for number, frame in enumerate(made.animation.frames):
        assert screen.text(".said b") == frame.title
        assert screen.text(".said span") == frame.text
        assert not overlapping(screen.ask(TEXTS))
        split = bool(frame.cuts) or "is over" in frame.title
        if split or number < 6:
            assert screen.ask(COUNT, ".wall") == int(split)
        screen.keys("ArrowRight")
    wide = screen.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width


def test_what_has_been_sent_is_strong_and_the_rest_is_pale(show):
    made = player(CRASHED)
    screen = show(made, width=1300)
    screen.keys("Tab")
    for frame in made.animation.frames:
        assert screen.ask(COUNT, ".strand:not(.later)") >= sum(frame.sent)
        screen.keys("ArrowRight")
    # a message that arrives twice was sent once, and is two arrows
    assert (
        screen.ask(COUNT, ".strand:not(.later)")
        == sum(made.animation.frames[-1].sent) + 1
    )
    assert screen.ask(COUNT, ".cross") == 2


def test_names_are_those_of_nodes_and_clients_in_every_view(show):
    screen = show(player(SPLIT))
    screen.keys("Tab", "End")
    for key in "123":
        screen.keys(key)
        said = screen.ask(
            "root => [...root.querySelectorAll('.run svg:not(.off)')]"
            ".map(svg => svg.textContent).join()"
        )
        assert "node 0" in said and "client 1" in said
        assert not re.search(r"\brank\b", said)
        screen.picture(f"-{key}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_of_nodes_stands_out_from_what_is_behind_it(show, scheme):
    screen = show(player(CRASHED, "A crash"), color_scheme=scheme)
    screen.keys("Tab", "End")
    for view in "123":
        screen.keys(view)
        found = screen.ask(CONTRASTS)
        pale = [(n, words, r) for n, words, r in found if r < 4.5 and "num " not in n]
        # words on the bars of the lanes are drawn as those of jobs are
        assert not [each for each in pale if not each[0].startswith("n")]


def test_a_split_cuts_the_ways_between_the_sides_of_the_graph(show):
    made = player(SPLIT)
    screen = show(made)
    screen.keys("Tab", "1")
    for frame in made.animation.frames:
        assert screen.ask(COUNT, ".cut") == bool(frame.cuts)
        screen.keys("ArrowRight")


# ---- logs -----------------------------------------------------------------------

LOGS = """root => [...root.querySelectorAll('.logs [data-entry]')]
    .map(cell => [cell.dataset.entry, /^f\\d$/.test(cell.getAttribute('class'))])"""


def test_the_logs_show_each_entrys_term_and_fill_what_is_committed(show):
    states = [[None, NodeLog("follower", 1, (), 0, 0)]]
    states += [
        [NodeLog("leader", 2, (1, 2), 1, k), NodeLog("follower", 2, (1,), 1, 2)]
        for k in (2, 3)
    ]
    events = [event(0, at, at, "mark", label="timer x") for at in (0.0, 1.0)]
    trace = Trace(2, events, who="node")
    screen = show(Player(LogAnimation(trace, "Logs", states)))
    assert len(screen.ask(LOGS)) == 3  # it opens at the end
    screen.keys("Tab", "Home")
    assert screen.ask(LOGS) == []
    assert "crashed" in screen.text(".logs")
    screen.keys("ArrowRight")
    assert screen.ask(LOGS) == [["0 2 1", True], ["0 3 2", False], ["1 2 1", True]]
    screen.keys("End")
    assert screen.ask(LOGS) == [["0 2 1", True], ["0 3 2", True], ["1 2 1", True]]
    assert "leader, term 2" in screen.text(".logs")
