"""What a kernel of a person leaves in the record, and what others do not."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from jupyter_core.utils import ensure_event_loop

from distlab.learner.progress.notebook_recording import NotebookWatch
from distlab.learner.progress.record import Record

RUN = "from nbclient.cli import main; main()"
GUESS = """from distlab import predict
guess = predict("How many?", unit="MB")
guess.keep(7)"""
GRADE = """from distlab.checks import grade
from distlab.checks.kit import Wrong, check
@check("always")
def fine(function):
    if "{}" == "fail":
        raise Wrong("no")
grade(3, fine, None, [()])"""


class Person:
    """A kernel as JupyterLab's server starts it, and a reader who runs cells in it."""

    def __init__(self, notebook, **environment):
        self.manager = KernelManager(kernel_name="python3")
        named = {"JPY_SESSION_NAME": str(notebook), **environment}
        self.manager.start_kernel(env=os.environ | named)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def runs(self, cell, code, allow_stdin=True):
        content = {"code": code, "silent": False, "store_history": True}
        content |= {"user_expressions": {}, "allow_stdin": allow_stdin}
        message = self.client.session.msg(
            "execute_request", content | {"stop_on_error": False}
        )
        message["metadata"] = {"cellId": cell}
        self.client.shell_channel.send(message)
        reply = self.client._recv_reply(message["header"]["msg_id"], timeout=90)
        return reply["content"]["status"]

    def leaves(self):
        if not self.manager.has_kernel:
            return
        self.client.stop_channels()
        self.manager.shutdown_kernel()
        self.manager.cleanup_resources()


@pytest.fixture(scope="module", autouse=True)
def event_loop():
    """The loop that jupyter_client otherwise makes with the first kernel, and keeps."""
    loop = ensure_event_loop()
    yield
    loop.close()


@pytest.fixture
def person(tmp_path, monkeypatch):
    """Return a function that opens a notebook; all are closed at the end."""
    monkeypatch.setenv("DISTLAB_HOME", str(tmp_path / "home"))
    opened = []

    def opens(path, **environment):
        opened.append(Person(path, **environment))
        return opened[-1]

    yield opens
    for each in opened:
        each.leaves()


def held(tmp_path):
    path = tmp_path / "home" / "progress.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_cells_and_guesses_of_a_lesson_are_recorded(person, tmp_path):
    reader = person(tmp_path / "lessons" / "10_ring.ipynb")
    assert reader.runs("imports", GUESS) == "ok"
    assert reader.runs("raises", "1 / 0") == "error"
    assert reader.runs("compared", "guess.compare(7.2)") == "ok"
    reader.leaves()
    lesson = held(tmp_path)["lessons"]["10_ring"]
    assert lesson["cells"] == ["imports", "compared"]
    assert lesson["predictions"] == {"How many?": {"said": "7 MB", "outcome": "near"}}
    assert lesson["path"].endswith("10_ring.ipynb") and lesson["last"]


def test_points_tries_and_hints_of_an_exercise_are_recorded(person, tmp_path):
    reader = person(tmp_path / "exercises" / "10_ring" / "10_ring.ipynb")
    reader.runs("step-one-check", GRADE.format("fail"))
    reader.runs("more", "def hint(): pass\nhint()")
    reader.runs("step-one-check", "grade(3, nothing_of_the_kind)")
    reader.runs("step-one-check", GRADE.format("pass"))
    reader.runs("step-two-check", GRADE.format("fail"))
    reader.leaves()
    steps = held(tmp_path)["exercises"]["10_ring"]["steps"]
    one = {"of": 3, "last": 3.0, "best": 3.0, "attempts": 3, "hints": 1}
    assert steps["step-one-check"] == one
    assert steps["step-two-check"]["best"] == 0.0
    assert held(tmp_path)["lessons"] == {}


