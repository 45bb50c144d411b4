"""A check whose time is over says whether that was the learner's or the machine's."""

import time

from distlab.grading import AllReduceSums


class OpensSlowly:
    """A function that a busy machine has not opened when the time is over."""

    def __reduce__(self):
        return time.sleep, (5,)


def endless(comm, tensor):
    while True:
        pass


def judged_soon(function):
    check = AllReduceSums(function, 2, 4)
    check._timeout_s = 1
    return check.judge()


def test_a_loop_without_end_fails_and_nobody_is_told_to_wait_longer():
    verdict = judged_soon(endless)
    assert verdict.outcome == "fail" and "never ends" in verdict.hint
    assert "did not return within 1 s" in verdict.found
    assert "while True" in verdict.found or "pass" in verdict.found
    assert "timeout_s" not in verdict.found and "\n\n\n" not in verdict.found


def test_ranks_that_had_not_begun_the_function_prove_nothing():
    verdict = judged_soon(OpensSlowly())
    assert verdict.outcome == "inconclusive" and not verdict.hint
    assert "run this cell again" in verdict.found and "timeout" not in verdict.found


def test_threads_that_wait_for_each_other_are_no_loop():
    def all_receive(comm, tensor):
        import threading

        stays = threading.Event()
        threading.Thread(target=stays.wait, daemon=True).start()
        comm.recv(tensor, 1 - comm.rank)

    verdict = judged_soon(all_receive)
    assert verdict.outcome == "fail" and "Everybody waits." in verdict.hint
    assert "waited in recv from rank 1" in verdict.found
