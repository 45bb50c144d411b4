"""A real browser for the tests of pages; what it starts, it has to end itself."""

import re
import shutil

import pytest
from leaks import left_since, what_there_is
from pages import followed_ring, keep, watched
from stores import wait_until

from distlab.show.assets import document

NO_BROWSER = "no chromium: apt-get install chromium"
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="package")
def browser():
    """Start a browser for the files in a row; fail if anything of it stays.

    It ends before tests of other folders, which look at all processes of ours.
    """
    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    if chromium is None:
        pytest.skip(NO_BROWSER)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip(NO_BROWSER)
    before = what_there_is()
    driver = sync_playwright().start()
    flags = ["--no-sandbox", "--disable-gpu"]
    started = driver.chromium.launch(executable_path=chromium, args=flags)
    yield started
    started.close()
    driver.stop()
    wait_until(lambda: not left_since(before))


@pytest.fixture(autouse=True)
def nothing_left(browser):
    """A browser keeps processes at hand; `browser` looks that none stays at the end."""


@pytest.fixture
def ring():
    return followed_ring()


@pytest.fixture(scope="package")
def only(browser):
    """Return the page that tests use one after the other, and what it complains of."""
    context = browser.new_context()
    yield watched(context)
    context.close()


@pytest.fixture
def page(only, tmp_path):
    """Return a page with nothing kept, as new; fail if it complains. New ones cost."""
    page, troubles = only
    (tmp_path / "empty.html").write_text("")
    page.goto((tmp_path / "empty.html").as_uri())
    page.evaluate("localStorage.clear()")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    troubles.clear()
    yield page
    assert troubles == []


@pytest.fixture
def new_page(browser):
    """Return a function that opens an empty page; fail if a page complains."""
    contexts, every = [], []

    def new_page(**options):
        contexts.append(browser.new_context(**options))
        page, troubles = watched(contexts[-1])
        every.append(troubles)
        return page

    yield new_page
    for context in contexts:
        context.close()
    assert every == [[] for _ in every]


class Screen:
    """One open page with one player or more, and what its user does and sees."""

    def __init__(self, page, name):
        self.page, self._name = page, name

    def ask(self, script, thing=None):
        """Return what a function of the first player, and of `thing`, returns."""
        call = f"thing => ({script})(document.querySelector('.distlab-player'), thing)"
        return self.page.evaluate(call, thing)

    def keys(self, *names):
        for name in names:
            self.page.keyboard.press(name)

    @property
    def position(self):
        return float(self.ask("root => root.dataset.position"))

    @property
    def playing(self):
        return self.ask("root => root.querySelector('.play').ariaLabel") == "pause"

    def text(self, selector):
        return self.ask("(root, s) => root.querySelector(s).textContent", selector)

    def until(self, condition):
        """Wait until a condition of the first player, `root`, holds."""
        root = "document.querySelector('.distlab-player')"
        self.page.wait_for_function(f"() => (root => {condition})({root})")

    def pass_s(self, seconds):
        """Let time pass on the clock of the page, which stands still otherwise."""
        self.page.clock.run_for(1000 * seconds)

    def picture(self, name=""):
        keep(self.page, self._name + name, full_page=True)


@pytest.fixture(scope="package")
def screens(browser):
    """Return the pages that tests of players use one after the other: new ones cost."""
    return []


@pytest.fixture
def show(browser, screens, tmp_path, request):
    """Return a function that opens players from disk, as a page of their own."""
    name, used = re.sub(r"\W+", "-", request.node.name), []

    def opened(*players, html=None, width=1280, scripts=True, **media):
        path = tmp_path / f"page{len(used)}.html"
        body = html or "".join(player.html() for player in players)
        path.write_text(document(body, "A page"), "utf-8")
        if scripts and len(used) < len(screens):
            page, troubles = screens[len(used)]
        else:
            options = {"offline": True, "java_script_enabled": scripts}
            page, troubles = watched(browser.new_context(**options))
            if scripts:
                page.clock.install(time=0)
                page.goto("about:blank")
                page.clock.pause_at(60_000)
                screens.append((page, troubles))
        used.append((page, troubles))
        page.emulate_media(
            **{"color_scheme": "light", "reduced_motion": "no-preference"} | media
        )
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(path.as_uri())
        return Screen(page, name)

    yield opened
    for page, troubles in used:
        keep(page, name)
        assert troubles == []
