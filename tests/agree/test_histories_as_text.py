"""Histories as data: in files and back, in parts, and what is wrong with a line."""

import json
import math
import random

import pytest
from histories import CALLS, linearizable

from distlab import History, HistoryError, InvalidArgument, Operation
from distlab.agree import CasRegister, KeyValue, check_linearizable

INVOKE = '{"client": 0, "event": "invoke", "op": "read", "key": "x"}'
OK = '{"client": 0, "event": "ok", "result": 1}'


def value(chance, depth=0):
    kinds = [
        lambda: chance.choice([None, True, False, 0, -7, 10**40, 0.1, -0.0, 1e-300]),
        lambda: chance.choice([math.inf, -math.inf]),
        lambda: chance.choice(["", "x", "$tuple", "ü\n\ud800", b"", b"\x00\xff"]),
    ]
    if depth < 3:
        some = lambda: [value(chance, depth + 1) for _ in range(chance.randrange(3))]  # noqa: E731
        kinds += [some, lambda: tuple(some())]
        kinds += [lambda: {f"{'$' * (n % 2)}{n}": v for n, v in enumerate(some())}]
        kinds += [lambda: {(n, "a"): v for n, v in enumerate(some())}]
        kinds += [lambda: {1, "a", (2, None)}, lambda: frozenset({b"x", 2})]
    return chance.choice(kinds)()


def same(one, other):
    """Return whether two values are equal, and of equal types all the way down."""
    return repr(one) == repr(other) or (type(one) is type(other) and one == other)


def test_a_history_is_read_back_exactly(tmp_path):
    path = tmp_path / "run.jsonl"
    for seed in range(200):
        chance = random.Random(seed)
        made = linearizable(chance, 20, 4, CALLS["CasRegister"], unknown=0.2)
        if seed % 3 == 0:  # all times a whole number: many at once
            made = History(
                o._replace(start=int(o.start), end=o.end and int(o.end)) for o in made
            )
        history = History(
            o._replace(
                client=f"client {o.client}" if seed % 2 else o.client,
                key=value(chance),
                value=value(chance),
                result=value(chance) if o.end is not None else None,
                outcome="failed"
                if o.end is not None and chance.random() < 0.2
                else o.outcome,
            )
            for o in made
        )
        history.write(path)
        again = History.read(path)
        assert all(same(*pair) for pair in zip(history, again, strict=True))
        for line in path.read_text().splitlines():
            json.loads(line, parse_constant=pytest.fail)


def test_a_value_that_a_file_cannot_hold_is_told(tmp_path):
    history = History([Operation(0, "write", "x", object(), 0, 1, "ok")])
    with pytest.raises(HistoryError, match="cannot hold"):
        history.write(tmp_path / "run.jsonl")


def test_without_times_the_order_of_the_lines_counts():
    text = """
    {"client": 0, "event": "invoke", "op": "write", "key": "x", "value": 1}
    {"client": 1, "event": "invoke", "op": "read", "key": "x"}
    {"client": 0, "event": "ok"}
    {"client": 1, "event": "ok", "result": 1}
    {"client": 1, "event": "invoke", "op": "read", "key": "x"}
    {"client": 1, "event": "ok", "result": 1}
    """
    write, first, second = History.parse(text)
    assert write.start < first.start < write.end < first.end < second.start


def test_what_is_open_at_the_end_or_given_up_is_unknown():
    text = f'{INVOKE}\n{{"client": 0, "event": "unknown"}}\n{INVOKE}\n'
    given_up, open_ = History.parse(text)
    assert given_up.outcome == open_.outcome == "unknown"
    assert given_up.end is open_.end is None


