"""Wrong checks of histories each meet the hint that fits, and nothing gets past them.

The exercise's own variants are graded as notebooks; here are more, and quicker.
"""

import os
import random
import sys
import time
import types

import cloudpickle
import numpy as np
import pytest

from distlab.grading import Linearizable, LinearizableWithUnknown
from distlab.grading.agreement import linearizable as the_check
from distlab.grading.agreement import orders


def verdict_on(function, case="short", kind=Linearizable):
    return kind(function, case).judge()


def right(operations):
    def search(left, value):
        if not left:
            return True
        for one in left:
            if any(other.end < one.start for other in left):
                continue
            if one.op == "write" or one.result == value:
                rest = [other for other in left if other is not one]
                if search(rest, one.value if one.op == "write" else value):
                    return True
        return False

    return search(operations, None)


def in_order_of(operations, key):
    value = None
    for one in sorted(operations, key=key):
        if one.op == "write":
            value = one.value
        elif one.result != value:
            return False
    return True


# ---- ideas that are not it -------------------------------------------------------


def not_written(operations):
    raise NotImplementedError("write this step")


def by_starts(operations):
    return in_order_of(operations, lambda one: one.start)


def by_ends(operations):
    return in_order_of(operations, lambda one: one.end)


def writes_at_their_start(operations):
    return in_order_of(operations, lambda o: o.start if o.op == "write" else o.end)


def writes_at_their_end(operations):
    return in_order_of(operations, lambda o: o.end if o.op == "write" else o.start)


def only_what_had_ended(operations):
    for read in operations:
        past = [o for o in operations if o.op == "write" and o.end < read.start]
        last = max(past, key=lambda one: one.end, default=None)
        if read.op == "read" and read.result != (last and last.value):
            return False
    return True


def never_none(operations):
    return right(operations) and all(o.value or o.result for o in operations)


def none_is_fine(operations):
    return right([one for one in operations if one.op == "write" or one.result])


def fails_on_nothing(operations):
    first = min(one.end for one in operations)
    return first > 0 and right(operations)


def false_for_nothing(operations):
    return bool(operations) and right(operations)


def a_value_is_a_write(operations):
    write_of = {one.value: one for one in operations if one.op == "write"}
    kept = [one for one in operations if one.op == "read"]
    return right(kept + list(write_of.values()))


def reads_first(operations):
    left, value = list(operations), None
    while left:
        first = min(one.end for one in left)
        able = [one for one in left if one.start <= first]
        fits = [one for one in able if one.op == "read" and one.result == value]
        fits += [one for one in able if one.op == "write"]
        if not fits:
            return False
        left.remove(fits[0])
        value = fits[0].value if fits[0].op == "write" else value
    return True


def two_writes_deep(operations):
    return right(operations) or sum(one.op == "read" for one in operations) > 3


def falls_off(operations):
    if right(operations):
        return True


def with_a_typo(operations):
    return all(one.reslut is None for one in operations)


def for_ever_deeper(operations):
    return for_ever_deeper(operations)


def far_too_much(operations):
    return bool(bytearray(2**40))


def in_a_set_of_lists(operations):
    return {operations} and True


def of_two(operations, value):
    return True


IDEAS = [
    (not_written, "Nothing of your own"),
    (lambda operations: True, "one and the same answer"),
    (lambda operations: bool(operations) < 0, "one and the same answer"),
    (by_starts, "in the order of their starts"),
    (by_ends, "in the order of their ends"),
    (writes_at_their_start, "anywhere in between"),
    (writes_at_their_end, "anywhere in between"),
    (only_what_had_ended, "A write that overlaps the read"),
    (never_none, "the register holds None"),
    (none_is_fine, "the register holds None"),
    (fails_on_nothing, "without operations"),
    (false_for_nothing, "without operations"),
    (a_value_is_a_write, "Two writes here write the same value"),
    (reads_first, "take it back"),
    (two_writes_deep, "takes it for right"),
    (falls_off, "without a return"),
    (with_a_typo, "names the line"),
    (for_ever_deeper, "one step deeper"),
    (far_too_much, "more than 2 GB"),
    (in_a_set_of_lists, "a tuple or a frozenset"),
    (of_two, "called with one argument"),
    (None, "called with one argument"),
    (lambda operations: random.random() < 0.5, ""),
    (lambda operations: not any(one.op == "read" for one in operations), ""),
]


