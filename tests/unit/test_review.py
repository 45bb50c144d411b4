"""Cards come back when they are due; answers are kept with the learner."""

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from types import SimpleNamespace

import pytest
from decks import card, html
from typer.testing import CliRunner

from distlab.__main__ import app
from distlab.errors import InvalidArgument
from distlab.learner.predictions import answer_storage as kept
from distlab.learner.quiz import Deck, cards, deck, review
from distlab.learner.quiz.deck import _heard
from distlab.learner.quiz.review import due, rate, selected

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
    for wrong in ({"topic": "cats"}, {"level": "junior"}, {"lesson": 99}):
        with pytest.raises(InvalidArgument):
            selected(**wrong)


def test_a_rating_that_is_none_is_refused_and_changes_nothing(home):
    with pytest.raises(InvalidArgument, match="again, hard, good, easy"):
        rate("card-1", "perfect")
    assert not (home / "cards.json").exists()


def test_in_a_terminal_key_points_come_after_an_answer_and_an_end_keeps_ratings():
    command = ["review", "10", "--new", "2"]
    done = CliRunner().invoke(app("review"), command, input="\nx\ng\n")
    first, second = cards(10)[:2]
    shown = " ".join(done.output.split())
    assert shown.index(first.question) < shown.index(first.key_points[0])
    assert second.question in shown and second.key_points[0] not in shown
    assert done.exit_code == 0 and "the same command goes on" in shown
    assert [c.id for c in due(cards(10), new=1)] == [second.id]


def test_anki_gets_every_card_in_a_line_with_its_tags(tmp_path):
    file = tmp_path / "cards.txt"
    CliRunner().invoke(app("review"), ["review", "--anki", str(file)])
    rows = [r.split("\t") for r in file.read_text().splitlines() if r[0] != "#"]
    assert len(rows) == len(selected()) and {len(row) for row in rows} == {4}
    assert rows[0][0].startswith("distlab-00") and "distlab::00" in rows[0][3]
