"""Exercise 14: hints that no variant of it meets, and schedules at their limits."""

import pytest

from distlab.checks import pipelines as checks
from distlab.checks.kit.grading import judge
from distlab.train import pipeline


def rows_of(schedule):
    return [[tuple(work[:2]) for work in works] for works in schedule.stages]


SIZES = [(4, 8), (1, 1), (2, 1), (4, 3), (5, 11)]
ROWS = {size: rows_of(pipeline.one_f_one_b(*size)) for size in SIZES}
H1 = rows_of(pipeline.zero_bubble_h1(4, 12))


def one_f_one_b(stages, microbatches):
    return ROWS[stages, microbatches]


def play(comm, works, stage):
    before, after = comm.rank - 1, comm.rank + 1
    sent = []
    for kind, m in works:
        if kind == "W":
            stage.weights(m)
            continue
        do, source, target = stage.forward, before, after
        if kind == "B":
            do, source, target = stage.backward, after, before
        known = 0 <= source < comm.world_size
        made = do(m, comm.recv(stage.room(), source) if known else None)
        if 0 <= target < comm.world_size:
            sent.append(comm.isend(made, target))
    for request in sent:
        request.wait()


def dawdles(comm, works, stage):
    """Does something else for a while before each work."""
    for _ in works:
        with comm.work("else", seconds=checks.SLOT / 5):
            pass
    play(comm, works, stage)


def says_hello(comm, works, stage):
    if comm.rank == 0:
        comm.send(stage.room(), 1)
    elif comm.rank == 1:
        comm.recv(stage.room(), 0)
    play(comm, works, stage)


def lacks_one(stages, microbatches):
    return [row[:-1] for row in one_f_one_b(stages, microbatches)]


def backward_first(stages, microbatches):
    return [row[::-1] for row in one_f_one_b(stages, microbatches)]


def swapped(stages, microbatches):
    rows = one_f_one_b(stages, microbatches)
    rows[0] = [("F", 0), ("B", 0)] + [w for w in rows[0] if w[1]]
    rows[1] = [w for w in rows[1] if w[1]] + [("F", 0), ("B", 0)]
    return rows


def nothing(stages, microbatches):
    return None


FOUND = {
    (lacks_one, play): ("lacks the backward of", "Which loop ends too early"),
    (backward_first, play): ("before", "comes before its B"),
    (swapped, play): ("deadlock", "Follow microbatch 0"),
    (nothing, play): ("It returned None", "one list for each stage"),
    (one_f_one_b, says_hello): ("They sent 49 messages; 48", "One message for each F"),
    (one_f_one_b, dawdles): ("on the virtual clock", "waits where it need not"),
}


@pytest.mark.parametrize("answer", FOUND, ids=lambda answer: answer[0].__name__)
def test_what_is_wrong_with_a_schedule_or_an_engine_is_told(answer):
    found, hint = FOUND[answer]
    verdict = judge(checks.one_f_one_b, answer, (4, 8))
    assert verdict.outcome == "fail" and found in verdict.found
    assert hint in " ".join(verdict.hints)


def test_a_schedule_without_w_is_told_so_in_step_three():
    verdict = judge(checks.smaller_bubble, (one_f_one_b, play), (4, 8, 1, 1, 1))
    assert "There is no W" in verdict.found and "W may come later" in verdict.hints[0]


def test_schedules_of_the_library_pass_whatever_their_size():
    for size in SIZES:
        assert judge(checks.one_f_one_b, (one_f_one_b, play), size).outcome == "pass"
    answer, case = (lambda stages, microbatches: H1, play), (4, 12, 10.4, 10.2, 7.7)
    assert judge(checks.smaller_bubble, answer, case).outcome == "pass"


def test_of_an_ideal_schedule_only_the_bubble_and_the_first_difference_are_told():
    plans = pipeline.gpipe(4, 8), pipeline.zero_bubble_h1(4, 8)
    ideal, difference = checks.beside_ideal(*plans).splitlines()
    assert ideal == "Ideal: 8 microbatches; bubble 11 % of 4 stages x 27 slots."
    words = "forward 4 in yours, backward 0 in the ideal."
    assert difference == f"First difference, on stage 0: {words}"
