"""Cards, guesses and the review in a browser, without a kernel: all is kept there."""

import json
import random
import re
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path

import nbformat
import pytest
from decks import HOSTILE, card, html
from guesses import LINES, NO_NUMBERS, NUMBERS
from pages import reload_until
from soaks import nightly

from distlab import predict
from distlab.commands.running.execute import execute, hushed
from distlab.commands.running.lesson_process import Settings
from distlab.learner.quiz import Deck, cards, review_page
from distlab.learner.quiz.review import RATINGS, rate, selected
from distlab.show.assets import document, read


@pytest.fixture
def opened(page, tmp_path):
    """Return a function that opens decks with the cell they lead to, as one page.

    before: script that runs before the page's own. above: HTML above the decks.
    """

    def opened(*decks, before="", above=""):
        bodies = "".join(html(deck) for deck in decks)
        far = '<div style="height:3000px"></div><div id="cell-id=the-cell">here</div>'
        file = tmp_path / "10_ring.html"
        above = f"<!DOCTYPE html><body><script>{before}</script>{above}"
        file.write_text(f"{above}{bodies}{far}</body>")
        page.goto(file.as_uri())
        return page

    return opened


def section(page, number, nth=0):
    return page.locator(f"[data-card=card-{number}]").nth(nth)


def test_key_points_can_be_seen_only_after_an_answer(opened):
    page = opened(Deck((card(1), card(2))))
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
    page = opened(Deck((card(1),)))
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
    page = opened(Deck((card(1), card(2))))
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
    page = opened(Deck((card(1),)), before=before)
    page.get_by_label("Your answer").fill("mine")
    page.get_by_role("button").click()
    page.get_by_label("first").check()
    assert page.get_by_text("You had 1 of 3.").is_visible()


def test_two_decks_in_a_page_work_each_for_itself(opened):
    page = opened(Deck((card(1),)), Deck((card(1), card(2))))
    assert page.get_by_label("Your answer").count() == 3
    section(page, 1, nth=1).get_by_label("Your answer").fill("mine")
    section(page, 1, nth=1).get_by_role("button").click()
    assert section(page, 1, nth=1).get_by_text("second").is_visible()
    assert not section(page, 1, nth=0).get_by_text("second").is_visible()


def test_hostile_texts_do_nothing_in_a_browser(opened):
    hostile = card(1, topic=HOSTILE, question=HOSTILE, key_points=(HOSTILE, "other"))
    page = opened(Deck((hostile,)))
    page.get_by_label("Your answer").fill(HOSTILE)
    page.get_by_role("button").click()
    page.get_by_role("checkbox", name=HOSTILE).check()
    answer = page.get_by_label("Your answer")
    reload_until(page, lambda: answer.input_value() == HOSTILE)
    assert page.title() == ""


def test_a_review_shows_one_card_at_a_time_and_tells_the_kernel(opened):
    listen = "window.heard = []; window.distlabTell = (m) => window.heard.push(m)"
    deck = Deck((card(1), card(2)), one_at_a_time=True)
    page = opened(deck, before=listen)
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
    page = opened(Deck((card(1), card(2))), above=above)
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


