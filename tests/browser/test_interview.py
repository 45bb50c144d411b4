"""A mock interview in a browser: on the site's page alone, and in a cell's output."""

import json
import re
from html import escape

import pytest
from pages import reload_until
from soaks import nightly

from distlab.learner.interview import interview, interview_page, page
from distlab.learner.interview.draw import question_of
from distlab.learner.interview.record import earlier
from distlab.learner.quiz.card import LEVELS
from distlab.learner.quiz.review import selected
from distlab.show.assets import document


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DISTLAB_HOME", str(tmp_path))


@pytest.fixture
def opened(new_page, tmp_path):
    """Return a function that opens HTML as a page of a browser."""

    def opened(html, before="", **context):
        browser_page = new_page(**context)
        browser_page.clock.install()
        html = f"<main><h1>Interview</h1>{html}</main>"
        (tmp_path / "interview.html").write_text(before + document(html, "Interview"))
        browser_page.goto((tmp_path / "interview.html").as_uri())
        return browser_page

    return opened


def begin(shown, **choices):
    for name, value in choices.items():
        field = shown.locator(f".choose [name={name}]")
        (field.fill if name == "topic" else field.select_option)(value)
    shown.get_by_role("button", name="Begin").first.click()


def answer(shown, ticks=1):
    """Answer the question that is shown, rightly; return its section."""
    card = shown.locator("section:visible")
    card.get_by_label("Your answer").fill("mine")
    if value := card.get_attribute("data-value"):
        card.get_by_label("Your number").fill(f"{float(value):.4g}")
    if card.locator("[aria-expanded=false]").count():
        card.get_by_role("button", name="Compare").click()
    for box in card.get_by_role("checkbox").all()[:ticks]:
        box.check()
    return card


def finish(shown):
    while shown.locator("section:visible").count():
        answer(shown).get_by_role("button", name="Next question").click()
    return shown.locator(".report").inner_text()


HELD = "document.querySelector('.distlab-cards').held"


def test_on_the_page_an_interview_goes_on_after_a_reload_and_says_what_to_read(opened):
    shown = opened(interview_page(selected()))
    begin(shown, minutes="15")
    first = answer(shown).get_attribute("data-card")
    kept = "JSON.parse(localStorage['distlab.interviews'])[0].answers"
    shown.reload()
    shown.get_by_role("button", name="Go on").click()
    card = shown.locator("section:visible")
    assert card.get_attribute("data-card") == first  # compared, and not yet done
    assert card.get_by_text("You had 1 of").is_visible()
    said = finish(shown)
    assert "Your number is right." in said and "Read again, fewest points first" in said
    points = [
        question_of(n).card.key_points for n in shown.evaluate(f"{HELD}.questions")
    ]
    total = sum(map(len, points))
    assert f"{len(points)} of {total} key points in {len(points)} questions" in said
    assert shown.evaluate(f"Object.values({kept}).every(a => a.done)")
    link = shown.locator(".report a").first.get_attribute("href")
    assert link.startswith("lessons/") and "#cell-id=" in link
    shown.reload()  # it has ended: the next one is new
    assert not shown.get_by_role("button", name="Go on").count()


@pytest.mark.nightly
def test_the_clock_stops_while_one_compares_and_the_end_of_time_ends_it(opened):
    shown = opened(interview_page(selected()))
    begin(shown, minutes="45")
    shown.clock.run_for(61_500)
    assert re.search("1:0[01] of", shown.locator(".clock").inner_text())
    card = answer(shown)
    said = shown.locator(".clock").inner_text()
    shown.clock.run_for(600_000)
    assert shown.locator(".clock").inner_text() == said and "43:5" in said
    card.get_by_role("button", name="Next question").click()
    shown.clock.run_for(2_700_000)
    answer(shown).get_by_role("button", name="Next question").click()
    said = shown.locator(".report").inner_text()
    assert "The time was over before" in said and "in 2 questions" in said


