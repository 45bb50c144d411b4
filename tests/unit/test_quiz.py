"""Cards are well-formed, lead to a cell that exists, and make one answer first."""

import json
import re
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from decks import HOSTILE, card, html

from distlab.calls.message_html import plain
from distlab.errors import InvalidArgument
from distlab.learner.quiz import Card, Deck, ask, cards
from distlab.learner.quiz.card import LEVELS, parse_cards, read_folder

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "lessons").glob("*.ipynb"))
STEMS = [path.stem for path in LESSONS]

ONE = """id: one
level: mid
topic: rings
cell: some-cell
question:
What does a rank send,
and to whom?

And why: is it enough?
answer:
A chunk.
key points:
- A chunk, to its right
  neighbour.
- Topic: nothing else.
"""
TWO = ONE.replace("id: one", "id: two")


def parsed(text):
    return parse_cards(text, lesson="10_ring", file=Path("10_ring.txt"))


# ---- the files ------------------------------------------------------------------


@pytest.mark.parametrize("stem", STEMS)
def test_every_lesson_has_cards_of_all_levels(stem):
    levels = [card.level for card in cards(stem)]
    assert set(levels) == set(LEVELS)
    assert levels == sorted(levels, key=LEVELS.index)


@pytest.mark.parametrize("stem", STEMS)
def test_the_cell_of_a_card_is_in_its_lesson(stem):
    notebook = json.loads((ROOT / "lessons" / f"{stem}.ipynb").read_text())
    ids = {cell["id"] for cell in notebook["cells"]}
    assert not {card.cell for card in cards(stem)} - ids


def test_every_file_of_cards_belongs_to_a_lesson_and_no_id_is_used_twice():
    files = sorted((ROOT / "distlab" / "learner" / "quiz").glob("*.txt"))
    assert [file.stem for file in files] == STEMS
    ids = [card.id for stem in STEMS for card in cards(stem)]
    assert len(set(ids)) == len(ids) > 0


@pytest.mark.parametrize("stem", STEMS)
def test_cards_are_written_in_the_voice_of_the_course(stem):
    for each in cards(stem):
        assert 3 <= len(each.key_points) <= 5, each.id
        for text in (each.question, each.answer, *each.key_points):
            assert "!" not in text and text[-1] in ".?", (each.id, text)


# ---- reading --------------------------------------------------------------------


def test_a_card_is_read_as_it_is_written():
    [each] = parsed(ONE)
    assert each == Card(
        id="one",
        level="mid",
        topic="rings",
        question="What does a rank send, and to whom? And why: is it enough?",
        answer="A chunk.",
        key_points=("A chunk, to its right neighbour.", "Topic: nothing else."),
        cell="some-cell",
        lesson="10_ring",
    )
    with pytest.raises(FrozenInstanceError):
        each.level = "senior"


@pytest.mark.parametrize("line", ["---", "-----", "---  "])
def test_dashes_stand_between_cards_and_may_end_the_file(line):
    found = parsed(f"\n{ONE}\n{line}\n\n{TWO}{line}\n")
    assert [card.id for card in found] == ["one", "two"]
    assert found[0].key_points == found[1].key_points


