"""Cards in a real browser: an answer first, then the key points; it is kept."""

import json
from contextlib import contextmanager
from html import escape

import pytest
from decks import HOSTILE, card, html
from pages import reload_until

from distlab.quiz import Deck


@pytest.fixture
def opened(browser, tmp_path):
    """Return a function that opens decks with the cell they lead to, as one page.

    before: script that runs before the page's own. above: HTML above the decks.
    """

    @contextmanager
    def opened(*decks, before="", above=""):
        bodies = "".join(html(deck) for deck in decks)
        far = '<div style="height:3000px"></div><div id="cell-id=the-cell">here</div>'
        file = tmp_path / "10_ring.html"
        file.write_text(f"<!DOCTYPE html><body>{above}{bodies}{far}</body>")
        context, errors = browser.new_context(offline=True), []
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text))
        page.add_init_script(before)
        page.goto(file.as_uri())
        yield page
        assert errors == []
        context.close()

    return opened


def section(page, number, nth=0):
    return page.locator(f"[data-card=card-{number}]").nth(nth)


def test_key_points_can_be_seen_only_after_an_answer(opened):
    with opened(Deck((card(1), card(2)))) as page:
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


def test_the_keyboard_alone_is_enough(opened):
    with opened(Deck((card(1),))) as page:
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


def test_answers_and_ticks_survive_a_reload_and_the_key_points_close(opened):
    with opened(Deck((card(1), card(2)))) as page:
        section(page, 1).get_by_label("Your answer").fill("mine")
        section(page, 1).get_by_role("button").click()
        section(page, 1).get_by_label("third").check()
        first = section(page, 1)
        answer = first.get_by_label("Your answer")
        reload_until(page, lambda: answer.input_value() == "mine")
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
def test_without_a_usable_storage_cards_work_and_forget(opened, before):
    with opened(Deck((card(1),)), before=before) as page:
        page.get_by_label("Your answer").fill("mine")
        page.get_by_role("button").click()
        page.get_by_label("first").check()
        assert page.get_by_text("You had 1 of 3.").is_visible()


def test_two_decks_in_a_page_work_each_for_itself(opened):
    with opened(Deck((card(1),)), Deck((card(1), card(2)))) as page:
        assert page.get_by_label("Your answer").count() == 3
        section(page, 1, nth=1).get_by_label("Your answer").fill("mine")
        section(page, 1, nth=1).get_by_role("button").click()
        assert section(page, 1, nth=1).get_by_text("second").is_visible()
        assert not section(page, 1, nth=0).get_by_text("second").is_visible()


def test_hostile_texts_do_nothing_in_a_browser(opened):
    hostile = card(1, topic=HOSTILE, question=HOSTILE, key_points=(HOSTILE, "other"))
    with opened(Deck((hostile,))) as page:
        page.get_by_label("Your answer").fill(HOSTILE)
        page.get_by_role("button").click()
        page.get_by_role("checkbox", name=HOSTILE).check()
        answer = page.get_by_label("Your answer")
        reload_until(page, lambda: answer.input_value() == HOSTILE)
        assert page.title() == ""


def test_a_review_shows_one_card_at_a_time_and_tells_the_kernel(opened):
    listen = "window.heard = []; window.distlabTell = (m) => window.heard.push(m)"
    deck = Deck((card(1), card(2)), one_at_a_time=True)
    with opened(deck, before=listen) as page:
        assert section(page, 1).is_visible() and not section(page, 2).is_visible()
        for number, rating in ((1, "hard"), (2, "easy")):
            section(page, number).get_by_label("Your answer").fill("mine")
            section(page, number).get_by_role("button").first.click()
            section(page, number).get_by_role("button", name=rating).click()
        assert page.get_by_text("the last card for today").is_visible()
        page.wait_for_function(
            "heard.some((m) => m.value.id == 'card-2' && m.value.answer)"
        )
        heard = [m["value"] for m in page.evaluate("heard") if m["to"] == "cards"]
        assert {"id": "card-1", "rating": "hard"} in heard
        assert {"id": "card-2", "answer": "mine", "ticked": [], "of": 3} in heard


def test_a_notebook_opened_again_shows_what_was_answered_and_says_what_it_cannot_keep(
    opened,
):
    kept = {"answer": "mine", "ticked": [card(1).key_points[0]]}
    held = escape(json.dumps({"card-1": kept | {"rating": "good"}, "card-2": None}))
    above = (
        '<script id="jupyter-config-data" type="application/json"></script>'
        f'<div class="jp-OutputArea"><div class="distlab-kept" data-kept="{held}">'
        "</div>"
    )
    with opened(Deck((card(1), card(2))), above=above) as page:
        first, second = section(page, 1), section(page, 2)
        assert first.get_by_label("Your answer").input_value() == "mine"
        first.get_by_role("button", name="Compare").click()
        assert first.get_by_text("You had 1 of 3.").is_visible()
        second.get_by_label("Your answer").fill("no kernel")
        second.get_by_text("Not kept. Run this cell first.").first.wait_for()
        second.get_by_role("button", name="Compare").click()
        second.get_by_role("button", name="easy").click()
        assert second.locator("[role=status]").last.text_content() == (
            "Not kept. Run this cell first."
        )
