"""What the checks of histories take for true: searches against all orders there are."""

import random
from itertools import combinations, permutations, product

import pytest

from distlab.agree import (
    Register,
    check_causal,
    check_linearizable,
    check_sequential,
)
from distlab.grading import EIGHT_HISTORIES, Classified, grade_each, lanes
from distlab.grading.agreement.classified import Wrong
from distlab.grading.agreement.consistency import MODELS, satisfies
from distlab.grading.agreement.histories import long, nasty, short
from distlab.grading.agreement.orders import brute_order, searched
from distlab.history import History
from distlab.trace import Operation

ANSWERS = {
    "A": ("linearizable", "b c a d e", ""),
    "B": ("linearizable", "a c b d e", ""),
    "C": ("sequential", "a c b d", "a b c"),
    "D": ("sequential", "a d b c e", "a b c d"),
    "E": ("causal", {2: "a c b e", 3: "b d a f"}, "a b c d e f"),
    "F": ("causal", {0: "a c b e", 1: "b d a f"}, "a b c d"),
    "G": ("eventual", "", "a b c d e"),
    "H": ("none", "", "a b c e"),
}


def all_orders(operations, allowed):
    """Return whether an order of everything is allowed and explains what was read."""
    for order in permutations(operations):
        value = {}
        for one in order:
            if one.op == "write":
                value[one.key] = one.value
            elif value.get(one.key) != one.result:
                break
        else:
            if allowed(order):
                return True
    return False


def keeps(must_be_before):
    return lambda order: (
        not any(must_be_before(b, a) for a, b in combinations(order, 2))
    )


def in_time(a, b):
    return a.end < b.start


def of_one_client(a, b):
    return a.client == b.client and a.start < b.start


def causally(operations):
    """Return the causal order as a function of two operations, by following chains."""

    def direct(a, b):
        read = b.op == "read" and a.op == "write"
        return of_one_client(a, b) or (read and (a.key, a.value) == (b.key, b.result))

    def chain(a, b, seen=()):
        return direct(a, b) or any(
            direct(a, c) and chain(c, b, (*seen, c))
            for c in operations
            if c not in seen
        )

    return chain


def causal_by_force(operations):
    for client in {one.client for one in operations}:
        some = [o for o in operations if o.client == client or o.op == "write"]
        if not all_orders(some, keeps(causally(operations))):
            return False
    return True


@pytest.mark.parametrize("unknown", [0, 0.2])
def test_the_search_says_what_all_orders_say(unknown):
    histories = short("orders", 3000, unknown)
    truths = [brute_order(history) is not None for history in histories]
    assert [searched(history) for history in histories] == truths
    assert 900 < sum(truths) < 2400
    if not unknown:
        plain = [all_orders(history, keeps(in_time)) for history in histories[:1500]]
        assert plain == truths[:1500]


def test_the_librarys_checker_says_the_same_where_it_says_anything():
    histories = [*short("second", 600, 0.2), *long("second", 10, 40, 5, 0.06)]
    judged = 0
    for history in histories:
        verdict = check_linearizable(History(history), Register())
        if not verdict.inconclusive:
            judged += 1
            assert verdict.ok == searched(history), lanes(history)
    assert judged > 300


def test_histories_have_moments_that_are_the_same_and_values_written_twice():
    histories = short(1, 2000, 0.2)
    touching = equal = twice = 0
    for history in histories:
        starts = [one.start for one in history]
        values = [one.value for one in history if one.op == "write"]
        touching += any(one.end in starts for one in history)
        equal += len(set(starts)) < len(starts)
        twice += len(set(values)) < len(values)
        for a, b in product(history, repeat=2):
            if a.client == b.client and a is not b and a.end is not None:
                assert a.end < b.start or b.start < a.start
    assert min(touching, equal, twice) > 200
    outcomes = {one.outcome for history in histories for one in history}
    assert outcomes == {"ok", "failed", "unknown"}


def test_a_nasty_history_is_right_or_wrong_as_it_says():
    assert not searched(nasty(10, 5)) and not searched(nasty(9, 5, lost=2))
    assert searched(nasty(9, 5, right=True))
    assert brute_order(nasty(1, 3)) is None
    assert brute_order(nasty(1, 3, right=True)) is not None


def test_long_histories_are_of_both_kinds():
    truths = [searched(history) for history in long(1, 40, 60, 5, 0.06)]
    assert 8 < sum(truths) < 32


# ---- consistency models ----------------------------------------------------------


def test_models_of_random_histories_are_those_of_all_orders():
    draw, counts = random.Random(7), dict.fromkeys(MODELS[:3], 0)
    for _ in range(1200):
        history = _random(draw)
        expected = {
            "linearizable": all_orders(history, keeps(in_time)),
            "sequential": all_orders(history, keeps(of_one_client)),
            "causal": causal_by_force(history),
        }
        for model, truth in expected.items():
            assert satisfies(model, history) == truth, lanes(history)
            counts[model] += truth
    assert 100 < counts["linearizable"] < counts["sequential"] < counts["causal"] < 1100


def _random(draw):
    free, operations, written = [0, 0, 0], [], {"x": [], "y": []}
    for number in range(draw.choice((3, 4, 5, 5, 6))):
        client, key = draw.randrange(3), draw.choice("xxy")
        start = free[client] + draw.choice((1, 2, 3))
        end = free[client] = start + draw.choice((1, 2, 5))
        if draw.random() < 0.45:
            one = Operation(client, "write", key, number, start, end, "ok")
            written[key].append(number)
        else:
            result = draw.choice([None, *written[key], *written[key]])
            one = Operation(client, "read", key, None, start, end, "ok", result)
        operations.append(one)
    return operations


