"""Exercise 03: its oracle against brute force, and what its verdicts say."""

import brute
import pytest

from distlab.checks import consistency_models as checks
from distlab.checks.eight_histories import EIGHT_HISTORIES, classified
from distlab.checks.kit.grading import judge


def test_the_oracle_and_brute_force_agree_on_histories_of_all_kinds():
    histories = [checks._drawn(6, unknown) for unknown in (0, 0.2) for _ in range(400)]
    truths = [brute.is_linearizable(history, None) for history in histories]
    assert [checks._order(history) is not None for history in histories] == truths
    right = [h for h, truth in zip(histories, truths, strict=True) if truth]
    assert 200 < len(right) < 700 and any(map(checks._ties, right))
    assert {o.outcome for h in histories for o in h} == {"ok", "failed", "unknown"}
    assert checks._order(checks._hard(True)) and not checks._order(checks._hard(False))


def test_the_eight_histories_are_two_of_each_strong_model_and_one_of_each_weak():
    kept = []
    for history in EIGHT_HISTORIES.values():
        strong = brute.is_linearizable, brute.is_sequential
        strong = [judges(history, None) for judges in strong]
        kept.append([*strong, brute.is_causal(history)].count(True))
    assert kept == [3, 3, 2, 2, 1, 1, 0, 0]


# ---- wrong answers, beside the variants ----------------------------------------------


def in_order_of_starts(operations):
    value = None
    for one in operations:
        if one.op == "read" and one.result != value:
            return False
        value = one.value if one.op == "write" else value
    return True


def each_read_alone(operations):
    reads = [one for one in operations if one.op == "read"]
    writes = [[o for o in operations if o.op == "write" or o is r] for r in reads]
    return all(brute.is_linearizable(some, None) for some in writes)


def remembers(operations, seen={}):  # noqa: B006
    return seen.setdefault(len(operations), brute.is_linearizable(operations, None))


def librarys(operations):
    from distlab.agree import Register, check_linearizable
    from distlab.history import History

    return check_linearizable(History(operations), Register()).ok


def lost_is_never(operations):
    return brute.is_linearizable([o for o in operations if o.end is not None], None)


def no_end(operations):
    return min((one.end for one in operations), default=0) >= 0


@pytest.mark.parametrize(
    "check, function, hint",
    [
        (checks.linearizable, in_order_of_starts, "take it back and try another"),
        (checks.linearizable, each_read_alone, "Each read for itself may return this"),
        (checks.linearizable, remembers, "Begin each call with nothing"),
        (checks.linearizable, librarys, "distlab's own is not available here"),
        (checks.linearizable, lambda o: o.clear() is None, "leave the list"),
        (checks.linearizable, lambda o: 1, "Return True or False"),
        (checks.linearizable, lambda o: all(o[0]), "The message above names"),
        (checks.linearizable, lambda o: max(o) and True, "What do you return then"),
        (checks.fast_linearizable, lost_is_never, "may have taken effect all the same"),
        (checks.fast_linearizable, no_end, "end is None"),
    ],
)
def test_a_wrong_checker_meets_the_hint_that_fits(check, function, hint):
    # each_read_alone is wrong about one history in 140 of up to 6 operations.
    many = (2000, 6) if check is checks.linearizable else (600, 5)
    verdict = judge(check, function, many)
    assert verdict.outcome == "fail" and hint in " ".join(verdict.hints), verdict


def test_a_smallest_history_is_shown_beside_the_order_that_explains_it():
    verdict = judge(checks.linearizable, in_order_of_starts, (900, 5))
    said, ruler, *lines, order = verdict.found.splitlines()
    assert said == "It returned False for this history:"
    assert all("├" in line for line in lines) and len(ruler.split()) >= len(lines) == 2
    assert order == "This order explains it, so it is linearizable: b a"
    assert "Client" in verdict.drawn()["text/plain"]


@pytest.mark.parametrize(
    "name, answer, hint",
    [
        ("A", ("", "", ""), "Is there one order"),
        ("A", "linearizable", "An answer is three things"),
        ("A", ("linearizable", "b c a d d", ""), "has every operation in it"),
        ("A", ("linearizable", "a b c d e", ""), "returns what was written"),
        ("A", ("sequential", "b c a d e", ""), "Which few operations"),
        ("A", ("sequential", "b c a d e", "a b c d"), "nothing is wrong with the"),
        ("C", ("linearizable", "a c b d", ""), "in real time"),
        ("C", ("sequential", "a c b d", "a b c d"), "Leave out what is not needed"),
        ("E", ("causal", {2: "a c b e"}, "a b"), "an order of its own"),
        ("E", ("eventual", "", "a b c d e f"), "in the end all agree"),
        ("F", ("sequential", "d a f c b e", "a b c d"), "each client's own order"),
        ("G", ("causal", {1: "a b c", 2: "c d e a f"}, "a b"), "a chain of causes"),
        ("C", ["sequential", ["a", "c", "b", "d"], "cba"], ""),
        ("C", ("sequential", "a → c → b → d", "a,b,c"), ""),
    ],
)
def test_an_answer_about_a_history_meets_the_hint_that_fits(name, answer, hint):
    verdict = judge(classified, {name: answer}, (name,))
    assert verdict.outcome == ("fail" if hint else "pass")
    assert hint in " ".join(verdict.hints), verdict
