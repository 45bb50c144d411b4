"""The player of a job of workers, opened from disk, shows what its film says."""

import pytest

from distlab.show import player
from distlab.trace import Event, Trace

FILLED = """root => [...root.querySelectorAll('.graph svg:first-of-type path')]
    .filter(path => !path.closest('[clip-path]'))
    .filter(path => /^f\\d$/.test(path.getAttribute('class')))
    .map(path => path.getAttribute('d').split(/h[\\d.]+v/).length - 1)
    .reduce((sum, boxes) => sum + boxes, 0)"""
CROSSES = "root => root.querySelectorAll('.graph svg:first-of-type .cross').length"
COUNTS = "r => [...r.querySelectorAll('[data-sent]')].map(e => e.textContent)"
LANES = "r => [...r.querySelectorAll('svg')].find(s => !s.closest('button') && " + (
    "s.matches('.lanes')).textContent"
)


def work(worker, start, end, label):
    return Event(worker, start, end, "work", None, 0, 1, label)


@pytest.fixture
def killed():
    events = [
        work(0, 0, 2, "map 0, attempt 1"),
        work(1, 0, 1, "map 1, attempt 1"),
        work(1, 1, 2.5, "map 2, attempt 1, lost"),
        Event(1, 2.6, 2.6, "fault", None, 0, 3, "kill"),
        work(0, 2.7, 4, "map 1, attempt 2"),
        work(1, 2.7, 5, "map 2, attempt 2"),
        work(0, 5, 6, "reduce 0, attempt 1"),
    ]
    return player(Trace(2, events, who="worker"), "A job")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_at_every_stop_the_page_shows_what_the_film_says(show, killed, scheme):
    screen = show(killed, color_scheme=scheme)
    screen.keys("Tab")
    for number, frame in enumerate(killed.film.frames):
        assert screen.text(".said span") == frame.text
        filled = sum(sum(counts) for counts in frame.tables.values())
        assert screen.ask(FILLED) == filled
        assert screen.ask(CROSSES) == len(frame.dead)
        assert screen.ask(COUNTS) == [str(count) for count in frame.sent[1:]]
        screen.picture(f"-{number}")
        screen.keys("ArrowRight")


def test_lanes_name_workers_and_tasks_and_there_is_no_third_view(show, killed):
    screen = show(killed)
    screen.keys("Tab", "2")
    told = screen.ask(LANES)
    assert "worker 0" in told and "map 1 ·2" in told and "rank" not in told
    screen.keys("3")
    assert screen.ask("root => root.dataset.view") == "lanes"
