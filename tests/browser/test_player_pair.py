"""Two players of one page work apart; two runs side by side play in step."""

import pytest
from traces import ring_trace

from distlab import follow
from distlab.collectives import ring_all_reduce
from distlab.show import compare, player
from distlab.trace import Trace


@pytest.fixture(scope="module")
def ring():
    return follow(ring_all_reduce, 4)


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

    wrong = follow(late, 4)
    events = [e._replace(bytes=48) if e.step == 4 else e for e in ring.trace.events]
    parts = compare(Trace(4, events, shares=ring.trace.shares), wrong, "A comparison")
    assert parts.stop == 4
    screen = show(parts)
    assert screen.text(".differs").startswith("First difference at step 4")
    screen.keys("Tab", "ArrowUp", "ArrowUp", " ")
    screen.until("root.querySelector('.play').ariaLabel === 'play'")
    assert screen.position == 4
    titles = "root => [...root.querySelectorAll('.said b')].map(e => e.textContent)"
    assert screen.ask(titles) == [
        parts.film.frames[4].title,
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
    screen.until("p === 6")
