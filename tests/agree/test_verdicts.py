"""What a verdict says, and what checkers say of histories that they cannot judge."""

import random

import pytest
from histories import CALLS, cas_histories, corrupted, linearizable

from distlab import History, HistoryError, InvalidArgument, Operation
from distlab.agree import (
    CasRegister,
    KeyValue,
    Lock,
    Model,
    Queue,
    Register,
    Set,
    check_causal,
    check_converged,
    check_linearizable,
    check_monotonic_reads,
    check_monotonic_writes,
    check_read_your_writes,
    check_sequential,
    check_writes_follow_reads,
)


class Counter(Model):
    """A number that goes up."""

    operations = ("increment", "read")
    initial = 0

    def step(self, state, op, value, result):
        """Return the number after an operation."""
        if op == "increment":
            return state + 1
        if result == state:
            return state


WEAK = (
    check_causal,
    check_read_your_writes,
    check_monotonic_reads,
    check_monotonic_writes,
    check_writes_follow_reads,
    check_converged,
)


def done(client, op, value=None, start=0.0, end=None, result=None, key="x"):
    end = start + 1 if end is None else end
    return Operation(client, op, key, value, start, end, "ok", result)


def lost(client, op, value=None, start=0.0, key="x"):
    return Operation(client, op, key, value, start, None, "unknown")


def refused(client, op, value=None, start=0.0):
    return Operation(client, op, "x", value, start, start + 1, "failed")


def linear(*operations, model=Register):
    return check_linearizable(History(operations), model())


def all_checks(history):
    yield check_linearizable(history, Register())
    yield check_sequential(history, Register())
    for check in WEAK:
        yield check(history)


def test_a_verdict_is_neither_true_nor_false():
    for verdict in all_checks(
        History([done(0, "write", 1), done(1, "read", result=1)])
    ):
        with pytest.raises(TypeError, match="ok, violated or inconclusive"):
            assert verdict


def test_nothing_to_judge_is_inconclusive():
    for operations in (
        [],
        [lost(0, "write", 1), lost(1, "read")],
        [refused(0, "write", 1)],
        [done(0, "write", 1), done(0, "write", 2, 5)],
        [done(0, "read"), done(0, "write", 1, 5)],
    ):
        for verdict in all_checks(History(operations)):
            assert verdict.inconclusive, verdict
            assert verdict.why.endswith(".")


def test_a_value_that_nobody_wrote_is_violated_everywhere():
    history = History([done(0, "write", 1), done(1, "read", None, 5, 6, 7)])
    for verdict in list(all_checks(history))[:-1]:
        assert verdict.violated
        assert list(verdict.smallest) == [history[1]]
    assert (
        "which no operation had put there"
        in check_linearizable(history, Register()).why
    )


def test_what_was_never_answered_may_take_effect_late_or_never():
    writes = [lost(0, "write", 1), done(1, "write", 2, 1)]
    late = [done(2, "read", None, 5, 6, 2), done(2, "read", None, 7, 8, 1)]
    never = [done(2, "read", None, 5, 6, 2), done(2, "read", None, 7, 8, 2)]
    assert linear(*writes, *late).ok
    verdict = linear(*writes, *never)
    assert verdict.ok and writes[0] not in verdict.witness
    again = [*late, done(2, "read", None, 9, 10, 2)]
    assert linear(*writes, *again).violated, "it takes effect once at most"
    before = [done(2, "read", None, -5, -4, 1)]
    assert linear(*writes, *before).violated, "and not before it was invoked"


def test_what_was_refused_never_took_effect():
    assert linear(refused(0, "write", 1), done(1, "read", None, 5, 6, 1)).violated


def test_why_names_both_operations_and_the_time_between_them():
    verdict = linear(
        done(1, "write", 1, 0.0, 0.001),
        done(1, "write", 2, 0.002, 0.003),
        done(2, "read", None, 0.006, 0.009, 1),
    )
    assert verdict.why == (
        "client 2's read of x returned 1 after client 1's write of 2 to x had "
        "completed, 3 ms before it began."
    )
    untimed = History.parse(
        """
        {"client": 1, "event": "invoke", "op": "write", "key": "x", "value": 1}
        {"client": 1, "event": "ok"}
        {"client": 2, "event": "invoke", "op": "read", "key": "x"}
        {"client": 2, "event": "ok"}
        """
    )
    verdict = check_linearizable(untimed, Register())
    assert verdict.violated and " ms" not in verdict.why and " s " not in verdict.why


