"""A mock interview is drawn as an interviewer asks, judged rightly, and never lost."""

import itertools
import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from soaks import nightly
from typer.testing import CliRunner

from distlab import cost
from distlab.__main__ import app
from distlab.errors import InvalidArgument
from distlab.learner.interview.draw import draw, question_of
from distlab.learner.interview.live_coding import EXERCISES, live_coding, program
from distlab.learner.interview.record import begin, current, earlier
from distlab.learner.interview.whiteboard import TOPICS, whiteboard
from distlab.learner.predictions import answer_storage
from distlab.learner.quiz.card import LEVELS
from distlab.learner.quiz.review import selected
from distlab.train.pipeline import interleaved, one_f_one_b, timed

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTLAB_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- the draw -------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("minutes", [5, 15, 30, 45, 120])
def test_a_draw_fits_the_minutes_and_asks_chains_in_order(level, minutes):
    for seed in range(8):
        drawn = draw(level, minutes, None, seed)
        assert minutes - 6 <= sum(each.minutes for each in drawn) <= minutes
        asked = [each.card for each in drawn if each.value is None and not each.code]
        assert [bool(each.code) for each in drawn].count(True) == (minutes >= 30)
        assert sum(each.value is not None for each in drawn) == (minutes >= 15)
        at = {each.id: number for number, each in enumerate(asked)}
        assert len(at) == len(asked) > 0
        for each in asked:  # a follow-up comes straight after what it follows
            assert at.get(each.follows, at[each.id] - 1) == at[each.id] - 1
        most = LEVELS.index(level) + 1
        assert all(LEVELS.index(each.card.level) <= most for each in drawn)
        heads = [each.topic for each in asked if each.follows not in at]
        assert len(set(heads)) == len(heads)


def test_a_seed_draws_the_same_and_what_was_asked_recently_comes_last():
    first = draw("senior", 45, None, 7)
    assert first == draw("senior", 45, None, 7) != draw("senior", 45, None, 8)
    recent, seen = [], set()
    for seed in range(6):
        names = [each.card.id for each in draw("senior", 45, None, seed, recent)]
        topics = {name.rpartition("-")[0] if name[0] == "w" else name for name in names}
        assert not topics & seen
        seen |= topics
        recent += names


def test_a_topic_chooses_chains_whiteboard_and_code_nearest_to_it():
    for topic, lesson in {"quorum": "04", "pipelines": "14", "ring": "10"}.items():
        *_, numbers, code = draw("senior", 45, topic, 1)
        assert numbers.card.lesson[:2] == code.card.lesson[:2] == lesson
    wanted = {each.id for each in selected(topic="bubble", level="principal")}
    drawn = {each.card.id for each in draw("principal", 25, "bubble", 1)}
    assert drawn & wanted


@pytest.mark.parametrize("minutes", [0, 4, 241, 5000, -1, 45.0, True, "45"])
def test_minutes_out_of_range_are_refused(minutes):
    with pytest.raises(
        InvalidArgument, match=re.escape(f"5 to 240 minutes, and got {minutes!r}")
    ):
        draw("senior", minutes, None, 1)


# ---- whiteboard: each value by another way --------------------------------------


def _numbers(text):
    return [
        float(n.replace(",", "")) for n in re.findall(r"(?<![\w.])\d[\d,]*\.?\d*", text)
    ]


def speed_up(percent, n):
    return 100 / (percent + (100 - percent) / n)


def quorum_availability(n, percent):
    q, n = percent / 100, int(n)
    states = itertools.product([0, 1], repeat=n)
    lost = [q ** sum(s) * (1 - q) ** (n - sum(s)) for s in states if sum(s) > n / 2]
    return 100 * sum(lost)


def shuffle_time(terabytes, n, gigabits, factor, _):
    leaves_bits = 8e12 * terabytes / n * (1 - 1 / n)
    return leaves_bits / (gigabits * 1e9 / factor)