def test_each_of_the_eight_histories_has_the_model_that_its_answer_says():
    for name, (model, _, _) in ANSWERS.items():
        true = [word for word in MODELS[:4] if satisfies(word, EIGHT_HISTORIES[name])]
        assert [*true, "none"][0] == model, name


def test_the_librarys_checkers_find_the_same_models_in_the_eight_histories():
    checks = check_linearizable, check_sequential, check_causal
    for name, history in EIGHT_HISTORIES.items():
        for model, check in zip(MODELS, checks, strict=False):
            more = () if check is check_causal else (Register(),)
            verdict = check(History(history), *more)
            assert verdict.ok == satisfies(model, history), (name, model)
            assert not verdict.inconclusive


def test_all_right_answers_together_are_worth_all_points():
    checks = [Classified(ANSWERS, name) for name in ANSWERS]
    assert grade_each(3, checks) == 3.0
    for right, points in ((7, 2.0), (6, 2.0), (5, 1.0), (3, 1.0), (2, 0.0), (0, 0.0)):
        answers = dict(list(ANSWERS.items())[:right])
        assert grade_each(3, [Classified(answers, name) for name in ANSWERS]) == points


WRONG = [
    ("A", ("", "", ""), "Begin at the top"),
    ("A", None, "An answer is three things"),
    ("A", "linearizable", "An answer is three things"),
    ("A", ("strict", "b c a d e", ""), "An answer is three things"),
    ("A", ["linearizable", "b c a d e"], "An answer is three things"),
    ("A", ("linearizable", ["b", 3], ""), "An answer is three things"),
    ("A", ("linearizable", ["b", "c"], ""), "all operations are in it"),
    ("A", ("linearizable", "b c a d z", ""), "Write each of them once"),
    ("A", ("linearizable", "b c a d d", ""), "Write each of them once"),
    ("A", ("linearizable", "b c a d", ""), "all operations are in it"),
    ("A", ("linearizable", "a b c d e", ""), "returns what was written"),
    ("A", ("sequential", "b c a d e", ""), "Which few operations"),
    ("A", ("sequential", "b c a d e", "a b c d"), "nothing is wrong with the stronger"),
    ("C", ("linearizable", "a c b d", ""), "real time counts here"),
    ("C", ("sequential", "a c b d", "c d"), "Name with each read the write"),
    ("C", ("sequential", "a c b d", "a b c d"), "Leave out what is not needed"),
    ("C", ("causal", {1: "a c b d"}, "a b c"), "nothing is wrong with the stronger"),
    ("C", ("eventual", "", "a b c"), "nothing is wrong with the stronger"),
    ("E", ("sequential", "a c b d e f", "a b"), "returns what was written"),
    ("E", ("causal", "a c b d e f", "a b"), "Give a dict with one for each"),
    ("E", ("causal", {2: "a c b e"}, "a b"), "Give a dict with one for each"),
    ("E", ("causal", {2: "a c b e", 3: "b d a"}, "a b"), "all writes, of everybody"),
    ("E", ("eventual", "", "a b c d e f"), "in the end all agree"),
    ("F", ("sequential", "a c b d e f", "a b c d"), "returns what was written"),
    ("F", ("sequential", "d a f c b e", "a b c d"), "of one client"),
    ("G", ("none", "", "a b c d e"), "not even the last reads agree"),
    ("G", ("causal", {1: "a b c", 2: "c d e a f"}, "a b"), "that could be known"),
    ("H", ("eventual", "", "a b c e"), "in the end all agree"),
]


@pytest.mark.parametrize("name, answer, hint", WRONG)
def test_a_wrong_answer_about_a_history_meets_the_hint_that_fits(name, answer, hint):
    verdict = Classified({name: answer}, name).judge()
    assert verdict.outcome == "fail"
    assert hint in verdict.hint, verdict


@pytest.mark.parametrize(
    "answer",
    [
        ["sequential", ["a", "c", "b", "d"], ("a", "b", "c")],
        ("sequential", "acbd", "cba"),
        ("sequential", "a, c, b, d", "a,b,c"),
        ("sequential", "a → c → b → d", "a b c"),
    ],
)
def test_letters_may_be_written_as_anybody_would(answer):
    assert Classified({"C": answer}, "C").judge().outcome == "pass"


class Agreeable(str):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def test_objects_that_equal_everything_prove_nothing():
    for answer in (
        (Agreeable("linearizable"), "b c a d e", ""),
        ("linearizable", Agreeable("b c a d e"), ""),
        ("sequential", "b c a d e", Agreeable("a b")),
        Agreeable("x"),
    ):
        assert Classified({"A": answer}, "A").judge().outcome == "fail"
    assert Classified(Agreeable("x"), "A").judge().outcome == "fail"


def test_no_other_word_can_be_proved_for_a_history():
    """For every word and every contradiction, with any orders that could be given."""
    for name, history in EIGHT_HISTORIES.items():
        letters = "abcdef"[: len(history)]
        proved = set()
        for model in MODELS:
            for size in range(len(history) + 1):
                for some in combinations(letters, size):
                    if _proves(name, model, " ".join(some)):
                        proved.add(model)
        assert proved == {ANSWERS[name][0]}, name


def _proves(name, model, contradiction):
    """Whether a word passes with this contradiction and the best order there is."""
    history = EIGHT_HISTORIES[name]
    check = Classified({name: (model, "", contradiction)}, name)
    if model in ("eventual", "none"):
        return check.judge().outcome == "pass"
    check.judge()
    return satisfies(model, history) and _contradicts(check, model, contradiction)


def _contradicts(check, model, words):
    if model == "linearizable":
        return not words
    try:
        check._contradict(model, words)
    except Wrong:
        return False
    return True
