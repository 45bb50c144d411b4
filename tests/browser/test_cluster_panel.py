"""A cluster's panel in JupyterLab, in a real browser, while clients ask.

Screenshots are kept in the folder that DISTLAB_SCREENSHOTS names, if it names one.
"""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
from pages import accept_dialogs
from stores import wait_until

TooLate = pytest.importorskip("playwright.sync_api").TimeoutError

pytestmark = pytest.mark.timeout(400)  # it opens JupyterLab

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


@pytest.fixture
def page(browser, tmp_path):
    """Serve a notebook with a cluster's panel, open it, and run it."""
    (tmp_path / "home").mkdir()
    cell = nbformat.v4.new_code_cell(STORE, id="panel")
    end = nbformat.v4.new_code_cell("cluster.close()", id="end")
    path = tmp_path / "panel.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = nbformat.v4.new_notebook(cells=[cell, end], metadata=kernel)
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "distlab", "lab", str(path), "--no-browser"]
    environment = os.environ | {"HOME": str(tmp_path / "home")}
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    server = subprocess.Popen(command, env=environment, cwd=tmp_path, **how)
    everything = [psutil.Process(server.pid)]
    try:
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        open_and_run(page, address(server))
        yield page
        page.close()
    finally:
        everything += everything[0].children(recursive=True)
        server.terminate()
        server.communicate(timeout=30)
    assert not psutil.wait_procs(everything, timeout=10)[1]


def address(server):
    """Return where a server says that it is, once it takes connections there."""
    said = ""
    while not (found := re.search(r"http://127\S+token=\w+", said)):
        line = server.stdout.readline()
        assert line, said
        said += line
    where = re.search(r"//(.*):(\d+)", found[0])
    with socket.socket() as tried:
        wait_until(lambda: tried.connect_ex((where[1], int(where[2]))) == 0)
    return found[0]


def open_and_run(page, url):
    """Run the first cell, and again if the notebook was not ready yet to hear it."""
    page.set_default_timeout(90_000)
    page.goto(url)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    indicator = ".jp-Notebook-ExecutionIndicator[data-status='idle']"
    page.wait_for_selector(indicator)
    accept_dialogs(page)
    for _ in range(5):
        page.locator(".jp-CodeCell .cm-content").first.click()
        page.keyboard.press("Shift+Enter")
        try:
            return page.wait_for_selector(".distlab-cluster-live", timeout=30_000)
        except TooLate:
            continue
    raise AssertionError("JupyterLab did not run the cell")


def until(page, words):
    """Wait until the panel says something."""
    shown = "document.querySelector('.distlab-cluster').innerText"
    page.wait_for_function(f"() => {shown}.includes({words!r})", timeout=60_000)


def test_the_panel_splits_kills_and_mends_while_clients_ask(page, tmp_path):
    folder = Path(os.environ.get("DISTLAB_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    panel = page.locator(".distlab-cluster").first

    def keep(name):
        panel.screenshot(path=folder / f"cluster-{name}.png")

    until(page, "nodes 0 1 2: ")
    rates = (
        "[...document.querySelectorAll('.distlab-cluster svg text')]"
        ".filter(text => /^[1-9]\\d* ok.s$/.test(text.textContent)).length"
    )
    page.wait_for_function(f"() => {rates} === 3")  # each node's clients are answered
    keep("whole")
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
    keep("broken")
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
    keep("ended")
