"""Cards are well-formed, lead to a cell that exists, and make one answer first."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from distlab.errors import InvalidArgument
from distlab.quiz import Card, Deck, ask, cards
from distlab.quiz.card import LEVELS, parse_cards

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "lessons").glob("*.ipynb"))
STEMS = [path.stem for path in LESSONS]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "</details><script>document.title='got in'</script><b>\"&"

ONE = """id: one
level: mid
topic: rings
cell: some-cell
question:
What does a rank send,
and to whom?

And why: is it enough?
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
    files = sorted((ROOT / "distlab" / "quiz").glob("*.txt"))
    assert [file.stem for file in files] == STEMS
    ids = [card.id for stem in STEMS for card in cards(stem)]
    assert len(set(ids)) == len(ids) > 0


@pytest.mark.parametrize("stem", STEMS)
def test_cards_are_written_in_the_voice_of_the_course(stem):
    for card in cards(stem):
        assert 3 <= len(card.key_points) <= 5, card.id
        for text in (card.question, *card.key_points):
            assert "!" not in text and text[-1] in ".?", (card.id, text)


# ---- reading --------------------------------------------------------------------


def test_a_card_is_read_as_it_is_written():
    [card] = parsed(ONE)
    assert card == Card(
        id="one",
        level="mid",
        topic="rings",
        question="What does a rank send, and to whom? And why: is it enough?",
        key_points=("A chunk, to its right neighbour.", "Topic: nothing else."),
        cell="some-cell",
        lesson="10_ring",
    )
    with pytest.raises(FrozenInstanceError):
        card.level = "senior"


@pytest.mark.parametrize("line", ["---", "-----", "---  "])
def test_dashes_stand_between_cards_and_may_end_the_file(line):
    found = parsed(f"\n{ONE}\n{line}\n\n{TWO}{line}\n")
    assert [card.id for card in found] == ["one", "two"]
    assert found[0].key_points == found[1].key_points


WRONG = {
    "unknown field": (ONE.replace("level:", "levle:"), 2, "'levle: mid'"),
    "no field": (ONE.replace("topic: rings", "rings"), 3, "'rings'"),
    "field twice": (ONE.replace("topic: rings", "id: other"), 3, "id: twice"),
    "no level": (ONE.replace("level: mid\n", ""), 1, "has no level"),
    "empty id": (ONE.replace("id: one", "id:"), 1, "has no id"),
    "level": (ONE.replace("mid", "junior"), 2, "'junior'"),
    "id with a space": (ONE.replace("id: one", "id: o ne"), 1, "'o ne'"),
    "hostile cell": (ONE.replace("some-cell", '"x'), 4, "the cell is"),
    "no key points": (ONE.partition("key")[0], 1, "has no key points"),
    "empty key points": (ONE.partition("- A")[0], 1, "has no key points"),
    "point without dash": (ONE.replace("- A", "A"), 11, "begins with '- '"),
    "empty point": (ONE + "-\n", 14, "is empty"),
    "no question": (ONE.replace("question:", "topic2:"), 5, "'topic2:'"),
    "id twice": (f"{ONE}---\n{ONE}", 15, "another card 'one'"),
    "forgotten dashes": (f"{ONE}{TWO}", 23, "key points: twice"),
    "second card": (f"{ONE}---\n\n{TWO.replace('mid', '')}", 16, "has no level"),
    "empty file": ("\n---\n", 1, "no card"),
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


# ---- showing --------------------------------------------------------------------


def card(number, **fields):
    usual = {
        "id": f"card-{number}",
        "level": "mid",
        "topic": "rings",
        "question": f"What is {number}?",
        "key_points": ("first", "second", "third"),
        "cell": "the-cell",
        "lesson": "10_ring",
    }
    return Card(**{**usual, **fields})


def html(deck):
    return deck._repr_mimebundle_()["text/html"]


def test_a_terminal_shows_the_questions_and_no_key_points():
    deck = ask(10)
    said = " ".join(repr(deck).split())
    assert deck._repr_mimebundle_()["text/plain"] == repr(deck)
    for shown in deck.cards:
        assert shown.question in said
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
    code = "import sys; from distlab.quiz import ask; ask(10)._repr_mimebundle_()\n"
    code += "print({'torch', 'IPython', 'ipywidgets'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")


# ---- in a browser ---------------------------------------------------------------