def test_lines_of_different_clients_come_in_any_order_of_their_times():
    lines = [
        '{"time": 5, "client": 1, "event": "invoke", "op": "read", "key": "x"}',
        '{"time": 6, "client": 1, "event": "ok", "result": 1}',
        '{"time": 1, "client": 0, "event": "invoke", "op": "write", "value": 1}',
        '{"time": 2, "client": 0, "event": "ok"}',
    ]
    assert [o.op for o in History.parse("\n".join(lines))] == ["write", "read"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (f"{INVOKE}\n{INVOKE}", 2, "invokes an operation while that of line 1"),
        (f"{INVOKE}\n{OK}\n{OK}", 3, "has invoked nothing"),
        (f"{INVOKE}\n\n{OK[:-9]}", 3, "torn"),
        (f"{INVOKE}\n{OK[:-9]}\n{INVOKE}", 2, "no JSON"),
        ("[1]", 1, "no object"),
        ('{"client": 0, "event": "read"}', 1, "'read' is unknown"),
        ('{"client": 0}', 1, "no event"),
        ('{"client": 0, "event": "invoke"}', 1, '"op" is missing'),
        ('{"event": "ok"}', 1, '"client" is missing'),
        ('{"client": 0, "event": "ok", "value": 1}', 1, '"value" is no field of "ok"'),
        (f'{INVOKE}\n{{"client": 0, "event": "unknown", "result": 1}}', 2, "no field"),
        ('{"client": 0, "client": 1, "event": "ok"}', 1, "there twice"),
        ('{"client": true, "event": "ok"}', 1, "client is no number"),
        ('{"client": 0, "event": "invoke", "op": 3}', 1, "op is no word"),
        ('{"client": 0, "event": "ok", "time": "now"}', 1, "time is no number"),
        ('{"client": 0, "event": "ok", "time": NaN}', 1, "NaN is no JSON"),
        ('{"client": 0, "event": "ok", "result": {"$set": 3}}', 1, "takes a list"),
        ('{"client": 0, "event": "ok", "result": {"$odd": 3}}', 1, "no kind of value"),
        ('{"client": 0, "event": "ok", "result": {"$bytes": "x"}}', 1, "cannot hold"),
        (f'{INVOKE}\n{OK[:-1]}, "time": 3}}', 2, "has a time, and line 1 has none"),
        ("[" * 100_000, 1, "nested"),
    ],
)
def test_a_line_that_cannot_be_is_told_with_its_number(tmp_path, text, line, words):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(HistoryError) as described:
        History.read(path)
    assert described.value.line == line
    assert f"{path}, line {line}: " in str(described.value)
    assert words in str(described.value)
    assert len(str(described.value).splitlines()) >= 3
    with pytest.raises(HistoryError, match=f"the text, line {line}"):
        History.parse(text)


def test_an_answer_before_its_call_is_told():
    text = INVOKE[:-1] + ', "time": 5}\n' + OK[:-1] + ', "time": 4}'
    with pytest.raises(HistoryError, match=r"line 2.*4, is before the invocation's, 5"):
        History.parse(text)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(HistoryError, match="cannot be read"):
        History.read(tmp_path / "nowhere")
    with pytest.raises(HistoryError, match="cannot be written"):
        History().write(tmp_path / "no" / "where")
    (tmp_path / "picture").write_bytes(b"\xff\xfe")
    with pytest.raises(HistoryError, match="no text"):
        History.read(tmp_path / "picture")


def read(client, start, end, outcome="ok"):
    return Operation(client, "read", "x", None, start, end, outcome)


@pytest.mark.parametrize(
    ("operations", "words"),
    [
        ([read(0, 0, 5), read(0, 3, 7)], "client 0 calls at 3"),
        ([read(0, 5, 3)], "before it starts"),
        ([read(0, 0, None)], "has no end exactly if"),
        ([read(0, 0, 1, "unknown")], "has no end exactly if"),
        ([read(0, 0, 1, "fine")], "'fine'"),
        ([read(1.5, 0, 1)], "no number or name"),
        ([read(0, math.nan, 1)], "use seconds"),
        ([("read", 1)], "no Operation"),
    ],
)
def test_operations_that_cannot_be_are_told(operations, words):
    with pytest.raises(HistoryError, match=words):
        History(operations)


def test_parts_and_numbers_of_a_history():
    history = History(
        [
            read(0, 0.0, 0.5),
            read(1, 0.1, 0.2, "failed"),
            read(1, 1.0, None, "unknown"),
            Operation(1, "write", "y", 1, 2.0, 2.25, "ok"),
        ]
    )
    assert repr(history) == (
        "History: 4 operations by 2 clients on 2 keys in 2.25 s: "
        "2 answered, 1 refused, 1 of unknown outcome."
    )
    assert history.share_answered() == 0.5
    assert history.of(0).share_answered() == 1
    assert len(history.of(0, 1)) == 4
    assert [o.start for o in history.between(0.1, 2.0)] == [0.1, 1.0]
    assert history.latencies == [0.5, 0.25]
    assert {key: len(part) for key, part in history.by_key().items()} == {
        "x": 3,
        "y": 1,
    }
    assert repr(History()) == "History: no operations."
    assert "text/plain" in history._repr_mimebundle_()
    with pytest.raises(InvalidArgument, match="no share of them"):
        History().share_answered()


