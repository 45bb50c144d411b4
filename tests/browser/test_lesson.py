"""Lesson 10 in JupyterLab, in a real browser, as a learner goes through it.

Screenshots are kept in the folder that DISTLAB_SCREENSHOTS names, if it names one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pages import accept_dialogs
from stores import wait_until

TooLate = pytest.importorskip("playwright.sync_api").TimeoutError

pytestmark = pytest.mark.timeout(400)  # the first test opens JupyterLab and runs all

ROOT = Path(__file__).parents[2]
LESSON = ROOT / "lessons" / "10_ring_all_reduce.ipynb"
TRACKER = "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
STATUS = "document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status"
PROMPTS = "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]"
BEGUN = f"() => {PROMPTS}.some(p => /\\[[\\d*]+\\]/.test(p.textContent))"
DONE = "p => /\\[\\d+\\]/.test(p.textContent)"
# A cell whose source is collapsed shows no prompt.
RAN = (
    f"() => {PROMPTS}.every(p => !p.textContent || ({DONE})(p)) && {STATUS} === 'idle'"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Serve a copy of the lesson; return the address and the learner's own folder."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "lessons").mkdir()
    notebook = shutil.copy(LESSON, folder / "lessons")
    command = [sys.executable, "-m", "distlab", "lab", str(notebook), "--no-browser"]
    # Jupyter keeps what was open last in the user's home, and the user's settings:
    # here that all cells are on the page, also those far from what is seen.
    settings = folder / "home" / ".jupyter" / "lab" / "user-settings" / TRACKER
    settings.parent.mkdir(parents=True)
    settings.write_text('{"windowingMode": "none"}')
    environment = os.environ | {"HOME": str(folder / "home")}
    environment.pop("DISTLAB_HOME", None)
    server = subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = ""
    while not (found := re.search(r"http://127\S+token=\w+", said)):
        line = server.stdout.readline()
        assert line, said
        said += line
    everything = [psutil.Process(server.pid)]
    yield found[0], folder
    everything += everything[0].children(recursive=True)
    server.terminate()
    said += server.communicate(timeout=30)[0]
    warned = [line for line in said.splitlines() if re.match(r"\[W |.*WARNING", line)]
    assert not [line for line in warned if "is not trusted" not in line]
    assert not psutil.wait_procs(everything, timeout=10)[1]


def run_all(page):
    """Ask for all cells to run, and again if the menu was not there yet to hear it."""
    for _ in range(5):
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        try:
            page.wait_for_function(BEGUN, timeout=10_000)
        except TooLate:
            page.keyboard.press("Escape")
        else:
            return
    raise AssertionError("JupyterLab did not begin to run the cells")


@pytest.fixture(scope="module")
def lesson(browser, lab):
    """Open the lesson, run all of its cells, and collect the console's complaints."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.troubles = []
    # On a busy machine JupyterLab itself trips over a cell that is not drawn yet.
    page.on(
        "pageerror",
        lambda error: "sharedModel" in str(error) or page.troubles.append(str(error)),
    )
    page.on(
        "console", lambda m: page.troubles.append(m.text) if m.type == "error" else 0
    )
    page.goto(lab[0])
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
    page.locator(".jp-KernelName", has_text="Python 3").wait_for(timeout=60_000)
    page.wait_for_function(f"() => {STATUS} === 'idle'", timeout=60_000)
    accept_dialogs(page)
    run_all(page)
    try:
        page.wait_for_function(RAN, timeout=150_000)
    except TooLate:
        shown = f"{PROMPTS}.map(p => p.textContent)"
        raise AssertionError(page.evaluate(f"[{STATUS}, ...{shown}]"))
    yield page
    page.close()


