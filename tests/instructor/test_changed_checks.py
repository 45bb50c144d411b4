"""What a submission's cells change in checks, and in what these use, does not count."""

import json
from pathlib import Path

import pytest

from distlab.checks import fault_tolerance as checks
from distlab.checks.kit import answer_variants, check_proof
from distlab.checks.kit.grading import judge
from distlab.sandbox import Named, Sandbox

pytestmark = pytest.mark.timeout(120)

FREE_DISK = """import builtins, copy, pickle
from distlab.checks import fault_tolerance as checks
import distlab.simulated.comm as simulated
checks.SYNC_S = 0.0
checks.ObservedDisk.sync = lambda self, name: None
checks.range = lambda *ends: []
object.__setattr__(checks.FABRIC, "link", None)
simulated._seconds = lambda seconds: 0.0
simulated.max = lambda now, end: now
builtins.max = lambda *values, **how: values[0]
"""


def test_what_cells_change_in_a_check_does_not_change_its_verdict():
    folder = Path(__file__).parents[2] / "solutions" / "17_fault_tolerance"
    notebook = json.loads((folder / f"{folder.name}.ipynb").read_text())
    answers, *_ = check_proof.notebook_parts(notebook["cells"])
    variants = answer_variants.read_variants(folder / "variants", answers)
    waits = next(v for v in variants if v.name == "wrong_waits_for_the_disk")
    with Sandbox(withheld=checks.WITHOUT, preload=[checks.__name__]) as box:
        submission = box.submission()
        for number, cell in enumerate([FREE_DISK, *waits.cells.values()]):
            assert submission.run(cell, number, 60) == []
        with submission.checks():
            verdict = judge(checks.efficient, Named("train_in_background"), (3, 12, 3))
        submission.close()
    assert (verdict.outcome, "virtual clock" in verdict.found) == ("fail", True), (
        verdict
    )
