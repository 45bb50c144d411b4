"""Lanes of a history say what its operations say, and what a verdict says of them."""

import random
import re
from types import SimpleNamespace

import pytest
from artists import assert_legible, boxes, drawn, words
from traces import operation

from distlab.agree.checkers.linearizable import check_linearizable
from distlab.agree.sequential_specifications import CasRegister, Register
from distlab.errors import InvalidArgument
from distlab.history import History
from distlab.show import history
from distlab.show.reading.histories import answered_before, effects, names_of

FEW = [
    operation(0, "write", 1, 0, 12),
    operation(1, "read", None, 5, 20, 1),
    operation(2, "cas", (1, 2), 15, 40, True),
    operation(0, "write", 3, 22, None),
    operation(1, "read", None, 30, 37, 2),
    operation(2, "cas", (1, 5), 45, 55, False),
    operation(1, "write", 9, 48, 60, outcome="failed"),
    operation(0, "read", None, 62, 70, 3),
]
STALE = [
    operation(0, "write", 1, 0, 10),
    operation(0, "write", 2, 14, 30),
    operation(1, "read", None, 35, 44, 1),
    operation(2, "read", None, 1, 60),
]


def many(count, clients, keys="x", seed=1):
    """Return operations of clients that go on and on, with all outcomes."""
    dice, clocks, made = random.Random(seed), [0.0] * clients, []
    for number in range(count):
        client = min(range(clients), key=clocks.__getitem__)
        start = clocks[client] + dice.expovariate(1 / 2)
        clocks[client] = end = start + dice.uniform(2, 14)
        op = dice.choice(["write", "read", "cas"])
        value = {"write": number, "read": None, "cas": (number, number + 1)}[op]
        how = dice.choice(["ok"] * 18 + ["failed", "unknown"])
        end = None if how == "unknown" else end
        key = dice.choice(keys)
        result = {"write": None, "read": number, "cas": dice.random() < 0.5}[op]
        made.append(operation(client, op, value, start, end, result, how, key))
    return made


def judged(how, operations, **parts):
    parts = {"model": "linearizable Register", "why": "for a reason"} | parts
    answers = {each: each == how for each in ("ok", "violated", "inconclusive")}
    return SimpleNamespace(history=operations, **answers, **parts)


def counted(picture, kind):
    return len(boxes(picture, f"operation: {kind}"))


# ---- what is drawn --------------------------------------------------------------


def test_every_operation_is_a_bar_with_its_words():
    picture = history(FEW, "A few")
    assert [counted(picture, kind) for kind in ("write", "read", "other")] == [1, 3, 2]
    assert counted(picture, "open") == counted(picture, "failed") == 1
    assert len(drawn(picture, "refused")[0].get_segments()) == 2
    said = {"write x 1", "read x → 1", "cas x 1→2 ✓", "cas x 1→5 ✗", "write x 3 ?"}
    assert {*said, "write x 9 refused", "client 2"} <= {*words(picture)}
    assert_legible(picture)


def test_a_bar_is_as_long_as_its_operation_took():
    ops = [operation(0, "write", 1, 0, 10), operation(1, "write", 2, 5, 25)]
    a, b = sorted(boxes(history(ops), "operation: write"))
    assert (b[2] - b[0]) == pytest.approx(2 * (a[2] - a[0]))
    assert b[0] - a[0] == pytest.approx((a[2] - a[0]) / 2)


def test_what_was_not_answered_stays_open_until_its_client_goes_on():
    ops = [operation(0, "write", 1, 0, None), operation(1, "write", 2, 0, 10)]
    ((_, _, end, _),) = boxes(history(ops), "operation: open")
    assert end > boxes(history(ops), "operation: write")[0][2]
    picture = history([*ops, operation(0, "read", None, 4, 10, 2)])
    ((left, _, right, _),) = boxes(picture, "operation: open")
    (read,) = boxes(picture, "operation: read")
    assert left < right <= read[0] + 1e-6


def test_alt_says_who_did_what_when_and_what_came_of_it():
    alt = history(FEW, "A few").alt
    assert "8 operations by 3 clients: 6 answered, 1 refused, 1 of unknown" in alt
    assert "Client 0: write x 1 (0 µs to 12 s), write x 3 ? (from 22 s on)" in alt


@pytest.mark.parametrize("seed", range(6))
def test_words_never_lie_on_each_other(seed):
    dice = random.Random(seed)
    some = many(
        dice.randint(1, 120), dice.randint(1, 7), dice.choice(["x", "xyz"]), seed
    )
    assert_legible(history(some, "Some"))


def test_words_of_few_operations_are_all_there_however_short_they_are():
    starts = [*(1000 * k for k in range(6)), *(8000 + 0.02 * k for k in range(6))]
    picture = history([operation(0, "write", 7, at, at + 0.01) for at in starts])
    assert sum(each.startswith("write") for each in words(picture)) == 12
    assert any("distances are not time" in each for each in words(picture))
    assert_legible(picture)


def test_of_hundreds_bars_stay_and_what_is_left_out_is_said():
    ops = many(2000, 8)
    picture = history(ops)
    kinds = ("write", "read", "other", "open", "failed")
    assert sum(counted(picture, kind) for kind in kinds) == 2000
    assert "Words are left out: 2,000 operations." in picture.alt
    assert_legible(picture)