def catch_up(rate, speed, minutes, _):
    lag, seconds = minutes * 60 * rate, 0
    while lag > 0:
        lag, seconds = lag + rate - speed, seconds + 1
    return seconds / 60


def all_reduce_time(n, rate, gigabytes, latency_us):
    steps = 2 * (n - 1)  # each moves a chunk of S/n
    return steps * (latency_us / 1e3 + 1e3 * gigabytes / n / rate)


def memory_per_gpu(billions, tp, pp, dp, stage):
    shares = [12 / (dp if stage >= 1 else 1), 2 / (dp if stage >= 2 else 1)]
    return billions / (tp * pp) * sum([*shares, 2 / (dp if stage >= 3 else 1)])


def bubble(p, m, chunks=1):
    p, m, chunks = int(p), int(m), int(chunks)
    plan = one_f_one_b(p, m) if chunks == 1 else interleaved(p, m, chunks)
    return 100 * timed(plan).bubble_to_end


def checkpoint_interval(gpus, years, save_s, _=None):
    mtbf_s = years * 365 * 86400 / gpus
    loss = lambda tau: save_s / tau + tau / 2 / mtbf_s  # noqa: E731
    return min(range(10, 36000, 5), key=loss) / 60


def training_days(billions, trillions, gpus, peak, percent):
    tokens_per_s = trillions * 1e12 / 86400  # if it took a day
    one_day = cost.mfu(6e9 * billions, tokens_per_s, int(gpus), peak * 1e12)
    return one_day / (percent / 100)


@pytest.mark.parametrize("topic", TOPICS)
def test_a_whiteboard_number_is_right_by_another_way_and_stands_in_its_steps(topic):
    seen = set()
    for seed in range(12):
        question = whiteboard(topic, seed)
        text = re.sub(r"1F1B|H100s|bf16|fp32", " ", question.card.question)
        value = globals()[topic](*_numbers(text))
        assert question.value == pytest.approx(value, rel=0.02), (question.card, value)
        assert question.is_right(value) and not question.is_right(1.25 * value)
        assert not question.is_right(None)
        said = question.card.answer.partition(" ")[0]
        steps = " ".join(question.card.key_points)
        assert any(abs(n / question.value - 1) < 0.01 for n in _numbers(steps)), said
        assert 3 <= len(question.card.key_points) <= 5
        seen.add(question.card.question)
    assert len(seen) > 3


@pytest.mark.parametrize("topic", TOPICS)
def test_a_whiteboard_question_leads_to_a_cell_of_a_lesson(topic):
    shown = whiteboard(topic, 1).card
    cells = json.loads((ROOT / "lessons" / f"{shown.lesson}.ipynb").read_text())[
        "cells"
    ]
    assert shown.cell in {cell["id"] for cell in cells}
    assert question_of(shown.id) == whiteboard(topic, 1)


# ---- live coding ----------------------------------------------------------------


@pytest.mark.parametrize("stem", EXERCISES)
def test_live_code_has_contract_stub_and_check_and_no_more_than_it_needs(stem):
    question = live_coding(stem)
    assert (
        "# ## Step 1. Correct" in question.code and "write this step" in question.code
    )
    assert (
        question.code.count("\n") < 120
        and max(map(len, question.code.splitlines())) < 120
    )
    compile(program(question.code), stem, "exec")
    assert 3 <= len(question.card.key_points) <= 5


def _status(code, folder):
    path = folder / "interview_x.py"
    path.write_text(code)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("stem", [EXERCISES[0], *map(nightly, EXERCISES[1:])])