# ---- pages of a lesson that ran, and of the review -----------------------------

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
CELLS = (
    "from distlab import predict; from distlab.learner.quiz import ask\n"
    "sent = predict('How much does rank 0 send?', unit='MB')",
    "sent.compare(12, formula=12)",
    "reads = predict('With n, reads', choices=['slow down', 'stay'])",
    "reads.compare('stay')",
    "ask(10)",
)
FIRST = cards(10)[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the page of a lesson that ran, and the page of all cards."""
    folder = tmp_path_factory.mktemp("site")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    lesson = tmp_path_factory.mktemp("lessons") / "10_ring.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), lesson)
    with pytest.MonkeyPatch.context() as patch, hushed():
        patch.setenv("DISTLAB_HOME", str(folder / "nobody"))
        assert not execute(lesson, folder, Settings(), lambda: None).failure
    page = document(f"<main><h1>Review</h1>{review_page(selected())}</main>", "Review")
    (folder / "review.html").write_text(page)
    return folder


@pytest.fixture
def site(new_page, folder, tmp_path, monkeypatch):
    """Return a page of a browser, to which the folder is a site."""
    monkeypatch.setenv("DISTLAB_HOME", str(tmp_path))
    page = new_page(base_url="http://course.test/")

    def serve(route):
        file = folder / Path(route.request.url).name
        # nbconvert's pages ask others for libraries that ours do without
        route.fulfill(**{"path": file} if file.exists() else {"body": ""})

    page.route("**/*", serve)
    return page


def shown(page):
    return page.locator(".distlab-compared").all_inner_texts()


def test_a_guess_opens_what_was_recorded_is_kept_changed_and_cleared(site):
    site.goto("10_ring.html")
    text = site.content()
    assert text.count("const upgradeForm =") == text.count(".distlab-said pre {") == 1
    first = "Guess first, above: this line then tells what came out."
    assert shown(site) == [first, first]
    site.get_by_label("How much does rank 0 send?").fill("8 MB")
    site.keyboard.press("Enter")
    site.get_by_role("radio", name="slow down").check()
    site.get_by_role("button", name="Keep my guess").click()
    formula = "the formula says 12 MB · measured 12 MB"
    compared = [
        f"you said 8 MB · {formula}: your guess was 0.67 of it",
        "you said slow down · measured: stay",
    ]
    assert shown(site) == compared
    site.reload()
    assert shown(site) == compared
    assert site.get_by_role("radio", name="slow down").is_checked()
    site.get_by_label("How much does").fill("twelve")
    site.keyboard.press("Enter")
    assert site.get_by_text("'twelve' is not a number in MB").is_visible()
    site.get_by_label("How much does").fill("12")
    site.keyboard.press("Enter")
    assert shown(site)[0] == f"you said 12 MB · {formula}: just as you said"
    site.get_by_role("button", name="Clear my guess").first.click()
    site.reload()
    assert shown(site) == [first, compared[1]]


def test_a_page_reads_and_judges_a_guess_as_the_kernel_does(site):
    names = ("tell.js", "guess.js")
    script = "\n".join(read("distlab.learner.predictions", name) for name in names)
    guess, rows = predict("MB?", unit="MB"), []
    for said, measured, formula, _ in LINES:
        guess.keep(said)
        rows.append([str(said), repr(guess.compare(measured, formula))])
        rows[-1].append({"measured": measured, "formula": formula, "unit": "MB"})
    lines = f"rows => {{ {script}; return rows.map(r => line(r[0], r[2])) }}"
    assert site.evaluate(lines, rows) == [row[1] for row in rows]
    texts = [*NUMBERS, *(each for each in NO_NUMBERS if isinstance(each, str))]
    numbers = (
        "texts => { %s; return texts.map(t => [numberIn(t, 'MB')].filter(isFinite)) }"
    )
    found = site.evaluate(numbers % script, texts)
    assert found == [[NUMBERS[text]] if text in NUMBERS else [] for text in texts]


def test_a_card_rated_in_a_lesson_is_due_in_the_review_on_the_next_day(site):
    site.clock.set_fixed_time(NOON)
    site.goto("10_ring.html")
    card = site.locator(f"[data-card='{FIRST.id}']")
    card.get_by_label("Your answer").fill("mine")
    card.get_by_role("button", name="Compare").click()
    site.keyboard.press("3")
    site.reload()
    assert card.get_by_label("Your answer").input_value() == "mine"
    assert "You rated it good on 1 June." in card.text_content()
    site.goto("review.html")
    assert "Today: 0 due, 9 new" in site.locator(".today").inner_text()
    site.clock.set_fixed_time(NOON + timedelta(days=1))
    site.reload()
    assert "Today: 1 due, 10 new" in site.locator(".today").inner_text()
    assert card.is_visible() and site.locator("[data-card]:visible").count() == 1
    found = f"of {len(selected(topic='quorum'))} cards"
    for topic, shown in {"quorum": found, "quorom": "No card is about"}.items():
        site.get_by_role("combobox", name="Topic").fill(topic)
        assert shown in site.locator(".today").inner_text()
    site.get_by_role("combobox", name="Level").select_option("mid")
    site.get_by_role("combobox", name="Topic").fill(FIRST.topic[:9])
    card.get_by_label("Your answer").fill("again mine")
    card.get_by_role("button", name="Compare").click()
    card.get_by_role("button", name="easy").click()
    assert "Comes back on" in site.locator(".today").inner_text()
    assert not card.is_visible()


def test_browser_and_kernel_give_a_card_the_same_dates(site):
    chance, ours, histories = random.Random(24), [], []
    for number in range(40):
        now, history, dates = NOON, [], []
        for _ in range(chance.randint(1, 9)):
            rating = chance.choice(RATINGS)
            due = rate(f"card-{number}", rating, now=now)
            history.append([1 + RATINGS.index(rating), 1000 * now.timestamp()])
            dates.append(1000 * due.timestamp())
            late = chance.choice([0, 40, 3600, 90_000, 300_000])
            now = (due if chance.random() < 0.8 else now) + timedelta(seconds=late)
        histories.append(history)
        ours.append(dates)
    names = ("ts-fsrs.min.js", "schedule.js")
    script = "\n".join(read("distlab.learner.quiz", name) for name in names)
    states = (
        "let s = null; return history.map(([r, at]) => (s = reviewed(s, r, at)).due)"
    )
    each = f"histories.map(history => {{ {states} }})"
    theirs = site.evaluate(f"histories => {{ {script}; return {each} }}", histories)
    assert theirs == ours


SMALL = """() => [...document.querySelectorAll(':is(.distlab-guess, .distlab-cards) ' +
  ':is(button, label:has([type=radio], [type=checkbox]), select, [type=text])')]
  .filter(e => e.offsetHeight && e.offsetHeight < 44).map(e => e.outerHTML)"""
TINY = """() => [...document.querySelectorAll(
  ':is(.distlab-guess, .distlab-cards, .distlab-said) *')]
  .filter(e => parseFloat(getComputedStyle(e).fontSize) < 11).map(e => e.outerHTML)"""
OURS = [[".distlab-guess"], [".distlab-said"], [".distlab-cards"]]


@pytest.mark.parametrize("theme", [nightly("light"), "dark"])
def test_forms_and_cards_are_accessible_in_both_themes(new_page, folder, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    other = {"light": "dark", "dark": "light"}[theme]
    phone = {"viewport": {"width": 360, "height": 800}, "has_touch": True}
    page = new_page(color_scheme=other, is_mobile=True, **phone)
    page.route(re.compile("^https?:"), lambda route: route.fulfill(body=""))
    for name in ("10_ring", "review"):
        page.goto((folder / f"{name}.html").as_uri())
        page.evaluate(
            "theme => { document.documentElement.dataset.theme = theme;"
            "delete document.body.dataset.jpThemeLight; document.body.style.background"
            " = getComputedStyle(document.querySelector('section')).backgroundColor }",
            theme,
        )
        page.locator("textarea:visible").first.fill("mine")
        page.get_by_role("button", name="Compare").locator("visible=true").first.click()
        ours = {"include": OURS} if name == "10_ring" else None
        found = axe.run(page, context=ours).response["violations"]
        assert not [(v["help"], n["html"], n["any"]) for v in found for n in v["nodes"]]
        assert page.evaluate(SMALL) == page.evaluate(TINY) == []
        paper = "getComputedStyle(document.querySelector('section')).backgroundColor"
        assert (page.evaluate(paper) == "rgb(20, 24, 29)") == (theme == "dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
