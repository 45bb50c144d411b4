"""JupyterLab in a real browser: lesson 10 as a learner sees it, a cluster's panel.

All tests share one server. The lesson is the cells that they look at; the whole of it
is run with -m nightly.
"""

import json
import os
import re
import socket
import subprocess
import sys
from collections import namedtuple
from urllib.request import Request, urlopen

import nbformat
import psutil
import pytest
from pages import GIVE_UP_MS, cut_lesson, keep, watched
from stores import wait_until

pytestmark = pytest.mark.timeout(900)  # the first test opens JupyterLab

CELLS = ("imports", "first-run", "guess-naive", "run-naive", "compare-others")
CELLS += (
    "picture-naive",
    "guess-complete",
    "follow-ring",
    "picture-ring",
    "wrong-ring",
)
CELLS += ("picture-wrong", "cards")
TRACKER = "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
STATUS = "document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status"
PROMPTS = "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]"
DONE = "p => /\\[\\d+\\]/.test(p.textContent)"
# A cell whose source is collapsed shows no prompt; where one fails the next do not run.
ERROR = '[data-mime-type="application/vnd.jupyter.error"]'
ERROR_TEXT = '[data-mime-type="application/vnd.jupyter.stderr"]'
RAN = (
    f"() => {STATUS} === 'idle' && ({PROMPTS}.every(p => !p.textContent || ({DONE})(p))"
    f" || document.querySelector('{ERROR}'))"
)
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
STORE = """
from distlab import Call, network

class Echo(network.Node):
    def on_client(self, request, call):
        return [network.Reply(request, call.value)]

def asks():
    while True:
        yield Call("write", "x", 1)

cluster = network.Cluster(Echo, 3)
cluster.start([network.Client(node, asks, 0, 0.02, 0.2) for node in range(3)])
cluster.panel()
"""
STEPS = """
from distlab import Call, network

class Asks(network.Node):
    def on_client(self, request, call):
        asks = [network.Send(peer, "ask") for peer in self.peers]
        return [*asks, network.Reply(request)]

network.step_through(Asks, 3, [network.Client(0, [Call("go")])])
"""
MESSAGES = (
    """
from distlab import run
from distlab.checks import grade, hint, why_distribute as checks

def undivided(measured):
    import numpy as np
    n, x = np.array(measured).T
    columns = np.stack([n ** 0, n - 1, n * (n - 1)], axis=1)
    return tuple(np.linalg.lstsq(columns, n / x, rcond=None)[0])""",
    'grade(3, checks.fit_usl, undivided, [(2, 16, 10, "exact")])',
    "hint()",
    "run(lambda comm: comm.send_object(None, 1 - comm.rank), 2)",
)