@pytest.fixture
def keep(lesson, tmp_path):
    """Return a function that keeps a screenshot of a part of the page."""
    folder = Path(os.environ.get("DISTLAB_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return lambda part, name: part.screenshot(path=folder / f"lesson-{name}.png")


def cell(page, words):
    """Return the code cell whose source has these words, scrolled into view."""
    found = page.locator(".jp-CodeCell").filter(
        has=page.locator(".jp-InputArea", has_text=words)
    )
    found.first.scroll_into_view_if_needed()
    return found.first


def test_no_cell_fails_and_the_console_has_nothing_to_say(lesson):
    assert (
        lesson.locator('[data-mime-type="application/vnd.jupyter.error"]').count() == 0
    )
    assert (
        lesson.locator('[data-mime-type="application/vnd.jupyter.stderr"]').count() == 0
    )
    assert lesson.locator(".jp-OutputArea-output .distlab-player").count() >= 4
    assert lesson.troubles == []


def test_a_learner_sees_nothing_of_an_instructors(lesson):
    menus = lesson.locator(".lm-MenuBar-itemLabel").all_inner_texts()
    assert "Kernel" in menus and "Nbgrader" not in menus
    assert lesson.get_by_text("Create Assignment").count() == 0
    assert lesson.get_by_text("Validate", exact=True).count() == 0


def test_a_result_is_told_once_the_prediction_is_made(lesson, lab, keep):
    form = cell(lesson, "How many megabytes does rank 0 send?")
    outputs = cell(lesson, "guess_rank_0.compare").locator(".jp-OutputArea-output")
    result = outputs.last  # after those of a run's progress, if it took long
    assert "12" not in result.inner_text()
    form.locator("input").first.fill("8")
    form.locator("input").first.press("Enter")
    result.get_by_text("you said 8 MB").wait_for(timeout=10_000)
    assert "the formula says 12 MB" in result.inner_text()
    assert "8.0" in (lab[1] / "home" / ".distlab" / "guesses.json").read_text()
    keep(cell(lesson, "guess_rank_0.compare"), "prediction")
    hear = "addEventListener('keydown', e => window.heard = e.isTrusted, true)"
    lesson.evaluate(hear)
    form.get_by_role("button", name="Change my guess").press("Control+s")
    assert lesson.evaluate("heard") is False  # the last is the one passed on
    saved = lab[1] / "lessons" / LESSON.name  # and is seen tomorrow without a kernel
    wait_until(lambda: "You said 8 MB." in saved.read_text())


def position(player):
    return float(player.get_attribute("data-position"))


def until(page, player, low, high=6):
    """Wait until the player's position lies between two numbers."""
    for _ in range(200):
        if low < position(player) < high:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"the player stands at {position(player)}")


def test_the_player_plays_steps_scrubs_and_switches_views(lesson, keep):
    shown = cell(lesson, "The ring, 40 numbers").locator(".distlab-player")
    shown.locator(".play").click()
    until(lesson, shown, 0.2)
    shown.locator(".play").click()
    stopped = position(shown)
    lesson.wait_for_timeout(200)
    assert position(shown) == stopped
    shown.locator("button.next").click()
    shown.locator("button.next").click()
    shown.locator("button.back").click()
    assert position(shown) == int(position(shown))
    scrub = shown.locator("input[type=range]")
    box = scrub.bounding_box()
    scrub.click(position={"x": box["width"] - 9, "y": box["height"] / 2})
    assert position(shown) > 5.5
    for view, name in (("lanes", "lanes"), ("space", "space-time"), ("graph", "graph")):
        shown.get_by_role("tab", name=name).click()
        assert shown.get_attribute("data-view") == view
        keep(shown, view)


def test_the_players_keys_do_not_reach_the_notebook(lesson):
    shown = cell(lesson, "The ring, 40 numbers").locator(".distlab-player")
    cells = lesson.locator(".jp-Cell").count()
    shown.focus()
    for key in (
        "Home",
        "ArrowRight",
        "ArrowRight",
        "a",
        "b",
        "d",
        "d",
        "x",
        "m",
        "End",
    ):
        lesson.keyboard.press(key)
    assert position(shown) == 6
    assert lesson.locator(".jp-Cell").count() == cells
    lesson.keyboard.press(" ")
    until(lesson, shown, 0.2)
    lesson.keyboard.press(" ")


def test_side_by_side_names_the_step_where_a_wrong_ring_goes_wrong(lesson, keep):
    shown = cell(lesson, "A ring that keeps adding").locator(".distlab-player")
    assert "First difference at step 4" in shown.locator(".differs").text_content()
    shown.get_by_role("button", name="go there").click()
    assert position(shown) == 4
    keep(shown, "side-by-side")


def test_a_card_opens_its_key_points_after_an_answer(lesson, keep):
    cards = cell(lesson, "ask(10)").locator(".distlab-cards")
    card = cards.locator("section").first
    assert (
        not card.get_by_text("key points").last.is_enabled()
        or card.locator("li").first.is_hidden()
    )
    card.locator("textarea").fill("Six messages of a quarter of the tensor.")
    card.get_by_role("button").first.click()
    assert card.locator("li").first.is_visible()
    keep(card, "card")


def test_both_themes_are_legible(lesson, keep):
    shown = cell(lesson, "The ring, 40 numbers").locator(".distlab-player")
    paper = "e => getComputedStyle(e).backgroundColor"
    light = shown.evaluate(paper)
    lesson.get_by_role("menuitem", name="Settings", exact=True).click()
    lesson.get_by_text("Theme", exact=True).hover()
    lesson.get_by_text("JupyterLab Dark", exact=True).click()
    lesson.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
    assert shown.evaluate(paper) != light
    card = cell(lesson, "ask(10)").locator("section").first
    assert card.evaluate("e => getComputedStyle(e).colorScheme") == "dark"
    keep(shown, "dark")