@pytest.mark.parametrize("level", ["senior", nightly("mid"), nightly("principal")])
def test_the_page_draws_as_the_terminal_does(opened, level):
    shown = opened(interview_page(selected()))
    deck = "document.querySelector('.distlab-cards')"
    for minutes in (15, 30, 60):
        begin = f"{deck}.held = null, {deck}.begin(), {deck}.held.questions"
        shown.locator(".choose [name=level]").select_option(level)
        shown.locator(".choose [name=minutes]").select_option(f"{minutes}")
        for _ in range(4):
            drawn = [question_of(name) for name in shown.evaluate(begin)]
            assert minutes - 6 <= sum(each.minutes for each in drawn) <= minutes
            assert sum(each.value is not None for each in drawn) == 1
            assert sum(bool(each.code) for each in drawn) == (minutes >= 30)
            names = [each.card.id for each in drawn]
            for at, each in enumerate(drawn):
                before = each.card.follows
                assert before not in names or names.index(before) == at - 1
                assert LEVELS.index(each.card.level) <= LEVELS.index(level) + 1
        shown.evaluate("document.querySelector('form.choose').hidden = false")
    shown.locator(".choose [name=topic]").fill("cats")
    shown.evaluate(f"{deck}.held = null; {deck}.begin()")
    assert (
        "No card of this level is about this topic"
        in shown.locator(".today").inner_text()
    )


LISTEN = "<script>window.heard = []; window.distlabTell = (m) => heard.push(m)</script>"
NOTEBOOK = '<script id="jupyter-config-data" type="application/json"></script>'


def test_a_notebook_s_kernel_hears_all_and_an_opened_one_shows_it(opened):
    made = interview(minutes=15, seed=3)
    page._shown[made.held.started] = made.held, None
    html = made._repr_mimebundle_()["text/html"]
    shown = opened(html, before=NOTEBOOK + LISTEN)
    begin(shown)
    answer(shown)
    shown.clock.run_for(1000)
    for message in shown.evaluate("heard.splice(0).filter(m => m.to)"):
        assert message["to"] == "interview"
        page._heard(message["value"])
    [held] = earlier()
    kept = held.answers[held.questions[0]]
    assert kept["answer"] == "mine" and len(kept["ticked"]) == 1 and kept["answered"]
    # Saved now and opened again, the cell's hidden output has the answer.
    hidden = page._hidden(held)["text/html"]
    again = f'<div class="jp-OutputArea">{hidden}{html}</div>'
    shown = opened(again, before=NOTEBOOK + LISTEN)
    begin(shown)
    reload_until(shown, lambda: True)
    begin(shown)
    card = shown.locator("section:visible")
    assert card.get_by_label("Your answer").input_value() == "mine"
    assert card.get_by_text("You had 1 of").is_visible()
    finish(shown)
    shown.clock.run_for(1000)
    for message in shown.evaluate("heard.filter(m => m.to)"):
        page._heard(message["value"])
    [held] = earlier()
    assert held.ended and not held.open()
    right = [question_of(n).is_right(a.get("number")) for n, a in held.answers.items()]
    assert right[-1] and json.loads(json.dumps(vars(held)))


@pytest.mark.nightly
def test_the_page_is_accessible_and_fits_a_phone(opened):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    phone = {"viewport": {"width": 360, "height": 800}, "has_touch": True}
    shown = opened(interview_page(selected()), is_mobile=True, **phone)
    begin(shown, minutes="30")
    while shown.locator("section:visible").count():
        card = answer(shown)
        found = axe.run(shown).response["violations"]
        assert not [(v["help"], n["html"]) for v in found for n in v["nodes"]]
        assert shown.evaluate("document.documentElement.scrollWidth") <= 360
        card.get_by_role("button", name="Next question").click()
    assert escape("Read again") in shown.locator(".report").inner_text()