@pytest.mark.parametrize("function, hint", IDEAS)
def test_a_wrong_idea_meets_the_hint_that_fits(function, hint):
    verdict = verdict_on(function)
    assert verdict.outcome == "fail"
    assert hint in verdict.hint, verdict


def test_the_smallest_history_is_shown_beside_the_order_that_explains_it():
    assert verdict_on(by_starts).found.splitlines() == [
        "It returned False for this history:",
        "  time      0 2               5 8",
        "  client 1    ├ b read → None ┤",
        "  client 3  ├ a write 1 ────────┤",
        "This order explains it: b a, so it is linearizable.",
    ]


# ---- malice ----------------------------------------------------------------------


class Agreeable:
    def __eq__(self, other):
        return True

    def __bool__(self):
        return True


def for_ever(operations):
    while True:
        pass


def prints_for_ever(operations):
    while True:
        print("x" * 1000)
        sys.stderr.write("y" * 1000)


def ends_itself(operations):
    os._exit(0)


def forges(operations):
    line = b'{"value": true, "changed": false, "shown": "", "kind": "bool"}\n'
    for descriptor in range(3, 30):
        try:
            os.write(descriptor, line * 2000)
        except OSError:
            pass
    os._exit(0)


def asks_the_library(operations):
    from distlab.grading.agreement.orders import searched

    return searched(operations)


def asks_the_checkers(operations):
    return __import__("distlab.agree").agree.check_linearizable(operations)


def reads_the_source(operations):
    path = sys.modules["distlab"].__file__.replace("__init__", "grading/verdict")
    with open(path) as file:
        return bool(file.read())


def looks_up(operations):
    """Return the first truth value that any caller has, or that any object is."""
    frame = sys._getframe(1)
    while frame:
        for value in frame.f_locals.values():
            if type(value) is bool:
                return value
            if type(value) is list and value and type(value[0]) is bool:
                return value[0]
        frame = frame.f_back
    return True


def finds_the_check_loaded(operations):
    names = [n for n in sys.modules if n.startswith(("distlab.gra", "distlab.agr"))]
    return right(operations) if names else "nothing is here"


def by_value():
    """Return the check's own search, as code that travels whole."""
    cloudpickle.register_pickle_by_value(orders)
    return lambda operations: orders.searched(operations)


def own_copy_of_the_check():
    code = orders.searched.__code__
    return types.FunctionType(code, {"before": orders.before})


def keeps_a_file(operations):
    with open("/tmp/histories.txt", "a") as file:
        print(len(operations), file=file)
    return right(operations)


MALICE = [
    (lambda operations: 1, "nothing that only looks like it"),
    (lambda operations: Agreeable(), "nothing that only looks like it"),
    (lambda operations: (yield True), "nothing that only looks like it"),
    (for_ever, "loop that never ends"),
    (prints_for_ever, "loop that never ends"),
    (ends_itself, "gives none"),
    (lambda operations: sys.exit(), "gives none"),
    (lambda operations: os.abort(), "gives none"),
    (forges, ""),
    (lambda operations: os.fork() == 0, "needs no files"),
    (keeps_a_file, "needs no files"),
    (asks_the_library, "locked"),
    (asks_the_checkers, "locked"),
    (reads_the_source, "locked"),
    (own_copy_of_the_check(), "locked"),
    (looks_up, ""),
    (finds_the_check_loaded, "nothing that only looks like it"),
    (lambda operations: operations.clear() is None, "It is the caller's"),
]


@pytest.mark.parametrize("function, hint", MALICE)
def test_nothing_gets_past_the_check(function, hint, monkeypatch):
    monkeypatch.setattr(the_check, "_LEAST_S", 1)
    verdict = verdict_on(function)
    assert verdict.outcome == "fail"
    assert hint in verdict.hint, verdict