Lab = namedtuple("Lab", "address token folder")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Serve the notebooks with the learner's command."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "lessons").mkdir()
    lesson = cut_lesson(folder / "lessons", "10", CELLS)
    cut_lesson(folder / "lessons", "10", (), "whole")
    made = ("panel", (STORE, "cluster.close()")), ("messages", MESSAGES)
    for name, codes in (*made, ("steps", (STEPS, "1"))):
        cells = [nbformat.v4.new_code_cell(code) for code in codes]
        made = nbformat.v4.new_notebook(cells=cells, metadata=KERNEL)
        nbformat.write(made, folder / "lessons" / f"{name}.ipynb")
    # Jupyter keeps what was open last in the user's home, and the user's settings:
    # here that all cells are on the page, also those far from what is seen.
    settings = folder / "home" / ".jupyter" / "lab" / "user-settings" / TRACKER
    settings.parent.mkdir(parents=True)
    settings.write_text('{"windowingMode": "none"}')
    environment = os.environ | {"HOME": str(folder / "home")}
    environment.pop("DISTLAB_HOME", None)
    server = subprocess.Popen(
        [sys.executable, "-m", "distlab", "lab", str(lesson), "--no-browser"],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said, everything = "", [psutil.Process(server.pid)]
    while not (found := re.search(r"(http://127\S+?)/lab\S*token=(\w+)", said)):
        line = server.stdout.readline()
        assert line, said
        said += line
    host, port = found[1].removeprefix("http://").split(":")
    with socket.socket() as tried:  # it tells the address before it listens there
        wait_until(lambda: tried.connect_ex((host, int(port))) == 0)
    yield Lab(found[1], found[2], folder)
    everything += everything[0].children(recursive=True)
    server.terminate()
    said += server.communicate(timeout=GIVE_UP_MS / 1000)[0]
    warned = [line for line in said.splitlines() if re.match(r"\[W |.*WARNING", line)]
    assert not [line for line in warned if "is not trusted" not in line]
    assert not psutil.wait_procs(everything, timeout=GIVE_UP_MS / 1000)[1]


@pytest.fixture(scope="module")
def opened(browser, lab):
    """Return a function that opens a notebook of the server, and awaits its kernel.

    The kernel is started first: JupyterLab asks for one where it finds none, and on a
    busy machine it opens a notebook before it knows which kernels there are.
    """
    contexts = []

    def opened(name):
        path = f"lessons/{name}.ipynb"
        session = {"path": path, "type": "notebook", "name": name}
        session["kernel"] = {"name": "python3"}
        sessions, by = f"{lab.address}/api/sessions", f"token {lab.token}"
        asked = Request(sessions, json.dumps(session).encode(), {"Authorization": by})
        urlopen(asked, timeout=GIVE_UP_MS / 1000).close()
        contexts.append(browser.new_context(viewport={"width": 1400, "height": 1000}))
        page, page.troubles = watched(contexts[-1])
        workspace = f"{lab.address}/lab/workspaces/{name}"
        page.goto(f"{workspace}/tree/{path}?token={lab.token}")
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        page.locator(".jp-KernelName", has_text="Python 3").wait_for()
        page.wait_for_function(f"() => {STATUS} === 'idle'")
        return page

    yield opened
    for context in contexts:
        context.close()


def run_all(page):
    """Run all cells; wait until they have run."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(RAN, timeout=5 * GIVE_UP_MS, polling=200)


def check_outputs(page):
    """Hold that no cell failed or warned, and that the console has nothing to say."""
    assert page.locator(ERROR).all_inner_texts() == []
    warned = page.locator(ERROR_TEXT)
    assert warned.all_inner_texts() == []
    # On a busy machine JupyterLab itself trips over a cell that is not drawn yet.
    assert [said for said in page.troubles if "sharedModel" not in said] == []


@pytest.fixture(scope="module")
def lesson(opened):
    """Open the lesson, and run all of its cells."""
    page = opened("10_ring_all_reduce")
    run_all(page)
    page.wait_for_function(
        "() => !!window.distlabTell"
    )  # the way to the kernel is open
    return page


def cell(page, words):
    """Return the code cell whose source has these words, scrolled into view."""
    found = page.locator(".jp-CodeCell").filter(
        has=page.locator(".jp-InputArea", has_text=words)
    )
    found.first.scroll_into_view_if_needed()
    return found.first


def test_no_cell_fails_and_the_console_has_nothing_to_say(lesson):
    check_outputs(lesson)
    assert lesson.locator(".jp-OutputArea-output .distlab-player").count() == 4


def test_a_learner_sees_nothing_of_an_instructors(lesson):
    menus = lesson.locator(".lm-MenuBar-itemLabel").all_inner_texts()
    assert "Kernel" in menus and "Nbgrader" not in menus
    assert lesson.get_by_text("Create Assignment").count() == 0
    assert lesson.get_by_text("Validate", exact=True).count() == 0


def test_a_result_is_told_once_the_prediction_is_made(lesson, lab):
    form = cell(lesson, "How many megabytes does rank 0 send?")
    outputs = cell(lesson, "guess_rank_0.compare").locator(".jp-OutputArea-output")
    result = outputs.last  # after those of a run's progress, if it took long
    assert "12" not in result.inner_text()
    form.locator("input").first.fill("8")
    form.locator("input").first.press("Enter")
    result.get_by_text("you said 8 MB").wait_for()
    assert "the formula says 12 MB" in result.inner_text()
    kept = lab.folder / "home" / ".distlab" / "guesses.json"
    wait_until(lambda: kept.exists() and "8.0" in kept.read_text())
    keep(cell(lesson, "guess_rank_0.compare"), "lesson-prediction")
    hear = "addEventListener('keydown', e => window.heard = e.isTrusted, true)"
    lesson.evaluate(hear)
    form.get_by_role("button", name="Change my guess").press("Control+s")
    assert lesson.evaluate("heard") is False  # the last is the one passed on
    saved = (
        lab.folder / "lessons" / "10_ring_all_reduce.ipynb"
    )  # and is seen tomorrow without a kernel
    wait_until(lambda: "You said 8 MB." in saved.read_text())


def position(player):
    return float(player.get_attribute("data-position"))


def plays(page, player):
    """Wait until the player has played a bit."""
    moved = "player => player.dataset.position % 1 > 0.05"
    page.wait_for_function(moved, arg=player.element_handle())


def test_the_player_plays_steps_scrubs_and_switches_views(lesson):
    shown = cell(lesson, "The ring, 40 numbers").locator(".distlab-player")
    for _ in range(3):
        shown.get_by_label("speed").click()  # to 0.25, the slowest
    assert shown.locator(".speed").text_content() == "0.25×"
    shown.locator(".play").click()
    plays(lesson, shown)
    shown.locator(".play").click()
    stopped = position(shown)
    lesson.evaluate(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
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
        keep(shown, f"lesson-{view}")


def test_the_players_keys_do_not_reach_the_notebook(lesson):
    shown = cell(lesson, "The ring, 40 numbers").locator(".distlab-player")
    cells = lesson.locator(".jp-Cell").count()
    shown.focus()
    for key in ("Home", *["ArrowRight"] * 2, *"abddxm", "End"):
        lesson.keyboard.press(key)
    assert position(shown) == 6
    assert lesson.locator(".jp-Cell").count() == cells
    lesson.keyboard.press(" ")
    plays(lesson, shown)
    lesson.keyboard.press(" ")


def test_side_by_side_names_the_step_where_a_wrong_ring_goes_wrong(lesson):
    shown = cell(lesson, "A ring that keeps adding").locator(".distlab-player")
    assert "First difference at step 4" in shown.locator(".differs").text_content()
    shown.get_by_role("button", name="go there").click()
    assert position(shown) == 4
    keep(shown, "lesson-side-by-side")


def test_a_card_opens_its_key_points_after_an_answer(lesson):
    cards = cell(lesson, "ask(10)").locator(".distlab-cards")
    card = cards.locator("section").first
    assert (
        not card.get_by_text("key points").last.is_enabled()
        or card.locator("li").first.is_hidden()
    )
    card.locator("textarea").fill("Six messages of a quarter of the tensor.")
    card.get_by_role("button").first.click()
    assert card.locator("li").first.is_visible()
    keep(card, "lesson-card")


def test_both_themes_are_legible(lesson):
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
    keep(shown, "lesson-dark")


def test_messages_wrap_between_words_with_formulas_and_no_bare_number(opened):
    page = opened("messages")
    run_all(page)
    page.locator(ERROR_TEXT, has_text="Deadlock").wait_for()
    shown = page.locator(".jp-OutputArea-output")
    pages = shown.locator("pre, p").filter(has_text=re.compile(r"\S"))
    breaks = pages.evaluate_all("all => all.map(e => getComputedStyle(e).wordBreak)")
    assert len(breaks) > 5 and set(breaks) == {"normal"}
    page.locator("mjx-container").nth(2).wait_for()  # the hint has three formulas
    assert "0 of 3 points" in page.locator(".jp-OutputArea-executeResult").inner_text()
    assert "0.0" not in shown.all_inner_texts()
    keep(page, "messages")


def until(page, words):
    """Wait until the panel says something."""
    shown = "document.querySelector('.distlab-cluster').innerText"
    page.wait_for_function(f"() => {shown}.includes({words!r})")


def test_the_panel_splits_kills_and_mends_while_clients_ask(opened):
    page = opened("panel")
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    panel = page.locator(".distlab-cluster").first
    panel.wait_for()
    until(page, "nodes 0 1 2: ")
    rates = (
        "[...document.querySelectorAll('.distlab-cluster svg text')]"
        ".filter(text => /^[1-9]\\d* ok.s$/.test(text.textContent)).length"
    )
    page.wait_for_function(f"() => {rates} === 3")  # each node's clients are answered
    keep(panel, "cluster-whole")
    panel.get_by_role("button", name="partition", exact=True).click()
    until(page, "cut off from 1, 2")
    links = panel.locator("svg path.cut")
    page.wait_for_function(
        "() => document.querySelectorAll('.distlab-cluster svg path.cut').length === 2"
    )
    assert links.count() == 2  # node 0 from nodes 1 and 2
    until(page, "nodes 1 2: ")
    panel.get_by_title("kill node 2").focus()
    page.keyboard.press("Enter")  # as without a mouse; the notebook does not hear it
    until(page, "killed")
    until(page, "restart")
    # two on the links, one on the node
    crosses = "document.querySelectorAll('.distlab-cluster svg .cross').length"
    page.wait_for_function(f"() => {crosses} === 3")
    keep(panel, "cluster-broken")
    panel.get_by_title("restart node 2").click()
    panel.get_by_role("button", name="heal", exact=True).click()
    until(page, "nodes 0 1 2: ")
    page.wait_for_function(
        "() => !/killed|cut off/.test("
        "document.querySelector('.distlab-cluster').innerText)"
    )
    assert page.locator(".jp-CodeCell").count() >= 2
    page.locator(".jp-CodeCell .cm-content").nth(1).click()
    page.keyboard.press("Shift+Enter")
    until(page, "The cluster has ended.")
    keep(panel, "cluster-ended")


def test_the_next_step_is_picked_by_keys_that_the_notebook_does_not_hear(opened):
    page = opened("steps")
    page.locator(".jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Shift+Enter")
    steps = page.locator(".distlab-steps").first
    steps.get_by_role("button", name="client 0 asks node 0: go").focus()
    for taken in ("client 0 asks", "node 1 gets 'ask'", "node 2 gets 'ask'"):
        page.keyboard.press("Enter")
        steps.get_by_role("status").get_by_text(taken).wait_for()
        focused = page.locator(".distlab-steps button:focus")
        focused.wait_for()
    page.keyboard.press("x")
    assert focused.count() == 1 and page.locator(".jp-CodeCell").count() == 2
    keep(steps, "steps")


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_the_whole_lesson_runs_and_the_console_has_nothing_to_say(opened):
    page = opened("whole")
    run_all(page)
    check_outputs(page)