def test_an_operation_that_the_model_has_not_is_named_with_its_line(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(
        '{"client": 0, "event": "invoke", "op": "write", "key": "x", "value": 1}\n'
        '{"client": 0, "event": "ok"}\n'
        '{"client": 0, "event": "invoke", "op": "pop", "key": "x"}\n'
        '{"client": 0, "event": "ok"}\n'
    )
    history = History.read(path)
    for check in (check_linearizable, check_sequential):
        with pytest.raises(
            HistoryError, match=r"pop of x.*line 3 of .*run.jsonl.*read"
        ):
            check(history, Register())
    with pytest.raises(HistoryError, match=r"line 3 of .*run.jsonl"):
        check_causal(history)


@pytest.mark.parametrize(
    ("operation", "model", "words"),
    [
        (done(0, "write", [1]), Register, "use a tuple"),
        (done(0, "read", None, result=[1]), Register, "use a tuple"),
        (done(0, "write", float("nan")), Register, "not equal to itself"),
        (done(0, "cas", 1, result=True), CasRegister, "pair"),
        (done(0, "cas", (1, 2), result="yes"), CasRegister, "True or False"),
        (done(0, "enqueue", None), Queue, "None"),
        (done(0, "contains", 1, result=3), Set, "True or False"),
        (done(0, "read", result=3), Set, "not a set"),
        (done(0, "write", 1, key=[1]), Register, "can change"),
    ],
)
def test_what_cannot_be_judged_is_told(operation, model, words):
    for check in (check_linearizable, check_sequential):
        with pytest.raises(HistoryError, match=words):
            check(History([operation]), model())


def test_arguments_that_make_no_sense_are_told():
    history = History([done(0, "write", 1)])
    with pytest.raises(InvalidArgument, match="no model"):
        check_linearizable(history, "register")
    with pytest.raises(InvalidArgument, match="no history"):
        check_linearizable(3, Register())
    with pytest.raises(InvalidArgument, match="within_s"):
        check_linearizable(history, Register(), within_s=0)
    with pytest.raises(InvalidArgument, match="quiet_s"):
        check_converged(history, quiet_s=-1)


def test_a_model_of_ones_own_takes_ten_lines():
    right = [done(0, "increment"), lost(1, "increment"), done(2, "read", None, 5, 6, 2)]
    assert linear(*right, model=Counter).ok
    assert linear(*right, done(2, "read", None, 7, 8, 1), model=Counter).violated
    assert check_sequential(History(right), Counter()).ok


def test_deletes_and_appends_belong_to_a_key_value_store():
    history = [
        done(0, "append", "a", 0),
        done(0, "append", "b", 2),
        done(1, "read", None, 4, 5, "ab"),
        done(1, "delete", None, 6),
        done(0, "read", None, 8, 9, None),
    ]
    assert linear(*history, model=KeyValue).ok
    assert linear(*history, done(0, "read", None, 10, 11, "b"), model=KeyValue).violated


def test_a_lock_knows_its_holder_if_it_is_told():
    mine = done(0, "acquire", 0, 0, result=True), done(1, "release", 1, 2, result=True)
    assert linear(*mine, model=Lock).violated
    assert linear(done(0, "acquire"), done(1, "release", None, 2), model=Lock).ok


def test_a_time_limit_leads_to_inconclusive():
    """Ones that overlap, and a queue: too many orders."""
    chance = random.Random(1)
    calls = lambda r: ("enqueue", r.randrange(10**6))  # noqa: E731
    busy = linearizable(chance, 60, 30, calls, list)
    operations = [o._replace(start=0.0, end=99.0) for o in busy][:30]
    operations = [o._replace(client=i) for i, o in enumerate(operations)]
    values = [o.value for o in operations]
    gets = [
        done(99, "dequeue", None, 100 + 2 * i, 101 + 2 * i, value, key="k0")
        for i, value in enumerate([*values[::-1], None])
    ]
    wrong = [*gets[:-3], gets[-2], gets[-1]]
    history = History(operations + wrong)
    for check in (check_linearizable, check_sequential):
        verdict = check(history, Queue(), within_s=0.2)
        assert verdict.inconclusive or verdict.violated
        if verdict.inconclusive:
            assert "too short" in verdict.why


def test_a_stale_read_is_found_among_many_writes_at_the_same_time():
    """More orders than can be tried; but each value was written once."""
    writes = [done(i, "write", i, 0, 99) for i in range(40)]
    reads = [done(100 + i, "read", None, 0, 99, i) for i in range(40)]
    late = [done(99, "read", None, 100, 101, 3), done(99, "read", None, 102, 103, 4)]
    verdict = linear(*writes, *reads, *late)
    assert verdict.violated
    assert list(verdict.smallest) == [writes[3], writes[4], *late]


def test_large_wrong_histories_have_small_explanations():
    histories = cas_histories(3, count=40)
    verdicts = [check_linearizable(history, CasRegister()) for history in histories]
    violated = [verdict for verdict in verdicts if verdict.violated]
    assert len(violated) >= 5 and len([v for v in verdicts if v.ok]) >= 20
    assert all(len(verdict.smallest) <= 15 for verdict in violated)
    assert all(verdict.ok for verdict in verdicts[::2])


def test_ten_thousand_operations_on_a_hundred_keys_are_judged():
    chance = random.Random(2)
    calls = CALLS["CasRegister"]
    history = linearizable(chance, 10_000, 20, calls, unknown=0.02, keys=100)
    assert check_linearizable(history, KeyValue()).ok
    wrong = corrupted(chance, history, {"cas": [True]}, 40)
    verdict = check_linearizable(wrong, KeyValue())
    assert verdict.violated and len(verdict.smallest) < 10


def test_the_smallest_part_is_not_explained_by_what_was_left_out():
    """2 was read, and 1 after it; but 1 was written again in between."""
    history = [
        done(0, "write", 1, 0),
        done(0, "write", 2, 2),
        done(0, "write", 1, 4),
        done(1, "read", None, 6, 7, 1),
        done(0, "write", 3, 8),
        done(1, "read", None, 10, 11, 2),
    ]
    verdict = linear(*history)
    assert list(verdict.smallest) == [history[1], history[4], history[5]] or list(
        verdict.smallest
    ) == [history[1], history[2], history[5]]


def test_of_two_equal_calls_either_may_have_taken_effect():
    """The first to be called comes after its client's own answer at that moment."""
    got = done(1, "dequeue", None, 0, 1, 7)
    late, timely = lost(1, "enqueue", 7, 1), lost(2, "enqueue", 7, 1)
    verdict = linear(got, late, timely, model=Queue)
    assert verdict.ok and list(verdict.witness) == [timely, got]