def test_a_program_ends_with_0_only_if_the_stub_is_right(stem, tmp_path):
    code = program(live_coding(stem).code)
    assert _status(code, tmp_path)[0] == 1
    cells = json.loads((ROOT / "solutions" / stem / f"{stem}.ipynb").read_text())[
        "cells"
    ]
    stubs = re.findall(r"^def \w+|^class \w+", code, re.MULTILINE)
    sources = [
        "".join(c["source"]) for c in cells if "BEGIN SOLUTION" in "".join(c["source"])
    ]
    answer = "\n\n".join(s for s in sources if s.startswith(tuple(stubs)))
    head, check = code.rsplit("\n\n", 1)
    status, said = _status(f"{head}\n\n{answer}\n\n{check}", tmp_path)
    assert status == 0, said


# ---- record and terminal --------------------------------------------------------


def asked(typed, *options):
    """Return the output of `distlab interview` to which a learner types `typed`."""
    done = CliRunner().invoke(app("interview"), ["interview", *options], input=typed)
    assert done.exit_code == 0, done.output
    return done.output


FIVE = "--minutes", "5", "--seed", "3"


def test_an_interview_ends_with_the_cells_to_read_again_and_is_in_the_record(home):
    shown = asked("\nmine\nand more\n\n1\n", *FIVE)
    [held] = earlier()
    [name] = held.questions
    kept, question = held.answers[name], question_of(name)
    assert kept["answer"] == "mine\nand more" and kept["done"] and held.ended
    assert held.points == {name: (1, len(question.card.key_points))}
    assert f"1 of {len(question.card.key_points)} key points in 1 questions" in shown
    link = f"/lessons/{question.card.lesson}.html#cell-id={question.card.cell}"
    assert shown.count(link) == 2 and "Read again, fewest points first" in shown
    assert "senior  all" in asked("", "--record")
    assert json.loads((home / "interviews.json").read_text())[held.started]["ended"]
    assert current() is None  # the next one is another


LONG = "--minutes", "15", "--seed", "3"  # cards, then a whiteboard question
ANSWERS = ["", "a", "", "1", "b", "", "2", "c", "", "3.5 ", "1 2"]


@pytest.mark.parametrize("stop", range(len(ANSWERS)))
@pytest.mark.parametrize("how", ["q", None])
def test_a_stop_at_any_prompt_loses_nothing(stop, how):
    held = begin("senior", 15, seed=3)
    assert [q.value is None for q in map(question_of, held.questions)] == [
        True,
        True,
        False,
    ]
    typed = ANSWERS[:stop] + [how] * (how is not None)
    shown = asked("\n".join(typed) + "\n" * bool(typed), *LONG)
    assert "What you wrote is kept; the same command goes on." in shown
    before = [each.answers for each in earlier()]
    begins = [""] * (stop > 0) + [""] * (stop == 9)  # the second ends the text
    options = () if stop else LONG
    shown = asked("\n".join([*begins, *ANSWERS[stop:]]) + "\n", *options)
    assert ("Going on" in shown) == any(before)
    [held] = earlier()
    assert held.ended and [a["answer"] for a in held.answers.values()] == [
        "a",
        "b",
        "c",
    ]
    assert [len(each["ticked"]) for each in held.answers.values()] == [1, 1, 2]
    assert list(held.answers.values())[-1]["number"] == 3.5


def test_ctrl_c_in_the_middle_of_a_line_keeps_the_line(home):
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-m", "distlab", "interview", *FIVE])
    seen = b""

    def until(text):
        nonlocal seen
        while text not in seen:
            seen += os.read(terminal, 4096)
        seen = seen.partition(text)[2]

    def write(text, *after):
        for each in after:
            until(each)
        os.write(terminal, text)

    write(b"\n", b"q stops): ")
    write(b"one line\n", b"an empty line:", b"> ")
    write(b"half a line", b"one line", b"> ")
    until(b"half a line")
    while b"goes on." not in seen:
        # A signal that comes while readline handles a key waits for the next key.
        os.write(terminal, b"\x03")
        while select.select([terminal], [], [], 5)[0] and b"goes on." not in seen:
            seen += os.read(terminal, 4096)
    os.waitpid(pid, 0)
    os.close(terminal)
    [kept] = earlier()[0].answers.values()
    assert kept["answer"] == "one line\nhalf a line" and "seconds" in kept


