"""Cards come back when they are due; answers are kept with the learner."""

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import pytest
from decks import card, html
from rich.console import Console
from typer.testing import CliRunner

from distlab.__main__ import app
from distlab.commands.review import _ask_all
from distlab.commands.running.hosted_notebooks import site
from distlab.errors import InvalidArgument
from distlab.learner.predictions import answer_storage as kept
from distlab.learner.quiz import Deck, cards, deck, review
from distlab.learner.quiz.card import LEVELS, lessons
from distlab.learner.quiz.deck import _heard
from distlab.learner.quiz.page import anki
from distlab.learner.quiz.review import due, new_today, rate, selected

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
FOUR = [card(number) for number in range(4)]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTLAB_HOME", str(tmp_path))
    return tmp_path


def test_a_card_comes_back_later_the_better_it_was_known():
    back = [rate(f"card-{n}", how, now=NOON) for n, how in enumerate(("again", "easy"))]
    assert NOON < back[0] < NOON + timedelta(hours=1) < back[1]
    again = rate("card-1", "easy", now=back[1])
    assert again - back[1] > back[1] - NOON


def test_due_cards_come_first_longest_due_before_then_a_few_new_ones():
    rate("card-3", "again", now=NOON)
    rate("card-1", "again", now=NOON + timedelta(minutes=5))
    rate("card-0", "easy", now=NOON)
    later = NOON + timedelta(hours=1)
    assert [c.id for c in due(FOUR, now=later)] == ["card-3", "card-1", "card-2"]
    assert [c.id for c in due(FOUR, new=0, now=later)] == ["card-3", "card-1"]
    kept._opened.cache_clear()  # as a new kernel does
    assert [c.id for c in due(FOUR, new=0, now=later)] == ["card-3", "card-1"]


def test_what_a_page_sends_is_kept_beside_the_rating_and_shown_again(home):
    _heard({"id": "card-1", "answer": "mine & yours", "ticked": ["first"]})
    _heard({"id": "card-1", "rating": "good"})
    entry = json.loads((home / "cards.json").read_text())["card-1"]
    assert entry["answer"] == "mine & yours" and entry["fsrs"]["due"]
    assert "mine &amp; yours" in html(Deck((card(1),)))


def test_an_answer_reaches_the_output_that_a_notebook_is_saved_with(monkeypatch):
    saved = []
    handle = SimpleNamespace(update=lambda bundle, raw: saved.append(bundle))
    monkeypatch.setattr(deck, "_above", {("card-1", "card-2"): handle, ("x",): None})
    _heard({"id": "card-1", "answer": "mine & yours", "ticked": []})
    [bundle] = saved
    held = re.search('data-kept="(.*?)"', bundle["text/html"])[1]
    assert json.loads(unescape(held))["card-1"]["answer"] == "mine & yours"


def test_cards_are_selected_by_lesson_level_and_topic():
    assert selected(lesson=10) == cards(10)
    assert {c.level for c in selected(level="senior")} == {"senior"}
    assert len({c.lesson for c in selected()}) > 10
    about = selected(topic="memory")
    assert about and all("memory" in c.topic.lower() for c in about)
    assert len(review(new=3).cards) == 3
    assert {c.lesson[:2] for c in selected(topic="All reduce", level="mid")} == {"10"}
    assert len(selected(topic=" quorum")) > 1  # in no topic, but in texts
    for wrong in ({"topic": "cats"}, {"level": "junior"}, {"lesson": 99}):
        with pytest.raises(InvalidArgument):
            selected(**wrong)


def test_new_cards_come_by_level_and_in_turns_from_all_lessons():
    everything = selected()
    levels = [c.level for c in everything]
    assert levels == sorted(levels, key=LEVELS.index)
    assert (
        len(set(everything)) == len(everything) == sum(map(len, map(cards, lessons())))
    )
    for level in LEVELS:
        first = [c.lesson for c in review(level=level, new=len(lessons())).cards]
        assert first == lessons()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("pipline", "pipeline"), ("Activation memry", "activation memory")],
)
def test_a_topic_that_is_none_is_answered_with_the_nearest_five(wrong, right):
    with pytest.raises(InvalidArgument, match="of level senior") as refusal:
        selected(topic=wrong, level="senior")
    nearest = str(refusal.value).partition("are: ")[2].split(", ")
    assert nearest[0] == right and len(nearest) == 5
    assert all(selected(topic=each, level="senior") for each in nearest)


def test_a_rating_that_is_none_is_refused_and_changes_nothing(home):
    with pytest.raises(InvalidArgument, match="again, hard, good, easy"):
        rate("card-1", "perfect")
    assert not (home / "cards.json").exists()


