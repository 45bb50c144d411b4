"""What every check gets from the kit: verdicts on failures, pictures, kept ranks."""

import importlib
import os
import pkgutil
import signal

import pytest
import torch

from distlab import checks as exercises
from distlab import run
from distlab.checks import hint as say_more
from distlab.checks import ring_all_reduce as checks
from distlab.checks.kit.grading import Points, judge
from distlab.checks.kit.hints import COMMON, remember
from distlab.launch import Relaying, kept_ranks


def too_few(comm):
    pass


def makes_a_generator(comm, tensor, ring):
    yield tensor


def leaves(comm, tensor, ring):
    os._exit(3)


def endless(comm, tensor, ring):
    while True:
        pass


def returns_equal_to_all(comm, tensor, ring):
    torch.Tensor.tolist = lambda self: [type("Any", (float,), {})(1)] * len(self)


def calls_a_cell_with_an_error(comm, tensor, ring):
    raise NameError("'ring' is not defined: its cell ended early (SyntaxError: bad)")


def ends_what_forked_it(comm, tensor, ring):
    os.kill(os.getppid(), signal.SIGKILL)
    signal.pause()


@pytest.mark.parametrize(
    ("function", "found", "hint"),
    [
        (too_few, "too_few(comm) is called with 3 arguments", "did it have"),
        (makes_a_generator, "made a generator", "yield"),
        (leaves, "left with exit status 3", "os._exit"),
        (endless, "did not return within 2 s", "does that loop end"),
        (returns_equal_to_all, "returned", ""),
        (calls_a_cell_with_an_error, "SyntaxError", "Mend that cell first"),
    ],
)
def test_a_failure_is_told_with_its_hint(function, found, hint, monkeypatch):
    if function is endless:
        monkeypatch.setenv("DISTLAB_CHECK_SECONDS", "1")
        monkeypatch.setenv("DISTLAB_PATIENCE", "2")
    verdict = judge(checks.all_reduce, function, (2, 2, 6))
    assert verdict.outcome == "fail", verdict
    assert found in verdict.found and hint in " ".join(verdict.hints), verdict


def test_below_a_failed_check_is_the_learners_run_beside_the_ideal():
    def all_send_first(comm, tensor, ring):
        comm.send(tensor, ring[ring.index(comm.rank) - 1])

    both = judge(checks.all_reduce, all_send_first, (4, 4, 8)).picture.player
    assert both.stop == 1 and both.names == ("yours", "the library's")
    assert len(both.ideal.frames) == 2  # the library's goes no further either


def test_kept_ranks_serve_worlds_of_any_size_until_one_fails():
    def pids(size):
        return run(lambda comm: os.getpid(), size, relayed=Relaying(kept=True)).results

    with kept_ranks():
        three = pids(3)
        assert pids(2) == three[:2] and pids(5)[:3] == three
        judge(checks.all_reduce, too_few, (2, 2, 6))
        assert not set(pids(2)) & set(three)


def test_each_call_of_hint_says_the_next_level_once(capsys):
    remember(False, ["a nudge", "more", "nearly all"])
    for level in ("Hint 2 of 3: more", "Hint 3 of 3: nearly all", "That is all"):
        say_more()
        assert capsys.readouterr().out.strip().startswith(level)


def test_every_hint_has_a_second_level():
    names = [each.name for each in pkgutil.iter_modules(exercises.__path__)]
    modules = [importlib.import_module(f"{exercises.__name__}.{n}") for n in names]
    hints = [*COMMON, *(h for m in modules for h in getattr(m, "HINTS", ()))]
    assert len(hints) > 200
    assert not [hint.levels for hint in hints if len(set(hint.levels)) < 2]


def test_the_value_of_a_graded_cell_is_a_number_for_nbgrader_and_a_sentence_shown():
    formatters = pytest.importorskip("IPython").core.formatters.DisplayFormatter()
    value = Points(4.0)
    value.line = "4 of 4 points"
    shown, _ = formatters.format(value)
    assert shown["text/plain"] == "4.0" and ">4 of 4 points<" in shown["text/html"]


def test_who_ends_the_process_server_is_told_that_a_call_of_its_own_may_do_so():
    verdict = judge(checks.all_reduce, ends_what_forked_it, (2, 2, 6))
    assert verdict.outcome == "inconclusive" and "os.killpg" in verdict.found, verdict