def test_an_interrupt_while_a_line_is_stored_stops_the_interview(monkeypatch):
    replace = os.replace

    def interrupted(*paths):
        replace(*paths)
        monkeypatch.setattr(os, "replace", replace)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    assert "Stopped. What you wrote is kept" in asked("\nmine\n\n1\n", *FIVE)
    [kept] = earlier()[0].answers.values()
    assert kept["answer"] == "mine" and "done" not in kept


def test_time_that_is_over_ends_the_interview_and_says_what_was_not_asked():
    held = begin("senior", 15, seed=3)
    held.keep(held.questions[0], answer="a", answered=True, seconds=15 * 60.0)
    shown = asked("\n1\n")
    assert re.search("You took 15:00 of [346]:00.", shown)
    assert "The time was over before 2 of 3 questions." in shown and earlier()[0].ended


def test_code_is_written_to_a_file_and_checked_from_there(home, monkeypatch):
    held = begin("senior", 30, "amdahl", seed=1)
    assert held.questions[-1] == "live-coding-01_why_distribute"
    for name in held.questions[:-1]:
        held.keep(name, answer="a", ticked=[], of=4, done=True)
    (home / "interview_01_why_distribute.py").write_text("mine, of an earlier one")
    codes = iter([1, 0])
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda command: subprocess.CompletedProcess(command, next(codes)),
    )
    shown = asked("\n\n\n\n\n1\n")
    assert "interview_01_why_distribute_2.py checks it" in shown
    assert "The code passed." in shown
    [held] = earlier()
    kept = held.answers[held.questions[-1]]
    assert kept["passed"] and "def shared_work" in kept["answer"]
    assert (home / "interview_01_why_distribute.py").read_text().startswith("mine")


def test_code_that_did_not_pass_has_not_its_point_whatever_is_ticked():
    held = begin("senior", 30, "amdahl", seed=1)
    for name in held.questions[:-1]:
        held.keep(name, answer="a", ticked=[], of=4, done=True)
    shown = asked("\nA worker dies.\n\nd\n7\n1 2\n")
    assert "Numbers from 1 to" in shown and "The code did not pass." in shown
    kept = earlier()[0].answers[held.questions[-1]]
    assert len(kept["ticked"]) == 1 and kept["first"] == "A worker dies."


BAD = {
    ("--minutes", "0"): "an interview has 5 to 240 minutes, and got 0",
    ("--minutes", "5000"): "5 to 240 minutes, and got 5000",
    ("--level", "junior"): "a level is one of mid, senior, principal, and got 'junior'",
    ("--topic", "cats"): "is about 'cats'. Spelled most like it are:",
}


@pytest.mark.parametrize("options", BAD)
def test_bad_input_is_named_and_leaves_no_record(options, home):
    done = CliRunner().invoke(app("interview"), ["interview", *options])
    assert done.exit_code == 1 and BAD[options] in " ".join(done.output.split())
    assert not (home / "interviews.json").exists()


def test_what_cannot_be_kept_is_said_and_strange_entries_are_left_out(home):
    (home / "interviews.json").write_text('{"x": 3, "y": {}, "z": {"level": "mid"}}')
    assert earlier() == [] and "no interview in the record" in asked("", "--record")
    gone = {"ticked": ["x"], "of": 4, "done": True}  # a card of an older version
    old = begin("mid", 5, seed=1)
    old.questions.append("99-gone")
    old.keep("99-gone", **gone)
    assert "1 of 4" in asked("", "--record") and current() is None
    answer_storage._opened.cache_clear()
    (home / "interviews.json").write_text("{")
    assert "is damaged, so interviews are kept only" in asked("\nq\n", *FIVE)