JEPSEN = """INFO  jepsen.core - starting
INFO  jepsen.util - 0\t:invoke\t:read\tnil
INFO  jepsen.util - 1\t:invoke\t:write\t3
INFO  jepsen.util - 0\t:ok\t:read\tnil
INFO  jepsen.util - :nemesis\t:info\t:start\tnil
INFO  jepsen.util - 1\t:ok\t:write\t3
INFO  jepsen.util - 2\t:invoke\t:cas\t[3 4]
INFO  jepsen.util - 2\t:ok\t:cas\t[3 4]
INFO  jepsen.util - 2\t:invoke\t:cas\t[3 0]
INFO  jepsen.util - 2\t:fail\t:cas\t[3 0]
INFO  jepsen.util - 0\t:invoke\t:read\tnil
INFO  jepsen.util - 0\t:fail\t:read\t:timed-out
INFO  jepsen.util - 0\t:invoke\t:write\t1
INFO  jepsen.util - 0\t:info\t:write\t:timed-out
INFO  jepsen.util - 5\t:invoke\t:read\tnil
INFO  jepsen.util - 5\t:ok\t:read\t4
"""
MAPS = """{:process 0, :type :invoke, :f :put, :key "0", :value "x"}
{:process 1, :type :invoke, :f :get, :key "0", :value nil}
{:process 0, :type :ok, :f :put, :key "0", :value "x"}
{:process 1, :type :ok, :f :get, :key "0", :value "x"}
{:process 1, :type :invoke, :f :append, :key "0", :value " y \\"z\\""}
{:process 1, :type :ok, :f :append, :key "0", :value " y \\"z\\""}
{:process 0, :type :invoke, :f :get, :key "0", :value nil}
{:process 0, :type :ok, :f :get, :key "0", :value "x y \\"z\\""}
"""


def test_a_log_of_jepsen_is_read(tmp_path):
    path = tmp_path / "etcd.log"
    path.write_text(JEPSEN)
    history = History.read_jepsen(path, fail_observed=True)
    described = [(o.client, o.op, o.value, o.outcome, o.result) for o in history]
    assert described == [
        (0, "read", None, "ok", None),
        (1, "write", 3, "ok", None),
        (2, "cas", (3, 4), "ok", True),
        (2, "cas", (3, 0), "ok", False),
        (0, "read", None, "failed", None),
        (0, "write", 1, "unknown", None),
        (5, "read", None, "ok", 4),
    ]
    assert check_linearizable(history, CasRegister()).ok
    path.write_text(JEPSEN.replace(":ok\t:read\t4", ":ok\t:read\t3"))
    assert check_linearizable(History.read_jepsen(path), CasRegister()).violated


def test_maps_of_jepsen_are_read(tmp_path):
    path = tmp_path / "kv.txt"
    path.write_text(MAPS)
    history = History.read_jepsen(path)
    assert [o.op for o in history] == ["write", "read", "append", "read"]
    assert history[3].result == 'x y "z"'
    assert check_linearizable(history, KeyValue("")).ok
    path.write_text(MAPS.replace('"x y', '"y'))
    assert check_linearizable(History.read_jepsen(path), KeyValue("")).violated


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("hello\n", 1, "any other is an event"),
        (
            "x - 0 :invoke :read nil\nx - 0 :invoke :read nil\n",
            2,
            "invokes an operation while",
        ),
        ("x - 0 :ok :read nil\n", 1, "has invoked nothing"),
        ("x - 0 :invoke :cas [1 2\n", 1, "not closed"),
        ("{:process 0, :type :invoke, :f}\n", 1, "without a value"),
        ("{:process 0, :type :invoke}\n", 1, ":f is missing"),
        ("{:process 0, :type :maybe, :f :get}\n", 1, "unknown"),
    ],
)
def test_a_line_of_jepsen_that_cannot_be_is_told(tmp_path, text, line, words):
    path = tmp_path / "jepsen.log"
    path.write_text(text)
    with pytest.raises(HistoryError, match=words) as described:
        History.read_jepsen(path)
    assert described.value.line == line