def test_an_exercise_is_known_by_its_cells_wherever_it_lies(person, tmp_path):
    cell = nbformat.v4.new_code_cell("2", metadata={"nbgrader": {"grade": True}})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "10_ring.ipynb")
    reader = person(tmp_path / "10_ring.ipynb")
    reader.runs("imports", "import distlab")
    reader.runs("step-one-check", GRADE.format("pass"))
    reader.leaves()
    assert held(tmp_path)["exercises"]["10_ring"]["steps"]["step-one-check"]["of"] == 3
    assert held(tmp_path)["lessons"] == {}


@pytest.mark.parametrize(
    "environment", [{"DISTLAB_PROGRESS": "off"}, {"NBGRADER_EXECUTION": "autograde"}]
)
def test_nothing_is_recorded_where_it_is_not_wanted(person, tmp_path, environment):
    person(tmp_path / "10_ring.ipynb", **environment).runs("imports", GUESS)
    assert held(tmp_path) is None


def test_nothing_is_recorded_where_nobody_reads(tmp_path):
    cell = nbformat.v4.new_code_cell(GUESS)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "10_ring.ipynb")
    named = {"JPY_SESSION_NAME": str(tmp_path / "10_ring.ipynb")}
    subprocess.run(
        [sys.executable, "-c", RUN, tmp_path / "10_ring.ipynb"],
        env=os.environ | named | {"DISTLAB_HOME": str(tmp_path / "home")},
        check=True,
    )
    assert (tmp_path / "home" / "guesses.json").exists() and held(tmp_path) is None


def test_a_record_that_cannot_be_written_fails_no_cell(person, tmp_path):
    (tmp_path / "home").write_text("a file where the folder should be")
    reader = person(tmp_path / "10_ring.ipynb")
    assert reader.runs("imports", "from distlab import run") == "ok"
    assert reader.runs("two", "2") == "ok"


class Info:
    cell_id, raw_cell = "step-one-check", GRADE.format("pass")


class Result:
    info, result, success = Info(), 3.0, True


def test_a_cell_does_not_wait_while_another_kernel_writes(tmp_path):
    record = Record(tmp_path / "p.json")
    watch = NotebookWatch(None, tmp_path / "10_ring.ipynb", record)
    with (tmp_path / "p.lock").open("a") as other_kernel:
        fcntl.flock(other_kernel, fcntl.LOCK_EX)
        for _ in range(50):
            watch.after_cell(Result())
    watch.close()
    steps = record.read()["lessons"]["10_ring"]["steps"]
    assert steps["step-one-check"]["attempts"] == 50


WRITER = """
import sys
from pathlib import Path
from distlab.learner.progress.record import Record
record = Record(Path(sys.argv[1]))
for n in range(int(sys.argv[3])):
    record.update(lambda held: held["lessons"].setdefault(f"{sys.argv[2]}-{n}", {}))
"""


def writers(path, names, times):
    return [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(times)])
        for name in names
    ]


def test_kernels_that_write_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "home" / "progress.json"
    assert [each.wait() for each in writers(path, "abcd", 25)] == [0] * 4
    assert len(Record(path).read()["lessons"]) == 100


def test_a_kernel_that_is_killed_leaves_a_whole_file(tmp_path):
    path = tmp_path / "home" / "progress.json"
    for round_ in range(5):
        (writer,) = writers(path, [str(round_)], 10_000)
        while not path.exists() or f"{round_}-" not in path.read_text():
            time.sleep(0.002)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert Record(path).read()["notes"] == []


@pytest.mark.parametrize(
    "text", ["", '{"lessons":', "[]", '{"lessons": {"a": {"cells": 3}}}', "\xff"]
)
def test_a_damaged_file_is_put_aside_and_said(tmp_path, text):
    path = tmp_path / "progress.json"
    path.write_bytes(text.encode("latin-1"))
    assert "was damaged" in Record(path).read()["notes"][0]
    aside = tmp_path / "progress.damaged1.json"
    assert aside.read_bytes() == text.encode("latin-1")
    Record(path).update(lambda held: None)
    path.write_text("no")
    Record(path).read()
    assert (tmp_path / "progress.damaged2.json").read_text() == "no"
