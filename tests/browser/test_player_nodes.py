"""The player of nodes, opened from disk, shows what its film says, at any width."""

import re

import pytest
from artists import CONTRASTS, TEXTS, overlapping
from traces import CRASHED, SPLIT

from distlab.show import player

COUNT = "(root, s) => root.querySelectorAll('.run svg:not(.off) ' + s).length"
SENT = ".strand:not(.later)"


@pytest.mark.parametrize(("width", "scheme"), [(600, "dark"), (1200, "light")])
def test_the_space_time_view_opens_and_follows_the_film(show, scheme, width):
    made = player(SPLIT, "A split")
    options = {"viewport": {"width": width, "height": 800}}
    screen = show(made, color_scheme=scheme, **options)
    assert screen.ask("root => root.dataset.view") == "space"
    screen.keys("Tab")
    for number, frame in enumerate(made.film.frames):
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
    screen = show(made, viewport={"width": 1300, "height": 800})
    screen.keys("Tab")
    for frame in made.film.frames:
        assert screen.ask(COUNT, SENT) >= sum(frame.sent)
        screen.keys("ArrowRight")
    # a message that arrives twice was sent once, and is two arrows
    assert screen.ask(COUNT, SENT) == sum(made.film.frames[-1].sent) + 1
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
def test_every_word_stands_out_from_what_is_behind_it(show, scheme):
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
    for frame in made.film.frames:
        assert screen.ask(COUNT, ".cut") == bool(frame.cuts)
        screen.keys("ArrowRight")
