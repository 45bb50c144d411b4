"""Static figures in a page: legible at any width, and dark where the page is."""

import pytest
from traces import KILLED, SPLIT, ring_trace

from distlab.show import ratios, tasks, timeline

WIDTHS = (360, 700, 1280)
SIZES = """() => [...document.querySelectorAll('.distlab-picture text')]
    .filter(text => text.textContent.trim()).map(text => [text.textContent,
        text.getScreenCTM().a * parseFloat(getComputedStyle(text).fontSize)])"""
COLOR = """([selector, name]) => getComputedStyle(document.querySelector(
    '.distlab-picture' + selector))[name]"""
FIGURES = {
    "ranks": lambda: timeline(ring_trace(4, 6)),
    "nodes": lambda: timeline(SPLIT),
    "tasks": lambda: tasks(KILLED),
    "ratios": lambda: ratios({"a": (100, 150), "b": (100, 90)}, unit="B"),
}


@pytest.fixture
def opened(show):
    """Return a function that opens a figure; no player is on its page."""

    def figure(name, **options):
        html = FIGURES[name]()._repr_mimebundle_()["text/html"]
        return show(html=html, **options).page

    return figure


@pytest.mark.parametrize("name", FIGURES)
def test_no_word_of_a_figure_is_below_eleven_pixels_at_any_width(opened, name):
    page = opened(name)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        sizes = page.evaluate(SIZES)
        assert len(sizes) > 5
        assert not [each for each in sizes if each[1] < 10.99], width
        # what does not fit scrolls in a box of its own
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = page.locator(".distlab-picture").bounding_box()
        assert box["width"] <= width


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
    assert fills["map 0"] == "rgb(31, 41, 50)"


def test_a_still_image_stands_in_where_only_images_are_kept(opened):
    page = opened("ranks")
    image = page.locator(".distlab-picture img")
    assert image.get_attribute("alt") and not image.is_visible()
    page.evaluate("document.querySelectorAll('style, svg').forEach(e => e.remove())")
    assert image.is_visible()
