"""Histories in the forms of Jepsen and Knossos, and the verdicts on them."""

import random
import time

import pytest
from histories import CALLS, FRESH, corrupted, linearizable
from typer.testing import CliRunner

from distlab import History, HistoryError, Operation
from distlab.__main__ import app
from distlab.agree import (
    CasRegister,
    KeyValue,
    Lock,
    check_linearizable,
)
from distlab.agree.checkers import preconditions
from distlab.history.edn import NotEdn, read_edn

CASES = {
    "ok: what failed did not happen": """
        [{:process 0, :type :invoke, :f :write, :value 1}
         {:process 0, :type :ok, :f :write, :value 1}
         {:process 1, :type :invoke, :f :cas, :value [1 2]}
         {:process 1, :type :fail, :f :cas, :value [1 2]}
         {:process 0, :type :invoke, :f :read, :value nil}
         {:process 0, :type :ok, :f :read, :value 1}]""",
    "ok: the first event beside the bracket": """
        [{:process 0, :type :invoke, :f :write, :value 1}
        {:process 1, :type :invoke, :f :read, :value nil}
        {:process 1, :type :ok, :f :read, :value 1}
        ]""",
    "ok: independent keys": """
        {:process 0, :type :invoke, :f :write, :value [7 5], :index 0}
        {:process 0, :type :ok, :f :write, :value [7 5], :index 1}
        {:process 1, :type :invoke, :f :write, :value [8 6], :index 2}
        {:process 1, :type :ok, :f :write, :value [8 6], :index 3}
        {:process 2, :type :invoke, :f :read, :value [7 nil], :index 4}
        {:process 2, :type :ok, :f :read, :value [7 5], :index 5}""",
    "violated: events over several lines, and comments": """
        ({:type :invoke, :f :write,
          :value 7, :process 0}   ; an event may take several lines
         {:type :ok, :f :write, :value 7, :process 0}
         ; a read of what nobody wrote
         {:type :invoke, :f :read, :value nil, :process 1}
         {:type :ok, :f :read,
          :value 8, :process 1})""",
    "ok: records, tags, discards, a nemesis, keys in any order": """
        #jepsen.history.Op{:f :write :value 3N :time 10 :index 0 :type :invoke
                           :process 2 :at #inst "2020-01-01" :error \\;}
        #_{:process 0 :type :ok :f :nonsense}
        #jepsen.history.Op{:process :nemesis :type :info :f :kill :value {:n1 [1 #{2}]}}
        #jepsen.history.Op{:process 2 :type :info :f :write :value 3
                           :error "lost {contact} ; with \\"n1\\""}
        #jepsen.history.Op{:process :nemesis :type :invoke :f :heal}
        #jepsen.history.Op{:process 5 :type :invoke :f :read :value 3}
        #jepsen.history.Op{:process 5 :type :ok :f :read :value 3}""",
    "violated: tuples instead of maps": """
        [0 :invoke :write 1] [0 :ok :write 1] [:nemesis :info :start nil]
        [1 :invoke :write 2] [1 :fail :write 2 :no-conns]
        [0 :invoke :read nil] [0 :ok :read 2]""",
    "violated: the order of lines counts, not that of times": """
        [{:process 0 :type :invoke :f :write :value 1 :time 90}
         {:process 0 :type :ok :f :write :value 1 :time 100}
         {:process 0 :type :invoke :f :write :value 2 :time 110}
         {:process 0 :type :ok :f :write :value 2 :time 120}
         {:process 1 :type :invoke :f :read :time 105}
         {:process 1 :type :ok :f :read :value 1 :time 130}]""",
    "ok: a call has the value of its response": """
        {:process 0 :type :invoke :f :write :value nil}
        {:process 0 :type :ok :f :write :value 4}
        {:process 0 :type :invoke :f :read :value nil}
        {:process 0 :type :ok :f :read :value 4}""",
}
LOCK = """
    [{:type :invoke, :f :release, :process 1, :time 5, :index 0}
    {:type :fail, :f :release, :process 1, :time 6, :error :not-held, :index 1}
    {:type :invoke, :f :acquire, :process 3, :time 9, :index 2}
    {:type :ok, :f :acquire, :process 3, :time 12, :index 3}
    {:type :info, :f :start, :process :nemesis, :time 14, :index 4}
    {:type :invoke, :f :acquire, :process 2, :time 13, :index 5}
    {:type :info, :f :release, :process 2, :time 15, :index 6}
    {:type :invoke, :f :acquire, :process 4, :time 16, :index 7}
    {:type :ok, :f :acquire, :process 4, :time 17, :index 8}]"""


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a text as a file of Jepsen."""
    path = tmp_path / "history.edn"

    def read(text, **options):
        path.write_text(text)
        return History.read_jepsen(path, **options)

    return read


@pytest.mark.parametrize("case", CASES)
def test_a_history_of_jepsen_has_knossos_verdict(case, read):
    verdict = check_linearizable(read(CASES[case]), CasRegister())
    assert case.startswith(verdict.answer), verdict


def test_two_holders_of_a_lock_are_a_violation(read):
    verdict = check_linearizable(read(LOCK), Lock())
    assert verdict.violated and "client 4's acquire succeeded" in verdict.why
    free = LOCK.replace(":f :acquire, :process 2", ":f :release, :process 2")
    assert not check_linearizable(read(free), Lock()).violated


def test_options_say_what_a_failure_a_nil_and_a_pair_mean(read):
    failed = CASES["ok: what failed did not happen"]
    assert check_linearizable(read(failed, fail_observed=True), CasRegister()).violated
    named = failed.replace(":type :fail,", ":type :fail, :error :timeout,")
    assert check_linearizable(read(named, fail_observed=True), CasRegister()).ok
    nil = failed.replace(":ok, :f :read, :value 1", ":ok, :f :read, :value nil")
    assert check_linearizable(read(nil), CasRegister()).violated
    assert not check_linearizable(read(nil, nil_unknown=True), CasRegister()).violated
    pairs = CASES["ok: independent keys"]
    assert [o.key for o in read(pairs)] == [7, 8, 7]
    assert {o.key for o in read(pairs, independent=False)} == {None}
    plain = pairs.replace("[7 nil]", "nil").replace("[8 6]", "[7 6]")
    assert {o.key for o in read(plain)} == {None}
    with pytest.raises(HistoryError, match="its value is no"):
        read(plain, independent=True)


def test_edn_is_read_with_places_and_refused_with_them():
    text = r'#:a{:b/c "\u00e9\n" \x 22/7} ##Inf ^:m (1 #_2 #{3N}) ; c'
    assert read_edn(text) == [
        {"b/c": "é\n", "x": 22 / 7},
        float("inf"),
        (1, frozenset([3])),
    ]
    places = {}
    ((_, inner),) = read_edn("[1\n (2)]", places)
    assert places[id(inner)] == 4
    for text, at in ("1 [2", 2), ("1 ]", 2), ("{1}", 0), ('1 "a', 1), ("[#_]", 3):
        with pytest.raises(NotEdn) as error:
            read_edn(text)
        assert error.value.at == at


def written(history, first=0):
    """Return a history as Jepsen writes it, with values in its own notation."""
    events = []
    for number, o in enumerate(history):
        value = str(o.value).replace("(", "[").replace(")", "]").replace("None", "nil")
        call = f":process {first + o.client}, :f :{o.op}, :value"
        events.append((o.start, number, f"{{:type :invoke, {call} {value}}}"))
        kind = "fail" if o.result is False else "ok"
        if o.op in ("read", "dequeue") and o.end is not None:
            value = "nil" if o.result is None else o.result
        end = (o.end, kind) if o.end is not None else (float("inf"), "info")
        events.append((end[0], number, f"{{:type :{end[1]}, {call} {value}}}"))
    return "[" + "\n ".join(event for *_, event in sorted(events)) + "]"


@pytest.mark.parametrize("clients", [5, 10, 30])
@pytest.mark.parametrize(
    ("name", "model"), [("CasRegister", CasRegister), ("Lock", Lock)]
)
def test_long_histories_of_jepsen_are_judged_right(clients, name, model, read):
    chance = random.Random(clients)
    fresh = FRESH.get(name, lambda: None)
    history = linearizable(chance, 1000, clients, CALLS[name], fresh)
    assert check_linearizable(read(written(history)), model()).ok
    wrong = [o for o in history if o.op == "read" and o.end is not None]
    if wrong:
        history = [o._replace(result=77) if o is wrong[-9] else o for o in history]
        verdict = check_linearizable(read(written(history)), model())
        assert verdict.violated and "returned 77, which no" in verdict.why


def appends(*reads):
    """Return appends of "a" and "b", then reads with these results."""
    done = [Operation(0, "append", "k", "a", 0, 1, "ok")]
    done.append(Operation(0, "append", "k", "b", 2, 3, "ok"))
    for at, found in enumerate(reads):
        times = 4 + 2 * at, 5 + 2 * at
        done.append(Operation(1, "read", "k", None, *times, "ok", found))
    return check_linearizable(History(done), KeyValue())


@pytest.mark.parametrize("reads", [("a", "ab"), ("ab", "a"), ("a",)])
def test_a_read_before_an_append_is_blamed_and_not_what_was_appended(reads):
    verdict = appends(*reads)
    assert "read of k returned a after client 0's append of b to k" in verdict.why
    assert [o.result for o in verdict.smallest if o.op == "read"] == ["a"]
    assert "no operation had put" in appends("ax").why


def test_the_response_that_no_order_gets_past_is_blamed():
    done = [Operation(0, "write", "k", 0, 0, 1, "ok")]
    done.append(Operation(1, "cas", "k", (0, 1), 4, 20, "ok", True))
    done.append(Operation(2, "cas", "k", (0, 2), 5, 6, "ok", True))
    assert "client 1's cas" in check_linearizable(History(done), CasRegister()).why


@pytest.mark.parametrize(("clients", "seed"), [(12, 1), (12, 7), (20, 8)])
def test_a_violation_is_explained_as_soon_as_it_is_minimal(clients, seed, monkeypatch):
    """The checkers' clock goes on with each look at it; a search looks at every 256."""
    assert preconditions.processor_s in (time.thread_time, time.process_time)
    looks = iter(range(10**9))
    for module in "preconditions", "order_search", "shrink":
        name = f"{preconditions.__package__}.{module}.processor_s"
        monkeypatch.setattr(name, lambda: next(looks))
    chance = random.Random(seed)
    calls = CALLS["CasRegister"]
    history = linearizable(chance, 400, clients, calls, unknown=0.01)
    wrong = corrupted(chance, history, {"read": [0, 1, 2, 3]}, 3)
    verdict = check_linearizable(wrong, CasRegister(), within_s=4000)
    assert verdict.violated and len(verdict.smallest) <= 4
    assert next(looks) < 1000