def test_code_of_the_check_that_travels_by_value_is_noticed():
    try:
        verdict = verdict_on(by_value())
    finally:
        cloudpickle.unregister_pickle_by_value(orders)
    assert verdict.outcome == "fail" and "locked" in verdict.hint


def test_one_that_waits_is_ended_and_decides_nothing(monkeypatch):
    monkeypatch.setattr(the_check, "_LEAST_S", 1)
    monkeypatch.setattr(the_check, "_TIMES", 1)
    began = time.monotonic()
    verdict = verdict_on(lambda operations: time.sleep(1000))
    assert verdict.outcome == "inconclusive"
    assert time.monotonic() - began < 60


def test_what_is_remembered_of_other_histories_is_noticed():
    seen = {}

    def by_length(operations):
        return seen.setdefault(len(operations), right(operations))

    verdict = verdict_on(by_length)
    assert verdict.outcome == "fail" and "not true of the next" in verdict.hint


TRIED = {((), None)}


def test_what_the_notebook_has_remembered_before_is_noticed():
    def with_memory(operations):
        def search(done):
            if (done, None) in TRIED:
                return False
            TRIED.add((done, None))
            return right(operations)

        return search(())

    verdict = verdict_on(with_memory)
    assert verdict.outcome == "fail" and "not true of the next" in verdict.hint


# ---- lost answers, and time ------------------------------------------------------


def known(operations):
    return [one for one in operations if one.outcome == "ok"]


def lost_writes(operations):
    return [o for o in operations if (o.op, o.outcome) == ("write", "unknown")]


def at_the_end(operations):
    return [
        one._replace(end=float("inf"), outcome="ok") for one in lost_writes(operations)
    ]


def before_its_start(operations):
    lost = [one._replace(start=float("-inf")) for one in at_the_end(operations)]
    return right(lost + known(operations))


def failed_are_done(operations):
    failed = [one for one in operations if one.outcome == "failed"]
    failed = [one for one in failed if one.op == "write"]
    return right(known(operations) + failed + at_the_end(operations))


def reads_return_none(operations):
    lost = [o for o in operations if o.op == "read" and o.outcome == "unknown"]
    lost = [one._replace(end=float("inf")) for one in lost]
    return right(known(operations) + lost + at_the_end(operations))


def gives_up(answer):
    """Return a search that says this when it has become tired."""

    def function(operations):
        steps = 0

        def search(left, value):
            nonlocal steps
            steps += 1
            if not left or steps > 400:
                return not left or answer
            first = min(one.end for one in left)
            return any(
                search(
                    [other for other in left if other is not one],
                    one.value if one.op == "write" else value,
                )
                for one in left
                if one.start <= first and (one.op == "write" or one.result == value)
            )

        kept = known(operations) + at_the_end(operations)
        return search(sorted(kept, key=lambda one: one.start), None)

    return function


LOST = [
    (right, "short", "its end is None"),
    (lambda operations: right(known(operations)), "short", "may have taken effect"),
    (before_its_start, "short", "before it was called"),
    (failed_are_done, "short", "no place in an order"),
    (reads_return_none, "short", "says nothing"),
    (gives_up(False), "sixty", "stops before it has looked everywhere"),
    (gives_up(True), "sixty", "stops before it has looked everywhere"),
]


@pytest.mark.parametrize("function, case, hint", LOST)
def test_a_wrong_idea_of_lost_answers_meets_the_hint_that_fits(function, case, hint):
    verdict = verdict_on(function, case, LinearizableWithUnknown)
    assert verdict.outcome == "fail"
    assert hint in verdict.hint, verdict


def test_a_right_answer_passes_on_histories_that_nobody_has_seen():
    assert Linearizable(right, "short", None).judge().outcome == "pass"
    assert Linearizable(right, "longer", None).judge().outcome == "pass"


def test_numpys_true_is_true():
    def compared(operations):
        return np.bool_(right(operations))

    assert Linearizable(compared, "short", None).judge().outcome == "pass"
