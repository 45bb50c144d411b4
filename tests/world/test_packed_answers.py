"""Checks judge what is packed as they judge functions, and never open it themselves."""

import json
import re
from pathlib import Path

import cloudpickle
import pytest

from distlab.calls.travel import Packed
from distlab.grading import (
    AlwaysAnswers,
    Classified,
    ClustersFound,
    HealedCart,
    InvertedIndex,
    JoinedInPlace,
    Linearizable,
    LinearizableWithUnknown,
    MapSideJoin,
    MeanLengths,
    NeverWrong,
    ReducedByKey,
    SampledLines,
)

SOLUTIONS = Path(__file__).parents[2] / "solutions"


def notebook(stem):
    """Return the names that the cells of a solution define, its checks aside."""
    cells = json.loads((SOLUTIONS / stem / f"{stem}.ipynb").read_text())["cells"]
    names = {"__name__": "__main__"}
    for cell in cells:
        marks = cell["metadata"].get("nbgrader", {})
        source = "".join(cell["source"])
        given = marks.get("locked") or marks.get("solution")
        if given and not marks.get("grade") and not source.startswith("show."):
            for start in ("context = ", "lines = context"):
                source = source.partition(start)[0]
            exec(source, names)
    return names


def packed(thing, name="yours"):
    return Packed(cloudpickle.dumps(thing), name)


CHECKS = {
    "02_cap": [
        ("Refusing", lambda make: NeverWrong(make, "nothing is broken")),
        ("Answering", lambda make: AlwaysAnswers(make, "at once")),
        ("Cart", lambda make: HealedCart(make, "a split")),
    ],
    "03_consistency_models": [
        ("linearizable", lambda function: Linearizable(function, "longer")),
        (
            "fast_linearizable",
            lambda function: LinearizableWithUnknown(function, "sixty"),
        ),
        ("answers", lambda answers: Classified(answers, "E")),
    ],
    "06_mapreduce": [
        (("index_mapper", "index_reducer"), lambda *f: InvertedIndex(f, "one file")),
        (
            ("length_mapper", "length_reducer", "length_combiner", "make_partitioner"),
            lambda *f: MeanLengths(f, [10, 60, 10, 90], 3),
        ),
        (
            ("sample_mapper", "sample_reducer", "sample_combiner"),
            lambda *f: SampledLines(f, 5, "few lines"),
        ),
    ],
    "07_rdds_and_spark": [
        ("reduce_by_key", lambda function: ReducedByKey(function, "one key")),
        ("reduce_by_key", lambda function: JoinedInPlace(function, "one key")),
        ("join_small", lambda function: MapSideJoin(function, "an empty table")),
        ("kmeans", lambda function: ClustersFound(function, "one cluster")),
    ],
}
ALL = [(stem, names, check) for stem, each in CHECKS.items() for names, check in each]
IDS = [f"{stem[:2]} {names}" for stem, names, _ in ALL]


class OnOpening:
    """Writes a file when it is unpickled, wherever that is."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (Path(self.path), "opened")


def each(names):
    return names if isinstance(names, tuple) else (names,)


@pytest.mark.parametrize("stem, names, check", ALL, ids=IDS)
def test_what_is_packed_gets_the_verdict_of_what_is_not(stem, names, check):
    things = [notebook(stem)[name] for name in each(names)]
    verdict = check(*map(packed, things)).judge()
    assert verdict.outcome == "pass", verdict


def not_it(*_):
    return 1 / 0


@pytest.mark.parametrize("stem, names, check", ALL, ids=IDS)
def test_a_wrong_one_that_is_packed_meets_the_same_hint(stem, names, check):
    wrong = [not_it] * len(each(names))
    here, there = check(*wrong).judge(), check(*map(packed, wrong)).judge()
    assert here.outcome == there.outcome == "fail", there
    assert here.hint == there.hint
    digits = re.compile(r"\d+(\.\d+)?")
    assert digits.sub("0", here.found) == digits.sub("0", there.found)


@pytest.mark.parametrize("stem, names, check", ALL, ids=IDS)
def test_what_is_packed_is_opened_only_on_trial_and_there_it_writes_nothing(
    stem, names, check, tmp_path
):
    path = tmp_path / "opened"
    verdict = check(*[packed(OnOpening(path)) for _ in each(names)]).judge()
    assert verdict.outcome == "fail", verdict
    assert not path.exists()
    if names != "answers":
        assert "(a side effect)" in verdict.found, verdict
