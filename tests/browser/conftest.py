"""A real browser for the tests of pages; what it starts, it has to end itself."""

import os
import re
import shutil
from pathlib import Path

import pytest
from leaks import left_since, what_there_is
from stores import wait_until

from distlab.show.assets import document

NO_BROWSER = "no chromium: apt-get install chromium"
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    """Start a browser for the tests of one file; fail if anything of it stays."""
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


class Screen:
    """One open page with one player or more, and what its user does and sees."""

    def __init__(self, page, picture):
        self.page, self._picture, self.troubles = page, picture, []
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", self._dialog)
        page.on("console", self._said)

    def _dialog(self, dialog):
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _said(self, message):
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)

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
        """Wait until a condition of the first player holds; `p` is its position."""
        root = "document.querySelector('.distlab-player')"
        both = (
            f"root => {{ const p = Number(root.dataset.position); return {condition} }}"
        )
        self.page.wait_for_function(f"() => ({both})({root})", timeout=8000)

    def picture(self, name=""):
        self.page.screenshot(path=self._picture(name), full_page=True)


@pytest.fixture
def show(browser, tmp_path, request):
    """Return a function that opens players from disk, as a page of their own."""
    folder = Path(os.environ.get("DISTLAB_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    stem, contexts, screens = re.sub(r"\W+", "-", request.node.name), [], []

    def opened(*players, html=None, **options):
        path = tmp_path / f"page{len(contexts)}.html"
        body = html or "".join(player.html() for player in players)
        path.write_text(document(body, "A page"), "utf-8")
        contexts.append(browser.new_context(offline=True, **options))
        screen = Screen(
            contexts[-1].new_page(), lambda name: folder / f"{stem}{name}.png"
        )
        screens.append(screen)
        screen.page.goto(path.as_uri())
        return screen

    yield opened
    for screen in screens:
        screen.picture()
    for context in contexts:
        context.close()
    assert [screen.troubles for screen in screens] == [[] for _ in screens]