def test_a_long_history_is_cut_into_strips_and_loses_no_bar():
    ops = many(170, 5)
    picture = history(ops)
    assert "client 0" in words(picture) and words(picture).count("client 0") > 1
    kinds = ("write", "read", "other", "open", "failed")
    assert sum(counted(picture, kind) for kind in kinds) >= 170
    named = sum(
        "→" in each or bool(re.match("w(rite)? ", each)) for each in words(picture)
    )
    assert named >= 0.8 * 170


def test_a_key_draws_only_its_operations():
    ops = many(60, 4, "xyz")
    own = [one for one in ops if one.key == "y"]
    picture = history(ops, key="y")
    assert f"{len(own)} operations by" in picture.alt and "of 60 in all" in picture.alt
    with pytest.raises(InvalidArgument, match="the keys are"):
        history(ops, key="w")


def test_without_operations_it_says_so():
    picture = history([])
    assert "no operations were made" in words(picture)
    assert "no operations" in picture.alt
    with pytest.raises(InvalidArgument, match="this is int"):
        history(3)


def test_other_operations_have_words_of_their_own():
    names = {
        operation(0, "enqueue", 5, 0, 1, key="q"): "enqueue q 5",
        operation(0, "dequeue", None, 0, 1, 5, key="q"): "dequeue q → 5",
        operation(0, "acquire", None, 0, 1, True, key=None): "acquire → True",
        operation(0, "read", None, 0, None): "read x → ?",
        operation(0, "write", "a" * 99, 0, 1): "write x aaaaaaaaaaaaa…",
    }
    assert {one: names_of(one)[0] for one in names} == names


# ---- what a verdict adds --------------------------------------------------------


def test_a_witness_is_numbered_at_moments_that_are_possible():
    verdict = check_linearizable(History(FEW), CasRegister())
    assert verdict.ok
    picture = history(verdict)
    numbers = [each for each in words(picture) if each.isdigit() and len(each) == 1]
    for number in range(1, len(verdict.witness) + 1):
        assert str(number) in numbers
    assert "Linearizable CasRegister: ok" in words(picture)
    assert (
        "An order that explains every response: 1 write x 1 (client 0)" in picture.alt
    )
    assert_legible(picture)


@pytest.mark.parametrize("seed", range(30))
def test_moments_of_effect_ascend_within_their_operations(seed):
    dice, now, made = random.Random(seed), 0.0, []
    for number in range(30):
        now += dice.random()
        end = None if dice.random() < 0.1 else now + dice.random()
        made.append(operation(number, "write", 1, now - dice.random(), end))
    moments = effects(made, now + 1)
    assert moments == sorted(moments)
    for one, moment in zip(made, moments, strict=True):
        assert one.start <= moment <= (now + 1 if one.end is None else one.end)


def test_an_order_against_the_clock_has_no_moments_and_is_numbered_all_the_same():
    first, second = operation(0, "write", 1, 0, 1), operation(1, "read", None, 2, 3)
    assert effects([second, first], 3) is None
    verdict = judged("ok", [first, second], model="sequential", witness=[second, first])
    picture = history(verdict)
    assert len(drawn(picture, "effect")) == 2
    assert "effect, in that order" not in " ".join(words(picture))


def test_a_violation_shows_what_contradicts_with_arrows_between():
    verdict = check_linearizable(History(STALE), Register())
    assert verdict.violated
    picture = history(verdict, "A stale read")
    assert len(boxes(picture, "contradicts")) == len(verdict.smallest)
    assert len(drawn(picture, "before")) == len(answered_before(verdict.smallest)) > 0
    assert verdict.why.rstrip(".")[1:] in picture.alt
    assert "write x 2 of client 0 had its response before read x → 1 of client" in (
        picture.alt
    )
    assert_legible(picture)


def test_of_a_long_history_only_the_contradiction_is_drawn():
    ops = many(170, 5)
    verdict = judged("violated", ops, smallest=[ops[3], ops[40], ops[100]])
    picture = history(verdict)
    assert "167 other operations left out." in picture.alt
    assert len(boxes(picture, "contradicts")) == 3
    assert_legible(picture)


def test_answered_before_leaves_out_what_follows_from_the_rest():
    a, b, c = (operation(n, "write", n, 2 * n, 2 * n + 1) for n in range(3))
    assert answered_before([a, b, c]) == [(a, b), (b, c)]
    assert answered_before([a, a._replace(client=1, end=None)]) == []


def test_an_inconclusive_verdict_says_so_and_why():
    picture = history(judged("inconclusive", FEW, why="the time limit was reached"))
    assert "Linearizable Register: inconclusive" in words(picture)
    assert "The time limit was reached" in words(picture)
    assert "inconclusive. The time limit was reached." in picture.alt


def test_a_history_and_a_verdict_show_themselves():
    for thing in (History(FEW), check_linearizable(History(FEW), CasRegister())):
        bundle = thing._repr_mimebundle_()
        assert "8 operations by 3 clients" in bundle["text/plain"]
        assert bundle["image/png"]