@pytest.fixture
def check(tmp_path):
    """Return a function that runs `distlab check` on a text: (status, output)."""

    def check(text, *options, suffix="edn"):
        path = tmp_path / f"history.{suffix}"
        path.write_text(text)
        done = CliRunner().invoke(app("check"), ["check", str(path), *options])
        return done.exit_code, done.output

    return check


def test_the_status_of_distlab_check_is_the_verdict(check, tmp_path):
    page = tmp_path / "page.html"
    violated = CASES["violated: events over several lines, and comments"]
    status, said = check(violated, "--model", "register", "--to", str(page))
    assert status == 1 and "returned 8, which no operation had put there" in said
    assert "client 1's read → 8 (line 6)" in said
    assert "</svg>" in page.read_text() and "returned 8" in page.read_text()
    assert check(CASES["ok: independent keys"])[0] == 0
    assert check(LOCK, "--model", "mutex")[0] == 1
    assert check("[0 :invoke :read nil]\n[0 :info :read nil]")[0] == 2
    lines = '{"client": 0, "event": "invoke", "op": "read"}\n'
    lines += '{"client": 0, "event": "ok", "result": 4}\n'
    assert check(lines, suffix="jsonl")[0] == 1
    assert check(lines, "--initial", "5", suffix="jsonl")[0] == 1
    assert check(lines, "--initial", "4", suffix="jsonl")[0] == 2


def test_what_distlab_check_cannot_judge_has_a_status_of_its_own(check):
    for text, options, words in [
        ("hello", (), "is an event of Jepsen"),
        (LOCK, ("--model", "registr"), "register, cas-register, key-value"),
        (LOCK, ("--model", "queue"), "is unknown to Queue"),
        (LOCK, ("--model", "lock", "--initial", "0"), "a lock starts empty"),
        (LOCK, ("--initial", "1 2"), "give one value"),
        (LOCK, ("--model", "lock", "--within", "0"), "it takes some time"),
        (LOCK, ("--model", "lock", "--to", "/no/where.html"), "cannot be written"),
    ]:
        status, said = check(text, *options)
        assert status == 3 and words in " ".join(said.split()), said