WRONG = {
    "unknown field": (ONE.replace("level:", "levle:"), 2, "'levle: mid'"),
    "no answer": (ONE.replace("answer:\nA chunk.\n", ""), 1, "has no answer"),
    "no field": (ONE.replace("topic: rings", "rings"), 3, "'rings'"),
    "field twice": (ONE.replace("topic: rings", "id: other"), 3, "id: twice"),
    "no level": (ONE.replace("level: mid\n", ""), 1, "has no level"),
    "empty id": (ONE.replace("id: one", "id:"), 1, "has no id"),
    "level": (ONE.replace("mid", "junior"), 2, "'junior'"),
    "id with a space": (ONE.replace("id: one", "id: o ne"), 1, "'o ne'"),
    "hostile cell": (ONE.replace("some-cell", '"x'), 4, "the cell is"),
    "no key points": (ONE.partition("key")[0], 1, "has no key points"),
    "empty key points": (ONE.partition("- A")[0], 1, "has no key points"),
    "point without dash": (ONE.replace("- A", "A"), 13, "begins with '- '"),
    "empty point": (ONE + "-\n", 16, "is empty"),
    "no question": (ONE.replace("question:", "topic2:"), 5, "'topic2:'"),
    "id twice": (f"{ONE}---\n{ONE}", 17, "another card 'one'"),
    "forgotten dashes": (f"{ONE}{TWO}", 25, "answer: twice"),
    "second card": (f"{ONE}---\n\n{TWO.replace('mid', '')}", 18, "has no level"),
    "empty file": ("\n---\n", 1, "no card"),
    "long answer": (
        ONE.replace("A chunk.", "word " * 61),
        10,
        "61 words",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_with_file_and_line(name):
    text, line, what = WRONG[name]
    with pytest.raises(InvalidArgument) as refusal:
        parsed(text)
    assert str(refusal.value).startswith(f"10_ring.txt, line {line}: ")
    assert what in str(refusal.value)


@pytest.mark.parametrize("lesson", [10, "10", "10_ring_all_reduce"])
def test_a_lesson_is_named_by_its_number_or_its_stem(lesson):
    assert cards(lesson) == cards("10_ring_all_reduce")
    assert {card.lesson for card in cards(lesson)} == {"10_ring_all_reduce"}


@pytest.mark.parametrize("level", LEVELS)
def test_one_level_can_be_asked_for(level):
    assert cards(10, level) == [card for card in cards(10) if card.level == level]
    assert ask(10, level).cards == tuple(cards(10, level))


@pytest.mark.parametrize("lesson", [99, "99", "", None, "../10_ring_all_reduce", 1.5])
def test_a_lesson_without_cards_is_refused_and_those_there_are_named(lesson):
    with pytest.raises(InvalidArgument, match="10_ring_all_reduce") as refusal:
        ask(lesson)
    assert repr(lesson) in str(refusal.value)


def test_a_level_that_is_not_there_is_refused():
    with pytest.raises(InvalidArgument, match=r"mid, senior, principal.*'junior'"):
        ask(10, level="junior")


FOLLOWS = "cell: some-cell\nfollows: {}"


@pytest.mark.parametrize(
    ("one", "two", "level", "line", "what"),
    [
        ("", "three", "mid", 21, "no card 'three' to follow"),
        ("two", "one", "mid", 5, "in a cycle"),
        ("one", "", "mid", 5, "in a cycle"),
        ("", "one", "principal", 21, "level mid cannot follow 'one'"),
    ],
)
def test_a_wrong_chain_is_named_with_file_and_line(
    tmp_path, one, two, level, line, what
):
    texts = [ONE.replace("mid", level), TWO]
    for at, follows in enumerate((one, two)):
        if follows:
            texts[at] = texts[at].replace("cell: some-cell", FOLLOWS.format(follows))
    (tmp_path / "10_ring.txt").write_text("---\n".join(texts))
    with pytest.raises(
        InvalidArgument, match=rf"10_ring.txt, line {line}: "
    ) as refusal:
        read_folder(tmp_path)
    assert what in str(refusal.value)


def test_a_chain_leads_from_lesson_to_lesson_and_up(tmp_path):
    (tmp_path / "10_ring.txt").write_text(ONE)
    above = TWO.replace("mid", "senior").replace(
        "cell: some-cell", FOLLOWS.format("one")
    )
    (tmp_path / "11_data.txt").write_text(above)
    [after] = read_folder(tmp_path)["11_data"]
    assert after.follows == "one"


# ---- showing --------------------------------------------------------------------


def test_a_terminal_shows_the_questions_and_no_key_points():
    deck = ask(10)
    said = " ".join(repr(deck).split())
    assert deck._repr_mimebundle_()["text/plain"] == repr(deck)
    for shown in deck.cards:
        assert plain(shown.question) in said
        assert not [point for point in shown.key_points if point in said]
    assert max(map(len, repr(deck).splitlines())) <= 88


def test_without_scripts_key_points_are_in_closed_details():
    text = html(Deck((card(1),)))
    [details] = re.findall(r"<details>(.*?)</details>", text)
    assert all(point in details for point in ("first", "second", "third"))
    assert "second" not in text.replace(details, "")
    assert 'href="10_ring.ipynb#cell-id=the-cell"' in details
    assert 'data-lm-suppress-shortcuts="true"' in text
    assert not re.search(r"https?://|<textarea|src=", text)


def test_hostile_texts_stay_texts():
    hostile = card(1, topic=HOSTILE, question=HOSTILE, key_points=(HOSTILE,))
    assert HOSTILE not in html(Deck((hostile,)))
    assert html(Deck((hostile,))).count("<script") == 1


def test_showing_cards_needs_neither_torch_nor_a_notebook():
    code = "import sys; from distlab.learner.quiz import ask\n"
    code += "ask(10)._repr_mimebundle_()\n"
    code += "print({'torch', 'IPython', 'ipywidgets'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")
