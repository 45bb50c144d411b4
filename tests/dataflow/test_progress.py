"""A long job says how far it is, where a person sees it, and nowhere else."""

import os
import pty
import subprocess
import sys

# One worker: every task that is done is seen.
JOB = """
from distlab.calls import progress
from distlab.dataflow import MapReduce
progress._AFTER_S, progress._EVERY_S = 0, 0

output = MapReduce(lambda line: [(line, 1)], lambda key, values: 1).run(
    ["a", "b", "c", "d", "e", "f"], split_bytes=2, workers=1
)
assert len(output) == 6
"""


def in_a_terminal(code):
    """Return what a program writes to a terminal."""
    terminal, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=theirs)
    os.close(theirs)
    written = b""
    try:
        while more := os.read(terminal, 4096):
            written += more
    except OSError:
        pass  # what a terminal gives when its last program has ended
    os.close(terminal)
    assert process.wait() == 0
    return written.decode()


def test_a_long_job_shows_one_line_in_a_terminal_and_it_is_gone_in_the_end():
    written = in_a_terminal(JOB)
    assert "4 of 6 maps done, 0 of 2 reduces done" in written
    assert "\n" not in written
    assert written.endswith("\r\x1b[K\r")


SHORT = """
from types import SimpleNamespace
from distlab.calls import progress
progress._AFTER_S, progress._EVERY_S, progress._PAUSE_S = 1.0, 0, 0.5
now_s = 0
progress.time = SimpleNamespace(monotonic=lambda: now_s)
for number in range({number}):
    with progress.Progress() as short:
        now_s += 0.1
        short.show(lambda: f"at {{number}}")
    now_s += {pause_s}
"""


def test_short_waits_in_a_row_show_their_line_and_those_far_apart_do_not():
    assert "at 19" in in_a_terminal(SHORT.format(number=20, pause_s=0))
    assert in_a_terminal(SHORT.format(number=4, pause_s=0.6)) == ""


def test_a_pipe_gets_nothing():
    done = subprocess.run([sys.executable, "-c", JOB], capture_output=True)
    assert (done.stdout, done.stderr) == (b"", b"")


NOTEBOOK = """
from distlab.optional_imports import leave_out_grammars
leave_out_grammars()
import nbformat, sys
from nbclient import NotebookClient

class Client(NotebookClient):
    def process_message(self, message, *rest):
        print(message["content"].get("data", {}).get("text/plain"))
        return super().process_message(message, *rest)

cells = [nbformat.v4.new_code_cell(code) for code in sys.argv[1:]]
Client(nbformat.v4.new_notebook(cells=cells), timeout=60).execute()
for cell in cells:
    for output in cell.outputs:
        print("left:", output.output_type, output.get("data"))
"""


READER = "get_ipython().kernel._allow_stdin = True\n"


def left_in_a_notebook(*cells):
    """Return what cells have shown, and what is left of that."""
    command = [sys.executable, "-c", NOTEBOOK, *cells]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    return done.stdout, [line for line in lines if line.startswith("left:")]


def test_a_notebook_has_one_display_that_is_empty_in_the_end():
    shown, left = left_in_a_notebook(READER + JOB)
    assert "4 of 6 maps done, 0 of 2 reduces done" in shown
    assert left == ["left: display_data {'text/plain': ''}"]


def test_short_waits_in_a_row_share_one_display_and_the_next_cell_has_none():
    row, few = (SHORT.format(number=number, pause_s=0) for number in (20, 2))
    shown, left = left_in_a_notebook(READER + row, few)
    assert "at 19" in shown
    assert left == ["left: display_data {'text/plain': ''}"]


def test_a_notebook_without_a_reader_gets_nothing():
    shown, left = left_in_a_notebook(JOB)
    assert ("maps done" in shown, left) == (False, [])


WITHIN = """
from distlab.calls import progress
progress._AFTER_S, progress._EVERY_S = 0, 0
with progress.Progress("outside"), progress.Progress() as inner:
    inner.show(lambda: "inside")
"""


def test_progress_within_progress_shares_its_line():
    written = in_a_terminal(WITHIN)
    assert "outside, inside (0 s)" in written
    assert written.endswith("\r\x1b[K\r")