def asked(typed, *options):
    """Return the output of a review of lesson 10 to which a learner types `typed`."""
    done = CliRunner().invoke(app("review"), ["review", "10", *options], input=typed)
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split())


def test_in_a_terminal_key_points_come_after_an_answer_and_an_end_keeps_ratings():
    shown = asked("\n\nx\ng\n", "--new", "2")
    first, second = cards(10)[:2]
    assert shown.index(first.question) < shown.index(first.key_points[0])
    assert second.question in shown and second.key_points[0] not in shown
    assert "the same command goes on" in shown
    assert [c.id for c in due(cards(10), new=2)] == [second.id]


def test_a_day_has_ten_new_cards_however_often_one_asks(home):
    many = [card(number) for number in range(30)]
    for _ in range(3):  # four ratings in each call: ten in all
        for each in due(many, now=NOON)[:4]:
            rate(each.id, "easy", now=NOON)
    assert due(many, now=NOON) == [] and new_today(NOON) == 10
    kept._opened.cache_clear()  # as a new kernel does
    assert due(many[15:], now=NOON) == []  # also of other cards
    assert [c.id for c in due(many, new=12, now=NOON)] == ["card-10", "card-11"]
    assert len(due(many, now=NOON + timedelta(days=1))) == 10
    rate("card-0", "good", now=NOON + timedelta(days=1))  # rated again, it is not new
    assert new_today(NOON + timedelta(days=1)) == 0


def test_in_a_terminal_a_day_without_cards_says_how_to_have_more():
    asked("\n\ng\n", "--new", "1")
    assert "New today: 1; --new 11 brings ten more." in asked("", "--new", "1")


def test_answer_then_points_then_cell_then_the_follow_up(monkeypatch, tmp_path):
    one, two = (
        card(1, answer="A chunk."),
        card(2, question="And then?", follows="card-1"),
    )
    monkeypatch.setattr(
        "distlab.learner.quiz.card._read_once", lambda _: {"x": [one, two]}
    )
    sides = [html(Deck((one,))), anki([one], "https://site")]
    with CliRunner().isolation(input="mine\n\ng\n") as (printed, *_):
        _ask_all(Console(), [one], [one])
        sides.append(printed.getvalue().decode())
    for side in sides:
        order = [
            side.index(text)
            for text in ("A chunk.", "second", "#cell-id=", "And then?")
        ]
        assert order == sorted(order)


def test_in_a_terminal_answer_and_ticks_are_kept_and_the_cell_has_an_address(home):
    first = cards(10)[0]
    shown = asked("mine\n5\n3,1\nq\n")
    assert "You had 2 of 4." in shown and "goes on" in shown
    assert f"/lessons/{first.lesson}.html#cell-id={first.cell} " in shown
    entry = json.loads((home / "cards.json").read_text())[first.id]
    points = [first.key_points[0], first.key_points[2]]
    assert entry == {"answer": "mine", "ticked": points}
    asked("\n\nq\n")
    entry = json.loads((home / "cards.json").read_text())[first.id]
    assert entry == {"answer": "mine", "ticked": []}


@pytest.mark.parametrize("before", ["", "mine\n", "mine\n1\n"])
def test_in_a_terminal_a_question_mark_helps_and_q_quits_at_every_question(before):
    shown = asked(f"{before}?\nQ\n1\ng\n")
    assert shown.count("q quits; what you answered is kept") == 1
    assert shown.endswith("What you answered is kept; the same command goes on.")
    assert "Comes back" not in shown


def test_what_cannot_be_kept_is_said(home):
    (home / "cards.json").write_text("{")
    assert "is damaged, so cards are kept only until" in asked("mine\nq\n")


def test_a_card_links_to_its_lesson_from_wherever_the_notebook_is(
    tmp_path, monkeypatch
):
    for place in ("lessons/10_ring.ipynb", "exercises/10_ring/10_ring.ipynb"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    for folder in (".", "lessons", "exercises/10_ring"):
        monkeypatch.chdir(tmp_path / folder)
        link = re.search('href="(.*?)#cell-id=the-cell"', html(Deck((card(1),))))[1]
        assert Path(link).samefile(tmp_path / "lessons" / "10_ring.ipynb")


def test_anki_gets_every_card_in_a_line_with_its_tags(tmp_path):
    file = tmp_path / "cards.txt"
    CliRunner().invoke(app("review"), ["review", "--anki", str(file)])
    rows = [r.split("\t") for r in file.read_text().splitlines() if r[0] != "#"]
    assert len(rows) == len(selected()) and {len(row) for row in rows} == {4}
    assert rows[0][0].startswith("distlab-00") and "distlab::00" in rows[0][3]
    assert f'href="{site()}/lessons/00_start_here.html#cell-id=' in rows[0][2]
