"""What a learner is told, word for word.

Each transcript is a function, how it is run, and what is printed. A line of three dots
stands for any lines, where what the other ranks were doing is a matter of luck.
"""

import linecache
import re
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import distlab
from distlab import DistlabError, Hang, Kill, Slow, run

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


def perform(code):
    """Run a transcript's code as a cell; return what it says."""
    linecache.cache["cell.py"] = (len(code), None, code.splitlines(True), "cell.py")
    names = {"run": run, "torch": torch, "dist": dist, "__name__": "__main__"}
    names |= {"Hang": Hang, "Kill": Kill, "Slow": Slow, "World": distlab.World}
    try:
        exec(compile(code, "cell.py", "exec"), names)
    except DistlabError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def as_pattern(expected):
    """Return a regular expression for the expected words."""
    lines = [
        "(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + "\n"
        for line in expected.splitlines()
    ]
    return "".join(lines)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_learner_is_told(path, monkeypatch):
    code, _, expected = path.read_text().partition("\n----\n")
    if "timeout_s" in code:
        monkeypatch.setenv("DISTLAB_PATIENCE", "1")
    said = perform(code + "\n")
    assert re.fullmatch(as_pattern(expected), said + "\n"), said


def test_a_transcript_with_another_word_would_be_noticed():
    code, _, expected = TRANSCRIPTS[0].read_text().partition("\n----\n")
    changed = expected.replace("rank", "node", 1)
    assert changed != expected
    assert not re.fullmatch(as_pattern(changed), perform(code + "\n") + "\n")