@contextmanager
def browser(folder, *decks, before=""):
    """Open a page that shows decks, with the cell they lead to; yield page and errors.

    before: script that runs before the page's own.
    """
    if not CHROMIUM:
        pytest.skip("no chromium here")
    from playwright.sync_api import sync_playwright

    bodies = "".join(html(deck) for deck in decks)
    far = '<div style="height:3000px"></div><div id="cell-id=the-cell">here</div>'
    (folder / "10_ring.html").write_text(f"<!DOCTYPE html><body>{bodies}{far}</body>")
    with sync_playwright() as play:
        quiet = ["background-networking", "component-update", "sync", "gpu"]
        arguments = ["--no-sandbox", *(f"--disable-{what}" for what in quiet)]
        window = play.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page, errors = window.new_page(), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text))
        page.add_init_script(before)
        page.goto((folder / "10_ring.html").as_uri())
        yield page
        assert errors == []
        window.close()


def reload(page):
    """Reload the page as a person would: Chromium stores by and by what was kept."""
    page.wait_for_timeout(500)
    page.reload()


def section(page, number, nth=0):
    return page.locator(f"[data-card=card-{number}]").nth(nth)


def test_key_points_can_be_seen_only_after_an_answer(tmp_path):
    with browser(tmp_path, Deck((card(1), card(2)))) as page:
        first = section(page, 1)
        assert page.locator("details").count() == 0
        assert not first.get_by_text("second").is_visible()
        assert first.get_by_role("button").is_disabled()
        first.get_by_label("Your answer").fill("   ")
        assert first.get_by_role("button").is_disabled()
        first.get_by_label("Your answer").fill("I do not know")
        first.get_by_role("button").click()
        assert first.get_by_text("second").is_visible()
        assert not section(page, 2).get_by_text("second").is_visible()
        assert section(page, 2).get_by_role("button").is_disabled()


def test_the_keyboard_alone_is_enough(tmp_path):
    with browser(tmp_path, Deck((card(1),))) as page:
        press = page.keyboard.press
        press("Tab")
        page.keyboard.type("a\nb")
        assert page.get_by_label("Your answer").input_value() == "a\nb"
        for key in ("Tab", "Enter", "Tab", "Space", "Tab", "Tab", "Space"):
            press(key)
        assert page.get_by_text("You had 2 of 3.").is_visible()
        press("Space")
        assert page.get_by_text("You had 1 of 3.").is_visible()
        press("Tab")
        press("Enter")
        assert page.evaluate("document.activeElement.textContent") == "here"
        assert page.evaluate("scrollY") > 1000


def test_answers_and_ticks_survive_a_reload_and_the_key_points_close(tmp_path):
    with browser(tmp_path, Deck((card(1), card(2)))) as page:
        section(page, 1).get_by_label("Your answer").fill("mine")
        section(page, 1).get_by_role("button").click()
        section(page, 1).get_by_label("third").check()
        reload(page)
        first = section(page, 1)
        assert first.get_by_label("Your answer").input_value() == "mine"
        assert not first.get_by_text("third").is_visible()
        first.get_by_role("button").click()
        assert first.get_by_text("You had 1 of 3.").is_visible()
        assert first.get_by_label("third").is_checked()
        assert section(page, 2).get_by_label("Your answer").input_value() == ""


FORBIDDEN = "Object.defineProperty(window, 'localStorage', {get() {throw Error('no')}})"
STRANGE = ["null", "{", "[]", "7", '{"answer": {}, "ticked": 3}', '{"ticked": null}']


@pytest.mark.parametrize(
    "before",
    [FORBIDDEN, *(f"localStorage['distlab.card.card-1'] = '{v}'" for v in STRANGE)],
)
def test_without_a_usable_storage_cards_work_and_forget(tmp_path, before):
    with browser(tmp_path, Deck((card(1),)), before=before) as page:
        page.get_by_label("Your answer").fill("mine")
        page.get_by_role("button").click()
        page.get_by_label("first").check()
        assert page.get_by_text("You had 1 of 3.").is_visible()


def test_two_decks_in_a_page_work_each_for_itself(tmp_path):
    with browser(tmp_path, Deck((card(1),)), Deck((card(1), card(2)))) as page:
        assert page.get_by_label("Your answer").count() == 3
        section(page, 1, nth=1).get_by_label("Your answer").fill("mine")
        section(page, 1, nth=1).get_by_role("button").click()
        assert section(page, 1, nth=1).get_by_text("second").is_visible()
        assert not section(page, 1, nth=0).get_by_text("second").is_visible()


def test_hostile_texts_do_nothing_in_a_browser(tmp_path):
    hostile = card(1, topic=HOSTILE, question=HOSTILE, key_points=(HOSTILE, "other"))
    with browser(tmp_path, Deck((hostile,))) as page:
        page.get_by_label("Your answer").fill(HOSTILE)
        page.get_by_role("button").click()
        page.get_by_label(HOSTILE).check()
        reload(page)
        assert page.get_by_label("Your answer").input_value() == HOSTILE
        assert page.title() == ""
