"""The site of an executed lesson in a real browser: no kernel, no network."""

import re
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Thread

import pytest
from pages import cut_lesson, keep, reload_until

from distlab.commands.lessons import find_lessons

Axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe

pytestmark = pytest.mark.timeout(900)  # the first test builds the site

START, LESSON = "index", "lessons/10_ring_all_reduce"
CELLS = ("title", "imports", "question", "first-run", "guess-naive", "run-naive")
CELLS += ("compare-others", "explain-naive", "picture-naive", "naive-at-scale")
CELLS += ("refuse", "guess-complete", "follow-ring", "picture-ring", "explain-ring")
CELLS += ("build-indices", "cards")


def made(to, *lessons):
    """Build the site of some lessons with the command; return its folder."""
    command = [sys.executable, "-m", "distlab", "site", *map(str, lessons)]
    done = subprocess.run(
        [*command, "--to", to / "site", "--executed", to / "executed"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return to / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site of the beginning of lesson 10, with its cards."""
    to = tmp_path_factory.mktemp("site")
    return made(to, cut_lesson(to, "10", CELLS))


@pytest.fixture
def opened(page, site):
    """Return a function that opens a page of the site; fail if it asks for others."""
    allowed, asked = ["data:"], []

    def note(request):
        asked.append(request.url)

    page.on("request", note)

    def opened(name, width=1280, theme="light", address=None):
        allowed.append(address or site.as_uri())
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        page.goto(f"{allowed[-1]}/{name}.html")
        keep(page, f"site-{name.replace('/', '-')}-{width}-{theme}")
        return page

    yield opened
    page.remove_listener("request", note)
    assert not [url for url in asked if not url.startswith(tuple(allowed))]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def served(site):
    """Serve a site; yield its address."""
    quiet = partial(Quiet, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), quiet) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def server(site):
    with served(site) as address:
        yield address


@pytest.mark.parametrize("name", [START, LESSON, "docs/glossary"])
def test_a_page_asks_nobody_and_complains_of_nothing(opened, server, name):
    for address in (None, server):
        page = opened(name, address=address)
        assert page.locator("h1").count() == 1


def test_the_start_page_weighs_less_than_300_kb_before_its_player(opened, server, site):
    page, loaded = opened("search", address=server), []
    page.on("response", lambda answer: loaded.append(len(answer.body())))
    page.goto(f"{server}/{START}.html", wait_until="networkidle")
    assert 50_000 < sum(loaded) < 300_000


def test_players_step_without_a_kernel(opened):
    for name in (START, LESSON):
        player = opened(name).locator(".distlab-player").last
        player.get_by_label("one step forward").click()
        assert re.match(r"1 of \d+", player.locator(".count").inner_text())


def test_a_guess_opens_the_comparison_with_the_recorded_run_and_is_kept(opened):
    page = opened(LESSON)
    form = page.locator("form.distlab-guess", has_text="does rank 0 send").first
    described = page.locator(".distlab-compared").first
    assert "Guess first" in described.inner_text()
    form.get_by_role("textbox").fill("8")
    form.get_by_role("button").first.click()
    assert "measured 12 MB" in described.inner_text()
    reload_until(page, lambda: "measured 12 MB" in described.inner_text())


def test_a_card_keeps_its_answer_and_leads_to_its_cell(opened):
    page = opened(LESSON)
    card = page.locator("[data-card]").first
    card.get_by_label("Your answer").fill("rank 9")
    answer = card.get_by_label("Your answer")
    reload_until(page, lambda: answer.input_value() == "rank 9")
    links = page.locator("[data-card] a").all()
    cells = {link.get_attribute("href").partition("#")[2] for link in links}
    here = {cell for cell in cells if page.locator(f"[id='{cell}']").count() == 1}
    assert here == {cell for cell in cells if cell.partition("=")[2] in CELLS} != set()


@pytest.mark.parametrize("name", [LESSON, "review"])
def test_the_link_of_a_card_is_an_address_of_the_site(opened, site, name):
    page = opened(name)
    found = page.eval_on_selector_all("[data-card] a", "all => all.map(a => a.href)")
    assert {each.partition("#cell-id=")[0] for each in found} == {
        f"{site.as_uri()}/{LESSON}.html"
    }
    page.goto(next(each for each in found if each.endswith("build-indices")))
    page.wait_for_function("scrollY > 1000")  # it scrolls smoothly


def test_search_finds_a_term(opened):
    page = opened(START)
    page.get_by_placeholder("Search").fill("bottleneck")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Ring all-reduce").first.wait_for()


def test_a_lesson_says_that_it_was_recorded_where_and_when(opened):
    note = opened(LESSON).locator(".recorded").inner_text()
    assert re.search(r"\d+ \w+ 20\d\d, \d+ cores?, Linux, Python 3\S+, PyTorch 2", note)


def test_formulas_are_drawn_by_the_browser_itself(opened):
    page = opened(LESSON)
    assert page.locator("math").count() > 3
    assert "\\frac" not in page.locator("article").inner_text()
    cards = opened("review").locator(".distlab-cards")
    assert cards.locator("math").count() > 10 and "$" not in cards.inner_text()


@pytest.mark.parametrize("name", [START, LESSON, "review", "interview", "api"])
def test_no_page_scrolls_sideways(opened, name):
    page = opened(name, 360)
    for width in (360, 820, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width


def test_outputs_follow_the_theme_that_the_reader_chooses(opened):
    page = opened(LESSON)
    parts = ".distlab-player, form.distlab-guess, .distlab-cards section"
    colors = f"""() => [...document.querySelectorAll('{parts}')].map(
        part => getComputedStyle(part).backgroundColor)"""
    light = set(page.evaluate(colors))
    for _ in range(3):
        page.locator(".theme-toggle:visible").click()
        if page.evaluate("document.body.dataset.theme") == "dark":
            break
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert light and light.isdisjoint(page.evaluate(colors))


@pytest.mark.parametrize(("name", "theme"), [(START, "light"), (LESSON, "dark")])
def test_axe_finds_nothing_that_shuts_a_reader_out(opened, server, name, theme):
    found = Axe().run(opened(name, theme=theme, address=server))
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_whole_lessons_complain_of_nothing_scroll_down_only_and_are_open_to_all(
    opened, tmp_path
):
    names = (START, LESSON, "lessons/00_start_here")
    with served(made(tmp_path, "00", "10")) as address:
        for name, theme in product(names, ("light", "dark")):
            page = opened(name, 360, theme, address)
            assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
            found = Axe().run(opened(name, theme=theme, address=address))
            assert found.violations_count == 0, found.generate_report()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_the_site_of_all_lessons_is_built(tmp_path):
    site = made(tmp_path)
    assert len(list((site / "lessons").glob("*.html"))) == len(find_lessons([]))
