"""What never ran, or ended its process, has no line: the verdict says what there is."""

import os

import pytest

from distlab.grading import AllReduceSums, BestWorldSize, SharedWork


def too_few(comm):
    pass


def too_many(comm, tensor, root):
    pass


def calls_another_wrongly(comm, tensor):
    too_few(comm, tensor)


def leaves(comm, tensor):
    os._exit(3)


def kills_itself(comm, tensor):
    os.kill(os.getpid(), 9)


@pytest.mark.parametrize(
    ("function", "found", "hint"),
    [
        (too_few, "too_few(comm) is called with 2 arguments, and does not", "handed"),
        (too_many, "does not take that: missing a required argument: 'root'", "handed"),
        (calls_another_wrongly, "in calls_another_wrongly", "the rank and the line"),
        (leaves, "left with exit status 3 before its function returned", "os._exit"),
        (kills_itself, "was killed by SIGKILL, by itself, from outside", "os.kill"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_said_is_in_the_message(function, found, hint):
    verdict = AllReduceSums(function, 2, 6).judge()
    assert verdict.outcome == "fail"
    assert found in verdict.found and hint in verdict.hint


def test_a_generator_is_named_and_return_is_said():
    def shares(comm, tasks, work):
        yield sum(map(work, tasks))

    def best(serial_s, parallel_s, message_s, most):
        yield 1, 1.0

    for check in (SharedWork(shares, 2, "abc"), BestWorldSize(best, 2, 100, 0.5, 64)):
        verdict = check.judge()
        name = check.function.__name__
        assert f"{name} made a generator, since there is a yield" in verdict.found
        assert "write return" in verdict.found and "yield" in verdict.hint
